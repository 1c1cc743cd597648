"""JSON text: reading it, kinds, and making it; ``json_members`` finds what is inside.

A path is keys and places one after the other (``json_get(doc, 'a', 0)``, places from 0), or one text: ``$.a[0]``, ``/a/0``
or a key alone. A missing path gives NULL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import orjson
import pyarrow as pa

from lake.errors import InvalidParameter, InvalidText
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.collecting import json_values
from lake.exec.functions.columns import columns, map_distinct, map_rows
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar
from lake.types import Type

GROUP: Final = "json"
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


def load_or_missing(text: str) -> Any:
    """The value of a JSON text, MISSING of another text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return MISSING


# --- kinds -----------------------------------------------------------------------------------------------------------


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
@per_row
def json_type(document: pa.Array) -> pa.Array:
    """The kind of a value. Goes row by row: a document is read whole, by orjson, one at a time.

    >>> json_type('{"a": 1.5}')
    OBJECT
    """
    return map_distinct(lambda text: _kind(load(text)), pa.string(), document)


@scalar("json_valid(document VARCHAR) -> BOOLEAN", group=GROUP, origin="duckdb")
@per_row
def json_valid(document: pa.Array) -> pa.Array:
    """Whether a text is JSON. Goes row by row: a document is read whole, by orjson, one at a time.

    >>> json_valid('{a')
    false
    """
    return map_distinct(lambda text: load_or_missing(text) is not MISSING, pa.bool_(), document)


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
