"""The way of a change: the rows that a query finds become deletions and new versions, in one commit.

    UPDATE t SET a = a + 1 WHERE b > 2

    query ── place, row id, old values, new values ── defaults, casts, checks ── new versions ─┐
             place ── deletions of the old versions ────────────────────────────────────────────┴─ one commit

The places of rows are good for one layout of the table: where tiering or a merge came between the snapshot and the
commit, or another change was first, the commit is refused and the statement is done again on a newer snapshot. Changes
of one table wait for each other, so that this ends.
Spec: SQL, Tables; reference: row statements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from lake.db.names import find_table
from lake.db.write.identity import identity_columns, refuse_given_identity, refuse_set_identity
from lake.db.write.incoming import Incoming
from lake.db.write.keyed import check_keys, keys_of, marked, marker_columns, refuse_change, take_inserted
from lake.db.write.once import Once
from lake.db.write.point import changed_row
from lake.db.write.row import change_row
from lake.db.write.unique import UniqueCheck
from lake.errors import CardinalityViolation, SerializationFailure
from lake.rows import Part, Predicate
from lake.sql import ast, parser, plan
from lake.sql.bind import Binder, BoundQuery
from lake.sql.bind.change import ChangedRows
from lake.sql.bound import Column
from lake.sql.catalog import Table as PlanTable
from lake.sql.catalog import TableColumn, TableStatistics
from lake.storage.catalog.changes import Change
from lake.storage.catalog.model import CREATED_AT, DELETED, ROW_ID, Table
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Append, Flush
from lake.storage.tables.read import PLACE
from lake.types import BIGINT, Type

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog
    from lake.db.session import Run

TRIES: Final = 10  # of a statement whose rows others keep moving
HIDDEN: Final = (PLACE, ROW_ID, CREATED_AT)
KINDS: Final = ("update", "delete", "insert", "do nothing")
UPDATE, DELETE, INSERT, NOTHING = range(len(KINDS))
SEGMENT_ROWS: Final = 262_144  # of one append

ChangeStatement = ast.Update | ast.Delete | ast.Merge | ast.Insert


class Changed(Struct):
    """What became of a statement's rows; ``returned`` are those that RETURNING answers, in table order."""

    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    duplicate: bool = False
    returned: list[pa.RecordBatch] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """All of them."""
        return self.updated + self.deleted + self.inserted

    def outcome(self) -> dict[str, object]:
        """The answer to JSON doors."""
        if self.duplicate:
            return {"duplicate": True}
        return {"rows": self.rows, "updated": self.updated, "deleted": self.deleted, "inserted": self.inserted}


class Found(Struct):
    """Rows that a statement changes: places of old versions, and new versions with and without a row id.

    inserted  new rows of INSERT .. ON CONFLICT, which may share keys
    """

    inserted: list[pa.RecordBatch] = field(default_factory=list)
    places: list[np.ndarray] = field(default_factory=list)
    appends: list[pa.RecordBatch] = field(default_factory=list)
    changed: Changed = field(default_factory=Changed)


class Written:
    """Rows that were written, for RETURNING; a ``lake.rows.RowSource`` over batches in the order of the columns."""

    def __init__(self, columns: Sequence[TableColumn]) -> None:
        self.batches: list[pa.RecordBatch] = []
        self._places = {column.name: place for place, column in enumerate(columns)}

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """A part for each batch."""
        return [Part(batch.num_rows, self._reader(batch, columns)) for batch in self.batches]

    def _reader(self, batch: pa.RecordBatch, columns: Sequence[str]) -> Callable[[], list[pa.RecordBatch]]:
        if not columns:
            return lambda: [batch.select([])]
        arrays = [batch.column(self._places[name]) for name in columns]
        return lambda: [pa.RecordBatch.from_arrays(arrays, names=list(columns))]


def defaults_of(table: Table) -> dict[str, ast.Expr]:
    """DEFAULT expressions by column."""
    return {column.name: parser.parse_expression(column.default) for column in table.columns if column.default}


