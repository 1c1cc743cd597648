"""Decimals as scaled integers: int64 where the values fit, whatever the declared precision, and two words otherwise.

    1 - l_discount           DECIMAL(23,2)   int64, because the batch's values are small
    price * (1 - discount)   DECIMAL(38,4)   int64 as long as largest times largest stays below 2**63

A *narrow* decimal is a pa.int64 array (or scalar) of scaled values for a DECIMAL of any precision. Expressions pass narrow
decimals on; ``widen`` gives the physical type where a batch needs it. Values past int64 are computed on Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context
from decimal import Decimal as PythonDecimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from lake.errors import DivisionByZero, NumericOutOfRange
from lake.exec.kernels import views
from lake.types import Decimal

Value: TypeAlias = "pa.Array | pa.Scalar"
Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

INT64_MAX: Final = 2**63 - 1
_EXACT: Final = Context(prec=80)
_WORD: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Scaled:
    """Scaled integers of a column, or of a constant.

    values   int64[rows], object[rows] of Python integers, or a Python integer for a constant
    valid    uint8[rows], None where there are no NULLs; what stands in ``values`` where a value is NULL is undefined
    """

    values: Numbers | int
    valid: Numbers | None = None

    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value."""
        if isinstance(self.values, int):
            return self.values, self.values
        if self.values.size == 0:
            return 0, 0
        return int(self.values.min()), int(self.values.max())

    @property
    def is_wide(self) -> bool:
        """Whether the values are Python integers because some do not fit int64."""
        return not isinstance(self.values, int) and self.values.dtype == object


def scaled(value: Value) -> Scaled | None:
    """The scaled integers of an integer, narrow or decimal128 value; None for a constant NULL."""
    if isinstance(value, pa.Scalar):
        number = integer_of(value)
        return None if number is None else Scaled(number)
    valid = views.valid_of(value)
    if pa.types.is_decimal128(value.type):
        return Scaled(_wide_integers(views.values_of(value)), valid)
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


def _wide_integers(words: Numbers) -> Numbers:
    low, high = words[:, 0], words[:, 1]
    if np.array_equal(high, low >> 63):
        return np.ascontiguousarray(low)
    whole: Numbers = high.astype(object) * _WORD + np.ascontiguousarray(low).view(np.uint64).astype(object)
    return whole


def to_value(result: Scaled, type: Decimal) -> pa.Array:
    """An array of ``result``, narrow where it fits.

    22003  a value with more digits than ``type`` has
    """
    values = result.values
    assert not isinstance(values, int)
    if values.dtype != object:
        return views.to_array(values, pa.int64(), result.valid)
    if result.valid is not None:
        values = np.where(result.valid == 1, values, 0)
    low, high = Scaled(values).bounds()
    if max(high, -low) >= 10**type.precision:
        raise out_of_range(type)
    if low >= -INT64_MAX and high <= INT64_MAX:
        return views.to_array(values.astype(np.int64), pa.int64(), result.valid)
    words = np.empty((values.size, 2), np.int64)
    words[:, 0] = (values & (_WORD - 1)).astype(np.uint64).view(np.int64)
    words[:, 1] = (values >> 64).astype(np.int64)
    return views.to_array(words, type.arrow, result.valid)


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
        values = _wide_integers(views.values_of(value))
        if values.dtype == object:
            raise out_of_range(type)
        return views.to_array(values, pa.int64(), views.valid_of(value))
    values = views.values_of(value)
    words = np.empty((values.size, 2), np.int64)
    words[:, 0] = values
    np.right_shift(words[:, 0], 63, out=words[:, 1])
    return views.to_array(words, type.arrow, views.valid_of(value))


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
    return _combine(left, right, np.add, lambda a, b: (a[0] + b[0], a[1] + b[1]))


def subtract(left: Scaled, right: Scaled) -> Scaled:
    """The difference of values of one scale."""
    return _combine(left, right, np.subtract, lambda a, b: (a[0] - b[1], a[1] - b[0]))


