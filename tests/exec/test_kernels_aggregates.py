"""Aggregate states against plain Python, in batches and merged from two workers."""

from __future__ import annotations

import decimal
import math
import statistics
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import NumericOutOfRange
from lake.exec.kernels import extremes, interpreted
from lake.exec.kernels.aggregates import (
    LANES,
    Average,
    Count,
    SumDouble,
    SumInteger,
    add_counts,
    add_in_lanes,
    add_words,
    count_in_lanes,
)
from lake.exec.kernels.extremes import BitCombination, PickedRows, extreme
from lake.exec.kernels.moments import Moments
from lake.exec.kernels.views import ALL_VALID
from tests.exec.test_kernels_groups import VALUES, canonical
from tests.exec.test_kernels_order import ordering

GROUPS = 4


@st.composite
def rows_of(draw: st.DrawFn, values: st.SearchStrategy, groups: int | None = None):
    """Batches of (group, value or None), some of one group only."""
    count = groups or draw(st.sampled_from([1, GROUPS]))
    row = st.tuples(st.integers(0, count - 1), st.one_of(st.none(), values))
    return count, draw(st.lists(st.lists(row, max_size=12), min_size=1, max_size=4))


def run(make: Callable[[], object], count: int, batches, type: pa.DataType, *, workers: int) -> list[object]:
    """The answers of batches dealt out to workers; worker 1 numbers its groups backwards."""
    states = [make() for _ in range(workers)]
    for index, rows in enumerate(batches):
        worker = index * workers // len(batches)
        groups = np.array([count - 1 - group if worker else group for group, _ in rows], np.int64)
        states[worker].update(groups, count, [pa.array([value for _, value in rows], type)])
    for state in states[1:]:
        states[0].merge(state, np.arange(count)[::-1].copy(), count)
    return states[0].finish(count).to_pylist()


def by_group(count: int, batches) -> list[list[object]]:
    rows = [row for batch in batches for row in batch]
    return [[value for group, value in rows if group == number and value is not None] for number in range(count)]


def check(make, given_rows, type: pa.DataType, fold: Callable[[list], object]) -> None:
    count, batches = given_rows
    expected = [fold(values) for values in by_group(count, batches)]
    for workers in (1, 2):
        answers = run(make, count, batches, type, workers=workers)
        assert [canonical(value) for value in answers] == [canonical(value) for value in expected]


@settings(max_examples=50, deadline=None)
@given(rows_of(st.integers(-9, 9)))
def test_counts(given_rows) -> None:
    """count(x) counts what is not NULL."""
    check(Count, given_rows, pa.int64(), len)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(-(1 << 40), 1 << 40)), max_size=40))
def test_lanes_add_up(rows) -> None:
    """Counting and adding in lanes answers what the plain kernels do."""
    groups, values = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    for add, given_values, in_lanes in ((add_words, (values,), add_in_lanes), (add_counts, (), count_in_lanes)):
        expected, lanes = np.zeros(GROUPS, np.int64), np.zeros((LANES, GROUPS), np.int64)
        add(groups, *given_values, ALL_VALID, expected)
        in_lanes(groups, *given_values, lanes)
        assert lanes.sum(axis=0).tolist() == expected.tolist()


@settings(max_examples=60, deadline=None)
@given(rows_of(st.one_of(st.integers(-9, 9), st.integers(-(1 << 62), 1 << 62))), st.integers(-(1 << 31), 1 << 31))
def test_shifted_sums(given_rows, shift) -> None:
    """The sum of x + constant from the sum and the count of x."""
    count, batches = given_rows
    state = SumInteger(pa.int64(), "bigint")
    for rows in batches:
        groups, values = np.array([group for group, _ in rows], np.int64), pa.array([value for _, value in rows], pa.int64())
        state.update(groups, count, [values])
    expected = [sum(value + shift for value in values) if values else None for values in by_group(count, batches)]
    if all(value is None or -(1 << 63) <= value < 1 << 63 for value in expected):
        assert state.finish_shifted(count, shift).to_pylist() == expected
    else:
        with pytest.raises(NumericOutOfRange, match="bigint out of range"):
            state.finish_shifted(count, shift)


