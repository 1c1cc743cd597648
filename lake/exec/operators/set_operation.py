"""UNION ALL as a source that runs one side after the other; INTERSECT and EXCEPT as groups with a count of each side.

    SELECT a FROM l INTERSECT ALL SELECT b FROM r

    UnionAll           a, is_right                                         rows of l, then of r
    HashAggregate      a, both = count(is_right), right = count_if(is_right)      one row of each kind
    CountedRows        a, min(both - right, right) times
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lake.exec.context import Context
from lake.exec.kernels.views import values_of
from lake.exec.operators.base import MORSEL_ROWS, Morsel, Source, Stream, column_name
from lake.exec.operators.batches import make_batch, names_of, select_columns, take_rows
from lake.exec.operators.filter import Filter
from lake.exec.operators.project import Project
from lake.exec.pipeline import Flow, answer_flow
from lake.sql.bound import Column
from lake.sql.plan import SetKind


@dataclass(eq=False)
class UnionAll(Source):
    """The rows of both sides; ``sides_in`` are flows and their columns, which pair with ``columns`` by position.

    tagged  the last of ``columns`` is a BOOLEAN, true of the rows of the second side
    """

    columns: tuple[Column, ...]
    sides_in: tuple[tuple[Flow, tuple[Column, ...]], ...]
    tagged: bool = False
    _opened: list[Flow] = field(default_factory=list, init=False, repr=False)

    def sides(self) -> Sequence[Flow]:
        return tuple(flow for flow, _ in self.sides_in)

    def open(self, context: Context) -> Source:
        self._opened = [flow.open(context) if _is_plain(flow) else flow for flow, _ in self.sides_in]
        return self

    def rows_expected(self) -> int | None:
        if not all(_is_plain(flow) for flow, _ in self.sides_in):
            return None
        counts = [flow.source.rows_expected() for flow in self._opened]
        return None if None in counts else sum(count for count in counts if count is not None)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for number, (flow, (_, columns)) in enumerate(zip(self._opened, self.sides_in, strict=True)):
            if _is_plain(flow):
                for morsel in flow.source.morsels(context):
                    yield lambda morsel=morsel, flow=flow, columns=columns, number=number: (  # type: ignore[misc]
                        self._renamed(batch, columns, number) for batch in _through(flow, morsel)
                    )
                continue
            batches = answer_flow(flow, context)
            try:
                for batch in batches:
                    renamed = self._renamed(batch, columns, number)
                    yield lambda renamed=renamed: (renamed,)  # type: ignore[misc]
            finally:
                batches.close()  # type: ignore[attr-defined]

    def _renamed(self, batch: pa.RecordBatch, columns: tuple[Column, ...], number: int) -> pa.RecordBatch:
        arrays = [batch.column(name) for name in names_of(columns)]
        if self.tagged:
            arrays.append(pa.repeat(bool(number), batch.num_rows))
        return make_batch(names_of(self.columns), arrays, batch.num_rows)


def _is_plain(flow: Flow) -> bool:
    """Whether a flow's streams work row by row and have nothing to say at the end."""
    return all(isinstance(stream, Filter | Project) for stream in flow.streams)


def _through(flow: Flow, morsel: Morsel) -> Iterator[pa.RecordBatch]:
    batches = iter(morsel())
    for stream in flow.streams:
        batches = _applied(stream, batches)
    return batches


def _applied(stream: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            for made in stream.apply(None, batch):
                stream.metrics.rows += made.num_rows
                yield made


@dataclass(eq=False)
class CountedRows(Stream):
    """INTERSECT and EXCEPT, with or without ALL: each kind of row as often as its counts say.

    Batches hold each kind of row once, with the numbers of rows of both sides together and of the right one.
    """

    columns: tuple[Column, ...]
    kind: SetKind
    keeps_all: bool
    both: Column
    right: Column

    def describe(self) -> str:
        return self.kind.name + (" ALL" if self.keeps_all else "")

    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        both, right = (values_of(batch.column(column_name(column))) for column in (self.both, self.right))
        times = self._times(both - right, right)
        rows = np.repeat(np.arange(batch.num_rows), times if self.keeps_all else np.minimum(times, 1))
        kinds = select_columns(batch, self.columns)
        return (take_rows(kinds, rows[start : start + MORSEL_ROWS]) for start in range(0, len(rows), MORSEL_ROWS))

    def _times(self, left: Any, right: Any) -> Any:
        """How often each kind of row is answered."""
        if self.kind is SetKind.INTERSECT:
            return np.minimum(left, right)
        return np.maximum(left - right, 0) if self.keeps_all else np.where(right == 0, left, 0)
