"""Expressions to columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lake.exec.context import Context
from lake.exec.evaluate import Program
from lake.exec.operators.base import Stream, column_name
from lake.exec.operators.batches import make_batch
from lake.sql.bound import Column, Expr


class Projection:
    """Expressions over batches, made once for all workers; plain columns are passed on as they are.

    narrow  positions of decimals that may come out as scaled int64 though their physical type is wider (``exec.decimals``)
    """

    def __init__(self, exprs: Sequence[Expr], context: Context, *, narrow: frozenset[int] = frozenset()) -> None:
        self._names = [column_name(expr) if isinstance(expr, Column) else None for expr in exprs]
        computed = [place for place, expr in enumerate(exprs) if not isinstance(expr, Column)]
        may_stay = frozenset(index for index, place in enumerate(computed) if place in narrow)
        self._program = Program([exprs[place] for place in computed], context, narrow=may_stay) if computed else None

    def run(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The expressions' values for each row."""
        if self._program is None:
            return [batch.column(name) for name in self._names]
        values = iter(self._program.run(batch))
        return [next(values) if name is None else batch.column(name) for name in self._names]


@dataclass(eq=False)
class Project(Stream):
    """Computes an expression for each of ``columns``; a column that is passed on is not copied."""

    columns: tuple[Column, ...]
    exprs: tuple[Expr, ...]
    _projection: Projection = field(init=False, repr=False)
    _names: list[str] = field(init=False, repr=False)

    def open(self, context: Context) -> None:
        self._projection = Projection(self.exprs, context)
        self._names = [column_name(column) for column in self.columns]

    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        return (make_batch(self._names, self._projection.run(batch), batch.num_rows),)
