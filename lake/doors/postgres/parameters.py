"""Values of bound parameters: from the wire, in text or binary, to what the binder takes.

    >>> decode_parameter(b"\\x00\\x07", 21, 1)
    Argument(value=7, type=None)

A parameter without a type (oid 0), and any text, is a string constant: beside a typed neighbour it is read as its type.
Integers come as BIGINT constants and numerics with their own digits, so that a driver's choice of width changes nothing.
Source: PostgreSQL source, the ``*_recv`` functions of src/backend/utils/adt.
"""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal as PyDecimal
from decimal import InvalidOperation
from typing import Any, Final

from lake.db.prepared import Argument
from lake.doors.postgres.messages import Reader
from lake.errors import DatetimeOverflow, FeatureNotSupported, InvalidText, ProtocolViolation
from lake.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL_PG_ARRAY_OID,
    DECIMAL_PG_OID,
    DOUBLE,
    INT,
    INTERVAL,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    List,
    Type,
    names_of,
)

UNKNOWN_OIDS: Final = frozenset((0, 705))
TEXT_OIDS: Final = frozenset((25, 1043, 1042, 19, 18, 114, 142))
OID_OIDS: Final = frozenset((26, 2205, 2206, 24, 28, 2202, 4089))  # oid, regclass and the like travel as numbers
JSONB, UUID = 3802, 2950
_TYPED: Final = {
    names_of(type).pg_oid: type
    for type in (BOOLEAN, SMALLINT, INT, BIGINT, REAL, DOUBLE, BYTES, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL)
}
_ARRAYS: Final = {
    **{names_of(type).pg_array_oid: type for type in (*_TYPED.values(), TEXT)},
    1015: TEXT, 1003: TEXT, 1014: TEXT, 199: TEXT, 2951: TEXT, 1028: BIGINT,
}  # fmt: skip
_EPOCH: Final = datetime.datetime(2000, 1, 1)
_DAY: Final = datetime.date(2000, 1, 1)


def type_of_oid(oid: int) -> Type | None:
    """The type that a client declared for a parameter; None where it left it open, and of numerics."""
    if oid in UNKNOWN_OIDS or oid in (DECIMAL_PG_OID, DECIMAL_PG_ARRAY_OID):
        return None
    if oid in _TYPED:
        return _TYPED[oid]
    if oid in _ARRAYS:
        return List(_ARRAYS[oid])
    return BIGINT if oid in OID_OIDS else TEXT


def decode_parameter(value: bytes | None, oid: int, format: int) -> Argument:
    """The argument that a Bind message gives.

    22P02  a text that is no value of its type      08P01  bytes that are none      0A000  a type that is not known
    """
    if value is None:
        type = type_of_oid(oid)
        return Argument(None, None if type == TEXT else type)
    try:
        if format == 0:
            return _from_text(value.decode(), oid)
        if format == 1:
            return _from_binary(value, oid)
    except UnicodeDecodeError:
        raise ProtocolViolation("invalid byte sequence for encoding UTF8 in a parameter") from None
    except (struct.error, IndexError, ValueError):
        raise ProtocolViolation(f"incorrect binary data format in a parameter of type {oid}") from None
    except OverflowError:
        raise DatetimeOverflow("date or timestamp parameter out of range") from None
    raise ProtocolViolation(f"unsupported format code: {format}")


def _from_text(text: str, oid: int) -> Argument:
    if oid in UNKNOWN_OIDS or oid in TEXT_OIDS:
        return Argument(text)
    if oid == DECIMAL_PG_OID:
        return Argument(_number(text))
    if oid == 17:
        return Argument(_bytes(text))
    type = type_of_oid(oid)
    if type in (SMALLINT, INT, BIGINT) and text.strip().lstrip("+-").isdigit():
        return Argument(int(text))
    return Argument(text, None if type == TEXT else type)


def _number(text: str) -> PyDecimal:
    try:
        return _finite(PyDecimal(text.strip()), text)
    except InvalidOperation:
        raise InvalidText(f'invalid input syntax for type numeric: "{text}"') from None


def _finite(value: PyDecimal, shown: str) -> PyDecimal:
    if not value.is_finite():
        raise FeatureNotSupported(f"numeric {shown} is not supported: decimals are finite")
    return value


