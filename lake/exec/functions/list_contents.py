"""Lists by what is in them: search, removal, replacement, order, sets."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter
from lake.exec.comparisons import compare
from lake.exec.constants import as_array, list_array
from lake.exec.decimals import Value
from lake.exec.functions.collecting import first_of_each
from lake.exec.functions.columns import both_valid, columns, with_constants
from lake.exec.functions.lists import ITEMS_MAX, Lists, array_compact, array_length, element_type, joined, offsets_of
from lake.exec.kernels import views
from lake.exec.kernels.hashing import spelled
from lake.exec.kernels.order import Direction, sort_rows
from lake.sql.registry import CallInfo, scalar
from lake.types import Type

GROUP: Final = "lists"


# --- searching -------------------------------------------------------------------------------------------------------


def _equal(lists: Lists, element: pa.Array, type: Type) -> Any:
    """bool[items]: where an item is the row's element; NULL is NULL."""
    same = compare("is not distinct", lists.items, element.take(pa.array(lists.parents)), type)
    return views.true_of(same)


def _search(list: Value, element: Value, call: CallInfo) -> tuple[Lists, Any]:
    list, element = columns(as_array(list, call.rows), element)
    lists = Lists(list)
    return lists, _equal(lists, element, element_type(call.types))


@scalar("array_has(list T[], element T) -> BOOLEAN", group=GROUP, takes_call=True,
        aliases=("array_contains", "list_contains", "list_has"))  # fmt: skip
def array_has(list: Value, element: Value, *, call: CallInfo) -> pa.Array:
    """Whether an element is in the list.

    >>> array_has([1, 2], 2)
    true
    """
    lists, same = _search(list, element, call)
    found = np.bincount(lists.parents[same], minlength=lists.rows) > 0
    answer = lists.per_row(found, pa.bool_())
    element = as_array(element, call.rows)
    return answer if element.null_count == 0 else pc.if_else(pc.is_valid(element), answer, None)


@scalar("array_position(list T[], element T) -> BIGINT", group=GROUP, strict=False, takes_call=True,
        aliases=("array_indexof", "list_indexof", "list_position"))  # fmt: skip
@scalar("array_position(list T[], element T, start BIGINT) -> BIGINT", group=GROUP, strict=False, takes_call=True,
        aliases=("array_indexof", "list_indexof", "list_position"))  # fmt: skip
def array_position(list: Value, element: Value, start: Value | None = None, *, call: CallInfo) -> pa.Array:
    """Where an element first stands, from a place on; NULL where it does not.

    >>> array_position([1, 2, 2], 2, 3)
    3
    """
    lists, same = _search(list, element, call)
    if start is not None:
        first = views.values_of(as_array(start, call.rows))
        same &= lists.places + 1 >= first[lists.parents]
    rows = np.flatnonzero(same)
    found = np.zeros(lists.rows, np.int64)
    found[lists.parents[rows][::-1]] = lists.places[rows][::-1] + 1
    return views.to_array(found, pa.int64(), (found > 0).astype(np.uint8))


@scalar("array_positions(list T[], element T) -> BIGINT[]", group=GROUP, strict=False, takes_call=True,
        aliases=("list_positions",))  # fmt: skip
def array_positions(list: Value, element: Value, *, call: CallInfo) -> pa.Array:
    """All places where an element stands.

    >>> array_positions([1, 2, 1], 1)
    [1, 3]
    """
    lists, same = _search(list, element, call)
    rows = np.flatnonzero(same)
    counts = np.bincount(lists.parents[rows], minlength=lists.rows)
    return list_array(offsets_of(counts), pa.array(lists.places[rows] + 1), lists.valid)


