"""OVER (..): rows sorted by partition and order, cut where partitions end, and one value computed for each row.

    SELECT sum(x) OVER (PARTITION BY g ORDER BY t)      rows sorted by g, t     partition_start   peer_start
                                                        g=1 t=1                       0               0
                                                        g=1 t=2                       0               1
                                                        g=1 t=2                       0               1
                                                        g=2 t=1                       3               3

Some whole partitions make a morsel, so workers compute different partitions side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.constants import to_python
from lake.exec.context import Context
from lake.exec.evaluate import evaluate
from lake.exec.kernels.order import boundaries
from lake.exec.kernels.views import plain, true_of
from lake.exec.operators.base import Breaker, Morsel, Source, column_name
from lake.exec.operators.batches import bare_batch, make_batch, names_of, slices
from lake.exec.operators.project import Projection
from lake.exec.operators.sort import InOrder, Sort, SortedColumns, SortedRows, SortState, fetch
from lake.exec.operators.window_aggregate import aggregate_over
from lake.exec.operators.window_input import EvaluatedBound, EvaluatedFrame, WindowInput
from lake.exec.pipeline import Held
from lake.sql.bound import Column, Expr, Frame, FrameBound, Literal, SortKey, WindowCall
from lake.sql.registry import Aggregate

__all__ = ["EvaluatedBound", "EvaluatedFrame", "Window", "WindowInput"]

CHUNK_ROWS: Final = 1 << 17
"""Rows of whole partitions that make one morsel; a partition is never divided."""


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
        chunks = Chunks(kept, len(self.partition))
        if isinstance(source, SortedRows):
            pieces = chunks.of_rows(source)
        else:
            # Without rows, or without keys to sort them by, what was held is in order as it is.
            assert isinstance(source, InOrder | Held)
            pieces = chunks.of_batches(source.batches)
        return WindowRows(self.columns, pieces, Computation(self, kept, context))


class Chunks:
    """Cuts sorted rows between partitions into pieces of about CHUNK_ROWS."""

    def __init__(self, kept: SortedColumns, partition_keys: int) -> None:
        self._kept = kept
        self._key_names = kept.key_names[:partition_keys]

    def of_rows(self, source: SortedRows) -> Iterator[Any]:
        """Pieces of rows in memory, each a call that fetches them."""
        rows, order = source.rows, source.order
        if not self._key_names:
            yield lambda: fetch(rows, order)
            return
        indices = pa.array(order)
        marks = boundaries([rows.column(name).take(indices) for name in self._key_names], len(order))
        starts = np.append(np.flatnonzero(marks), len(order))
        first = 0
        while first < len(order):
            wanted = int(np.searchsorted(starts, min(first + CHUNK_ROWS, len(order))))
            stop = int(starts[wanted])
            yield lambda first=first, stop=stop: fetch(rows, order[first:stop])
            first = stop

    def of_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
        """Pieces of rows that come batch by batch."""
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            cut = self._last_start(waiting, batch)
            if cut is None or sum(item.num_rows for item in waiting) + cut < CHUNK_ROWS:
                waiting.append(batch)
                continue
            piece = self._kept.join([*waiting, batch.slice(0, cut)])
            waiting = [batch.slice(cut)]
            yield lambda piece=piece: piece
        if waiting:
            yield lambda: self._kept.join(waiting)

    def _last_start(self, waiting: list[pa.RecordBatch], batch: pa.RecordBatch) -> int | None:
        """Where in ``batch`` the last partition begins that begins in it."""
        if not waiting or not self._key_names:
            return None
        before = waiting[-1].slice(waiting[-1].num_rows - 1)
        both = self._kept.join([before, batch])
        marks = boundaries([both.column(name) for name in self._key_names], both.num_rows)
        starts = np.flatnonzero(marks[1:])
        return int(starts[-1]) if len(starts) else None


@dataclass(eq=False)
class WindowRows(Source):
    """Pieces of sorted rows with the calls' values beside them."""

    columns: tuple[Column, ...]
    pieces: Iterator[Any]
    computation: Computation

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for piece in self.pieces:
            yield lambda piece=piece: slices(self.computation.run(piece()))  # type: ignore[misc]


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

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch, which holds whole partitions in order, with the calls' values."""
        window = self._input(batch)
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

    def _input(self, batch: pa.RecordBatch) -> WindowInput:
        rows = batch.num_rows
        starts = boundaries([batch.column(name) for name in self._partition_names], rows)
        order = tuple(batch.column(name) for name in self._order_names)
        changes = starts | boundaries(order, rows)
        return WindowInput(
            rows, np.append(np.flatnonzero(starts), rows), np.append(np.flatnonzero(changes), rows),
            self._operator.order, order, self._frames[0], self._operator.calls[0][1].type,
            settings=self._context.settings,
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
