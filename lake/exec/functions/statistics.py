"""Aggregates of statistics: spread, regression, quantiles, and counts of different values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, UndefinedFunction
from lake.exec import decimals
from lake.exec.decimals import Scaled
from lake.exec.functions.aggregates import Constants
from lake.exec.functions.arithmetic import same_type
from lake.exec.functions.collecting import Collected
from lake.exec.kernels import views
from lake.exec.kernels.hashing import hash_columns
from lake.exec.kernels.moments import Moments
from lake.sql.registry import Accumulator, CallInfo, aggregate
from lake.types import BIGINT, DOUBLE, Decimal, Float, Integer, Type

GROUP: Final = "statistics"


# --- moments ---------------------------------------------------------------------------------------------------------


def _register_moment(name: str, text: str, answer: str, *aliases: str) -> None:
    """An aggregate of ``kernels.moments.MOMENTS`` over one or two columns."""
    is_pair = name.startswith(("covar", "corr", "regr"))
    example = f"{name}(y, x) FROM (VALUES (2, 1), (4, 2), (6, 3)) AS t(y, x)" if is_pair else (
        f"{name}(x) FROM (VALUES (1), (2), (3)) AS t(x)"
    )  # fmt: skip

    def make(call: CallInfo, constants: Constants) -> Accumulator:
        return IntegerMoments() if name == "regr_count" else Moments.of(name)

    make.__doc__ = f"{text}\n\n    >>> {example}\n    {answer}\n    "
    parameters = "y DOUBLE, x DOUBLE" if is_pair else "value DOUBLE"
    result = "BIGINT" if name == "regr_count" else "DOUBLE"
    nothing = 0 if name == "regr_count" else None
    aggregate(f"{name}({parameters}) -> {result}", group=GROUP, of_nothing=nothing, aliases=aliases)(make)


class IntegerMoments(Moments):
    """regr_count: a whole number, 0 of no rows."""

    def __init__(self) -> None:
        super().__init__(lambda states: states[:, 0], 0)

    def finish(self, group_count: int) -> pa.Array:
        """BIGINT."""
        return pc.fill_null(super().finish(group_count), 0.0).cast(BIGINT.physical)


_register_moment("var_samp", "The variance of a sample.", "1.0", "var", "var_sample", "variance")
_register_moment("var_pop", "The variance of a population.", "0.6666666666666666", "var_population")
_register_moment("stddev_samp", "The standard deviation of a sample.", "1.0", "stddev", "std")
_register_moment("stddev_pop", "The standard deviation of a population.", "0.816496580927726")
_register_moment("covar_samp", "The covariance of a sample.", "2.0", "covar")
_register_moment("covar_pop", "The covariance of a population.", "1.3333333333333333")
_register_moment("corr", "The correlation.", "1.0")
_register_moment("regr_count", "How many rows have both values.", "3")
_register_moment("regr_avgx", "The mean of x.", "2.0")
_register_moment("regr_avgy", "The mean of y.", "4.0")
_register_moment("regr_sxx", "The sum of squares of x around its mean.", "2.0")
_register_moment("regr_syy", "The sum of squares of y around its mean.", "8.0")
_register_moment("regr_sxy", "The sum of products of x and y around their means.", "4.0")
_register_moment("regr_slope", "The slope of the regression line.", "2.0")
_register_moment("regr_intercept", "Where the regression line meets the y axis.", "0.0")
_register_moment("regr_r2", "The square of the correlation.", "1.0")


class Floats(Collected):
    """Keeps numbers and answers a function of each group's values, by their offsets."""

    def __init__(self, run: Callable[[Any, Any], Any]) -> None:
        super().__init__((DOUBLE,))
        self._run = run

    def finish(self, group_count: int) -> pa.Array:
        """DOUBLE, NULL where the function answers NaN for no lack of numbers."""
        offsets, (values,) = self.by_group(group_count, with_nulls=False)
        groups = np.repeat(np.arange(group_count), np.diff(offsets))
        with np.errstate(all="ignore"):
            answers = self._run(_Sums(groups, views.values_of(values), group_count), np.diff(offsets))
        return views.to_array(answers, pa.float64(), (~np.isnan(answers)).astype(np.uint8))


