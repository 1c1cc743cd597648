"""Keys of rows in a form that is sorted and compared fast, in the order of SQL.

    one column of whole numbers, times, floats    int64, a view of the column where it is one already
    one column of text or bytes                   its bytes
    several columns, or wide decimals             bytes of all columns, one after another, that order as the columns do

A value of a key is never NULL. In bytes a number is big-endian with its sign turned over; a text that another column
follows ends with two zeros, and a zero inside it is followed by 255, so that no key is the beginning of another.
Source: FoundationDB tuple layer, for the escape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from numpy.typing import NDArray

from lake.compiled import kernel, rehearsal
from lake.primitives import copy_bytes
from lake.types import BOOLEAN, Date, Decimal, Float, Integer, Text, Time, Timestamp, Type
from lake.types import Bytes as Bytea

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

WORD: Final = 8
_SIGN: Final = np.uint64(1 << 63)


class Keys(Struct, frozen=True, eq=False):
    """Keys of some rows: ``ints`` alone, or ``data`` with ``offsets``, of which there is one more than rows."""

    ints: Ints | None
    data: Bytes
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.ints is None else len(self.ints)

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return int(self.data.nbytes + self.offsets.nbytes) if self.ints is None else int(self.ints.nbytes)

    def take(self, rows: Ints) -> Keys:
        """The keys of ``rows``, in their order."""
        if self.ints is not None:
            return of_ints(self.ints[rows])
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        gather_bytes(self.data, self.offsets, rows, data, offsets)
        return Keys(None, data, offsets)

    def slice(self, start: int, end: int) -> Keys:
        """The keys from ``start`` to before ``end``."""
        if self.ints is not None:
            return of_ints(self.ints[start:end])
        return Keys(None, self.data, self.offsets[start : end + 1])

    def order(self) -> Ints:
        """The rows in ascending order of their keys; of equal keys, in their own."""
        if self.ints is not None:
            if len(self.ints) < 2 or bool((self.ints[1:] >= self.ints[:-1]).all()):
                return np.arange(len(self.ints), dtype=np.int64)
            return np.argsort(self.ints, kind="stable")
        size = len(self)
        offsets = pa.py_buffer(np.ascontiguousarray(self.offsets))
        array = pa.Array.from_buffers(pa.large_binary(), size, [None, offsets, pa.py_buffer(self.data)])
        order: Ints = pc.array_sort_indices(array).to_numpy(zero_copy_only=False).astype(np.int64)
        return order

    def repeats(self) -> NDArray[np.bool_]:
        """Of sorted keys, whether each is the same as the one before it; the first is not."""
        found = np.zeros(len(self), np.bool_)
        if len(self) > 1:
            if self.ints is not None:
                np.equal(self.ints[1:], self.ints[:-1], out=found[1:])
            else:
                same_as_before(self.data, self.offsets, found)
        return found

    def bounds(self, probes: Keys) -> Ints:
        """For each of sorted ``probes``, how many of these sorted keys are less."""
        out = np.empty(len(probes), np.int64)
        if self.ints is not None:
            assert probes.ints is not None, "keys of one table have one form"
            lower_ints(self.ints, probes.ints, out)
        else:
            lower_bytes(self.data, self.offsets, probes.data, probes.offsets, out)
        return out

    def place(self, probe: Keys) -> int:
        """The row of one key among these sorted keys, or -1."""
        if self.ints is not None:
            assert probe.ints is not None, "keys of one table have one form"
            wanted = probe.ints[0]
            at = int(self.ints.searchsorted(wanted))
            return at if at < len(self.ints) and self.ints[at] == wanted else -1
        found, _ = self.match(probe)
        return int(found[0]) if len(found) else -1

    def match(self, probes: Keys) -> tuple[Ints, Ints]:
        """Pairs of rows with equal keys: of these and of ``probes``, both sorted and each key once."""
        at = self.bounds(probes)
        found = np.flatnonzero(at < len(self))
        if not len(found):
            return found, found
        at = at[found]
        if self.ints is not None and probes.ints is not None:
            is_same = self.ints[at] == probes.ints[found]
        else:
            is_same = np.empty(len(found), np.bool_)
            same_bytes(self.data, self.offsets, at, probes.data, probes.offsets, found, is_same)
        return at[is_same], found[is_same]


def of_ints(values: Ints) -> Keys:
    """Keys that are whole numbers."""
    return Keys(values, _NO_BYTES, _NO_OFFSETS)


def joined(parts: Sequence[Keys]) -> Keys:
    """The keys of several pieces, one after another."""
    if len(parts) == 1:
        return parts[0]
    if parts[0].ints is not None:
        return of_ints(np.concatenate([part.ints for part in parts if part.ints is not None]))
    data = [part.data[part.offsets[0] : part.offsets[-1]] for part in parts]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return Keys(None, np.concatenate(data), offsets)


def encode(columns: Sequence[pa.Array], types: Sequence[Type]) -> Keys:
    """The keys of rows whose key columns are ``columns``, in physical form and without NULL."""
    if len(columns) == 1:
        numbers = _numbers(columns[0], types[0])
        if numbers is not None:
            return of_ints(numbers)
        if isinstance(types[0], Text | Bytea):
            return Keys(None, *_bytes(columns[0]))
    rows = len(columns[0])
    sizes = np.zeros(rows, np.int64)
    parts: list[tuple[Bytes, Ints | None]] = []
    for place, (column, type) in enumerate(zip(columns, types, strict=True)):
        numbers = _numbers(column, type)
        if numbers is not None:
            parts.append((_big_endian(numbers), None))
            sizes += WORD
        elif isinstance(type, Decimal):
            parts.append((_wide(column), None))
            sizes += 2 * WORD
        else:
            data, offsets = _bytes(column)
            parts.append((data, offsets))
            text_sizes(data, offsets, place < len(columns) - 1, sizes)
    ends = np.zeros(rows + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    out, at = np.empty(int(ends[-1]), np.uint8), ends[:-1].copy()
    for place, (values, starts) in enumerate(parts):
        if starts is None:
            put_words(values, len(values) // max(rows, 1), out, at)
        else:
            put_texts(values, starts, place < len(parts) - 1, out, at)
    return Keys(None, out, ends)


def order_numbers(column: pa.Array, type: Type) -> Ints:
    """Values of a SEQUENCE BY column as whole numbers of the same order; NULL is the least."""
    found = _numbers(column.fill_null(_least(type)) if column.null_count else column, type)
    assert found is not None, "SEQUENCE BY takes numbers and times"
    if column.null_count:
        found = np.where(column.is_null().to_numpy(zero_copy_only=False), np.iinfo(np.int64).min, found)
    return found


def can_order(type: Type) -> bool:
    """Whether a column of this type can be SEQUENCE BY's."""
    return isinstance(type, Integer | Float | Date | Time | Timestamp) or (isinstance(type, Decimal) and type.is_short)


