"""CREATE, ALTER and DROP SEQUENCE, and the sequences of identity columns. Spec: SQL, Sequences and identity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from lake.db.definitions import place_text
from lake.db.names import named_parts, qualified
from lake.db.result import Result
from lake.db.sequences import after, find_sequence
from lake.db.session import Run
from lake.db.statements import statement
from lake.errors import (
    DependentObjects,
    FeatureNotSupported,
    InvalidParameter,
    SyntaxFailure,
    UndefinedSchema,
)
from lake.roles import Role
from lake.sql import ast, parser
from lake.sql.bind import bind_type
from lake.sql.quoting import quote_text
from lake.storage.catalog import objects
from lake.storage.catalog.changes import AlterObject, Change, CreateObject, DropObject
from lake.storage.catalog.model import Column, Table
from lake.storage.catalog.state import State, display_name
from lake.types import BIGINT, INT, SMALLINT, Integer, Type

SERIAL: Final[dict[str, Type]] = {
    "serial": INT, "serial4": INT, "bigserial": BIGINT, "serial8": BIGINT, "smallserial": SMALLINT, "serial2": SMALLINT,
}  # fmt: skip
CALLS: Final = ("nextval", "currval", "setval")  # functions whose first argument names a sequence


@statement(ast.CreateSequence, tag="CREATE SEQUENCE", role=Role.ADMIN, audit="ddl")
def create_sequence(stmt: ast.CreateSequence, run: Run) -> Result:
    """Makes a sequence.

    42P07  the name is taken      22023  options that do not go together
    """
    database = run.database
    schema, name = qualified(stmt.name.parts, database.name)
    notices: list[str] = []

    def make(state: State) -> list[Change]:
        notices.clear()
        made = sequence_of(stmt.options, state.next_id, schema, name)
        found = state.sequence(name, schema)
        if (schema, name) in state.names and stmt.if_taken is ast.IfTaken.KEEP:
            notices.append(f'relation "{stmt.name}" already exists, skipping')
            return []
        if schema not in state.schemas:
            raise UndefinedSchema(f'schema "{schema}" does not exist')
        if found is None or stmt.if_taken is not ast.IfTaken.REPLACE:
            return [CreateObject(made)]
        _refuse_owned(state, found, "replace")
        return [DropObject(found.id), CreateObject(made)]

    database.define(make)
    result = Result.done("CREATE SEQUENCE", {"sequence": name})
    result.notices = tuple(notices)
    return result


@statement(ast.AlterSequence, tag="ALTER SEQUENCE", role=Role.ADMIN, audit="ddl")
def alter_sequence(stmt: ast.AlterSequence, run: Run) -> Result:
    """Changes a sequence's options, or starts it again.

    42P01  no such sequence      22023  options that do not go together
    """
    database = run.database
    schema, name = qualified(stmt.name.parts, database.name)
    result = Result.done("ALTER SEQUENCE", {"sequence": name, "altered": True})
    if stmt.if_exists and database.lake.state.sequence(name, schema) is None:
        result.notices = (f'relation "{stmt.name}" does not exist, skipping',)
        return result
    id = find_sequence(database.lake.state, stmt.name.parts, database.name).id

    def make(state: State) -> list[Change]:
        return [AlterObject(altered(find_sequence(state, stmt.name.parts, database.name), stmt.options))]

    with database.sequences.held([id]):
        database.define(make)
    return result


def rename_sequence(stmt: ast.RenameObject, state: State, database: str) -> Change:
    """The change of a sequence's name.

    2BP01  a default names it
    """
    found = find_sequence(state, stmt.name.parts, database)
    _refuse_used(state, found, database, "rename")
    return AlterObject(msgspec.structs.replace(found, name=stmt.to))


def drop_sequence(found: objects.Sequence, state: State, database: str) -> Change:
    """The change that drops a sequence.

    2BP01  a column owns it, or a default names it
    """
    _refuse_used(state, found, database, "drop")
    return DropObject(found.id)


def _refuse_used(state: State, sequence: objects.Sequence, database: str, verb: str) -> None:
    shown = display_name(sequence.schema, sequence.name)
    _refuse_owned(state, sequence, verb)
    for table, column in columns_using(state, sequence, database):
        raise DependentObjects(
            f"cannot {verb} sequence {shown} because other objects depend on it",
            detail=f"default value for column {column.name} of table {display_name(table.schema, table.name)} "
            f"depends on sequence {shown}",
        )


def _refuse_owned(state: State, sequence: objects.Sequence, verb: str) -> None:
    owner = state.tables.get(sequence.table)
    if owner is not None:
        column = next((item.name for item in owner.columns if item.id == sequence.column), "")
        raise DependentObjects(
            f"cannot {verb} sequence {display_name(sequence.schema, sequence.name)} because "
            f"column {column} of table {display_name(owner.schema, owner.name)} requires it"
        )


def columns_using(state: State, sequence: objects.Sequence, database: str) -> Iterator[tuple[Table, Column]]:
    """Columns whose DEFAULT names a sequence."""
    place = (sequence.schema, sequence.name)
    for table in state.tables.values():
        for column in table.columns:
            if column.default and any(
                qualified(parts, database) == place for parts in sequences_in(column.default)
            ):
                yield table, column


def sequences_in(text: str) -> Iterator[tuple[str, ...]]:
    """Names of the sequences that an expression's text calls for."""
    for node in ast.walk(parser.parse_expression(text)):
        match node:
            case ast.Call(ast.Name(name), (ast.Argument(ast.Literal(str(found)) | ast.Cast(ast.Literal(str(found)))), *_)):
                if name[-1] in CALLS:
                    yield named_parts(found)


