"""What is remembered of queries that are asked again: their plans, and their answers until the next commit.

    plan      until a definition of the lake changes; its tables are looked up again at each use
    columns   what a statement takes and answers, as long
    answer    as long as every table it read is what it was: the very entry of the catalog, with its files and its tail

Only a query that answers the same whenever its tables are the same is remembered: no now(), no random(), no file, no system
table, no reading of the past. ``SET lake.result_cache = off`` runs every query of a session, which benchmarks want.
Spec: SQL, What the service does (repeated queries); HTTP, ``stale_ms``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import pyarrow as pa
from msgspec import Struct, structs

from lake.db.origins import Origin, origins_of
from lake.db.point import PointRead
from lake.rows import Part, Predicate
from lake.sql import bound, plan
from lake.sql.bind import BoundQuery
from lake.sql.catalog import Table as PlanTable
from lake.sql.catalog import TableStatistics
from lake.sql.plan import Plan
from lake.storage.catalog.model import Table
from lake.storage.catalog.state import State
from lake.storage.tables.snapshot import TableSnapshot
from lake.storage.tail.tail import Tail
from lake.types import Type

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog
    from lake.db.describe import Description

QUERIES_KEPT: Final = 1_024
ANSWERS_BYTES: Final = 64 << 20  # all together
ANSWER_BYTES: Final = 4 << 20  # of one; a larger one costs more to keep than to compute again


class Planned(Struct):
    """A query bound and optimised.

    shows    whether the caller may be told which tables its columns come from: not of what a view reads for it
    """

    found: BoundQuery
    plan: Plan
    shows: bool = True
    _origins: tuple[Origin, ...] | None = None

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of its columns."""
        return tuple([column.type for column in self.found.columns])

    def origins(self, state: State) -> tuple[Origin, ...]:
        """The table and column that each column comes from; worked out once."""
        if self._origins is None:
            self._origins = origins_of(self.found, state if self.shows else State())
        return self._origins


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer in physical types.

    read     the tables it was made of, with their tails
    at       microseconds since the epoch when it was made
    version  the commit that was read
    encoded  the answer as doors send it, by format
    """

    batches: tuple[pa.RecordBatch, ...]
    read: tuple[tuple[Table, Tail | None], ...]
    at: int
    version: int
    nbytes: int
    encoded: dict[Hashable, bytes] = field(default_factory=dict, compare=False)

    def holds(self, state: State) -> bool:
        """Whether the tables are what they were."""
        return all(
            state.tables.get(table.id) is table and state.tails.get(table.id) is tail for table, tail in self.read
        )


V = TypeVar("V")


class _Recent(Generic[V]):
    """The QUERIES_KEPT values that were used last, by key. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """The value of a key; None where it is not kept."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: Hashable, value: V) -> None:
        """Keeps a value; the one unused longest goes."""
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > QUERIES_KEPT:
                self._kept.popitem(last=False)


class Repeats:
    """Plans and answers by query; the one unused longest goes first. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans = _Recent[Planned]()
        self._points = _Recent[tuple[PointRead | None]]()
        self.descriptions: _Recent[Description] = _Recent()
        self._answers: OrderedDict[Hashable, Answered] = OrderedDict()
        self._bytes = 0

    def plan(self, key: Hashable) -> Planned | None:
        """The plan kept under a key."""
        return self._plans.get(key)

    def keep_plan(self, key: Hashable, planned: Planned) -> None:
        """Keeps a plan."""
        self._plans.put(key, planned)

    def point(self, key: Hashable, make: Callable[[], PointRead | None]) -> PointRead | None:
        """The look-up that ``make`` answers, found out once."""
        found = self._points.get(key)
        if found is None:
            found = (make(),)
            self._points.put(key, found)
        return found[0]

    def answer(self, key: Hashable, state: State, oldest: int | None = None) -> Answered | None:
        """The answer kept under a key, if it holds, or was made at ``oldest`` (microseconds) or later."""
        with self._lock:
            found = self._answers.get(key)
            if found is None:
                return None
            if not found.holds(state):
                return found if oldest is not None and found.at >= oldest else None
            self._answers.move_to_end(key)
            return found

    def keep_answer(self, key: Hashable, answer: Answered) -> None:
        """Keeps an answer."""
        with self._lock:
            before = self._answers.pop(key, None)
            self._bytes += answer.nbytes - (before.nbytes if before else 0)
            self._answers[key] = answer
            while self._bytes > ANSWERS_BYTES or len(self._answers) > QUERIES_KEPT:
                _, gone = self._answers.popitem(last=False)
                self._bytes -= gone.nbytes

    def recording(
        self, key: Hashable, batches: Iterable[pa.RecordBatch], tables: Iterable[TableSnapshot], at: int, version: int
    ) -> Iterator[pa.RecordBatch]:
        """``batches`` as they pass; when all have, and they are not too large, they are kept."""
        read = tuple((rows.table, rows.tail) for rows in tables)
        kept: list[pa.RecordBatch] | None = []
        size = 0
        try:
            for batch in batches:
                if kept is not None:
                    kept.append(batch)
                    size += batch.nbytes
                    if size > ANSWER_BYTES:
                        kept = None
                yield batch
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()
        if kept is not None:
            self.keep_answer(key, Answered(tuple(kept), read, at, version, size))


