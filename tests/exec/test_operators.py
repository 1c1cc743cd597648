"""Aggregation, sorting, limits, windows, set operations and the rest over hand-built plans, against Python oracles."""

from __future__ import annotations

import errno
import gc
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lake.exec.functions  # noqa: F401  fills the function table
from lake.errors import DiskFull, FeatureNotSupported, IoFailure, QueryCanceled
from lake.exec import Profile, run
from lake.exec.operators.hash_aggregate import HashAggregate
from lake.sql import plan
from lake.sql.bound import (
    Column,
    Compare,
    InList,
    Literal,
    SortKey,
)  # fmt: skip
from lake.sql.plan import JoinKind, SetKind
from lake.types import BIGINT, BOOLEAN, TEXT, List
from tests.exec.memory_rows import column, context, rows_of, scan, table_of
from tests.exec.sample_plans import TYPES, Rows, aggregate_call, grouped, in_any_order, literal, random_rows, scan_of


def _profile_of(profile: Profile, name: str) -> Profile:
    if profile.name == name:
        return profile
    for child in profile.inputs:
        try:
            return _profile_of(child, name)
        except LookupError:
            continue
    raise LookupError(name)


# --- aggregation -----------------------------------------------------------------------------------------------------


def _aggregate(source: plan.Scan, **options: Any) -> plan.Aggregate:
    g, t, x = source.outputs
    calls = (
        aggregate_call("count"), aggregate_call("count", x), aggregate_call("sum", x),
        aggregate_call("min", x), aggregate_call("max", x),
        aggregate_call("count", x, distinct=True), aggregate_call("sum", x, distinct=True),
        aggregate_call("sum", x, filter=Compare.of(">", x, literal(0))), aggregate_call("max", t, type=TEXT),
    )  # fmt: skip
    return plan.Aggregate(
        ((g, g), (t, t)), tuple((column(f"a{index}", call.type), call) for index, call in enumerate(calls)), source,
        **options,
    )  # fmt: skip


def _values_of(rows: Rows) -> tuple[Any, ...]:
    numbers = [row[2] for row in rows if row[2] is not None]
    texts = [row[1] for row in rows if row[1] is not None]
    above = [number for number in numbers if number > 0]
    return (
        len(rows), len(numbers), sum(numbers) if numbers else None, min(numbers, default=None), max(numbers, default=None),
        len(set(numbers)), sum(set(numbers)) if numbers else None, sum(above) if above else None, max(texts, default=None),
    )  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_groups(count: int) -> None:
    """Groups with NULLs among keys and values, DISTINCT and FILTER."""
    rows = random_rows(count, 7)
    expected = [(*key, *_values_of(group)) for key, group in grouped(rows, lambda row: row[:2]).items()]
    assert in_any_order(rows_of(_aggregate(scan_of(rows)))) == in_any_order(expected)


def test_no_groups_are_one_group() -> None:
    """Without GROUP BY there is one row, even of no rows."""
    for count in (0, 500):
        rows = random_rows(count, 3)
        source = scan_of(rows)
        node = _aggregate(source)
        node = plan.Aggregate((), node.aggregates, source)
        assert rows_of(node) == [_values_of(rows)]


def test_rows_without_columns_are_counted() -> None:
    """count(*) reads no column."""
    table, held = table_of("t", {"a": (BIGINT, list(range(1000)))}, 3)
    node = plan.Aggregate((), ((column("n", BIGINT), aggregate_call("count")),), scan(table, "a"))
    assert rows_of(node) == [(1000,)]
    assert held.asked[0][0] == ()
    assert held.read_parts == 0


