"""Group numbers against a dictionary of Python tuples."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.kernels import interpreted, tables
from lake.exec.kernels.groups import GroupTable
from lake.exec.kernels.hashing import hash_columns
from lake.exec.kernels.partition import deal_rows
from lake.exec.kernels.views import ALL_VALID

INT64 = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-3, 3))
VALUES = {
    "int64": (pa.int64(), INT64),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "bool": (pa.bool_(), st.booleans()),
    "double": (pa.float64(), st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.5, -2.0])),
    "date": (pa.date32(), st.dates()),
    "text": (pa.string(), st.text("ab\0é", max_size=20)),
    "codes": (pa.dictionary(pa.int32(), pa.string()), st.text("ab", max_size=2)),
    "decimal": (pa.decimal128(38, 2), st.decimals(-(10**30), 10**30, places=2)),
    "interval": (pa.month_day_nano_interval(), st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(-1, 1))),
    "list": (pa.list_(pa.int64()), st.lists(st.integers(0, 1), max_size=2)),
    "null": (pa.null(), st.none()),
}


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[pa.DataType], list[list[tuple[object, ...]]]]:
    """Types of one to three key columns, and batches of rows."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    row = st.tuples(*(st.one_of(st.none(), VALUES[kind][1]) for kind in kinds))
    return [VALUES[kind][0] for kind in kinds], draw(st.lists(st.lists(row, max_size=12), max_size=4))


def canonical(value: object) -> object:
    """A value that equals where keys do."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return tuple(value)
    return tuple(value) if isinstance(value, tuple) else value


def columns_of(types: list[pa.DataType], rows: list[tuple[object, ...]]) -> list[pa.Array]:
    return [pa.array([row[index] for row in rows], type) for index, type in enumerate(types)]


@settings(max_examples=120, deadline=None)
@given(batches())
def test_numbers_follow_first_appearance(given_batches) -> None:
    """Every row has the number of its key, found again later, and the keys come back."""
    types, parts = given_batches
    table, numbers = GroupTable(), {}
    for rows in parts:
        keys = columns_of(types, rows)
        expected = [numbers.setdefault(tuple(map(canonical, row)), len(numbers)) for row in rows]
        assert table.insert(keys).tolist() == expected
        assert table.find(keys).tolist() == expected
    assert table.count == len(numbers)
    if parts:
        found = table.keys()
        rows = list(zip(*(key.to_pylist() for key in found), strict=True))
        assert [tuple(map(canonical, row)) for row in rows] == list(numbers)
        assert [key.type for key in found] == [
            type.value_type if pa.types.is_dictionary(type) else type for type in types
        ]


@settings(max_examples=40, deadline=None)
@given(batches())
def test_merged_tables_hold_both(given_batches) -> None:
    """The mapping of a merge gives each group of the other table its number here."""
    types, parts = given_batches
    halves = [GroupTable(), GroupTable()]
    for index, rows in enumerate(parts):
        halves[index % 2].insert(columns_of(types, rows))
    mapping = halves[0].merge(halves[1])
    assert len(mapping) == halves[1].count
    if halves[1].count:
        assert halves[0].find(halves[1].keys()).tolist() == mapping.tolist()


@settings(max_examples=60, deadline=None)
@given(batches())
def test_equal_keys_hash_alike(given_batches) -> None:
    """Rows hash alike exactly where their keys are equal, in a dictionary or not."""
    types, parts = given_batches
    rows = [row for part in parts for row in part]
    hashes = hash_columns(columns_of(types, rows)).tolist()
    keys = [tuple(map(canonical, row)) for row in rows]
    assert len(set(zip(keys, hashes, strict=True))) == len(set(keys)) == len(set(hashes))
    plain = [type.value_type if pa.types.is_dictionary(type) else type for type in types]
    assert hash_columns(columns_of(plain, rows)).tolist() == hashes


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.none(), INT64), max_size=30), st.booleans())
def test_compiled_and_plain_kernels_agree(words: list[int | None], far: bool) -> None:
    """The kernels answer what their Python text says."""
    values = np.array([(word or 0) % (1 << 62 if far else 50) for word in words], np.int64)
    valid = np.array([word is not None for word in words], np.uint8)

    def run() -> tuple[list[int], list[int]]:
        table = tables.WordTable()
        return table.insert(values, valid).tolist(), table.find(values + 1, ALL_VALID).tolist()

    with interpreted():
        plain = run()
    assert run() == plain


@pytest.mark.parametrize("step", [1, 3, 1_000_003, -7919])
def test_many_groups(step: int) -> None:
    """Tables grow: dense, hashed, of texts and of rows."""
    keys = np.arange(20_000, dtype=np.int64) * step
    shuffled = np.random.default_rng(7).permutation(np.repeat(keys, 2))
    for column in ([pa.array(shuffled)], [pa.array(shuffled).cast(pa.string())],
                   [pa.array(shuffled), pa.array(shuffled * (1 << 40))]):  # fmt: skip
        table = GroupTable()
        numbers = np.concatenate([table.insert([part.slice(at, 999) for part in column]) for at in range(0, 40_000, 999)])
        assert table.count == 20_000
        assert table.keys()[0].take(pa.array(numbers)).equals(column[0])
        assert table.find([part.slice(5, 3) for part in column]).tolist() == numbers[5:8].tolist()


def test_far_dense_ranges_widen_both_ways() -> None:
    """Words just within the widest dense range and just beyond it."""
    edge = tables.DENSE_SLOTS_MAX - 1
    for words in ([0, edge, -1], [5, 5 - edge, 6 - edge], [-(1 << 63), (1 << 63) - 1, 0]):
        table = tables.WordTable()
        assert [int(table.insert(np.array([word]), ALL_VALID)[0]) for word in words] == [0, 1, 2]
        assert table.find(np.array(words), ALL_VALID).tolist() == [0, 1, 2]
        assert table.nbytes > 0


def test_partitions_keep_order() -> None:
    """A partition holds its rows in their order."""
    hashes = hash_columns([pa.array(range(1000))])
    order, offsets = deal_rows(hashes, 4)
    assert sorted(order.tolist()) == list(range(1000)) and offsets[-1] == 1000
    for part in range(16):
        rows = order[offsets[part] : offsets[part + 1]]
        assert (np.diff(rows) > 0).all() and (hashes[rows] >> np.uint64(60) == part).all()


def test_sliced_and_chunked_keys() -> None:
    """Slices and chunks of arrays are their rows."""
    text = pa.array(["x", None, "y", "x", None])
    table = GroupTable()
    assert table.insert([text.slice(1), pa.array([True, False, True, None]).slice(0)]).tolist() == [0, 1, 2, 3]
    assert table.insert([pa.chunked_array([text.slice(2, 1), text.slice(3, 1)]), pa.array([False, True])]).tolist() == [1, 2]
