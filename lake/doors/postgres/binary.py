"""Columns in the binary format: what Postgres's send functions write.

Numbers are big-endian; dates and timestamps count from 2000-01-01; a numeric is its digits in base 10,000.
Source: PostgreSQL source, the ``*_send`` functions of src/backend/utils/adt.
"""

from __future__ import annotations

import struct
from decimal import Decimal as PyDecimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec import decimals
from lake.exec.cast import interval_parts
from lake.exec.kernels import views
from lake.exec.kernels.tuples import NUMERIC_BYTES_MAX, write_numerics
from lake.exec.per_row import per_row
from lake.rows import physical_array
from lake.types import (
    DECIMAL_INT64_DIGITS_MAX,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Integer,
    Interval,
    Json,
    List,
    Null,
    Oid,
    Text,
    Time,
    Timestamp,
    Type,
    Uuid,
    pg_oid,
)

DAYS_TO_2000: Final = 10_957
MICROS_TO_2000: Final = DAYS_TO_2000 * 86_400_000_000
GROUP: Final = 10_000  # of a numeric's digits
_HEAD: Final = struct.Struct("!hhHh")


def binary_column(column: pa.Array, type: Type) -> pa.Array:
    """A column of ``type.arrow`` as binary; NULLs stay."""
    match type:
        case Null():
            return pa.nulls(len(column), pa.binary())
        case Uuid():
            return _fixed(column, _uuid_bytes(column))
        case Text() | Json() | Bytes():
            return column.cast(pa.binary())
        case Boolean():
            return _fixed(column, column.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False))
        case Oid():
            return _fixed(column, views.values_of(column).astype(">u4"))
        case Integer(bits):
            return _fixed(column, views.values_of(column).astype({8: ">i2", 16: ">i2", 32: ">i4", 64: ">i8"}[bits]))
        case Float(bits):
            return _fixed(column, views.values_of(column).astype(">f4" if bits == 32 else ">f8"))
        case Date():
            return _fixed(column, (views.values_of(column) - DAYS_TO_2000).astype(">i4"))
        case Time():
            return _fixed(column, views.values_of(column).astype(">i8"))
        case Timestamp():
            return _fixed(column, (views.values_of(column).astype(np.int64) - MICROS_TO_2000).astype(">i8"))
        case Interval():
            return _intervals(column)
        case Decimal() if type.is_short:
            return _numerics(physical_array(column, type), type.scale)
        case Decimal():
            return _wide_numerics(column, type)
        case List(of):
            return _arrays(column, of)
        case _:
            raise AssertionError(type)


def size_of(type: Type) -> int:
    """The size of a value in binary, -1 where it varies: ``typlen`` of a row description."""
    match type:
        case Boolean():
            return 1
        case Oid():
            return 4
        case Integer(bits):
            return max(2, bits // 8)
        case Float(bits):
            return bits // 8
        case Date():
            return 4
        case Time() | Timestamp():
            return 8
        case Interval():
            return 16
        case _:
            return -1


def _fixed(column: pa.Array, values: Any) -> pa.Array:
    """Values of one size as binary, with the NULLs of ``column``."""
    size = values.dtype.itemsize * (values.shape[1] if values.ndim == 2 else 1)
    offsets = np.arange(len(column) + 1, dtype=np.int32) * size
    buffers = [pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values).view(np.uint8))]
    return _with_nulls(pa.Array.from_buffers(pa.binary(), len(column), [None, *buffers]), column)


def _uuid_bytes(column: pa.Array) -> Any:
    """uint8[rows, 16]: the bytes that the digits of UUIDs write."""
    digits = pc.replace_substring(column.fill_null("0" * 32), "-", "")
    codes = np.frombuffer(pa.concat_arrays([digits]).buffers()[2], np.uint8)[: 32 * len(digits)].reshape(-1, 32)
    values = np.where(codes >= ord("a"), codes - (ord("a") - 10), codes - ord("0")).astype(np.uint8)
    return values[:, 0::2] << 4 | values[:, 1::2]


def _with_nulls(made: pa.Array, column: pa.Array) -> pa.Array:
    if not column.null_count:
        return made
    return pc.if_else(column.is_valid(), made, pa.scalar(None, pa.binary()))


