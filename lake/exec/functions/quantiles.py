"""Quantiles: medians, percentiles between values and at values, of one share or of a list of them; the mode.

    quantile_cont(x, 0.25)               one value          quantile_cont(x, [0.25, 0.75])      a list of them
    percentile_cont(0.25) WITHIN GROUP (ORDER BY x)          downwards where the order is
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.errors import InvalidParameter, UndefinedFunction
from lake.exec import decimals
from lake.exec.cast import decimal_to_double
from lake.exec.constants import list_array
from lake.exec.decimals import Scaled
from lake.exec.functions.aggregates import Constants
from lake.exec.functions.arithmetic import same_type
from lake.exec.functions.collecting import Collected
from lake.exec.kernels import views
from lake.exec.kernels.order import Direction, dense_ranks, sort_rows
from lake.sql.registry import Accumulator, CallInfo, F, aggregate
from lake.types import DOUBLE, TIMESTAMP, Date, Decimal, Float, Integer, List, Time, Timestamp, Type

GROUP: Final = "statistics"
DAY: Final = 86_400_000_000  # in microseconds


def quantile_type(types: tuple[Type, ...]) -> Type:
    """DOUBLE of numbers, TIMESTAMP of dates, else the type itself, as a median's of decimals; a list for a list of shares.

    42883  a type whose values have nothing between them
    """
    if not isinstance(types[0], Integer | Float | Decimal | Date | Time | Timestamp):
        raise UndefinedFunction(f"quantiles of {types[0].sql} do not exist")
    counted = isinstance(types[0], Integer) or (isinstance(types[0], Decimal) and len(types) > 1)
    made = DOUBLE if counted else TIMESTAMP if isinstance(types[0], Date) else types[0]
    return List(made) if len(types) > 1 and isinstance(types[1], List) else made


def _median_type(types: tuple[Type, ...]) -> Type:
    """The type of a median: that of the values where nothing lies between two of them."""
    between = isinstance(types[0], Integer | Float | Decimal | Date | Time | Timestamp)
    return quantile_type(types[:1]) if between else types[0]


def _disc_type(types: tuple[Type, ...]) -> Type:
    return List(types[0]) if isinstance(types[1], List) else types[0]


def _shares(constants: Constants) -> tuple[float, ...]:
    """The share or shares of a call.

    22023  a share out of 0 to 1, or that is not a constant
    """
    given = constants[1]
    shares = given if isinstance(given, tuple) else (given,)
    for share in shares:
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share <= 1:
            raise InvalidParameter(f"percentile value {share} is not between 0 and 1")
    return tuple(float(share) for share in shares)


@aggregate("median(value ANY) -> ANY", group=GROUP, returns=_median_type)
def median(call: CallInfo, constants: Constants) -> Accumulator:
    """The middle value, or the mean of the two in the middle; of texts and the like the lower of the two.

    >>> median(x) FROM (VALUES (1), (2), (3), (10)) AS t(x)
    2.5
    """
    is_between = isinstance(call.types[0], Integer | Float | Decimal | Date | Time | Timestamp)
    return Quantile(call, (0.5,)) if is_between else DiscreteQuantile(call, (0.5,))


def _of_what_has_a_middle(share: str, *aliases: str) -> Callable[[F], F]:
    """Registers percentile_cont over numbers, dates and times, with these parameters after the value."""

    def register(make: F) -> F:
        for word in ("TIME", "TEMPORAL", "NUMERIC"):
            signature = f"percentile_cont(value {word}, {share}) -> {word}"
            aggregate(signature, group=GROUP, returns=quantile_type, aliases=aliases)(make)
        return make

    return register


@_of_what_has_a_middle("shares DOUBLE[]", "quantile_cont")
@_of_what_has_a_middle("percentile DOUBLE", "quantile_cont")
def percentile_cont(call: CallInfo, constants: Constants) -> Accumulator:
    """The value below which the share of values lies, between two values in proportion; a list for a list of shares.

    >>> percentile_cont(0.75) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (3), (4)) AS t(x)
    3.25
    >>> percentile_cont(x, [0.25, 0.75]) FROM (VALUES (1), (2), (3), (4), (5)) AS t(x)
    [2.0, 4.0]

    22023  a share out of 0 to 1
    """
    return Quantile(call, _shares(constants))


class Sorted(Collected):
    """Values of each group in the order of the call, NULLs left out; answers a list where the call's type is one."""

    def __init__(self, call: CallInfo, shares: Sequence[float] = ()) -> None:
        super().__init__(call.types)
        self._shares = shares
        self._descending = call.descending
        self._is_list = len(call.types) > 1 and isinstance(call.types[1], List)

    def sorted_by_group(self, group_count: int) -> tuple[Any, pa.Array]:
        """Offsets and the values."""
        offsets, columns = self.by_group(group_count, with_nulls=False)
        groups = np.repeat(np.arange(group_count), np.diff(offsets))
        order = sort_rows([views.to_array(groups, pa.int64()), columns[0]], [Direction(), Direction(self._descending)])
        return offsets, columns[0].take(pa.array(order))

    def listed(self, answers: list[pa.Array], counts: Any) -> pa.Array:
        """One answer a share, as the call wants them: the only one, or lists, NULL for groups of no values."""
        if not self._is_list:
            return answers[0]
        groups, width = len(counts), len(answers)
        if not answers:
            return list_array(np.zeros(groups + 1, np.int64), pa.nulls(0, self._types[0].physical), counts > 0)
        places = np.arange(groups * width)
        places = places % width * groups + places // width
        items = views.concat(answers).take(pa.array(places))
        there = (counts > 0).astype(np.uint8)
        kept = np.repeat(there, width).view(np.bool_)
        offsets = np.concatenate(([0], np.cumsum(np.where(there, width, 0))))
        return list_array(offsets, items.filter(pa.array(kept)), there)


