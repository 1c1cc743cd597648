"""Batches kept as they are: the rows of a WITH query, the inner side of a loop join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.memory import Account
from lake.exec.operators.base import Breaker, Morsel, Source
from lake.exec.operators.batches import names_of
from lake.exec.pipeline import Held
from lake.exec.spill import Scratch, SpillFile
from lake.sql.bound import Column


class Kept(Struct):
    """One worker's batches, those written to disk first."""

    batches: list[pa.RecordBatch]
    account: Account
    file: SpillFile | None = None


@dataclass(eq=False)
class Gather(Breaker):
    """Keeps all batches; with ``may_spill`` on disk when memory is short."""

    columns: tuple[Column, ...]
    may_spill: bool = False
    _context: Context = field(init=False, repr=False)
    _scratch: Scratch | None = field(default=None, init=False, repr=False)

    def start(self, context: Context) -> Kept:
        self._context = context
        return Kept([], context.budget.open(self.metrics))

    def absorb(self, state: Kept, batch: pa.RecordBatch) -> None:
        state.batches.append(batch)
        state.account.grow(batch.nbytes)
        if self.may_spill and self.columns and state.account.must_spill:
            self._spill(state)

    def _spill(self, state: Kept) -> None:
        if state.file is None:
            if self._scratch is None:
                self._scratch = Scratch(self._context, self.metrics)
            state.file = self._scratch.create("kept")
        for batch in state.batches:
            state.file.write(batch.select(names_of(self.columns)))
        state.batches.clear()
        state.account.set(0)

    def merge(self, context: Context, states: Sequence[Kept]) -> Source:
        batches = [batch for state in states for batch in state.batches]
        files = [state.file for state in states if state.file is not None]
        if not files:
            return Held(self.columns, batches)
        return HeldOnDisk(self.columns, files, batches)


@dataclass(eq=False)
class HeldOnDisk(Source):
    """Batches of which some are on disk; a file is one morsel."""

    columns: tuple[Column, ...]
    files: list[SpillFile]
    batches: list[pa.RecordBatch]

    def rows_expected(self) -> int:
        kept: int = sum(batch.num_rows for batch in self.batches)
        return kept + sum(file.rows for file in self.files)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for file in self.files:
            yield file.read
        for batch in self.batches:
            yield lambda batch=batch: (batch,)  # type: ignore[misc]
