"""Tiering: the tail's rows become Parquet files, and one commit says so.

    tail up to commit 42 ── files ── commit 43: Tiered(t, upto=42, files)        rows after 42 stay in the tail

A kill before the commit leaves files that nothing names (``expire`` removes them); after it nothing is left to do. The
job names what it folded, and its commit is refused where the table was emptied or dropped meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from msgspec import Struct

from lake.clock import Clock
from lake.errors import SerializationFailure
from lake.metrics import ROWS_TIERED
from lake.storage.catalog.changes import Change, Placed, SealFiles, Tiered
from lake.storage.catalog.manifests import seal
from lake.storage.catalog.model import SYSTEM_COLUMNS, Table
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Append, Flush
from lake.storage.faults import crash_point
from lake.storage.options import StorageOptions
from lake.storage.tables.arrange import is_arranged
from lake.storage.tables.read import Wanted, chunk_column
from lake.storage.tables.snapshot import Snapshot, TableSnapshot
from lake.storage.tables.write import Target, Written, placed_in, write_files
from lake.storage.tiering.generations import newest_rows


class _Job(Struct, frozen=True):
    table: Table
    rows: int
    written: Written


def fold(
    snapshot: Snapshot,
    clock: Clock,
    options: StorageOptions,
    pool: ThreadPoolExecutor,
    tables: Sequence[int] | None = None,
) -> Flush | None:
    """Writes the tails of a snapshot to files; answers the flush that records them, or None if there are no rows.

    tables  ids of the tables to fold, or None for all
    """
    jobs = []
    for id in sorted(snapshot.state.tails):
        if tables is not None and id not in tables:
            continue
        source = snapshot.stored(id)
        rows = newest_rows(source, options.keep_secs) if source.table.design.key else _whole_rows(source)
        written = write_files(_target(source, clock, options), rows, pool, workers=options.workers)
        jobs.append(_Job(source.table, source.tail.rows if source.tail else 0, written))
        is_whole = written.rows == jobs[-1].rows
        assert is_whole or source.table.design.key, "tiering writes every row of the tail once"
    if not jobs:
        return None
    crash_point("tier-files-written")
    upto = snapshot.state.number

    def record(state: State) -> list[Change | Append]:
        return [
            Tiered(job.table.id, upto, job.written.files, job.written.sketches, _placed(state, job))
            for job in jobs
            if _is_current(state, job, upto)
        ]

    ROWS_TIERED.add(sum(job.rows for job in jobs))
    return Flush(prepare=record)


def seal_all(snapshot: Snapshot, clock: Clock) -> Flush | None:
    """Writes manifests for tables that list too many files; answers the flush that records them, or None."""
    store = snapshot.reader.store
    changes: list[SealFiles] = []
    for table in snapshot.state.stored_tables():
        changes += seal(store, clock, snapshot.manifests, table)
    if not changes:
        return None

    def record(state: State) -> list[Change | Append]:
        return [change for change in changes if _still_lists(state, change)]

    return Flush(prepare=record)


def _whole_rows(source: TableSnapshot) -> Iterator[pa.RecordBatch]:
    """The tail in all columns that can still be read; deleted rows too, which older commits show."""
    wanted = [Wanted.kept(column) for column in source.table.stored_columns]
    wanted += [Wanted(name, name, type) for name, type in SYSTEM_COLUMNS.items()]
    for chunk in source.tail_chunks():
        arrays = [chunk_column(chunk, column) for column in wanted]
        yield pa.RecordBatch.from_arrays(arrays, names=[column.stored for column in wanted])


def _placed(state: State, job: _Job) -> Placed | None:
    """Where deleted rows of the tail are in files that hold rows in another order."""
    table = job.table
    if table.design.key or not is_arranged(table):
        return None
    gone = state.deletes_of(table.id).tail.part(0, job.rows)
    return placed_in(job.written, gone)


def _target(source: TableSnapshot, clock: Clock, options: StorageOptions) -> Target:
    table, store = source.table, source.snapshot.reader.store
    return Target(store, clock, table, options.codec, has_system=True)


def _is_current(state: State, job: _Job, upto: int) -> bool:
    """Whether the table still has exactly the rows that were folded.

    40001  it has others: two rounds ran at once, which never happens in one process
    """
    table = state.stored(job.table.id)
    if table is None or table.epoch != job.table.epoch:
        return False
    tail = state.tails.get(table.id)
    rows = sum(part.rows for part in tail.newest_first() if part.version_high <= upto) if tail else 0
    if rows != job.rows or table.tiered != job.table.tiered:
        raise SerializationFailure(f'table "{table.name}" was tiered by another job')
    return True


def _still_lists(state: State, change: SealFiles) -> bool:
    table = state.stored(change.table)
    if table is None:
        return False
    files = {file.path for file in table.files}
    manifests = {manifest.path for manifest in table.manifests}
    return files.issuperset(change.sealed) and manifests.issuperset(change.replaced)
