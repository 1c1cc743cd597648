"""ORDER BY .. LIMIT without sorting the whole input.

Once a worker has enough rows, the last of them bounds the first key: rows of later batches beyond it are dropped by one
comparison, which for unsorted input leaves next to none to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.kernels.order import top_rows
from lake.exec.kernels.views import is_fixed, valid_of, values_of
from lake.exec.operators.base import Breaker, Source
from lake.exec.operators.batches import filter_rows, take_rows
from lake.exec.operators.sort import SortedColumns, SortedRows, directions_of
from lake.exec.pipeline import Held
from lake.sql.bound import Column, SortKey

TOP_ROWS_MAX: Final = 1 << 16
"""A limit above this is a Sort: keeping the first rows of every batch saves nothing."""

KEPT_ROWS: Final = 1 << 13
"""Candidates that a worker gathers before it looks which of them are still among the first."""


class Candidates(Struct):
    """One worker's rows that may be among the first.

    bound  the first key of the last row of as many as are wanted, as kernels see it; None before there are so many
    """

    batches: list[pa.RecordBatch]
    rows: int = 0
    bound: Any = None


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
        rows = self._kept.run(batch)
        if state.bound is not None:
            rows = self._within(state.bound, rows)
            if rows.num_rows == 0:
                return
        state.batches.append(rows)
        state.rows += rows.num_rows
        if state.rows >= KEPT_ROWS + 2 * (self.offset + self.limit):
            first = self._first(self._kept.join(state.batches))
            state.batches, state.rows = [first], first.num_rows
            state.bound = self._bound(first)

    def _first(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The first ``offset + limit`` rows of a batch, in order."""
        assert self._kept is not None
        count = self.offset + self.limit
        return take_rows(batch, top_rows(self._kept.keys_of(batch), directions_of(self.keys), count))

    def _bound(self, first: pa.RecordBatch) -> Any:
        """The first key of the last of enough rows, in order; None where it bounds nothing."""
        assert self._kept is not None
        if first.num_rows < max(self.offset + self.limit, 1):
            return None
        last = first.column(self._kept.key_names[0]).slice(first.num_rows - 1)
        if not is_fixed(last.type) or pa.types.is_floating(last.type) or last.null_count:
            return None
        return values_of(last)[0]

    def _within(self, bound: Any, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows that do not come after the bound by their first key."""
        assert self._kept is not None
        key = rows.column(self._kept.key_names[0])
        values, valid = values_of(key), valid_of(key)
        kept = values >= bound if self.keys[0].descending else values <= bound
        if valid is not None:
            kept = np.where(valid == 1, kept, self.keys[0].nulls_first)
        return filter_rows(rows, kept)

    def merge(self, context: Context, states: Sequence[Candidates]) -> Source:
        assert self._kept is not None
        batches = [batch for state in states for batch in state.batches]
        if not batches:
            return Held(self.columns, [])
        rows = self._first(self._kept.join(batches))
        return SortedRows(self.columns, rows, np.arange(min(self.offset, rows.num_rows), rows.num_rows))
