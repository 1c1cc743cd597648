"""Numbers for keys of one or several columns of any types: the groups of GROUP BY, DISTINCT and joins.

    table = GroupTable()
    table.insert([["a", "b", "a"], [1, 1, 1]])   -> [0, 1, 0]
    table.insert([["b", NULL], [1, 1]])          -> [1, 2]
    table.keys()                                 -> [["a", "b", NULL], [1, 1, 1]]

Numbers follow first appearance. NULLs are equal to one another, as are NaNs, 0.0 and -0.0, and a month and 30 days.

How it is done: each column becomes one int64 word a row that is equal where the values are (texts and wide values are
numbered by a table of their own). Several columns whose ranges are small are packed into one word; words are numbered by a
``WordTable``, and what does not pack, as rows of words, by a ``RowTable``. When a batch does not fit the packing, the
known keys are packed again, wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.hashing import spelled, words_of
from lake.exec.kernels.tables import RowTable, WordTable, bounds
from lake.exec.kernels.text_table import TextTable
from lake.exec.kernels.views import (
    ALL_VALID,
    AnyArray,
    Ints,
    codes_of,
    concat,
    is_fixed,
    is_text,
    mask_of,
    single,
    text_array,
    text_of,
    to_array,
    values_of,
)

PACKED_BITS_MAX: Final = 62
NULL_SLOT: Final = 0  # in packed words NULL is 0 and a value is its distance from the least one, plus 1


# --- columns as words ------------------------------------------------------------------------------------------------


class NumberKey:
    """A column of one number a row: the word is the number."""

    nbytes = 0

    def __init__(self, type: pa.DataType) -> None:
        self._type = type

    def insert(self, array: pa.Array) -> Ints:
        """int64[rows]: a word for each row."""
        return words_of(array)

    find = insert

    def decode(self, words: Ints, valid: Ints) -> pa.Array:
        """The values that the words stand for."""
        if pa.types.is_null(self._type):
            return pa.nulls(len(words))
        if pa.types.is_floating(self._type):
            words = words.view(np.float64)
        return to_array(words, self._type, valid)


class TextKey:
    """A text column, plain or dictionary: the word is the text's number.

    An entry of a dictionary is numbered when the first row has it, once for all batches: a dictionary may be the column of
    a join's whole build side.
    """

    def __init__(self, type: pa.DataType) -> None:
        self._type = type.value_type if pa.types.is_dictionary(type) else type
        self._table = TextTable()
        self._inserted: tuple[pa.Array, Ints] | None = None  # the last dictionary, and its entries' numbers, -1 for none yet
        self._found: tuple[pa.Array, Ints, int] | None = None  # the same of ``find``, with the texts known then

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the key's table takes."""
        return self._table.nbytes

    def insert(self, array: pa.Array) -> Ints:
        """int64[rows]: a word for each row; 0 for NULL."""
        if not pa.types.is_dictionary(array.type):
            return self._table.insert(*text_of(array), mask_of(array))
        if self._inserted is None or not is_same_memory(self._inserted[0], array.dictionary):
            self._inserted = (array.dictionary, np.full(len(array.dictionary), -1, np.int64))
        numbers, codes = self._inserted[1], codes_of(array)
        if not len(numbers):
            return np.zeros(len(array), np.int64)
        words, fresh = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
        count = number_codes(codes, numbers, words, fresh)
        if count:
            new = fresh[:count].copy()
            entries = array.dictionary.take(pa.array(new))
            numbers[new] = self._table.insert(*text_of(entries), mask_of(entries))
            gather(numbers, codes, words)
        return words

    def find(self, array: pa.Array) -> Ints:
        """int64[rows]: a word for each row; -1 for texts that were not inserted, 0 for NULL."""
        if not pa.types.is_dictionary(array.type):
            return self._table.find(*text_of(array), mask_of(array))
        found = self._found
        if found is None or found[2] != self._table.count or not is_same_memory(found[0], array.dictionary):
            entries = self._table.find(*text_of(array.dictionary), mask_of(array.dictionary))
            self._found = found = (array.dictionary, entries, self._table.count)
        return _gather(found[1], codes_of(array))

    def decode(self, words: Ints, valid: Ints) -> pa.Array:
        """The texts that the words stand for."""
        offsets, characters = self._table.texts
        large = pa.large_binary() if pa.types.is_binary(self._type) else pa.large_string()
        entries = text_array(offsets, characters, large)
        numbers = to_array(words, pa.int64(), valid)
        return entries.take(numbers).cast(self._type)


