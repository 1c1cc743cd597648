"""One aggregate's state over numbered groups: FILTER, DISTINCT and ORDER BY around the function's own Accumulator.

    count(*)                    PlainTally      the accumulator sees every batch
    sum(x), avg(x)              SharedTally     the average takes the sum's state
    sum(x), sum(x + 1)          ShiftedTally    the sum of x plus the count of x
    sum(DISTINCT x)             DistinctTally   rows (group, x) are numbered, and the new ones are kept
    string_agg(x, ',' ORDER BY y)   OrderedTally    rows are kept, sorted at the end, and only then accumulated
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.exec.kernels.aggregates import SumInteger
from lake.exec.kernels.groups import GroupTable
from lake.exec.kernels.order import Direction, sort_rows
from lake.exec.kernels.views import to_array, true_of
from lake.exec.operators.base import MORSEL_ROWS
from lake.exec.operators.batches import concat_columns
from lake.sql.bound import AggregateCall, Expr, Literal, MakeList
from lake.sql.catalog import Settings
from lake.sql.registry import Accumulator, CallInfo

BYTES_PER_GROUP = 24
"""What an accumulator is taken to hold for each group where it does not tell."""


class Call(Struct, frozen=True):
    """An aggregate call whose arguments, filter and sort keys are columns of the input batch, by position.

    shift  what a sum adds to each value of its argument
    """

    call: AggregateCall
    arguments: tuple[int, ...]
    where: int | None
    order: tuple[int, ...]
    shift: int = 0


def new_accumulator(call: AggregateCall, settings: Settings | None) -> Accumulator:
    """The function's empty state."""
    types = tuple(expr.type for expr in call.arguments)
    constants = tuple(map(_constant, call.arguments))
    descending = bool(call.order) and call.order[0].descending
    return call.function.make(CallInfo(types, call.type, 0, settings, descending, bool(call.order)), constants)


def _constant(expr: Expr) -> object:
    """The value of a literal, a tuple of those of a list of literals, None of anything else."""
    if isinstance(expr, MakeList) and all(isinstance(item, Literal) for item in expr.items):
        return tuple(map(_constant, expr.items))
    return expr.value if isinstance(expr, Literal) else None


def make_tally(call: Call, settings: Settings | None) -> Tally:
    """The empty state of a call."""
    accumulator = new_accumulator(call.call, settings)
    if call.order:
        return OrderedTally(call, accumulator)
    if call.call.distinct and call.call.function.duplicates_matter and call.arguments:
        return DistinctTally(call, accumulator)
    return PlainTally(call, accumulator)


def make_tallies(calls: Sequence[Call], settings: Settings | None) -> list[Tally]:
    """The empty states of calls; averages and shifted sums share the state of a sum over the same rows."""
    tallies = [make_tally(call, settings) for call in calls]
    sums: dict[tuple[tuple[int, ...], int | None], SumInteger] = {}
    for tally in tallies:
        if adds_integers(tally) and isinstance(tally.accumulator, SumInteger) and not tally.call.shift:
            sums.setdefault((tally.call.arguments, tally.call.where), tally.accumulator)
    for place, tally in enumerate(tallies):
        if tally.call.shift:
            own: Any = tally.accumulator
            shared = sums.setdefault((tally.call.arguments, tally.call.where), own)
            tallies[place] = ShiftedTally(tally.call, shared, is_owner=shared is own)
        elif adds_integers(tally) and not isinstance(tally.accumulator, SumInteger):
            average: Any = tally.accumulator
            known = sums.setdefault((tally.call.arguments, tally.call.where), average.sum)
            if known is not average.sum:
                average.sum = known
                tallies[place] = SharedTally(tally.call, average)
    return tallies


def adds_integers(tally: Tally) -> bool:
    """Whether a tally is a plain sum or average of integers or decimals, which takes decimals of either width."""
    state = tally.accumulator
    return isinstance(tally, PlainTally) and isinstance(getattr(state, "sum", state), SumInteger)


class Tally(ABC):
    """An aggregate's state for many groups."""

    def __init__(self, call: Call, accumulator: Accumulator) -> None:
        self.call = call
        self.accumulator = accumulator

    def update(self, numbers: Any, count: int, batch: pa.RecordBatch) -> None:
        """Adds a batch of input columns; ``numbers`` are the rows' groups, below ``count``."""
        call = self.call
        arguments = [batch.column(index) for index in call.arguments]
        order = [batch.column(index) for index in call.order]
        if call.where is not None:
            kept = np.flatnonzero(true_of(batch.column(call.where)))
            if len(kept) < batch.num_rows:
                rows = to_array(kept, pa.int64())
                numbers = numbers[kept]
                arguments = [array.take(rows) for array in arguments]
                order = [array.take(rows) for array in order]
        self.add(numbers, count, arguments, order)

    @abstractmethod
    def add(self, numbers: Any, count: int, arguments: list[pa.Array], order: list[pa.Array]) -> None:
        """Adds rows that passed the filter."""

    @abstractmethod
    def merge(self, other: Any, mapping: Any, count: int) -> None:
        """Adds another state, whose group g is this one's ``mapping[g]``."""

    @abstractmethod
    def finish(self, count: int) -> pa.Array:
        """One value for each group."""

    def nbytes(self, count: int) -> int:
        """About how much memory the state takes."""
        told = getattr(self.accumulator, "nbytes", None)
        return int(told) if told is not None else BYTES_PER_GROUP * count


