"""Maps: merging, filtering and changing them, and making them of lists and texts."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import DatatypeMismatch, InvalidParameter, NullNotAllowed
from lake.exec.cast import cast
from lake.exec.constants import as_array, list_array, list_parts, map_array, map_entries
from lake.exec.decimals import Value
from lake.exec.functions.collecting import first_of_each
from lake.exec.functions.columns import columns, map_rows
from lake.exec.functions.lists import offsets_of
from lake.exec.functions.structs import make_map, map_extract_value
from lake.exec.kernels import views
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar
from lake.types import NULL, TEXT, List, Map, Struct, Text, Type

GROUP: Final = "maps"
COMMA: Final = pa.scalar(",")
COLON: Final = pa.scalar(":")


class Entries:
    """A column of maps taken apart.

    offsets  int64[rows + 1]      keys, values  the entries of maps that are not NULL
    parents  int64[entries]       valid         uint8[rows], None where no map is NULL
    """

    def __init__(self, column: pa.Array) -> None:
        self.offsets, pairs, self.valid = list_parts(map_entries(column))
        self.keys, self.values = pairs.field(0), pairs.field(1)
        self.rows = len(column)
        self.parents = np.repeat(np.arange(self.rows), np.diff(self.offsets))


def made_map(offsets: Any, keys: pa.Array, values: pa.Array, valid: Any, type: Map) -> pa.Array:
    """The map column of entries.

    22004  a key that is NULL     22023  a key that is in a map twice
    """
    if keys.null_count:
        raise NullNotAllowed("a key of a map cannot be NULL")
    parents = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if len(first_of_each(parents, keys)) < len(keys):
        raise InvalidParameter("a key is in a map twice")
    pairs = pa.StructArray.from_arrays([keys, values], names=["key", "value"])
    return map_array(list_array(np.asarray(offsets, np.int32), pairs, valid), type)


def _map_type(type: Type) -> Map:
    if not isinstance(type, Map):
        raise DatatypeMismatch(f"{type} is not a map")
    return type


def _pairs_type(types: tuple[Type, ...]) -> Type:
    """A map of the first two arguments' types."""
    return Map(types[0] if types else Text(), types[1] if len(types) > 1 else NULL)


scalar("map(pairs ANY...) -> ANY", group=GROUP, origin="spark", strict=False, takes_call=True, returns=_pairs_type,
       aliases=("spark_map",))(make_map)  # fmt: skip


@scalar("cardinality(map ANY) -> BIGINT", group=GROUP, takes_call=True, aliases=("size",))
def map_size(map: Value, *, call: CallInfo) -> pa.Array:
    """How many entries.

    >>> cardinality(MAP {'a': 1, 'b': 2})
    2

    42804  no map
    """
    _map_type(call.types[0])
    return pc.list_value_length(map_entries(as_array(map, call.rows))).cast(pa.int64())


@scalar("map_concat(maps ANY...) -> ANY", group=GROUP, origin="spark", takes_call=True,
        returns=lambda types: _map_type(types[0]) if types else Map(TEXT, NULL))  # fmt: skip
def map_concat(*maps: Value, call: CallInfo) -> pa.Array:
    """One map of the entries of all.

    >>> map_concat(MAP {1: 'a'}, MAP {2: 'b'})
    {1: a, 2: b}

    22023  a key that two of them have
    """
    type = _map_type(call.returns)
    given = [
        Entries(cast(as_array(map, call.rows), of, type, settings=call.settings)) for map, of in zip(maps, call.types)
    ]
    if not given:
        return made_map(np.zeros(call.rows + 1), pa.array([], pa.string()), pa.nulls(0), None, type)
    live = np.ones(call.rows, np.uint8)
    for entries in given:
        live = live if entries.valid is None else live & entries.valid
    parents = np.concatenate([entries.parents for entries in given])
    kept = np.flatnonzero(live[parents] == 1)
    order = pa.array(kept[np.argsort(parents[kept], kind="stable")])
    keys = views.concat([entries.keys for entries in given]).take(order)
    values = views.concat([entries.values for entries in given]).take(order)
    return made_map(offsets_of(np.bincount(parents[kept], minlength=call.rows)), keys, values, live, type)


@scalar("map_filter(map ANY, condition LAMBDA) -> ANY", group=GROUP, origin="spark", takes_call=True,
        returns=lambda types: _map_type(types[0]))  # fmt: skip
def map_filter(map: Value, condition: Any, *, call: CallInfo) -> pa.Array:
    """The entries for which a lambda over key and value is true.

    >>> map_filter(MAP {1: 0, 2: 2}, (k, v) -> k > 1)
    {2: 2}
    """
    entries = Entries(as_array(map, call.rows))
    kept = np.flatnonzero(views.true_of(views.plain(condition(entries.parents, entries.keys, entries.values))))
    counts = np.bincount(entries.parents[kept], minlength=entries.rows)
    rows = pa.array(kept)
    return made_map(offsets_of(counts), entries.keys.take(rows), entries.values.take(rows), entries.valid,
                    _map_type(call.returns))  # fmt: skip


@scalar("transform_keys(map ANY, function LAMBDA) -> ANY", group=GROUP, origin="spark", takes_call=True,
        returns=lambda types: Map(types[1], _map_type(types[0]).value))  # fmt: skip
def transform_keys(map: Value, function: Any, *, call: CallInfo) -> pa.Array:
    """The map whose keys are what a lambda over key and value answers.

    >>> transform_keys(MAP {'a': 1}, (k, v) -> upper(k))
    {A: 1}

    22023  a key that is made twice
    """
    entries = Entries(as_array(map, call.rows))
    made = views.plain(function(entries.parents, entries.keys, entries.values))
    return made_map(entries.offsets, made, entries.values, entries.valid, _map_type(call.returns))


