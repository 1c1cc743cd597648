"""COPY in the binary format: rows to tuples, tuples to columns, a column at a time.

    PGCOPY\\n\\377\\r\\n\\0 | flags (int32) | extension (int32) | tuples | -1 (int16)

Source: PostgreSQL documentation, COPY, Binary Format.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.db.write.incoming import Incoming
from lake.doors.postgres.binary import DAYS_TO_2000, MICROS_TO_2000
from lake.doors.postgres.parameters import numeric_value, plain_value
from lake.errors import BadCopyData, InvalidBinary, NumericOutOfRange
from lake.exec.cast import cast
from lake.exec.kernels import views
from lake.exec.kernels.tuples import (
    ENDED,
    WRONG_COUNT,
    WRONG_LENGTH,
    find_fields,
    gather_bytes,
    gather_fixed,
    scaled_numerics,
)
from lake.exec.per_row import per_row
from lake.rows import physical_array
from lake.types import (
    TEXT,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Integer,
    Interval,
    Json,
    List,
    Map,
    Oid,
    Struct,
    Text,
    Time,
    Timestamp,
    Type,
    Uuid,
    pg_oid,
)

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\x00"
HEAD: Final = SIGNATURE + struct.pack("!ii", 0, 0)
END: Final = struct.pack("!h", -1)
_DASHES: Final = (8, 13, 18, 23)
_NUMBERS: Final[dict[int, str]] = {8: ">i2", 16: ">i2", 32: ">i4", 64: ">i8"}


def with_head(messages: bytes) -> bytes:
    """CopyData messages with the file's head in the first one, where Postgres has it and drivers look for it."""
    (size,) = struct.unpack_from("!i", messages, 1)
    return messages[:1] + struct.pack("!i", size + len(HEAD)) + HEAD + messages[5:]


class Tuples:
    """The tuples of a COPY FROM STDIN as they come, as columns of a table.

    names, types   the columns, in the order of a tuple's fields
    """

    def __init__(self, names: Sequence[str], types: Sequence[Type]) -> None:
        self._names, self._types = names, types
        self._rest = b""
        self._is_begun = self._is_ended = False

    def columns(self, received: bytes) -> Incoming | None:
        """The whole tuples of what came; what is left waits for more.

        22P04  what is no file of this format, or another number of fields      22P03  a field that is no value of its type
        """
        body = self._rest + received
        if not self._is_begun:
            if len(body) < len(HEAD):
                self._rest = body
                return None
            body = self._after_head(body)
        if self._is_ended and body:
            raise BadCopyData("received copy data after EOF marker")
        width = len(self._names)
        rows_max = len(body) // (2 + 4 * width) + 1
        starts, lengths = np.empty((width, rows_max), np.int64), np.empty((width, rows_max), np.int32)
        marks = np.zeros(2, np.int64)
        data = views.buffer_view(pa.py_buffer(body), np.uint8, len(body))
        rows = int(find_fields(data, starts, lengths, marks))
        self._check(body, marks)
        self._rest = body[marks[0] :]
        arrays = {
            name: physical_array(_Fields(data, starts[place, :rows], lengths[place, :rows], name).column(type), type)
            for place, (name, type) in enumerate(zip(self._names, self._types, strict=True))
        }
        return Incoming(rows, arrays, dict(zip(self._names, self._types, strict=True)))

    def finish(self) -> None:
        """22P04 where the last tuple is cut off, or nothing came at all."""
        if self._rest or not self._is_begun:
            raise BadCopyData("unexpected EOF in COPY data")

    def _after_head(self, body: bytes) -> bytes:
        flags, extension = struct.unpack_from("!ii", body, len(SIGNATURE))
        if not body.startswith(SIGNATURE):
            raise BadCopyData("COPY file signature not recognized")
        if flags or extension:
            raise BadCopyData("unrecognized critical flags in COPY file header")
        self._is_begun = True
        return body[len(HEAD) :]

    def _check(self, body: bytes, marks: Any) -> None:
        place, state = int(marks[0]), int(marks[1])
        if state == WRONG_COUNT:
            (count,) = struct.unpack_from("!h", body, place)
            raise BadCopyData(f"row field count is {count}, expected {len(self._names)}")
        if state == WRONG_LENGTH:
            raise BadCopyData("invalid field size")
        self._is_ended = state == ENDED
        if self._is_ended and place < len(body):
            raise BadCopyData("received copy data after EOF marker")


