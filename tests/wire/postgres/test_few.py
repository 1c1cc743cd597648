"""Rows one by one are, byte for byte, what whole columns make of them."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.db.result import Result
from lake.doors.postgres import few
from lake.doors.postgres.few import VALUES_MAX, encoders_of, rows_at_hand
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
PLAIN_TYPES: Final = (SMALLINT, INT, BIGINT, DOUBLE, BOOLEAN, TEXT)


def _sent(columns: list[pa.Array], types: list[Type], formats: list[int], *, as_values: bool = False) -> tuple[bytes, int]:
    """The messages of columns in physical types, as batches or as values found by a key."""
    batch = pa.RecordBatch.from_arrays(columns, names=[str(place) for place in range(len(types))])
    values = list(zip(*(column.to_pylist() for column in columns), strict=True)) if as_values else None
    result = Result(tuple(batch.schema.names), tuple(types), "SELECT", source=[batch], few=values)
    return rows_at_hand(result, tuple(formats), "UTC", encoders_of(types, formats))


def _whole(columns: list[pa.Array], types: list[Type], formats: list[int]) -> bytes:
    answers = [answer_array(column, type) for column, type in zip(columns, types, strict=True)]
    names = [str(place) for place in range(len(types))]
    return data_rows(pa.RecordBatch.from_arrays(answers, names=names), types, formats, "UTC")


@settings(deadline=None)
@given(st.data())
def test_few_rows_are_what_columns_make(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    formats = [data.draw(st.sampled_from((0, 1))) for _ in types]
    rows = data.draw(st.integers(0, VALUES_MAX // len(types)))
    columns = [
        pa.array(data.draw(st.lists(st.none() | VALUES[type], min_size=rows, max_size=rows)), type.physical) for type in types
    ]
    assert _sent(columns, types, formats) == (_whole(columns, types, formats), rows)
    if all(type in PLAIN_TYPES for type in types):
        assert _sent(columns, types, formats, as_values=True) == (_whole(columns, types, formats), rows)
    is_others = any((type, format) in ((REAL, 0), (Uuid(), 1)) for type, format in zip(types, formats))
    assert (None in encoders_of(types, formats)) == is_others, "whose texts and bytes are the columns' work"


@pytest.mark.parametrize("value", [
    0.0, -0.0, 1.0, -1.5, 0.1, 1e-4, 1e-5, 123456789012345.0, 999999999999999.9, 1e15, 1234567890123456.0, -9007199254740993.0, 1e16,
    1.7976931348623157e308, 5e-324, 1e22, float("inf"), float("-inf"), float("nan"),
])  # fmt: skip
def test_doubles_have_the_digits_of_columns(value: float) -> None:
    columns = [pa.array([value])]
    assert _sent(columns, [DOUBLE], [0]) == (_whole(columns, [DOUBLE], [0]), 1)


@pytest.mark.parametrize("coded", [pa.array(["a", "b", "a", None]).dictionary_encode(), pa.array([1, 2, None], pa.int8())])
def test_coded_and_narrow_columns_are_read_as_their_values(coded: pa.Array) -> None:
    type: Type = TEXT if pa.types.is_dictionary(coded.type) else BIGINT
    assert _sent([coded], [type], [0]) == (_whole([coded], [type], [0]), len(coded))


def test_many_values_and_other_types_go_the_way_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "few_rows", lambda *given: pytest.fail("value by value"))
    many = [pa.array(range(VALUES_MAX + 1), pa.int64())]
    assert _sent(many, [BIGINT], [0])[1] == VALUES_MAX + 1
    assert _sent([pa.array([0], TIMESTAMP.physical)], [TIMESTAMP], [0])[1] == 1
