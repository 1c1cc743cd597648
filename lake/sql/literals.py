"""Dates, times and intervals written as text, parsed into physical values (``bound.Literal``).

    >>> parse_date("1970-01-31")
    30
    >>> parse_interval("1 year 2 days 04:05:06")
    (12, 2, 14706000000000)

Every function raises 22P02 for a text that is not of its form and 22008 for a value out of range.
Source: PostgreSQL documentation, Date/Time Types; ISO 8601 (durations).
"""

from __future__ import annotations

import datetime
import re
import sys
from decimal import Decimal as PyDecimal
from decimal import InvalidOperation
from fractions import Fraction
from typing import Final, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lake.errors import DatetimeOverflow, IntervalFieldOverflow, InvalidParameter, InvalidText, NumericOutOfRange
from lake.late import late_pattern

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400 * MICROS_PER_SECOND
NANOS_PER_SECOND: Final = 1_000_000_000
EPOCH_ORDINAL: Final = datetime.date(1970, 1, 1).toordinal()
EPOCH: Final = datetime.datetime(1970, 1, 1)
ONE_MICROSECOND: Final = datetime.timedelta(microseconds=1)

_DATE = late_pattern(r"(\d{1,6})-(\d{1,2})-(\d{1,2})|(\d{4})(\d{2})(\d{2})")
_TIME = late_pattern(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?(?:\s*([AaPp])[Mm]\b)?")
_OFFSET = late_pattern(r"([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


DOUBLE_MAX: Final = sys.float_info.max
REAL_MAX: Final = 3.4028235677973366e38  # halfway to the power of two above the greatest REAL, which rounds down to it


def _refuse(kind: str, text: str) -> NoReturn:
    raise InvalidText(f'invalid input syntax for type {kind}: "{text}"')


# --- numbers, truth and bytes ----------------------------------------------------------------------------------------


def parse_integer(text: str, bits: int, type_name: str) -> int:
    """The whole number ``text`` writes, if ``bits`` hold it."""
    trimmed = text.strip()
    if not re.fullmatch(r"[+-]?\d+", trimmed):
        _refuse(type_name, text)
    value = int(trimmed)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise NumericOutOfRange(f'value "{text}" is out of range for type {type_name}')
    return value


def parse_float(text: str, bits: int = 64) -> float:
    """The float ``text`` writes; NaN, inf and Infinity in any case.

    22003  a number beyond the greatest one
    """
    trimmed = text.strip()
    if "_" in trimmed:
        _refuse("double", text)
    try:
        value = float(trimmed)
    except ValueError:
        _refuse("double", text)
    if abs(value) > (REAL_MAX if bits == 32 else DOUBLE_MAX) and "inf" not in trimmed.lower():
        raise NumericOutOfRange(f'"{text}" is out of range for type {"real" if bits == 32 else "double precision"}')
    return value


def parse_number(text: str) -> PyDecimal:
    """The exact number ``text`` writes, an exponent included."""
    trimmed = text.strip()
    try:
        value = PyDecimal(trimmed)
    except InvalidOperation:
        _refuse("decimal", text)
    if "_" in trimmed or not value.is_finite():
        _refuse("decimal", text)
    return value


def parse_boolean(text: str) -> bool:
    """true or false by their names, first letters and numbers: t, yes, on, 1."""
    word = text.strip().lower()
    if word in ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"):
        return True
    if word in ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"):
        return False
    _refuse("boolean", text)


# --- dates and times -------------------------------------------------------------------------------------------------


def parse_date(text: str) -> int:
    """Days since 1970-01-01 of ``YYYY-MM-DD``, ``YYYYMMDD`` or a timestamp's text, whose time is cut."""
    trimmed = text.strip()
    if trimmed.lower() == "epoch":
        return 0
    match = _DATE.match(trimmed)
    if match is None:
        _refuse("date", text)
    rest = trimmed[match.end() :]
    if rest:
        clock = _TIME.match(rest[1:].strip()) if rest[0] in "T " else None
        if clock is None:
            _refuse("date", text)
        _micros(clock, text)
    return _days(match, text)


def parse_time(text: str) -> int:
    """Microseconds since midnight of ``HH:MM[:SS[.ffffff]]``, with AM or PM."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        _refuse("time", text)
    return _micros(match, text)


def parse_timestamp(text: str, *, zoned: bool, time_zone: str = "UTC") -> int:
    """Microseconds since 1970: a wall clock's reading, or an instant where ``zoned``.

    A zone or offset in the text moves an instant and is cut from a wall clock's reading; an instant without one is read
    in ``time_zone``.
    """
    kind = "timestamptz" if zoned else "timestamp"
    trimmed = text.strip()
    if trimmed.lower() == "epoch":
        return 0
    match = _DATE.match(trimmed)
    if match is None:
        _refuse(kind, text)
    micros = _days(match, text) * MICROS_PER_DAY
    rest = trimmed[match.end() :]
    if rest[:1] in ("T", "t", " "):
        rest = rest[1:].lstrip()
        clock = _TIME.match(rest)
        if clock is not None:
            micros += _micros(clock, text)
            rest = rest[clock.end() :]
    zone = rest.strip()
    if not zoned:
        if zone and _is_zone(zone) is False:
            _refuse(kind, text)
        return micros
    if not zone:
        return micros - offset_micros(time_zone, micros)
    if not _is_zone(zone):
        _refuse(kind, text)
    return micros - offset_micros(zone, micros)


def says_zone(text: str) -> bool:
    """Whether a moment is written with an offset or a zone."""
    match = _DATE.match(text.strip())
    clock = None if match is None else _TIME.match(text.strip()[match.end() :].lstrip("Tt "))
    return clock is not None and _is_zone(clock.string[clock.end() :].strip())


OFFSET_HOURS_MAX: Final = 15  # as Postgres takes them


def offset_micros(zone: str, wall: int) -> int:
    """How far the wall clock of ``zone`` is ahead of UTC when it shows ``wall``; the smaller offset where two are possible:
    the later of two moments, and the one before a gap.

    22023  no such zone
    """
    if zone.upper() in ("Z", "UTC", "GMT", "ETC/UTC"):
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is not None:
        sign, hours, minutes, seconds = match.groups()
        if int(hours) > OFFSET_HOURS_MAX:
            raise InvalidParameter(f"time zone displacement out of range: {zone}")
        total = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        return (-total if sign == "-" else total) * MICROS_PER_SECOND
    try:
        reading = (EPOCH + datetime.timedelta(microseconds=wall)).replace(tzinfo=ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError, OverflowError):
        raise InvalidParameter(f'time zone "{zone}" not recognized') from None
    offsets = [each for each in (reading.utcoffset(), reading.replace(fold=1).utcoffset()) if each is not None]
    return min(offsets) // ONE_MICROSECOND if offsets else 0


def _is_zone(text: str) -> bool:
    if text.upper() in ("Z", "UTC", "GMT") or _OFFSET.fullmatch(text):
        return True
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_+/-]+", text):
        return False
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _days(match: re.Match[str], text: str) -> int:
    year, month, day = (int(part) for part in match.groups() if part is not None)
    try:
        return datetime.date(year, month, day).toordinal() - EPOCH_ORDINAL
    except ValueError:
        raise DatetimeOverflow(f'date/time field value out of range: "{text}"') from None


def _micros(match: re.Match[str], text: str) -> int:
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    half = (match[5] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise DatetimeOverflow(f'date/time field value out of range: "{text}"')
        hour = hour % 12 + (12 if half == "p" else 0)
    fraction = round(Fraction(int(match[4] or 0) * MICROS_PER_SECOND, 10 ** len(match[4] or "")))
    total = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction
    if minute > 59 or second > 60 or total > MICROS_PER_DAY:
        raise DatetimeOverflow(f'date/time field value out of range: "{text}"')
    return total


# --- intervals -------------------------------------------------------------------------------------------------------

Interval = tuple[int, int, int]

# What one of a unit is, as months, days and nanoseconds; one entry of the three is not zero.
_UNITS: Final[dict[str, tuple[int, int, int]]] = {
    "millennium": (12_000, 0, 0),
    "century": (1_200, 0, 0),
    "decade": (120, 0, 0),
    "year": (12, 0, 0),
    "quarter": (3, 0, 0),
    "month": (1, 0, 0),
    "week": (0, 7, 0),
    "day": (0, 1, 0),
    "hour": (0, 0, 3_600 * NANOS_PER_SECOND),
    "minute": (0, 0, 60 * NANOS_PER_SECOND),
    "second": (0, 0, NANOS_PER_SECOND),
    "millisecond": (0, 0, 1_000_000),
    "microsecond": (0, 0, 1_000),
    "nanosecond": (0, 0, 1),
}
_UNIT_NAMES: Final = {
    **{name: name for name in _UNITS},
    **{f"{name}s": name for name in _UNITS},
    **dict.fromkeys(("millennia", "mil", "mils"), "millennium"),
    **dict.fromkeys(("centuries", "c", "cent"), "century"),
    **dict.fromkeys(("dec", "decs"), "decade"),
    **dict.fromkeys(("y", "yr", "yrs"), "year"),
    **dict.fromkeys(("qtr", "q"), "quarter"),
    **dict.fromkeys(("mon", "mons"), "month"),
    "w": "week",
    "d": "day",
    **dict.fromkeys(("h", "hr", "hrs"), "hour"),
    **dict.fromkeys(("m", "min", "mins"), "minute"),
    **dict.fromkeys(("s", "sec", "secs"), "second"),
    **dict.fromkeys(("ms", "msec", "msecs"), "millisecond"),
    **dict.fromkeys(("us", "usec", "usecs"), "microsecond"),
    **dict.fromkeys(("ns", "nsec", "nsecs"), "nanosecond"),
}
_TOKEN = late_pattern(
    r"\s*(?:(?P<clock>[+-]?\d+:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)|(?P<years>[+-]?\d+)-(?P<months>\d{1,2})(?!\S)"
    r"|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?![-+\d.:])|(?P<word>[A-Za-z]+)|(?P<at>@))"
)
_ISO = late_pattern(
    r"P(?:(?P<year>[+-]?[\d.]+)Y)?(?:(?P<month>[+-]?[\d.]+)M)?(?:(?P<week>[+-]?[\d.]+)W)?(?:(?P<day>[+-]?[\d.]+)D)?"
    r"(?:T(?:(?P<hour>[+-]?[\d.]+)H)?(?:(?P<minute>[+-]?[\d.]+)M)?(?:(?P<second>[+-]?[\d.]+)S)?)?",
    re.IGNORECASE,
)
_ISO_FIELDS = late_pattern(r"P(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?))?", re.IGNORECASE)


def parse_interval(text: str, unit: str | None = None) -> Interval:
    """Months, days and nanoseconds of an interval's text.

    Verbose (``1 year 2 days ago``), SQL (``1-2``, ``3 04:05:06``) and ISO 8601 (``P1Y2M3DT4H5M6S``) forms. ``unit`` is
    what stands behind the literal: ``'3' MONTH``, ``'1-2' YEAR TO MONTH``, ``'04:05' HOUR TO MINUTE``.
    """
    trimmed = text.strip()
    default = _default_unit(unit)
    if trimmed[:1] in ("P", "p"):
        return _parse_iso(trimmed, text)
    total, pending, ago, seen = (0, 0, 0), None, False, False
    place = 0
    while place < len(trimmed):
        token = _TOKEN.match(trimmed, place)
        if token is None:
            if trimmed[place:].strip():
                _refuse("interval", text)
            break
        place = token.end()
        if token["at"]:
            continue
        if token["word"]:
            word = token["word"].lower()
            if word == "ago":
                ago = True
            elif pending is None or word not in _UNIT_NAMES:
                _refuse("interval", text)
            else:
                total, pending = _add(total, _times(pending, _UNIT_NAMES[word])), None
            continue
        seen = True
        if pending is not None:  # a bare number before a clock counts days: '3 04:05:06'
            total, pending = _add(total, _times(pending, "day")), None
        if token["clock"]:
            total = _add(total, (0, 0, _clock(token["clock"], text, unit)))
        elif token["years"]:
            years, months = token["years"], int(token["months"])
            sign = -1 if years.startswith("-") else 1
            total = _add(total, (int(years) * 12 + sign * months, 0, 0))
        else:
            pending = Fraction(token["number"])
    if pending is not None:
        total = _add(total, _times(pending, default))
    if not seen:
        _refuse("interval", text)
    return _checked((-total[0], -total[1], -total[2]) if ago else total, text)


def interval_of(quantity: int | PyDecimal | float, unit: str) -> Interval:
    """So many of a unit; parts of a month become days of a 30-day month, parts of a day nanoseconds.

    22023  no such unit
    """
    name = _UNIT_NAMES.get(unit.lower())
    if name is None:
        raise InvalidParameter(f'unit "{unit}" not recognized for type interval')
    return _checked(_times(Fraction(quantity), name), f"{quantity} {unit}")


def _default_unit(unit: str | None) -> str:
    if unit is None:
        return "second"
    last = unit.lower().split(" to ")[-1].strip()
    name = _UNIT_NAMES.get(last.split("(")[0].strip())
    if name is None:
        raise InvalidParameter(f'unit "{unit}" not recognized for type interval')
    return name


def _clock(clock: str, text: str, unit: str | None) -> int:
    sign = -1 if clock.startswith("-") else 1
    parts = clock.lstrip("+-").split(":")
    if len(parts) == 2 and unit is not None and unit.lower().replace(" ", "") == "minutetosecond":
        parts.insert(0, "0")
    hours, minutes, seconds = int(parts[0]), int(parts[1]), Fraction(parts[2] if len(parts) > 2 else "0")
    if minutes > 59 or seconds > 60:
        raise IntervalFieldOverflow(f'interval field value out of range: "{text}"')
    return sign * round(((hours * 60 + minutes) * 60 + seconds) * NANOS_PER_SECOND)


def _parse_iso(trimmed: str, text: str) -> Interval:
    fields = _ISO_FIELDS.fullmatch(trimmed)
    if fields is not None:
        nanos = _clock(fields[4], text, None) if fields[4] else 0
        return _checked((int(fields[1]) * 12 + int(fields[2]), int(fields[3]), nanos), text)
    match = _ISO.fullmatch(trimmed)
    if match is None or len(trimmed) < 3 or trimmed[-1] in "Tt":
        _refuse("interval", text)
    total: Interval = (0, 0, 0)
    for unit, number in match.groupdict().items():
        if number is not None:
            try:
                total = _add(total, _times(Fraction(number), unit))
            except ValueError:
                _refuse("interval", text)
    return _checked(total, text)


def _times(quantity: Fraction, unit: str) -> Interval:
    months, days, nanos = (quantity * part for part in _UNITS[unit])
    whole_months = int(months)
    if months and unit in ("month", "quarter"):
        days += (months - whole_months) * 30
    elif months:
        whole_months = round(months)
    whole_days = int(days)
    return whole_months, whole_days, round(nanos + (days - whole_days) * 86_400 * NANOS_PER_SECOND)


def _add(left: Interval, right: Interval) -> Interval:
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


def _checked(value: Interval, text: str) -> Interval:
    if abs(value[0]) >= 1 << 31 or abs(value[1]) >= 1 << 31 or abs(value[2]) >= 1 << 63:
        raise IntervalFieldOverflow(f'interval field value out of range: "{text}"')
    return value