class WideKey:
    """A column of sixteen bytes a row (decimal128): the word is the value's number."""

    def __init__(self, type: pa.DataType) -> None:
        self._type = type
        self._table = RowTable(2)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the key's table takes."""
        return self._table.nbytes

    def insert(self, array: pa.Array) -> Ints:
        """int64[rows]: a word for each row."""
        return self._table.insert(values_of(array))

    def find(self, array: pa.Array) -> Ints:
        """int64[rows]: a word for each row; -1 for values that were not inserted."""
        return self._table.find(values_of(array))

    def decode(self, words: Ints, valid: Ints) -> pa.Array:
        """The values that the words stand for."""
        rows = self._table.rows
        return to_array(rows[words] if len(rows) else np.zeros((len(words), 2), np.int64), self._type, valid)


class AlikeKey:
    """A column of values that may be equal and differ still (lists, structs, intervals): the word is the number of their
    spelling, and the first of equal values stands for all."""

    def __init__(self, type: pa.DataType) -> None:
        self._spellings = WideKey(pa.decimal128(38)) if pa.types.is_interval(type) else TextKey(pa.string())
        self._pieces: list[pa.Array] = [pa.nulls(0, type)]
        self._known = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the key's table takes."""
        return self._spellings.nbytes + sum(int(piece.nbytes) for piece in self._pieces)

    def insert(self, array: pa.Array) -> Ints:
        """int64[rows]: a word for each row; 0 for NULL."""
        valid = mask_of(array)
        live = np.flatnonzero(valid) if valid.size else np.arange(len(array))
        words = np.zeros(len(array), np.int64)
        words[live] = self._spellings.insert(spelled(array.take(pa.array(live)) if valid.size else array))
        distinct, first = np.unique(words[live], return_index=True)
        first = live[first[distinct >= self._known]]
        self._pieces.append(array.take(pa.array(first)))
        self._known += len(first)
        return words

    def find(self, array: pa.Array) -> Ints:
        """int64[rows]: a word for each row; -1 for values that were not inserted."""
        return self._spellings.find(spelled(array))

    def decode(self, words: Ints, valid: Ints) -> pa.Array:
        """The values that the words stand for."""
        return concat(self._pieces).take(to_array(words, pa.int64(), valid))


KeyColumn = NumberKey | TextKey | WideKey | AlikeKey


def key_column(type: pa.DataType) -> KeyColumn:
    """What turns a column of ``type`` into words."""
    if is_text(type) or (pa.types.is_dictionary(type) and is_text(type.value_type)):
        return TextKey(type)
    if pa.types.is_decimal128(type):
        return WideKey(type)
    if is_fixed(type) or pa.types.is_null(type):
        return NumberKey(type)
    return AlikeKey(type)


# --- packing ---------------------------------------------------------------------------------------------------------


@kernel
def pack_column(words: Any, valid: Any, low: Any, bits: Any, shift: Any, packed: Any) -> Any:
    """Adds a column to packed words: its distance from ``low`` plus 1, 0 for NULL, shifted left.

    words  int64[rows]  in    valid  uint8[rows] or empty  in    packed  int64[rows]  in/out, -1 where a value did not fit
    Answers how many values did not fit into ``bits``.
    """
    has_nulls = valid.size > 0
    room = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    unfit = 0
    for row in range(words.size):
        if has_nulls and valid[row] == 0:
            continue
        distance = np.uint64(words[row] - low)
        if distance >= room or packed[row] < 0:
            unfit += 1
            packed[row] = -1
        else:
            packed[row] |= np.int64((distance + np.uint64(1)) << np.uint64(shift))
    return unfit


@kernel
def unpack_column(packed: Any, low: Any, bits: Any, shift: Any, words: Any, valid: Any) -> None:
    """Takes a column out of packed words: packed int64[rows] in, words int64[rows] out, valid uint8[rows] out."""
    mask = (np.int64(1) << np.int64(bits)) - np.int64(1)
    for row in range(packed.size):
        slot = (packed[row] >> np.int64(shift)) & mask
        valid[row] = slot != 0
        words[row] = low + slot - 1 if slot != 0 else 0


