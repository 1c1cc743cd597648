"""MESSAGES: what goes over the wire, as one table, and the encoder and decoder that read it.

    >>> encode("CommandComplete", "SELECT 1")
    b'C\\x00\\x00\\x00\\rSELECT 1\\x00'
    >>> decode("f", "Q", b"SELECT 1\\x00")
    ('Query', {'text': 'SELECT 1'})

Kinds of fields:

    i16 i32     big-endian integers             str     text that ends with a zero byte
    byte        one byte, as a character        rest    the bytes that remain
    i8          one byte, as a number               strs    an i32 count, then as many texts
    i16[] i32[] an i16 count, then as many      value[] an i16 count, then i32 length (-1 for NULL) and bytes of each
    fields      (byte, str) pairs up to a zero byte: errors and notices
    columns     an i16 count, then the seven parts of each column of a row description

Source: PostgreSQL documentation, 55.7 (Message Formats).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lake.errors import LakeError, ProtocolViolation

FRONT: Final = "f"
BACK: Final = "b"


@dataclass(frozen=True, slots=True)
class Message:
    """A row of MESSAGES: who sends it (``f`` the client, ``b`` the server), its tag, and (name, kind) of its fields."""

    name: str
    sender: str
    tag: str
    fields: tuple[tuple[str, str], ...] = ()


MESSAGES: Final[tuple[Message, ...]] = (
    Message("Query", FRONT, "Q", (("text", "str"),)),
    Message("Parse", FRONT, "P", (("statement", "str"), ("text", "str"), ("oids", "i32[]"))),
    Message("Bind", FRONT, "B", (("portal", "str"), ("statement", "str"), ("formats", "i16[]"), ("values", "value[]"),
                                 ("results", "i16[]"))),
    Message("Describe", FRONT, "D", (("kind", "byte"), ("name", "str"))),
    Message("Execute", FRONT, "E", (("portal", "str"), ("rows", "i32"))),
    Message("Close", FRONT, "C", (("kind", "byte"), ("name", "str"))),
    Message("Flush", FRONT, "H"),
    Message("Sync", FRONT, "S"),
    Message("Terminate", FRONT, "X"),
    Message("Password", FRONT, "p", (("body", "rest"),)),
    Message("CopyData", FRONT, "d", (("body", "rest"),)),
    Message("CopyDone", FRONT, "c"),
    Message("CopyFail", FRONT, "f", (("reason", "str"),)),
    Message("FunctionCall", FRONT, "F", (("body", "rest"),)),
    Message("Authentication", BACK, "R", (("code", "i32"), ("body", "rest"))),
    Message("NegotiateProtocolVersion", BACK, "v", (("minor", "i32"), ("options", "strs"))),
    Message("BackendKeyData", BACK, "K", (("pid", "i32"), ("secret", "i32"))),
    Message("ParameterStatus", BACK, "S", (("name", "str"), ("value", "str"))),
    Message("ReadyForQuery", BACK, "Z", (("status", "byte"),)),
    Message("RowDescription", BACK, "T", (("columns", "columns"),)),
    Message("CommandComplete", BACK, "C", (("tag", "str"),)),
    Message("EmptyQueryResponse", BACK, "I"),
    Message("ErrorResponse", BACK, "E", (("fields", "fields"),)),
    Message("NoticeResponse", BACK, "N", (("fields", "fields"),)),
    Message("ParseComplete", BACK, "1"),
    Message("BindComplete", BACK, "2"),
    Message("CloseComplete", BACK, "3"),
    Message("NoData", BACK, "n"),
    Message("ParameterDescription", BACK, "t", (("oids", "i32[]"),)),
    Message("PortalSuspended", BACK, "s"),
    Message("CopyInResponse", BACK, "G", (("format", "i8"), ("columns", "i16[]"))),
    Message("CopyOutResponse", BACK, "H", (("format", "i8"), ("columns", "i16[]"))),
    Message("CopyData out", BACK, "d", (("body", "rest"),)),
    Message("CopyDone out", BACK, "c"),
    Message("DataRow", BACK, "D", (("values", "value[]"),)),
)

_BY_NAME: Final = {message.name: message for message in MESSAGES}
_BY_TAG: Final = {(message.sender, message.tag): message for message in MESSAGES}
_I16, _U16, _I32, _COLUMN = struct.Struct("!h"), struct.Struct("!H"), struct.Struct("!i"), struct.Struct("!ihihih")


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a row description: type oid and size, modifier, and format 0 (text) or 1 (binary)."""

    name: str
    oid: int
    size: int
    modifier: int = -1
    format: int = 0
    table: int = 0
    place: int = 0


def encode(name: str, *values: Any) -> bytes:
    """The bytes of a message whose fields have these values, in the order of the table."""
    message = _BY_NAME[name]
    body = b"".join([_ENCODERS[kind](value) for (_, kind), value in zip(message.fields, values, strict=True)])
    return message.tag.encode() + _I32.pack(len(body) + 4) + body


