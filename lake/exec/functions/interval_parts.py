"""Arithmetic of intervals among themselves and with numbers, and intervals of one unit."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.errors import DatetimeOverflow, DivisionByZero, InvalidParameter
from lake.exec import decimals
from lake.exec.cast import (
    decimal_to_double,
    interval_array,
    interval_parts,
)
from lake.exec.comparisons import NANOSECONDS_OF_DAY
from lake.exec.decimals import Value
from lake.exec.functions.columns import all_valid, columns, with_constants
from lake.exec.functions.date_fields import FIELDS
from lake.exec.kernels import views
from lake.exec.kernels.nested import DAYS_OF_MONTH
from lake.sql.registry import CallInfo, scalar
from lake.types import INTERVAL, Decimal, Float

GROUP: Final = "dates"
SECONDS_OF_DAY: Final = 86_400
UNIT_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1_200, "millennium": 12_000}
UNIT_NANOSECONDS: Final = {
    "microsecond": 1_000, "millisecond": 10**6, "second": 10**9, "minute": 60 * 10**9, "hour": 3_600 * 10**9,
}  # fmt: skip


@scalar("+(a INTERVAL, b INTERVAL) -> INTERVAL", group=GROUP)
def add_intervals(a: Value, b: Value) -> pa.Array:
    """The sum, part by part.

    >>> INTERVAL '1 day' + INTERVAL '2 hours'
    1 days 2 hours
    """
    one, two = columns(a, b)
    parts = [left + right for left, right in zip(interval_parts(one), interval_parts(two))]
    return intervals(parts, all_valid(one, two))


@scalar("-(a INTERVAL, b INTERVAL) -> INTERVAL", group=GROUP)
def subtract_intervals(a: Value, b: Value) -> pa.Array:
    """The difference, part by part.

    >>> INTERVAL '1 day' - INTERVAL '2 hours'
    1 days -2 hours
    """
    one, two = columns(a, b)
    parts = [left - right for left, right in zip(interval_parts(one), interval_parts(two))]
    return intervals(parts, all_valid(one, two))


@scalar("-(a INTERVAL) -> INTERVAL", group=GROUP)
def negate_interval(a: pa.Array) -> pa.Array:
    """The interval the other way.

    >>> -INTERVAL '1 hour'
    -1 hours
    """
    return intervals([-part for part in interval_parts(a)], views.valid_of(a))


@scalar("*(a INTERVAL, b NUMERIC) -> INTERVAL", group=GROUP, takes_call=True)
def multiply_interval(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The interval so many times; parts of a month become days of 30 a month, parts of a day time.

    >>> INTERVAL '1 day' * 3
    3 days
    """
    return _scaled_interval(a, b, call.types[1])