class Quantile(Sorted):
    """The values of shares, between values."""

    def __init__(self, call: CallInfo, shares: Sequence[float]) -> None:
        super().__init__(call, shares)
        self._returns = call.returns.of if isinstance(call.returns, List) else call.returns

    def finish(self, group_count: int) -> pa.Array:
        """The quantiles, NULL of no values."""
        offsets, values = self.sorted_by_group(group_count)
        return self.listed([self._of_share(share, offsets, values) for share in self._shares], np.diff(offsets))

    def _of_share(self, share: float, offsets: Any, values: pa.Array) -> pa.Array:
        counts = np.diff(offsets)
        if len(values) == 0:
            return pa.nulls(len(counts), self._returns.physical)
        there = (counts > 0).astype(np.uint8)
        place = np.maximum(counts - 1, 0) * share
        low = np.floor(place).astype(np.int64)
        part = place - low
        first = np.where(counts > 0, offsets[:-1] + low, 0)
        second = np.where(counts > 0, offsets[:-1] + np.minimum(low + 1, np.maximum(counts - 1, 0)), 0)
        match self._returns:
            case Decimal():
                return self._between_decimals(values, first, np.where(part == 0, first, second), there)
            case Timestamp() | Time():
                moments = views.values_of(values).astype(np.int64) * (DAY if isinstance(self._types[0], Date) else 1)
                moved = np.rint((moments[second] - moments[first]) * part).astype(np.int64)
                return views.to_array(moments[first] + moved, self._returns.physical, there)
        type = self._types[0]
        if isinstance(type, Decimal):
            values = decimal_to_double(values, type.scale)
        numbers = views.values_of(values).astype(np.float64)
        with np.errstate(invalid="ignore"):
            between = numbers[first] + (numbers[second] - numbers[first]) * part
        answers = np.where(part == 0, numbers[first], between)
        kind = np.float32 if self._returns != DOUBLE else np.float64
        return views.to_array(answers.astype(kind), self._returns.physical, there)

    def _between_decimals(self, values: pa.Array, first: Any, second: Any, there: Any) -> pa.Array:
        """Medians: halves of the sums of two values, cut to the digits that these have."""
        assert isinstance(self._returns, Decimal)
        lower, upper = (decimals.scaled(values.take(pa.array(places))) for places in (first, second))
        assert lower is not None and upper is not None
        found = decimals.divide(decimals.add(lower, upper), Scaled(2))
        return decimals.widen(decimals.to_value(Scaled(found.values, there), self._returns), self._returns)


