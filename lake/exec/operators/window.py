"""OVER (..): rows sorted by partition and order, cut where partitions end, and one value computed for each row.

    SELECT sum(x) OVER (PARTITION BY g ORDER BY t)      rows sorted by g, t     partition_start   peer_start
                                                        g=1 t=1                       0               0
                                                        g=1 t=2                       0               1
                                                        g=1 t=2                       0               1
                                                        g=2 t=1                       3               3

Some whole partitions make a morsel, so workers compute different partitions side by side; where rows are only counted, any
rows do. Of a morsel's rows only those columns are fetched that are read above or by the calls: ``row_number`` wants none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.exec.constants import to_python
from lake.exec.context import Context
from lake.exec.evaluate import evaluate
from lake.exec.kernels.order import boundaries
from lake.exec.kernels.views import plain, true_of
from lake.exec.operators.base import Breaker, Morsel, Source, column_name
from lake.exec.operators.batches import bare_batch, make_batch, names_of, slices, take_rows
from lake.exec.operators.project import Projection
from lake.exec.operators.sort import InOrder, Sort, SortedColumns, SortedRows, SortState, fetch
from lake.exec.operators.window_aggregate import aggregate_over
from lake.exec.operators.window_input import EvaluatedBound, EvaluatedFrame, WindowInput
from lake.exec.pipeline import Held
from lake.sql.bound import Column, Expr, Frame, FrameBound, Literal, SortKey, WindowCall, columns_of
from lake.sql.registry import Aggregate

__all__ = ["EvaluatedBound", "EvaluatedFrame", "Window", "WindowInput"]

CHUNK_ROWS: Final = 1 << 17
"""Rows of whole partitions that make one morsel."""
SEARCHED_ROWS: Final = 1 << 10
"""Rows among which the end of a partition is looked for first."""
COUNTING: Final = frozenset(("row_number",))
"""Functions that want to know of other rows only how many there are before."""


@dataclass(eq=False)
class Window(Breaker):
    """``columns`` are some of the input's and one for each call; ``below`` are the input's."""

    columns: tuple[Column, ...]
    below: tuple[Column, ...]
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, WindowCall], ...]
    _sort: Sort = field(init=False, repr=False)

    def __post_init__(self) -> None:
        keys = (*(SortKey(expr) for expr in self.partition), *self.order)
        self._sort = Sort(self.below, keys)
        self._sort.metrics = self.metrics

    def describe(self) -> str:
        return ", ".join(call.function.name for _, call in self.calls)

    def start(self, context: Context) -> SortState:
        return self._sort.start(context)

    def absorb(self, state: SortState, batch: pa.RecordBatch) -> None:
        self._sort.absorb(state, batch)

    def merge(self, context: Context, states: Sequence[SortState]) -> Source:
        source = self._sort.merge(context, states)
        kept = self._sort.kept
        assert kept is not None
        counts = all(call.function.name in COUNTING for _, call in self.calls)
        chunks = Chunks(kept, len(self.partition), may_divide=counts)
        if isinstance(source, SortedRows):
            pieces = chunks.of_rows(source)
        else:
            # Without rows, or without keys to sort them by, what was held is in order as it is.
            assert isinstance(source, InOrder | Held)
            pieces = chunks.of_batches(source.batches)
        return WindowRows(self.columns, pieces, Computation(self, kept, context))


class Piece(Struct, frozen=True):
    """Rows in order that make a morsel: whole partitions, or part of one, of which ``before`` rows came before.

    fetch  answers some of the columns
    """

    rows: int
    before: int
    fetch: Callable[[Sequence[str]], pa.RecordBatch]


class Chunks:
    """Cuts sorted rows between partitions into pieces of about CHUNK_ROWS; with ``may_divide`` within the only one too."""

    def __init__(self, kept: SortedColumns, partition_keys: int, *, may_divide: bool) -> None:
        self._kept = kept
        self._key_names = kept.key_names[:partition_keys]
        self._divides = may_divide and not partition_keys

    def of_rows(self, source: SortedRows) -> Iterator[Piece]:
        """Pieces of rows in memory."""
        rows, order = source.rows, source.order
        first = 0
        while first < len(order):
            stop = self._end(rows, order, first + CHUNK_ROWS)
            chosen = order[first:stop]
            yield Piece(len(chosen), first if self._divides else 0, partial(_fetched, rows, chosen))
            first = stop

    def _end(self, rows: pa.RecordBatch, order: Any, wanted: int) -> int:
        """Where the partition ends that the row before place ``wanted`` is of."""
        if self._divides:
            return min(wanted, len(order))
        last, step = wanted - 1, SEARCHED_ROWS
        while self._key_names and last + 1 < len(order):
            some = order[last : last + 1 + step]
            changes = np.flatnonzero(boundaries(take_rows(_chosen(rows, self._key_names), some).columns, len(some))[1:])
            if len(changes):
                return last + 1 + int(changes[0])
            last, step = last + step, 2 * step
        return len(order)

    def of_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        """Pieces of rows that come batch by batch."""
        waiting: list[pa.RecordBatch] = []
        first = 0
        for batch in batches:
            if self._divides:
                yield _held_piece(batch, first)
                first += batch.num_rows
                continue
            cut = self._last_start(waiting, batch)
            if cut is None or sum(item.num_rows for item in waiting) + cut < CHUNK_ROWS:
                waiting.append(batch)
                continue
            piece = self._kept.join([*waiting, batch.slice(0, cut)])
            waiting = [batch.slice(cut)]
            yield _held_piece(piece, 0)
        if waiting:
            yield _held_piece(self._kept.join(waiting), 0)

    def _last_start(self, waiting: list[pa.RecordBatch], batch: pa.RecordBatch) -> int | None:
        """Where in ``batch`` the last partition begins that begins in it."""
        if not waiting or not self._key_names:
            return None
        before = waiting[-1].slice(waiting[-1].num_rows - 1)
        both = self._kept.join([before, batch])
        marks = boundaries([both.column(name) for name in self._key_names], both.num_rows)
        starts = np.flatnonzero(marks[1:])
        return int(starts[-1]) if len(starts) else None


def _held_piece(rows: pa.RecordBatch, first: int) -> Piece:
    return Piece(rows.num_rows, first, partial(_chosen, rows))


def _fetched(rows: pa.RecordBatch, numbers: Any, names: Sequence[str]) -> pa.RecordBatch:
    return fetch(_chosen(rows, names), numbers)


def _chosen(rows: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    return make_batch(names, [rows.column(name) for name in names], rows.num_rows)


@dataclass(eq=False)
class WindowRows(Source):
    """Pieces of sorted rows with the calls' values beside them."""

    columns: tuple[Column, ...]
    pieces: Iterator[Piece]
    computation: Computation

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for piece in self.pieces:
            yield lambda piece=piece: slices(self.computation.run(piece))  # type: ignore[misc]


