"""Batches put together."""

from __future__ import annotations

import pyarrow as pa

from lake.exec.operators.batches import concat_columns


def test_lists_whose_inner_fields_have_other_names() -> None:
    """Parquet calls the inner field of a list otherwise than Arrow does; the values are the same."""
    one = pa.array([[1], None], pa.list_(pa.int32()))
    two = pa.array([[2, None]], pa.list_(pa.field("element", pa.int32())))
    assert concat_columns([one, two]).to_pylist() == [[1], None, [2, None]]
    assert concat_columns([two, one]).to_pylist() == [[2, None], [1], None]


def test_texts_of_several_kinds() -> None:
    """Codes are undone, and the widest offsets win."""
    chunks = [pa.array(["a"]), pa.array(["b"]).dictionary_encode(), pa.array(["c"], pa.large_string())]
    assert concat_columns(chunks).to_pylist() == ["a", "b", "c"]
