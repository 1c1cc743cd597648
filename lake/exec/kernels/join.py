"""Equi-joins: a table over the build side's keys, probed by many workers, and filters from its keys.

    build keys [7, 8, 7], probe keys [7, NULL, 8, 9]
    probe -> probe rows [0, 0, 2], build rows [0, 2, 1]

The build side's keys are numbered by a ``GroupTable``; where every key stands once, a key's number is its row, and
otherwise ``starts`` and ``rows`` list the rows of each number. Build rows are answered in their order for each probe row.
NULL keys match nothing, save in columns that compare by IS NOT DISTINCT FROM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.groups import GroupTable
from lake.exec.kernels.hashing import hash_columns, words_of
from lake.exec.kernels.ranges import rows_known
from lake.exec.kernels.tables import AHEAD, bounds
from lake.exec.kernels.taking import taken
from lake.exec.kernels.views import ALL_VALID, AnyArray, Ints, is_fixed, mask_of, single, valid_of, values_of
from lake.narrow import widened
from lake.primitives import prefetch

BITMAP_BITS_MAX: Final = 1 << 27
"""Key ranges up to this (16 MB of bits) are filtered exactly, where they are not emptier than one key in 256 numbers."""
BITMAP_BITS_FEW: Final = 1 << 21
"""Of a key range up to this (256 KB, in a core's cache) a bitmap is faster than a Bloom filter of however few keys."""
BITMAP_SPREAD_MAX: Final = 256
BLOOM_BITS_PER_KEY: Final = 12  # two bits set in one word: about 3 % of strangers pass
BLOOM_KEYS_MAX: Final = 1 << 24


@kernel
def count_numbers(numbers: Any, counts: Any) -> None:
    """Counts each number: numbers int64[rows] in, -1 skipped; counts int64[any] in/out."""
    for row in range(numbers.size):
        if numbers[row] >= 0:
            counts[numbers[row]] += 1


@kernel
def list_rows(numbers: Any, places: Any, rows: Any) -> None:
    """Lists the rows of each number, in their order.

    numbers  int64[rows]  in  -1 skipped    places  int64[count]  in/out  where each list goes on    rows  int64[any]  out
    """
    for row in range(numbers.size):
        number = numbers[row]
        if number >= 0:
            rows[places[number]] = row
            places[number] += 1


@kernel
def pair_unique(numbers: Any, probe_rows: Any, build_rows: Any) -> Any:
    """Pairs probe rows with the one build row of their number; answers how many pairs there are.

    numbers     int64[rows]  in   the build row, -1 where none
    probe_rows  int64[rows]  out                                  build_rows  int64[rows]  out
    """
    pairs = 0
    for row in range(numbers.size):
        probe_rows[pairs] = row
        build_rows[pairs] = numbers[row]
        pairs += np.int64(numbers[row] >= 0)
    return pairs


@kernel
def count_pairs(numbers: Any, starts: Any, keeps_all: Any) -> Any:
    """How many pairs ``fill_pairs`` will write."""
    pairs = 0
    for row in range(numbers.size):
        number = numbers[row]
        if number >= 0:
            pairs += starts[number + 1] - starts[number]
        elif keeps_all:
            pairs += 1
    return pairs


@kernel
def fill_pairs(numbers: Any, starts: Any, rows: Any, keeps_all: Any, probe_rows: Any, build_rows: Any) -> None:
    """Pairs probe rows with every build row of their number.

    numbers  int64[rows]       in  -1 where none    starts     int64[count + 1]  in  where each number's rows begin
    rows     int64[build rows] in                   keeps_all  bool              in  -1 is paired once, with -1
    probe_rows, build_rows  int64[pairs]  out
    """
    pair = 0
    for row in range(numbers.size):
        if row + 2 * AHEAD < numbers.size:
            prefetch(starts, numbers[row + 2 * AHEAD])
        if row + AHEAD < numbers.size and numbers[row + AHEAD] >= 0:
            prefetch(rows, starts[numbers[row + AHEAD]])
        number = numbers[row]
        if number >= 0:
            for index in range(starts[number], starts[number + 1]):
                probe_rows[pair] = row
                build_rows[pair] = rows[index]
                pair += 1
        elif keeps_all:
            probe_rows[pair] = row
            build_rows[pair] = -1
            pair += 1


@kernel
def mark_rows(rows: Any, marks: Any) -> None:
    """marks[row] = 1 for each of int64 ``rows``, -1 skipped; marks uint8[any] in/out. Workers may share ``marks``."""
    for index in range(rows.size):
        if rows[index] >= 0:
            marks[rows[index]] = 1


def every_row(count: int) -> Ints:
    """int64[count]: the row numbers from 0 on, the beginning of an array that all share and nobody changes."""
    global _every
    if len(_every) < count:
        _every = np.arange(max(count, 1 << 16))
    return _every[:count]


def is_every(rows: Ints, count: int) -> bool:
    """Whether ``rows``, ascending, are all the row numbers below ``count``."""
    return len(rows) == count and (rows.base is _every or bool((rows == every_row(count)).all()))


_every = np.arange(0)


class JoinTable:
    """The build side of an equi-join.

    null_safe   for each key column whether NULL equals NULL (IS NOT DISTINCT FROM); none by default
    rows        how many build rows there are
    has_nulls   whether some build row has a NULL in a column that is not null-safe (NOT IN needs to know)
    is_unique   whether no key stands twice
    """

    def __init__(self, keys: Sequence[AnyArray], null_safe: Sequence[bool] | None = None) -> None:
        arrays = [single(key) for key in keys]
        self._null_safe = tuple(null_safe) if null_safe is not None else (False,) * len(arrays)
        self.rows = len(arrays[0])
        dead = _dead_rows(arrays, self._null_safe)
        self.has_nulls = dead is not None
        self._groups = GroupTable()
        if dead is None:
            numbers = self._groups.insert(arrays)
            live = self.rows
        else:
            kept = np.flatnonzero(~dead)
            live = len(kept)
            numbers = np.full(self.rows, -1, np.int64)
            numbers[kept] = self._groups.insert([array.take(pa.array(kept)) for array in arrays])
        self._groups.settle()
        self.is_unique = self._groups.count == live
        self._starts, self._list = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if dead is not None or not self.is_unique:
            self._starts, self._list = _rows_by_number(numbers, self._groups.count, live)

    @classmethod
    def build(cls, keys: Sequence[AnyArray], null_safe: Sequence[bool] | None = None) -> JoinTable:
        """The table of the build side's key columns."""
        return cls(keys, null_safe)

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory the table takes."""
        return self._groups.nbytes + self._starts.nbytes + self._list.nbytes

    def probe(self, keys: Sequence[AnyArray], *, outer: bool = False) -> tuple[Ints, Ints]:
        """Matching rows: probe rows int64[pairs], ascending, and build rows int64[pairs].

        outer  a probe row without match is paired with build row -1
        """
        numbers = self.find(keys)
        if self.is_unique:
            if len(self._list):
                numbers = np.where(numbers >= 0, self._list[numbers], -1)
            if outer or bounds(numbers, ALL_VALID)[0] >= 0:
                return every_row(len(numbers)), numbers
            probe_rows, build_rows = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int64)
            pairs = pair_unique(numbers, probe_rows, build_rows)
            return probe_rows[:pairs], build_rows[:pairs]
        pairs = count_pairs(numbers, self._starts, outer)
        probe_rows, build_rows = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
        fill_pairs(numbers, self._starts, self._list, outer, probe_rows, build_rows)
        return probe_rows, build_rows

    def contains(self, keys: Sequence[AnyArray]) -> Ints:
        """bool[rows]: which probe rows have a match: those of a semi join, and not those of an anti join."""
        return self.find(keys) >= 0

    def find(self, keys: Sequence[AnyArray]) -> Ints:
        """int64[rows]: the number of each probe row's key among the build side's distinct keys, -1 where absent."""
        arrays = [single(key) for key in keys]
        numbers = self._groups.find(arrays)
        if self._groups.count and (dead := _dead_rows(arrays, self._null_safe)) is not None:
            numbers[dead] = -1
        return numbers

    def new_marks(self) -> Ints:
        """uint8[build rows] of zeros: for ``mark_rows``, shared by the workers of a right or full join."""
        return np.zeros(self.rows, np.uint8)


def unmatched(marks: Ints) -> Ints:
    """int64: the build rows that were never marked."""
    return np.flatnonzero(marks == 0)


def matched(probe_rows: Ints, rows: int) -> Ints:
    """bool[rows]: which probe rows stand in pairs (that some further condition kept)."""
    marks = np.zeros(rows, np.uint8)
    mark_rows(probe_rows, marks)
    return marks.view(np.bool_)


def null_keys(keys: Sequence[AnyArray], null_safe: Sequence[bool] = ()) -> Ints:
    """bool[rows]: which rows have a NULL among their keys that matches nothing: where a mark join answers NULL and not false.

    null_safe  for each key whether NULL equals NULL; of the keys past its end it does not
    """
    arrays = [single(key) for key in keys]
    dead = _dead_rows(arrays, (*null_safe, *(False,) * (len(arrays) - len(null_safe))))
    return np.zeros(len(arrays[0]), np.bool_) if dead is None else dead


def _dead_rows(arrays: Sequence[pa.Array], null_safe: Sequence[bool]) -> Ints | None:
    """bool[rows]: which rows have a NULL that matches nothing; None where no row has."""
    dead: Ints | None = None
    for array, is_safe in zip(arrays, null_safe, strict=True):
        valid = None if is_safe else valid_of(array)
        if valid is not None:
            dead = valid == 0 if dead is None else dead | (valid == 0)
    return dead


def _rows_by_number(numbers: Ints, count: int, live: int) -> tuple[Ints, Ints]:
    """Where the rows of each number begin (int64[count + 1]) in the list of rows by number (int64[live])."""
    starts = np.zeros(count + 1, np.int64)
    count_numbers(numbers, starts[1:])
    np.cumsum(starts, out=starts)
    rows = np.empty(live, np.int64)
    list_rows(numbers, starts[:-1].copy(), rows)
    return starts, rows


# --- runtime filters -------------------------------------------------------------------------------------------------


@kernel
def set_bits(words: Any, valid: Any, low: Any, bitmap: Any) -> None:
    """Sets bit ``word - low`` for each word: words int64[rows] in, valid in, bitmap uint64[any] in/out."""
    has_nulls = valid.size > 0
    for row in range(words.size):
        if not has_nulls or valid[row] != 0:
            bit = np.uint64(words[row] - low)
            bitmap[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))


@kernel
def test_bits(words: Any, valid: Any, low: Any, high: Any, bitmap: Any, mask: Any) -> None:
    """Tests bit ``word - low`` of each word between low and high: mask uint8[rows] out."""
    has_nulls = valid.size > 0
    for row in range(words.size):
        hit = False
        if words[row] >= low and words[row] <= high and (not has_nulls or valid[row] != 0):
            bit = np.uint64(words[row] - low)
            hit = (bitmap[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1) != 0
        mask[row] = hit


@kernel
def bloom_add(hashes: Any, blocks: Any) -> None:
    """Sets two bits of one word for each hash: hashes uint64[keys] in, blocks uint64[power of two] in/out."""
    last = np.uint64(blocks.size - 1)
    for row in range(hashes.size):
        hashed = hashes[row]
        bits = (np.uint64(1) << (hashed & np.uint64(63))) | (np.uint64(1) << ((hashed >> np.uint64(6)) & np.uint64(63)))
        blocks[(hashed >> np.uint64(16)) & last] |= bits


@kernel
def bloom_test(hashes: Any, blocks: Any, mask: Any) -> None:
    """Whether both bits of each hash are set: hashes uint64[rows] in, blocks uint64[any] in, mask uint8[rows] out."""
    last = np.uint64(blocks.size - 1)
    for row in range(hashes.size):
        hashed = hashes[row]
        bits = (np.uint64(1) << (hashed & np.uint64(63))) | (np.uint64(1) << ((hashed >> np.uint64(6)) & np.uint64(63)))
        mask[row] = blocks[(hashed >> np.uint64(16)) & last] & bits == bits


class KeyFilter:
    """Which values may be among a join's build keys: never false for one that is; NULL is not.

    low, high   the least and the greatest key of an integer, date or timestamp column, in physical form; None for others
                and where there are no keys
    is_exact    a value passes only if it is among the keys
    """

    def __init__(self, low: int | None, high: int | None, bitmap: Ints | None, bloom: Ints | None) -> None:
        self.low, self.high = low, high
        self._bitmap, self._bloom = bitmap, bloom
        self.is_exact = bloom is None

    @classmethod
    def from_keys(cls, key: AnyArray) -> KeyFilter:
        """The filter of one column of build keys: a bitmap where their range is small, else a Bloom filter."""
        array = single(key)
        valid = mask_of(array)
        low: int | None = None
        high: int | None = None
        if _has_range(array.type):
            words = words_of(array)
            least, most = bounds(words, valid)
            if least > most:
                return cls(None, None, np.zeros(1, np.uint64), None)
            low, high = least, most
            if most - least < min(BITMAP_BITS_MAX, BITMAP_SPREAD_MAX * len(array) + BITMAP_BITS_FEW):
                bitmap = np.zeros((most - least >> 6) + 1, np.uint64)
                set_bits(words, valid, least, bitmap)
                return cls(low, high, bitmap, None)
        hashes = hash_columns([array])
        if valid.size:
            hashes = hashes[valid == 1]
        size = 64
        while size * 64 < min(len(hashes), BLOOM_KEYS_MAX) * BLOOM_BITS_PER_KEY:
            size *= 2
        blocks = np.zeros(size, np.uint64)
        bloom_add(hashes, blocks)
        return cls(low, high, None, blocks)

    def rows(self, key: pa.Array, type: pa.DataType, rows: Ints | None) -> Ints:
        """int64: those of the row numbers ``rows`` (None for all) that may have a match.

        type  the physical type of the key, which may be stored in fewer bytes
        """
        if self._bitmap is not None and is_fixed(key.type):
            if self.low is None or self.high is None:
                return np.empty(0, np.int64)
            return rows_known(values_of(key), mask_of(key), self.low, self.high, self._bitmap, rows)
        mask = self.mask(widened(key, type) if rows is None else taken(key, rows, type))
        return np.flatnonzero(mask) if rows is None else rows[mask]

    def mask(self, key: AnyArray) -> Ints:
        """bool[rows]: which rows may have a match."""
        array = single(key)
        valid = mask_of(array)
        mask = np.zeros(len(array), np.uint8)
        if self._bitmap is not None:
            if self.low is not None:
                test_bits(words_of(array), valid, self.low, self.high, self._bitmap, mask)
            return mask.view(np.bool_)
        assert self._bloom is not None
        bloom_test(hash_columns([array]), self._bloom, mask)
        if valid.size:
            mask &= valid
        return mask.view(np.bool_)


def _has_range(type: pa.DataType) -> bool:
    return is_fixed(type) and not pa.types.is_floating(type)


@rehearsal
def _rehearse() -> None:
    for numbers in (pa.array([1, 2]), pa.array([1, 1, None]), pa.array([1, 1 << 60])):
        table = JoinTable.build([numbers])
        rows, _ = table.probe([pa.array([1, 9])], outer=False)
        table.probe([numbers], outer=True)
        mark_rows(rows, table.new_marks())
        KeyFilter.from_keys(numbers).mask(numbers)
    assert ALL_VALID.size == 0
