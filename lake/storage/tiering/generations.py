"""Generations of keyed tables: what a tiering writes, and compaction of those that have become too many.

    tail ── newest row of each key, by key ── generation 4
    generations 1 (1 M rows)  2 (90 k)  3 (60 k)  4 (50 k)   ──   1 (1 M)  4 (180 k)

Compaction takes the newest generations, and then each older one while it is at most twice as large as what is taken: so a
row is written about as often as its generation doubles, and a large one is not written anew for crumbs. Only a compaction
down to the oldest leaves out markers and rows whose time is over; before that they hide what is below them. Under SEQUENCE BY
they stay for the table's retention, against rows that come late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from lake.clock import Clock
from lake.storage.catalog.changes import Change, ReplaceFiles
from lake.storage.catalog.model import DELETED, UPDATED_AT, DataFile, Table
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Append, Flush
from lake.storage.faults import crash_point
from lake.storage.options import StorageOptions
from lake.storage.tables.columns import decoded
from lake.storage.tables.combine import combine
from lake.storage.tables.keyed import KeyedTables, whole_columns
from lake.storage.tables.keys import Ints, Keys, joined
from lake.storage.tables.lookup import expiry_cutoff
from lake.storage.tables.read import Reader, chunk_column, group_arrays
from lake.storage.tables.runs import NO_ROWS, Rule, merged_rows, put_together
from lake.storage.tables.snapshot import Snapshot, TableSnapshot
from lake.storage.tables.write import Target, Written, write_files
from lake.types import Date

GENERATIONS_MAX: Final = 8
GROWTH: Final = 2  # an older generation is taken while it is at most so many times as large as what is newer
SLICE_ROWS: Final = 524_288  # of a compaction, put together at a time


class _Job(Struct, frozen=True):
    table: Table
    inputs: tuple[DataFile, ...]
    written: Written


def newest_rows(source: TableSnapshot, keep_secs: float) -> Iterator[pa.RecordBatch]:
    """The tail's newest row of each key in the order of keys, markers too; of a merge table, its rows put together."""
    table, tail, reader = source.table, source.tail, source.snapshot.reader
    if tail is None:
        return
    wanted = whole_columns(table)
    names = [column.stored for column in wanted]
    chunks = [
        pa.RecordBatch.from_arrays([chunk_column(chunk, column) for column in wanted], names=names)
        for chunk in source.tail_chunks()
    ]
    if table.kind == "merge":
        combined = combine(table, chunks)
        if combined is not None:
            yield combined
        return
    rule = Rule.of(table)
    index = source.snapshot.keyed.index(reader, table, tail)
    newest = reduce(lambda older, newer: put_together(rule, older, newer), index.runs)
    rows = pa.Table.from_batches(chunks).combine_chunks().take(pa.array(newest.rows))
    if not table.files:
        rows = rows.filter(_stays(table, rows, source.snapshot.now, keep_secs))
    yield from rows.combine_chunks().to_batches()


def compact(snapshot: Snapshot, clock: Clock, options: StorageOptions, pool: ThreadPoolExecutor) -> Flush | None:
    """Compacts what is due in a snapshot; answers the flush that records it, or None if nothing is."""
    jobs = []
    for id in sorted(snapshot.state.tables):
        source = snapshot.table_by_id(id)
        run = choose(source.table.files) if source.table.design.key else []
        if run:
            target = Target(snapshot.reader.store, clock, source.table, options.codec, has_system=True)
            written = write_files(target, _rows(source, run, options.keep_secs), pool, workers=1)
            jobs.append(_Job(source.table, tuple(run), written))
    if not jobs:
        return None
    crash_point("compact-files-written")

    def record(state: State) -> list[Change | Append]:
        changes: list[Change | Append] = []
        for job in jobs:
            paths = tuple(file.path for file in job.inputs)
            if _is_current(state, job.table, paths):
                changes.append(ReplaceFiles(job.table.id, paths, job.written.files))
        return changes

    return Flush(prepare=record)


def choose(files: Sequence[DataFile]) -> list[DataFile]:
    """The newest generations that are to become one, oldest first, or none while there are few."""
    generations: dict[int, list[DataFile]] = {}
    for file in files:
        generations.setdefault(file.generation, []).append(file)
    if len(generations) < GENERATIONS_MAX:
        return []
    taken: list[list[DataFile]] = []
    size = 0
    for files_of in reversed(generations.values()):
        rows = sum(file.rows for file in files_of)
        if len(taken) >= 2 and rows > GROWTH * size:
            break
        taken.append(files_of)
        size += rows
    return [file for files_of in reversed(taken) for file in files_of]


def _is_current(state: State, table: Table, paths: Sequence[str]) -> bool:
    found = state.tables.get(table.id)
    if found is None or found.epoch != table.epoch:
        return False
    return {file.path for file in found.files}.issuperset(paths)