@scalar(
    "array_has_any(a T[], b T[]) -> BOOLEAN", group=GROUP, takes_call=True, aliases=("arrays_overlap", "list_has_any")
)
@scalar("&&(a T[], b T[]) -> BOOLEAN", group=GROUP, takes_call=True)
def array_has_any(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """Whether lists have an element in common.

    >>> array_has_any([1, 2], [2, 9])
    true
    """
    _, met, valid = _met(*columns(a, b))
    return views.to_array(met > 0, pa.bool_(), valid)


@scalar("array_has_all(a T[], b T[]) -> BOOLEAN", group=GROUP, takes_call=True, aliases=("list_has_all",))
@scalar("@>(a T[], b T[]) -> BOOLEAN", group=GROUP, takes_call=True)
def array_has_all(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """Whether all elements of the second list are in the first.

    >>> array_has_all([1, 2, 3], [3, 1])
    true
    """
    left, _, valid = _met(*reversed(columns(a, b)))
    return views.to_array(left == 0, pa.bool_(), valid)


@scalar("<@(a T[], b T[]) -> BOOLEAN", group=GROUP, takes_call=True)
def contained_in(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """Whether all elements of the first list are in the second.

    >>> [1, 2] <@ [3, 2, 1]
    true
    """
    return array_has_all(b, a, call=call)


def _met(a: pa.Array, b: pa.Array) -> tuple[Any, Any, Any]:
    """int64[rows] how many items of the first list are not in the second, and how many are; and the rows that are valid."""
    first, second = Lists(a), Lists(b)
    numbers = _numbered(views.concat([first.items, second.items]))
    span = int(numbers.max(initial=0)) + 1
    ours = first.parents * span + numbers[: len(first.items)]
    is_there = np.isin(ours, second.parents * span + numbers[len(first.items) :])
    counts = [np.bincount(first.parents[there], minlength=first.rows) for there in (~is_there, is_there)]
    return counts[0], counts[1], both_valid(first.valid, second.valid)


def _numbered(items: pa.Array) -> Any:
    """int64: a number for each item, equal where items are; NULL is an item."""
    if pa.types.is_nested(items.type) or pa.types.is_interval(items.type):
        items = spelled(items)
    return views.values_of(items.dictionary_encode(null_encoding="encode").indices).astype(np.int64)


# --- changing --------------------------------------------------------------------------------------------------------


@scalar(
    "array_remove(list T[], element T) -> T[]", group=GROUP, strict=False, takes_call=True, aliases=("list_remove",)
)
def array_remove(list: Value, element: Value, *, call: CallInfo) -> pa.Array:
    """The list without an element's first occurrence; NULL for a NULL element.

    >>> array_remove([1, 2, 1, 3], 1)
    [2, 1, 3]
    """
    return _removed(list, element, pa.scalar(1), call)


@scalar("array_remove_all(list T[], element T) -> T[]", group=GROUP, strict=False, takes_call=True,
        aliases=("list_remove_all",))  # fmt: skip
def array_remove_all(list: Value, element: Value, *, call: CallInfo) -> pa.Array:
    """The list without an element.

    >>> array_remove_all([1, 2, 1, 3], 1)
    [2, 3]
    """
    return _removed(list, element, pa.scalar(ITEMS_MAX), call)


@scalar("array_remove_n(list T[], element T, count BIGINT) -> T[]", group=GROUP, strict=False, takes_call=True,
        aliases=("list_remove_n",))  # fmt: skip
def array_remove_n(list: Value, element: Value, count: Value, *, call: CallInfo) -> pa.Array:
    """The list without an element's first so many occurrences.

    >>> array_remove_n([1, 2, 1, 1], 1, 2)
    [2, 1]
    """
    return _removed(list, element, count, call)


def _first_occurrences(lists: Lists, same: Any, count: Value) -> Any:
    """bool[items]: the first so many of each row's items where ``same``."""
    limits = views.values_of(pc.fill_null(as_array(count, lists.rows), 0))
    before = np.concatenate(([0], np.cumsum(same)))
    nth = before[1:] - np.repeat(before[lists.offsets[:-1]], lists.lengths)
    return same & (nth <= limits[lists.parents])


def _removed(list: Value, element: Value, count: Value, call: CallInfo) -> pa.Array:
    lists, same = _search(list, element, call)
    kept = lists.keep(np.flatnonzero(~_first_occurrences(lists, same, count)))
    return _known(kept, as_array(element, call.rows), as_array(count, call.rows))


def _known(lists: pa.Array, *given: pa.Array) -> pa.Array:
    """The lists, NULL where an argument is."""
    for value in given:
        if value.null_count:
            lists = pc.if_else(pc.is_valid(value), lists, pa.scalar(None, lists.type))
    return lists


@scalar("array_replace(list T[], element T, by T) -> T[]", group=GROUP, strict=False, takes_call=True,
        aliases=("list_replace",))  # fmt: skip
def array_replace(list: Value, element: Value, by: Value, *, call: CallInfo) -> pa.Array:
    """The list with an element's first occurrence replaced.

    >>> array_replace([1, 2, 1], 1, 9)
    [9, 2, 1]
    """
    return _replaced(list, element, by, pa.scalar(1), call)


@scalar("array_replace_all(list T[], element T, by T) -> T[]", group=GROUP, strict=False, takes_call=True,
        aliases=("list_replace_all",))  # fmt: skip
def array_replace_all(list: Value, element: Value, by: Value, *, call: CallInfo) -> pa.Array:
    """The list with an element replaced.

    >>> array_replace_all([1, 2, 1], 1, 9)
    [9, 2, 9]
    """
    return _replaced(list, element, by, pa.scalar(ITEMS_MAX), call)


@scalar("array_replace_n(list T[], element T, by T, count BIGINT) -> T[]", group=GROUP, strict=False, takes_call=True,
        aliases=("list_replace_n",))  # fmt: skip
def array_replace_n(list: Value, element: Value, by: Value, count: Value, *, call: CallInfo) -> pa.Array:
    """The list with an element's first so many occurrences replaced.

    >>> array_replace_n([1, 1, 1], 1, 9, 2)
    [9, 9, 1]
    """
    return _replaced(list, element, by, count, call)


def _replaced(list: Value, element: Value, by: Value, count: Value, call: CallInfo) -> pa.Array:
    lists, same = _search(list, element, call)
    chosen = _first_occurrences(lists, same, count)
    instead = as_array(by, call.rows).take(pa.array(lists.parents))
    made = list_array(lists.offsets, pc.if_else(views.to_boolean(chosen), instead, lists.items), lists.valid)
    return _known(made, as_array(count, call.rows))


@scalar("array_reverse(list T[]) -> T[]", group=GROUP, aliases=("list_reverse",))
def array_reverse(list: pa.Array) -> pa.Array:
    """The elements in the other order.

    >>> array_reverse([1, 2, 3])
    [3, 2, 1]
    """
    lists = Lists(list)
    return lists.pick(lists.offsets[1:] - 1, lists.lengths, -1)


@scalar("array_sort(list T[]) -> T[]", group=GROUP, aliases=("list_sort", "sort_array"))
@scalar("array_sort(list T[], direction VARCHAR) -> T[]", group=GROUP, aliases=("list_sort",))
@scalar("array_sort(list T[], direction VARCHAR, nulls VARCHAR) -> T[]", group=GROUP, aliases=("list_sort",))
def array_sort(list: Value, direction: Value | None = None, nulls: Value | None = None) -> pa.Array:
    """The elements in order, ASC or DESC; NULLs come first unless NULLS LAST is said.

    >>> array_sort([3, 1, NULL, 2])
    [NULL, 1, 2, 3]
    """

    def run(column: pa.Array, direction: str, nulls: str) -> pa.Array:
        ways, ends = ("ASC", "DESC"), ("NULLS FIRST", "NULLS LAST")
        if direction.upper() not in ways or nulls.upper() not in ends:
            raise InvalidParameter("array_sort takes ASC or DESC, and NULLS FIRST or NULLS LAST")
        way = "ascending" if direction.upper() == "ASC" else "descending"
        return _sorted(column, way, "at_start" if nulls.upper() == "NULLS FIRST" else "at_end")

    (column,) = columns(list)
    given = (direction or pa.scalar("ASC"), nulls or pa.scalar("NULLS FIRST"))
    return with_constants(run, column.type, column, *given)


@scalar("list_reverse_sort(list T[]) -> T[]", group=GROUP, origin="duckdb", aliases=("array_reverse_sort",))
def list_reverse_sort(list: pa.Array) -> pa.Array:
    """The elements from the greatest to the least, NULLs last.

    >>> list_reverse_sort([1, 3, NULL, 2])
    [3, 2, 1, NULL]
    """
    return _sorted(list, "descending", "at_end")


def _sorted(column: pa.Array, way: str, nulls: str) -> pa.Array:
    lists = Lists(column)
    return list_array(lists.offsets, lists.items.take(_item_order(lists, way, nulls)), lists.valid)


def _item_order(lists: Lists, way: str, nulls: str) -> pa.Array:
    item = Direction(descending=way == "descending", nulls_first=nulls == "at_start")
    order = sort_rows([pa.array(lists.parents), lists.items], [Direction(descending=False, nulls_first=False), item])
    return pa.array(order)


@scalar("list_grade_up(list T[]) -> BIGINT[]", group=GROUP, origin="duckdb", aliases=("array_grade_up", "grade_up"))
def list_grade_up(list: pa.Array) -> pa.Array:
    """The places of the elements in ascending order.

    >>> list_grade_up([30, 10, 40, 20])
    [2, 4, 1, 3]
    """
    lists = Lists(list)
    order = _item_order(lists, "ascending", "at_end").to_numpy().astype(np.int64)
    return list_array(lists.offsets, pa.array(lists.places[order] + 1), lists.valid)


# --- sets ------------------------------------------------------------------------------------------------------------


@scalar("array_distinct(list T[]) -> T[]", group=GROUP, aliases=("list_distinct",))
def array_distinct(list: pa.Array) -> pa.Array:
    """The list with each element once, in order of first appearance.

    >>> array_distinct([3, 1, 3, 2, 1])
    [3, 1, 2]
    """
    lists = Lists(list)
    return lists.keep(first_of_each(lists.parents, lists.items))


@scalar("list_unique(list T[]) -> BIGINT", group=GROUP, origin="duckdb", aliases=("array_unique",))
def list_unique(list: pa.Array) -> pa.Array:
    """How many different elements, NULL not counted.

    >>> list_unique([1, 1, NULL, -3])
    2
    """
    return array_length(array_distinct(array_compact(list)))


@scalar("array_union(a T[], b T[]) -> T[]", group=GROUP, aliases=("list_union",))
def array_union(a: Value, b: Value) -> pa.Array:
    """The elements of both lists, each once.

    >>> array_union([1, 2, 2], [2, 3])
    [1, 2, 3]
    """
    return array_distinct(joined(columns(a, b), keep_null=True))


@scalar("array_intersect(a T[], b T[]) -> T[]", group=GROUP, aliases=("list_intersect",))
def array_intersect(a: Value, b: Value) -> pa.Array:
    """The elements that are in both lists, each once.

    >>> array_intersect([1, 2, 2, 3], [2, 3, 4])
    [2, 3]
    """
    return _by_other(a, b, wanted=True)


@scalar("array_except(a T[], b T[]) -> T[]", group=GROUP, aliases=("list_except",))
def array_except(a: Value, b: Value) -> pa.Array:
    """The elements of the first list that are not in the second, each once.

    >>> array_except([1, 2, 3, 3], [2])
    [1, 3]
    """
    return _by_other(a, b, wanted=False)


def _by_other(a: Value, b: Value, *, wanted: bool) -> pa.Array:
    one, two = columns(a, b)
    first, second = Lists(one), Lists(two)
    numbers = _numbered(views.concat([first.items, second.items]))
    size = int(numbers.max(initial=0)) + 1
    left = first.parents * size + numbers[: len(first.items)]
    right = second.parents * size + numbers[len(first.items) :]
    return _known(array_distinct(first.keep(np.flatnonzero(np.isin(left, right) == wanted))), two)
