"""64-bit hashes of columns, the same on every machine and in every run.

Equal values hash alike: -0.0 as 0.0, every NaN as one, a month as 30 days, a string as the same string in a dictionary. NULL
has a hash of its own. The hash of several columns depends on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.kernels import kernel
from lake.exec.kernels.nested import encoded, lengths_of
from lake.exec.kernels.views import (
    AnyArray,
    Ints,
    codes_of,
    is_fixed,
    is_text,
    is_wide,
    mask_of,
    single,
    text_of,
    to_array,
    values_of,
)

MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio, odd
MIX2: Final = np.uint64(0xD6E8FEB86659FD93)  # degski's multiplier: odd, good avalanche between shifts by 32
NULL_HASH: Final = np.uint64(0x4CF5AD432745937F)
NAN_BITS: Final = np.int64(0x7FF8000000000000)
ONE, TWO, SEVEN, EIGHT, THIRTY_TWO = np.uint64(1), np.uint64(2), np.uint64(7), np.uint64(8), np.uint64(32)
# Unsigned: a signed place of an array is looked at whether it counts from the end.


@kernel
def mix(word: Any) -> Any:
    """uint64 -> uint64: every bit of the answer depends on every bit of ``word``."""
    word = (word ^ (word >> THIRTY_TWO)) * MIX2
    word = (word ^ (word >> THIRTY_TWO)) * MIX2
    return word ^ (word >> THIRTY_TWO)


@kernel
def load_word(characters: Any, at: Any) -> Any:
    """Eight bytes from uint64 ``at`` as a little-endian uint64: compiled to one load."""
    return (
        np.uint64(characters[at])
        | (np.uint64(characters[at + ONE]) << EIGHT)
        | (np.uint64(characters[at + np.uint64(2)]) << np.uint64(16))
        | (np.uint64(characters[at + np.uint64(3)]) << np.uint64(24))
        | (np.uint64(characters[at + np.uint64(4)]) << np.uint64(32))
        | (np.uint64(characters[at + np.uint64(5)]) << np.uint64(40))
        | (np.uint64(characters[at + np.uint64(6)]) << np.uint64(48))
        | (np.uint64(characters[at + np.uint64(7)]) << np.uint64(56))
    )


@kernel
def load_tail(characters: Any, at: Any, count: Any) -> Any:
    """``count`` (0 to 7) bytes from uint64 ``at`` as a little-endian uint64, zeros above."""
    if at + EIGHT <= np.uint64(characters.size):
        return load_word(characters, at) & ((ONE << np.uint64(8 * count)) - ONE)
    word = np.uint64(0)
    for index in range(count):
        word |= np.uint64(characters[at + np.uint64(index)]) << np.uint64(8 * index)
    return word


@kernel
def hash_bytes(characters: Any, start: Any, stop: Any) -> Any:
    """The uint64 hash of ``characters[start:stop]``, read eight bytes at a time."""
    size = np.int64(stop) - np.int64(start)
    at = np.uint64(start)
    hashed = np.uint64(size) * MIX
    while size >= 8:
        hashed = (hashed ^ load_word(characters, at)) * MIX2
        hashed ^= hashed >> THIRTY_TWO
        at += EIGHT
        size -= 8
    hashed = (hashed ^ load_tail(characters, at, size)) * MIX2
    return mix(hashed ^ (hashed >> THIRTY_TWO))


@kernel
def same_bytes(left: Any, left_start: Any, right: Any, right_start: Any, size: Any) -> Any:
    """Whether ``size`` bytes of two byte arrays are equal, compared eight at a time."""
    at, other = np.uint64(left_start), np.uint64(right_start)
    while size >= 8:
        if load_word(left, at) != load_word(right, other):
            return False
        at += EIGHT
        other += EIGHT
        size -= 8
    return load_tail(left, at, size) == load_tail(right, other, size)


@kernel
def hash_words(words: Any, valid: Any, hashes: Any) -> None:
    """Combines the hash of each row's word into ``hashes``.

    words   int64[rows]   in      valid   uint8[rows] or empty   in
    hashes  uint64[rows]  in/out  0 before the first column
    """
    has_nulls = valid.size > 0
    for row in range(words.size):
        word = mix(np.uint64(words[row]) + MIX)
        if has_nulls and valid[row] == 0:
            word = NULL_HASH
        hashes[row] = mix(hashes[row] + word)


@kernel
def hash_texts(offsets: Any, characters: Any, valid: Any, hashes: Any) -> None:
    """Combines the hash of each row's bytes into ``hashes``.

    offsets  int32/int64[rows + 1]   in    characters  uint8[any]    in
    valid    uint8[rows] or empty    in    hashes      uint64[rows]  in/out
    """
    has_nulls = valid.size > 0
    for row in range(hashes.size):
        word = NULL_HASH
        if not has_nulls or valid[row] != 0:
            word = hash_bytes(characters, offsets[row], offsets[row + 1])
        hashes[row] = mix(hashes[row] + word)


@kernel
def hash_codes(codes: Any, entries: Any, valid: Any, hashes: Any) -> None:
    """Combines the hash of each row's dictionary entry into ``hashes``.

    codes  int32[rows]  in    entries  uint64[entries]  in  ``hash_bytes`` of each
    valid  uint8[rows] or empty  in    hashes  uint64[rows]  in/out
    """
    has_nulls = valid.size > 0
    for row in range(codes.size):
        word = NULL_HASH
        if not has_nulls or valid[row] != 0:
            word = entries[codes[row]]
        hashes[row] = mix(hashes[row] + word)


@kernel
def hash_entries(offsets: Any, characters: Any, hashes: Any) -> None:
    """``hash_bytes`` of each row: offsets int32/int64[rows + 1], characters uint8, hashes uint64[rows] out."""
    for row in range(hashes.size):
        hashes[row] = hash_bytes(characters, offsets[row], offsets[row + 1])


def hash_columns(columns: Sequence[AnyArray]) -> Ints:
    """uint64[rows]: the hash of each row's values."""
    arrays = [single(column) for column in columns]
    hashes = np.zeros(len(arrays[0]), np.uint64)
    for array in arrays:
        _combine(array, hashes)
    return hashes


