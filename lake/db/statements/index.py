"""CREATE, ALTER and DROP INDEX: notes on tables, for which nothing is built. Spec: SQL, Indexes; reference: index rules.

A UNIQUE index is a UNIQUE constraint of its name.
"""

from __future__ import annotations

from typing import Final

import msgspec

from lake.db.names import find_table, qualified
from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.table_alter import alter
from lake.db.statements.table_rules import columns_in
from lake.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
    near_name,
)
from lake.roles import Role
from lake.sql import ast
from lake.sql.unparse import unparse
from lake.storage.catalog.changes import AlterObject, Change, CreateObject
from lake.storage.catalog.model import Constraint, Table
from lake.storage.catalog.objects import Index, IndexKey
from lake.storage.catalog.state import State, display_name

METHODS: Final = ("btree", "hash", "gin", "gist", "spgist", "brin")
REFUSED: Final = ("hnsw", "ivfflat", "bm25")
NOTICE: Final = 'index "{}" is kept as a note, nothing is built for it: files are skipped by their ranges, see CLUSTER BY'


@statement(ast.CreateIndex, tag="CREATE INDEX", role=Role.ADMIN, audit="ddl")
def create_index(stmt: ast.CreateIndex, run: Run) -> Result:
    """Makes an index, which nothing is built for, or with UNIQUE a constraint.

    42P01, 42703  no such table or column      42P07  the name is taken      23505  UNIQUE of rows that repeat
    0A000  a method that would need a structure of its own; UNIQUE with an expression, INCLUDE or WHERE
    """
    database = run.database
    method = (stmt.method or "btree").lower()
    if method in REFUSED:
        raise FeatureNotSupported(f'index method "{method}" is not supported')
    if method not in METHODS:
        raise UndefinedObject(f'access method "{method}" does not exist')
    if stmt.unique:
        return _create_unique(stmt, run)
    notices: list[str] = []

    def make(state: State) -> list[Change]:
        notices.clear()
        table = find_table(state, stmt.table, database.name)
        made = _index_of(stmt, table, state, database.name, method)
        if stmt.if_taken is ast.IfTaken.KEEP and (made.schema, made.name) in state.names:
            notices.append(f'relation "{made.name}" already exists, skipping')
            return []
        _check_expressions(stmt, table, run)
        notices.append(NOTICE.format(made.name))
        return [CreateObject(made)]

    database.define(make)
    result = Result.done("CREATE INDEX", {"index": notices[0].split('"')[1], "table": stmt.table.last})
    result.notices = tuple(notices)
    return result


def _create_unique(stmt: ast.CreateIndex, run: Run) -> Result:
    columns = tuple(key.expr.name.last if isinstance(key.expr, ast.Column) else "" for key in stmt.keys)
    for is_there, word in (("" in columns, "an expression"), (stmt.where, "WHERE"), (stmt.include, "INCLUDE")):
        if is_there:
            raise FeatureNotSupported(f"CREATE UNIQUE INDEX with {word} is not supported")
    table = find_table(run.catalog.state, stmt.table, run.database.name)
    name = "_".join([table.name, *columns, "idx"]) if stmt.name is None else stmt.name.last
    if stmt.if_taken is ast.IfTaken.KEEP and any(rule.name == name for rule in table.constraints):
        result = Result.done("CREATE INDEX", {"index": name, "table": table.name})
        result.notices = (f'relation "{name}" already exists, skipping',)
        return result
    rule = ast.TableConstraint("unique", name, columns)
    alter(ast.AlterTable(stmt.table, ast.AlterAction("add constraint", constraint=rule)), run)
    return Result.done("CREATE INDEX", {"index": name, "table": table.name})


def _index_of(stmt: ast.CreateIndex, table: Table, state: State, database: str, method: str) -> Index:
    keys, columns = [], []
    for key in stmt.keys:
        is_column = isinstance(key.expr, ast.Column)
        text = key.expr.name.last if isinstance(key.expr, ast.Column) else unparse(key.expr)
        keys.append(IndexKey(text, key.order, is_column))
        columns += sorted(columns_in(key.text))
    columns += [*stmt.include, *sorted(columns_in(stmt.where_text or ""))]
    for name in columns:
        if table.column(name) is None:
            hint = near_name(name, (known.name for known in table.columns))
            raise UndefinedColumn(f'column "{name}" of relation "{table.name}" does not exist', hint=hint)
    if len(set(stmt.include)) < len(stmt.include):
        raise DuplicateColumn("INCLUDE names a column twice")
    if stmt.name is None:
        words = [key.text if key.is_column else "expr" for key in keys]
        name, number = "_".join([table.name, *words, "idx"]), 0
        wanted = name
        while (table.schema, name) in state.names:
            number += 1
            name = f"{wanted}{number}"
    else:
        _, name = qualified(stmt.name.parts, database)
    return Index(
        state.next_id, table.schema, name, table.id, tuple(keys), tuple(dict.fromkeys(columns)), stmt.include,
        stmt.where_text or "", method,
    )  # fmt: skip


def _check_expressions(stmt: ast.CreateIndex, table: Table, run: Run) -> None:
    """Binds what the index computes, so that it is known to hold."""
    binder = run.binder()
    columns = binder.columns(run.catalog.columns_of(table))
    for expr in (*(key.expr for key in stmt.keys), *((stmt.where,) if stmt.where is not None else ())):
        binder.expression(expr, columns, table.name, "index expressions")


def rename_index(stmt: ast.RenameObject, state: State, database: str) -> Change:
    """The change of an index's name."""
    schema, name = qualified(stmt.name.parts, database)
    found = state.index(name, schema)
    if found is None:
        raise _no_index(state, schema, name)
    return AlterObject(msgspec.structs.replace(found, name=stmt.to))


def find_index(name: ast.Name, state: State, database: str) -> Index | tuple[Table, Constraint]:
    """The index of that name, or the UNIQUE constraint that a UNIQUE index made.

    42704  there is none
    """
    schema, last = qualified(name.parts, database)
    found = state.index(last, schema)
    if found is not None:
        return found
    for table in state.tables.values():
        for rule in table.constraints:
            if (table.schema, rule.name, rule.kind) == (schema, last, "unique"):
                return table, rule
    raise _no_index(state, schema, last)


def _no_index(state: State, schema: str, name: str) -> UndefinedObject | WrongObjectType:
    shown = display_name(schema, name)
    if (schema, name) in state.names:
        return WrongObjectType(f'"{shown}" is not an index')
    return UndefinedObject(f'index "{shown}" does not exist')
