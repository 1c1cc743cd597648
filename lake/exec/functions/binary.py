"""Bytes: encodings, hashes, parts, and UUIDs."""

from __future__ import annotations

import hashlib
import zlib
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, InvalidText
from lake.exec.decimals import Value
from lake.exec.functions.columns import all_valid, columns, map_distinct, with_constants
from lake.exec.kernels import alphabets, views
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar

GROUP: Final = "bytes"


def _bytes_of(item: str | bytes) -> bytes:
    return item.encode() if isinstance(item, str) else item


# --- length and parts ------------------------------------------------------------------------------------------------


@scalar("byte_length(value BYTEA) -> BIGINT", group=GROUP, origin="lake")
@scalar("length(value BYTEA) -> BIGINT", group=GROUP)
@scalar("octet_length(value BYTEA) -> BIGINT", group=GROUP)
def byte_length(value: pa.Array) -> pa.Array:
    """How many bytes.

    >>> byte_length('\\x0102'::BYTEA)
    2
    """
    return pc.binary_length(value).cast(pa.int64())


@scalar("substr(value BYTEA, start BIGINT) -> BYTEA", group=GROUP, aliases=("substring",))
@scalar("substr(value BYTEA, start BIGINT, length BIGINT) -> BYTEA", group=GROUP, aliases=("substring",))
def substr_bytes(value: Value, start: Value, length: Value | None = None) -> pa.Array:
    """Bytes from a position on, counted from 1.

    >>> encode(substr('\\x010203'::BYTEA, 2, 1), 'hex')
    02
    """

    def run(column: pa.Array, start: int, length: int | None = None) -> pa.Array:
        begin = max(start - 1, 0)
        if length is not None and length < 0:
            raise InvalidParameter("negative substring length not allowed")
        end = None if length is None else max(start - 1 + length, begin)
        return pc.binary_slice(column, begin, end)

    given = (start,) if length is None else (start, length)
    return with_constants(run, pa.binary(), value, *given)


@scalar("strpos(value BYTEA, part BYTEA) -> INT", group=GROUP, aliases=("position",))
def strpos_bytes(value: Value, part: Value) -> pa.Array:
    """Where a part first stands, counted in bytes from 1; 0 where it does not.

    >>> position('\\x02'::BYTEA IN '\\x0102'::BYTEA)
    2
    """

    def run(column: pa.Array, part: bytes) -> pa.Array:
        return pc.add(pc.find_substring(column, part), pa.scalar(1, pa.int32())).cast(pa.int32())

    return with_constants(run, pa.int32(), value, part)


@scalar("||(a BYTEA, b BYTEA) -> BYTEA", group=GROUP)
def join_bytes(a: Value, b: Value) -> pa.Array:
    """Both as one.

    >>> encode('\\x01'::BYTEA || '\\x02'::BYTEA, 'hex')
    0102
    """
    return pc.binary_join_element_wise(a, b, pa.scalar(b""))


# --- encodings -------------------------------------------------------------------------------------------------------

def _escaped(item: bytes) -> str:
    return "".join("\\\\" if byte == 92 else chr(byte) if 0 < byte < 128 else f"\\{byte:03o}" for byte in item)


def _as_bytes(value: pa.Array) -> pa.Array:
    return value.cast(pa.binary())


def _decode(text: pa.Array, form: str) -> pa.Array:
    """The bytes of texts in hex or base 64, where spaces between digits count for nothing.

    22P02  a text that is neither
    """
    read = alphabets.from_hex if form == "hex" else alphabets.from_base64
    found = read(text)
    if found is None and form == "hex":
        found = read(pc.replace_substring_regex(text, r"\s", ""))
    if found is None:
        bad = next(item for item in text.to_pylist() if item is not None and read(pa.array([item])) is None)
        raise InvalidText(f'invalid {form} text: "{bad}"')
    return found


@scalar("encode(value STRING, form VARCHAR) -> VARCHAR", group=GROUP)
@scalar("encode(value BYTEA, form VARCHAR) -> VARCHAR", group=GROUP)
@per_row
def encode(value: Value, form: Value) -> pa.Array:
    """Bytes as text: hex, base64 (without =), base64pad or escape.

    Only ``escape`` goes row by row: it is Postgres's form for bytes that are nearly all text, and rarely asked for.

    >>> encode('hello', 'base64pad')
    aGVsbG8=

    22023  another form
    """

    def run(column: pa.Array, form: str) -> pa.Array:
        match form.lower():
            case "hex":
                return alphabets.to_hex(column)
            case "base64" | "base64pad" as name:
                return alphabets.to_base64(column, is_padded=name == "base64pad")
            case "escape":
                return map_distinct(_escaped, pa.string(), _as_bytes(column))
        raise InvalidParameter(f'unrecognized encoding: "{form}"', hint="hex, base64, base64pad and escape are known.")

    return with_constants(run, pa.string(), value, form)


