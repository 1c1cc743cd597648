"""Lists: elements, search, change, order, sets, lambdas. Positions count from 1, and from the end where negative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, ProgramLimitExceeded
from lake.exec.constants import as_array, list_array, list_parts
from lake.exec.decimals import Value
from lake.exec.functions.columns import both_valid, columns, with_constants
from lake.exec.kernels import views
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar
from lake.types import List, Type

GROUP: Final = "lists"
LIST: Final = list
ITEMS_MAX: Final = 1 << 27
"""Elements that one batch of made lists may have."""


class Lists:
    """A column of lists taken apart.

    offsets  int64[rows + 1], from 0        items  the elements of lists that are not NULL
    parents  int64[items]: each item's row  valid  uint8[rows], None where no list is NULL
    """

    def __init__(self, column: pa.Array) -> None:
        self.offsets, self.items, self.valid = list_parts(column)
        self.rows = len(column)

    @property
    def lengths(self) -> Any:
        """int64[rows]: how many elements; 0 of NULL."""
        return np.diff(self.offsets)

    @property
    def parents(self) -> Any:
        """int64[items]: the row of each item."""
        return np.repeat(np.arange(self.rows), self.lengths)

    @property
    def places(self) -> Any:
        """int64[items]: where each item stands in its list, from 0."""
        return np.arange(len(self.items)) - np.repeat(self.offsets[:-1], self.lengths)

    def keep(self, kept: Any) -> pa.Array:
        """The lists of the items at int64 rows ``kept``, ascending."""
        counts = np.bincount(self.parents[kept], minlength=self.rows)
        return list_array(offsets_of(counts), self.items.take(pa.array(kept)), self.valid)

    def pick(self, starts: Any, counts: Any, steps: Any = 1) -> pa.Array:
        """The lists of items from ``starts`` on, so many each."""
        return list_array(offsets_of(counts), self.items.take(pa.array(ranges(starts, counts, steps))), self.valid)

    def per_row(self, answers: Any, type: pa.DataType) -> pa.Array:
        """A column of a number for each list, NULL where the list is."""
        return views.to_array(answers, type, self.valid)


def offsets_of(counts: Any) -> Any:
    """int64[rows + 1]: where lists of so many elements begin and end."""
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def ranges(starts: Any, counts: Any, steps: Any = 1) -> Any:
    """int64: for each row ``counts`` numbers from ``starts`` on."""
    total = int(counts.sum())
    if total > ITEMS_MAX:
        raise ProgramLimitExceeded(f"lists of {total} elements in one batch")
    within = np.arange(total) - np.repeat(offsets_of(counts)[:-1], counts)
    return np.repeat(starts, counts) + within * (steps if isinstance(steps, int) else np.repeat(steps, counts))


def element_type(types: tuple[Type, ...]) -> Type:
    """The type of the first argument's elements."""
    return types[0].of if isinstance(types[0], List) else types[0]


def first_list_type(types: tuple[Type, ...]) -> Type:
    """The type of the first argument."""
    return types[0]


# --- length ----------------------------------------------------------------------------------------------------------


@scalar("array_length(list ANY[]) -> BIGINT", group=GROUP, aliases=("list_length", "len", "length"))
def array_length(list: pa.Array) -> pa.Array:
    """How many elements.

    >>> array_length([1, 2, 3])
    3
    """
    return pc.list_value_length(list).cast(pa.int64())


@scalar("array_length(list ANY[], dimension BIGINT) -> BIGINT", group=GROUP, aliases=("list_length",))
def array_length_of(list: Value, dimension: Value) -> pa.Array:
    """How many elements the lists of a dimension have, 1 being the outermost; NULL where there is no such dimension.

    >>> array_length([[1, 2], [3, 4]], 2)
    2
    """

    def run(column: pa.Array, dimension: int) -> pa.Array:
        for _ in range(dimension - 1):
            if not pa.types.is_list(column.type.value_type):
                return pa.nulls(len(column), pa.int64())
            column = pc.list_element(pc.if_else(pc.equal(pc.list_value_length(column), 0), None, column), 0)
        return array_length(column)

    return with_constants(run, pa.int64(), list, dimension)


@scalar("cardinality(list ANY[]) -> BIGINT", group=GROUP)
def cardinality(list: pa.Array) -> pa.Array:
    """How many elements in all, those of inner lists counted.

    >>> cardinality([[1, 2], [3, 4]])
    4
    """
    lists = Lists(list)
    if not pa.types.is_list(lists.items.type):
        return lists.per_row(lists.lengths, pa.int64())
    inner = pc.fill_null(cardinality(lists.items), 0)
    total = np.zeros(lists.rows, np.int64)
    np.add.at(total, lists.parents, views.values_of(inner))
    return lists.per_row(total, pa.int64())


