"""Quick tests of conjuncts against the programs that they stand in for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.kernels import interpreted
from lake.exec.kernels.ranges import rows_marked, rows_within
from lake.exec.selection import QUICK_ROWS, EntryTest, PairTest, RangeTest, Selector, pair_test, range_test
from lake.sql import bound
from lake.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, REAL, SMALLINT, TEXT, Decimal, Type

ROWS = QUICK_ROWS + 100
FLOATS: dict[int, Type] = {7: DOUBLE, 8: REAL}
WORDS = ["apple", "bear", "cat", "", None]


def compare(op: str, id: int, type: Type, value: object, *, mirrored: bool = False) -> bound.Expr:
    """Column ``id`` against a constant."""
    column, literal = bound.Column(type, id, f"c{id}"), bound.Literal(type, value)
    return bound.Compare.of(op, literal, column) if mirrored else bound.Compare.of(op, column, literal)


TYPES: dict[int, Type] = {1: BIGINT, 2: INT, 3: DATE, 4: Decimal(9, 2), 5: SMALLINT}


def rows_of(seed: int, *, with_nulls: bool) -> pa.RecordBatch:
    """Small numbers of five types and a dictionary of words."""
    random = np.random.default_rng(seed)
    names, arrays = [], []
    for id, type in TYPES.items():
        mask = random.random(ROWS) < 0.2 if with_nulls else None
        names.append(f"c{id}")
        arrays.append(pa.array(random.integers(-5, 6, ROWS), type.physical if id != 3 else pa.int32(), mask=mask))
    arrays[2] = arrays[2].cast(pa.date32())
    codes = pa.array(random.integers(0, 4, ROWS), pa.int32(), mask=random.random(ROWS) < 0.2 if with_nulls else None)
    doubles = np.array([-1.5, -0.0, 0.0, 2.0, np.nan, np.inf, -np.inf])
    for id in (7, 8):
        mask = random.random(ROWS) < 0.2 if with_nulls else None
        names.append(f"c{id}")
        arrays.append(pa.array(doubles[random.integers(0, 7, ROWS)], FLOATS[id].physical, mask=mask))
    names.append("c9")  # a BIGINT that is stored narrow
    mask = random.random(ROWS) < 0.2 if with_nulls else None
    arrays.append(pa.array(random.integers(-5, 6, ROWS), pa.int8(), mask=mask))
    names.append("c6")
    arrays.append(pa.DictionaryArray.from_arrays(codes, pa.array(WORDS[:4])))
    # A slice: kernels must heed offsets.
    return pa.RecordBatch.from_arrays([array.slice(7) for array in arrays], names)


TESTS = st.one_of(
    st.builds(
        lambda op, id, value, mirrored: compare(op, id, TYPES[id], value, mirrored=mirrored),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.sampled_from(list(TYPES)),
        st.sampled_from([-6, -5, -1, 0, 3, 5, 6, -(1 << 63), (1 << 63) - 1]), st.booleans(),
    ),
    st.builds(
        lambda op, id, value, mirrored: compare(op, id, FLOATS[id], value, mirrored=mirrored),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.sampled_from([7, 8]),
        st.sampled_from([-1.5, 0.0, -0.0, 2.0, 1.0, float("nan"), float("inf"), float("-inf")]), st.booleans(),
    ),
    st.builds(lambda op, word: compare(op, 6, TEXT, word), st.sampled_from(["=", "<>", "<", ">="]), st.sampled_from(WORDS[:4])),
    st.just(bound.IsNull(BOOLEAN, bound.Column(TEXT, 6, "c6"))),
    st.just(bound.Not(BOOLEAN, bound.IsNull(BOOLEAN, bound.Column(TEXT, 6, "c6")))),
    st.builds(
        lambda op, one, two: bound.Compare.of(op, bound.Column(BIGINT, one, "a"), bound.Column(BIGINT, two, "b")),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.sampled_from([1, 9]), st.sampled_from([1, 9]),
    ),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(TESTS, min_size=1, max_size=4), st.integers(0, 5), st.booleans())
def test_quick_tests_choose_what_programs_choose(conjuncts: list[bound.Expr], seed: int, with_nulls: bool) -> None:
    """Rows chosen of a large batch are those chosen of its small pieces, which no quick test sees."""
    whole = [one for one in conjuncts if not out_of_width(one)]
    batch = rows_of(seed, with_nulls=with_nulls)
    found = Selector(whole).rows(batch)
    pieces = []
    for start in range(0, batch.num_rows, 1_000):
        piece = batch.slice(start, 1_000)
        chosen = Selector(whole).rows(piece)
        pieces.append(start + (np.arange(piece.num_rows) if chosen is None else chosen))
    expected = np.concatenate(pieces)
    assert (np.arange(batch.num_rows) if found is None else found).tolist() == expected.tolist()


def out_of_width(expr: bound.Expr) -> bool:
    """Whether a literal does not fit its type, which the binder never makes."""
    if not isinstance(expr, bound.Compare):
        return False
    sides = [side for side in (expr.left, expr.right) if isinstance(side, bound.Literal)]
    return any(isinstance(side.value, int) and abs(side.value) > 1_000 and side.type != BIGINT for side in sides)


def test_ranges_of_one_column_are_one_test_and_the_sharpest_goes_first() -> None:
    """``a >= 1 AND a < 4`` is one range; after a batch the test that drops most comes first."""
    selector = Selector([compare("<", 1, BIGINT, 5), compare(">=", 2, INT, 5), compare(">=", 1, BIGINT, -5)])
    assert [test for test, _ in selector._quick] == [RangeTest("c1", -5, 4), RangeTest("c2", 5, (1 << 63) - 1)]
    selector.rows(rows_of(1, with_nulls=False))
    selector.rows(rows_of(2, with_nulls=False))
    assert [test.column for test, _ in selector._quick] == ["c2", "c1"]


def test_two_columns_of_one_type_are_a_quick_test() -> None:
    """Whole numbers alone: texts and columns of two types are left to the programs."""
    one, two = bound.Column(BIGINT, 1, "a"), bound.Column(BIGINT, 2, "b")
    assert pair_test(bound.Compare.of("<", one, two)) == PairTest("c1", "c2", "<")
    assert pair_test(bound.Compare.of("is distinct", one, two)) is None
    assert pair_test(bound.Compare.of("<", one, bound.Column(INT, 2, "b"))) is None
    assert pair_test(bound.Compare.of("<", bound.Column(TEXT, 1, "a"), bound.Column(TEXT, 2, "b"))) is None


def test_equal_dictionaries_are_tested_once() -> None:
    """Row groups have dictionaries of their own, mostly of the same entries."""
    selector = Selector([compare("=", 6, TEXT, "bear")])
    (test,) = [test for test, _ in selector._quick if isinstance(test, EntryTest)]
    selector.rows(rows_of(1, with_nulls=False))
    kept = test._last
    selector.rows(rows_of(2, with_nulls=True))
    assert test._last is kept
    assert kept is not None


def test_what_is_no_range() -> None:
    """NULL, text, doubles and wide decimals are left to the programs."""
    assert range_test(compare("<", 1, BIGINT, None)) is None
    assert range_test(compare("<", 6, TEXT, "a")) is None
    assert range_test(compare("<", 1, Decimal(30, 2), 5)) is None
    assert range_test(compare("is distinct", 1, BIGINT, 5)) is None


def test_an_entry_that_fails_fails_only_where_it_is_a_row() -> None:
    """A cast that fails for an entry no row has is no error."""
    to_number = bound.Cast(BIGINT, bound.Column(TEXT, 6, "c6"), is_try=False)
    conjunct = bound.Compare.of(">", to_number, bound.Literal(BIGINT, 1))
    selector = Selector([conjunct])
    assert isinstance(selector._quick[0][0], EntryTest)
    codes = pa.array(np.arange(ROWS) % 2, pa.int32())
    rows = pa.RecordBatch.from_arrays([pa.DictionaryArray.from_arrays(codes, pa.array(["1", "2", "x"]))], ["c6"])
    with pytest.raises(Exception, match="x"):
        Selector([conjunct]).rows(pa.RecordBatch.from_arrays([pa.array(["x"] * ROWS)], ["c6"]))
    assert len(selector.rows(rows)) == ROWS // 2


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-100, 100), min_size=1, max_size=50), st.integers(-100, 100), st.integers(-100, 100),
       st.booleans(), st.booleans(), st.booleans())  # fmt: skip
def test_kernels_are_what_python_says(numbers, low, high, outside, with_nulls, with_rows) -> None:
    """Compiled and plain, over all rows and over some, with NULLs and without."""
    values = np.array(numbers, np.int64)
    valid = (values % 3 != 0).astype(np.uint8) if with_nulls else np.empty(0, np.uint8)
    rows = np.arange(0, len(values), 2) if with_rows else None
    marks = (np.arange(7) % 2).astype(np.uint8)
    answers = []
    for is_compiled in (True, False):
        def run() -> tuple[list[int], list[int]]:
            within = rows_within(values, valid, low, high, outside=outside, rows=rows)
            return within.tolist(), rows_marked((values % 6).astype(np.int32), valid, marks, rows).tolist()
        if is_compiled:
            answers.append(run())
        else:
            with interpreted():
                answers.append(run())
    assert answers[0] == answers[1]
    looked = range(len(values)) if rows is None else rows.tolist()
    there = [row for row in looked if not with_nulls or valid[row]]
    assert answers[0][0] == [row for row in there if (low <= values[row] <= high) != outside]