def _intervals(column: pa.Array) -> pa.Array:
    """Microseconds, days, months."""
    months, days, nanoseconds = interval_parts(column)
    parts = np.empty(len(column), np.dtype([("micros", ">i8"), ("days", ">i4"), ("months", ">i4")]))
    parts["micros"] = nanoseconds // 1_000
    parts["days"] = days
    parts["months"] = months
    return _fixed(column, parts)


def _numerics(column: pa.Array, scale: int) -> pa.Array:
    """Scaled int64 as numerics."""
    valid = views.valid_of(column)
    offsets, made = np.empty(len(column) + 1, np.int32), np.empty(len(column) * NUMERIC_BYTES_MAX, np.uint8)
    mask = views.ALL_VALID if valid is None else valid
    size = write_numerics.over(len(column))(views.values_of(column), mask, scale, offsets, made)
    return views.text_array(offsets, made[:size].copy(), pa.binary(), valid)


@per_row
def _wide_numerics(column: pa.Array, type: Decimal) -> pa.Array:
    """Decimals that may have more than 18 digits. Where one does, goes row by row: its groups do not fit an integer."""
    found = decimals.scaled(column)
    assert found is not None and not isinstance(found.values, int)
    if not found.is_wide and type.scale <= DECIMAL_INT64_DIGITS_MAX:
        return _numerics(views.to_array(found.values, pa.int64(), found.valid), type.scale)
    return pa.array([None if value is None else numeric_bytes(value) for value in column.to_pylist()], pa.binary())


def numeric_bytes(value: PyDecimal) -> bytes:
    """One numeric."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "the engine's decimals are finite"
    scale = max(0, -exponent)
    unscaled = int("".join(map(str, digits)) or "0") * 10 ** max(0, exponent)
    unscaled *= 10 ** (-scale % 4)
    groups: list[int] = []
    while unscaled:
        unscaled, group = divmod(unscaled, GROUP)
        groups.append(group)
    weight = len(groups) - -(-scale // 4) - 1
    groups.reverse()
    while groups and not groups[-1]:
        groups.pop()
    head = _HEAD.pack(len(groups), weight if groups else 0, 0x4000 if sign else 0, scale)
    return head + struct.pack(f"!{len(groups)}h", *groups)


def _arrays(column: pa.Array, of: Type) -> pa.Array:
    """One dimension from 1: the items with their lengths, list by list, behind a head of each."""
    if column.offset:
        column = column.take(pa.array(np.arange(len(column))))
    items = with_length(binary_column(column.values, of))
    lists: Any = pa.ListArray.from_arrays(column.offsets, items, mask=column.is_null() if column.null_count else None)
    joined = pc.binary_join(lists, pa.scalar(b"", pa.binary()))
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    head = np.empty((len(column), 5), ">i4")
    head[:, 0] = 1
    head[:, 1] = 1 if column.values.null_count else 0
    head[:, 2] = pg_oid(of)
    head[:, 3] = lengths
    head[:, 4] = 1
    heads = pc.if_else(pa.array(lengths > 0), _fixed(column, head), pc.binary_slice(_fixed(column, _empty(head)), 0, 12))
    return _with_nulls(pc.binary_join_element_wise(heads, joined, pa.scalar(b"", pa.binary())), column)


def _empty(head: Any) -> Any:
    none = head.copy()
    none[:, :2] = 0
    return none


def with_length(values: pa.Array) -> pa.Array:
    """Each value behind its length; NULL is the length -1 alone. No NULLs in the answer."""
    parts = length_prefix(values)
    return pc.binary_join_element_wise(parts, values.fill_null(b"") if values.null_count else values,
                                       pa.scalar(b"", pa.binary()))  # fmt: skip


def length_prefix(values: pa.Array) -> pa.Array:
    """The length of each value as four bytes; -1 for NULL."""
    offsets = views.buffer_view(values.buffers()[1], np.int32, len(values) + 1, values.offset)
    lengths = np.diff(offsets)
    if values.null_count:
        lengths = np.where(values.is_valid().to_numpy(zero_copy_only=False), lengths, -1)
    return _fixed(pa.nulls(0, pa.binary()) if not len(values) else pa.array(lengths), lengths.astype(">i4"))
