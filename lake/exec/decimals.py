"""Decimals as scaled integers: int64 where the values fit, whatever the declared precision, and two words otherwise.

    1 - l_discount           DECIMAL(23,2)   int64, because the batch's values are small
    price * (1 - discount)   DECIMAL(38,4)   int64 as long as largest times largest stays below 2**63

A *narrow* decimal is a pa.int64 array (or scalar) of scaled values for a DECIMAL of any precision. Expressions pass narrow
decimals on; ``widen`` gives the physical type where a batch needs it. Values past int64 are computed in two words.
"""

from __future__ import annotations

from decimal import Context
from decimal import Decimal as PythonDecimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.errors import DivisionByZero, NumericOutOfRange
from lake.exec.kernels import decimals as kernel
from lake.exec.kernels import views
from lake.exec.kernels.views import ALL_VALID
from lake.types import DECIMAL_DIGITS_MAX, Decimal

Value: TypeAlias = "pa.Array | pa.Scalar"
Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

INT64_MAX: Final = 2**63 - 1
_EXACT: Final = Context(prec=80)
WIDE_MAX: Final = 2**127 - 1


class Scaled(Struct, frozen=True):
    """Scaled integers of a column, or of a constant.

    values   int64[rows], int64[rows, 2] of two words each (``kernels.decimals``), or a Python integer for a constant
    valid    uint8[rows], None where there are no NULLs; what stands in ``values`` where a value is NULL is undefined
    """

    values: Numbers | int
    valid: Numbers | None = None

    @property
    def is_wide(self) -> bool:
        """Whether the values take two words because some do not fit one."""
        return not isinstance(self.values, int) and self.values.ndim == 2

    @property
    def mask(self) -> Numbers:
        """Validity as kernels take it."""
        return ALL_VALID if self.valid is None else self.valid

    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value; of wide ones those that two words can hold."""
        if isinstance(self.values, int):
            return self.values, self.values
        if self.is_wide:
            return -WIDE_MAX, WIDE_MAX
        if self.values.size == 0:
            return 0, 0
        return int(self.values.min()), int(self.values.max())

    def integers(self) -> list[int]:
        """The values as Python integers."""
        if isinstance(self.values, int):
            return [self.values]
        return kernel.integers_of(self.values) if self.is_wide else self.values.tolist()


def scaled(value: Value) -> Scaled | None:
    """The scaled integers of an integer, narrow or decimal128 value; None for a constant NULL."""
    if isinstance(value, pa.Scalar):
        number = integer_of(value)
        return None if number is None else Scaled(number)
    valid = views.valid_of(value)
    if pa.types.is_decimal128(value.type):
        words = views.values_of(value)
        narrow = kernel.narrow(words, ALL_VALID if valid is None else valid)
        return Scaled(words if narrow is None else narrow, valid)
    return Scaled(views.values_of(value).astype(np.int64, copy=False), valid)


def integer_of(value: pa.Scalar) -> int | None:
    """The scaled integer of a constant."""
    number = value.as_py()
    if isinstance(number, PythonDecimal):
        return int(number.scaleb(value.type.scale, _EXACT))
    return None if number is None else int(number)


def python_decimal(number: int, scale: int) -> PythonDecimal:
    """A scaled integer as the decimal it means."""
    return PythonDecimal(number).scaleb(-scale, _EXACT)


def to_value(result: Scaled, type: Decimal, *, may_pass: bool = False) -> pa.Array:
    """An array of ``result``, narrow where it fits.

    may_pass  the digits of int64 values must be checked too: they are no result of arithmetic, whose types make room
    22003  a value with more digits than ``type`` has
    """
    values = result.values
    assert not isinstance(values, int)
    if not result.is_wide:
        if may_pass and type.is_short and _passes(result, 10**type.precision - 1):
            raise out_of_range(type)
        return views.to_array(values, pa.int64(), result.valid)
    if kernel.first_beyond(values, type.precision, result.mask) >= 0:
        raise out_of_range(type)
    narrow = kernel.narrow(values, result.mask)
    if narrow is not None:
        return views.to_array(narrow, pa.int64(), result.valid)
    return views.to_array(values, type.arrow, result.valid)


def _passes(value: Scaled, limit: int) -> bool:
    """Whether an int64 value's magnitude passes ``limit``."""
    low, high = value.bounds()
    if -limit <= low and high <= limit:
        return False
    return value.valid is None or bool(((np.abs(value.values) > limit) & (value.valid == 1)).any())