class PlainTally(Tally):
    """Every row goes to the accumulator."""

    def add(self, numbers: Any, count: int, arguments: list[pa.Array], order: list[pa.Array]) -> None:
        self.accumulator.update(numbers, count, arguments)

    def merge(self, other: Any, mapping: Any, count: int) -> None:
        self.accumulator.merge(other.accumulator, mapping, count)

    def finish(self, count: int) -> pa.Array:
        return self.accumulator.finish(count)


class SharedTally(Tally):
    """An average whose sum is another tally's, which adds the rows."""

    def update(self, numbers: Any, count: int, batch: pa.RecordBatch) -> None:
        """Nothing is left to do."""

    def add(self, numbers: Any, count: int, arguments: list[pa.Array], order: list[pa.Array]) -> None:
        raise AssertionError("the other tally adds the rows")

    def merge(self, other: Any, mapping: Any, count: int) -> None:
        """Nothing is left to do."""

    def finish(self, count: int) -> pa.Array:
        return self.accumulator.finish(count)

    def nbytes(self, count: int) -> int:
        return 0


class ShiftedTally(PlainTally):
    """sum(x + constant), from the sum and the count of x; the owner of the state adds the rows."""

    def __init__(self, call: Call, state: SumInteger, *, is_owner: bool) -> None:
        super().__init__(call, state)
        self._state = state
        self.is_owner = is_owner

    def update(self, numbers: Any, count: int, batch: pa.RecordBatch) -> None:
        if self.is_owner:
            super().update(numbers, count, batch)

    def merge(self, other: Any, mapping: Any, count: int) -> None:
        if self.is_owner:
            super().merge(other, mapping, count)

    def finish(self, count: int) -> pa.Array:
        return self._state.finish_shifted(count, self.call.shift)

    def nbytes(self, count: int) -> int:
        return super().nbytes(count) if self.is_owner else 0


class DistinctTally(Tally):
    """Rows are numbered by group and arguments; the accumulator sees each number once, at the end."""

    def __init__(self, call: Call, accumulator: Accumulator) -> None:
        super().__init__(call, accumulator)
        self.table = GroupTable()

    def add(self, numbers: Any, count: int, arguments: list[pa.Array], order: list[pa.Array]) -> None:
        if len(numbers):
            self.table.insert([to_array(numbers, pa.int64()), *arguments])

    def merge(self, other: Any, mapping: Any, count: int) -> None:
        if other.table.count:
            numbers, *arguments = other.table.keys()
            self.table.insert([to_array(mapping[np.asarray(numbers)], pa.int64()), *arguments])

    def finish(self, count: int) -> pa.Array:
        if self.table.count:
            numbers, *arguments = self.table.keys()
            self.accumulator.update(np.ascontiguousarray(np.asarray(numbers)), count, arguments)
        return self.accumulator.finish(count)

    def nbytes(self, count: int) -> int:
        return super().nbytes(count) + self.table.nbytes


class OrderedTally(Tally):
    """Rows are kept until the end, and then accumulated in order."""

    def __init__(self, call: Call, accumulator: Accumulator) -> None:
        super().__init__(call, accumulator)
        self.pieces: list[tuple[Any, list[pa.Array], list[pa.Array]]] = []
        self._bytes = 0

    def add(self, numbers: Any, count: int, arguments: list[pa.Array], order: list[pa.Array]) -> None:
        if len(numbers):
            self.pieces.append((numbers, arguments, order))
            self._bytes += numbers.nbytes + sum(array.nbytes for array in (*arguments, *order))

    def merge(self, other: Any, mapping: Any, count: int) -> None:
        self.pieces += [(mapping[numbers], arguments, order) for numbers, arguments, order in other.pieces]
        self._bytes += other._bytes

    def finish(self, count: int) -> pa.Array:
        if not self.pieces:
            return self.accumulator.finish(count)
        numbers = np.concatenate([piece[0] for piece in self.pieces])
        arguments = [concat_columns([piece[1][index] for piece in self.pieces]) for index in range(len(self.call.arguments))]
        keys = [concat_columns([piece[2][index] for piece in self.pieces]) for index in range(len(self.call.order))]
        directions = [Direction(key.descending, key.nulls_first) for key in self.call.call.order]
        order = sort_rows(keys, directions)
        numbers, arguments = _take(numbers, arguments, order)
        if self.call.call.distinct:
            numbers, arguments = _take(numbers, arguments, first_rows([to_array(numbers, pa.int64()), *arguments]))
        for start in range(0, len(numbers), MORSEL_ROWS):
            stop = start + MORSEL_ROWS
            self.accumulator.update(
                np.ascontiguousarray(numbers[start:stop]), count, [array.slice(start, MORSEL_ROWS) for array in arguments]
            )
        return self.accumulator.finish(count)

    def nbytes(self, count: int) -> int:
        return super().nbytes(count) + self._bytes


def first_rows(columns: list[pa.Array]) -> Any:
    """int64: the first row of each kind, in row order."""
    numbers = GroupTable().insert(columns)
    known = np.maximum.accumulate(np.concatenate(([-1], numbers[:-1])))
    return np.flatnonzero(numbers > known)


def _take(numbers: Any, arguments: list[pa.Array], rows: Any) -> tuple[Any, list[pa.Array]]:
    taken = to_array(rows, pa.int64())
    return numbers[rows], [array.take(taken) for array in arguments]
