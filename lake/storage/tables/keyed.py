"""Merge on read of keyed tables: which stored rows are not to be seen, because a newer row has their key.

    generation 1   id 1 2 3 4 5 6        hidden: 2, 5
    generation 2   id   2     5          hidden: 5
    tail           id         5 7        newest

What is hidden depends on keys alone, never on what a query asks. So it is worked out once for a set of files and a length
of the tail, goes on from there when rows arrive, and is then read as deleted rows of a table without a key are: filters
skip files and row groups, and a table with one clean generation is scanned as if it had no key.

Every file is older than every row of the tail, and files stand in the order of their generations.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct, field

from lake.storage.catalog.deletes import Positions, TableDeletes
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.model import DELETED, DataFile, Design, Table
from lake.storage.tables.columns import decoded
from lake.storage.tables.combine import combine
from lake.storage.tables.keys import Ints
from lake.storage.tables.read import NotInMemory, Reader, Wanted, chunk_column, group_arrays
from lake.storage.tables.runs import NO_ROWS, GroupRuns, Rule, Run, meet, meet_file, merged_rows, put_together, run_of
from lake.storage.tail.tail import Tail
from lake.types import BOOLEAN

AT_ONCE_ROWS_MAX: Final = 4_096  # new rows of a tail that are put into its index by who cannot wait: about 1 ms
VIEWS_KEPT: Final = 4  # of a table: the newest commit, and what transactions read
INDEXES_KEPT: Final = 16  # of a table: they share what they have in common
LINKS_NEAR: Final = 16  # of a tail that are looked through by themselves, each with few rows
LINK_ROWS_NEAR: Final = 16
MARK: Final = Wanted(DELETED, DELETED, BOOLEAN)


class TailIndex(Struct, frozen=True, eq=False):
    """The tail of a keyed table by key.

    rows     how many of the tail's rows are in it
    runs     older first; their rows are counted from the tail's first
    hidden   rows of the tail that other rows of the tail hide, ascending
    markers  rows that say a key is gone, ascending
    """

    tail: Tail | None = None
    rows: int = 0
    runs: tuple[Run, ...] = ()
    hidden: Ints = field(default_factory=lambda: NO_ROWS)
    markers: Ints = field(default_factory=lambda: NO_ROWS)

    def extended(self, rule: Rule, tail: Tail, reader: Reader) -> TailIndex:
        """With the rows that have come since."""
        fresh, hidden, markers = _run_of_tail(rule, tail, self.rows, reader)
        found = merged_rows(self.hidden, hidden)
        for run in self.runs:
            older, newer = meet(rule, run, fresh)
            found = merged_rows(merged_rows(found, older), newer)
        runs = list(self.runs)
        # Each row is sorted again about as often as its run doubles.
        while runs and len(runs[-1]) <= 2 * len(fresh):
            fresh = put_together(rule, runs.pop(), fresh)
        return TailIndex(tail, tail.rows, (*runs, fresh), found, np.append(self.markers, markers))


class KeyedView(Struct, frozen=True, eq=False):
    """What is seen of a keyed table's files and tail.

    hidden    of files by path, ascending; files without hidden rows have no entry
    by_tail   rows of the tail that rows of files hide: under SEQUENCE BY, or because they are combined
    deletes   all of it, and markers, as deleted rows are given
    combined  the rows of a merge table whose key is there more than once, put together
    """

    files: tuple[DataFile, ...]
    design: Design
    index: TailIndex
    hidden: dict[str, Ints]
    by_tail: Ints
    deletes: TableDeletes
    combined: pa.RecordBatch | None


class KeyedTables:
    """The views of keyed tables that one lake has worked out."""

    def __init__(self) -> None:
        self.runs = GroupRuns()
        self._views: dict[int, OrderedDict[tuple[int, int], KeyedView]] = {}
        self._indexes: dict[int, tuple[TailIndex, ...]] = {}  # the one used last at the end
        self._rules: dict[int, tuple[Table, Rule]] = {}
        self._pairs: dict[tuple[str, str, int], tuple[Ints, Ints]] = {}
        self._markers: dict[str, Ints] = {}
        self._paths: dict[int, set[str]] = {}  # of the views that are kept
        self._locks: dict[int, threading.Lock] = {}
        self._lock = threading.Lock()

    def view(self, reader: Reader, table: Table, tail: Tail | None) -> KeyedView:
        """What is seen of a table with these files and this tail."""
        with self._lock_of(table.id):
            kept = self._views.setdefault(table.id, OrderedDict())
            name = (id(table.files), id(tail))
            known = kept.get(name)
            if known is not None and known.files is table.files and known.index.tail is tail and known.design == table.design:
                kept.move_to_end(name)
                return known
            made = self._made(reader, table, tail, kept)
            kept[name] = made
            while len(kept) > VIEWS_KEPT:
                kept.popitem(last=False)
            live = {file.path for each in kept.values() for file in each.files}
            gone = self._paths.get(table.id, set()) - live
            self._paths[table.id] = live
            if gone:
                self.forget(gone)
            return made

    def rule(self, table: Table) -> Rule:
        """What tells the rows of a table's key apart."""
        known = self._rules.get(table.id)
        if known is None or known[0] is not table:
            known = self._rules[table.id] = table, Rule.of(table)
        return known[1]

    def index(self, reader: Reader, table: Table, tail: Tail | None) -> TailIndex:
        """The tail of a table by key."""
        if tail is None:
            return _NO_TAIL
        # Each open transaction has a tail of its own, which goes on from one that was committed.
        kept = self._indexes.get(table.id, ())
        known = {id(each.tail): each for each in kept}
        link: Tail | None = tail
        while link is not None and id(link) not in known:
            link = link.before
        nearest = _NO_TAIL if link is None else known[id(link)]
        if nearest.tail is tail:
            return nearest
        if not reader.waits and tail.rows - nearest.rows > AT_ONCE_ROWS_MAX:
            raise NotInMemory
        made = nearest.extended(self.rule(table), tail, reader)
        self._indexes[table.id] = (*kept[1 - INDEXES_KEPT :], made) if nearest is not _NO_TAIL else (made,)
        return made

    def index_near(self, reader: Reader, table: Table, tail: Tail | None) -> tuple[TailIndex, list[Tail]]:
        """The tail of a table by key up to where it is known, and the few links that have come since, newest first."""
        known = {id(each.tail): each for each in self._indexes.get(table.id, ())}
        fresh: list[Tail] = []
        link = tail
        while link is not None and id(link) not in known:
            if len(fresh) == LINKS_NEAR or link.part.rows > LINK_ROWS_NEAR:
                return self.index(reader, table, tail), []
            fresh.append(link)
            link = link.before
        return _NO_TAIL if link is None else known[id(link)], fresh

    def forget(self, paths: set[str]) -> None:
        """Lets go of files that are no longer read."""
        self.runs.forget(paths)
        with self._lock:
            for pair in list(self._pairs):
                if pair[0] in paths or pair[1] in paths:
                    self._pairs.pop(pair, None)
            for path in paths:
                self._markers.pop(path, None)

    # --- putting together ---------------------------------------------------------------------------------------------

    def _lock_of(self, id: int) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(id, threading.Lock())

    def _made(
        self, reader: Reader, table: Table, tail: Tail | None, kept: OrderedDict[tuple[int, int], KeyedView]
    ) -> KeyedView:
        rule = self.rule(table)
        index = self.index(reader, table, tail)
        before: KeyedView | None = None
        for known in kept.values():
            is_base = known.files is table.files and known.design == table.design and _continues(tail, known.index)
            if is_base and (before is None or known.index.rows > before.index.rows):
                before = known
        if before is None:
            hidden, by_tail, runs = self._hidden_in_files(reader, rule, table.files), NO_ROWS, index.runs
        else:
            hidden, by_tail = dict(before.hidden), before.by_tail
            rows = before.index.rows
            runs = (_run_of_tail(rule, tail, rows, reader)[0],) if tail is not None and tail.rows > rows else ()
        for run in runs:
            for file in table.files:
                lost, losing = meet_file(self.runs, reader, rule, file, run)
                if len(lost):
                    hidden[file.path] = merged_rows(hidden.get(file.path, NO_ROWS), lost)
                by_tail = merged_rows(by_tail, losing)
        combined = None
        if rule.combines:
            combined = combine(table, _hidden_rows(reader, table, tail, hidden, merged_rows(index.hidden, by_tail)))
        deletes = self._deletes(reader, table, hidden, merged_rows(index.hidden, by_tail), index.markers)
        return KeyedView(table.files, table.design, index, hidden, by_tail, deletes, combined)

    def _hidden_in_files(self, reader: Reader, rule: Rule, files: Sequence[DataFile]) -> dict[str, Ints]:
        found: dict[str, Ints] = {}
        for place, newer in enumerate(files):
            for older in files[:place]:
                if older.generation == newer.generation:
                    continue
                lost, losing = self.pair(reader, rule, older, newer)
                for file, rows in ((older, lost), (newer, losing)):
                    if len(rows):
                        found[file.path] = merged_rows(found.get(file.path, NO_ROWS), rows)
        return found

    def pair(self, reader: Reader, rule: Rule, older: DataFile, newer: DataFile) -> tuple[Ints, Ints]:
        """The rows of each of two files of different generations that are hidden by the other."""
        name = (older.path, newer.path, rule.sequence.id if rule.sequence else 0)
        found = self._pairs.get(name)
        if found is None:
            lost, losing = [NO_ROWS], [NO_ROWS]
            start = 0
            for group, rows in enumerate(newer.groups):
                run = self.runs.run(reader, rule, newer, group)
                left, right = meet_file(self.runs, reader, rule, older, run)
                lost.append(left)
                losing.append(right + start)
                start += rows
            found = self._pairs[name] = np.sort(np.concatenate(lost)), np.sort(np.concatenate(losing))
        return found

    def markers(self, reader: Reader, file: DataFile) -> Ints:
        """The rows of a file that say a key is gone."""
        if not file.markers:
            return NO_ROWS
        found = self._markers.get(file.path)
        if found is None:
            parts, start = [NO_ROWS], 0
            for group, rows in enumerate(file.groups):
                parts.append(_marked(group_arrays(reader, file, group, [MARK])[DELETED]) + start)
                start += rows
            found = self._markers[file.path] = np.concatenate(parts)
        return found

    def _deletes(
        self, reader: Reader, table: Table, hidden: dict[str, Ints], in_tail: Ints, markers: Ints
    ) -> TableDeletes:
        files: PersistentMap[str, Positions] = PersistentMap()
        total = 0
        for file in table.files:
            rows = merged_rows(hidden.get(file.path, NO_ROWS), self.markers(reader, file))
            if len(rows):
                files = files.set(file.path, _gone(rows))
                total += len(rows)
        gone = merged_rows(in_tail, markers)
        return TableDeletes(files, _gone(gone), total + len(gone))


