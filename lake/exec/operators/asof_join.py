"""ASOF joins: each left row with the one right row of equal keys that is nearest in time.

    AsofJoin  trades.symbol = quotes.symbol AND trades.at >= quotes.at
    ├─ Scan trades      streams through: a binary search a row
    └─ Scan quotes      sorted by key and time when the join is opened
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lake.errors import FeatureNotSupported
from lake.exec.context import Context
from lake.exec.kernels.groups import GroupTable
from lake.exec.kernels.join import null_keys
from lake.exec.kernels.order import Direction, ordered_words, sort_rows
from lake.exec.kernels.search import search
from lake.exec.kernels.views import is_fixed, plain, to_array
from lake.exec.operators.base import Stream
from lake.exec.operators.batches import concat_batches, names_of
from lake.exec.operators.gather import Gather
from lake.exec.operators.pairing import BuildRows, Pairing
from lake.exec.operators.project import Projection
from lake.exec.pipeline import Flow, Held, break_flow
from lake.sql.bound import Column, Expr
from lake.sql.plan import JoinKind


@dataclass(eq=False)
class AsofJoin(Stream):
    """``left_time op right_time`` with op one of >= > <= <; NULL times and keys match nothing.

    probe, build   the columns answered of each side      keys   pairs of equal expressions (left, right)
    is_left        a left row without a partner stays, with NULLs
    """

    columns: tuple[Column, ...]
    build_flow: Flow
    probe: tuple[Column, ...]
    build: tuple[Column, ...]
    keys: tuple[tuple[Expr, Expr], ...]
    left_time: Expr
    op: str
    right_time: Expr
    is_left: bool
    _table: GroupTable | None = field(default=None, init=False, repr=False)
    _starts: Any = field(init=False, repr=False)
    _times: Any = field(init=False, repr=False)
    _rows: BuildRows = field(init=False, repr=False)
    _pairing: Pairing = field(init=False, repr=False)
    _projection: Projection = field(init=False, repr=False)

    def describe(self) -> str:
        return f"{len(self.keys)} keys, {self.op}"

    def sides(self) -> Sequence[Flow]:
        return (self.build_flow,)

    def open(self, context: Context) -> None:
        kind = JoinKind.LEFT if self.is_left else JoinKind.INNER
        self._pairing = Pairing(kind, self.probe, self.build)
        self._projection = Projection([*(left for left, _ in self.keys), self.left_time], context)
        held = break_flow(self.build_flow, Gather(self.build_flow.columns), context)
        assert isinstance(held, Held)
        rows = concat_batches(held.batches, self.build_flow.columns)
        right = Projection([*(right for _, right in self.keys), self.right_time], context).run(rows)
        self._sort(rows, right)

    def _sort(self, rows: pa.RecordBatch, values: list[pa.Array]) -> None:
        """Sorts the right rows by key and time, those with a NULL left out."""
        alive = np.flatnonzero(~null_keys(values))
        taken = to_array(alive, pa.int64())
        *keys, times = [array.take(taken) for array in values]
        if self.keys:
            self._table = GroupTable()
            numbers = self._table.insert(keys) if len(alive) else np.empty(0, np.int64)
        else:
            numbers = np.zeros(len(alive), np.int64)
        words = _words(times)
        order = sort_rows([to_array(numbers, pa.int64()), to_array(words, pa.int64())], [Direction(), Direction()])
        groups = self._table.count if self._table is not None else 1
        self._starts = np.searchsorted(numbers[order], np.arange(groups + 1))
        self._times = words[order]
        chosen = rows.take(to_array(alive[order], pa.int64())) if rows.num_columns else rows
        columns = {name: chosen.column(name) for name in names_of(self.build)}
        self._rows = BuildRows(columns, len(order))

    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        *keys, time = self._projection.run(batch)
        numbers = np.zeros(batch.num_rows, np.int64) if self._table is None else self._table.find(keys)
        numbers[null_keys([*keys, time])] = -1
        alive = numbers >= 0
        if self._rows.rows == 0:
            alive[:] = False
        known = np.where(alive, numbers, 0)
        low = np.where(alive, self._starts[known], 0)
        high = np.where(alive, self._starts[np.minimum(known + 1, len(self._starts) - 1)], 0)
        partner = search(self._times, _words(time), low, high, after=self.op in (">=", "<"))
        if self.op in (">=", ">"):
            partner = np.where(partner > low, partner - 1, -1)
        else:
            partner = np.where(partner < high, partner, -1)
        partner[~alive] = -1
        if self.is_left:
            rows = np.arange(batch.num_rows)
        else:
            rows = np.flatnonzero(partner >= 0)
            partner = partner[rows]
        return (self._pairing.rows(batch, self._rows, rows, partner, may_miss=self.is_left),)


def _words(times: pa.Array) -> Any:
    """int64[rows] in the order of times."""
    times = plain(times)
    if not is_fixed(times.type):
        raise FeatureNotSupported(f"an ASOF join by {times.type} is not supported")
    return np.ascontiguousarray(ordered_words(times))