@scalar("array_ndims(list ANY[]) -> BIGINT", group=GROUP, takes_call=True, aliases=("list_ndims",))
def array_ndims(list: pa.Array, *, call: CallInfo) -> pa.Array:
    """How many dimensions.

    >>> array_ndims([[1], [2]])
    2
    """
    depth, type = 0, call.types[0]
    while isinstance(type, List):
        depth, type = depth + 1, type.of
    return pc.if_else(pc.is_valid(list), depth, None).cast(pa.int64())


@scalar("array_dims(list ANY[]) -> BIGINT[]", group=GROUP, aliases=("list_dims",))
@per_row
def array_dims(list: pa.Array) -> pa.Array:
    """The length of each dimension; NULL of an empty list.

    Goes row by row: lists in lists are measured as deep as they go.

    >>> array_dims([[1, 2, 3], [4, 5, 6]])
    [2, 3]
    """

    def dims(item: Any) -> Any:
        found = []
        while isinstance(item, LIST):
            found.append(len(item))
            item = item[0] if item else None
        return found

    return pa.array([dims(item) if item else None for item in list.to_pylist()], pa.list_(pa.int64()))


@scalar("empty(list ANY[]) -> BOOLEAN", group=GROUP, aliases=("array_empty", "list_empty"))
def empty(list: pa.Array) -> pa.Array:
    """Whether there is no element.

    >>> empty([1])
    false
    """
    return pc.equal(pc.list_value_length(list), 0)


# --- elements --------------------------------------------------------------------------------------------------------


@scalar("array_element(list T[], place BIGINT) -> T", group=GROUP,
        aliases=("array_extract", "list_element", "list_extract"))  # fmt: skip
def array_element(list: Value, place: Value) -> pa.Array:
    """The element at a place; NULL where there is none.

    >>> array_element([10, 20, 30], -1)
    30
    """
    list, place = columns(list, place)
    lists, number = Lists(list), views.values_of(place)
    at = np.where(number > 0, number - 1, lists.lengths + number)
    there = (at >= 0) & (at < lists.lengths) & (number != 0)
    if place.null_count:
        there &= views.true_of(pc.is_valid(place))
    if len(lists.items) == 0:
        return pa.nulls(lists.rows, lists.items.type)
    rows = np.where(there, lists.offsets[:-1] + at, 0)
    return lists.items.take(views.to_array(rows, pa.int64(), there.astype(np.uint8)))


@scalar("array_element(text STRING, place BIGINT) -> VARCHAR", group=GROUP, origin="duckdb",
        aliases=("array_extract", "list_element", "list_extract"))  # fmt: skip
def character_at(text: Value, place: Value) -> pa.Array:
    """The character at a place of a text.

    >>> array_extract('abc', 2)
    b
    """

    def run(column: pa.Array, place: int) -> pa.Array:
        start = place - 1 if place > 0 else place
        return pc.utf8_slice_codeunits(column, start, start + 1 if start != -1 else None)

    return with_constants(run, pa.string(), text, place)


@scalar("list_first(list T[]) -> T", group=GROUP, origin="duckdb", aliases=("array_first",))
def list_first(list: pa.Array) -> pa.Array:
    """The first element.

    >>> list_first([3, 4])
    3
    """
    return array_element(list, pa.scalar(1))


@scalar("list_last(list T[]) -> T", group=GROUP, origin="duckdb", aliases=("array_last",))
def list_last(list: pa.Array) -> pa.Array:
    """The last element.

    >>> list_last([3, 4])
    4
    """
    return array_element(list, pa.scalar(-1))


@scalar("array_compact(list T[]) -> T[]", group=GROUP, aliases=("list_compact",))
def array_compact(list: pa.Array) -> pa.Array:
    """The list without NULLs.

    >>> array_compact([1, NULL, 2])
    [1, 2]
    """
    lists = Lists(list)
    return lists.keep(np.flatnonzero(views.true_of(pc.is_valid(lists.items))))


@scalar("array_any_value(list T[]) -> T", group=GROUP, aliases=("list_any_value",))
def array_any_value(list: pa.Array) -> pa.Array:
    """The first element that is not NULL.

    >>> array_any_value([NULL, 2, 3])
    2
    """
    return array_element(array_compact(list), pa.scalar(1))


