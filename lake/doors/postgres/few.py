"""A few rows as DataRow messages, value by value: for one row, starting the kernels of whole columns takes longest.

Types whose value in an answer is its value in memory are encoded here; an answer with any other goes the way of all columns.
Source: PostgreSQL documentation, 55.7 (DataRow).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from lake.exec.per_row import per_row
from lake.types import Boolean, Float, Integer, Text, Type, Uuid

VALUES_MAX: Final = 64
_HEAD: Final = struct.Struct("!ciH")
_SIZE: Final = struct.Struct("!i")
_NULL: Final = _SIZE.pack(-1)
_TRUTHS: Final = {0: (b"f", b"t"), 1: (b"\x00", b"\x01")}

Encode = Callable[[Any], bytes]


@per_row
def few_rows(batches: Sequence[pa.RecordBatch], types: Sequence[Type], formats: Sequence[int]) -> bytes | None:
    """The DataRow messages of batches in physical types; None of many values, or of a type that is not encoded here.

    Goes row by row: there are at most VALUES_MAX values.
    """
    if sum(batch.num_rows for batch in batches) * len(types) > VALUES_MAX:
        return None
    encoders = [_ENCODERS.get((type, format)) for type, format in zip(types, formats, strict=True)]
    parts: list[bytes] = []
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            values: list[bytes] = []
            for value, encode in zip(row, encoders, strict=True):
                if encode is None:
                    return None
                if value is None:
                    values.append(_NULL)
                else:
                    made = encode(value)
                    values += (_SIZE.pack(len(made)), made)
            body = b"".join(values)
            parts += (_HEAD.pack(b"D", len(body) + 6, len(types)), body)
    return b"".join(parts)


def _digits(value: int) -> bytes:
    return b"%d" % value


_ENCODERS: Final[dict[tuple[Type, int], Encode]] = {
    **{(Integer(bits), 0): _digits for bits in (8, 16, 32, 64)},
    **{(Integer(bits), 1): struct.Struct(form).pack for bits, form in ((8, "!h"), (16, "!h"), (32, "!i"), (64, "!q"))},
    **{(Float(bits), 1): struct.Struct(form).pack for bits, form in ((32, "!f"), (64, "!d"))},
    **{(Boolean(), format): _TRUTHS[format].__getitem__ for format in (0, 1)},
    **{(Text(), format): str.encode for format in (0, 1)},
    (Uuid(), 0): str.encode,
}