@scalar("decode(text STRING, form VARCHAR) -> BYTEA", group=GROUP)
@scalar("decode(text BYTEA, form VARCHAR) -> BYTEA", group=GROUP)
def decode(text: Value, form: Value) -> pa.Array:
    """The bytes of a text: hex or base64.

    >>> decode('68656c6c6f', 'hex')::VARCHAR
    hello

    22023  another form     22P02  a text that is not of that form
    """

    def run(column: pa.Array, form: str) -> pa.Array:
        if form.lower() not in ("hex", "base64", "base64pad"):
            raise InvalidParameter(f'unrecognized encoding: "{form}"', hint="hex, base64 and base64pad are known.")
        return _decode(column.cast(pa.string()), form.lower())

    return with_constants(run, pa.binary(), text, form)


@scalar("to_base64(value BYTEA) -> VARCHAR", group=GROUP, origin="duckdb", aliases=("base64",))
def to_base64(value: pa.Array) -> pa.Array:
    """Bytes in base 64.

    >>> to_base64('A'::BYTEA)
    QQ==
    """
    return alphabets.to_base64(value, is_padded=True)


@scalar("from_base64(text VARCHAR) -> BYTEA", group=GROUP, origin="duckdb", aliases=("unbase64",))
def from_base64(text: pa.Array) -> pa.Array:
    """The bytes of a text in base 64.

    >>> from_base64('QQ==')::VARCHAR
    A
    """
    return _decode(text, "base64")


@scalar("hex(value BYTEA) -> VARCHAR", group=GROUP, origin="spark")
@scalar("hex(value VARCHAR) -> VARCHAR", group=GROUP, origin="spark")
def hex_(value: pa.Array) -> pa.Array:
    """Bytes in base 16, in upper case.

    >>> hex('AB')
    4142
    """
    return alphabets.to_hex(value, is_lower=False)


@scalar("hex(value BIGINT) -> VARCHAR", group=GROUP, origin="spark")
def hex_number(value: pa.Array) -> pa.Array:
    """A number in base 16, in upper case.

    >>> hex(255)
    FF
    """
    return alphabets.written(views.values_of(value), 16, value)


@scalar("unhex(text VARCHAR) -> BYTEA", group=GROUP, origin="spark", aliases=("from_hex",))
def unhex(text: pa.Array) -> pa.Array:
    """The bytes of a text in base 16.

    >>> unhex('4142')::VARCHAR
    AB
    """
    return _decode(padded_hex(text), "hex")


def padded_hex(text: pa.Array) -> pa.Array:
    """Texts of hex digits with a 0 before those of an odd number."""
    is_odd = pc.equal(pc.bit_wise_and(pc.binary_length(text), 1), 1)
    return pc.if_else(is_odd, pc.binary_join_element_wise("0", text, ""), text)


# --- hashes ----------------------------------------------------------------------------------------------------------


@per_row
def _hashed(name: str, value: pa.Array) -> pa.Array:
    """The hashes of a column. Goes row by row: hashlib takes one value at a time."""
    return map_distinct(lambda item: hashlib.new(name, _bytes_of(item)).digest(), pa.binary(), value)


@scalar("md5(value VARCHAR) -> VARCHAR", group=GROUP)
@scalar("md5(value BYTEA) -> VARCHAR", group=GROUP)
@per_row
def md5(value: pa.Array) -> pa.Array:
    """The MD5 hash in hexadecimal digits. Goes row by row: hashlib takes one value at a time.

    >>> md5('foo')
    acbd18db4cc2f85cedef654fccc4a4d8
    """
    return map_distinct(lambda item: hashlib.md5(_bytes_of(item)).hexdigest(), pa.string(), value)


@scalar("sha1(value VARCHAR) -> VARCHAR", group=GROUP, origin="spark", aliases=("sha",))
@scalar("sha1(value BYTEA) -> VARCHAR", group=GROUP, origin="spark", aliases=("sha",))
@per_row
def sha1(value: pa.Array) -> pa.Array:
    """The SHA-1 hash in hexadecimal digits. Goes row by row: hashlib takes one value at a time.

    >>> sha1('foo')
    0beec7b5ea3f0fdbc95d0dd47f3c5bc275da8a33
    """
    return map_distinct(lambda item: hashlib.sha1(_bytes_of(item)).hexdigest(), pa.string(), value)


def _register_hash(name: str, answer: str) -> None:
    """A SHA-2 function that answers bytes."""

    def function(value: pa.Array) -> pa.Array:
        return _hashed(name, value)

    function.__name__ = name
    text = f"The {name.upper()} hash. Goes row by row: hashlib takes one value at a time."
    function.__doc__ = f"{text}\n\n    >>> left(encode({name}('foo'), 'hex'), 8)\n    {answer}\n    "
    for kind in ("VARCHAR", "BYTEA"):
        scalar(f"{name}(value {kind}) -> BYTEA", group=GROUP)(per_row(function))


