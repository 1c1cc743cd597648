"""Rows that come as columns, block by block, into a table: one commit, whole or not at all. Spec: Doors, COPY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lake.db.names import find_table
from lake.db.write.incoming import Incoming
from lake.db.write.path import write_rows
from lake.db.write.unique import refuse_unique
from lake.errors import DuplicateColumn, UndefinedColumn
from lake.roles import Role
from lake.sql.bind import Binder
from lake.storage.catalog.model import TEMPORARY_IDS, Table

if TYPE_CHECKING:
    from lake.db.session import Session


def copy_columns(session: Session, name: tuple[str, ...], columns: Sequence[str]) -> tuple[Table, tuple[str, ...]]:
    """The table that COPY writes to and the columns it fills.

    42501  the caller may not write      42P01  no such table      42703, 42701  no such column, or one named twice
    """
    caller, rights = session.caller()
    if rights is None:
        caller.require(Role.WRITE)
    table = find_table(session.catalog().state, name, session.database.name)
    if rights is not None:
        rights.require("insert", table)
    refuse_unique(table, "COPY FROM STDIN")
    for column in columns:
        if table.column(column) is None:
            raise UndefinedColumn(f'column "{column}" of relation "{table.name}" does not exist')
    if len(set(columns)) != len(columns):
        raise DuplicateColumn("a column is named twice")
    return table, tuple(columns) or tuple(column.name for column in table.columns)


def copy_rows(session: Session, table: Table, blocks: Iterable[Incoming]) -> int:
    """Writes blocks of columns; how many rows."""
    settings = session.statement_settings()
    binder = Binder(session.catalog(settings), settings, {})
    rules = session.database.rules_of(table, binder, settings)
    batches = (rules.prepare(block) for block in blocks if block.rows)
    as_log = table.id >= TEMPORARY_IDS or (bool(table.design.key) and session.transaction is not None)
    return write_rows(session.database, table, batches, None, commit=session.write, as_log=as_log).rows