def written_table(table: Table, columns: Sequence[TableColumn]) -> tuple[PlanTable, Written]:
    """A table of rows yet to come, under the name and columns of ``table``."""
    rows = Written(columns)
    return PlanTable((table.schema, table.name), tuple(columns), rows, lambda: TableStatistics(1_000.0)), rows


def change(run: Run, stmt: ChangeStatement, once: Once | None) -> tuple[Changed, BoundQuery | None]:
    """Carries out UPDATE, DELETE, MERGE or INSERT .. ON CONFLICT as one commit from one snapshot.

    42501  the caller may not do to the table what the statement does
    40001  in a transaction, or when others keep changing the same rows
    """
    table = find_table(run.catalog.state, stmt.table, run.database.name)
    for privilege in _privileges(stmt):
        run.require(privilege, table)
    refuse_set_identity(stmt, table)
    if run.in_transaction:
        return _attempt(run, stmt, once)
    with run.database.changing(table.id):
        for attempt in range(TRIES):
            run.renew()
            try:
                return _attempt(run, stmt, once)
            except SerializationFailure:
                if attempt == TRIES - 1:
                    raise
    raise AssertionError("unreachable")


def _privileges(stmt: ChangeStatement) -> list[str]:
    """What a caller must have been granted."""
    match stmt:
        case ast.Update():
            return ["update"]
        case ast.Delete():
            return ["delete"]
        case ast.Insert():
            replaces = stmt.conflict is not None and stmt.conflict.action != "nothing"
            return ["insert", "update"] if replaces else ["insert"]
        case _:
            return sorted({clause.action for clause in stmt.clauses} - {"do nothing"})


def bound_change(
    stmt: ChangeStatement, table: Table, catalog: StatementCatalog, binder: Binder
) -> tuple[ChangedRows, ast.Update | ast.Delete | ast.Merge]:
    """The rows that a statement changes, bound, and the statement that they are those of."""
    source = catalog.snapshot.table_by_id(table.id)
    columns, hidden = catalog.columns_of(table), catalog.hidden_columns(table)
    hidden.append(TableColumn(PLACE, BIGINT, False, hidden=True))
    target = PlanTable((table.schema, table.name), (*columns, *hidden), source, source.statistics)
    refuse_change(table, stmt)
    if isinstance(stmt, ast.Insert):
        key, defaults = [column.name for column in table.key], defaults_of(table)
        given = binder.insert(stmt, columns, defaults, identity_columns(table))
        refuse_given_identity(stmt, table, given.given)
        return binder.conflict(stmt, given, target, columns, defaults, HIDDEN, key)
    made = binder.change(stmt, target, columns, defaults_of(table), HIDDEN)
    return (_bare(made, marker_columns(table)) if isinstance(stmt, ast.Delete) and not stmt.returning else made), stmt


def _bare(made: ChangedRows, names: Collection[str]) -> ChangedRows:
    """The rows that DELETE changes, with those of their columns that are written."""
    assert isinstance(made.plan, plan.Project), "what a DELETE finds is projected"
    kept = tuple(column for column in made.columns if column.name in names)
    outputs = (*made.hidden, *kept)
    exprs = dict(zip(made.plan.columns, made.plan.exprs, strict=True))
    project = plan.Project(outputs, tuple(exprs[column] for column in outputs), made.plan.input)
    return replace(made, plan=project, columns=kept)


