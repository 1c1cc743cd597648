"""States of aggregates for many groups: counts, sums and averages; see ``extremes``, ``moments``, ``exact_sum`` too.

    state = SumInteger(pa.int64(), "bigint")
    state.update(groups, group_count, [values])     groups int64[rows] below group_count
    state.merge(other, mapping, group_count)        group g of ``other`` is ``mapping[g]`` here
    state.finish(group_count)                       one value for each group; NULL where no row counted

They are ``sql.registry.Accumulator``s. Rows that FILTER or DISTINCT leave out are left out by the caller. Where there is
one group only, ``group_count`` 1, vectors are added up without looking at ``groups``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.errors import NumericOutOfRange
from lake.exec.kernels import decimals, kernel, rehearsal
from lake.exec.kernels.views import (
    ALL_VALID,
    Ints,
    mask_of,
    to_array,
    values_of,
)

INT64_MAX: Final = (1 << 63) - 1
FEW_GROUPS: Final = 1 << 10
"""With so few groups the next row often waits for its group's sum to be written, so rows take turns at LANES sums."""
LANES: Final = 4


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


@kernel
def count_in_lanes(groups: Any, lanes: Any) -> None:
    """Counts rows by group, in turns: groups int64[rows] in, lanes int64[LANES, groups] in/out."""
    end = groups.size - groups.size % 4
    for row in range(0, end, 4):
        lanes[0, groups[row]] += 1
        lanes[1, groups[row + 1]] += 1
        lanes[2, groups[row + 2]] += 1
        lanes[3, groups[row + 3]] += 1
    for row in range(end, groups.size):
        lanes[0, groups[row]] += 1


class _Counted(threading.local):
    """The groups counted last on this thread, and how many rows each has: the aggregates of a query share them."""

    groups: Any = None
    counts: Any = None


_COUNTED: Final = _Counted()


def rows_by_group(groups: Ints, group_count: int) -> Ints:
    """int64[group_count]: the rows of each of few groups; ``groups`` is not changed afterwards."""
    if _COUNTED.groups is not groups or len(_COUNTED.counts) != group_count:
        lanes = np.zeros((LANES, group_count), np.int64)
        count_in_lanes(groups, lanes)
        _COUNTED.groups, _COUNTED.counts = groups, lanes.sum(axis=0)
    counts: Ints = _COUNTED.counts
    return counts


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
        elif group_count <= FEW_GROUPS and not valid.size:
            self.counts[:group_count] += rows_by_group(groups, group_count)
        else:
            add_counts(groups, valid, self.counts)

    def load(self, values: Ints, counts: Ints) -> None:
        """Makes an empty state that of groups counted elsewhere."""
        self.counts = counts

    def merge(self, other: Count, mapping: Ints, group_count: int) -> None:
        """Adds another state."""
        self.counts = resized(self.counts, group_count)
        add_words(mapping, resized(other.counts, len(mapping)), ALL_VALID, self.counts)

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
def add_in_lanes(groups: Any, values: Any, lanes: Any) -> None:
    """``add_words`` in turns: groups, values int64[rows] in, lanes int64[LANES, groups] in/out."""
    end = groups.size - groups.size % 4
    for row in range(0, end, 4):
        lanes[0, groups[row]] += values[row]
        lanes[1, groups[row + 1]] += values[row + 1]
        lanes[2, groups[row + 2]] += values[row + 2]
        lanes[3, groups[row + 3]] += values[row + 3]
    for row in range(end, groups.size):
        lanes[0, groups[row]] += values[row]


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
        elif group_count <= FEW_GROUPS:
            lanes = np.zeros((LANES, group_count), np.int64)
            add_in_lanes(groups, values, lanes)
            self.sums[:group_count] += lanes.sum(axis=0)
        else:
            add_words(groups, values, ALL_VALID, self.sums)

    def load(self, values: Ints, counts: Ints) -> None:
        """Makes an empty state that of groups added up elsewhere: sums in a word or in two, and how many values each has."""
        self.sums, self.counts.counts = values, counts
        self._bound = INT64_MAX + 1 if values.ndim == 2 else max(int(values.max(initial=0)), -int(values.min(initial=0)))

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

    def finish_shifted(self, group_count: int, shift: int) -> pa.Array:
        """The sums of the values each plus ``shift``, as int64; 22003 where one does not fit."""
        sums = resized(self.sums, group_count)[:group_count]
        counts = resized(self.counts.counts, group_count)[:group_count]
        if sums.ndim == 2 or self._bound + abs(shift) * int(counts.max(initial=0)) > INT64_MAX:
            added = [one + shift * count for one, count in zip(decimals.integers_of(decimals.wide(sums)), counts.tolist())]
            if any(not -INT64_MAX - 1 <= one <= INT64_MAX for one in added):
                raise NumericOutOfRange(f"{self._name} out of range")
            sums = np.array(added, np.int64)
        else:
            sums = sums + shift * counts
        seen = (counts > 0).astype(np.uint8)
        return to_array(sums, pa.int64(), None if seen.all() else seen)

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
        add_doubles(mapping, resized(other.sums, len(mapping)), ALL_VALID, self.sums)

    def finish(self, group_count: int) -> pa.Array:
        """DOUBLE."""
        seen = (resized(self.counts.counts, group_count)[:group_count] > 0).astype(np.uint8)
        return to_array(resized(self.sums, group_count)[:group_count], pa.float64(), seen)


@rehearsal
def _rehearse() -> None:
    groups, integers = np.array([0, 1]), pa.array([1, None])
    states: list[tuple[Any, list[pa.Array]]] = [
        (Count(), [integers]), (SumInteger(pa.int64(), "bigint"), [integers]),
        (SumInteger(pa.decimal128(38, 0), "decimal"), [integers.cast(pa.decimal128(38, 0))]),
    ]  # fmt: skip
    for state, arguments in states:
        state.update(groups, 2, arguments)
        state.update(groups, FEW_GROUPS + 1, arguments)
        state.update(groups, 2, [argument.fill_null(0) for argument in arguments])
        state.merge(state, groups, 2)
        state.finish(2)
