"""Rounding of numbers: half away from zero, for decimals exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import NumericOutOfRange
from lake.exec import decimals
from lake.exec.decimals import Scaled, Value
from lake.exec.functions.arithmetic import INTEGER_NAMES, same_type
from lake.exec.functions.columns import with_constants
from lake.sql.registry import CallInfo, scalar
from lake.types import DECIMAL_DIGITS_MAX, DOUBLE, Decimal, Float, Integer, Type

GROUP: Final = "numbers"


def whole_type(types: tuple[Type, ...]) -> Type:
    """A decimal of no digits after the point for a decimal; integers as they are; else DOUBLE."""
    match types[0]:
        case Decimal(precision, scale):
            return Decimal(min(max(precision - scale, 0) + 1, DECIMAL_DIGITS_MAX), 0)
        case Integer() | Float():
            return types[0]
        case _:
            return DOUBLE


@scalar("abs(number NUMERIC) -> NUMERIC", group=GROUP, returns=same_type, takes_call=True, narrow=True, aliases=("@",))
def abs_(number: pa.Array, *, call: CallInfo) -> pa.Array:
    """The number without its sign.

    >>> abs(-3.5)
    3.5

    22003  the smallest integer of its type
    """
    match call.returns:
        case Decimal() as type:
            found = decimals.scaled(number)
            assert found is not None
            if found.is_wide:
                return pc.abs(decimals.widen(number, type))
            return decimals.to_value(Scaled(np.abs(found.values), found.valid), type)
        case Integer(bits):
            try:
                return pc.abs_checked(number)
            except pa.ArrowInvalid:
                raise NumericOutOfRange(f"{INTEGER_NAMES[bits]} out of range") from None
        case _:
            return pc.abs(number)


@scalar("ceil(number NUMERIC) -> NUMERIC", group=GROUP, returns=whole_type, takes_call=True, narrow=True,
        aliases=("ceiling",))  # fmt: skip
def ceil(number: pa.Array, *, call: CallInfo) -> pa.Array:
    """The least whole number that is not less.

    >>> ceil(-1.2)
    -1
    """
    return _to_whole(number, call, pc.ceil, 1)


@scalar("floor(number NUMERIC) -> NUMERIC", group=GROUP, returns=whole_type, takes_call=True, narrow=True)
def floor(number: pa.Array, *, call: CallInfo) -> pa.Array:
    """The greatest whole number that is not greater.

    >>> floor(-1.2)
    -2
    """
    return _to_whole(number, call, pc.floor, -1)


def _to_whole(number: pa.Array, call: CallInfo, of_floats: Callable[..., Any], sign: int) -> pa.Array:
    """Up for ``sign`` 1, down for -1."""
    match call.types[0], call.returns:
        case Decimal(scale=scale), Decimal() as type:
            found = decimals.scaled(number)
            assert found is not None
            cut = decimals.round_down(found, scale, half_up=False)
            lost = decimals.subtract(found, decimals.scale_up(cut, scale))
            high = lost.values[:, 0] if lost.is_wide else lost.values  # type: ignore[index]
            return decimals.to_value(decimals.add(cut, Scaled((np.sign(high) == sign) * np.int64(sign))), type)
        case Integer(), _:
            return number
        case _:
            return of_floats(number)


def rounded_type(types: tuple[Type, ...]) -> Type:
    """Decimals and integers keep their type, REAL too; else DOUBLE."""
    return types[0] if isinstance(types[0], Decimal | Integer | Float) else DOUBLE


@scalar("round(number NUMERIC) -> NUMERIC", group=GROUP, returns=whole_type, takes_call=True, narrow=True)
def round_whole(number: pa.Array, *, call: CallInfo) -> pa.Array:
    """The nearest whole number, half away from zero.

    >>> round(-2.5)
    -3
    >>> round(2.5::DOUBLE)
    3.0
    """
    match call.types[0], call.returns:
        case Decimal(scale=scale), Decimal() as type:
            found = decimals.scaled(number)
            assert found is not None
            return decimals.to_value(decimals.round_down(found, scale, half_up=True), type)
        case Integer(), _:
            return number
        case _:
            return pc.round(number, round_mode="half_towards_infinity")


def _kept_digits(arguments: tuple[Any, ...]) -> Type:
    """A decimal's type with as many digits after the point as the constant keeps; one digit more where it is none."""
    type, digits = arguments[0].type, getattr(arguments[1], "value", None)
    if not isinstance(type, Decimal):
        return rounded_type((type,))
    scale = type.scale if not isinstance(digits, int) else min(type.scale, max(digits, 0))
    room = 0 if scale < type.scale or (isinstance(digits, int) and digits >= type.scale) else 1
    return Decimal(min(type.precision + room, DECIMAL_DIGITS_MAX), scale)


