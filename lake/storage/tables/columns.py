"""Columns between the engine's types and those of Parquet files.

    DECIMAL(p<=18)   int64, scaled             <->  decimal64, stored as INT32 or INT64 with a DECIMAL annotation
    INTERVAL         month_day_nano_interval   <->  FIXED_LEN_BYTE_ARRAY(16): months, days, nanoseconds
    all others       the same on both sides

Both ways are views of the same buffers: nothing is copied. Rows from before a column was added have one value of it, which is
kept with the column (``encode_value``, ``absent``); ``aligned`` gives rows on their way all columns of their table.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from lake.errors import SerializationFailure
from lake.storage.catalog.model import CREATED_AT, DELETED, ROW_ID, SYSTEM_COLUMNS, Column, Table
from lake.types import BOOLEAN, Decimal, Interval, List, Map, Struct, Type

SCHEMAS_KEPT: Final = 512  # of tables that are written to
_INTERVAL_STORED = pa.binary(16)


def stored_type(type: Type) -> pa.DataType:
    """The Arrow type that a file holds for a column of ``type``."""
    match type:
        case Decimal(precision, scale) if type.is_short:
            return pa.decimal64(precision, scale)
        case Interval():
            return _INTERVAL_STORED
        case List(of):
            return pa.list_(stored_type(of))
        case Struct(fields):
            return pa.struct([(name, stored_type(of)) for name, of in fields])
        case Map(key, value):
            return pa.map_(stored_type(key), stored_type(value))
        case _:
            return type.arrow


def to_stored(array: pa.Array, type: Type) -> pa.Array:
    """``array``, in ``type.physical``, as files hold it."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return _viewed(array, stored_type(type))


def from_stored(array: pa.Array, type: Type) -> pa.Array:
    """``array`` of a file in ``type.physical``; text may stay dictionary-coded; narrower numbers of old files widen."""
    wanted = type.physical
    if array.type.equals(wanted) or pa.types.is_dictionary(array.type):
        return array
    stored = stored_type(type)
    if not array.type.equals(stored):
        array = array.cast(stored)
    return _viewed(array, wanted)


def encode_value(value: pa.Array, type: Type) -> bytes:
    """One value in ``type.physical``, as ``Column.missing`` keeps it."""
    assert len(value) == 1, "a column has one value for all rows before it"
    batch = pa.record_batch([to_stored(value, type)], ["value"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


@lru_cache(maxsize=4_096)
def _decoded_value(missing: bytes) -> pa.Array:
    with pa.ipc.open_stream(missing) as reader:
        return reader.read_next_batch().column(0)


def absent(rows: int, type: Type, missing: bytes) -> pa.Array:
    """A column that these rows were written without: NULL, or the value it was added with, in ``type.physical``."""
    if not missing:
        return pa.nulls(rows, type.physical)
    return from_stored(_decoded_value(missing), type).take(pa.array(np.zeros(rows, np.int64)))


def _viewed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The same buffers under another type of the same layout."""
    if array.type.equals(wanted):
        return array
    if pa.types.is_list(array.type):
        values = _viewed(array.values, wanted.value_type)
        return pa.Array.from_buffers(
            wanted, len(array), array.buffers()[:2], null_count=array.null_count, offset=array.offset, children=[values]
        )
    return pa.Array.from_buffers(wanted, len(array), array.buffers(), null_count=array.null_count, offset=array.offset)


def decoded(array: pa.Array) -> pa.Array:
    """``array`` with codes of texts turned into the texts."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def decoded_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """``batch`` without dictionary-coded columns."""
    if not any(pa.types.is_dictionary(type) for type in batch.schema.types):
        return batch
    return pa.RecordBatch.from_arrays([decoded(array) for array in batch.columns], names=batch.schema.names)


def aligned(table: Table, batch: pa.RecordBatch) -> pa.RecordBatch:
    """``batch`` with all stored columns of ``table`` in their order; what it lacks is NULL, or what the column was
    added with.

    40001  it has a column that the table has not, or one of another type: the table was changed meanwhile
    """
    inserted, whole, changed = _schemas_of(table.columns, bool(table.design.key))
    rows = batch.num_rows
    if batch.schema.equals(whole) or batch.schema.equals(changed):
        return batch
    if batch.schema.equals(inserted):
        return batch.append_column(whole.field(DELETED), pa.nulls(rows, BOOLEAN.physical))
    wanted = {column.stored: column.type.physical for column in table.columns}
    if table.design.key:
        wanted[DELETED] = BOOLEAN.physical
    given = dict(zip(batch.schema.names, batch.schema.types))
    own = [name for name in SYSTEM_COLUMNS if name in given]
    for name, type in given.items():
        if name not in SYSTEM_COLUMNS and not type.equals(wanted.get(name, pa.null())):
            raise SerializationFailure(f'table "{table.name}" was changed while rows were written to it')
    if list(given) == [*wanted, *own]:
        return batch
    filled = {column.stored: absent(rows, column.type, column.missing) for column in table.columns if column.missing}
    arrays = [
        batch.column(name) if name in given else filled.get(name, pa.nulls(rows, type)) for name, type in wanted.items()
    ]
    return pa.RecordBatch.from_arrays([*arrays, *(batch.column(name) for name in own)], names=[*wanted, *own])


@lru_cache(SCHEMAS_KEPT)
def _schemas_of(columns: tuple[Column, ...], has_markers: bool) -> tuple[pa.Schema, pa.Schema, pa.Schema]:
    """The columns of rows that are inserted, those of a table, and those of a row that is changed."""
    inserted = pa.schema([(column.stored, column.type.physical) for column in columns])
    whole = inserted.append(pa.field(DELETED, BOOLEAN.physical)) if has_markers else inserted
    kept = [pa.field(name, SYSTEM_COLUMNS[name].physical) for name in (ROW_ID, CREATED_AT)]
    return inserted, whole, pa.schema([*whole, *kept])
