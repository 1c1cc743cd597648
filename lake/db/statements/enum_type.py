"""CREATE, ALTER and DROP TYPE, and columns of enum types. Spec: SQL, Enum types."""

from __future__ import annotations

from typing import Final

import msgspec

from lake.db.names import named_parts, qualified
from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.sequence import SERIAL
from lake.errors import (
    DependentObjects,
    DuplicateObject,
    FeatureNotSupported,
    InvalidParameter,
    InvalidTableDefinition,
    UndefinedObject,
    UndefinedSchema,
)
from lake.roles import Role
from lake.sql import ast
from lake.sql.bind import bind_type
from lake.storage.catalog.changes import AlterObject, Change, CreateObject, DropObject
from lake.storage.catalog.model import Column
from lake.storage.catalog.objects import EnumType
from lake.storage.catalog.state import State, display_name
from lake.types import Type

LABEL_CHARS_MAX: Final = 256


@statement(ast.CreateType, tag="CREATE TYPE", role=Role.ADMIN, audit="ddl")
def create_type(stmt: ast.CreateType, run: Run) -> Result:
    """Makes an enum type.

    42P07  the name is taken      42P16  a label written twice      22023  a label that is too long
    """
    database = run.database
    schema, name = qualified(stmt.name.parts, database.name)
    check_labels(stmt.labels)
    notices: list[str] = []

    def make(state: State) -> list[Change]:
        notices.clear()
        if state.enum_type(name, schema) is not None and stmt.if_taken is ast.IfTaken.KEEP:
            notices.append(f'type "{stmt.name}" already exists, skipping')
            return []
        if is_built_in(name):
            raise DuplicateObject(f'type "{name}" already exists')
        if schema not in state.schemas:
            raise UndefinedSchema(f'schema "{schema}" does not exist')
        return [CreateObject(EnumType(state.next_id, schema, name, stmt.labels))]

    database.define(make)
    result = Result.done("CREATE TYPE", {"type": name})
    result.notices = tuple(notices)
    return result


@statement(ast.AddValue, tag="ALTER TYPE", role=Role.ADMIN, audit="ddl")
def add_value(stmt: ast.AddValue, run: Run) -> Result:
    """Adds a label to a type, at the end or beside another.

    42704  no such type, or no such neighbour      42P07  the label is there
    """
    database = run.database
    notices: list[str] = []

    def make(state: State) -> list[Change]:
        notices.clear()
        found = find_type(state, stmt.name.parts, database.name)
        if stmt.label in found.labels:
            if stmt.quiet:
                notices.append(f'enum label "{stmt.label}" already exists, skipping')
                return []
            raise DuplicateObject(f'enum label "{stmt.label}" already exists')
        place = len(found.labels)
        if stmt.place:
            if stmt.neighbour not in found.labels:
                raise UndefinedObject(f'"{stmt.neighbour}" is not an existing enum label')
            place = found.labels.index(stmt.neighbour) + (stmt.place == "after")
        labels = (*found.labels[:place], stmt.label, *found.labels[place:])
        check_labels(labels)
        return [AlterObject(msgspec.structs.replace(found, labels=labels))]

    database.define(make)
    result = Result.done("ALTER TYPE", {"type": stmt.name.last, "altered": True})
    result.notices = tuple(notices)
    return result


def rename_type(stmt: ast.RenameObject, state: State, database: str) -> Change:
    """The change of a type's name; columns keep their type."""
    found = find_type(state, stmt.name.parts, database)
    if is_built_in(stmt.to):
        raise DuplicateObject(f'type "{stmt.to}" already exists')
    return AlterObject(msgspec.structs.replace(found, name=stmt.to))


def drop_type(found: EnumType, state: State) -> Change:
    """The change that drops a type.

    2BP01  a column uses it, be it of a table that can be undropped
    """
    for table in state.stored_tables():
        for column in table.columns:
            if column.enum == found.id:
                kept = "" if table.id in state.tables else ", which can be undropped"
                raise DependentObjects(
                    f"cannot drop type {display_name(found.schema, found.name)} because other objects depend on it",
                    detail=f"column {column.name} of table {display_name(table.schema, table.name)} "
                    f"depends on type {display_name(found.schema, found.name)}{kept}",
                )
    return DropObject(found.id)


def find_type(state: State, parts: tuple[str, ...], database: str) -> EnumType:
    """The enum type of a name.

    42704  there is none
    """
    schema, name = qualified(parts, database)
    found = state.enum_type(name, schema)
    if found is None:
        raise UndefinedObject(f'type "{display_name(schema, name)}" does not exist')
    return found


def is_built_in(name: str) -> bool:
    """Whether a type of every lake has the name."""
    try:
        bind_type(ast.TypeName(name))
    except UndefinedObject:
        return False
    return True


def check_labels(labels: tuple[str, ...]) -> None:
    """Refuses labels that are there twice, or too long."""
    for label in labels:
        if labels.count(label) > 1:
            raise InvalidTableDefinition(f'enum label "{label}" used more than once')
        if len(label) > LABEL_CHARS_MAX:
            raise InvalidParameter(f"an enum label has at most {LABEL_CHARS_MAX} characters")


def column_of(number: int, item: ast.ColumnDefinition, state: State, database: str) -> Column:
    """A column as its definition says, its type one of the lake's or an enum.

    42704  no such type      0A000  a list of enums
    """
    name = item.type
    serial = SERIAL.get(name.name.lower())

    def of(type: Type) -> Column:
        return Column.of(number, item.name, type, not_null=item.not_null, default=item.default_text)

    made = of(bind_type(ast.TypeName("varchar")))
    if name.labels:
        check_labels(name.labels)
        _refuse_lists(name)
        return msgspec.structs.replace(made, labels=name.labels)
    if serial is not None and not name.dimensions:
        return of(serial)
    try:
        return of(bind_type(name))
    except UndefinedObject:
        schema, last = qualified(named_parts(name.name), database)
        found = state.enum_type(last, schema)
        if found is None or name.arguments:
            raise
    _refuse_lists(name)
    return msgspec.structs.replace(made, enum=found.id)


def _refuse_lists(name: ast.TypeName) -> None:
    if name.dimensions:
        raise FeatureNotSupported(f'a column of a list of the enum type "{name.name}" is not supported')
