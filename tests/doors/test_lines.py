"""Rows as lines: written by column they are what they are row by row."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.db.values import text_values
from lake.doors.http import lines
from lake.types import BIGINT, BOOLEAN, DOUBLE, NULL, TEXT, Bytes, Date, Decimal, List, Type

TYPES: tuple[Type, ...] = (BIGINT, TEXT, BOOLEAN, DOUBLE, Decimal(9, 2), Date(), List(BIGINT), Bytes(), NULL)
VALUES = {
    "n": st.integers(-(2**63), 2**63 - 1), "s": st.text(alphabet=st.sampled_from('ab",\\\n\r\t\x00\x1f;é€😀 {}')), "b": st.booleans(),
    "f": st.floats(), "d": st.decimals(-9999999, 9999999, places=2), "day": st.dates(), "l": st.lists(st.integers(-5, 5), max_size=3),
    "x": st.binary(max_size=4), "none": st.none(),
}  # fmt: skip
ROWS = st.lists(st.tuples(*(st.none() | values for values in VALUES.values())), max_size=20)


def batch_of(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    """The rows in answer types."""
    arrays = [pa.array([row[i] for row in rows], type.arrow) for i, type in enumerate(TYPES)]
    return pa.RecordBatch.from_arrays(arrays, names=list(VALUES))


@given(rows=ROWS, piece_bytes=st.sampled_from([1, 100, 1 << 20]))
@settings(max_examples=60, deadline=None)
def test_json_by_column_is_json_by_row(rows: list[tuple[object, ...]], piece_bytes: int) -> None:
    """The same objects, whatever is in them."""
    batch = batch_of(rows)
    by_row = lines.json_lines(batch, tuple(VALUES), TYPES, "\n")
    few, piece = lines.FEW_ROWS, lines.PIECE_BYTES
    try:
        lines.FEW_ROWS, lines.PIECE_BYTES = 0, piece_bytes  # type: ignore[misc]
        by_column = lines.json_lines(batch, tuple(VALUES), TYPES, "\n")
    finally:
        lines.FEW_ROWS, lines.PIECE_BYTES = few, piece  # type: ignore[misc]
    assert by_column == by_row
    assert len([json.loads(line) for line in by_row.splitlines()]) == len(rows)


@given(rows=ROWS)
@settings(max_examples=60, deadline=None)
def test_csv_is_read_back(rows: list[tuple[object, ...]]) -> None:
    """Every record has its fields again; NULL is an empty field."""
    batch = batch_of(rows)
    text = lines.csv_lines(batch, TYPES, ",").decode()
    expected = [text_values(batch.column(i), type) for i, type in enumerate(TYPES)]
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found == [["" if value is None else value for value in row] for row in zip(*expected, strict=True)]


def test_the_edges() -> None:
    """No rows, no columns, equal names, many rows."""
    empty = batch_of([])
    assert lines.json_lines(empty, tuple(VALUES), TYPES, "\n") == lines.csv_lines(empty, TYPES, ",") == b""
    twice = pa.RecordBatch.from_arrays([pa.array([1] * 300), pa.array([2] * 300)], names=["a", "a"])
    assert lines.json_lines(twice, ("a", "a"), (BIGINT, BIGINT), "\n") == b'{"a":2}\n' * 300
    many = pa.RecordBatch.from_arrays([pa.array(range(70_000))], names=["a"])
    assert lines.json_lines(many, ("a",), (BIGINT,), "\n").count(b"\n") == 70_000
    assert lines.csv_lines(many.slice(69_999), (BIGINT,), ",") == b"69999\n"
    assert lines.csv_lines(pa.record_batch([pa.array(["", None, "x"])], ["a"]), (TEXT,), ",") == b'""\n\nx\n'
