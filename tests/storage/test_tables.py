"""Rows to Parquet and back: every type, every skip justified, codes kept, other readers served."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal as Exact
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import DataCorrupted, UndefinedColumn
from lake.narrow import widened
from lake.rows import Predicate, answer_array
from lake.storage import Append, Lake
from lake.storage.catalog.changes import AddFiles, CreateTable
from lake.storage.catalog.model import SYSTEM_COLUMNS, ColumnRange
from lake.storage.tables.hot import REST_SECS, HotColumns
from lake.storage.tables.prune import may_match
from lake.storage.tables.read import PLACE_BITS
from lake.storage.tables.write import GROUP_ROWS
from lake.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    JSON,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    Decimal,
    List,
    Type,
)
from tests.storage.lakes import contents, lake_with_table, open_lake, rows_of, table_of

SAMPLES: list[tuple[Type, list[Any]]] = [
    (BOOLEAN, [True, False, None]),
    (TINYINT, [-128, 127, None]),
    (SMALLINT, [-(1 << 15), 5, None]),
    (INT, [-(1 << 31), (1 << 31) - 1, None]),
    (BIGINT, [-(1 << 63), (1 << 63) - 1, None]),
    (REAL, [1.5, -0.0, None]),
    (DOUBLE, [math.inf, 1e-300, None]),
    (TEXT, ["", "żółć" * 30, None]),
    (JSON, ['{"a":1}', "null", None]),
    (BYTES, [b"", b"\0\xff", None]),
    (DATE, [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    (TIME, [datetime.time(0), datetime.time(23, 59, 59, 999_999), None]),
    (TIMESTAMP, [datetime.datetime(1969, 1, 1, 1), datetime.datetime(2200, 1, 1), None]),
    (TIMESTAMPTZ, [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), None, None]),
    (INTERVAL, [pa.MonthDayNano([1, -2, 3]), None, pa.MonthDayNano([0, 0, 0])]),
    (Decimal(4, 2), [-9999, 1, None]),
    (Decimal(18, 0), [10**18 - 1, -(10**18) + 1, None]),
    (Decimal(38, 10), [Exact("1234567890123456789012345678.0123456789"), Exact("-1"), None]),
    (List(BIGINT), [[1, None], [], None]),
    (List(TEXT), [["a"], None, [""]]),
    (List(Decimal(15, 2)), [[150, None], [], None]),
]


def lake_of_types() -> tuple[Lake, pa.RecordBatch]:
    lake = open_lake("memory:")
    table = table_of(columns=[(f"c{at}", type) for at, (type, _) in enumerate(SAMPLES)])
    lake.commit([CreateTable(table)])
    arrays = [pa.array(values, type.physical) for type, values in SAMPLES]
    return lake, pa.RecordBatch.from_arrays(arrays, names=[column.stored for column in table.columns])


def read_all(lake: Lake, columns: list[str]) -> pa.Table:
    """The columns of ``t``, codes decoded, in physical types."""
    batches = [batch for part in lake.snapshot().table("t").parts(columns) for batch in part.read()]
    for batch in batches:
        assert batch.num_rows <= 65_536
    plain = [
        [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in batch.columns]
        for batch in batches
    ]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, names=columns) for arrays in plain])


@pytest.mark.parametrize("way", ["tail", "files", "tiered"])
def test_every_type_comes_back_in_its_physical_type(way: str) -> None:
    lake, batch = lake_of_types()
    table = lake.state.table("t")
    names = batch.schema.names
    for part in (batch, batch.slice(1, 1), batch.slice(2)):
        if way == "files":
            lake.insert_files(table, [part])
        else:
            lake.commit(appends=[Append(table.id, part)])
    if way == "tiered":
        assert lake.tier() == 5
    found = read_all(lake, names)
    assert found.schema.types == [type.physical for type, _ in SAMPLES]
    expected = pa.Table.from_batches([batch, batch.slice(1, 1), batch.slice(2)])
    for name, (type, _) in zip(names, SAMPLES):
        assert found.column(name).to_pylist() == expected.column(name).to_pylist(), type
    lake.snapshot().table("t").statistics()


def test_files_are_ordinary_parquet() -> None:
    """Another reader sees the columns' types and values; decimals are annotated integers."""
    lake, batch = lake_of_types()
    written = lake.write_files(lake.state.table("t"), [batch])
    file = pq.ParquetFile(lake.store.open_reader(written.files[0].path))
    assert file.schema.column(15).physical_type == "INT32"
    assert file.schema.column(16).physical_type == "INT64"
    assert "precision=18" in str(file.schema.column(16).logical_type)
    table = file.read()
    assert table.column("c15").to_pylist() == [Exact("-99.99"), Exact("0.01"), None]
    assert file.metadata.row_group(0).column(4).compression == "LZ4"


