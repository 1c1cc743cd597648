"""Aggregates that weigh, count each value, and forgive: weighted_avg, histogram, percentile, try_sum and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import LakeError
from lake.exec.decimals import Value
from lake.exec.functions.aggregates import Constants, Converted, average_type, avg, sum_, sum_type
from lake.exec.functions.arithmetic import same_type
from lake.exec.functions.collecting import Collected
from lake.exec.functions.list_summaries import _aggregate as list_aggregated
from lake.exec.functions.lists import element_type, offsets_of
from lake.exec.functions.maps import made_map
from lake.exec.functions.quantiles import percentile_cont, percentile_disc, quantile_type
from lake.exec.kernels import views
from lake.exec.kernels.exact_sum import ExactSum
from lake.exec.kernels.extremes import PickedRows
from lake.exec.kernels.order import dense_ranks
from lake.sql.registry import Accumulator, CallInfo, aggregate, scalar
from lake.types import BIGINT, Map, Type

GROUP: Final = "aggregates"


# --- sums ------------------------------------------------------------------------------------------------------------


@aggregate("fsum(value DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb", aliases=("kahan_sum", "sumkahan"))
def fsum(call: CallInfo, constants: Constants) -> Accumulator:
    """The exact sum of floats, rounded once.

    >>> fsum(x) FROM (VALUES (10.0), (20.5), (7.25)) AS t(x)
    37.75
    """
    return ExactSum()


@aggregate("favg(value DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb")
def favg(call: CallInfo, constants: Constants) -> Accumulator:
    """The mean of floats, of their exact sum.

    >>> favg(x) FROM (VALUES (10.0), (20.5), (7.25)) AS t(x)
    12.583333333333334
    """
    return ExactSum(averages=True)


class Forgiving:
    """An accumulator whose groups answer NULL where they are refused."""

    def __init__(self, make: Callable[[], Any], type: pa.DataType) -> None:
        self._make, self._type = make, type
        self._inner = make()

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the state takes."""
        return int(getattr(self._inner, "nbytes", 0))

    def update(self, groups: Any, group_count: int, arguments: Any) -> None:
        """Takes in a batch."""
        self._inner.update(groups, group_count, arguments)

    def merge(self, other: Forgiving, mapping: Any, group_count: int) -> None:
        """Takes in another state."""
        self._inner.merge(other._inner, mapping, group_count)

    def finish(self, group_count: int) -> pa.Array:
        """The answers; where one group is refused, each is asked on its own."""
        try:
            return self._inner.finish(group_count)
        except LakeError:
            return views.concat([self._alone(group, group_count) for group in range(group_count)])

    def _alone(self, group: int, group_count: int) -> pa.Array:
        # All other groups go to a second one, which is not asked.
        state = self._make()
        mapping = np.ones(group_count, np.int64)
        mapping[group] = 0
        state.merge(self._inner, mapping, 2)
        try:
            return state.finish(1)
        except LakeError:
            return pa.nulls(1, self._type)


@aggregate("try_sum(value NUMERIC) -> NUMERIC", group=GROUP, origin="spark", returns=sum_type)
def try_sum(call: CallInfo, constants: Constants) -> Accumulator:
    """The sum, NULL where it is out of range.

    >>> SELECT try_sum(x), try_sum(y) FROM (VALUES (1, 9223372036854775807), (2, 1)) AS t(x, y)
    3 | NULL
    """
    return Forgiving(lambda: sum_(call, constants), call.returns.physical)


@aggregate("try_avg(value NUMERIC) -> NUMERIC", group=GROUP, origin="spark", returns=average_type)
def try_avg(call: CallInfo, constants: Constants) -> Accumulator:
    """The mean, NULL where it is out of range.

    >>> try_avg(x) FROM (VALUES (1), (2), (4)) AS t(x)
    2.3333333333333335
    """
    return Forgiving(lambda: avg(call, constants), call.returns.physical)


