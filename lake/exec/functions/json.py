"""JSON text: members by path, kinds, lengths, and making it.

A path is keys and places one after the other (``json_get(doc, 'a', 0)``, places from 0), or one text: ``$.a[0]``, ``/a/0``
or a key alone. A missing path gives NULL. Each document is read once for each row, by orjson: Arrow has no JSON functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson
import pyarrow as pa

from lake.errors import InvalidParameter, InvalidText
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.collecting import json_values
from lake.exec.functions.columns import columns, map_distinct, map_rows, per_row
from lake.sql.registry import CallInfo, scalar
from lake.types import Type

GROUP: Final = "json"
STRINGS: Final = pa.list_(pa.string())
MISSING: Final = object()
Step = str | int


def load(text: str) -> Any:
    """The value of a JSON text.

    22P02  it is not JSON
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidText(f'invalid input syntax for type json: "{text}"', detail=str(error)) from None


def dump(value: Any) -> str:
    """A value as JSON text."""
    return orjson.dumps(value).decode()


def follow(value: Any, path: Sequence[Step]) -> Any:
    """The member at a path, MISSING where there is none; places below 0 count from the end."""
    for step in path:
        is_key = isinstance(value, dict) and isinstance(step, str) and step in value
        if not is_key and not (isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value)):
            return MISSING
        value = value[step]
    return value


@lru_cache(1000)
def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of ``$.a[0]``, ``/a/0`` or a key alone.

    22023  a path that cannot be read
    """
    if text.startswith("/"):
        parts = [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]
        return tuple(int(part) if part.isdigit() else part for part in parts)
    if not text.startswith("$"):
        return (text,)
    steps: list[Step] = []
    place = 1
    pattern = re.compile(r'\."((?:[^"\\]|\\.)*)"|\.([^.\[\]"]+)|\[(-?\d+)\]|\[#-(\d+)\]|\["([^"]*)"\]')
    while place < len(text):
        match = pattern.match(text, place)
        if match is None:
            raise InvalidParameter(f'invalid JSON path "{text}"')
        quoted, key, index, from_end, inside = match.groups()
        if index is not None or from_end is not None:
            steps.append(int(index) if index is not None else -int(from_end))
        else:
            steps.append(next(part for part in (quoted, key, inside) if part is not None))
        place = match.end()
    return tuple(steps)


@per_row
def _each(run: Callable[[Any], Any], type: pa.DataType, document: Value, path: Sequence[Value], rows: int) -> pa.Array:
    """``run`` over the member at each row's path. Goes row by row: a document is a tree, not a column."""
    given = [as_array(value, rows).to_pylist() for value in (document, *path)]
    cache: dict[str, Any] = {}
    answers: list[Any] = []
    for text, *steps in zip(*given, strict=True):
        if text is None or None in steps:
            answers.append(None)
            continue
        value = cache.get(text, MISSING)
        if value is MISSING:
            value = cache[text] = _load_or_missing(text)
        member = MISSING if value is MISSING else follow(value, steps)
        answers.append(None if member is MISSING else run(member))
        if len(cache) > 1000:
            cache.clear()
    return pa.array(answers, type)


