"""GENERATED ALWAYS AS IDENTITY: values that a statement gives or sets are refused. Spec: SQL, Sequences and identity."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lake.errors import GeneratedAlways
from lake.sql import ast
from lake.storage.catalog.model import Column, Table


def identity_columns(table: Table) -> list[str]:
    """The columns that number rows, which OVERRIDING USER VALUE is about."""
    return [column.name for column in table.columns if column.identity]


def refuse_given_identity(stmt: ast.Insert, table: Table, given: Collection[str]) -> None:
    """Refuses an INSERT that gives a value other than DEFAULT.

    428C9  the message names the column
    """
    for column in _always(table) if stmt.overriding != "system" else ():
        if column.name in given and not _is_default(stmt, table, column.name):
            raise _given(table, column)


def _is_default(stmt: ast.Insert, table: Table, name: str) -> bool:
    if stmt.query is None or not isinstance(stmt.query.body, ast.Values) or stmt.by_name:
        return False
    names = [word.lower() for word in stmt.columns or (column.name for column in table.columns)]
    place = names.index(name.lower())
    return all(len(row) > place and isinstance(row[place], ast.Default) for row in stmt.query.body.rows)


def refuse_set_identity(stmt: ast.Update | ast.Delete | ast.Merge | ast.Insert, table: Table) -> None:
    """Refuses an UPDATE or MERGE that sets or gives a value other than DEFAULT.

    428C9  the message names the column
    """
    for column in _always(table):
        match stmt:
            case ast.Update():
                _check_assignments(stmt.assignments, column)
            case ast.Insert():
                _check_assignments([] if stmt.conflict is None else stmt.conflict.assignments, column)
            case ast.Merge():
                for clause in stmt.clauses:
                    _check_assignments(clause.assignments, column)
                    names = clause.columns or tuple(item.name for item in table.columns)
                    for name, value in zip(names, clause.values or ()):
                        if name.lower() == column.name.lower() and not isinstance(value, ast.Default):
                            raise _given(table, column)


def _check_assignments(assignments: Sequence[ast.Assignment], column: Column) -> None:
    for item in assignments:
        if item.column.lower() == column.name.lower() and not isinstance(item.value, ast.Default):
            raise GeneratedAlways(
                f'column "{column.name}" can only be updated to DEFAULT', detail=_detail(column), about=_about(column)
            )


def _given(table: Table, column: Column) -> GeneratedAlways:
    return GeneratedAlways(
        f'cannot insert a non-DEFAULT value into column "{column.name}"',
        detail=_detail(column),
        hint="OVERRIDING SYSTEM VALUE takes the given value",
        about={"schema": table.schema, "table": table.name, **_about(column)},
    )


def _detail(column: Column) -> str:
    return f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.'


def _about(column: Column) -> dict[str, str]:
    return {"column": column.name}


def _always(table: Table) -> list[Column]:
    return [column for column in table.columns if column.identity == "always"]