def decode(sender: str, tag: str, body: bytes) -> tuple[str, dict[str, Any]]:
    """The name of a message and its fields.

    08P01  an unknown tag, or a body that is not of its form
    """
    message = _BY_TAG.get((sender, tag))
    if message is None:
        raise ProtocolViolation(f"invalid frontend message type {ord(tag)}")
    reader = Reader(body)
    try:
        fields = {name: _DECODERS[kind](reader) for name, kind in message.fields}
    except (struct.error, IndexError, UnicodeDecodeError):
        raise ProtocolViolation(f"invalid {message.name} message") from None
    if reader.place != len(body):
        raise ProtocolViolation(f"invalid {message.name} message: {len(body) - reader.place} bytes too many")
    return message.name, fields


class Reader:
    """A place in bytes; reading past the end is an IndexError or a struct.error."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.place = 0

    def number(self, form: struct.Struct) -> int:
        """The integer there."""
        (value,) = form.unpack_from(self.body, self.place)
        self.place += form.size
        return int(value)

    def text(self) -> str:
        """The text up to a zero byte."""
        end = self.body.find(b"\x00", self.place)
        if end < 0:
            raise IndexError
        value = self.body[self.place : end].decode()
        self.place = end + 1
        return value

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        value = self.body[self.place : self.place + size]
        if size < 0 or len(value) != size:
            raise IndexError
        self.place += size
        return value

    def count(self, size: int) -> int:
        """A count of things of at least ``size`` bytes that the rest of the body can hold."""
        value = self.number(_U16)
        if value * size > len(self.body) - self.place:
            raise IndexError
        return value

    def value(self) -> bytes | None:
        """A length and as many bytes; None for NULL."""
        size = self.number(_I32)
        return None if size == -1 else self.take(size)


def _decode_list(reader: Reader, size: int, read: Callable[[Reader], Any]) -> list[Any]:
    return [read(reader) for _ in range(reader.count(size))]


def _decode_pairs(reader: Reader) -> dict[str, str]:
    pairs = {}
    while (code := reader.take(1)) != b"\x00":
        pairs[code.decode("latin-1")] = reader.text()
    return pairs


def _decode_column(reader: Reader) -> Field:
    name = reader.text()
    table, place, oid, size, modifier, format = _COLUMN.unpack(reader.take(_COLUMN.size))
    return Field(name, oid, size, modifier, format, table, place)


def _zero_ended(value: str) -> bytes:
    return value.replace("\x00", "").encode("utf-8", "replace") + b"\x00"


def _encode_value(value: bytes | None) -> bytes:
    return _I32.pack(-1) if value is None else _I32.pack(len(value)) + value


def _encode_pairs(pairs: Mapping[str, str]) -> bytes:
    return b"".join(code.encode() + _zero_ended(text) for code, text in pairs.items()) + b"\x00"


def _encode_columns(columns: Sequence[Field]) -> bytes:
    parts = [_U16.pack(len(columns))]
    for column in columns:
        parts.append(_zero_ended(column.name))
        parts.append(
            _COLUMN.pack(column.table, column.place, column.oid, column.size, column.modifier, column.format)
        )
    return b"".join(parts)


# How a field of each kind is read and written.
_DECODERS: Final[Mapping[str, Callable[[Reader], Any]]] = {
    "i32": lambda reader: reader.number(_I32),
    "i16": lambda reader: reader.number(_I16),
    "i8": lambda reader: reader.take(1)[0],
    "byte": lambda reader: reader.take(1).decode("latin-1"),
    "str": Reader.text,
    "rest": lambda reader: reader.take(len(reader.body) - reader.place),
    "i16[]": lambda reader: _decode_list(reader, 2, lambda each: each.number(_I16)),
    "i32[]": lambda reader: _decode_list(reader, 4, lambda each: each.number(_I32)),
    "value[]": lambda reader: _decode_list(reader, 4, Reader.value),
    "strs": lambda reader: [reader.text() for _ in range(reader.number(_I32))],
    "fields": _decode_pairs,
    "columns": lambda reader: _decode_list(reader, 19, _decode_column),
}
_ENCODERS: Final[Mapping[str, Callable[[Any], bytes]]] = {
    "i32": _I32.pack,
    "i16": _I16.pack,
    "i8": lambda value: bytes((value,)),
    "byte": lambda value: str(value).encode("latin-1"),
    "str": _zero_ended,
    "rest": bytes,
    "i16[]": lambda items: _U16.pack(len(items)) + b"".join([_I16.pack(item) for item in items]),
    "i32[]": lambda items: _U16.pack(len(items)) + b"".join([_I32.pack(item) for item in items]),
    "value[]": lambda items: _U16.pack(len(items)) + b"".join([_encode_value(item) for item in items]),
    "strs": lambda items: _I32.pack(len(items)) + b"".join([_zero_ended(item) for item in items]),
    "fields": _encode_pairs,
    "columns": _encode_columns,
}

ABOUT: Final = {"schema": "s", "table": "t", "column": "c", "constraint": "n", "routine": "R"}


def error_fields(error: LakeError, *, fatal: bool = False) -> dict[str, str]:
    """What ErrorResponse tells of an error, the names of what it is about too. Source: 55.8 (Error and Notice Fields)."""
    severity = "FATAL" if fatal else "ERROR"
    fields = {"S": severity, "V": severity, "C": error.sqlstate, "M": error.message or "unknown error"}
    position = None if error.position is None else str(error.position)
    for code, text in (("D", error.detail), ("H", error.hint), ("P", position)):
        if text:
            fields[code] = text
    return fields | {code: error.about[name] for name, code in ABOUT.items() if error.about.get(name)}
