"""ASOF joins: each left row with the one right row of equal keys that is nearest in time.

    AsofJoin  trades.symbol = quotes.symbol AND trades.at >= quotes.at
    ├─ Scan trades      streams through: a binary search a row
    └─ Scan quotes      sorted by key and time when the join is opened

Where a partner must pass further conditions, rows whose nearest fails them step on to the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from lake.exec.context import Cancellation, Context
from lake.exec.kernels.groups import GroupTable
from lake.exec.kernels.join import mark_rows, null_keys
from lake.exec.kernels.order import Direction, ordered_words, ranks, sort_rows
from lake.exec.kernels.search import search
from lake.exec.kernels.views import concat, is_fixed, plain, to_array
from lake.exec.operators.base import Stream
from lake.exec.operators.batches import concat_batches, names_of
from lake.exec.operators.gather import Gather
from lake.exec.operators.pairing import KEEPS_BUILD, KEEPS_PROBE, BuildRows, Pairing
from lake.exec.operators.project import Projection
from lake.exec.pipeline import Flow, Held, break_flow
from lake.exec.selection import Selector
from lake.sql import plan
from lake.sql.bound import Column


@dataclass(eq=False)
class AsofJoin(Stream):
    """``left_time op right_time`` with op one of >= > <= <; NULL times match nothing, nor do NULL keys that are not safe.

    probe, build       the columns answered of each side
    tested, kept       the columns that conditions use of the left side; those kept of the right side
    """

    columns: tuple[Column, ...]
    node: plan.AsofJoin
    build_flow: Flow
    probe: tuple[Column, ...]
    build: tuple[Column, ...]
    tested: tuple[Column, ...]
    kept: tuple[Column, ...]
    _table: GroupTable | None = field(default=None, init=False, repr=False)
    _starts: Any = field(init=False, repr=False)
    _times: pa.Array = field(init=False, repr=False)
    _rows: BuildRows = field(init=False, repr=False)
    _pairing: Pairing = field(init=False, repr=False)
    _projection: Projection = field(init=False, repr=False)
    _cancellation: Cancellation = field(init=False, repr=False)

    def describe(self) -> str:
        return f"{self.node.kind.value}, {len(self.node.keys)} keys, {self.node.op}"

    def sides(self) -> Sequence[Flow]:
        return (self.build_flow,)

    def open(self, context: Context) -> None:
        node = self.node
        self._cancellation = context.cancellation
        self._pairing = Pairing(
            node.kind, self.probe, self.build, None, Selector(node.conditions, context) if node.conditions else None,
            self.tested, self.kept,
        )  # fmt: skip
        self._projection = Projection([*(left for left, _ in node.keys), node.left_time], context)
        held = break_flow(self.build_flow, Gather(self.build_flow.columns), context)
        assert isinstance(held, Held)
        rows = concat_batches(held.batches, self.build_flow.columns)
        right = Projection([*(right for _, right in node.keys), node.right_time], context).run(rows)
        self._sort(rows, right)

    def _sort(self, rows: pa.RecordBatch, values: list[pa.Array]) -> None:
        """Sorts the right rows by key and time; those that match nothing stand behind."""
        dead = null_keys(values, self.node.null_safe)
        alive = np.flatnonzero(~dead)
        taken = to_array(alive, pa.int64())
        *keys, times = [array.take(taken) for array in values]
        if self.node.keys:
            self._table = GroupTable()
            numbers = self._table.insert(keys) if len(alive) else np.empty(0, np.int64)
        else:
            numbers = np.zeros(len(alive), np.int64)
        order = sort_rows([to_array(numbers, pa.int64()), times], [Direction(), Direction()])
        groups = self._table.count if self._table is not None else 1
        self._starts = np.searchsorted(numbers[order], np.arange(groups + 1))
        self._times = plain(times).take(to_array(order, pa.int64()))
        places = np.concatenate((alive[order], np.flatnonzero(dead)))
        chosen = rows.take(to_array(places, pa.int64())) if rows.num_columns else rows
        self._rows = BuildRows({name: chosen.column(name) for name in names_of(self.kept)}, len(places))

    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        *keys, time = self._projection.run(batch)
        numbers = np.zeros(batch.num_rows, np.int64) if self._table is None else self._table.find(keys)
        numbers[null_keys([*keys, time], self.node.null_safe)] = -1
        alive = numbers >= 0
        if len(self._times) == 0:
            alive[:] = False
        known = np.where(alive, numbers, 0)
        low = np.where(alive, self._starts[known], 0)
        high = np.where(alive, self._starts[np.minimum(known + 1, len(self._starts) - 1)], 0)
        times, wanted = self._words(time)
        partner = search(times, wanted, low, high, after=self.node.op in (">=", "<"))
        backwards = self.node.op in (">=", ">")
        if backwards:
            partner = partner - 1
        partner[(partner < low) | (partner >= high)] = -1
        if self._pairing.residual is not None:
            partner = self._passing(batch, partner, low, high, -1 if backwards else 1)
        rows = np.flatnonzero(partner >= 0)
        if self.node.kind in KEEPS_PROBE:
            mark_rows(partner[rows], self._rows.marks)
            every = np.arange(batch.num_rows)
            return (self._pairing.rows(batch, self._rows, every, partner, may_miss=True),)
        return replace(self._pairing, residual=None).answer(batch, self._rows, [(rows, partner[rows])])

    def _passing(self, batch: pa.RecordBatch, partner: Any, low: Any, high: Any, step: int) -> Any:
        """int64[rows]: the nearest right row that passes the conditions, -1 where none does."""
        found = np.full(len(partner), -1, np.int64)
        rows, tried = np.flatnonzero(partner >= 0), partner[partner >= 0]
        while len(rows):
            self._cancellation.check()
            for passed, builds in self._pairing.test(batch, self._rows, [(rows, tried)]):
                found[passed] = builds
            tried = tried + step
            left = (found[rows] < 0) & (tried >= low[rows]) & (tried < high[rows])
            rows, tried = rows[left], tried[left]
        return found

    def finish(self, states: Sequence[Any]) -> Iterable[pa.RecordBatch]:
        if self.node.kind in KEEPS_BUILD:
            yield from self._pairing.lone_build_rows(self._rows)

    def _words(self, times: pa.Array) -> tuple[Any, Any]:
        """Numbers in the order of times, of the right rows and of ``times``: what has no such numbers is ranked with them."""
        times = plain(times)
        if is_fixed(times.type):
            return tuple(np.ascontiguousarray(ordered_words(each)) for each in (self._times, times))  # type: ignore[return-value]
        places = ranks(concat([self._times, times])).astype(np.int64)
        return places[: len(self._times)], places[len(self._times) :]
