"""A snapshot: the rows of every table at one commit, in files and in the tail, read as one.

    Snapshot(state) ── table("flights") ── TableSnapshot ── parts(columns, predicates)
                                                             ├── one Part for each row group that may match
                                                             └── one Part for each chunk of the tail

It holds one frozen state and nothing else, so it costs nothing to take and later commits do not change it. While it
lives, expiry leaves the files it names alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from lake.errors import UndefinedColumn
from lake.rows import Part, Predicate
from lake.storage.catalog.manifests import Manifests
from lake.storage.catalog.model import PUBLIC, SYSTEM_COLUMNS, Column, DataFile, Table
from lake.storage.catalog.state import State
from lake.storage.catalog.statistics import StatisticsCache, TableStatistics
from lake.storage.tables.prune import keeps_file, keeps_group
from lake.storage.tables.read import Reader, Wanted, read_group, row_batches
from lake.storage.tail.tail import Tail


class Snapshot:
    """All tables at ``state.number``."""

    def __init__(self, state: State, reader: Reader, manifests: Manifests, statistics: StatisticsCache) -> None:
        self.state = state
        self.reader = reader
        self.manifests = manifests
        self.statistics = statistics

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


class TableSnapshot:
    """The rows of one table at one commit; a ``lake.rows.RowSource``.

    tail  its rows that are not in files, or None
    """

    def __init__(self, snapshot: Snapshot, table: Table) -> None:
        self.snapshot = snapshot
        self.table = table
        self.tail: Tail | None = snapshot.state.tails.get(table.id)
        self._columns: dict[str, Column] = {column.name: column for column in table.columns}
        self._statistics: TableStatistics | None = None

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.table.file_rows + (self.tail.rows if self.tail else 0)

    def files(self, predicates: Sequence[Predicate] = ()) -> list[DataFile]:
        """The files that may hold rows for which all predicates are true, in order of arrival."""
        found: list[DataFile] = []
        for manifest in self.table.manifests:
            if keeps_file(manifest, self._columns, predicates):
                found += self.snapshot.manifests.files(manifest.path)
        found += self.table.files
        return [file for file in found if keeps_file(file, self._columns, predicates)]

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate] = ()) -> list[Part]:
        """The pieces of the table, files in order of arrival and then the tail.

        columns  names as SQL has them, system columns too; the batches have them in this order
        ``Part.rows`` is exact where there are no predicates, and an upper bound where there are.
        42703  no such column
        """
        wanted = [self._wanted(name) for name in columns]
        found = [
            Part(rows, partial(self._read_group, file, group, wanted, tuple(predicates)))
            for file in self.files(predicates)
            for group, rows in enumerate(file.groups)
        ]
        for chunk in self.tail_chunks():
            found.append(Part(chunk.num_rows, partial(_read_chunk, chunk, wanted)))
        return found

    def tail_chunks(self) -> tuple[pa.RecordBatch, ...]:
        """The tail as a few batches of stored names, system columns at the end."""
        return self.tail.chunks(self.snapshot.reader.store) if self.tail else ()

    def statistics(self) -> TableStatistics:
        """What the planner may know of the table."""
        if self._statistics is None:
            self._statistics = self.snapshot.statistics.table(self.table, self.tail_chunks())
        return self._statistics

    def _wanted(self, name: str) -> Wanted:
        column = self._columns.get(name)
        if column is not None:
            return Wanted(name, column.stored, column.type)
        if name in SYSTEM_COLUMNS:
            return Wanted(name, name, SYSTEM_COLUMNS[name])
        raise UndefinedColumn(f'column "{name}" of table "{self.table.name}" does not exist')

    def _read_group(
        self, file: DataFile, group: int, wanted: Sequence[Wanted], predicates: Sequence[Predicate]
    ) -> list[pa.RecordBatch]:
        reader = self.snapshot.reader
        if predicates and not keeps_group(reader.footer(file), group, file, self._columns, predicates):
            return []
        return read_group(reader, file, group, wanted)


def _read_chunk(chunk: pa.RecordBatch, wanted: Sequence[Wanted]) -> list[pa.RecordBatch]:
    names = set(chunk.schema.names)
    arrays = [
        chunk.column(column.stored) if column.stored in names else pa.nulls(chunk.num_rows, column.type.physical)
        for column in wanted
    ]
    return row_batches(arrays, [column.name for column in wanted], chunk.num_rows)
