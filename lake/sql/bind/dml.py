"""What writes rows: the rows of INSERT in a table's columns and types, and the expressions a table's definition holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from lake.errors import DuplicateColumn, LakeError, SyntaxFailure, UndefinedColumn, near_name
from lake.sql import ast, plan
from lake.sql.bind.coerce import cast, is_nullable
from lake.sql.bind.query import bind_query
from lake.sql.bind.scope import Bound, Entry, Env, Scope, Shared
from lake.sql.bound import Column, Expr, Literal
from lake.sql.catalog import TableColumn
from lake.types import DOUBLE, Integer, Text, Type


class InsertRows(Struct, frozen=True):
    """The rows of an INSERT.

    plan   answers every column of the table in its order and type; what was not given is its default, or NULL
    given  names of the columns the statement gives values for
    """

    plan: plan.Plan
    columns: tuple[Column, ...]
    given: frozenset[str]


def bind_expression_over(
    expr: ast.Expr, columns: Sequence[Column], table: str, clause: str, shared: Shared
) -> Expr:
    """An expression over a table's columns."""
    path = (table,) if table else ()
    scope = Scope(tuple(Entry(column.name, column, path) for column in columns))
    return Env(shared, scope, clause).bind(expr)


def bind_insert(
    statement: ast.Insert,
    columns: Sequence[TableColumn],
    defaults: Mapping[str, ast.Expr],
    identity: Collection[str],
    shared: Shared,
) -> InsertRows:
    """The rows of INSERT; ``columns`` are the table's that may be written, ``defaults`` their DEFAULT expressions.

    identity  columns that OVERRIDING USER VALUE gives their default, whatever the statement gives them
    42701  a column named twice     42703  no such column     42601  not as many values as columns
    """
    targets = _targets(statement, columns, shared)
    if statement.query is None:
        rows = Bound(plan.Values(((),), ()), (), ())
        targets = ()
    else:
        query = _with_defaults(statement.query, targets, defaults)
        rows = _typed_values(query, targets, shared) or bind_query(query, Scope(), shared)
        if statement.by_name:
            targets = _named_targets(rows, columns, statement, shared)
        elif len(rows.columns) > len(targets):
            raise SyntaxFailure("INSERT has more expressions than target columns", position=shared.position(statement))
        elif statement.columns and len(rows.columns) < len(targets):
            raise SyntaxFailure("INSERT has more target columns than expressions", position=shared.position(statement))
    ignored = identity if statement.overriding == "user" else ()
    given = {column.name: value for column, value in zip(targets, rows.columns) if column.name not in ignored}
    exprs: list[Expr] = []
    for column in columns:
        value: Expr
        if column.name in given:
            value = given[column.name]
        elif column.name in defaults:
            value = bind_expression_over(defaults[column.name], (), "", "DEFAULT expressions", shared)
        else:
            value = Literal(column.type, None)
        exprs.append(cast(_constant_of(rows, value), column.type, time_zone=shared.settings.time_zone))
    outputs = tuple(
        expr if isinstance(expr, Column) else shared.column(column.name, column.type, is_nullable(expr))
        for column, expr in zip(columns, exprs, strict=True)
    )
    return InsertRows(plan.Project(outputs, tuple(exprs), rows.plan), outputs, frozenset(given))


def _targets(statement: ast.Insert, columns: Sequence[TableColumn], shared: Shared) -> tuple[TableColumn, ...]:
    if not statement.columns:
        return tuple(columns)
    by_name = {column.name: column for column in columns}
    by_lower = {column.name.lower(): column for column in columns}
    found: list[TableColumn] = []
    for name in statement.columns:
        column = by_name.get(name) or by_lower.get(name.lower())
        if column is None:
            raise UndefinedColumn(
                f'column "{name}" of relation "{statement.table.last}" does not exist',
                hint=near_name(name, [known.name for known in columns if not known.refusal]),
                position=shared.position(statement),
            )
        if column in found:
            raise DuplicateColumn(f'column "{name}" specified more than once', position=shared.position(statement))
        found.append(column)
    return tuple(found)


def _named_targets(
    rows: Bound, columns: Sequence[TableColumn], statement: ast.Insert, shared: Shared
) -> tuple[TableColumn, ...]:
    """INSERT BY NAME: the columns that the query's outputs are named after."""
    return _targets(replace(statement, columns=rows.names), columns, shared)


def _with_defaults(
    query: ast.Query, targets: Sequence[TableColumn], defaults: Mapping[str, ast.Expr]
) -> ast.Query:
    """The query with DEFAULT in its VALUES replaced by the columns' default expressions."""
    if not isinstance(query.body, ast.Values):
        return query
    rows = []
    for row in query.body.rows:
        values = list(row)
        for place, value in enumerate(values):
            if isinstance(value, ast.Default) and place < len(targets):
                values[place] = defaults.get(targets[place].name, ast.Literal(None, span=value.span))
        rows.append(tuple(values))
    return replace(query, body=replace(query.body, rows=tuple(rows)))


def _typed_values(query: ast.Query, targets: Sequence[TableColumn], shared: Shared) -> Bound | None:
    """VALUES with each value cast to its column's type at once; None for another query."""
    body = query.body
    if not isinstance(body, ast.Values) or query.ctes or query.order or query.order_all or query.limit or query.offset:
        return None
    width = len(body.rows[0])
    if width > len(targets):
        return None
    env, zone = Env(shared, Scope(), "VALUES"), shared.settings.time_zone
    rows: list[tuple[Expr, ...]] = []
    for row in body.rows:
        if len(row) != width:
            raise SyntaxFailure("VALUES lists must all be the same length", position=shared.position(row[0]))
        rows.append(tuple([_typed(item, target, env, zone) for item, target in zip(row, targets, strict=False)]))
    outputs = tuple(shared.column(target.name, target.type) for target in targets[:width])
    return Bound(plan.Values(tuple(rows), outputs), outputs, tuple(column.name for column in outputs))


def _typed(item: ast.Expr, target: TableColumn, env: Env, zone: str) -> Expr:
    if type(item) is ast.Literal:
        found = _plain(item.value, target.type)
        if found is not None:
            return found
    try:
        return cast(env.bind(item), target.type, time_zone=zone)
    except LakeError as error:
        if error.position is None:
            error.position = env.position(item)
        raise


def _plain(value: object, type: Type) -> Literal | None:
    """The constant of a number or text as it is written, where its type needs no look: what most rows are made of."""
    match value, type:
        case str(), Text() if type.__class__ is Text:
            return Literal(type, value)
        case int(), Integer(bits=bits) if type.__class__ is Integer and not isinstance(value, bool):
            return Literal(type, value) if -1 << (bits - 1) <= value < 1 << (bits - 1) else None
        case (Decimal() | float()), _ if type == DOUBLE:
            return Literal(type, float(value))
    return None


def _constant_of(rows: Bound, value: Expr) -> Expr:
    """The constant behind a column of ``SELECT 'x'``, so that it is read in the type of the table's column."""
    if isinstance(rows.plan, plan.Project) and isinstance(value, Column) and value in rows.plan.outputs:
        found = rows.plan.exprs[rows.plan.outputs.index(value)]
        if isinstance(found, Literal):
            return found
    return value


