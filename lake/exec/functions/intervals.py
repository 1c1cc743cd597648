"""Arithmetic of dates, times and intervals.

Months are added by the calendar and stop at a month's last day; then days; then the time. A DATE moved by an interval stays
a DATE. An instant is moved by months and days on the clock of the session's zone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from lake.errors import DatetimeOverflow
from lake.exec.cast import (
    DAYS_MAX,
    MICROSECONDS_OF_DAY,
    interval_array,
    interval_parts,
    to_instant,
    to_wall,
)
from lake.exec.comparisons import NANOSECONDS_OF_DAY
from lake.exec.decimals import Value
from lake.exec.functions.columns import all_valid, columns
from lake.exec.functions.date_fields import zone_of
from lake.exec.kernels import views
from lake.exec.spellings import unit_of
from lake.sql.registry import CallInfo, scalar
from lake.types import DATE, INTERVAL, TIME, TIMESTAMP, Timestamp, Type

GROUP: Final = "dates"
TABLE_ROWS_MIN: Final = 256
TIMESTAMP_MIN, TIMESTAMP_MAX = -210_866_803_200_000_000, 9_223_371_331_200_000_000
"""Microseconds of 4713 BC, and of the year 294,276: the range of timestamps in Postgres."""


# --- dates and days --------------------------------------------------------------------------------------------------


@scalar("+(day DATE, count INTEGER) -> DATE", group=GROUP)
@scalar("+(count INTEGER, day DATE) -> DATE", group=GROUP)
def add_days(a: Value, b: Value) -> pa.Array:
    """The day so many days later.

    >>> DATE '2024-02-28' + 2
    2024-03-01

    22008  a day out of the range of dates
    """
    one, two = columns(a, b)
    return _dates(_days(one) + _days(two), all_valid(one, two))


@scalar("-(day DATE, count INTEGER) -> DATE", group=GROUP)
def subtract_days(day: Value, count: Value) -> pa.Array:
    """The day so many days earlier.

    >>> DATE '2024-03-01' - 1
    2024-02-29
    """
    one, two = columns(day, count)
    return _dates(_days(one) - _days(two), all_valid(one, two))


@scalar("-(a DATE, b DATE) -> BIGINT", group=GROUP)
def days_between(a: Value, b: Value) -> pa.Array:
    """How many days apart.

    >>> DATE '2024-03-01' - DATE '2024-02-01'
    29
    """
    one, two = columns(a, b)
    return views.to_array(_days(one) - _days(two), pa.int64(), all_valid(one, two))


def _days(value: pa.Array) -> Any:
    return views.values_of(value).astype(np.int64)


def _dates(days: Any, valid: Any) -> pa.Array:
    if days.size and (days.max() > DAYS_MAX or days.min() < -DAYS_MAX):
        raise DatetimeOverflow("date out of range")
    return views.to_array(days, DATE.arrow, valid)


def timestamps(micros: Any, valid: Any, type: Timestamp = TIMESTAMP) -> pa.Array:
    """Timestamps of microseconds.

    22008  one out of range
    """
    if micros.size and (micros.max() > TIMESTAMP_MAX or micros.min() < TIMESTAMP_MIN):
        raise DatetimeOverflow("timestamp out of range")
    return views.to_array(micros, type.arrow, valid)


# --- moving by intervals ---------------------------------------------------------------------------------------------


def of_days(run: Callable[[Any], Any], days: Any) -> Any:
    """``run`` over days (or months) since 1970, once for each of their range where that is shorter: calendars are slow."""
    if days.size < TABLE_ROWS_MIN:
        return run(days)
    low, high = int(days.min()), int(days.max())
    if high - low >= days.size:
        return run(days)
    return run(np.arange(low, high + 1, dtype=np.int64))[days - low]


def month_numbers(days: Any) -> Any:
    """int64: months since January 1970 of days (int64 since 1970)."""
    return of_days(lambda item: item.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64), days)


def first_days(months: Any) -> Any:
    """int64: the first day, since 1970, of months since January 1970."""
    return of_days(lambda item: item.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64), months)


def add_months(days: Any, months: Any) -> Any:
    """Days (int64 since 1970) moved by months, at most to the last day of the month."""

    def move(days: Any, months: Any) -> Any:
        month = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        start = first_days(month + months)
        length = first_days(month + months + 1) - start
        return start + np.minimum(days - first_days(month), length - 1)

    if months.size and (months == months[0]).all():
        return of_days(lambda item: move(item, months[0]), days)
    return move(days, months)


@scalar("+(day DATE, length INTERVAL) -> DATE", group=GROUP, aliases=("date_add",))
def add_to_date(day: Value, length: Value) -> pa.Array:
    """The day moved by an interval; parts of a day are dropped.

    >>> DATE '2024-01-31' + INTERVAL '1 month'
    2024-02-29
    """
    return _move_dates(day, length, 1)


@scalar("+(length INTERVAL, day DATE) -> DATE", group=GROUP)
def add_date_to(length: Value, day: Value) -> pa.Array:
    """The day moved by an interval; parts of a day are dropped.

    >>> INTERVAL '1 month' + DATE '2024-01-31'
    2024-02-29
    """
    return _move_dates(day, length, 1)


@scalar("-(day DATE, length INTERVAL) -> DATE", group=GROUP)
def subtract_from_date(day: Value, length: Value) -> pa.Array:
    """The day moved back by an interval; parts of a day are dropped.

    >>> DATE '1998-12-01' - INTERVAL '90' DAY
    1998-09-02
    """
    return _move_dates(day, length, -1)


def _move_dates(day: Value, length: Value, sign: int) -> pa.Array:
    one, two = columns(day, length)
    months, days, nanoseconds = interval_parts(two)
    moved = _days(one)
    if months.any():
        moved = add_months(moved, sign * months)
    whole = np.abs(nanoseconds) // NANOSECONDS_OF_DAY * np.sign(nanoseconds)
    return _dates(moved + sign * (days + whole), all_valid(one, two))


@scalar("+(moment TIMESTAMP, length INTERVAL) -> TIMESTAMP", group=GROUP, takes_call=True)
@scalar("+(moment TIMESTAMPTZ, length INTERVAL) -> TIMESTAMPTZ", group=GROUP, takes_call=True)
def add_to_timestamp(moment: Value, length: Value, *, call: CallInfo) -> pa.Array:
    """The moment moved by an interval.

    >>> TIMESTAMP '2024-01-31 12:00:00' + INTERVAL '1 month 1 hour'
    2024-02-29T13:00:00
    """
    return _move(moment, length, 1, call)


@scalar("+(length INTERVAL, moment TIMESTAMP) -> TIMESTAMP", group=GROUP, takes_call=True)
@scalar("+(length INTERVAL, moment TIMESTAMPTZ) -> TIMESTAMPTZ", group=GROUP, takes_call=True)
def add_timestamp_to(length: Value, moment: Value, *, call: CallInfo) -> pa.Array:
    """The moment moved by an interval.

    >>> INTERVAL '1 day' + TIMESTAMP '2024-01-31 12:00:00'
    2024-02-01T12:00:00
    """
    return _move(moment, length, 1, call)


@scalar("-(moment TIMESTAMP, length INTERVAL) -> TIMESTAMP", group=GROUP, takes_call=True)
@scalar("-(moment TIMESTAMPTZ, length INTERVAL) -> TIMESTAMPTZ", group=GROUP, takes_call=True)
def subtract_from_timestamp(moment: Value, length: Value, *, call: CallInfo) -> pa.Array:
    """The moment moved back by an interval.

    >>> TIMESTAMP '2024-03-31 12:00:00' - INTERVAL '1 month'
    2024-02-29T12:00:00
    """
    return _move(moment, length, -1, call)


def _move(moment: Value, length: Value, sign: int, call: CallInfo) -> pa.Array:
    one, two = columns(moment, length)
    type = call.returns
    assert isinstance(type, Timestamp)
    months, days, nanoseconds = interval_parts(two)
    zone = zone_of(call)
    by_clock = type.zoned and zone != "UTC" and (months.any() or days.any())
    micros = views.values_of(to_wall(one, zone) if by_clock else one)
    if months.any() or days.any():
        whole = micros // MICROSECONDS_OF_DAY
        rest = micros - whole * MICROSECONDS_OF_DAY
        if months.any():
            whole = add_months(whole, sign * months)
        micros = (whole + sign * days) * MICROSECONDS_OF_DAY + rest
    if by_clock:
        micros = views.values_of(to_instant(views.to_array(micros, TIMESTAMP.arrow), zone))
    return timestamps(micros + sign * (nanoseconds // 1000), all_valid(one, two), type)


def shifted(moment: pa.Array, months: Any, days: Any, nanoseconds: Any) -> pa.Array:
    """Wall clock readings moved by parts of intervals."""
    micros = views.values_of(moment)
    whole = micros // MICROSECONDS_OF_DAY
    rest = micros - whole * MICROSECONDS_OF_DAY
    whole = add_months(whole, months) + days
    return timestamps(whole * MICROSECONDS_OF_DAY + rest + nanoseconds // 1000, views.valid_of(moment))


@scalar("+(a DATE, b TIME) -> TIMESTAMP", group=GROUP)
@scalar("+(a TIME, b DATE) -> TIMESTAMP", group=GROUP)
def add_date_and_time(a: Value, b: Value) -> pa.Array:
    """The moment of a day and a time of day.

    >>> DATE '2024-01-31' + TIME '12:30:00'
    2024-01-31T12:30:00
    """
    one, two = columns(a, b)
    if pa.types.is_time(one.type):
        one, two = two, one
    return timestamps(_days(one) * MICROSECONDS_OF_DAY + views.values_of(two), all_valid(one, two))


@scalar("+(a TIME, b INTERVAL) -> TIME", group=GROUP)
@scalar("+(a INTERVAL, b TIME) -> TIME", group=GROUP)
def add_to_time(a: Value, b: Value) -> pa.Array:
    """The time of day moved by an interval, round the clock.

    >>> TIME '23:30:00' + INTERVAL '1 hour'
    00:30:00
    """
    one, two = columns(a, b)
    if pa.types.is_interval(one.type):
        one, two = two, one
    return _move_times(one, two, 1)


@scalar("-(a TIME, b INTERVAL) -> TIME", group=GROUP)
def subtract_from_time(a: Value, b: Value) -> pa.Array:
    """The time of day moved back by an interval, round the clock.

    >>> TIME '00:30:00' - INTERVAL '1 hour'
    23:30:00
    """
    one, two = columns(a, b)
    return _move_times(one, two, -1)


def _move_times(time: pa.Array, length: pa.Array, sign: int) -> pa.Array:
    moved = views.values_of(time) + sign * (interval_parts(length)[2] // 1000)
    return views.to_array(moved % MICROSECONDS_OF_DAY, TIME.arrow, all_valid(time, length))


# --- differences -----------------------------------------------------------------------------------------------------


def _apart_type(types: tuple[Type, ...]) -> Type:
    """An interval; a duration of the finer unit between moments that are spelled with one."""
    if not any(item.spelled for item in types):
        return INTERVAL
    units = {unit_of(item) for item in types}
    finest = next((unit for unit in ("ns", "µs", "ms", "s") if unit in units), "ms")
    return replace(INTERVAL, spelled=f"Duration({finest})")


@scalar("-(a TIMESTAMP, b TIMESTAMP) -> INTERVAL", group=GROUP, returns=_apart_type)
@scalar("-(a TIMESTAMPTZ, b TIMESTAMPTZ) -> INTERVAL", group=GROUP, returns=_apart_type)
def time_between(a: Value, b: Value) -> pa.Array:
    """How far moments are apart, in days and the time that is left.

    >>> TIMESTAMP '2024-03-01 12:00:00' - TIMESTAMP '2024-02-01 10:30:00'
    29 days 1 hours 30 mins
    """
    one, two = columns(a, b)
    apart = views.values_of(one) - views.values_of(two)
    days = np.abs(apart) // MICROSECONDS_OF_DAY * np.sign(apart)
    return interval_array(0, days, (apart - days * MICROSECONDS_OF_DAY) * 1000, all_valid(one, two))


@scalar("-(a TIME, b TIME) -> INTERVAL", group=GROUP)
def times_between(a: Value, b: Value) -> pa.Array:
    """How far times of day are apart.

    >>> TIME '10:00:00' - TIME '09:30:00'
    30 mins
    """
    one, two = columns(a, b)
    return interval_array(0, 0, (views.values_of(one) - views.values_of(two)) * 1000, all_valid(one, two))
