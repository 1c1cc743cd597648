"""The feed of a keyed table, from the log of commits: which rows were written, and which keys taken away.

A keyed table keeps the newest row of each key, so its files cannot tell what was between. The commits can, as long as they
are kept: ``changelog_secs`` behind the newest, and at least until two checkpoints cover them.

    commit 7   id 1 'a'           upsert
    commit 9   id 1 (deleted)     delete
    commit 11  TRUNCATE           delete of every row, as long as the table's past holds them
Spec: HTTP, Events (``/watch``, ``changes=true`` on a keyed table); reference: row columns, change types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import DataCorrupted, InvalidParameter
from lake.storage.catalog.changes import AddFiles, AppendRows, Commit, Truncate
from lake.storage.catalog.model import CREATED_AT, DELETED, ROW_ID, SYSTEM_COLUMNS, UPDATED_AT, VERSION, Table
from lake.storage.commits.log import Log
from lake.storage.tables.feed import CHANGE_TYPE, DELETE, Piece
from lake.storage.tables.read import Wanted, chunk_column, read_group
from lake.storage.tables.snapshot import Snapshot, TableSnapshot
from lake.storage.tail.tail import TailPart
from lake.types import BOOLEAN

UPSERT: Final = "upsert"
FED: Final = (ROW_ID, VERSION, CREATED_AT, UPDATED_AT)


def check_logged(log: Log, snapshot: Snapshot, after: int) -> None:
    """Returns where the commits after ``after`` are still kept.

    22023  they are not, or ``after`` is to come
    """
    newest = snapshot.state.number
    if after > newest:
        raise InvalidParameter(f"commit {after} is not there yet; the newest is {newest}")
    if after < newest and log.find(after + 1) is None:
        raise _gone(after)


def logged_changes(
    log: Log, snapshot: Snapshot, id: int, after: int, upto: int, *, old: bool
) -> Iterator[Piece]:
    """What commits after ``after`` wrote to a keyed table, up to commit ``upto``.

    old    whether keys taken away are told; else new rows alone
    22023  the commits, or files that they name, are no longer kept
    """
    check_logged(log, snapshot, after)
    table = snapshot.stored(id).table
    for number in range(after + 1, upto + 1):
        commit = log.find(number)
        if commit is None:
            raise _gone(number - 1)
        waiting = None
        for chunk in _written(commit, snapshot, table, old=old):
            told = _told(table, chunk, old=old)
            if told.num_rows:
                if waiting is not None:
                    yield Piece(waiting, number - 1)
                waiting = told
        yield Piece(_told(table, _nothing(), old=old) if waiting is None else waiting, number)


def _written(commit: Commit, snapshot: Snapshot, table: Table, *, old: bool) -> Iterator[pa.RecordBatch]:
    """The rows that a commit wrote to the table, with system columns; with ``old`` those that it emptied the table of."""
    store = snapshot.reader.store
    for change in commit.changes:
        if isinstance(change, AppendRows) and change.table == table.id:
            piece = commit.rows[change.inline] if change.inline >= 0 else None
            part = TailPart(
                rows=change.rows,
                version=commit.number,
                version_high=commit.number,
                row_id=change.row_id,
                created=commit.time,
                batch=piece if isinstance(piece, pa.RecordBatch) else None,
                encoded=None if isinstance(piece, pa.RecordBatch) else piece,
                segment=change.segment,
                checksum=change.checksum,
            )
            try:
                yield part.chunk(store)
            except DataCorrupted:
                raise _gone(commit.number - 1) from None
        elif isinstance(change, AddFiles) and change.table == table.id:
            yield from _of_files(change, commit, snapshot, table)
        elif isinstance(change, Truncate) and change.table == table.id and old:
            yield from _truncated(commit, snapshot, table)


def _truncated(commit: Commit, snapshot: Snapshot, table: Table) -> Iterator[pa.RecordBatch]:
    """The rows that a TRUNCATE took away, as markers of that commit."""
    past = snapshot.state.past.values()
    before = next((item for item in past if (item.owner, item.lost) == (table.id, commit.number)), None)
    if before is None:
        raise _gone(commit.number)
    rows = TableSnapshot(snapshot, before, columns=table.columns)
    names = [*(column.name for column in table.columns), ROW_ID, CREATED_AT]
    stored = [*(column.stored for column in table.columns), ROW_ID, CREATED_AT]
    for part in rows.parts(names):
        for batch in part.read():
            marks = {
                VERSION: pa.array(np.full(batch.num_rows, commit.number, np.int64)),
                UPDATED_AT: pa.array(np.full(batch.num_rows, commit.time, np.int64)).view(batch.column(CREATED_AT).type),
                DELETED: pa.repeat(pa.scalar(True), batch.num_rows),
            }
            yield pa.RecordBatch.from_arrays([*batch.columns, *marks.values()], names=[*stored, *marks])


def _of_files(change: AddFiles, commit: Commit, snapshot: Snapshot, table: Table) -> Iterator[pa.RecordBatch]:
    """Rows of files that were written past the tail; their ids are known while the table still names the files."""
    listed = {file.path: file for file in snapshot.manifests.all_files(table)}
    wanted = [Wanted.kept(column) for column in table.columns]
    wanted += [Wanted(name, name, SYSTEM_COLUMNS[name]) for name in FED]
    for named in change.files:
        file = listed.get(named.path)
        if file is None:
            raise _gone(commit.number - 1)
        placed = msgspec.structs.replace(file, version=commit.number, created=commit.time)
        for group in range(len(placed.groups)):
            yield from read_group(snapshot.reader, placed, group, wanted)


def _told(table: Table, chunk: pa.RecordBatch, *, old: bool) -> pa.RecordBatch:
    """Rows as changes, under the columns of now."""
    rows = chunk.num_rows
    marks = pc.fill_null(chunk_column(chunk, Wanted(DELETED, DELETED, BOOLEAN)), False)
    columns = [chunk_column(chunk, Wanted.named(column)) for column in table.columns]
    plain = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in columns]
    kinds = pa.array(np.where(marks.to_numpy(zero_copy_only=False), DELETE, UPSERT), pa.string())
    system = [chunk_column(chunk, Wanted(name, name, SYSTEM_COLUMNS[name])) for name in FED]
    names = [*(column.name for column in table.columns), CHANGE_TYPE, *FED]
    batch = pa.RecordBatch.from_arrays([*plain, kinds, *system], names=names)
    return batch if old or not rows else batch.filter(pc.invert(marks))


def _nothing() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], pa.int64())], names=[ROW_ID])


def _gone(after: int) -> InvalidParameter:
    return InvalidParameter(
        f"changes after commit {after} are no longer kept", hint="--changelog-secs says how long commits are kept"
    )


