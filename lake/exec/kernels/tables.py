"""Hash tables that number words and rows of words in order of first appearance; ``text_table`` does texts.

    table = WordTable()
    table.insert([7, 9, 7])   -> [0, 1, 0]
    table.insert([9, 4])      -> [1, 2]
    table.find([4, 5])        -> [2, -1]

``insert`` belongs to one thread at a time; ``find`` changes nothing and may run on many. A table of words whose range is
small is an array indexed by the word; any other is open addressing with linear probing, at most half full.
Kernels that insert stop where a table is full and answer the row they stopped at; the caller makes room and goes on.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.hashing import MIX2, ONE, TWO, mix
from lake.exec.kernels.views import ALL_VALID, Ints
from lake.primitives import prefetch

DENSE_SLOTS_MAX: Final = 1 << 24
"""Words within such a range are looked up in an array (64 MB at most, of which only touched pages take memory)."""

SLOTS_MIN: Final = 1 << 10
GROWTH_HALVES: Final = 1 << 18  # beyond so many words a table doubles, below it quadruples
SAMPLE_WORDS: Final = 1 << 10
COUNT, NULL_NUMBER, USED_BYTES = 0, 1, 2  # fields of a table's ``state``; NULL_NUMBER holds the number plus 1
THIRTY_TWO: Final = np.uint64(32)
AHEAD: Final = 16
"""Rows ahead for which memory is asked for: at 4 ns a row of work, about as long as memory takes."""


# --- words -----------------------------------------------------------------------------------------------------------


@kernel
def bounds(words: Any, valid: Any) -> Any:
    """The least and the greatest of int64 ``words`` that are not NULL; (0, -1) where there are none."""
    has_nulls = valid.size > 0
    low, high = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(-0x8000000000000000)
    if not has_nulls:
        for row in range(words.size):
            low = min(low, words[row])
            high = max(high, words[row])
    else:
        for row in range(words.size):
            if valid[row] != 0:
                low = min(low, words[row])
                high = max(high, words[row])
    if low > high:
        return np.int64(0), np.int64(-1)
    return low, high


@kernel
def insert_dense(words: Any, valid: Any, low: Any, dense: Any, known: Any, state: Any, numbers: Any) -> None:
    """Numbers words that lie within a dense table.

    words  int64[rows]   in      valid  uint8[rows] or empty  in      low      int64, the word of slot 0
    dense  int32[slots]  in/out  number plus 1, 0 where none          known    int64[any]   in/out  words by number
    state  int64[3]      in/out                                       numbers  int64[rows]  out
    """
    has_nulls = valid.size > 0
    count = state[COUNT]
    for row in range(words.size):
        if has_nulls and valid[row] == 0:
            if state[NULL_NUMBER] == 0:
                known[count] = 0
                count += 1
                state[NULL_NUMBER] = count
            numbers[row] = state[NULL_NUMBER] - 1
            continue
        slot = np.uint64(words[row] - low)
        number = dense[slot]
        if number == 0:
            known[count] = words[row]
            count += 1
            number = np.int32(count)
            dense[slot] = number
        numbers[row] = number - 1
    state[COUNT] = count


@kernel
def find_dense(words: Any, valid: Any, low: Any, dense: Any, null_number: Any, numbers: Any) -> None:
    """``insert_dense`` without inserting: -1 for what is absent; words outside the table are."""
    has_nulls = valid.size > 0
    slots = np.uint64(dense.size)
    for row in range(words.size):
        slot = np.uint64(words[row] - low)
        number = np.int64(-1)
        if slot < slots:
            number = np.int64(dense[slot]) - 1
        if has_nulls and valid[row] == 0:
            number = null_number
        numbers[row] = number


@kernel
def find_run(words: Any, valid: Any, first: Any, count: Any, numbers: Any) -> None:
    """``find_dense`` in a table whose words are ``first``, ``first + 1`` and so on, ``count`` of them and no NULL."""
    has_nulls = valid.size > 0
    for row in range(words.size):
        number = words[row] - first
        if np.uint64(number) >= np.uint64(count) or (has_nulls and valid[row] == 0):
            number = np.int64(-1)
        numbers[row] = number


@kernel
def word_slot(word: Any, shift: Any) -> Any:
    """The slot where the search for a word begins; ``shift`` is 64 less the bits of the table's size."""
    bits = np.uint64(word)
    return ((bits ^ (bits >> THIRTY_TWO)) * MIX2) >> shift


