"""Numbers and moments from texts of the plain forms and to them, by kernels."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec import decimals
from lake.exec.kernels import views
from lake.exec.kernels.numerals import (
    FLOAT_BYTES_MAX,
    MICROS_MAX,
    MICROS_MIN,
    MOMENT_BYTES_MAX,
    NUMBER_BYTES_MAX,
    read_clocks,
    read_decimals,
    read_integers,
    read_moments,
    respell_floats,
    write_decimals,
    write_doubles,
    write_moments,
)
from lake.types import DECIMAL_INT64_DIGITS_MAX, Decimal, Integer, Time, Timestamp, Type

_UTC: Final = ("UTC", "Z", "GMT")
_WITHOUT_ZONE, _WITH_ZONE, _IN_UTC = range(3)


def read_plain(body: Any, starts: Any, lengths: Any, target: Type, zone: str) -> pa.Array | None:
    """The values of the fields of ``body`` in the physical type of ``target``; None where some field has another form.

    starts   int32[rows]    lengths  int32[rows], -1 of NULL    zone  the session's, for moments without an offset
    """
    if target.spelled:
        return None
    made = np.empty(len(starts), np.int64)
    match target:
        case Integer(bits):
            bound = 1 << (bits - 1)
            wrong = read_integers(body, starts, lengths, -bound, bound - 1, made)
        case Decimal(precision, scale) if scale <= DECIMAL_INT64_DIGITS_MAX:
            limit = 10 ** min(precision, DECIMAL_INT64_DIGITS_MAX)
            wrong = read_decimals(body, starts, lengths, scale, limit, made)
        case Timestamp(zoned):
            form = _WITHOUT_ZONE if not zoned else _IN_UTC if zone.upper() in _UTC else _WITH_ZONE
            wrong = read_moments(body, starts, lengths, form, made)
        case Time():
            wrong = read_clocks(body, starts, lengths, made)
        case _:
            return None
    if wrong >= 0:
        return None
    valid = (lengths >= 0).astype(np.uint8)
    if valid.all():
        valid = views.ALL_VALID
    if isinstance(target, Decimal):
        return decimals.widen(views.to_array(made, pa.int64(), valid), target)
    if isinstance(target, Integer):
        return views.to_array(made.astype(target.physical.to_pandas_dtype(), copy=False), target.physical, valid)
    return views.to_array(made, target.physical, valid)


def read_plain_texts(texts: pa.Array, target: Type, zone: str) -> pa.Array | None:
    """``read_plain`` of an array of texts."""
    if not views.is_text(texts.type):
        return None
    offsets, body = views.text_of(texts)
    if offsets.dtype != np.int32:
        return None
    lengths = np.diff(offsets)
    if texts.null_count:
        lengths = np.where(views.valid_of(texts) == 1, lengths, np.int32(-1))
    return read_plain(body, offsets[:-1], lengths, target, zone)


def written_decimals(values: Any, valid: Any, scale: int) -> pa.Array:
    """Scaled integers, int64[rows], with all digits of their scale; ``valid`` is uint8[rows], None without NULLs."""
    offsets, made = np.empty(len(values) + 1, np.int32), np.empty(len(values) * NUMBER_BYTES_MAX, np.uint8)
    size = write_decimals(values, views.ALL_VALID if valid is None else valid, scale, offsets, made)
    return views.text_array(offsets, made[:size].copy(), pa.string(), valid)


def written_doubles(column: pa.Array) -> pa.Array | None:
    """Doubles as ``1``, ``-0.25``; None where ``write_doubles`` knows one not."""
    valid = views.valid_of(column)
    offsets, made = np.empty(len(column) + 1, np.int32), np.empty(len(column) * NUMBER_BYTES_MAX, np.uint8)
    size = write_doubles(views.values_of(column), views.ALL_VALID if valid is None else valid, offsets, made)
    return None if size < 0 else views.text_array(offsets, made[:size].copy(), pa.string(), valid)


def respelled_floats(column: pa.Array, high: int) -> pa.Array:
    """Floats as Postgres writes them, without an exponent from 1e-4 on and below ten to the power of ``high``."""
    texts, characters = views.text_of(column.cast(pa.string()))
    offsets, made = np.empty(len(column) + 1, np.int32), np.empty(len(column) * FLOAT_BYTES_MAX, np.uint8)
    size = respell_floats(texts, characters, high, offsets, made)
    return views.text_array(offsets, made[:size].copy(), pa.string(), views.valid_of(column))


def written_moments(column: pa.Array) -> pa.Array | None:
    """Microseconds since 1970 as ``2024-03-01 12:00:00.5``; None where one is outside the years 1 to 9999."""
    values = views.values_of(column)
    if len(values) and (values.min() < MICROS_MIN or values.max() > MICROS_MAX):
        return None
    valid = views.valid_of(column)
    offsets, made = np.empty(len(values) + 1, np.int32), np.empty(len(values) * MOMENT_BYTES_MAX, np.uint8)
    size = write_moments(values, views.ALL_VALID if valid is None else valid, offsets, made)
    return views.text_array(offsets, made[:size].copy(), pa.string(), valid)
