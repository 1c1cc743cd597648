"""Scans: the parts of a table as morsels, filtered, with what the joins above know of their keys.

    Scan lineitem [l_orderkey, l_price]  l_shipdate > 1995-03-15, l_orderkey in orders

A part is a morsel. The table skips parts by the simple ones of the filters (``Predicate``); every row is tested all the
same. A join whose probe key is a column of the scan hands down a KeyFilter when its build side is ready: rows without a
partner are dropped before anything else looks at them, as long as that drops enough. A top N whose first key is a column
of the scan hands down its bound.

Of a row group the columns that are tested are read first, and the others only where rows passed. Columns that are deferred
are not read at all: ``fetch`` answers them for the few rows that a top N has chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from lake.exec.context import Context
from lake.exec.kernels.join import KeyFilter
from lake.exec.operators.base import MORSEL_ROWS, Morsel, Source, column_name
from lake.exec.operators.batches import (
    bare_batch,
    concat_columns,
    empty_batch,
    keep_rows,
    make_batch,
    select_columns,
    slices,
    wide_columns,
)
from lake.exec.operators.top_bound import TopBound
from lake.exec.selection import Selector
from lake.rows import Group, Part, Parts, Predicate, RowSource
from lake.sql import plan
from lake.sql.bound import Column, Compare, Expr, InList, IsNull, Literal, Not, columns_of
from lake.types import BIGINT

TRIAL_ROWS: Final = 200_000
USEFUL_SHARE: Final = 0.8
"""A key filter that lets more than this share of TRIAL_ROWS rows pass costs more than it saves, and is left out."""

SHARP_SHARE: Final = 0.3
"""A key filter that lets less than this share pass leaves the scan's own filters little to do."""

PLACE: Final = Column(BIGINT, -1, "place", nullable=False)
"""Where a row is: the number of its part, and in the lowest PLACE_BITS its number among the part's rows."""
PLACE_BITS: Final = 40

_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class RuntimeFilter(Struct):
    """What a join knows of its key; ``seen`` and ``passed`` are counted by all workers without a lock: a rough guess does."""

    column: Column
    keys: KeyFilter
    seen: int = 0
    passed: int = 0

    @property
    def is_useful(self) -> bool:
        """Whether it drops enough rows."""
        return self.seen < TRIAL_ROWS or self.passed < USEFUL_SHARE * self.seen

    @property
    def is_sharp(self) -> bool:
        """Whether it drops so much that it goes before the scan's own filters."""
        return self.seen > 0 and self.passed < SHARP_SHARE * self.seen


class Taker(Protocol):
    """What filters and aggregates a scan's batches by itself, where it can."""

    @property
    def is_useful(self) -> bool:
        """Whether so many rows pass the filters that all columns are needed of every row group."""
        ...

    def take(self, batch: pa.RecordBatch) -> bool:
        """Takes a batch of all columns; False where it is to be filtered and answered."""
        ...


