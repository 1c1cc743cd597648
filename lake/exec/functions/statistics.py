"""Aggregates of statistics: spread, regression, quantiles, and counts of different values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec.functions.aggregates import Constants
from lake.exec.functions.collecting import Collected
from lake.exec.kernels import views
from lake.exec.kernels.hashing import hash_columns
from lake.exec.kernels.moments import Moments
from lake.sql.registry import Accumulator, CallInfo, aggregate
from lake.types import BIGINT, DOUBLE

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
