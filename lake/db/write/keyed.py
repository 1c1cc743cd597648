"""Changes of tables with a key: delete markers, conflicts of an INSERT, and what others wrote to the same keys meanwhile.

    DELETE   a row of the key and ``_deleted`` true       UPDATE   a new version, ``_deleted`` false       INSERT   NULL

Nothing is looked up when rows are inserted: the newest row of a key is the one that is read. What was computed from rows
that were read (UPDATE, DELETE, MERGE, ON CONFLICT) is refused where one of its keys was written after the snapshot.
Spec: SQL, Table kinds; reference: row statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from lake.errors import CardinalityViolation, FeatureNotSupported, SerializationFailure
from lake.sql import ast
from lake.storage.catalog.model import CREATED_AT, DELETED, ROW_ID, SYSTEM_COLUMNS, VERSION, DataFile, Table
from lake.storage.catalog.state import State
from lake.storage.tables.keys import Keys, encode, joined
from lake.storage.tables.read import Wanted, group_arrays
from lake.storage.tables.runs import Rule
from lake.storage.tables.snapshot import Snapshot, TableSnapshot

if TYPE_CHECKING:
    from lake.db.write.change import Found

_VERSION: Final = Wanted(VERSION, VERSION, SYSTEM_COLUMNS[VERSION])


def refuse_change(table: Table, stmt: ast.Update | ast.Delete | ast.Merge | ast.Insert) -> None:
    """Refuses what a table with a key does not take.

    0A000  a new value for a column of the key; UPDATE and DELETE of a merge table
    """
    match stmt:
        case ast.Update(assignments=assignments):
            actions, given = {"update"}, [assignments]
        case ast.Delete():
            actions, given = {"delete"}, []
        case ast.Merge(clauses=clauses):
            actions = {clause.action for clause in clauses}
            given = [clause.assignments for clause in clauses]
        case ast.Insert(conflict=conflict):
            assert conflict is not None, "a change is an INSERT that says what becomes of keys that are there"
            actions = {"insert" if conflict.action == "nothing" else "update"}
            given = [conflict.assignments]
    if table.kind == "merge" and actions & {"update", "delete"}:
        words = "UPDATE" if "update" in actions else "DELETE"
        raise FeatureNotSupported(f'table "{table.name}" combines rows of one key and takes no {words}')
    key = {column.name.lower() for column in table.key}
    for assignments in given:
        for item in assignments:
            if item.column.lower() in key:
                raise FeatureNotSupported(
                    f'column "{item.column}" is of the key of table "{table.name}" and takes no new value',
                    hint="DELETE the row and INSERT another",
                )


def marker_columns(table: Table) -> list[str]:
    """What a marker says of the row that goes: its key, and what orders and places it; of a table without a key nothing."""
    kept = {*table.design.key, table.design.sequence, table.design.partition} if table.design.key else set()
    return [column.name for column in table.columns if column.id in kept]


def marked(
    table: Table, old: Mapping[str, pa.Array], batch: pa.RecordBatch, rows: np.ndarray
) -> pa.RecordBatch:
    """Markers for rows that go: ``marker_columns`` of the old ones, and NULL.

    old    the old rows' columns by the names of SQL
    batch  what was found, with row id and time of creation as columns 1 and 2, at ``rows``
    """
    kept = set(marker_columns(table))
    arrays = [
        old[column.name] if column.name in kept else pa.nulls(len(rows), column.type.physical) for column in table.columns
    ]
    plain = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in arrays]
    all_of_it = len(rows) == batch.num_rows
    hidden = [batch.column(at) if all_of_it else batch.column(at).take(pa.array(rows)) for at in (1, 2)]
    names = [*(column.stored for column in table.columns), ROW_ID, CREATED_AT, DELETED]
    return pa.RecordBatch.from_arrays([*plain, *hidden, pa.array(np.ones(len(rows), np.bool_))], names=names)


def take_inserted(table: Table, stmt: ast.Insert, found: Found) -> None:
    """Adds new rows of INSERT .. ON CONFLICT to what is written: of those that share a key DO NOTHING takes the first.

    21000  DO UPDATE would change a row that the statement has inserted
    """
    batches, found.inserted = found.inserted, []
    if not batches:
        return
    rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    keys = keys_of_batch(table, rows)
    order = keys.order()
    repeats = keys.take(order).repeats()
    if repeats.any():
        assert stmt.conflict is not None, "the statement says what becomes of keys that are there"
        if stmt.conflict.action == "update":
            raise CardinalityViolation(
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
                hint="no two of the rows that are inserted may have the same key",
            )
        kept = order[~repeats] if stmt.conflict.action == "nothing" else order[np.append(~repeats[1:], True)]
        rows = rows.take(pa.array(np.sort(kept)))
    found.changed.inserted = rows.num_rows
    found.appends.append(rows)
    found.changed.returned.append(rows)


def keys_of(table: Table, batches: Sequence[pa.RecordBatch]) -> Keys | None:
    """The keys of rows that are written, ascending; None of no rows."""
    if not batches:
        return None
    keys = joined([keys_of_batch(table, batch) for batch in batches])
    ordered = keys.take(keys.order())
    return ordered.take(np.flatnonzero(~ordered.repeats()))


def check_keys(before: Snapshot, now: State, table: Table, keys: Keys) -> None:
    """Refuses keys that were written between a snapshot and a state.

    Where the table was compacted down to its oldest rows meanwhile, markers may be gone, and with them what they tell: then
    the rows that are seen are compared.
    40001  one was, or the table was emptied
    """
    then, found = before.state.tables[table.id], now.table_by_id(table.id)
    if found.epoch == then.epoch and found.written == then.written:
        return
    conflict = SerializationFailure("could not serialize access due to concurrent update")
    known = {file.path for file in then.files}
    oldest = found.files[0].path if found.files else ""
    if found.epoch != then.epoch:
        raise conflict
    if oldest not in known and oldest:
        newest = Snapshot(now, before.reader, before.manifests, before.statistics, before.keyed, before.now)
        if table.kind == "merge" or _seen(before.table_by_id(table.id), keys) != _seen(newest.table_by_id(table.id), keys):
            raise conflict
        return
    number = before.state.number
    tail = now.tails.get(table.id)
    for part in tail.newest_first() if tail is not None else ():
        if part.version_high <= number:
            break
        later = part.after(number)
        if later is not None:
            other = keys_of_batch(table, later.batch(before.reader.store))
            if len(keys.match(other.take(other.order()))[0]):
                raise conflict
    for file in found.files:
        if file.path not in known and file.version_high > number and _is_written_in(before, table, file, keys):
            raise conflict


def _seen(source: TableSnapshot, keys: Keys) -> tuple[list[int], list[int]]:
    """Which of ``keys`` have a row that is seen, and the commits that wrote those rows."""
    table, reader, runs = source.table, source.snapshot.reader, source.snapshot.keyed.runs
    rule, deletes = Rule.of(table), source.deletes
    versions = np.full(len(keys), -1, np.int64)
    for file in table.files:
        start = 0
        for group, (low, high) in enumerate(runs.fences(reader, rule, file).spans(keys)):
            if low < high:
                run = runs.run(reader, rule, file, group)
                at, wanted = run.keys.match(keys.slice(low, high))
                rows = run.rows[at]
                kept = ~np.isin(rows, deletes.of(file.path).between(start, start + file.groups[group]))
                written = group_arrays(reader, file, group, [_VERSION])[VERSION].to_numpy()
                versions[low + wanted[kept]] = written[rows[kept]]
            start += file.groups[group]
    start = 0
    for chunk in source.tail_chunks():
        rows = np.setdiff1d(np.arange(chunk.num_rows), deletes.tail.between(start, start + chunk.num_rows))
        there = keys_of_batch(table, chunk.take(pa.array(rows)))
        order = there.order()
        at, wanted = there.take(order).match(keys)
        versions[wanted] = chunk.column(VERSION).to_numpy()[rows[order[at]]]
        start += chunk.num_rows
    found = np.flatnonzero(versions >= 0)
    return found.tolist(), versions[found].tolist()


def _is_written_in(before: Snapshot, table: Table, file: DataFile, keys: Keys) -> bool:
    """Whether a file has rows of ``keys`` that are newer than the snapshot."""
    reader, runs, rule = before.reader, before.keyed.runs, Rule.of(table)
    for group, (low, high) in enumerate(runs.fences(reader, rule, file).spans(keys)):
        if low < high:
            run = runs.run(reader, rule, file, group)
            rows = run.rows[run.keys.match(keys.slice(low, high))[0]]
            versions = group_arrays(reader, file, group, [_VERSION])[VERSION].to_numpy()[rows]
            if bool((versions > before.state.number).any()):
                return True
    return False


def keys_of_batch(table: Table, batch: pa.RecordBatch) -> Keys:
    """The keys of rows, in their order."""
    key = table.key
    return encode([batch.column(column.stored) for column in key], [column.type for column in key])
