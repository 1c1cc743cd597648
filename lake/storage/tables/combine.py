"""Rows of a merge table with one key, put together: sums and counts add, min and max choose.

    id 1  amount 10  n 1  |  id 1  amount 5  n 2     ->     id 1  amount 15  n 3

NULL values count for nothing; the sum of NULLs alone is NULL. The row that stands for them has the first row id and time of
creation of them, and the last version and time of change. Spec: SQL, Table kinds; Table options.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import NumericOutOfRange
from lake.storage.catalog.model import CREATED_AT, DELETED, ROW_ID, UPDATED_AT, VERSION, Column, Table
from lake.storage.tables.columns import decoded_batch
from lake.storage.tables.keys import Ints, encode
from lake.types import Decimal, Float, Integer, Type

SYSTEM: Final = {ROW_ID: "min", VERSION: "max", CREATED_AT: "min", UPDATED_AT: "max"}


def combine(table: Table, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch | None:
    """One row for each key of ``batches``, in the order of keys; None of no rows.

    batches  whole rows by stored name, as ``keyed.whole_columns``
    22003    a sum that its column cannot hold
    """
    parts = [decoded_batch(batch) for batch in batches]
    if not parts:
        return None
    rows = pa.Table.from_batches(parts).combine_chunks()
    arrays = {name: _one(rows.column(name)) for name in rows.column_names}
    key = table.key
    keys = encode([arrays[column.stored] for column in key], [column.type for column in key])
    order = keys.order()
    starts = np.flatnonzero(~keys.take(order).repeats()).astype(np.int64)
    groups = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    made = {}
    for column in table.columns:
        ordered = arrays[column.stored].take(pa.array(order))
        made[column.stored] = _values(column, ordered, starts, groups) if column.merge else ordered.take(pa.array(starts))
    for name, array in arrays.items():
        if name in SYSTEM:
            values = array.view(pa.int64()).take(pa.array(order)).to_numpy()
            reduce = np.minimum if SYSTEM[name] == "min" else np.maximum
            made[name] = pa.array(reduce.reduceat(values, starts)).view(array.type)
        elif name == DELETED:
            made[name] = pa.nulls(len(starts), pa.bool_())
    return pa.RecordBatch.from_arrays([made[name] for name in rows.column_names], names=rows.column_names)


def _values(column: Column, values: pa.Array, starts: Ints, groups: Ints) -> pa.Array:
    """A column's value for each group of neighbours."""
    function = "sum" if column.merge in ("sum", "count") else column.merge
    type = column.type
    if function == "sum" and isinstance(type, Integer | Decimal) and pa.types.is_integer(values.type):
        return _sums(column, values, starts, type)
    table = pa.table({"group": groups, "value": values})
    found = table.group_by("group", use_threads=False).aggregate([("value", function)])
    array = _one(found.column(f"value_{function}"))
    if isinstance(type, Float):
        return array.cast(values.type)
    return array if array.type.equals(values.type) else array.cast(values.type)


def _sums(column: Column, values: pa.Array, starts: Ints, type: Type) -> pa.Array:
    """Exact sums of whole numbers; the floats beside them only tell whether one went past 64 bits."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    sums = np.add.reduceat(numbers, starts)
    about = np.add.reduceat(numbers.astype(np.float64), starts)
    limit = _limit(type)
    if bool((np.abs(about) >= 2.0**63).any()) or bool((sums > limit).any()) or bool((sums < -limit - 1).any()):
        raise NumericOutOfRange(f'the sum of column "{column.name}" is out of range for type {type}')
    present = np.add.reduceat(pc.is_valid(values).cast(pa.int64()).to_numpy(), starts)
    return pa.array(sums, mask=present == 0).cast(values.type)


def _limit(type: Type) -> int:
    if isinstance(type, Integer):
        return (1 << (type.bits - 1)) - 1
    return 10**type.precision - 1 if isinstance(type, Decimal) else (1 << 63) - 1


def _one(chunked: pa.ChunkedArray) -> pa.Array:
    found = chunked.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
