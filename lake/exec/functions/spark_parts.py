"""Moments and intervals made of parts, as Spark has them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from lake.exec.cast import interval_array, to_instant
from lake.exec.decimals import Value
from lake.exec.functions import dates
from lake.exec.functions.attempts import attempt
from lake.exec.functions.columns import all_valid, columns
from lake.exec.functions.date_fields import zone_of
from lake.exec.kernels import views
from lake.sql.registry import CallInfo, scalar
from lake.types import INTERVAL, TIMESTAMP, TIMESTAMPTZ

GROUP: Final = "dates"


@scalar("make_timestamp_ntz(year INT, month INT, day INT, hour INT, minute INT, second DOUBLE) -> TIMESTAMP", group=GROUP,
        origin="spark")  # fmt: skip
def make_timestamp_ntz(*parts: Value) -> pa.Array:
    """The moment of its six parts.

    >>> make_timestamp_ntz(1992, 9, 20, 13, 34, 27.5)
    1992-09-20T13:34:27.500

    22008  there is no such moment
    """
    return dates.make_timestamp(*parts)


@scalar("make_timestamp_ltz(year INT, month INT, day INT, hour INT, minute INT, second DOUBLE) -> TIMESTAMPTZ",
        group=GROUP, origin="spark", takes_call=True)  # fmt: skip
def make_timestamp_ltz(*parts: Value, call: CallInfo) -> pa.Array:
    """The instant of its six parts in the session's zone.

    >>> make_timestamp_ltz(1992, 9, 20, 13, 34, 27.5)
    1992-09-20T13:34:27.500Z

    22008  there is no such moment
    """
    return to_instant(dates.make_timestamp(*parts), zone_of(call))


@scalar("try_make_timestamp(year INT, month INT, day INT, hour INT, minute INT, second DOUBLE) -> TIMESTAMP", group=GROUP,
        origin="spark", aliases=("try_make_timestamp_ntz",))  # fmt: skip
def try_make_timestamp(*parts: Value) -> pa.Array:
    """The moment of its six parts, NULL where there is none.

    >>> SELECT try_make_timestamp(1992, 9, 20, 13, 34, 27.5), try_make_timestamp(1992, 13, 20, 13, 34, 27)
    1992-09-20T13:34:27.500 | NULL
    """
    return attempt(dates.make_timestamp, TIMESTAMP.arrow, *columns(*parts))


@scalar("try_make_timestamp_ltz(year INT, month INT, day INT, hour INT, minute INT, second DOUBLE) -> TIMESTAMPTZ",
        group=GROUP, origin="spark", takes_call=True)  # fmt: skip
def try_make_timestamp_ltz(*parts: Value, call: CallInfo) -> pa.Array:
    """The instant of its six parts in the session's zone, NULL where there is none.

    >>> try_make_timestamp_ltz(1992, 13, 20, 13, 34, 27.5) IS NULL
    true
    """
    made = attempt(dates.make_timestamp, TIMESTAMP.arrow, *columns(*parts))
    return to_instant(made, zone_of(call)) if made.null_count < len(made) else made.cast(TIMESTAMPTZ.arrow)


@scalar("make_dt_interval(days INT DEFAULT 0, hours INT DEFAULT 0, mins INT DEFAULT 0, secs DOUBLE DEFAULT 0) -> INTERVAL",
        group=GROUP, origin="spark")  # fmt: skip
def make_dt_interval(days: Value, hours: Value, mins: Value, secs: Value) -> pa.Array:
    """The interval of days, hours, minutes and seconds.

    >>> make_dt_interval(1, 12, 30, 1.5)
    1 days 12 hours 30 mins 1.500000000 secs
    """
    zero = pa.scalar(0, pa.int32())
    return dates.make_interval(zero, zero, zero, days, hours, mins, secs)


@scalar("make_ym_interval(years INT DEFAULT 0, months INT DEFAULT 0) -> INTERVAL", group=GROUP, origin="spark")
def make_ym_interval(years: Value, months: Value) -> pa.Array:
    """The interval of years and months.

    >>> make_ym_interval(1, 2)
    14 mons
    """
    years, months = columns(years, months)
    total = views.values_of(years).astype(np.int64) * 12 + views.values_of(months)
    zeroes = np.zeros(len(total), np.int64)
    return interval_array(total, zeroes, zeroes, all_valid(years, months))


@scalar("try_make_interval(years INT DEFAULT 0, months INT DEFAULT 0, weeks INT DEFAULT 0, days INT DEFAULT 0, "
        "hours INT DEFAULT 0, mins INT DEFAULT 0, secs DOUBLE DEFAULT 0) -> INTERVAL", group=GROUP,
        origin="spark")  # fmt: skip
def try_make_interval(*parts: Value) -> pa.Array:
    """The interval of its parts, NULL where it is out of range.

    >>> try_make_interval(1, 2, 0, 3)
    14 mons 3 days
    """
    return attempt(dates.make_interval, INTERVAL.physical, *columns(*parts))
