"""ORDER BY .. LIMIT without sorting the whole input.

Once a worker has enough rows, the last of them bounds the first key (``top_bound``): later rows beyond it are dropped by one
comparison, which for unsorted input leaves next to none to look at. A scan below drops them before it reads the rest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.kernels.order import top_rows
from lake.exec.operators.base import Breaker, Source
from lake.exec.operators.batches import take_rows
from lake.exec.operators.sort import SortedColumns, SortedRows, directions_of
from lake.exec.operators.top_bound import TopBound
from lake.exec.pipeline import Held
from lake.sql.bound import Column, SortKey

TOP_ROWS_MAX: Final = 1 << 16
"""A limit above this is a Sort: keeping the first rows of every batch saves nothing."""

CANDIDATES_MIN: Final = 64
"""Fewer candidates are not worth a look which of them are still among the first."""


class Candidates(Struct):
    """One worker's rows that may be among the first."""

    batches: list[pa.RecordBatch]
    rows: int = 0


@dataclass(eq=False)
class TopN(Breaker):
    """The rows ``offset`` to ``offset + limit`` in the order of ``keys``.

    bound   what it tells the scan of its first key; None for a key that has no bound
    Memory  for each worker twice ``offset + limit`` rows and a batch
    """

    columns: tuple[Column, ...]
    keys: tuple[SortKey, ...]
    limit: int
    offset: int = 0
    bound: TopBound | None = field(default=None, init=False, repr=False)
    _kept: SortedColumns | None = field(default=None, init=False, repr=False)

    def describe(self) -> str:
        return f"{self.limit} rows"

    is_eager = True

    def __post_init__(self) -> None:
        if TopBound.takes(self.keys[0].expr.type):
            self.bound = TopBound(self.keys[0])

    def start(self, context: Context) -> Candidates:
        if self._kept is None:
            self._kept = SortedColumns(self.columns, self.keys, context)
        return Candidates([])

    def absorb(self, state: Candidates, batch: pa.RecordBatch) -> None:
        assert self._kept is not None
        rows = self._kept.run(batch)
        if self.bound is not None:
            chosen = self.bound.rows(rows.column(self._kept.key_names[0]), None)
            rows = rows if chosen is None else take_rows(rows, chosen)
            if rows.num_rows == 0:
                return
        state.batches.append(rows)
        state.rows += rows.num_rows
        count = self.offset + self.limit
        is_first = self.bound is not None and self.bound.value is None and state.rows >= count > 0
        if is_first or state.rows >= max(2 * count, CANDIDATES_MIN):
            first = self._first(self._kept.join(state.batches))
            state.batches, state.rows = [first], first.num_rows
            if self.bound is not None and first.num_rows == count > 0:
                self.bound.tighten(first.column(self._kept.key_names[0]).slice(count - 1))

    def _first(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The first ``offset + limit`` rows of a batch, in order."""
        assert self._kept is not None
        count = self.offset + self.limit
        return take_rows(batch, top_rows(self._kept.keys_of(batch), directions_of(self.keys), count))

    def merge(self, context: Context, states: Sequence[Candidates]) -> Source:
        assert self._kept is not None
        batches = [batch for state in states for batch in state.batches]
        if not batches:
            return Held(self.columns, [])
        rows = self._first(self._kept.join(batches))
        return SortedRows(self.columns, rows, np.arange(min(self.offset, rows.num_rows), rows.num_rows))
