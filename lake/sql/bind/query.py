"""Queries: WITH, set operations, VALUES, ORDER BY and LIMIT around a SELECT.

    WITH c AS (..) SELECT .. FROM c UNION SELECT .. ORDER BY 1 LIMIT 10

    Materialize: c                     where c is used twice or says MATERIALIZED; else it is bound in its place
    └─ Limit: 10
       └─ Sort
          └─ SetOperation: union
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lake.errors import (
    DatatypeMismatch,
    DuplicateAlias,
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidParameter,
    SyntaxFailure,
)
from lake.sql import ast, plan
from lake.sql.bind.aggregate import bind_order, sort_key
from lake.sql.bind.align import aligned, common_types, renamed
from lake.sql.bind.coerce import cast, is_nullable
from lake.sql.bind.expr import unify
from lake.sql.bind.recursion import bind_recursion, references
from lake.sql.bind.scope import Bound, Cte, Entry, Env, Scope, Shared
from lake.sql.bind.select import bind_select
from lake.sql.bound import Column, Expr, Literal, ScalarSubquery, SortKey, columns_of, walk
from lake.types import BIGINT, DOUBLE, NULL, Integer, Null

SET_KINDS = {
    ast.SetKind.UNION: plan.SetKind.UNION,
    ast.SetKind.INTERSECT: plan.SetKind.INTERSECT,
    ast.SetKind.EXCEPT: plan.SetKind.EXCEPT,
}


def bind_query(query: ast.Query, scope: Scope, shared: Shared) -> Bound:
    """A query in ``scope``, which has no columns of its own but may have an outer scope."""
    wraps: list[tuple[Cte, plan.Plan]] = []
    for place, cte in enumerate(query.ctes):
        scope = _bind_cte(cte, query, place, scope, shared, wraps)
    body = query.body
    while isinstance(body, ast.Query) and not (body.ctes or body.order or body.order_all or body.limit or body.offset):
        body = body.body
    if isinstance(body, ast.Select):
        made, keys = bind_select(body, query, scope, shared)
    else:
        made = bind_body(body, scope, shared)
        keys = _order_outputs(query, made, scope, shared)
    node = made.plan
    if keys:
        node = plan.Sort(tuple(keys), node)
    node = _limit(query, node, keys, scope, shared)
    if node.columns != made.columns:
        node = plan.Project(made.columns, made.columns, node)
    for cte_entry, definition in reversed(wraps):
        node = plan.Materialize(cte_entry.number, cte_entry.name, definition, node)
    return replace(made, plan=node)


def bind_body(body: ast.Body, scope: Scope, shared: Shared) -> Bound:
    """The body of a query: SELECT, a query in parentheses, a set operation or VALUES."""
    match body:
        case ast.Query():
            return bind_query(body, Scope((), scope.outer, scope.ctes), shared)
        case ast.Select():
            made, _ = bind_select(body, None, scope, shared)
            return made
        case ast.SetOperation():
            return bind_set_operation(body, scope, shared)
        case ast.Values():
            return bind_values(body, scope, shared)
        case _:
            raise FeatureNotSupported(f"{body.__class__.__name__} as a query is not supported")


# --- ORDER BY and LIMIT ----------------------------------------------------------------------------------------------


def _order_outputs(query: ast.Query, made: Bound, scope: Scope, shared: Shared) -> list[SortKey]:
    """Sort keys over the columns of a set operation or VALUES.

    42P10  a position outside the columns
    """
    entries = [Entry(name, column) for name, column in zip(made.names, made.columns, strict=True)]
    for names in made.others:
        known = {entry.name for entry in entries}
        entries += [Entry(name, column) for name, column in zip(names, made.columns, strict=True) if name not in known]
    env = Env(shared, scope.over(entries), "ORDER BY")
    if query.order_all:
        direction = query.order[0] if query.order else ast.SortItem(ast.Literal(None))
        return [sort_key(column, direction, env) for column in made.columns]
    keys = []
    for item in query.order:
        if isinstance(item.expr, ast.Literal) and isinstance(item.expr.value, int):
            if not 1 <= item.expr.value <= len(made.columns):
                raise InvalidColumnReference(
                    f"ORDER BY position {item.expr.value} is not in select list", position=env.position(item.expr)
                )
            keys.append(sort_key(made.columns[item.expr.value - 1], item, env))
        else:
            keys += bind_order((item,), env)
    return keys


def _limit(query: ast.Query, node: plan.Plan, keys: Sequence[SortKey], scope: Scope, shared: Shared) -> plan.Plan:
    """LIMIT, OFFSET and FETCH above ``node``.

    22023  a negative number     42601  WITH TIES without ORDER BY
    """
    if query.limit is None and query.offset is None:
        return node
    if query.with_ties and not keys:
        raise SyntaxFailure("WITH TIES cannot be specified without ORDER BY clause")
    limit = None if query.limit is None else _row_count(query.limit, "LIMIT", scope, shared, query.limit_percent)
    offset = None if query.offset is None else _row_count(query.offset, "OFFSET", scope, shared, False)
    ties = tuple(keys) if query.with_ties else ()
    return plan.Limit(limit, offset, node, query.limit_percent, ties)


def _row_count(expr: ast.Expr, clause: str, scope: Scope, shared: Shared, is_percent: bool) -> Expr | None:
    env = Env(shared, scope.over(()), clause)
    made = env.bind(expr)
    if isinstance(made, Literal) and made.value is None:
        cast(made, DOUBLE if is_percent else BIGINT)  # tells a parameter without a value what it is
        return None
    if not is_percent and not isinstance(made.type, Integer | Null) and not isinstance(made, Literal):
        raise DatatypeMismatch(
            f"argument of {clause} must be type bigint, not type {made.type.sql.lower()}", position=env.position(expr)
        )
    made = cast(made, DOUBLE if is_percent else BIGINT)
    if any(isinstance(part, ScalarSubquery) for part in walk(made)) and not columns_of(made):
        made = _asked(made, shared)
        if made.value is None:
            return None
    if isinstance(made, Literal) and isinstance(made.value, int | float) and made.value < 0:
        raise InvalidParameter(f"{clause} must not be negative", position=env.position(expr))
    return made


def _asked(expr: Expr, shared: Shared) -> Literal:
    """The value of an expression over no columns, found by a query that is run at once."""
    column = shared.column("count", expr.type)
    ((value, _),) = shared.ask(plan.Project((column,), (expr,), plan.Values(((),), ())), column)
    return Literal(expr.type, value)  # type: ignore[arg-type]


# --- WITH ------------------------------------------------------------------------------------------------------------


def _bind_cte(
    cte: ast.Cte, query: ast.Query, place: int, scope: Scope, shared: Shared, wraps: list[tuple[Cte, plan.Plan]]
) -> Scope:
    """The scope with one more common table expression; what must be materialised is put in ``wraps``."""
    if cte.name in {other.name for other in query.ctes[:place]}:
        raise DuplicateAlias(f'WITH query name "{cte.name}" specified more than once', position=shared.position(cte))
    inner = Scope((), scope.outer, scope.ctes)
    uses = references(query.body, cte.name) + sum(references(item.query, cte.name) for item in query.ctes[place + 1 :])
    uses += sum(references(item.expr, cte.name) for item in query.order)
    if query.recursive and (references(cte.query, cte.name) or cte.keys):
        definition = bind_recursion(cte, inner, shared)
    elif uses == 1 and cte.materialized is not True:
        return scope.with_cte(Cte(cte.name, inner, cte.query, cte.columns))
    else:
        definition = renamed(shared.bind_query(cte.query, inner, shared), cte, shared)
        if (cte.materialized is False and uses) or definition.plan.outer_columns:
            return scope.with_cte(Cte(cte.name, inner, cte.query, cte.columns))
    number = shared.next_id()
    shared.definitions[number] = cte.name, exact(definition)
    outputs = tuple((name, column.type) for name, column in zip(definition.names, definition.columns, strict=True))
    entry = Cte(cte.name, inner, number=number, outputs=outputs)
    if uses:
        wraps.append((entry, exact(definition)))
    return scope.with_cte(entry)


# --- set operations and VALUES ---------------------------------------------------------------------------------------


def bind_set_operation(body: ast.SetOperation, scope: Scope, shared: Shared) -> Bound:
    """UNION, INTERSECT or EXCEPT, columns by position or by name, in their common types.

    42601  not as many columns on both sides     42804  types that do not go together
    """
    left = bind_body(body.left, Scope((), scope.outer, scope.ctes), shared)
    right = bind_body(body.right, Scope((), scope.outer, scope.ctes), shared)
    if body.by_name:
        left, right = _by_name(left, right, shared)
    if len(left.columns) != len(right.columns):
        raise SyntaxFailure(
            f"each {body.kind.value} query must have the same number of columns", position=shared.position(body.right)
        )
    types = common_types(left, right, body.kind.value, body, shared)
    outputs = tuple(shared.column(name, type) for name, type in zip(left.names, types, strict=True))
    node = plan.SetOperation(
        SET_KINDS[body.kind], body.all, aligned(left, types, shared), aligned(right, types, shared), outputs
    )
    return Bound(node, outputs, left.names, (*left.others, right.names, *right.others))


def bind_values(body: ast.Values, scope: Scope, shared: Shared) -> Bound:
    """VALUES: each column in the common type of its values, named column1 and so on.

    42601  rows of different lengths
    """
    env = Env(shared, scope.over(()), "VALUES")
    rows = [[env.bind(item) for item in row] for row in body.rows]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise SyntaxFailure("VALUES lists must all be the same length", position=env.position(body))
    columns: list[Column] = []
    by_column: list[tuple[Expr, ...]] = []
    for place in range(width):
        values, type = unify([row[place] for row in rows], "VALUES", body, env)
        by_column.append(values)
        nullable = any(is_nullable(value) for value in values)
        columns.append(shared.column(f"column{place + 1}", type, nullable))
    node = plan.Values(tuple(zip(*by_column, strict=True)), tuple(columns))
    return Bound(node, tuple(columns), tuple(column.name for column in columns))


def exact(made: Bound) -> plan.Plan:
    """The plan answering just the query's columns, in order."""
    if made.plan.columns == made.columns:
        return made.plan
    return plan.Project(made.columns, made.columns, made.plan)


def _by_name(left: Bound, right: Bound, shared: Shared) -> tuple[Bound, Bound]:
    """Both sides with the left's columns and then the right's other ones; what a side lacks is NULL."""
    titles = {name.lower(): name for name in (*right.names, *left.names)}
    order = list(dict.fromkeys(name.lower() for name in (*left.names, *right.names)))
    made = []
    for side in (left, right):
        known = {name.lower(): column for name, column in zip(side.names, side.columns, strict=True)}
        exprs: list[Expr] = []
        outputs: list[Column] = []
        for name in order:
            column = known.get(name)
            outputs.append(column or shared.column(titles[name], NULL))
            exprs.append(column or Literal(NULL, None))
        node = plan.Project(tuple(outputs), tuple(exprs), side.plan)
        made.append(Bound(node, tuple(outputs), tuple(titles[name] for name in order)))
    return made[0], made[1]