@kernel
def insert_words(words: Any, valid: Any, start: Any, slots: Any, known: Any, state: Any, numbers: Any) -> Any:
    """Numbers words from row ``start`` on; answers the row it stopped at, ``words.size`` when done.

    words  int64[rows]      in      valid    uint8[rows] or empty  in
    slots  int64[2 * size]  in/out  word and number plus 1, side by side; size is a power of two
    known  int64[any]       in/out  words by number, room for one more per row
    state  int64[3]         in/out  numbers  int64[rows]  out
    """
    has_nulls = valid.size > 0
    size = slots.size >> 1
    mask = np.uint64(size - 1)
    shift = np.uint64(64)
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    limit, count = slots.size >> 2, state[COUNT]
    for row in range(start, words.size):
        if row + AHEAD < words.size:
            prefetch(slots, TWO * word_slot(words[row + AHEAD], shift))
        if has_nulls and valid[row] == 0:
            if state[NULL_NUMBER] == 0:
                known[count] = 0
                count += 1
                state[NULL_NUMBER] = count
            numbers[row] = state[NULL_NUMBER] - 1
            continue
        word = words[row]
        slot = word_slot(word, shift)
        while True:
            number = slots[TWO * slot + ONE]
            if number == 0:
                if count >= limit:
                    state[COUNT] = count
                    return row
                known[count] = word
                count += 1
                number = count
                slots[TWO * slot] = word
                slots[TWO * slot + ONE] = number
                break
            if slots[TWO * slot] == word:
                break
            slot = (slot + ONE) & mask
        numbers[row] = number - 1
    state[COUNT] = count
    return words.size


@kernel
def find_words(words: Any, valid: Any, slots: Any, null_number: Any, numbers: Any) -> None:
    """``insert_words`` without inserting: -1 for what is absent, ``null_number`` for NULL."""
    has_nulls = valid.size > 0
    size = slots.size >> 1
    mask = np.uint64(size - 1)
    shift = np.uint64(64)
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    for row in range(words.size):
        if row + AHEAD < words.size:
            prefetch(slots, TWO * word_slot(words[row + AHEAD], shift))
        if has_nulls and valid[row] == 0:
            numbers[row] = null_number
            continue
        word = words[row]
        slot = word_slot(word, shift)
        number = slots[TWO * slot + ONE]
        while number != 0 and slots[TWO * slot] != word:
            slot = (slot + ONE) & mask
            number = slots[TWO * slot + ONE]
        numbers[row] = number - 1


