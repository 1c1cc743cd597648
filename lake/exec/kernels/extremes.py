"""States of aggregates that keep one of a group's values: min and max, bits, first and last, min_by and max_by.

    extreme(pa.string(), greatest=True)     max of texts
    PickedRows.first(pa.int64(), ignore_nulls=True)

They are ``sql.registry.Accumulator``s, as those of ``aggregates``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.aggregates import resized
from lake.exec.kernels.hashing import load_word
from lake.exec.kernels.order import HIGHEST, Direction, doubles_of, fields_of, ordered_words, swap_bytes
from lake.exec.kernels.sorting import sort_fields
from lake.exec.kernels.views import (
    ALL_VALID,
    Ints,
    concat,
    is_fixed,
    is_text,
    is_wide,
    mask_of,
    plain,
    text_of,
    to_array,
    values_of,
)

PENDING_ROWS: Final = 1 << 18
"""Candidate rows of text extremes and the like are weeded out when they are this many and twice the groups."""


# --- extremes of numbers ---------------------------------------------------------------------------------------------


@kernel
def keep_least(groups: Any, words: Any, flip: Any, valid: Any, least: Any, seen: Any) -> None:
    """Keeps the least of each group's int64 words XOR ``flip``.

    least  int64[groups]  in/out  HIGHEST where none was seen    seen  uint8[groups]  in/out  1 where HIGHEST was
    """
    has_nulls = valid.size > 0
    for row in range(groups.size):
        if has_nulls and valid[row] == 0:
            continue
        word, group = words[row] ^ flip, groups[row]
        if word < least[group]:
            least[group] = word
        elif word == HIGHEST:
            seen[group] = 1


@kernel
def set_bits_by_group(groups: Any, words: Any, valid: Any, is_and: Any, is_or: Any, states: Any, seen: Any) -> None:
    """Combines int64 words of each group by AND, OR or XOR: states int64[groups] in/out, seen uint8[groups] in/out."""
    has_nulls = valid.size > 0
    for row in range(groups.size):
        if has_nulls and valid[row] == 0:
            continue
        group = groups[row]
        if seen[group] == 0:
            states[group] = words[row]
        elif is_and:
            states[group] &= words[row]
        elif is_or:
            states[group] |= words[row]
        else:
            states[group] ^= words[row]
        seen[group] = 1


class NumberExtreme:
    """min or max of a column of one number a row: integers, doubles, dates, booleans (so bool_and and bool_or too)."""

    def __init__(self, type: pa.DataType, *, greatest: bool) -> None:
        self._type, self.greatest = type, greatest
        self._least: Ints = np.zeros(0, np.int64)  # of the complement for the greatest
        self._seen: Ints = np.zeros(0, np.uint8)

    def update(self, groups: Ints, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Takes in a batch of one argument."""
        (array,) = arguments
        words, valid = ordered_words(array), mask_of(array)
        if group_count == 1:
            words = words[valid == 1] if valid.size else words
            if len(words) == 0:
                return
            words = words.max(keepdims=True) if self.greatest else words.min(keepdims=True)
            groups, valid = np.zeros(1, np.int64), ALL_VALID
        self._keep(groups, words, -1 if self.greatest else 0, valid, group_count)

    def load(self, values: Ints, counts: Ints) -> None:
        """Makes an empty state that of groups looked through elsewhere: int64 words, for the greatest their complements."""
        self._least = np.where(counts > 0, values, HIGHEST)
        self._seen = (counts > 0).astype(np.uint8)

    def merge(self, other: NumberExtreme, mapping: Ints, group_count: int) -> None:
        """Takes in another state."""
        count = len(mapping)
        self._keep(mapping, resized(other._least, count)[:count], 0, other._known(count), group_count)

    def finish(self, group_count: int) -> pa.Array:
        """The extremes, NULL where no value counted."""
        words = resized(self._least, group_count)[:group_count]
        words = ~words if self.greatest else words
        values = doubles_of(words) if pa.types.is_floating(self._type) else words
        return to_array(values, self._type, self._known(group_count))

    def _known(self, group_count: int) -> Ints:
        """uint8[group_count]: whether a value of the group was seen."""
        least, seen = resized(self._least, group_count, int(HIGHEST)), resized(self._seen, group_count)
        return (least < HIGHEST).view(np.uint8)[:group_count] | seen[:group_count]

    def _keep(self, groups: Ints, words: Ints, flip: int, valid: Ints, group_count: int) -> None:
        self._least = resized(self._least, group_count, int(HIGHEST))
        self._seen = resized(self._seen, group_count)
        keep_least(groups, words, np.int64(flip), valid, self._least, self._seen)


