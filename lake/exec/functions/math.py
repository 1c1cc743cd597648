"""Numbers: roots, logarithms, trigonometry, divisors. What no real number answers is NaN or an infinity."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, InvalidPowerArgument, NumericOutOfRange
from lake.exec import decimals
from lake.exec.cast import cast
from lake.exec.constants import to_array
from lake.exec.decimals import Scaled, Value
from lake.exec.functions.arithmetic import widest_integer
from lake.exec.functions.columns import all_valid, both_valid, columns, float_function
from lake.exec.kernels import views
from lake.exec.kernels.gammas import gammas
from lake.exec.per_row import per_row
from lake.sql.decimals import common_numeric
from lake.sql.registry import CallInfo, scalar
from lake.types import Decimal, Float, Type

GROUP: Final = "numbers"
SHORT_PRODUCT_MAX: Final = 2**62
"""Products below it are exact in 64 bits."""


# --- floats ----------------------------------------------------------------------------------------------------------


def _register(name: str, run: Callable[..., Any], text: str, example: str, answer: str, *aliases: str) -> None:
    """A numpy function of one float."""

    def function(number: pa.Array) -> pa.Array:
        return float_function(run, number)

    function.__doc__ = f"{text}\n\n    >>> {example}\n    {answer}\n    "
    scalar(f"{name}(number DOUBLE) -> DOUBLE", group=GROUP, aliases=aliases)(function)


def _square_root(numbers: Any) -> Any:
    if np.any(numbers < 0):
        raise InvalidPowerArgument("cannot take square root of a negative number")
    return np.sqrt(numbers)


_register("sqrt", _square_root, "The square root; 2201F of a negative number.", "sqrt(16)", "4.0", "|/")
_register("cbrt", np.cbrt, "The cube root.", "cbrt(27)", "3.0", "||/")
_register("exp", np.exp, "e to the power of the number.", "exp(0)", "1.0")
_register("expm1", np.expm1, "e to the power of the number, less one.", "expm1(0)", "0.0")
_register("ln", np.log, "The natural logarithm.", "ln(1)", "0.0")
_register("log1p", np.log1p, "The natural logarithm of the number and one.", "log1p(0)", "0.0")
_register("log2", np.log2, "The logarithm to base 2.", "log2(8)", "3.0")
_register("log10", np.log10, "The logarithm to base 10.", "log10(1000)", "3.0")
_register("log", np.log10, "The logarithm to base 10.", "log(100)", "2.0")
_register("sin", np.sin, "The sine of radians.", "sin(0)", "0.0")
_register("cos", np.cos, "The cosine of radians.", "cos(0)", "1.0")
_register("tan", np.tan, "The tangent of radians.", "tan(0)", "0.0")
_register("cot", lambda number: 1 / np.tan(number), "The cotangent of radians.", "round(cot(1), 6)", "0.642093")
_register("asin", np.arcsin, "The arc sine in radians.", "asin(0)", "0.0")
_register("acos", np.arccos, "The arc cosine in radians.", "acos(1)", "0.0")
_register("atan", np.arctan, "The arc tangent in radians.", "atan(0)", "0.0")
_register("sinh", np.sinh, "The hyperbolic sine.", "sinh(0)", "0.0")
_register("cosh", np.cosh, "The hyperbolic cosine.", "cosh(0)", "1.0")
_register("tanh", np.tanh, "The hyperbolic tangent.", "tanh(0)", "0.0")
_register("asinh", np.arcsinh, "The inverse hyperbolic sine.", "asinh(0)", "0.0")
_register("acosh", np.arccosh, "The inverse hyperbolic cosine.", "acosh(1)", "0.0")
_register("atanh", np.arctanh, "The inverse hyperbolic tangent.", "atanh(0)", "0.0")
_register("degrees", np.degrees, "Radians as degrees.", "degrees(pi())", "180.0")
_register("radians", np.radians, "Degrees as radians.", "radians(0)", "0.0")
_register("even", lambda number: np.copysign(np.ceil(np.abs(number) / 2) * 2, number),
          "The next even number away from zero.", "even(2.9)", "4.0")  # fmt: skip
_register("rint", np.rint, "The nearest whole number, half to the even one.", "rint(2.5)", "2.0")


@scalar("atan2(y DOUBLE, x DOUBLE) -> DOUBLE", group=GROUP)
def atan2(y: Value, x: Value) -> pa.Array:
    """The angle of the point (x, y) in radians.

    >>> atan2(0, 1)
    0.0
    """
    return float_function(np.arctan2, y, x)


@scalar("log(base DOUBLE, number DOUBLE) -> DOUBLE", group=GROUP)
def log(base: Value, number: Value) -> pa.Array:
    """The logarithm to a base.

    >>> log(2, 8)
    3.0
    """
    return float_function(_log, base, number)


def _log(base: Any, number: Any) -> Any:
    found = np.log(number) / np.log(base)
    nearest = np.round(found)
    return np.where(np.isfinite(found) & (np.power(base, nearest) == number), nearest, found)


@scalar("hypot(a DOUBLE, b DOUBLE) -> DOUBLE", group=GROUP, origin="spark")
def hypot(a: Value, b: Value) -> pa.Array:
    """The length of the third side of a right triangle.

    >>> hypot(3, 4)
    5.0
    """
    return float_function(np.hypot, a, b)


@scalar("fmod(a DOUBLE, b DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb")
def fmod(a: Value, b: Value) -> pa.Array:
    """What division of floats leaves over.

    >>> fmod(5.5, 2)
    1.5
    """
    return float_function(np.fmod, a, b)


@scalar("fdiv(a DOUBLE, b DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb")
def fdiv(a: Value, b: Value) -> pa.Array:
    """The whole part of a quotient of floats.

    >>> fdiv(5, 2)
    2.0
    """
    return float_function(lambda one, two: np.floor(one / two), a, b)


@scalar("nextafter(a DOUBLE, b DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb")
def nextafter(a: Value, b: Value) -> pa.Array:
    """The next float from ``a`` towards ``b``.

    >>> nextafter(1, 2)
    1.0000000000000002
    """
    return float_function(np.nextafter, a, b)


@scalar("nextafter(a REAL, b REAL) -> REAL", group=GROUP, origin="duckdb")
def nextafter_real(a: Value, b: Value) -> pa.Array:
    """The next REAL from ``a`` towards ``b``.

    >>> nextafter(1::REAL, 2::REAL)
    1.0000001
    """
    one, two = columns(a, b)
    made = np.nextafter(views.values_of(one), views.values_of(two))
    return views.to_array(made, pa.float32(), all_valid(one, two))


@scalar("nanvl(number DOUBLE, instead DOUBLE) -> DOUBLE", group=GROUP)
def nanvl(number: Value, instead: Value) -> pa.Array:
    """The second argument where the first is NaN.

    >>> nanvl('NaN'::DOUBLE, 5)
    5.0
    """
    number, instead = columns(number, instead)
    return pc.if_else(pc.is_nan(number), instead, number)


@scalar("isnan(number DOUBLE) -> BOOLEAN", group=GROUP)
def isnan(number: pa.Array) -> pa.Array:
    """Whether the number is NaN.

    >>> isnan('NaN'::DOUBLE)
    true
    """
    return pc.is_nan(number)


@scalar("isinf(number DOUBLE) -> BOOLEAN", group=GROUP, origin="duckdb")
def isinf(number: pa.Array) -> pa.Array:
    """Whether the number is an infinity.

    >>> isinf('inf'::DOUBLE)
    true
    """
    return pc.is_inf(number)


@scalar("isfinite(number DOUBLE) -> BOOLEAN", group=GROUP, origin="duckdb")
def isfinite(number: pa.Array) -> pa.Array:
    """Whether the number is neither NaN nor an infinity.

    >>> isfinite(5.5)
    true
    """
    return pc.is_finite(number)


@scalar("iszero(number DOUBLE) -> BOOLEAN", group=GROUP)
def iszero(number: pa.Array) -> pa.Array:
    """Whether the number is zero, of either sign.

    >>> iszero(0.0)
    true
    """
    return pc.equal(number, 0.0)


@scalar("signbit(number DOUBLE) -> BOOLEAN", group=GROUP, origin="duckdb")
def signbit(number: pa.Array) -> pa.Array:
    """Whether the number has a minus.

    >>> signbit(-1.0)
    true
    """
    return views.to_array(np.signbit(views.values_of(number)), pa.bool_(), views.valid_of(number))


@scalar("gamma(number DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb")
def gamma(number: pa.Array) -> pa.Array:
    """The gamma function; NaN at whole numbers below 1.

    >>> gamma(5)
    24.0
    """
    return views.to_array(gammas(views.values_of(number), is_log=False), pa.float64(), views.valid_of(number))


@scalar("lgamma(number DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb")
def lgamma(number: pa.Array) -> pa.Array:
    """The logarithm of the gamma function; NaN at whole numbers below 1.

    >>> lgamma(2)
    0.0
    """
    return views.to_array(gammas(views.values_of(number), is_log=True), pa.float64(), views.valid_of(number))


# --- constants and chance --------------------------------------------------------------------------------------------


@scalar("pi() -> DOUBLE", group=GROUP)
def pi() -> pa.Scalar:
    """The ratio of a circle's circumference to its diameter.

    >>> pi()
    3.141592653589793
    """
    return pa.scalar(math.pi)


@scalar("e() -> DOUBLE", group=GROUP, origin="spark")
def e() -> pa.Scalar:
    """The base of natural logarithms.

    >>> e()
    2.718281828459045
    """
    return pa.scalar(math.e)


@scalar("random() -> DOUBLE", group=GROUP, volatility="volatile", takes_call=True, aliases=("rand",))
def random_(*, call: CallInfo) -> pa.Array:
    """A number from 0 to 1, another one in each row.

    >>> random() BETWEEN 0 AND 1
    true
    """
    return pc.random(call.rows)


# --- integers --------------------------------------------------------------------------------------------------------


@scalar("gcd(a BIGINT, b BIGINT) -> BIGINT", group=GROUP)
def gcd(a: Value, b: Value) -> pa.Array:
    """The greatest common divisor.

    >>> gcd(48, 18)
    6

    22003  it is out of range
    """
    divisors = _integer_function(np.gcd, a, b)
    if pc.any(pc.less(divisors, 0)).as_py():
        raise NumericOutOfRange("bigint out of range")
    return divisors


def _common_decimal(types: tuple[Type, ...]) -> Type:
    return common_numeric(types[0], types[1])


@per_row
def _whole_units(run: Callable[[int, int], int], a: Value, b: Value, call: CallInfo) -> pa.Array:
    """A function of two whole numbers over decimals, counted in the smallest unit that both have.

    Goes row by row where digits pass 64 bits: no column operation divides such decimals so.
    """
    type = call.returns
    assert isinstance(type, Decimal)
    one, two = (
        decimals.scaled(cast(column, source, type)) for column, source in zip(columns(a, b), call.types, strict=True)
    )
    assert one is not None and two is not None
    valid = both_valid(one.valid, two.valid)
    if not one.is_wide and not two.is_wide:
        left, right = np.asarray(one.values), np.asarray(two.values)
        # The least common multiple is at most the product.
        if run is math.gcd or np.abs(left.astype(np.float64) * right).max(initial=0) < SHORT_PRODUCT_MAX:
            short = np.gcd(left, right) if run is math.gcd else np.lcm(left, right)
            return decimals.to_value(Scaled(short, valid), type, may_pass=True)
    answers = [run(left, right) for left, right in zip(one.integers(), two.integers(), strict=True)]
    if any(abs(answer) >= 10**type.precision for answer in answers):
        raise decimals.out_of_range(type)
    return to_array([answer if valid is None or valid[row] else None for row, answer in enumerate(answers)], type)


@scalar("gcd(a DECIMAL, b DECIMAL) -> DECIMAL", group=GROUP, returns=_common_decimal, takes_call=True)
@per_row
def decimal_gcd(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The greatest number that goes a whole number of times into both.

    Goes row by row where digits pass 64 bits: no column operation divides such decimals so.

    >>> gcd(15.3, 2.9)
    0.1
    """
    return _whole_units(math.gcd, a, b, call)


