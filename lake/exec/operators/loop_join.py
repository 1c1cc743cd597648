"""Joins without an equality: every pair of rows, in blocks, each tested at once. Cross products too.

    LoopJoin LEFT  a.at BETWEEN b.start AND b.end
    ├─ Scan a       streams through
    └─ Scan b       held in memory
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lake.errors import CardinalityViolation
from lake.exec.context import Cancellation, Context
from lake.exec.memory import Account
from lake.exec.operators.base import Stream
from lake.exec.operators.batches import concat_batches
from lake.exec.operators.gather import Gather
from lake.exec.operators.null_pairs import NullPairs
from lake.exec.operators.pairing import (
    ANSWERS_PROBE,
    DROPS_UNMATCHED,
    KEEPS_BUILD,
    BuildRows,
    Pairing,
    Pairs,
    cross_pairs,
)
from lake.exec.pipeline import Flow, Held, break_flow
from lake.exec.selection import Selector
from lake.sql.bound import Column, Expr, columns_of
from lake.sql.plan import JoinKind


@dataclass(eq=False)
class LoopJoin(Stream):
    """A join of any kind over any conditions; the fields are those of HashJoin."""

    columns: tuple[Column, ...]
    kind: JoinKind
    conditions: tuple[Expr, ...]
    build_flow: Flow
    probe: tuple[Column, ...]
    build: tuple[Column, ...]
    kept: tuple[Column, ...]
    through: tuple[Column, ...]
    mark: Column | None = None
    mark_nulls: bool = False
    _rows: BuildRows = field(init=False, repr=False)
    _cancellation: Cancellation = field(init=False, repr=False)
    _pairing: Pairing = field(init=False, repr=False)
    _account: Account = field(init=False, repr=False)
    _nulls: NullPairs | None = field(default=None, init=False, repr=False)

    def describe(self) -> str:
        return f"{self.kind.name} on {len(self.conditions)} conditions"

    def sides(self) -> Sequence[Flow]:
        return (self.build_flow,)

    def open(self, context: Context) -> None:
        used = columns_of(self.conditions)
        self._cancellation = context.cancellation
        self._pairing = Pairing(
            self.kind, self.probe, self.build, self.mark, Selector(self.conditions, context) if self.conditions else None,
            tuple(column for column in self.through if column.id in used),
            tuple(column for column in self.kept if column.id in used),
        )  # fmt: skip
        held = break_flow(self.build_flow, Gather(self.build_flow.columns), context)
        assert isinstance(held, Held)
        batch = concat_batches(held.batches, self.kept)
        self._rows = BuildRows(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows)
        self._account = context.budget.open(self.metrics)
        self._account.set(batch.nbytes)
        if self.kind is JoinKind.MARK and self.mark_nulls and self.conditions:
            self._nulls = NullPairs((), self.conditions, (), context)

    def is_done(self) -> bool:
        return self.kind in DROPS_UNMATCHED and self._rows.rows == 0

    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        if not self.conditions and self.kind in ANSWERS_PROBE:
            return (self._pairing.probe_rows(batch, np.full(batch.num_rows, self._rows.rows > 0)),)
        if not self.conditions and self._rows.rows == 1:
            return self._beside_one(batch)
        if self._nulls is not None:
            return (self._mark(self._nulls, batch),)
        return self._pairing.answer(batch, self._rows, self._pairs(batch))

    def _pairs(self, batch: pa.RecordBatch) -> Iterator[Pairs]:
        if self.kind is JoinKind.SINGLE and not self.conditions and self._rows.rows > 1:
            raise CardinalityViolation("more than one row returned by a subquery used as an expression")
        return self._watched(cross_pairs(np.arange(batch.num_rows), np.arange(self._rows.rows)))

    def _watched(self, pairs: Iterator[Pairs]) -> Iterator[Pairs]:
        """The pairs, until the query is stopped: one batch of the probe side can make very many."""
        for pair in pairs:
            self._cancellation.check()
            yield pair

    def _beside_one(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The product with one build row: a scalar subquery's value beside every row."""
        if self.kind in KEEPS_BUILD:
            self._rows.marks[:] = 1
        yield self._pairing.rows(batch, self._rows, np.arange(batch.num_rows), np.zeros(batch.num_rows, np.int64))

    def _mark(self, nulls: NullPairs, batch: pa.RecordBatch) -> pa.RecordBatch:
        matched = np.zeros(batch.num_rows, np.bool_)
        for probe_rows, _ in self._pairing.test(batch, self._rows, self._pairs(batch)):
            matched[probe_rows] = True
        unknown = nulls.unknown(batch, self._rows, (), matched, self._lone_pairs(matched))
        return self._pairing.probe_rows(batch, matched, unknown)

    def _lone_pairs(self, matched: Any) -> Iterator[Pairs]:
        return cross_pairs(np.flatnonzero(~matched), np.arange(self._rows.rows))

    def finish(self, states: Sequence[Any]) -> Iterable[pa.RecordBatch]:
        if self.kind in KEEPS_BUILD:
            yield from self._pairing.lone_build_rows(self._rows)
        self._account.close()
