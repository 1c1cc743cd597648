"""Values of answers as Python values of JSON, and as texts: what doors and the shell show.

Texts are those of CAST(x AS VARCHAR) except of bytes, so a table drawn by the shell and a CSV say the same.
Spec: HTTP, Query, answer rules 1 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from lake.exec.cast import cast
from lake.exec.constants import map_entries
from lake.rows import physical_array
from lake.types import BOOLEAN, TEXT, Bytes, Decimal, Float, Integer, Json, List, Map, Null, Struct, Text, Type

SAFE_INTEGER: Final = 1 << 53  # beyond it a JSON reader that keeps numbers as doubles loses digits


def text_values(column: pa.Array | pa.ChunkedArray, type: Type) -> list[str | None]:
    """Each value as text, None for NULL."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    values: list[str | None] = []
    for chunk in chunks:
        values.extend(text_array(chunk, type).to_pylist())
    return values


def text_array(array: pa.Array, type: Type) -> pa.Array:
    """Each value as text, NULL for NULL; bytes are hexadecimal, as they need not be text."""
    match type:
        case Null():
            return pa.nulls(len(array), pa.string())
        case Bytes():
            return pa.array([None if value is None else value.hex() for value in array.to_pylist()], pa.string())
        case _:
            texts = cast(physical_array(array, type), type, TEXT)
            return texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts


def json_values(column: pa.Array | pa.ChunkedArray, type: Type, *, exact: bool = False) -> list[Any]:
    """Each value as what JSON writes.

    Numbers are numbers, decimals with all their digits; NaN and infinities are texts, as are dates, times and intervals;
    bytes are hexadecimal. With ``exact`` decimals, and integers beyond 2^53, are texts.
    """
    match type:
        case Null():
            return [None] * len(column)
        case Text() | Json():
            return list(column.to_pylist())
        case Integer(bits=64) if exact:
            return [str(v) if v is not None and abs(v) > SAFE_INTEGER else v for v in column.to_pylist()]
        case Integer():
            return list(column.to_pylist())
        case Float(bits=32):
            return [_float(None if value is None else float(str(np.float32(value)))) for value in column.to_pylist()]
        case Float():
            return [_float(value) for value in column.to_pylist()]
        case Decimal():
            texts = text_values(column, type)
            return texts if exact else [None if text is None else orjson.Fragment(text) for text in texts]
        case Bytes():
            return [None if value is None else value.hex() for value in column.to_pylist()]
        case List(of):
            return _lists(column, of, exact)
        case Struct(fields):
            return _structs(column, fields, exact)
        case Map():
            return _maps(column, type, exact)
        case _ if type == BOOLEAN:
            return list(column.to_pylist())
        case _:
            return text_values(column, type)


def _lists(column: pa.Array | pa.ChunkedArray, of: Type, exact: bool) -> list[Any]:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    lists: list[Any] = []
    for chunk in chunks:
        values = json_values(chunk.flatten(), of, exact=exact)
        start = 0
        for length in chunk.value_lengths().to_pylist():
            lists.append(None if length is None else values[start : start + length])
            start += length or 0
    return lists


def _structs(column: pa.Array | pa.ChunkedArray, fields: tuple[tuple[str, Type], ...], exact: bool) -> list[Any]:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    rows: list[Any] = []
    for chunk in chunks:
        parts = [json_values(part, of, exact=exact) for part, (_, of) in zip(chunk.flatten(), fields, strict=True)]
        names = [name for name, _ in fields]
        values = zip(*parts, strict=True) if parts else (() for _ in range(len(chunk)))
        valid = chunk.is_valid().to_pylist()
        rows += [dict(zip(names, row, strict=True)) if there else None for row, there in zip(values, valid, strict=True)]
    return rows


def _maps(column: pa.Array | pa.ChunkedArray, type: Map, exact: bool) -> list[Any]:
    """Objects; keys that are no text are written as text."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    rows: list[Any] = []
    for chunk in chunks:
        entries = map_entries(physical_array(chunk, type))
        pairs = entries.flatten()
        keys, values = text_values(pairs.field(0), type.key), json_values(pairs.field(1), type.value, exact=exact)
        start = 0
        for length in entries.value_lengths().to_pylist():
            stop = start + (length or 0)
            rows.append(None if length is None else dict(zip(keys[start:stop], values[start:stop], strict=True)))
            start = stop
    return rows


def _float(value: float | None) -> float | str | None:
    if value is None or value - value == 0.0:
        return value
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def json_objects(batch: pa.RecordBatch, names: Sequence[str], types: Sequence[Type]) -> list[dict[str, Any]]:
    """A row's values by column name, as JSON has them; NULLs are left out."""
    columns = [json_values(batch.column(i), type) for i, type in enumerate(types)]
    if not columns:
        return [{} for _ in range(batch.num_rows)]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*columns, strict=True)
    ]


def json_rows(rows: Sequence[tuple[Any, ...]], names: Sequence[str], types: Sequence[Type]) -> list[dict[str, Any]]:
    """``json_objects`` of a few rows of plain values: whole numbers, texts, truths and numbers with a fraction."""
    makes = [None if not isinstance(type, Float) else _float if type.bits == 64 else _single for type in types]
    return [
        {
            name: value if make is None else make(value)
            for name, value, make in zip(names, row, makes, strict=True)
            if value is not None
        }
        for row in rows
    ]


def _single(value: float) -> float | str | None:
    return _float(float(str(np.float32(value))))