@aggregate("weighted_avg(value DOUBLE, weight DOUBLE) -> DOUBLE", group=GROUP, origin="duckdb", aliases=("wavg",))
def weighted_avg(call: CallInfo, constants: Constants) -> Accumulator:
    """The mean in which each value counts as much as its weight; rows with a NULL do not count.

    >>> weighted_avg(x, w) FROM (VALUES (10.0, 1), (20.5, 2), (NULL, 3)) AS t(x, w)
    17.0
    """
    return WeightedMean()


class WeightedMean:
    """Exact sums of values times weights, and of weights."""

    def __init__(self) -> None:
        self._products, self._weights = ExactSum(), ExactSum()

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the state takes."""
        return self._products.nbytes + self._weights.nbytes

    def update(self, groups: Any, group_count: int, arguments: Any) -> None:
        """Takes in a batch."""
        value, weight = arguments
        products = pc.multiply(value, weight)
        self._products.update(groups, group_count, [products])
        self._weights.update(groups, group_count, [pc.if_else(products.is_valid(), weight, pa.scalar(None, weight.type))])

    def merge(self, other: WeightedMean, mapping: Any, group_count: int) -> None:
        """Takes in another state."""
        self._products.merge(other._products, mapping, group_count)
        self._weights.merge(other._weights, mapping, group_count)

    def finish(self, group_count: int) -> pa.Array:
        """The means, NULL where the weights are 0 in all."""
        weights = self._weights.finish(group_count)
        some = pc.if_else(pc.equal(weights, 0.0), pa.scalar(None, pa.float64()), weights)
        return pc.divide(self._products.finish(group_count), some)


# --- rows at an extreme ----------------------------------------------------------------------------------------------


@aggregate("arg_max_null(value ANY, by ANY) -> ANY", group=GROUP, origin="duckdb", returns=same_type,
           duplicates_matter=False)  # fmt: skip
def arg_max_null(call: CallInfo, constants: Constants) -> Accumulator:
    """The first argument of the row where the second is greatest, NULL too.

    >>> arg_max_null(x, i) FROM (VALUES (10, 1), (NULL, 2)) AS t(x, i)
    NULL
    """
    return Converted(PickedRows.extreme_by(call.returns.physical, greatest=True), call.types)


@aggregate("arg_min_null(value ANY, by ANY) -> ANY", group=GROUP, origin="duckdb", returns=same_type,
           duplicates_matter=False)  # fmt: skip
def arg_min_null(call: CallInfo, constants: Constants) -> Accumulator:
    """The first argument of the row where the second is least, NULL too.

    >>> arg_min_null(x, i) FROM (VALUES (NULL, 1), (10, 2)) AS t(x, i)
    NULL
    """
    return Converted(PickedRows.extreme_by(call.returns.physical, greatest=False), call.types)


# --- shares ----------------------------------------------------------------------------------------------------------


@aggregate("percentile(value NUMERIC, share DOUBLE) -> NUMERIC", group=GROUP, origin="spark", returns=quantile_type)
def percentile(call: CallInfo, constants: Constants) -> Accumulator:
    """The value below which the share of values lies, between two values in proportion.

    >>> percentile(x, 0.3) FROM (VALUES (1), (2), (3), (4)) AS t(x)
    1.9

    22023  a share out of 0 to 1
    """
    return percentile_cont(call, constants)


@aggregate("percentile_approx(value ANY, share DOUBLE) -> ANY", group=GROUP, origin="spark", returns=same_type,
           aliases=("approx_percentile", "approx_quantile"))  # fmt: skip
@aggregate("percentile_approx(value ANY, share DOUBLE, accuracy BIGINT) -> ANY", group=GROUP, origin="spark",
           returns=same_type, aliases=("approx_percentile",))  # fmt: skip
def percentile_approx(call: CallInfo, constants: Constants) -> Accumulator:
    """The first value at which the share of values is reached; it is exact.

    >>> percentile_approx(x, 0.5) FROM (VALUES (1), (2), (3), (4)) AS t(x)
    2

    22023  a share out of 0 to 1
    """
    return percentile_disc(call, constants)


# --- each value's count ----------------------------------------------------------------------------------------------


def _histogram_type(types: tuple[Type, ...]) -> Type:
    """A map of values to their counts."""
    return Map(types[0], BIGINT)


@aggregate("histogram(value ANY) -> ANY", group=GROUP, origin="duckdb", returns=_histogram_type)
def histogram(call: CallInfo, constants: Constants) -> Accumulator:
    """A map of the values that are not NULL to how often each is there, in ascending order.

    >>> histogram(x) FROM (VALUES ('a'), ('b'), ('a'), (NULL)) AS t(x)
    {a: 2, b: 1}
    """
    return Histogram(call.types)


class Histogram(Collected):
    """Counts of each group's values."""

    def finish(self, group_count: int) -> pa.Array:
        """The maps, NULL of no values."""
        offsets, (values,) = self.by_group(group_count, with_nulls=False)
        return counted(offsets, values, self._types[0])


