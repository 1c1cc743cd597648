"""DISTINCT ON: the first row of each key, in the order that the rows arrive in.

When memory is short, the rows kept so far and all that follow are dealt to partitions by key, each in the order of arrival,
and the first rows are found partition by partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.kernels.groups import GroupTable
from lake.exec.memory import Account
from lake.exec.operators.base import Breaker, Morsel, Source
from lake.exec.operators.batches import make_batch, names_of, select_columns, take_rows
from lake.exec.operators.partitions import PARTITIONS, PartitionBuffer
from lake.exec.operators.project import Projection
from lake.exec.operators.recursion import new_rows
from lake.exec.pipeline import Held
from lake.exec.spill import Scratch
from lake.sql.bound import Column, Expr


class FirstRows(Struct):
    """The keys met and the rows kept; once rows are dealt neither, and all of them in the buffer."""

    table: GroupTable
    batches: list[pa.RecordBatch]
    account: Account
    buffer: PartitionBuffer | None = None


@dataclass(eq=False)
class DistinctOn(Breaker):
    """Keeps the first row of each value of ``on``; rows arrive sorted."""

    columns: tuple[Column, ...]
    on: tuple[Expr, ...]
    is_sequential = True
    _context: Context = field(init=False, repr=False)
    _projection: Projection = field(init=False, repr=False)
    _names: list[str] = field(init=False, repr=False)

    def start(self, context: Context) -> FirstRows:
        self._context = context
        self._projection = Projection((*self.on, *self.columns), context)
        self._names = [*(f"k{index}" for index in range(len(self.on))), *names_of(self.columns)]
        return FirstRows(GroupTable(), [], context.budget.open(self.metrics))

    def absorb(self, state: FirstRows, batch: pa.RecordBatch) -> None:
        rows = make_batch(self._names, self._projection.run(batch), batch.num_rows)
        if state.buffer is not None:
            state.buffer.add(rows)
            return
        state.batches += self._first_rows(state.table, rows)
        state.account.set(state.table.nbytes + sum(kept.nbytes for kept in state.batches))
        if state.account.must_spill:
            self._deal(state)

    def _first_rows(self, table: GroupTable, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """The rows, if any, whose keys the table has not seen; it has from here on."""
        found = new_rows(table, rows.select(self._names[: len(self.on)]))
        return (take_rows(rows, found),) if len(found) else ()

    def _deal(self, state: FirstRows) -> None:
        """From here on rows are dealt to partitions, those kept so far before all others."""
        scratch = Scratch(self._context, self.metrics)
        state.account.close()
        state.buffer = PartitionBuffer(lambda: scratch, state.account, range(len(self.on)))
        for kept in state.batches:
            state.buffer.add(kept)
        state.table, state.batches = GroupTable(), []

    def merge(self, context: Context, states: Sequence[FirstRows]) -> Source:
        (state,) = states
        if state.buffer is None:
            return Held(self.columns, [select_columns(batch, self.columns) for batch in state.batches])
        state.buffer.seal()
        return DealtFirstRows(self.columns, self, state.buffer)

    def finish(self, buffer: PartitionBuffer, number: int) -> Iterator[pa.RecordBatch]:
        """The first rows of one partition."""
        table = GroupTable()
        for rows in buffer.read_joined(number):
            for kept in self._first_rows(table, rows):
                yield select_columns(kept, self.columns)
        buffer.drop(number)


@dataclass(eq=False)
class DealtFirstRows(Source):
    """The first rows of keys, partition by partition."""

    columns: tuple[Column, ...]
    operator: DistinctOn
    buffer: PartitionBuffer

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for number in range(PARTITIONS):
            yield lambda number=number: self.operator.finish(self.buffer, number)  # type: ignore[misc]
