"""PIVOT as an aggregation with filters, UNPIVOT as an unnesting of lists.

    PIVOT t ON city IN ('A', 'B') USING sum(n)       SELECT rest, sum(n) FILTER (WHERE city = 'A') AS "A", .. GROUP BY ALL
    UNPIVOT t ON a, b INTO NAME n VALUE v            unnest(['a', 'b']), unnest([a, b])
"""

from __future__ import annotations

from itertools import product
from typing import Final

from msgspec.structs import replace

from lake.errors import FeatureNotSupported, StatementTooComplex, SyntaxFailure
from lake.sql import ast, bound, plan
from lake.sql.bind import names
from lake.sql.bind.expr import unify
from lake.sql.bind.scope import Entry, Env, From, Ready, ReadySource
from lake.sql.bind.star import expand_items
from lake.sql.bound import Column, Expr, Literal, MakeList
from lake.sql.registry import FUNCTIONS, Aggregate
from lake.types import BOOLEAN, TEXT, List

COLUMNS_MAX: Final = 10_000


def bind_pivot(source: ast.Pivot, inside: From, env: Env) -> From:
    """A column for each combination of values and each aggregate, a row for each group.

    Values that are not listed are those that the column has, in their order; they are found by a query run at once.
    """
    source = replace(source, on=tuple([(expr, values or _values_of(expr, inside, env)) for expr, values in source.on]))
    used = {node.name.last.lower() for part in (*[expr for expr, _ in source.on], *[item.expr for item in source.using])
            for node in ast.walk(part) if isinstance(node, ast.Column)}  # fmt: skip
    groups: list[ast.SelectItem] = [ast.SelectItem(expr) for expr in source.group]
    if source.on and not source.group:
        groups = [
            ast.SelectItem(Ready(entry.read(env.position(source), is_named=False), entry.name), entry.name)
            for entry in inside.entries
            if not entry.hidden and not entry.shadowed and entry.name.lower() not in used
        ]
    items = list(groups)
    combinations = list(product(*[values for _, values in source.on]))
    if len(combinations) * len(source.using) > COLUMNS_MAX:
        raise StatementTooComplex(f"PIVOT makes more than {COLUMNS_MAX} columns", position=env.position(source))
    for combination in combinations:
        for using in source.using:
            tests = [_test(expr, value.expr) for (expr, _), value in zip(source.on, combination, strict=True)]
            test = tests[0] if len(tests) == 1 else ast.And(tuple(tests))
            filtered = _filtered(using.expr, test) if tests else using.expr
            items.append(ast.SelectItem(filtered, _title(combination, using, len(source.using))))
    select = ast.Select(
        tuple(items), (ReadySource(inside),), group=tuple(ast.Literal(at + 1) for at in range(len(groups)))
    )
    around = replace(env.scope, entries=())
    made = env.shared.bind_query(ast.Query(select), around, env.shared)
    return From(made.plan, tuple(Entry(name, column) for name, column in zip(made.names, made.columns, strict=True)))


def _values_of(expr: ast.Expr, inside: From, env: Env) -> tuple[ast.SelectItem, ...]:
    """The values of ``expr`` that are not NULL, each once, ascending."""
    select = ast.Select(
        (ast.SelectItem(expr, "value"),), (ReadySource(inside),), distinct=True, where=ast.IsNull(expr, negated=True)
    )
    query = ast.Query(select, order=(ast.SortItem(ast.Literal(1)),), limit=ast.Literal(COLUMNS_MAX + 1))
    made = env.shared.bind_query(query, replace(env.scope, entries=()), env.shared)
    if made.plan.outer_columns:
        raise FeatureNotSupported("PIVOT of an outer query's columns needs IN (values)", position=env.position(expr))
    (column,) = made.columns
    found = env.shared.ask(made.plan, column)
    return tuple(
        ast.SelectItem(Ready(Literal(column.type, value), text), text) for value, text in found  # type: ignore[arg-type]
    )


def _test(expr: ast.Expr, value: ast.Expr) -> ast.Expr:
    return ast.IsDistinct(expr, value, negated=True)


def _title(combination: tuple[ast.SelectItem, ...], using: ast.SelectItem, count: int) -> str:
    """``value``, ``value_alias`` or ``value_sum(x)``: the aggregate is named where there are several or it has a name."""
    parts = []
    for value in combination:
        text = value.alias
        if text is None and isinstance(value.expr, ast.Literal):
            text = "NULL" if value.expr.value is None else str(value.expr.value)
        parts.append(text or names.name_of(value.expr, value.text))
    if using.alias is not None or count > 1 or not combination:
        parts.append(names.output_name(using))
    return "_".join(parts)


def _filtered(expr: ast.Expr, test: ast.Expr) -> ast.Expr:
    """The expression with ``test`` as the filter of every aggregate in it."""

    def put(node: ast.Node) -> ast.Node:
        if not isinstance(node, ast.Call) or node.over is not None:
            return node
        if not any(isinstance(item, Aggregate) for item in FUNCTIONS.get(str(node.name).lower(), ())):
            return node
        return replace(node, filter=test if node.filter is None else ast.And((node.filter, test)))

    return ast.rewrite(expr, put)


def bind_unpivot(source: ast.Unpivot, inside: From, env: Env) -> From:
    """A row for each of the columns; rows in which a value is NULL are left out unless INCLUDE NULLS.

    42703  no such column     42804  columns of types that do not go together
    """
    items = expand_items(source.columns, env)
    width = len(source.values)
    labels: list[Expr] = []
    lists: list[list[Expr]] = [[] for _ in range(width)]
    used: set[int] = set()
    for item in items:
        parts = item.expr.items if isinstance(item.expr, ast.Row) else (item.expr,)
        if len(parts) != width:
            raise SyntaxFailure(f"UNPIVOT needs {width} columns for {width} values", position=env.position(item))
        columns = [env.bind(part) for part in parts]
        used |= bound.columns_of(tuple(columns))
        title = item.alias or "_".join(names.name_of(part) for part in parts)
        labels.append(Literal(TEXT, title))
        for values, column in zip(lists, columns, strict=True):
            values.append(column)
    label = env.shared.column(source.name, TEXT, nullable=False)
    pairs: list[tuple[Column, Expr]] = [(label, MakeList(List(TEXT), tuple(labels)))]
    for name, values in zip(source.values, lists, strict=True):
        unified, type = unify(values, "UNPIVOT", source, env)
        pairs.append((env.shared.column(name, type), MakeList(List(type), unified)))
    made: plan.Plan = plan.Unnest(tuple(pairs), inside.plan)
    if not source.include_nulls:
        there = tuple(bound.Not(BOOLEAN, bound.IsNull(BOOLEAN, column)) for column, _ in pairs[1:])
        made = plan.Filter(there, made)
    rest = tuple(
        replace(entry, path=()) for entry in inside.entries if entry.column.id not in used and not entry.hidden
    )
    return From(made, (*rest, *[Entry(column.name, column) for column, _ in pairs]))
