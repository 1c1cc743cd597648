"""CREATE and DROP of tables, views and schemas, and TRUNCATE. Spec: SQL, Tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from lake.db.names import find_table, qualified
from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.enum_type import column_of
from lake.db.statements.sequence import check_defaults, identity_of, numbered, renumbered
from lake.db.statements.table_design import designed, key_of, merging
from lake.db.statements.table_rules import refuse_combined, with_rules
from lake.db.write.checks import check_definition
from lake.db.write.once import Once, once_of_job
from lake.db.write.path import prepared, write_rows
from lake.errors import (
    DatatypeMismatch,
    DuplicateObject,
    FeatureNotSupported,
    InvalidTableDefinition,
    UndefinedSchema,
)
from lake.roles import Role
from lake.sql import ast
from lake.sql.bind import BoundQuery
from lake.storage.catalog.changes import (
    Change,
    CreateObject,
    CreateSchema,
    CreateTable,
    CreateView,
    DropTable,
    DropView,
    Truncate,
)
from lake.storage.catalog.model import Column, Schema, Table, View
from lake.storage.catalog.objects import Sequence as SequenceObject
from lake.storage.catalog.state import State, display_name
from lake.storage.commits.sequencer import Append, Flush
from lake.types import NULL, TEXT, Type

KINDS: dict[str, type[Table] | type[View]] = {"table": Table, "view": View}


@statement(ast.CreateTable, tag="CREATE TABLE", role=Role.ADMIN, audit="ddl")
def create_table(stmt: ast.CreateTable, run: Run) -> Result:
    """Makes a table: of columns, like another, or of a query's rows; answers ``{table, publish}``.

    42P07  the name is taken      42P16, 42703, 22023  a key, clause or option that the table cannot have
    """
    _refuse_later(stmt)
    if stmt.query is not None:
        return _create_table_as(stmt, stmt.query, run)
    database = run.database

    def make(state: State) -> list[Change]:
        schema, name = qualified(stmt.name.parts, database.name)
        making = make_room(state, schema, name, stmt.if_taken, "table")
        if making is None:
            return []
        table, owned = table_of(stmt, run, state, schema, name, state.names.get((schema, name), 0))
        return [*making, CreateTable(table), *map(CreateObject, owned)]

    result = Result.done("CREATE TABLE", {"table": stmt.name.last, "publish": None})
    if not run.define(make, stmt.name if stmt.temporary else None):
        result.notices = (f'relation "{stmt.name}" already exists, skipping',)
    return result


def table_of(
    stmt: ast.CreateTable, run: Run, state: State, schema: str, name: str, replaced: int
) -> tuple[Table, tuple[SequenceObject, ...]]:
    """The table that a statement describes, checked, and the sequences of its columns.

    replaced  id of a table whose place it takes, or 0
    """
    database = run.database.name
    if stmt.like is not None:
        source = find_table(state, stmt.like, database)
        columns = [msgspec.structs.replace(column, missing=b"") for column in source.columns]
        table = like(new_table(state, schema, name, columns), source)
        table, owned = renumbered(table, source, state, from_start=True)
    else:
        table = with_rules(new_table(state, schema, name, columns_of(stmt, state, database)), stmt, state, database)
        table, owned = numbered(_designed(table, stmt), stmt, state, replaced)
    if stmt.temporary:
        _check_temporary(table)
    check_defaults(table, state, database, owned)
    check_definition(table, run.binder(), run.context(), state)
    return table, owned


def _create_table_as(stmt: ast.CreateTable, query: ast.Query, run: Run) -> Result:
    schema, name = qualified(stmt.name.parts, run.database.name)
    temporary = stmt.name if stmt.temporary else None
    if make_room(run.state_for(temporary), schema, name, stmt.if_taken, "table") is None:
        result = Result.done("CREATE TABLE AS", {"table": name, "publish": None})
        result.notices = (f'relation "{stmt.name}" already exists, skipping',)
        return result
    rows = create_as(run, stmt.name, query, stmt=stmt, once=once_of_job(run.job))
    if rows is None:
        return Result.done("SELECT", {"duplicate": True}, count=0)
    return Result.done("SELECT", {"table": name, "publish": None}, count=rows)


def create_as(
    run: Run,
    name: ast.Name,
    query: ast.Query,
    *,
    stmt: ast.CreateTable | None = None,
    once: Once | None = None,
) -> int | None:
    """Makes a table of a query's rows, both in one commit; how many rows, or None where the job was applied before.

    Rows are written first, as a table nobody can name yet. Spec: SQL, Tables, from a query.
    """
    schema, last = qualified(name.parts, run.database.name)
    if_taken = stmt.if_taken if stmt is not None else ast.IfTaken.FAIL
    found, plan = run.plan(query)
    columns = columns_of_query(found)
    if stmt is not None and stmt.columns:
        columns = columns_of(stmt, run.catalog.state, run.database.name)
    if len(columns) != len(found.columns):
        raise DatatypeMismatch(f"the query has {len(found.columns)} columns, the table {len(columns)}")
    table = new_table(run.catalog.state, schema, last, columns)
    if stmt is not None:
        table = _designed(with_rules(table, stmt, run.catalog.state, run.database.name), stmt)
        if any(map(identity_of, stmt.columns)):
            raise FeatureNotSupported("an identity column of a table made from a query is not supported")
        if stmt.temporary:
            _check_temporary(table)
    check_defaults(table, run.catalog.state, run.database.name)
    check_definition(table, run.binder(), run.context(), run.catalog.state)

    def define(state: State) -> list[Change]:
        making = make_room(state, schema, last, if_taken, "table")
        if making is None:
            raise DuplicateObject(f'relation "{display_name(schema, last)}" already exists')
        return [*making, CreateTable(msgspec.structs.replace(table, id=state.next_id))]

    answer = run.answer(found, plan)
    batches = prepared(answer.source, [column.name for column in columns], answer.types, run.database.rules(table, run))
    if stmt is not None and not stmt.with_data:
        batches = iter(())
    if stmt is not None and stmt.temporary:
        commit = partial(run.make_temporary, name=name)
        batches = run.database.temporary_space.guard(batches)
        return write_rows(run.database, table, batches, None, define, commit, as_log=True).rows
    written = write_rows(run.database, table, batches, once, define)
    return None if written.acknowledged.duplicate else written.rows


def new_table(state: State, schema: str, name: str, columns: Sequence[Column]) -> Table:
    """A table that is not in ``state`` yet, under the next id and a folder of its own."""
    if schema not in state.schemas:
        raise UndefinedSchema(f'schema "{schema}" does not exist')
    return Table(
        id=state.next_id,
        schema=schema,
        name=name,
        columns=tuple(columns),
        folder=state.free_folder(name),
        next_column=len(columns) + 1,
    )


def like(table: Table, source: Table) -> Table:
    """The table with what another has beside its columns; what is named after that one takes the new name."""
    rules = tuple(
        msgspec.structs.replace(rule, name=table.name + rule.name.removeprefix(source.name))
        if rule.name.startswith(f"{source.name}_")
        else rule
        for rule in source.constraints
    )
    return msgspec.structs.replace(
        table,
        constraints=rules,
        kind=source.kind,
        design=source.design,
        options=source.options,
        next_column=source.next_column,
    )


def _designed(table: Table, stmt: ast.CreateTable) -> Table:
    """The table with what the statement says of its key and layout."""
    for item in stmt.columns:
        column = table.column(item.name)
        if item.merge is not None and column is not None:
            changed = merging(column, item.merge)
            columns = tuple(changed if each.id == column.id else each for each in table.columns)
            table = msgspec.structs.replace(table, columns=columns)
    made = designed(table, key_of(stmt), stmt.clauses, stmt.options)
    refuse_combined(made)
    return made


def columns_of_query(found: BoundQuery) -> tuple[Column, ...]:
    """A table's columns for the rows of a query; a column of bare NULLs is text."""
    return tuple(
        Column.of(number, name, TEXT if column.type == NULL else column.type)
        for number, (name, column) in enumerate(zip(found.names, found.columns, strict=True), 1)
    )


