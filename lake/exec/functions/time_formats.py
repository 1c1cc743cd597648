"""Formats of dates and times: chrono's (%Y-%m-%d), and Postgres's (YYYY-MM-DD) for formats without a percent sign.

    write("%d.%m.%Y", moment)       19.05.2024
    write("DD Mon YYYY", moment)    19 May 2024
    read("%H-%M", "12-30")          1970-01-01 12:30

A format is read once and kept.
Source: chrono, format::strftime; PostgreSQL documentation, Data Type Formatting Functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lake.errors import DatetimeOverflow, InvalidParameter, InvalidText
from lake.late import late_pattern
from lake.sql.literals import EPOCH, ONE_MICROSECOND

MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                 "November", "December")  # fmt: skip
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
Writer = Callable[[datetime], str]
JULIAN_OF_ORDINAL: Final = 1_721_425


def moment_of(micros: int) -> datetime:
    """The moment so many microseconds after 1970.

    22008  one that no format writes: before the year 1 or after 9999
    """
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise DatetimeOverflow("date out of the range of formats, the years 1 to 9999") from None


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970; a moment with an offset counts in UTC."""
    offset = moment.utcoffset()
    wall = moment.replace(tzinfo=None)
    return (wall - EPOCH) // ONE_MICROSECOND - (0 if offset is None else offset // ONE_MICROSECOND)


# --- writing ---------------------------------------------------------------------------------------------------------


class Field(Struct, frozen=True):
    """A part of a format, and what it depends on: the whole ``unit``s of microseconds since 1970, which begin again after
    ``cycle`` of them, or never where that is 0."""

    write: Writer
    unit: int
    cycle: int


_SECOND: Final = 1_000_000
_CLOCK: Final[dict[str, tuple[int, int]]] = {
    **dict.fromkeys(("H", "k", "I", "l", "P", "p", "HH24", "HH12", "HH", "AM", "PM", "am", "pm"), (3600 * _SECOND, 24)),
    **dict.fromkeys(("A.M.", "P.M.", "a.m.", "p.m."), (3600 * _SECOND, 24)),
    **dict.fromkeys(("M", "MI"), (60 * _SECOND, 60)), **dict.fromkeys(("S", "SS"), (_SECOND, 60)),
    **dict.fromkeys(("R", "T", "X", "r", "SSSS", "SSSSS"), (_SECOND, 86_400)),
    **dict.fromkeys(("MS", "US", "f", "3f", "6f", "9f", ".f", ".3f", ".6f", ".9f"), (1, _SECOND)),
    **{f"FF{digits}": (1, _SECOND) for digits in range(1, 7)}, **dict.fromkeys(("s", "+", "c"), (1, 0)),
}  # fmt: skip
_DAY: Final = (86_400 * _SECOND, 0)


def write(pattern: str, moment: datetime) -> str:
    """The moment in a format."""
    return "".join(part if isinstance(part, str) else part.write(moment) for part in writers(pattern))


@lru_cache(500)
def writers(pattern: str) -> tuple[str | Field, ...]:
    """The texts and fields of a format."""
    return _chrono_writers(pattern) if "%" in pattern else _postgres_writers(pattern)


_CHRONO: Final = late_pattern(r"%([-_0]?)(\.\d?f|\d?f|#z|:{0,3}z|[A-Za-z+%])")


def _chrono_writers(pattern: str) -> tuple[str | Field, ...]:
    parts: list[str | Field] = []
    place = 0
    for match in _CHRONO.finditer(pattern):
        parts.append(pattern[place : match.start()])
        flag, kind = match.groups()
        parts.append(Field(_padded(_chrono_writer(kind, pattern), flag), *_CLOCK.get(kind, _DAY)))
        place = match.end()
    return (*parts, pattern[place:])


def _padded(writer: Writer, flag: str) -> Writer:
    if not flag:
        return writer
    fill = {"-": "", "_": " ", "0": "0"}[flag]

    def changed(moment: datetime) -> str:
        text = writer(moment)
        bare = text.lstrip("0 ") or "0"
        return bare.rjust(len(text), fill) if fill else bare

    return changed


def _clock12(moment: datetime) -> int:
    return moment.hour % 12 or 12


def _iso(moment: datetime) -> tuple[int, int, int]:
    return tuple(moment.isocalendar())  # type: ignore[return-value]


