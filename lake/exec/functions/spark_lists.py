"""Lists as Spark has them, and those that zip lists together."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter
from lake.exec.constants import as_array, list_array, struct_array
from lake.exec.decimals import Value
from lake.exec.functions import lists as plain_lists
from lake.exec.functions import series
from lake.exec.functions.columns import all_valid, columns
from lake.exec.functions.list_contents import array_sort
from lake.exec.functions.lists import Lists, offsets_of, ranges
from lake.exec.kernels import views
from lake.sql.registry import CallInfo, scalar
from lake.types import INTERVAL, NULL, List, Struct, Type

GROUP: Final = "lists"

scalar("array(elements T...) -> T[]", group=GROUP, origin="spark", strict=False, takes_call=True,
       aliases=("array_value", "unpivot_list"))(plain_lists.make_array)  # fmt: skip
scalar("array_size(list ANY[]) -> BIGINT", group=GROUP, origin="spark", aliases=("size",))(plain_lists.array_length)


@scalar("get(list T[], place BIGINT) -> T", group=GROUP, origin="spark")
def get(list: Value, place: Value) -> pa.Array:
    """The element at a place counted from 0; NULL where there is none.

    >>> SELECT get([1, 2, 3], 0), get([1], 5)
    1 | NULL
    """
    list, place = columns(list, place)
    moved = pc.if_else(pc.less(place, 0), 0, pc.add(place, pa.scalar(1, pa.int64())))
    return plain_lists.array_element(list, moved)


@scalar("try_element_at(list T[], place BIGINT) -> T", group=GROUP, origin="spark", aliases=("spark_element_at",))
def try_element_at(list: Value, place: Value) -> pa.Array:
    """The element at a place counted from 1, or from the end where negative; NULL where there is none.

    >>> SELECT try_element_at([1, 2], -1), try_element_at([1, 2], 5)
    2 | NULL
    """
    return plain_lists.array_element(list, place)


@scalar("slice(list T[], start BIGINT, length BIGINT) -> T[]", group=GROUP, origin="spark")
def slice(list: Value, start: Value, length: Value) -> pa.Array:
    """So many elements from a place on, counted from the end where it is negative.

    >>> SELECT slice([1, 2, 3, 4], 2, 2), slice([1, 2, 3, 4], -2, 2)
    [2, 3] | [3, 4]

    22023  place 0, or a length below 0
    """
    list, start, length = columns(list, start, length)
    lists, first, many = Lists(list), views.values_of(start), views.values_of(length)
    valid = all_valid(list, start, length)
    live = np.ones(lists.rows, np.bool_) if valid is None else valid == 1
    if ((first == 0) & live).any() or ((many < 0) & live).any():
        raise InvalidParameter("slice takes a place other than 0 and a length of 0 or more")
    begin = np.where(first > 0, first - 1, lists.lengths + first)
    inside = live & (begin >= 0) & (begin < lists.lengths)
    counts = np.where(inside, np.minimum(many, lists.lengths - begin), 0)
    made = lists.pick(lists.offsets[:-1] + np.where(inside, begin, 0), counts)
    return made if valid is None else pc.if_else(views.to_boolean(live), made, pa.scalar(None, made.type))


@scalar("array_insert(list T[], place BIGINT, element T) -> T[]", group=GROUP, origin="spark", strict=False)
def array_insert(list: Value, place: Value, element: Value) -> pa.Array:
    """The list with an element put at a place, -1 being behind the last; NULLs fill what lies between.

    >>> SELECT array_insert([1, 2, 4], 3, 3), array_insert([1], 3, 9), array_insert([1, 2], -1, 3)
    [1, 2, 3, 4] | [1, NULL, 9] | [1, 2, 3]

    22023  place 0
    """
    list, place, element = columns(list, place, element)
    lists, number = Lists(list), views.values_of(place)
    valid = all_valid(list, place)
    live = np.ones(lists.rows, np.bool_) if valid is None else valid == 1
    if ((number == 0) & live).any():
        raise InvalidParameter("array_insert takes a place other than 0")
    lengths = np.where(live, lists.lengths, 0)
    at = np.where(number > 0, number - 1, lengths + number + 1)
    ahead = np.maximum(-at, 0)
    counts = np.where(live, np.where(at >= 0, np.maximum(lengths, at) + 1, lengths + ahead + 1), 0)
    within = ranges(np.zeros(lists.rows, np.int64), counts)
    rows = np.repeat(np.arange(lists.rows), counts)
    spot = np.maximum(at, 0)[rows]
    source = np.where(within < spot, within, within - 1 - ahead[rows])
    from_list = (within != spot) & (source >= 0) & (source < lengths[rows])
    total = len(lists.items)
    picked = np.where(within == spot, total + rows, np.where(from_list, lists.offsets[rows] + source, 0))
    there = ((within == spot) | from_list).astype(np.uint8)
    items = views.concat([lists.items, element]).take(views.to_array(picked, pa.int64(), there))
    return list_array(offsets_of(counts), items, valid)


@scalar("sort_array(list T[], ascending BOOLEAN) -> T[]", group=GROUP, origin="spark")
def sort_array(list: Value, ascending: Value) -> pa.Array:
    """The elements in order, NULLs first where it ascends and last where it descends.

    >>> SELECT sort_array([2, NULL, 1], true), sort_array([2, NULL, 1], false)
    [NULL, 1, 2] | [2, 1, NULL]
    """
    list, ascending = columns(list, ascending)
    way = pc.if_else(ascending, "ASC", "DESC")
    return array_sort(list, way, pc.if_else(ascending, "NULLS FIRST", "NULLS LAST"))


@scalar("shuffle(list T[]) -> T[]", group=GROUP, origin="spark", volatility="volatile")
def shuffle(list: pa.Array) -> pa.Array:
    """The elements in a random order.

    >>> array_sort(shuffle([3, 1, 2]))
    [1, 2, 3]
    """
    lists = Lists(list)
    order = np.lexsort((np.random.default_rng().random(len(lists.items)), lists.parents))
    return list_array(lists.offsets, lists.items.take(pa.array(order)), lists.valid)


# --- series ----------------------------------------------------------------------------------------------------------


@scalar("sequence(start BIGINT, stop BIGINT) -> BIGINT[]", group=GROUP, origin="spark")
@scalar("sequence(start BIGINT, stop BIGINT, step BIGINT) -> BIGINT[]", group=GROUP, origin="spark")
def sequence(start: Value, stop: Value, step: Value | None = None) -> pa.Array:
    """The numbers from a start to a stop, that taken in, by a step: 1, or -1 where the stop is lower.

    >>> SELECT sequence(1, 5), sequence(5, 1)
    [1, 2, 3, 4, 5] | [5, 4, 3, 2, 1]

    22023  a step of 0
    """
    start, stop = columns(start, stop)
    if step is None:
        step = pc.if_else(pc.less(stop, start), pa.scalar(-1, pa.int64()), pa.scalar(1, pa.int64()))
    return series.generate_series_list(start, stop, step)


@scalar("sequence(start DATE, stop DATE) -> DATE[]", group=GROUP, origin="spark", takes_call=True)
@scalar("sequence(start DATE, stop DATE, step INTERVAL) -> DATE[]", group=GROUP, origin="spark", takes_call=True)
@scalar("sequence(start TIMESTAMP, stop TIMESTAMP, step INTERVAL) -> TIMESTAMP[]", group=GROUP, origin="spark",
        takes_call=True)  # fmt: skip
def sequence_of_moments(start: Value, stop: Value, step: Value | None = None, *, call: CallInfo) -> pa.Array:
    """The days or moments from a start to a stop, that taken in, by a step of a day where none is told.

    >>> sequence(DATE '2024-01-01', DATE '2024-01-03')
    [2024-01-01, 2024-01-02, 2024-01-03]
    """
    day = pa.scalar((0, 1, 0), INTERVAL.physical)
    types = (*call.types[:2], INTERVAL)
    return series.generate_moments_list(start, stop, day if step is None else step,
                                        call=CallInfo(types, call.returns, call.rows, call.settings))  # fmt: skip


# --- lists side by side ----------------------------------------------------------------------------------------------


def _side_by_side(lists: list[Lists]) -> tuple[Any, list[pa.Array]]:
    """Offsets of lists as long as the longest of a row, and each list's elements there, NULL where it is shorter."""
    counts = np.maximum.reduce([item.lengths for item in lists])
    rows = np.repeat(np.arange(lists[0].rows), counts)
    within = ranges(np.zeros(lists[0].rows, np.int64), counts)
    made = []
    for item in lists:
        there = within < item.lengths[rows]
        places = np.where(there, item.offsets[rows] + within, 0)
        made.append(item.items.take(views.to_array(places, pa.int64(), there.astype(np.uint8))))
    return offsets_of(counts), made