def check_defaults(table: Table, state: State, database: str, made: Sequence[objects.Sequence] = ()) -> None:
    """Refuses a DEFAULT that names a sequence which is not there.

    42P01  no such sequence      42809  it is something else
    """
    own = {(item.schema, item.name) for item in made}
    for column in table.columns:
        for parts in sequences_in(column.default) if column.default else ():
            if qualified(parts, database) not in own:
                find_sequence(state, parts, database)


# --- options ---------------------------------------------------------------------------------------------------------


def sequence_of(
    options: Sequence[ast.SequenceOption], id: int, schema: str, name: str, type: Type = BIGINT
) -> objects.Sequence:
    """A new sequence by its options.

    22023  options that do not go together      42601  one written twice
    """
    given = _given(options)
    if "restart" in given:
        raise SyntaxFailure("RESTART is for a sequence that is there")
    type = _type(given.get("type"), type)
    increment = given.get("increment", 1)
    low, high = _bounds(given.get("low"), given.get("high"), increment, type)
    start = given.get("start", low if increment > 0 else high)
    made = objects.Sequence(
        id, schema, name, low, high, start, start, type.sql, increment, given.get("cache", 1), given.get("cycle", False)
    )
    _check(made, type)
    return made


def altered(before: objects.Sequence, options: Sequence[ast.SequenceOption]) -> objects.Sequence:
    """A sequence with other options; what it gives next stays what it was, but for RESTART and another increment."""
    given = _given(options)
    type = _type(given.get("type"), bind_type(parser.parse_type(before.sql_type)))
    increment = given.get("increment", before.increment)
    widest = _bounds(None, None, before.increment, bind_type(parser.parse_type(before.sql_type)))
    low, high = _bounds(
        given.get("low", None if before.low == widest[0] else before.low),
        given.get("high", None if before.high == widest[1] else before.high),
        increment,
        type,
    )
    made = msgspec.structs.replace(
        before,
        sql_type=type.sql,
        increment=increment,
        low=low,
        high=high,
        start=given.get("start", before.start),
        cache=given.get("cache", before.cache),
        cycle=given.get("cycle", before.cycle),
    )
    if "restart" in given:
        restart = made.start if given["restart"] is None else given["restart"]
        made = msgspec.structs.replace(made, next=restart, called=False, ended=False)
    elif made.called:
        last = before.next if before.ended else before.next - before.increment
        next, ended = after(made, last)
        made = msgspec.structs.replace(made, next=next, ended=ended)
    _check(made, type)
    return made


