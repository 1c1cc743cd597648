"""VALUES, and the one empty row that SELECT without FROM reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lake.exec.context import Context
from lake.exec.evaluate import evaluate
from lake.exec.operators.base import MORSEL_ROWS, Morsel, Source, column_name
from lake.exec.operators.batches import bare_batch, concat_columns, make_batch
from lake.sql.bound import Column, Expr, Literal
from lake.types import Bytes, Date, Decimal, Float, Integer, Text, Type


@dataclass(eq=False)
class Values(Source):
    """Rows of expressions; ``columns`` are those of ``positions`` in the rows."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Expr, ...], ...]
    positions: tuple[int, ...]

    def describe(self) -> str:
        return f"{len(self.rows)} rows"

    def rows_expected(self) -> int:
        return len(self.rows)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for start in range(0, len(self.rows), MORSEL_ROWS):
            rows = self.rows[start : start + MORSEL_ROWS]
            yield lambda rows=rows: (self.batch(rows, context),)  # type: ignore[misc]

    def batch(self, rows: tuple[tuple[Expr, ...], ...], context: Context) -> pa.RecordBatch:
        """The values of some of the rows."""
        arrays = [
            _column([row[position] for row in rows], column.type, context)
            for position, column in zip(self.positions, self.columns, strict=True)
        ]
        return make_batch([column_name(column) for column in self.columns], arrays, len(rows))


def _column(exprs: list[Expr], type: Type, context: Context) -> pa.Array:
    """The values of expressions that use no column."""
    if isinstance(type, Integer | Float | Text | Bytes | Date) or (isinstance(type, Decimal) and type.is_short):
        literals = [expr.value for expr in exprs if isinstance(expr, Literal)]
        if len(literals) == len(exprs):
            return pa.array(literals, type.physical)
    one = bare_batch(1)
    return concat_columns([evaluate(expr, one, context) for expr in exprs])
