"""Narrow columns and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.narrow import narrowed, widened, widened_row

TYPES = [pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us")]


@given(st.sampled_from(TYPES), st.sampled_from([7, 8, 15, 16, 31, 32, 40, 62]), st.data())
def test_values_come_back(type: pa.DataType, bits: int, data: st.DataObject) -> None:
    """A narrow column has the same values, NULLs where they were, and never more bytes."""
    end = 1 << min(bits, type.bit_width - 1)
    low = 0 if pa.types.is_time64(type) else -end
    numbers = st.integers(low, min(end - 1, 86_399_999_999) if pa.types.is_time64(type) else end - 1)
    values = data.draw(st.lists(st.one_of(st.none(), numbers), max_size=20))
    array = pa.array(values, pa.int64()).cast({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[type.bit_width]).view(type)
    narrow = narrowed(array)
    assert narrow.type.bit_width <= type.bit_width
    assert widened(narrow, type).equals(array)
    assert widened(narrow.slice(1), type).equals(array.slice(1))
    assert all(widened_row(narrow, row, type).equals(array.slice(row, 1)) for row in range(len(array)))


def test_codes_of_dictionaries() -> None:
    """Codes take a byte where there are few entries."""
    coded = pa.array(["a", "b", None, "a"]).dictionary_encode()
    narrow = narrowed(coded)
    assert narrow.indices.type == pa.int8() and narrow.to_pylist() == coded.to_pylist()
    assert widened(narrow, pa.string()).indices.type == pa.int32()
    assert [widened_row(narrow, row, pa.string()).to_pylist() for row in range(4)] == [["a"], ["b"], [None], ["a"]]
    many = pa.array([str(number) for number in range(200)]).dictionary_encode()
    assert narrowed(many).indices.type == pa.int16()


@pytest.mark.parametrize("array", [
    pa.array([1.5]), pa.array(["a"]), pa.array([True]), pa.array([[1]]), pa.array([b"x"]), pa.array([None]), pa.array([1], pa.int8()),
])  # fmt: skip
def test_other_types_stay(array: pa.Array) -> None:
    """What is no whole number is left alone."""
    assert narrowed(array) is array and widened(array, array.type) is array
