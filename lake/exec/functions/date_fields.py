"""Fields of dates, times and intervals: year, month, hour, epoch and the others.

An instant (TIMESTAMPTZ) is read on the clock of the session's time zone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.arrow_names import zone_of_type
from lake.errors import InvalidParameter
from lake.exec.cast import (
    MICROSECONDS_OF_DAY,
    interval_array,
    interval_parts,
    to_wall,
)
from lake.exec.comparisons import NANOSECONDS_OF_DAY
from lake.exec.decimals import Value
from lake.exec.functions.columns import NOT_CONSTANT, columns, constant, with_constants
from lake.exec.kernels import views
from lake.exec.kernels.nested import DAYS_OF_MONTH
from lake.sql.registry import CallInfo, scalar
from lake.types import BIGINT, DOUBLE, INT, Interval, Time, Timestamp, Type

GROUP: Final = "dates"
MICROS: Final = 1_000_000
DAY_NAMES: Final = pa.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
MONTH_NAMES: Final = pa.array(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"])
FIELDS: Final = {
    **{name: name for name in (
        "year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "isoyear", "hour", "minute", "second",
        "millisecond", "microsecond", "nanosecond", "epoch", "decade", "century", "millennium", "era", "julian",
        "timezone", "yearweek",
    )},
    **{f"{name}s": name for name in (
        "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond",
        "nanosecond", "decade",
    )},
    "y": "year", "yr": "year", "mon": "month", "mons": "month", "w": "week", "isoweek": "week", "weekofyear": "week",
    "d": "day", "dayofmonth": "day", "dayofyear": "doy", "dayofweek": "dow", "weekday": "dow", "h": "hour",
    "hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "m": "minute", "s": "second", "sec": "second",
    "secs": "second", "ms": "millisecond", "msec": "millisecond", "us": "microsecond", "usec": "microsecond",
    "ns": "nanosecond", "centuries": "century", "millennia": "millennium",
}  # fmt: skip


# --- fields ----------------------------------------------------------------------------------------------------------


def _field_type(arguments: tuple[Any, ...]) -> Type:
    """DOUBLE for the epoch and the Julian day, BIGINT for nanoseconds, INT for the other fields."""
    name = FIELDS.get(str(getattr(arguments[0], "value", None)).lower())
    return DOUBLE if name in ("epoch", "julian") else BIGINT if name == "nanosecond" else INT


@scalar("date_part(field VARCHAR, moment TEMPORAL) -> INT", group=GROUP, takes_call=True, literal_rule=_field_type,
        aliases=("datepart",))  # fmt: skip
@scalar("date_part(field VARCHAR, moment TIME) -> INT", group=GROUP, takes_call=True, literal_rule=_field_type,
        aliases=("datepart",))  # fmt: skip
@scalar("date_part(field VARCHAR, moment INTERVAL) -> INT", group=GROUP, takes_call=True, literal_rule=_field_type,
        aliases=("datepart",))  # fmt: skip
def date_part(field: Value, moment: Value, *, call: CallInfo) -> pa.Array:
    """A field of a date, time or interval: year, month, day, hour, dow (0 is Sunday), week (ISO), epoch and others.

    >>> date_part('month', DATE '2024-05-06')
    5
    >>> extract(second FROM TIMESTAMP '2024-01-01 00:00:01.5')
    1

    22023  no such field
    """
    type = call.types[1]
    if isinstance(moment, pa.Scalar):
        moment = columns(field, moment)[1]
    if isinstance(type, Timestamp) and type.zoned and constant(field) != "epoch":
        moment = to_wall(moment, zone_of(call))
    name = constant(field)
    if name is not NOT_CONSTANT:
        return _part(moment, name, type, call)
    return with_constants(lambda column, name: _part(column, name, type, call), call.returns.physical, moment, field)


def zone_of(call: CallInfo) -> str:
    """The time zone that an argument's type is spelled with, or the session's."""
    spelled = next((zone for zone in map(zone_of_type, call.types) if zone is not None), None)
    if spelled is not None:
        return spelled
    return "UTC" if call.settings is None else call.settings.time_zone


def _part(moment: pa.Array, field: str | None, type: Type, call: CallInfo) -> pa.Array:
    if field is None:
        return pa.nulls(len(moment), call.returns.physical)
    name = FIELDS.get(field.lower())
    parts = _INTERVAL_PARTS if isinstance(type, Interval) else _TIME_PARTS if isinstance(type, Time) else _PARTS
    find = None if name is None else parts.get(name)
    has_no_months = isinstance(type, Interval) and type.spelled.startswith(("Duration", "Interval(DayTime"))
    if has_no_months and name in _BEYOND_DAYS:
        find = None
    if isinstance(type, Interval) and type.spelled.startswith("Duration"):
        moment = _with_days(moment)
    if find is None:
        raise InvalidParameter(f'unit "{field}" not recognized for type {type.sql.lower()}')
    value = find(moment)
    array = value if isinstance(value, pa.Array) else views.to_array(
        value, pa.float64() if value.dtype == np.float64 else pa.int64(), views.valid_of(moment)
    )  # fmt: skip
    return array if array.type == call.returns.physical else array.cast(call.returns.physical)


_BEYOND_DAYS: Final = frozenset(("year", "quarter", "month", "decade", "century", "millennium"))
"""Fields that a length of days and time has not."""


def _with_days(length: pa.Array) -> pa.Array:
    """Lengths of time with their days apart."""
    _, days, nanoseconds = interval_parts(length)
    whole = np.trunc(nanoseconds / NANOSECONDS_OF_DAY).astype(np.int64)
    rest = nanoseconds - whole * NANOSECONDS_OF_DAY
    return interval_array(np.zeros(len(length), np.int64), days + whole, rest, views.valid_of(length))


def micros_of(moment: pa.Array) -> Any:
    """Microseconds since 1970 of dates and timestamps, or since midnight of times."""
    values = views.values_of(moment).astype(np.int64, copy=False)
    return values * MICROSECONDS_OF_DAY if pa.types.is_date(moment.type) else values


def _year(moment: pa.Array) -> Any:
    return views.values_of(pc.year(moment))


def _century(years: Any) -> Any:
    return np.where(years > 0, (years + 99) // 100, years // 100)


def _days(moment: pa.Array) -> Any:
    if pa.types.is_date(moment.type):
        return views.values_of(moment).astype(np.int64)
    return views.values_of(moment) // MICROSECONDS_OF_DAY


def _in_minute(moment: pa.Array) -> Any:
    return micros_of(moment) % (60 * MICROS)


_CLOCK_PARTS: Final[dict[str, Callable[[pa.Array], Any]]] = {
    "hour": lambda moment: micros_of(moment) // (3600 * MICROS) % 24,
    "minute": lambda moment: micros_of(moment) // (60 * MICROS) % 60,
    "second": lambda moment: _in_minute(moment) // MICROS,
    "millisecond": lambda moment: _in_minute(moment) // 1000,
    "microsecond": _in_minute,
    "nanosecond": lambda moment: _in_minute(moment) * 1000,
    "epoch": lambda moment: micros_of(moment) / MICROS,
}
_TIME_PARTS: Final = _CLOCK_PARTS
_PARTS: Final[dict[str, Callable[[pa.Array], Any]]] = {
    **_CLOCK_PARTS,
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "doy": pc.day_of_year,
    "dow": lambda moment: (_days(moment) + 4) % 7,
    "isodow": lambda moment: (_days(moment) + 3) % 7 + 1,
    "isoyear": pc.iso_year,
    "yearweek": lambda moment: pc.add(pc.multiply(pc.iso_year(moment), 100), pc.iso_week(moment)),
    "decade": lambda moment: _year(moment) // 10,
    "century": lambda moment: _century(_year(moment)),
    "millennium": lambda moment: (_century(_year(moment)) + 9) // 10,
    "era": lambda moment: (_year(moment) > 0).astype(np.int64),
    "julian": lambda moment: micros_of(moment) / MICROSECONDS_OF_DAY + 2_440_588.0,
    "timezone": lambda moment: np.zeros(len(moment), np.int64),
}
_INTERVAL_PARTS: Final[dict[str, Callable[[pa.Array], Any]]] = {
    "millennium": lambda moment: _whole(interval_parts(moment)[0], 12_000),
    "century": lambda moment: _whole(interval_parts(moment)[0], 1_200),
    "decade": lambda moment: _whole(interval_parts(moment)[0], 120),
    "year": lambda moment: _whole(interval_parts(moment)[0], 12),
    "quarter": lambda moment: _whole(_rest(interval_parts(moment)[0], 12), 3) + 1,
    "month": lambda moment: _rest(interval_parts(moment)[0], 12),
    "week": lambda moment: _whole(interval_parts(moment)[1], 7),
    "day": lambda moment: interval_parts(moment)[1],
    "hour": lambda moment: _whole(interval_parts(moment)[2], 3600 * MICROS * 1000),
    "minute": lambda moment: _rest(_whole(interval_parts(moment)[2], 60 * MICROS * 1000), 60),
    "second": lambda moment: _rest(_whole(interval_parts(moment)[2], MICROS * 1000), 60),
    "millisecond": lambda moment: _rest(_whole(interval_parts(moment)[2], MICROS), 60_000),
    "microsecond": lambda moment: _rest(_whole(interval_parts(moment)[2], 1000), 60 * MICROS),
    "nanosecond": lambda moment: _rest(interval_parts(moment)[2], 60 * MICROS * 1000),
    "epoch": lambda moment: _interval_seconds(*interval_parts(moment)),
}


def _whole(value: Any, unit: int) -> Any:
    return np.abs(value) // unit * np.sign(value)


def _rest(value: Any, unit: int) -> Any:
    return np.abs(value) % unit * np.sign(value)


def _interval_seconds(months: Any, days: Any, nanoseconds: Any) -> Any:
    """Seconds of an interval; a year has 365.25 days, a month 30."""
    years, rest = _whole(months, 12), _rest(months, 12)
    return years * 365.25 * 86_400 + (rest * DAYS_OF_MONTH + days) * 86_400.0 + nanoseconds / 1e9


def _register_field(name: str, field: str, result: Type, shift: int, example: str, *aliases: str) -> None:
    """A function of its own for a field: ``year(day)``; ``shift`` is added."""

    def part(moment: pa.Array, *, call: CallInfo) -> pa.Array:
        if isinstance(call.types[0], Timestamp) and call.types[0].zoned and field != "epoch":
            moment = to_wall(moment, zone_of(call))
        found = _part(moment, field, call.types[0], call)
        return found if shift == 0 else pc.add(found, pa.scalar(shift, found.type))

    part.__doc__ = f"""The {field} of a date, time or interval, as ``date_part('{field}', ..)`` answers it.

    >>> {example}
    """
    for kind in ("TEMPORAL", "TIME", "INTERVAL"):
        scalar(f"{name}(moment {kind}) -> {result.sql}", group=GROUP, origin="spark", takes_call=True, aliases=aliases)(
            part
        )


for _name, _shift, _example, *_aliases in (
    ("year", 0, "year(DATE '2024-05-06')\n    2024"),
    ("quarter", 0, "quarter(DATE '2024-05-06')\n    2"),
    ("month", 0, "month(DATE '2024-05-06')\n    5"),
    ("week", 0, "week(DATE '1992-02-15')\n    7", "weekofyear"),
    ("day", 0, "day(DATE '2024-05-06')\n    6", "dayofmonth"),
    ("hour", 0, "hour(TIMESTAMP '2024-05-06 07:08:09')\n    7"),
    ("minute", 0, "minute(TIMESTAMP '2024-05-06 07:08:09')\n    8"),
    ("second", 0, "second(TIMESTAMP '2024-05-06 07:08:09')\n    9"),
    ("millisecond", 0, "millisecond(TIMESTAMP '2021-08-03 11:59:44.123456')\n    44123"),
    ("microsecond", 0, "microsecond(TIMESTAMP '2021-08-03 11:59:44.123456')\n    44123456"),
    ("decade", 0, "decade(DATE '1992-02-15')\n    199"),
    ("century", 0, "century(DATE '1992-02-15')\n    20"),
    ("millennium", 0, "millennium(DATE '1992-02-15')\n    2"),
    ("era", 0, "era(DATE '1992-02-15')\n    1"),
    ("isodow", 0, "isodow(DATE '1992-02-15')\n    6"),
    ("isoyear", 0, "isoyear(DATE '2022-01-01')\n    2021"),
    ("yearweek", 0, "yearweek(DATE '1992-02-15')\n    199207"),
):
    _register_field(_name, _name, INT, _shift, _example, *_aliases)
_register_field("dayofyear", "doy", INT, 0, "dayofyear(DATE '2024-02-01')\n    32")
_register_field("dayofweek", "dow", INT, 1, "dayofweek(DATE '2024-01-07')\n    1")
_register_field("weekday", "isodow", INT, -1, "weekday(DATE '2024-01-08')\n    0")
_register_field("epoch", "epoch", DOUBLE, 0, "epoch(TIMESTAMP '2022-11-07 08:43:04')\n    1667810584.0")
_register_field("julian", "julian", DOUBLE, 0, "julian(DATE '2006-01-01')\n    2453737.0")


@scalar("epoch_ms(moment TIMESTAMP) -> BIGINT", group=GROUP, origin="duckdb", aliases=("unix_millis",))
def epoch_ms(moment: pa.Array) -> pa.Array:
    """Milliseconds since 1970.

    >>> epoch_ms(TIMESTAMP '2021-08-03 11:59:44.123456')
    1627991984123
    """
    return views.to_array(micros_of(moment) // 1000, pa.int64(), views.valid_of(moment))


@scalar("epoch_us(moment TIMESTAMP) -> BIGINT", group=GROUP, origin="duckdb", aliases=("unix_micros",))
def epoch_us(moment: pa.Array) -> pa.Array:
    """Microseconds since 1970.

    >>> epoch_us(TIMESTAMP '2021-08-03 11:59:44.123456')
    1627991984123456
    """
    return views.to_array(micros_of(moment), pa.int64(), views.valid_of(moment))


@scalar("dayname(moment TEMPORAL) -> VARCHAR", group=GROUP, origin="spark")
def dayname(moment: pa.Array) -> pa.Array:
    """The weekday in three letters.

    >>> dayname(DATE '1992-03-22')
    Sun
    """
    return DAY_NAMES.take(views.to_array((_days(moment) + 3) % 7, pa.int64(), views.valid_of(moment)))


@scalar("monthname(moment TEMPORAL) -> VARCHAR", group=GROUP, origin="spark")
def monthname(moment: pa.Array) -> pa.Array:
    """The month in three letters.

    >>> monthname(DATE '1992-09-20')
    Sep
    """
    return MONTH_NAMES.take(pc.subtract(pc.month(moment), 1))
