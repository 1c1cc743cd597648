"""States of aggregates for many groups: counts, sums, extremes, picked rows, moments.

    state = SumInteger(pa.int64(), "bigint")
    state.update(groups, group_count, [values])     groups int64[rows] below group_count
    state.merge(other, mapping, group_count)        group g of ``other`` is ``mapping[g]`` here
    state.finish(group_count)                       one value for each group; NULL where no row counted

They are ``sql.registry.Accumulator``s. Rows that FILTER or DISTINCT leave out are left out by the caller. Where there is
one group only, ``group_count`` 1, vectors are added up without looking at ``groups``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.errors import NumericOutOfRange
from lake.exec.kernels import decimals, kernel, rehearsal
from lake.exec.kernels.hashing import load_word
from lake.exec.kernels.order import Direction, doubles_of, fields_of, ordered_words, sort_fields, swap_bytes
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

INT64_MAX: Final = (1 << 63) - 1
PENDING_ROWS: Final = 1 << 18
"""Candidate rows of text extremes and the like are weeded out when they are this many and twice the groups."""


def resized(array: Ints, count: int, fill: int | float = 0) -> Ints:
    """The array with at least ``count`` items along its first axis, further ones being ``fill``; doubled when it grows."""
    if len(array) >= count:
        return array
    larger = np.full((max(count, 2 * len(array)), *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger


def live_rows(groups: Ints, arrays: Sequence[pa.Array]) -> tuple[Ints, list[pa.Array]]:
    """The rows in which no array is NULL."""
    live: Ints | None = None
    for array in arrays:
        valid = mask_of(array)
        if valid.size:
            live = valid if live is None else live & valid
    if live is None:
        return groups, list(arrays)
    rows = np.flatnonzero(live)
    return groups[rows], [array.take(pa.array(rows)) for array in arrays]


# --- counts ----------------------------------------------------------------------------------------------------------


@kernel
def add_counts(groups: Any, valid: Any, counts: Any) -> None:
    """Counts rows that are valid: groups int64[rows] in, valid uint8[rows] or empty in, counts int64[groups] in/out."""
    if valid.size == 0:
        for row in range(groups.size):
            counts[groups[row]] += 1
    else:
        for row in range(groups.size):
            counts[groups[row]] += np.int64(valid[row] != 0)


class Count:
    """count(*) without arguments, else the rows in which no argument is NULL."""

    def __init__(self) -> None:
        self.counts: Ints = np.zeros(0, np.int64)

    def update(self, groups: Ints, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Counts a batch."""
        valid = ALL_VALID
        for argument in arguments:
            of_argument = mask_of(argument)
            valid = valid & of_argument if valid.size and of_argument.size else valid if valid.size else of_argument
        self.add(groups, group_count, valid)

    def add(self, groups: Ints, group_count: int, valid: Ints) -> None:
        """Counts rows by their validity."""
        self.counts = resized(self.counts, group_count)
        if group_count == 1:
            self.counts[0] += np.count_nonzero(valid) if valid.size else len(groups)
        else:
            add_counts(groups, valid, self.counts)

    def merge(self, other: Count, mapping: Ints, group_count: int) -> None:
        """Adds another state."""
        self.counts = resized(self.counts, group_count)
        np.add.at(self.counts, mapping, resized(other.counts, len(mapping))[: len(mapping)])

    def finish(self, group_count: int) -> pa.Array:
        """BIGINT."""
        return to_array(resized(self.counts, group_count)[:group_count], pa.int64())


# --- sums of integers ------------------------------------------------------------------------------------------------


@kernel
def add_words(groups: Any, values: Any, valid: Any, sums: Any) -> None:
    """Adds int64[rows] values to int64[groups] sums; the caller knows that none overflows."""
    if valid.size == 0:
        for row in range(groups.size):
            sums[groups[row]] += values[row]
    else:
        for row in range(groups.size):
            if valid[row] != 0:
                sums[groups[row]] += values[row]


