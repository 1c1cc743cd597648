"""Values of Arrow types that SQL's types hold: what their units, sizes and signs leave of a value.

    CAST(-1 AS UINT8)                                      22003  value -1 is out of range for type uint8
    arrow_cast('2024-01-01T00:00:00.5', 'Timestamp(s)')    2024-01-01T00:00:00

The values stay those of the SQL type (``Type.spelled``), so nothing else of the engine knows of them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import DatatypeMismatch, DatetimeOverflow, LakeError, NumericOutOfRange
from lake.exec.kernels import views
from lake.types import Bytes, Decimal, Float, Integer, List, Time, Timestamp, Type

NANOSECOND_RANGE: Final = ((-(1 << 63)) // 1000 + 1, ((1 << 63) - 1) // 1000)
"""Microseconds between 1677 and 2262, which nanoseconds in 64 bits reach."""

_UNIT_MICROS: Final = {"s": 1_000_000, "ms": 1_000, "µs": 1, "us": 1}
_INTEGER_MAX: Final = {"UInt8": (1 << 8) - 1, "UInt16": (1 << 16) - 1, "UInt32": (1 << 32) - 1, "UInt64": (1 << 64) - 1}


def unit_of(type: Type) -> str:
    """The unit that a moment's or duration's type is spelled with; empty where it is spelled with none."""
    return type.spelled.partition("(")[2].partition(")")[0].partition(",")[0]


def fit(value: pa.Array, target: Type, *, is_try: bool) -> pa.Array:
    """``value``, of a type equal to ``target``, as the Arrow type that ``target`` is spelled as holds it.

    Moments are cut to their unit, floats rounded to half precision; with ``is_try`` what does not fit is NULL.
    22003  a number out of the type's range     22008  a moment out of it     42804  bytes or a list of another size
    """
    if not target.spelled or isinstance(value, pa.Scalar) or value.null_count == len(value):
        return value
    match target:
        case Integer() | Decimal() if target.spelled in _INTEGER_MAX:
            return _unsigned(value, target, is_try=is_try)
        case Float() if target.spelled == "Float16":
            with np.errstate(over="ignore"):
                halves = views.values_of(value).astype(np.float16).astype(np.float32)
            return views.to_array(halves, pa.float32(), views.valid_of(value))
        case Timestamp() | Time():
            return _cut(value, target, is_try=is_try)
        case Bytes() if target.spelled.startswith("FixedSizeBinary"):
            size = int(unit_of(target))
            return _sized(value, pc.binary_length(value), size, target, is_try=is_try)
        case List() if target.spelled.startswith("FixedSizeList"):
            size = int(unit_of(target).partition(" ")[0])
            return _sized(value, pc.list_value_length(value), size, target, is_try=is_try)
    return value


def _unsigned(value: pa.Array, target: Type, *, is_try: bool) -> pa.Array:
    limit = _INTEGER_MAX[target.spelled]
    if isinstance(target, Decimal):
        exact = value if pa.types.is_decimal(value.type) else value.cast(pa.int64())
        high = pa.scalar(limit, pa.decimal128(20, 0)) if pa.types.is_decimal(value.type) else pa.scalar((1 << 63) - 1)
        bad = pc.or_(pc.less(exact, pa.scalar(0).cast(exact.type)), pc.greater(exact, high))
    else:
        bad = pc.or_(pc.less(value, 0), pc.greater(value, limit))

    def refusal(row: int) -> LakeError:
        return NumericOutOfRange(f"value {value[row].as_py()} is out of range for type {target.spelled.lower()}")

    return _without(value, bad, refusal, is_try=is_try)


def _cut(value: pa.Array, target: Type, *, is_try: bool) -> pa.Array:
    unit = "ms" if target.spelled == "Date64" else unit_of(target)
    if unit == "ns" and isinstance(target, Timestamp):
        micros = views.values_of(value)
        low, high = NANOSECOND_RANGE
        bad = views.to_boolean((micros < low) | (micros > high))
        return _without(value, bad, lambda row: DatetimeOverflow("timestamp out of range of nanoseconds"), is_try=is_try)
    size = _UNIT_MICROS.get(unit, 1)
    if size == 1:
        return value
    micros = views.values_of(value)
    return views.to_array(micros // size * size, value.type, views.valid_of(value))


def _sized(value: pa.Array, lengths: pa.Array, size: int, target: Type, *, is_try: bool) -> pa.Array:
    bad = pc.not_equal(lengths, size)
    return _without(
        value, bad, lambda row: DatatypeMismatch(f"a value of {lengths[row]} does not fit {target.spelled}"), is_try=is_try
    )


def _without(value: pa.Array, bad: pa.Array, refusal: Any, *, is_try: bool) -> pa.Array:
    """``value`` with NULL where ``bad``; the refusal of the first such row where that is no TRY_CAST."""
    refused = pc.fill_null(bad, False)
    if not pc.any(refused).as_py():
        return value
    if not is_try:
        raise refusal(pc.index(refused, True).as_py())
    return pc.if_else(refused, pa.scalar(None, value.type), value)


def number_as_moment(whole: pa.Array, target: Type) -> pa.Array:
    """Integers that count the unit of a moment's type, as such moments: nanoseconds are cut to microseconds."""
    unit = "ms" if target.spelled == "Date64" else unit_of(target)
    if unit == "ns":
        micros = views.values_of(whole) // 1000
        return views.to_array(micros, pa.int64(), views.valid_of(whole)).cast(target.physical)
    try:
        return pc.multiply_checked(whole, _UNIT_MICROS.get(unit, 1)).cast(target.physical)
    except pa.ArrowInvalid:
        raise DatetimeOverflow("timestamp out of range") from None


DURATION_PLACES: Final = {"s": 0, "ms": 3, "µs": 6, "ns": 9}


def duration_text(nanoseconds: int, unit: str) -> str:
    """``0 days 0 hours 0 mins 0.123 secs``: all parts, and as many digits as the unit has."""
    sign = "-" if nanoseconds < 0 else ""
    places = DURATION_PLACES.get(unit, 9)
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    words = [f"{sign if part else ''}{part}" for part in (days, hours, minutes)]
    fraction = f".{rest // 10 ** (9 - places):0{places}}" if places else ""
    negative = sign if seconds % 60 or rest else ""
    return f"{words[0]} days {words[1]} hours {words[2]} mins {negative}{seconds % 60}{fraction} secs"




def iso_duration(nanoseconds: int) -> str:
    """A length of time as ISO 8601 writes it in seconds: ``PT1.5S``."""
    sign = "-" if nanoseconds < 0 else ""
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{sign}PT{seconds}{fraction}S"