_NO_TAIL = TailIndex()


def _gone(rows: Ints) -> Positions:
    """Rows as deleted ones are given; the commit of each is of no use, as keyed tables are not read as they were."""
    return Positions(rows, np.broadcast_to(np.int64(0), len(rows)))


def _continues(tail: Tail | None, known: TailIndex) -> bool:
    """Whether ``tail`` is the known one with more rows at its end, or none."""
    link = tail
    while link is not None and link.rows > known.rows:
        link = link.before
    return link is known.tail


def _marked(deleted: pa.Array) -> Ints:
    """Where ``_deleted`` is true."""
    if deleted.null_count == len(deleted):
        return NO_ROWS
    return np.flatnonzero(deleted.fill_null(False).to_numpy(zero_copy_only=False)).astype(np.int64)


def _run_of_tail(rule: Rule, tail: Tail, start: int, reader: Reader) -> tuple[Run, Ints, Ints]:
    """The rows of a tail from row ``start``: their run, those that are hidden, those that are markers."""
    arrays: list[list[pa.Array]] = [[] for _ in rule.columns]
    deleted: list[Ints] = [NO_ROWS]
    for at, batch in _batches_from(tail, start, reader):
        for place, column in enumerate(rule.columns):
            arrays[place].append(chunk_column(batch, column))
        if DELETED in batch.schema.names:
            deleted.append(_marked(batch.column(DELETED)) + at)
    whole = [parts[0] if len(parts) == 1 else pa.concat_arrays(parts) for parts in arrays]
    rows = np.arange(start, tail.rows, dtype=np.int64)
    run, hidden = run_of(rule, rule.keys(whole), rows, rule.numbers(whole))
    return run, hidden, np.concatenate(deleted)