def can_be_key(type: Type) -> bool:
    """Whether a column of this type can be in a key."""
    return can_order(type) or type == BOOLEAN or isinstance(type, Decimal | Text | Bytea)


def _least(type: Type) -> pa.Scalar:
    return pa.scalar(0, pa.int64()).cast(type.physical) if not isinstance(type, Float) else pa.scalar(0.0, type.physical)


def _numbers(column: pa.Array, type: Type) -> Ints | None:
    """The column as int64 in its order, or None of types that are wider."""
    if type == BOOLEAN:
        flags: Ints = column.cast(pa.int8()).to_numpy(zero_copy_only=False).astype(np.int64)
        return flags
    if isinstance(type, Float):
        # Minus zero is zero and all NaN are one, above every number; then the bits order as the numbers do.
        values = column.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        bits = np.where(np.isnan(values), np.float64(np.nan), values).view(np.int64)
        found: Ints = bits ^ ((bits >> 63) & np.int64((1 << 63) - 1))
        return found
    if not can_order(type):
        return None
    width = column.type.bit_width
    values = np.frombuffer(column.buffers()[1], f"i{width // 8}")[column.offset : column.offset + len(column)]
    numbers: Ints = values.astype(np.int64, copy=False)
    return numbers


def _bytes(column: pa.Array) -> tuple[Bytes, Ints]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, offsets, data = column.buffers()
    found = np.frombuffer(offsets, np.int64 if wide else np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, np.uint8) if data is not None else _NO_BYTES, found.astype(np.int64)


def _big_endian(values: Ints) -> Bytes:
    return (values.view(np.uint64) ^ _SIGN).astype(">u8").view(np.uint8)


def _wide(column: pa.Array) -> Bytes:
    """128-bit numbers: the high word with its sign turned over, then the low one."""
    words = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset : 2 * (column.offset + len(column))]
    out = np.empty(len(words), np.uint64)
    out[0::2] = words[1::2] ^ _SIGN
    out[1::2] = words[0::2]
    return out.astype(">u8").view(np.uint8)


