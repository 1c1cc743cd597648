"""Where each row's window frame begins and ends, for ROWS, GROUPS and RANGE, over whole columns at once.

    ROWS BETWEEN 1 PRECEDING AND CURRENT ROW       row 5 of a partition that begins at 5: [5, 6); row 6: [5, 7)
    RANGE BETWEEN 10 PRECEDING AND CURRENT ROW     from the first row of the partition whose key is >= key - 10
                                                   to the last row with the same key

Ends are exclusive. Rows whose key is NULL have their peers for frame wherever an offset is asked for.
"""

from __future__ import annotations

from decimal import Decimal as PyDecimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import FeatureNotSupported, InvalidParameter
from lake.exec.kernels.search import search
from lake.exec.kernels.views import plain, valid_of, values_of
from lake.sql.ast.expr import BoundKind, FrameUnit
from lake.types import Date, Decimal, Float, Integer, Interval, Time, Timestamp, Type

if TYPE_CHECKING:
    from lake.exec.operators.window_input import EvaluatedBound, Ints, WindowInput

DAY_US: Final = 86_400_000_000


def frame_bounds(window: WindowInput) -> tuple[Ints, Ints]:
    """Start and end of each row's frame, start <= end.

    22023  an offset is NULL or negative
    0A000  RANGE with an offset over a type that has no distance
    """
    start = _edge(window, window.frame.start, is_start=True)
    end = _edge(window, window.frame.end, is_start=False)
    return start, np.maximum(start, end)


def _edge(window: WindowInput, bound: EvaluatedBound, *, is_start: bool) -> Ints:
    match bound.kind:
        case BoundKind.UNBOUNDED_PRECEDING:
            return window.partition_start
        case BoundKind.UNBOUNDED_FOLLOWING:
            return window.partition_end
        case BoundKind.CURRENT_ROW if window.frame.unit is FrameUnit.ROWS:
            return window.row if is_start else window.row + 1
        case BoundKind.CURRENT_ROW:
            return window.peer_start if is_start else window.peer_end
    sign = -1 if bound.kind is BoundKind.PRECEDING else 1
    if window.frame.unit is FrameUnit.RANGE:
        return _range_edge(window, bound, sign, is_start=is_start)
    offset = _count(bound, is_start=is_start)
    if window.frame.unit is FrameUnit.ROWS:
        edge = window.row + (sign * offset + (0 if is_start else 1))
        return np.clip(edge, window.partition_start, window.partition_end)
    return _groups_edge(window, sign * offset, is_start=is_start)


def _count(bound: EvaluatedBound, *, is_start: bool) -> int:
    """The offset of ROWS and GROUPS, capped far below where row numbers would wrap."""
    end = "starting" if is_start else "ending"
    if bound.offset is None:
        raise InvalidParameter(f"frame {end} offset must not be null")
    offset = int(bound.offset)  # type: ignore[call-overload]
    if offset < 0:
        raise InvalidParameter(f"frame {end} offset must not be negative")
    return int(min(offset, 1 << 60))


def _groups_edge(window: WindowInput, step: int, *, is_start: bool) -> Ints:
    sizes = np.diff(window.partitions)
    first = np.searchsorted(window.peers, window.partitions[:-1])
    past = np.searchsorted(window.peers, window.partitions[1:])
    own = np.repeat(np.arange(window.peers.size - 1, dtype=np.int64), np.diff(window.peers))
    target = own + step + (0 if is_start else 1)
    return window.peers[np.clip(target, np.repeat(first, sizes), np.repeat(past, sizes))]


def _range_edge(window: WindowInput, bound: EvaluatedBound, sign: int, *, is_start: bool) -> Ints:
    assert len(window.order) == 1, "the binder allows RANGE with an offset over one key only"
    key, array = window.order[0], plain(window.order_values[0])
    valid = valid_of(array)
    values = _numbers(array, key.expr.type)
    targets, beyond = _shifted(values, key.expr.type, bound, -sign if key.descending else sign)
    if key.descending:
        values, targets = _turned(values), _turned(targets)
    low, high = window.partition_start, window.partition_end
    if valid is not None:
        low, high = _valid_rows(window, valid)
    after = not is_start
    edge = search(values, targets, low, high, after=after)
    if beyond is not None:
        edge = np.where(beyond, low if sign < 0 else high, edge)
    if valid is not None:
        edge = np.where(valid == 1, edge, window.peer_start if is_start else window.peer_end)
    return edge


