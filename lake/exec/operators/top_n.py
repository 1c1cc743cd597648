"""ORDER BY .. LIMIT without sorting the whole input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from lake.exec.context import Context
from lake.exec.kernels.order import sort_rows, top_rows
from lake.exec.operators.base import Breaker, Source
from lake.exec.operators.batches import take_rows
from lake.exec.operators.sort import SortedColumns, SortedRows, directions_of
from lake.exec.pipeline import Held
from lake.sql.bound import Column, SortKey

TOP_ROWS_MAX: Final = 1 << 16
"""A limit above this is a Sort: keeping the first rows of every batch saves nothing."""

KEPT_ROWS: Final = 1 << 15
"""Candidates that a worker gathers before it looks which of them are still among the first."""


@dataclass(slots=True)
class Candidates:
    """One worker's rows that may be among the first."""

    batches: list[pa.RecordBatch]
    rows: int = 0


@dataclass(eq=False)
class TopN(Breaker):
    """The rows ``offset`` to ``offset + limit`` in the order of ``keys``.

    Memory  for each worker ``offset + limit`` rows and some KEPT_ROWS more
    """

    columns: tuple[Column, ...]
    keys: tuple[SortKey, ...]
    limit: int
    offset: int = 0
    _kept: SortedColumns | None = field(default=None, init=False, repr=False)

    def describe(self) -> str:
        return f"{self.limit} rows"

    def start(self, context: Context) -> Candidates:
        if self._kept is None:
            self._kept = SortedColumns(self.columns, self.keys, context)
        return Candidates([])

    def absorb(self, state: Candidates, batch: pa.RecordBatch) -> None:
        assert self._kept is not None
        first = self._first(self._kept.run(batch))
        state.batches.append(first)
        state.rows += first.num_rows
        if state.rows >= KEPT_ROWS + 2 * (self.offset + self.limit):
            state.batches = [self._first(self._kept.join(state.batches))]
            state.rows = state.batches[0].num_rows

    def _first(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that are among its first ``offset + limit``."""
        assert self._kept is not None
        count = self.offset + self.limit
        if batch.num_rows <= count:
            return batch
        return take_rows(batch, top_rows(self._kept.keys_of(batch), directions_of(self.keys), count))

    def merge(self, context: Context, states: Sequence[Candidates]) -> Source:
        assert self._kept is not None
        batches = [batch for state in states for batch in state.batches]
        if not batches:
            return Held(self.columns, [])
        rows = self._first(self._kept.join(batches))
        order = sort_rows(self._kept.keys_of(rows), directions_of(self.keys))
        return SortedRows(self.columns, rows, order[self.offset : self.offset + self.limit])
