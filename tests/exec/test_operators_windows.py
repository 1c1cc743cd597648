"""Windows over hand-built plans: every frame and exclusion, many partitions, against Python oracles."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import lake.exec.functions  # noqa: F401  fills the function table
from lake.sql import plan
from lake.sql.ast.expr import BoundKind, Exclusion, FrameUnit
from lake.sql.bound import Compare, Frame, FrameBound, SortKey, WindowCall
from lake.sql.registry import FUNCTIONS, Window
from lake.types import BIGINT, TEXT
from tests.exec.memory_rows import column, rows_of
from tests.exec.sample_plans import Rows, aggregate_call, grouped, literal, random_rows, scan_of

UP, PRE, CUR, FOL, DOWN = (
    BoundKind.UNBOUNDED_PRECEDING, BoundKind.PRECEDING, BoundKind.CURRENT_ROW, BoundKind.FOLLOWING,
    BoundKind.UNBOUNDED_FOLLOWING,
)  # fmt: skip
FRAMES = [
    (FrameUnit.ROWS, UP, CUR), (FrameUnit.RANGE, UP, CUR), (FrameUnit.GROUPS, UP, CUR), (FrameUnit.ROWS, PRE, FOL),
    (FrameUnit.RANGE, PRE, FOL), (FrameUnit.GROUPS, PRE, FOL), (FrameUnit.ROWS, UP, DOWN), (FrameUnit.ROWS, FOL, DOWN),
    (FrameUnit.ROWS, CUR, DOWN), (FrameUnit.RANGE, CUR, FOL), (FrameUnit.GROUPS, FOL, DOWN), (FrameUnit.ROWS, PRE, PRE),
]  # fmt: skip


def _bound(kind: BoundKind, offset: int) -> FrameBound:
    return FrameBound(kind, literal(offset) if kind in (PRE, FOL) else None)


def _in_frame(rows: Rows, row: int, other: int, unit: FrameUnit, start: BoundKind, end: BoundKind) -> bool:
    """Whether ``other`` lies in the frame of ``row``: offsets are 2 before and 1 after; keys are at position 2."""
    mine, theirs = rows[row][2], rows[other][2]
    peers = mine == theirs
    ranks = {key: place for place, key in enumerate(dict.fromkeys(item[2] for item in rows))}

    def side(kind: BoundKind, *, is_start: bool) -> bool:
        if kind in (UP, DOWN):
            return True
        sign = 1 if is_start else -1
        offset = 0 if kind is CUR else -2 if kind is PRE else 1
        if kind is PRE and not is_start:
            offset = -1
        if unit is FrameUnit.ROWS:
            return sign * (other - (row + offset)) >= 0
        if unit is FrameUnit.GROUPS:
            return sign * (ranks[theirs] - (ranks[mine] + offset)) >= 0
        if kind is CUR:
            return sign * (ranks[theirs] - ranks[mine]) >= 0
        if mine is None:
            return sign * (ranks[theirs] - ranks[mine]) >= 0
        if theirs is None:
            return sign * (ranks[theirs] - ranks[mine]) >= 0 and not peers and False
        return bool(sign * (theirs - (mine + offset)) >= 0)

    return side(start, is_start=True) and side(end, is_start=False)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("exclusion", list(Exclusion))
def test_aggregates_over_frames(frame: Any, exclusion: Exclusion) -> None:
    """count, sum, min and max over every kind of frame and exclusion, filtered too."""
    unit, start, end = frame
    if unit is FrameUnit.RANGE and PRE in (start, end):
        rows = [row for row in random_rows(120, 3) if row[2] is not None]
    else:
        rows = random_rows(120, 3)
    source = scan_of(rows)
    g, t, x = source.outputs
    spec = Frame(unit, _bound(start, 2 if start is PRE else 1), _bound(end, 1), exclusion)
    calls = [
        WindowCall(BIGINT, aggregate_call("count").function, (), spec),
        WindowCall(BIGINT, aggregate_call("sum", x).function, (x,), spec),
        WindowCall(BIGINT, aggregate_call("min", x).function, (x,), spec),
        WindowCall(BIGINT, aggregate_call("max", x).function, (x,), spec, filter=Compare.of("<", x, literal(10))),
        WindowCall(BIGINT, aggregate_call("count", x).function, (x,), spec, distinct=True),
        WindowCall(TEXT, aggregate_call("max", t).function, (t,), spec),
    ]  # fmt: skip
    node = plan.Window((g,), (SortKey(x),), tuple((column("w", call.type), call) for call in calls), source)
    got = rows_of(node)
    assert Counter(row[:3] for row in got) == Counter(rows)
    for group in grouped(got, lambda row: row[0]).values():
        for index, row in enumerate(group):
            inside = []
            for other, item in enumerate(group):
                peers = item[2] == row[2]
                excluded = (
                    (exclusion is Exclusion.CURRENT_ROW and other == index)
                    or (exclusion is Exclusion.GROUP and peers)
                    or (exclusion is Exclusion.TIES and peers and other != index)
                )  # fmt: skip
                if not excluded and _in_frame(group, index, other, unit, start, end):
                    inside.append(item)
            numbers = [item[2] for item in inside if item[2] is not None]
            low = [number for number in numbers if number < 10]
            texts = [item[1] for item in inside if item[1] is not None]
            assert row[3:] == (
                len(inside), sum(numbers) if numbers else None, min(numbers, default=None), max(low, default=None),
                len(set(numbers)), max(texts, default=None),
            )  # fmt: skip


@pytest.mark.parametrize("memory", [1 << 30, 1 << 18])
def test_window_over_many_partitions(memory: int) -> None:
    """Morsels of whole partitions, from memory and from runs on disk."""
    rows = [(index % 977, "a", index) for index in range(150_000)]
    source = scan_of(rows)
    g, _, x = source.outputs
    frame = Frame(FrameUnit.ROWS, FrameBound(PRE, literal(1)), FrameBound(CUR))
    call = WindowCall(BIGINT, aggregate_call("sum", x).function, (x,), frame)
    node = plan.Window((g,), (SortKey(x, descending=True),), ((column("w", BIGINT), call),), source)
    got = rows_of(node, memory=memory)
    assert len(got) == len(rows)
    assert all(row[3] == (row[2] if row[2] + 977 >= 150_000 else 2 * row[2] + 977) for row in got)


@pytest.mark.parametrize("memory", [1 << 30, 1 << 18])
@pytest.mark.parametrize("sizes", [(1,), (3, 1, 5_000, 2, 2_999, 3_000), (20_000, 1), (60_000,)])
def test_places_in_partitions_of_any_size(memory: int, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Morsels end with a partition; rows that are only counted are divided where they are all of one partition."""
    monkeypatch.setattr("lake.exec.operators.window.CHUNK_ROWS", 3_000)
    monkeypatch.setattr("lake.exec.operators.window.SEARCHED_ROWS", 2)
    keys = [key for key, size in enumerate(sizes) for _ in range(size)]
    rows = [(keys[index * 7919 % len(keys)], None, index * 7919 % len(keys) // 3) for index in range(len(keys))]
    g, _, x = (source := scan_of(rows, pieces=9)).outputs
    in_order = sorted(rows, key=lambda row: (row[0], row[2]))
    firsts = {row: place for place, row in reversed(list(enumerate(in_order, 1)))}
    starts = {key: sum(sizes[:key]) for key in range(len(sizes))}
    for name, partition in (("row_number", ()), ("row_number", (g,)), ("rank", (g,))):
        found = next(item for item in FUNCTIONS[name] if isinstance(item, Window))
        call = WindowCall(BIGINT, found, (), Frame(FrameUnit.RANGE, FrameBound(UP), FrameBound(CUR)))
        order = (SortKey(x),) if partition else (SortKey(g), SortKey(x))
        node = plan.Window(partition, order, ((column("w", BIGINT), call),), source)
        expected = [
            (*row, (firsts[row] if name == "rank" else place) - (starts[row[0]] if partition else 0))
            for place, row in enumerate(in_order, 1)
        ]
        assert sorted(rows_of(node, memory=memory), key=lambda row: (row[0], row[3])) == expected
