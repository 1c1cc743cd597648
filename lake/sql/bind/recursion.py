"""Recursive queries: an anchor, and a step over the rows of the round before; with USING KEY one row a key.

    WITH RECURSIVE t(k, v) USING KEY (k, min(v)) AS (SELECT 1, 5 UNION SELECT k, v - 1 FROM t WHERE v > 0)

    Recursion: t@4                  keys k    calls min(v)
    ├─ Project 1, 5
    └─ Filter v > 0                 the step reads t, the rows of the round before; recurring.t is all that was made so far
       └─ CteScan t
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lake.errors import FeatureNotSupported, InvalidColumnReference, InvalidRecursion, SyntaxFailure
from lake.sql import ast, plan
from lake.sql.bind.aggregate import bind_parts
from lake.sql.bind.align import aligned, common_types, renamed
from lake.sql.bind.arguments import function_name
from lake.sql.bind.overload import dialect_name
from lake.sql.bind.scope import Bound, Cte, Entry, Env, Ready, Scope, Shared
from lake.sql.bound import AggregateCall, Column
from lake.sql.registry import FUNCTIONS, Aggregate
from lake.types import Type

RECURRING: Final = "recurring"  # the schema in which a recursive step reads all that its query has made so far
ROUNDS: Final = 3
"""How often a recursive step is bound anew because its types widened the anchor's; then it is cast to them."""


def references(node: ast.Node, name: str) -> int:
    """How often a tree names the table ``name``, without a schema."""
    meant = ((name,), (RECURRING, name))
    return sum([1 for part in ast.walk(node) if type(part) is ast.TableSource and part.name.parts in meant])


def bind_recursion(cte: ast.Cte, scope: Scope, shared: Shared) -> Bound:
    """``anchor UNION [ALL] step``, the step reading the round before.

    42P19  another form, or a reference in the anchor
    """
    body = _body(cte, shared)
    anchor = renamed(shared.bind_query(ast.Query(body.left), scope, shared), cte, shared)
    number = shared.next_id()
    recurring = shared.next_id() if _reads(body.right, (RECURRING, cte.name)) else 0
    types: tuple[Type, ...] = tuple(column.type for column in anchor.columns)
    for turn in range(ROUNDS):
        keyed = _keyed(cte, anchor.names, types, scope, shared) if cte.keys else None
        made = types if keyed is None else _types_of(keyed)
        read = types if body.all else made
        inner = scope.with_cte(_entry(cte.name, number, anchor.names, read, scope))
        if recurring:
            inner = inner.with_cte(_entry(f"{RECURRING}.{cte.name}", recurring, anchor.names, made, scope))
        step = shared.bind_query(ast.Query(body.right), inner, shared)
        if len(step.columns) != len(types):
            raise SyntaxFailure("each UNION query must have the same number of columns", position=shared.position(cte))
        wider = common_types(anchor, step, "UNION", cte, shared)
        if wider == types or turn == ROUNDS - 1:
            break
        types = wider
    outputs = tuple(shared.column(name, type) for name, type in zip(anchor.names, made, strict=True))
    sides = aligned(anchor, types, shared), aligned(step, types, shared)
    return Bound(plan.Recursion(number, cte.name, body.all, *sides, outputs, recurring, keyed), outputs, anchor.names)


def _body(cte: ast.Cte, shared: Shared) -> ast.SetOperation:
    body: ast.Body = cte.query
    while isinstance(body, ast.Query) and not body.ctes:
        if body.order or body.order_all or body.limit is not None or body.offset is not None:
            raise FeatureNotSupported("ORDER BY and LIMIT in a recursive query are not supported")
        body = body.body
    if not isinstance(body, ast.SetOperation) or body.kind is not ast.SetKind.UNION or body.by_name:
        raise InvalidRecursion(
            f'recursive query "{cte.name}" does not have the form non-recursive-term UNION [ALL] recursive-term',
            position=shared.position(cte),
        )
    if references(body.left, cte.name):
        raise InvalidRecursion(
            f'recursive reference to query "{cte.name}" must not appear within its non-recursive term',
            position=shared.position(cte),
        )
    if not references(body.right, cte.name):
        raise FeatureNotSupported("USING KEY of a query that is not recursive is not supported")
    return body