@scalar("*(a NUMERIC, b INTERVAL) -> INTERVAL", group=GROUP, takes_call=True)
def multiply_by_interval(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The interval so many times.

    >>> 3 * INTERVAL '1 day'
    3 days
    """
    return _scaled_interval(b, a, call.types[0])


@scalar("/(a INTERVAL, b NUMERIC) -> INTERVAL", group=GROUP, takes_call=True)
def divide_interval(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The interval in so many parts.

    >>> INTERVAL '1 month' / 2
    15 days

    22012  division by zero
    """
    return _scaled_interval(a, b, call.types[1], divide=True)


def _scaled_interval(length: Value, factor: Value, type: Any, *, divide: bool = False) -> pa.Array:
    one, two = columns(length, factor)
    if isinstance(type, Decimal):
        two = decimal_to_double(decimals.widen(two, type), type.scale)
    factors = views.values_of(two).astype(np.float64)
    valid = all_valid(one, two)
    months, days, nanoseconds = interval_parts(one)
    if divide:
        zero = factors == 0
        if (zero if valid is None else zero & (valid == 1)).any():
            raise DivisionByZero("division by zero")
        factors = np.where(zero, 1.0, factors)
        scaled = [part / factors for part in (months, days, nanoseconds)]
    elif not isinstance(type, Float | Decimal):
        whole = factors.astype(np.int64)
        if nanoseconds.size and float(np.abs(nanoseconds).max()) * float(np.abs(whole).max()) >= 2.0**63:
            raise DatetimeOverflow("interval out of range")
        return intervals([months * whole, days * whole, nanoseconds * whole], valid)
    else:
        scaled = [part * factors for part in (months, days, nanoseconds)]
    return intervals(whole_parts(scaled), valid)


def whole_parts(scaled: list[Any]) -> list[Any]:
    """Months, days and nanoseconds as whole numbers: what is left of months goes into days, of days into time.

    Rounded where Postgres rounds: a part of a month to the millionth of a day, parts of days to microseconds.
    22008  more months, days or time than an interval holds
    """
    whole_months, whole_days = np.trunc(scaled[0]), np.trunc(scaled[1])
    of_months = np.round((scaled[0] - whole_months) * DAYS_OF_MONTH, 6)
    seconds = np.round((scaled[1] - whole_days + of_months - np.trunc(of_months)) * SECONDS_OF_DAY, 6)
    carried = np.where(np.abs(seconds) >= SECONDS_OF_DAY, np.trunc(seconds / SECONDS_OF_DAY), 0.0)
    whole_days += carried + np.trunc(of_months)
    if whole_months.size and not max(np.abs(whole_months).max(), np.abs(whole_days).max()) < 2.0**31:
        raise DatetimeOverflow("interval out of range")
    time = np.round(scaled[2] / 1000 + (seconds - carried * SECONDS_OF_DAY) * 1e6) * 1000
    if time.size and not (np.abs(time).max() < 2.0**63):
        raise DatetimeOverflow("interval out of range")
    return [part.astype(np.int64) for part in (whole_months, whole_days, time)]


def intervals(parts: list[Any], valid: Any) -> pa.Array:
    """Intervals of their parts.

    22008  more months or days than an interval holds
    """
    if parts[0].size and max(np.abs(parts[0]).max(), np.abs(parts[1]).max()) >= 2**31:
        raise DatetimeOverflow("interval out of range")
    return interval_array(parts[0], parts[1], parts[2], valid)


@scalar("justify_hours(length INTERVAL) -> INTERVAL", group=GROUP, origin="postgres")
def justify_hours(length: pa.Array) -> pa.Array:
    """The interval with each 24 hours as a day, and days and hours of one sign.

    >>> justify_hours(INTERVAL '27 hours')
    1 days 3 hours
    """
    months, days, nanoseconds = interval_parts(length)
    days, nanoseconds = _justified(days, nanoseconds, NANOSECONDS_OF_DAY)
    return intervals([months, days, nanoseconds], views.valid_of(length))


@scalar("justify_days(length INTERVAL) -> INTERVAL", group=GROUP, origin="postgres")
def justify_days(length: pa.Array) -> pa.Array:
    """The interval with each 30 days as a month, and months and days of one sign.

    >>> justify_days(INTERVAL '35 days')
    1 mons 5 days
    """
    months, days, nanoseconds = interval_parts(length)
    months, days = _justified(months, days, DAYS_OF_MONTH)
    return intervals([months, days, nanoseconds], views.valid_of(length))


@scalar("justify_interval(length INTERVAL) -> INTERVAL", group=GROUP, origin="postgres")
def justify_interval(length: pa.Array) -> pa.Array:
    """The interval with each 24 hours as a day and each 30 days as a month, and all parts of one sign.

    >>> justify_interval(INTERVAL '1 month -1 hour')
    29 days 23 hours
    """
    months, days, nanoseconds = interval_parts(length)
    whole = np.abs(nanoseconds) // NANOSECONDS_OF_DAY * np.sign(nanoseconds)
    months, days = _justified(months, days + whole, DAYS_OF_MONTH)
    nanoseconds = nanoseconds - whole * NANOSECONDS_OF_DAY
    # A month gives way to hours of the other sign where no days stand between.
    step = np.where((months > 0) & (nanoseconds < 0), 1, 0) - np.where((months < 0) & (nanoseconds > 0), 1, 0)
    step = np.where(days == 0, step, 0)
    months, days = months - step, days + step * DAYS_OF_MONTH
    days, nanoseconds = _justified(days, nanoseconds, NANOSECONDS_OF_DAY)
    return intervals([months, days, nanoseconds], views.valid_of(length))


def _justified(large: Any, small: Any, size: int) -> tuple[Any, Any]:
    """Units of ``size`` smaller ones taken out of those; then one is given back or taken where their signs differ."""
    whole = np.abs(small) // size * np.sign(small)
    large, small = large + whole, small - whole * size
    step = np.where((large > 0) & (small < 0), 1, 0) - np.where((large < 0) & (small > 0), 1, 0)
    return large - step, small + step * size


@scalar("date_trunc(unit VARCHAR, length INTERVAL) -> INTERVAL", group=GROUP, origin="postgres", aliases=("datetrunc",))
def truncate_interval(unit: Value, length: Value) -> pa.Array:
    """The interval without what is less than a unit, toward zero.

    >>> date_trunc('hour', INTERVAL '3 days 04:05:06')
    3 days 4 hours

    22023  no such unit, or weeks, whose days months do not hold
    """

    def run(column: pa.Array, unit: str) -> pa.Array:
        name = FIELDS.get(unit.lower(), "")
        months, days, nanoseconds = interval_parts(column)
        if name in UNIT_MONTHS:
            months, days, nanoseconds = _toward_zero(months, UNIT_MONTHS[name]), days * 0, nanoseconds * 0
        elif name in UNIT_NANOSECONDS:
            nanoseconds = _toward_zero(nanoseconds, UNIT_NANOSECONDS[name])
        elif name == "day":
            nanoseconds = nanoseconds * 0
        else:
            raise InvalidParameter(f'unit "{unit}" not recognized for type interval')
        return intervals([months, days, nanoseconds], views.valid_of(column))

    return with_constants(run, INTERVAL.arrow, length, unit)


def _toward_zero(numbers: Any, size: int) -> Any:
    return np.abs(numbers) // size * size * np.sign(numbers)


@scalar("to_years(count BIGINT) -> INTERVAL", group=GROUP, origin="duckdb")
def to_years(count: pa.Array) -> pa.Array:
    """So many years.

    >>> to_years(2)
    24 mons
    """
    return _of_unit(count, months=12)


@scalar("to_months(count BIGINT) -> INTERVAL", group=GROUP, origin="duckdb")
def to_months(count: pa.Array) -> pa.Array:
    """So many months.

    >>> to_months(2)
    2 mons
    """
    return _of_unit(count, months=1)


@scalar("to_weeks(count BIGINT) -> INTERVAL", group=GROUP, origin="duckdb")
def to_weeks(count: pa.Array) -> pa.Array:
    """So many weeks.

    >>> to_weeks(2)
    14 days
    """
    return _of_unit(count, days=7)


@scalar("to_days(count BIGINT) -> INTERVAL", group=GROUP, origin="duckdb")
def to_days(count: pa.Array) -> pa.Array:
    """So many days.

    >>> to_days(5)
    5 days
    """
    return _of_unit(count, days=1)


@scalar("to_hours(count BIGINT) -> INTERVAL", group=GROUP, origin="duckdb")
def to_hours(count: pa.Array) -> pa.Array:
    """So many hours.

    >>> to_hours(3)
    3 hours
    """
    return _of_unit(count, seconds=3600)


@scalar("to_minutes(count BIGINT) -> INTERVAL", group=GROUP, origin="duckdb")
def to_minutes(count: pa.Array) -> pa.Array:
    """So many minutes.

    >>> to_minutes(90)
    1 hours 30 mins
    """
    return _of_unit(count, seconds=60)


@scalar("to_seconds(count BIGINT) -> INTERVAL", group=GROUP, origin="duckdb")
def to_seconds(count: pa.Array) -> pa.Array:
    """So many seconds.

    >>> to_seconds(90)
    1 mins 30.000000000 secs
    """
    return _of_unit(count, seconds=1)


def _of_unit(count: pa.Array, *, months: int = 0, days: int = 0, seconds: int = 0) -> pa.Array:
    numbers = views.values_of(count)
    if numbers.size and np.abs(numbers).max() > 2**33:
        raise DatetimeOverflow("interval out of range")
    return intervals([numbers * months, numbers * days, numbers * seconds * 1_000_000_000], views.valid_of(count))
