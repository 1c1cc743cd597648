"""Texts with a schema: JSON and CSV read into structs, and structs written as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import DatatypeMismatch, InvalidParameter, LakeError
from lake.exec.cast import cast
from lake.exec.cast_text import to_text
from lake.exec.constants import as_array, list_array, struct_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import map_distinct
from lake.exec.functions.json import MISSING, dump, follow, load, parse_path
from lake.exec.functions.lists import offsets_of
from lake.exec.functions.maps import made_map
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar
from lake.types import JSON, TEXT, Json, List, Map, Struct, Text, Type, parse_type_name

GROUP: Final = "json"


# --- schemas ---------------------------------------------------------------------------------------------------------


@lru_cache(200)
def parse_schema(text: str) -> Type:
    """The type that Spark's words for it mean: ``a INT, b ARRAY<STRING>``, ``STRUCT<a: INT>``, ``MAP<STRING, INT>``.

    22023  a schema that cannot be read
    """
    body = text.strip()
    try:
        return _one_type(body)
    except LakeError:
        return _fields(body, text)


def _one_type(text: str) -> Type:
    match = re.fullmatch(r"(\w+)\s*<(.*)>", text.strip(), re.DOTALL)
    if match is None:
        plain = re.fullmatch(r"(\w+)\s*(?:\(([\d\s,]+)\))?", text.strip())
        if plain is None:
            raise InvalidParameter(f'invalid schema "{text}"')
        name = {"string": "varchar", "binary": "bytea", "long": "bigint", "short": "smallint", "byte": "tinyint",
                "timestamp_ntz": "timestamp"}.get(plain[1].lower(), plain[1])  # fmt: skip
        numbers = tuple(int(part) for part in plain[2].split(",")) if plain[2] else ()
        return parse_type_name(name, numbers)
    head, body = match[1].lower(), match[2]
    if head == "array":
        return List(_one_type(body))
    if head == "map":
        key, value = _split(body)
        return Map(_one_type(key), _one_type(value))
    if head == "struct":
        return _fields(body, text)
    raise InvalidParameter(f'invalid schema "{text}"')


def _fields(body: str, text: str) -> Type:
    fields = []
    for part in _split(body):
        match = re.fullmatch(r"\s*(?:`([^`]+)`|(\w+))\s*(?::|\s)\s*(.+)", part, re.DOTALL)
        if match is None:
            raise InvalidParameter(f'invalid schema "{text}"')
        fields.append((match[1] or match[2], _one_type(match[3])))
    return Struct(tuple(fields))


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def structure_type(value: Any) -> Type:
    """The type that a JSON structure means: ``{"a": "INTEGER", "b": ["VARCHAR"]}``.

    22023  something else in it
    """
    match value:
        case str():
            return _one_type(value)
        case [item]:
            return List(structure_type(item))
        case dict() if value:
            return Struct(tuple((key, structure_type(item)) for key, item in value.items()))
    raise InvalidParameter("a JSON structure is an object, a list of one structure, or the name of a type")


def _constant(arguments: tuple[Any, ...], name: str) -> str:
    text = getattr(arguments[1], "value", None)
    if not isinstance(text, str):
        raise InvalidParameter(f"{name} takes a constant schema")
    return text


# --- reading ---------------------------------------------------------------------------------------------------------


def column_of(values: Sequence[Any], type: Type) -> pa.Array:
    """The column of values as JSON has them; NULL where a value is not of the type."""
    match type:
        case Struct(fields):
            there = np.array([isinstance(value, dict) for value in values], np.bool_)
            parts = [
                column_of([value.get(name) if isinstance(value, dict) else None for value in values], of)
                for name, of in fields
            ]
            return struct_array(parts, type, there)
        case List(of):
            known = [value if isinstance(value, list) else None for value in values]
            items = column_of([item for value in known if value is not None for item in value], of)
            counts = np.array([0 if value is None else len(value) for value in known], np.int64)
            valid = np.array([value is not None for value in known], np.uint8)
            return list_array(offsets_of(counts), items, valid)
        case Map(key, of):
            maps = [value if isinstance(value, dict) else None for value in values]
            pairs = [pair for value in maps if value is not None for pair in value.items()]
            counts = np.array([0 if value is None else len(value) for value in maps], np.int64)
            valid = np.array([value is not None for value in maps], np.uint8)
            keys = column_of([name for name, _ in pairs], key)
            return made_map(offsets_of(counts), keys, column_of([item for _, item in pairs], of), valid, type)
        case Json():
            return pa.array([None if value is None else dump(value) for value in values], JSON.physical)
    texts = pa.array([None if value is None else value if isinstance(value, str) else dump(value) for value in values],
                     pa.string())  # fmt: skip
    return texts if isinstance(type, Text) else cast(pc.utf8_trim_whitespace(texts), TEXT, type, is_try=True)


def _loaded(text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


@scalar("from_json(text VARCHAR, schema VARCHAR) -> ANY", group=GROUP, origin="spark", takes_call=True,
        literal_rule=lambda arguments: parse_schema(_constant(arguments, "from_json")))  # fmt: skip
@per_row
def from_json(text: Value, schema: Value, *, call: CallInfo) -> pa.Array:
    """The value of a JSON text in a schema; NULL where it is not JSON. Goes row by row: a document is a tree, not a column.

    >>> from_json('{"a":1, "b":0.8}', 'a INT, b DOUBLE')
    {a: 1, b: 0.8}

    22023  a schema that is not constant, or cannot be read
    """
    return column_of([_loaded(item) for item in as_array(text, call.rows).to_pylist()], call.returns)


@scalar("json_transform(document VARCHAR, structure VARCHAR) -> ANY", group=GROUP, origin="duckdb", takes_call=True,
        aliases=("from_json_structure",),
        literal_rule=lambda arguments: structure_type(load(_constant(arguments, "json_transform"))))  # fmt: skip
@per_row
def json_transform(document: Value, structure: Value, *, call: CallInfo) -> pa.Array:
    """The value of a JSON text in a structure. Goes row by row: a document is a tree, not a column.

    >>> json_transform('{"a": 1, "b": "x"}', '{"a": "INTEGER", "b": "VARCHAR"}')
    {a: 1, b: x}

    22023  a structure that is not constant, or cannot be read
    """
    return column_of([_loaded(item) for item in as_array(document, call.rows).to_pylist()], call.returns)


@scalar("from_csv(text VARCHAR, schema VARCHAR) -> ANY", group=GROUP, origin="spark", takes_call=True,
        literal_rule=lambda arguments: parse_schema(_constant(arguments, "from_csv")))  # fmt: skip
@per_row
def from_csv(text: Value, schema: Value, *, call: CallInfo) -> pa.Array:
    """The struct of a line of CSV in a schema. Goes row by row: each line is parsed on its own.

    >>> from_csv('1, 0.8', 'a INT, b DOUBLE')
    {a: 1, b: 0.8}

    22023  a schema that is not constant, or cannot be read     42804  a schema that is no struct
    """
    if not isinstance(call.returns, Struct):
        raise DatatypeMismatch("from_csv takes the schema of a struct")
    names = [name for name, _ in call.returns.fields]
    rows: list[dict[str, str] | None] = []
    for line in as_array(text, call.rows).to_pylist():
        fields = [] if line is None else next(csv.reader(io.StringIO(line), skipinitialspace=True), [])
        rows.append(None if line is None else dict(zip(names, fields)))
    return column_of(rows, call.returns)


@scalar("to_csv(value ANY) -> VARCHAR", group=GROUP, origin="spark", takes_call=True)
def to_csv(value: Value, *, call: CallInfo) -> pa.Array:
    """The fields of a struct as a line of CSV; NULLs are empty.

    >>> to_csv(named_struct('a', 1, 'b', 'x, y'))
    1,"x, y"

    42804  no struct
    """
    type = call.types[0]
    if not isinstance(type, Struct):
        raise DatatypeMismatch(f"to_csv takes a struct, not {type}")
    column = as_array(value, call.rows)
    texts = []
    for part, (_, of) in zip(column.flatten(), type.fields, strict=True):
        text = pc.fill_null(to_text(part, of) if not isinstance(of, Text) else part, "")
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")
        texts.append(pc.if_else(pc.match_substring_regex(text, '[",\n\r]'), quoted, text))
    joined = pc.binary_join_element_wise(*texts, ",")
    return pc.if_else(column.is_valid(), joined, pa.scalar(None, pa.string()))


# --- what a document is made of --------------------------------------------------------------------------------------


def _structure(value: Any) -> Any:
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
            made: Any = "NULL"
            for item in value:
                made = _merged(made, _structure(item))
            return [made]
    return {key: _structure(item) for key, item in value.items()}


def _merged(one: Any, two: Any) -> Any:
    """What takes both: numbers widen, objects have the keys of both, and what is not alike is JSON."""
    numbers = ("UBIGINT", "BIGINT", "DOUBLE")
    if one == two or two == "NULL":
        return one
    if one == "NULL":
        return two
    if one in numbers and two in numbers:
        return max(one, two, key=numbers.index)
    if isinstance(one, list) and isinstance(two, list):
        return [_merged(one[0], two[0])]
    if isinstance(one, dict) and isinstance(two, dict):
        return {key: _merged(one.get(key, "NULL"), two.get(key, "NULL")) for key in {**one, **two}}
    return "JSON"


@scalar("json_structure(document VARCHAR) -> JSON", group=GROUP, origin="duckdb")
@scalar("json_structure(document JSON) -> JSON", group=GROUP, origin="duckdb")
@per_row
def json_structure(document: pa.Array) -> pa.Array:
    """The types of a document's members. Goes row by row: a document is read whole, by orjson, one at a time.

    >>> json_structure('{"a": [1, -2], "b": "x"}')
    {"a":["BIGINT"],"b":"VARCHAR"}
    """
    return map_distinct(lambda text: dump(_structure(load(text))), pa.string(), document)


def _ddl(value: Any) -> str:
    match value:
        case list():
            return f"ARRAY<{_ddl(value[0])}>"
        case dict():
            return f"STRUCT<{', '.join(f'{key}: {_ddl(item)}' for key, item in sorted(value.items()))}>"
    return {"UBIGINT": "BIGINT", "VARCHAR": "STRING", "NULL": "STRING", "JSON": "STRING"}.get(value, value)  # type: ignore[no-any-return]


@scalar("schema_of_json(document VARCHAR) -> VARCHAR", group=GROUP, origin="spark")
@per_row
def schema_of_json(document: pa.Array) -> pa.Array:
    """The schema of a JSON text, in Spark's words. Goes row by row: a document is read whole, by orjson, one at a time.

    >>> schema_of_json('[{"col":0}]')
    ARRAY<STRUCT<col: BIGINT>>
    """
    return map_distinct(lambda text: _ddl(_structure(load(text))), pa.string(), document)


def _kind_at(text: str, path: str) -> str | None:
    member = follow(load(text), parse_path(path))
    if member is MISSING:
        return None
    found = _structure(member)
    return "ARRAY" if isinstance(found, list) else "OBJECT" if isinstance(found, dict) else found


@scalar("json_type(document VARCHAR, path VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb", takes_call=True)
@scalar("json_type(document JSON, path VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb", takes_call=True)
@per_row
def json_type_at(document: Value, path: Value, *, call: CallInfo) -> pa.Array:
    """The kind of the member at a path; NULL where there is none. Goes row by row: a document is a tree, not a column.

    >>> json_type('{"a": 1.5}', '$.a')
    DOUBLE
    """
    given = [as_array(value, call.rows).to_pylist() for value in (document, path)]
    return pa.array([None if None in row else _kind_at(*row) for row in zip(*given, strict=True)], pa.string())