def _reads(node: ast.Node, name: tuple[str, ...]) -> bool:
    return any(isinstance(part, ast.TableSource) and part.name.parts == name for part in ast.walk(node))


def _entry(name: str, number: int, names: Sequence[str], types: Sequence[Type], scope: Scope) -> Cte:
    return Cte(name, scope, number=number, outputs=tuple(zip(names, types, strict=True)), recursive=True)


def _types_of(keyed: plan.Keyed) -> tuple[Type, ...]:
    calls = dict(keyed.calls)
    return tuple(calls[place].type if place in calls else column.type for place, column in enumerate(keyed.inputs))


def _keyed(cte: ast.Cte, names: Sequence[str], types: Sequence[Type], scope: Scope, shared: Shared) -> plan.Keyed:
    """What USING KEY says: columns are keys, an aggregate makes the column of its alias, or of its first argument.

    42601  anything else     42P10  no key, or a column that is two things
    """
    inputs = tuple(shared.column(name, type) for name, type in zip(names, types, strict=True))
    env = Env(shared, scope.over(Entry(column.name, column) for column in inputs), "USING KEY")
    keys: list[int] = []
    calls: dict[int, AggregateCall] = {}
    for item in cte.keys:
        position = env.position(item)
        if isinstance(item.expr, ast.Column) and item.alias is None:
            keys.append(_place(item.expr, inputs, env))
            continue
        if not isinstance(item.expr, ast.Call) or item.expr.over is not None:
            raise SyntaxFailure("USING KEY takes columns and aggregates", position=position)
        columns = [argument.value for argument in item.expr.arguments if isinstance(argument.value, ast.Column)]
        if item.alias is None and not columns:
            raise SyntaxFailure("an aggregate in USING KEY needs an alias or a column", position=position)
        target = columns[0] if item.alias is None else ast.Column(ast.Name((item.alias,)))
        place = _place(target, inputs, env)
        if place in calls:
            raise InvalidColumnReference(f'column "{inputs[place].name}" is referenced multiple times', position=position)
        calls[place] = _aggregate(item.expr, env)
    if not keys:
        raise InvalidColumnReference("USING KEY requires at least one key column", position=shared.position(cte))
    for place in set(keys) & calls.keys():
        name = inputs[place].name
        words = f'column "{name}" cannot be used as both key and aggregate'
        raise InvalidColumnReference(words, position=shared.position(cte))
    for place, column in enumerate(inputs):
        if place not in keys and place not in calls:
            last = ast.Call(ast.Name(("last_value",)), (ast.Argument(Ready(column, column.name)),))
            calls[place] = _aggregate(last, env)
    return plan.Keyed(inputs, tuple(dict.fromkeys(keys)), tuple(sorted(calls.items())))


def _place(expr: ast.Column, inputs: Sequence[Column], env: Env) -> int:
    """Which of the columns a name means."""
    found = env.bind(expr)
    if found not in inputs:
        raise SyntaxFailure("USING KEY takes columns of its query", position=env.position(expr))
    return inputs.index(found)


def _aggregate(call: ast.Call, env: Env) -> AggregateCall:
    """An aggregate of all rows of a key.

    0A000  with DISTINCT or an order     42601  not an aggregate
    """
    name = dialect_name(function_name(call.name), env.shared.settings)
    if not any(isinstance(item, Aggregate) for item in FUNCTIONS.get(name, ())):
        raise SyntaxFailure("USING KEY takes columns and aggregates", position=env.position(call))
    if call.distinct or call.order or call.within_group or call.filter is not None:
        raise FeatureNotSupported("DISTINCT, ORDER BY and FILTER in USING KEY are not supported", position=env.position(call))
    function, arguments, order, type = bind_parts(call, name, env)
    return AggregateCall(type, function, arguments, order=order)
