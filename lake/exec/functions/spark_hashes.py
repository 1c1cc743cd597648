"""Spark's hashes of several values: Murmur3 of 32 bits and xxHash of 64, each value's hash the seed of the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import xxhash

from lake.errors import UndefinedFunction
from lake.exec import decimals
from lake.exec.constants import as_array, list_parts
from lake.exec.decimals import Value
from lake.exec.kernels import views
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar
from lake.types import (
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Integer,
    Json,
    List,
    Null,
    Struct,
    Text,
    Time,
    Timestamp,
    Type,
)

GROUP: Final = "bytes"
SEED: Final = 42
PRIMES: Final = tuple(
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
Hash = Callable[[Any, Any], Any]


def _rotated(words: Any, bits: int) -> Any:
    width = words.dtype.itemsize * 8
    return (words << words.dtype.type(bits)) | (words >> words.dtype.type(width - bits))


# --- Murmur3 ---------------------------------------------------------------------------------------------------------


def _mixed(seeds: Any, words: Any) -> Any:
    words = _rotated(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotated(seeds ^ words, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finished(hashes: Any, lengths: Any) -> Any:
    hashes = hashes ^ np.asarray(lengths, np.uint32)
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))


def _murmur_ints(words: Any, seeds: Any) -> Any:
    return _finished(_mixed(seeds, words.view(np.uint32)), 4)


def _murmur_longs(words: Any, seeds: Any) -> Any:
    bits = words.view(np.uint64)
    low, high = bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
    return _finished(_mixed(_mixed(seeds, low), high), 8)


def _murmur_bytes(array: pa.Array, seeds: Any) -> Any:
    """Word by word of all rows at once, then the bytes that are left, one by one."""
    offsets, body = views.text_of(array)
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    body = np.concatenate((body.view(np.uint8), np.zeros(4, np.uint8)))
    hashes = seeds.copy()
    for place in range(int(lengths.max(initial=0)) // 4):
        rows = np.flatnonzero(lengths >= 4 * place + 4)
        at = starts[rows] + 4 * place
        words = sum(body[at + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4))
        hashes[rows] = _mixed(hashes[rows], words)
    for byte in range(3):
        rows = np.flatnonzero(lengths % 4 > byte)
        at = starts[rows] + lengths[rows] // 4 * 4 + byte
        hashes[rows] = _mixed(hashes[rows], body[at].view(np.int8).astype(np.int32).view(np.uint32))
    return _finished(hashes, lengths)


# --- xxHash ----------------------------------------------------------------------------------------------------------


def _avalanche(hashes: Any) -> Any:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * PRIMES[1]
    hashes = (hashes ^ (hashes >> np.uint64(29))) * PRIMES[2]
    return hashes ^ (hashes >> np.uint64(32))


def _xx_ints(words: Any, seeds: Any) -> Any:
    hashes = seeds + PRIMES[4] + np.uint64(4)
    hashes ^= words.view(np.uint32).astype(np.uint64) * PRIMES[0]
    return _avalanche(_rotated(hashes, 23) * PRIMES[1] + PRIMES[2])


def _xx_longs(words: Any, seeds: Any) -> Any:
    hashes = seeds + PRIMES[4] + np.uint64(8)
    hashes ^= _rotated(words.view(np.uint64) * PRIMES[1], 31) * PRIMES[0]
    return _avalanche(_rotated(hashes, 27) * PRIMES[0] + PRIMES[3])


@per_row
def _xx_bytes(array: pa.Array, seeds: Any) -> Any:
    """Goes row by row: each row has its own seed, and the library takes one text at a time."""
    texts = array.cast(pa.binary()).to_pylist()
    return np.array([xxhash.xxh64_intdigest(text or b"", seed) for text, seed in zip(texts, seeds.tolist())], np.uint64)


# --- columns ---------------------------------------------------------------------------------------------------------


class Hasher:
    """A hash of columns of any type: what it makes of integers of 32 and 64 bits, and of bytes."""

    def __init__(self, ints: Hash, longs: Hash, texts: Hash) -> None:
        self._ints, self._longs, self._texts = ints, longs, texts

    def add(self, array: pa.Array, type: Type, seeds: Any) -> Any:
        """The hashes with a column taken in; NULLs leave them as they are.

        42883  a type that has no hash
        """
        if isinstance(type, Null) or len(array) == 0:
            return seeds
        array = views.plain(array)
        valid = views.valid_of(array)
        with np.errstate(over="ignore"):
            made = self._hashed(array, type, seeds)
        return made if valid is None else np.where(valid == 1, made, seeds)

    def _hashed(self, array: pa.Array, type: Type, seeds: Any) -> Any:
        match type:
            case Text() | Json() | Bytes():
                return self._texts(array, seeds)
            case Boolean():
                return self._ints(views.true_of(array).astype(np.int32), seeds)
            case Integer(bits=64) | Timestamp() | Time():
                return self._longs(np.ascontiguousarray(views.values_of(array)).view(np.int64), seeds)
            case Integer() | Date():
                return self._ints(views.values_of(array).astype(np.int32), seeds)
            case Float():
                numbers = views.values_of(array) + 0  # -0.0 is 0.0
                return self._ints(numbers.view(np.int32), seeds) if type.bits == 32 else self._longs(
                    numbers.view(np.int64), seeds)  # fmt: skip
            case Decimal(precision=precision) if precision <= 18:
                scaled = decimals.scaled(array)
                assert scaled is not None
                return self._longs(np.ascontiguousarray(scaled.values, np.int64), seeds)
            case List(of):
                offsets, items, _ = list_parts(array)
                lengths = np.diff(offsets)
                hashes = seeds.copy()
                for place in range(int(lengths.max(initial=0))):
                    rows = np.flatnonzero(lengths > place)
                    hashes[rows] = self.add(items.take(pa.array(offsets[rows] + place)), of, hashes[rows])
                return hashes
            case Struct(fields):
                hashes = seeds
                for part, (_, of) in zip(array.flatten(), fields, strict=True):
                    hashes = self.add(part, of, hashes)
                return hashes
        raise UndefinedFunction(f"values of the type {type} have no hash")


MURMUR: Final = Hasher(_murmur_ints, _murmur_longs, _murmur_bytes)
XX: Final = Hasher(_xx_ints, _xx_longs, _xx_bytes)


@scalar("hash(values ANY...) -> INT", group=GROUP, origin="spark", strict=False, takes_call=True,
        aliases=("spark_hash",))  # fmt: skip
def hash_(*values: Value, call: CallInfo) -> pa.Array:
    """The 32-bit Murmur3 hash of values, with seed 42; NULLs change nothing.

    >>> SELECT hash('Spark'), hash('Spark', ARRAY[123::INT], 2::INT)
    228093765 | -1321691492

    42883  a map
    """
    hashes = np.full(call.rows, SEED, np.uint32)
    for value, type in zip(values, call.types, strict=True):
        hashes = MURMUR.add(as_array(value, call.rows), type, hashes)
    return pa.array(hashes.view(np.int32))


@scalar("xxhash64(values ANY...) -> BIGINT", group=GROUP, origin="spark", strict=False, takes_call=True)
def xxhash64_of(*values: Value, call: CallInfo) -> pa.Array:
    """The 64-bit xxHash of values, with seed 42; NULLs change nothing.

    >>> SELECT xxhash64('Spark', ARRAY[123::INT], 2::INT)
    5602566077635097486
    >>> xxhash64('Spark')
    -4294468057691064905

    42883  a map
    """
    hashes = np.full(call.rows, SEED, np.uint64)
    for value, type in zip(values, call.types, strict=True):
        hashes = XX.add(as_array(value, call.rows), type, hashes)
    return pa.array(hashes.view(np.int64))
