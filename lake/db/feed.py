"""A table's feed as callers see it: its new rows, or all its changes, in answer types. Spec: HTTP, Events (``/watch``).

    feed = Feed.of(database, ("orders",), old=True)
    for batch, upto in feed.read(after=41): ...      commits 42 to the newest; ``upto`` is where to go on
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec import Struct

from lake.db.names import find_table
from lake.errors import UndefinedTable
from lake.rows import answer_array
from lake.storage.catalog.changes import (
    AddFiles,
    AlterTable,
    AppendRows,
    Commit,
    DeleteRows,
    DropTable,
    Truncate,
    UndropTable,
)
from lake.storage.catalog.model import CREATED_AT, ROW_ID, SYSTEM_COLUMNS, UPDATED_AT, VERSION, Table
from lake.storage.tables.feed import CHANGE_TYPE, changes, check_position
from lake.storage.tables.feed_log import check_logged, logged_changes
from lake.types import TEXT, Type

if TYPE_CHECKING:
    from lake.db.database import Database

FED: Final = (ROW_ID, VERSION, CREATED_AT, UPDATED_AT)


class Feed(Struct, frozen=True):
    """The feed of one table.

    old   changes of every kind, with ``_change_type`` and what names the row; else new rows alone
    """

    database: Database
    table: int
    old: bool

    @staticmethod
    def of(database: Database, name: tuple[str, ...], *, old: bool) -> Feed:
        """The feed of the table of that name.

        42P01  no such table
        """
        table = find_table(database.lake.state, name, database.name)
        return Feed(database, table.id, old)

    def start(self, after: int | None) -> int:
        """The position to read from: ``after``, or by default the newest commit.

        22023  changes after it are no longer kept, or it is to come
        """
        snapshot = self.database.lake.snapshot()
        position = snapshot.state.number if after is None else after
        if snapshot.stored(self.table).table.design.key:
            check_logged(self.database.lake.log, snapshot, position)
        else:
            check_position(snapshot, self.table, position)
        return position

    def read(self, after: int, upto: int | None = None) -> Iterator[Batch]:
        """What was committed after ``after``, up to commit ``upto`` or this moment.

        22023  it is no longer kept      42P01  the table was dropped: raised behind what came before that
        """
        snapshot = self.database.lake.snapshot()
        table = snapshot.stored(self.table).table
        columns = _columns(table, old=self.old)
        names, types = [name for name, _ in columns], [type for _, type in columns]
        newest = snapshot.state.number if upto is None else upto
        if table.design.key:
            pieces = logged_changes(self.database.lake.log, snapshot, self.table, after, newest, old=self.old)
        else:
            pieces = changes(snapshot, self.table, after, newest, old=self.old)
        for piece in pieces:
            arrays = [answer_array(piece.batch.column(name), type) for name, type in columns]
            yield Batch(pa.RecordBatch.from_arrays(arrays, names=names), types, piece.upto)
        if table.lost and newest >= table.lost:
            raise UndefinedTable("the table was dropped")


class Batch(Struct, frozen=True):
    """Rows of a feed; everything up to commit ``upto`` has been told with them."""

    rows: pa.RecordBatch
    types: Sequence[Type]
    upto: int


def touched_by(commit: Commit) -> set[int]:
    """The tables whose rows or definition a commit changes."""
    return {change.table for change in commit.changes if isinstance(change, _TOUCHING)}


_TOUCHING: Final = (AddFiles, AlterTable, AppendRows, DeleteRows, DropTable, Truncate, UndropTable)


def _columns(table: Table, *, old: bool) -> list[tuple[str, Type]]:
    columns: list[tuple[str, Type]] = [(column.name, column.type) for column in table.columns]
    if old:
        columns.append((CHANGE_TYPE, TEXT))
        columns += [(name, SYSTEM_COLUMNS[name]) for name in FED]
    return columns
