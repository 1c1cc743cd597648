"""Rows one by one are, byte for byte, what whole columns make of them."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.doors.postgres.few import VALUES_MAX, few_rows
from lake.doors.postgres.rows import data_rows
from lake.rows import answer_array
from lake.types import BIGINT, BOOLEAN, DOUBLE, INT, REAL, SMALLINT, TEXT, TIMESTAMP, Type, Uuid

VALUES: Final[dict[Type, st.SearchStrategy[Any]]] = {
    SMALLINT: st.integers(-(1 << 15), (1 << 15) - 1),
    INT: st.integers(-(1 << 31), (1 << 31) - 1),
    BIGINT: st.integers(-(1 << 63), (1 << 63) - 1),
    REAL: st.floats(width=32),
    DOUBLE: st.floats(),
    BOOLEAN: st.booleans(),
    TEXT: st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    Uuid(): st.uuids().map(str),
}


@settings(deadline=None)
@given(st.data())
def test_few_rows_are_what_columns_make(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    formats = [data.draw(st.sampled_from((0, 1))) for _ in types]
    rows = data.draw(st.integers(0, VALUES_MAX // len(types)))
    columns = [
        pa.array(data.draw(st.lists(st.none() | VALUES[type], min_size=rows, max_size=rows)), type.physical) for type in types
    ]
    names = [str(place) for place in range(len(types))]
    batch = pa.RecordBatch.from_arrays(columns, names=names)
    made = few_rows([batch], types, formats)
    answers = [answer_array(column, type) for column, type in zip(columns, types, strict=True)]
    whole = data_rows(pa.RecordBatch.from_arrays(answers, names=names), types, formats, "UTC")
    if any((type, format) in ((REAL, 0), (DOUBLE, 0), (Uuid(), 1)) for type, format in zip(types, formats)):
        assert made is None or rows == 0  # the digits of floats and the bytes of UUIDs are the columns' work
    else:
        assert made == whole


@pytest.mark.parametrize("coded", [pa.array(["a", "b", "a", None]).dictionary_encode(), pa.array([1, 2, None], pa.int8())])
def test_coded_and_narrow_columns_are_read_as_their_values(coded: pa.Array) -> None:
    type: Type = TEXT if pa.types.is_dictionary(coded.type) else BIGINT
    made = few_rows([pa.RecordBatch.from_arrays([coded], names=["x"])], [type], [0])
    answer = pa.RecordBatch.from_arrays([answer_array(coded, type)], names=["x"])
    assert made == data_rows(answer, [type], [0], "UTC")


def test_many_values_and_other_types_go_the_way_of_columns() -> None:
    many = pa.RecordBatch.from_arrays([pa.array(range(VALUES_MAX + 1), pa.int64())], names=["x"])
    assert few_rows([many], [BIGINT], [0]) is None
    moment = pa.RecordBatch.from_arrays([pa.array([0], TIMESTAMP.physical)], names=["x"])
    assert few_rows([moment], [TIMESTAMP], [0]) is None