@kernel
def add_double_words(groups: Any, values: Any, valid: Any, sums: Any) -> Any:
    """Adds 128-bit integers by group; answers how many additions passed 128 bits.

    groups  int64[rows]  in    values  int64[rows, 2]  in  low word, high word    valid  uint8[rows] or empty  in
    sums    int64[groups, 2]  in/out
    """
    has_nulls = valid.size > 0
    overflows = 0
    for row in range(groups.size):
        if has_nulls and valid[row] == 0:
            continue
        group = groups[row]
        low = np.uint64(sums[group, 0]) + np.uint64(values[row, 0])
        carry = np.int64(low < np.uint64(values[row, 0]))
        before, added = sums[group, 1], values[row, 1]
        high = before + added + carry
        overflows += np.int64(((before ^ high) & (added ^ high)) < 0)
        sums[group, 0] = np.int64(low)
        sums[group, 1] = high
    return overflows


class SumInteger:
    """sum of integers and decimals: exact; NULL where no value counted.

    One word a group for as long as the values seen could not have passed 64 bits, two words after that.
    ``returns`` is int64 (a sum of integers, or scaled) or decimal128. 22003 where a sum does not fit it; ``name`` is the
    type as the error names it.
    """

    def __init__(self, returns: pa.DataType, name: str) -> None:
        self._returns, self._name = returns, name
        self.counts = Count()
        self.sums: Ints = np.zeros(0, np.int64)
        self._bound = 0

    def update(self, groups: Ints, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Adds a batch of one argument."""
        (array,) = arguments
        valid = mask_of(array)
        self.counts.add(groups, group_count, valid)
        self.sums = resized(self.sums, group_count)
        values = values_of(array)
        if values.ndim == 2:
            self._widen()
            self._add(groups, values, valid)
            return
        values = values.astype(np.int64, copy=False)
        if valid.size:
            values = values * valid
        if len(values) == 0:
            return
        if self._bound <= INT64_MAX:
            self._bound += max(int(values.max()), -int(values.min())) * len(values)
        if self._bound > INT64_MAX:
            self._widen()
            self._add(groups, decimals.wide(values), ALL_VALID)
        elif group_count == 1:
            self.sums[0] += values.sum()
        else:
            add_words(groups, values, ALL_VALID, self.sums)

    def merge(self, other: SumInteger, mapping: Ints, group_count: int) -> None:
        """Adds another state."""
        self.counts.merge(other.counts, mapping, group_count)
        self.sums = resized(self.sums, group_count)
        self._bound += other._bound
        theirs = resized(other.sums, len(mapping))[: len(mapping)]
        if self._bound > INT64_MAX or theirs.ndim == 2:
            self._widen()
            self._add(mapping, decimals.wide(theirs), ALL_VALID)
        else:
            add_words(mapping, theirs, ALL_VALID, self.sums)

    def wide_sums(self, group_count: int) -> Ints:
        """int64[groups, 2]: the sums in two words."""
        sums = resized(self.sums, group_count)[:group_count]
        return decimals.wide(sums)

    def finish(self, group_count: int) -> pa.Array:
        """The sums; 22003 where one does not fit."""
        sums = resized(self.sums, group_count)[:group_count]
        seen = (resized(self.counts.counts, group_count)[:group_count] > 0).astype(np.uint8)
        is_decimal = pa.types.is_decimal128(self._returns)
        if is_decimal:
            sums = decimals.wide(sums)
            if decimals.first_beyond(sums, self._returns.precision) >= 0:
                raise NumericOutOfRange(f"{self._name} out of range")
        elif sums.ndim == 2:
            narrow = decimals.narrow(sums)
            if narrow is None:
                raise NumericOutOfRange(f"{self._name} out of range")
            sums = narrow
        return to_array(sums, self._returns, None if seen.all() else seen)

    def _widen(self) -> None:
        self._bound = INT64_MAX + 1
        self.sums = decimals.wide(self.sums)

    def _add(self, groups: Ints, values: Ints, valid: Ints) -> None:
        if add_double_words(groups, values, valid, self.sums):
            raise NumericOutOfRange(f"{self._name} out of range")


class Average:
    """avg of integers and decimals: the exact sum divided by the count; NULL where no value counted.

    ``returns`` is float64, or int64 and decimal128 for a decimal with ``digits`` more digits after the point than the
    argument has. What lies beyond them is cut, as the base cuts it.
    """

    def __init__(self, returns: pa.DataType, *, digits: int = 0, scale: int = 0) -> None:
        self._returns, self._digits, self._scale = returns, digits, scale
        self._sum = SumInteger(pa.decimal128(38, 0), "numeric")

    def update(self, groups: Ints, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Adds a batch of one argument."""
        self._sum.update(groups, group_count, arguments)

    def merge(self, other: Average, mapping: Ints, group_count: int) -> None:
        """Adds another state."""
        self._sum.merge(other._sum, mapping, group_count)

    def finish(self, group_count: int) -> pa.Array:
        """The averages; ``scale`` is that of the argument, which an average in float64 is divided by."""
        counts = resized(self._sum.counts.counts, group_count)[:group_count]
        seen, sums = (counts > 0).astype(np.uint8), self._sum.wide_sums(group_count)
        if pa.types.is_floating(self._returns):
            return to_array(decimals.to_doubles(sums, self._scale) / np.maximum(counts, 1), self._returns, seen)
        words, beyond = decimals.multiply_divide(
            sums, 10**self._digits, np.maximum(counts, 1), group_count, rounds=False, valid=seen
        )
        fitting = words if pa.types.is_decimal128(self._returns) else decimals.narrow(words, seen)
        if beyond >= 0 or fitting is None:
            raise NumericOutOfRange("numeric out of range")
        return to_array(fitting, self._returns, seen)


# --- sums of doubles -------------------------------------------------------------------------------------------------


@kernel
def add_doubles(groups: Any, values: Any, valid: Any, sums: Any) -> None:
    """Adds float64[rows] values to float64[groups] sums, in the order of rows."""
    has_nulls = valid.size > 0
    for row in range(groups.size):
        if not has_nulls or valid[row] != 0:
            sums[groups[row]] += values[row]


class SumDouble:
    """A sum of doubles in the order of rows, rounded at each step; ``exact_sum.ExactSum`` is the sum of SQL."""

    def __init__(self) -> None:
        self.counts = Count()
        self.sums: Ints = np.zeros(0, np.float64)

    def update(self, groups: Ints, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Adds a batch of one argument."""
        (array,) = arguments
        valid = mask_of(array)
        self.counts.add(groups, group_count, valid)
        self.sums = resized(self.sums, group_count)
        add_doubles(groups, values_of(array).astype(np.float64, copy=False), valid, self.sums)

    def merge(self, other: SumDouble, mapping: Ints, group_count: int) -> None:
        """Adds another state."""
        self.counts.merge(other.counts, mapping, group_count)
        self.sums = resized(self.sums, group_count)
        np.add.at(self.sums, mapping, resized(other.sums, len(mapping))[: len(mapping)])

    def finish(self, group_count: int) -> pa.Array:
        """DOUBLE."""
        seen = (resized(self.counts.counts, group_count)[:group_count] > 0).astype(np.uint8)
        return to_array(resized(self.sums, group_count)[:group_count], pa.float64(), seen)


# --- extremes of numbers ---------------------------------------------------------------------------------------------


@kernel
def keep_least(groups: Any, words: Any, valid: Any, least: Any, seen: Any) -> None:
    """Keeps the least int64 word of each group: least int64[groups] in/out, seen uint8[groups] in/out."""
    has_nulls = valid.size > 0
    for row in range(groups.size):
        if has_nulls and valid[row] == 0:
            continue
        group = groups[row]
        if words[row] < least[group] or seen[group] == 0:
            least[group] = words[row]
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
        self._type, self._greatest = type, greatest
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
            words = words.max(keepdims=True) if self._greatest else words.min(keepdims=True)
            groups, valid = np.zeros(1, np.int64), ALL_VALID
        self._keep(groups, ~words if self._greatest else words, valid, group_count)

    def merge(self, other: NumberExtreme, mapping: Ints, group_count: int) -> None:
        """Takes in another state."""
        count = len(mapping)
        self._keep(mapping, resized(other._least, count)[:count], resized(other._seen, count)[:count], group_count)

    def finish(self, group_count: int) -> pa.Array:
        """The extremes, NULL where no value counted."""
        words = resized(self._least, group_count)[:group_count]
        words = ~words if self._greatest else words
        values = doubles_of(words) if pa.types.is_floating(self._type) else words
        return to_array(values, self._type, resized(self._seen, group_count)[:group_count])

    def _keep(self, groups: Ints, words: Ints, valid: Ints, group_count: int) -> None:
        self._least, self._seen = resized(self._least, group_count), resized(self._seen, group_count)
        keep_least(groups, words, valid, self._least, self._seen)


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


# --- moments ---------------------------------------------------------------------------------------------------------

N, MEAN_X, MEAN_Y, XX, YY, XY = range(6)
"""Fields of a moment state: the count, the means, and sums of products of distances from the means."""


@kernel
def add_moments(groups: Any, xs: Any, ys: Any, states: Any) -> None:
    """Adds points one by one to the moments of their groups.

    groups  int64[rows]  in    xs, ys  float64[rows]  in    states  float64[groups, 6]  in/out  see N .. XY

    Source: Welford, "Note on a method for calculating corrected sums of squares and products", 1962.
    """
    for row in range(groups.size):
        state = states[groups[row]]
        x, y = xs[row], ys[row]
        state[N] += 1.0
        away_x, away_y = x - state[MEAN_X], y - state[MEAN_Y]
        state[MEAN_X] += away_x / state[N]
        state[MEAN_Y] += away_y / state[N]
        state[XX] += away_x * (x - state[MEAN_X])
        state[YY] += away_y * (y - state[MEAN_Y])
        state[XY] += away_x * (y - state[MEAN_Y])


@kernel
def merge_moments(mapping: Any, others: Any, states: Any) -> None:
    """Merges float64[others, 6] moments into those of groups ``mapping``.

    Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
    """
    for index in range(mapping.size):
        other, state = others[index], states[mapping[index]]
        if other[N] == 0.0:
            continue
        total = state[N] + other[N]
        away_x, away_y = other[MEAN_X] - state[MEAN_X], other[MEAN_Y] - state[MEAN_Y]
        share = state[N] * other[N] / total
        state[XX] += other[XX] + away_x * away_x * share
        state[YY] += other[YY] + away_y * away_y * share
        state[XY] += other[XY] + away_x * away_y * share
        state[MEAN_X] += away_x * other[N] / total
        state[MEAN_Y] += away_y * other[N] / total
        state[N] = total


Formula = Callable[[Ints], Ints]
"""float64[groups, 6] moments -> float64[groups], NaN where it may mean NULL too."""


class Moments:
    """Variances, covariances, correlations and regressions of one column, or of two (y first, as SQL has it).

    ``formula`` makes the answer of the moments: a key of MOMENTS. NULL where fewer than ``rows_min`` rows count.
    """

    def __init__(self, formula: Formula, rows_min: int) -> None:
        self._formula, self._rows_min = formula, rows_min
        self._states: Ints = np.zeros((0, 6), np.float64)

    @classmethod
    def of(cls, name: str) -> Moments:
        """The state of a function of MOMENTS."""
        return cls(*MOMENTS[name])

    def update(self, groups: Ints, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Adds a batch; rows with a NULL do not count."""
        self._states = resized(self._states, group_count)
        groups, arrays = live_rows(groups, arguments)
        ys = values_of(arrays[0]).astype(np.float64, copy=False)
        xs = values_of(arrays[-1]).astype(np.float64, copy=False)
        add_moments(groups, xs, ys, self._states)

    def merge(self, other: Moments, mapping: Ints, group_count: int) -> None:
        """Adds another state."""
        self._states = resized(self._states, group_count)
        merge_moments(mapping, resized(other._states, len(mapping)), self._states)

    def finish(self, group_count: int) -> pa.Array:
        """DOUBLE."""
        states = resized(self._states, group_count)[:group_count]
        with np.errstate(all="ignore"):
            values = self._formula(states)
        enough = states[:, N] >= self._rows_min
        return to_array(values.astype(np.float64), pa.float64(), (enough & ~_is_null(values, states)).astype(np.uint8))


def _is_null(values: Ints, states: Ints) -> Ints:
    """Where a formula divided nothing by nothing though the moments are numbers: NULL in SQL."""
    return np.isnan(values) & ~np.isnan(states).any(axis=1)


def _determination(s: Ints) -> Ints:
    """regr_r2: 1 where y is constant, NULL where x is."""
    of_constant = np.where(s[:, XX] == 0, np.nan, 1.0)
    return np.where(s[:, YY] == 0, of_constant, s[:, XY] ** 2 / (s[:, XX] * s[:, YY]))


MOMENTS: Final[dict[str, tuple[Formula, int]]] = {
    "var_pop": (lambda s: s[:, XX] / s[:, N], 1),
    "var_samp": (lambda s: s[:, XX] / (s[:, N] - 1), 2),
    "stddev_pop": (lambda s: np.sqrt(s[:, XX] / s[:, N]), 1),
    "stddev_samp": (lambda s: np.sqrt(s[:, XX] / (s[:, N] - 1)), 2),
    "covar_pop": (lambda s: s[:, XY] / s[:, N], 1),
    "covar_samp": (lambda s: s[:, XY] / (s[:, N] - 1), 2),
    "corr": (lambda s: s[:, XY] / np.sqrt(s[:, XX] * s[:, YY]), 2),
    "regr_count": (lambda s: s[:, N], 0),
    "regr_avgx": (lambda s: s[:, MEAN_X], 1),
    "regr_avgy": (lambda s: s[:, MEAN_Y], 1),
    "regr_sxx": (lambda s: s[:, XX], 1),
    "regr_syy": (lambda s: s[:, YY], 1),
    "regr_sxy": (lambda s: s[:, XY], 1),
    "regr_slope": (lambda s: s[:, XY] / s[:, XX], 1),
    "regr_intercept": (lambda s: s[:, MEAN_Y] - s[:, XY] / s[:, XX] * s[:, MEAN_X], 1),
    "regr_r2": (_determination, 1),
}  # fmt: skip
"""Formulas over moments by SQL name, and the rows they need."""


@rehearsal
def _rehearse() -> None:
    groups, doubles, integers = np.array([0, 1]), pa.array([1.0, 2.0]), pa.array([1, None])
    states: list[tuple[Any, list[pa.Array]]] = [
        (Count(), [integers]), (SumInteger(pa.int64(), "bigint"), [integers]),
        (SumInteger(pa.decimal128(38, 0), "decimal"), [integers.cast(pa.decimal128(38, 0))]),
        (extreme(pa.int64(), greatest=True), [integers]), (extreme(pa.string(), greatest=True), [pa.array(["a", "b"])]),
        (PickedRows.first(pa.int64(), ignore_nulls=False), [integers]), (Moments.of("corr"), [doubles, doubles]),
    ]  # fmt: skip
    for state, arguments in states:
        state.update(groups, 2, arguments)
        state.merge(state, groups, 2)
        state.finish(2)