class Computation:
    """The calls of one Window, ready to run over whole partitions."""

    def __init__(self, operator: Window, kept: SortedColumns, context: Context) -> None:
        self._operator = operator
        self._context = context
        count = len(operator.partition)
        self._partition_names, self._order_names = kept.key_names[:count], kept.key_names[count:]
        self._frames = [_evaluated(call.frame, context) for _, call in operator.calls]
        exprs: list[Expr] = []
        self._spans = []
        for _, call in operator.calls:
            first = len(exprs)
            exprs += [*call.arguments, *(key.expr for key in call.order)]
            exprs += [] if call.filter is None else [call.filter]
            self._spans.append((first, len(exprs)))
        self._projection = Projection(exprs, context)
        read = {column_name(column) for column in operator.columns} | set(self._partition_names)
        read |= {f"c{id}" for id in columns_of(tuple(exprs))}
        self._names_read = [name for name in kept.names if name in read]

    def run(self, piece: Piece) -> pa.RecordBatch:
        """The rows that are read above with the calls' values."""
        batch = piece.fetch(self._names_read)
        window = self._input(piece, batch)
        values = self._projection.run(batch)
        names = names_of(self._operator.columns)
        arrays = {name: batch.column(name) for name in names if name in batch.schema.names}
        for (column, call), frame, (first, last) in zip(self._operator.calls, self._frames, self._spans, strict=True):
            constants = tuple(expr.value if isinstance(expr, Literal) else None for expr in call.arguments)
            own = window.variant(
                frame=frame, constants=constants, ignore_nulls=call.ignore_nulls, returns=call.type
            )
            arrays[column_name(column)] = self._call(own, call, values[first:last])
        return make_batch(names, [arrays[name] for name in names], batch.num_rows)

    def _call(self, window: WindowInput, call: WindowCall, values: list[pa.Array]) -> pa.Array:
        arguments = values[: len(call.arguments)]
        if not isinstance(call.function, Aggregate):
            return call.function.run(window, *[plain(array) for array in arguments])
        order = values[len(call.arguments) : len(call.arguments) + len(call.order)]
        where = None if call.filter is None else true_of(values[-1])
        return aggregate_over(window, call, arguments, order, where)

    def _input(self, piece: Piece, batch: pa.RecordBatch) -> WindowInput:
        starts = boundaries([batch.column(name) for name in self._partition_names], piece.rows)
        return WindowInput(
            piece.rows, np.append(np.flatnonzero(starts), piece.rows), self._operator.order,
            lambda: tuple(piece.fetch(self._order_names).columns), self._frames[0], self._operator.calls[0][1].type,
            settings=self._context.settings, before=piece.before,
        )  # fmt: skip


def _evaluated(frame: Frame, context: Context) -> EvaluatedFrame:
    """The frame with its offsets as values."""

    def bound(side: FrameBound) -> EvaluatedBound:
        if side.offset is None:
            return EvaluatedBound(side.kind)
        if isinstance(side.offset, Literal):
            return EvaluatedBound(side.kind, side.offset.value, side.offset.type)
        value = to_python(evaluate(side.offset, bare_batch(1), context)[0], side.offset.type)
        return EvaluatedBound(side.kind, value, side.offset.type)

    return EvaluatedFrame(frame.unit, bound(frame.start), bound(frame.end), frame.exclusion)