def columns_of_types(columns: Sequence[tuple[str, Type]]) -> tuple[Column, ...]:
    """Columns by name and type, numbered from 1."""
    return tuple(Column.of(number, name, type) for number, (name, type) in enumerate(columns, 1))


def columns_of(stmt: ast.CreateTable, state: State, database: str) -> tuple[Column, ...]:
    """A table's columns as they are written."""
    return tuple(column_of(number, item, state, database) for number, item in enumerate(stmt.columns, 1))


def _refuse_later(stmt: ast.CreateTable) -> None:
    if stmt.temporary:
        rules = [*stmt.constraints, *(rule for column in stmt.columns for rule in column.rules)]
        kinds = {rule.kind for rule in rules if not rule.not_enforced} & {"unique", "primary key"}
        refused = [*sorted(kinds), *(clause.kind for clause in stmt.clauses), *(option.name for option in stmt.options)]
        if refused:
            raise FeatureNotSupported(f"{refused[0].upper()} of a temporary table is not supported")


def _check_temporary(table: Table) -> None:
    """Refuses what a temporary table cannot have. Spec: SQL, Enum types; reference: views."""
    refused = [
        (any(rule.kind == "unique" and rule.enforced for rule in table.constraints), "UNIQUE"),
        (any(column.enum or column.labels for column in table.columns), "an enum column"),
        (any(column.identity for column in table.columns), "an identity column"),
    ]
    for is_there, words in refused:
        if is_there:
            raise FeatureNotSupported(f"{words} of a temporary table is not supported")