def tables_of(node: Plan) -> list[TableSnapshot]:
    """The tables that an optimised plan scans."""
    return [scan.table.rows for scan in plan.walk(node) if isinstance(scan, plan.Scan)]  # type: ignore[misc]


def is_repeatable(bound_plan: Plan, catalog: StatementCatalog) -> bool:
    """Whether a bound plan answers the same whenever the tables it reads, at their newest, are the same."""
    if catalog.has_asked:
        return False  # The plan itself depends on what is in tables.
    for node in plan.walk(bound_plan):
        if isinstance(node, plan.Sample):
            return False
        if isinstance(node, plan.Scan):
            rows = node.table.rows
            if not isinstance(rows, TableSnapshot) or rows.snapshot is not catalog.snapshot or rows.upto is not None:
                return False
            if rows.table.design.ttl:
                return False  # Rows go as time goes by.
        for expr in plan.expressions_of(node):
            if not _is_repeatable(expr, catalog):
                return False
    return True


def _is_repeatable(expr: bound.Expr, catalog: StatementCatalog) -> bool:
    for inner in bound.walk(expr):
        match inner:
            case bound.Call(function=function) if function.volatility != "immutable":
                return False
            case bound.ScalarSubquery() | bound.Exists() | bound.Quantified() if not is_repeatable(inner.plan, catalog):
                return False
    return True


def detached(planned: Planned) -> Planned:
    """The query without rows to read: a remembered plan that held a snapshot would keep its files for ever."""

    def without_rows(each: Plan) -> Plan:
        if not isinstance(each, plan.Scan):
            return each
        return structs.replace(each, table=structs.replace(each.table, rows=_NoRows(), statistics=_no_statistics))

    bare = plan.rewrite(planned.plan, without_rows)
    return Planned(structs.replace(planned.found, plan=bare), bare, planned.shows, planned._origins)


class _NoRows:
    """The rows of a table that ``with_tables`` looks up again."""

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """Nobody asks."""
        raise AssertionError("a kept plan is run over tables of its time")


def _no_statistics() -> TableStatistics:
    return TableStatistics(0.0)


def with_tables(node: Plan, catalog: StatementCatalog) -> Plan:
    """A kept plan over the tables as the catalog has them."""

    def renewed(each: Plan) -> Plan:
        if not isinstance(each, plan.Scan):
            return each
        found = catalog.find(each.table.name, None)
        assert isinstance(found, PlanTable), "a kept plan scans tables"
        return structs.replace(each, table=found)

    return plan.rewrite(node, renewed)