def words_of(array: pa.Array) -> Ints:
    """int64[rows]: a word for each row of a column of one number a row, equal where the values are.

    Integers are themselves; the order of floating point words is not that of the numbers.
    """
    values = values_of(array)
    if values.dtype.kind == "f":
        numbers = values.astype(np.float64, copy=False)
        words = (numbers + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
        return np.where(np.isnan(numbers), NAN_BITS, words)
    return values.astype(np.int64, copy=False)


def _combine(array: pa.Array, hashes: Ints) -> None:
    type, valid = array.type, mask_of(array)
    if pa.types.is_dictionary(type) and is_text(type.value_type):
        entries = np.empty(len(array.dictionary), np.uint64)
        hash_entries(*text_of(array.dictionary), entries)
        hash_codes(codes_of(array), entries, valid, hashes)
    elif is_text(type):
        hash_texts(*text_of(array), valid, hashes)
    elif is_wide(type):
        words = values_of(spelled(array) if pa.types.is_interval(type) else array)
        hash_words(np.ascontiguousarray(words[:, 0]), valid, hashes)
        hash_words(np.ascontiguousarray(words[:, 1]), valid, hashes)
    elif is_fixed(type):
        hash_words(words_of(array), valid, hashes)
    elif pa.types.is_null(type):
        hash_words(values_of(array), valid, hashes)
    else:
        hash_texts(*text_of(spelled(array)), valid, hashes)


def spelled(array: pa.Array) -> pa.Array:
    """Values that may be equal and differ still in a form that is equal where they are, NULL where they are.

    Intervals as their length, a month of 30 days; lists, structs and other nested values as bytes.
    """
    if pa.types.is_interval(array.type):
        return to_array(lengths_of(values_of(array)), pa.decimal128(38), mask_of(array))
    return encoded(array)