def _rows(source: TableSnapshot, run: Sequence[DataFile], keep_secs: float) -> Iterator[pa.RecordBatch]:
    """The rows of ``run`` that no row of it hides, by key."""
    table, snapshot = source.table, source.snapshot
    keyed, reader, rule = snapshot.keyed, snapshot.reader, Rule.of(table)
    is_full = {file.path for file in run} >= {file.path for file in table.files if file.generation <= run[-1].generation}
    hidden = {} if rule.combines else hidden_within(keyed, reader, rule, run)
    wanted = whole_columns(table)
    names = [column.stored for column in wanted]
    for low, high in _slices(keyed, reader, rule, run):
        parts: list[pa.RecordBatch] = []
        for file in run:
            for group, rows in _within(keyed, reader, rule, file, low, high):
                first = sum(file.groups[:group])
                gone = hidden.get(file.path, NO_ROWS)
                rows = rows[~np.isin(rows + first, gone)] if len(gone) else rows
                if len(rows):
                    found = group_arrays(reader, file, group, wanted)
                    taken = pa.array(np.sort(rows))
                    arrays = [decoded(found[name]).take(taken) for name in names]
                    parts.append(pa.RecordBatch.from_arrays(arrays, names=names))
        if not parts:
            continue
        if rule.combines:
            combined = combine(table, parts)
            assert combined is not None, "rows make rows"
            yield combined
            continue
        whole = pa.Table.from_batches(parts).combine_chunks()
        order = rule.keys([_one(whole.column(column.stored)) for column in rule.columns]).order()
        whole = whole.take(pa.array(order))
        if is_full:
            whole = whole.filter(_stays(table, whole, snapshot.now, keep_secs))
        yield from whole.combine_chunks().to_batches()


def hidden_within(keyed: KeyedTables, reader: Reader, rule: Rule, run: Sequence[DataFile]) -> dict[str, Ints]:
    """Rows of each file that rows of others hide, by path."""
    found: dict[str, Ints] = {}
    for place, newer in enumerate(run):
        for older in run[:place]:
            if older.generation != newer.generation:
                lost, losing = keyed.pair(reader, rule, older, newer)
                found[older.path] = merged_rows(found.get(older.path, NO_ROWS), lost)
                found[newer.path] = merged_rows(found.get(newer.path, NO_ROWS), losing)
    return found


def _slices(
    keyed: KeyedTables, reader: Reader, rule: Rule, run: Sequence[DataFile]
) -> Iterator[tuple[Keys | None, Keys | None]]:
    """Ranges of keys, from one to before another, None at the ends, that hold about SLICE_ROWS rows each."""
    fences = [keyed.runs.fences(reader, rule, file) for file in run]
    first = joined([each.first for each in fences])
    rows = np.array([count for file in run for count in file.groups])
    order = first.order()
    filled = np.cumsum(rows[order]) // SLICE_ROWS
    cuts = order[1:][np.diff(filled) > 0]
    edges: list[Keys | None] = [None, *(first.slice(int(cut), int(cut) + 1) for cut in cuts), None]
    yield from pairwise(edges)


def _within(
    keyed: KeyedTables, reader: Reader, rule: Rule, file: DataFile, low: Keys | None, high: Keys | None
) -> Iterator[tuple[int, Ints]]:
    """The row groups of a file that hold keys of a range, with those rows."""
    fences = keyed.runs.fences(reader, rule, file)
    for group in range(len(file.groups)):
        first, last = fences.first.slice(group, group + 1), fences.last.slice(group, group + 1)
        if high is not None and int(first.bounds(high)[0]) == 0:
            continue
        if low is not None and int(last.bounds(low)[0]) > 0:
            continue
        run = keyed.runs.run(reader, rule, file, group)
        start = 0 if low is None else int(run.keys.bounds(low)[0])
        end = len(run) if high is None else int(run.keys.bounds(high)[0])
        yield group, run.rows[start:end]


def _stays(table: Table, rows: pa.Table, now: int, keep_secs: float) -> pa.ChunkedArray:
    """Which rows are more than a memory of something gone: no markers, none whose time is over.

    Under SEQUENCE BY that memory stays for the table's retention, so that a late row of less value is not seen.
    """
    found = pc.fill_null(pc.invert(rows.column(DELETED)), True)
    if table.design.ttl:
        found = pc.and_(found, _lives(table, rows, now))
    if table.design.sequence:
        written = rows.column(UPDATED_AT).cast(pa.int64())
        found = pc.or_(found, pc.greater(written, now - int(table.retention_secs(keep_secs) * 1e6)))
    return found


def _lives(table: Table, rows: pa.Table, now: int) -> pa.ChunkedArray:
    column = table.column_by_id(table.design.ttl)
    values = rows.column(column.stored)
    numbers = values.cast(pa.int32() if isinstance(column.type, Date) else pa.int64())
    return pc.fill_null(pc.greater(numbers, expiry_cutoff(table, now)), True)


def _one(chunked: pa.ChunkedArray) -> pa.Array:
    return chunked.chunk(0) if chunked.num_chunks == 1 else pa.concat_arrays(chunked.chunks)
