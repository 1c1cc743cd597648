"""WITH RECURSIVE: the anchor's rows, then rounds of the step over the rows of the round before, until one makes none.

With USING KEY every row of a round is put into the aggregates of its key, and the answer is what they are at the end.
What a recursion holds stays in memory: one without an end would fill any disk, and ends at the memory of queries instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from lake.exec.context import Context
from lake.exec.kernels.groups import GroupTable
from lake.exec.kernels.views import concat
from lake.exec.memory import Account
from lake.exec.operators.base import Morsel, Source
from lake.exec.operators.batches import make_batch, names_of, slices, take_rows
from lake.exec.operators.materialize import CteSlot
from lake.exec.operators.project import Projection
from lake.exec.operators.tally import Call, make_tally
from lake.exec.pipeline import Flow, answer_flow
from lake.sql import plan
from lake.sql.bound import Column

BATCH_BYTES: Final = 1 << 10
"""About what the objects of a batch take."""


@dataclass(eq=False)
class Recursion(Source):
    """Rounds of a recursive query; each round's batches are answered as it ends, those of a keyed one at the end.

    anchor, step   flows and their plans' columns, which pair with ``columns`` by position; the step is lowered for each round
    slot           where the step's scan finds the round before     so_far   where it finds all that was made, if it looks
    keeps_all      UNION ALL; without it a row that was made before is dropped
    """

    columns: tuple[Column, ...]
    anchor: Flow
    anchor_columns: tuple[Column, ...]
    lower_step: Callable[[], Flow]
    step_columns: tuple[Column, ...]
    slot: CteSlot
    so_far: CteSlot | None
    keeps_all: bool
    keyed: plan.Keyed | None = None

    def describe(self) -> str:
        return self.slot.name

    def sides(self) -> Sequence[Flow]:
        return (self.anchor,)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        if self.keyed is None:
            return self._rounds(context)
        return self._keyed_rounds(KeyedRows(self.keyed, self.columns, context), context)

    def _rounds(self, context: Context) -> Iterator[Morsel]:
        seen = None if self.keeps_all else GroupTable()
        account = context.budget.open(self.metrics)
        batches = self._round(self.anchor, self.anchor_columns, self.columns, Holding(account, seen), context)
        made: list[pa.RecordBatch] = []
        kept_bytes = 0
        while batches:
            for batch in batches:
                yield lambda batch=batch: (batch,)  # type: ignore[misc]
            context.cancellation.check()
            self.slot.put(batches)
            if self.so_far is None:
                kept_bytes = bytes_of(batches)
            else:
                made = [*made, *batches]
                kept_bytes += bytes_of(batches)
                self.so_far.put(made)
            holding = Holding(account, seen, kept_bytes)
            batches = self._round(self.lower_step(), self.step_columns, self.columns, holding, context)
        account.close()

    def _keyed_rounds(self, rows: KeyedRows, context: Context) -> Iterator[Morsel]:
        inputs = rows.keyed.inputs
        account = context.budget.open(self.metrics)
        batches = self._round(self.anchor, self.anchor_columns, inputs, Holding(account), context)
        while batches:
            changed = rows.add(batches)
            if not self.keeps_all:
                batches = list(slices(changed)) if changed.num_rows else []
            if not batches:
                break
            context.cancellation.check()
            self.slot.put(batches)
            if self.so_far is not None:
                self.so_far.put([rows.batch])
            holding = Holding(account, None, bytes_of(batches) + rows.batch.nbytes)
            batches = self._round(self.lower_step(), self.step_columns, inputs, holding, context)
        account.close()
        for batch in slices(rows.batch):
            yield lambda batch=batch: (batch,)  # type: ignore[misc]

    def _round(
        self, flow: Flow, columns: tuple[Column, ...], outputs: tuple[Column, ...], holding: Holding, context: Context
    ) -> list[pa.RecordBatch]:
        """A round's rows under ``outputs``, without those seen."""
        wanted, names = names_of(columns), names_of(outputs)
        rows: list[pa.RecordBatch] = []
        for batch in answer_flow(flow, context):
            named = make_batch(names, [batch.column(name) for name in wanted], batch.num_rows)
            if holding.seen is not None:
                named = take_rows(named, new_rows(holding.seen, named))
            if named.num_rows:
                rows += slices(named)
                holding.grow(bytes_of([named]))
        return rows