@kernel
def gather(values: Any, indices: Any, out: Any) -> None:
    """out[row] = values[indices[row]]: values int64[any] in, indices int32/int64[rows] in, out int64[rows] out."""
    for row in range(indices.size):
        out[row] = values[indices[row]]


@kernel
def number_codes(codes: Any, numbers: Any, words: Any, fresh: Any) -> Any:
    """Gathers the number of each row's code, and lists the codes that have none yet; answers how many those are.

    codes  int32[rows]  in    numbers  int64[entries]  in/out  -1 where there is none, -2 where it has been listed
    words  int64[rows]  out   fresh    int64[rows]     out     as many as answered
    """
    count = 0
    for row in range(codes.size):
        code = codes[row]
        number = numbers[code]
        if number == -1:
            fresh[count] = code
            count += 1
            numbers[code] = -2
        words[row] = number
    return count


class Packing(Struct, frozen=True):
    """How several columns lie in one word: the least value, the bits and the shift of each."""

    lows: tuple[int, ...]
    bits: tuple[int, ...]

    @staticmethod
    def of(ranges: Sequence[tuple[int, int]]) -> Packing | None:
        """The packing of columns whose values lie in ``ranges``, None where they need too many bits."""
        bits = tuple((max(high - low, -1) + 1).bit_length() for low, high in ranges)
        bits = tuple(max(1, width) for width in bits)
        return Packing(tuple(low for low, _ in ranges), bits) if sum(bits) <= PACKED_BITS_MAX else None

    @property
    def highs(self) -> tuple[int, ...]:
        """The greatest value of each column that fits."""
        return tuple(low + (1 << width) - 2 for low, width in zip(self.lows, self.bits, strict=True))

    @property
    def shifts(self) -> tuple[int, ...]:
        """Where each column begins, the first one lowest."""
        return tuple(sum(self.bits[:index]) for index in range(len(self.bits)))

    def pack(self, columns: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, int]:
        """The packed words of rows, -1 where they do not fit, and how many values did not."""
        packed = np.zeros(len(columns[0][0]), np.int64)
        unfit = 0
        for (words, valid), low, bits, shift in zip(columns, self.lows, self.bits, self.shifts, strict=True):
            unfit += pack_column(words, valid, low, bits, shift, packed)
        return packed, unfit

    def unpack(self, packed: Ints) -> list[tuple[Ints, Ints]]:
        """The columns (words and validity) of packed words."""
        columns = []
        for low, bits, shift in zip(self.lows, self.bits, self.shifts, strict=True):
            words, valid = np.empty(len(packed), np.int64), np.empty(len(packed), np.uint8)
            unpack_column(packed, low, bits, shift, words, valid)
            columns.append((words, valid))
        return columns


# --- the table -------------------------------------------------------------------------------------------------------


