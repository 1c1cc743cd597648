"""Batches of a result as DataRow messages: every column at once, then one join makes all messages of a batch.

    D | size | columns | length value | length value | ..

Source: PostgreSQL documentation, 55.7 (DataRow).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.db.describe import Description
from lake.db.origins import NOWHERE
from lake.doors.postgres.binary import binary_column, length_prefix, size_of
from lake.doors.postgres.messages import Field, encode
from lake.doors.postgres.text import text_column
from lake.exec.kernels import views
from lake.types import Decimal, Type, pg_oid

TEXT_FORMAT: Final = 0
BINARY_FORMAT: Final = 1
DESCRIPTIONS_KEPT: Final = 1_024
BYTES_MAX: Final = 1 << 30  # of the messages of one slice: Arrow's 32-bit offsets end at twice that
_HEAD: Final = np.dtype([("tag", "u1"), ("size", ">i4"), ("columns", ">u2")])
_NOTHING: Final = pa.scalar(b"", pa.binary())


@lru_cache(DESCRIPTIONS_KEPT)
def row_description(found: Description, formats: tuple[int, ...]) -> bytes:
    """The RowDescription of what answers rows, with one format for each column."""
    names, origins = found.names or (), found.origins or (NOWHERE,) * len(found.types)
    fields = [
        Field(name, pg_oid(type), size_of(type), _modifier(type), format, table, place)
        for name, type, format, (table, place) in zip(names, found.types, formats, origins, strict=True)
    ]
    return encode("RowDescription", fields)


def _modifier(type: Type) -> int:
    return ((type.precision << 16) | type.scale) + 4 if isinstance(type, Decimal) else -1


def data_rows(
    batch: pa.RecordBatch, types: Sequence[Type], formats: Sequence[int], zone: str, tag: str = "D"
) -> bytes:
    """The DataRow messages of a batch of answer types; with the tag of CopyData, the same as tuples of binary COPY."""
    if not batch.num_rows:
        return b""
    if batch.nbytes > BYTES_MAX // 4 and batch.num_rows > 1:
        half = batch.num_rows // 2
        parts_of = (batch.slice(0, half), batch.slice(half))
        return b"".join(data_rows(part, types, formats, zone, tag) for part in parts_of)
    head = np.empty(batch.num_rows, _HEAD)
    head["tag"] = ord(tag)
    head["columns"] = len(types)
    parts: list[Any] = []
    sizes = np.full(batch.num_rows, _HEAD.itemsize - 1, np.int64)
    for column, type, format in zip(batch.columns, types, formats, strict=True):
        values = binary_column(column, type) if format == BINARY_FORMAT else text_column(column, type, zone)
        parts += [length_prefix(values), values.fill_null(b"") if values.null_count else values]
        offsets = views.buffer_view(parts[-1].buffers()[1], np.int32, len(values) + 1, parts[-1].offset)
        sizes += np.diff(offsets) + 4
    head["size"] = sizes
    joined = pc.binary_join_element_wise(_heads(head), *parts, _NOTHING)
    return _content(joined)


def _heads(head: Any) -> pa.Array:
    offsets = np.arange(len(head) + 1, dtype=np.int32) * _HEAD.itemsize
    return pa.Array.from_buffers(pa.binary(), len(head), [None, pa.py_buffer(offsets), pa.py_buffer(head.view(np.uint8))])


def _content(joined: Any) -> bytes:
    """All bytes of a binary column, one value behind the other."""
    chunks = joined.chunks if isinstance(joined, pa.ChunkedArray) else [joined]
    parts = []
    for chunk in chunks:
        offsets = views.buffer_view(chunk.buffers()[1], np.int32, len(chunk) + 1, chunk.offset)
        start = int(offsets[0])
        parts.append(chunk.buffers()[2].slice(start, int(offsets[-1]) - start).to_pybytes())
    return parts[0] if len(parts) == 1 else b"".join(parts)