_register_hash("sha224", "0808f64e")
_register_hash("sha256", "2c26b46b")
_register_hash("sha384", "98c11ffd")
_register_hash("sha512", "f7fbba6e")


@scalar("sha2(value VARCHAR, bits INT) -> VARCHAR", group=GROUP, origin="spark")
@scalar("sha2(value BYTEA, bits INT) -> VARCHAR", group=GROUP, origin="spark")
@per_row
def sha2(value: Value, bits: Value) -> pa.Array:
    """The SHA-2 hash of so many bits, 0 for 256, in hexadecimal digits. Goes row by row: hashlib takes one value at a time.

    >>> left(sha2('foo', 256), 8)
    2c26b46b
    """

    def run(column: pa.Array, bits: int) -> pa.Array:
        size = bits or 256
        if size not in (224, 256, 384, 512):
            return pa.nulls(len(column), pa.string())
        return map_distinct(lambda item: hashlib.new(f"sha{size}", _bytes_of(item)).hexdigest(), pa.string(), column)

    return with_constants(run, pa.string(), value, bits)


@scalar("digest(value VARCHAR, algorithm VARCHAR) -> BYTEA", group=GROUP)
@scalar("digest(value BYTEA, algorithm VARCHAR) -> BYTEA", group=GROUP)
@per_row
def digest(value: Value, algorithm: Value) -> pa.Array:
    """The hash by an algorithm: md5, sha224, sha256, sha384, sha512, blake2s or blake2b.

    Goes row by row: hashlib takes one value at a time.

    >>> left(encode(digest('foo', 'sha256'), 'hex'), 8)
    2c26b46b
    """

    def run(column: pa.Array, name: str) -> pa.Array:
        if name.lower() not in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2s", "blake2b"):
            raise InvalidParameter(f'unrecognized algorithm: "{name}"')
        return _hashed(name.lower(), column)

    return with_constants(run, pa.binary(), value, algorithm)


@scalar("crc32(value VARCHAR) -> BIGINT", group=GROUP, origin="spark")
@scalar("crc32(value BYTEA) -> BIGINT", group=GROUP, origin="spark")
@per_row
def crc32(value: pa.Array) -> pa.Array:
    """The CRC-32 checksum. Goes row by row: zlib takes one value at a time.

    >>> crc32('Spark')
    1557323817
    """
    return map_distinct(lambda item: zlib.crc32(_bytes_of(item)), pa.int64(), value)


# --- UUIDs -----------------------------------------------------------------------------------------------------------


@scalar("uuid() -> VARCHAR", group=GROUP, volatility="volatile", takes_call=True, aliases=("gen_random_uuid",))
def uuid_(*, call: CallInfo) -> pa.Array:
    """A random UUID, another one in each row.

    >>> length(uuid())
    36
    """
    random = np.random.default_rng().integers(0, 256, (call.rows, 16), np.uint8)
    random[:, 6] = random[:, 6] & 0x0F | 0x40  # version 4
    random[:, 8] = random[:, 8] & 0x3F | 0x80  # the variant of RFC 9562
    digits = alphabets.LOWER_DIGITS[np.stack((random >> 4, random & 15), axis=2).reshape(-1, 32)]
    written = np.insert(digits, (8, 12, 16, 20), ord("-"), axis=1)
    return views.text_array(np.arange(0, 36 * call.rows + 1, 36, dtype=np.int32), written.reshape(-1), pa.string())


@scalar("get_bit(value BYTEA, place BIGINT) -> INT", group=GROUP, origin="postgres")
def get_bit(value: Value, place: Value) -> pa.Array:
    """A bit, counted from 0, the first byte's lowest first.

    >>> get_bit('\\x02'::BYTEA, 1)
    1
    """

    given, places = columns(value, place)
    offsets, characters = views.text_of(given)
    valid = all_valid(given, places)
    live = np.ones(len(given), np.bool_) if valid is None else valid == 1
    numbers, sizes = np.where(live, views.values_of(places), 0), np.diff(offsets).astype(np.int64)
    bad = np.flatnonzero(live & ((numbers < 0) | (numbers >= 8 * sizes)))
    if len(bad):
        raise InvalidParameter(f"index {numbers[bad[0]]} out of valid range, 0..{8 * sizes[bad[0]] - 1}")
    found = np.zeros(len(given), np.int32)
    found[live] = characters[(offsets[:-1] + numbers // 8)[live]] >> (numbers % 8)[live] & 1
    return views.to_array(found, pa.int32(), valid)