def test_texts_with_few_values_are_read_as_codes() -> None:
    """In files only: the tail's texts are plain. Codes and texts say the same."""
    lake = open_lake("memory:")
    lake.commit([CreateTable(table_of(columns=[("few", TEXT), ("many", TEXT), ("coded", TEXT)]))])
    rows = 1_000
    few = pa.array([None if row % 10 == 0 else f"v{row % 7}" for row in range(rows)])
    batch = pa.RecordBatch.from_arrays(
        [few, pa.array([str(row) for row in range(rows)]), few.dictionary_encode()], names=["few", "many", "coded"]
    )
    lake.insert_files(lake.state.table("t"), [batch])
    assert lake.state.table("t").files[0].dictionaries == ("coded", "few")
    (part,) = lake.snapshot().table("t").parts(["few", "many", "coded"])
    (found,) = part.read()
    assert found.schema.field("few").type == pa.dictionary(pa.int32(), pa.string())
    assert found.schema.field("many").type == pa.string()
    assert answer_array(found.column("few"), TEXT).equals(few)
    assert answer_array(found.column("coded"), TEXT).equals(few)


def test_large_writes_are_cut_into_files_and_row_groups_in_order() -> None:
    lake = lake_with_table()
    table = lake.state.table("t")
    rows = GROUP_ROWS * 9 + 5
    values = pa.array(range(rows), pa.int64())
    whole = pa.RecordBatch.from_arrays([values, pa.nulls(rows, pa.string()), values], names=["a", "s", "d"])
    acknowledged, count = lake.insert_files(table, [whole.slice(at, 100_000) for at in range(0, rows, 100_000)])
    assert count == rows
    files = lake.state.table("t").files
    half = GROUP_ROWS // 2
    assert [file.groups for file in files] == [(GROUP_ROWS,) * 4, (GROUP_ROWS,) * 4, (half + 2, half + 3)]
    assert [(file.row_id, file.row_id_high) for file in files] == [
        (1, 4 * GROUP_ROWS), (4 * GROUP_ROWS + 1, 8 * GROUP_ROWS), (8 * GROUP_ROWS + 1, rows),
    ]  # fmt: skip
    parts = lake.snapshot().table("t").parts(["a", "_row_id", "_version"])
    assert sum(part.rows or 0 for part in parts) == rows
    batches = [batch for part in parts for batch in part.read()]
    found = pa.Table.from_batches(batches)
    assert found.column("a").combine_chunks().equals(values)
    assert found.column("_row_id").to_pylist() == list(range(1, rows + 1))
    assert set(found.column("_version").to_pylist()) == {acknowledged.seg}
    counted = [batch for part in lake.snapshot().table("t").parts([]) for batch in part.read()]
    assert sum(batch.num_rows for batch in counted) == rows and counted[0].num_columns == 0


def test_system_columns_have_their_types_and_a_missing_column_is_an_error() -> None:
    lake = lake_with_table()
    lake.insert_files(lake.state.table("t"), [rows_of(1, 2)])
    found = read_all(lake, list(SYSTEM_COLUMNS))
    assert found.schema.types == [type.physical for type in SYSTEM_COLUMNS.values()]
    with pytest.raises(UndefinedColumn, match='column "nope" of table "t"'):
        lake.snapshot().table("t").parts(["nope"])


def test_a_damaged_or_missing_file_is_named() -> None:
    lake = lake_with_table()
    lake.insert_files(lake.state.table("t"), [rows_of(1)])
    path = lake.state.table("t").files[0].path
    lake.store.put(path, b"PAR1 not really PAR1")
    with pytest.raises(DataCorrupted, match=path):
        contents(lake)
    lake.store.delete(path)
    with pytest.raises(DataCorrupted, match=path):
        contents(lake)


# --- skipping ---------------------------------------------------------------------------------------------------------

small = st.none() | st.integers(-5, 5)
floats = st.none() | st.sampled_from([-2.5, -0.0, 0.0, 1.0, 3.5, math.nan, math.inf, -math.inf])
texts = st.none() | st.sampled_from(["", "a", "ab", "b", "é", "😀", "￿", "x" * 65])
tests = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


def is_true(row: Any, op: str, value: Any) -> bool:
    """SQL's comparison, NaN equal to itself and above every number."""
    if op == "is null":
        return row is None
    if op == "is not null":
        return row is not None
    if op == "in":
        return any(is_true(row, "=", each) for each in value)
    if row is None or value is None:
        return False
    key = [(1, 0.0) if isinstance(each, float) and math.isnan(each) else (0, each) for each in (row, value)]
    left, right = key
    return {
        "=": left == right, "<>": left != right, "<": left < right,
        "<=": left <= right, ">": left > right, ">=": left >= right,
    }[op]  # fmt: skip


