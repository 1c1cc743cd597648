"""LIMIT, OFFSET, FETCH .. PERCENT and WITH TIES: a source that asks the flow below for no more than it needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lake.errors import InvalidParameter
from lake.exec.context import Context
from lake.exec.evaluate import evaluate
from lake.exec.kernels.views import true_of
from lake.exec.operators.base import Morsel, Source
from lake.exec.operators.batches import bare_batch, constant_column, make_batch
from lake.exec.pipeline import Flow, answer_flow
from lake.sql.bound import Column, Compare, Expr, SortKey
from lake.types import Decimal, Float


@dataclass(eq=False)
class Limit(Source):
    """The rows ``offset`` to ``offset + limit`` of a flow, in its order; closing stops the flow's workers."""

    columns: tuple[Column, ...]
    flow: Flow
    limit: Expr | None
    offset: Expr | None
    is_percent: bool = False
    ties: tuple[SortKey, ...] = ()
    _first: int = field(default=0, init=False)
    _count: float | None = field(default=None, init=False)

    def sides(self) -> tuple[Flow, ...]:
        return (self.flow,)

    def open(self, context: Context) -> Source:
        self._first = int(_constant(self.offset, "OFFSET", context) or 0)
        self._count = _constant(self.limit, "LIMIT", context)
        return self

    def rows_expected(self) -> int | None:
        return None if self._count is None or self.is_percent or self.ties else int(self._count)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        if self._count is None:
            rows = _skip(answer_flow(self.flow, context), self._first)
        elif self.is_percent:
            rows = self._percent(context)
        elif self._count == 0:
            return
        else:
            rows = self._take(answer_flow(self.flow, context), int(self._count), context)
        try:
            for batch in rows:
                yield lambda batch=batch: (batch,)  # type: ignore[misc]
        finally:
            rows.close()

    def _percent(self, context: Context) -> Any:
        """A percentage of all rows, rounded down as DuckDB does; they must be counted before the first is answered."""
        batches = list(answer_flow(self.flow, context))
        assert self._count is not None
        share = math.floor(sum(batch.num_rows for batch in batches) * self._count / 100.0)
        return self._take((batch for batch in batches), share, context)

    def _take(self, batches: Any, count: int, context: Context) -> Iterator[pa.RecordBatch]:
        last: pa.RecordBatch | None = None
        skipped = _skip(batches, self._first)
        try:
            for batch in skipped:
                kept = batch.slice(0, count)
                count -= kept.num_rows
                if kept.num_rows:
                    last = kept.slice(kept.num_rows - 1)
                    yield kept
                if count > 0:
                    continue
                if not self.ties or last is None:
                    return
                rest = batch.slice(kept.num_rows)
                tied = self._tied(rest, last, context)
                if tied:
                    yield rest.slice(0, tied)
                if tied < rest.num_rows:
                    return
        finally:
            skipped.close()

    def _tied(self, batch: pa.RecordBatch, last: pa.RecordBatch, context: Context) -> int:
        """How many rows at the start of ``batch`` are equal in order to ``last``."""
        if batch.num_rows == 0:
            return 0
        same = np.ones(batch.num_rows, np.bool_)
        for key in self.ties:
            left = Column(key.expr.type, 0, "")
            right = Column(key.expr.type, 1, "")
            value = evaluate(key.expr, last, context)
            pair = make_batch(
                ["c0", "c1"],
                [evaluate(key.expr, batch, context), constant_column(value[0], batch.num_rows)],
                batch.num_rows,
            )
            same &= true_of(evaluate(Compare.of("is not distinct", left, right), pair, context))
        return batch.num_rows if same.all() else int(np.argmin(same))


def _skip(batches: Any, count: int) -> Any:
    try:
        for batch in batches:
            if count >= batch.num_rows:
                count -= batch.num_rows
                continue
            yield batch.slice(count) if count else batch
            count = 0
    finally:
        batches.close()


def _constant(expr: Expr | None, clause: str, context: Context) -> float | None:
    """The value of LIMIT or OFFSET; None for NULL and where there is none."""
    if expr is None:
        return None
    value = evaluate(expr, bare_batch(1), context)[0].as_py()
    if value is None:
        return None
    if isinstance(expr.type, Decimal):
        value = value / 10**expr.type.scale if expr.type.is_short else float(value)
    if value < 0:
        raise InvalidParameter(f"{clause} must not be negative")
    return float(value) if isinstance(expr.type, Float | Decimal) else int(value)
