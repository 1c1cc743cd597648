"""Distances and similarities of vectors: lists of numbers of one length. A NULL element gives NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.errors import InvalidParameter
from lake.exec.constants import list_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import both_valid, columns
from lake.exec.functions.lists import Lists
from lake.exec.kernels import views
from lake.sql.registry import scalar

GROUP: Final = "vectors"


class Pair:
    """Two columns of vectors, their numbers side by side.

    parents  int64[numbers]: each number's row       left, right  float64[numbers]
    """

    def __init__(self, a: Value, b: Value) -> None:
        one, two = columns(a, b)
        first, second = Lists(one), Lists(two)
        both = np.ones(first.rows, np.bool_)
        for lists in (first, second):
            if lists.valid is not None:
                both &= lists.valid == 1
        if (first.lengths != second.lengths)[both].any():
            raise InvalidParameter("vectors must have the same number of elements")
        self.rows = first.rows
        self.valid = both
        self._left = _numbers(first, both)
        self._right = _numbers(second, both)
        self.parents = first.parents[np.repeat(both, first.lengths)]
        for lists in (first, second):
            if lists.items.null_count:
                missing = ~views.true_of(lists.items.is_valid())
                self.valid = self.valid & (np.bincount(lists.parents[missing], minlength=self.rows) == 0)

    def sums(self, run: Callable[[Any, Any], Any]) -> Any:
        """float64[rows]: sums of a function of both sides' numbers."""
        with np.errstate(all="ignore"):
            return np.bincount(self.parents, weights=run(self._left, self._right), minlength=self.rows)

    def answer(self, values: Any) -> pa.Array:
        """DOUBLE, NULL for NaN and for NULL vectors."""
        return views.to_array(values, pa.float64(), (self.valid & ~np.isnan(values)).astype(np.uint8))


def _numbers(lists: Lists, rows: Any) -> Any:
    return np.nan_to_num(views.values_of(lists.items))[np.repeat(rows, lists.lengths)]


def _cosine(pair: Pair) -> Any:
    dot = pair.sums(lambda left, right: left * right)
    lengths = np.sqrt(pair.sums(lambda left, right: left * left) * pair.sums(lambda left, right: right * right))
    with np.errstate(all="ignore"):
        return np.where(lengths > 0, dot / lengths, np.nan)


@scalar("cosine_similarity(a DOUBLE[], b DOUBLE[]) -> DOUBLE", group=GROUP, origin="lake",
        aliases=("array_cosine_similarity", "list_cosine_similarity"))  # fmt: skip
def cosine_similarity(a: Value, b: Value) -> pa.Array:
    """The cosine of the angle between vectors; NULL of a zero vector.

    >>> cosine_similarity([1.0, 0.0], [1.0, 0.0])
    1.0

    22023  vectors of different lengths
    """
    pair = Pair(a, b)
    return pair.answer(_cosine(pair))


@scalar("cosine_distance(a DOUBLE[], b DOUBLE[]) -> DOUBLE", group=GROUP,
        aliases=("array_cosine_distance", "list_cosine_distance"))  # fmt: skip
def cosine_distance(a: Value, b: Value) -> pa.Array:
    """One less the cosine of the angle between vectors; NULL of a zero vector.

    >>> cosine_distance([1.0, 0.0], [0.0, 1.0])
    1.0
    """
    pair = Pair(a, b)
    return pair.answer(1 - _cosine(pair))


@scalar("l2_distance(a DOUBLE[], b DOUBLE[]) -> DOUBLE", group=GROUP, origin="lake",
        aliases=("array_distance", "list_distance"))  # fmt: skip
def l2_distance(a: Value, b: Value) -> pa.Array:
    """The length of the line between vectors.

    >>> l2_distance([1.0, 2.0], [4.0, 6.0])
    5.0
    """
    pair = Pair(a, b)
    return pair.answer(np.sqrt(pair.sums(lambda left, right: (left - right) ** 2)))


@scalar("dot_product(a DOUBLE[], b DOUBLE[]) -> DOUBLE", group=GROUP,
        aliases=("inner_product", "array_inner_product", "list_inner_product"))  # fmt: skip
def dot_product(a: Value, b: Value) -> pa.Array:
    """The sum of products.

    >>> dot_product([1.0, 2.0], [3.0, 4.0])
    11.0
    """
    pair = Pair(a, b)
    return pair.answer(pair.sums(lambda left, right: left * right))


