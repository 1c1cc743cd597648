"""Structs and maps: making them, and taking out what they hold."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import DatatypeMismatch, InvalidParameter, NullNotAllowed, UndefinedColumn
from lake.exec.cast import cast
from lake.exec.constants import as_array, list_array, list_parts, map_array, map_entries, physical_values, struct_array
from lake.exec.decimals import Value
from lake.exec.kernels import views
from lake.sql.bind.coerce import common_type
from lake.sql.registry import CallInfo, scalar
from lake.types import NULL, List, Map, Null, Struct, Text, Type

GROUP: Final = "structs"


# --- structs ---------------------------------------------------------------------------------------------------------


def _numbered(types: tuple[Type, ...]) -> Type:
    return Struct(tuple((f"c{place}", type) for place, type in enumerate(types)))


@scalar("struct(values ANY...) -> ANY", group=GROUP, strict=False, takes_call=True, returns=_numbered, aliases=("row",))
def struct(*values: Value, call: CallInfo) -> pa.Array:
    """A struct of the values, its fields named c0, c1 and so on.

    >>> struct(1, 'a')
    {c0: 1, c1: a}
    """
    assert isinstance(call.returns, Struct)
    return struct_array([as_array(value, call.rows) for value in values], call.returns)


def _named(arguments: tuple[Any, ...]) -> Type:
    """The type of a struct whose odd arguments name what follows.

    42804  an odd number of arguments, or a name that is no constant text
    """
    if len(arguments) % 2:
        raise DatatypeMismatch("named_struct takes pairs of a name and a value")
    names = [getattr(item, "value", None) for item in arguments[::2]]
    if not all(isinstance(name, str) for name in names):
        raise DatatypeMismatch("the names of named_struct are constant texts")
    if len(set(names)) < len(names):
        raise InvalidParameter("a struct has two fields of one name")
    return Struct(tuple((str(name), item.type) for name, item in zip(names, arguments[1::2], strict=True)))


@scalar("named_struct(pairs ANY...) -> ANY", group=GROUP, strict=False, takes_call=True, literal_rule=_named)
def named_struct(*pairs: Value, call: CallInfo) -> pa.Array:
    """A struct of names and values in turn.

    >>> named_struct('a', 1, 'b', 'x')
    {a: 1, b: x}
    """
    assert isinstance(call.returns, Struct)
    if not pairs:
        return pa.array([{}] * call.rows, pa.struct([]))
    return struct_array([as_array(value, call.rows) for value in pairs[1::2]], call.returns)


def _field_type(arguments: tuple[Any, ...]) -> Type:
    """The type of the field that the second argument names, or of a map's values.

    42703  no such field     42804  neither a struct nor a map
    """
    type: Type = arguments[0].type
    for argument in arguments[1:]:
        if isinstance(type, Map):
            type = type.value
        elif isinstance(type, Struct):
            type = type.fields[_place_of(type, getattr(argument, "value", None))][1]
        elif isinstance(type, Null):
            return NULL
        else:
            raise DatatypeMismatch(f"get_field takes a struct or a map, not {type}")
    return type


def _place_of(type: Struct, key: object) -> int:
    if isinstance(key, int) and 1 <= key <= len(type.fields):
        return key - 1
    place = type.place(key) if isinstance(key, str) else None
    if place is None:
        raise UndefinedColumn(f'field "{key}" does not exist in {type}')
    return place


@scalar("get_field(value ANY, names ANY...) -> ANY", group=GROUP, strict=False, takes_call=True,
        literal_rule=_field_type, aliases=("struct_extract",))  # fmt: skip
def get_field(value: Value, *names: Value, call: CallInfo) -> pa.Array:
    """A field of a struct, or the value under a key of a map.

    >>> get_field({a: 1, b: 'x'}, 'b')
    x
    """
    found, type = as_array(value, call.rows), call.types[0]
    for place, name in enumerate(names, 1):
        if isinstance(type, Struct):
            at = _place_of(type, as_array(name, 1)[0].as_py())
            found, type = found.flatten()[at], type.fields[at][1]
        elif isinstance(type, Map):
            key = cast(as_array(name, call.rows), call.types[place], type.key, settings=call.settings)
            found, type = _looked_up(found, key, type), type.value
        else:
            return pa.nulls(call.rows)
    return found


# --- maps ------------------------------------------------------------------------------------------------------------


def _map_of_lists(types: tuple[Type, ...]) -> Type:
    keys, values = (item.of if isinstance(item, List) else NULL for item in types)
    return Map(Text() if isinstance(keys, Null) else keys, values)


@scalar("map(keys ANY[], values ANY[]) -> ANY", group=GROUP, takes_call=True, returns=_map_of_lists,
        aliases=("map_from_arrays",))  # fmt: skip
def map_of(keys: Value, values: Value, *, call: CallInfo) -> pa.Array:
    """A map of a list of keys and a list of their values.

    >>> map(['a', 'b'], [1, 2])
    {a: 1, b: 2}
    """
    assert isinstance(call.returns, Map)
    keys, values = as_array(keys, call.rows), as_array(values, call.rows)
    valid = pc.and_(keys.is_valid(), values.is_valid())
    if not pc.all(valid).as_py():
        keys = pc.if_else(valid, keys, pa.scalar(None, keys.type))
        values = pc.if_else(valid, values, pa.scalar(None, values.type))
    lengths = pc.equal(pc.list_value_length(keys), pc.list_value_length(values))
    if not pc.all(pc.fill_null(lengths, True)).as_py():
        raise InvalidParameter("map takes as many keys as values")
    offsets, items, mask = list_parts(keys)
    if isinstance(call.returns.key, Text) and pa.types.is_null(items.type):
        items = items.cast(pa.string())
    return _checked_map(offsets, items, list_parts(values)[1], mask, call.returns)


def _checked_map(offsets: Any, keys: pa.Array, values: pa.Array, valid: Any, type: Map) -> pa.Array:
    """The map column of keys and values.

    22004  a key that is NULL     22023  a key that is there twice
    """
    if keys.null_count:
        raise NullNotAllowed("a key of a map cannot be NULL")
    pairs = pa.StructArray.from_arrays([keys, values], names=["key", "value"])
    entries = list_array(offsets.astype(np.int32), pairs, valid)
    for row in physical_values(list_array(offsets.astype(np.int32), keys, valid), List(type.key)):
        if row is not None and len(set(row)) < len(row):
            raise InvalidParameter("a key is in a map twice")
    return map_array(entries, type)


def _map_of_pairs(types: tuple[Type, ...]) -> Type:
    return Map(_common(types[::2], "keys") if types else Text(), _common(types[1::2], "values"))


def _common(types: tuple[Type, ...], words: str) -> Type:
    found: Type = NULL
    for type in types:
        merged = common_type(found, type)
        if merged is None:
            raise DatatypeMismatch(f"the {words} of a map are of types that do not go together: {found} and {type}")
        found = merged
    return found


@scalar("make_map(pairs ANY...) -> ANY", group=GROUP, strict=False, takes_call=True, returns=_map_of_pairs)
def make_map(*pairs: Value, call: CallInfo) -> pa.Array:
    """A map of keys and values in turn.

    >>> make_map('a', 1, 'b', 2)
    {a: 1, b: 2}
    """
    type = call.returns
    assert isinstance(type, Map)
    if len(pairs) % 2:
        raise InvalidParameter("make_map takes pairs of a key and a value")
    columns = [
        cast(as_array(value, call.rows), given, type.value if place % 2 else type.key, settings=call.settings)
        for place, (value, given) in enumerate(zip(pairs, call.types, strict=True))
    ]
    count, rows = len(columns) // 2, call.rows
    turn = (
        pa.array(np.arange(rows * count, dtype=np.int64).reshape(count, rows).T.ravel())
        if count
        else pa.array([], pa.int64())
    )
    keys = views.concat(columns[::2]).take(turn) if count else pa.array([], type.key.physical)
    values = views.concat(columns[1::2]).take(turn) if count else pa.array([], type.value.physical)
    return _checked_map(np.arange(rows + 1, dtype=np.int64) * count, keys, values, None, type)


def _map_type(type: Type) -> Map:
    if not isinstance(type, Map):
        raise DatatypeMismatch(f"{type} is not a map")
    return type


@scalar("map_keys(map ANY) -> ANY", group=GROUP, takes_call=True, returns=lambda types: List(_map_type(types[0]).key))
def map_keys(map: pa.Array, *, call: CallInfo) -> pa.Array:
    """The keys of a map.

    >>> map_keys(MAP {'a': 1, 'b': 2})
    [a, b]
    """
    offsets, pairs, valid = list_parts(map_entries(as_array(map, call.rows)))
    return list_array(offsets, pairs.field(0), valid)


@scalar(
    "map_values(map ANY) -> ANY", group=GROUP, takes_call=True, returns=lambda types: List(_map_type(types[0]).value)
)
def map_values(map: pa.Array, *, call: CallInfo) -> pa.Array:
    """The values of a map.

    >>> map_values(MAP {'a': 1, 'b': 2})
    [1, 2]
    """
    offsets, pairs, valid = list_parts(map_entries(as_array(map, call.rows)))
    return list_array(offsets, pairs.field(1), valid)


@scalar("map_entries(map ANY) -> ANY", group=GROUP, takes_call=True, returns=lambda types: _map_type(types[0]).entries)
def entries_of(map: pa.Array, *, call: CallInfo) -> pa.Array:
    """The pairs of a map as a list of structs.

    >>> map_entries(MAP {'a': 1})
    [{key: a, value: 1}]
    """
    return map_entries(as_array(map, call.rows))


@scalar("map_extract_value(map ANY, key ANY) -> ANY", group=GROUP, origin="duckdb", strict=False, takes_call=True,
        returns=lambda types: _map_type(types[0]).value)  # fmt: skip
def map_extract_value(map: Value, key: Value, *, call: CallInfo) -> pa.Array:
    """The value under a key, NULL where the map has none.

    >>> map_extract_value(MAP {'a': 1}, 'a')
    1
    """
    type = _map_type(call.types[0])
    wanted = cast(as_array(key, call.rows), call.types[1], type.key, settings=call.settings)
    return _looked_up(as_array(map, call.rows), wanted, type)


@scalar("map_extract(map ANY, key ANY) -> ANY", group=GROUP, strict=False, takes_call=True, aliases=("element_at",),
        returns=lambda types: List(_map_type(types[0]).value))  # fmt: skip
def map_extract(map: Value, key: Value, *, call: CallInfo) -> pa.Array:
    """A list that holds the value under a key.

    >>> map_extract(MAP {'a': 1, 'b': 2}, 'b')
    [2]
    """
    type = _map_type(call.types[0])
    wanted = cast(as_array(key, call.rows), call.types[1], type.key, settings=call.settings)
    column = as_array(map, call.rows)
    places = _places(column, wanted, type)
    found = _values_at(column, places)
    # A key that is not there, and a map that is NULL, give a list of one NULL.
    return list_array(np.arange(len(places) + 1, dtype=np.int32), found)


@scalar("map_contains_key(map ANY, key ANY) -> BOOLEAN", group=GROUP, origin="spark", strict=False, takes_call=True,
        aliases=("map_contains",))  # fmt: skip
def map_contains_key(map: Value, key: Value, *, call: CallInfo) -> pa.Array:
    """Whether a map has the key.

    >>> map_contains_key(MAP {'a': 1}, 'a')
    true
    """
    type = _map_type(call.types[0])
    column = as_array(map, call.rows)
    wanted = cast(as_array(key, call.rows), call.types[1], type.key, settings=call.settings)
    found = pa.array(_places(column, wanted, type) >= 0)
    return found if not column.null_count else pc.if_else(column.is_valid(), found, pa.scalar(None, pa.bool_()))


def _places(map: pa.Array, key: pa.Array, type: Map) -> Any:
    """int64[rows]: which of all the entries each row's key is, -1 for none."""
    offsets, pairs, _ = list_parts(map_entries(map))
    keys, wanted = physical_values(pairs.field(0), type.key), physical_values(key, type.key)
    found = np.full(len(map), -1, np.int64)
    for row, one in enumerate(wanted):
        for place in range(offsets[row], offsets[row + 1]):
            if keys[place] == one:
                found[row] = place
                break
    return found


def _values_at(map: pa.Array, places: Any) -> pa.Array:
    _, pairs, _ = list_parts(map_entries(map))
    return pairs.field(1).take(pa.array([int(place) if place >= 0 else None for place in places], pa.int64()))


def _looked_up(map: pa.Array, key: pa.Array, type: Map) -> pa.Array:
    return _values_at(map, _places(map, key, type))