def counted(offsets: Any, values: pa.Array, type: Type) -> pa.Array:
    """The map of each list's elements to their counts, NULL of an empty list."""
    counts = np.diff(offsets)
    parents = np.repeat(np.arange(len(counts)), counts)
    order = dense_ranks(values) if len(values) else np.zeros(0, np.int64)
    pairs = parents * (int(order.max(initial=0)) + 1) + order
    _, first, many = np.unique(pairs, return_index=True, return_counts=True)
    sizes = np.bincount(parents[first], minlength=len(counts))
    kept = values.take(pa.array(first))
    return made_map(offsets_of(sizes), kept, pa.array(many.astype(np.int64)), (counts > 0).astype(np.uint8),
                    Map(type, BIGINT))  # fmt: skip


@scalar("list_histogram(list ANY[]) -> ANY", group="lists", origin="duckdb", takes_call=True,
        returns=lambda types: Map(element_type(types), BIGINT), aliases=("array_histogram",))  # fmt: skip
def list_histogram(list: pa.Array, *, call: CallInfo) -> pa.Array:
    """A map of the elements that are not NULL to how often each is there, in ascending order.

    >>> list_histogram(['a', 'b', 'a'])
    {a: 2, b: 1}
    """
    return list_aggregated(list, element_type(call.types), "histogram")[0]


def _register_list(name: str, aggregate_name: str, answer: str) -> None:
    def function(list: Value, *, call: CallInfo) -> pa.Array:
        made, _ = list_aggregated(list, element_type(call.types), aggregate_name)
        return made

    function.__doc__ = f"The {aggregate_name} of the elements.\n\n    >>> round({name}([1, 2, 4]), 9)\n    {answer}\n    "
    scalar(f"{name}(list ANY[]) -> DOUBLE", group="lists", origin="duckdb", takes_call=True,
           aliases=(name.replace("list_", "array_"),))(function)  # fmt: skip


_register_list("list_stddev_samp", "stddev_samp", "1.527525232")
_register_list("list_stddev_pop", "stddev_pop", "1.247219129")
_register_list("list_var_samp", "var_samp", "2.333333333")
_register_list("list_var_pop", "var_pop", "1.555555556")


def _register_test(name: str, aggregate_name: str, answer: str) -> None:
    def function(list: Value, *, call: CallInfo) -> pa.Array:
        made, _ = list_aggregated(list, element_type(call.types), aggregate_name)
        return made

    function.__doc__ = f"The {aggregate_name} of the elements.\n\n    >>> {name}([true, false, NULL])\n    {answer}\n    "
    scalar(f"{name}(list BOOLEAN[]) -> BOOLEAN", group="lists", origin="duckdb", takes_call=True,
           aliases=(name.replace("list_", "array_"),))(function)  # fmt: skip


_register_test("list_bool_and", "bool_and", "false")
_register_test("list_bool_or", "bool_or", "true")
