"""Dates and times: truncation, bins, differences, and making them.

An instant (TIMESTAMPTZ) is read on the clock of the session's time zone.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import DatetimeOverflow, InvalidParameter, near_name
from lake.exec.cast import (
    MICROSECONDS_OF_DAY,
    cast,
    date_to_timestamp,
    interval_array,
    interval_parts,
    to_instant,
    to_wall,
)
from lake.exec.decimals import Value
from lake.exec.functions.columns import all_valid, columns, with_constants
from lake.exec.functions.date_fields import DAY_NAMES, FIELDS, MICROS, micros_of, zone_of
from lake.exec.functions.intervals import add_months, first_days, month_numbers, of_days, timestamps
from lake.exec.kernels import views
from lake.sql.registry import CallInfo, scalar
from lake.types import DATE, DOUBLE, INT, TIME, Date, Time, Timestamp, Type

GROUP: Final = "dates"
INTERVAL_SECONDS_MAX: Final = 4e9
"""Seconds that an interval takes beside the largest count of hours."""


# --- truncation ------------------------------------------------------------------------------------------------------

_TRUNCATED_MONTHS: Final = {
    "month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1_200, "millennium": 12_000,
}  # fmt: skip
_TRUNCATED_MICROS: Final = {
    "microsecond": 1, "millisecond": 1000, "second": MICROS, "minute": 60 * MICROS, "hour": 3600 * MICROS,
    "day": MICROSECONDS_OF_DAY,
}  # fmt: skip
_MONDAY: Final = 4 * MICROSECONDS_OF_DAY
"""1970-01-05 was the first Monday."""


def truncated(micros: Any, field: str) -> Any:
    """Microseconds since 1970 cut to the beginning of a unit.

    22023  no such unit
    """
    name = FIELDS.get(field.lower())
    if name in _TRUNCATED_MICROS:
        unit = _TRUNCATED_MICROS[name]
        return micros // unit * unit
    if name == "week":
        unit = 7 * MICROSECONDS_OF_DAY
        return (micros - _MONDAY) // unit * unit + _MONDAY
    if name not in _TRUNCATED_MONTHS:
        known = (*_TRUNCATED_MICROS, "week", *_TRUNCATED_MONTHS)
        raise InvalidParameter(f'unit "{field}" not recognized for type timestamp', hint=near_name(field, known))
    months = month_numbers(micros // MICROSECONDS_OF_DAY)
    size = _TRUNCATED_MONTHS[name]
    # Centuries and millennia begin with the year 1, counted from there.
    shift = 1_970 * 12 if name not in ("century", "millennium") else 1_969 * 12
    first = (months + shift) // size * size - shift
    return first_days(first) * MICROSECONDS_OF_DAY


@scalar("date_trunc(unit VARCHAR, moment TIMESTAMP) -> TIMESTAMP", group=GROUP, takes_call=True, aliases=("datetrunc",))
@scalar("date_trunc(unit VARCHAR, moment DATE) -> TIMESTAMP", group=GROUP, takes_call=True, aliases=("datetrunc",))
@scalar("date_trunc(unit VARCHAR, moment TIME) -> TIME", group=GROUP, takes_call=True, aliases=("datetrunc",))
@scalar("date_trunc(unit VARCHAR, moment TIMESTAMPTZ) -> TIMESTAMPTZ", group=GROUP, takes_call=True,
        aliases=("datetrunc",))  # fmt: skip
def date_trunc(unit: Value, moment: Value, *, call: CallInfo) -> pa.Array:
    """The moment cut to the beginning of a unit: microsecond to millennium; weeks begin on Monday.

    >>> date_trunc('month', TIMESTAMP '2024-05-06 07:08:09')
    2024-05-01T00:00:00
    >>> date_trunc('week', DATE '2024-05-08')
    2024-05-06T00:00:00

    22023  no such unit
    """
    zoned = isinstance(call.returns, Timestamp) and call.returns.zoned
    zone = zone_of(call)

    def run(column: pa.Array, unit: str) -> pa.Array:
        if isinstance(call.types[1], Date):
            column = date_to_timestamp(column)
        if isinstance(call.returns, Time):
            return _cut_times(column, unit)
        wall = to_wall(column, zone) if zoned else column
        cut = timestamps(truncated(views.values_of(wall), unit), views.valid_of(column))
        if zoned and FIELDS.get(unit.lower()) in _TRUNCATED_MICROS and FIELDS.get(unit.lower()) != "day":
            # Within an hour the offset is the instant's own, also in one that clocks read twice.
            return views.to_array(
                views.values_of(column) - views.values_of(wall) + views.values_of(cut), column.type, views.valid_of(column)
            )
        return to_instant(cut, zone) if zoned else cut

    return with_constants(run, call.returns.physical, moment, unit)


def _cut_times(times: pa.Array, unit: str) -> pa.Array:
    """Times of day cut to the beginning of an hour or less."""
    if FIELDS.get(unit.lower()) not in _TRUNCATED_MICROS or FIELDS.get(unit.lower()) == "day":
        raise InvalidParameter(f'unit "{unit}" not recognized for type time')
    return views.to_array(truncated(views.values_of(times), unit), TIME.arrow, views.valid_of(times))


@scalar("trunc(day DATE, unit VARCHAR) -> DATE", group=GROUP, origin="spark")
def trunc_date(day: Value, unit: Value) -> pa.Array:
    """The day cut to the beginning of a unit.

    >>> trunc(DATE '2024-05-06', 'year')
    2024-01-01
    """

    def run(column: pa.Array, unit: str) -> pa.Array:
        name = {"yy": "year", "yyyy": "year", "mm": "month", "mon": "month"}.get(unit.lower(), unit)
        days = truncated(micros_of(column), name) // MICROSECONDS_OF_DAY
        return views.to_array(days, DATE.arrow, views.valid_of(column))

    return with_constants(run, DATE.arrow, day, unit)


@scalar("date_bin(width INTERVAL, moment TIMESTAMP) -> TIMESTAMP", group=GROUP, takes_call=True)
@scalar("date_bin(width INTERVAL, moment TIMESTAMP, origin TIMESTAMP) -> TIMESTAMP", group=GROUP, takes_call=True)
@scalar("date_bin(width INTERVAL, moment TIME) -> TIME", group=GROUP, takes_call=True)
@scalar("date_bin(width INTERVAL, moment TIME, origin TIME) -> TIME", group=GROUP, takes_call=True)
@scalar("date_bin(width INTERVAL, moment TIMESTAMPTZ) -> TIMESTAMPTZ", group=GROUP, takes_call=True)
@scalar("date_bin(width INTERVAL, moment TIMESTAMPTZ, origin TIMESTAMPTZ) -> TIMESTAMPTZ", group=GROUP,
        takes_call=True)  # fmt: skip
def date_bin(width: Value, moment: Value, origin: Value | None = None, *, call: CallInfo) -> pa.Array:
    """The beginning of the moment's bin; bins are so wide and one begins at ``origin`` (1970-01-01).

    >>> date_bin(INTERVAL '15 minutes', TIMESTAMP '2024-03-01 18:18:00')
    2024-03-01T18:15:00

    22023  a width of nothing, or of months and days
    """
    given = columns(width, moment) if origin is None else columns(width, moment, origin)
    micros = views.values_of(given[1])
    start = views.values_of(given[2]) if origin is not None else np.zeros(len(micros), np.int64)
    valid = None
    for column in given:
        mask = views.valid_of(column)
        valid = mask if valid is None else valid if mask is None else valid & mask
    months, days, nanoseconds = interval_parts(given[0])
    size = days * MICROSECONDS_OF_DAY + nanoseconds // 1000
    live = np.ones(len(micros), np.bool_) if valid is None else valid == 1
    tiny = (days == 0) & (nanoseconds > 0)  # less than a microsecond: each moment begins a bin
    if (((months <= 0) & (size <= 0) & ~tiny) & live).any() or ((months != 0) & (size != 0) & live).any():
        raise InvalidParameter("the width of a bin must be more than nothing, in months or in days and time")
    if isinstance(call.returns, Time) and (((months != 0) | (size >= MICROSECONDS_OF_DAY)) & live).any():
        raise InvalidParameter("the bins of times of day are shorter than a day")
    by_time = start + (micros - start) // np.where(size == 0, 1, size) * size
    if months.any():
        by_time = np.where(months != 0, _month_bins(micros, start, np.maximum(months, 1)), by_time)
    if isinstance(call.returns, Time):
        by_time %= MICROSECONDS_OF_DAY
    return views.to_array(by_time, call.returns.physical, valid)


MONDAY_2000: Final = 946_857_600_000_000
"""2000-01-03: where ``time_bucket`` begins to count."""


@scalar("time_bucket(width INTERVAL, moment TIMESTAMP) -> TIMESTAMP", group=GROUP, origin="duckdb", takes_call=True)
@scalar("time_bucket(width INTERVAL, moment TIMESTAMP, origin TIMESTAMP) -> TIMESTAMP", group=GROUP, origin="duckdb",
        takes_call=True)  # fmt: skip
def time_bucket(width: Value, moment: Value, origin: Value | None = None, *, call: CallInfo) -> pa.Array:
    """The beginning of the moment's bin; bins are so wide and one begins at ``origin`` (2000-01-03, a Monday).

    >>> time_bucket(INTERVAL '2 weeks', TIMESTAMP '1992-04-20 15:26:00')
    1992-04-20T00:00:00
    """
    if origin is not None:
        return date_bin(width, moment, origin, call=call)
    wide = columns(width, moment)[0]
    first_day = MONDAY_2000 - 2 * MICROSECONDS_OF_DAY
    starts = np.where(interval_parts(wide)[0] != 0, first_day, MONDAY_2000)
    return date_bin(wide, moment, views.to_array(starts, pa.timestamp("us")), call=call)


def _month_bins(micros: Any, start: Any, width: Any) -> Any:
    day, origin_day = micros // MICROSECONDS_OF_DAY, start // MICROSECONDS_OF_DAY
    month, origin_month = month_numbers(day), month_numbers(origin_day)
    for correction in (0, 1):
        moved = (month - origin_month) // width * width - correction * width
        begin = add_months(origin_day, moved) * MICROSECONDS_OF_DAY + start % MICROSECONDS_OF_DAY
        if correction == 0:
            first = begin
    return np.where(first <= micros, first, begin)


@scalar("last_day(day DATE) -> DATE", group=GROUP, origin="spark")
def last_day(day: pa.Array) -> pa.Array:
    """The last day of the month that holds ``day``.

    >>> last_day(DATE '2024-02-10')
    2024-02-29
    """
    days = views.values_of(day).astype(np.int64)
    last = of_days(lambda item: first_days(month_numbers(item) + 1) - 1, days)
    return views.to_array(last, DATE.arrow, views.valid_of(day))


@scalar("next_day(day DATE, weekday VARCHAR) -> DATE", group=GROUP, origin="spark")
def next_day(day: Value, weekday: Value) -> pa.Array:
    """The first such weekday after ``day``.

    >>> next_day(DATE '2024-05-08', 'Mon')
    2024-05-13
    """

    def run(column: pa.Array, name: str) -> pa.Array:
        names = [item.lower() for item in DAY_NAMES.to_pylist()]
        if name.lower()[:3] not in names and name.lower()[:2] not in [item[:2] for item in names]:
            raise InvalidParameter(f'"{name}" is no weekday')
        wanted = [item[:2] for item in names].index(name.lower()[:2])
        days = views.values_of(column).astype(np.int64)
        ahead = (wanted - (days + 3) % 7 - 1) % 7 + 1
        return views.to_array(days + ahead, DATE.arrow, views.valid_of(column))

    return with_constants(run, DATE.arrow, day, weekday)


# --- differences -----------------------------------------------------------------------------------------------------


@scalar("date_add(day DATE, count INT) -> DATE", group=GROUP, origin="spark", aliases=("dateadd",))
def date_add(day: Value, count: Value) -> pa.Array:
    """The day so many days later.

    >>> date_add(DATE '2024-02-28', 2)
    2024-03-01
    """
    return pc.add(columns(day, count)[0].cast(pa.int32()), count).cast(DATE.arrow)


@scalar("date_sub(day DATE, count INT) -> DATE", group=GROUP, origin="spark")
def date_sub(day: Value, count: Value) -> pa.Array:
    """The day so many days earlier.

    >>> date_sub(DATE '2024-03-01', 1)
    2024-02-29
    """
    return pc.subtract(columns(day, count)[0].cast(pa.int32()), count).cast(DATE.arrow)


@scalar("date_diff(a DATE, b DATE) -> INT", group=GROUP, origin="spark", aliases=("datediff",))
def date_diff(a: Value, b: Value) -> pa.Array:
    """How many days ``a`` is later than ``b``.

    >>> datediff(DATE '2024-03-01', DATE '2024-02-01')
    29
    """
    one, two = columns(a, b)
    return pc.subtract(one.cast(pa.int32()), two.cast(pa.int32()))


@scalar("date_diff(unit VARCHAR, a TIMESTAMP, b TIMESTAMP) -> BIGINT", group=GROUP, origin="duckdb",
        aliases=("datediff", "timestampdiff"))  # fmt: skip
def date_diff_unit(unit: Value, a: Value, b: Value) -> pa.Array:
    """How many beginnings of a unit lie between ``a`` and ``b``.

    >>> date_diff('month', DATE '2024-01-31', DATE '2024-02-01')
    1
    """
    one, two = columns(a, b) if isinstance(a, pa.Array) or isinstance(b, pa.Array) else columns(unit, a, b)[1:]
    rows = views.to_array(np.arange(len(one)), pa.int64(), all_valid(one, two))

    def run(chosen: pa.Array, unit: str) -> pa.Array:
        left, right = (views.values_of(column.take(chosen)) for column in (one, two))
        name = FIELDS.get(unit.lower())
        if name in _TRUNCATED_MONTHS:
            size = _TRUNCATED_MONTHS[name]
            shift = 1_970 * 12 if name not in ("century", "millennium") else 1_969 * 12
            counts = (_month_number(right) + shift) // size - (_month_number(left) + shift) // size
        else:
            size = 7 * MICROSECONDS_OF_DAY if name == "week" else _TRUNCATED_MICROS.get(str(name), 1)
            counts = (truncated(right, unit) - truncated(left, unit)) // size
        return views.to_array(counts, pa.int64(), views.valid_of(chosen))

    return with_constants(run, pa.int64(), rows, unit)


@scalar("date_sub(unit VARCHAR, a TIMESTAMP, b TIMESTAMP) -> BIGINT", group=GROUP, origin="duckdb",
        aliases=("datesub",))  # fmt: skip
def date_sub_unit(unit: Value, a: Value, b: Value) -> pa.Array:
    """How many whole units lie between ``a`` and ``b``.

    >>> date_sub('hour', TIMESTAMP '1992-09-30 23:59:59', TIMESTAMP '1992-10-01 01:58:00')
    1
    """
    one, two = columns(a, b) if isinstance(a, pa.Array) or isinstance(b, pa.Array) else columns(unit, a, b)[1:]
    rows = views.to_array(np.arange(len(one)), pa.int64(), all_valid(one, two))

    def run(chosen: pa.Array, unit: str) -> pa.Array:
        left, right = (views.values_of(column.take(chosen)).astype(np.int64) for column in (one, two))
        low, high, sign = np.minimum(left, right), np.maximum(left, right), np.where(right < left, -1, 1)
        name = FIELDS.get(unit.lower())
        if name in _TRUNCATED_MONTHS:
            (low_day, _), (high_day, length) = _day_and_length(low), _day_and_length(high)
            clocks = low % MICROSECONDS_OF_DAY > high % MICROSECONDS_OF_DAY
            early = (high_day < low_day) & (high_day < length) | (high_day == low_day) & clocks
            months = _month_number(high) - _month_number(low)
            counts = (months - (early & (months > 0))) // _TRUNCATED_MONTHS[name]
        else:
            truncated(left[:1], unit)
            size = 7 * MICROSECONDS_OF_DAY if name == "week" else _TRUNCATED_MICROS.get(str(name), 1)
            counts = (high - low) // size
        return views.to_array(counts * sign, pa.int64(), views.valid_of(chosen))

    return with_constants(run, pa.int64(), rows, unit)


def _month_number(micros: Any) -> Any:
    return month_numbers(micros // MICROSECONDS_OF_DAY)


@scalar("add_months(day DATE, count INT) -> DATE", group=GROUP, origin="spark")
def add_months_to(day: Value, count: Value) -> pa.Array:
    """The day so many months later, at most the last of the month.

    >>> add_months(DATE '2024-01-31', 1)
    2024-02-29
    """
    one, two = columns(day, count)
    moved = add_months(views.values_of(one).astype(np.int64), views.values_of(two).astype(np.int64))
    return views.to_array(moved, DATE.arrow, all_valid(one, two))


@scalar("months_between(a TIMESTAMP, b TIMESTAMP) -> DOUBLE", group=GROUP, origin="spark")
def months_between(a: Value, b: Value) -> pa.Array:
    """How many months ``a`` is later than ``b``; whole for the same day of the month or the last days of months.

    >>> months_between(DATE '2024-03-31', DATE '2024-02-29')
    1.0
    """
    one, two = columns(a, b)
    left, right = views.values_of(one), views.values_of(two)
    months = _month_number(left) - _month_number(right)
    day_left, last_left = _day_and_length(left)
    day_right, last_right = _day_and_length(right)
    whole = (day_left == day_right) | ((day_left == last_left) & (day_right == last_right))
    time = (left % MICROSECONDS_OF_DAY - right % MICROSECONDS_OF_DAY) / MICROSECONDS_OF_DAY
    parts = np.where(whole, 0.0, (day_left - day_right + time) / 31)
    return views.to_array(np.round(months + parts, 8), pa.float64(), all_valid(one, two))


def _day_and_length(micros: Any) -> tuple[Any, Any]:
    days = (micros // MICROSECONDS_OF_DAY).astype("datetime64[D]")
    month = days.astype("datetime64[M]")
    following = (month + np.timedelta64(1, "M")).astype("datetime64[D]")
    first = month.astype("datetime64[D]")
    return (days - first).astype(np.int64) + 1, (following - first).astype(np.int64)


@scalar("age(a TIMESTAMP, b TIMESTAMP) -> INTERVAL", group=GROUP, origin="postgres")
def age(a: Value, b: Value) -> pa.Array:
    """From ``b`` to ``a`` in years, months, days and time.

    >>> age(DATE '2024-03-01', DATE '2023-01-15')
    13 mons 17 days
    """
    one, two = columns(a, b)
    late = np.maximum(views.values_of(one), views.values_of(two))
    early = np.minimum(views.values_of(one), views.values_of(two))
    months = _month_number(late) - _month_number(early)
    (late_day, _), (early_day, early_length) = _day_and_length(late), _day_and_length(early)
    days, time = late_day - early_day, late % MICROSECONDS_OF_DAY - early % MICROSECONDS_OF_DAY
    days = days - (time < 0)
    time = time + (time < 0) * MICROSECONDS_OF_DAY
    for _ in range(2):
        months = months - (days < 0)
        days = days + (days < 0) * early_length
    sign = np.where(views.values_of(one) < views.values_of(two), -1, 1)
    return interval_array(months * sign, days * sign, time * sign * 1000, all_valid(one, two))


# --- making ----------------------------------------------------------------------------------------------------------


@scalar("make_date(year VARCHAR, month VARCHAR, day VARCHAR) -> DATE", group=GROUP, takes_call=True)
@scalar("make_date(year NUMERIC, month NUMERIC, day NUMERIC) -> DATE", group=GROUP, takes_call=True)
def make_date(year: Value, month: Value, day: Value, *, call: CallInfo) -> pa.Array:
    """The day of a year, a month and a day of the month.

    >>> make_date(2024, 2, 29)
    2024-02-29

    22008  there is no such day
    """
    given = _as_types((year, month, day), (INT, INT, INT), call)
    days = _day_number(given)
    return views.to_array(days, DATE.arrow, all_valid(*given))


def _as_types(values: tuple[Value, ...], wanted: tuple[Type, ...], call: CallInfo) -> list[pa.Array]:
    """Numbers and texts as the numbers that parts of a moment are."""
    rows = zip(columns(*values), call.types, wanted, strict=True)
    return [cast(column, source, target) for column, source, target in rows]


def _day_number(given: list[pa.Array]) -> Any:
    """Days since 1970 of years, months and days of the month."""
    year, month, day = (views.values_of(column).astype(np.int64) for column in given)
    valid = all_valid(*given)
    first = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    length = (first + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64)
    start = first.astype("datetime64[D]").astype(np.int64)
    bad = (month < 1) | (month > 12) | (day < 1) | (day > length - start) | (np.abs(year) > 200_000)
    _refuse_fields("date", bad, valid, (year, month, day))
    return start + day - 1


def _refuse_fields(kind: str, bad: Any, valid: Any, parts: tuple[Any, ...]) -> None:
    refused = bad if valid is None else bad & (valid == 1)
    if refused.any():
        row = int(np.flatnonzero(refused)[0])
        shown = (":" if kind == "time" else "-").join(str(part[row]) for part in parts)
        raise DatetimeOverflow(f"{kind} field value out of range: {shown}")


@scalar("make_time(hour VARCHAR, minute VARCHAR, second VARCHAR) -> TIME", group=GROUP, takes_call=True)
@scalar("make_time(hour NUMERIC, minute NUMERIC, second NUMERIC) -> TIME", group=GROUP, takes_call=True)
def make_time(hour: Value, minute: Value, second: Value, *, call: CallInfo) -> pa.Array:
    """The time of day of an hour, a minute and seconds.

    >>> make_time(13, 23, 1)
    13:23:01

    22008  there is no such time
    """
    given = _as_types((hour, minute, second), (INT, INT, DOUBLE), call)
    return views.to_array(_clock(given), TIME.arrow, all_valid(*given))


def _clock(given: list[pa.Array]) -> Any:
    hour, minute, second = (views.values_of(column) for column in given)
    bad = (hour < 0) | (hour > 23) | (minute < 0) | (minute > 59) | ~((second >= 0) & (second < 60))
    _refuse_fields("time", bad, all_valid(*given), (hour, minute, second))
    whole = (hour.astype(np.int64) * 60 + minute) * 60 * MICROS
    return whole + np.round(np.where(np.isfinite(second), second, 0) * MICROS).astype(np.int64)


@scalar("make_timestamp(year INT, month INT, day INT, hour INT, minute INT, second DOUBLE) -> TIMESTAMP", group=GROUP,
        origin="spark")  # fmt: skip
def make_timestamp(*parts: Value) -> pa.Array:
    """The moment of its six parts.

    >>> make_timestamp(1992, 9, 20, 13, 34, 27.123456)
    1992-09-20T13:34:27.123456

    22008  there is no such moment
    """
    given = columns(*parts)
    days = _day_number(given[:3])
    return timestamps(days * MICROSECONDS_OF_DAY + _clock(given[3:]), all_valid(*given))


@scalar("make_interval(years INT DEFAULT 0, months INT DEFAULT 0, weeks INT DEFAULT 0, days INT DEFAULT 0, "
        "hours INT DEFAULT 0, mins INT DEFAULT 0, secs DOUBLE DEFAULT 0) -> INTERVAL", group=GROUP)  # fmt: skip
def make_interval(*parts: Value) -> pa.Array:
    """The interval of its parts.

    >>> make_interval(1, 2, 0, 3)
    14 mons 3 days
    """
    given = columns(*parts)
    years, months, weeks, days, hours, minutes, seconds = (views.values_of(column) for column in given)
    valid = all_valid(*given)
    bad = ~(np.abs(seconds) < INTERVAL_SECONDS_MAX)
    if (bad if valid is None else bad & (valid == 1)).any():
        raise DatetimeOverflow("interval out of range")
    fraction = np.round(np.where(bad, 0, seconds) * MICROS).astype(np.int64)
    time = (hours.astype(np.int64) * 60 + minutes) * 60 * MICROS + fraction
    return interval_array(years * 12 + months, weeks * 7 + days, time * 1000, all_valid(*given))
