"""SEMI and ANTI joins whose left side is the small one: it becomes the hash table, and right rows mark their partners.

    MarkingJoin SEMI  o_orderkey = l_orderkey
    ├─ Scan lineitem      streams through and answers nothing
    └─ Scan orders        the build side: rows that were marked are answered when all of lineitem has passed
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lake.exec.context import Context
from lake.exec.kernels.join import KeyFilter, mark_rows
from lake.exec.kernels.views import is_fixed, to_boolean
from lake.exec.operators.base import MORSEL_ROWS, Stream, column_name
from lake.exec.operators.batches import make_batch
from lake.exec.operators.hash_join import BuildSide, Condition, JoinBuild, pairs_of
from lake.exec.operators.pairing import Pairing
from lake.exec.operators.project import Projection
from lake.exec.operators.scan import Scan
from lake.exec.pipeline import Flow, break_flow
from lake.exec.selection import Selector
from lake.sql.bound import Column, columns_of
from lake.sql.plan import JoinKind


@dataclass(eq=False)
class MarkingJoin(Stream):
    """SEMI, ANTI, or MARK without NULLs, over a flow of right rows.

    condition    pairs of keys (right, left)       build   the left columns answered       mark  the output of MARK
    kept         left columns that are answered or that residual conditions use
    through      right columns that residual conditions use
    filters      scans of the right side and the column of each that is the key with a position
    """

    columns: tuple[Column, ...]
    kind: JoinKind
    condition: Condition
    build_flow: Flow
    build: tuple[Column, ...]
    kept: tuple[Column, ...]
    through: tuple[Column, ...]
    mark: Column | None = None
    filters: list[tuple[int, Scan, Column]] = field(default_factory=list)
    _side: BuildSide = field(init=False, repr=False)
    _pairing: Pairing = field(init=False, repr=False)
    _projection: Projection = field(init=False, repr=False)

    def describe(self) -> str:
        return f"{self.kind.name} on {len(self.condition.keys)} keys"

    def sides(self) -> Sequence[Flow]:
        return (self.build_flow,)

    def open(self, context: Context) -> None:
        residual = self.condition.residual
        used = columns_of(residual)
        self._pairing = Pairing(
            self.kind, (), (), None, Selector(residual, context) if residual else None, self.through,
            tuple(column for column in self.kept if column.id in used),
        )  # fmt: skip
        self._projection = Projection([probe for probe, _ in self.condition.keys], context)
        build = JoinBuild(self.kept, tuple(build for _, build in self.condition.keys), may_spill=False)
        break_flow(self.build_flow, build, context)
        self._side = BuildSide(build, build.batches(), self.condition.null_safe)
        for position, scan, column in self.filters:
            if is_fixed(self._side.keys[position].type):
                scan.offer(column, KeyFilter.from_keys(self._side.keys[position]))

    def is_done(self) -> bool:
        return self._side.rows.rows == 0

    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        pairs = pairs_of(self._side, self._projection.run(batch), outer=False)
        for _, build_rows in self._pairing.test(batch, self._side.rows, pairs):
            mark_rows(build_rows, self._side.rows.marks)
        return ()

    def finish(self, states: Sequence[Any]) -> Iterable[pa.RecordBatch]:
        marks = self._side.rows.marks.view(np.bool_)
        match self.kind:
            case JoinKind.SEMI:
                chosen = np.flatnonzero(marks)
            case JoinKind.ANTI:
                chosen = np.flatnonzero(~marks)
            case _:
                chosen = np.arange(len(marks))
        names = [column_name(column) for column in self.build]
        for start in range(0, len(chosen), MORSEL_ROWS):
            rows = chosen[start : start + MORSEL_ROWS]
            arrays = [self._side.rows.take(name, rows, may_miss=False) for name in names]
            if self.mark is None:
                yield make_batch(names, arrays, len(rows))
            else:
                yield make_batch([*names, column_name(self.mark)], [*arrays, to_boolean(marks[rows])], len(rows))
