"""Joins against nested loops."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.kernels.join import JoinTable, KeyFilter, is_every, mark_rows, matched, null_keys, unmatched
from tests.exec.test_kernels_groups import VALUES, canonical, columns_of

KINDS = sorted(set(VALUES) - {"null"})


@st.composite
def sides(draw: st.DrawFn):
    """Types of key columns, null-safe flags, build rows and probe rows with values in common."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    row = st.tuples(*(st.one_of(st.none(), VALUES[kind][1]) for kind in kinds))
    build = draw(st.lists(row, max_size=10))
    probe = draw(st.lists(st.one_of(row, st.sampled_from(build)) if build else row, max_size=10))
    flags = draw(st.lists(st.booleans(), min_size=len(kinds), max_size=len(kinds)))
    return [VALUES[kind][0] for kind in kinds], flags, build, probe


def matches(left: tuple[object, ...], right: tuple[object, ...], flags: list[bool]) -> bool:
    return all(
        canonical(a) == canonical(b) and (a is not None or is_safe)
        for a, b, is_safe in zip(left, right, flags, strict=True)
    )


@settings(max_examples=150, deadline=None)
@given(sides())
def test_pairs_are_those_of_nested_loops(given_sides) -> None:
    """Inner and outer pairs, membership and unmatched build rows."""
    types, flags, build, probe = given_sides
    table = JoinTable.build(columns_of(types, build), flags)
    keys = columns_of(types, probe)
    expected = [(p, b) for p, left in enumerate(probe) for b, right in enumerate(build) if matches(left, right, flags)]
    probe_rows, build_rows = table.probe(keys)
    assert list(zip(probe_rows.tolist(), build_rows.tolist(), strict=True)) == expected
    hits = {p for p, _ in expected}
    outer = sorted(expected + [(p, -1) for p in range(len(probe)) if p not in hits])
    assert list(zip(*(rows.tolist() for rows in table.probe(keys, outer=True)), strict=True)) == outer
    assert table.contains(keys).tolist() == [p in hits for p in range(len(probe))]
    assert matched(probe_rows, len(probe)).tolist() == table.contains(keys).tolist()
    marks = table.new_marks()
    mark_rows(build_rows, marks)
    assert unmatched(marks).tolist() == sorted(set(range(len(build))) - {b for _, b in expected})
    assert null_keys(keys).tolist() == [None in row for row in probe]
    assert table.has_nulls == any(None in [v for v, s in zip(row, flags, strict=True) if not s] for row in build)


@settings(max_examples=60, deadline=None)
@given(st.integers(-5, 5), st.integers(1, 6), st.booleans(), st.lists(st.one_of(st.none(), st.integers(-12, 12)), max_size=12))
def test_keys_that_are_a_run(low: int, count: int, has_gap: bool, probe: list[int | None]) -> None:
    """Keys that ascend by one are found by subtraction, as any others are; a key at either end of int64 is none of them."""
    build = [low + index for index in range(count)] + ([low + count + 3] if has_gap else [])
    sought = [*probe, -(1 << 63), (1 << 63) - 1]
    table = JoinTable.build([pa.array(build, pa.int64())])
    expected = [(row, build.index(key)) for row, key in enumerate(sought) if key in build]
    assert list(zip(*(rows.tolist() for rows in table.probe([pa.array(sought, pa.int64())])), strict=True)) == expected


def test_every_row_with_a_partner_is_paired_without_a_list_of_its_own() -> None:
    table = JoinTable.build([pa.array([3, 1, 2])])
    probe_rows, build_rows = table.probe([pa.array([1, 2, 3, 1])])
    assert is_every(probe_rows, 4) and not is_every(probe_rows, 5)
    assert build_rows.tolist() == [1, 2, 0, 1]
    assert is_every(np.arange(4), 4) and not is_every(np.array([0, 1, 3]), 3)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(KINDS), st.data())
def test_filters_pass_every_key(kind: str, data: st.DataObject) -> None:
    """A filter passes all keys and no NULL, and an exact one passes nothing else."""
    type, values = VALUES[kind]
    column = st.lists(st.one_of(st.none(), values), max_size=12)
    build, probe = data.draw(column), data.draw(column)
    found = KeyFilter.from_keys(pa.array(build, type))
    keys = {canonical(value) for value in build if value is not None}
    for value, passes in zip(build + probe, found.mask(pa.array(build + probe, type)).tolist(), strict=True):
        if value is None:
            assert not passes
        elif canonical(value) in keys:
            assert passes
        elif found.is_exact:
            assert not passes


@pytest.mark.parametrize("step", [1, 1_000_003])
def test_filters_turn_strangers_away(step: int) -> None:
    """A bitmap lets no stranger pass, a Bloom filter few."""
    keys = pa.array(np.arange(0, 40_000, 2) * step)
    strangers = pa.array(np.arange(1, 40_000, 2) * step)
    found = KeyFilter.from_keys(keys)
    assert found.mask(keys).all()
    assert found.is_exact == (step == 1)
    assert found.mask(strangers).mean() <= (0 if found.is_exact else 0.08)
    assert (found.low, found.high) == (0, 39_998 * step)


def test_build_without_rows() -> None:
    """Nothing matches an empty build side, and a filter of no keys passes nothing."""
    table = JoinTable.build([pa.array([], pa.int64()), pa.array([], pa.string())])
    keys = [pa.array([1, None]), pa.array(["a", None])]
    assert table.contains(keys).tolist() == [False, False] and not table.has_nulls
    assert [rows.tolist() for rows in table.probe(keys, outer=True)] == [[0, 1], [-1, -1]]
    assert not KeyFilter.from_keys(pa.array([], pa.int64())).mask(pa.array([1, None])).any()
