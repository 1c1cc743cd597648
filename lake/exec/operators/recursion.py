"""WITH RECURSIVE: the anchor's rows, then rounds of the step over the rows of the round before, until one makes none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lake.exec.context import Context
from lake.exec.kernels.groups import GroupTable
from lake.exec.operators.base import Morsel, Source
from lake.exec.operators.batches import make_batch, names_of, slices, take_rows
from lake.exec.operators.materialize import CteSlot
from lake.exec.pipeline import Flow, answer_flow
from lake.sql.bound import Column


@dataclass(eq=False)
class Recursion(Source):
    """Rounds of a recursive query; each round's batches are answered as it ends.

    anchor, step   flows and their plans' columns, which pair with ``columns`` by position; the step is lowered for each round
    slot           where the step's scan finds the round before
    keeps_all      UNION ALL; without it a row that was made before is dropped
    """

    columns: tuple[Column, ...]
    anchor: Flow
    anchor_columns: tuple[Column, ...]
    lower_step: Callable[[], Flow]
    step_columns: tuple[Column, ...]
    slot: CteSlot
    keeps_all: bool

    def describe(self) -> str:
        return self.slot.name

    def sides(self) -> Sequence[Flow]:
        return (self.anchor,)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        seen = None if self.keeps_all else GroupTable()
        account = context.budget.open(self.metrics)
        batches = self._round(self.anchor, self.anchor_columns, seen, context)
        while batches:
            for batch in batches:
                yield lambda batch=batch: (batch,)  # type: ignore[misc]
            context.cancellation.check()
            self.slot.put(batches)
            account.set(sum(batch.nbytes for batch in batches) + (0 if seen is None else seen.nbytes))
            batches = self._round(self.lower_step(), self.step_columns, seen, context)
        account.close()

    def _round(
        self, flow: Flow, columns: tuple[Column, ...], seen: GroupTable | None, context: Context
    ) -> list[pa.RecordBatch]:
        """A round's rows under this operator's columns, without those seen."""
        wanted, names = names_of(columns), names_of(self.columns)
        rows: list[pa.RecordBatch] = []
        for batch in answer_flow(flow, context):
            named = make_batch(names, [batch.column(name) for name in wanted], batch.num_rows)
            if seen is not None:
                named = take_rows(named, new_rows(seen, named))
            if named.num_rows:
                rows += slices(named)
        return rows


def new_rows(seen: GroupTable, batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """int64: the first row of each kind that the table has not seen; it has from here on."""
    before = seen.count
    numbers = seen.insert(batch.columns)
    highest = np.maximum.accumulate(np.concatenate(([before - 1], numbers[:-1])))
    return np.flatnonzero(numbers > highest)