@dataclass(eq=False)
class Scan(Source):
    """Rows of a table.

    columns   what is answered         read   what is read: ``columns`` and those that the filters use
    filters   conjuncts over ``read``  names  stored names of ``read``
    deferred  what ``fetch`` answers
    taker     is offered batches before they are filtered
    """

    columns: tuple[Column, ...]
    table_name: str
    rows: RowSource
    read: tuple[Column, ...]
    names: tuple[str, ...]
    filters: tuple[Expr, ...]
    runtime: list[RuntimeFilter] = field(default_factory=list, init=False)
    top: tuple[Column, TopBound] | None = field(default=None, init=False)
    deferred: tuple[Column, ...] = field(default=(), init=False)
    taker: Taker | None = field(default=None, init=False)
    _stored: dict[int, str] = field(default_factory=dict, init=False)
    _parts: Sequence[Part] = field(default=(), init=False)
    _selector: Selector | None = field(default=None, init=False)
    _filtered: tuple[Column, ...] = field(default=(), init=False)
    _tested: tuple[Column, ...] = field(default=(), init=False)
    _rest: tuple[Column, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        self._stored = {column.id: name for column, name in zip(self.read, self.names, strict=True)}

    def describe(self) -> str:
        return f"{self.table_name} [{', '.join(self.names)}]"

    def offer(self, column: Column, keys: KeyFilter) -> None:
        """Takes a filter on one of its columns; called before it is opened."""
        self.runtime.append(RuntimeFilter(column, keys))

    def defer(self, kept: Sequence[Column]) -> None:
        """Answers ``kept``, some of its columns, and PLACE; the others are for ``fetch``. Called before it is opened."""
        used = columns_of(self.filters) | {column.id for column in kept}
        self.deferred = tuple(column for column in self.columns if column not in kept)
        self.columns = (*kept, PLACE)
        self.read = tuple(column for column in self.read if column.id in used)
        self.names = tuple(self._stored[column.id] for column in self.read)
        if isinstance(self.plan, plan.Scan):
            self.plan = replace(self.plan, outputs=self.read, names=self.names)

    @property
    def _asked(self) -> tuple[Column, ...]:
        """The columns that parts are asked for: a filter may read one that is deferred."""
        return tuple(dict.fromkeys((*self.read, *self.deferred)))

    def open(self, context: Context) -> Source:
        stored = self._stored
        used = columns_of(self.filters)
        if self.filters:
            self._selector = Selector(self.filters, context)
            self._filtered = tuple(column for column in self.read if column.id in used)
        tested = used | {known.column.id for known in self.runtime} | ({self.top[0].id} if self.top else set())
        self._tested = tuple(column for column in self.read if column.id in tested)
        self._rest = tuple(column for column in self.read if column.id not in tested)
        predicates = [test for expr in self.filters if (test := predicate_of(expr, stored)) is not None]
        for known in self.runtime:
            if known.keys.low is not None and known.keys.high is not None:
                name = stored[known.column.id]
                predicates += [Predicate(name, ">=", known.keys.low), Predicate(name, "<=", known.keys.high)]
        parts = self.rows.parts([stored[column.id] for column in self._asked], predicates)
        self.metrics.parts = len(parts)
        self.metrics.skipped = parts.skipped if isinstance(parts, Parts) else 0
        self._parts = parts if self.top is None else promising_first(parts, stored[self.top[0].id], self.top[1])
        return self

    def rows_expected(self) -> int | None:
        counts = [part.rows for part in self._parts]
        return None if None in counts else sum(count for count in counts if count is not None)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for number, part in enumerate(self._parts):
            yield lambda number=number, part=part: self._run(number, part)  # type: ignore[misc]

    def _run(self, number: int, part: Part) -> Iterable[pa.RecordBatch]:
        if not self.names and part.rows is not None:
            for start in range(0, part.rows, MORSEL_ROWS):
                bare = bare_batch(min(MORSEL_ROWS, part.rows - start))
                yield self._kept(bare, self._passing(bare))
            return
        is_read = False
        for batch in self._read(number, part) if part.group is None else self._read_group(number, part.group):
            is_read = True
            yield batch
        if not is_read:
            # Its own statistics rule it out. Workers count without a lock: two at once may count one.
            self.metrics.parts -= 1
            self.metrics.skipped += 1

    def _read(self, number: int, part: Part) -> Iterator[pa.RecordBatch]:
        """The kept rows of a part."""
        for batch in self._placed(number, self._batches_of(part)):
            yield self._answered(batch)

    def _batches_of(self, part: Part) -> Iterator[pa.RecordBatch]:
        fields = [column_name(column) for column in self._asked]
        for stored in part.read():
            yield from slices(make_batch(fields, stored.columns, stored.num_rows))

    def _read_group(self, number: int, group: Group) -> Iterator[pa.RecordBatch]:
        """The kept rows of a row group: of the columns that no test looks at nothing is read where no row passed."""
        if not group.may_hold(()) or (self.top is not None and self._is_beyond(group, *self.top)):
            return
        if not self._tested or not self._rest or (self.taker is not None and self.taker.is_useful):
            for batch in self._placed(number, self._columns_of(group, self.read)):
                yield self._answered(batch)
            return
        tested = list(self._placed(number, self._columns_of(group, self._tested)))
        passing = [self._passing(batch) for batch in tested]
        if all(rows is not None and len(rows) == 0 for rows in passing):
            yield empty_batch(self.columns)
            return
        for batch, rest, rows in zip(tested, self._columns_of(group, self._rest), passing, strict=True):
            names = [*batch.schema.names, *rest.schema.names]
            yield self._kept(make_batch(names, [*batch.columns, *rest.columns], batch.num_rows), rows)

    def _columns_of(self, group: Group, columns: Sequence[Column]) -> list[pa.RecordBatch]:
        """The rows of a group, whole numbers maybe in narrow form."""
        fields = [column_name(column) for column in columns]
        batches = group.read([self._stored[column.id] for column in columns])
        return [make_batch(fields, batch.columns, batch.num_rows) for batch in batches]

    def _placed(self, number: int, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """The batches of a part with the rows' places, where columns are deferred."""
        return with_places(number << PLACE_BITS, batches) if self.deferred else batches

    def fetch(self, number: int, rows: Any) -> list[pa.Array]:
        """The deferred columns of some rows of a part, by their ascending numbers."""
        part = self._parts[number]
        if part.group is None:
            batches: Iterable[pa.RecordBatch] = self._batches_of(part)
        else:
            batches = self._columns_of(part.group, self.deferred)
        pieces, start = [], 0
        for batch in batches:
            end = start + batch.num_rows
            here = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)] - start
            if len(here):
                pieces.append(keep_rows(select_columns(batch, self.deferred), here, self.deferred))
            start = end
        return [concat_columns([piece.column(place) for piece in pieces]) for place in range(len(self.deferred))]

    def _is_beyond(self, group: Group, column: Column, bound: TopBound) -> bool:
        """Whether all rows of a group come after the bound."""
        name = self._stored[column.id]
        test = bound.predicate(name)
        if test is None or group.may_hold([test]):
            return False
        return not (bound.nulls_first and group.may_hold([Predicate(name, "is null", None)]))

    def _answered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The kept rows of a batch, none where it was taken whole."""
        if self.taker is not None and self.taker.take(batch):
            return empty_batch(self.columns)
        return self._kept(batch, self._passing(batch))

    def _kept(self, batch: pa.RecordBatch, rows: Any) -> pa.RecordBatch:
        """The columns answered, of the rows (None for all)."""
        if rows is not None and len(rows) == 0:
            return empty_batch(self.columns)
        kept = select_columns(batch, self.columns)
        return wide_columns(kept, self.columns) if rows is None else keep_rows(kept, rows, self.columns)

    def _passing(self, batch: pa.RecordBatch) -> Any:
        """int64[passing]: the rows that pass all tests; None for all."""
        rows = None
        if self.top is not None:
            column, bound = self.top
            rows = bound.rows(batch.column(column_name(column)), None)
        for known in self.runtime:
            if known.is_sharp:
                rows = self._match(known, batch, rows)
        if self._selector is not None:
            rows = self._select(self._selector, batch, rows)
        for known in self.runtime:
            if known.is_useful and not known.is_sharp:
                rows = self._match(known, batch, rows)
        return rows

    def _match(self, known: RuntimeFilter, batch: pa.RecordBatch, rows: Any) -> Any:
        """Those of the rows (None for all) whose key may have a partner."""
        if rows is not None and len(rows) == 0:
            return rows
        found = known.keys.rows(batch.column(column_name(known.column)), known.column.type.physical, rows)
        known.seen += batch.num_rows if rows is None else len(rows)
        known.passed += len(found)
        return found

    def _select(self, selector: Selector, batch: pa.RecordBatch, rows: Any) -> Any:
        """Those of the rows (None for all) that pass the scan's own filters."""
        if rows is None:
            return selector.rows(batch)
        if len(rows) == 0:
            return rows
        chosen = selector.rows(keep_rows(select_columns(batch, self._filtered), rows))
        return rows if chosen is None else rows[chosen]


