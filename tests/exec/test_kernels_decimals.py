"""Scaled integers against Python's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lake.exec.kernels import decimals, interpreted
from lake.exec.kernels.views import ALL_VALID

EDGES = [1, 2, 10, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 64, (1 << 64) - 1, 10**19, 10**37, (1 << 127) - 1]
SHORT = st.one_of(st.integers(-9, 9), st.integers(-(1 << 63), (1 << 63) - 1))
WIDE = st.one_of(
    st.integers(-99, 99), st.sampled_from([sign * n for n in EDGES for sign in (1, -1)]),
    st.integers(-(1 << 127), (1 << 127) - 1), st.integers(-(1 << 70), 1 << 70),
)  # fmt: skip
PAIRS = st.lists(st.tuples(WIDE, WIDE), max_size=8)


def words(numbers: list[int]) -> np.ndarray:
    return np.concatenate([decimals.wide_constant(number) for number in numbers] or [np.empty((0, 2), np.int64)])


def rounded(top: int, bottom: int, rounds: bool) -> int:
    magnitude = abs(top) * 2 // abs(bottom)
    magnitude = (magnitude + 1) // 2 if rounds else abs(top) // abs(bottom)
    return magnitude if (top < 0) == (bottom < 0) else -magnitude


def check(answer: tuple[np.ndarray, int], expected: list[int], bits: int) -> None:
    """All numbers are right up to the first that does not fit, which is told."""
    numbers, bad = answer
    limit = 1 << (bits - 1)
    misfits = [row for row, number in enumerate(expected) if not -limit <= number < limit]
    assert bad == (misfits[0] if misfits else -1)
    found = decimals.integers_of(decimals.wide(numbers))
    assert all(a == b for a, b in zip(found, expected, strict=True) if -limit <= b < limit)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(SHORT, SHORT), max_size=8), st.booleans())
def test_short_sums_and_products(pairs: list[tuple[int, int]], subtracts: bool) -> None:
    """Overflow of 64 bits is told by its first row, save of NULLs."""
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    rows = len(pairs)
    sums = [a - b if subtracts else a + b for a, b in pairs]
    check(decimals.add(left, right, rows, subtracts=subtracts), sums, 64)
    nulls = np.zeros(rows, np.uint8)
    assert decimals.add(left, right, rows, valid=nulls)[1] == decimals.multiply(left, right, rows, valid=nulls)[1] == -1
    products, bad = decimals.multiply(left, right, rows, divisor=100)
    for row in range(rows if bad < 0 else bad):
        assert products[row] == rounded(pairs[row][0] * pairs[row][1], 100, True)
    if bad >= 0:
        assert abs(pairs[bad][0] * pairs[bad][1]) > 9 * 10**18


@settings(max_examples=100, deadline=None)
@given(PAIRS, st.booleans())
def test_wide_sums(pairs: list[tuple[int, int]], subtracts: bool) -> None:
    """Sums of two words."""
    left, right = (words([pair[side] for pair in pairs]) for side in (0, 1))
    expected = [a - b if subtracts else a + b for a, b in pairs]
    check(decimals.add(left, right, len(pairs), subtracts=subtracts), expected, 128)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(WIDE, WIDE, WIDE.filter(bool)), max_size=6), st.booleans())
@example([((1 << 127) - 1, (1 << 127) - 1, (1 << 127) - 1)], True)
@example([(10**37, 10**38, (1 << 96) + 1), (-7, 1, 2), (5, 1, -10)], True)
def test_products_and_quotients(triples: list[tuple[int, int, int]], rounds: bool) -> None:
    """left * factor / divisor, rounded or cut."""
    left, factor, divisor = (words([triple[side] for triple in triples]) for side in (0, 1, 2))
    expected = [rounded(a * b, c, rounds) for a, b, c in triples]
    answer = decimals.multiply_divide(left, factor, divisor, len(triples), rounds=rounds)
    symmetric = [number if number != -(1 << 127) else 1 << 127 for number in expected]
    check(answer, symmetric, 128)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(WIDE, WIDE, WIDE.filter(bool)), max_size=3))
def test_compiled_and_plain_kernels_agree(triples: list[tuple[int, int, int]]) -> None:
    """The kernels answer what their Python text says."""
    sides = [words([triple[side] for triple in triples]) for side in (0, 1, 2)]
    compiled, bad = decimals.multiply_divide(*sides, len(triples), rounds=True)
    with interpreted():
        plain, plain_bad = decimals.multiply_divide(*sides, len(triples), rounds=True)
    assert compiled.tolist() == plain.tolist() and bad == plain_bad


def test_division_by_zero_tells_the_row() -> None:
    """The first divisor of zero that is not NULL."""
    ones, divisors = words([1, 1, 1]), words([0, 3, 0])
    valid = np.array([0, 1, 1], np.uint8)
    answer, bad = decimals.multiply_divide(ones, 10, divisors, 3, rounds=True, valid=valid)
    assert bad == decimals.DIVIDED_BY_ZERO - 2
    assert decimals.integers_of(answer)[1] == 3


@settings(max_examples=60, deadline=None)
@given(st.lists(WIDE, max_size=6), st.integers(-38, 38))
def test_rescale(numbers: list[int], digits: int) -> None:
    """More digits or fewer, half away from zero."""
    top, bottom = 10 ** max(digits, 0), 10 ** max(-digits, 0)
    expected = [rounded(number * top, bottom, True) for number in numbers]
    symmetric = [number if number != -(1 << 127) else 1 << 127 for number in expected]
    check(decimals.rescale(words(numbers), digits), symmetric, 128)


@settings(max_examples=60, deadline=None)
@given(PAIRS, st.integers(0, 38), st.integers(0, 38))
def test_compare(pairs: list[tuple[int, int]], left_scale: int, right_scale: int) -> None:
    """Numbers of two scales compare as the fractions they mean."""
    left, right = (words([pair[side] for pair in pairs]) for side in (0, 1))
    answer = decimals.compare(left, left_scale, right, right_scale, len(pairs)).tolist()
    for (a, b), found in zip(pairs, answer, strict=True):
        one, two = Fraction(a, 10**left_scale), Fraction(b, 10**right_scale)
        assert found == (one > two) - (one < two)


@settings(max_examples=60, deadline=None)
@given(st.lists(WIDE, max_size=6), st.integers(1, 38))
@example([-(1 << 127)], 1)
def test_narrow_and_beyond(numbers: list[int], digits: int) -> None:
    """What fits 64 bits, and what has too many digits."""
    narrow = decimals.narrow(words(numbers))
    if all(-(1 << 63) <= number < 1 << 63 for number in numbers):
        assert narrow.tolist() == numbers
    else:
        assert narrow is None
    beyond = [row for row, number in enumerate(numbers) if abs(number) >= 10**digits]
    assert decimals.first_beyond(words(numbers), digits) == (beyond[0] if beyond else -1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e30, 1e30), max_size=6), st.integers(0, 4))
def test_doubles(values: list[float], scale: int) -> None:
    """Doubles become the nearest scaled integer, and come back."""
    numbers, bad = decimals.from_doubles(np.array(values, np.float64), scale)
    assert bad == -1
    for number, value in zip(decimals.integers_of(numbers), values, strict=True):
        product = value * 10.0**scale
        assert number == rounded(*product.as_integer_ratio(), True)
    back = decimals.to_doubles(numbers, scale).tolist()
    assert all(abs(a - b) <= max(0.5001 / 10**scale, 1e-15 * abs(b)) for a, b in zip(back, values, strict=True))


def test_doubles_that_do_not_fit() -> None:
    """NaN, infinity and 2 to the 127th are told, save where NULL."""
    for value in (np.nan, np.inf, -(2.0**127)):
        values = np.array([1.0, value])
        assert decimals.from_doubles(values, 0)[1] == 1
        assert decimals.from_doubles(values, 0, np.array([1, 0], np.uint8))[1] == -1
    assert decimals.from_doubles(np.array([0.5, -0.5, 1.4]), 0, ALL_VALID)[0][:, 0].tolist() == [1, -1, 1]
