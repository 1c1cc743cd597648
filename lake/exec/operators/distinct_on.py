"""DISTINCT ON: the first row of each key, in the order that the rows arrive in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.kernels.groups import GroupTable
from lake.exec.memory import Account
from lake.exec.operators.base import Breaker, Source
from lake.exec.operators.batches import make_batch, select_columns, take_rows
from lake.exec.operators.project import Projection
from lake.exec.operators.recursion import new_rows
from lake.exec.pipeline import Held
from lake.sql.bound import Column, Expr


class FirstRows(Struct):
    """The keys met, and the rows kept."""

    table: GroupTable
    batches: list[pa.RecordBatch]
    account: Account


@dataclass(eq=False)
class DistinctOn(Breaker):
    """Keeps the first row of each value of ``on``; rows arrive sorted."""

    columns: tuple[Column, ...]
    on: tuple[Expr, ...]
    is_sequential = True
    _projection: Projection = field(init=False, repr=False)

    def start(self, context: Context) -> FirstRows:
        self._projection = Projection(self.on, context)
        return FirstRows(GroupTable(), [], context.budget.open(self.metrics))

    def absorb(self, state: FirstRows, batch: pa.RecordBatch) -> None:
        keys = self._projection.run(batch)
        rows = new_rows(state.table, make_batch([f"k{index}" for index in range(len(keys))], keys, batch.num_rows))
        if len(rows):
            state.batches.append(take_rows(select_columns(batch, self.columns), rows))
        state.account.hold(state.table.nbytes + sum(kept.nbytes for kept in state.batches), "DISTINCT ON")

    def merge(self, context: Context, states: Sequence[FirstRows]) -> Source:
        return Held(self.columns, [batch for state in states for batch in state.batches])
