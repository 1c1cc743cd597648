"""Comparisons with SQL's meaning: NaN equals itself and is the greatest number, 0.0 equals -0.0, a month has 30 days.

Both sides are of one SQL type. Either may be a constant; text must not be a dictionary.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec import decimals
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.kernels import views
from lake.exec.kernels.nested import DAYS_OF_MONTH, encoded
from lake.types import Decimal, Float, Interval, List, Map, Null, Struct, Type

_ARROW: Final = {
    "=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
}  # fmt: skip
"""Names of pyarrow's functions; which are not looked up before one is called (``lake.__main__``)."""
NANOSECONDS_OF_DAY: Final = 86_400_000_000_000


def compare(op: str, left: Value, right: Value, type: Type) -> Value:
    """``left op right`` as BOOLEAN; NULL where a side is, except for the two ``is [not] distinct``."""
    if op.startswith("is "):
        return _distinct(op, left, right, type)
    match type:
        case Null():
            rows = next((len(side) for side in (left, right) if isinstance(side, pa.Array)), 1)
            return pa.nulls(rows, pa.bool_())
        case Float():
            return _compare_floats(op, left, right)
        case Decimal():
            return _compare_decimals(op, left, right, type)
        case Interval():
            return _compare_intervals(op, left, right)
        case List() | Struct() | Map():
            return _compare_nested(op, left, right)
        case _:
            return _arrow(op, left, right)


def _arrow(op: str, left: Any, right: Any) -> Any:
    return getattr(pc, _ARROW[op])(left, right)


def _distinct(op: str, left: Value, right: Value, type: Type) -> Value:
    equal = compare("=", left, right, type)
    if op == "is distinct":
        neither = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.invert(pc.or_(pc.fill_null(equal, False), neither))
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(equal, False), both)


def _compare_floats(op: str, left: Value, right: Value) -> Value:
    nan_left, nan_right = _nans(left), _nans(right)
    plain: Value = _arrow(op, left, right)
    if nan_left is None and nan_right is None:
        return plain
    one = nan_left if nan_left is not None else pa.scalar(False)
    two = nan_right if nan_right is not None else pa.scalar(False)
    of_nans = _arrow(op, pc.cast(one, pa.int8()), pc.cast(two, pa.int8()))
    # A side that is never NaN says nothing of its NULLs; the plain answer does.
    decided = pc.and_(pc.or_(one, two), pc.is_valid(plain))
    return pc.if_else(decided, of_nans, plain)


def _nans(value: Value) -> Value | None:
    """Where ``value`` is NaN; None where it never is."""
    if isinstance(value, pa.Scalar):
        number = value.as_py()
        return pa.scalar(True) if number is not None and number != number else None
    if not np.isnan(views.values_of(value)).any():
        return None
    return pc.is_nan(value)


def _compare_decimals(op: str, left: Value, right: Value, type: Decimal) -> Value:
    if left.type != right.type:
        left, right = decimals.widen(left, type), decimals.widen(right, type)
    return _arrow(op, left, right)


def interval_length(value: Value) -> Value:
    """How long intervals are in nanoseconds, a month of 30 days: int64, or decimal128 where one is too long for that."""
    if isinstance(value, pa.Scalar):
        return interval_length(as_array(value, 1))[0]
    words = views.values_of(value)
    days = (words[:, 0] >> 32) + (words[:, 0].astype(np.int32).astype(np.int64)) * DAYS_OF_MONTH
    valid = views.valid_of(value)
    if days.size == 0 or (np.abs(days).max() < 100_000 and np.abs(words[:, 1]).max() < 2**61):
        return views.to_array(days * NANOSECONDS_OF_DAY + words[:, 1], pa.int64(), valid)
    of_days = decimals.multiply(decimals.Scaled(days), decimals.Scaled(NANOSECONDS_OF_DAY))
    length = decimals.add(of_days, decimals.Scaled(np.ascontiguousarray(words[:, 1]), valid))
    return decimals.widen(decimals.to_value(length, Decimal(38, 0)), Decimal(38, 0))


def _compare_intervals(op: str, left: Value, right: Value) -> Value:
    one, two = interval_length(left), interval_length(right)
    if one.type != two.type:
        one, two = decimals.widen(one, Decimal(38, 0)), decimals.widen(two, Decimal(38, 0))
    return _arrow(op, one, two)


def _compare_nested(op: str, left: Value, right: Value) -> Value:
    """By their bytes: NULL items equal each other and are the greatest."""
    rows = next((len(side) for side in (left, right) if isinstance(side, pa.Array)), 1)
    return _arrow(op, encoded(as_array(left, rows)), encoded(as_array(right, rows)))
