"""Dates and times written and read in formats, and as numbers: to_char, to_timestamp, to_date and their kin."""

from __future__ import annotations

from decimal import ROUND_HALF_UP
from decimal import Decimal as Fixed
from math import isfinite
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from lake.errors import DatetimeOverflow, LakeError, NumericOutOfRange
from lake.exec import decimals
from lake.exec.cast import MICROSECONDS_OF_DAY, cast, date_to_timestamp, decimal_to_double, to_wall
from lake.exec.cast_text import NANOSECONDS_OF_DAY, to_text
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import columns, map_distinct, map_rows, with_constants
from lake.exec.functions.date_fields import zone_of
from lake.exec.functions.intervals import TIMESTAMP_MAX, timestamps
from lake.exec.functions.time_columns import read_column, write_column
from lake.exec.functions.time_formats import micros_of, read
from lake.exec.kernels import views
from lake.exec.per_row import per_row
from lake.exec.spellings import iso_duration
from lake.sql.literals import parse_timestamp
from lake.sql.registry import CallInfo, scalar
from lake.types import BIGINT, DATE, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, Date, Decimal, Float, Timestamp, Type

GROUP: Final = "dates"
MICROS: Final = 1_000_000


# --- writing ---------------------------------------------------------------------------------------------------------


@scalar("to_char(moment TEMPORAL, format VARCHAR) -> VARCHAR", group=GROUP, takes_call=True,
        aliases=("date_format", "strftime"))  # fmt: skip
@scalar("to_char(moment TIME, format VARCHAR) -> VARCHAR", group=GROUP, takes_call=True, aliases=("date_format",))
def to_char(moment: Value, format: Value, *, call: CallInfo) -> pa.Array:
    """The moment in a format: chrono's (%Y-%m-%d), or Postgres's (YYYY-MM-DD) where it has no percent sign.

    >>> to_char(TIMESTAMP '2023-09-04 12:05:06', '%Y/%m/%d %H.%M.%S')
    2023/09/04 12.05.06
    >>> to_char(DATE '2024-02-29', 'DD Mon YYYY')
    29 Feb 2024
    """

    def run(column: pa.Array, pattern: str) -> pa.Array:
        micros = _micros_of_column(column, call.types[0], call)
        return write_column(pattern, micros)

    return with_constants(run, pa.string(), moment, format)


@scalar("to_char(length INTERVAL, format VARCHAR) -> VARCHAR", group=GROUP, takes_call=True, aliases=("date_format",))
@per_row
def interval_to_char(length: Value, format: Value, *, call: CallInfo) -> pa.Array:
    """The interval as text: ``iso8601`` as seconds of ISO, any other format as it is written anyway.

    Goes row by row: Arrow writes no seconds of ISO.

    >>> to_char(INTERVAL '1 day 2 hours', 'iso8601')
    PT93600S
    """

    def run(column: pa.Array, pattern: str) -> pa.Array:
        if pattern.lower() != "iso8601":
            return to_text(column, call.types[0])
        return map_rows(lambda parts: iso_duration(parts[2] + parts[1] * NANOSECONDS_OF_DAY), pa.string(), column)

    return with_constants(run, pa.string(), length, format)


def _micros_of_column(column: pa.Array, type: Type, call: CallInfo) -> pa.Array:
    if isinstance(type, Timestamp) and type.zoned:
        column = to_wall(column, zone_of(call))
    values = views.values_of(column).astype(np.int64, copy=False)
    micros = values * MICROSECONDS_OF_DAY if isinstance(type, Date) else values
    return views.to_array(micros, pa.int64(), views.valid_of(column))


