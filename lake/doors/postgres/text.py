"""Columns in the text format: what Postgres's output functions write.

    t  f        2024-03-01 12:00:00.5        {1,NULL,3}        \\x41        1 mon 2 days 03:04:05

Whole columns at once: an Arrow kernel wherever there is one. Source: PostgreSQL documentation, chapter 8.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.compiled import COMPILED_ROWS
from lake.exec.cast import cast, interval_parts
from lake.exec.kernels import views
from lake.exec.plain_text import respelled_floats, written_decimals, written_doubles, written_moments
from lake.rows import physical_array
from lake.types import (
    DOUBLE,
    TEXT,
    VECTOR_OIDS,
    Boolean,
    Bytes,
    Decimal,
    Float,
    Integer,
    Interval,
    Json,
    List,
    Null,
    Text,
    Timestamp,
    Type,
)

UTC: Final = ("UTC", "GMT", "Z", "ETC/UTC")
FLOAT_DIGITS: Final = {pa.float64(): 15, pa.float32(): 6}  # before the point; Postgres writes more with an exponent
QUOTED_ITEM: Final = r'^$|[{}",\\\s]|^(?i:null)$'  # an item of an array that must stand in quotes
_HEX: Final = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)


def text_column(column: pa.Array, type: Type, zone: str) -> pa.Array:
    """A column of ``type.arrow`` as binary; NULLs stay."""
    return _text(column, type, zone).cast(pa.binary())


def _text(column: pa.Array, type: Type, zone: str) -> pa.Array:
    match type:
        case Null():
            return pa.nulls(len(column), pa.string())
        case Text() | Json():
            return column
        case Boolean():
            return pc.if_else(column, "t", "f")
        case Integer():
            return _integers(column)
        case Float():
            return _floats(column, type)
        case Decimal():
            return _plain(cast(physical_array(column, type), type, TEXT))
        case Bytes():
            return _hexadecimal(column)
        case Timestamp(zoned):
            return _instants(column, zone) if zoned else _moments(column)
        case Interval():
            return _intervals(column)
        case List(of, spelled=spelled) if spelled in VECTOR_OIDS:
            return pc.binary_join(pc.cast(column, pa.list_(pa.string())), " ")
        case List(of):
            return _arrays(column, of, zone)
        case _ if pa.types.is_time(type.arrow):
            return _trimmed(column.cast(pa.string()))
        case _:
            return column.cast(pa.string())


def _plain(texts: pa.Array) -> pa.Array:
    return texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts


def _integers(column: pa.Array) -> pa.Array:
    if len(column) < COMPILED_ROWS:
        return column.cast(pa.string())
    return written_decimals(views.values_of(column).astype(np.int64, copy=False), views.valid_of(column), 0)


def _floats(column: pa.Array, type: Type) -> pa.Array:
    """Shortest digits that read back alike: ``1``, ``0.1``, ``1e+20``, ``NaN``."""
    written = written_doubles(column) if type == DOUBLE and len(column) >= COMPILED_ROWS else None
    return respelled_floats(column, FLOAT_DIGITS[column.type]) if written is None else written


def _moments(column: pa.Array) -> pa.Array:
    written = written_moments(column) if len(column) >= COMPILED_ROWS else None
    return _trimmed(column.cast(pa.string())) if written is None else written


def _trimmed(texts: pa.Array) -> pa.Array:
    """Seconds without the zeros at the end of their fraction."""
    if not len(texts) or texts.null_count == len(texts):
        return texts
    if pc.all(pc.ends_with(texts, ".000000")).as_py():
        return pc.utf8_slice_codeunits(texts, 0, -7)
    return pc.replace_substring_regex(texts, r"\.?0+$", "")


def _instants(column: pa.Array, zone: str) -> pa.Array:
    """Wall clock in the session's zone, and its distance from UTC: ``2024-03-01 12:00:00+01``."""
    if zone.upper() in UTC:
        texts = _moments(column.cast(pa.timestamp("us")))
        return pc.binary_join_element_wise(texts, "+00", "")
    wall = pc.local_timestamp(column.cast(pa.timestamp("us", tz=zone)))
    away = (views.values_of(wall).astype(np.int64) - views.values_of(column).astype(np.int64)) // 1_000_000
    names, places = np.unique(away, return_inverse=True)
    offsets = pa.array([_offset(int(seconds)) for seconds in names], pa.string()).take(pa.array(places.reshape(-1)))
    return pc.binary_join_element_wise(_moments(wall), offsets, "")


def _offset(seconds: int) -> str:
    sign, rest = "-" if seconds < 0 else "+", abs(seconds)
    text = f"{sign}{rest // 3600:02}"
    if rest % 3600:
        text += f":{rest % 3600 // 60:02}"
    return text + (f":{rest % 60:02}" if rest % 60 else "")


def _hexadecimal(column: pa.Array) -> pa.Array:
    """``\\x`` and two digits a byte: every byte of the column becomes two at once."""
    offsets = views.buffer_view(column.buffers()[1], np.int32, len(column) + 1, column.offset)
    start, end = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    digits = _HEX[views.buffer_view(column.buffers()[2], np.uint8, end - start, start)]
    moved = ((offsets - start) * 2).astype(np.int32)
    made = pa.Array.from_buffers(pa.string(), len(column), [None, pa.py_buffer(moved), pa.py_buffer(digits)])
    texts = pc.binary_join_element_wise("\\x", made, "")
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string())) if column.null_count else texts


def _intervals(column: pa.Array) -> pa.Array:
    """Intervals are few and have many parts: one by one."""
    months, days, nanoseconds = interval_parts(column)
    valid = column.is_valid().to_pylist()
    parts = zip(months.tolist(), days.tolist(), nanoseconds.tolist(), valid, strict=True)
    return pa.array([interval_text(m, d, n) if kept else None for m, d, n, kept in parts], pa.string())


def interval_text(months: int, days: int, nanoseconds: int) -> str:
    """An interval in the style ``postgres``: ``1 year 2 mons 3 days 04:05:06``."""
    years, months = int(months / 12), int(months - 12 * int(months / 12))
    words: list[str] = []
    for count, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if count:
            sign = "+" if words and words[-1].startswith("-") and count > 0 else ""
            words.append(f"{sign}{count} {unit}{'' if count == 1 else 's'}")
    micros = int(nanoseconds / 1_000)
    if micros or not words:
        sign = "-" if micros < 0 else "+" if words and words[-1].startswith("-") else ""
        seconds, fraction = divmod(abs(micros), 1_000_000)
        clock = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        words.append(clock + (f".{fraction:06}".rstrip("0") if fraction else ""))
    return " ".join(words)


def _arrays(column: pa.Array, of: Type, zone: str) -> pa.Array:
    """``{1,NULL,"a b"}``: items as texts, quoted where they must be, joined list by list."""
    if column.offset:
        column = column.take(pa.array(np.arange(len(column))))
    items = _text(column.values, of, zone)
    if isinstance(of, Text | Json | Bytes | Timestamp | Interval):
        items = _quoted(items)
    items = items.fill_null("NULL")
    lists: Any = pa.ListArray.from_arrays(column.offsets, items, mask=column.is_null() if column.null_count else None)
    return pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")


def _quoted(items: pa.Array) -> pa.Array:
    must = pc.match_substring_regex(items, QUOTED_ITEM)
    if not pc.any(must).as_py():
        return items
    escaped = pc.replace_substring_regex(items, r'(["\\])', r"\\\1")
    return pc.if_else(must, pc.binary_join_element_wise('"', escaped, '"', ""), items)
