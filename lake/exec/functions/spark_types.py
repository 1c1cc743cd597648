"""Spark's names of types, its encodings, and variants, which are JSON here."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, InvalidText
from lake.exec.cast import cast
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import map_distinct, with_constants
from lake.exec.functions.json import dump, load
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar
from lake.types import JSON, Bytes, Date, Decimal, Float, Integer, List, Map, Null, Struct, Text, Timestamp, Type

GROUP: Final = "casts"
CHARSETS: Final = ("us-ascii", "iso-8859-1", "utf-8", "utf-16be", "utf-16le", "utf-16", "utf-32")


def spark_name(type: Type) -> str:
    """A type as Spark writes it."""
    match type:
        case Integer(bits=bits):
            return {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}[bits]
        case Float(bits=bits):
            return "float" if bits == 32 else "double"
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Text():
            return "string"
        case Bytes():
            return "binary"
        case Date():
            return "date"
        case Timestamp(zoned=zoned):
            return "timestamp" if zoned else "timestamp_ntz"
        case List(of):
            return f"array<{spark_name(of)}>"
        case Map():
            return f"map<{spark_name(type.key)},{spark_name(type.value)}>"
        case Struct(fields):
            return f"struct<{','.join(f'{name}:{spark_name(of)}' for name, of in fields)}>"
        case Null():
            return "void"
    return type.sql.lower()


@scalar("spark_typeof(value ANY) -> VARCHAR", group=GROUP, origin="spark", strict=False, takes_call=True)
def spark_typeof(value: Value, *, call: CallInfo) -> pa.Array:
    """The name of the value's type, as Spark writes it.

    >>> spark_typeof([1.5])
    array<decimal(2,1)>
    """
    return as_array(pa.scalar(spark_name(call.types[0])), call.rows)


# --- encodings -------------------------------------------------------------------------------------------------------


def _charset(name: str) -> str:
    """22023  a character set that is not known"""
    if name.lower() not in CHARSETS:
        raise InvalidParameter(f'unknown character set "{name}"', hint=f"{', '.join(CHARSETS)} are known.")
    return name.lower()


@scalar("spark_decode(value BYTEA, charset VARCHAR) -> VARCHAR", group="bytes", origin="spark")
@per_row
def spark_decode(value: Value, charset: Value) -> pa.Array:
    """The text that bytes are in a character set. Goes row by row: Python's codecs take one value at a time.

    >>> spark_decode(unhex('537061726B'), 'UTF-8')
    Spark

    22023  an unknown character set     22P02  bytes that are no text in it
    """

    def run(column: pa.Array, charset: str) -> pa.Array:
        name = _charset(charset)

        def decoded(item: bytes) -> str:
            try:
                return item.decode(name)
            except UnicodeDecodeError:
                raise InvalidText(f"invalid byte sequence for encoding {charset}") from None

        return map_distinct(decoded, pa.string(), column)

    return with_constants(run, pa.string(), value, charset)


@scalar("spark_encode(text VARCHAR, charset VARCHAR) -> BYTEA", group="bytes", origin="spark")
@per_row
def spark_encode(text: Value, charset: Value) -> pa.Array:
    """The bytes of a text in a character set. Goes row by row: Python's codecs take one value at a time.

    >>> hex(spark_encode('é', 'ISO-8859-1'))
    E9

    22023  an unknown character set     22P02  a character that it lacks
    """

    def run(column: pa.Array, charset: str) -> pa.Array:
        name = _charset(charset)

        def encoded(item: str) -> bytes:
            try:
                return item.encode(name)
            except UnicodeEncodeError:
                raise InvalidText(f'"{item}" has characters that {charset} lacks') from None

        return map_distinct(encoded, pa.binary(), column)

    return with_constants(run, pa.binary(), text, charset)


# --- variants --------------------------------------------------------------------------------------------------------


@scalar("to_variant_object(value ANY) -> JSON", group="json", origin="spark", takes_call=True)
def to_variant_object(value: Value, *, call: CallInfo) -> pa.Array:
    """A list, struct or map as a variant, which is JSON.

    >>> to_variant_object({a: 1, b: [2, 3]})
    {"a":1,"b":[2,3]}
    """
    return cast(as_array(value, call.rows), call.types[0], JSON, settings=call.settings)


@scalar("parse_json(text VARCHAR) -> JSON", group="json", origin="spark")
@per_row
def parse_json(text: pa.Array) -> pa.Array:
    """The JSON of a text. Goes row by row: a document is read whole, by orjson, one at a time.

    >>> parse_json('{"a": 1}')
    {"a":1}

    22P02  a text that is not JSON
    """
    return map_distinct(lambda item: dump(load(item)), pa.string(), text)


@scalar("try_parse_json(text VARCHAR) -> JSON", group="json", origin="spark")
@per_row
def try_parse_json(text: pa.Array) -> pa.Array:
    """The JSON of a text, NULL where it is none. Goes row by row: a document is read whole, by orjson, one at a time.

    >>> SELECT try_parse_json('{"a": 1}'), try_parse_json('{')
    {"a":1} | NULL
    """

    def read(item: str) -> Any:
        try:
            return dump(orjson.loads(item))
        except orjson.JSONDecodeError:
            return None

    return map_distinct(read, pa.string(), text)


@scalar("is_variant_null(value JSON) -> BOOLEAN", group="json", origin="spark", strict=False, takes_call=True)
def is_variant_null(value: Value, *, call: CallInfo) -> pa.Array:
    """Whether JSON is its null.

    >>> SELECT is_variant_null(parse_json('null')), is_variant_null(parse_json('1'))
    true | false
    """
    return pc.fill_null(pc.equal(as_array(value, call.rows), "null"), False)
