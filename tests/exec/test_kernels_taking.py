"""Values at row numbers: as Arrow takes them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.compiled import COMPILED_ROWS
from lake.exec.kernels.join import KeyFilter
from lake.exec.kernels.taking import taken, taken_all
from lake.narrow import narrowed, widened
from tests.exec.test_kernels_groups import VALUES


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(VALUES)), st.booleans(), st.data(), st.integers(0, 9), st.sampled_from([3, COMPILED_ROWS]))
def test_values_at_rows(kind: str, has_nulls: bool, data: st.DataObject, skipped: int, count: int) -> None:
    """Slices of any type, with and without NULLs, some rows missing, few rows and many."""
    type, values = VALUES[kind]
    rows = data.draw(st.lists(st.one_of(st.none(), values) if has_nulls else values, min_size=skipped + 1, max_size=30))
    array = pa.array(rows, type).slice(skipped)
    may_miss = data.draw(st.booleans())
    lowest = -1 if may_miss else 0
    chosen = np.array(data.draw(st.lists(st.integers(lowest, len(array) - 1), max_size=20)) * count, np.int64)
    found = taken(array, chosen, may_miss=may_miss)
    found.validate(full=True)
    expected = array.take(pa.array([None if row < 0 else row for row in chosen.tolist()], pa.int64()))
    assert found.null_count == expected.null_count
    assert [str(value) for value in found] == [str(value) for value in expected]


@pytest.mark.parametrize("type", [pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us", "UTC"), pa.time64("us")])
@pytest.mark.parametrize("value", [7, 300, 70_000])
def test_narrow_columns_become_wide(type: pa.DataType, value: int) -> None:
    """The values are in the type asked for, wherever the slice begins."""
    if type == pa.int16() and value > 1 << 15:
        value = 301
    plain = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[type.bit_width]
    array = pa.array([value, None, 1, value, 0, None, 5, 6, 7, value] * 20, plain).view(type)
    rows = np.arange(3, 180, dtype=np.int64)[::-1].copy()
    for start in (0, 3, 8):
        found = taken(narrowed(array).slice(start), rows, type)
        assert found.equals(array.slice(start).take(pa.array(rows)))


def test_codes_that_are_one_array_stay_so() -> None:
    """Dictionaries over the same codes share those that are gathered."""
    codes = pa.array([0, None, 1] * 50, pa.int32())
    one, other = (pa.DictionaryArray.from_arrays(codes, pa.array(texts)) for texts in (["a", "b"], ["c", None]))
    found = taken_all([one, pa.array([1.5, None, 2.5] * 50), other], np.arange(149, -1, -1))
    assert found[0].to_pylist()[:3] == ["b", None, "a"] and found[2].to_pylist()[:3] == [None, None, "c"]
    assert found[0].indices.buffers()[1].address == found[2].indices.buffers()[1].address
    assert found[1].to_pylist()[:3] == [2.5, None, 1.5]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(-300, 300)), max_size=30),
    st.lists(st.one_of(st.none(), st.integers(-400, 400)), max_size=30),
    st.booleans(), st.booleans(), st.integers(0, 4),
)  # fmt: skip
def test_key_filters_choose_rows(
    keys: list[int | None], probes: list[int | None], is_sparse: bool, is_whole: bool, skipped: int
) -> None:
    """Rows whose key is among the keys pass, of a bitmap those alone, whatever the width of the column."""
    factor = 1 << 50 if is_sparse else 1
    known = KeyFilter.from_keys(pa.array([None if key is None else key * factor for key in keys], pa.int64()))
    column = pa.array([None if key is None else key * factor for key in probes], pa.int64()).slice(skipped)
    rows = None if is_whole else np.arange(0, len(column), 2)
    found = known.rows(narrowed(column), pa.int64(), rows).tolist()
    candidates = range(0, len(column), 1 if is_whole else 2)
    wanted = [row for row in candidates if probes[skipped + row] is not None and probes[skipped + row] in set(keys)]
    assert set(wanted) <= set(found) <= set(candidates) and found == sorted(found)
    if known.is_exact:
        assert found == wanted
    assert widened(narrowed(column), pa.int64()).equals(column)