@st.composite
def filtered_rows(draw: st.DrawFn) -> tuple[str, list[list[Any]], list[Predicate]]:
    column, values = draw(st.sampled_from([("i", small), ("f", floats), ("t", texts), ("d", small)]))
    pieces = draw(st.lists(st.lists(values, min_size=1, max_size=4), min_size=1, max_size=5))
    made = []
    for _ in range(draw(st.integers(1, 2))):
        op = draw(tests | st.sampled_from(["in", "is null", "is not null"]))
        value: Any = None
        if op == "in":
            value = tuple(draw(st.lists(values, max_size=3)))
        elif not op.startswith("is"):
            value = draw(values)
        made.append(Predicate(column, op, value))
    return column, pieces, made


@settings(max_examples=250, deadline=None)
@given(filtered_rows(), st.booleans())
def test_no_matching_row_is_skipped(case: tuple[str, list[list[Any]], list[Predicate]], tiered: bool) -> None:
    """Files, row groups and the tail, with NULLs, NaN, long texts: what a filter keeps is read."""
    column, pieces, predicates = case
    lake = open_lake("memory:")
    types: dict[str, Type] = {"i": BIGINT, "f": DOUBLE, "t": TEXT, "d": Decimal(10, 2)}
    lake.commit([CreateTable(table_of(columns=[(column, types[column])]))])
    for values in pieces:
        batch = pa.RecordBatch.from_arrays([pa.array(values, types[column].physical)], names=[column])
        if tiered:
            lake.commit(appends=[Append(1, batch)])
            lake.tier()
        else:
            lake.insert_files(lake.state.table("t"), [batch])
    rows = [row for values in pieces for row in values]
    kept = [row for (row,) in contents(lake, [column], predicates)]
    wanted = [row for row in rows if all(is_true(row, test.op, test.value) for test in predicates)]
    found = [row for row in kept if all(is_true(row, test.op, test.value) for test in predicates)]
    assert repr(found) == repr(wanted)
    lake.close()


def test_files_and_row_groups_are_skipped() -> None:
    lake = lake_with_table()
    table = lake.state.table("t")
    for start in (0, 1_000, 2_000):
        lake.insert_files(table, [rows_of(*range(start, start + 10))])
    snapshot = lake.snapshot().table("t")
    assert len(snapshot.parts(["a"])) == 3
    assert len(snapshot.parts(["a"], [Predicate("a", ">=", 2_000)])) == 1
    assert len(snapshot.parts(["s"], [Predicate("a", "in", (5, 1_005))])) == 2
    assert len(snapshot.parts(["a"], [Predicate("d", "=", 100_500)])) == 1
    assert len(snapshot.parts(["a"], [Predicate("s", "is null", None)])) == 0
    assert len(snapshot.parts(["a"], [Predicate("_row_id", "<", 11)])) == 1
    assert len(snapshot.parts(["a"], [Predicate("_version", "=", 4)])) == 1
    assert len(snapshot.parts(["a"], [Predicate("a", "=", "text")])) == 3, "another kind of constant skips nothing"
    rows = 2 * GROUP_ROWS
    values = pa.array(range(rows), pa.int64())
    big = pa.RecordBatch.from_arrays([values, pa.nulls(rows, pa.string()), values], names=["a", "s", "d"])
    lake.commit([CreateTable(table_of(2, "u"))])
    lake.insert_files(lake.state.table("u"), [big])
    kept = contents(lake, ["a"], [Predicate("a", "<", 10)], name="u")
    assert len(kept) == GROUP_ROWS


@given(st.integers(-3, 3), st.integers(0, 4), st.integers(0, 2), tests, st.integers(-4, 8))
def test_may_match_agrees_with_every_value(low: int, width: int, nulls: int, op: str, value: int) -> None:
    """A range skips exactly when no integer in it, with both ends there, makes the test true."""
    high = low + width
    may = may_match(ColumnRange(low, high, nulls), nulls + 2, Predicate("x", op, value))
    assert may or not any(is_true(each, op, value) for each in range(low, high + 1))
    if op != "<>":
        assert may == any(is_true(each, op, value) for each in range(low, high + 1))


# --- hot columns ------------------------------------------------------------------------------------------------------