@scalar("zip_with(a ANY[], b ANY[], function LAMBDA) -> ANY[]", group=GROUP, origin="spark", takes_call=True,
        returns=lambda types: List(types[2]))  # fmt: skip
def zip_with(a: Value, b: Value, function: Any, *, call: CallInfo) -> pa.Array:
    """The list of what a lambda answers for the elements of two lists, NULL standing for those of the shorter one.

    >>> zip_with([1, 2], ['a', 'b'], (x, y) -> concat(y, x))
    [a1, b2]
    """
    given = [as_array(value, call.rows) for value in (a, b)]
    valid = all_valid(*given)
    if valid is not None:
        given = [pc.if_else(views.to_boolean(valid), column, pa.scalar(None, column.type)) for column in given]
    offsets, elements = _side_by_side([Lists(column) for column in given])
    made = views.plain(function(np.repeat(np.arange(call.rows), np.diff(offsets)), *elements))
    return list_array(offsets, made, valid)


def _zipped_type(types: tuple[Type, ...]) -> Type:
    """A list of structs of the lists' elements, the fields named by their place."""
    items = [item.of if isinstance(item, List) else NULL for item in types]
    return List(Struct(tuple((str(place), of) for place, of in enumerate(items, 1))))


@scalar("arrays_zip(list ANY[], others ANY[]...) -> ANY[]", group=GROUP, takes_call=True, returns=_zipped_type,
        aliases=("list_zip", "array_zip"))  # fmt: skip
def arrays_zip(*lists: Value, call: CallInfo) -> pa.Array:
    """The list of structs of elements at one place, NULL standing for those of shorter lists.

    >>> arrays_zip([1, 2], ['a', 'b'])
    [{1: 1, 2: a}, {1: 2, 2: b}]
    """
    given = [as_array(value, call.rows) for value in lists]
    valid = all_valid(*given)
    if valid is not None:
        given = [pc.if_else(views.to_boolean(valid), column, pa.scalar(None, column.type)) for column in given]
    offsets, elements = _side_by_side([Lists(column) for column in given])
    assert isinstance(call.returns, List)
    assert isinstance(call.returns.of, Struct)
    return list_array(offsets, struct_array(elements, call.returns.of), valid)
