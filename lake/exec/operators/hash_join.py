"""Joins by equality: the right side becomes a hash table, the left side's batches are looked up in it.

    HashJoin LEFT  o_custkey = c_custkey
    ├─ Scan orders          the probe side: its batches stream through
    └─ Scan customer        the build side: read whole when the join is opened

When the build side outgrows the memory budget both sides are dealt to partitions by key, on disk where need be, and joined
partition by partition when all probe rows have passed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.kernels.join import JoinTable, KeyFilter, mark_rows, null_keys
from lake.exec.kernels.views import is_fixed, values_of
from lake.exec.memory import Account
from lake.exec.operators.base import Breaker, Source, Stream, column_name
from lake.exec.operators.batches import concat_columns, make_batch, slices
from lake.exec.operators.null_pairs import NullPairs
from lake.exec.operators.pairing import (
    DROPS_UNMATCHED,
    KEEPS_BUILD,
    KEEPS_PROBE,
    BuildRows,
    Pairing,
    Pairs,
)  # fmt: skip
from lake.exec.operators.partitions import PARTITIONS, PartitionBuffer
from lake.exec.operators.project import Projection
from lake.exec.operators.scan import Scan
from lake.exec.pipeline import Flow, Held, break_flow
from lake.exec.selection import Selector
from lake.exec.spill import Scratch
from lake.sql.bound import Column, Compare, Expr, columns_of
from lake.sql.plan import JoinKind

PAIRS_MAX: Final = 1 << 20
"""Pairs listed at once: a probe batch with more is looked up in slices."""


class Condition(Struct, frozen=True):
    """The join's conditions: pairs of key expressions (probe, build), and what is left.

    null_safe   for each key whether NULL equals NULL
    residual    conjuncts over both sides' columns
    """

    keys: tuple[tuple[Expr, Expr], ...]
    null_safe: tuple[bool, ...]
    residual: tuple[Expr, ...]

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """All conditions."""
        pairs = zip(self.keys, self.null_safe, strict=True)
        return (*(Compare.of("is not distinct" if safe else "=", *key) for key, safe in pairs), *self.residual)


class BuildState(Struct):
    """One worker's build rows: key columns first, then the others."""

    batches: list[pa.RecordBatch]
    account: Account
    buffer: PartitionBuffer | None = None


@dataclass(eq=False)
class JoinBuild(Breaker):
    """Takes in a join's build side; ``columns`` are those kept besides the keys."""

    columns: tuple[Column, ...]
    keys: tuple[Expr, ...]
    may_spill: bool
    scratch: Scratch | None = field(default=None, init=False)
    states: Sequence[BuildState] = field(default=(), init=False)
    _context: Context = field(init=False, repr=False)
    _projection: Projection | None = field(default=None, init=False)

    @property
    def names(self) -> list[str]:
        """The names of what is kept."""
        return [f"k{index}" for index in range(len(self.keys))] + [column_name(column) for column in self.columns]

    def start(self, context: Context) -> BuildState:
        if self._projection is None:
            self._context = context
            self._projection = Projection((*self.keys, *self.columns), context)
        return BuildState([], context.budget.open(self.metrics))

    def absorb(self, state: BuildState, batch: pa.RecordBatch) -> None:
        assert self._projection is not None
        kept = make_batch(self.names, self._projection.run(batch), batch.num_rows)
        if state.buffer is not None:
            state.buffer.add(kept)
            return
        state.batches.append(kept)
        state.account.grow(kept.nbytes)
        if self.may_spill and state.account.must_spill:
            self.deal(state).spill()

    def deal(self, state: BuildState) -> PartitionBuffer:
        """From here on the state's rows are dealt to partitions."""
        if self.scratch is None:
            self.scratch = Scratch(self._context, self.metrics)
        scratch = self.scratch
        buffer = PartitionBuffer(lambda: scratch, self._context.budget.open(self.metrics), range(len(self.keys)))
        state.buffer = buffer
        state.account.set(0)
        for batch in state.batches:
            buffer.add(batch)
        state.batches = []
        return buffer

    def merge(self, context: Context, states: Sequence[BuildState]) -> Source:
        self.states = states
        if self.is_partitioned:
            for state in states:
                (state.buffer or self.deal(state)).seal()
        return Held(self.columns, [])

    @property
    def is_partitioned(self) -> bool:
        """Whether memory was too short to keep the rows together."""
        return any(state.buffer is not None for state in self.states)

    def batches(self) -> list[pa.RecordBatch]:
        """All rows, where they are kept together; batches by their first keys: keys in order are in order here too."""
        found = [batch for state in self.states for batch in state.batches]
        if len(found) < 2 or not self.keys or not is_fixed(found[0].schema.types[0]):
            return found
        return sorted(found, key=lambda batch: values_of(batch.column(0))[0])


