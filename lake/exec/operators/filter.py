"""Rows for which every conjunct is true."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lake.exec.context import Context
from lake.exec.operators.base import Stream
from lake.exec.operators.batches import keep_rows, select_columns
from lake.exec.selection import Selector
from lake.sql.bound import Column, Expr


@dataclass(eq=False)
class Filter(Stream):
    """Keeps rows; answers ``columns``, which the conjuncts' own columns need not be among."""

    columns: tuple[Column, ...]
    conjuncts: tuple[Expr, ...]
    _selector: Selector = field(init=False, repr=False)

    def open(self, context: Context) -> None:
        self._selector = Selector(self.conjuncts, context)

    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        rows = self._selector.rows(batch)
        kept = select_columns(batch, self.columns)
        return (kept if rows is None else keep_rows(kept, rows),)
