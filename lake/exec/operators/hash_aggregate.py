"""GROUP BY: groups numbered in a hash table, one accumulator an aggregate.

    SELECT g, sum(x), count(DISTINCT y) FILTER (WHERE z) GROUP BY g

    input columns     k0 = g    a0 = x    a1 = y    f0 = z        (evaluated once, whoever uses them)
    tallies           sum: a0   count: distinct a1 where f0

Every worker has groups of its own; merging renumbers them into one. When the groups of a worker become many, or memory
short, the worker keeps the groups it has and from then on deals its rows to partitions by key (on disk, when memory is
short): equal keys meet in one partition, and partitions are finished one by one, by several workers. Many groups in the
very first batch are forgotten, and its rows dealt as well: nothing is left to merge.

GROUPING SETS are over the same input columns. Where every aggregate only adds up, rows go to the sets that no other set holds
alone; the groups of the others are made of the finished groups of a finer set: of ROLLUP (a, b) only (a, b) sees rows.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from lake.exec.context import Context
from lake.exec.kernels.extremes import NumberExtreme
from lake.exec.kernels.groups import GroupTable
from lake.exec.kernels.partition import deal_rows
from lake.exec.memory import Account
from lake.exec.operators.base import Breaker, Morsel, Source, column_name
from lake.exec.operators.batches import make_batch, null_column, slices, take_rows
from lake.exec.operators.partitions import PARTITION_BITS, PARTITIONS, PartitionBuffer, key_hashes
from lake.exec.operators.project import Projection
from lake.exec.operators.scan import Scan
from lake.exec.operators.tally import Call, Tally, adds_integers, make_tallies, make_tally
from lake.exec.pipeline import Held
from lake.exec.spill import Scratch
from lake.sql.bound import AggregateCall, Cast, Column, Expr, Literal
from lake.sql.bound import Call as BoundCall
from lake.sql.registry import Scalar
from lake.types import BIGINT, Integer

if TYPE_CHECKING:
    from lake.exec.fused.partial import Fused

MANY_GROUPS: Final = 1 << 17
MANY_SHARE: Final = 0.25
"""A worker deals rows to partitions once it has so many groups, more than its cache holds, and more groups than this share
of its rows."""
TABLE_GROUPS: Final = 1 << 20
"""So many stay in one table where the planner thinks that there are no more: looking up takes longer than in a core's cache,
dealing rows and finishing 32 partitions longer still."""
MANY_DIRECT_GROUPS: Final = 1 << 18
MANY_DIRECT_SHARE: Final = 0.5
"""The same where keys lie so close that they are places in an array: looking up costs little, whatever their number."""

GROUP_BYTES: Final = 1 << 20
ONE_GROUP: Final = "a group of an aggregate"
"""Groups as large as that on average are not many but large ones, and cannot be dealt to partitions."""

FUSED_ROWS: Final = 200_000
"""A scan of fewer rows is over before a loop is compiled."""

SHIFT_MAX: Final = 1 << 31
"""A constant within such a distance from 0 and an INTEGER make a BIGINT that never overflows."""


class Layout(msgspec.Struct, frozen=True):
    """Which input column holds what: ``exprs`` are evaluated in this order, keys first; ``calls`` say where theirs are."""

    exprs: tuple[Expr, ...]
    key_count: int
    calls: tuple[Call, ...]

    @property
    def names(self) -> list[str]:
        """Names of the input columns."""
        return [f"i{index}" for index in range(len(self.exprs))]


def lay_out(groups: Sequence[Expr], calls: Sequence[AggregateCall]) -> Layout:
    """The input columns of an aggregation: equal expressions are one column."""
    exprs = list(groups)
    places: dict[Expr, int] = {}

    def place(expr: Expr) -> int:
        if expr not in places:
            places[expr] = len(exprs)
            exprs.append(expr)
        return places[expr]

    placed = []
    for call in calls:
        shifted = shifted_sum(call)
        arguments = (place(shifted[0]),) if shifted else tuple(place(expr) for expr in call.arguments)
        where = None if call.filter is None else place(call.filter)
        order = tuple(place(key.expr) for key in call.order) if call.function.obeys_order else ()
        placed.append(Call(call, arguments, where, order, shifted[1] if shifted else 0))
    return Layout(tuple(exprs), len(groups), tuple(placed))


def shifted_sum(call: AggregateCall) -> tuple[Expr, int] | None:
    """What a plain ``sum(x + constant)`` adds up, and the constant, where x is so narrow that no addition overflows."""
    if call.function.name != "sum" or call.distinct or call.order or call.type != BIGINT:
        return None
    match call.arguments:
        case (
            BoundCall(type=Integer(bits=64), function=Scalar(name="+" | "-" as sign),
                      arguments=(Cast(operand=operand, type=Integer()), Literal(value=int() as value))),
        ) if isinstance(operand.type, Integer) and operand.type.bits <= 32 and 0 < abs(value) <= SHIFT_MAX:
            return operand, value if sign == "+" else -value
    return None


def added_only(layout: Layout, context: Context) -> frozenset[int]:
    """Positions of the expressions that nothing but sums and averages of integers and decimals looks at."""
    added, others = set[int](), set(range(layout.key_count))
    for call in layout.calls:
        (added if adds_integers(make_tally(call, context.settings)) else others).update(call.arguments)
        others.update(call.order)
    return frozenset(added - others)


def finer_sets(sets: Sequence[tuple[int, ...]]) -> tuple[int | None, ...]:
    """For each grouping set the one that has all of its keys and fewest others, by position; None where there is none.

    >>> finer_sets(((0, 1), (0,), (1,), ()))
    (None, 0, 0, 1)
    """
    found: list[int | None] = []
    for keys in sets:
        above = [place for place, more in enumerate(sets) if set(keys) < set(more)]
        found.append(min(above, key=lambda place: len(sets[place]), default=None))
    return tuple(found)


def _adds_up(tally: Tally) -> bool:
    """Whether the state of a group and those of its parts are one."""
    call = tally.call.call
    if call.distinct or call.order:
        return False
    return call.function.name in ("sum", "count", "avg") or isinstance(tally.accumulator, NumberExtreme)


class Groups:
    """Groups and their tallies: what one worker knows of one grouping set, or all workers of a partition."""

    def __init__(self, layout: Layout, keys: tuple[int, ...], context: Context) -> None:
        self.layout = layout
        self.keys = keys
        self.table = GroupTable() if keys else None
        self.tallies: list[Tally] = make_tallies(layout.calls, context.settings)
        self.rows = 0

    @property
    def count(self) -> int:
        """How many groups there are; without keys always one."""
        return 1 if self.table is None else self.table.count

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        table = 0 if self.table is None else self.table.nbytes
        return table + sum(tally.nbytes(self.count) for tally in self.tallies)

    def update(self, batch: pa.RecordBatch) -> None:
        """Adds a batch of input columns."""
        numbers = self.number(batch)
        count = self.count
        for tally in self.tallies:
            tally.update(numbers, count, batch)
        self.rows += batch.num_rows

    def number(self, batch: pa.RecordBatch) -> Any:
        """int64[rows]: the group of each row."""
        if self.table is None:
            return np.zeros(batch.num_rows, np.int64)
        return self.table.insert([batch.column(key) for key in self.keys])

    def merge(self, other: Groups) -> None:
        """Adds another worker's groups."""
        mapping = self.number_groups(other)
        for mine, theirs in zip(self.tallies, other.tallies, strict=True):
            mine.merge(theirs, mapping, self.count)
        self.rows += other.rows

    def number_groups(self, other: Groups) -> Any:
        """int64[other.count]: the number here of each of another worker's groups."""
        if self.table is None:
            return np.zeros(1, np.int64)
        assert other.table is not None
        return self.table.merge(other.table)

    def add_finer(self, other: Groups) -> None:
        """Adds groups that have these keys and others."""
        if other.count and self.table is None:
            mapping = np.zeros(other.count, np.int64)
        elif other.count:
            arrays = dict(zip(other.keys, other.key_arrays(), strict=True))
            mapping = self.table.insert([arrays[key] for key in self.keys])  # type: ignore[union-attr]
        else:
            return
        for mine, theirs in zip(self.tallies, other.tallies, strict=True):
            mine.merge(theirs, mapping, self.count)

    def merge_part(self, other: Groups, chosen: Any, keys: pa.RecordBatch) -> Any:
        """Numbers some of another worker's groups; answers the mapping of all its groups, -1 for the rest."""
        mapping = np.full(other.count, -1, np.int64)
        if len(chosen):
            mapping[chosen] = self.number(take_rows(keys, chosen))
        return mapping

    def key_arrays(self) -> list[pa.Array]:
        """The keys by group; none where there was no row."""
        return [] if self.table is None or self.table.count == 0 else self.table.keys()


