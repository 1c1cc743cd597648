"""Scans: the parts of a table as morsels, filtered, with what the joins above know of their keys.

    Scan lineitem [l_orderkey, l_price]  l_shipdate > 1995-03-15, l_orderkey in orders

A part is a morsel. The table skips parts by the simple ones of the filters (``Predicate``); every row is tested all the
same. A join whose probe key is a column of the scan hands down a KeyFilter when its build side is ready: rows without a
partner are dropped before anything else looks at them, as long as that drops enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.kernels.join import KeyFilter
from lake.exec.operators.base import MORSEL_ROWS, Morsel, Source, column_name
from lake.exec.operators.batches import bare_batch, keep_rows, make_batch, select_columns, slices, wide_columns
from lake.exec.selection import Selector
from lake.rows import Part, Parts, Predicate, RowSource
from lake.sql.bound import Column, Compare, Expr, InList, IsNull, Literal, Not, columns_of

TRIAL_ROWS: Final = 200_000
USEFUL_SHARE: Final = 0.8
"""A key filter that lets more than this share of TRIAL_ROWS rows pass costs more than it saves, and is left out."""

SHARP_SHARE: Final = 0.3
"""A key filter that lets less than this share pass leaves the scan's own filters little to do."""

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


@dataclass(eq=False)
class Scan(Source):
    """Rows of a table.

    columns   what is answered         read   what is read: ``columns`` and those that the filters use
    filters   conjuncts over ``read``  names  stored names of ``read``
    """

    columns: tuple[Column, ...]
    table_name: str
    rows: RowSource
    read: tuple[Column, ...]
    names: tuple[str, ...]
    filters: tuple[Expr, ...]
    runtime: list[RuntimeFilter] = field(default_factory=list, init=False)
    _parts: Sequence[Part] = field(default=(), init=False)
    _selector: Selector | None = field(default=None, init=False)
    _tested: tuple[Column, ...] = field(default=(), init=False)

    def describe(self) -> str:
        return f"{self.table_name} [{', '.join(self.names)}]"

    def offer(self, column: Column, keys: KeyFilter) -> None:
        """Takes a filter on one of its columns; called before it is opened."""
        self.runtime.append(RuntimeFilter(column, keys))

    def open(self, context: Context) -> Source:
        if self.filters:
            self._selector = Selector(self.filters, context)
            used = columns_of(self.filters)
            self._tested = tuple(column for column in self.read if column.id in used)
        stored = {column.id: name for column, name in zip(self.read, self.names, strict=True)}
        predicates = [test for expr in self.filters if (test := predicate_of(expr, stored)) is not None]
        for known in self.runtime:
            if known.keys.low is not None and known.keys.high is not None:
                name = stored[known.column.id]
                predicates += [Predicate(name, ">=", known.keys.low), Predicate(name, "<=", known.keys.high)]
        self._parts = self.rows.parts(self.names, predicates)
        self.metrics.parts = len(self._parts)
        self.metrics.skipped = self._parts.skipped if isinstance(self._parts, Parts) else 0
        return self

    def rows_expected(self) -> int | None:
        counts = [part.rows for part in self._parts]
        return None if None in counts else sum(count for count in counts if count is not None)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for part in self._parts:
            yield lambda part=part: self._run(part)  # type: ignore[misc]

    def _run(self, part: Part) -> Iterable[pa.RecordBatch]:
        if not self.names and part.rows is not None:
            for start in range(0, part.rows, MORSEL_ROWS):
                yield self._keep(bare_batch(min(MORSEL_ROWS, part.rows - start)))
            return
        fields = [column_name(column) for column in self.read]
        is_read = False
        for stored in (part.narrow or part.read)():
            is_read = True
            named = make_batch(fields, stored.columns, stored.num_rows)
            for batch in slices(named):
                yield self._keep(batch)
        if not is_read:
            # Its own statistics rule it out. Workers count without a lock: two at once may count one.
            self.metrics.parts -= 1
            self.metrics.skipped += 1

    def _keep(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that pass all filters, and of them the columns answered."""
        rows = None
        for known in self.runtime:
            if known.is_sharp:
                rows = self._match(known, batch, rows)
        if self._selector is not None:
            rows = self._select(self._selector, batch, rows)
        for known in self.runtime:
            if known.is_useful and not known.is_sharp:
                rows = self._match(known, batch, rows)
        kept = select_columns(batch, self.columns)
        return wide_columns(kept, self.columns) if rows is None else keep_rows(kept, rows, self.columns)

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
        chosen = selector.rows(keep_rows(select_columns(batch, self._tested), rows))
        return rows if chosen is None else rows[chosen]


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