class BitCombination:
    """bit_and, bit_or and bit_xor of integers; ``op`` is one of ``and``, ``or``, ``xor``."""

    def __init__(self, type: pa.DataType, op: str) -> None:
        assert op in ("and", "or", "xor")
        self._type, self._op = type, op
        self._states: Ints = np.zeros(0, np.int64)
        self._seen: Ints = np.zeros(0, np.uint8)

    def update(self, groups: Ints, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Takes in a batch of one argument."""
        (array,) = arguments
        self._combine(groups, values_of(array).astype(np.int64, copy=False), mask_of(array), group_count)

    def merge(self, other: BitCombination, mapping: Ints, group_count: int) -> None:
        """Takes in another state."""
        count = len(mapping)
        self._combine(mapping, resized(other._states, count)[:count], resized(other._seen, count)[:count], group_count)

    def finish(self, group_count: int) -> pa.Array:
        """The combinations, NULL where no value counted."""
        states = resized(self._states, group_count)[:group_count]
        return to_array(states, self._type, resized(self._seen, group_count)[:group_count])

    def _combine(self, groups: Ints, words: Ints, valid: Ints, group_count: int) -> None:
        self._states, self._seen = resized(self._states, group_count), resized(self._seen, group_count)
        set_bits_by_group(groups, words, valid, self._op == "and", self._op == "or", self._states, self._seen)


# --- picked rows -----------------------------------------------------------------------------------------------------


@kernel
def pick_rows(groups: Any, valid: Any, takes_last: Any, picked: Any) -> None:
    """The first (last) valid row of each group.

    groups  int64[rows]    in      valid  uint8[rows] or empty  in
    picked  int64[groups]  in/out  row, -1 where none so far
    """
    has_nulls = valid.size > 0
    for row in range(groups.size):
        if has_nulls and valid[row] == 0:
            continue
        if takes_last or picked[groups[row]] < 0:
            picked[groups[row]] = row


@kernel
def text_comes_first(offsets: Any, characters: Any, row: Any, other: Any) -> Any:
    """Whether the text of ``row`` is before that of ``other`` in byte order."""
    at, mate = np.int64(offsets[row]), np.int64(offsets[other])
    size, mate_size = np.int64(offsets[row + 1]) - at, np.int64(offsets[other + 1]) - mate
    shared = min(size, mate_size)
    index = np.int64(0)
    while index + 8 <= shared:
        word = load_word(characters, np.uint64(at + index))
        mate_word = load_word(characters, np.uint64(mate + index))
        if word != mate_word:
            return swap_bytes(word) < swap_bytes(mate_word)
        index += 8
    while index < shared:
        if characters[at + index] != characters[mate + index]:
            return characters[at + index] < characters[mate + index]
        index += 1
    return size < mate_size


@kernel
def pick_texts(groups: Any, offsets: Any, characters: Any, valid: Any, greatest: Any, picked: Any) -> None:
    """The row of each group's first (last, when ``greatest``) text in byte order.

    groups  int64[rows]  in    picked  int64[groups]  in/out  row, -1 where none so far
    """
    has_nulls = valid.size > 0
    for row in range(groups.size):
        if has_nulls and valid[row] == 0:
            continue
        best = picked[groups[row]]
        if best < 0:
            picked[groups[row]] = row
        elif greatest:
            if text_comes_first(offsets, characters, best, row):
                picked[groups[row]] = row
        elif text_comes_first(offsets, characters, row, best):
            picked[groups[row]] = row


Pick = Callable[[Ints, int, list[pa.Array]], Ints]
"""(groups, group count, columns) -> int64[groups]: the row to keep of each group, -1 for none."""


def pick_first(*, ignore_nulls: bool, last: bool = False) -> Pick:
    """Keeps the first (last) row of each group, of those whose first column is not NULL if so wanted."""

    def pick(groups: Ints, group_count: int, columns: list[pa.Array]) -> Ints:
        picked = np.full(group_count, -1, np.int64)
        pick_rows(groups, mask_of(columns[0]) if ignore_nulls else ALL_VALID, last, picked)
        return picked

    return pick


def pick_extreme(column: int = 0, *, greatest: bool) -> Pick:
    """Keeps the row whose ``column`` is least (greatest), the first such; rows where it is NULL are not kept."""

    def pick(groups: Ints, group_count: int, columns: list[pa.Array]) -> Ints:
        array = plain(columns[column])
        picked, valid = np.full(group_count, -1, np.int64), mask_of(array)
        if is_text(array.type):
            pick_texts(groups, *text_of(array), valid, greatest, picked)
            return picked
        fields = fields_of(array, Direction(descending=greatest))
        order = sort_fields(fields, len(array)) if fields else np.arange(len(array))
        first = np.full(group_count, -1, np.int64)
        pick_rows(groups[order], valid[order] if valid.size else valid, False, first)
        return np.where(first >= 0, order[first], -1) if len(order) else picked

    return pick


class PickedRows:
    """Keeps one row of each group and answers its first column: min and max of text, first, last, any_value, min_by, max_by.

    ``pick`` chooses; rows are given to it in the order in which they came, those of merged states after ours.
    Candidates of each batch wait until there are many, and are then chosen from again.
    """

    def __init__(self, pick: Pick, type: pa.DataType) -> None:
        self._pick, self._type = pick, type
        self._groups: list[Ints] = []
        self._rows: list[list[pa.Array]] = []
        self._pending = 0

    @classmethod
    def extreme(cls, type: pa.DataType, *, greatest: bool) -> PickedRows:
        """min or max of a column of any type."""
        return cls(pick_extreme(greatest=greatest), type)

    @classmethod
    def extreme_by(cls, type: pa.DataType, *, greatest: bool) -> PickedRows:
        """min_by or max_by: the first argument where the second is least or greatest."""
        return cls(pick_extreme(1, greatest=greatest), type)

    @classmethod
    def first(cls, type: pa.DataType, *, ignore_nulls: bool, last: bool = False) -> PickedRows:
        """first, last, any_value (with ``ignore_nulls``)."""
        return cls(pick_first(ignore_nulls=ignore_nulls, last=last), type)

    def update(self, groups: Ints, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Takes in a batch; arguments after the first may be what ``pick`` goes by."""
        picked = self._pick(groups, group_count, list(arguments))
        kept = np.flatnonzero(picked >= 0)
        rows = pa.array(picked[kept])
        self._append(kept, [array.take(rows) for array in arguments], group_count)

    def merge(self, other: PickedRows, mapping: Ints, group_count: int) -> None:
        """Takes in another state."""
        for groups, rows in zip(other._groups, other._rows, strict=True):
            self._append(mapping[groups], rows, group_count)

    def finish(self, group_count: int) -> pa.Array:
        """The first column of the rows kept, NULL where none is."""
        if not self._groups:
            return pa.nulls(group_count, self._type)
        self._weed(group_count)
        place = np.full(group_count, -1, np.int64)
        place[self._groups[0]] = np.arange(len(self._groups[0]))
        values = self._rows[0][0]
        return values.take(to_array(np.maximum(place, 0), pa.int64(), (place >= 0).astype(np.uint8)))

    def _append(self, groups: Ints, rows: list[pa.Array], group_count: int) -> None:
        if len(groups) == 0:
            return
        self._groups.append(groups)
        self._rows.append(rows)
        self._pending += len(groups)
        if self._pending > max(PENDING_ROWS, 2 * group_count):
            self._weed(group_count)

    def _weed(self, group_count: int) -> None:
        groups = np.concatenate(self._groups)
        columns = [concat([rows[index] for rows in self._rows]) for index in range(len(self._rows[0]))]
        if len(self._groups) > 1:
            picked = self._pick(groups, group_count, columns)
            kept = np.flatnonzero(picked >= 0)
            groups, columns = kept, [column.take(pa.array(picked[kept])) for column in columns]
        self._groups, self._rows, self._pending = [groups], [columns], len(groups)


def extreme(type: pa.DataType, *, greatest: bool) -> NumberExtreme | PickedRows:
    """min or max of a column of any type."""
    if is_fixed(type) and not is_wide(type):
        return NumberExtreme(type, greatest=greatest)
    return PickedRows.extreme(type, greatest=greatest)


@rehearsal
def _rehearse() -> None:
    groups, integers, texts = np.array([0, 1]), pa.array([1, None]), pa.array(["a", "b"])

    def states() -> list[Any]:
        first = PickedRows.first(pa.int64(), ignore_nulls=False)
        return [extreme(pa.int64(), greatest=True), extreme(pa.string(), greatest=True), first]

    for state, other, argument in zip(states(), states(), (integers, texts, integers), strict=True):
        state.update(groups, 2, [argument])
        other.update(groups, 2, [argument])
        state.merge(other, groups, 2)
        state.finish(2)
