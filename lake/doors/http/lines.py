"""Rows of a batch as lines of text, a column at a time: CSV records and JSON objects.

    csv_lines(batch, types, ",")             b'1,x\\n2,"a,b"\\n'
    json_lines(batch, names, types, "\\n")    b'{"a":1,"b":"x"}\\n{"a":2}\\n'

Each column becomes an array of texts, and Arrow joins them: 65,536 rows of four columns take 40 ms in place of 120 ms, most
of it without the interpreter's lock. Batches of a few rows are written row by row, which is quicker for them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from lake.db.values import json_objects, json_values, text_array
from lake.types import BOOLEAN, Date, Decimal, Integer, Interval, Json, Null, Text, Time, Timestamp, Type

FEW_ROWS: Final = 256
PIECE_BYTES: Final = 32 << 20  # of a batch that are written at once: an array of texts holds at most 2 GiB


def csv_lines(batch: pa.RecordBatch, types: Sequence[Type], separator: str) -> bytes:
    """Records by RFC 4180: a value with the separator, a quote or a line break is quoted; NULL is empty, '' is quoted."""
    if not types:
        return b"\n" * int(batch.num_rows)
    found = []
    for piece in _pieces(batch):
        columns = [_quoted(text_array(piece.column(i), type), separator) for i, type in enumerate(types)]
        lines = pc.binary_join_element_wise(*columns, separator, null_handling="replace", null_replacement="")
        found.append(_joined(lines, "\n"))
    return b"".join(found)


def json_lines(batch: pa.RecordBatch, names: Sequence[str], types: Sequence[Type], end: str) -> bytes:
    """An object for each row, NULLs left out, each followed by ``end``."""
    if batch.num_rows < FEW_ROWS or len(set(names)) < len(names) or not names:
        return b"".join(orjson.dumps(row) + end.encode() for row in json_objects(batch, names, types))
    found = []
    for piece in _pieces(batch):
        members = [_members(piece.column(i), name, type) for i, (name, type) in enumerate(zip(names, types, strict=True))]
        body = pc.utf8_rtrim(pc.binary_join_element_wise(*members, ""), characters=",")
        found.append(_joined(pc.binary_join_element_wise("{", body, "}", ""), end))
    return b"".join(found)


def csv_field(value: str, separator: str) -> str:
    """A value as it stands in a record."""
    if value == "" or any(mark in value for mark in (separator, '"', "\n", "\r")):
        return '"' + value.replace('"', '""') + '"'
    return value


def _quoted(texts: pa.Array, separator: str) -> pa.Array:
    """Values as they stand in a record."""
    marks = pc.match_substring_regex(texts, f'["\\r\\n{re.escape(separator)}]|^$')
    return _replaced(texts, marks, lambda value: csv_field(value, separator))


def _members(array: pa.Array, name: str, type: Type) -> pa.Array:
    """``"name":value,`` for each value, nothing for NULL."""
    head = orjson.dumps(name).decode() + ":"
    texts, quote = _json_texts(array, type)
    members = pc.binary_join_element_wise(f"{head}{quote}", texts, f"{quote},", "")
    return pc.fill_null(members, "") if texts.null_count else members


def _json_texts(array: pa.Array, type: Type) -> tuple[pa.Array, str]:
    """Each value as JSON has it, and what stands on both sides of it."""
    match type:
        case Null():
            return pa.nulls(len(array), pa.string()), ""
        case Integer() | Decimal():
            return text_array(array, type), ""
        case Text() | Json():
            marks = pc.match_substring_regex(array, r'["\\\x00-\x1f]')
            return _replaced(array, marks, lambda value: orjson.dumps(value)[1:-1].decode()), '"'
        case _ if type == BOOLEAN:
            return pc.if_else(array, "true", "false"), ""
        case Date() | Time() | Timestamp() | Interval():
            return text_array(array, type), '"'
        case _:
            # Floats, bytes, lists, structs and maps are written by Python, value by value.
            values = [None if value is None else orjson.dumps(value).decode() for value in json_values(array, type)]
            return pa.array(values, pa.string()), ""


def _replaced(texts: pa.Array, marks: pa.Array, by: Any) -> pa.Array:
    """``texts`` with the marked ones, which are few, changed."""
    marks = pc.fill_null(marks, False)
    if not pc.any(marks).as_py():
        return texts
    changed = [by(value) for value in texts.filter(marks).to_pylist()]
    return pc.replace_with_mask(texts, marks, pa.array(changed, pa.string()))


def _joined(lines: pa.Array, end: str) -> bytes:
    """All values, each followed by ``end``: they lie side by side in one buffer."""
    ended = pc.binary_join_element_wise(lines, "", end)
    _, offsets, values = ended.buffers()
    places = np.frombuffer(offsets, np.int32)[ended.offset : ended.offset + len(ended) + 1]
    return bytes(memoryview(values)[places[0] : places[-1]]) if len(ended) and values is not None else b""


def _pieces(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    rows = max(1, batch.num_rows * PIECE_BYTES // max(batch.nbytes, PIECE_BYTES))
    return [batch.slice(start, rows) for start in range(0, batch.num_rows, rows)]