class _Sums:
    """Sums of a function of a group's values."""

    def __init__(self, groups: Any, values: Any, group_count: int) -> None:
        self._groups = groups
        self._count = group_count
        self.values = values
        self.counts = np.bincount(groups, minlength=group_count)

    def of(self, values: Any) -> Any:
        """float64[groups]: sums of float64[rows]."""
        return np.bincount(self._groups, weights=values, minlength=self._count)

    def around_mean(self, power: int) -> Any:
        """float64[groups]: means of powers of the distance from the mean."""
        means = self.of(self.values) / self.counts
        return self.of((self.values - means[self._groups]) ** power) / self.counts

    def spread(self, values: Any) -> Any:
        """float64[rows]: a number of each group, for its rows."""
        return values[self._groups]


@aggregate("product(value DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb")
def product(call: CallInfo, constants: Constants) -> Accumulator:
    """The product.

    >>> product(x) FROM (VALUES (2), (3), (4)) AS t(x)
    24.0
    """
    return Products()


class Products:
    """Products of floats."""

    def __init__(self) -> None:
        self._products: Any = np.ones(0)
        self._seen: Any = np.zeros(0, np.uint8)

    def update(self, groups: Any, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Multiplies a batch."""
        self._grow(group_count)
        valid = views.valid_of(arguments[0])
        live = slice(None) if valid is None else valid == 1
        np.multiply.at(self._products, groups[live], views.values_of(arguments[0])[live])
        self._seen[groups[live]] = 1

    def merge(self, other: Products, mapping: Any, group_count: int) -> None:
        """Multiplies another state."""
        self._grow(group_count)
        mapping = mapping[: len(other._products)]
        np.multiply.at(self._products, mapping, other._products[: len(mapping)])
        np.maximum.at(self._seen, mapping, other._seen[: len(mapping)])

    def finish(self, group_count: int) -> pa.Array:
        """DOUBLE."""
        self._grow(group_count)
        return views.to_array(self._products[:group_count], pa.float64(), self._seen[:group_count])

    def _grow(self, group_count: int) -> None:
        missing = group_count - len(self._products)
        if missing > 0:
            self._products = np.concatenate((self._products, np.ones(missing)))
            self._seen = np.concatenate((self._seen, np.zeros(missing, np.uint8)))


@aggregate("geomean(value DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb", aliases=("geometric_mean",))
def geomean(call: CallInfo, constants: Constants) -> Accumulator:
    """The geometric mean.

    >>> round(geomean(x), 6) FROM (VALUES (1), (2), (4)) AS t(x)
    2.0
    """
    return Floats(lambda sums, counts: np.exp(sums.of(np.log(sums.values)) / counts))


@aggregate("skewness(value DOUBLE) -> DOUBLE", group=GROUP, origin="spark")
def skewness(call: CallInfo, constants: Constants) -> Accumulator:
    """The skewness of a population.

    >>> skewness(x) FROM (VALUES (1), (2), (3)) AS t(x)
    0.0
    """
    return Floats(lambda sums, counts: sums.around_mean(3) / sums.around_mean(2) ** 1.5)


@aggregate("kurtosis(value DOUBLE) -> DOUBLE", group=GROUP, origin="spark", aliases=("kurtosis_pop",))
def kurtosis(call: CallInfo, constants: Constants) -> Accumulator:
    """The kurtosis of a population, 0 for a normal distribution.

    >>> round(kurtosis(x), 4) FROM (VALUES (1), (2), (3), (4)) AS t(x)
    -1.36
    """
    return Floats(lambda sums, counts: sums.around_mean(4) / sums.around_mean(2) ** 2 - 3)


@aggregate("sem(value DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb")
def sem(call: CallInfo, constants: Constants) -> Accumulator:
    """The standard error of the mean.

    >>> round(sem(x), 6) FROM (VALUES (1), (2), (3), (4)) AS t(x)
    0.559017
    """
    return Floats(lambda sums, counts: np.sqrt(sums.around_mean(2) / counts))


@aggregate("entropy(value ANY) -> DOUBLE", group=GROUP, origin="duckdb")
def entropy(call: CallInfo, constants: Constants) -> Accumulator:
    """The entropy of the values' shares, in bits.

    >>> entropy(x) FROM (VALUES ('a'), ('b'), ('a'), ('c')) AS t(x)
    1.5
    """
    return Entropy(call.types)


class Entropy(Collected):
    """Entropies of groups."""

    def finish(self, group_count: int) -> pa.Array:
        """DOUBLE, 0 of no values."""
        offsets, (values,) = self.by_group(group_count, with_nulls=False)
        groups = np.repeat(np.arange(group_count), np.diff(offsets))
        pairs = np.stack(
            (groups.astype(np.uint64), hash_columns([values]) if len(values) else groups.astype(np.uint64))
        )
        unique, counts = np.unique(pairs, axis=1, return_counts=True)
        at = unique[0].astype(np.int64)
        share = counts / np.diff(offsets)[at]
        answers = np.bincount(at, weights=-share * np.log2(share), minlength=group_count)
        return views.to_array(np.abs(answers), pa.float64())


# --- quantiles -------------------------------------------------------------------------------------------------------


def quantile_type(types: tuple[Type, ...]) -> Type:
    """DOUBLE of integers, else the type itself.

    42883  a type whose values have no middle
    """
    if not isinstance(types[0], Integer | Float | Decimal):
        raise UndefinedFunction(f"quantiles of {types[0].sql} do not exist")
    return DOUBLE if isinstance(types[0], Integer) else types[0]


@aggregate("median(value NUMERIC) -> NUMERIC", group=GROUP, returns=quantile_type, aliases=("approx_median",))
def median(call: CallInfo, constants: Constants) -> Accumulator:
    """The middle value, or the mean of the two in the middle.

    >>> median(x) FROM (VALUES (1), (2), (3), (10)) AS t(x)
    2.5
    """
    return Quantile(call, 0.5)


@aggregate("percentile_cont(value NUMERIC, share DOUBLE) -> NUMERIC", group=GROUP, returns=quantile_type,
           aliases=("quantile_cont", "approx_percentile_cont"))  # fmt: skip
@aggregate("percentile_cont(value NUMERIC, share DOUBLE, centroids BIGINT) -> NUMERIC", group=GROUP,
           returns=quantile_type, aliases=("approx_percentile_cont",))  # fmt: skip
def percentile_cont(call: CallInfo, constants: Constants) -> Accumulator:
    """The value below which the share of values lies, between two values in proportion.

    >>> percentile_cont(0.75) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (3), (4)) AS t(x)
    3.25

    22023  a share out of 0 to 1
    """
    share = _checked_share(constants)
    return Quantile(call, 1 - share if call.descending else share)


def _checked_share(constants: Constants) -> float:
    share = constants[1]
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidParameter(f"percentile value {share} is not between 0 and 1")
    return float(share)


class Sorted(Collected):
    """Values of each group in ascending order, NULLs left out."""

    def sorted_by_group(self, group_count: int) -> tuple[Any, pa.Array]:
        """Offsets and the values."""
        offsets, columns = self.by_group(group_count, with_nulls=False)
        groups = np.repeat(np.arange(group_count), np.diff(offsets))
        rows = pa.table({"g": pa.array(groups), "v": columns[0]})
        order = pc.sort_indices(rows, sort_keys=[("g", "ascending"), ("v", "ascending")])
        return offsets, columns[0].take(order)


class Quantile(Sorted):
    """A share's value between values."""

    def __init__(self, call: CallInfo, share: float) -> None:
        super().__init__(call.types)
        self._returns = call.returns
        self._share = share

    def finish(self, group_count: int) -> pa.Array:
        """The quantiles, NULL of no values."""
        offsets, values = self.sorted_by_group(group_count)
        counts = np.diff(offsets)
        there = (counts > 0).astype(np.uint8)
        place = np.maximum(counts - 1, 0) * self._share
        low = np.floor(place).astype(np.int64)
        part = place - low
        first = np.where(counts > 0, offsets[:-1] + low, 0)
        second = np.where(counts > 0, offsets[:-1] + np.minimum(low + 1, np.maximum(counts - 1, 0)), 0)
        if len(values) == 0:
            return pa.nulls(group_count, self._returns.physical)
        if isinstance(self._returns, Decimal):
            return self._of_decimals(values, first, second, part, there)
        numbers = views.values_of(values).astype(np.float64)
        with np.errstate(invalid="ignore"):
            between = numbers[first] + (numbers[second] - numbers[first]) * part
        answers = np.where(part == 0, numbers[first], between)
        return views.to_array(answers, self._returns.physical, there)

    def _of_decimals(self, values: pa.Array, first: Any, second: Any, part: Any, there: Any) -> pa.Array:
        assert isinstance(self._returns, Decimal)
        lower, upper = (decimals.scaled(values.take(pa.array(places))) for places in (first, second))
        assert lower is not None and upper is not None
        millionths = Scaled(np.round(part * 1_000_000).astype(np.int64))
        moved = decimals.multiply(decimals.subtract(upper, lower), millionths, drop=6)
        found = decimals.add(lower, moved)
        return decimals.widen(decimals.to_value(Scaled(found.values, there), self._returns), self._returns)


