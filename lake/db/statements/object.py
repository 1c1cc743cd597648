"""DROP, RENAME and COMMENT ON of objects of every kind. Spec: SQL, Sequences; Enum types; Indexes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from lake.db.names import find_table, qualified
from lake.db.result import Result
from lake.db.sequences import find_sequence
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.enum_type import drop_type, find_type, rename_type
from lake.db.statements.index import find_index, rename_index
from lake.db.statements.sequence import drop_sequence, rename_sequence
from lake.db.statements.table import KINDS, dropping
from lake.db.statements.table_alter import redefined
from lake.errors import (
    DependentObjects,
    UndefinedColumn,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from lake.roles import Role
from lake.sql import ast
from lake.storage.catalog.changes import AlterObject, AlterSchema, AlterView, Change, DropObject, DropSchema
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.model import Schema, Table, View
from lake.storage.catalog.objects import EnumType, Index, Object, Sequence
from lake.storage.catalog.state import State, display_name

MISSING: Final = (UndefinedTable, UndefinedObject, UndefinedSchema)


@statement(ast.RenameObject, tag="ALTER", role=Role.ADMIN, audit="ddl")
def rename_object(stmt: ast.RenameObject, run: Run) -> Result:
    """Gives a sequence, type or index another name in its schema.

    42P01, 42704  there is none      42P07  the name is taken      2BP01  a default names the sequence
    """
    notices: list[str] = []

    def make(state: State) -> list[Change]:
        notices.clear()
        try:
            return [_RENAMES[stmt.kind](stmt, state, run.database.name)]
        except MISSING as error:
            if not stmt.if_exists:
                raise
            notices.append(f"{error.message}, skipping")
            return []

    run.database.define(make)
    result = Result.done(f"ALTER {stmt.kind.upper()}", {stmt.kind: stmt.name.last, "altered": True})
    result.notices = tuple(notices)
    return result


_RENAMES: Final[dict[str, Callable[[ast.RenameObject, State, str], Change]]] = {
    "sequence": rename_sequence,
    "type": rename_type,
    "index": rename_index,
}


# --- DROP ------------------------------------------------------------------------------------------------------------


@statement(ast.Drop, tag="DROP", role=Role.ADMIN, audit="ddl")
def drop(stmt: ast.Drop, run: Run) -> Result:
    """Drops tables, views, schemas, sequences, types or indexes, all or none of those named.

    42P01, 42704  one is not there, without IF EXISTS      42809  one is of another kind
    2BP01  others need it: a schema that holds something, a type of a column, a sequence of a default
    """
    notices: list[str] = []

    def make(state: State) -> list[Change]:
        notices.clear()
        changes: list[Change] = []
        for name in stmt.names:
            changes += _drop_one(stmt, name, state, run.database.name, notices)
        return changes

    run.define(make)
    result = Result.done(f"DROP {stmt.kind.upper()}", {"dropped": [name.last for name in stmt.names]})
    result.notices = tuple(notices)
    return result


def _drop_one(stmt: ast.Drop, name: ast.Name, state: State, database: str, notices: list[str]) -> list[Change]:
    try:
        match stmt.kind:
            case "schema":
                return _drop_schema(stmt, name.last, state, database)
            case "sequence":
                return [drop_sequence(find_sequence(state, name.parts, database), state, database)]
            case "type":
                return [drop_type(find_type(state, name.parts, database), state)]
            case "index":
                return [_drop_index(name, state, database)]
            case _:
                return [_drop_relation(stmt, name, state, database)]
    except MISSING as error:
        if not stmt.if_exists:
            raise
        shown = f"{stmt.kind} {error.message.partition(' ')[2]}" if stmt.kind == "sequence" else error.message
        notices.append(f"{shown}, skipping")
        return []


def _drop_relation(stmt: ast.Drop, name: ast.Name, state: State, database: str) -> Change:
    schema, last = qualified(name.parts, database)
    found = state.find(last, schema)
    shown = display_name(schema, last)
    if found is None:
        if (schema, last) in state.names:
            raise WrongObjectType(f'"{shown}" is not a {stmt.kind}')
        raise UndefinedTable(f'{stmt.kind} "{shown}" does not exist', hint=state.hint(last, schema))
    is_external = isinstance(found, View) and found.kind != "view"
    if not isinstance(found, KINDS[stmt.kind]) and not (is_external and stmt.kind == "table"):
        other = "view" if stmt.kind == "table" else "table"
        raise WrongObjectType(f'"{shown}" is not a {stmt.kind}', hint=f"use DROP {other.upper()} to remove a {other}")
    return dropping(found, purge=stmt.purge)


def _drop_index(name: ast.Name, state: State, database: str) -> Change:
    found = find_index(name, state, database)
    if isinstance(found, Index):
        return DropObject(found.id)
    table, rule = found
    kept = tuple(item for item in table.constraints if item is not rule)
    return redefined(msgspec.structs.replace(table, constraints=kept))


def _drop_schema(stmt: ast.Drop, name: str, state: State, database: str) -> list[Change]:
    if name not in state.schemas:
        raise UndefinedSchema(f'schema "{name}" does not exist')
    relations = [item for item in state.relations() if item.schema == name]
    tables = {item.id for item in relations if isinstance(item, Table)}
    objects = [item for item in state.named_objects() if item.schema == name and item.table not in tables]
    held = [*relations, *objects]
    if held and not stmt.cascade:
        raise DependentObjects(
            f'cannot drop schema "{name}": it holds "{held[0].name}"', hint="DROP .. CASCADE drops what it holds too"
        )
    for item in objects:
        _check_free(item, name, state, database)
    return [*(dropping(item) for item in relations), *(DropObject(item.id) for item in objects), DropSchema(name)]


def _check_free(item: Object, schema: str, state: State, database: str) -> None:
    """Refuses to drop with a schema what another schema needs."""
    left = [(table.id, table) for table in state.tables.values() if table.schema != schema]
    rest = replace(state, tables=PersistentMap(left), past=PersistentMap())
    if isinstance(item, Sequence):
        drop_sequence(item, rest, database)
    elif isinstance(item, EnumType):
        drop_type(item, rest)


# --- COMMENT ON ------------------------------------------------------------------------------------------------------


@statement(ast.Comment, tag="COMMENT", role=Role.ADMIN, audit="ddl")
def comment(stmt: ast.Comment, run: Run) -> Result:
    """Sets or removes the comment of an object or of a table's column.

    42P01, 42704, 3F000, 42703  there is none, without IF EXISTS
    """
    notices: list[str] = []

    def make(state: State) -> list[Change]:
        notices.clear()
        try:
            return [_commented(stmt, state, run.database.name)]
        except (*MISSING, UndefinedColumn) as error:
            if not stmt.if_exists:
                raise
            notices.append(f"{error.message}, skipping")
            return []

    run.define(make)
    result = Result.done("COMMENT", {"commented": stmt.name.last})
    result.notices = tuple(notices)
    return result


def _commented(stmt: ast.Comment, state: State, database: str) -> Change:
    parts, text = stmt.name.parts, stmt.text
    match stmt.kind:
        case "column":
            return _commented_column(stmt, state, database)
        case "schema":
            found = state.schemas.get(stmt.name.last)
            if found is None:
                raise UndefinedSchema(f'schema "{stmt.name.last}" does not exist')
            return AlterSchema(Schema(found.name, found.created, text))
        case "view" | "external table":
            schema, name = qualified(parts, database)
            return AlterView(msgspec.structs.replace(state.view(name, schema), comment=text))
        case "sequence":
            return AlterObject(msgspec.structs.replace(find_sequence(state, parts, database), comment=text))
        case "type":
            return AlterObject(msgspec.structs.replace(find_type(state, parts, database), comment=text))
        case "index":
            index = find_index(stmt.name, state, database)
            if not isinstance(index, Index):
                raise WrongObjectType(f'"{stmt.name}" is a unique constraint, which has no comment')
            return AlterObject(msgspec.structs.replace(index, comment=text))
        case _:
            return redefined(msgspec.structs.replace(find_table(state, stmt.name, database), comment=text))


def _commented_column(stmt: ast.Comment, state: State, database: str) -> Change:
    parts = stmt.name.parts
    if len(parts) < 2:
        raise UndefinedColumn(f'"{stmt.name}" is not a table\'s column: write table.column')
    table = find_table(state, parts[:-1], database)
    if table.column(parts[-1]) is None:
        raise UndefinedColumn(f'column "{parts[-1]}" of relation "{table.name}" does not exist')
    columns = tuple(
        msgspec.structs.replace(item, comment=stmt.text) if item.name == parts[-1] else item for item in table.columns
    )
    return redefined(msgspec.structs.replace(table, columns=columns))
