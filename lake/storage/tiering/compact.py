"""Merging: eight small neighbouring files become one of at most 4 M rows or 64 MB, rows in the order of arrival.

Only files that the table entry lists are merged; a manifest's are old and were merged before. The commit is refused where
one of the eight is gone from the entry, for whatever reason.

Purging: rows that were deleted before the table's retention are left out of what a merge writes. Once so many of them wait
that they are ``purge_rows``, or a tenth of the table, files that have any are written anew, those with the most first, a
manifest's files too: the manifest is then sealed again. Before that, they are what AT reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct, field

from lake.clock import Clock
from lake.storage.catalog.changes import Change, Placed, ReplaceFiles
from lake.storage.catalog.deletes import NONE, Numbers, encode_numbers, joined
from lake.storage.catalog.manifests import write_manifest
from lake.storage.catalog.model import SYSTEM_COLUMNS, DataFile, Manifest, Table
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Append, Flush
from lake.storage.faults import crash_point
from lake.storage.options import StorageOptions
from lake.storage.tables.arrange import is_arranged, partition_of
from lake.storage.tables.read import Reader, Visible, Wanted, read_group
from lake.storage.tables.snapshot import Snapshot, TableSnapshot
from lake.storage.tables.write import Target, Written, placed_in, write_files

MERGED_FILES: Final = 8
ROWS_MAX: Final = 4_000_000
BYTES_MAX: Final = 64 << 20
PURGED_MAX: Final = 64  # runs of a table that one round writes anew
INPUT_BYTES_MAX: Final = 256 << 20  # of one round, over all tables


class _Run(Struct, frozen=True):
    """Neighbouring files that become others; of the manifest that lists them, where the table entry does not."""

    files: Sequence[DataFile]
    manifest: Manifest | None = None

    def listed(self, source: TableSnapshot) -> tuple[DataFile, ...]:
        """All files of the manifest."""
        assert self.manifest is not None, "a run of sealed files has a manifest"
        return source.snapshot.manifests.files(self.manifest.path)


class _Job(Struct, frozen=True):
    table: int
    epoch: int
    inputs: tuple[DataFile, ...]
    written: Written
    horizon: int
    dropped: dict[str, Numbers] = field(default_factory=dict)
    manifest: str = ""
    resealed: Manifest | None = None

    def change(self, state: State) -> ReplaceFiles:
        """What is to be committed on ``state``."""
        dropped = {path: encode_numbers(rows) for path, rows in self.dropped.items()}
        paths = tuple(file.path for file in self.inputs)
        counts = {file.path: file.rows for file in self.inputs} if self.manifest else {}
        horizon = self.horizon if dropped else 0
        found = state.stored(self.table)
        placed = self._placed(state) if found is not None and is_arranged(found) else None
        files = self.written.files
        return ReplaceFiles(self.table, paths, files, dropped, horizon, self.manifest, self.resealed, counts, placed)

    def _placed(self, state: State) -> Placed:
        deletes = state.deletes_of(self.table)
        parts, start = [NONE], 0
        for file in self.inputs:
            dropped = self.dropped.get(file.path, NONE.at)
            parts.append(deletes.of(file.path).without(dropped).shifted(start))
            start += file.rows - len(dropped)
        return placed_in(self.written, joined(parts))


def merge(snapshot: Snapshot, clock: Clock, options: StorageOptions, pool: ThreadPoolExecutor) -> Flush | None:
    """Merges what is due in a snapshot; answers the flush that records it, or None if nothing is."""
    jobs = []
    budget = INPUT_BYTES_MAX
    now = clock.now()
    for id in sorted(table.id for table in snapshot.state.stored_tables()):
        source = snapshot.stored(id)
        if source.table.design.key:
            continue
        horizon = horizon_of(snapshot.state, source.table, now, options)
        run = _choose(source)
        for job in (_Run(run),) if run else choose_purge(source, horizon, options.purge_rows):
            size = sum(file.bytes for file in job.files)
            if size > budget and budget < INPUT_BYTES_MAX:
                continue
            budget -= size
            dropped = {file.path: source.deletes.of(file.path).before(horizon) for file in job.files}
            dropped = {path: rows for path, rows in dropped.items() if len(rows)}
            written = _write(source, job.files, dropped, clock, options, pool)
            jobs.append(_job(source, job, written, horizon, dropped, clock))
    if not jobs:
        return None
    crash_point("merge-file-written")

    def record(state: State) -> list[Change | Append]:
        return [job.change(state) for job in jobs if _is_current(state, job)]

    return Flush(prepare=record)


def _choose(source: TableSnapshot) -> list[DataFile]:
    """As ``choose``, among files of one partition."""
    table = source.table
    if not table.design.partition:
        return choose(table.files)
    partitions: dict[object, list[DataFile]] = {}
    for file in table.files:
        partition = partition_of(table, file)
        if partition is not None:
            partitions.setdefault(partition, []).append(file)
    return next((run for run in map(choose, partitions.values()) if run), [])


def choose(files: Sequence[DataFile]) -> list[DataFile]:
    """The oldest run of eight neighbours that fit one file together and are of like size, or none.

    Like size means that none holds more rows than half of the run's: a large file is not rewritten for seven crumbs.
    """
    for start in range(len(files) - MERGED_FILES + 1):
        run = files[start : start + MERGED_FILES]
        rows = sum(file.rows for file in run)
        fits = rows <= ROWS_MAX and sum(file.bytes for file in run) <= BYTES_MAX
        if fits and max(file.rows for file in run) <= max(rows / 2, 1):
            return list(run)
    return []


def horizon_of(state: State, table: Table, now: int, options: StorageOptions) -> int:
    """The commit before which nobody reads what the table deleted: its retention, or what feeds may replay."""
    secs = max(table.retention_secs(options.keep_secs), options.changelog_secs)
    return state.number_at(now - int(secs * 1e6))


def choose_purge(source: TableSnapshot, horizon: int, purge_rows: int) -> list[_Run]:
    """Files with rows deleted at ``horizon``, if so many wait that they are worth it; those with the most come first."""
    if not source.deletes.files:
        return []
    gone = {path: len(found.before(horizon)) for path, found in source.deletes.files.items()}
    gone = {path: rows for path, rows in gone.items() if rows}
    if not gone or sum(gone.values()) <= min(purge_rows, source.table.file_rows / 10):
        return []
    runs = [_Run([file]) for file in source.table.files if file.path in gone]
    listed = {file.path for file in source.table.files}
    if gone.keys() - listed:
        for manifest in source.table.manifests:
            files = [file for file in source.snapshot.manifests.files(manifest.path) if file.path in gone]
            runs += [_Run(files, manifest)] if files else []
    runs.sort(key=lambda run: -sum(gone[file.path] for file in run.files))
    return runs[:PURGED_MAX]


def _job(
    source: TableSnapshot, run: _Run, written: Written, horizon: int, dropped: dict[str, Numbers], clock: Clock
) -> _Job:
    """What was written for a run; for files of a manifest, with the manifest that lists the new ones in their place."""
    table, sealed = source.table, run.manifest
    if sealed is None:
        return _Job(table.id, table.epoch, tuple(run.files), written, horizon, dropped)
    crash_point("purge-file-written")
    removed = {file.path for file in run.files}
    place = min(at for at, file in enumerate(run.listed(source)) if file.path in removed)
    listed = [file for file in run.listed(source) if file.path not in removed]
    listed[place:place] = written.files
    store = source.snapshot.reader.store
    resealed = write_manifest(store, clock, table.folder, listed) if listed else None
    return _Job(table.id, table.epoch, tuple(run.files), written, horizon, dropped, sealed.path, resealed)


def _write(
    source: TableSnapshot,
    run: Sequence[DataFile],
    dropped: dict[str, Numbers],
    clock: Clock,
    options: StorageOptions,
    pool: ThreadPoolExecutor,
) -> Written:
    table, reader = source.table, source.snapshot.reader
    target = Target(reader.store, clock, table, options.codec, has_system=True)
    wanted = [Wanted.kept(column) for column in table.stored_columns]
    wanted += [Wanted(name, name, type) for name, type in SYSTEM_COLUMNS.items()]
    written = write_files(target, _rows(reader, run, dropped, wanted), pool, workers=1, file_rows=ROWS_MAX)
    rows = sum(file.rows for file in run) - sum(len(gone) for gone in dropped.values())
    assert written.rows == rows, "merging keeps every row but those past their time"
    return written


def _rows(
    reader: Reader, run: Sequence[DataFile], dropped: dict[str, Numbers], wanted: Sequence[Wanted]
) -> Iterator[pa.RecordBatch]:
    none = np.empty(0, np.int64)
    for file in run:
        gone = dropped.get(file.path, none)
        start = 0
        for group, rows in enumerate(file.groups):
            low, high = np.searchsorted(gone, (start, start + rows))
            yield from read_group(reader, file, group, wanted, Visible(dead=gone[low:high] - start))
            start += rows


def _is_current(state: State, job: _Job) -> bool:
    table = state.stored(job.table)
    if table is None or table.epoch != job.epoch:
        return False
    if job.manifest:
        return any(manifest.path == job.manifest for manifest in table.manifests)
    return {file.path for file in table.files}.issuperset(file.path for file in job.inputs)