@aggregate("percentile_disc(value ANY, share DOUBLE) -> ANY", group=GROUP, origin="postgres", returns=same_type,
           aliases=("quantile_disc", "quantile"))  # fmt: skip
def percentile_disc(call: CallInfo, constants: Constants) -> Accumulator:
    """The first value at which the share of values is reached.

    >>> percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (3), (4)) AS t(x)
    2

    22023  a share out of 0 to 1
    """
    return DiscreteQuantile(call, _checked_share(constants))


class DiscreteQuantile(Sorted):
    """The value at which a share is reached."""

    def __init__(self, call: CallInfo, share: float) -> None:
        super().__init__(call.types)
        self._share = share
        self._descending = call.descending

    def finish(self, group_count: int) -> pa.Array:
        """The quantiles, NULL of no values."""
        offsets, values = self.sorted_by_group(group_count)
        counts = np.diff(offsets)
        place = np.maximum(np.ceil(np.round(counts * self._share, 9)).astype(np.int64) - 1, 0)
        if self._descending:
            place = counts - 1 - place
        rows = np.where(counts > 0, offsets[:-1] + place, 0)
        return values.take(views.to_array(rows, pa.int64(), (counts > 0).astype(np.uint8)))


@aggregate("mode(value ANY) -> ANY", group=GROUP, origin="postgres", returns=same_type)
def mode(call: CallInfo, constants: Constants) -> Accumulator:
    """The most frequent value, the least of several.

    >>> mode(x) FROM (VALUES (1), (2), (2)) AS t(x)
    2
    """
    return Mode(call.types)


class Mode(Sorted):
    """Most frequent values."""

    def finish(self, group_count: int) -> pa.Array:
        """The values, NULL of none."""
        offsets, values = self.sorted_by_group(group_count)
        rows = len(values)
        groups = np.repeat(np.arange(group_count), np.diff(offsets))
        if rows == 0:
            return pa.nulls(group_count, values.type)
        same = np.zeros(rows, np.bool_)
        equal = views.true_of(pc.fill_null(pc.equal(values[1:], values[:-1]), False)) if rows > 1 else np.empty(0, bool)
        same[1:] = equal & (groups[1:] == groups[:-1])
        starts = np.flatnonzero(~same)
        lengths = np.diff(np.concatenate((starts, [rows])))
        order = np.lexsort((np.arange(starts.size), -lengths, groups[starts]))
        _, first = np.unique(groups[starts][order], return_index=True)
        chosen = starts[order[first]]
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
