"""Merging: eight small neighbouring files become one of at most 4 M rows or 64 MB, rows in the order of arrival.

Only files that the table entry lists are merged; a manifest's are old and were merged before. The commit is refused where
one of the eight is gone from the entry, for whatever reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lake.clock import Clock
from lake.storage.catalog.changes import Change, ReplaceFiles
from lake.storage.catalog.model import SYSTEM_COLUMNS, DataFile
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Append, Flush
from lake.storage.faults import crash_point
from lake.storage.options import StorageOptions
from lake.storage.tables.read import Reader, Wanted, read_group
from lake.storage.tables.snapshot import Snapshot, TableSnapshot
from lake.storage.tables.write import Target, Written, write_files

MERGED_FILES: Final = 8
ROWS_MAX: Final = 4_000_000
BYTES_MAX: Final = 64 << 20
INPUT_BYTES_MAX: Final = 256 << 20  # of one round, over all tables


@dataclass(frozen=True, slots=True)
class _Job:
    table: int
    epoch: int
    inputs: tuple[DataFile, ...]
    written: Written


def merge(snapshot: Snapshot, clock: Clock, options: StorageOptions, pool: ThreadPoolExecutor) -> Flush | None:
    """Merges what is due in a snapshot; answers the flush that records it, or None if nothing is."""
    jobs = []
    budget = INPUT_BYTES_MAX
    for id in sorted(snapshot.state.tables):
        source = snapshot.table_by_id(id)
        run = choose(source.table.files)
        if not run or sum(file.bytes for file in run) > budget:
            continue
        budget -= sum(file.bytes for file in run)
        jobs.append(_Job(id, source.table.epoch, tuple(run), _write(source, run, clock, options, pool)))
    if not jobs:
        return None
    crash_point("merge-file-written")

    def record(state: State) -> list[Change | Append]:
        return [
            ReplaceFiles(job.table, tuple(file.path for file in job.inputs), job.written.files)
            for job in jobs
            if _is_current(state, job)
        ]

    return Flush(prepare=record)


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


def _write(
    source: TableSnapshot, run: Sequence[DataFile], clock: Clock, options: StorageOptions, pool: ThreadPoolExecutor
) -> Written:
    table, reader = source.table, source.snapshot.reader
    target = Target(reader.store, clock, table.folder, table.columns, options.codec, has_system=True)
    wanted = [Wanted(column.stored, column.stored, column.type) for column in table.columns]
    wanted += [Wanted(name, name, type) for name, type in SYSTEM_COLUMNS.items()]
    written = write_files(target, _rows(reader, run, wanted), pool, workers=1, file_rows=ROWS_MAX)
    assert written.rows == sum(file.rows for file in run), "merging keeps every row"
    return written


def _rows(reader: Reader, run: Sequence[DataFile], wanted: Sequence[Wanted]) -> Iterator[pa.RecordBatch]:
    for file in run:
        for group in range(len(file.groups)):
            yield from read_group(reader, file, group, wanted)


def _is_current(state: State, job: _Job) -> bool:
    table = state.tables.get(job.table)
    if table is None or table.epoch != job.epoch:
        return False
    return {file.path for file in table.files}.issuperset(file.path for file in job.inputs)
