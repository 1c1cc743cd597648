"""Values inside values: struct literals, rows as values, fields, subscripts and slices."""

from __future__ import annotations

from collections.abc import Sequence

from lake.sql import ast
from lake.sql.bind.overload import call_function, call_operator
from lake.sql.bind.scope import Env, binds, find_column
from lake.sql.bound import Expr, Literal
from lake.types import BIGINT, TEXT, VECTOR_OIDS, Json, Map, Struct


@binds(ast.StructLiteral)
def bind_struct(expr: ast.StructLiteral, env: Env) -> Expr:
    """``{a: 1, b: 'x'}``: a call of named_struct."""
    pairs = [part for name, value in expr.fields for part in (Literal(TEXT, name), env.bind(value))]
    return call_function("named_struct", pairs, env, expr)


@binds(ast.Row)
def bind_row(expr: ast.Row, env: Env) -> Expr:
    """``(1, 'a')`` as a value: a struct with fields c0, c1."""
    return call_function("struct", [env.bind(item) for item in expr.items], env, expr)


def field_of_column(name: ast.Name, env: Env, expr: ast.Column) -> Expr | None:
    """``t.s.a`` where ``s`` is a struct: the longest front part that names a column, and fields of it."""
    for count in range(len(name.parts) - 1, 0, -1):
        front = ast.Name(name.parts[:count])
        single = front.parts[0] if count == 1 else None
        if single is not None and single in env.locals:
            made: Expr | None = env.locals[single]
        else:
            made = find_column(env.scope, front, env.position(expr))
        if made is not None and isinstance(made.type, Struct | Map):
            return _fields_of(made, name.parts[count:], env, expr)
    return None


def _fields_of(operand: Expr, names: Sequence[str], env: Env, node: ast.Node) -> Expr:
    for name in names:
        operand = call_function("get_field", (operand, Literal(TEXT, name)), env, node)
    return operand


@binds(ast.Subscript)
def bind_subscript(expr: ast.Subscript, env: Env) -> Expr:
    """``x[i]``: an element of a list, a member of JSON."""
    operand, index = env.bind(expr.operand), env.bind(expr.index)
    if isinstance(operand.type, Json):
        return call_operator("->", operand, index, env, expr)
    if isinstance(operand.type, Struct | Map):
        return call_function("get_field", (operand, index), env, expr)
    if operand.type.spelled in VECTOR_OIDS:
        index = call_operator("+", index, Literal(BIGINT, 1), env, expr)
    return call_function("array_element", (operand, index), env, expr)


@binds(ast.Slice)
def bind_slice(expr: ast.Slice, env: Env) -> Expr:
    """``x[a:b]``; a bound left out is the list's first or last element."""
    low = Literal(BIGINT, 1) if expr.low is None else env.bind(expr.low)
    high = Literal(BIGINT, -1) if expr.high is None else env.bind(expr.high)
    stride = () if expr.stride is None else (env.bind(expr.stride),)
    return call_function("array_slice", (env.bind(expr.operand), low, high, *stride), env, expr)