class WorkerState(msgspec.Struct):
    """What one worker holds: its groups by grouping set, and where their rows go once they are too many.

    alone   of the one group of a set without keys, once rows are dealt, which it cannot be
    """

    groups: list[Groups]
    account: Account
    alone: Account
    buffers: list[PartitionBuffer] | None = None


@dataclass(eq=False)
class HashAggregate(Breaker):
    """Groups of rows; ``columns`` are those of ``groups``, of ``aggregates`` and maybe ``grouping_id``.

    sets      positions in ``groups`` of each grouping set; one set of all positions for a plain GROUP BY
    expected  how many groups the planner thinks that there are
    scan      whose batches are all that is aggregated, where that is so: many of them are taken whole by compiled loops
    """

    columns: tuple[Column, ...]
    groups: tuple[tuple[Column, Expr], ...]
    aggregates: tuple[tuple[Column, AggregateCall], ...]
    sets: tuple[tuple[int, ...], ...]
    grouping_id: Column | None = None
    expected: Callable[[], float] = field(default=lambda: math.inf, repr=False)
    scan: Scan | None = field(default=None, repr=False)
    _context: Context = field(init=False, repr=False)
    _layout: Layout = field(init=False, repr=False)
    _projection: Projection | None = field(default=None, init=False, repr=False)
    _narrow: Projection | None = field(default=None, init=False, repr=False)
    _scratch: Scratch | None = field(default=None, init=False, repr=False)
    _finer: tuple[int | None, ...] = field(default=(), init=False, repr=False)
    _fused: Fused | None = field(default=None, init=False, repr=False)

    def describe(self) -> str:
        keys = ", ".join(column.name for column, _ in self.groups)
        calls = ", ".join(call.function.name for _, call in self.aggregates)
        return f"[{keys}] {calls}".strip()

    @property
    def is_sequential(self) -> bool:  # type: ignore[override]
        """Aggregates that keep the order of rows without saying which take the source's."""
        return any(call.function.keeps_order and not call.order for _, call in self.aggregates)

    def start(self, context: Context) -> WorkerState:
        if self._projection is None:
            self._context = context
            self._layout = lay_out([expr for _, expr in self.groups], [call for _, call in self.aggregates])
            self._projection = Projection(self._layout.exprs, context)
            self._narrow = Projection(self._layout.exprs, context, narrow=added_only(self._layout, context))
            adds_up = all(map(_adds_up, make_tallies(self._layout.calls, context.settings)))
            self._finer = finer_sets(self.sets) if adds_up else (None,) * len(self.sets)
            self._fused = self._fuse()
        made = [Groups(self._layout, keys, context) for keys in self.sets]
        return WorkerState(made, context.budget.open(self.metrics), context.budget.open(self.metrics))

    def _fuse(self) -> Fused | None:
        """What takes the scan's batches by compiled loops, where there are many of them."""
        rows = 0 if self.scan is None else self.scan.rows_expected()
        every = tuple(range(len(self.groups)))
        if self.scan is None or self.sets != (every,) or (rows is not None and rows < FUSED_ROWS):
            return None
        from lake.exec.fused.partial import fuse

        return fuse(self.scan, self._layout, self._context)

    def absorb(self, state: WorkerState, batch: pa.RecordBatch) -> None:
        projection = self._narrow if state.buffers is None else self._projection  # pieces of a partition are of one type
        assert projection is not None
        rows = make_batch(self._layout.names, projection.run(batch), batch.num_rows)
        if state.buffers is not None:
            for groups, buffer, finer in zip(state.groups, state.buffers, self._finer, strict=True):
                if finer is None:
                    buffer.add(rows) if groups.keys else groups.update(rows)
            state.alone.hold(sum(groups.nbytes for groups in state.groups if not groups.keys), ONE_GROUP)
            return
        for groups, finer in zip(state.groups, self._finer, strict=True):
            if finer is None:
                groups.update(rows)
        if any(self._are_many(groups) and groups.rows == batch.num_rows for groups in state.groups):
            state.groups = [Groups(self._layout, keys, self._context) for keys in self.sets]
            self._deal(state)
            self.absorb(state, batch)
            return
        state.account.set(sum(groups.nbytes for groups in state.groups))
        if state.account.must_spill or any(map(self._are_many, state.groups)):
            self._deal(state)

    def _are_many(self, groups: Groups) -> bool:
        """Whether a worker deals further rows to partitions."""
        count = groups.count
        if groups.table is not None and groups.table.is_direct:
            return count >= MANY_DIRECT_GROUPS and count > MANY_DIRECT_SHARE * groups.rows
        if count < MANY_GROUPS or count <= MANY_SHARE * groups.rows:
            return False
        return count >= TABLE_GROUPS or self.expected() > TABLE_GROUPS

    def _deal(self, state: WorkerState) -> None:
        """From here on a worker deals its rows to partitions."""
        state.account.set(sum(groups.nbytes for groups in state.groups if groups.keys))
        budget = self._context.budget
        state.buffers = [
            PartitionBuffer(self._make_scratch, budget.open(self.metrics), groups.keys) for groups in state.groups
        ]

    def _make_scratch(self) -> Scratch:
        if self._scratch is None:
            self._scratch = Scratch(self._context, self.metrics)
        return self._scratch

    def merge(self, context: Context, states: Sequence[WorkerState]) -> Source:
        states = [*states, *self._fused_states(context)]
        parts: dict[int, Groups | Partitioned | Coarser] = {}
        for index in sorted(range(len(self.sets)), key=lambda index: -len(self.sets[index])):
            parts[index] = self._merged(index, parts, states, context)
        for state in states:
            state.account.close()
            state.alone.close()
        in_order = [parts[index] for index in range(len(self.sets))]
        if any(isinstance(part, Partitioned) for part in in_order):
            return Partitions(self.columns, self, in_order)
        held: list[pa.RecordBatch] = []
        for index, part in enumerate(in_order):
            assert isinstance(part, Groups)
            held += self.answer(index, part)
        return Held(self.columns, held)

    def _fused_states(self, context: Context) -> Iterator[WorkerState]:
        """What compiled loops took in, as states of further workers."""
        for groups in () if self._fused is None else self._fused.finish():
            yield WorkerState([groups], context.budget.open(self.metrics), context.budget.open(self.metrics))

    def _merged(
        self, index: int, parts: dict[int, Groups | Partitioned | Coarser], states: Sequence[WorkerState], context: Context
    ) -> Groups | Partitioned | Coarser:
        """A grouping set of all workers, after the finer one that it may be made of."""
        keys, finer = self.sets[index], self._finer[index]
        if finer is not None:
            above, made = parts[finer], Groups(self._layout, keys, context)
            if isinstance(above, Groups):
                made.add_finer(above)
                return made
            coarser = Coarser(self, index, made)
            above.coarser.append(coarser)
            return coarser
        all_groups = [state.groups[index] for state in states]
        buffers = [state.buffers[index] for state in states if state.buffers is not None]
        if buffers and keys:
            return Partitioned(self, index, all_groups, buffers, context)
        for groups in all_groups[1:]:
            all_groups[0].merge(groups)
        return all_groups[0]

    def answer(self, index: int, groups: Groups, extra: int = 0) -> Iterable[pa.RecordBatch]:
        """The batches of finished groups of a grouping set; the last ``extra`` groups of the tallies are left out."""
        count = groups.count
        arrays: dict[str, pa.Array] = {}
        keys = dict(zip(groups.keys, groups.key_arrays(), strict=False))
        for position, (column, expr) in enumerate(self.groups):
            key = keys.get(position)
            arrays[column_name(column)] = null_column(expr.type, count) if key is None else key
        for (column, _), tally in zip(self.aggregates, groups.tallies, strict=True):
            arrays[column_name(column)] = tally.finish(count + extra).slice(0, count)
        if self.grouping_id is not None:
            absent = sum(1 << position for position in range(len(self.groups)) if position not in groups.keys)
            arrays[column_name(self.grouping_id)] = pa.array(np.full(count, absent, np.int64))
        names = [column_name(column) for column in self.columns]
        return slices(make_batch(names, [arrays[name] for name in names], count))


