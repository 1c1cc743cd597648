"""A few rows as DataRow messages, value by value: for one row, starting the kernels of whole columns takes longest.

Types whose value in an answer is its value in memory have encoders; an answer with any other goes the way of all columns.
Source: PostgreSQL documentation, 55.7 (DataRow).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from lake.doors.postgres.rows import data_rows
from lake.exec.per_row import per_row
from lake.types import Boolean, Float, Integer, Text, Type, Uuid

if TYPE_CHECKING:
    from lake.db.result import Result

VALUES_MAX: Final = 64
_HEAD: Final = struct.Struct("!ciH")
_SIZE: Final = struct.Struct("!i")
_NULL: Final = _SIZE.pack(-1)
_TRUTHS: Final = {0: (b"f", b"t"), 1: (b"\x00", b"\x01")}

Encode = Callable[[Any], bytes]


def rows_at_hand(
    result: Result, formats: tuple[int, ...], zone: str, encoders: Sequence[Encode | None]
) -> tuple[bytes, int]:
    """All DataRow messages of an answer in memory, and their number; of a remembered one they are remembered with it."""
    count, encoded = result.count_at_hand, result.encoded
    if encoded is None:
        return _made(result, count, formats, zone, encoders), count
    key = ("postgres", formats, zone)
    made = encoded.get(key)
    if made is None:
        made = encoded[key] = _made(result, count, formats, zone, encoders)
    return made, count


def _made(
    result: Result, count: int, formats: tuple[int, ...], zone: str, encoders: Sequence[Encode | None]
) -> bytes:
    if count * len(formats) > VALUES_MAX or None in encoders:
        return b"".join([data_rows(batch, result.types, formats, zone) for batch in result.batches()])
    rows = result.few
    if rows is None:
        columns = ([column.to_pylist() for column in batch.columns] for batch in result.source)
        rows = [row for values in columns for row in zip(*values, strict=True)]
    return few_rows(rows, cast("Sequence[Encode]", encoders))


def encoders_of(types: Sequence[Type], formats: Sequence[int]) -> list[Encode | None]:
    """What encodes a value of each column in its format; None of a type whose value in memory is another."""
    return [_ENCODERS.get((type, format)) for type, format in zip(types, formats, strict=True)]


@per_row
def few_rows(rows: Sequence[tuple[Any, ...]], encoders: Sequence[Encode]) -> bytes:
    """The DataRow messages of rows of values in physical form.

    Goes row by row: there are at most VALUES_MAX values.
    """
    parts: list[bytes] = []
    for row in rows:
        values: list[bytes] = []
        for value, encode in zip(row, encoders, strict=True):
            if value is None:
                values.append(_NULL)
            else:
                made = encode(value)
                values += (_SIZE.pack(len(made)), made)
        body = b"".join(values)
        parts += (_HEAD.pack(b"D", len(body) + 6, len(encoders)), body)
    return b"".join(parts)


def _digits(value: int) -> bytes:
    return b"%d" % value


def _double(value: float) -> bytes:
    """Shortest digits that read back alike, as Postgres writes them: from 1e15 on with an exponent."""
    if value - value != 0.0:
        return b"NaN" if value != value else b"Infinity" if value > 0 else b"-Infinity"
    text = repr(value).removesuffix(".0")
    if not 1e15 <= abs(value) < 1e16:
        return text.encode()
    digits = text.lstrip("-").replace(".", "")
    mantissa = f"{digits[0]}.{digits[1:]}".rstrip("0").rstrip(".")
    return f"{'-' * (value < 0)}{mantissa}e+15".encode()


_ENCODERS: Final[dict[tuple[Type, int], Encode]] = {
    **{(Integer(bits), 0): _digits for bits in (8, 16, 32, 64)},
    **{(Integer(bits), 1): struct.Struct(form).pack for bits, form in ((8, "!h"), (16, "!h"), (32, "!i"), (64, "!q"))},
    **{(Float(bits), 1): struct.Struct(form).pack for bits, form in ((32, "!f"), (64, "!d"))},
    (Float(64), 0): _double,
    **{(Boolean(), format): _TRUTHS[format].__getitem__ for format in (0, 1)},
    **{(Text(), format): str.encode for format in (0, 1)},
    (Uuid(), 0): str.encode,
}