@scalar("lcm(a DECIMAL, b DECIMAL) -> DECIMAL", group=GROUP, returns=_common_decimal, takes_call=True)
@per_row
def decimal_lcm(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The least number into which both go a whole number of times.

    Goes row by row where digits pass 64 bits: no column operation divides such decimals so.

    >>> lcm(1.5, 2.5)
    7.5
    """
    return _whole_units(math.lcm, a, b, call)


@scalar("lcm(a BIGINT, b BIGINT) -> BIGINT", group=GROUP)
def lcm(a: Value, b: Value) -> pa.Array:
    """The least common multiple.

    >>> lcm(4, 6)
    12

    22003  it is out of range
    """
    one, two = columns(a, b)
    left, right = views.values_of(one), views.values_of(two)
    divisor = np.maximum(np.gcd(left, right), 1)
    factors = [views.to_array(np.abs(left // divisor), pa.int64(), views.valid_of(one)),
               views.to_array(np.abs(right), pa.int64(), views.valid_of(two))]  # fmt: skip
    try:
        product = pc.multiply_checked(*factors)
    except pa.ArrowInvalid:
        raise NumericOutOfRange("bigint out of range") from None
    if pc.any(pc.less(product, 0)).as_py():  # the least number has no absolute value
        raise NumericOutOfRange("bigint out of range")
    return product


def _integer_function(run: Callable[..., Any], a: Value, b: Value) -> pa.Array:
    one, two = columns(a, b)
    left, right = views.valid_of(one), views.valid_of(two)
    valid = right if left is None else left if right is None else left & right
    return views.to_array(run(views.values_of(one), views.values_of(two)), pa.int64(), valid)


@scalar("factorial(number BIGINT) -> BIGINT", group=GROUP, aliases=("!",))
def factorial(number: pa.Array) -> pa.Array:
    """The product of all whole numbers from 1 on.

    >>> factorial(5)
    120

    22003  a number below 0 or above 20
    """
    table = np.array([math.factorial(item) for item in range(21)], np.int64)
    live = pc.fill_null(number, 0)
    if len(live) and not 0 <= pc.min(live).as_py() <= pc.max(live).as_py() <= 20:
        raise NumericOutOfRange("factorial takes numbers from 0 to 20")
    return views.to_array(table[views.values_of(live)], pa.int64(), views.valid_of(number))


@scalar("div(a NUMERIC, b NUMERIC) -> BIGINT", group=GROUP, origin="postgres", takes_call=True)
def div(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The whole part of a quotient.

    >>> div(7, 2)
    3

    22012  division by zero
    """
    scales = [type.scale if isinstance(type, Decimal) else 0 for type in call.types]
    if any(isinstance(type, Float) for type in call.types):
        raise InvalidParameter("div takes integers and decimals")
    one, two = (decimals.scaled(value) for value in columns(a, b))
    assert one is not None and two is not None
    whole = decimals.divide(one, two, raised=scales[1] - scales[0])
    if whole.is_wide:
        raise NumericOutOfRange("bigint out of range")
    return views.to_array(whole.values, pa.int64(), whole.valid)  # type: ignore[arg-type]


@scalar("pmod(a INTEGER, b INTEGER) -> INTEGER", group=GROUP, origin="spark", returns=widest_integer, takes_call=True)
def pmod(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """What division leaves over, with the divisor's sign; NULL for division by zero.

    >>> pmod(-7, 3)
    2
    """
    one, two = columns(a, b)
    divisors = views.values_of(two)
    rest = _integer_function(lambda left, right: np.mod(left, np.where(right == 0, 1, right)), one, two)
    missing = views.to_boolean(divisors == 0)
    return pc.if_else(missing, pa.scalar(None, pa.int64()), rest).cast(call.returns.physical)


@scalar("bit_count(number BIGINT) -> BIGINT", group="bits")
def bit_count(number: pa.Array) -> pa.Array:
    """How many bits are set.

    >>> bit_count(7)
    3
    """
    bits = np.bitwise_count(views.values_of(number).view(np.uint64))
    return views.to_array(bits, pa.int64(), views.valid_of(number))


@scalar("width_bucket(number DOUBLE, low DOUBLE, high DOUBLE, count INT) -> INT", group=GROUP, origin="postgres")
def width_bucket(number: Value, low: Value, high: Value, count: Value) -> pa.Array:
    """Which of ``count`` equal bins from ``low`` to ``high`` holds the number; 0 below, ``count + 1`` above.

    >>> width_bucket(5.35, 0.024, 10.06, 5)
    3
    """

    given = columns(number, low, high, count)
    valid = all_valid(*given)
    known = np.ones(len(given[0]), bool) if valid is None else valid.astype(bool)
    item, first, last, bins = (views.values_of(column).astype(np.float64) for column in given)
    if np.any(known & ((bins < 1) | (first == last) | np.isnan(item))):
        raise InvalidParameter("width_bucket takes a count above 0 and bounds that differ")
    with np.errstate(all="ignore"):
        place = (item - first) / (last - first)
        inside = np.clip(np.trunc(place * bins), 0, bins - 1) + 1
    found = np.where(place < 0, 0, np.where(place >= 1, bins + 1, inside))
    return views.to_array(np.where(known, found, 0).astype(np.int32), pa.int32(), valid)