class _Fields:
    """The fields of one column: where they lie in the body, and how long they are."""

    def __init__(self, body: Any, starts: Any, lengths: Any, name: str) -> None:
        self._body, self._starts, self._lengths, self._name = body, starts, lengths, name
        self._is_null = lengths < 0

    def column(self, type: Type) -> pa.Array:
        """The values, in an Arrow type that holds them."""
        match type:
            case Uuid():
                return self._uuids()
            case Text() | Json():
                return self._texts()
            case Bytes():
                return self._bytes()
            case Boolean():
                return self._array(self._fixed("u1") != 0)
            case Oid():
                return self._array(self._fixed(">u4").astype(np.int64))
            case Integer(bits):
                return self._integers(bits)
            case Float(bits):
                return self._array(self._fixed(f">f{bits // 8}").astype(f"f{bits // 8}"))
            case Date():
                return self._array(self._fixed(">i4").astype(np.int32) + np.int32(DAYS_TO_2000)).cast(type.arrow)
            case Time():
                return self._array(self._fixed(">i8").astype(np.int64)).cast(type.arrow)
            case Timestamp():
                return self._array(self._fixed(">i8").astype(np.int64) + MICROS_TO_2000).cast(type.arrow)
            case Interval():
                return self._intervals()
            case Decimal() if type.is_short:
                return self._numerics(type)
            case Decimal() | List():
                return self._one_by_one(type)
            case Struct() | Map():
                return cast(self._texts(), TEXT, type)
            case _:
                raise AssertionError(type)

    def _array(self, values: Any) -> pa.Array:
        return pa.array(values, mask=self._is_null if self._is_null.any() else None)

    def _fixed(self, form: str) -> Any:
        wanted = np.dtype(form)
        made = np.empty((len(self._starts), wanted.itemsize), np.uint8)
        wrong = int(gather_fixed(self._body, self._starts, self._lengths, made))
        if wrong >= 0:
            raise self._refused(wrong)
        return made.view(wanted).reshape(-1)

    def _integers(self, bits: int) -> pa.Array:
        values = self._fixed(_NUMBERS[bits])
        if bits == 8 and len(values) and (values.min() < -128 or values.max() > 127):
            raise NumericOutOfRange(f'column "{self._name}": a value is out of range for type tinyint')
        return self._array(values.astype(f"i{bits // 8}"))

    def _bytes(self) -> pa.Array:
        sizes = np.maximum(self._lengths, 0)
        offsets = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(sizes, out=offsets[1:])
        made = np.empty(int(offsets[-1]), np.uint8)
        gather_bytes(self._body, self._starts, self._lengths, offsets[:-1], made)
        valid = pa.array(~self._is_null).buffers()[1] if self._is_null.any() else None
        return pa.Array.from_buffers(pa.binary(), len(sizes), [valid, pa.py_buffer(offsets), pa.py_buffer(made)])

    def _texts(self) -> pa.Array:
        try:
            return self._bytes().cast(pa.string())
        except pa.ArrowInvalid:
            raise BadCopyData(f'invalid byte sequence for encoding "UTF8" in column "{self._name}"') from None

    def _uuids(self) -> pa.Array:
        digits = np.frombuffer(self._fixed("V16").tobytes().hex().encode(), np.uint8).reshape(-1, 32)
        made = np.full((len(digits), 36), ord("-"), np.uint8)
        made[:, [place for place in range(36) if place not in _DASHES]] = digits
        offsets = np.arange(len(digits) + 1, dtype=np.int32) * 36
        valid = pa.array(~self._is_null).buffers()[1] if self._is_null.any() else None
        return pa.Array.from_buffers(pa.string(), len(digits), [valid, pa.py_buffer(offsets), pa.py_buffer(made)])

    def _intervals(self) -> pa.Array:
        sent = self._fixed("V16").view([("micros", ">i8"), ("days", ">i4"), ("months", ">i4")])
        made = np.empty(len(sent), [("months", "i4"), ("days", "i4"), ("nanos", "i8")])
        made["months"], made["days"], made["nanos"] = sent["months"], sent["days"], sent["micros"] * 1_000
        valid = pa.array(~self._is_null).buffers()[1] if self._is_null.any() else None
        return pa.Array.from_buffers(pa.month_day_nano_interval(), len(made), [valid, pa.py_buffer(made.view(np.uint8))])

    def _numerics(self, type: Decimal) -> pa.Array:
        made = np.empty(len(self._starts), np.int64)
        wrong = int(scaled_numerics(self._body, self._starts, self._lengths, type.scale, 10**type.precision, made))
        if wrong >= 0:
            value = self._value(wrong)
            raise NumericOutOfRange(
                f"numeric field overflow: {numeric_value(value)} does not fit {type}" if len(value) >= 8
                else f'incorrect binary data format in column "{self._name}"'
            )  # fmt: skip
        return self._array(made).view(type.physical) if pa.types.is_decimal(type.physical) else self._array(made)

    def _value(self, row: int) -> bytes:
        start = int(self._starts[row])
        return bytes(self._body[start : start + max(int(self._lengths[row]), 0)])

    @per_row
    def _one_by_one(self, type: Type) -> pa.Array:
        """Arrays and wide decimals are read row by row: their parts have lengths of their own."""
        oid = pg_oid(type)
        try:
            values = [None if none else plain_value(self._value(row), oid) for row, none in enumerate(self._is_null)]
            return pa.array(values, type.arrow)
        except (struct.error, IndexError, ValueError, pa.ArrowInvalid):
            raise InvalidBinary(f'incorrect binary data format in column "{self._name}"') from None

    def _refused(self, row: int) -> InvalidBinary:
        return InvalidBinary(f'incorrect binary data format in column "{self._name}": {int(self._lengths[row])} bytes')
