"""Window functions and frames against loops over rows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.kernels import decimals, frames, interpreted
from lake.exec.kernels.order import ranks
from lake.exec.kernels.views import ALL_VALID
from tests.exec.test_kernels_order import VALUES, columns_of, ordering


@st.composite
def partitions(draw: st.DrawFn):
    """Rows as (partition, peer group), sorted."""
    rows = sorted(draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=15)))
    start, end, peer_start, peer_end = ([] for _ in range(4))
    for row in rows:
        same = [index for index, other in enumerate(rows) if other[0] == row[0]]
        peers = [index for index, other in enumerate(rows) if other == row]
        start.append(same[0]), end.append(same[-1] + 1), peer_start.append(peers[0]), peer_end.append(peers[-1] + 1)
    return tuple(np.array(part, np.int64) for part in (start, end, peer_start, peer_end))


@st.composite
def frames_of(draw: st.DrawFn):
    """Values with NULLs and frames of them: sliding ones mostly, in one to three pieces."""
    rows = draw(st.integers(0, 12))
    bound = st.lists(st.integers(0, rows), min_size=rows, max_size=rows)
    pieces = []
    for _ in range(draw(st.integers(1, 3))):
        starts, ends = draw(bound), draw(bound)
        if draw(st.booleans()):
            starts, ends = sorted(starts), sorted(ends)
        pairs = [(min(pair), max(pair)) for pair in zip(starts, ends, strict=True)]
        pieces.append(tuple(np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1)))
    valid = draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows))
    return rows, pieces, np.array(valid, np.uint8) if draw(st.booleans()) else ALL_VALID


def members(pieces, row: int, valid: np.ndarray) -> list[int]:
    found = [index for starts, ends in pieces for index in range(starts[row], ends[row])]
    return [index for index in found if valid.size == 0 or valid[index]]


@settings(max_examples=80, deadline=None)
@given(partitions(), st.integers(1, 5))
def test_ranks_of_rows(parts, buckets: int) -> None:
    """The ranking functions, by their definitions."""
    start, end, peer_start, peer_end = (part.tolist() for part in parts)
    rows = range(len(start))
    assert frames.row_numbers(parts[0]).tolist() == [row - start[row] + 1 for row in rows]
    assert frames.ranks(parts[0], parts[2]).tolist() == [peer_start[row] - start[row] + 1 for row in rows]
    dense = [len({peer_start[other] for other in range(start[row], row + 1)}) for row in rows]
    assert frames.dense_ranks(parts[0], parts[2]).tolist() == dense
    percent = [(peer_start[row] - start[row]) / max(end[row] - start[row] - 1, 1) for row in rows]
    assert frames.percent_ranks(parts[0], parts[1], parts[2]).tolist() == percent
    cume = [(peer_end[row] - start[row]) / (end[row] - start[row]) for row in rows]
    assert frames.cume_dists(parts[0], parts[1], parts[3]).tolist() == cume
    tiles = []
    for row in rows:
        shares = [len(part) for part in np.array_split(np.arange(end[row] - start[row]), buckets)]
        tiles.append(next(n + 1 for n in range(buckets) if row - start[row] < sum(shares[: n + 1])))
    assert frames.ntiles(parts[0], parts[1], buckets).tolist() == tiles


@settings(max_examples=80, deadline=None)
@given(partitions(), st.integers(-3, 3), st.data())
def test_lag_and_lead(parts, offset: int, data: st.DataObject) -> None:
    """The row some rows on in the partition, NULLs counted or not."""
    rows = len(parts[0])
    valid = np.array(data.draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows)), np.uint8)
    plain = frames.shifted_rows(parts[0], parts[1], offset).tolist()
    assert plain == [row + offset if parts[0][row] <= row + offset < parts[1][row] else -1 for row in range(rows)]
    expected = []
    for row in range(rows):
        if offset == 0:
            expected.append(row)
            continue
        way = range(row + 1, parts[1][row]) if offset > 0 else range(row - 1, parts[0][row] - 1, -1)
        found = [other for other in way if valid[other]]
        expected.append(found[abs(offset) - 1] if len(found) >= abs(offset) else -1)
    assert frames.shifted_rows(parts[0], parts[1], offset, valid).tolist() == (expected if valid.size else plain)


@settings(max_examples=150, deadline=None)
@given(frames_of(), st.data())
def test_aggregates_of_frames(given_frames, data: st.DataObject) -> None:
    """Counts, sums, extremes and nth rows of every frame."""
    rows, pieces, valid = given_frames
    draw = lambda values: data.draw(st.lists(values, min_size=rows, max_size=rows))  # noqa: E731
    integers = np.array(draw(st.integers(-(1 << 63), (1 << 63) - 1)), np.int64)
    doubles = np.array(draw(st.floats(allow_infinity=False, allow_nan=False, width=32)), np.float64)
    frame = [members(pieces, row, valid) for row in range(rows)]
    assert frames.frame_counts(pieces, valid).tolist() == [len(found) for found in frame]
    sums = decimals.integers_of(frames.frame_sums(integers, pieces, valid))
    assert sums == [sum(int(integers[index]) for index in found) for found in frame]
    exact = [math.fsum(doubles[index] for index in found) for found in frame]
    assert frames.frame_sum_doubles(doubles, pieces, valid).tolist() == exact
    small = integers % 5
    for greatest in (False, True):
        best = frames.frame_extremes(small, pieces, valid, greatest=greatest).tolist()
        pick = max if greatest else min
        wanted = [pick((small[index] for index in found), default=None) for found in frame]
        assert [small[index] if index >= 0 else None for index in best] == wanted
    for nth in (1, 2, -1, -2):
        at = nth - 1 if nth > 0 else nth
        wanted = [found[at] if len(found) >= abs(nth) else -1 for found in frame]
        assert frames.nth_rows(pieces, nth, valid).tolist() == wanted


@settings(max_examples=40, deadline=None)
@given(frames_of(), st.data())
def test_specials_come_and_go(given_frames, data: st.DataObject) -> None:
    """A frame that NaN or an infinity has left is a number again."""
    rows, pieces, valid = given_frames
    special = st.sampled_from([1.0, math.inf, -math.inf, math.nan])
    doubles = np.array(data.draw(st.lists(special, min_size=rows, max_size=rows)), np.float64)
    expected = [sum(float(doubles[index]) for index in members(pieces, row, valid)) for row in range(rows)]
    np.testing.assert_equal(frames.frame_sum_doubles(doubles, pieces, valid), np.array(expected, np.float64))


@settings(max_examples=20, deadline=None)
@given(frames_of())
def test_compiled_and_plain_kernels_agree(given_frames) -> None:
    """The kernels answer what their Python text says."""
    rows, pieces, valid = given_frames
    values = np.arange(rows) * 7 % 5

    def run() -> list[list[int]]:
        return [frames.frame_extremes(values, pieces, valid, greatest=True).tolist(),
                frames.frame_sum_doubles(values / 3, pieces, valid).tolist(),
                frames.frame_sums(values, pieces, valid).tolist()]  # fmt: skip

    with interpreted():
        plain = run()
    assert run() == plain


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(set(VALUES) - {"null", "list"})), st.data())
def test_ranks_of_values(kind: str, data: st.DataObject) -> None:
    """Words in the order of values of any type."""
    type, values = VALUES[kind]
    found = data.draw(st.lists(st.one_of(st.none(), values), max_size=10))
    (array,) = columns_of([type], [(value,) for value in found])
    words = ranks(pa.concat_arrays([array])).tolist()
    pairs = [(ordering(value), word) for value, word in zip(found, words, strict=True) if value is not None]
    for left, left_word in pairs:
        for right, right_word in pairs:
            assert (left < right) == (left_word < right_word)
