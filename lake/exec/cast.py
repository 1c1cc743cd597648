"""Casts with SQL's meaning: what does not fit is refused and named, and TRY_CAST answers NULL for it.

    CAST(2.7 AS INT)       2          a fraction is cut
    CAST(300 AS TINYINT)   22003      value 300 is out of range for type tinyint
    CAST('abc' AS INT)     22P02      invalid input syntax for type integer: "abc"
    TRY_CAST('abc' AS INT) NULL

A cast between types answers the physical type of its target; decimals may be narrow (``exec.decimals``). Casts from and to
text are in ``cast_text``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.arrow_names import is_spelled, zone_of_type
from lake.errors import DatatypeMismatch, DatetimeOverflow, NumericOutOfRange
from lake.exec import decimals
from lake.exec.cast_text import from_text, read_uuids, split_list, to_text
from lake.exec.constants import as_array, list_array, list_parts, map_array, map_entries, struct_array
from lake.exec.decimals import Scaled, Value
from lake.exec.kernels import views
from lake.exec.kernels.decimals import from_doubles
from lake.exec.per_row import per_row
from lake.exec.spellings import fit, number_as_moment
from lake.sql.catalog import Settings
from lake.types import (
    INTERVAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    Boolean,
    Date,
    Decimal,
    Float,
    Integer,
    Interval,
    Json,
    List,
    Map,
    Null,
    Struct,
    Text,
    Time,
    Timestamp,
    Type,
    Uuid,
)

MICROSECONDS_OF_DAY: Final = 86_400_000_000
PLAIN_LIST: Final = r"""^\{([^{}\[\]"'\\,\x00-\x20\x7f-\x{a0}\p{Z}]+(,[^{}\[\]"'\\,\x00-\x20\x7f-\x{a0}\p{Z}]+)*)?\}$"""
"""Braces around items that hold neither braces, quotes, backslashes nor blanks, and are not empty."""

DAYS_MAX: Final = 95_026_236
"""2**18 years on both sides of 1970, as far as the base's dates go."""
SECONDS: Final = Decimal(18, 6)  # whose scaled int64 is microseconds
DOUBLE_EXACT_MAX: Final = 2**53
"""Integers up to this are exact as DOUBLE, and so is the rounding of one divided by a power of ten."""

_NAMES: Final = {8: "tinyint", 16: "smallint", 32: "integer", 64: "bigint"}


def cast(
    value: Value, source: Type, target: Type, *, is_try: bool = False, settings: Settings | None = None
) -> Value:
    """``value`` of type ``source`` as ``target``.

    22P02  a text that is no value of the type          22003  a number out of the type's range
    22008  a moment out of the type's range             42804  types that do not cast
    """
    if source == target and not is_spelled(target):
        return value
    if isinstance(value, pa.Scalar):
        if not value.is_valid:
            return pa.scalar(None, target.physical)
        return cast(as_array(value, 1), source, target, is_try=is_try, settings=settings)[0]
    if isinstance(source, Null) or value.null_count == len(value):
        return pa.nulls(len(value), target.physical)
    if source == target and not isinstance(target, List | Struct | Map):
        return fit(value, target, is_try=is_try)
    made = _cast(value, source, target, is_try=is_try, settings=settings)
    return fit(made, target, is_try=is_try) if target.spelled else made


def _cast(value: pa.Array, source: Type, target: Type, *, is_try: bool, settings: Settings | None) -> Value:
    """A column with values as another type, by what the two types are."""
    zone = zone_of_type(target) or zone_of_type(source) or ("UTC" if settings is None else settings.time_zone)
    match source, target:
        case (Text() | Json(), Uuid()):
            return read_uuids(value, is_try=is_try)
        case (_, Uuid()):
            raise DatatypeMismatch(f"cannot cast type {source} to {target}")
        case (Text() | Json(), Text()):
            return value
        case (_, Text() | Json()) if not isinstance(source, Text):
            return to_text(value, source, for_json=isinstance(target, Json), is_try=is_try)
        case ((Text() | Json()), List(of)):
            return _list_from_text(value, of, is_try=is_try, settings=settings)
        case ((Text() | Json()), _):
            return from_text(value, target, is_try=is_try, zone=zone)
        case (Struct(), Struct()):
            return _cast_fields(value, source, target, is_try=is_try, settings=settings)
        case (Map(), Map()):
            entries = cast(map_entries(value), source.entries, target.entries, is_try=is_try, settings=settings)
            return map_array(entries, target)
        case (List(), List()):
            return _cast_items(value, source, target, is_try=is_try, settings=settings)
        case (Integer() | Float() | Decimal() | Boolean(), Integer() | Float() | Decimal() | Boolean()):
            return _cast_number(value, source, target, is_try=is_try)
        case (Date() | Time() | Timestamp() | Interval(), Date() | Time() | Timestamp() | Interval()):
            return cast_time(value, source, target, zone)
        case (Integer() | Float() | Decimal(), Date() | Time() | Timestamp()):
            return _number_as_time(value, source, target, is_try=is_try)
        case (Date() | Time() | Timestamp(), Integer(bits)):
            whole = value.cast(pa.int32() if isinstance(source, Date) else pa.int64())
            return _to_integer(whole.cast(pa.int64()), Integer(64), bits, is_try=is_try)
    raise DatatypeMismatch(f"cannot cast type {source} to {target}")


def _number_as_time(value: pa.Array, source: Type, target: Type, *, is_try: bool) -> Value:
    """A number as days since 1970, as seconds since 1970, or as microseconds since midnight.

    22003, 22008  a number out of the type's range
    """
    if isinstance(target, Date):
        days = _cast_number(value, source, Integer(32), is_try=is_try)
        bad = pc.greater(pc.abs(days.cast(pa.int64())), DAYS_MAX)
        if pc.any(bad).as_py():
            if not is_try:
                raise DatetimeOverflow("date out of range")
            days = pc.if_else(bad, pa.scalar(None, pa.int32()), days)
        return days.cast(pa.date32())
    if target.spelled:
        return number_as_moment(_cast_number(value, source, Integer(64), is_try=is_try), target)
    if isinstance(target, Timestamp):
        return _cast_number(value, source, SECONDS, is_try=is_try).cast(target.physical)
    micros = _cast_number(value, source, Integer(64), is_try=is_try)
    bad = pc.or_(pc.less(micros, 0), pc.greater_equal(micros, MICROSECONDS_OF_DAY))
    if pc.any(bad).as_py():
        if not is_try:
            raise NumericOutOfRange("time out of range")
        micros = pc.if_else(bad, pa.scalar(None, pa.int64()), micros)
    return micros.cast(target.physical)


# --- numbers ---------------------------------------------------------------------------------------------------------


def _cast_number(value: pa.Array, source: Type, target: Type, *, is_try: bool) -> Value:
    match source, target:
        case (Boolean(), Decimal()):
            return _cast_number(value.cast(pa.int64()), Integer(64), target, is_try=is_try)
        case (Boolean(), _):
            return value.cast(target.physical)
        case (Decimal(), Boolean()):
            return pc.not_equal(decimals.widen(value, source), decimals.widen(pa.scalar(0), source))
        case (_, Boolean()):
            return pc.not_equal(value, 0)
        case (_, Decimal()):
            return to_decimal(value, source, target, is_try=is_try)
        case (_, Integer(bits)):
            return _to_integer(value, source, bits, is_try=is_try)
        case (Decimal(scale=scale), Float()):
            return decimal_to_double(value, scale).cast(target.physical)
        case (Float(64), Float(32)):
            return _to_real(value, is_try=is_try)
        case _:
            return value.cast(target.physical, safe=False)


def _to_integer(value: pa.Array, source: Type, bits: int, *, is_try: bool) -> pa.Array:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    target = pa.int64() if bits == 64 else {8: pa.int8(), 16: pa.int16(), 32: pa.int32()}[bits]
    if isinstance(source, Integer) and source.bits <= bits:
        return value.cast(target)
    if isinstance(source, Decimal):
        whole = decimals.scaled(value)
        assert whole is not None
        whole = decimals.round_down(whole, source.scale, half_up=False)
        bad = None
        assert not isinstance(whole.values, int)
        if whole.is_wide:
            large = [not low <= number <= high for number in whole.integers()]
            bad, whole = np.array(large, np.bool_), Scaled(np.ascontiguousarray(whole.values[:, 0]))
        numbers = whole.values
        bad = bad if bad is not None else _outside(numbers, low, high)
    elif isinstance(source, Float):
        numbers = np.trunc(views.values_of(value).astype(np.float64, copy=False))
        bad = ~((numbers >= float(low)) & (numbers < float(high + 1)))
    else:
        numbers = views.values_of(value)
        bad = _outside(numbers, low, high)
    value, numbers = _without_refused(value, numbers, bad, _NAMES[bits], source, is_try=is_try)
    return views.to_array(numbers.astype(target.to_pandas_dtype()), target, views.valid_of(value))


def _outside(numbers: Any, low: int, high: int) -> Any:
    """Where ``numbers`` are out of range; None where none is."""
    if numbers.size == 0 or (low <= int(numbers.min()) and int(numbers.max()) <= high):
        return None
    return (numbers < low) | (numbers > high)


def _without_refused(
    value: pa.Array, numbers: Any, bad: Any, name: str, source: Type, *, is_try: bool
) -> tuple[pa.Array, Any]:
    """The value with NULL and the numbers with 0 for refused rows, or their error."""
    if bad is None or not bad.any():
        return value, numbers
    valid = views.valid_of(value)
    refused = bad if valid is None else bad & (valid == 1)
    if refused.any() and not is_try:
        shown = to_text(value.slice(int(np.flatnonzero(refused)[0]), 1), source)[0].as_py()
        raise NumericOutOfRange(f"value {shown} is out of range for type {name}")
    value = pc.if_else(views.to_boolean(bad), pa.scalar(None, value.type), value)
    return value, np.where(bad, 0, numbers)


def to_decimal(value: Value, source: Type, target: Decimal, *, is_try: bool = False) -> pa.Array:
    """A number as a decimal, rounded half away from zero."""
    assert isinstance(value, pa.Array)
    if isinstance(source, Float):
        return _float_to_decimal(value, target, is_try=is_try)
    found = decimals.scaled(value)
    assert found is not None
    scale = source.scale if isinstance(source, Decimal) else 0
    if target.scale >= scale:
        found = decimals.scale_up(found, target.scale - scale)
    else:
        found = decimals.round_down(found, scale - target.scale, half_up=True)
    return _fitting(found, target, is_try=is_try)


def _fitting(found: Scaled, target: Decimal, *, is_try: bool) -> pa.Array:
    """An array of values that have no more digits than ``target``; with ``is_try`` those that have are NULL."""
    try:
        return decimals.to_value(found, target, may_pass=True)
    except NumericOutOfRange:
        if not is_try:
            raise
    limit = 10**target.precision - 1
    kept = np.array([abs(number) <= limit for number in found.integers()], np.uint8)
    valid = kept if found.valid is None else kept & found.valid
    assert not isinstance(found.values, int)
    mask = (kept == 1)[:, None] if found.is_wide else kept == 1
    return decimals.to_value(Scaled(np.where(mask, found.values, 0), valid), target)


def _float_to_decimal(value: pa.Array, target: Decimal, *, is_try: bool) -> pa.Array:
    numbers = views.values_of(value).astype(np.float64, copy=False)
    valid = views.valid_of(value)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = numbers * 10.0**target.scale
        bad = ~(np.abs(moved) < 10.0**target.precision)
    refused = bad if valid is None else bad & (valid == 1)
    if refused.any() and not is_try:
        number = float(numbers[np.flatnonzero(refused)[0]])
        if number != number or number in (float("inf"), float("-inf")):
            raise NumericOutOfRange(f"cannot convert {number} to numeric")
        raise decimals.out_of_range(target)
    if bad.any():
        valid = (~bad if valid is None else ~bad & (valid == 1)).astype(np.uint8)
        moved = np.where(bad, 0.0, moved)
    rounded = np.trunc(moved + np.copysign(0.5, moved))
    if rounded.size and np.abs(rounded).max() >= 2.0**63:
        words, _ = from_doubles(np.where(bad, 0.0, numbers), target.scale, views.ALL_VALID if valid is None else valid)
        return decimals.to_value(Scaled(words, valid), target)
    return views.to_array(rounded.astype(np.int64), pa.int64(), valid)


def decimal_to_double(value: Value, scale: int) -> Value:
    """The nearest DOUBLE of each decimal."""
    found = decimals.scaled(value)
    if found is None:
        return pa.scalar(None, pa.float64())
    if isinstance(found.values, int):
        return pa.scalar(found.values / 10**scale)
    numbers = found.values
    low, high = found.bounds()
    if not found.is_wide and max(high, -low) <= DOUBLE_EXACT_MAX and scale <= 22:
        doubles = numbers.astype(np.float64) / 10.0**scale
    else:
        unit = 10**scale
        doubles = np.array([number / unit for number in found.integers()], np.float64)
    return views.to_array(doubles, pa.float64(), found.valid)


def _to_real(value: pa.Array, *, is_try: bool) -> pa.Array:
    numbers = views.values_of(value)
    with np.errstate(over="ignore"):
        reals = numbers.astype(np.float32)
    bad = np.isinf(reals) & ~np.isinf(numbers)
    value, _ = _without_refused(value, numbers, bad, "real", Float(64), is_try=is_try)
    return views.to_array(reals, pa.float32(), views.valid_of(value))


# --- moments ---------------------------------------------------------------------------------------------------------


def cast_time(value: pa.Array, source: Type, target: Type, zone: str) -> pa.Array:
    """A date, time, timestamp or interval as another of them."""
    match source, target:
        case (Date(), Timestamp(zoned)):
            moments = date_to_timestamp(value)
            return to_instant(moments, zone) if zoned else moments
        case (Timestamp(False), Timestamp(True)):
            return to_instant(value, zone)
        case (Timestamp(True), Timestamp(False)):
            return to_wall(value, zone)
        case (Timestamp(True), Date() | Time()):
            return cast_time(to_wall(value, zone), TIMESTAMP, target, zone)
        case (Timestamp(False), Date()):
            days = views.values_of(value) // MICROSECONDS_OF_DAY
            return views.to_array(days, pa.date32(), views.valid_of(value))
        case (Timestamp(False), Time()):
            times = views.values_of(value) % MICROSECONDS_OF_DAY
            return views.to_array(times, pa.time64("us"), views.valid_of(value))
        case (Interval(), Time()):
            times = views.values_of(value)[:, 1] // 1000 % MICROSECONDS_OF_DAY
            return views.to_array(times, pa.time64("us"), views.valid_of(value))
        case (Time(), Interval()):
            nanoseconds = views.values_of(value) * 1000
            return interval_array(np.zeros(len(value), np.int64), 0, nanoseconds, views.valid_of(value))
    raise DatatypeMismatch(f"cannot cast type {source} to {target}")


def date_to_timestamp(value: Any) -> Any:
    """Midnight of each day.

    22008  a day past the range of timestamps
    """
    if isinstance(value, pa.Scalar):
        return date_to_timestamp(as_array(value, 1))[0]
    days = views.values_of(value).astype(np.int64)
    if days.size and np.abs(days).max() > 2**63 // MICROSECONDS_OF_DAY - 1:
        raise DatetimeOverflow("timestamp out of range")
    return views.to_array(days * MICROSECONDS_OF_DAY, pa.timestamp("us"), views.valid_of(value))


def to_instant(wall: Any, zone: str) -> Any:
    """The instants when clocks in ``zone`` read ``wall``; the later one where they read it twice, as in Postgres.

    A reading that clocks skip is taken by the offset before the gap, as if they had not been moved yet.
    """
    if zone.upper() in ("UTC", "Z", "GMT"):
        return wall.cast(TIMESTAMPTZ.arrow)
    aware = pc.assume_timezone(wall, zone, ambiguous="latest", nonexistent="earliest")
    instants = aware.cast(TIMESTAMPTZ.arrow)
    # In a gap that was the last moment before it.
    skipped = pc.subtract(wall.cast(pa.int64()), pc.local_timestamp(aware).cast(pa.int64()))
    return pc.add(instants.cast(pa.int64()), skipped).cast(TIMESTAMPTZ.arrow)


def to_wall(instant: Any, zone: str) -> Any:
    """What clocks in ``zone`` read at each instant."""
    if zone.upper() in ("UTC", "Z", "GMT"):
        return instant.cast(pa.timestamp("us"))
    return pc.local_timestamp(instant.cast(pa.timestamp("us", tz=zone)))


def interval_array(months: Any, days: Any, nanoseconds: Any, valid: Any = None) -> pa.Array:
    """Intervals of their parts, numpy arrays or numbers that fit int32, int32 and int64."""
    rows = next(len(part) for part in (months, days, nanoseconds) if not isinstance(part, int))
    words = np.empty((rows, 2), np.int64)
    halves = words.view(np.int32).reshape(rows, 4)
    halves[:, 0] = months
    halves[:, 1] = days
    words[:, 1] = nanoseconds
    return views.to_array(words, INTERVAL.arrow, valid)


def interval_parts(value: pa.Array) -> tuple[Any, Any, Any]:
    """Months, days and nanoseconds of intervals, each int64[rows]."""
    words = views.values_of(value)
    months = np.left_shift(words[:, 0], 32) >> 32
    return months, words[:, 0] >> 32, words[:, 1]


# --- lists -----------------------------------------------------------------------------------------------------------


def _cast_items(
    value: pa.Array, source: List, target: List, *, is_try: bool, settings: Settings | None
) -> pa.Array:
    offsets, items, valid = list_parts(value)
    items = cast(items, source.of, target.of, is_try=is_try, settings=settings)
    if isinstance(target.of, Decimal):
        items = decimals.widen(items, target.of)
    return list_array(offsets, items, valid)


def _cast_fields(
    value: pa.Array, source: Struct, target: Struct, *, is_try: bool, settings: Settings | None
) -> pa.Array:
    """Fields by their names where the two share one, a field that is not there NULL; else by their places.

    42804  no name is shared, and the numbers of fields differ
    """
    parts = value.flatten()
    by_name = any(source.place(name) is not None for name, _ in target.fields)
    if not by_name and len(source.fields) != len(target.fields):
        raise DatatypeMismatch(f"cannot cast type {source} to {target}")
    made = []
    for index, (name, of) in enumerate(target.fields):
        place = source.place(name) if by_name else index
        if place is None:
            made.append(pa.nulls(len(value), of.physical))
        else:
            made.append(cast(parts[place], source.fields[place][1], of, is_try=is_try, settings=settings))
    return struct_array(made, target, None if not value.null_count else np.asarray(value.is_valid()))


@per_row
def _list_from_text(value: pa.Array, of: Type, *, is_try: bool, settings: Settings | None) -> pa.Array:
    """Lists written ``[1, 2]`` or ``{1,2}``. Where not all are plain, goes row by row: items may be quoted, or be lists."""
    value = views.plain(value)
    found = _plain_lists(value)
    if found is not None:
        items, sizes = found
        valid = np.asarray(value.is_valid()).view(np.uint8)
    else:
        parts = [None if text is None else split_list(text, is_try=is_try) for text in value.to_pylist()]
        items = pa.array([item for part in parts if part is not None for item in part], pa.string())
        sizes = np.array([0 if part is None else len(part) for part in parts], np.int64)
        valid = np.array([part is not None for part in parts], np.uint8)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    made = cast(items, Text(), of, is_try=is_try, settings=settings)
    if isinstance(of, Decimal):
        made = decimals.widen(made, of)
    return list_array(offsets, made, None if valid.all() else valid)


def _plain_lists(value: pa.Array) -> tuple[pa.Array, Any] | None:
    """The items of lists that are all written ``{1,NULL,b}``, with nothing that means more, and their counts; else None."""
    if not pc.all(pc.match_substring_regex(value, PLAIN_LIST)).as_py():
        return None
    inner = pc.utf8_trim(value, "{}")
    parts = pc.split_pattern(inner, ",")
    sizes = pc.fill_null(pc.subtract(pc.list_value_length(parts), pc.equal(inner, "").cast(pa.int32())), 0)
    items = pc.list_flatten(parts)
    items = items.filter(pc.not_equal(items, ""))  # what splitting {} makes
    return pc.if_else(pc.equal(pc.utf8_upper(items), "NULL"), pa.scalar(None, pa.string()), items), np.asarray(sizes)