def widen(value: Value, type: Decimal) -> Value:
    """``value`` in the physical type of ``type``.

    22003  a decimal128 that does not fit a short decimal
    """
    if value.type == type.physical:
        return value
    if isinstance(value, pa.Scalar):
        number = integer_of(value)
        return pa.scalar(None, type.physical) if number is None else scalar(number, type)
    if pa.types.is_decimal128(value.type):
        if not type.is_short:
            return value.cast(type.arrow) if value.type != type.arrow else value
        found = scaled(value)
        assert found is not None and not isinstance(found.values, int)
        if found.is_wide:
            raise out_of_range(type)
        return views.to_array(found.values, pa.int64(), found.valid)
    return views.to_array(kernel.wide(views.values_of(value)), type.arrow, views.valid_of(value))


def scalar(number: int, type: Decimal) -> pa.Scalar:
    """A constant of ``type.physical``."""
    if type.is_short:
        return pa.scalar(number, pa.int64())
    return pa.scalar(python_decimal(number, type.scale), type.arrow)


def out_of_range(type: Decimal) -> NumericOutOfRange:
    """The error of a value with too many digits."""
    return NumericOutOfRange(
        "numeric field overflow",
        detail=f"A field with precision {type.precision}, scale {type.scale} must round to an absolute value less than "
        f"10^{type.precision - type.scale}.",
    )


# --- arithmetic ------------------------------------------------------------------------------------------------------


def scale_up(value: Scaled, digits: int) -> Scaled:
    """``value`` times ten to the power of ``digits``, which is not negative."""
    return value if digits == 0 else multiply(value, Scaled(10**digits))


def add(left: Scaled, right: Scaled) -> Scaled:
    """The sum of values of one scale."""
    (low, high), (other_low, other_high) = left.bounds(), right.bounds()
    if _fit(low + other_low, high + other_high) and _plain(left, right):
        return Scaled(_operand(left) + _operand(right), _valid(left, right))
    return _add_words(left, right, subtracts=False)


def subtract(left: Scaled, right: Scaled) -> Scaled:
    """The difference of values of one scale."""
    (low, high), (other_low, other_high) = left.bounds(), right.bounds()
    if _fit(low - other_high, high - other_low) and _plain(left, right):
        return Scaled(_operand(left) - _operand(right), _valid(left, right))
    return _add_words(left, right, subtracts=True)


def multiply(left: Scaled, right: Scaled, *, drop: int = 0) -> Scaled:
    """The product without its last ``drop`` digits, rounded half away from zero; scales add up."""
    corners = [one * two for one in left.bounds() for two in right.bounds()]
    if _fit(min(corners), max(corners)) and _plain(left, right):
        return round_down(Scaled(_operand(left) * _operand(right), _valid(left, right)), drop, half_up=True)
    return _multiply_words(left, right, Scaled(10**drop), rounds=True)


def divide(left: Scaled, right: Scaled, *, raised: int = 0) -> Scaled:
    """The quotient of ``left`` with ``raised`` more digits, without its fraction; fewer digits where it is negative.

    22012  a divisor of zero
    """
    if raised < 0:
        right = scale_up(right, -raised)
    unit = 10 ** max(raised, 0)
    low, high = left.bounds()
    if unit <= INT64_MAX and _fit(low * unit, high * unit) and _plain(left, right):
        top, bottom = _operand(left) * unit, _operand(right)
        valid = _valid(left, right)
        bottom = _without_zeros(bottom, valid)
        magnitude = np.abs(top) // np.abs(bottom)
        return Scaled(np.where((top < 0) != (bottom < 0), -magnitude, magnitude), valid)
    return _multiply_words(left, Scaled(unit), right, rounds=False)