_CHRONO_WRITERS: Final[dict[str, Writer]] = {
    "Y": lambda m: f"{m.year:04}", "C": lambda m: f"{m.year // 100:02}", "y": lambda m: f"{m.year % 100:02}",
    "m": lambda m: f"{m.month:02}", "b": lambda m: MONTHS[m.month - 1][:3], "h": lambda m: MONTHS[m.month - 1][:3],
    "B": lambda m: MONTHS[m.month - 1], "d": lambda m: f"{m.day:02}", "e": lambda m: f"{m.day:2}",
    "a": lambda m: DAYS[m.weekday()][:3], "A": lambda m: DAYS[m.weekday()], "w": lambda m: str(m.isoweekday() % 7),
    "u": lambda m: str(m.isoweekday()), "U": lambda m: m.strftime("%U"), "W": lambda m: m.strftime("%W"),
    "G": lambda m: f"{_iso(m)[0]:04}", "g": lambda m: f"{_iso(m)[0] % 100:02}", "V": lambda m: f"{_iso(m)[1]:02}",
    "j": lambda m: f"{m.timetuple().tm_yday:03}", "D": lambda m: write("%m/%d/%y", m), "x": lambda m: write("%m/%d/%y", m),
    "F": lambda m: write("%Y-%m-%d", m), "v": lambda m: write("%e-%b-%Y", m), "H": lambda m: f"{m.hour:02}",
    "k": lambda m: f"{m.hour:2}", "I": lambda m: f"{_clock12(m):02}", "l": lambda m: f"{_clock12(m):2}",
    "P": lambda m: "am" if m.hour < 12 else "pm", "p": lambda m: "AM" if m.hour < 12 else "PM",
    "M": lambda m: f"{m.minute:02}", "S": lambda m: f"{m.second:02}", "f": lambda m: f"{m.microsecond * 1000:09}",
    "R": lambda m: write("%H:%M", m), "T": lambda m: write("%H:%M:%S", m), "X": lambda m: write("%H:%M:%S", m),
    "r": lambda m: write("%I:%M:%S %p", m), "Z": lambda m: "UTC", "z": lambda m: "+0000", ":z": lambda m: "+00:00",
    "::z": lambda m: "+00:00:00", ":::z": lambda m: "+00", "c": lambda m: write("%a %b %e %H:%M:%S %Y", m),
    "+": lambda m: write("%Y-%m-%dT%H:%M:%S%.f+00:00", m), "s": lambda m: str(micros_of(m) // 1_000_000),
    "t": lambda m: "\t", "n": lambda m: "\n", "%": lambda m: "%",
    "3f": lambda m: f"{m.microsecond // 1000:03}", "6f": lambda m: f"{m.microsecond:06}",
    "9f": lambda m: f"{m.microsecond * 1000:09}", ".3f": lambda m: f".{m.microsecond // 1000:03}",
    ".6f": lambda m: f".{m.microsecond:06}", ".9f": lambda m: f".{m.microsecond * 1000:09}",
    ".f": lambda m: "" if not m.microsecond else f".{m.microsecond:06}".removesuffix("000"),
}  # fmt: skip


def _chrono_writer(kind: str, pattern: str) -> Writer:
    writer = _CHRONO_WRITERS.get(kind)
    if writer is None:
        raise InvalidParameter(f'the format "{pattern}" has an unknown part %{kind}')
    return writer


_POSTGRES: Final = late_pattern(
    r'"[^"]*"|FM|HH24|HH12|HH|MI|SSSSS|SSSS|SS|MS|US|FF[1-6]|A\.M\.|P\.M\.|a\.m\.|p\.m\.|AM|PM|am|pm|Y,YYY|YYYY|YYY|YY|Y'
    r"|IYYY|IYY|IY|IW|IDDD|ID|I|MONTH|Month|month|MON|Mon|mon|MM|DAY|Day|day|DY|Dy|dy|DDD|DD|D|WW|W|CC|J|Q|RM|TZH|TZM|TZ|tz"
    r"|OF|TH|th"
)


def _ordinal(number: str, *, upper: bool) -> str:
    value = int(number)
    ending = "th" if 10 <= value % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return ending.upper() if upper else ending


def _fraction(digits: int) -> Writer:
    return lambda m: f"{m.microsecond:06}"[:digits]


_ROMAN: Final = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
_POSTGRES_WRITERS: Final[dict[str, Writer]] = {
    "YYYY": lambda m: f"{m.year:04}", "YYY": lambda m: f"{m.year % 1000:03}", "YY": lambda m: f"{m.year % 100:02}",
    "Y": lambda m: str(m.year % 10), "Y,YYY": lambda m: f"{m.year:,}", "IYYY": lambda m: f"{_iso(m)[0]:04}",
    "IYY": lambda m: f"{_iso(m)[0] % 1000:03}", "IY": lambda m: f"{_iso(m)[0] % 100:02}", "I": lambda m: str(_iso(m)[0] % 10),
    "MM": lambda m: f"{m.month:02}", "MONTH": lambda m: MONTHS[m.month - 1].upper().ljust(9),
    "Month": lambda m: MONTHS[m.month - 1].ljust(9), "month": lambda m: MONTHS[m.month - 1].lower().ljust(9),
    "MON": lambda m: MONTHS[m.month - 1][:3].upper(), "Mon": lambda m: MONTHS[m.month - 1][:3],
    "mon": lambda m: MONTHS[m.month - 1][:3].lower(), "DD": lambda m: f"{m.day:02}",
    "DDD": lambda m: f"{m.timetuple().tm_yday:03}", "D": lambda m: str(m.isoweekday() % 7 + 1),
    "ID": lambda m: str(m.isoweekday()), "IDDD": lambda m: f"{(_iso(m)[1] - 1) * 7 + m.isoweekday():03}",
    "DAY": lambda m: DAYS[m.weekday()].upper().ljust(9), "Day": lambda m: DAYS[m.weekday()].ljust(9),
    "day": lambda m: DAYS[m.weekday()].lower().ljust(9), "DY": lambda m: DAYS[m.weekday()][:3].upper(),
    "Dy": lambda m: DAYS[m.weekday()][:3], "dy": lambda m: DAYS[m.weekday()][:3].lower(),
    "HH24": lambda m: f"{m.hour:02}", "HH12": lambda m: f"{_clock12(m):02}", "HH": lambda m: f"{_clock12(m):02}",
    "MI": lambda m: f"{m.minute:02}", "SS": lambda m: f"{m.second:02}", "MS": lambda m: f"{m.microsecond // 1000:03}",
    "US": lambda m: f"{m.microsecond:06}", "SSSS": lambda m: str((m.hour * 60 + m.minute) * 60 + m.second),
    "SSSSS": lambda m: str((m.hour * 60 + m.minute) * 60 + m.second), "W": lambda m: str((m.day - 1) // 7 + 1),
    "WW": lambda m: f"{(m.timetuple().tm_yday - 1) // 7 + 1:02}", "IW": lambda m: f"{_iso(m)[1]:02}",
    "CC": lambda m: f"{(m.year + 99) // 100:02}", "J": lambda m: str(m.toordinal() + JULIAN_OF_ORDINAL),
    "Q": lambda m: str((m.month - 1) // 3 + 1), "RM": lambda m: _ROMAN[m.month - 1].ljust(4), "TZ": lambda m: "UTC",
    "tz": lambda m: "utc", "OF": lambda m: "+00", "TZH": lambda m: "+00", "TZM": lambda m: "00",
    **{word: lambda m: "AM" if m.hour < 12 else "PM" for word in ("AM", "PM")},
    **{word: lambda m: "am" if m.hour < 12 else "pm" for word in ("am", "pm")},
    **{word: lambda m: "A.M." if m.hour < 12 else "P.M." for word in ("A.M.", "P.M.")},
    **{word: lambda m: "a.m." if m.hour < 12 else "p.m." for word in ("a.m.", "p.m.")},
    **{f"FF{digits}": _fraction(digits) for digits in range(1, 7)},
}  # fmt: skip


def _postgres_writers(pattern: str) -> tuple[str | Field, ...]:
    parts: list[str | Field] = []
    place, trims = 0, False
    for match in _POSTGRES.finditer(pattern):
        parts.append(pattern[place : match.start()])
        place = match.end()
        word = match[0]
        if word == "FM":
            trims = True
        elif word.startswith('"'):
            parts.append(word[1:-1])
        elif word in ("TH", "th") and parts and isinstance(before := parts[-2 if parts[-1] == "" else -1], Field):
            upper = word == "TH"
            ordinal: Writer = lambda m, before=before, upper=upper: _ordinal(before.write(m), upper=upper)  # type: ignore[misc]  # noqa: E731
            parts.append(replace(before, write=ordinal))
        elif word in _POSTGRES_WRITERS:
            writer = _POSTGRES_WRITERS[word]
            # I is the hour in chrono's formats, and the last digit of the year in Postgres's.
            parts.append(Field(_trimmed(writer) if trims else writer, *(_DAY if word == "I" else _CLOCK.get(word, _DAY))))
            trims = False
        else:
            parts.append(word)
    return (*parts, pattern[place:])


def _trimmed(writer: Writer) -> Writer:
    def changed(moment: datetime) -> str:
        text = writer(moment).rstrip()
        return text.lstrip("0") or "0" if text.isdigit() else text

    return changed


# --- reading ---------------------------------------------------------------------------------------------------------

MONTH_NUMBERS: Final = {
    **{name.lower(): number for number, name in enumerate(MONTHS, 1)},
    **{name[:3].lower(): number for number, name in enumerate(MONTHS, 1)},
}
_WORD, _NUMBER2 = r"[A-Za-z]+", r"\d{1,2}"
_CHRONO_FIELDS: Final = {
    "Y": ("year", r"[+-]?\d{1,6}"), "y": ("year2", _NUMBER2), "m": ("month", _NUMBER2), "b": ("name", _WORD),
    "h": ("name", _WORD), "B": ("name", _WORD), "d": ("day", r"\s*\d{1,2}"), "e": ("day", r"\s*\d{1,2}"), "a": ("", _WORD),
    "A": ("", _WORD), "H": ("hour", _NUMBER2), "k": ("hour", r"\s*\d{1,2}"), "I": ("hour12", _NUMBER2),
    "l": ("hour12", r"\s*\d{1,2}"), "M": ("minute", _NUMBER2), "S": ("second", _NUMBER2), "p": ("half", "[AaPp][Mm]"),
    "P": ("half", "[AaPp][Mm]"), "f": ("nanos", r"\d+"), ".f": ("fraction", r"(?:\.\d+)?"), ".3f": ("fraction", r"\.\d{3}"),
    ".6f": ("fraction", r"\.\d{6}"), ".9f": ("fraction", r"\.\d{9}"), "3f": ("digits", r"\d{3}"), "6f": ("digits", r"\d{6}"),
    "9f": ("digits", r"\d{9}"), "z": ("zone", r"[+-]\d{2}:?\d{2}|Z"),
    "#z": ("zone", r"[+-]\d{2}(?::?\d{2})?|Z"), ":z": ("zone", r"[+-]\d{2}:?\d{2}|Z"),
    "Z": ("", r"[A-Za-z]+"), "j": ("yearday", r"\d{1,3}"), "s": ("epoch", r"-?\d+"), "t": ("", r"\s"), "n": ("", r"\s"),
    "%": ("", "%"), "w": ("", r"\d"), "u": ("", r"\d"),
}  # fmt: skip
_CHRONO_SHORT: Final = {
    "F": "%Y-%m-%d", "T": "%H:%M:%S", "X": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "x": "%m/%d/%y",
    "r": "%I:%M:%S %p", "c": "%a %b %e %H:%M:%S %Y", "+": "%Y-%m-%dT%H:%M:%S%.f%:z", "v": "%e-%b-%Y",
}  # fmt: skip
_POSTGRES_FIELDS: Final = {
    "YYYY": ("year", r"\d{4,6}"), "YYY": ("year", r"\d{3}"), "YY": ("year2", _NUMBER2), "MM": ("month", _NUMBER2),
    "DD": ("day", _NUMBER2), "DDD": ("yearday", r"\d{1,3}"), "HH24": ("hour", _NUMBER2), "HH12": ("hour12", _NUMBER2),
    "HH": ("hour12", _NUMBER2), "MI": ("minute", _NUMBER2), "SS": ("second", _NUMBER2), "MS": ("digits", r"\d{1,3}"),
    "US": ("digits", r"\d{1,6}"), "Q": ("", r"\d"), "J": ("julian", r"\d+"), "TZ": ("", r"[A-Za-z]+"),
    "TZH": ("zone", r"[+-]\d{2}(?::?\d{2})?"), "OF": ("zone", r"[+-]\d{2}(?::?\d{2})?"), "FM": ("", ""),
    **dict.fromkeys(("MONTH", "Month", "month", "MON", "Mon", "mon"), ("name", _WORD)),
    **dict.fromkeys(("DAY", "Day", "day", "DY", "Dy", "dy"), ("", _WORD)),
    **dict.fromkeys(("AM", "PM", "am", "pm"), ("half", "[AaPp][Mm]")),
    **dict.fromkeys(("A.M.", "P.M.", "a.m.", "p.m."), ("half", r"[AaPp]\.[Mm]\.")),
    **{f"FF{digits}": ("digits", rf"\d{{1,{digits}}}") for digits in range(1, 7)},
}  # fmt: skip


def read(pattern: str, text: str) -> datetime:
    """The moment a text writes in a format; parts that the format lacks are those of 1970-01-01 00:00.

    22P02  a text that is not of the format     22008  a moment that there is not
    """
    match = reader(pattern).fullmatch(text.strip())
    if match is None:
        raise InvalidText(f'"{text}" is not of the format "{pattern}"')
    fields = {name.partition("_")[0]: value.strip() for name, value in match.groupdict().items() if value is not None}
    try:
        return _moment(fields)
    except (ValueError, OverflowError):
        raise DatetimeOverflow(f'date/time field value out of range: "{text}"') from None


@lru_cache(500)
def reader(pattern: str) -> re.Pattern[str]:
    """The expression of the texts that are of a format; its groups are named for what they say of the moment."""
    parts: list[str] = []
    seen: dict[str, int] = {}

    def add(name: str, shape: str) -> None:
        if not name:
            parts.append(f"(?:{shape})")
            return
        seen[name] = seen.get(name, 0) + 1
        group = name if seen[name] == 1 else f"{name}_{seen[name]}"
        parts.append(f"(?P<{group}>{shape})")

    if "%" in pattern:
        for short, long in _CHRONO_SHORT.items():
            pattern = pattern.replace(f"%{short}", long)
    finder, fields = (_CHRONO, _CHRONO_FIELDS) if "%" in pattern else (_POSTGRES, _POSTGRES_FIELDS)
    place = 0
    for match in finder.finditer(pattern):
        parts.append(_literal(pattern[place : match.start()]))
        place = match.end()
        word = match[2] if finder is _CHRONO else match[0]
        if word.startswith('"'):
            parts.append(re.escape(word[1:-1]))
        elif word in fields:
            add(*fields[word])
        else:
            raise InvalidParameter(f'the format "{pattern}" has a part that cannot be read: {word}')
    return re.compile("".join(parts) + _literal(pattern[place:]))


def _literal(text: str) -> str:
    return re.sub(r"(?:\\ )+", r"\\s*", re.escape(text))


def _moment(fields: dict[str, str]) -> datetime:
    if "epoch" in fields:
        return EPOCH + timedelta(seconds=int(fields["epoch"]))
    moment = datetime.combine(_day(fields), datetime.min.time()) + timedelta(
        hours=_hour(fields), minutes=int(fields.get("minute", 0)), seconds=int(fields.get("second", 0))
    )
    if int(fields.get("minute", 0)) > 59 or int(fields.get("second", 0)) > 60 or _hour(fields) > 24:
        raise ValueError("time")
    moment += timedelta(microseconds=_micros(fields))
    zone = fields.get("zone", "Z")
    if zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        moment -= -ahead if zone.startswith("-") else ahead
    return moment


def _day(fields: dict[str, str]) -> date:
    if "julian" in fields:
        return date.fromordinal(int(fields["julian"]) - JULIAN_OF_ORDINAL)
    year = int(fields.get("year", 1970))
    if "year2" in fields:
        year = int(fields["year2"]) + (1900 if int(fields["year2"]) >= 70 else 2000)
    if "yearday" in fields:
        day = date(year, 1, 1) + timedelta(days=int(fields["yearday"]) - 1)
        if day.year != year:
            raise ValueError("day of the year")
        return day
    named = MONTH_NUMBERS.get(fields["name"].lower()) if "name" in fields else int(fields.get("month", 1))
    if named is None:
        raise ValueError("month")
    return date(year, named, int(fields.get("day", 1)))


def _hour(fields: dict[str, str]) -> int:
    if "hour12" not in fields:
        return int(fields.get("hour", 0))
    hour = int(fields["hour12"])
    if not 1 <= hour <= 12:
        raise ValueError("hour")
    return hour % 12 + (12 if fields.get("half", "am")[0] in "Pp" else 0)


def _micros(fields: dict[str, str]) -> int:
    if "fraction" in fields:
        return round(float("0" + fields["fraction"]) * 1_000_000) if fields["fraction"] else 0
    if "digits" in fields:
        return int(fields["digits"].ljust(6, "0")[:6])
    return int(fields["nanos"].ljust(9, "0")[:9]) // 1000 if "nanos" in fields else 0