def _attempt(run: Run, stmt: ChangeStatement, once: Once | None) -> tuple[Changed, BoundQuery | None]:
    table = find_table(run.catalog.state, stmt.table, run.database.name)
    if once is None and isinstance(stmt, ast.Update | ast.Delete):
        count = change_row(run, stmt, table)
        if count is not None:
            return (Changed(updated=count) if isinstance(stmt, ast.Update) else Changed(deleted=count)), None
    source = run.catalog.snapshot.table_by_id(table.id)
    columns = run.catalog.columns_of(table)
    made, merge = bound_change(stmt, table, run.catalog, run.binder())
    rows: Iterable[pa.RecordBatch] | None = changed_row(run, made.plan, source)
    if rows is None:
        outputs = (*made.hidden, *(() if made.action is None else (made.action,)), *made.columns)
        query = BoundQuery(made.plan, outputs, tuple(column.name for column in outputs))
        rows = run.answer(query, run.optimize(made.plan)).source
    found = _gather(run, merge, table, rows, made.columns)
    if isinstance(stmt, ast.Insert):
        take_inserted(table, stmt, found)
    found.appends = _joined([*found.appends, *found.inserted])
    found.changed.returned += found.inserted
    returning = None
    if stmt.returning:
        returned, written = written_table(table, columns)
        written.batches = found.changed.returned
        alias = None if isinstance(stmt, ast.Insert) else stmt.alias
        returning = run.binder().returning(stmt.returning, stmt.table, alias, returned)
        result = run.answer(returning, run.optimize(returning.plan))
        found.changed.returned = list(result.source)
    if not found.changed.rows and once is None:
        return found.changed, returning
    is_keyed = bool(table.design.key)
    places = np.concatenate(found.places) if found.places and not is_keyed else np.empty(0, np.int64)
    keys = keys_of(table, found.appends) if is_keyed else None
    gone = source.deletes_at(places) if len(places) else None
    changes: tuple[Change, ...] = () if gone is None else (gone,)
    check = _unique_check(run, stmt, table, found)
    if check is not None:
        check.look(source, gone)

    def prepare(state: State) -> list[Change | Append]:
        run.database.check_same(state, table)
        if keys is not None:
            check_keys(source.snapshot, state, table, keys)
        if check is not None:
            now = run.database.lake.snapshot(state).table_by_id(table.id)
            if gone is not None and gone.layout != now.table.layout:
                raise SerializationFailure(f'rows of table "{table.name}" moved to other files meanwhile')
            check.check(now, gone)
        return []

    flush = Flush(
        appends=tuple(Append(table.id, batch) for batch in found.appends),
        changes=changes,
        prepare=prepare,
        producer=None if once is None else once.producer,
        seq=0 if once is None else once.seq,
        prev=None if once is None else once.prev,
    )
    acknowledged = run.commit(flush)
    found.changed.duplicate = acknowledged.duplicate
    return found.changed, returning


def _unique_check(run: Run, stmt: ChangeStatement, table: Table, found: Found) -> UniqueCheck | None:
    """The check of the new versions; an UPDATE that leaves a key alone cannot break its constraint."""
    if not found.appends:
        return None
    columns = [item.column for item in stmt.assignments] if isinstance(stmt, ast.Update) else None
    check = run.database.unique_check(table, columns)
    if check is not None:
        for batch in found.appends:
            check.add(batch)
    return check


def _gather(
    run: Run,
    stmt: ast.Update | ast.Delete | ast.Merge,
    table: Table,
    batches: Iterable[pa.RecordBatch],
    columns: Sequence[Column],
) -> Found:
    """The rows of the statement's query, each row of the table once.

    21000  MERGE would change a row twice
    """
    found = Found()
    seen = _Seen(isinstance(stmt, ast.Merge) or _joins(stmt))
    rules = run.database.rules(table, run)
    actions = [clause.action for clause in stmt.clauses] if isinstance(stmt, ast.Merge) else []
    names, types = [column.name for column in columns], [column.type for column in columns]
    for batch in batches:
        places = batch.column(0)
        kinds = _kinds(stmt, batch, actions)
        is_there = places.is_valid().to_numpy(zero_copy_only=False) & (kinds != NOTHING)
        here = np.flatnonzero(is_there)
        fresh = seen.fresh(places.fill_null(0).to_numpy()[here])
        if isinstance(stmt, ast.Merge) and len(fresh) < len(here):
            raise CardinalityViolation(f'a row of "{table.name}" matches more than one source row')
        here = here[fresh]
        offset = 3 + bool(actions)
        given = dict(zip(names, batch.columns[offset:], strict=True))
        old = _Rows(batch, here[kinds[here] == UPDATE], given, types)
        gone = here[kinds[here] == DELETE]
        new = np.flatnonzero(kinds == INSERT)
        if not table.design.key:
            found.places.append(_taken(places, here).to_numpy())
        if len(old.rows):
            prepared = rules.prepare(old.incoming())
            found.appends.append(_version(table, prepared, batch, old.rows))
            found.changed.returned.append(prepared)
        if len(new):
            prepared = rules.prepare(_Rows(batch, new, given, types).incoming())
            found.inserted.append(prepared)
        if len(gone) and table.design.key:
            found.appends.append(marked(table, _Rows(batch, gone, given, types).incoming().arrays, batch, gone))
        if len(gone) and stmt.returning:
            arrays = [_taken(array, gone) for array in given.values()]
            found.changed.returned.append(pa.RecordBatch.from_arrays(arrays, names=names))
        found.changed.updated += len(old.rows)
        found.changed.deleted += len(gone)
        found.changed.inserted += len(new)
    return found