@scalar("transform_values(map ANY, function LAMBDA) -> ANY", group=GROUP, origin="spark", takes_call=True,
        returns=lambda types: Map(_map_type(types[0]).key, types[1]))  # fmt: skip
def transform_values(map: Value, function: Any, *, call: CallInfo) -> pa.Array:
    """The map whose values are what a lambda over key and value answers.

    >>> transform_values(MAP {'a': 1}, (k, v) -> v + 1)
    {a: 2}
    """
    entries = Entries(as_array(map, call.rows))
    made = views.plain(function(entries.parents, entries.keys, entries.values))
    return made_map(entries.offsets, entries.keys, made, entries.valid, _map_type(call.returns))


@scalar("map_zip_with(a ANY, b ANY, function LAMBDA) -> ANY", group=GROUP, origin="spark", takes_call=True,
        returns=lambda types: Map(_map_type(types[0]).key, types[2]))  # fmt: skip
def map_zip_with(a: Value, b: Value, function: Any, *, call: CallInfo) -> pa.Array:
    """The map of what a lambda answers for each key of two maps and the values of both, NULL where a map lacks the key.

    >>> map_zip_with(MAP {1: 'a'}, MAP {1: 'b', 2: 'c'}, (k, x, y) -> concat(x, y))
    {1: ab, 2: c}
    """
    type = _map_type(call.returns)
    of = _map_type(call.types[1])
    first = Entries(as_array(a, call.rows))
    second = Entries(cast(as_array(b, call.rows), of, Map(type.key, of.value), settings=call.settings))
    live = np.ones(call.rows, np.uint8)
    for entries in (first, second):
        live = live if entries.valid is None else live & entries.valid
    parents = np.concatenate((first.parents, second.parents))
    keys = views.concat([first.keys, second.keys])
    codes = views.values_of(keys.dictionary_encode().indices).astype(np.int64)
    _, places, which = np.unique(parents * (int(codes.max(initial=0)) + 1) + codes, return_index=True, return_inverse=True)
    sides = np.full((2, len(places)), -1)
    sides[0, which[: len(first.keys)]] = np.arange(len(first.keys))
    sides[1, which[len(first.keys) :]] = np.arange(len(second.keys))
    kept = np.flatnonzero(live[parents[places]] == 1)
    order = kept[np.lexsort((places[kept], parents[places[kept]]))]
    rows = parents[places[order]]
    key = keys.take(pa.array(places[order]))
    given = [_at(values, side[order]) for values, side in zip((first.values, second.values), sides)]
    made = views.plain(function(rows, key, *given))
    return made_map(offsets_of(np.bincount(rows, minlength=call.rows)), key, made, live, type)


def _at(values: pa.Array, places: Any) -> pa.Array:
    """The values at places, NULL for -1."""
    return values.take(views.to_array(np.maximum(places, 0), pa.int64(), (places >= 0).astype(np.uint8)))


def _entries_type(types: tuple[Type, ...]) -> Type:
    """The map of a list of pairs.

    42804  another type
    """
    match types[0]:
        case List(Struct(((_, key), (_, value)))):
            return Map(key, value)
    raise DatatypeMismatch(f"map_from_entries takes a list of structs of two fields, not {types[0]}")


@scalar("map_from_entries(entries ANY) -> ANY", group=GROUP, origin="spark", takes_call=True, returns=_entries_type)
def map_from_entries(entries: Value, *, call: CallInfo) -> pa.Array:
    """The map of a list of structs, each a key and its value.

    >>> map_from_entries([{k: 5, v: 'x'}, {k: 3, v: 'y'}])
    {5: x, 3: y}

    22023  a key that is there twice
    """
    offsets, pairs, valid = list_parts(as_array(entries, call.rows))
    keys, values = pairs.flatten()
    return made_map(offsets, keys, values, valid, _map_type(call.returns))


@scalar("str_to_map(text VARCHAR) -> ANY", group=GROUP, origin="spark", returns=lambda types: Map(TEXT, TEXT))
@scalar("str_to_map(text VARCHAR, between VARCHAR, behind VARCHAR DEFAULT ':') -> ANY", group=GROUP, origin="spark",
        returns=lambda types: Map(TEXT, TEXT))  # fmt: skip
@per_row
def str_to_map(text: Value, between: Value = COMMA, behind: Value = COLON) -> pa.Array:
    """The map that a text writes, with delimiters between entries and behind keys. Goes row by row: each text is a map.

    >>> str_to_map('a:1,b:2,c:3', ',', ':')
    {a: 1, b: 2, c: 3}
    """

    def read(item: str, between: str, behind: str) -> list[tuple[str, str | None]]:
        pairs = (part.partition(behind) for part in item.split(between))
        return list({key: value if mark else None for key, mark, value in pairs}.items())

    given = columns(text, between, behind)
    if not all(pc.all(pc.greater(pc.binary_length(column), 0)).as_py() in (True, None) for column in given[1:]):
        raise InvalidParameter("str_to_map takes delimiters that are not empty")
    return map_rows(read, pa.map_(pa.string(), pa.string()), *given)


@scalar("spark_element_at(map ANY, key ANY) -> ANY", group=GROUP, origin="spark", strict=False, takes_call=True,
        returns=lambda types: _map_type(types[0]).value, aliases=("try_element_at",))  # fmt: skip
def spark_element_at(map: Value, key: Value, *, call: CallInfo) -> pa.Array:
    """The value under a key, NULL where the map has none.

    >>> try_element_at(MAP {'a': 1}, 'a')
    1
    """
    return map_extract_value(map, key, call=call)