@scalar("array_add(a DOUBLE[], b DOUBLE[]) -> DOUBLE[]", group=GROUP, aliases=("list_add",))
def array_add(a: Value, b: Value) -> pa.Array:
    """The sums of elements.

    >>> array_add([1.0, 2.0], [10.0, 20.0])
    [11.0, 22.0]
    """
    return _by_element(a, b, np.add)


@scalar("array_subtract(a DOUBLE[], b DOUBLE[]) -> DOUBLE[]", group=GROUP, aliases=("list_subtract",))
def array_subtract(a: Value, b: Value) -> pa.Array:
    """The differences of elements.

    >>> array_subtract([5.0, 7.0], [1.0, 2.0])
    [4.0, 5.0]
    """
    return _by_element(a, b, np.subtract)


def _by_element(a: Value, b: Value, run: Callable[[Any, Any], Any]) -> pa.Array:
    one, two = columns(a, b)
    first, second = Lists(one), Lists(two)
    valid = np.ones(first.rows, np.uint8)
    for lists in (first, second):
        if lists.valid is not None:
            valid &= lists.valid
    live = valid == 1
    if (first.lengths != second.lengths)[live].any():
        raise InvalidParameter("vectors must have the same number of elements")
    items = []
    for lists in (first, second):
        rows = pa.array(np.flatnonzero(np.repeat(live, lists.lengths)))
        items.append(lists.items.take(rows))
    both = both_valid(views.valid_of(items[0]), views.valid_of(items[1]))
    made = views.to_array(run(views.values_of(items[0]), views.values_of(items[1])), pa.float64(), both)
    offsets = np.concatenate(([0], np.cumsum(np.where(live, first.lengths, 0))))
    return list_array(offsets, made, valid)


@scalar("array_scale(list DOUBLE[], factor DOUBLE) -> DOUBLE[]", group=GROUP, aliases=("list_scale",))
def array_scale(list: Value, factor: Value) -> pa.Array:
    """Each element times a number.

    >>> array_scale([1.0, 2.0], 3.0)
    [3.0, 6.0]
    """
    one, two = columns(list, factor)
    lists = Lists(one)
    factors = views.values_of(two)[lists.parents]
    items = views.to_array(views.values_of(lists.items) * factors, pa.float64(), views.valid_of(lists.items))
    return list_array(lists.offsets, items, lists.valid)


@scalar("array_normalize(list DOUBLE[]) -> DOUBLE[]", group=GROUP, aliases=("list_normalize",))
def array_normalize(list: pa.Array) -> pa.Array:
    """The vector of length 1 in the same direction.

    >>> array_normalize([3.0, 4.0])
    [0.6, 0.8]
    """
    lists = Lists(list)
    numbers = views.values_of(lists.items)
    lengths = np.sqrt(np.bincount(lists.parents, weights=numbers * numbers, minlength=lists.rows))
    with np.errstate(all="ignore"):
        scaled = numbers / lengths[lists.parents]
    return list_array(lists.offsets, views.to_array(scaled, pa.float64(), views.valid_of(lists.items)), lists.valid)


@scalar("array_cross_product(a DOUBLE[], b DOUBLE[]) -> DOUBLE[]", group=GROUP, origin="duckdb",
        aliases=("list_cross_product", "cross_product"))  # fmt: skip
def array_cross_product(a: Value, b: Value) -> pa.Array:
    """The cross product of vectors of three numbers.

    >>> array_cross_product([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    [-1.0, 2.0, -1.0]

    22023  vectors of another length
    """
    one, two = columns(a, b)
    live = views.true_of(one.is_valid()) & views.true_of(two.is_valid())
    rows = pa.array(np.flatnonzero(live))
    first, second = Lists(one.take(rows)), Lists(two.take(rows))
    if (first.lengths != 3).any() or (second.lengths != 3).any():
        raise InvalidParameter("array_cross_product takes vectors of three numbers")
    if first.items.null_count or second.items.null_count:
        raise InvalidParameter("array_cross_product takes vectors without NULLs")
    left, right = (views.values_of(lists.items).reshape(-1, 3) for lists in (first, second))
    offsets = np.concatenate(([0], np.cumsum(np.where(live, 3, 0))))
    return list_array(offsets, pa.array(np.cross(left, right).ravel(), pa.float64()), live.astype(np.uint8))
