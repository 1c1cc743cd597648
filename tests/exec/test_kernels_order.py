"""Row orders against Python's sort."""

from __future__ import annotations

import math
from functools import cmp_to_key

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.kernels import sorting
from lake.exec.kernels.order import Direction, boundaries, sort_rows, text_ranks, top_rows
from tests.exec.test_kernels_groups import VALUES, canonical, columns_of

DIRECTION = st.builds(Direction, st.booleans(), st.booleans())


@st.composite
def tables(draw: st.DrawFn, rows_max: int = 25):
    """Types of one to three columns, rows, and a direction for each column."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    row = st.tuples(*(st.one_of(st.none(), VALUES[kind][1]) for kind in kinds))
    rows = draw(st.lists(row, max_size=rows_max))
    return [VALUES[kind][0] for kind in kinds], rows, [draw(DIRECTION) for _ in kinds]


def ordering(value: object) -> object:
    """What Python compares in place of a value."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, tuple):
        months, days, nanoseconds = value
        return ((months * 30 + days) * 86_400_000_000_000 + nanoseconds, months, days)
    return value


def compare(directions: list[Direction]):
    def answer(left: tuple[object, ...], right: tuple[object, ...]) -> int:
        for a, b, way in zip(left, right, directions, strict=True):
            if a is None or b is None:
                if (a is None) != (b is None):
                    return -1 if (a is None) == way.nulls_first else 1
                continue
            x, y = ordering(a), ordering(b)
            if x != y:
                return -1 if (x < y) != way.descending else 1
        return 0

    return answer


def expected_order(rows, directions) -> list[int]:
    key = cmp_to_key(compare(directions))
    return sorted(range(len(rows)), key=lambda row: key(rows[row]))


@settings(max_examples=200, deadline=None)
@given(tables(), st.integers(0, 30))
def test_orders_are_pythons(table, count: int) -> None:
    """Rows are sorted stably, and the top rows are the first of them."""
    types, rows, directions = table
    columns = columns_of(types, rows)
    expected = expected_order(rows, directions)
    assert sort_rows(columns, directions).tolist() == expected
    assert top_rows(columns, directions, count).tolist() == expected[:count]


@settings(max_examples=60, deadline=None)
@given(tables())
def test_boundaries_are_changes(table) -> None:
    """A boundary stands where a row differs from the one before."""
    types, rows, directions = table
    rows = [rows[row] for row in expected_order(rows, directions)]
    keys = [tuple(map(canonical, row)) for row in rows]
    expected = [row == 0 or keys[row] != keys[row - 1] for row in range(len(rows))]
    assert boundaries(columns_of(types, rows), len(rows)).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.text("a\0é", max_size=30)), max_size=30), st.text("a", max_size=20))
def test_text_ranks(texts: list[str | None], prefix: str) -> None:
    """Ranks compare as texts do, whatever they begin with."""
    texts = [None if text is None else prefix + text for text in texts]
    ranks = text_ranks(pa.array(texts, pa.string())).tolist()
    pairs = [(text.encode(), rank) for text, rank in zip(texts, ranks, strict=True) if text is not None]
    for left, left_rank in pairs:
        for right, right_rank in pairs:
            assert (left < right) == (left_rank < right_rank)


@pytest.mark.parametrize("direction", [Direction(), Direction(True, True), Direction(False, True), Direction(True)])
@pytest.mark.parametrize("kind", ["int", "double", "text", "few", "full"])
def test_larger_columns(kind: str, direction: Direction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of rows, by two threads too; keys of the whole 64 bits."""
    monkeypatch.setattr(sorting, "PARALLEL_ROWS_MIN", 1000)
    monkeypatch.setattr(sorting, "BLOCK_ROWS", 700)
    random = np.random.default_rng(3)
    rows = 6000
    numbers = random.integers(-(1 << 63), 1 << 63, rows) if kind == "full" else random.integers(-500, 500, rows)
    values = {"int": numbers, "full": numbers, "double": numbers / 7, "few": [f"name {n % 9}" for n in numbers],
              "text": [f"Customer#{int(n) * 7919:012d}" for n in numbers]}[kind]  # fmt: skip
    column = pa.array(values, mask=random.random(rows) < 0.1)
    expected = expected_order([(value,) for value in column.to_pylist()], [direction])
    assert sort_rows([column], [direction], threads=2).tolist() == expected
    for count in (1, 10, 599, 5999):
        assert top_rows([column], [direction], count).tolist() == expected[:count]
    again = column.dictionary_encode() if kind in ("text", "few") else column
    assert sort_rows([again.slice(10)], [direction]).tolist() == [row - 10 for row in expected if row >= 10]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("spread", [1, 30, 1 << 40])
def test_keys_wider_than_a_word(threads: int, spread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that tie in the highest bits of a key go by the rest of it, which may be the same in all that tie."""
    monkeypatch.setattr(sorting, "PARALLEL_ROWS_MIN", 1000)
    monkeypatch.setattr(sorting, "BLOCK_ROWS", 700)
    random = np.random.default_rng(spread)
    tenths = random.integers(-900, 900, 5000) * 0.1
    further = random.integers(-spread, spread, 5000)
    for descending in (False, True):
        expected = np.lexsort((np.arange(5000), further, -tenths if descending else tenths)).tolist()
        columns = [pa.array(tenths), pa.array(further)]
        assert sort_rows(columns, [Direction(descending), Direction()], threads=threads).tolist() == expected


@pytest.mark.parametrize("broken_at", [None, 5_000, 9_998])
def test_rows_that_are_in_order(broken_at: int | None) -> None:
    """Rows in order stay as they are; one that is out of its place is found wherever it is."""
    words = np.arange(10_000)
    if broken_at is not None:
        words[broken_at] = -1
    assert sorting.is_ascending(words) == (broken_at is None)
    assert sort_rows([pa.array(words)], [Direction()]).tolist() == sorted(range(len(words)), key=words.__getitem__)
