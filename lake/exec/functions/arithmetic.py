"""Operators of numbers: + - * / // % ^, signs, and bits.

Integers that overflow are refused, decimals are exact, and a float divided by zero is an infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import DivisionByZero, InvalidPowerArgument, NumericOutOfRange
from lake.exec import decimals
from lake.exec.cast import decimal_to_double
from lake.exec.decimals import Scaled, Value
from lake.exec.functions.columns import columns, float_function
from lake.exec.kernels import views
from lake.sql.decimals import arithmetic_type
from lake.sql.registry import CallInfo, ReturnRule, scalar
from lake.types import Decimal, Integer, Type

GROUP: Final = "numbers"
INTEGER_NAMES: Final = {8: "tinyint", 16: "smallint", 32: "integer", 64: "bigint"}


def arithmetic_rule(op: str) -> ReturnRule:
    """The result type of ``op`` from its operands' types."""
    return lambda types: arithmetic_type(op, types[0], types[1])


def same_type(types: tuple[Type, ...]) -> Type:
    """The type of the first argument."""
    return types[0]


def widest_integer(types: tuple[Type, ...]) -> Type:
    """The widest of integer types."""
    return Integer(max(type.bits for type in types if isinstance(type, Integer)))


@scalar("+(a NUMERIC, b NUMERIC) -> NUMERIC", group=GROUP, returns=arithmetic_rule("+"), takes_call=True, narrow=True)
def add(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The sum.

    >>> 1 + 2.5
    3.5

    22003  the sum is out of the type's range
    """
    match call.returns:
        case Decimal():
            return _decimals(decimals.add, a, b, call)
        case Integer():
            return _integers(pc.add_checked, a, b, call.returns)
        case _:
            return pc.add(*_floats(a, b, call))


@scalar("-(a NUMERIC, b NUMERIC) -> NUMERIC", group=GROUP, returns=arithmetic_rule("-"), takes_call=True, narrow=True)
def subtract(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The difference.

    >>> 1 - 0.07
    0.93

    22003  the difference is out of the type's range
    """
    match call.returns:
        case Decimal():
            return _decimals(decimals.subtract, a, b, call)
        case Integer():
            return _integers(pc.subtract_checked, a, b, call.returns)
        case _:
            return pc.subtract(*_floats(a, b, call))


@scalar("*(a NUMERIC, b NUMERIC) -> NUMERIC", group=GROUP, returns=arithmetic_rule("*"), takes_call=True, narrow=True)
def multiply(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The product.

    >>> 1.5 * 1.5
    2.25

    22003  the product is out of the type's range
    """
    match call.returns:
        case Decimal() as type:
            one, two = decimals.scaled(a), decimals.scaled(b)
            if one is None or two is None:
                return pa.nulls(call.rows, pa.int64())
            extra = _scale(call.types[0]) + _scale(call.types[1]) - type.scale
            return decimals.to_value(decimals.multiply(one, two, drop=extra), type)
        case Integer():
            return _integers(pc.multiply_checked, a, b, call.returns)
        case _:
            return pc.multiply(*_floats(a, b, call))


@scalar("/(a NUMERIC, b NUMERIC) -> NUMERIC", group=GROUP, returns=arithmetic_rule("/"), takes_call=True, narrow=True)
def divide(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The quotient: whole for integers, four digits more than the dividend has for decimals, the rest cut.

    >>> 7 / 2
    3
    >>> 10 / 4.0
    2.5000

    22012  division of an integer or decimal by zero
    """
    match call.returns:
        case Decimal() as type:
            one, two = decimals.scaled(a), decimals.scaled(b)
            if one is None or two is None:
                return pa.nulls(call.rows, pa.int64())
            raised = type.scale - _scale(call.types[0]) + _scale(call.types[1])
            return decimals.to_value(decimals.divide(one, two, raised=raised), type)
        case Integer():
            return _integers(pc.divide_checked, a, b, call.returns)
        case _:
            return pc.divide(*_floats(a, b, call))


@scalar("//(a NUMERIC, b NUMERIC) -> NUMERIC", group=GROUP, origin="duckdb", returns=arithmetic_rule("/"),
        takes_call=True, narrow=True)  # fmt: skip
def divide_whole(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The quotient without its fraction.

    >>> 7 // 2
    3

    22012  division of an integer or decimal by zero
    """
    match call.returns:
        case Decimal() as type:
            one, two = decimals.scaled(a), decimals.scaled(b)
            if one is None or two is None:
                return pa.nulls(call.rows, pa.int64())
            quotient = decimals.divide(one, two, raised=_scale(call.types[1]) - _scale(call.types[0]))
            return decimals.to_value(decimals.scale_up(quotient, type.scale), type)
        case Integer():
            return _integers(pc.divide_checked, a, b, call.returns)
        case _:
            return pc.floor(pc.divide(*_floats(a, b, call)))


@scalar("%(a NUMERIC, b NUMERIC) -> NUMERIC", group=GROUP, returns=arithmetic_rule("%"), takes_call=True, narrow=True,
        aliases=("mod",))  # fmt: skip
def modulo(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """What division leaves over; it has the dividend's sign.

    >>> -7 % 3
    -1
    >>> 5.5 % 2
    1.5

    22012  an integer or decimal by zero
    """
    match call.returns:
        case Decimal():
            return _decimals(decimals.remainder, a, b, call)
        case Integer() as type:
            if isinstance(a, pa.Scalar):
                a = columns(a, b)[0]
            one, two = decimals.scaled(a), decimals.scaled(b)
            if one is None or two is None:
                return pa.nulls(call.rows, type.physical)
            rest = decimals.remainder(one, two)
            assert not isinstance(rest.values, int)
            return views.to_array(rest.values, type.physical, rest.valid)
        case _:
            return float_function(np.fmod, *_floats(a, b, call)).cast(call.returns.physical)


@scalar("-(a NUMERIC) -> NUMERIC", group=GROUP, returns=same_type, takes_call=True, narrow=True)
def negate(a: pa.Array, *, call: CallInfo) -> pa.Array:
    """The number with the other sign.

    >>> -(3)
    -3

    22003  the smallest integer of its type
    """
    match call.returns:
        case Decimal() as type:
            found = decimals.scaled(a)
            assert found is not None
            return decimals.to_value(decimals.subtract(Scaled(0), found), type)
        case Integer() as type:
            return _checked(pc.negate_checked, type, a)
        case _:
            return pc.negate(a)


@scalar("+(a NUMERIC) -> NUMERIC", group=GROUP, returns=same_type, narrow=True)
def plus(a: pa.Array) -> pa.Array:
    """The number as it is.

    >>> +(3)
    3
    """
    return a


@scalar("^(a DOUBLE, b DOUBLE) -> DOUBLE", group=GROUP, aliases=("**", "power", "pow"))
def power(a: Value, b: Value) -> pa.Array:
    """``a`` to the power of ``b``.

    >>> power(2, 10)
    1024.0
    """
    powers = pc.power(a, b)
    endless = pc.and_(pc.equal(a, 0.0), pc.less(b, 0.0))
    if endless.as_py() if isinstance(endless, pa.Scalar) else pc.any(endless).as_py():
        raise InvalidPowerArgument("zero raised to a negative power is undefined")
    return powers


# --- bits ------------------------------------------------------------------------------------------------------------


@scalar("&(a INTEGER, b INTEGER) -> INTEGER", group="bits", returns=widest_integer, takes_call=True)
def bit_and(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """Bits set in both.

    >>> 7 & 3
    3
    """
    return pc.bit_wise_and(*_as(call.returns, a, b))


@scalar("|(a INTEGER, b INTEGER) -> INTEGER", group="bits", returns=widest_integer, takes_call=True)
def bit_or(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """Bits set in either.

    >>> 5 | 3
    7
    """
    return pc.bit_wise_or(*_as(call.returns, a, b))


@scalar("#(a INTEGER, b INTEGER) -> INTEGER", group="bits", returns=widest_integer, takes_call=True, aliases=("xor",))
def bit_xor(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """Bits set in one of both.

    >>> 5 # 3
    6
    """
    return pc.bit_wise_xor(*_as(call.returns, a, b))


@scalar("~(a INTEGER) -> INTEGER", group="bits", returns=same_type)
def bit_not(a: pa.Array) -> pa.Array:
    """All bits turned over.

    >>> ~(5)
    -6
    """
    return pc.bit_wise_not(a)


@scalar("<<(a INTEGER, b INTEGER) -> INTEGER", group="bits", returns=same_type, takes_call=True, aliases=("shiftleft",))
def shift_left(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """Bits moved up; the distance counts modulo the type's width.

    >>> 1 << 3
    8
    """
    return pc.shift_left(*_shifted(a, b, call.returns))


@scalar(">>(a INTEGER, b INTEGER) -> INTEGER", group="bits", returns=same_type, takes_call=True,
        aliases=("shiftright",))  # fmt: skip
def shift_right(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """Bits moved down, the sign kept; the distance counts modulo the type's width.

    >>> 8 >> 2
    2
    """
    return pc.shift_right(*_shifted(a, b, call.returns))


# --- how -------------------------------------------------------------------------------------------------------------


def _shifted(a: Value, b: Value, type: Type) -> tuple[Value, Value]:
    assert isinstance(type, Integer)
    value, distance = _as(type, a, b)
    return value, pc.bit_wise_and(distance, pa.scalar(type.bits - 1, type.physical))


def _as(type: Type, *values: Value) -> list[Value]:
    return [value if value.type == type.physical else value.cast(type.physical) for value in values]


def _integers(run: Callable[..., Any], a: Value, b: Value, type: Integer) -> pa.Array:
    return _checked(run, type, *_as(type, a, b))


def _checked(run: Callable[..., Any], type: Integer, *values: Value) -> pa.Array:
    try:
        return run(*values)
    except pa.ArrowInvalid as error:
        if "zero" in str(error):
            raise DivisionByZero("division by zero") from None
        raise NumericOutOfRange(f"{INTEGER_NAMES[type.bits]} out of range") from None


def _floats(a: Value, b: Value, call: CallInfo) -> list[Value]:
    return [_as_float(value, type, call.returns) for value, type in zip((a, b), call.types)]


def _as_float(value: Value, type: Type, target: Type) -> Value:
    if isinstance(type, Decimal):
        value = decimal_to_double(value, type.scale)
    return value if value.type == target.physical else value.cast(target.physical)


def _decimals(run: Callable[[Scaled, Scaled], Scaled], a: Value, b: Value, call: CallInfo) -> pa.Array:
    """``run`` over both sides at the result's scale."""
    assert isinstance(call.returns, Decimal)
    one, two = decimals.scaled(a), decimals.scaled(b)
    if one is None or two is None:
        return pa.nulls(call.rows, pa.int64())
    scale = call.returns.scale
    one = decimals.scale_up(one, scale - _scale(call.types[0]))
    two = decimals.scale_up(two, scale - _scale(call.types[1]))
    return decimals.to_value(run(one, two), call.returns)


def _scale(type: Type) -> int:
    return type.scale if isinstance(type, Decimal) else 0
