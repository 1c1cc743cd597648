"""Exact sums against fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lake.exec.kernels import exact_sum, interpreted
from lake.exec.kernels.exact_sum import ExactSum

DOUBLES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-100, 100).map(lambda value: round(value, 2)),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1.7976931348623157e308, -1.7976931348623157e308, 1.0]),
    st.integers(-60, 60).map(lambda exponent: 2.0**exponent),
)
ROWS = st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), DOUBLES)), max_size=12)


@pytest.fixture(params=[exact_sum.ROWS_OF_A_GROUP, 0], ids=["by limbs", "by parts"], scope="module", autouse=True)
def _rows_of_a_group(request: pytest.FixtureRequest) -> Iterator[None]:
    """Few rows are added by limbs; with 0 by parts, where their spread allows."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exact_sum, "ROWS_OF_A_GROUP", request.param)
        yield


def nearest(values: list[float]) -> float | None:
    """The double nearest to the exact sum."""
    if not values:
        return None
    if not all(map(math.isfinite, values)):
        return sum(value for value in values if not math.isfinite(value))
    total = sum(map(Fraction, values))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def totals(batches, mapping: list[int] | None = None) -> list[float | None]:
    """Sums of batches by two workers, the second of which numbers groups by ``mapping``."""
    states = [ExactSum(), ExactSum()]
    for index, rows in enumerate(batches):
        groups = np.array([group for group, _ in rows], np.int64)
        states[index % 2].update(groups, 3, [pa.array([value for _, value in rows], pa.float64())])
    states[0].merge(states[1], np.array(mapping or [0, 1, 2]), 3)
    return states[0].finish(3).to_pylist()


def same(found: list[float | None], expected: list[float | None]) -> bool:
    return [repr(value) for value in found] == [repr(None if value is None else value + 0.0) for value in expected]


@settings(max_examples=300, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=4))
@example([[(0, 1e308), (0, 1e308)], [(0, -1e308)]])
@example([[(0, 1.0), (0, 2.0**-53), (1, 1.0), (1, 2.0**-53), (1, 2.0**-1074)]])
@example([[(0, -1.0)], [(0, 5e-324)]])
def test_sums_are_rounded_once(batches) -> None:
    """The nearest double of the exact sum, whatever the order and the split."""
    rows = [row for batch in batches for row in batch]
    expected = [nearest([v for group, v in rows if group == number and v is not None]) for number in range(3)]
    assert same(totals(batches), expected)
    assert same(totals([batch[::-1] for batch in reversed(batches)]), expected)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([math.nan, math.inf, -math.inf, 1.0])), max_size=5))
def test_specials(rows) -> None:
    """NaN wins, and infinities of both signs make it."""
    expected = [nearest([value for group, value in rows if group == number]) for number in range(3)]
    assert same(totals([rows[:2], rows[2:]]), expected)


@settings(max_examples=20, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=2))
def test_compiled_and_plain_kernels_agree(batches) -> None:
    """The kernels answer what their Python text says."""
    with interpreted():
        plain = totals(batches)
    assert totals(batches) == plain


def test_carries_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Additions beyond the room of a limb."""
    monkeypatch.setattr(exact_sum, "ADDITIONS_MAX", 3)
    state = ExactSum()
    values = [0.1, -0.3, 1e18, 7.0, -1e-3] * 50
    for start in range(0, 250, 2):
        state.update(np.zeros(2, np.int64), 1, [pa.array(values[start : start + 2])])
    assert state.finish(1).to_pylist() == [math.fsum(values)]


def test_averages_and_growing_groups() -> None:
    """The sum over the count; groups that come later; a state without values."""
    state = ExactSum(averages=True)
    state.update(np.array([0, 0]), 1, [pa.array([1.0, 2.0])])
    state.update(np.array([4]), 5, [pa.array([3.0])])
    assert state.finish(6).to_pylist() == [1.5, None, None, None, 3.0, None]
    assert state.finish(6).to_pylist() == [1.5, None, None, None, 3.0, None]
    assert ExactSum().finish(2).to_pylist() == [None, None] and state.nbytes > 0
    empty = ExactSum()
    empty.merge(ExactSum(), np.array([1, 0]), 2)
    assert empty.finish(2).null_count == 2


def test_many_rows() -> None:
    """As math.fsum."""
    values = np.random.default_rng(5).normal(size=50_000) * 1e6
    state = ExactSum()
    state.update(np.zeros(50_000, np.int64), 1, [pa.array(values)])
    assert state.finish(1).to_pylist() == [math.fsum(values)]


@pytest.mark.parametrize("spread", [0, 20, 21, 60])
@pytest.mark.parametrize("base", [-1074, -1022, -40, 930])
def test_whole_blocks_of_the_widest_values(spread: int, base: int) -> None:
    """As many bits as a block's parts may have, all of one sign so that nothing cancels, and a few more."""
    random = np.random.default_rng(spread)
    rows = (1 << exact_sum.BLOCK_BITS) + 1_000
    mantissas = (1 << 53) - random.integers(1, 9, rows)
    for sign in (1.0, -1.0):
        values = sign * np.ldexp(mantissas.astype(np.float64), base + random.choice([0, spread], rows) - 52)
        state = ExactSum()
        state.update(np.zeros(rows, np.int64), 1, [pa.array(values)])
        assert state.finish(1).to_pylist() == [math.fsum(values)]


@given(
    st.lists(st.tuples(*[st.integers(-(1 << 60), 1 << 60)] * 3), min_size=1, max_size=3),
    st.integers(1, 1_900),
    st.lists(st.floats(-1e9, 1e9), max_size=3),
)
def test_sums_made_elsewhere(digits: list[tuple[int, int, int]], field: int, values: list[float]) -> None:
    """Digits of a sum weigh what they say, and sums go on with other values."""
    loaded, state, groups = ExactSum(), ExactSum(), len(digits)
    loaded.load(np.array(digits), np.ones(groups, np.int64), field)
    state.update(np.zeros(len(values), np.int64), groups, [pa.array(values, pa.float64())])
    state.merge(loaded, np.arange(groups), groups)
    for group, (low, middle, high) in enumerate(digits):
        total = (low + (middle << 32) + (high << 64)) * Fraction(2) ** (field - 1 - 1074)
        expected = float(total + sum(map(Fraction, values if group == 0 else [])))
        assert state.finish(groups).to_pylist()[group] == expected