def _joins(stmt: ast.Update | ast.Delete) -> bool:
    """Whether a row of the table may be met more than once."""
    return bool(stmt.sources)


class _Seen:
    """The rows of a table that a statement has met; ``repeats`` where one may come again."""

    def __init__(self, repeats: bool) -> None:
        self._repeats = repeats
        self._places = np.empty(0, np.int64)

    def fresh(self, places: np.ndarray) -> np.ndarray:
        """Which of ``places`` are met for the first time, ascending."""
        if not self._repeats:
            return np.arange(len(places))
        unique, first = np.unique(places, return_index=True)
        is_new = np.ones(len(unique), np.bool_)
        if len(self._places):
            at = np.minimum(np.searchsorted(self._places, unique), len(self._places) - 1)
            is_new = self._places[at] != unique
        self._places = np.sort(np.concatenate([self._places, unique[is_new]]), kind="stable")
        return np.sort(first[is_new])


def _version(table: Table, prepared: pa.RecordBatch, batch: pa.RecordBatch, rows: np.ndarray) -> pa.RecordBatch:
    """New versions of rows, with what stays of the old ones."""
    arrays = [*prepared.columns, *(_taken(batch.column(at), rows) for at in (1, 2))]
    names = [*prepared.schema.names, ROW_ID, CREATED_AT]
    if table.design.key:
        arrays.append(pa.array(np.zeros(len(rows), np.bool_)))
        names.append(DELETED)
    return pa.RecordBatch.from_arrays(arrays, names=names)


class _Rows(Struct, frozen=True):
    """Some rows of a batch."""

    batch: pa.RecordBatch
    rows: np.ndarray
    given: Mapping[str, pa.Array]
    types: Sequence[Type]

    def incoming(self) -> Incoming:
        """As they go to the table's rules."""
        arrays = {name: _taken(array, self.rows) for name, array in self.given.items()}
        return Incoming(len(self.rows), arrays, dict(zip(arrays, self.types, strict=True)))


def _taken(array: pa.Array, rows: np.ndarray) -> pa.Array:
    """Some of an array's rows, ascending."""
    return array if len(rows) == len(array) else array.take(pa.array(rows))


def _kinds(stmt: ast.Update | ast.Delete | ast.Merge, batch: pa.RecordBatch, actions: Sequence[str]) -> np.ndarray:
    """What happens to each row: UPDATE, DELETE, INSERT or NOTHING."""
    match stmt:
        case ast.Update():
            return np.full(batch.num_rows, UPDATE, np.int8)
        case ast.Delete():
            return np.full(batch.num_rows, DELETE, np.int8)
        case _:
            kinds = np.array([KINDS.index(action) for action in actions], np.int8)
            chosen: np.ndarray = np.take(kinds, batch.column(len(HIDDEN)).to_numpy())
            return chosen


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Batches of one schema put together, up to SEGMENT_ROWS each."""
    groups: dict[tuple[str, ...], list[pa.RecordBatch]] = {}
    for batch in batches:
        groups.setdefault(tuple(batch.schema.names), []).append(batch)
    joined: list[pa.RecordBatch] = []
    for group in groups.values():
        merged = pa.concat_batches(group)
        joined += [merged.slice(start, SEGMENT_ROWS) for start in range(0, merged.num_rows, SEGMENT_ROWS)]
    return joined