@settings(max_examples=80, deadline=None)
@given(rows_of(st.one_of(st.integers(-9, 9), st.integers(-(1 << 63), (1 << 63) - 1))))
def test_sums_of_integers(given_rows) -> None:
    """Sums are exact in 38 digits, and in 64 bits they fit or are an error, whatever lies between."""
    check(lambda: SumInteger(pa.decimal128(38, 0), "decimal"), given_rows, pa.int64(), lambda v: sum(v) if v else None)
    count, batches = given_rows
    sums = [sum(values) for values in by_group(count, batches)]
    if all(-(1 << 63) <= value < 1 << 63 for value in sums):
        check(lambda: SumInteger(pa.int64(), "bigint"), given_rows, pa.int64(), lambda v: sum(v) if v else None)
    else:
        with pytest.raises(NumericOutOfRange, match="bigint out of range"):
            run(lambda: SumInteger(pa.int64(), "bigint"), count, batches, pa.int64(), workers=1)


@settings(max_examples=50, deadline=None)
@given(rows_of(st.integers(-(1 << 63), (1 << 63) - 1)))
def test_averages(given_rows) -> None:
    """Averages of the exact sum: cut after four more digits, or doubles."""

    def cut(values: list[int]) -> object:
        if not values:
            return None
        magnitude = abs(sum(values)) * 10**4 // len(values)
        return decimal.Decimal(magnitude if sum(values) >= 0 else -magnitude)

    check(lambda: Average(pa.decimal128(38, 0), digits=4), given_rows, pa.int64(), cut)
    count, batches = given_rows
    answers = run(lambda: Average(pa.float64()), count, batches, pa.int64(), workers=2)
    for answer, values in zip(answers, by_group(count, batches), strict=True):
        assert answer == (pytest.approx(sum(values) / len(values), rel=1e-15) if values else None)


@settings(max_examples=50, deadline=None)
@given(rows_of(st.integers(-(10**38) + 1, 10**38 - 1)))
def test_sums_of_decimals(given_rows) -> None:
    """Two-word decimals: exact, or an error beyond 38 digits."""
    count, batches = given_rows
    type = pa.decimal128(38, 0)
    wanted = [sum(values) if values else None for values in by_group(count, batches)]
    try:
        answers = run(lambda: SumInteger(type, "decimal"), count, batches, type, workers=2)
    except NumericOutOfRange:
        assert any(abs(v or 0) > 10**37 for values in by_group(count, batches) for v in values)
    else:
        assert answers == wanted


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(set(VALUES) - {"null", "list"})), st.booleans(), st.data())
def test_extremes(kind: str, greatest: bool, data: st.DataObject) -> None:
    """min and max of every type; NaN is the greatest."""
    type, values = VALUES[kind]
    best = max if greatest else min
    plain_type = type.value_type if pa.types.is_dictionary(type) else type
    given_rows = data.draw(rows_of(values))
    check(lambda: extreme(plain_type, greatest=greatest), given_rows, type,
          lambda found: best(found, key=ordering) if found else None)  # fmt: skip


