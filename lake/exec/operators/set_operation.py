"""UNION ALL as a source that runs one side after the other; INTERSECT and EXCEPT by counting rows of each kind and side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.kernels.groups import GroupTable
from lake.exec.kernels.views import values_of
from lake.exec.memory import Account
from lake.exec.operators.base import Breaker, Morsel, Source
from lake.exec.operators.batches import bare_batch, make_batch, names_of, slices, take_rows
from lake.exec.operators.filter import Filter
from lake.exec.operators.project import Project
from lake.exec.pipeline import Flow, Held, answer_flow
from lake.sql.bound import Column
from lake.sql.plan import SetKind

SIDE: Final = "side"
"""The name of the column that says which side a row is of: 0 or 1."""


@dataclass(eq=False)
class UnionAll(Source):
    """The rows of both sides; ``sides_in`` are flows and their columns, which pair with ``columns`` by position.

    tagged  a column SIDE is added
    """

    columns: tuple[Column, ...]
    sides_in: tuple[tuple[Flow, tuple[Column, ...]], ...]
    tagged: bool = False
    _opened: list[Flow] = field(default_factory=list, init=False, repr=False)

    def sides(self) -> Sequence[Flow]:
        return tuple(flow for flow, _ in self.sides_in)

    def open(self, context: Context) -> Source:
        self._opened = [flow.open(context) if _is_plain(flow) else flow for flow, _ in self.sides_in]
        return self

    def rows_expected(self) -> int | None:
        if not all(_is_plain(flow) for flow, _ in self.sides_in):
            return None
        counts = [flow.source.rows_expected() for flow in self._opened]
        return None if None in counts else sum(count for count in counts if count is not None)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for number, (flow, (_, columns)) in enumerate(zip(self._opened, self.sides_in, strict=True)):
            if _is_plain(flow):
                for morsel in flow.source.morsels(context):
                    yield lambda morsel=morsel, flow=flow, columns=columns, number=number: (  # type: ignore[misc]
                        self._renamed(batch, columns, number) for batch in _through(flow, morsel)
                    )
                continue
            batches = answer_flow(flow, context)
            try:
                for batch in batches:
                    renamed = self._renamed(batch, columns, number)
                    yield lambda renamed=renamed: (renamed,)  # type: ignore[misc]
            finally:
                batches.close()  # type: ignore[attr-defined]

    def _renamed(self, batch: pa.RecordBatch, columns: tuple[Column, ...], number: int) -> pa.RecordBatch:
        arrays = [batch.column(name) for name in names_of(columns)]
        names = names_of(self.columns)
        if self.tagged:
            arrays.append(pa.array(np.full(batch.num_rows, number, np.int64)))
            names.append(SIDE)
        return make_batch(names, arrays, batch.num_rows)


def _is_plain(flow: Flow) -> bool:
    """Whether a flow's streams work row by row and have nothing to say at the end."""
    return all(isinstance(stream, Filter | Project) for stream in flow.streams)


def _through(flow: Flow, morsel: Morsel) -> Iterator[pa.RecordBatch]:
    batches = iter(morsel())
    for stream in flow.streams:
        batches = _applied(stream, batches)
    return batches


def _applied(stream: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            for made in stream.apply(None, batch):
                stream.metrics.rows += made.num_rows
                yield made


class RowCounts(Struct):
    """Rows numbered by kind, and how many of each kind each side has: int64[kinds, 2]."""

    table: GroupTable
    counts: Any
    account: Account


@dataclass(eq=False)
class CountedRows(Breaker):
    """INTERSECT and EXCEPT, with or without ALL, over a tagged UnionAll."""

    columns: tuple[Column, ...]
    kind: SetKind
    keeps_all: bool

    def describe(self) -> str:
        return self.kind.name + (" ALL" if self.keeps_all else "")

    def start(self, context: Context) -> RowCounts:
        return RowCounts(GroupTable(), np.zeros((0, 2), np.int64), context.budget.open(self.metrics))

    def absorb(self, state: RowCounts, batch: pa.RecordBatch) -> None:
        sides = values_of(batch.column(SIDE))
        keys = [batch.column(name) for name in names_of(self.columns)]
        numbers = state.table.insert(keys) if keys else np.zeros(batch.num_rows, np.int64)
        for side in (0, 1):
            self._add(state, numbers[sides == side], side, None)
        state.account.hold(state.table.nbytes + state.counts.nbytes, self.kind.name)

    def _add(self, state: RowCounts, numbers: Any, side: int, weights: Any) -> None:
        kinds = state.table.count if self.columns else 1
        if len(state.counts) < kinds:
            state.counts = np.concatenate((state.counts, np.zeros((kinds - len(state.counts), 2), np.int64)))
        state.counts[:, side] += np.bincount(numbers, weights, kinds).astype(np.int64)

    def merge(self, context: Context, states: Sequence[RowCounts]) -> Source:
        first = states[0]
        for state in states[1:]:
            if not len(state.counts):
                continue
            mapping = first.table.merge(state.table) if self.columns else np.zeros(1, np.int64)
            for side in (0, 1):
                self._add(first, mapping, side, state.counts[:, side])
            state.account.close()
        if not len(first.counts):
            return Held(self.columns, [])
        rows = np.repeat(np.arange(len(first.counts)), self._times(first.counts[:, 0], first.counts[:, 1]))
        if not self.columns:
            return Held(self.columns, [bare_batch(len(rows))])
        kinds = make_batch(names_of(self.columns), first.table.keys(), first.table.count)
        return Held(self.columns, list(slices(take_rows(kinds, rows))))

    def _times(self, left: Any, right: Any) -> Any:
        """How often each kind of row is answered."""
        if self.kind is SetKind.INTERSECT:
            times = np.minimum(left, right)
        elif self.keeps_all:
            times = np.maximum(left - right, 0)
        else:
            times = np.where(right == 0, left, 0)
        return times if self.keeps_all else np.minimum(times, 1)