class WordTable:
    """Numbers int64 words; NULL is a word of its own."""

    def __init__(self) -> None:
        self._state = np.zeros(3, np.int64)
        self._known = np.empty(SLOTS_MIN, np.int64)
        self._low = 0
        self._dense: Ints | None = np.zeros(0, np.int32)
        self._slots = np.zeros(0, np.int64)
        self._is_run = False

    @classmethod
    def of(cls, words: Ints, null_number: int) -> WordTable:
        """The table in which word ``i``, all of them distinct, has the number ``i``; ``null_number`` -1 for none."""
        table = cls()
        valid = ALL_VALID
        if null_number >= 0:
            valid = np.ones(len(words), np.uint8)
            valid[null_number] = 0
        table.insert(words, valid)
        return table

    @property
    def count(self) -> int:
        """How many distinct words there are."""
        return int(self._state[COUNT])

    @property
    def null_number(self) -> int:
        """The number of NULL, -1 before one is inserted."""
        return int(self._state[NULL_NUMBER]) - 1

    @property
    def is_direct(self) -> bool:
        """Whether words are places in an array of their range."""
        return self._dense is not None

    @property
    def words(self) -> Ints:
        """int64[count]: the words by number; undefined at NULL's."""
        return self._known[: self.count]

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the table takes."""
        return self._known.nbytes + self._slots.nbytes + (0 if self._dense is None else self._dense.nbytes)

    def insert(self, words: Ints, valid: Ints) -> Ints:
        """int64[rows]: the number of each word; ``valid`` may be empty."""
        numbers = np.empty(len(words), np.int64)
        self._is_run = False
        self._known = grown(self._known, self.count + len(words) + 1, self.count)
        if self._covers(words, valid):
            insert_dense(words, valid, self._low, self._dense, self._known, self._state, numbers)
            return numbers
        row = 0
        while (row := insert_words(words, valid, row, self._slots, self._known, self._state, numbers)) < len(words):
            self._hash((8 if self.count < GROWTH_HALVES else 4) * self.count)
        return numbers

    def find(self, words: Ints, valid: Ints) -> Ints:
        """int64[rows]: the number of each word, -1 where it was not inserted; NULL is found where it was inserted."""
        numbers = np.empty(len(words), np.int64)
        if self._is_run:
            find_run(words, valid, self._known[0], self.count, numbers)
        elif self._dense is not None:
            find_dense(words, valid, self._low, self._dense, self.null_number, numbers)
        else:
            find_words(words, valid, self._slots, self.null_number, numbers)
        return numbers

    def settle(self) -> None:
        """Looks whether the words are a run, each one more than the last: until others are inserted, numbers are differences.

        A table of 300,000 keys that does not fit a core's nearest cache takes 6 ns a row, a difference 0.5.
        """
        words = self.words
        is_dense = self._dense is not None and self.null_number < 0 and len(words) > 0
        self._is_run = is_dense and bool((np.diff(words) == 1).all())

    def _covers(self, words: Ints, valid: Ints) -> bool:
        """Whether the dense table covers the words, after widening it where that can be."""
        if self._dense is None:
            return False
        least, most = bounds(words, valid)
        low, high = self._low, self._low + self._dense.size - 1
        if least > most or (low <= least and most <= high):
            return True
        if self._dense.size == 0:
            low, high = least, most
        wide = max(high, most) - min(low, least)
        if wide >= DENSE_SLOTS_MAX:
            self._hash(2 * (self.count + likely_words(words)))
            return False
        wanted_low = low if low <= least else max(least - wide // 2, -(1 << 63))
        wanted_high = high if high >= most else min(most + wide // 2, (1 << 63) - 1)
        if wanted_high - wanted_low >= DENSE_SLOTS_MAX:
            wanted_low, wanted_high = min(low, least), max(high, most)
        dense = np.zeros(wanted_high - wanted_low + 1, np.int32)
        start = self._low - wanted_low
        dense[start : start + self._dense.size] = self._dense
        self._low, self._dense = wanted_low, dense
        return True

    def _hash(self, room: int) -> None:
        """Moves the known words to an open-addressing table of at least ``room`` slots."""
        size = SLOTS_MIN
        while size < room:
            size *= 2
        known, null = self.words.copy(), self.null_number
        valid = ALL_VALID
        if null >= 0:
            valid = np.ones(len(known), np.uint8)
            valid[null] = 0
        self._dense, self._slots = None, np.zeros(2 * size, np.int64)
        self._state[:] = 0
        stopped = insert_words(known, valid, 0, self._slots, self._known, self._state, np.empty(len(known), np.int64))
        assert stopped == len(known)


def likely_words(words: Ints) -> int:
    """About how many of the words differ: all where a sample has no word twice, else half of them.

    A table that grows to 6 million words takes twice as long as one that has room for them from the start.
    """
    sample = words[:: max(len(words) // SAMPLE_WORDS, 1)]
    return len(words) if len(np.unique(sample)) == len(sample) else len(words) // 2


# --- rows of words ---------------------------------------------------------------------------------------------------


@kernel
def hash_row(rows: Any, row: Any) -> Any:
    """The uint64 hash of row ``row``, uint64, of int64[rows, width]."""
    hashed = np.uint64(0)
    for column in range(np.uint64(rows.shape[1])):
        hashed = (hashed ^ np.uint64(rows[row, np.uint64(column)])) * MIX2
        hashed ^= hashed >> THIRTY_TWO
    return mix(hashed)


@kernel
def hash_rows(rows: Any, start: Any, hashes: Any) -> None:
    """``hash_row`` of rows from ``start`` on, as int64."""
    for row in range(start, rows.shape[0]):
        hashes[row] = np.int64(hash_row(rows, np.uint64(row)))


@kernel
def prefetch_row(hashes: Any, row: Any, slots: Any, known: Any) -> None:
    """Asks for what a row ``2 * AHEAD`` further needs first, its slot, and for what the one ``AHEAD`` further needs then."""
    mask = np.uint64((slots.size >> 1) - 1)
    if row + 2 * AHEAD < hashes.size:
        prefetch(slots, TWO * (np.uint64(hashes[row + 2 * AHEAD]) & mask))
    if row + AHEAD < hashes.size:
        number = np.int64(slots[TWO * (np.uint64(hashes[row + AHEAD]) & mask) + ONE])
        if number > 0:
            prefetch(known, number - 1)


@kernel
def insert_rows(rows: Any, start: Any, slots: Any, known: Any, state: Any, numbers: Any) -> Any:
    """Numbers rows from row ``start`` on; answers the row it stopped at. ``numbers`` holds hashes before it holds numbers.

    rows   int64[rows, width]  in      slots    uint64[2 * size]  in/out  hash and number plus 1, side by side
    known  int64[any, width]   in/out  rows by number, room for one more per row
    state  int64[3]            in/out  numbers  int64[rows]       out
    """
    mask = np.uint64((slots.size >> 1) - 1)
    limit, count = slots.size >> 2, state[COUNT]
    width = rows.shape[1]
    hash_rows(rows, start, numbers)
    for row in range(start, rows.shape[0]):
        prefetch_row(numbers, row, slots, known)
        hashed = np.uint64(numbers[row])
        slot = hashed & mask
        while True:
            number = np.int64(slots[TWO * slot + ONE])
            if number == 0:
                if count >= limit:
                    state[COUNT] = count
                    return row
                for column in range(width):
                    known[count, column] = rows[row, column]
                count += 1
                number = count
                slots[TWO * slot] = hashed
                slots[TWO * slot + ONE] = np.uint64(number)
                break
            if slots[TWO * slot] == hashed:
                is_same = True
                for column in range(width):
                    is_same &= known[number - 1, column] == rows[row, column]
                if is_same:
                    break
            slot = (slot + ONE) & mask
        numbers[row] = number - 1
    state[COUNT] = count
    return rows.shape[0]


@kernel
def find_rows(rows: Any, slots: Any, known: Any, numbers: Any) -> None:
    """``insert_rows`` without inserting: -1 for what is absent."""
    mask = np.uint64((slots.size >> 1) - 1)
    width = rows.shape[1]
    hash_rows(rows, 0, numbers)
    for row in range(rows.shape[0]):
        prefetch_row(numbers, row, slots, known)
        hashed = np.uint64(numbers[row])
        slot = hashed & mask
        while True:
            number = np.int64(slots[TWO * slot + ONE])
            if number == 0:
                break
            if slots[TWO * slot] == hashed:
                is_same = True
                for column in range(width):
                    is_same &= known[number - 1, column] == rows[row, column]
                if is_same:
                    break
            slot = (slot + ONE) & mask
        numbers[row] = number - 1


@kernel
def move_slots(slots: Any, wider: Any) -> None:
    """Moves hash and number of every slot of uint64[2 * size] to a larger empty table."""
    mask = np.uint64((wider.size >> 1) - 1)
    for index in range(slots.size >> 1):
        if slots[2 * index + 1] != 0:
            slot = slots[2 * index] & mask
            while wider[TWO * slot + ONE] != 0:
                slot = (slot + ONE) & mask
            wider[TWO * slot] = slots[2 * index]
            wider[TWO * slot + ONE] = slots[2 * index + 1]


class RowTable:
    """Numbers rows of ``width`` int64 words."""

    def __init__(self, width: int) -> None:
        self._state = np.zeros(3, np.int64)
        self._known = np.empty((SLOTS_MIN, width), np.int64)
        self._slots = np.zeros(2 * SLOTS_MIN, np.uint64)

    @property
    def count(self) -> int:
        """How many distinct rows there are."""
        return int(self._state[COUNT])

    @property
    def rows(self) -> Ints:
        """int64[count, width]: the rows by number."""
        return self._known[: self.count]

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the table takes."""
        return self._known.nbytes + self._slots.nbytes

    def insert(self, rows: Ints) -> Ints:
        """int64[rows]: the number of each row of int64[rows, width]."""
        numbers = np.empty(len(rows), np.int64)
        self._known = grown(self._known, self.count + len(rows), self.count)
        row = 0
        while (row := insert_rows(rows, row, self._slots, self._known, self._state, numbers)) < len(rows):
            self._slots = wider_slots(self._slots)
        return numbers

    def find(self, rows: Ints) -> Ints:
        """int64[rows]: the number of each row, -1 where it was not inserted."""
        numbers = np.empty(len(rows), np.int64)
        find_rows(rows, self._slots, self._known, numbers)
        return numbers


def grown(array: Ints, room: int, used: int) -> Ints:
    """The array with at least ``room`` items along its first axis, doubled where it must grow; keeps the ``used`` first."""
    if len(array) >= room:
        return array
    larger = np.empty((max(room, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


def wider_slots(slots: Ints) -> Ints:
    """The slots moved to a table four times as large."""
    wider = np.zeros(4 * slots.size, np.uint64)
    move_slots(slots, wider)
    return wider


@rehearsal
def _rehearse() -> None:
    far = np.array([1, 1 << 40], np.int64)
    for words, valid in ((np.arange(2), ALL_VALID), (far, np.array([1, 0], np.uint8))):
        table = WordTable()
        table.insert(words, valid)
        table.find(words, valid)
    far_table = WordTable.of(far, -1)
    far_table.find(far, ALL_VALID)
    rows = RowTable(2)
    rows.insert(far.reshape(1, 2))
    rows.find(far.reshape(1, 2))
    wider_slots(np.zeros(2, np.uint64))
