"""Gaps filled and ranges cut: fill over a window, weighted quantiles, boundaries of equal bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from lake.errors import InvalidParameter, UndefinedFunction
from lake.exec import decimals
from lake.exec.cast import cast, decimal_to_double
from lake.exec.decimals import Value
from lake.exec.functions.aggregates import Constants
from lake.exec.functions.arithmetic import same_type
from lake.exec.functions.collecting import Collected
from lake.exec.functions.columns import map_rows
from lake.exec.kernels import views
from lake.exec.per_row import per_row
from lake.sql.registry import Accumulator, CallInfo, aggregate, scalar, window
from lake.types import DOUBLE, Date, Decimal, Float, Integer, Time, Timestamp, Type

if TYPE_CHECKING:
    from lake.exec.operators.window_input import WindowInput

BINS_MAX: Final = 100_000


# --- fill ------------------------------------------------------------------------------------------------------------


@window("fill(value ANY) -> ANY", origin="duckdb", returns=same_type)
def fill(input: WindowInput, value: pa.Array) -> pa.Array:
    """The value; where it is NULL, the point on the line through the nearest values before and after it, or through the two
    nearest on one side at an end, or the only value there is. NULL where there is none, or no key.

    >>> SELECT fill(x) OVER (ORDER BY i) AS n FROM (VALUES (1, 10.0), (2, NULL), (4, 40.0)) AS t(i, x) ORDER BY i
    10.0 / 20.0 / 40.0

    42883  a value or a key that is neither a number nor a moment
    """
    kept = decimals.widen(value, input.returns) if isinstance(input.returns, Decimal) else value
    keys, has_key = _as_floats(input.order_values[0], input.order[0].expr.type)
    numbers, valid = _as_floats(value, input.returns)
    known = np.flatnonzero(valid & has_key)
    if not known.size or valid.all():
        return kept
    before = np.searchsorted(known, input.row, side="right") - 1
    first = np.searchsorted(known, input.partition_start)
    last = np.searchsorted(known, input.partition_end) - 1
    # Of the two points that make the line, the first; where a partition has one value only, that one.
    low = np.clip(np.maximum(first, np.minimum(before, last - 1)), 0, known.size - 1)
    one, other = known[low], known[np.clip(low + 1, 0, known.size - 1)]
    with np.errstate(all="ignore"):
        # Halves keep the span of keys as far apart as doubles reach from overflowing.
        share = (keys / 2 - keys[one] / 2) / (keys[other] / 2 - keys[one] / 2)
        made = np.where(last > first, numbers[one] * (1 - share) + numbers[other] * share, numbers[one])
    there = (last >= first) & has_key & np.isfinite(made)
    if not isinstance(input.returns, Float | Decimal):
        made = np.trunc(np.round(made, 9))  # cut as a cast would, but for the last digits of a float
    filled = _typed(np.where(there, made, 0.0), there.astype(np.uint8), input.returns)
    return views.plain(pc.if_else(views.to_boolean(valid), kept, filled))


def _typed(made: Any, known: Any, type: Type) -> pa.Array:
    """Floats as values of a type; digits past a decimal's scale are cut off."""
    if isinstance(type, Decimal):
        made = np.trunc(np.where(known, made, 0.0) * 10.0**type.scale) / 10.0**type.scale
    found = cast(views.to_array(made, pa.float64(), known), DOUBLE, type)
    return decimals.widen(found, type) if isinstance(type, Decimal) else found


def _as_floats(array: pa.Array, type: Type) -> tuple[Any, Any]:
    """float64[rows] and where there is a value.

    42883  a type that is neither numbers nor moments
    """
    if isinstance(type, Decimal):
        array = decimal_to_double(decimals.widen(array, type), type.scale)
    elif not isinstance(type, Integer | Float | Date | Time | Timestamp):
        raise UndefinedFunction(f"fill() does not take {type.sql}")
    valid = views.valid_of(array)
    known = np.ones(len(array), bool) if valid is None else valid.astype(bool)
    return np.where(known, views.values_of(array).astype(np.float64), np.nan), known


# --- weighted quantiles ----------------------------------------------------------------------------------------------


@aggregate("approx_percentile_cont_with_weight(value DOUBLE, weight DOUBLE, share DOUBLE) -> DOUBLE", group="aggregates")
@aggregate("approx_percentile_cont_with_weight(value DOUBLE, weight DOUBLE, share DOUBLE, centroids BIGINT) -> DOUBLE",
           group="aggregates")  # fmt: skip
def approx_percentile_cont_with_weight(call: CallInfo, constants: Constants) -> Accumulator:
    """The value below which the share of the weights lies, in proportion between two; NULLs and no weights do not count.

    >>> approx_percentile_cont_with_weight(i, 0.5) WITHIN GROUP (ORDER BY i) FROM (VALUES (1), (2), (3)) AS t(i)
    2.5

    22023  a share out of 0 to 1
    """
    share = constants[2]
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidParameter(f"percentile value {share} is not between 0 and 1")
    return WeightedQuantile(call, 1 - share if call.descending else float(share))


