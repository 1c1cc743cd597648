"""Dates and times as Spark has them: Java's formats, zones, and numbers since 1970."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import DatetimeOverflow, InvalidParameter, LakeError
from lake.exec import decimals
from lake.exec.cast import MICROSECONDS_OF_DAY, cast, decimal_to_double
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions import clock, dates
from lake.exec.functions.columns import all_valid, columns, with_constants
from lake.exec.functions.date_fields import zone_of
from lake.exec.functions.intervals import timestamps
from lake.exec.functions.time_columns import read_column, write_column
from lake.exec.functions.time_formats import micros_of, read
from lake.exec.functions.time_text import to_timestamp
from lake.exec.kernels import views
from lake.sql.registry import CallInfo, scalar
from lake.types import DATE, TEXT, TIME, TIMESTAMP, Decimal, Float

GROUP: Final = "dates"
MICROS: Final = 1_000_000

# Letters of Java's patterns, by how often they stand there, as chrono writes the same.
_JAVA: Final = {
    "y": "%-Y", "yy": "%y", "yyy": "%Y", "yyyy": "%Y", "u": "%-Y", "uuuu": "%Y", "M": "%-m", "MM": "%m", "MMM": "%b",
    "MMMM": "%B", "L": "%-m", "LL": "%m", "LLL": "%b", "LLLL": "%B", "d": "%-d", "dd": "%d", "D": "%-j", "DDD": "%j",
    "H": "%-H", "HH": "%H", "h": "%-I", "hh": "%I", "K": "%-I", "KK": "%I", "k": "%-H", "kk": "%H", "m": "%-M", "mm": "%M",
    "s": "%-S", "ss": "%S", "a": "%p", "E": "%a", "EE": "%a", "EEE": "%a", "EEEE": "%A", "X": "%z", "XX": "%z",
    "X" * 3: "%:z", "x": "%z", "xx": "%z", "xxx": "%:z", "Z": "%z", "z": "UTC", "VV": "UTC", "q": "%-q", "Q": "%-q",
    **{"S" * digits: f"%{digits}f" for digits in range(1, 10)},
}  # fmt: skip


@lru_cache(500)
def chrono_pattern(pattern: str) -> str:
    """A pattern of Java as chrono's.

    22023  a letter that means nothing there
    """
    made = []
    for match in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", pattern, re.DOTALL):
        part = match[0]
        if match[1] is not None:
            made.append((match[1].replace("''", "'") or "'").replace("%", "%%"))
        elif match[2]:
            known = _JAVA.get(part)
            if known is None:
                raise InvalidParameter(f'unknown letters "{part}" in the format "{pattern}"')
            made.append(known)
        else:
            made.append(part.replace("%", "%%"))
    return "".join(made)


# --- formats ---------------------------------------------------------------------------------------------------------


@scalar("spark_date_format(moment TIMESTAMP, format VARCHAR) -> VARCHAR", group=GROUP, origin="spark",
        aliases=("spark_to_char", "to_varchar"))  # fmt: skip
def spark_date_format(moment: Value, format: Value) -> pa.Array:
    """The moment in a format of Java: yyyy-MM-dd HH:mm:ss.

    >>> spark_date_format(TIMESTAMP '2016-04-08 10:05:00', 'dd/MM/y HH:mm')
    08/04/2016 10:05
    """

    def run(column: pa.Array, format: str) -> pa.Array:
        pattern = chrono_pattern(format)
        numbers = views.to_array(views.values_of(column), pa.int64(), views.valid_of(column))
        return write_column(pattern, numbers)

    return with_constants(run, pa.string(), moment, format)


def _read(text: Value, format: Value) -> pa.Array:
    """TIMESTAMP of texts in a format of Java."""

    def run(column: pa.Array, format: str) -> pa.Array:
        pattern = chrono_pattern(format)
        return read_column(pattern, column, lambda item: micros_of(read(pattern, item)))

    return with_constants(run, pa.int64(), text, format).cast(TIMESTAMP.arrow)


def _try_read(text: Value, format: Value) -> pa.Array:
    def attempt(item: str, pattern: str) -> int | None:
        try:
            return micros_of(read(pattern, item))
        except LakeError:
            return None

    def run(column: pa.Array, format: str) -> pa.Array:
        pattern = chrono_pattern(format)
        return read_column(pattern, column, lambda item: attempt(item, pattern))

    return with_constants(run, pa.int64(), text, format).cast(TIMESTAMP.arrow)


@scalar("spark_to_timestamp(text VARCHAR) -> TIMESTAMP", group=GROUP, origin="spark",
        aliases=("to_timestamp_ntz", "to_timestamp_ltz"))  # fmt: skip
@scalar("spark_to_timestamp(text VARCHAR, format VARCHAR) -> TIMESTAMP", group=GROUP, origin="spark",
        aliases=("to_timestamp_ntz", "to_timestamp_ltz"))  # fmt: skip
def spark_to_timestamp(text: Value, format: Value | None = None) -> pa.Array:
    """The moment of a text, or of a text in a format of Java.

    >>> spark_to_timestamp('2016-12-31', 'yyyy-MM-dd')
    2016-12-31T00:00:00

    22P02  a text that is no moment
    """
    return to_timestamp(text) if format is None else _read(text, format)


@scalar("try_to_timestamp(text VARCHAR) -> TIMESTAMP", group=GROUP, origin="spark")
@scalar("try_to_timestamp(text VARCHAR, format VARCHAR) -> TIMESTAMP", group=GROUP, origin="spark")
def try_to_timestamp(text: Value, format: Value | None = None) -> pa.Array:
    """The moment of a text in a format of Java, NULL where it is none.

    >>> SELECT try_to_timestamp('foo', 'yyyy-MM-dd'), try_to_timestamp('2016-12-31')
    NULL | 2016-12-31T00:00:00
    """
    if format is None:
        return cast(columns(text)[0], TEXT, TIMESTAMP, is_try=True)
    return _try_read(text, format)


@scalar("spark_to_date(text VARCHAR) -> DATE", group=GROUP, origin="spark")
@scalar("spark_to_date(text VARCHAR, format VARCHAR) -> DATE", group=GROUP, origin="spark")
def spark_to_date(text: Value, format: Value | None = None) -> pa.Array:
    """The day of a text, or of a text in a format of Java.

    >>> spark_to_date('31.12.2016', 'dd.MM.yyyy')
    2016-12-31

    22P02  a text that is no day
    """
    return _days(spark_to_timestamp(text, format))


@scalar("try_to_date(text VARCHAR) -> DATE", group=GROUP, origin="spark")
@scalar("try_to_date(text VARCHAR, format VARCHAR) -> DATE", group=GROUP, origin="spark")
def try_to_date(text: Value, format: Value | None = None) -> pa.Array:
    """The day of a text in a format of Java, NULL where it is none.

    >>> SELECT try_to_date('foo', 'yyyy-MM-dd'), try_to_date('2016-12-31')
    NULL | 2016-12-31
    """
    return _days(try_to_timestamp(text, format))


@scalar("time(value ANY) -> TIME", group=GROUP, origin="spark", takes_call=True)
def time(value: Value, *, call: CallInfo) -> pa.Array:
    """The time of day of a moment, or that a text writes.

    >>> SELECT time('12:30'), time(TIMESTAMP '2024-01-01 10:20:30')
    12:30:00 | 10:20:30

    22P02  a text that is no time
    """
    return cast(as_array(value, call.rows), call.types[0], TIME, settings=call.settings)


@scalar("try_to_time(text VARCHAR) -> TIME", group=GROUP, origin="spark")
def try_to_time(text: pa.Array) -> pa.Array:
    """The time of day of a text, NULL where it is none.

    >>> SELECT try_to_time('12:30:00'), try_to_time('x')
    12:30:00 | NULL
    """
    return cast(text, TEXT, TIME, is_try=True)


def _days(moment: pa.Array) -> pa.Array:
    days = views.values_of(moment) // MICROSECONDS_OF_DAY
    return views.to_array(days, DATE.arrow, views.valid_of(moment))


@scalar("to_unix_timestamp(moment TIMESTAMP) -> BIGINT", group=GROUP, origin="spark")
@scalar("to_unix_timestamp(text VARCHAR, format VARCHAR) -> BIGINT", group=GROUP, origin="spark",
        aliases=("unix_timestamp",))  # fmt: skip
@scalar("unix_timestamp(moment TIMESTAMP) -> BIGINT", group=GROUP, origin="spark")
def to_unix_timestamp(moment: Value, format: Value | None = None) -> pa.Array:
    """Whole seconds since 1970 of a moment, or of a text in a format of Java.

    >>> to_unix_timestamp('2016-04-08', 'yyyy-MM-dd')
    1460073600
    """
    return _since(columns(moment)[0] if format is None else _read(moment, format), MICROS)


@scalar("spark_trunc(day DATE, unit VARCHAR) -> DATE", group=GROUP, origin="spark")
def spark_trunc(day: Value, unit: Value) -> pa.Array:
    """The day cut to the beginning of a unit.

    >>> spark_trunc(DATE '2019-08-04', 'week')
    2019-07-29
    """
    return dates.trunc_date(day, unit)


@scalar("time_trunc(unit VARCHAR, time TIME) -> TIME", group=GROUP, origin="spark")
def time_trunc(unit: Value, time: Value) -> pa.Array:
    """The time of day cut to an hour, minute, second, millisecond or microsecond.

    >>> time_trunc('HOUR', TIME '09:32:05.359')
    09:00:00

    22023  another unit
    """

    def run(column: pa.Array, unit: str) -> pa.Array:
        width = _TIME_UNITS.get(unit.lower())
        if width is None:
            raise InvalidParameter(f'unit "{unit}" of a time is not known')
        micros = views.values_of(column)
        return views.to_array(micros - micros % width, TIME.arrow, views.valid_of(column))

    return with_constants(run, TIME.arrow, time, unit)


_TIME_UNITS: Final = {"hour": 3600 * MICROS, "minute": 60 * MICROS, "second": MICROS, "millisecond": 1000, "microsecond": 1}


@scalar("time_diff(unit VARCHAR, a TIME, b TIME) -> BIGINT", group=GROUP, origin="spark")
def time_diff(unit: Value, a: Value, b: Value) -> pa.Array:
    """How many whole units lie between two times of day.

    >>> time_diff('MINUTE', TIME '10:00:00', TIME '12:30:30')
    150

    22023  an unknown unit
    """
    a, b = columns(a, b)
    between = views.to_array(views.values_of(b) - views.values_of(a), pa.int64(), all_valid(a, b))

    def run(column: pa.Array, unit: str) -> pa.Array:
        width = _TIME_UNITS.get(unit.lower())
        if width is None:
            raise InvalidParameter(f'unit "{unit}" of a time is not known')
        return pc.divide(column, pa.scalar(width, pa.int64()))

    return with_constants(run, pa.int64(), between, unit)


# --- zones -----------------------------------------------------------------------------------------------------------


@scalar("current_timezone() -> VARCHAR", group=GROUP, origin="spark", volatility="stable", takes_call=True)
def current_timezone(*, call: CallInfo) -> pa.Scalar:
    """The session's time zone.

    >>> current_timezone()
    UTC
    """
    return pa.scalar(zone_of(call))


@scalar("convert_timezone(source VARCHAR, target VARCHAR, moment TIMESTAMP) -> TIMESTAMP", group=GROUP, origin="spark")
def convert_timezone(source: Value, target: Value, moment: Value) -> pa.Array:
    """What clocks in one zone read when those of another read so.

    >>> convert_timezone('Europe/Brussels', 'America/Los_Angeles', TIMESTAMP '2021-12-06 00:00:00')
    2021-12-05T15:00:00
    """
    return clock.instant_at_time_zone(clock.wall_at_time_zone(moment, source), target)


@scalar("convert_timezone(target VARCHAR, moment TIMESTAMP) -> TIMESTAMP", group=GROUP, origin="spark", takes_call=True)
def convert_from_session(target: Value, moment: Value, *, call: CallInfo) -> pa.Array:
    """What clocks in a zone read when those of the session's zone read so.

    >>> convert_timezone('Asia/Seoul', TIMESTAMP '2021-12-06 00:00:00')
    2021-12-06T09:00:00
    """
    return convert_timezone(pa.scalar(zone_of(call)), target, moment)


@scalar("from_utc_timestamp(moment TIMESTAMP, zone VARCHAR) -> TIMESTAMP", group=GROUP, origin="spark")
def from_utc_timestamp(moment: Value, zone: Value) -> pa.Array:
    """What clocks in a zone read when those of UTC read so.

    >>> from_utc_timestamp(TIMESTAMP '2016-08-31 00:00:00', 'Asia/Seoul')
    2016-08-31T09:00:00
    """
    return convert_timezone(pa.scalar("UTC"), zone, moment)


@scalar("to_utc_timestamp(moment TIMESTAMP, zone VARCHAR) -> TIMESTAMP", group=GROUP, origin="spark")
def to_utc_timestamp(moment: Value, zone: Value) -> pa.Array:
    """What clocks of UTC read when those in a zone read so.

    >>> to_utc_timestamp(TIMESTAMP '2016-08-31 00:00:00', 'Asia/Seoul')
    2016-08-30T15:00:00
    """
    return convert_timezone(zone, pa.scalar("UTC"), moment)


# --- numbers ---------------------------------------------------------------------------------------------------------


def _since(column: pa.Array, width: int) -> pa.Array:
    return views.to_array(views.values_of(column).astype(np.int64) // width, pa.int64(), views.valid_of(column))


def _register_counts() -> None:
    """timestamp_<unit>, unix_<unit>, time_from_<unit> and time_to_<unit>."""
    for unit, width in (("millis", 1000), ("micros", 1), ("seconds", MICROS)):

        def of_number(number: pa.Array, width: int = width) -> pa.Array:
            values = views.values_of(number)
            if values.size and np.abs(values).max() > np.iinfo(np.int64).max // width:
                raise DatetimeOverflow("timestamp out of range")
            return timestamps(values * width, views.valid_of(number))

        def to_number(moment: pa.Array, width: int = width) -> pa.Array:
            return _since(moment, width)

        def time_of(number: pa.Array, width: int = width) -> pa.Array:
            values = views.values_of(number) * width
            valid = views.valid_of(number)
            bad = (values < 0) | (values >= MICROSECONDS_OF_DAY)
            if (bad if valid is None else bad & (valid == 1)).any():
                raise DatetimeOverflow("time out of range")
            return views.to_array(values, TIME.arrow, valid)

        def of_time(time: pa.Array, width: int = width) -> pa.Array:
            return _since(time, width)

        number = 1_230_219_000_000_000 // width
        of_number.__doc__ = f"""The moment so many {unit} after 1970.

    >>> timestamp_{unit}({number})
    2008-12-25T15:30:00
    """
        to_number.__doc__ = f"""Whole {unit} since 1970.

    >>> unix_{unit}(TIMESTAMP '2008-12-25 15:30:00')
    {number}
    """
        time_of.__doc__ = f"""The time of day so many {unit} after midnight.

    >>> time_from_{unit}({3_600_000_000 // width})
    01:00:00
    """
        of_time.__doc__ = f"""Whole {unit} since midnight.

    >>> time_to_{unit}(TIME '01:00:00')
    {3_600_000_000 // width}
    """
        scalar(f"timestamp_{unit}(number BIGINT) -> TIMESTAMP", group=GROUP, origin="spark")(of_number)
        for type in ("TIMESTAMP", "TIMESTAMPTZ"):
            scalar(f"unix_{unit}(moment {type}) -> BIGINT", group=GROUP, origin="spark")(to_number)
        scalar(f"time_from_{unit}(number BIGINT) -> TIME", group=GROUP, origin="spark")(time_of)
        scalar(f"time_to_{unit}(time TIME) -> BIGINT", group=GROUP, origin="spark")(of_time)


_register_counts()


@scalar("timestamp_seconds(number NUMERIC) -> TIMESTAMP", group=GROUP, origin="spark", takes_call=True)
def timestamp_of_seconds(number: pa.Array, *, call: CallInfo) -> pa.Array:
    """The moment so many seconds after 1970, with a fraction.

    >>> timestamp_seconds(1230219000.5)
    2008-12-25T15:30:00.500
    """
    type = call.types[0]
    if isinstance(type, Decimal):
        number = decimal_to_double(decimals.widen(number, type), type.scale)
    seconds = views.values_of(number)
    fits = np.isfinite(seconds) if isinstance(type, Decimal | Float) else np.ones(len(seconds), np.bool_)
    valid = views.valid_of(number)
    if (~fits if valid is None else ~fits & (valid == 1)).any():
        raise DatetimeOverflow("timestamp out of range")
    return timestamps(np.round(np.where(fits, seconds, 0) * MICROS).astype(np.int64), valid)


@scalar("timestamp_nanos(number BIGINT) -> TIMESTAMP", group=GROUP, origin="spark")
def timestamp_nanos(number: pa.Array) -> pa.Array:
    """The moment so many nanoseconds after 1970, cut to the microsecond.

    >>> timestamp_nanos(1230219000000000000)
    2008-12-25T15:30:00
    """
    return timestamps(views.values_of(number) // 1000, views.valid_of(number))


@scalar("unix_nanos(moment TIMESTAMP) -> BIGINT", group=GROUP, origin="spark")
@scalar("unix_nanos(moment TIMESTAMPTZ) -> BIGINT", group=GROUP, origin="spark")
def unix_nanos(moment: pa.Array) -> pa.Array:
    """Nanoseconds since 1970.

    >>> unix_nanos(TIMESTAMP '1970-01-01 00:00:01')
    1000000000

    22008  a moment whose nanoseconds BIGINT does not hold
    """
    micros = views.values_of(moment)
    if micros.size and np.abs(micros).max() > np.iinfo(np.int64).max // 1000:
        raise DatetimeOverflow("nanoseconds out of range")
    return views.to_array(micros.astype(np.int64) * 1000, pa.int64(), views.valid_of(moment))


@scalar("unix_date(day DATE) -> INT", group=GROUP, origin="spark")
def unix_date(day: pa.Array) -> pa.Array:
    """Days since 1970.

    >>> unix_date(DATE '1970-01-02')
    1
    """
    return day.cast(pa.int32())


@scalar("date_from_unix_date(number INT) -> DATE", group=GROUP, origin="spark")
def date_from_unix_date(number: pa.Array) -> pa.Array:
    """The day so many days after 1970-01-01.

    >>> date_from_unix_date(1)
    1970-01-02
    """
    return number.cast(DATE.arrow)
