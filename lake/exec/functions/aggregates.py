"""count, sum, avg, min, max and the aggregates of truth and bits. The states are in ``exec.kernels``; here is their SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.errors import DatetimeOverflow, UndefinedFunction
from lake.exec import decimals
from lake.exec.cast import DOUBLE_EXACT_MAX, interval_array, interval_parts
from lake.exec.decimals import Scaled
from lake.exec.functions.arithmetic import INTEGER_NAMES, same_type
from lake.exec.functions.interval_parts import intervals, whole_parts
from lake.exec.kernels import views
from lake.exec.kernels.aggregates import Count, SumInteger, resized
from lake.exec.kernels.exact_sum import ExactSum
from lake.exec.kernels.extremes import BitCombination, PickedRows, extreme
from lake.sql.registry import Accumulator, CallInfo, aggregate
from lake.types import BIGINT, DECIMAL_DIGITS_MAX, DOUBLE, Decimal, Float, Integer, Type

GROUP: Final = "aggregates"
Constants = tuple[object, ...]
SUM_DIGITS: Final = 10
AVERAGE_DIGITS: Final = 4


class Converted:
    """An accumulator whose arguments are changed first: decimals are made one form, dictionaries text."""

    def __init__(self, inner: Accumulator, types: tuple[Type, ...]) -> None:
        self.inner = inner
        self._types = types

    def update(self, groups: Any, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Takes in a batch."""
        made = [physical(array, type) for array, type in zip(arguments, self._types, strict=False)]
        self.inner.update(groups, group_count, made)

    def load(self, values: Any, counts: Any) -> None:
        """Hands words and counts on (``NumberExtreme``)."""
        self.inner.load(values, counts)  # type: ignore[attr-defined]

    def merge(self, other: Converted, mapping: Any, group_count: int) -> None:
        """Takes in another state."""
        self.inner.merge(other.inner, mapping, group_count)

    def finish(self, group_count: int) -> pa.Array:
        """The inner answers."""
        return self.inner.finish(group_count)


def physical(array: pa.Array, type: Type) -> pa.Array:
    """The array in the physical type of ``type``, text not as a dictionary."""
    array = views.plain(array)
    return decimals.widen(array, type) if isinstance(type, Decimal) else array


# --- count -----------------------------------------------------------------------------------------------------------


@aggregate("count() -> BIGINT", group=GROUP, of_nothing=0, aliases=("count_star",))
def count_rows(call: CallInfo, constants: Constants) -> Accumulator:
    """How many rows: ``count(*)``.

    >>> count(*) FROM (VALUES (1), (NULL)) AS t(x)
    2
    """
    return Count()


@aggregate("count(value ANY, others ANY...) -> BIGINT", group=GROUP, of_nothing=0)
def count(call: CallInfo, constants: Constants) -> Accumulator:
    """How many rows in which no argument is NULL.

    >>> count(x) FROM (VALUES (1), (NULL)) AS t(x)
    1
    """
    return Count()


@aggregate("count_if(condition BOOLEAN) -> BIGINT", group=GROUP, origin="spark", of_nothing=0, aliases=("countif",))
def count_if(call: CallInfo, constants: Constants) -> Accumulator:
    """How many rows in which the condition is true.

    >>> count_if(x > 1) FROM (VALUES (1), (2), (NULL)) AS t(x)
    1
    """
    return CountTrue()