@scalar("array_slice(list T[], begin BIGINT, stop BIGINT) -> T[]", group=GROUP, aliases=("list_slice",))
@scalar("array_slice(list T[], begin BIGINT, stop BIGINT, stride BIGINT) -> T[]", group=GROUP, aliases=("list_slice",))
def array_slice(list: Value, begin: Value, stop: Value, stride: Value | None = None) -> pa.Array:
    """The elements from ``begin`` to ``stop``, both taken in, or every so many of them.

    >>> array_slice([1, 2, 3, 4, 5], -3, -1)
    [3, 4, 5]

    22023  a stride of 0
    """
    given = columns(list, begin, stop) if stride is None else columns(list, begin, stop, stride)
    lists = Lists(given[0])
    lengths = lists.lengths
    first, last = (views.values_of(column) for column in given[1:3])
    step = np.ones(lists.rows, np.int64) if stride is None else views.values_of(pc.fill_null(given[3], 1))
    if (step == 0).any():
        raise InvalidParameter("the stride of a slice must not be 0")
    first = np.where(first < 0, np.maximum(lengths + first, 0), np.maximum(first - 1, 0))
    last = np.where(last < 0, lengths + last, np.minimum(last - 1, lengths - 1))
    forward = np.maximum((last - first) // np.maximum(step, 1) + 1, 0)
    high = np.minimum(first, lengths - 1)
    backward = np.maximum((high - np.maximum(last, 0)) // np.maximum(-step, 1) + 1, 0)
    counts = np.where(lengths == 0, 0, np.where(step > 0, forward, backward))
    made = lists.pick(lists.offsets[:-1] + np.where(step > 0, first, high), counts, step)
    missing = np.logical_or.reduce([~views.true_of(pc.is_valid(column)) for column in given[1:]])
    return pc.if_else(views.to_boolean(missing), pa.scalar(None, made.type), made) if missing.any() else made


@scalar("array_pop_back(list T[]) -> T[]", group=GROUP, aliases=("list_pop_back",))
def array_pop_back(list: pa.Array) -> pa.Array:
    """The list without its last element.

    >>> array_pop_back([1, 2, 3])
    [1, 2]
    """
    lists = Lists(list)
    return lists.pick(lists.offsets[:-1], np.maximum(lists.lengths - 1, 0))


@scalar("array_pop_front(list T[]) -> T[]", group=GROUP, aliases=("list_pop_front",))
def array_pop_front(list: pa.Array) -> pa.Array:
    """The list without its first element.

    >>> array_pop_front([1, 2, 3])
    [2, 3]
    """
    lists = Lists(list)
    return lists.pick(lists.offsets[:-1] + 1, np.maximum(lists.lengths - 1, 0))


@scalar("list_select(list T[], places BIGINT[]) -> T[]", group=GROUP, origin="duckdb", aliases=("array_select",))
def list_select(list: Value, places: Value) -> pa.Array:
    """The elements at some places.

    >>> list_select([10, 20, 30, 40], [1, 4])
    [10, 40]
    """
    list, places = columns(list, places)
    lists, wanted = Lists(list), Lists(places)
    number = views.values_of(wanted.items)
    length = lists.lengths[wanted.parents]
    at = np.where(number > 0, number - 1, length + number)
    there = (at >= 0) & (at < length) & (number != 0)
    rows = views.to_array(np.where(there, lists.offsets[wanted.parents] + at, 0), pa.int64(), there.astype(np.uint8))
    items = lists.items.take(rows) if len(lists.items) else pa.nulls(len(rows), lists.items.type)
    return list_array(wanted.offsets, items, both_valid(lists.valid, wanted.valid))


@scalar("list_where(list T[], mask BOOLEAN[]) -> T[]", group=GROUP, origin="duckdb", aliases=("array_where",))
def list_where(list: Value, mask: Value) -> pa.Array:
    """The elements where the other list is true.

    >>> list_where([10, 20, 30], [true, false, true])
    [10, 30]

    22023  lists of different lengths
    """
    list, mask = columns(list, mask)
    lists, masks = Lists(list), Lists(mask)
    if not np.array_equal(lists.lengths, masks.lengths):
        raise InvalidParameter("list_where takes lists of one length")
    return lists.keep(np.flatnonzero(views.true_of(masks.items)))


# --- making ----------------------------------------------------------------------------------------------------------


@scalar("make_array(elements T...) -> T[]", group=GROUP, strict=False, takes_call=True,
        aliases=("make_list", "list_value", "list_pack"))  # fmt: skip
def make_array(*elements: Value, call: CallInfo) -> pa.Array:
    """The list of the arguments.

    >>> make_array(1, 2, 3)
    [1, 2, 3]
    """
    made = [as_array(element, call.rows) for element in elements]
    if not made:
        return list_array(np.zeros(call.rows + 1, np.int64), pa.nulls(0))
    by_row = np.arange(call.rows * len(made)).reshape(len(made), call.rows).T.ravel()
    return list_array(np.arange(call.rows + 1) * len(made), views.concat(made).take(pa.array(by_row)))


@scalar("array_append(list T[], element T) -> T[]", group=GROUP, strict=False,
        aliases=("array_push_back", "list_append", "list_push_back"))  # fmt: skip
@scalar("||(list T[], element T) -> T[]", group=GROUP, strict=False)
def array_append(list: Value, element: Value) -> pa.Array:
    """The list with an element behind.

    >>> array_append([1, 2], 3)
    [1, 2, 3]
    """
    list, element = columns(list, element)
    return joined([list, _each_alone(element)], keep_null=False)


@scalar("array_prepend(element T, list T[]) -> T[]", group=GROUP, strict=False,
        aliases=("array_push_front", "list_prepend", "list_push_front"))  # fmt: skip
@scalar("||(element T, list T[]) -> T[]", group=GROUP, strict=False)
def array_prepend(element: Value, list: Value) -> pa.Array:
    """The list with an element before.

    >>> array_prepend(0, [1, 2])
    [0, 1, 2]
    """
    element, list = columns(element, list)
    return joined([_each_alone(element), list], keep_null=False)


def _each_alone(element: pa.Array) -> pa.Array:
    return list_array(np.arange(len(element) + 1), element)


@scalar("array_concat(lists T[]...) -> T[]", group=GROUP, strict=False,
        aliases=("array_cat", "list_cat", "list_concat"))  # fmt: skip
@scalar("||(a T[], b T[]) -> T[]", group=GROUP, strict=False)
def array_concat(*lists: Value) -> pa.Array:
    """All lists as one; NULLs are skipped, and NULL of nothing else.

    >>> array_concat([1, 2], [3], [4, 5])
    [1, 2, 3, 4, 5]
    """
    return joined(columns(*lists), keep_null=True)


def joined(lists: Sequence[pa.Array], *, keep_null: bool) -> pa.Array:
    """The lists of each row as one; with ``keep_null`` NULL where all of them are."""
    parts = [Lists(list) for list in lists]
    rows = parts[0].rows
    order = np.concatenate([part.parents * len(parts) + index for index, part in enumerate(parts)])
    items = views.concat([part.items for part in parts]).take(pa.array(np.argsort(order, kind="stable")))
    valid = None
    if keep_null and all(part.valid is not None for part in parts):
        valid = np.maximum.reduce([part.valid for part in parts])
    return list_array(
        offsets_of(np.sum([part.lengths for part in parts], axis=0).astype(np.int64)[:rows]), items, valid
    )


@scalar("array_repeat(element T, count BIGINT) -> T[]", group=GROUP, strict=False, aliases=("list_repeat",))
def array_repeat(element: Value, count: Value) -> pa.Array:
    """The element so many times.

    >>> array_repeat('a', 3)
    [a, a, a]
    """
    element, count = columns(element, count)
    counts = np.maximum(views.values_of(pc.fill_null(count, 0)), 0)
    rows = ranges(np.arange(len(element)), counts, 0)
    return list_array(offsets_of(counts), element.take(pa.array(rows)), views.valid_of(count))


@scalar("array_resize(list T[], size BIGINT) -> T[]", group=GROUP, takes_call=True, aliases=("list_resize",))
@scalar("array_resize(list T[], size BIGINT, fill T) -> T[]", group=GROUP, strict=False, takes_call=True,
        aliases=("list_resize",))  # fmt: skip
def array_resize(list: Value, size: Value, fill: Value | None = None, *, call: CallInfo) -> pa.Array:
    """The list cut or filled up to so many elements.

    >>> array_resize([1, 2], 4, 0)
    [1, 2, 0, 0]
    """
    list, size = columns(as_array(list, call.rows), size)
    lists = Lists(list)
    wanted = views.values_of(pc.fill_null(size, 0))
    if wanted.size and wanted.min() < 0:
        raise InvalidParameter("the size of a list must not be negative")
    kept = lists.pick(lists.offsets[:-1], np.minimum(lists.lengths, wanted))
    filling = pa.nulls(lists.rows, lists.items.type) if fill is None else as_array(fill, lists.rows)
    missing = pa.array(np.maximum(wanted - lists.lengths, 0))
    there = pc.and_(pc.is_valid(list), pc.is_valid(size))
    made = joined([kept, array_repeat(filling, missing)], keep_null=False)
    return pc.if_else(there, made, pa.scalar(None, list.type))


@scalar("flatten(list ANY[]) -> ANY[]", group=GROUP, returns=lambda types: types[0])
def flatten_flat(list: pa.Array) -> pa.Array:
    """A list that holds no lists is flat.

    >>> flatten([1, 2])
    [1, 2]
    """
    return list


@scalar("flatten(list T[][]) -> T[]", group=GROUP)
def flatten(list: pa.Array) -> pa.Array:
    """The elements of the inner lists as one list.

    >>> flatten([[1, 2], [3]])
    [1, 2, 3]
    """
    outer = Lists(list)
    inner = Lists(outer.items)
    return list_array(inner.offsets[outer.offsets], inner.items, outer.valid)
