"""Record batches made, joined, cut and reordered; batches of no columns keep their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec.kernels.taking import taken, taken_all
from lake.exec.kernels.views import is_text, single, to_boolean
from lake.exec.operators.base import MORSEL_ROWS, column_name
from lake.narrow import widened
from lake.sql.bound import Column
from lake.types import Type

MANY_KEPT: Final = 0.85
SMALL_ROWS: Final = 32_768
GATHERED_ROWS: Final = 131_072
"""Batches below SMALL_ROWS are gathered until they are GATHERED_ROWS."""
_NO_FIELDS = pa.struct([])


def names_of(columns: Iterable[Column]) -> list[str]:
    """The names of columns in batches."""
    return [column_name(column) for column in columns]


def bare_batch(rows: int) -> pa.RecordBatch:
    """A batch of ``rows`` rows and no columns."""
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(_NO_FIELDS, rows, [None]))


def make_batch(names: Sequence[str], arrays: Sequence[pa.Array], rows: int) -> pa.RecordBatch:
    """A batch of arrays of ``rows`` rows each; there may be none of them."""
    if not arrays:
        return bare_batch(rows)
    batch = pa.RecordBatch.from_arrays(list(arrays), names=list(names))
    assert batch.num_rows == rows
    return batch


def empty_batch(columns: Sequence[Column]) -> pa.RecordBatch:
    """A batch of no rows."""
    return make_batch(names_of(columns), [pa.array([], column.type.physical) for column in columns], 0)


def select_columns(batch: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    """The batch with these columns, in this order."""
    names = names_of(columns)
    return batch if batch.schema.names == names else batch.select(names)


def wide_columns(batch: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    """The batch, which holds ``columns`` maybe in narrow form, in their physical types."""
    arrays = batch.columns
    wide = [widened(array, column.type.physical) for array, column in zip(arrays, columns, strict=True)]
    if all(one is other for one, other in zip(wide, arrays, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays(wide, names=batch.schema.names)


def filter_rows(batch: pa.RecordBatch, mask: Any) -> pa.RecordBatch:
    """The rows where a bool[rows] mask is true; the batch itself where that is every row."""
    count = int(np.count_nonzero(mask))
    if count == batch.num_rows:
        return batch
    if count == 0:
        return batch.slice(0, 0)
    return take_rows(batch, np.flatnonzero(mask))


def take_rows(batch: pa.RecordBatch, rows: Any) -> pa.RecordBatch:
    """The rows of the numbers in int64[n]."""
    if batch.num_columns == 0:
        return bare_batch(len(rows))
    return pa.RecordBatch.from_arrays(taken_all(batch.columns, rows), names=batch.schema.names)


def keep_rows(batch: pa.RecordBatch, rows: Any, columns: Sequence[Column] | None = None) -> pa.RecordBatch:
    """The rows of ascending numbers in int64[n]: what a filter left.

    columns  those that the batch holds, maybe in narrow form: they are answered in their physical types

    Of plain texts runs of rows are copied as such where nearly all are left, in a third of the time.
    """
    if len(rows) == batch.num_rows:
        return batch if columns is None else wide_columns(batch, columns)
    if batch.num_columns == 0:
        return bare_batch(len(rows))
    types = None if columns is None else [column.type.physical for column in columns]
    arrays = batch.columns
    whole = [index for index, array in enumerate(arrays) if is_text(array.type)] if _are_many(rows, batch) else []
    if not whole:
        made = taken_all(arrays, rows, types)
        return pa.RecordBatch.from_arrays(made, names=batch.schema.names)
    mask = np.zeros(batch.num_rows, np.bool_)
    mask[rows] = True
    kept = to_boolean(mask)
    made = [
        array.filter(kept) if index in whole else taken(array, rows, None if types is None else types[index])
        for index, array in enumerate(arrays)
    ]
    return pa.RecordBatch.from_arrays(made, names=batch.schema.names)


def _are_many(rows: Any, batch: pa.RecordBatch) -> bool:
    return bool(len(rows) >= MANY_KEPT * batch.num_rows)


def take_or_null(array: pa.Array, rows: Any) -> pa.Array:
    """The values at int64[n] row numbers, NULL for those below 0."""
    return taken(array, rows, may_miss=True)


def concat_columns(chunks: Sequence[pa.Array]) -> pa.Array:
    """Chunks of one column, at least one, as one array: dictionaries are unified, text beyond 2 GB has large offsets."""
    if len(chunks) == 1:
        return chunks[0]
    types = {chunk.type for chunk in chunks}
    if len(types) > 1:
        chunks = [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in chunks]
        types = {chunk.type for chunk in chunks}
    if len(types) > 1:
        # Lists of files and of the log differ by the name of their inner field alone: the first one's will do.
        large = (kind for kind in types if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))
        widest = next(large, chunks[0].type)
        chunks = [chunk.cast(widest) for chunk in chunks]
    kind = chunks[0].type
    if (pa.types.is_string(kind) or pa.types.is_binary(kind)) and sum(chunk.nbytes for chunk in chunks) > 1 << 31:
        large = pa.large_string() if pa.types.is_string(kind) else pa.large_binary()
        chunks = [chunk.cast(large) for chunk in chunks]
    if pa.types.is_dictionary(kind):
        return _concat_dictionaries(chunks)
    return pa.concat_arrays(chunks)


def _concat_dictionaries(chunks: Sequence[pa.DictionaryArray]) -> pa.Array:
    first = chunks[0].dictionary
    if all(chunk.dictionary is first or _same_buffers(chunk.dictionary, first) for chunk in chunks[1:]):
        indices = pa.concat_arrays([chunk.indices for chunk in chunks])
        return pa.DictionaryArray.from_arrays(indices, first)
    if sum(len(chunk.dictionary) for chunk in chunks) > sum(len(chunk) for chunk in chunks):
        return pa.concat_arrays([chunk.dictionary_decode() for chunk in chunks])
    return single(pa.chunked_array(list(chunks)))


def _same_buffers(left: pa.Array, right: pa.Array) -> bool:
    if len(left) != len(right) or left.offset != right.offset:
        return False
    for one, other in zip(left.buffers(), right.buffers(), strict=True):
        if (one is None) != (other is None) or (one is not None and one.address != other.address):
            return False
    return True


def concat_batches(batches: Sequence[pa.RecordBatch], columns: Sequence[Column]) -> pa.RecordBatch:
    """Batches that hold ``columns`` (and maybe more) as one."""
    if not batches:
        return empty_batch(columns)
    if len(batches) == 1:
        return select_columns(batches[0], columns)
    names = names_of(columns)
    arrays = [concat_columns([batch.column(name) for batch in batches]) for name in names]
    return make_batch(names, arrays, sum(batch.num_rows for batch in batches))


def join_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of the same columns as one; at least one batch."""
    if len(batches) == 1:
        return batches[0]
    names = batches[0].schema.names
    arrays = [concat_columns([batch.column(name) for batch in batches]) for name in names]
    return make_batch(names, arrays, sum(batch.num_rows for batch in batches))