@scalar("to_char(number NUMERIC, format VARCHAR) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True)
@per_row
def number_to_char(number: Value, format: Value, *, call: CallInfo) -> pa.Array:
    """The number in a format of 9 and 0 for digits, with a point, commas, a sign, and FM for no padding.

    Goes row by row: each number's digits are put into the format one by one.

    >>> to_char(1234.5, 'FM9,999.00')
    1,234.50
    """
    type = call.types[0]

    def run(column: pa.Array, pattern: str) -> pa.Array:
        if isinstance(type, Decimal):
            column = decimal_to_double(decimals.widen(column, type), type.scale)
        return map_distinct(lambda item: number_text(item, pattern), pa.string(), column)

    return with_constants(run, pa.string(), number, format)


def number_text(number: float, pattern: str) -> str:
    """A number in a Postgres format; a sign stands before the digits, or where MI or S ends the format."""
    bare = pattern.upper().startswith("FM")
    shape = pattern[2:].upper() if bare else pattern.upper()
    last = next((word for word in ("MI", "S") if len(shape) > len(word) and shape.endswith(word)), "")
    shape = shape.removesuffix(last)
    whole, _, fraction = shape.replace("D", ".").replace("G", ",").partition(".")
    places = sum(char in "90" for char in fraction)
    digits = sum(char in "90" for char in whole)
    rounded = Fixed(repr(abs(number))).quantize(Fixed(1).scaleb(-places), ROUND_HALF_UP) if isfinite(number) else number
    left, _, right = f"{rounded:.{places}f}".partition(".")
    is_negative = number < 0 and rounded != 0
    if len(left.lstrip("0")) > digits:
        left, right = "#" * digits, "#" * places
    least = digits - next(
        (index for index, char in enumerate(char for char in whole if char in "90") if char == "0"), digits
    )
    left = left.lstrip("0").rjust(max(least, 0 if places else 1), "0")
    filled = list(left.rjust(digits))
    written = "".join(_next(filled) if char in "90" else char if char == "," else "" for char in whole)
    written = _without_leading_commas(written)
    if fraction:
        written += "." + right
        if bare:
            kept = max((index for index, char in enumerate(fraction) if char == "0"), default=-1) + 1
            written = written[: len(written) - len(right) + kept] + written[len(written) - len(right) + kept :].rstrip(
                "0"
            )
    stripped = written.lstrip()
    if bare and stripped == ".":
        stripped = "0."
    sign = "-" if is_negative else "+" if "S" in whole else "" if bare else " "
    if last:
        return (stripped if bare else written) + ("-" if is_negative else "+" if last == "S" else "" if bare else " ")
    signed = sign + stripped
    return signed if bare else signed.rjust(len(written) + 1)


def _next(filled: list[str]) -> str:
    return filled.pop(0)


def _without_leading_commas(text: str) -> str:
    place = next((index for index, char in enumerate(text) if char not in " ,"), len(text))
    return text[:place].replace(",", " ") + text[place:]


# --- reading texts ---------------------------------------------------------------------------------------------------


def _first_that_reads(text: str, formats: tuple[str, ...]) -> int:
    """Microseconds of the text in the first format that it is of."""
    for index, pattern in enumerate(formats):
        try:
            return micros_of(read(pattern, text))
        except LakeError:
            if index == len(formats) - 1:
                raise
    return parse_timestamp(text, zoned=True)


@per_row
def _read_all(text: Value, formats: tuple[Value, ...], type: pa.DataType, unit: int) -> pa.Array:
    """Texts that Arrow does not take apart go row by row: zones, days of the year, and what is to be refused."""
    def run(column: pa.Array, *patterns: str) -> pa.Array:
        if patterns:
            return read_column(patterns[0], column, lambda item: _first_that_reads(item, patterns))
        return map_distinct(lambda item: _first_that_reads(item, patterns), pa.int64(), column)

    micros = with_constants(run, pa.int64(), text, *formats)
    return views.to_array(views.values_of(micros) // unit, type, views.valid_of(micros))


def _cut(moments: pa.Array, unit: int) -> pa.Array:
    """Timestamps without what is smaller than a unit of so many microseconds."""
    micros = views.values_of(moments)
    return timestamps(micros // unit * unit, views.valid_of(moments))


def _register_to_timestamp(name: str, unit: int, example: str) -> None:
    """to_timestamp_<unit>: texts, and numbers counted in ``unit`` microseconds (below 0: parts of one)."""

    def of_text(text: Value, *formats: Value) -> pa.Array:
        return _cut(_read_all(text, formats, TIMESTAMP.arrow, 1), max(unit, 1))

    def of_number(number: pa.Array, *formats: Value, call: CallInfo) -> pa.Array:
        return _of_number(cast(as_array(number, call.rows), call.types[0], BIGINT), unit)

    def of_moment(moment: pa.Array, *, call: CallInfo) -> pa.Array:
        return _cut(_as_timestamp(moment, call), max(unit, 1))

    words = {1_000_000: "second", 1000: "millisecond", 1: "microsecond", -1000: "nanosecond"}[unit]
    text = f"""The moment of a text, of a number of {words}s since 1970, or of a date, cut to the {words}.

    >>> {example}

    22P02  a text that is no moment, or is of none of the formats
    """
    of_text.__doc__ = of_number.__doc__ = of_moment.__doc__ = text
    scalar(f"{name}(text VARCHAR, formats VARCHAR...) -> TIMESTAMP", group=GROUP)(of_text)
    scalar(f"{name}(number NUMERIC, formats VARCHAR...) -> TIMESTAMP", group=GROUP, takes_call=True)(of_number)
    scalar(f"{name}(moment TEMPORAL) -> TIMESTAMP", group=GROUP, takes_call=True)(of_moment)


def _of_number(number: pa.Array, unit: int) -> pa.Array:
    counts = views.values_of(number)
    if unit < 0:
        return timestamps(counts // -unit, views.valid_of(number))
    if counts.size and np.abs(counts).max() > TIMESTAMP_MAX // unit:
        raise DatetimeOverflow("timestamp out of range")
    return timestamps(counts * unit, views.valid_of(number))


def _as_timestamp(moment: pa.Array, call: CallInfo) -> pa.Array:
    if isinstance(call.types[0], Date):
        return date_to_timestamp(moment)
    return moment.cast(TIMESTAMP.arrow)


_register_to_timestamp("to_timestamp_seconds", 1_000_000, "to_timestamp_seconds(1700000000)\n    2023-11-14T22:13:20")
_register_to_timestamp("to_timestamp_millis", 1000, "to_timestamp_millis(1700000000123)\n    2023-11-14T22:13:20.123")
_register_to_timestamp(
    "to_timestamp_micros", 1, "to_timestamp_micros(1700000000123456)\n    2023-11-14T22:13:20.123456"
)
_register_to_timestamp(
    "to_timestamp_nanos", -1000, "to_timestamp_nanos(1700000000123456789)\n    2023-11-14T22:13:20.123456"
)


@scalar("to_timestamp(text VARCHAR, formats VARCHAR...) -> TIMESTAMP", group=GROUP, aliases=("strptime",))
def to_timestamp(text: Value, *formats: Value) -> pa.Array:
    """The moment of a text, by the first of the formats that it is of; one with a zone becomes its UTC reading.

    >>> to_timestamp('03:59:00.123 05-17-2023', '%H:%M:%S%.f %m-%d-%Y')
    2023-05-17T03:59:00.123

    22P02  a text that is no moment, or is of none of the formats
    """
    return _read_all(text, formats, TIMESTAMP.arrow, 1)


@scalar("to_timestamp(number NUMERIC, formats VARCHAR...) -> TIMESTAMP", group=GROUP, takes_call=True)
def number_to_timestamp(number: Value, *formats: Value, call: CallInfo) -> pa.Array:
    """The moment so many seconds after 1970; formats are for texts.

    >>> to_timestamp(1700000000)
    2023-11-14T22:13:20
    """
    type = call.types[0]
    number = as_array(number, call.rows)
    if isinstance(type, Decimal):
        number = decimal_to_double(number, type.scale)
    if not isinstance(type, Decimal | Float):
        return _of_number(number.cast(pa.int64()), MICROS)
    seconds = views.values_of(number).astype(np.float64)
    valid = views.valid_of(number)
    bad = ~(np.abs(seconds) < TIMESTAMP_MAX / MICROS)
    if (bad if valid is None else bad & (valid == 1)).any():
        raise DatetimeOverflow("timestamp out of range")
    return timestamps(np.round(np.where(bad, 0, seconds) * MICROS).astype(np.int64), valid)


@scalar("to_timestamp(moment TEMPORAL) -> TIMESTAMP", group=GROUP, takes_call=True)
def moment_to_timestamp(moment: pa.Array, *, call: CallInfo) -> pa.Array:
    """The moment as a TIMESTAMP; an instant's reading in UTC.

    >>> to_timestamp(DATE '2024-02-29')
    2024-02-29T00:00:00
    """
    return _as_timestamp(moment, call)


@scalar("try_strptime(text VARCHAR, format VARCHAR) -> TIMESTAMP", group=GROUP, origin="duckdb")
def try_strptime(text: Value, format: Value) -> pa.Array:
    """The moment of a text in a format; NULL where it is not of it.

    >>> try_strptime('x', '%Y')
    NULL
    """

    def attempt(item: str, pattern: str) -> int | None:
        try:
            return micros_of(read(pattern, item))
        except LakeError:
            return None

    def run(column: pa.Array, pattern: str) -> pa.Array:
        return read_column(pattern, column, lambda item: attempt(item, pattern))

    return with_constants(run, pa.int64(), text, format).cast(TIMESTAMP.arrow)


@scalar("to_date(text VARCHAR, formats VARCHAR...) -> DATE", group=GROUP, aliases=("date",))
def to_date(text: Value, *formats: Value) -> pa.Array:
    """The day of a text, by the first of the formats that it is of.

    >>> to_date('29/02/2024', '%d/%m/%Y')
    2024-02-29

    22P02  a text that is no day, or is of none of the formats
    """
    if not formats:
        (column,) = columns(text)
        return cast(column, TEXT, DATE)
    return _read_all(text, formats, DATE.arrow, MICROSECONDS_OF_DAY)


@scalar("to_date(number NUMERIC) -> DATE", group=GROUP, takes_call=True)
def number_to_date(number: Value, *, call: CallInfo) -> pa.Array:
    """The day so many whole days after 1970-01-01.

    >>> to_date(1)
    1970-01-02
    """
    whole = cast(as_array(number, call.rows), call.types[0], BIGINT)
    days = views.values_of(whole)
    if days.size and np.abs(days).max() >= 2**31:
        raise DatetimeOverflow("date out of range")
    return views.to_array(days, DATE.arrow, views.valid_of(whole))


@scalar("to_date(moment DATE) -> DATE", group=GROUP, aliases=("date",))
def date_to_date(moment: pa.Array) -> pa.Array:
    """The day itself.

    >>> to_date(DATE '2024-02-29')
    2024-02-29
    """
    return moment


@scalar("to_date(moment TIMESTAMP) -> DATE", group=GROUP, aliases=("date",))
def timestamp_to_date(moment: pa.Array) -> pa.Array:
    """The day of a moment.

    >>> to_date(TIMESTAMP '2024-02-29 12:00:00')
    2024-02-29
    """
    return views.to_array(views.values_of(moment) // MICROSECONDS_OF_DAY, DATE.arrow, views.valid_of(moment))


@scalar("to_time(text VARCHAR, formats VARCHAR...) -> TIME", group=GROUP)
def to_time(text: Value, *formats: Value) -> pa.Array:
    """The time of day of a text, by the first of the formats that it is of.

    >>> to_time('12-30', '%H-%M')
    12:30:00
    """
    if not formats:
        (column,) = columns(text)
        return cast(column, TEXT, TIME)
    micros = _read_all(text, formats, pa.int64(), 1)
    return views.to_array(views.values_of(micros) % MICROSECONDS_OF_DAY, TIME.arrow, views.valid_of(micros))


@scalar("to_time(moment TIMESTAMP) -> TIME", group=GROUP)
def moment_to_time(moment: pa.Array) -> pa.Array:
    """The time of day of a moment.

    >>> to_time(TIMESTAMP '2024-01-15 14:30:45')
    14:30:45
    """
    return views.to_array(views.values_of(moment) % MICROSECONDS_OF_DAY, TIME.arrow, views.valid_of(moment))


# --- numbers ---------------------------------------------------------------------------------------------------------


@scalar("to_unixtime(text VARCHAR, formats VARCHAR...) -> BIGINT", group=GROUP)
def to_unixtime(text: Value, *formats: Value) -> pa.Array:
    """Seconds since 1970 of a text.

    >>> to_unixtime('2020-09-08T12:00:00+00:00')
    1599566400
    """
    return _read_all(text, formats, pa.int64(), MICROS)


@scalar("to_unixtime(moment TEMPORAL) -> BIGINT", group=GROUP, takes_call=True)
def moment_to_unixtime(moment: pa.Array, *, call: CallInfo) -> pa.Array:
    """Seconds since 1970 of a moment.

    >>> to_unixtime(DATE '1970-01-02')
    86400
    """
    moments = _as_timestamp(moment, call)
    return views.to_array(views.values_of(moments) // MICROS, pa.int64(), views.valid_of(moments))


@scalar("to_unixtime(seconds NUMERIC) -> BIGINT", group=GROUP, takes_call=True)
def number_to_unixtime(seconds: pa.Array, *, call: CallInfo) -> pa.Array:
    """Seconds since 1970, whole.

    >>> to_unixtime(1000.12)
    1000
    """
    return cast(as_array(seconds, call.rows), call.types[0], BIGINT)


@scalar("unix_timestamp() -> BIGINT", group=GROUP, origin="spark", volatility="stable", takes_call=True)
def unix_timestamp(*, call: CallInfo) -> pa.Scalar:
    """Seconds since 1970 when the statement began.

    >>> unix_timestamp() > 0
    true
    """
    assert call.settings is not None
    return pa.scalar(call.settings.now // MICROS)


@scalar("from_unixtime(number BIGINT) -> TIMESTAMP", group=GROUP)
def from_unixtime(number: pa.Array) -> pa.Array:
    """The moment so many seconds after 1970.

    >>> from_unixtime(1599572549)
    2020-09-08T13:42:29
    """
    return _of_number(number, MICROS)


def _zoned_seconds(arguments: tuple[Any, ...]) -> Type:
    """An instant that is written in the zone the second argument names, where that is a constant."""
    zone = getattr(arguments[1], "value", None)
    return replace(TIMESTAMPTZ, spelled=f'Timestamp(s, "{zone}")') if isinstance(zone, str) else TIMESTAMPTZ


@scalar("from_unixtime(number BIGINT, zone VARCHAR) -> TIMESTAMPTZ", group=GROUP, literal_rule=_zoned_seconds)
def from_unixtime_in_zone(number: Value, zone: Value) -> pa.Array:
    """The instant so many seconds after 1970, written in a zone.

    >>> from_unixtime(1599572549, 'America/New_York')
    2020-09-08T09:42:29-04:00
    """
    return _of_number(columns(number, zone)[0], MICROS).cast(TIMESTAMPTZ.arrow)


@scalar("epoch_ms(number BIGINT) -> TIMESTAMP", group=GROUP, origin="duckdb")
def epoch_ms_to_timestamp(number: pa.Array) -> pa.Array:
    """The moment so many milliseconds after 1970.

    >>> epoch_ms(701222400000)
    1992-03-22T00:00:00
    """
    return _of_number(number, 1000)


@scalar("epoch_ns(moment TIMESTAMP) -> BIGINT", group=GROUP, origin="duckdb")
def epoch_ns(moment: pa.Array) -> pa.Array:
    """Nanoseconds since 1970.

    >>> epoch_ns(TIMESTAMP '2021-08-03 11:59:44.123456')
    1627991984123456000

    22003  a moment too far from 1970
    """
    micros = views.values_of(moment)
    if micros.size and np.abs(micros).max() > (2**63 - 1) // 1000:
        raise NumericOutOfRange("bigint out of range")
    return views.to_array(micros * 1000, pa.int64(), views.valid_of(moment))
