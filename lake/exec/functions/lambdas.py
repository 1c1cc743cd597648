"""Functions over lists that take a lambda: it runs once over the elements of all rows' lists."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.errors import InvalidParameter
from lake.exec import decimals
from lake.exec.cast import cast
from lake.exec.constants import as_array, list_array
from lake.exec.decimals import Value
from lake.exec.functions.lists import Lists, element_type, first_list_type
from lake.exec.kernels import views
from lake.sql.registry import CallInfo, scalar
from lake.types import Decimal, List, Type

GROUP: Final = "lists"


def lambda_list_type(types: tuple[Type, ...]) -> Type:
    """A list of what the lambda answers."""
    return List(types[1])


def _over(lists: Lists, function: Any) -> pa.Array:
    """The lambda's value for each element; a second parameter is the element's place, from 1."""
    elements = [lists.items]
    if function.parameter_count > 1:
        elements.append(pa.array(lists.places + 1))
    return views.plain(function(lists.parents, *elements))


@scalar("list_transform(list ANY[], function LAMBDA) -> ANY[]", group=GROUP, origin="duckdb", returns=lambda_list_type,
        takes_call=True,
        aliases=("array_transform", "apply", "list_apply", "array_apply", "transform"))  # fmt: skip
def list_transform(list: Value, function: Any, *, call: CallInfo) -> pa.Array:
    """The list of what a lambda answers for each element, or for the element and its place.

    >>> list_transform([4, 5, 6], x -> x + 1)
    [5, 6, 7]
    """
    lists = Lists(as_array(list, call.rows))
    return list_array(lists.offsets, _over(lists, function), lists.valid)


@scalar("list_filter(list ANY[], condition LAMBDA) -> ANY[]", group=GROUP, origin="duckdb", returns=first_list_type,
        takes_call=True, aliases=("array_filter", "filter"))  # fmt: skip
def list_filter(list: Value, condition: Any, *, call: CallInfo) -> pa.Array:
    """The elements for which a lambda is true.

    >>> list_filter([3, 4, 5], x -> x > 3)
    [4, 5]
    """
    lists = Lists(as_array(list, call.rows))
    return lists.keep(np.flatnonzero(views.true_of(_over(lists, condition))))


@scalar("list_any_match(list ANY[], condition LAMBDA) -> BOOLEAN", group=GROUP, origin="spark", takes_call=True,
        aliases=("any_match", "array_any_match", "exists"))  # fmt: skip
def list_any_match(list: Value, condition: Any, *, call: CallInfo) -> pa.Array:
    """Whether a lambda is true for an element.

    >>> any_match([1, 2], x -> x > 1)
    true
    """
    lists = Lists(as_array(list, call.rows))
    true = views.true_of(_over(lists, condition))
    return lists.per_row(np.bincount(lists.parents[true], minlength=lists.rows) > 0, pa.bool_())


@scalar("list_all_match(list ANY[], condition LAMBDA) -> BOOLEAN", group=GROUP, origin="spark", takes_call=True,
        aliases=("all_match", "array_all_match", "forall"))  # fmt: skip
def list_all_match(list: Value, condition: Any, *, call: CallInfo) -> pa.Array:
    """Whether a lambda is true for all elements.

    >>> all_match([1, 2], x -> x > 1)
    false
    """
    lists = Lists(as_array(list, call.rows))
    true = views.true_of(_over(lists, condition))
    return lists.per_row(np.bincount(lists.parents[true], minlength=lists.rows) == lists.lengths, pa.bool_())


def first_element_type(types: tuple[Type, ...]) -> Type:
    """The type of the list's elements."""
    return element_type(types)


@scalar("list_reduce(list ANY[], function LAMBDA) -> ANY", group=GROUP, origin="duckdb", returns=first_element_type,
        takes_call=True, aliases=("array_reduce", "reduce"))  # fmt: skip
def list_reduce(list: Value, function: Any, *, call: CallInfo) -> pa.Array:
    """What is left when a lambda takes the first two elements, then its answer and the third, and so on.

    >>> list_reduce([4, 5, 6], (acc, x) -> acc + x)
    15

    22023  an empty list
    """
    lists = Lists(as_array(list, call.rows))
    if ((lists.lengths == 0) & (np.ones(lists.rows) == 1 if lists.valid is None else lists.valid == 1)).any():
        raise InvalidParameter("cannot perform list_reduce on an empty input list")
    there = lists.lengths > 0
    rows = views.to_array(np.where(there, lists.offsets[:-1], 0), pa.int64(), there.astype(np.uint8))
    start = lists.items.take(rows) if len(lists.items) else pa.nulls(lists.rows, lists.items.type)
    return _fold(lists, start, 1, function, call)


def start_type(types: tuple[Type, ...]) -> Type:
    """The type of the first value."""
    return types[1]


@scalar("reduce(list ANY[], start ANY, function LAMBDA) -> ANY", group=GROUP, origin="spark", returns=start_type,
        takes_call=True, strict=False, aliases=("aggregate", "fold", "list_reduce"))  # fmt: skip
def reduce(list: Value, start: Value, function: Any, *, call: CallInfo) -> pa.Array:
    """What is left when a lambda takes a value and the first element, then its answer and the second, and so on.

    >>> reduce([1, 2, 3], 10, (acc, x) -> acc + x)
    16
    """
    lists = Lists(as_array(list, call.rows))
    made = _fold(lists, as_array(start, lists.rows), 0, function, call)
    return lists_or_null(lists, made)


@scalar("reduce(list ANY[], start ANY, function LAMBDA, finish LAMBDA) -> ANY", group=GROUP, origin="spark",
        returns=lambda types: types[3], takes_call=True, strict=False, aliases=("aggregate", "fold"))  # fmt: skip
def reduce_and_finish(list: Value, start: Value, function: Any, finish: Any, *, call: CallInfo) -> pa.Array:
    """As reduce, with a second lambda over what is left.

    >>> reduce([1, 2, 3], 0, (acc, x) -> acc + x, acc -> acc * 10)
    60
    """
    folds = CallInfo(call.types[:3], call.types[1], call.rows, call.settings)
    return views.plain(finish(np.arange(call.rows), reduce(list, start, function, call=folds)))


def lists_or_null(lists: Lists, values: pa.Array) -> pa.Array:
    """The values, NULL where the list is."""
    if lists.valid is None:
        return values
    rows = np.where(lists.valid == 1, np.arange(lists.rows), 0)
    return values.take(views.to_array(rows, pa.int64(), lists.valid))


def _fold(lists: Lists, state: pa.Array, first: int, function: Any, call: CallInfo) -> pa.Array:
    """Runs the lambda for the elements at one place of all lists after the other."""
    for place in range(first, int(lists.lengths.max(initial=0))):
        rows = np.flatnonzero(lists.lengths > place)
        elements = lists.items.take(pa.array(lists.offsets[rows] + place))
        given = [state.take(pa.array(rows)), elements]
        if function.parameter_count > 2:
            given.append(pa.array(np.full(rows.size, place + 1)))
        answers = cast(views.plain(function(rows, *given)), call.types[-1], call.returns)
        if isinstance(call.returns, Decimal):
            answers = decimals.widen(answers, call.returns)
        order = np.arange(lists.rows)
        order[rows] = lists.rows + np.arange(rows.size)
        state = views.concat([state, answers]).take(pa.array(order))
    return state