def _given(options: Sequence[ast.SequenceOption]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for option in options:
        if option.name in given:
            raise SyntaxFailure("conflicting or redundant options")
        given[option.name] = option.value
    return given


def _type(name: ast.TypeName | None, otherwise: Type) -> Type:
    type = otherwise if name is None else bind_type(name)
    if type not in (SMALLINT, INT, BIGINT):
        raise InvalidParameter("sequence type must be smallint, integer, or bigint")
    return type


def _bounds(low: int | None, high: int | None, increment: int, type: Type) -> tuple[int, int]:
    """MINVALUE and MAXVALUE, those of the type where they are not given."""
    assert isinstance(type, Integer), "sequences are of integers"
    most = (1 << (type.bits - 1)) - 1
    if increment > 0:
        return 1 if low is None else low, most if high is None else high
    return -most - 1 if low is None else low, -1 if high is None else high


def _check(made: objects.Sequence, type: Type) -> None:
    assert isinstance(type, Integer), "sequences are of integers"
    most = (1 << (type.bits - 1)) - 1
    if made.increment == 0:
        raise InvalidParameter("INCREMENT must not be zero")
    if made.cache < 1:
        raise InvalidParameter(f"CACHE ({made.cache}) must be greater than zero")
    for word, value in (("MAXVALUE", made.high), ("MINVALUE", made.low), ("INCREMENT", made.increment)):
        if not -most - 1 <= value <= most:
            raise InvalidParameter(f"{word} ({value}) is out of range for sequence data type {type.sql.lower()}")
    if made.low >= made.high:
        raise InvalidParameter(f"MINVALUE ({made.low}) must be less than MAXVALUE ({made.high})")
    for word, value in (("START", made.start), ("RESTART", made.next)):
        if value < made.low:
            raise InvalidParameter(f"{word} value ({value}) cannot be less than MINVALUE ({made.low})")
        if value > made.high:
            raise InvalidParameter(f"{word} value ({value}) cannot be greater than MAXVALUE ({made.high})")


# --- identity columns ------------------------------------------------------------------------------------------------


def identity_of(item: ast.ColumnDefinition) -> ast.Identity | None:
    """How a column is numbered: by its clause, or because its type is SERIAL."""
    if item.type.name.lower() in SERIAL and not item.type.dimensions:
        if item.identity is not None or item.default is not None:
            raise SyntaxFailure(f'conflicting constraints for column "{item.name}"')
        return ast.Identity("by default")
    if item.identity is not None and item.default is not None:
        raise SyntaxFailure(f'both default and identity specified for column "{item.name}"')
    return item.identity


def numbered(
    table: Table, stmt: ast.CreateTable, state: State, replaced: int = 0
) -> tuple[Table, tuple[objects.Sequence, ...]]:
    """A new table whose identity columns have sequences of their own, and these; their ids follow the table's.

    replaced  id of a table that it takes the place of, with the names of that one's sequences

    22023  a column of another type than a whole number
    """
    made: list[objects.Sequence] = []
    for item in stmt.columns:
        identity, column = identity_of(item), table.column(item.name)
        if identity is None or column is None:
            continue
        if column.type not in (SMALLINT, INT, BIGINT):
            raise InvalidParameter("identity column type must be smallint, integer, or bigint")
        id = table.id + len(made) + 1
        taken = {each.name for each in made}
        name = _free_name(state, table.schema, f"{table.name}_{column.name}_seq", taken, replaced)
        sequence = sequence_of(identity.options, id, table.schema, name, column.type)
        made.append(msgspec.structs.replace(sequence, table=table.id, column=column.id))
        table = _with_sequence(table, column, sequence, identity.kind)
    return table, tuple(made)


def renumbered(table: Table, source: Table, state: State, *, from_start: bool) -> tuple[Table, tuple[objects.Sequence, ...]]:
    """A copy of a table whose identity columns have sequences of their own, not those of the table they come from.

    from_start  whether they start again, or go on where those are
    """
    made: list[objects.Sequence] = []
    for column in table.columns:
        found = owned_by(state, source.id, column.id)
        if found is None:
            continue
        id = table.id + len(made) + 1
        name = _free_name(state, table.schema, f"{table.name}_{column.name}_seq", {each.name for each in made})
        copy = msgspec.structs.replace(found, id=id, schema=table.schema, name=name, table=table.id, comment=None)
        if from_start:
            copy = msgspec.structs.replace(copy, next=copy.start, called=False, ended=False)
        made.append(copy)
        table = _with_sequence(table, column, copy, column.identity)
    return table, tuple(made)


def owned_by(state: State, table: int, column: int) -> objects.Sequence | None:
    """The sequence that a column owns, or None."""
    for item in state.objects.values():
        if isinstance(item, objects.Sequence) and (item.table, item.column) == (table, column):
            return item
    return None


def _with_sequence(table: Table, column: Column, sequence: objects.Sequence, kind: str) -> Table:
    default = f"nextval({quote_text(place_text(sequence.schema, sequence.name))})"
    changed = msgspec.structs.replace(column, default=default, not_null=True, identity=kind)
    columns = tuple(changed if item.id == column.id else item for item in table.columns)
    return msgspec.structs.replace(table, columns=columns)


def _free_name(state: State, schema: str, wanted: str, taken: set[str], replaced: int = 0) -> str:
    freed = {(item.schema, item.name) for item in state.objects.values() if item.table == replaced and replaced}
    name, number = wanted, 0
    while ((schema, name) in state.names and (schema, name) not in freed) or name in taken:
        number += 1
        name = f"{wanted}{number}"
    return name


def refuse_later_identity(item: ast.ColumnDefinition) -> None:
    """0A000: an identity column of a table that is there, whose rows have no numbers."""
    if identity_of(item) is not None:
        raise FeatureNotSupported(
            f'ADD COLUMN "{item.name}" as an identity column is not supported: no file is rewritten',
            hint="add the column, UPDATE it, and SET DEFAULT nextval(..)",
        )