@aggregate("percentile_disc(value ANY, share DOUBLE) -> ANY", group=GROUP, origin="postgres", returns=same_type,
           aliases=("quantile_disc", "quantile"))  # fmt: skip
@aggregate("percentile_disc(value ANY, shares DOUBLE[]) -> ANY", group=GROUP, origin="postgres", returns=_disc_type,
           aliases=("quantile_disc", "quantile"))  # fmt: skip
def percentile_disc(call: CallInfo, constants: Constants) -> Accumulator:
    """The first value at which the share of values is reached; a list for a list of shares.

    >>> percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (3), (4)) AS t(x)
    2
    >>> quantile_disc(x, [0.25, 1]) FROM (VALUES ('a'), ('b'), ('c'), ('d')) AS t(x)
    [a, d]

    22023  a share out of 0 to 1
    """
    return DiscreteQuantile(call, _shares(constants))


class DiscreteQuantile(Sorted):
    """The values at which shares are reached."""

    def finish(self, group_count: int) -> pa.Array:
        """The quantiles, NULL of no values."""
        offsets, values = self.sorted_by_group(group_count)
        counts = np.diff(offsets)
        answers = []
        for share in self._shares:
            place = np.maximum(np.ceil(np.round(counts * share, 9)).astype(np.int64) - 1, 0)
            rows = np.where(counts > 0, offsets[:-1] + place, 0)
            answers.append(values.take(views.to_array(rows, pa.int64(), (counts > 0).astype(np.uint8))))
        return self.listed(answers, counts)


@aggregate("mode(value ANY) -> ANY", group=GROUP, origin="postgres", returns=same_type, takes_order=True)
def mode(call: CallInfo, constants: Constants) -> Accumulator:
    """The most frequent value; of several the first in the order of the call, or else the least.

    >>> mode(x) FROM (VALUES (1), (2), (2)) AS t(x)
    2
    >>> mode(x ORDER BY x DESC) FROM (VALUES (1), (2)) AS t(x)
    2
    """
    return Mode(call.types, ordered=call.ordered)


class Mode(Collected):
    """Most frequent values."""

    def __init__(self, types: tuple[Type, ...], *, ordered: bool) -> None:
        super().__init__(types)
        self._ordered = ordered

    def finish(self, group_count: int) -> pa.Array:
        """The values, NULL of none."""
        offsets, (values,) = self.by_group(group_count, with_nulls=False)
        if len(values) == 0:
            return pa.nulls(group_count, values.type)
        groups = np.repeat(np.arange(group_count), np.diff(offsets))
        places = dense_ranks(values)
        pairs = groups * (int(places.max()) + 1) + places
        _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        order = np.lexsort((first if self._ordered else places[first], -counts, groups[first]))
        _, best = np.unique(groups[first][order], return_index=True)
        chosen = first[order[best]]
        place = np.full(group_count, -1, np.int64)
        place[groups[chosen]] = chosen
        return values.take(views.to_array(np.maximum(place, 0), pa.int64(), (place >= 0).astype(np.uint8)))


@aggregate("mad(value DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb")
def mad(call: CallInfo, constants: Constants) -> Accumulator:
    """The median distance from the median.

    >>> mad(x) FROM (VALUES (1), (2), (3), (4)) AS t(x)
    1.0
    """
    return MedianDistance((DOUBLE,))


class MedianDistance(Collected):
    """Median distances from medians."""

    def finish(self, group_count: int) -> pa.Array:
        """DOUBLE."""
        offsets, (values,) = self.by_group(group_count, with_nulls=False)
        numbers = views.values_of(values)
        pieces = [numbers[start:end] for start, end in zip(offsets.tolist(), offsets[1:].tolist())]
        found = [None if not piece.size else float(np.median(np.abs(piece - np.median(piece)))) for piece in pieces]
        return pa.array(found, pa.float64())
