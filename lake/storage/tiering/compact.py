"""Merging: eight small neighbouring files become one of at most 4 M rows or 64 MB, rows in the order of arrival.

Only files that the table entry lists are merged; a manifest's are old and were merged before. The commit is refused where
one of the eight is gone from the entry, for whatever reason.

Purging: rows that were deleted longer than ``keep_secs`` ago are left out of what a merge writes, and a file of which they
are many is written anew alone. Before that, they are what AT reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from lake.clock import Clock
from lake.storage.catalog.changes import Change, ReplaceFiles
from lake.storage.catalog.deletes import Numbers, encode_numbers
from lake.storage.catalog.model import SYSTEM_COLUMNS, DataFile
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Append, Flush
from lake.storage.faults import crash_point
from lake.storage.options import StorageOptions
from lake.storage.tables.read import Reader, Visible, Wanted, read_group
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
    horizon: int
    dropped: dict[str, Numbers] = field(default_factory=dict)

    def change(self) -> ReplaceFiles:
        """What is to be committed."""
        dropped = {path: encode_numbers(rows) for path, rows in self.dropped.items()}
        paths = tuple(file.path for file in self.inputs)
        return ReplaceFiles(self.table, paths, self.written.files, dropped, self.horizon if dropped else 0)


def merge(snapshot: Snapshot, clock: Clock, options: StorageOptions, pool: ThreadPoolExecutor) -> Flush | None:
    """Merges what is due in a snapshot; answers the flush that records it, or None if nothing is."""
    jobs = []
    budget = INPUT_BYTES_MAX
    horizon = snapshot.state.number_at(clock.now() - int(options.keep_secs * 1e6))
    for id in sorted(snapshot.state.tables):
        source = snapshot.table_by_id(id)
        run = choose(source.table.files) or choose_purge(source, horizon, options.purge_rows)
        if not run or sum(file.bytes for file in run) > budget:
            continue
        budget -= sum(file.bytes for file in run)
        dropped = {file.path: source.deletes.of(file.path).before(horizon) for file in run}
        dropped = {path: rows for path, rows in dropped.items() if len(rows)}
        written = _write(source, run, dropped, clock, options, pool)
        jobs.append(_Job(id, source.table.epoch, tuple(run), written, horizon, dropped))
    if not jobs:
        return None
    crash_point("merge-file-written")

    def record(state: State) -> list[Change | Append]:
        return [job.change() for job in jobs if _is_current(state, job)]

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


def choose_purge(source: TableSnapshot, horizon: int, purge_rows: int) -> list[DataFile]:
    """The first file that has many rows deleted at ``horizon``: more than ``purge_rows``, or than a tenth of its own."""
    if not source.deletes.files:
        return []
    for file in source.table.files:
        rows = len(source.deletes.of(file.path).before(horizon))
        if rows > min(purge_rows, file.rows / 10):
            return [file]
    return []


def _write(
    source: TableSnapshot,
    run: Sequence[DataFile],
    dropped: dict[str, Numbers],
    clock: Clock,
    options: StorageOptions,
    pool: ThreadPoolExecutor,
) -> Written:
    table, reader = source.table, source.snapshot.reader
    target = Target(reader.store, clock, table.folder, table.columns, options.codec, has_system=True)
    wanted = [Wanted(column.stored, column.stored, column.type) for column in table.columns]
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
    table = state.tables.get(job.table)
    if table is None or table.epoch != job.epoch:
        return False
    return {file.path for file in table.files}.issuperset(file.path for file in job.inputs)
