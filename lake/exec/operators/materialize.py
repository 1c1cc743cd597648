"""WITH queries that are computed once and read several times; inside a recursion, the rows of the round before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lake.exec.context import Context
from lake.exec.operators.base import Morsel, Source
from lake.exec.operators.batches import make_batch, names_of
from lake.exec.operators.gather import Gather
from lake.exec.pipeline import Flow, Held, break_flow
from lake.sql.bound import Column


class CteSlot:
    """Where a WITH query's rows lie: ``definition`` is run by the first scan that is opened.

    columns  what the definition's batches hold
    """

    def __init__(self, name: str, columns: tuple[Column, ...], definition: Flow | None) -> None:
        self.name = name
        self.columns = columns
        self.definition = definition
        self._held: Source | None = None

    def source(self, context: Context) -> Source:
        """The rows. Sources are opened by one thread, so this needs no lock."""
        if self._held is None:
            assert self.definition is not None, "a recursion puts rows in before its step runs"
            self._held = break_flow(self.definition, Gather(self.columns, may_spill=True), context)
        return self._held

    def put(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Sets the rows: those of a recursion's last round."""
        self._held = Held(self.columns, batches)


@dataclass(eq=False)
class CteScan(Source):
    """The rows of a slot under columns of its own; ``outputs`` are in the order of the slot's columns."""

    columns: tuple[Column, ...]
    outputs: tuple[Column, ...]
    slot: CteSlot
    is_first: bool = False
    _held: Source = field(init=False, repr=False)

    def describe(self) -> str:
        return self.slot.name

    def sides(self) -> tuple[Flow, ...]:
        return (self.slot.definition,) if self.is_first and self.slot.definition is not None else ()

    def open(self, context: Context) -> Source:
        self._held = self.slot.source(context)
        return self

    def rows_expected(self) -> int | None:
        return self._held.rows_expected()

    def morsels(self, context: Context) -> Iterator[Morsel]:
        stored = dict(zip((column.id for column in self.outputs), names_of(self.slot.columns), strict=True))
        wanted = [stored[column.id] for column in self.columns]
        names = names_of(self.columns)

        def renamed(morsel: Morsel) -> Iterator[pa.RecordBatch]:
            for batch in morsel():
                yield make_batch(names, [batch.column(name) for name in wanted], batch.num_rows)

        for morsel in self._held.morsels(context):
            yield lambda morsel=morsel: renamed(morsel)  # type: ignore[misc]