def with_places(start: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches with a column PLACE that counts their rows from ``start``."""
    for batch in batches:
        end = start + batch.num_rows
        yield batch.append_column(column_name(PLACE), pa.array(np.arange(start, end, dtype=np.int64)))
        start = end


def promising_first(parts: Sequence[Part], name: str, bound: TopBound) -> list[Part]:
    """The parts with the rows that come first at the front, as far as ranges tell, so that the bound is tight soon."""
    def place(part: Part) -> tuple[bool, Any]:
        found = None if part.group is None else part.group.range_of(name)
        return (found is not None, 0 if found is None else -found[1] if bound.descending else found[0])

    return sorted(parts, key=place)


def predicate_of(expr: Expr, stored: dict[int, str]) -> Predicate | None:
    """The test that storage can make of a conjunct, None where it can make none."""
    match expr:
        case Compare(op=op, left=Column(id=id), right=Literal(value=value)) if _simple(op, id, value, stored):
            return Predicate(stored[id], op, value)
        case Compare(op=op, left=Literal(value=value), right=Column(id=id)) if _simple(op, id, value, stored):
            return Predicate(stored[id], _MIRRORED[op], value)
        case InList(operand=Column(id=id), items=items) if id in stored:
            values = [item.value for item in items if isinstance(item, Literal) and item.value is not None]
            return Predicate(stored[id], "in", tuple(values)) if len(values) == len(items) else None
        case IsNull(operand=Column(id=id)) if id in stored:
            return Predicate(stored[id], "is null", None)
        case Not(operand=IsNull(operand=Column(id=id))) if id in stored:
            return Predicate(stored[id], "is not null", None)
    return None


def _simple(op: str, id: int, value: object, stored: dict[int, str]) -> bool:
    return op in _MIRRORED and id in stored and value is not None