class CountTrue(Count):
    """Counts rows that are true."""

    def update(self, groups: Any, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Counts a batch."""
        self.add(groups, group_count, views.true_of(arguments[0]).view(np.uint8))


# --- sum and avg -----------------------------------------------------------------------------------------------------


def sum_type(types: tuple[Type, ...]) -> Type:
    """BIGINT of integers, DOUBLE of floats, ten digits more of decimals.

    42883  a type that is not added up
    """
    match types[0]:
        case Integer():
            return BIGINT
        case Float():
            return DOUBLE
        case Decimal(precision, scale):
            return Decimal(min(precision + SUM_DIGITS, DECIMAL_DIGITS_MAX), scale)
    raise UndefinedFunction(f"function sum({types[0].sql}) does not exist")


def average_type(types: tuple[Type, ...]) -> Type:
    """DOUBLE, or of decimals four digits more after the point.

    42883  a type that has no average
    """
    match types[0]:
        case Integer() | Float():
            return DOUBLE
        case Decimal(precision, scale):
            digits = min(scale + AVERAGE_DIGITS, DECIMAL_DIGITS_MAX)
            return Decimal(min(precision + AVERAGE_DIGITS, DECIMAL_DIGITS_MAX), digits)
    raise UndefinedFunction(f"function avg({types[0].sql}) does not exist")


@aggregate("sum(value NUMERIC) -> NUMERIC", group=GROUP, returns=sum_type)
def sum_(call: CallInfo, constants: Constants) -> Accumulator:
    """The sum: exact for integers and decimals, and for DOUBLE the exact sum rounded once, whatever the order.

    >>> sum(x) FROM (VALUES (1), (2), (NULL)) AS t(x)
    3

    22003  a sum out of the result's range
    """
    if isinstance(call.returns, Float):
        return ExactSum()
    return integer_sum(call.returns)


def integer_sum(returns: Type) -> SumInteger:
    """The state of a sum of integers or decimals."""
    name = INTEGER_NAMES[returns.bits] if isinstance(returns, Integer) else "numeric"
    return SumInteger(returns.physical, name)


@aggregate("sum(value INTERVAL) -> INTERVAL", group=GROUP)
def sum_intervals(call: CallInfo, constants: Constants) -> Accumulator:
    """The sum of intervals, part by part.

    >>> sum(x) FROM (VALUES (INTERVAL '1 day'), (INTERVAL '2 hours')) AS t(x)
    1 days 2 hours
    """
    return IntervalSum()


@aggregate("avg(value NUMERIC) -> NUMERIC", group=GROUP, returns=average_type, aliases=("mean",))
def avg(call: CallInfo, constants: Constants) -> Accumulator:
    """The mean: DOUBLE, or of decimals a decimal of four digits more, the rest cut.

    >>> avg(x) FROM (VALUES (1), (2), (4)) AS t(x)
    2.3333333333333335
    """
    match call.types[0]:
        case Decimal(scale=scale):
            assert isinstance(call.returns, Decimal)
            return DecimalAverage(call.returns, call.returns.scale - scale)
        case Integer():
            return IntegerAverage()
        case _:
            return ExactSum(averages=True)


@aggregate("avg(value INTERVAL) -> INTERVAL", group=GROUP, aliases=("mean",))
def average_intervals(call: CallInfo, constants: Constants) -> Accumulator:
    """The mean of intervals, as their sum divided by their count: what is left of months goes into days, of days into time.

    >>> avg(x) FROM (VALUES (INTERVAL '1 day'), (INTERVAL '2 hours')) AS t(x)
    13 hours
    """
    return IntervalAverage()


class DecimalAverage:
    """The mean of decimals; ``digits`` more after the point than they have. ``sum`` may be that of another aggregate."""

    def __init__(self, returns: Decimal, digits: int) -> None:
        self._returns = returns
        self._digits = digits
        self.sum = SumInteger(pa.decimal128(DECIMAL_DIGITS_MAX, 0), "numeric")

    def update(self, groups: Any, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Adds a batch of one argument."""
        self.sum.update(groups, group_count, arguments)

    def load(self, values: Any, counts: Any) -> None:
        """Takes sums and counts made elsewhere."""
        self.sum.load(values, counts)

    def merge(self, other: DecimalAverage, mapping: Any, group_count: int) -> None:
        """Adds another state."""
        self.sum.merge(other.sum, mapping, group_count)

    def finish(self, group_count: int) -> pa.Array:
        """The means, NULL where no value counted."""
        sums, counts, valid = exact_sums(self.sum, group_count)
        quotient = decimals.divide(Scaled(sums, valid), Scaled(np.maximum(counts, 1)), raised=self._digits)
        return decimals.widen(decimals.to_value(quotient, self._returns), self._returns)


class IntegerAverage:
    """The mean of integers: their exact sum over their count, rounded once. ``sum`` may be that of another aggregate."""

    def __init__(self) -> None:
        self.sum = SumInteger(pa.decimal128(DECIMAL_DIGITS_MAX, 0), "numeric")

    def update(self, groups: Any, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Adds a batch of one argument."""
        self.sum.update(groups, group_count, arguments)

    def load(self, values: Any, counts: Any) -> None:
        """Takes sums and counts made elsewhere."""
        self.sum.load(values, counts)

    def merge(self, other: IntegerAverage, mapping: Any, group_count: int) -> None:
        """Adds another state."""
        self.sum.merge(other.sum, mapping, group_count)

    def finish(self, group_count: int) -> pa.Array:
        """The means, NULL where no value counted."""
        sums, counts, valid = exact_sums(self.sum, group_count)
        counts = np.maximum(counts, 1)
        if sums.ndim == 2 or (sums.size and np.abs(sums).max() > DOUBLE_EXACT_MAX):
            totals = Scaled(sums).integers()
            means = np.array([total / many for total, many in zip(totals, counts.tolist())], np.float64)
        else:
            means = sums / counts
        return views.to_array(means, pa.float64(), valid)


def exact_sums(state: SumInteger, group_count: int) -> tuple[Any, Any, Any]:
    """Sums (int64, or two words each), counts and validity of each group."""
    words = views.to_array(state.wide_sums(group_count), pa.decimal128(DECIMAL_DIGITS_MAX, 0))
    found = decimals.scaled(words)
    assert found is not None
    counts = resized(state.counts.counts, group_count)[:group_count]
    return found.values, counts, (counts > 0).astype(np.uint8)


class IntervalSum:
    """Sums of months, days and nanoseconds."""

    def __init__(self) -> None:
        self._parts: Any = np.zeros((0, 3), np.int64)
        self._count = Count()

    def update(self, groups: Any, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Adds a batch of one argument."""
        self._parts = resized(self._parts, group_count)
        self._count.update(groups, group_count, arguments)
        valid = views.valid_of(arguments[0])
        for index, part in enumerate(interval_parts(arguments[0])):
            np.add.at(self._parts[:, index], groups, part if valid is None else part * valid)

    def merge(self, other: IntervalSum, mapping: Any, group_count: int) -> None:
        """Adds another state."""
        self._parts = resized(self._parts, group_count)
        self._count.merge(other._count, mapping, group_count)
        np.add.at(self._parts, mapping, resized(other._parts, len(mapping))[: len(mapping)])

    def finish(self, group_count: int) -> pa.Array:
        """The sums, NULL where no value counted.

        22008  more months or days than an interval holds
        """
        parts = resized(self._parts, group_count)[:group_count]
        if parts.size and np.abs(parts[:, :2]).max() >= 2**31:
            raise DatetimeOverflow("interval out of range")
        valid = (views.values_of(self._count.finish(group_count)) > 0).astype(np.uint8)
        return interval_array(parts[:, 0], parts[:, 1], parts[:, 2], valid)


class IntervalAverage(IntervalSum):
    """Means of intervals."""

    def finish(self, group_count: int) -> pa.Array:
        """The means, NULL where no value counted."""
        parts = resized(self._parts, group_count)[:group_count].astype(np.float64)
        counts = views.values_of(self._count.finish(group_count))
        means = [part / np.maximum(counts, 1) for part in parts.T]
        return intervals(whole_parts(means), (counts > 0).astype(np.uint8))


# --- extremes --------------------------------------------------------------------------------------------------------


@aggregate("min(value ANY) -> ANY", group=GROUP, returns=same_type, duplicates_matter=False)
def min_(call: CallInfo, constants: Constants) -> Accumulator:
    """The least value.

    >>> min(x) FROM (VALUES (2), (1), (NULL)) AS t(x)
    1
    """
    return _extreme(call, greatest=False)


@aggregate("max(value ANY) -> ANY", group=GROUP, returns=same_type, duplicates_matter=False)
def max_(call: CallInfo, constants: Constants) -> Accumulator:
    """The greatest value.

    >>> max(x) FROM (VALUES (2), (1), (NULL)) AS t(x)
    2
    """
    return _extreme(call, greatest=True)


def _extreme(call: CallInfo, *, greatest: bool) -> Accumulator:
    return Converted(extreme(call.returns.physical, greatest=greatest), call.types)


@aggregate("bool_and(value BOOLEAN) -> BOOLEAN", group=GROUP, duplicates_matter=False, aliases=("every",))
def bool_and(call: CallInfo, constants: Constants) -> Accumulator:
    """Whether all are true.

    >>> bool_and(x > 0) FROM (VALUES (1), (2), (NULL)) AS t(x)
    true
    """
    return extreme(pa.bool_(), greatest=False)


@aggregate("bool_or(value BOOLEAN) -> BOOLEAN", group=GROUP, duplicates_matter=False, aliases=("any", "some"))
def bool_or(call: CallInfo, constants: Constants) -> Accumulator:
    """Whether one is true.

    >>> bool_or(x > 1) FROM (VALUES (1), (2), (NULL)) AS t(x)
    true
    """
    return extreme(pa.bool_(), greatest=True)


# --- bits ------------------------------------------------------------------------------------------------------------


@aggregate("bit_and(value INTEGER) -> INTEGER", group=GROUP, returns=same_type, duplicates_matter=False)
def bit_and(call: CallInfo, constants: Constants) -> Accumulator:
    """Bits set in all.

    >>> bit_and(x) FROM (VALUES (7), (3)) AS t(x)
    3
    """
    return BitCombination(call.returns.physical, "and")


@aggregate("bit_or(value INTEGER) -> INTEGER", group=GROUP, returns=same_type, duplicates_matter=False)
def bit_or(call: CallInfo, constants: Constants) -> Accumulator:
    """Bits set in one.

    >>> bit_or(x) FROM (VALUES (1), (2)) AS t(x)
    3
    """
    return BitCombination(call.returns.physical, "or")


@aggregate("bit_xor(value INTEGER) -> INTEGER", group=GROUP, returns=same_type)
def bit_xor(call: CallInfo, constants: Constants) -> Accumulator:
    """Bits set in an odd number of values.

    >>> bit_xor(x) FROM (VALUES (1), (3)) AS t(x)
    2
    """
    return BitCombination(call.returns.physical, "xor")


# --- picked values ---------------------------------------------------------------------------------------------------


@aggregate("any_value(value ANY) -> ANY", group=GROUP, returns=same_type, takes_order=True, duplicates_matter=False,
           aliases=("arbitrary",))  # fmt: skip
def any_value(call: CallInfo, constants: Constants) -> Accumulator:
    """Some value that is not NULL.

    >>> any_value(x) FROM (VALUES (NULL), (5)) AS t(x)
    5
    """
    return Converted(PickedRows.first(call.returns.physical, ignore_nulls=True), call.types)
