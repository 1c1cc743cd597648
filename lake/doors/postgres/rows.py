"""Batches of a result as DataRow messages: every column at once, then kernels lay all messages of a batch out.

    D | size | columns | length value | length value | ..

Source: PostgreSQL documentation, 55.7 (DataRow).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.db.describe import Description
from lake.db.origins import NOWHERE
from lake.doors.postgres.binary import binary_column, size_of
from lake.doors.postgres.messages import Field, encode
from lake.doors.postgres.text import text_column
from lake.exec.kernels import views
from lake.exec.kernels.layout import place_fields, place_heads
from lake.types import Decimal, Type, pg_oid

TEXT_FORMAT: Final = 0
BINARY_FORMAT: Final = 1
DESCRIPTIONS_KEPT: Final = 1_024
BYTES_MAX: Final = 1 << 30  # of the messages of one slice: Arrow's 32-bit offsets end at twice that
HEAD_BYTES: Final = 5  # a tag and a size


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
    columns = [
        binary_column(column, type) if format == BINARY_FORMAT else text_column(column, type, zone)
        for column, type, format in zip(batch.columns, types, formats, strict=True)
    ]
    texts = [(*views.text_of(column), views.mask_of(column)) for column in columns]
    sizes = np.full(batch.num_rows, HEAD_BYTES + 2 + 4 * len(texts), np.int64)
    for offsets, _, valid in texts:
        sizes += lengths_of(offsets, valid)
    places, out = begun(sizes, tag, len(texts))
    for offsets, characters, valid in texts:
        place_fields.over(len(places))(offsets, characters, valid, places, out)
    return bytes(out)


def lengths_of(offsets: Any, valid: Any) -> Any:
    """The bytes of each text, 0 of NULL."""
    lengths = np.diff(offsets)
    return lengths * valid if valid.size else lengths


def begun(sizes: Any, tag: str, columns: int = -1) -> tuple[Any, Any]:
    """Messages of ``sizes`` with their heads, and where their bodies begin; ``columns`` follow the head unless below 0."""
    ends = np.cumsum(sizes)
    places, out = ends - sizes, np.empty(int(ends[-1]), np.uint8)
    place_heads.over(len(places))(ord(tag), columns, sizes, places, out)
    return places, out