def make_room(state: State, schema: str, name: str, if_taken: ast.IfTaken, kind: str) -> list[Change] | None:
    """Changes that free a name for CREATE; None where IF NOT EXISTS keeps what is there.

    42P07  the name is taken
    """
    found = state.find(name, schema)
    if found is None:
        return []
    shown = display_name(schema, name)
    match if_taken:
        case ast.IfTaken.KEEP:
            return None
        case ast.IfTaken.REPLACE if isinstance(found, KINDS[kind]):
            return [dropping(found)]
        case _:
            raise DuplicateObject(f'relation "{shown}" already exists')


def dropping(found: Table | View, *, purge: bool = False) -> Change:
    """The change that drops a table or view; a table is kept for its retention, unless it has none or ``purge`` says."""
    return DropTable(found.id, found.keeps_past and not purge) if isinstance(found, Table) else DropView(found.id)


@statement(ast.CreateView, tag="CREATE VIEW", role=Role.ADMIN, audit="ddl")
def create_view(stmt: ast.CreateView, run: Run) -> Result:
    """Stores a query under a name; the query is bound once, so that it is known to hold. Spec: SQL, Tables."""
    found = run.binder().query(stmt.query)
    if stmt.columns and len(stmt.columns) > len(found.names):
        raise InvalidTableDefinition("CREATE VIEW specifies more column names than columns")
    database = run.database
    schema, name = qualified(stmt.name.parts, database.name)

    def make(state: State) -> list[Change]:
        making = make_room(state, schema, name, stmt.if_taken, "view")
        if making is None:
            return []
        if schema not in state.schemas:
            raise UndefinedSchema(f'schema "{schema}" does not exist')
        return [*making, CreateView(View(state.next_id, schema, name, stmt.columns, stmt.query_text))]

    run.define(make, stmt.name if stmt.temporary else None)
    return Result.done("CREATE VIEW", {"view": name})


@statement(ast.CreateSchema, tag="CREATE SCHEMA", role=Role.ADMIN, audit="ddl")
def create_schema(stmt: ast.CreateSchema, run: Run) -> Result:
    """Makes a namespace for tables and views."""

    def make(state: State) -> list[Change]:
        if stmt.name in state.schemas and stmt.if_taken is ast.IfTaken.KEEP:
            return []
        return [CreateSchema(Schema(stmt.name))]

    run.database.define(make)
    return Result.done("CREATE SCHEMA", {"schema": stmt.name})


@statement(ast.Truncate, tag="TRUNCATE TABLE", role=Role.WRITE, audit="write")
def truncate(stmt: ast.Truncate, run: Run) -> Result:
    """Empties tables in one commit; their definitions stay.

    42501  the caller may not delete from one of them
    """

    def emptied(state: State) -> list[Table]:
        tables = [find_table(state, name, run.database.name) for name in stmt.tables]
        for table in tables:
            run.require("delete", table)
        return tables

    def make(state: State) -> list[Change | Append]:
        return [Truncate(table.id, table.keeps_past) for table in emptied(state)]

    emptied(run.catalog.state)
    run.commit(Flush(prepare=make))
    return Result.done("TRUNCATE TABLE", {"table": stmt.tables[-1].last, "truncated": True})
