"""A table as POST /tables/{name} describes it: made, or changed where it is there already. Spec: HTTP, Table definition.

    {"columns": [["id", "Int64"], ["n", "Int64"]], "key": ["id"], "merge": {"n": "sum"}, "cluster_by": ["n"]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from lake.db.names import find_table, qualified
from lake.db.statements.table import columns_of_types, new_table
from lake.db.statements.table_alter import placed, redefined
from lake.db.statements.table_design import designed, merging, with_options
from lake.db.statements.table_rules import refuse_combined, with_rule
from lake.errors import DatatypeMismatch, InvalidTableDefinition
from lake.sql import ast
from lake.storage.catalog.changes import Change, CreateTable
from lake.storage.catalog.model import Column, Design, Table
from lake.storage.catalog.state import State
from lake.types import Type

if TYPE_CHECKING:
    from lake.db.database import Database

Words = str | tuple[str, ...]


class TableBody(Struct, frozen=True):
    """What a body says.

    merge    functions by column
    options  ``publish``, ``cluster_by``, ``partition_by``, ``ttl`` and ``order_by``, as WITH takes them
    """

    columns: Sequence[tuple[str, Type]]
    key: tuple[str, ...] = ()
    merge: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Words] = field(default_factory=dict)


def define_table(database: Database, name: tuple[str, ...], body: TableBody) -> dict[str, Any]:
    """Makes a table, or changes the one that is there; answers ``{table, publish}``. Errors as of ``defined``."""
    database.define(lambda state: defined(state, name, database.name, body))
    return {"table": qualified(name, database.name)[1], "publish": None}


def defined(state: State, name: tuple[str, ...], database: str, body: TableBody) -> list[Change]:
    """The changes that make the table, or make of the one that is there what the body says of it.

    42804  a column that is there with another type
    42P16  what cannot be changed later: key, MERGE, partition; and what a table cannot be at all
    """
    schema, last = qualified(name, database)
    if state.find(last, schema) is None:
        return [CreateTable(_made(state, schema, last, database, body))]
    found = find_table(state, name, database)
    after = _changed(found, body)
    return [redefined(after)] if after != found else []


def _made(state: State, schema: str, name: str, database: str, body: TableBody) -> Table:
    table = new_table(state, schema, name, columns_of_types(body.columns))
    if body.key:
        table = with_rule(table, ast.TableConstraint("primary key", columns=body.key), state, database)
    options = dict(body.options)
    if body.merge:
        options["merge"] = tuple(f"{column}:{function}" for column, function in body.merge.items())
    made = designed(table, body.key, (), _options(options))
    refuse_combined(made)
    return made


def _changed(table: Table, body: TableBody) -> Table:
    after = table
    for name, type in body.columns:
        known = table.column(name)
        if known is None:
            after = _with_column(after, Column.of(0, name, type), body.merge.get(name))
        elif known.type != type:
            raise DatatypeMismatch(f'column "{name}" of "{table.name}" is {known.type}, not {type}')
    _refuse_other_kind(table, after, body)
    return with_options(after, _options({name: value for name, value in body.options.items() if name != "partition_by"}))


def _with_column(table: Table, column: Column, function: str | None) -> Table:
    if (function is not None) != (table.kind == "merge"):
        words = "needs a MERGE function" if function is None else "takes no MERGE function"
        raise InvalidTableDefinition(f'column "{column.name}" of relation "{table.name}" {words}')
    made = placed(table, merging(column, function) if function is not None else column)
    return msgspec.structs.replace(table, columns=(*table.columns, made), next_column=made.id + 1)


def _refuse_other_kind(table: Table, after: Table, body: TableBody) -> None:
    """42P16: another key, MERGE function or partition than the table has. What a body leaves out stays."""
    if body.key and body.key != tuple(column.name for column in table.key):
        raise InvalidTableDefinition("key of a table cannot be changed later")
    functions = {column.name: column.merge for column in after.columns if column.merge}
    if any(functions.get(name) != function for name, function in body.merge.items()):
        raise InvalidTableDefinition("merge of a table cannot be changed later")
    partition = body.options.get("partition_by")
    if partition:
        plain = msgspec.structs.replace(table, design=Design())
        asked = designed(plain, (), (), _options({"partition_by": partition})).design
        if (asked.partition, asked.unit) != (table.design.partition, table.design.unit):
            raise InvalidTableDefinition("partition_by of a table cannot be changed later")


def _options(options: Mapping[str, Words]) -> list[ast.Option]:
    return [ast.Option(name, value) for name, value in options.items() if value]
