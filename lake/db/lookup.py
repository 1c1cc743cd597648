"""The row of a key: what ``GET /lookup`` answers. Spec: HTTP, Reading keys and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lake.db.names import find_table
from lake.db.point import row_read
from lake.db.result import Result
from lake.errors import InvalidParameter, InvalidTableDefinition
from lake.exec.cast import cast
from lake.exec.constants import physical_values
from lake.storage.tables.read import Wanted
from lake.types import TEXT, Integer, Text, Type

if TYPE_CHECKING:
    from lake.db.database import Database
    from lake.storage.catalog.model import Table


def look_up(database: Database, name: tuple[str, ...], key: str, *, peek: bool = False) -> Result:
    """The row that has a key as it is at the newest commit, or no row.

    key    the value of the key's column, or values of its columns in their order between commas
    peek   looks in memory only, so that an event loop may call it; NotInMemory where that does not tell
    42P01  no such table      42P16  a table without a key      22023  not as many values as the key has columns
    22P02  a value that does not cast to its column's type
    """
    lake = database.lake
    state = lake.state
    known = database.repeats.point(
        ("row", name, state.definitions), lambda: row_read(find_table(state, name, database.name))
    )
    values = None if known is None else known.values_of(key.split(",") if len(known.key) > 1 else [key])
    if known is not None and values is not None and peek:
        return known.peek(lake, state, values)
    table = find_table(state, name, database.name)
    if values is None:
        values = _values(table, key)
    wanted = [Wanted.named(column) for column in table.columns]
    if peek:
        rows = lake.peek(state, table.id, values, wanted)
    else:
        rows = lake.snapshot(state).table_by_id(table.id).lookup(values, wanted)
    names = tuple([column.name for column in table.columns])
    types = tuple([column.type for column in table.columns])
    return Result(names, types, "SELECT", version=state.number, source=rows)


def _values(table: Table, key: str) -> list[object]:
    if not table.key:
        raise InvalidTableDefinition(f'table "{table.name}" has no key to look up')
    texts = key.split(",") if len(table.key) > 1 else [key]
    if len(texts) != len(table.key):
        names = ", ".join(column.name for column in table.key)
        raise InvalidParameter(f'the key of table "{table.name}" is ({names}), and {len(texts)} values are given')
    return [_value(text, column.type) for text, column in zip(texts, table.key, strict=True)]


def _value(text: str, type: Type) -> object:
    """A key's value in physical form; whole numbers and texts, which most keys are, without the engine's cast."""
    if isinstance(type, Text):
        return text
    if isinstance(type, Integer) and text.isascii() and text.isdigit() and len(text) < 20:
        number = int(text)
        if number < 1 << (type.bits - 1):
            return number
    return physical_values(cast(pa.array([text]), TEXT, type), type)[0]
