"""Casts as written: CAST, ``::`` and TRY_CAST."""

from __future__ import annotations

from typing import Final

from lake.arrow_names import is_spelled_alike
from lake.sql import ast
from lake.sql.bind.coerce import cast, is_numeric
from lake.sql.bind.enums import cast_to_enum, enum_of
from lake.sql.bind.overload import call_function
from lake.sql.bind.scope import Env, binds
from lake.sql.bind.type_names import bind_type
from lake.sql.bound import Cast, Expr, Literal
from lake.types import BIGINT, DECIMAL_DEFAULT, DECIMAL_DIGITS_MAX, DECIMAL_SPELLINGS, TEXT, Decimal, Null, Text

CATALOG_TYPES: Final = ("regclass", "regtype", "regnamespace", "regproc", "regprocedure", "regrole")


@binds(ast.Cast)
def bind_cast(expr: ast.Cast, env: Env) -> Expr:
    """CAST, ``::`` and TRY_CAST."""
    word = expr.type.name.lower().removeprefix("pg_catalog.")
    if word in CATALOG_TYPES and not expr.type.dimensions:
        return _bind_catalog_cast(word, env.bind(expr.operand), expr, env)
    enum = enum_of(expr.type, env)
    if enum is not None:
        return cast_to_enum(env.bind(expr.operand), enum, env, expr, is_try=expr.is_try)
    match expr.type:
        case ast.TypeName(arguments=(precision, scale)) if scale < 0 and expr.type.name.lower() in DECIMAL_SPELLINGS:
            return _bind_rounding_cast(expr, precision, scale, env)
    operand, type = env.bind(expr.operand), bind_type(expr.type)
    if operand.type == type and is_spelled_alike(operand.type, type):
        return operand
    if expr.is_try or operand.type == type:
        return Cast.of(type, operand, is_try=expr.is_try)
    return cast(operand, type, time_zone=env.time_zone)


def _bind_catalog_cast(word: str, operand: Expr, expr: ast.Cast, env: Env) -> Expr:
    """``'t'::regclass`` is the oid of that name, and ``oid::regclass`` the name of that oid."""
    if isinstance(operand.type, Null):
        operand = cast(operand, TEXT)
    if not isinstance(operand.type, Text):
        operand = cast(operand, BIGINT)
    return call_function(word, (operand,), env, expr)


def _bind_rounding_cast(expr: ast.Cast, precision: int, scale: int, env: Env) -> Expr:
    """``x::DECIMAL(5, -2)``: hundreds, five digits of them."""
    operand = env.bind(expr.operand)
    number = operand if is_numeric(operand.type) else Cast.of(DECIMAL_DEFAULT, operand, is_try=expr.is_try)
    rounded = call_function("round", (number, Literal(BIGINT, scale)), env, expr)
    return Cast.of(Decimal(min(precision - scale, DECIMAL_DIGITS_MAX), 0), rounded, is_try=expr.is_try)