def slices(batch: pa.RecordBatch, rows_max: int = MORSEL_ROWS) -> Iterator[pa.RecordBatch]:
    """The batch in pieces of at most ``rows_max`` rows, which share its memory."""
    if batch.num_rows <= rows_max:
        if batch.num_rows:
            yield batch
        return
    for start in range(0, batch.num_rows, rows_max):
        yield batch.slice(start, rows_max)


def constant_column(value: pa.Scalar, rows: int) -> pa.Array:
    """``rows`` times one value."""
    return pa.repeat(value, rows)


def null_column(type: Type, rows: int) -> pa.Array:
    """``rows`` NULLs."""
    return pa.nulls(rows, type.physical)


def batch_bytes(batch: pa.RecordBatch) -> int:
    """The memory a batch keeps alive, a dictionary counted as if it were its own."""
    return int(batch.get_total_buffer_size())


def sliced_bytes(batch: pa.RecordBatch) -> int:
    """The memory the rows of a batch take, not counting what else its buffers hold."""
    return int(batch.nbytes)


def own_bytes(batch: pa.RecordBatch) -> int:
    """``sliced_bytes`` without dictionaries, which belong to whoever made them."""
    arrays = (array.indices if isinstance(array, pa.DictionaryArray) else array for array in batch.columns)
    return sum(int(array.nbytes) for array in arrays)


def normal_text(array: pa.Array) -> pa.Array:
    """Text as ``string`` where it is anything else but a dictionary."""
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        return pc.cast(array, pa.string())
    return array


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows; none of no rows, and small batches that follow one another put together.

    An operator's work on a batch costs about 0.1 ms however few its rows: selective filters would make that the query's time.
    """
    small: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if batch.num_rows < SMALL_ROWS:
            small.append(batch)
            rows += batch.num_rows
            if rows >= GATHERED_ROWS:
                yield join_batches(small)
                small, rows = [], 0
            continue
        if small:
            yield join_batches(small)
            small, rows = [], 0
        yield batch
    if small:
        yield join_batches(small)
