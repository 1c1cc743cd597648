"""Time zones, and the clock: it stands still within a statement."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from lake.exec.cast import (
    MICROSECONDS_OF_DAY,
    date_to_timestamp,
    to_instant,
    to_wall,
)
from lake.exec.decimals import Value
from lake.exec.functions.columns import with_constants
from lake.exec.functions.date_fields import zone_of
from lake.exec.functions.dates import age
from lake.exec.kernels import views
from lake.sql.literals import offset_micros
from lake.sql.registry import CallInfo, scalar
from lake.types import DATE, TIME, TIMESTAMPTZ, Type

GROUP: Final = "dates"


# --- zones -----------------------------------------------------------------------------------------------------------


def _in_zone(arguments: tuple[Any, ...]) -> Type:
    """An instant that is written in the zone the second argument names, where that is a constant."""
    zone = getattr(arguments[1], "value", None)
    return replace(TIMESTAMPTZ, spelled=f'Timestamp(µs, "{zone}")') if isinstance(zone, str) else TIMESTAMPTZ


@scalar("at_time_zone(moment TIMESTAMP, zone VARCHAR) -> TIMESTAMPTZ", group=GROUP, literal_rule=_in_zone)
def wall_at_time_zone(moment: Value, zone: Value) -> pa.Array:
    """The instant when clocks in the zone read ``moment``, written in that zone.

    >>> TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'America/New_York'
    2024-07-01T12:00:00-04:00

    22023  no such zone
    """
    return with_constants(_to_instant, TIMESTAMPTZ.arrow, moment, zone)


@scalar("at_time_zone(moment TIMESTAMPTZ, zone VARCHAR) -> TIMESTAMP", group=GROUP)
def instant_at_time_zone(moment: Value, zone: Value) -> pa.Array:
    """What clocks in the zone read at an instant.

    >>> TIMESTAMPTZ '2024-07-01 12:00:00+00' AT TIME ZONE 'America/New_York'
    2024-07-01T08:00:00

    22023  no such zone
    """
    return with_constants(_to_wall, pa.timestamp("us"), moment, zone)


@scalar("timezone(zone VARCHAR, moment TIMESTAMP) -> TIMESTAMPTZ", group=GROUP, origin="postgres")
def timezone_of_wall(zone: Value, moment: Value) -> pa.Array:
    """``moment AT TIME ZONE zone``.

    >>> timezone('America/Denver', TIMESTAMP '2001-02-16 20:38:40')
    2001-02-17T03:38:40Z
    """
    return with_constants(_to_instant, TIMESTAMPTZ.arrow, moment, zone)


@scalar("timezone(zone VARCHAR, moment TIMESTAMPTZ) -> TIMESTAMP", group=GROUP, origin="postgres")
def timezone_of_instant(zone: Value, moment: Value) -> pa.Array:
    """``moment AT TIME ZONE zone``.

    >>> timezone('UTC', TIMESTAMPTZ '2024-07-01 12:00:00+00')
    2024-07-01T12:00:00
    """
    return with_constants(_to_wall, pa.timestamp("us"), moment, zone)


def _to_instant(moment: pa.Array, zone: str) -> pa.Array:
    fixed = _fixed_offset(zone)
    if fixed is None:
        return to_instant(moment, zone)
    return views.to_array(views.values_of(moment) - fixed, TIMESTAMPTZ.arrow, views.valid_of(moment))


def _to_wall(moment: pa.Array, zone: str) -> pa.Array:
    fixed = _fixed_offset(zone)
    if fixed is None:
        return to_wall(moment, zone)
    return views.to_array(views.values_of(moment) + fixed, pa.timestamp("us"), views.valid_of(moment))


def _fixed_offset(zone: str) -> int | None:
    """Microseconds that an offset such as +02:00 is ahead of UTC; None for a zone with a name."""
    offset = offset_micros(zone, 0)
    return offset if zone[:1] in "+-" else None


@scalar("to_local_time(moment TIMESTAMPTZ) -> TIMESTAMP", group=GROUP, takes_call=True)
def to_local_time(moment: pa.Array, *, call: CallInfo) -> pa.Array:
    """What clocks in the session's zone read at an instant.

    >>> to_local_time(TIMESTAMPTZ '2024-04-01 00:00:20Z')
    2024-04-01T00:00:20
    """
    return to_wall(moment, zone_of(call))


# --- the clock -------------------------------------------------------------------------------------------------------


def _now(call: CallInfo) -> pa.Scalar:
    assert call.settings is not None, "the clock needs the statement's settings"
    return pa.scalar(call.settings.now, TIMESTAMPTZ.arrow)


@scalar("now() -> TIMESTAMPTZ", group=GROUP, volatility="stable", takes_call=True,
        aliases=("current_timestamp", "transaction_timestamp", "statement_timestamp", "get_current_timestamp"))  # fmt: skip
def now(*, call: CallInfo) -> pa.Scalar:
    """When the statement began.

    >>> now() = current_timestamp
    true
    """
    return _now(call)


@scalar("localtimestamp() -> TIMESTAMP", group=GROUP, volatility="stable", takes_call=True)
def localtimestamp(*, call: CallInfo) -> pa.Array:
    """What the clock of the session's zone read when the statement began.

    >>> localtimestamp = localtimestamp
    true
    """
    return to_wall(pa.array([_now(call)]), zone_of(call))[0]


@scalar("current_date() -> DATE", group=GROUP, volatility="stable", takes_call=True, aliases=("today", "curdate"))
def current_date(*, call: CallInfo) -> pa.Scalar:
    """The day in the session's zone when the statement began.

    >>> current_date = today()
    true
    """
    days = localtimestamp(call=call).value // MICROSECONDS_OF_DAY
    return pa.scalar(days, DATE.arrow)


@scalar("current_time() -> TIME", group=GROUP, volatility="stable", takes_call=True, aliases=("localtime",))
def current_time(*, call: CallInfo) -> pa.Scalar:
    """The time of day in the session's zone when the statement began.

    >>> current_time = localtime
    true
    """
    return pa.scalar(localtimestamp(call=call).value % MICROSECONDS_OF_DAY, TIME.arrow)


@scalar("clock_timestamp() -> TIMESTAMPTZ", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def clock_timestamp(*, call: CallInfo) -> pa.Scalar:
    """When the statement began: within a statement the clock stands still.

    >>> clock_timestamp() = now()
    true
    """
    return _now(call)


@scalar("isfinite(moment TEMPORAL) -> BOOLEAN", group=GROUP, origin="postgres")
def isfinite(moment: pa.Array) -> pa.Array:
    """Whether a moment is one: there is no infinity of them.

    >>> isfinite(DATE '2024-01-01')
    true
    """
    return pc.if_else(pc.is_valid(moment), True, None)


@scalar("age(moment TIMESTAMP) -> INTERVAL", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def age_of(moment: pa.Array, *, call: CallInfo) -> pa.Array:
    """From a moment to the midnight that began the current day.

    >>> age(current_date)
    0 secs
    """
    midnight = date_to_timestamp(current_date(call=call))
    return age(midnight, moment)
