"""Subqueries in expressions: as a value, EXISTS, IN, ANY, ALL and ARRAY(..)."""

from __future__ import annotations

from msgspec.structs import replace

from lake.errors import FeatureNotSupported, SyntaxFailure, WrongObjectType
from lake.sql import ast, bound, plan
from lake.sql.bind.coerce import COMPARISONS, cast
from lake.sql.bind.expr import again, binary, compare, negate, projected
from lake.sql.bind.overload import call_function, choose
from lake.sql.bind.scope import Bound, Env, Ready, binds
from lake.sql.bound import AggregateCall, Expr, Literal, MakeList
from lake.sql.registry import FUNCTIONS, Aggregate
from lake.types import BOOLEAN, TEXT, List


@binds(ast.ScalarSubquery)
def bind_scalar(expr: ast.ScalarSubquery, env: Env) -> Expr:
    """``(SELECT ..)`` as a value."""
    made = one_column(env.bind_query(expr.query), expr, env)
    return bound.ScalarSubquery(made.columns[0].type, made.plan)


@binds(ast.ArraySubquery)
def bind_array(expr: ast.ArraySubquery, env: Env) -> Expr:
    """``ARRAY(SELECT ..)``: the rows as a list, an empty one of no rows."""
    made = one_column(env.bind_query(expr.query), expr, env)
    overloads = [item for item in FUNCTIONS.get("array_agg", ()) if isinstance(item, Aggregate)]
    choice = choose("array_agg", overloads, made.columns, env, env.position(expr))
    assert isinstance(choice.function, Aggregate)
    output = env.shared.column("array_agg", choice.type)
    # A correlated subquery is computed for all outer rows at once, so that the order must be the aggregate's own.
    node, order = _ordered(made.plan)
    call = AggregateCall(choice.type, choice.function, choice.arguments, order=order)
    rows = bound.ScalarSubquery(choice.type, plan.Aggregate((), ((output, call),), node))
    return call_function("coalesce", (rows, MakeList(choice.type, ())), env, expr)


def _ordered(node: plan.Plan) -> tuple[plan.Plan, tuple[bound.SortKey, ...]]:
    """The rows of an ordered query with the columns it is ordered by, and the keys; no keys where it has no order."""
    top = node
    while isinstance(top, plan.Project) and top.outputs == top.exprs:
        top = top.input
    under = top.input if isinstance(top, plan.Limit) else top
    if not isinstance(under, plan.Sort):
        return node, ()
    return (top if isinstance(top, plan.Limit) else under.input), under.keys


@binds(ast.Exists)
def bind_exists(expr: ast.Exists, env: Env) -> Expr:
    """``EXISTS (SELECT ..)``."""
    return bound.Exists(BOOLEAN, env.bind_query(expr.query).plan)


@binds(ast.InSubquery)
def bind_in(expr: ast.InSubquery, env: Env) -> Expr:
    """``x [NOT] IN (SELECT ..)``, which is ``= ANY``."""
    return negate(quantified("=", expr.operand, expr.query, False, expr, env), expr.negated)


@binds(ast.Quantified)
def bind_quantified(expr: ast.Quantified, env: Env) -> Expr:
    """``x op ANY|ALL`` over a subquery or a list."""
    if isinstance(expr.source, ast.Query):
        return quantified(expr.op, expr.operand, expr.source, expr.every, expr, env)
    return _over_list(expr, expr.source, env)