class GroupTable:
    """Numbers the rows of key columns by their keys, across batches.

    ``insert`` and ``merge`` belong to one thread at a time; ``find`` changes nothing.
    """

    def __init__(self) -> None:
        self._columns: tuple[KeyColumn, ...] = ()
        self._packing: Packing | None = None
        self._words = WordTable()
        self._rows: RowTable | None = None

    @property
    def count(self) -> int:
        """How many groups there are."""
        return self._words.count if self._rows is None else self._rows.count

    @property
    def is_direct(self) -> bool:
        """Whether keys are places in an array of their range."""
        return self._rows is None and self._words.is_direct

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory the table takes."""
        rows = 0 if self._rows is None else self._rows.nbytes
        return self._words.nbytes + rows + sum(column.nbytes for column in self._columns)

    def insert(self, keys: Sequence[AnyArray]) -> Ints:
        """int64[rows]: the group number of each row; new keys take the next numbers."""
        arrays = [single(key) for key in keys]
        if not self._columns:
            self._columns = tuple(key_column(array.type) for array in arrays)
        columns = [(column.insert(array), mask_of(array)) for column, array in zip(self._columns, arrays, strict=True)]
        if len(columns) == 1:
            return self._words.insert(*columns[0])
        if self._rows is None:
            packed = self._pack(columns)
            if packed is not None:
                return self._words.insert(packed, ALL_VALID)
        assert self._rows is not None
        return self._rows.insert(_rows_of(columns))

    def find(self, keys: Sequence[AnyArray]) -> Ints:
        """int64[rows]: the group number of each row, -1 for keys that were not inserted."""
        arrays = [single(key) for key in keys]
        if not self._columns:
            return np.full(len(arrays[0]), -1, np.int64)
        columns = [(column.find(array), mask_of(array)) for column, array in zip(self._columns, arrays, strict=True)]
        if len(columns) == 1:
            return self._words.find(*columns[0])
        if self._rows is None:
            assert self._packing is not None
            packed, _ = self._packing.pack(columns)
            return self._words.find(packed, ALL_VALID)
        return self._rows.find(_rows_of(columns))

    def settle(self) -> None:
        """Makes ready for many a ``find``: no key is going to be inserted soon."""
        self._words.settle()

    def keys(self) -> list[pa.Array]:
        """The keys of all groups by number, one array for each key column; none before the first ``insert``."""
        if len(self._columns) == 1:
            valid = np.ones(self.count, np.uint8)
            if self._words.null_number >= 0:
                valid[self._words.null_number] = 0
                self._words.words[self._words.null_number] = 0
            return [self._columns[0].decode(self._words.words, valid)]
        return [column.decode(*known) for column, known in zip(self._columns, self._known_columns(), strict=True)]

    def merge(self, other: GroupTable) -> Ints:
        """int64[other.count]: the number here of each group of ``other``, whose keys are inserted."""
        return self.insert(other.keys()) if other.count else np.empty(0, np.int64)

    def _known_columns(self) -> list[tuple[Ints, Ints]]:
        """Words and validity of each column of the known keys."""
        if self._rows is None:
            if self._packing is None:
                return [(np.empty(0, np.int64), ALL_VALID) for _ in self._columns]
            return self._packing.unpack(self._words.words)
        rows = self._rows.rows
        nulls = rows[:, -1]
        return [
            (np.ascontiguousarray(rows[:, index]), (nulls >> index & 1 == 0).astype(np.uint8))
            for index in range(len(self._columns))
        ]

    def _pack(self, columns: list[tuple[Ints, Ints]]) -> Ints | None:
        """The packed words of rows, after packing wider where they do not fit; None after turning to rows of words."""
        if self._packing is not None:
            packed, unfit = self._packing.pack(columns)
            if not unfit:
                return packed
        known = self._known_columns()
        wider = Packing.of(self._ranges(columns))
        if wider is None:
            self._rows = RowTable(len(columns) + 1)
            self._rows.insert(_rows_of(known))
            self._words = WordTable()
            return None
        self._packing = wider
        self._words = WordTable.of(wider.pack(known)[0], -1)
        packed, unfit = wider.pack(columns)
        assert not unfit
        return packed

    def _ranges(self, columns: list[tuple[Ints, Ints]]) -> list[tuple[int, int]]:
        """The least and greatest words of each column, in these rows and in the packing so far."""
        ranges: list[tuple[int, int]] = [bounds(words, valid) for words, valid in columns]
        if self._packing is None:
            return ranges
        before = zip(self._packing.lows, self._packing.highs, strict=True)
        return [
            (least, most) if high < low else (low, high) if least > most else (min(low, least), max(high, most))
            for (least, most), (low, high) in zip(ranges, before, strict=True)
        ]


def _rows_of(columns: Sequence[tuple[Ints, Ints]]) -> Ints:
    """int64[rows, columns + 1]: the words of each row, 0 for NULL, and last a bit for each NULL."""
    rows = np.zeros((len(columns[0][0]), len(columns) + 1), np.int64)
    for index, (words, valid) in enumerate(columns):
        if valid.size == 0:
            rows[:, index] = words
        else:
            rows[:, index] = np.where(valid == 1, words, 0)
            rows[:, -1] |= (valid == 0).astype(np.int64) << index
    return rows


def _gather(values: Ints, indices: Ints) -> Ints:
    out = np.zeros(len(indices), np.int64)
    if len(values):
        gather(values, indices, out)
    return out


def is_same_memory(left: pa.Array, right: pa.Array) -> bool:
    """Whether two arrays are the same stretch of memory."""
    if len(left) != len(right) or left.offset != right.offset:
        return False
    addresses = [[None if part is None else part.address for part in array.buffers()] for array in (left, right)]
    return addresses[0] == addresses[1]


@rehearsal
def _rehearse() -> None:
    table, text = GroupTable(), pa.array(["a", None])
    for key in (text, text.dictionary_encode(), text):
        keys = [key, pa.array([1, 1 << 40])]
        table.insert(keys)
        table.find(keys)
    table.keys()