def test_grouping_sets() -> None:
    """Each set over the same rows, NULL for the keys outside it, and the bits of grouping_id."""
    rows = random_rows(600, 5)
    bits = column("bits", BIGINT)
    node = _aggregate(scan_of(rows), grouping_sets=((0, 1), (0,), ()), grouping_id=bits)
    expected: Rows = []
    for used, mask in (((0, 1), 0), ((0,), 2), ((), 3)):
        for key, group in grouped(rows, lambda row, used=used: tuple(row[at] for at in used)).items():
            keys = dict(zip(used, key, strict=True))
            expected.append((keys.get(0), keys.get(1), *_values_of(group), mask))
    assert in_any_order(rows_of(node)) == in_any_order(expected)
    empty = _aggregate(scan_of([]), grouping_sets=((0, 1), ()), grouping_id=bits)
    assert rows_of(empty) == [(None, None, *_values_of([]), 3)]


@pytest.mark.parametrize("workers", [1, 2])
def test_spilled_groups_are_the_groups(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tiny budget rows go through partitions on disk."""
    monkeypatch.setattr("lake.exec.operators.batches.SMALL_ROWS", 0)
    rows = [(index % 9_011, f"text {index % 17}", index % 101) for index in range(60_000)]
    node = _aggregate(scan_of(rows))
    plain = rows_of(node)
    answer = run(node, context(memory=1 << 20, workers=workers))
    spilled = [row for batch in answer.batches() for row in zip(*(array.to_pylist() for array in batch.columns))]
    assert in_any_order(spilled) == in_any_order(plain)
    assert _profile_of(answer.profile(), "HashAggregate").spilled > 0


@pytest.mark.parametrize("thought", [1_000.0, 1e9])
def test_groups_that_are_thought_few_stay_in_one_table(thought: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are thought many are dealt to partitions once they are more than a cache holds; the groups are the same."""
    dealt = []
    deal = HashAggregate._deal
    monkeypatch.setattr("lake.exec.operators.batches.SMALL_ROWS", 0)
    monkeypatch.setattr("lake.exec.operators.hash_aggregate.MANY_GROUPS", 100)
    monkeypatch.setattr("lake.exec.operators.hash_aggregate.TABLE_GROUPS", 50_000)
    monkeypatch.setattr("lake.exec.lower_breakers.rows_of", lambda node, planning: thought)
    monkeypatch.setattr(HashAggregate, "_deal", lambda self, state: dealt.append(state) or deal(self, state))
    rows = [(index * 7919 % 20_011 * 1_000_003, f"text {index % 3}", index) for index in range(30_000)]
    node = _aggregate(scan_of(rows))
    got = rows_of(node)
    assert bool(dealt) == (thought > 50_000)
    monkeypatch.undo()
    assert in_any_order(got) == in_any_order(rows_of(node))


def test_ordered_aggregate() -> None:
    """ORDER BY inside a call is obeyed, with DISTINCT too."""
    rows = [(index % 3, "abcd"[index % 4], index) for index in range(40)]
    source = scan_of(rows)
    g, t, x = source.outputs
    comma = Literal(TEXT, ",")
    calls = (
        aggregate_call("string_agg", t, comma, type=TEXT, order=(SortKey(x, descending=True),)),
        aggregate_call("string_agg", t, comma, type=TEXT, order=(SortKey(t),), distinct=True),
    )
    node = plan.Aggregate(((g, g),), tuple((column("s", TEXT), call) for call in calls), source)
    expected = [
        (key, ",".join(row[1] for row in reversed(group)), ",".join(sorted({row[1] for row in group})))
        for key, group in grouped(rows, lambda row: row[0]).items()
    ]
    assert in_any_order(rows_of(node)) == in_any_order(expected)


def test_distinct() -> None:
    """DISTINCT, and DISTINCT ON in an order."""
    rows = random_rows(500, 4)
    assert in_any_order(rows_of(plan.Distinct(scan_of(rows)))) == in_any_order(list(set(rows)))
    source = scan_of([(index % 5, "a", -index) for index in range(100)])
    g, _, x = source.outputs
    first = plan.Distinct(source, (g,), (SortKey(g), SortKey(x)))
    assert rows_of(first) == [(key, "a", -95 - key) for key in range(5)]


# --- order -----------------------------------------------------------------------------------------------------------


def _key(row: tuple[Any, ...]) -> Any:
    g, t, x = row
    return (g is not None, g or 0), (t is None, tuple(-ord(char) for char in t or "")), (x is None, x or 0)


def _sort(source: plan.Scan, **options: Any) -> plan.Sort:
    g, t, x = source.outputs
    keys = (SortKey(g, nulls_first=True), SortKey(t, descending=True), SortKey(x))
    return plan.Sort(keys, source, **options)


@pytest.mark.parametrize("memory", [1 << 30, 1 << 18])
def test_sort(memory: int) -> None:
    """Several keys, both directions, NULLs at either end; in memory and with runs on disk; with limit and offset."""
    rows = random_rows(60_000, 50)
    expected = sorted(rows, key=_key)
    node = _sort(scan_of(rows, pieces=9))
    assert [_key(row) for row in rows_of(node, memory=memory)] == [_key(row) for row in expected]
    for limit, offset in ((10, 0), (10, 5), (0, 0), (100_000, 3), (70_000, 59_990)):
        got = rows_of(_sort(node.input, limit=limit, offset=offset), memory=memory)
        assert got == expected[offset : offset + limit]


def test_sort_spills() -> None:
    """A small budget makes runs."""
    answer = run(_sort(scan_of(random_rows(60_000, 50), pieces=9)), context(memory=1 << 18))
    assert sum(batch.num_rows for batch in answer.batches()) == 60_000
    assert _profile_of(answer.profile(), "Sort").spilled > 0


def test_order_is_kept_to_the_end() -> None:
    """Streams over a sort run on several workers and still answer in order; a scan answers in the order of its parts."""
    rows = [(index * 7919 % 400_000, "a", index) for index in range(400_000)]
    source = scan_of(rows, pieces=20)
    g, _t, x = source.outputs
    ordered = plan.Sort((SortKey(g),), source)
    node = plan.Filter((Compare.of(">", g, literal(1000)),), plan.Project((g,), (g,), ordered))
    assert [row[0] for row in rows_of(node, workers=3)] == sorted(row[0] for row in rows if row[0] > 1000)
    straight = plan.Project((x,), (x,), plan.Filter((Compare.of(">=", x, literal(5)),), source))
    assert [row[0] for row in rows_of(straight, workers=3)] == list(range(5, 400_000))


# --- limits and stopping ---------------------------------------------------------------------------------------------


def test_limit_and_offset() -> None:
    """LIMIT, OFFSET, percent and ties."""
    source = scan_of([(index // 4, "a", index) for index in range(100)])
    g, _t, _x = source.outputs
    assert [row[2] for row in rows_of(plan.Limit(literal(5), literal(10), source))] == [10, 11, 12, 13, 14]
    assert [row[2] for row in rows_of(plan.Limit(None, literal(97), source))] == [97, 98, 99]
    assert rows_of(plan.Limit(literal(0), None, source)) == []
    assert len(rows_of(plan.Limit(literal(7), None, source, is_percent=True))) == 7
    ordered = plan.Sort((SortKey(g),), source)
    assert len(rows_of(plan.Limit(literal(5), None, ordered, ties=(SortKey(g),)))) == 8


def test_limit_stops_reading() -> None:
    """A filled LIMIT leaves most parts unread, at the top and inside a plan."""
    table, held = table_of("t", {"x": (BIGINT, list(range(500_000)))}, 500)
    source = scan(table)
    limit = plan.Limit(literal(1500), None, source)
    assert len(rows_of(limit)) == 1500
    assert held.read_parts < 100
    held.read_parts = 0
    node = plan.Aggregate((), ((column("n", BIGINT), aggregate_call("sum", source.outputs[0])),), limit)
    assert rows_of(node) == [(1500 * 1499 // 2,)]
    assert held.read_parts < 100


def test_closing_the_answer_stops_the_workers() -> None:
    """Who stops reading an answer stops the query."""
    table, held = table_of("t", {"x": (BIGINT, list(range(500_000)))}, 500)
    batches = run(scan(table), context()).batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert held.read_parts < 200


def test_cancellation() -> None:
    """A stopped query raises 57014, between batches of its answer and inside a breaker."""
    source = scan_of([(index % 3, "a", index) for index in range(300_000)], pieces=300)
    surroundings = context()
    batches = run(source, surroundings).batches()
    next(batches)
    surroundings.cancellation.stop()
    with pytest.raises(QueryCanceled):
        list(batches)
    with pytest.raises(QueryCanceled):
        list(run(_aggregate(source), surroundings).batches())


def test_first_error_is_raised() -> None:
    """An error on any worker ends the query and is raised where the answer is read."""
    table, held = table_of("t", {"x": (BIGINT, list(range(300_000)))}, 300)
    original = held._read

    def read(batch: Any, columns: Any) -> Any:
        if batch.column(0)[0].as_py() >= 200_000:
            raise FeatureNotSupported("broken part")
        return original(batch, columns)

    held._read = read  # type: ignore[method-assign]
    with pytest.raises(FeatureNotSupported, match="broken part"):
        rows_of(scan(table))
    with pytest.raises(FeatureNotSupported, match="broken part"):
        source = scan(table)
        rows_of(plan.Aggregate((), ((column("n", BIGINT), aggregate_call("sum", source.outputs[0])),), source))


def test_what_is_not_built_is_named() -> None:
    """A node the engine does not know is 0A000 with its name."""

    class Strange(plan.Plan):
        columns = ()

    with pytest.raises(FeatureNotSupported, match="Strange"):
        run(Strange(), context())


# --- scans -----------------------------------------------------------------------------------------------------------


def test_predicates_reach_the_table() -> None:
    """Simple conjuncts are offered to storage; a join's keys are too, and drop rows early."""
    table, held = table_of("t", {"x": (BIGINT, list(range(1000))), "y": (BIGINT, [1] * 1000)})
    source = scan(table)
    x, y = source.outputs
    tests = (Compare.of(">=", x, literal(990)), Compare.of(">", literal(5), y), InList(BOOLEAN, y, (literal(1),)))
    assert len(rows_of(plan.Filter(tests, source))) == 10
    asked = {(item.column, item.op, item.value) for item in held.asked[0][1]}
    assert asked == {("x", ">=", 990), ("y", "<", 5), ("y", "in", (1,))}
    few = scan(table_of("few", {"k": (BIGINT, [3, 500, None])})[0])
    join = plan.Join(JoinKind.INNER, source, few, (Compare.of("=", x, few.outputs[0]),))
    answer = run(join, context())
    assert sum(batch.num_rows for batch in answer.batches()) == 2
    assert {(item.column, item.op, item.value) for item in held.asked[-1][1]} == {("x", ">=", 3), ("x", "<=", 500)}
    assert _profile_of(answer.profile(), "Scan").rows == 2


def test_a_column_used_above_alone_is_read() -> None:
    """Columns that nobody reads are not scanned."""
    table, held = table_of("t", {name: (BIGINT, [1, 2]) for name in "abc"})
    source = scan(table)
    wanted: tuple[Column, ...] = (source.outputs[1],)
    chosen = plan.Filter((Compare.of("=", source.outputs[0], literal(1)),), source)
    assert rows_of(plan.Project(wanted, wanted, chosen)) == [(1,)]
    assert held.asked[0][0] == ("a", "b")


# --- sets, lists, recursion ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(SetKind))
@pytest.mark.parametrize("keeps_all", [False, True])
def test_set_operations(kind: SetKind, keeps_all: bool) -> None:
    """UNION, INTERSECT and EXCEPT with and without ALL, NULLs being equal."""
    left, right = random_rows(300, 3), random_rows(200, 3, seed=9)
    one, other = Counter(left), Counter(right)
    match kind:
        case SetKind.UNION:
            expected = one + other
        case SetKind.INTERSECT:
            expected = one & other
        case SetKind.EXCEPT:
            expected = one - other if keeps_all else Counter({row: 1 for row in one if row not in other})
    if not keeps_all:
        expected = Counter(dict.fromkeys(expected, 1))
    outputs = tuple(column(name, type) for name, type in TYPES.items())
    node = plan.SetOperation(kind, keeps_all, scan_of(left), scan_of(right), outputs)
    assert Counter(rows_of(node)) == expected
    three = plan.Project(outputs[:1], outputs[:1], node)
    assert Counter(rows_of(three)) == Counter((row[0],) for row in expected.elements())


def test_unnest() -> None:
    """Lists side by side, a shorter one filled with NULLs; outer keeps rows without elements."""
    lists: list[Any] = [[1, 2], [], None, [3, None, 4]]
    texts: list[Any] = [["a"], ["b", "c"], None, []]
    data = {"k": (BIGINT, [1, 2, 3, 4]), "a": (List(BIGINT), lists), "b": (List(TEXT), texts)}
    source = scan(table_of("t", data)[0])
    k, a, b = source.outputs
    one, two, place = column("one", BIGINT), column("two", TEXT), column("place", BIGINT)
    node = plan.Unnest(((one, a), (two, b)), source, place)
    made = (k, one, two, place)
    expected = [
        (1, 1, "a", 1), (1, 2, None, 2), (2, None, "b", 1), (2, None, "c", 2), (4, 3, None, 1), (4, None, None, 2),
        (4, 4, None, 3),
    ]  # fmt: skip
    assert rows_of(plan.Project(made, made, node)) == expected
    outer = plan.Unnest(((one, a), (two, b)), source, place, is_outer=True)
    assert rows_of(plan.Project(made, made, outer)) == [*expected[:4], (3, None, None, None), *expected[4:]]


def test_materialized_rows_are_computed_once() -> None:
    """Two scans of a WITH query read its table once."""
    table, held = table_of("t", {"x": (BIGINT, list(range(10)))})
    source = scan(table)
    one, two = (column("a", BIGINT),), (column("b", BIGINT),)
    join = plan.Join(
        JoinKind.INNER, plan.CteScan(1, "w", one), plan.CteScan(1, "w", two), (Compare.of("=", one[0], two[0]),)
    )
    assert len(rows_of(plan.Materialize(1, "w", source, join))) == 10
    assert held.read_parts == 1


def test_recursion() -> None:
    """Rounds until nothing new comes, with and without ALL."""
    edges = scan(table_of("e", {"a": (BIGINT, [1, 2, 3, 4]), "b": (BIGINT, [2, 3, 1, 5])})[0])
    a, b = edges.outputs
    start = plan.Values(((literal(1),),), (column("n", BIGINT),))
    seen = (column("n", BIGINT),)
    step = plan.Project(
        (b,), (b,), plan.Join(JoinKind.INNER, plan.CteScan(7, "r", seen), edges, (Compare.of("=", seen[0], a),))
    )
    node = plan.Recursion(7, "r", False, start, step, (column("n", BIGINT),))
    assert rows_of(node) == [(1,), (2,), (3,)]
    assert len(rows_of(plan.Limit(literal(10), None, plan.Recursion(7, "r", True, start, step, seen)))) == 10


def test_sample() -> None:
    """A number of rows, or a share of them; a seed repeats the choice."""
    source = scan_of([(index, "a", index) for index in range(10_000)])
    assert len(rows_of(plan.Sample(100, False, 1, source))) == 100
    assert rows_of(plan.Sample(50, False, 1, source)) == rows_of(plan.Sample(50, False, 1, source))
    assert 800 < len(rows_of(plan.Sample(10, True, 3, source))) < 1200
    assert len(rows_of(plan.Sample(100, True, None, source))) == 10_000


@pytest.mark.parametrize("op", [">=", ">", "<=", "<"])
@pytest.mark.parametrize("is_left", [False, True])
def test_asof_join(op: str, is_left: bool) -> None:
    """The nearest right row by time among those of the same key."""
    draw = random.Random(3)
    left = [(draw.choice([None, 1, 2, 3]), "l", draw.choice([None, *range(40)])) for _ in range(200)]
    times = [(key, time) for key in (1, 2, None) for time in draw.sample(range(40), 12)]
    right = [(key, f"r{time}", time) for key, time in times] + [(1, "rn", None)]
    one, other = scan_of(left), scan_of(right)
    kind = plan.JoinKind.LEFT if is_left else plan.JoinKind.INNER
    node = plan.AsofJoin(one, other, ((one.outputs[0], other.outputs[0]),), one.outputs[2], op, other.outputs[2], kind)
    expected = []
    for row in left:
        found = [
            item for item in right
            if None not in (row[0], row[2], item[2]) and item[0] == row[0] and {
                ">=": row[2] >= item[2], ">": row[2] > item[2], "<=": row[2] <= item[2], "<": row[2] < item[2]
            }[op]
        ]  # fmt: skip
        if found:
            expected.append(row + (max if op in (">=", ">") else min)(found, key=lambda item: item[2]))
        elif is_left:
            expected.append((*row, None, None, None))
    assert rows_of(node) == expected


# --- spilling and profiles -------------------------------------------------------------------------------------------


def test_full_disk_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """53100 where spilling finds no room, 58030 where the scratch folder cannot be used."""
    monkeypatch.setattr("lake.exec.operators.batches.SMALL_ROWS", 0)
    node = _aggregate(scan_of([(index, "a", index) for index in range(50_000)], pieces=20))

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(IoFailure):
        rows_of(node, memory=1 << 18, scratch="/dev/null/nowhere")
    monkeypatch.setattr("pyarrow.OSFile", refuse)
    with pytest.raises(DiskFull):
        rows_of(node, memory=1 << 18)


def test_scratch_files_go_away(tmp_path: Path) -> None:
    """What spilled is deleted when the answer is done with."""
    answer = run(_sort(scan_of(random_rows(60_000, 50), pieces=9)), context(memory=1 << 18, scratch=str(tmp_path)))
    batches = answer.batches()
    next(batches)
    assert list(tmp_path.iterdir())
    list(batches)
    del answer, batches
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_profile() -> None:
    """The tree of operators with the rows of each."""
    source = scan_of([(index % 5, "a", index) for index in range(1000)])
    answer = run(plan.Filter((Compare.of(">", source.outputs[0], literal(1)),), _aggregate(source)), context())
    assert sum(batch.num_rows for batch in answer.batches()) == 3
    filtered = answer.profile()
    assert (filtered.name, filtered.rows) == ("Filter", 3)
    assert (filtered.inputs[0].name, filtered.inputs[0].rows) == ("HashAggregate", 5)
    assert (filtered.inputs[0].inputs[0].name, filtered.inputs[0].inputs[0].rows) == ("Scan", 1000)
    assert filtered.inputs[0].plan is not None


def test_mixed_dictionaries_join_and_group() -> None:
    """Parts whose text has dictionaries of their own, or none, are one column."""
    texts = [["a", "b", None], ["b", "c", "a"], ["c", None, "d"]]
    arrays = [pa.array(part).dictionary_encode() if index < 2 else pa.array(part) for index, part in enumerate(texts)]
    table, held = table_of("t", {"t": (TEXT, ["x"])})
    held.batches = [pa.RecordBatch.from_arrays([array], names=["t"]) for array in arrays]
    source = scan(table)
    other = scan(table)
    groups = plan.Aggregate(((source.outputs[0],) * 2,), ((column("n", BIGINT), aggregate_call("count")),), source)
    assert in_any_order(rows_of(groups)) == [("a", 2), ("b", 2), ("c", 2), ("d", 1), (None, 2)]
    join = plan.Join(JoinKind.INNER, source, other, (Compare.of("=", source.outputs[0], other.outputs[0]),))
    assert Counter(rows_of(join)) == Counter({("a", "a"): 4, ("b", "b"): 4, ("c", "c"): 4, ("d", "d"): 1})
    assert [row[0] for row in rows_of(plan.Sort((SortKey(source.outputs[0]),), source))] == [*"aabbccd", None, None]