def multiply(left: Scaled, right: Scaled) -> Scaled:
    """The product; scales add up."""

    def product_bounds(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        corners = [x * y for x in a for y in b]
        return min(corners), max(corners)

    return _combine(left, right, np.multiply, product_bounds)


def divide(left: Scaled, right: Scaled) -> Scaled:
    """The quotient without its fraction.

    22012  a divisor of zero
    """
    left, right = _against_zero(left, right)
    return _combine(left, right, _quotient, lambda a, b: (min(a[0], -a[1]), max(a[1], -a[0])))


def remainder(left: Scaled, right: Scaled) -> Scaled:
    """What is left of values of one scale; it has the dividend's sign.

    22012  a divisor of zero
    """
    left, right = _against_zero(left, right)
    return _combine(left, right, _remainder, lambda a, b: a)


def round_down(value: Scaled, digits: int, *, half_up: bool) -> Scaled:
    """``value`` without its last ``digits`` digits: cut, or with ``half_up`` rounded half away from zero."""
    if digits <= 0:
        return value
    unit = 10**digits
    if isinstance(value.values, int):
        return Scaled(_rounded(value.values, unit, half_up))
    if unit > INT64_MAX and not value.is_wide:
        value = Scaled(value.values.astype(object), value.valid)
    numbers = value.values
    assert not isinstance(numbers, int)
    low, high = value.bounds()
    if half_up and not value.is_wide and max(high, -low) > INT64_MAX - unit:
        numbers = numbers.astype(object)
    if half_up:
        half = unit // 2
        numbers = numbers + np.where(numbers < 0, -half, half)
    return Scaled(_quotient(numbers, unit), value.valid)


def _rounded(number: int, unit: int, half_up: bool) -> int:
    magnitude = (abs(number) + (unit // 2 if half_up else 0)) // unit
    return -magnitude if number < 0 else magnitude


def _combine(left: Scaled, right: Scaled, run: Any, bounds: Any) -> Scaled:
    low, high = bounds(left.bounds(), right.bounds())
    fits = low >= -INT64_MAX and high <= INT64_MAX
    one, two = left.values, right.values
    if left.is_wide or right.is_wide or not fits:
        one, two = _as_objects(one), _as_objects(two)
    if isinstance(one, int) and isinstance(two, int):
        one, two = np.array([one], object), np.array([two], object)
    elif (isinstance(one, int) and not fits_int64(one)) or (isinstance(two, int) and not fits_int64(two)):
        one, two = _as_objects(one), _as_objects(two)
    valid = left.valid if right.valid is None else right.valid if left.valid is None else left.valid & right.valid
    return Scaled(run(one, two), valid)


def fits_int64(number: int) -> bool:
    """Whether an integer is one of int64, the smallest left out."""
    return -INT64_MAX <= number <= INT64_MAX


def _as_objects(values: Numbers | int) -> Numbers | int:
    return values if isinstance(values, int) or values.dtype == object else values.astype(object)


def _against_zero(left: Scaled, right: Scaled) -> tuple[Scaled, Scaled]:
    """Both sides, with 1 for divisors of rows that are NULL anyway."""
    divisors = right.values
    if isinstance(divisors, int):
        if divisors == 0:
            if left.valid is not None and not left.valid.any():
                return left, Scaled(1)
            raise DivisionByZero("division by zero")
        return left, right
    zero = divisors == 0
    if not zero.any():
        return left, right
    valid = left.valid if right.valid is None else right.valid if left.valid is None else left.valid & right.valid
    if valid is None or (zero & (valid == 1)).any():
        raise DivisionByZero("division by zero")
    return left, Scaled(np.where(zero, 1, divisors), right.valid)


def _quotient(left: Any, right: Any) -> Any:
    """Division that cuts: numpy's rounds toward minus infinity."""
    magnitude = np.abs(left) // np.abs(right)
    return np.where((left < 0) != (right < 0), -magnitude, magnitude)


def _remainder(left: Any, right: Any) -> Any:
    magnitude = np.abs(left) % np.abs(right)
    return np.where(left < 0, -magnitude, magnitude)
