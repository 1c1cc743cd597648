"""A snapshot: the rows of every table at one commit, in files and in the tail, read as one.

    Snapshot(state) ── table("flights") ── TableSnapshot ── parts(columns, predicates)
                                                             ├── one Part for each row group that may match
                                                             └── one Part for each chunk of the tail

It holds one frozen state and nothing else, so it costs nothing to take and later commits do not change it. While it
lives, expiry leaves the files it names alone.

Rows that are gone are left out. ``at(number)`` is the table as it was at an older commit: rows of later versions are left
out too, and what was deleted after it is there again, as far back as the table's ``horizon``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from lake.errors import InvalidParameter, SerializationFailure, UndefinedColumn, UndefinedTable
from lake.rows import Part, Parts, Predicate
from lake.storage.catalog.changes import DeleteRows
from lake.storage.catalog.deletes import Numbers, TableDeletes, encode_numbers
from lake.storage.catalog.manifests import Manifests
from lake.storage.catalog.model import PUBLIC, ROW_ID, VERSION, Column, DataFile, Table
from lake.storage.catalog.state import State
from lake.storage.catalog.statistics import ColumnStatistics, StatisticsCache, TableStatistics
from lake.storage.tables.keyed import KeyedTables, KeyedView
from lake.storage.tables.lookup import expiry_cutoff, key_values, look_up
from lake.storage.tables.prune import file_range, keeps_file, keeps_group
from lake.storage.tables.read import (
    PLACE,
    PLACE_BITS,
    Expiry,
    Reader,
    Visible,
    Wanted,
    read_chunk,
    read_group,
)
from lake.storage.tables.write import GROUP_ROWS
from lake.storage.tail.tail import Tail
from lake.types import BIGINT

COLUMNS_APART_ROWS: Final = 1 << 16
"""Reading a smaller table twice, its sort keys and then the rest, costs more than it saves."""


class Snapshot:
    """All tables at ``state.number``."""

    def __init__(
        self,
        state: State,
        reader: Reader,
        manifests: Manifests,
        statistics: StatisticsCache,
        keyed: KeyedTables,
        now: int,
    ) -> None:
        self.state = state
        self.reader = reader
        self.manifests = manifests
        self.statistics = statistics
        self.keyed = keyed
        self.now = now  # microseconds: rows whose time to live is over are not there

    def table(self, name: str, schema: str = PUBLIC) -> TableSnapshot:
        """A table's rows.

        42P01  no such table
        """
        return TableSnapshot(self, self.state.table(name, schema))

    def table_by_id(self, id: int) -> TableSnapshot:
        """A table's rows.

        42P01  it was dropped
        """
        return TableSnapshot(self, self.state.table_by_id(id))

    def stored(self, id: int) -> TableSnapshot:
        """The rows of a table, one of the past too, for who keeps files in order.

        42P01  it is gone for good
        """
        found = self.state.stored(id)
        if found is None:
            raise UndefinedTable("the table was dropped")
        return TableSnapshot(self, found)


class TableSnapshot:
    """The rows of one table at one commit; a ``lake.rows.RowSource``.

    tail     its rows that are not in files, or None
    upto     an older commit that is read, or None for the snapshot's
    columns  under which it is read
    """

    def __init__(
        self, snapshot: Snapshot, table: Table, upto: int | None = None, columns: Sequence[Column] | None = None
    ) -> None:
        self.snapshot = snapshot
        self.table = table
        self.upto = upto
        self.columns: tuple[Column, ...] = table.columns if columns is None else tuple(columns)
        self.tail: Tail | None = snapshot.state.tails.get(table.id)
        self._view: KeyedView | None = None
        self._columns: dict[str, Column] = {column.name: column for column in self.columns}
        self._statistics: TableStatistics | None = None

    @property
    def view(self) -> KeyedView | None:
        """What is seen of a table with a key; None of one without."""
        if self._view is None and self.table.design.key:
            snapshot = self.snapshot
            self._view = snapshot.keyed.view(snapshot.reader, self.table, self.tail)
        return self._view

    @property
    def is_by_column(self) -> bool:
        """Whether the table is so large that columns are read one after the other."""
        return self.table.file_rows >= COLUMNS_APART_ROWS

    @property
    def deletes(self) -> TableDeletes:
        """Which rows of files and tail are not to be seen: deleted ones, and those that newer ones of their key hide."""
        view = self.view
        return self.snapshot.state.deletes_of(self.table.id) if view is None else view.deletes

    @property
    def rows(self) -> int:
        """Rows of the table; of an older commit, those that are stored."""
        gone = self.deletes.rows if self.upto is None else 0
        view = self.view
        combined = view.combined.num_rows if view is not None and view.combined is not None else 0
        return self.table.file_rows + (self.tail.rows if self.tail else 0) - gone + combined

    def at(self, number: int, columns: Sequence[Column] | None = None) -> TableSnapshot:
        """The table's rows at an older commit, under ``columns``, by default those it had.

        22023  a commit that is to come, or of which deleted rows are no longer kept
        42P01  the table was not there
        """
        if number > self.snapshot.state.number:
            raise InvalidParameter(f"commit {number} is not there yet; the newest is {self.snapshot.state.number}")
        if number < self.table.born:
            raise UndefinedTable(f'table "{self.table.name}" did not exist at commit {number}')
        assert not self.table.design.key, "a table with a key has no past, and who asks for it is refused before"
        table, oldest = self.table, self.table.horizon
        for earlier in self.earlier():
            if number >= earlier.lost:
                break
            table, oldest = earlier, earlier.horizon
        if number < table.horizon or (table.lost and number >= table.lost):
            raise InvalidParameter(
                f'table "{self.table.name}" is no longer kept as it was at commit {number}',
                hint=f"the oldest commit it can be read at is {oldest}",
            )
        return TableSnapshot(self.snapshot, table, number, table.columns_at(number) if columns is None else columns)

    def earlier(self) -> Iterator[Table]:
        """The table's rows from before its TRUNCATEs, as tables of the past, the newest first."""
        found = self.snapshot.state.past.get(self.table.earlier)
        while found is not None:
            yield found
            found = self.snapshot.state.past.get(found.earlier)

    def files(self, predicates: Sequence[Predicate] = ()) -> list[DataFile]:
        """The files that may hold rows for which all predicates are true, in order of arrival."""
        return [file for _, file in self._numbered(predicates)]

    def _numbered(self, predicates: Sequence[Predicate]) -> Iterator[tuple[int, DataFile]]:
        """Files with their numbers among all files of the table, from 1."""
        number = 1
        for manifest in self.table.manifests:
            if keeps_file(manifest, self._columns, predicates):
                for place, file in enumerate(self.snapshot.manifests.files(manifest.path), number):
                    if self._keeps(file, predicates):
                        yield place, file
            number += manifest.files
        for place, file in enumerate(self.table.files, number):
            if self._keeps(file, predicates):
                yield place, file

    def numbered(self) -> Iterator[tuple[int, DataFile]]:
        """All files with the numbers that places have in their upper bits."""
        return self._numbered(())

    def _keeps(self, file: DataFile, predicates: Sequence[Predicate]) -> bool:
        is_there = self.upto is None or file.version <= self.upto
        return is_there and keeps_file(file, self._columns, predicates)

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate] = ()) -> Parts:
        """The pieces of the table, files in order of arrival and then the tail.

        columns  names as SQL has them, system columns too; the batches have them in this order
        ``Part.rows`` is exact where there are no predicates, and an upper bound where there are.
        42703  no such column
        """
        wanted = [self.wanted(name) for name in columns]
        if self.table.design.key:
            found = self._looked_up(wanted, predicates)
            if found is not None:
                return found
        deletes = self.deletes
        parts = Parts()
        groups = 0
        for number, file in self._numbered(predicates):
            gone = deletes.of(file.path)
            groups += len(file.groups)
            upto = self.upto if self.upto is not None and file.version_high > self.upto else None
            expiry = self._expiry(file)
            start = 0
            for group, rows in enumerate(file.groups):
                end = start + rows
                dead, stamp = gone.cut(start, end) if self.upto is None else (gone.between(start, end, self.upto), 0)
                visible = Visible((number << PLACE_BITS) + start, dead, upto, expiry, stamp)
                start = end
                if len(dead) < rows:
                    piece = FileGroup(self, file, group, visible, tuple(predicates))
                    exact = rows - len(dead) if upto is None and expiry is None else None
                    parts.append(Part(exact, partial(piece.all, wanted), piece))
        parts.skipped = max(self._groups - groups, 0) if predicates else 0
        parts += self._tail_parts(wanted, deletes)
        return parts

    @property
    def _groups(self) -> int:
        """Row groups of all files; of sealed ones about, since nobody opens a manifest to count them."""
        listed: int = sum(len(file.groups) for file in self.table.files)
        return listed + sum(max(manifest.files, manifest.rows // GROUP_ROWS) for manifest in self.table.manifests)

    def _tail_parts(self, wanted: Sequence[Wanted], deletes: TableDeletes) -> list[Part]:
        """The parts of the tail; of a merge table, its rows that were combined too."""
        parts: list[Part] = []
        expiry = self._expiry(None)
        start = 0
        for chunk in self.tail_chunks():
            rows = chunk.num_rows
            dead = deletes.tail.between(start, start + rows, self.upto)
            visible = Visible(start, dead, self.upto, expiry)
            start += rows
            if len(dead) < rows:
                exact = rows - len(dead) if self.upto is None and expiry is None else None
                parts.append(Part(exact, partial(read_chunk, chunk, wanted, visible)))
        if self.view is not None and self.view.combined is not None:
            combined = self.view.combined
            parts.append(Part(combined.num_rows, partial(read_chunk, combined, wanted, Visible(start))))
        return parts

    def _expiry(self, file: DataFile | None) -> Expiry | None:
        """Until when rows of a file, or of the tail, must have been written to be there; None where all are."""
        design = self.table.design
        if not design.ttl:
            return None
        column = self.table.column_by_id(design.ttl)
        cutoff = expiry_cutoff(self.table, self.snapshot.now)
        found = file.ranges.get(column.id) if file is not None else None
        if found is not None and isinstance(found.low, int) and found.low > cutoff:
            return None
        return Expiry(Wanted.kept(column), cutoff)

    def _looked_up(self, wanted: Sequence[Wanted], predicates: Sequence[Predicate]) -> Parts | None:
        """The part of the one row that has the key which the predicates ask for; None where they ask for no key."""
        values = key_values(self.table, predicates)
        if values is None:
            return None
        rows = self.lookup(values, wanted)
        found = Parts([Part(sum(batch.num_rows for batch in rows), lambda: rows)] if rows else [])
        found.skipped = max(self._groups - len(found), 0)
        return found

    def lookup(self, values: Sequence[object], wanted: Sequence[Wanted]) -> list[pa.RecordBatch]:
        """The row of a key, if there is one, without putting the table's view together.

        values  of the key's columns in their order, in physical form
        """
        snapshot = self.snapshot
        return look_up(snapshot.keyed, snapshot.reader, self.table, self.tail, values, wanted, snapshot.now)

    def deletes_at(self, places: Numbers) -> DeleteRows:
        """The change that deletes the rows at ``places``, values of the column PLACE of this snapshot."""
        ordered = np.sort(places)
        numbers = ordered >> PLACE_BITS
        rows = ordered & ((1 << PLACE_BITS) - 1)
        wanted, starts = np.unique(numbers, return_index=True)
        ends = [*starts[1:], len(ordered)]
        found = {int(number): rows[start:end] for number, start, end in zip(wanted, starts, ends)}
        tail = found.pop(0, None)
        paths = {number: file.path for number, file in self._numbered(())} if found else {}
        return DeleteRows(
            self.table.id,
            self.table.layout,
            {paths[number]: encode_numbers(positions) for number, positions in found.items()},
            b"" if tail is None else encode_numbers(tail),
        )

    def versions_at(self, places: Numbers) -> tuple[Numbers, Numbers]:
        """Row ids and versions of the rows at ``places``, in any order."""
        ids, versions = [], []
        for part in self.parts((ROW_ID, VERSION, PLACE)):
            for batch in part.read():
                here, version, place = (column.to_numpy() for column in batch.columns)
                wanted = np.isin(place, places)
                ids.append(here[wanted])
                versions.append(version[wanted])
        return np.concatenate([*ids, np.empty(0, np.int64)]), np.concatenate([*versions, np.empty(0, np.int64)])

    def places_of(self, row_ids: Numbers, versions: Numbers) -> Numbers:
        """Where these versions of rows are in this snapshot, in any order.

        40001  one of them is gone
        """
        order = np.argsort(row_ids)
        ids, wanted = row_ids[order], versions[order]
        found = []
        for part in self.parts((ROW_ID, VERSION, PLACE)):
            for batch in part.read():
                here, version, place = (column.to_numpy() for column in batch.columns)
                at = np.minimum(np.searchsorted(ids, here), max(len(ids) - 1, 0))
                found.append(place[(ids[at] == here) & (wanted[at] == version)])
        places = np.concatenate(found) if found else np.empty(0, np.int64)
        if len(places) != len(row_ids):
            raise SerializationFailure("could not serialize access due to concurrent update")
        return places

    def tail_chunks(self) -> tuple[pa.RecordBatch, ...]:
        """The tail as a few batches of stored names, system columns at the end."""
        return self.tail.chunks(self.snapshot.reader.store) if self.tail else ()

    def statistics(self) -> TableStatistics:
        """What the planner may know of the table."""
        if self._statistics is None:
            found = self.snapshot.statistics.table(self.table, self.tail_chunks())
            renamed = {} if self.columns == self.table.columns else self._renamed(found)
            found = replace(found, columns=renamed) if renamed else found
            # Of a table with a key all stored rows are counted: planning does not wait for a merge on read.
            gone = self.snapshot.state.deletes_of(self.table.id).rows
            self._statistics = replace(found, rows=float(self.rows)) if gone else found
        return self._statistics

    def _renamed(self, found: TableStatistics) -> dict[str, ColumnStatistics]:
        """Statistics of columns of now under the names they are read by; those that are gone have none."""
        names = {column.id: column.name for column in self.table.columns}
        known = {column.name: found.columns.get(names.get(column.id, "")) for column in self.columns}
        return {name: each or ColumnStatistics() for name, each in known.items()}

    def wanted(self, name: str) -> Wanted:
        """The column that answers call ``name``.

        42703  no such column
        """
        column = self._columns.get(name)
        if column is not None:
            return Wanted.named(column)
        hidden = self.table.hidden_columns
        if name in hidden:
            return Wanted(name, name, hidden[name])
        if name == PLACE:
            return Wanted(name, name, BIGINT)
        raise UndefinedColumn(f'column "{name}" of table "{self.table.name}" does not exist')


class FileGroup(Struct, frozen=True):
    """The rows of a row group that are to be seen; a ``lake.rows.Group``."""

    table: TableSnapshot
    file: DataFile
    group: int
    visible: Visible
    predicates: tuple[Predicate, ...]

    def range_of(self, column: str) -> tuple[Any, Any] | None:
        """The range of the whole file, which the catalog knows; its rows may have a narrower one."""
        found = file_range(self.file, self.table._columns, column)
        return None if found is None or found.low is None or found.high is None else (found.low, found.high)

    def may_hold(self, predicates: Sequence[Predicate]) -> bool:
        """Whether a row may make the predicates true, by the footer of the file.

        XX001  the file is missing or damaged
        """
        every = (*self.predicates, *predicates)
        if not every:
            return True
        reader = self.table.snapshot.reader
        layout = reader.footers.layout(self.file.path, reader.footer(self.file))
        return keeps_group(layout.ranges, layout.places, self.group, self.file, self.table._columns, every)

    def read(self, columns: Sequence[str]) -> list[pa.RecordBatch]:
        """The rows' columns by the names of answers.

        XX001  the file is missing or damaged
        """
        return self._read([self.table.wanted(name) for name in columns], narrow=True)

    def all(self, wanted: Sequence[Wanted]) -> list[pa.RecordBatch]:
        """The rows in the columns' own types; none where the predicates rule them out."""
        return self._read(wanted, narrow=False) if self.may_hold(()) else []

    def _read(self, wanted: Sequence[Wanted], *, narrow: bool) -> list[pa.RecordBatch]:
        return read_group(self.table.snapshot.reader, self.file, self.group, wanted, self.visible, narrow=narrow)