class WeightedQuantile(Collected):
    """A share's value among weighted values, each a centroid of its own. Source: Dunning, "Computing Extremely Accurate
    Quantiles Using t-Digests", 2019, which spreads a centroid's weight evenly around it."""

    def __init__(self, call: CallInfo, share: float) -> None:
        super().__init__(call.types)
        self._share = share

    def finish(self, group_count: int) -> pa.Array:
        """DOUBLE, NULL of no values."""
        offsets, (value, weight, *_) = self.by_group(group_count, with_nulls=False)
        groups = np.repeat(np.arange(group_count), np.diff(offsets))
        known = views.values_of(pc.fill_null(weight, np.nan)) > 0
        groups, numbers = groups[known], views.values_of(value)[known]
        weights = views.values_of(pc.fill_null(weight, 0.0))[known]
        order = np.lexsort((numbers, groups))
        groups, numbers, weights = groups[order], numbers[order], weights[order]
        ends = np.cumsum(np.bincount(groups, minlength=group_count))
        starts = np.concatenate(([0], ends[:-1])).astype(np.int64)
        some = ends > starts
        if not some.any():
            return pa.nulls(group_count, pa.float64())
        starts = np.minimum(starts, len(numbers) - 1)
        before = np.concatenate(([0.0], np.cumsum(weights)))
        base, rank = before[starts], self._share * (before[ends] - before[starts])
        place = np.searchsorted(before[1:], base + rank, side="right")
        place = np.clip(place, starts, np.maximum(ends - 1, starts))
        low, high = numbers[np.maximum(place - 1, starts)], numbers[np.minimum(place + 1, np.maximum(ends - 1, starts))]
        inside = (place > starts) & (place < ends - 1)
        spread = (high - low) / np.where(inside, 2.0, 1.0)
        with np.errstate(all="ignore"):
            made = numbers[place] + ((rank - (before[place] - base)) / weights[place] - 0.5) * spread
        return views.to_array(np.clip(made, low, high), pa.float64(), some.astype(np.uint8))


@aggregate("approx_percentile_cont(value DOUBLE, percentile DOUBLE) -> DOUBLE", group="aggregates")
@aggregate("approx_percentile_cont(value DOUBLE, percentile DOUBLE, centroids DOUBLE) -> DOUBLE", group="aggregates")
def approx_percentile_cont(call: CallInfo, constants: Constants) -> Accumulator:
    """The value below which the share of values lies, between two values in proportion.

    >>> approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FROM (VALUES (1), (2), (4), (8)) AS t(i)
    2.5

    22023  a share out of 0 to 1, or no centroids
    """
    share, centroids = constants[1], constants[2] if len(constants) > 2 else 1
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidParameter(f"percentile value {share} is not between 0 and 1")
    if not isinstance(centroids, int | float) or centroids < 1:
        raise InvalidParameter("the number of centroids must be a constant greater than 0")
    return EvenQuantile(call, 1 - share if call.descending else float(share))


@aggregate("approx_median(value DOUBLE) -> DOUBLE", group="aggregates")
def approx_median(call: CallInfo, constants: Constants) -> Accumulator:
    """The middle value, between two values in proportion.

    >>> approx_median(i) FROM (VALUES (1), (2), (4), (8)) AS t(i)
    2.5
    """
    return EvenQuantile(call, 0.5)


class EvenQuantile(WeightedQuantile):
    """A share's value among values of one weight."""

    def __init__(self, call: CallInfo, share: float) -> None:
        super().__init__(replace(call, types=(DOUBLE, DOUBLE)), share)

    def update(self, groups: Any, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Adds a batch of values."""
        super().update(groups, group_count, [arguments[0], pa.array(np.ones(len(arguments[0])))])


# --- bins ------------------------------------------------------------------------------------------------------------


@scalar("equi_width_bins(low BIGINT, high BIGINT, count BIGINT, nice BOOLEAN) -> BIGINT[]", group="statistics",
        origin="duckdb")  # fmt: skip
@per_row
def equi_width_bins(low: Value, high: Value, count: Value, nice: Value) -> pa.Array:
    """The upper boundaries of so many bins of one width, with nice of a width and boundaries that people use.

    Goes row by row: bins have bounds that people use, found by trying.

    >>> SELECT equi_width_bins(0, 10, 2, true), equi_width_bins(0, 97, 4, false)
    [5, 10] | [25, 50, 75, 100]

    22023  bounds in the wrong order, or no count
    """

    def bins(low: int, high: int, count: int, nice: bool) -> list[int]:
        if high < low or not 1 <= count <= BINS_MAX:
            raise InvalidParameter(f"equi_width_bins takes low <= high and 1 to {BINS_MAX} bins")
        step = max(1, -((low - high) // count))
        if nice:
            unit = 10 ** int(math.log10(step))
            step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= step)
        first = (low // step + 1) * step if nice else low + step
        return [first + place * step for place in range(max(1, -((first - high) // step) + 1))]

    return map_rows(bins, pa.list_(pa.int64()), low, high, count, nice)