def quantified(op: str, operand: ast.Expr, query: ast.Query, every: bool, node: ast.Node, env: Env) -> Expr:
    """``operand op ANY|ALL (query)``, both sides cast to the types they are compared in.

    42601  not as many columns as the operand has values
    """
    if op not in COMPARISONS:
        raise FeatureNotSupported(f"{op} ANY/ALL over a subquery is not supported", position=env.position(node))
    operands = operand.items if isinstance(operand, ast.Row) else (operand,)
    values = [] if len(operands) > 1 and op not in ("=", "<>") else [env.bind(item) for item in operands]
    made = env.bind_query(query)
    if not values and len(made.columns) == len(operands):
        # Rows are ordered by their first difference: the test is made of each row, and its truth is what is asked for.
        columns = tuple(Ready(column, column.name) for column in made.columns)
        test = env.bind(ast.Binary(op, ast.Row(tuple(operands)), ast.Row(columns), span=node.span))
        return bound.Quantified(BOOLEAN, "=", (Literal(BOOLEAN, True),), projected(made, [test], env), every)
    if len(made.columns) != len(operands):
        words = "many" if len(made.columns) > len(operands) else "few"
        raise SyntaxFailure(f"subquery has too {words} columns", position=env.position(node))
    lefts: list[Expr] = []
    rights: list[Expr] = []
    for value, column in zip(values, made.columns, strict=True):
        pair = compare(op, value, column, env, node)
        lefts.append(pair.left)
        rights.append(pair.right)
    if tuple(rights) == made.columns == made.plan.columns:
        return bound.Quantified(BOOLEAN, op, tuple(lefts), made.plan, every)
    return bound.Quantified(BOOLEAN, op, tuple(lefts), projected(made, rights, env), every)


def one_column(made: Bound, node: ast.Node, env: Env) -> Bound:
    """The subquery whose plan answers its one column alone.

    42601  it has more
    """
    if len(made.columns) != 1:
        raise SyntaxFailure("subquery must return only one column", position=env.position(node))
    if made.plan.columns == made.columns:
        return made
    return replace(made, plan=plan.Project(made.columns, made.columns, made.plan))


def _over_list(expr: ast.Quantified, source: ast.Expr, env: Env) -> Expr:
    """Over a list: comparisons with each item where the list is written out, else the rows of its UNNEST."""
    operand, items = env.bind(expr.operand), env.bind(source)
    if isinstance(items, Literal) and isinstance(items.value, str):
        items = cast(items, List(TEXT))
    if not isinstance(items.type, List):
        raise WrongObjectType("op ANY/ALL (array) requires array on right side", position=env.position(source))
    known: tuple[Expr, ...] | None = None
    if isinstance(items, MakeList):
        known = items.items
    elif isinstance(items, Literal) and isinstance(items.value, tuple):
        known = tuple(Literal(items.type.of, value) for value in items.value)  # type: ignore[arg-type]
    if known is not None:
        tests = [_test(expr, again(expr.operand, operand, env), item, env) for item in known]
        if not tests:
            return Literal(BOOLEAN, expr.every)
        if len(tests) == 1:
            return tests[0]
        return (bound.And if expr.every else bound.Or)(BOOLEAN, tuple(tests))
    element = env.shared.column("unnest", items.type.of)
    rows: plan.Plan = plan.Unnest(((element, items),), plan.Values(((),), ()))
    if expr.op in COMPARISONS:
        pair = compare(expr.op, operand, element, env, expr)
        op, left, right = expr.op, pair.left, pair.right
    else:
        op, left, right = "=", Literal(BOOLEAN, True), _test(expr, operand, element, env)
    if right != element:
        rows = projected(Bound(rows, (element,), ("unnest",)), [right], env)
    is_null = bound.IsNull(BOOLEAN, again(source, items, env))
    test = bound.Quantified(BOOLEAN, op, (left,), rows, expr.every)
    return bound.Case(BOOLEAN, ((is_null, Literal(BOOLEAN, None)),), test)


def _test(expr: ast.Quantified, left: Expr, right: Expr, env: Env) -> Expr:
    """The operator of ANY or ALL between the operand and one item; LIKE and ILIKE are among them."""
    if not expr.op.endswith("LIKE"):
        return binary(expr.op, left, right, env, expr)
    name = expr.op.removeprefix("NOT ").lower()
    return negate(call_function(name, (left, right), env, expr), expr.op.startswith("NOT "))
