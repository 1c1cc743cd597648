"""Literals as Arrow constants and back, and constants as columns."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec import decimals
from lake.exec.kernels import views
from lake.types import Date, Decimal, Interval, List, Map, Struct, Time, Timestamp, Type


def to_scalar(value: object, type: Type) -> pa.Scalar:
    """The constant of a literal's physical value."""
    if value is None:
        return pa.scalar(None, type.physical)
    if isinstance(type, Decimal):
        assert isinstance(value, int)
        return decimals.scalar(value, type)
    if isinstance(type, List | Struct | Map):
        assert isinstance(value, tuple)
        return to_array([value], type)[0]
    return pa.scalar(value, type.physical)


def to_array(values: list[object], type: Type) -> pa.Array:
    """A column of literals' physical values."""
    if isinstance(type, Decimal) and not type.is_short:
        numbers = [None if value is None else decimals.python_decimal(value, type.scale) for value in values]  # type: ignore[arg-type]
        return pa.array(numbers, type.arrow)
    if isinstance(type, List):
        lengths = [0 if value is None else len(value) for value in values]  # type: ignore[arg-type]
        items = [item for value in values if value is not None for item in value]  # type: ignore[attr-defined]
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int32))).astype(np.int32)
        valid = np.array([value is not None for value in values], np.uint8)
        return list_array(offsets, to_array(items, type.of), None if valid.all() else valid)
    if isinstance(type, Struct):
        parts = [
            to_array([None if value is None else value[place] for value in values], of)  # type: ignore[index]
            for place, (_, of) in enumerate(type.fields)
        ]
        return struct_array(parts, type, np.array([value is not None for value in values], np.bool_))
    if isinstance(type, Map):
        return map_array(to_array(values, type.entries), type)
    return pa.array(values, type.physical)


def list_array(offsets: Any, items: pa.Array, valid: Any = None) -> pa.Array:
    """A list column over ``items``: row r holds ``items[offsets[r]:offsets[r + 1]]``."""
    bitmap = None if valid is None else views.pack_bits(valid)
    body = pa.py_buffer(np.ascontiguousarray(offsets, np.int32))
    return pa.Array.from_buffers(pa.list_(items.type), len(offsets) - 1, [bitmap, body], children=[items])


def struct_array(parts: list[pa.Array], type: Struct, valid: Any = None) -> pa.Array:
    """A struct column of its fields' columns; ``valid`` is bool[rows], None where no row is NULL."""
    parts = [decimals.widen(part, of) if isinstance(of, Decimal) else part for part, (_, of) in zip(parts, type.fields)]
    fields = [pa.field(name, part.type) for (name, _), part in zip(type.fields, parts)]
    mask = None if valid is None or valid.all() else pa.array(~valid)
    return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)


def map_array(entries: pa.Array, type: Map) -> pa.Array:
    """A map column of lists of key and value pairs."""
    offsets, pairs, valid = list_parts(entries)
    bounds = pa.array(offsets, pa.int32())
    if valid is not None:
        known = [offset if is_valid else None for offset, is_valid in zip(offsets.tolist(), valid.tolist())]
        bounds = pa.array([*known, int(offsets[-1])], pa.int32())
    return pa.MapArray.from_arrays(bounds, pairs.field(0), pairs.field(1))


def map_entries(value: pa.Array) -> pa.Array:
    """The lists of key and value pairs of a map column."""
    keys, items = value.keys, value.items
    pairs = pa.StructArray.from_arrays([keys, items], names=["key", "value"])
    offsets = value.offsets.to_numpy()
    first = int(offsets[0]) if offsets.size else 0
    pairs = pairs.slice(first, int(offsets[-1]) - first if offsets.size else 0)
    return list_array((offsets - first).astype(np.int32), pairs, views.valid_of(value))


def list_parts(value: pa.Array) -> tuple[Any, pa.Array, Any]:
    """Offsets from 0 (int64[rows + 1]), the items of lists that are not NULL, and validity (None where all are)."""
    lengths = pc.fill_null(pc.list_value_length(value), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return offsets, value.flatten(), views.valid_of(value)


def to_python(value: pa.Scalar, type: Type) -> Any:
    """The physical value of a constant, as ``bound.Literal`` holds it."""
    if not value.is_valid:
        return None
    match type:
        case Decimal():
            return decimals.integer_of(value)
        case Date() | Timestamp() | Time():
            return value.value
        case Interval():
            return tuple(value.as_py())
        case List(of):
            return tuple(to_python(item, of) for item in value.values)
        case Struct(fields):
            return tuple(to_python(value[place], of) for place, (_, of) in enumerate(fields))
        case Map():
            return to_python(map_entries(pa.array([value.as_py()], type.physical))[0], type.entries)
        case _:
            return value.as_py()


def physical_values(array: pa.Array, type: Type) -> list[Any]:
    """The physical values of a column's rows as Python values."""
    array = views.plain(array)
    match type:
        case Date():
            return array.cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]
        case Timestamp() | Time():
            return array.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
        case Decimal() if pa.types.is_decimal128(array.type):
            return [None if item is None else int(item.scaleb(type.scale, decimals._EXACT)) for item in array.to_pylist()]
        case List(of):
            items = physical_values(array.values, of)
            offsets = array.offsets.to_pylist()
            valid = array.is_valid().to_pylist()
            return [
                tuple(items[start:end]) if there else None
                for start, end, there in zip(offsets, offsets[1:], valid)
            ]
        case Struct(fields):
            parts = [physical_values(part, of) for part, (_, of) in zip(array.flatten(), fields)]
            there = array.is_valid().to_pylist()
            rows = zip(*parts) if parts else (() for _ in there)
            return [row if known else None for row, known in zip(rows, there)]
        case Map():
            return physical_values(map_entries(array), type.entries)
        case _:
            return array.to_pylist()  # type: ignore[no-any-return]


def as_array(value: pa.Array | pa.Scalar, rows: int) -> pa.Array:
    """A value as a column: a constant is repeated."""
    if isinstance(value, pa.Array):
        return value
    if not value.is_valid:
        return pa.nulls(rows, value.type)
    if pa.types.is_nested(value.type) or pa.types.is_interval(value.type):
        one = pa.array([value.as_py()], value.type)
        return one if rows == 1 else one.take(pa.array(np.zeros(rows, np.int64)))
    return pa.repeat(value, rows)


def microseconds(moment: datetime | time | timedelta) -> int:
    """Microseconds of a time of day, of a length of time, or since 1970."""
    if isinstance(moment, time):
        return ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000 + moment.microsecond
    if isinstance(moment, datetime):
        moment = moment.replace(tzinfo=None) - datetime(1970, 1, 1)
    return (moment.days * 86_400 + moment.seconds) * 1_000_000 + moment.microseconds
