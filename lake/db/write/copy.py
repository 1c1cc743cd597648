"""Rows that come as columns of text, block by block, into a table: one commit, whole or not at all. Spec: Doors, COPY."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lake.db.names import find_table
from lake.db.write.checks import Rules, about
from lake.db.write.incoming import Incoming
from lake.db.write.path import write_rows
from lake.db.write.unique import refuse_unique
from lake.errors import DuplicateColumn, LakeError, UndefinedColumn
from lake.exec.cast import cast
from lake.exec.kernels import views
from lake.roles import Role
from lake.sql.bind import Binder
from lake.storage.catalog.model import TEMPORARY_IDS, Table
from lake.types import TEXT

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


def copy_rows(session: Session, table: Table, blocks: Iterable[pa.Table | Incoming]) -> int:
    """Writes blocks of columns, of text or typed; how many rows.

    22P02  a value that does not cast; the message names it, its column and its row
    """
    settings = session.statement_settings()
    binder = Binder(session.catalog(settings), settings, {})
    rules = session.database.rules_of(table, binder, settings)
    batches = _prepared(blocks, table, rules, session)
    as_log = table.id >= TEMPORARY_IDS or (bool(table.design.key) and session.transaction is not None)
    return write_rows(session.database, table, batches, None, commit=session.write, as_log=as_log).rows


def _prepared(
    blocks: Iterable[pa.Table | Incoming], table: Table, rules: Rules, session: Session
) -> Iterator[pa.RecordBatch]:
    done = 0
    for block in blocks:
        if isinstance(block, Incoming):
            if block.rows:
                yield rules.prepare(block)
            continue
        if block.num_rows:
            yield rules.prepare(_typed(block, table, done, session))
        done += block.num_rows


def _typed(block: pa.Table, table: Table, done: int, session: Session) -> Incoming:
    arrays, types = {}, {}
    for name in block.column_names:
        column = table.column(name)
        assert column is not None, "the columns were looked up"
        texts = views.single(block.column(name))
        types[name] = column.type
        try:
            arrays[name] = cast(texts, TEXT, column.type, settings=session.statement_settings())
        except LakeError as error:
            raise type(error)(
                error.message,
                detail=f"COPY {table.name}, rows {done + 1} to {done + block.num_rows}, column {name}",
                about=about(table, column=name),
            ) from None
    return Incoming(block.num_rows, arrays, types)