@scalar("round(number NUMERIC, digits BIGINT) -> NUMERIC", group=GROUP, literal_rule=_kept_digits, takes_call=True,
        narrow=True)  # fmt: skip
def round_digits(number: Value, digits: Value, *, call: CallInfo) -> pa.Array:
    """The nearest number of so many digits after the point, before it where negative; half away from zero.

    >>> round(3.14159, 2)
    3.14
    >>> round(1250, -2)
    1300
    """
    return _cut(number, digits, call, half_up=True)


@scalar("trunc(number NUMERIC) -> NUMERIC", group=GROUP, returns=rounded_type, takes_call=True, narrow=True,
        aliases=("truncate",))  # fmt: skip
@scalar("trunc(number NUMERIC, digits BIGINT) -> NUMERIC", group=GROUP, returns=rounded_type, takes_call=True, narrow=True,
        aliases=("truncate",))  # fmt: skip
def trunc(number: Value, digits: Value | None = None, *, call: CallInfo) -> pa.Array:
    """The number without its fraction, or without digits after the first so many.

    >>> trunc(42.738, 2)
    42.730
    >>> trunc(-1.7::DOUBLE)
    -1.0
    """
    return _cut(number, pa.scalar(0) if digits is None else digits, call, half_up=False)


def _cut(number: Value, digits: Value, call: CallInfo, *, half_up: bool) -> pa.Array:
    type = call.types[0]

    def run(column: pa.Array, digits: int) -> pa.Array:
        if isinstance(type, Float):
            return _cut_floats(column, digits, half_up=half_up)
        if not -(1 << 31) <= digits < 1 << 31:
            raise NumericOutOfRange("integer out of range")
        scale = type.scale if isinstance(type, Decimal) else 0
        drop = scale - digits
        if drop <= 0:
            return column
        found = decimals.scaled(column)
        assert found is not None
        # No number has more digits than a decimal: to drop them all is to drop as many.
        drop = min(drop, DECIMAL_DIGITS_MAX + 1)
        lost = scale - call.returns.scale if isinstance(call.returns, Decimal) else 0
        cut = decimals.scale_up(decimals.round_down(found, drop, half_up=half_up), min(drop - lost, DECIMAL_DIGITS_MAX))
        if isinstance(call.returns, Decimal):
            return decimals.to_value(cut, call.returns, may_pass=True)
        narrow = decimals.to_value(cut, Decimal(DECIMAL_DIGITS_MAX, 0))
        try:
            return narrow.cast(call.returns.physical)
        except pa.ArrowInvalid:
            raise NumericOutOfRange(f"{type.sql.lower()} out of range") from None

    physical = pa.int64() if isinstance(type, Decimal) else call.returns.physical
    return with_constants(run, physical, number, digits)


def _cut_floats(column: pa.Array, digits: int, *, half_up: bool) -> pa.Array:
    if half_up:
        return pc.round(column, ndigits=digits, round_mode="half_towards_infinity")
    return pc.round(column, ndigits=digits, round_mode="towards_zero")


@scalar("round_even(number DOUBLE, digits BIGINT) -> DOUBLE", group=GROUP, origin="duckdb", aliases=("bround",))
def round_even(number: Value, digits: Value) -> pa.Array:
    """The nearest number of so many digits after the point, half to the even one.

    >>> round_even(24.5, 0)
    24.0
    """
    return with_constants(lambda column, many: pc.round(column, ndigits=many, round_mode="half_to_even"), pa.float64(),
                          number, digits)  # fmt: skip


@scalar("sign(number DOUBLE) -> DOUBLE", group=GROUP, aliases=("signum",))
def sign(number: pa.Array) -> pa.Array:
    """-1, 0 or 1 as the number is below, at or above zero.

    >>> sign(-4.2)
    -1.0
    """
    return pc.sign(number)