_NO_BYTES: Final[Bytes] = np.empty(0, np.uint8)
_NO_OFFSETS: Final[Ints] = np.zeros(1, np.int64)


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def lower_ints(keys: Any, probes: Any, out: Any) -> None:
    """How many ``keys`` are less than each probe, both ascending: steps that double, then halve.

    keys    int64[n]  in
    probes  int64[m]  in
    out     int64[m]  out
    """
    size = keys.size
    low = 0
    for row in range(probes.size):
        probe = probes[row]
        step, high = 1, low
        while high < size and keys[high] < probe:
            low = high + 1
            high += step
            step *= 2
        high = min(high, size)
        while low < high:
            middle = (low + high) >> 1
            if keys[middle] < probe:
                low = middle + 1
            else:
                high = middle
        out[row] = low


@kernel
def is_less(left: Any, start: Any, end: Any, right: Any, begin: Any, stop: Any) -> Any:
    """Whether bytes ``left[start:end]`` come before ``right[begin:stop]``."""
    shared = min(end - start, stop - begin)
    for place in range(shared):
        first, second = left[start + place], right[begin + place]
        if first != second:
            return first < second
    return end - start < stop - begin


@kernel
def lower_bytes(data: Any, offsets: Any, probe_data: Any, probe_offsets: Any, out: Any) -> None:
    """As ``lower_ints``, of keys that are bytes.

    data, probe_data        uint8     in
    offsets, probe_offsets  int64     in   one more than keys
    out                     int64[m]  out
    """
    size = offsets.size - 1
    low = 0
    for row in range(probe_offsets.size - 1):
        begin, stop = probe_offsets[row], probe_offsets[row + 1]
        step, high = 1, low
        while high < size and is_less(data, offsets[high], offsets[high + 1], probe_data, begin, stop):
            low = high + 1
            high += step
            step *= 2
        high = min(high, size)
        while low < high:
            middle = (low + high) >> 1
            if is_less(data, offsets[middle], offsets[middle + 1], probe_data, begin, stop):
                low = middle + 1
            else:
                high = middle
        out[row] = low


@kernel
def same_bytes(data: Any, offsets: Any, rows: Any, other: Any, other_offsets: Any, other_rows: Any, out: Any) -> None:
    """Whether key ``rows[i]`` of one side is key ``other_rows[i]`` of the other; ``out`` is bool."""
    for row in range(rows.size):
        start, end = offsets[rows[row]], offsets[rows[row] + 1]
        begin, stop = other_offsets[other_rows[row]], other_offsets[other_rows[row] + 1]
        same = end - start == stop - begin
        place = 0
        while same and place < end - start:
            same = data[start + place] == other[begin + place]
            place += 1
        out[row] = same


@kernel
def same_as_before(data: Any, offsets: Any, out: Any) -> None:
    """Whether each key but the first is the one before it; ``out`` is bool of as many keys."""
    for row in range(1, offsets.size - 1):
        start, end, before = offsets[row], offsets[row + 1], offsets[row - 1]
        same = end - start == start - before
        place = 0
        while same and place < end - start:
            same = data[start + place] == data[before + place]
            place += 1
        out[row] = same


@kernel
def gather_bytes(data: Any, offsets: Any, rows: Any, out: Any, out_offsets: Any) -> None:
    """Copies the bytes of ``rows``, one after another."""
    for row in range(rows.size):
        start, at = offsets[rows[row]], out_offsets[row]
        copy_bytes(data, start, out, at, out_offsets[row + 1] - at)


@kernel
def text_sizes(data: Any, offsets: Any, is_followed: Any, sizes: Any) -> None:
    """Adds to ``sizes`` what each text takes in a key of several columns."""
    for row in range(sizes.size):
        start, end = offsets[row], offsets[row + 1]
        size = end - start
        if is_followed:
            size += 2
            for place in range(start, end):
                size += data[place] == 0
        sizes[row] += size


@kernel
def put_texts(data: Any, offsets: Any, is_followed: Any, out: Any, at: Any) -> None:
    """Writes each text at ``at``, which moves behind it."""
    for row in range(at.size):
        place = at[row]
        for source in range(offsets[row], offsets[row + 1]):
            out[place] = data[source]
            place += 1
            if is_followed and data[source] == 0:
                out[place] = 255
                place += 1
        if is_followed:
            out[place] = 0
            out[place + 1] = 0
            place += 2
        at[row] = place


@kernel
def put_words(values: Any, width: Any, out: Any, at: Any) -> None:
    """Writes ``width`` bytes of each row at ``at``, which moves behind them."""
    for row in range(at.size):
        for place in range(width):
            out[at[row] + place] = values[row * width + place]
        at[row] += width


@rehearsal
def rehearse_keys() -> None:
    """Every kernel over a few keys of both forms."""
    few = of_ints(np.arange(3, dtype=np.int64))
    few.match(few)
    texts = encode([pa.array(["a", "b"]), pa.array([1, 2], pa.int64())], [Text(), Integer(64)])
    texts.match(texts.take(texts.order()))
    texts.repeats()