class BuildSide:
    """Build rows and the table over their keys."""

    def __init__(
        self,
        build: JoinBuild,
        batches: list[pa.RecordBatch],
        null_safe: tuple[bool, ...],
        coded: Collection[Column] = (),
    ) -> None:
        rows = sum(batch.num_rows for batch in batches)
        types = [*(key.type for key in build.keys), *(column.type for column in build.columns)]
        arrays = {
            name: concat_columns([batch.column(index) for batch in batches]) if batches else pa.array([], type.physical)
            for index, (name, type) in enumerate(zip(build.names, types, strict=True))
        }
        self.keys = [arrays[f"k{index}"] for index in range(len(build.keys))]
        self.table = JoinTable.build(self.keys, null_safe)
        columns = {column_name(column): arrays[column_name(column)] for column in build.columns}
        self.rows = BuildRows(columns, rows, [column_name(column) for column in coded])
        self.has_nulls = self.table.has_nulls

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        columns: int = sum(array.nbytes for array in self.rows.columns.values())
        return columns + self.table.nbytes


class ProbeState(Struct):
    """One worker's probe rows where the join is partitioned."""

    buffer: PartitionBuffer | None


@dataclass(eq=False)
class HashJoin(Stream):
    """An equi-join of any kind.

    build_flow   the build side                      probe, build   the columns answered of each side
    kept         columns of the build side that are answered or that residual conditions use
    through      columns of the probe side, in the same way (what is dealt to partitions)
    filters      scans of the probe side and the column of each that is the probe key with a position
    mark_nulls   MARK answers NULL where no pair matches and a comparison was NULL
    coded        text columns of ``build`` that those above want as codes: groups are numbered by them
    """

    columns: tuple[Column, ...]
    kind: JoinKind
    condition: Condition
    build_flow: Flow
    probe: tuple[Column, ...]
    build: tuple[Column, ...]
    kept: tuple[Column, ...]
    through: tuple[Column, ...]
    mark: Column | None = None
    mark_nulls: bool = False
    filters: list[tuple[int, Scan, Column]] = field(default_factory=list)
    coded: tuple[Column, ...] = ()
    _breaker: JoinBuild = field(init=False, repr=False)
    _side: BuildSide | None = field(default=None, init=False, repr=False)
    _pairing: Pairing = field(init=False, repr=False)
    _projection: Projection = field(init=False, repr=False)
    _context: Context = field(init=False, repr=False)
    _nulls: NullPairs | None = field(default=None, init=False, repr=False)
    _account: Account | None = field(default=None, init=False, repr=False)
    _dealt_rows: int = field(default=0, init=False, repr=False)
    _dealt_nulls: bool = field(default=False, init=False, repr=False)

    def describe(self) -> str:
        return f"{self.kind.name} on {len(self.condition.keys)} keys"

    def sides(self) -> Sequence[Flow]:
        return (self.build_flow,)

    @property
    def _needs_all(self) -> bool:
        """Whether NULLs can only be told with all build rows at hand."""
        plain_key = len(self.condition.keys) == 1 and not self.condition.null_safe[0]
        return self.kind is JoinKind.MARK and self.mark_nulls and not (plain_key and not self.condition.residual)

    def open(self, context: Context) -> None:
        self._context = context
        residual = self.condition.residual
        used = columns_of(residual)
        self._pairing = Pairing(
            self.kind, self.probe, self.build, self.mark, Selector(residual, context) if residual else None,
            tuple(column for column in self.through if column.id in used),
            tuple(column for column in self.kept if column.id in used),
        )  # fmt: skip
        self._projection = Projection([probe for probe, _ in self.condition.keys], context)
        self._breaker = JoinBuild(self.kept, tuple(build for _, build in self.condition.keys), not self._needs_all)
        break_flow(self.build_flow, self._breaker, context)
        if self._breaker.is_partitioned:
            return
        self._side = BuildSide(self._breaker, self._breaker.batches(), self.condition.null_safe, self.coded)
        self._account = context.budget.open(self.metrics)
        self._account.set(self._side.nbytes)
        for state in self._breaker.states:
            state.account.close()
            state.batches = []
        if self._needs_all:
            self._nulls = NullPairs(self._side.keys, self.condition.expressions, self.condition.null_safe, context)
        for position, scan, column in self.filters:
            if is_fixed(self._side.keys[position].type):
                scan.offer(column, KeyFilter.from_keys(self._side.keys[position]))

    def start(self, context: Context) -> ProbeState:
        if not self._breaker.is_partitioned:
            return ProbeState(None)
        return ProbeState(self._new_buffer())

    def _new_buffer(self) -> PartitionBuffer:
        scratch = self._breaker.scratch
        assert scratch is not None
        keys = range(len(self.condition.keys))
        return PartitionBuffer(lambda: scratch, self._context.budget.open(self.metrics), keys)

    def is_done(self) -> bool:
        return self.kind in DROPS_UNMATCHED and self._side is not None and self._side.rows.rows == 0

    def apply(self, state: ProbeState, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        keys = self._projection.run(batch)
        if self._side is not None:
            return self._join(self._side, keys, batch)
        assert state.buffer is not None
        names = [f"k{index}" for index in range(len(keys))] + [column_name(column) for column in self.through]
        arrays = keys + [batch.column(column_name(column)) for column in self.through]
        state.buffer.add(make_batch(names, arrays, batch.num_rows))
        return ()

    def _join(self, side: BuildSide, keys: list[pa.Array], batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """The join's rows for a probe batch."""
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK) and not self.condition.residual:
            matched = side.table.contains(keys)
            return (self._pairing.probe_rows(batch, matched, self._unknown(side, keys, matched, batch)),)
        if self.kind is JoinKind.MARK:
            return (self._mark(side, keys, batch),)
        if self.condition.residual or (self.kind is JoinKind.SINGLE and not side.table.is_unique):
            return self._pairing.answer(batch, side.rows, pairs_of(side, keys, outer=False), in_order=True)
        return self._pairs(side, keys, batch)

    def _pairs(self, side: BuildSide, keys: list[pa.Array], batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Joined rows where a pair needs no further test."""
        outer = self.kind in KEEPS_PROBE
        for probe_rows, build_rows in self._pairing.test(batch, side.rows, pairs_of(side, keys, outer=outer)):
            if self.kind in KEEPS_BUILD:
                mark_rows(build_rows, side.rows.marks)
            yield self._pairing.rows(batch, side.rows, probe_rows, build_rows, may_miss=outer)

    def _mark(self, side: BuildSide, keys: list[pa.Array], batch: pa.RecordBatch) -> pa.RecordBatch:
        matched = np.zeros(batch.num_rows, np.uint8)
        for probe_rows, _ in self._pairing.test(batch, side.rows, pairs_of(side, keys, outer=False)):
            mark_rows(probe_rows, matched)
        found = matched.view(np.bool_)
        return self._pairing.probe_rows(batch, found, self._unknown(side, keys, found, batch))

    def _unknown(self, side: BuildSide, keys: list[pa.Array], matched: Any, batch: pa.RecordBatch) -> Any:
        """bool[rows]: where MARK is NULL; None for nowhere."""
        if self.kind is not JoinKind.MARK or not self.mark_nulls or self._total_rows(side) == 0:
            return None
        if self._nulls is not None:
            known = pairs_of(side, keys, outer=False) if self.condition.residual else ()
            return self._nulls.unknown(batch, side.rows, keys, matched, known)
        if self._has_nulls(side):
            return ~matched
        return null_keys(keys) & ~matched

    def _total_rows(self, side: BuildSide) -> int:
        if self._side is not None:
            return side.rows.rows
        return self._dealt_rows

    def _has_nulls(self, side: BuildSide) -> bool:
        return side.has_nulls if self._side is not None else self._dealt_nulls

    def finish(self, states: Sequence[ProbeState]) -> Iterable[pa.RecordBatch]:
        if self._side is not None:
            if self.kind in KEEPS_BUILD:
                yield from self._pairing.lone_build_rows(self._side.rows)
            if self._account is not None:
                self._account.close()
            return
        buffers = [state.buffer for state in self._breaker.states if state.buffer is not None]
        probes = [state.buffer for state in states if state.buffer is not None]
        for probe in probes:
            probe.seal()
        if self.kind is JoinKind.MARK and self.mark_nulls:
            self._note_nulls(buffers)
        for number in range(PARTITIONS):
            yield from self._join_partition(number, buffers, probes)

    def _join_partition(
        self, number: int, buffers: list[PartitionBuffer], probes: list[PartitionBuffer]
    ) -> Iterator[pa.RecordBatch]:
        batches = [batch for buffer in buffers for batch in buffer.read(number)]
        side = BuildSide(self._breaker, batches, self.condition.null_safe)
        account = self._context.budget.open(self.metrics)
        account.set(side.nbytes)
        del batches
        keys = len(self.condition.keys)
        for probe in probes:
            for batch in probe.read_joined(number):
                for piece in slices(batch):
                    self._context.cancellation.check()
                    yield from self._join(side, piece.columns[:keys], piece)
            probe.drop(number)
        if self.kind in KEEPS_BUILD:
            yield from self._pairing.lone_build_rows(side.rows)
        for buffer in buffers:
            buffer.drop(number)
        account.close()

    def _note_nulls(self, buffers: list[PartitionBuffer]) -> None:
        """Whether the build side has rows and NULL keys: with partitions no table knows of all of them."""
        self._dealt_rows, self._dealt_nulls = 0, False
        for number in range(PARTITIONS):
            for buffer in buffers:
                for batch in buffer.read(number):
                    self._dealt_rows += batch.num_rows
                    self._dealt_nulls |= batch.column(0).null_count > 0


def pairs_of(side: BuildSide, keys: list[pa.Array], *, outer: bool) -> Iterator[Pairs]:
    """Candidate pairs of a probe batch, by slices that each list about PAIRS_MAX of them."""
    table = side.table
    rows = len(keys[0])
    if table.is_unique:
        yield table.probe(keys, outer=outer)
        return
    counts = pair_counts(table, keys)
    running = np.cumsum(counts)
    if running[-1] <= PAIRS_MAX:
        yield table.probe(keys, outer=outer)
        return
    start = 0
    while start < rows:
        done = int(running[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(running, done + PAIRS_MAX, side="right")))
        probe_rows, build_rows = table.probe([key.slice(start, stop - start) for key in keys], outer=outer)
        yield probe_rows + start, build_rows
        start = stop


def pair_counts(table: JoinTable, keys: list[pa.Array]) -> Any:
    """int64[rows]: how many build rows each probe row pairs with."""
    numbers = table.find(keys)
    counts = np.diff(table._starts)
    return np.where(numbers >= 0, counts[np.maximum(numbers, 0)] if len(counts) else 0, 0)