def test_hot_columns_stay_within_their_budget() -> None:
    """What has rested longest goes first; what was just used stays, and a newcomer is not kept."""
    now, whole = [0.0], pa.int64()
    hot = HotColumns(2_000, lambda: now[0])
    arrays = [pa.array(range(100), whole) for _ in range(30)]
    for at, array in enumerate(arrays):
        hot.put(("f", at, "a"), array, whole)
    assert 0 < hot.bytes <= 2_000
    found = hot.get(("f", 0, "a"), whole)
    assert found is not None and found.type == pa.int8() and widened(found, whole).equals(arrays[0])
    assert hot.get(("f", 29, "a"), whole) is None, "what others have just used is not thrown out"
    now[0] += REST_SECS + 1
    assert hot.get(("f", 0, "a"), whole) is not None
    hot.put(("f", 29, "a"), arrays[29], whole)
    assert hot.get(("f", 29, "a"), whole) is not None and hot.get(("f", 1, "a"), whole) is None
    assert hot.get(("f", 0, "a"), whole) is not None, "the least recently used goes"
    hot.put(("f", 99, "a"), pa.array(range(10_000), whole), whole)
    assert hot.get(("f", 99, "a"), whole) is None, "one column does not push out all others"
    assert hot.get(("f", 0, "a"), pa.int32()) is None, "a column whose type has changed is read again"
    hot.allow(500)
    assert hot.bytes <= 500
    off = HotColumns(0)
    off.put(("f", 0, "a"), arrays[0], whole)
    assert off.get(("f", 0, "a"), whole) is None


def test_a_second_scan_is_served_from_hot_columns() -> None:
    lake = lake_with_table(hot_bytes=1 << 20)
    lake.insert_files(lake.state.table("t"), [rows_of(*range(100))])
    first = contents(lake, ["a", "s"])
    path = lake.state.table("t").files[0].path
    lake.store.delete(path)
    assert contents(lake, ["s", "a"]) == [(text, number) for number, text in first]
    assert lake.reader.hot.hits == 2


def test_what_is_left_of_a_row_group_is_kept_until_other_rows_go() -> None:
    """Scans read the rows that are left, those of an older snapshot too, and decode nothing again."""
    lake = lake_with_table(hot_bytes=1 << 20)
    lake.insert_files(lake.state.table("t"), [rows_of(*range(100))])
    before = lake.snapshot()
    for gone in ([7], [8, 9]):
        lake.commit([lake.snapshot().table("t").deletes_at(np.array([(1 << PLACE_BITS) + row for row in gone]))])
        rows = [(number, f"text {number}") for number in range(100) if number not in ([7] if gone == [7] else [7, 8, 9])]
        assert contents(lake, ["a", "s"]) == rows
        misses = lake.reader.hot.misses
        assert contents(lake, ["s", "a"]) == [(text, number) for number, text in rows]
        assert lake.reader.hot.misses == misses
        assert sum(part.rows or 0 for part in before.table("t").parts(["a"])) == 100
        assert [len(batch) for part in before.table("t").parts(["a"]) for batch in part.read()] == [100]


def test_statistics_are_of_files_and_tail() -> None:
    lake = lake_with_table()
    table = lake.state.table("t")
    lake.insert_files(table, [rows_of(*range(100), None)])
    lake.commit(appends=[Append(table.id, rows_of(*range(50, 200)))])
    found = lake.snapshot().table("t").statistics()
    assert found.rows == 251
    assert (found.columns["a"].min, found.columns["a"].max) == (0, 199)
    assert found.columns["a"].null_fraction == pytest.approx(1 / 251)
    assert found.columns["a"].distinct == pytest.approx(200, rel=0.1)
    assert found.columns["d"].max == 19_900
    written = lake.write_files(table, [rows_of(1)])
    lake.commit([AddFiles(table.id, written.files, written.sketches)])
    assert lake.snapshot().table("t").statistics().rows == 252


def test_ranges_are_bounds_of_every_row_of_a_long_tail() -> None:
    """Distinct values of a long tail are scaled from a part of it; least and greatest are of all rows."""
    lake = lake_with_table()
    rows = 300_000
    values = pa.array([*range(rows - 1), 10**12], pa.int64())
    batch = pa.RecordBatch.from_arrays([values, pa.nulls(rows, pa.string()), values], names=["a", "s", "d"])
    lake.commit(appends=[Append(1, batch)])
    found = lake.snapshot().table("t").statistics()
    assert (found.columns["a"].min, found.columns["a"].max) == (0, 10**12)
    assert found.columns["a"].distinct == pytest.approx(rows, rel=0.1)
    assert found.columns["s"].null_fraction == 1.0
    cache = lake.statistics
    assert len(cache._ranges) == 3 * len(lake.snapshot().table("t").tail_chunks())
    assert lake.snapshot().table("t").statistics() == found
    lake.tier()
    assert lake.snapshot().table("t").statistics().columns["a"].max == 10**12
    assert cache._ranges == {}, "what is known of a batch goes with it"
