"""RESTORE: the difference between a table and what it was, written as one change.

    now   a@7  b@3  c@9        then   a@2  b@3  d@4          (row @ version)

    b stays; a's old values come back under its row id; c goes; d returns under its row id. All of it is one commit, so the
    state before it can be restored as well.

Spec: SQL, Table lifecycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.db.names import find_table
from lake.db.write.change import SEGMENT_ROWS, Changed
from lake.db.write.checks import Rules
from lake.db.write.incoming import Incoming
from lake.errors import FeatureNotSupported, SerializationFailure
from lake.sql import ast
from lake.storage.catalog.changes import Change
from lake.storage.catalog.deletes import Numbers
from lake.storage.catalog.model import CREATED_AT, ROW_ID, VERSION, Table
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Append, Flush
from lake.storage.faults import crash_point
from lake.storage.tables.read import PLACE
from lake.storage.tables.snapshot import TableSnapshot

if TYPE_CHECKING:
    from lake.db.session import Run

TRIES: Final = 10  # while upkeep moves rows, or others change them


class _Versions(Struct, frozen=True):
    """Versions of rows, by ascending row id; ``places`` only of rows as they are."""

    ids: Numbers
    versions: Numbers
    places: Numbers


def restore_table(run: Run, stmt: ast.Restore) -> Changed:
    """Carries out RESTORE; what it answers counts rows as UPDATE and DELETE do.

    0A000  inside a transaction, or a table that keeps no past of its rows
    """
    if run.in_transaction:
        raise FeatureNotSupported("RESTORE inside a transaction is not supported")
    table = find_table(run.catalog.state, stmt.table, run.database.name)
    with run.database.changing(table.id):
        for attempt in range(TRIES):
            run.renew()
            try:
                return _attempt(run, stmt)
            except SerializationFailure:
                if attempt == TRIES - 1:
                    raise
    raise AssertionError("unreachable")


def _attempt(run: Run, stmt: ast.Restore) -> Changed:
    table = find_table(run.catalog.state, stmt.table, run.database.name)
    value = run.binder().constant(stmt.at.value, "RESTORE")
    then = run.catalog.past(table, stmt.at.kind, value, table.columns)
    now = run.catalog.snapshot.table_by_id(table.id)
    found, wanted = _versions(now, PLACE), _versions(then, None)
    gone = found.places[~_held(found, wanted)]
    missing = ~_held(wanted, found)
    rules = run.database.rules(table, run)
    appends = _old_rows(then, wanted.ids[missing], table, rules)
    back = np.isin(wanted.ids[missing], found.ids)
    changed = Changed(int(back.sum()), len(gone) - int(back.sum()), int((~back).sum()))
    if not changed.rows:
        return changed
    deletes = now.deletes_at(gone) if len(gone) else None
    check = run.database.unique_check(table) if appends else None
    if check is not None:
        for batch in appends:
            check.add(batch)
        check.look(now, deletes)

    def prepare(state: State) -> list[Change | Append]:
        run.database.check_same(state, table)
        if (now.table.written, now.table.changed) != ((same := state.table_by_id(table.id)).written, same.changed):
            raise SerializationFailure("could not serialize access due to concurrent update")
        return []

    crash_point("restore-prepared")
    changes: tuple[Change, ...] = () if deletes is None else (deletes,)
    check = run.database.unique_check(table)
    if check is not None:
        for batch in appends:
            check.add(batch)
        check.look(now, now.deletes_at(gone) if len(gone) else None)
    run.commit(Flush(tuple(Append(table.id, batch) for batch in appends), changes, prepare))
    return changed


def _versions(rows: TableSnapshot, place: str | None) -> _Versions:
    """Row ids and versions of all rows, and places where ``place`` names their column."""
    columns = (ROW_ID, VERSION) if place is None else (ROW_ID, VERSION, place)
    batches = [batch for part in rows.parts(columns) for batch in part.read()]
    arrays = [
        np.concatenate([np.empty(0, np.int64), *(batch.column(at).to_numpy() for batch in batches)])
        for at in range(len(columns))
    ]
    order = np.argsort(arrays[0], kind="stable")
    return _Versions(arrays[0][order], arrays[1][order], arrays[-1][order])


def _held(these: _Versions, others: _Versions) -> np.ndarray:
    """Which of these versions are among the others; a row has one version in each."""
    if not len(others.ids):
        return np.zeros(len(these.ids), np.bool_)
    at = np.minimum(np.searchsorted(others.ids, these.ids), len(others.ids) - 1)
    held: np.ndarray = (others.ids[at] == these.ids) & (others.versions[at] == these.versions)
    return held


def _old_rows(then: TableSnapshot, ids: Numbers, table: Table, rules: Rules) -> list[pa.RecordBatch]:
    """The rows of these ids as they were, ready to be written under their ids."""
    if not len(ids):
        return []
    names = [column.name for column in table.columns]
    types = {column.name: column.type for column in table.columns}
    found: list[pa.RecordBatch] = []
    for part in then.parts((*names, ROW_ID, CREATED_AT)):
        for batch in part.read():
            taken = batch.take(pa.array(np.flatnonzero(np.isin(batch.column(len(names)).to_numpy(), ids))))
            if taken.num_rows:
                given = dict(zip(names, taken.columns))
                prepared = rules.prepare(Incoming(taken.num_rows, given, types))
                arrays = [*prepared.columns, *taken.columns[len(names) :]]
                found.append(pa.RecordBatch.from_arrays(arrays, names=[*prepared.schema.names, ROW_ID, CREATED_AT]))
    if not found:
        return []
    whole = pa.concat_batches(found)
    return [whole.slice(start, SEGMENT_ROWS) for start in range(0, whole.num_rows, SEGMENT_ROWS)]