class Coarser(msgspec.Struct):
    """A grouping set made of the groups of one that is finished in partitions; ``coarser`` are those made of this one."""

    operator: HashAggregate
    index: int
    groups: Groups
    coarser: list[Coarser] = msgspec.field(default_factory=list)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Its groups, once it has seen all, and those of the coarser ones."""
        for each in self.coarser:  # before the answer, which may leave sums in another form
            each.groups.add_finer(self.groups)
        yield from self.operator.answer(self.index, self.groups)
        for each in self.coarser:
            yield from each.finish()


@dataclass(slots=True)
class Partitioned:
    """A grouping set whose rows were dealt to partitions, with the groups that workers had before."""

    operator: HashAggregate
    index: int
    groups: list[Groups]
    buffers: list[PartitionBuffer]
    context: Context
    coarser: list[Coarser] = field(default_factory=list)
    left: int = PARTITIONS
    lock: threading.Lock = field(default_factory=threading.Lock)
    held: Account = field(init=False)
    keys: list[pa.RecordBatch] = field(init=False)
    chosen: list[tuple[Any, Any]] = field(init=False)

    def __post_init__(self) -> None:
        for buffer in self.buffers:
            buffer.seal()
        self.held = self.context.budget.open(self.operator.metrics)
        self.keys, self.chosen = [], []
        self.groups = [groups for groups in self.groups if groups.count]
        for groups in self.groups:
            arrays: list[pa.Array | None] = [None] * len(groups.layout.exprs)
            for key, array in zip(groups.keys, groups.key_arrays(), strict=True):
                arrays[key] = array
            made = [array if array is not None else pa.nulls(groups.count) for array in arrays]
            batch = make_batch(groups.layout.names, made, groups.count)
            self.keys.append(batch)
            self.chosen.append(deal_rows(key_hashes(batch, groups.keys), PARTITION_BITS))

    def finish(self, number: int) -> Iterable[pa.RecordBatch]:
        """The groups of one partition; the last one to be finished is followed by the coarser grouping sets."""
        operator = self.operator
        made = Groups(operator._layout, operator.sets[self.index], self.context)
        account = self.context.budget.open(operator.metrics)
        for buffer in self.buffers:
            for batch in buffer.read_joined(number):
                self.context.cancellation.check()
                made.update(batch)
                if made.nbytes < made.count * GROUP_BYTES:
                    account.set(made.nbytes)
                else:
                    account.hold(made.nbytes, ONE_GROUP)
            buffer.drop(number)
        later: list[Groups] = []
        if operator.is_sequential:  # the rows of groups that there were before came first
            later, made = [made], Groups(operator._layout, operator.sets[self.index], self.context)
        mappings = [
            made.merge_part(groups, order[starts[number] : starts[number + 1]], keys)
            for groups, keys, (order, starts) in zip(self.groups, self.keys, self.chosen, strict=True)
        ] + [made.number_groups(groups) for groups in later]
        trash = made.count  # a group past the last takes what belongs to other partitions
        for groups, mapping in zip((*self.groups, *later), mappings, strict=True):
            mapping[mapping < 0] = trash
            for mine, theirs in zip(made.tallies, groups.tallies, strict=True):
                mine.merge(theirs, mapping, trash + 1)
        account.close()
        coarser = self._coarser_of(made)
        return itertools.chain(operator.answer(self.index, made, extra=1) if made.count else (), coarser)

    def _coarser_of(self, made: Groups) -> Iterable[pa.RecordBatch]:
        """Adds a finished partition to the coarser grouping sets; after the last one, their groups."""
        with self.lock:
            for each in self.coarser:
                each.groups.add_finer(made)
            self.held.set(sum(each.groups.nbytes for each in self.coarser))
            self.left -= 1
            if self.left:
                return ()
        self.held.close()
        return itertools.chain.from_iterable(each.finish() for each in self.coarser)


@dataclass(eq=False)
class Partitions(Source):
    """The groups of all grouping sets, some of them partition by partition."""

    columns: tuple[Column, ...]
    operator: HashAggregate
    parts: list[Groups | Partitioned | Coarser]

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for index, part in enumerate(self.parts):
            if isinstance(part, Partitioned):
                for number in range(PARTITIONS):
                    yield lambda part=part, number=number: part.finish(number)  # type: ignore[misc]
            elif isinstance(part, Groups):
                yield lambda index=index, part=part: self.operator.answer(index, part)  # type: ignore[misc]