def _bytes(text: str) -> bytes:
    """``\\x41`` or the older form with octal escapes."""
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise InvalidText('invalid hexadecimal data for type bytea') from None
    parts = text.encode().split(b"\\\\")
    pieces = []
    for part in parts:
        head, *escaped = part.split(b"\\")
        pieces.append(head + b"".join(bytes((int(item[:3], 8),)) + item[3:] for item in escaped))
    return b"\\".join(pieces)


def _from_binary(value: bytes, oid: int) -> Argument:
    if oid == DECIMAL_PG_ARRAY_OID or oid in _ARRAYS:
        items = _array(Reader(value))
        return Argument(items, List(_ARRAYS[oid]) if oid in _ARRAYS else None)
    return Argument(_binary(value, oid), TIMESTAMPTZ if oid == 1184 else None)


def _binary(value: bytes, oid: int) -> Any:
    known = _BINARY.get(oid)
    if known is not None:
        return known(value)
    if oid in OID_OIDS:
        return struct.unpack("!I", value)[0]
    if oid in UNKNOWN_OIDS or oid in TEXT_OIDS:
        return value.decode()
    raise FeatureNotSupported(f"binary parameters of type {oid} are not supported: send text")


def _array(reader: Reader) -> Any:
    """The items of an array as lists in lists, one level for each dimension."""
    dimensions = reader.number(_I32)
    reader.number(_I32)
    oid = reader.number(_U32)
    if not 0 <= dimensions <= 6:
        raise IndexError
    sizes = []
    for _ in range(dimensions):
        sizes.append(reader.number(_I32))
        reader.number(_I32)
    return _items(reader, sizes, oid) if sizes else []


def _items(reader: Reader, sizes: list[int], oid: int) -> list[Any]:
    if not 0 <= sizes[0] <= len(reader.body):
        raise IndexError
    if len(sizes) > 1:
        return [_items(reader, sizes[1:], oid) for _ in range(sizes[0])]
    values = (reader.value() for _ in range(sizes[0]))
    return [None if value is None else _binary(value, oid) for value in values]


def plain_value(value: bytes, oid: int) -> Any:
    """A binary value of a type as Python has it; struct.error, IndexError or ValueError where it is none."""
    if oid == DECIMAL_PG_ARRAY_OID or oid in _ARRAYS:
        return _array(Reader(value))
    return _binary(value, oid)


def numeric_value(value: bytes) -> PyDecimal:
    """A numeric from its digits in base 10,000; 0A000 where it is not finite."""
    count, weight, sign, scale = struct.unpack_from("!hhHH", value)
    groups = struct.unpack(f"!{count}h", value[8:])
    if sign not in (0, 0x4000):
        _finite(PyDecimal("NaN"), "NaN")
    number = PyDecimal(int("".join(f"{group:04}" for group in groups) or "0")).scaleb(4 * (weight - count + 1))
    number = number.quantize(PyDecimal(1).scaleb(-scale)) if scale < 30 else number
    return -number if sign else number


def _instant(value: bytes) -> datetime.datetime:
    return (_EPOCH + datetime.timedelta(microseconds=_I64.unpack(value)[0])).replace(tzinfo=datetime.UTC)


def _interval(value: bytes) -> Any:
    micros, days, months = struct.unpack("!qii", value)
    if months:
        raise FeatureNotSupported("binary intervals with months are not supported: send text")
    return datetime.timedelta(days=days, microseconds=micros)


def _time(value: bytes) -> datetime.time:
    return (_EPOCH + datetime.timedelta(microseconds=_I64.unpack(value)[0])).time()


_I32, _U32, _I64 = struct.Struct("!i"), struct.Struct("!I"), struct.Struct("!q")
_BINARY: Final[dict[int, Callable[[bytes], Any]]] = {
    16: lambda value: struct.unpack("!?", value)[0],
    17: bytes,
    20: lambda value: struct.unpack("!q", value)[0],
    21: lambda value: struct.unpack("!h", value)[0],
    23: lambda value: struct.unpack("!i", value)[0],
    700: lambda value: struct.unpack("!f", value)[0],
    701: lambda value: struct.unpack("!d", value)[0],
    1082: lambda value: _DAY + datetime.timedelta(days=_I32.unpack(value)[0]),
    1083: _time,
    1114: lambda value: _EPOCH + datetime.timedelta(microseconds=_I64.unpack(value)[0]),
    1184: _instant,
    1186: _interval,
    1700: numeric_value,
    JSONB: lambda value: value[1:].decode(),
    UUID: lambda value: str(uuid.UUID(bytes=value)),
}
