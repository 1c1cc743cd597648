"""Aggregates that gather values: lists, joined texts, first and last values, values at an extreme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec.cast_text import to_text
from lake.exec.constants import list_array, list_parts, map_entries
from lake.exec.functions.aggregates import Constants, Converted, physical
from lake.exec.functions.arithmetic import same_type
from lake.exec.kernels import views
from lake.exec.kernels.extremes import PickedRows
from lake.exec.kernels.hashing import spelled
from lake.sql.registry import Accumulator, CallInfo, aggregate
from lake.types import JSON, Boolean, Decimal, Float, Integer, Json, List, Map, Null, Struct, Text, Type

GROUP: Final = "aggregates"


class Collected:
    """Keeps all rows, and gives them back group by group in the order in which they came."""

    def __init__(self, types: tuple[Type, ...]) -> None:
        self._types = types
        self._groups: list[Any] = []
        self._rows: list[list[pa.Array]] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the rows kept."""
        kept = sum(groups.nbytes for groups in self._groups)
        return int(kept + sum(array.nbytes for arrays in self._rows for array in arrays))

    def update(self, groups: Any, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Keeps a batch."""
        self._groups.append(np.array(groups))
        self._rows.append([physical(array, type) for array, type in zip(arguments, self._types, strict=False)])

    def merge(self, other: Collected, mapping: Any, group_count: int) -> None:
        """Keeps another state's rows behind its own."""
        self._groups += [mapping[groups] for groups in other._groups]
        self._rows += other._rows

    def by_group(self, group_count: int, *, with_nulls: bool = True) -> tuple[Any, list[pa.Array]]:
        """Offsets int64[groups + 1] and the columns in order of groups; without rows whose first value is NULL if so."""
        if not self._groups:
            return np.zeros(group_count + 1, np.int64), [pa.array([], type.physical) for type in self._types]
        groups = np.concatenate(self._groups)
        columns = [views.concat([rows[index] for rows in self._rows]) for index in range(len(self._rows[0]))]
        if not with_nulls and columns[0].null_count:
            live = pa.array(np.flatnonzero(views.true_of(pc.is_valid(columns[0]))))
            groups, columns = groups[live.to_numpy()], [column.take(live) for column in columns]
        order = np.argsort(groups, kind="stable")
        offsets = np.concatenate(([0], np.cumsum(np.bincount(groups, minlength=group_count)))).astype(np.int64)
        if not np.array_equal(order, np.arange(order.size)):
            columns = [column.take(pa.array(order)) for column in columns]
        return offsets, columns


def list_type(types: tuple[Type, ...]) -> Type:
    """A list of the first argument's type."""
    return List(types[0])


@aggregate(
    "array_agg(value ANY) -> ANY[]", group=GROUP, returns=list_type, keeps_order=True, aliases=("list", "collect_list")
)
def array_agg(call: CallInfo, constants: Constants) -> Accumulator:
    """All values as a list, NULLs too; NULL of no rows.

    >>> array_agg(x) FROM (VALUES (1), (NULL)) AS t(x)
    [1, NULL]
    """
    return CollectedLists(call.types)


class CollectedLists(Collected):
    """Lists of all values of a group."""

    def finish(self, group_count: int) -> pa.Array:
        """The lists, NULL for groups of no rows."""
        offsets, (values,) = self.by_group(group_count)
        return list_array(offsets, values, (np.diff(offsets) > 0).astype(np.uint8))


@aggregate("collect_set(value ANY) -> ANY[]", group=GROUP, origin="spark", returns=list_type, keeps_order=True)
def collect_set(call: CallInfo, constants: Constants) -> Accumulator:
    """The different values as a list, without NULLs.

    >>> collect_set(x) FROM (VALUES (1), (2), (1), (NULL)) AS t(x)
    [1, 2]
    """
    return CollectedSets(call.types)


class CollectedSets(Collected):
    """Lists of the different values of a group."""

    def finish(self, group_count: int) -> pa.Array:
        """The lists in order of first appearance."""
        offsets, (values,) = self.by_group(group_count, with_nulls=False)
        parents = np.repeat(np.arange(group_count), np.diff(offsets))
        kept = first_of_each(parents, values)
        counts = np.bincount(parents[kept], minlength=group_count)
        return list_array(np.concatenate(([0], np.cumsum(counts))), values.take(pa.array(kept)))


def first_of_each(parents: Any, values: pa.Array) -> Any:
    """int64: the rows in which a value first stands within its parent, ascending. NULL is a value."""
    if pa.types.is_nested(values.type) or pa.types.is_interval(values.type):
        values = spelled(values)
    codes = views.values_of(values.dictionary_encode(null_encoding="encode").indices).astype(np.int64)
    _, first = np.unique(parents * (int(codes.max(initial=0)) + 1) + codes, return_index=True)
    return np.sort(first)


@aggregate("string_agg(text VARCHAR, delimiter VARCHAR) -> VARCHAR", group=GROUP, keeps_order=True,
           aliases=("listagg", "group_concat"))  # fmt: skip
@aggregate("string_agg(text VARCHAR) -> VARCHAR", group=GROUP, keeps_order=True, aliases=("listagg", "group_concat"))
def string_agg(call: CallInfo, constants: Constants) -> Accumulator:
    """The texts that are not NULL as one, with a delimiter between them (a comma where none is told by group_concat).

    >>> string_agg(x, '-' ORDER BY x DESC) FROM (VALUES ('a'), ('b'), (NULL)) AS t(x)
    b-a
    """
    return JoinedTexts(call.types, constants)


class JoinedTexts(Collected):
    """Texts of a group joined."""

    def __init__(self, types: tuple[Type, ...], constants: Constants) -> None:
        super().__init__(types)
        self._delimiter = constants[1] if len(constants) > 1 else ","

    def finish(self, group_count: int) -> pa.Array:
        """The joined texts, NULL where there is none."""
        offsets, columns = self.by_group(group_count, with_nulls=False)
        texts = columns[0]
        is_first = np.zeros(len(texts), np.bool_)
        is_first[offsets[:-1][np.diff(offsets) > 0]] = True
        delimiters = columns[1] if len(columns) > 1 and self._delimiter is None else None
        if delimiters is None:
            joined = pc.binary_join(list_array(offsets, texts), str(self._delimiter))
        else:
            led = pc.binary_join_element_wise(pc.if_else(views.to_boolean(is_first), "", pc.fill_null(delimiters, "")),
                                              texts, "")  # fmt: skip
            joined = pc.binary_join(list_array(offsets, led), "")
        empty = views.to_boolean(np.diff(offsets) == 0)
        return pc.if_else(empty, pa.scalar(None, pa.string()), joined)


# --- one value of a group --------------------------------------------------------------------------------------------


@aggregate("first_value(value ANY) -> ANY", group=GROUP, returns=same_type, keeps_order=True, aliases=("first",))
def first_value(call: CallInfo, constants: Constants) -> Accumulator:
    """The first value in the order of the call, NULL too.

    >>> first_value(x ORDER BY x DESC) FROM (VALUES (1), (2)) AS t(x)
    2
    """
    return Converted(PickedRows.first(call.returns.physical, ignore_nulls=False), call.types)


@aggregate("last_value(value ANY) -> ANY", group=GROUP, returns=same_type, keeps_order=True, aliases=("last",))
def last_value(call: CallInfo, constants: Constants) -> Accumulator:
    """The last value in the order of the call, NULL too.

    >>> last_value(x ORDER BY x) FROM (VALUES (1), (2)) AS t(x)
    2
    """
    return Converted(PickedRows.first(call.returns.physical, ignore_nulls=False, last=True), call.types)


@aggregate("nth_value(value ANY, n BIGINT) -> ANY", group=GROUP, returns=same_type, keeps_order=True)
def nth_value(call: CallInfo, constants: Constants) -> Accumulator:
    """The n-th value in the order of the call, from the end where n is negative.

    >>> nth_value(x, 2 ORDER BY x) FROM (VALUES (3), (1), (2)) AS t(x)
    2
    """
    number = constants[1]
    return NthValue(call.types, number if isinstance(number, int) else 1)


class NthValue(Collected):
    """The n-th value of a group."""

    def __init__(self, types: tuple[Type, ...], number: int) -> None:
        super().__init__(types)
        self._number = number

    def finish(self, group_count: int) -> pa.Array:
        """The values, NULL where the group has fewer."""
        offsets, columns = self.by_group(group_count)
        place = offsets[:-1] + self._number - 1 if self._number > 0 else offsets[1:] + self._number
        there = (place >= offsets[:-1]) & (place < offsets[1:]) & (self._number != 0)
        return columns[0].take(views.to_array(np.where(there, place, 0), pa.int64(), there.astype(np.uint8)))


@aggregate("max_by(value ANY, by ANY) -> ANY", group=GROUP, origin="lake", returns=same_type, duplicates_matter=False,
           aliases=("arg_max", "argmax"))  # fmt: skip
def max_by(call: CallInfo, constants: Constants) -> Accumulator:
    """The first argument of the row where the second is greatest; rows where that is NULL do not count.

    >>> max_by(a, b) FROM (VALUES ('p', 1), ('q', NULL), ('r', 3)) AS t(a, b)
    r
    """
    return Converted(PickedRows.extreme_by(call.returns.physical, greatest=True), call.types)


@aggregate("min_by(value ANY, by ANY) -> ANY", group=GROUP, origin="lake", returns=same_type, duplicates_matter=False,
           aliases=("arg_min", "argmin"))  # fmt: skip
def min_by(call: CallInfo, constants: Constants) -> Accumulator:
    """The first argument of the row where the second is least; rows where that is NULL do not count.

    >>> min_by(a, b) FROM (VALUES ('p', 1), ('q', NULL), ('r', 3)) AS t(a, b)
    p
    """
    return Converted(PickedRows.extreme_by(call.returns.physical, greatest=False), call.types)


# --- JSON ------------------------------------------------------------------------------------------------------------


@aggregate(
    "json_group_array(value ANY) -> JSON", group="json", origin="duckdb", keeps_order=True, aliases=("json_agg",)
)
def json_group_array(call: CallInfo, constants: Constants) -> Accumulator:
    """All values as a JSON array.

    >>> json_group_array(x) FROM (VALUES (1), (2)) AS t(x)
    [1,2]
    """
    return JsonArrays(call.types)


class JsonArrays(Collected):
    """JSON arrays of the values of a group."""

    def finish(self, group_count: int) -> pa.Array:
        """The arrays; empty for groups of no rows."""
        offsets, (values,) = self.by_group(group_count)
        items = json_values(values, self._types[0])
        texts = [orjson.dumps(items[start:end]).decode() for start, end in zip(offsets.tolist(), offsets[1:].tolist())]
        return pa.array(texts, JSON.physical)


@aggregate("json_group_object(key VARCHAR, value ANY) -> JSON", group="json", origin="duckdb", keeps_order=True,
           aliases=("json_object_agg",))  # fmt: skip
def json_group_object(call: CallInfo, constants: Constants) -> Accumulator:
    """All keys and values as a JSON object.

    >>> json_group_object(k, v) FROM (VALUES ('a', 1), ('b', 2)) AS t(k, v)
    {"a":1,"b":2}
    """
    return JsonObjects(call.types)


class JsonObjects(Collected):
    """JSON objects of the keys and values of a group."""

    def finish(self, group_count: int) -> pa.Array:
        """The objects; the last value of a key counts."""
        offsets, (keys, values) = self.by_group(group_count, with_nulls=False)
        names, items = keys.to_pylist(), json_values(values, self._types[1])
        texts = [
            orjson.dumps(dict(zip(names[start:end], items[start:end]))).decode()
            for start, end in zip(offsets.tolist(), offsets[1:].tolist())
        ]
        return pa.array(texts, JSON.physical)


def json_values(values: pa.Array, type: Type) -> list[Any]:
    """The values as JSON has them; what it lacks becomes text."""
    if isinstance(type, Null):
        return [None] * len(values)
    if isinstance(type, Json):
        return [None if item is None else orjson.loads(item) for item in values.to_pylist()]
    if isinstance(type, Integer | Float | Boolean | Text):
        return values.to_pylist()  # type: ignore[no-any-return]
    if isinstance(type, Decimal):
        return [None if text is None else float(text) for text in to_text(values, type).to_pylist()]
    if isinstance(type, List):
        offsets, items, _ = list_parts(values)
        parts, bounds = json_values(items, type.of), offsets.tolist()
        return [
            parts[start:end] if there else None
            for start, end, there in zip(bounds, bounds[1:], values.is_valid().to_pylist())
        ]
    if isinstance(type, Map):
        pairs = List(Struct((("key", type.key), ("value", type.value))))
        entries = json_values(map_entries(values), pairs)
        return [None if row is None else {str(item["key"]): item["value"] for item in row} for row in entries]
    if isinstance(type, Struct):
        columns = [json_values(part, of) for part, (_, of) in zip(values.flatten(), type.fields, strict=True)]
        rows = zip(*columns, strict=True) if columns else (() for _ in range(len(values)))
        fields = [name for name, _ in type.fields]
        return [
            dict(zip(fields, row, strict=True)) if there else None
            for row, there in zip(rows, values.is_valid().to_pylist())
        ]
    return to_text(values, type).to_pylist()  # type: ignore[no-any-return]
