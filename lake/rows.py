"""Where stored rows meet the engine: a table answers parts, a worker reads a part.

Storage, system tables and readers of outside files all answer a RowSource, so the engine has one way to scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import DatetimeOverflow
from lake.types import Decimal, List, Map, Struct, Type


class Predicate(msgspec.Struct, frozen=True):
    """A simple test that storage may use to skip files and row groups; the engine tests every row again.

    op     = <> < <= > >= , ``in`` (value is a tuple), ``is null``, ``is not null``
    value  a constant in physical form (``bound.Literal``)
    """

    column: str
    op: str
    value: object


class Group(Protocol):
    """A part whose columns can be read one after the other: a row group of a file."""

    def range_of(self, column: str) -> tuple[Any, Any] | None:
        """Least and greatest value of a column, in physical form, where they are known without reading anything."""
        ...

    def may_hold(self, predicates: Sequence[Predicate]) -> bool:
        """Whether a row may make these predicates, and those that the parts were asked for with, true."""
        ...

    def read(self, columns: Sequence[str]) -> Sequence[pa.RecordBatch]:
        """The rows' columns, whole numbers maybe narrower than their type (``lake.narrow``); batches are cut alike."""
        ...


class Part(msgspec.Struct, frozen=True):
    """A piece of a table that one worker reads: a row group, some batches of the tail, a slice of a file.

    read   answers batches of the asked columns in the asked order, in physical types (text may be dictionary-coded);
           called once or more, from any thread
    rows   how many rows it holds, or None where only reading tells
    group  the same rows column by column; None where there is no such way
    """

    rows: int | None
    read: Callable[[], Iterable[pa.RecordBatch]]
    group: Group | None = None


class Parts(list[Part]):
    """The parts of a source that are to be read, and how many others were ``skipped`` because of the predicates."""

    skipped: int = 0


class RowSource(Protocol):
    """The rows of a Table (``sql.catalog.Table.rows``).

    Where it has an ``is_by_column`` that is true, reading some columns of a few of its rows later is worth a second look.
    """

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """The parts that may hold rows for which all predicates are true; no columns asks for row counts alone."""
        ...


def python_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table as tuples of Python values.

    22008  a date or timestamp that Python has not
    """
    if not table.num_columns:
        return [() for _ in range(table.num_rows)]
    try:
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    except OverflowError as error:
        raise DatetimeOverflow(f"{error}: Python has the years 1 to 9999", hint="cast the column to VARCHAR") from error


def answer_array(array: pa.Array, type: Type) -> pa.Array:
    """``array`` in ``type.arrow``: decimals are decimals again and dictionary-coded text is text."""
    wanted = type.arrow
    if array.type.equals(wanted):
        return array
    if pa.types.is_dictionary(array.type):
        return answer_array(array.dictionary_decode(), type)
    if isinstance(type, Decimal) and pa.types.is_int64(array.type):
        return _widen(array, type)
    if isinstance(type, List):
        if array.offset:
            array = array.take(_all(array))
        values = answer_array(array.values, type.of)
        return pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null() if array.null_count else None)
    if isinstance(type, Struct | Map):
        return _nested(array, type, answer_array)
    return array.cast(wanted)


def physical_array(array: pa.Array, type: Type) -> pa.Array:
    """``array``, of any Arrow type that holds values of ``type``, in ``type.physical``; dictionary-coded text stays."""
    wanted = type.physical
    if array.type.equals(wanted) or (pa.types.is_dictionary(array.type) and array.type.value_type.equals(wanted)):
        return array
    if pa.types.is_dictionary(array.type):
        return physical_array(array.dictionary_decode(), type)
    if isinstance(type, Decimal) and type.is_short and pa.types.is_decimal(array.type):
        return _narrow(array, type)
    if isinstance(type, List):
        flat = array.cast(pa.list_(array.type.value_type)) if not pa.types.is_list(array.type) else array
        if flat.offset:
            flat = flat.take(_all(flat))
        values = physical_array(flat.values, type.of)
        return pa.ListArray.from_arrays(flat.offsets, values, mask=flat.is_null() if flat.null_count else None)
    if isinstance(type, Struct | Map):
        return _nested(array, type, physical_array)
    return array.cast(wanted)


def _nested(array: pa.Array, type: Struct | Map, convert: Callable[[pa.Array, Type], pa.Array]) -> pa.Array:
    """A struct or map with ``convert`` applied to what it holds; fields are told apart by their place."""
    nulls = array.is_null() if array.null_count else None
    if array.offset:
        array = array.take(_all(array))
    if isinstance(type, Struct):
        parts = [convert(array.field(place), of) for place, (_, of) in enumerate(type.fields)]
        fields = [pa.field(name, part.type) for (name, _), part in zip(type.fields, parts, strict=True)]
        if not fields:
            return array
        return pa.StructArray.from_arrays(parts, fields=fields, mask=nulls)
    keys, items = convert(array.keys, type.key), convert(array.items, type.value)
    offsets = array.offsets
    if nulls is not None:
        ends = pa.concat_arrays([pc.is_valid(array), pa.array([True])])
        offsets = pc.if_else(ends, offsets, pa.scalar(None, offsets.type))
    return pa.MapArray.from_arrays(offsets, keys, items)


def _all(array: pa.Array) -> pa.Array:
    return pa.array(range(len(array)), pa.int64())


def _widen(array: pa.Array, type: Decimal) -> pa.Array:
    """Scaled int64 to decimal128: the two's complement is extended by a word of signs."""
    values = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array)]
    words = np.empty((len(array), 2), np.int64)
    words[:, 0] = values
    words[:, 1] = values >> 63
    valid = None if array.null_count == 0 else pc.is_valid(array).buffers()[1]
    return pa.Array.from_buffers(type.arrow, len(array), [valid, pa.py_buffer(words)])


def _narrow(array: pa.Array, type: Decimal) -> pa.Array:
    """Decimals of any width to scaled int64: the low word, once the scale is ``type``'s."""
    if array.type.scale != type.scale or array.type.bit_width not in (64, 128):
        array = array.cast(type.arrow)
    step = array.type.bit_width // 64
    words = np.frombuffer(array.buffers()[1], np.int64)[array.offset * step : (array.offset + len(array)) * step : step]
    valid = None if array.null_count == 0 else pc.is_valid(array).buffers()[1]
    return pa.Array.from_buffers(pa.int64(), len(array), [valid, pa.py_buffer(np.ascontiguousarray(words))])


class BatchRows(msgspec.Struct, frozen=True):
    """The rows of one batch in physical types."""

    batch: pa.RecordBatch

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """The batch as one part."""
        return [Part(self.batch.num_rows, lambda: [self.batch.select(list(columns))])]