def _batches_from(tail: Tail, start: int, reader: Reader) -> list[tuple[int, pa.RecordBatch]]:
    """The rows of a tail from row ``start`` as they were written, each batch with the number of its first row."""
    found: list[tuple[int, pa.RecordBatch]] = []
    link: Tail | None = tail
    while link is not None and link.rows > start:
        batch, first = link.part.batch(reader.store), link.rows - link.part.rows
        found.append((max(first, start), batch.slice(max(start - first, 0))))
        link = link.before
    return found[::-1]


def _hidden_rows(
    reader: Reader, table: Table, tail: Tail | None, hidden: dict[str, Ints], in_tail: Ints
) -> Iterator[pa.RecordBatch]:
    """The hidden rows themselves, oldest first, with system columns."""
    wanted = whole_columns(table)
    names = [column.stored for column in wanted]
    for file in table.files:
        rows = hidden.get(file.path, NO_ROWS)
        start = 0
        for group, count in enumerate(file.groups):
            low, high = np.searchsorted(rows, (start, start + count))
            if high > low:
                found = group_arrays(reader, file, group, wanted)
                taken = pa.array(rows[low:high] - start)
                yield pa.RecordBatch.from_arrays([decoded(found[name]).take(taken) for name in names], names=names)
            start += count
    start = 0
    for chunk in tail.chunks(reader.store) if tail is not None else ():
        low, high = np.searchsorted(in_tail, (start, start + chunk.num_rows))
        if high > low:
            taken = pa.array(in_tail[low:high] - start)
            yield pa.RecordBatch.from_arrays([chunk_column(chunk, column).take(taken) for column in wanted], names=names)
        start += chunk.num_rows


def whole_columns(table: Table) -> list[Wanted]:
    """Everything that is stored of a row of a keyed table, by stored name."""
    found = [Wanted.kept(column) for column in table.columns]
    return [*found, *(Wanted(name, name, type) for name, type in table.hidden_columns.items())]
