"""Names of tables and views: from the parts of a text to schema and name."""

from __future__ import annotations

from typing import Final

from lake.errors import UndefinedDatabase, UndefinedSchema, UndefinedTable, WrongObjectType
from lake.late import late_pattern
from lake.sql import ast
from lake.storage.catalog.model import INTERNAL, PUBLIC, Table, View
from lake.storage.catalog.state import State, display_name

_PART: Final = late_pattern(r'\s*("(?:[^"]|"")+"|[^".\s]+)\s*(?:\.|$)')


def named_parts(text: str) -> tuple[str, ...]:
    """The parts of a name given as text, as nextval and ``::regclass`` take it: ``s``, ``a.s``, ``"A".s``."""
    return tuple(_plain(part) for part in _PART.findall(text))


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()


def qualified(parts: tuple[str, ...], database: str) -> tuple[str, str]:
    """Schema and name of ``name``, ``schema.name`` or ``database.schema.name``.

    3D000  another database's name      3F000  the schema of the lake's own tables, which nobody names
    """
    if INTERNAL in parts[:-1]:
        raise UndefinedSchema(f'schema "{INTERNAL}" does not exist')
    match parts:
        case (name,):
            return PUBLIC, name
        case (schema, name):
            return schema, name
        case (first, schema, name) if first == database:
            return schema, name
        case (first, _, _):
            raise UndefinedDatabase(f'database "{first}" does not exist')
        case _:
            raise UndefinedTable(f'"{".".join(parts)}" is not the name of a table')


def find_table(state: State, name: ast.Name | tuple[str, ...], database: str) -> Table:
    """The table of that name.

    42P01  there is none, with a near name as the hint      42809  it is a view
    """
    schema, last = qualified(name.parts if isinstance(name, ast.Name) else name, database)
    found = state.find(last, schema)
    if isinstance(found, View):
        raise WrongObjectType(f'"{display_name(schema, last)}" is a view, not a table')
    return state.table(last, schema)