def _turned(numbers: Any) -> Any:
    """Numbers in the opposite order; the least integer has no negative."""
    return -numbers if numbers.dtype.kind == "f" else ~numbers


def _valid_rows(window: WindowInput, valid: np.ndarray[Any, Any]) -> tuple[Ints, Ints]:
    """The rows of each row's partition that have a key: NULLs stand together at one end of it."""
    running = np.concatenate(([0], np.cumsum(valid, dtype=np.int64)))
    counts = running[window.partition_end] - running[window.partition_start]
    nulls_first = window.order[0].nulls_first
    if nulls_first:
        return window.partition_end - counts, window.partition_end
    return window.partition_start, window.partition_start + counts


def _numbers(array: pa.Array, type: Type) -> Any:
    """Keys as int64 or float64 numbers on which a distance is a difference; dates as microseconds where needed."""
    match type:
        case Integer() | Date():
            return values_of(array).astype(np.int64)
        case Timestamp() | Time():
            return values_of(array).astype(np.int64)
        case Decimal() if type.is_short:
            return values_of(array).astype(np.int64)
        case Decimal():
            return np.asarray(pc.cast(array, pa.float64()).fill_null(0.0))
        case Float():
            numbers = values_of(array).astype(np.float64)
            return np.where(np.isnan(numbers), np.inf, numbers)
    raise FeatureNotSupported(f"RANGE with an offset over a key of type {type.sql} is not supported")


def _shifted(values: Any, type: Type, bound: EvaluatedBound, sign: int) -> tuple[Any, Any]:
    """The keys moved by the offset, and which of them no key can reach; None for none."""
    offset = bound.offset
    if offset is None:
        raise InvalidParameter("frame offset must not be null")
    if isinstance(bound.offset_type, Interval):
        assert isinstance(offset, tuple)
        if min(offset) < 0:
            raise InvalidParameter("frame offset must not be negative")
        return _add_interval(values, type, offset, sign), None
    distance = _distance(offset, bound.offset_type, type)
    if distance < 0:
        raise InvalidParameter("frame offset must not be negative")
    if values.dtype.kind == "f":
        return values + sign * float(distance), None
    limits = np.iinfo(np.int64)
    step = min(int(distance), limits.max)
    beyond = values < limits.min + step if sign < 0 else values > limits.max - step
    return np.where(beyond, values, values + sign * step), beyond


def _distance(offset: Any, offset_type: Type | None, type: Type) -> Any:
    """The offset in the units of the key's physical form."""
    number = PyDecimal(offset)
    if isinstance(offset_type, Decimal):
        number = number.scaleb(-offset_type.scale)
    if isinstance(type, Decimal) and type.is_short:
        number = number.scaleb(type.scale)
    return number


def _add_interval(values: Any, type: Type, interval: tuple[Any, ...], sign: int) -> Any:
    months, days, nanoseconds = (sign * int(part) for part in interval)
    if isinstance(type, Time):
        # As in Postgres, a time of day counts what an interval has besides days and months, and passes midnight.
        return values + nanoseconds // 1000
    micros = values * DAY_US if isinstance(type, Date) else values
    if months:
        moments = micros.astype("datetime64[us]")
        day, clock = moments.astype("datetime64[D]"), moments - moments.astype("datetime64[D]")
        month = day.astype("datetime64[M]")
        in_month = (day - month.astype("datetime64[D]")).astype(np.int64)
        target = month + months
        length = ((target + 1).astype("datetime64[D]") - target.astype("datetime64[D]")).astype(np.int64)
        moments = target.astype("datetime64[D]") + np.minimum(in_month, length - 1) + clock
        micros = moments.astype("datetime64[us]").astype(np.int64)
    micros = micros + days * DAY_US + nanoseconds // 1000
    return micros / DAY_US if isinstance(type, Date) else micros