class Holding:
    """What a recursion holds while a round runs: ``kept`` bytes of earlier rounds, the rows ``seen``, and the round's own."""

    def __init__(self, account: Account, seen: GroupTable | None = None, kept: int = 0) -> None:
        self.seen = seen
        self._account = account
        self._kept = kept
        self.grow(0)

    def grow(self, size: int) -> None:
        """Says that so many bytes more are held. 53200 where that is too much."""
        self._kept += size
        self._account.hold(self._kept + (0 if self.seen is None else self.seen.nbytes), "a recursive query")


def bytes_of(batches: Sequence[pa.RecordBatch]) -> int:
    """What batches hold, those of a row or two as well, which are mostly objects around it."""
    return sum(batch.nbytes + BATCH_BYTES for batch in batches)


class KeyedRows:
    """One row a key, in the order in which keys came; ``batch`` holds them under the recursion's columns."""

    def __init__(self, keyed: plan.Keyed, columns: tuple[Column, ...], context: Context) -> None:
        self.keyed = keyed
        self._columns = columns
        self._table = GroupTable()
        exprs = [expr for _, call in keyed.calls for expr in call.arguments]
        self._projection = Projection([*(keyed.inputs[place] for place in keyed.keys), *exprs], context)
        self._tallies = []
        first = len(keyed.keys)
        for _, call in keyed.calls:
            places = tuple(range(first, first + len(call.arguments)))
            self._tallies.append(make_tally(Call(call, places, None, ()), context.settings))
            first += len(call.arguments)
        self.batch = self._finished()

    def add(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Puts rows in; answers those of the keys whose row is another one than before."""
        before, touched = self.batch, []
        for batch in batches:
            values = self._projection.run(batch)
            numbers = self._table.insert(values[: len(self.keyed.keys)])
            named = make_batch([f"i{place}" for place in range(len(values))], values, batch.num_rows)
            for tally in self._tallies:
                tally.update(np.ascontiguousarray(numbers), self._table.count, named)
            touched.append(np.asarray(numbers))
        self.batch = self._finished()
        rows = np.unique(np.concatenate(touched))
        old = rows[rows < before.num_rows]
        same = old[_equal_rows(take_rows(before, old), take_rows(self.batch, old))]
        return take_rows(self.batch, np.setdiff1d(rows, same))

    def _finished(self) -> pa.RecordBatch:
        count = self._table.count
        arrays: dict[int, pa.Array] = {}
        keys = self._table.keys() if count else [pa.nulls(0, self._columns[place].type.physical) for place in self.keyed.keys]
        arrays.update(zip(self.keyed.keys, keys, strict=True))
        for (place, _), tally in zip(self.keyed.calls, self._tallies, strict=True):
            arrays[place] = tally.finish(count)
        return make_batch(names_of(self._columns), [arrays[place] for place in range(len(self._columns))], count)


def _equal_rows(one: pa.RecordBatch, other: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """bool[rows]: which rows are the same in both; NULL equals NULL."""
    table = GroupTable()
    columns = [concat([left, right]) for left, right in zip(one.columns, other.columns, strict=True)]
    numbers = np.asarray(table.insert(columns))
    return numbers[: one.num_rows] == numbers[one.num_rows :]  # type: ignore[no-any-return]


def new_rows(seen: GroupTable, batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """int64: the first row of each kind that the table has not seen; it has from here on."""
    before = seen.count
    numbers = seen.insert(batch.columns)
    highest = np.maximum.accumulate(np.concatenate(([before - 1], numbers[:-1])))
    return np.flatnonzero(numbers > highest)