def test_candidates_are_weeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates of many batches do not pile up."""
    monkeypatch.setattr(extremes, "PENDING_ROWS", 16)
    state = PickedRows.extreme(pa.string(), greatest=False)
    for number in range(99, 9, -1):
        state.update(np.array([0, 2, 2]), 3, [pa.array([str(number), f"x{number}", None])])
    assert state._pending <= 16
    assert state.finish(4).to_pylist() == ["10", None, "x10", None]


@settings(max_examples=40, deadline=None)
@given(rows_of(st.integers(-9, 9)))
def test_first_and_last(given_rows) -> None:
    """first and last in the order of rows, NULLs kept or not."""
    count, batches = given_rows
    rows = [row for batch in batches for row in batch]
    for last in (False, True):
        for ignore_nulls in (False, True):
            expected = []
            for number in range(count):
                values = [value for group, value in rows if group == number and not (ignore_nulls and value is None)]
                expected.append(values[-1 if last else 0] if values else None)
            make = lambda: PickedRows.first(pa.int64(), ignore_nulls=ignore_nulls, last=last)  # noqa: E731, B023
            for workers in (1, 2):
                assert run(make, count, batches, pa.int64(), workers=workers) == expected


@pytest.mark.parametrize(("greatest", "end"), [(False, (1 << 63) - 1), (True, -1 << 63)])
def test_the_ends_of_a_range_are_values(greatest: bool, end: int) -> None:
    """The number that stands for none seen may be all that there is."""
    states = [extreme(pa.int64(), greatest=greatest) for _ in range(2)]
    states[0].update(np.array([0, 2]), 3, [pa.array([end, None], pa.int64())])
    states[1].update(np.array([1, 2]), 3, [pa.array([end, None], pa.int64())])
    states[0].merge(states[1], np.arange(3), 3)
    assert states[0].finish(3).to_pylist() == [end, end, None]


def test_extreme_by() -> None:
    """max_by answers the first argument of the row whose second is greatest."""
    state = PickedRows.extreme_by(pa.string(), greatest=True)
    state.update(np.array([0, 0, 1]), 2, [pa.array(["a", None, "c"]), pa.array([1.0, 2.0, None])])
    state.update(np.array([1, 0, 1]), 2, [pa.array(["d", "e", "f"]), pa.array([1.0, 0.0, math.nan])])
    assert state.finish(2).to_pylist() == [None, "f"]


@settings(max_examples=40, deadline=None)
@given(rows_of(st.integers(-(1 << 40), 1 << 40)), st.sampled_from(["and", "or", "xor"]))
def test_bits(given_rows, op: str) -> None:
    """bit_and, bit_or, bit_xor."""

    def fold(values: list[int]) -> int | None:
        answer = values[0] if values else None
        for value in values[1:]:
            answer = answer & value if op == "and" else answer | value if op == "or" else answer ^ value
        return answer

    check(lambda: BitCombination(pa.int64(), op), given_rows, pa.int64(), fold)


@settings(max_examples=50, deadline=None)
@given(rows_of(st.integers(-1000, 1000)))
def test_moments(given_rows) -> None:
    """Variances agree with exact arithmetic, merged or not."""
    count, batches = given_rows
    for workers in (1, 2):
        for name, least, fold in (("var_samp", 2, statistics.variance), ("var_pop", 1, statistics.pvariance)):
            answers = run(lambda: Moments.of(name), count, batches, pa.float64(), workers=workers)  # noqa: B023
            for answer, values in zip(answers, by_group(count, batches), strict=True):
                expected = float(fold([Fraction(value) for value in values])) if len(values) >= least else None
                assert answer == expected or math.isclose(answer, expected, rel_tol=1e-9, abs_tol=1e-9)


def test_regressions() -> None:
    """y = 2x + 1 without error; NULL rows do not count; one point has no slope."""
    y, x, groups = pa.array([3.0, 5.0, None, 7.0, 4.0]), pa.array([1.0, 2.0, 9.0, 3.0, 1.0]), np.array([0, 0, 0, 0, 1])
    expected = {"corr": [1.0, None], "regr_slope": [2.0, None], "regr_intercept": [1.0, None], "regr_count": [3, 1],
                "regr_r2": [1.0, None],
                "covar_pop": [4 / 3, 0.0], "covar_samp": [2.0, None], "regr_avgy": [5.0, 4.0]}  # fmt: skip
    for name, values in expected.items():
        state = Moments.of(name)
        state.update(groups, 2, [y, x])
        assert state.finish(2).to_pylist() == pytest.approx(values)


def test_sums_of_doubles() -> None:
    """The rounded sum, NULL for a group without values."""
    state = SumDouble()
    state.update(np.array([0, 0, 1]), 3, [pa.array([0.5, 0.25, None])])
    state.merge(state, np.array([0, 1, 2]), 3)
    assert state.finish(3).to_pylist() == [1.5, None, None]


@settings(max_examples=20, deadline=None)
@given(rows_of(st.text("ab", max_size=12), GROUPS))
def test_compiled_and_plain_kernels_agree(given_rows) -> None:
    """The kernels answer what their Python text says."""
    count, batches = given_rows
    make = lambda: PickedRows.extreme(pa.string(), greatest=True)  # noqa: E731
    with interpreted():
        plain = run(make, count, batches, pa.string(), workers=2)
    assert run(make, count, batches, pa.string(), workers=2) == plain
