"""Bytes of nested values against the order of Python's values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.kernels.nested import encoded

TYPE = pa.list_(pa.struct([("a", pa.list_(pa.int64())), ("b", pa.string()), ("c", pa.float64())]))
ROWS = st.lists(
    st.none()
    | st.lists(
        st.none()
        | st.fixed_dictionaries({
            "a": st.none() | st.lists(st.none() | st.integers(-2, 2), max_size=3),
            "b": st.none() | st.text("\0\1\2ab", max_size=3),
            "c": st.none() | st.sampled_from([-1.0, -0.0, 0.0, 2.5, float("inf"), float("nan")]),
        }),
        max_size=2,
    ),
    max_size=12,
)  # fmt: skip


def key(value: Any) -> Any:
    """What Python orders as SQL orders the value: NULL last, NaN after all numbers."""
    match value:
        case None:
            return (2,)
        case dict():
            return (1, [key(value[name]) for name in "abc"])
        case list():
            return (1, [key(item) for item in value])
        case float() if value != value:
            return (1, 1, 0.0)
        case float():
            return (1, 0, value)
    return (1, value)


@settings(max_examples=300, deadline=None)
@given(ROWS, st.integers(0, 2))
def test_order(rows: list[Any], skipped: int) -> None:
    """Bytes are equal where values are, and in their order, over slices too."""
    found = encoded(pa.array(rows, TYPE).slice(skipped)).to_pylist()
    rows = rows[skipped:]
    assert [item is None for item in found] == [row is None for row in rows]
    pairs = [(key(row), item) for row, item in zip(rows, found) if row is not None]
    for one, first in pairs:
        for two, second in pairs:
            assert (one < two, one == two) == (first < second, first == second)


def test_other_types() -> None:
    """Maps, fixed lists, decimals, intervals and dictionaries have bytes, equal for equal values."""
    pairs = pa.array([[("a", 1)], [("a", 1)], [("b", 0)], None], pa.map_(pa.string(), pa.int64()))
    decimals = pa.array([[1], [1], [-2], None], pa.list_(pa.decimal128(38, 2)))
    fixed = pa.array([[1, 2], [1, 2], [0, 9], None], pa.list_(pa.int64(), 2))
    spans = pa.array([[(1, 0, 0)], [(0, 30, 0)], [(0, 0, -1)], None], pa.list_(pa.month_day_nano_interval()))
    for array in (pairs, decimals, fixed, spans, pairs.cast(pairs.type)):
        one, two, three, none = encoded(array).to_pylist()
        assert one == two and three != one and none is None
        assert encoded(array.slice(1)).to_pylist() == [two, three, none]
    assert encoded(decimals)[2].as_py() < encoded(decimals)[0].as_py()
    assert encoded(spans)[2].as_py() < encoded(spans)[0].as_py()