def remainder(left: Scaled, right: Scaled) -> Scaled:
    """What is left of values of one scale; it has the dividend's sign.

    22012  a divisor of zero
    """
    if _plain(left, right):
        valid = _valid(left, right)
        bottom = _without_zeros(_operand(right), valid)
        # By 1 in place of -1, which leaves nothing over either: the least of integers has no quotient by -1.
        return Scaled(np.fmod(_operand(left), np.where(bottom == -1, 1, bottom)), valid)
    return subtract(left, multiply(divide(left, right), right))


def round_down(value: Scaled, digits: int, *, half_up: bool) -> Scaled:
    """``value`` without its last ``digits`` digits: cut, or with ``half_up`` rounded half away from zero."""
    if digits <= 0:
        return value
    unit = 10**digits
    low, high = value.bounds()
    if digits > DECIMAL_DIGITS_MAX:
        return Scaled(np.zeros(_rows(value), np.int64), value.valid)
    if unit <= INT64_MAX and _fit(low - unit, high + unit) and not value.is_wide:
        numbers = _operand(value)
        magnitude = (np.abs(numbers) + (unit // 2 if half_up else 0)) // unit
        return Scaled(np.where(numbers < 0, -magnitude, magnitude), value.valid)
    return _multiply_words(value, Scaled(1), Scaled(unit), rounds=half_up)


def _rows(*values: Scaled) -> int:
    return next((len(value.values) for value in values if not isinstance(value.values, int)), 1)


def _fit(low: int, high: int) -> bool:
    return low >= -INT64_MAX and high <= INT64_MAX


def _plain(left: Scaled, right: Scaled) -> bool:
    """Whether both sides are int64, or constants that fit it."""
    return not (left.is_wide or right.is_wide) and all(
        _fit(side.values, side.values) for side in (left, right) if isinstance(side.values, int)
    )


def _operand(value: Scaled) -> Numbers:
    return np.array([value.values], np.int64) if isinstance(value.values, int) else value.values


def _words(value: Scaled) -> Numbers:
    return kernel.wide_constant(value.values) if isinstance(value.values, int) else kernel.wide(value.values)


def _valid(left: Scaled, right: Scaled) -> Numbers | None:
    return left.valid if right.valid is None else right.valid if left.valid is None else left.valid & right.valid


def _without_zeros(divisors: Numbers, valid: Numbers | None) -> Numbers:
    """The divisors with 1 where the row is NULL anyway; 22012 for a zero elsewhere."""
    zero = divisors == 0
    if not zero.any():
        return divisors
    if valid is None or (zero & (valid == 1)).any():
        raise DivisionByZero("division by zero")
    return np.where(zero, 1, divisors)


def _add_words(left: Scaled, right: Scaled, *, subtracts: bool) -> Scaled:
    rows, valid = _rows(left, right), _valid(left, right)
    mask = ALL_VALID if valid is None else valid
    words, bad = kernel.add(_words(left), _words(right), rows, subtracts=subtracts, valid=mask)
    if bad >= 0:
        raise out_of_range(Decimal(DECIMAL_DIGITS_MAX, 0))
    return Scaled(words, valid)


def _multiply_words(left: Scaled, right: Scaled, divisor: Scaled, *, rounds: bool) -> Scaled:
    """left * right / divisor in two words."""
    rows = _rows(left, right, divisor)
    valid = _valid(Scaled(0, _valid(left, right)), divisor)
    mask = ALL_VALID if valid is None else valid
    words, bad = kernel.multiply_divide(_words(left), _words(right), _words(divisor), rows, rounds=rounds, valid=mask)
    if bad <= kernel.DIVIDED_BY_ZERO:
        raise DivisionByZero("division by zero")
    if bad >= 0:
        raise out_of_range(Decimal(DECIMAL_DIGITS_MAX, 0))
    return Scaled(words, valid)