def _load_or_missing(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return MISSING


def as_text(member: Any) -> str | None:
    """A member as text: a string itself, other values as JSON, null as NULL."""
    return None if member is None else member if isinstance(member, str) else dump(member)


# --- json_get_.. -----------------------------------------------------------------------------------------------------


def _register_get(
    names: Sequence[str], result: str, run: Callable[[Any], Any], type: pa.DataType, text: str, example: str
) -> None:
    """A function of a document and a path of keys and places."""

    def function(document: Value, *path: Value, call: CallInfo) -> pa.Array:
        return _each(run, type, document, path, call.rows)

    function.__doc__ = f"{text}\n\n    >>> {example}\n    "
    for kind in ("JSON", "VARCHAR"):
        scalar(f"{names[0]}(document {kind}, path ANY...) -> {result}", group=GROUP, origin="lake", takes_call=True,
               strict=False, aliases=tuple(names[1:]))(function)  # fmt: skip


def _whole_number(member: Any) -> int | None:
    return member if isinstance(member, int) and not isinstance(member, bool) and abs(member) < 2**63 else None


def _number(member: Any) -> float | None:
    return float(member) if isinstance(member, int | float) and not isinstance(member, bool) else None


def _length(member: Any) -> int | None:
    return len(member) if isinstance(member, list | dict) else None


def _keys(member: Any) -> list[str] | None:
    return list(member) if isinstance(member, dict) else None


def _items(member: Any) -> list[str] | None:
    return [dump(item) for item in member] if isinstance(member, list) else None


_register_get(("json_get", "json_get_json"), "JSON", lambda member: dump(member), pa.string(),
              "The member at a path, as JSON.", """json_get('{"a": {"b": 1}}', 'a', 'b')\n    1""")  # fmt: skip
_register_get(("json_as_text",), "VARCHAR", as_text, pa.string(), "The member at a path, as text.",
              """json_as_text('{"a": 1.5}', 'a')\n    1.5""")  # fmt: skip
_register_get(("json_get_str",), "VARCHAR", lambda member: member if isinstance(member, str) else None, pa.string(),
              "The text at a path.", """json_get_str('{"a": "x"}', 'a')\n    x""")  # fmt: skip
_register_get(("json_get_int",), "BIGINT", _whole_number, pa.int64(), "The whole number at a path.",
              """json_get_int('{"a": [7, 8]}', 'a', 1)\n    8""")  # fmt: skip
_register_get(("json_get_float",), "DOUBLE", _number, pa.float64(), "The number at a path.",
              """json_get_float('{"a": 1.5}', 'a')\n    1.5""")  # fmt: skip
_register_get(("json_get_bool",), "BOOLEAN", lambda member: member if isinstance(member, bool) else None, pa.bool_(),
              "The truth at a path.", """json_get_bool('{"a": true}', 'a')\n    true""")  # fmt: skip
_register_get(("json_get_array",), "VARCHAR[]", _items, STRINGS, "The array at a path, its elements as JSON.",
              """json_get_array('{"a": [1, "x"]}', 'a')\n    [1, "x"]""")  # fmt: skip
_register_get(("json_length",), "BIGINT", _length, pa.int64(), "How many elements or members are at a path.",
              """json_length('{"a": [1, 2, 3]}', 'a')\n    3""")  # fmt: skip
_register_get(("json_object_keys", "json_keys"), "VARCHAR[]", _keys, STRINGS, "The keys of the object at a path.",
              """json_object_keys('{"a": 1, "b": 2}')\n    [a, b]""")  # fmt: skip


@scalar(
    "json_contains(document JSON, path ANY...) -> BOOLEAN", group=GROUP, origin="lake", takes_call=True, strict=False
)
@scalar(
    "json_contains(document VARCHAR, path ANY...) -> BOOLEAN", group=GROUP, origin="lake", takes_call=True, strict=False
)
def json_contains(document: Value, *path: Value, call: CallInfo) -> pa.Array:
    """Whether there is a member at a path.

    >>> json_contains('{"a": 1}', 'b')
    false
    """
    found = _each(lambda member: True, pa.bool_(), document, path, call.rows)
    there = as_array(document, call.rows).is_valid()
    return pa.array(
        [bool(one) if known else None for one, known in zip(found.to_pylist(), there.to_pylist())], pa.bool_()
    )


@scalar("->(document JSON, step VARCHAR) -> JSON", group=GROUP, takes_call=True)
@scalar("->(document VARCHAR, step VARCHAR) -> JSON", group=GROUP, takes_call=True)
@scalar("->(document JSON, step BIGINT) -> JSON", group=GROUP, takes_call=True)
@scalar("->(document VARCHAR, step BIGINT) -> JSON", group=GROUP, takes_call=True)
def member(document: Value, step: Value, *, call: CallInfo) -> pa.Array:
    """The member of a key or at a place, as JSON.

    >>> '{"a": {"b": 1}}'::JSON -> 'a'
    {"b":1}
    """
    return _each(dump, pa.string(), document, (step,), call.rows)


@scalar("->>(document JSON, step VARCHAR) -> VARCHAR", group=GROUP, takes_call=True)
@scalar("->>(document VARCHAR, step VARCHAR) -> VARCHAR", group=GROUP, takes_call=True)
@scalar("->>(document JSON, step BIGINT) -> VARCHAR", group=GROUP, takes_call=True)
@scalar("->>(document VARCHAR, step BIGINT) -> VARCHAR", group=GROUP, takes_call=True)
def member_text(document: Value, step: Value, *, call: CallInfo) -> pa.Array:
    """The member of a key or at a place, as text.

    >>> '{"a": "x"}'::JSON ->> 'a'
    x
    """
    return _each(as_text, pa.string(), document, (step,), call.rows)


@scalar("#>(document JSON, path VARCHAR[]) -> JSON", group=GROUP, takes_call=True)
def member_at(document: Value, path: Value, *, call: CallInfo) -> pa.Array:
    """The member at a path of keys and places, as JSON.

    >>> '{"a": [1, {"b": 2}]}'::JSON #> ['a', '1']
    {"b":2}
    """
    return map_rows(lambda text, steps: _at(dump, text, steps), pa.string(), document, path)


@scalar("#>>(document JSON, path VARCHAR[]) -> VARCHAR", group=GROUP, takes_call=True)
def member_text_at(document: Value, path: Value, *, call: CallInfo) -> pa.Array:
    """The member at a path of keys and places, as text.

    >>> '{"a": ["x"]}'::JSON #>> ['a', '0']
    x
    """
    return map_rows(lambda text, steps: _at(as_text, text, steps), pa.string(), document, path)


def _at(run: Callable[[Any], Any], text: str, steps: Sequence[str | None]) -> Any:
    """``run`` of the member at steps that are texts: a place where an array stands, a key where an object does."""
    value = load(text)
    for step in steps:
        is_place = isinstance(value, list) and step is not None and re.fullmatch("-?[0-9]+", step)
        value = follow(value, (int(step) if is_place else step,)) if step is not None else MISSING
        if value is MISSING:
            return None
    return run(value)


# --- by path text ----------------------------------------------------------------------------------------------------


def _by_path(run: Callable[[Any], Any], type: pa.DataType, document: Value, path: Value) -> pa.Array:
    def find(text: str, path: str) -> Any:
        found = follow(load(text), parse_path(path))
        return None if found is MISSING else run(found)

    return map_rows(find, type, document, path)


@scalar(
    "json_extract(document JSON, path VARCHAR) -> JSON", group=GROUP, origin="duckdb", aliases=("json_extract_path",)
)
@scalar("json_extract(document VARCHAR, path VARCHAR) -> JSON", group=GROUP, origin="duckdb")
@per_row
def json_extract(document: Value, path: Value) -> pa.Array:
    """The member at a path, as JSON. Goes row by row, as all JSON functions do.

    >>> json_extract('{"species": ["duck", "goose"]}', '$.species[0]')
    "duck"
    """
    return _by_path(dump, pa.string(), document, path)


@scalar("json_extract_string(document JSON, path VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb",
        aliases=("json_extract_path_text", "get_json_object"))  # fmt: skip
@scalar("json_extract_string(document VARCHAR, path VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb",
        aliases=("get_json_object",))  # fmt: skip
@per_row
def json_extract_string(document: Value, path: Value) -> pa.Array:
    """The member at a path, as text. Goes row by row, as all JSON functions do.

    >>> json_extract_string('{"species": ["duck", "goose"]}', '$.species[0]')
    duck
    """
    return _by_path(as_text, pa.string(), document, path)


@scalar("json_array_length(document JSON) -> BIGINT", group=GROUP, origin="duckdb")
@scalar("json_array_length(document VARCHAR) -> BIGINT", group=GROUP, origin="duckdb")
def json_array_length(document: pa.Array) -> pa.Array:
    """How many elements an array has; NULL of other values.

    >>> json_array_length('[1,2,3]')
    3
    """
    return map_distinct(
        lambda text: len(value) if isinstance(value := load(text), list) else None, pa.int64(), document
    )


def _kind(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case int():
            return "UBIGINT" if value >= 0 else "BIGINT"
        case float():
            return "DOUBLE"
        case str():
            return "VARCHAR"
        case list():
            return "ARRAY"
        case _:
            return "OBJECT"


@scalar("json_type(document JSON) -> VARCHAR", group=GROUP, origin="duckdb", aliases=("json_typeof",))
@scalar("json_type(document VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb", aliases=("json_typeof",))
def json_type(document: pa.Array) -> pa.Array:
    """The kind of a value.

    >>> json_type('{"a": 1.5}')
    OBJECT
    """
    return map_distinct(lambda text: _kind(load(text)), pa.string(), document)


@scalar("json_valid(document VARCHAR) -> BOOLEAN", group=GROUP, origin="duckdb")
def json_valid(document: pa.Array) -> pa.Array:
    """Whether a text is JSON.

    >>> json_valid('{a')
    false
    """
    return map_distinct(lambda text: _load_or_missing(text) is not MISSING, pa.bool_(), document)


# --- making ----------------------------------------------------------------------------------------------------------


def _written(values: Sequence[Value], types: Sequence[Type], rows: int) -> list[list[Any]]:
    return [json_values(as_array(value, rows), type) for value, type in zip(values, types, strict=True)]


@scalar(
    "to_json(value ANY) -> JSON", group=GROUP, origin="duckdb", strict=False, takes_call=True,
    aliases=("json_quote", "row_to_json"),
)
def to_json(value: Value, *, call: CallInfo) -> pa.Array:
    """The value as JSON; NULL is null.

    >>> to_json([1, 2])
    [1,2]
    """
    return pa.array([dump(item) for item in _written([value], call.types, call.rows)[0]], pa.string())


@scalar("json_array(values ANY...) -> JSON", group=GROUP, origin="duckdb", strict=False, takes_call=True,
        aliases=("json_build_array",))  # fmt: skip
def json_array(*values: Value, call: CallInfo) -> pa.Array:
    """The arguments as an array.

    >>> json_array(42, 'x', NULL)
    [42,"x",null]
    """
    if not values:
        return as_array(pa.scalar("[]"), call.rows)
    made = _written(values, call.types, call.rows)
    return pa.array([dump(list(row)) for row in zip(*made, strict=True)], pa.string())


@scalar("json_object(members ANY...) -> JSON", group=GROUP, origin="duckdb", strict=False, takes_call=True,
        aliases=("json_build_object",))  # fmt: skip
def json_object(*members: Value, call: CallInfo) -> pa.Array:
    """An object of keys and values in turn.

    >>> json_object('a', 1, 'b', 'x')
    {"a":1,"b":"x"}

    22023  a key that is NULL, or without a value
    """
    if len(members) % 2:
        raise InvalidParameter("json_object takes keys and values in turn")
    if not members:
        return as_array(pa.scalar("{}"), call.rows)
    made = _written(members, call.types, call.rows)
    texts = []
    for row in zip(*made, strict=True):
        if None in row[0::2]:
            raise InvalidParameter("null value not allowed for object key")
        texts.append(dump({str(key): value for key, value in zip(row[0::2], row[1::2])}))
    return pa.array(texts, pa.string())


@scalar("json_merge_patch(document JSON, patch JSON) -> JSON", group=GROUP, origin="duckdb")
@scalar("json_merge_patch(document VARCHAR, patch VARCHAR) -> JSON", group=GROUP, origin="duckdb")
@per_row
def json_merge_patch(document: Value, patch: Value) -> pa.Array:
    """The document with another's members put over its own; null takes one away (RFC 7396). Goes row by row.

    >>> json_merge_patch('{"a": 1}', '{"b": 2}')
    {"a":1,"b":2}
    """

    def merge(value: Any, patch: Any) -> Any:
        if not isinstance(patch, dict):
            return patch
        made = dict(value) if isinstance(value, dict) else {}
        for key, item in patch.items():
            if item is None:
                made.pop(key, None)
            else:
                made[key] = merge(made.get(key), item)
        return made

    return map_rows(lambda one, two: dump(merge(load(one), load(two))), pa.string(), *columns(document, patch))
