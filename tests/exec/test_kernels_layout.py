"""Messages and lines laid out row by row: as struct and join make them, compiled and interpreted."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.kernels import interpreted, views
from lake.exec.kernels.layout import find_marked, place_fields, place_heads, place_lines

ROWS = st.lists(st.tuples(*[st.one_of(st.none(), st.binary(max_size=5))] * 2), min_size=1, max_size=5)


def _columns(rows: list[tuple[bytes | None, ...]]) -> list[tuple[Any, Any, Any]]:
    arrays = [pa.array(values, pa.binary()) for values in zip(*rows, strict=True)]
    return [(*views.text_of(array), views.mask_of(array)) for array in arrays]


def _laid(rows: list[tuple[bytes | None, ...]], expected: list[bytes], is_line: bool) -> bytes:
    sizes = np.array([len(each) for each in expected], np.int64)
    places, out = np.cumsum(sizes) - sizes, np.zeros(int(sizes.sum()), np.uint8)
    place_heads(ord("d"), -1 if is_line else 2, sizes, places, out)
    for place, column in enumerate(_columns(rows)):
        if is_line:
            place_lines(*column, np.frombuffer(b"\\N", np.uint8).copy(), b"\t\n"[place], places, out)
        else:
            place_fields(*column, places, out)
    return out.tobytes()


@settings(deadline=None)
@given(rows=ROWS, is_line=st.booleans())
def test_rows_are_laid_out(rows: list[tuple[bytes | None, ...]], is_line: bool) -> None:
    """Each field behind its length, or each line's fields with what stands between them."""
    expected = []
    for row in rows:
        if is_line:
            body = b"\t".join(b"\\N" if value is None else value for value in row) + b"\n"
        else:
            parts = (struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value for value in row)
            body = struct.pack("!h", 2) + b"".join(parts)
        expected.append(b"d" + struct.pack("!i", len(body) + 4) + body)
    assert _laid(rows, expected, is_line) == b"".join(expected)
    with interpreted():
        assert _laid(rows, expected, is_line) == b"".join(expected)


@settings(deadline=None)
@given(texts=st.lists(st.binary(max_size=4), min_size=1), marked=st.binary(max_size=3))
def test_marked_texts_are_found(texts: list[bytes], marked: bytes) -> None:
    """Those that have one of the bytes."""
    marks, offsets_and_bytes = np.zeros(256, np.uint8), views.text_of(pa.array(texts, pa.binary()))
    marks[list(marked)] = 1
    expected = [any(byte in marked for byte in text) for text in texts]
    for function in (find_marked, find_marked.py_func):
        mask = np.zeros(len(texts), np.uint8)
        assert function(*offsets_and_bytes, marks, mask) == sum(expected)
        assert mask.astype(bool).tolist() == expected
