"""The fold, persistent maps, sketches, look-ups by name."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import (
    DependentObjects,
    DuplicateColumn,
    DuplicateObject,
    InvalidTableDefinition,
    UndefinedSchema,
    UndefinedTable,
)
from lake.storage.catalog import sketches
from lake.storage.catalog.changes import (
    AppendRows,
    Change,
    Commit,
    CreateSchema,
    CreateTable,
    CreateView,
    DropSchema,
    DropTable,
    DropView,
)
from lake.storage.catalog.fold import apply
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.model import Column, Schema, Table, View
from lake.storage.catalog.state import TIMES_MAX, State, index_times
from lake.storage.commits.checkpoint import decode_state, encode_state
from lake.types import BIGINT, Decimal, List
from tests.storage.lakes import START, rows_of, table_of


@dataclass(frozen=True)
class Colliding:
    """A key whose hash is every other's of its kind."""

    number: int

    def __hash__(self) -> int:
        return 17


keys = st.integers(-50, 50) | st.integers(0, 60).map(Colliding)
Key = int | Colliding


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(keys, st.none() | st.integers()), max_size=120))
def test_a_persistent_map_is_a_dict(steps: list[tuple[Key, int | None]]) -> None:
    """Setting and removing agree with a dict, and no map made before is changed."""
    made: list[tuple[PersistentMap[Key, int], dict[Key, int]]] = [(PersistentMap(), {})]
    for key, value in steps:
        current, model = made[-1]
        if value is None:
            made.append((current.remove(key), {other: held for other, held in model.items() if other != key}))
        else:
            made.append((current.set(key, value), {**model, key: value}))
    for current, model in made:
        assert dict(current) == model and len(current) == len(model)
        assert all(current[key] == value for key, value in model.items())
        assert all((key in current) == (key in model) for key, _ in steps)


def test_a_persistent_map_shares_what_it_keeps() -> None:
    """Setting one of 100,000 keys builds a few small nodes."""
    large = PersistentMap((number, number) for number in range(100_000))
    other = large.set(5, 6)
    changed = [slot for slot in range(16) if large._root[slot] is not other._root[slot]]
    assert len(changed) == 1 and large[5] == 5 and other[5] == 6


@pytest.mark.parametrize("distinct", [0, 1, 7, 100, 1_000, 50_000])
def test_a_sketch_counts_within_a_tenth(distinct: int) -> None:
    numbers = np.random.default_rng(distinct).permutation(np.arange(distinct).repeat(2))
    texts = pa.array([f"customer {number}" for number in numbers.tolist()], pa.string())
    for array in (pa.array(numbers, pa.int64()), pa.array(numbers / 7), texts, texts.dictionary_encode()):
        found = sketches.estimate(sketches.sketch_of(array))
        assert abs(found - distinct) <= max(1, 0.1 * distinct)


@settings(deadline=None)
@given(st.lists(st.none() | st.integers(-9, 9)), st.lists(st.none() | st.integers(-9, 9)))
def test_merged_sketches_are_the_sketch_of_all(left: list[int | None], right: list[int | None]) -> None:
    parts = [pa.array(part, pa.int64()) for part in (left, right)]
    together = sketches.merged(sketches.sketch_of(part) for part in parts)
    assert together == sketches.sketch_of(pa.array(left + right, pa.int64()))


@given(st.lists(st.text(max_size=40), max_size=20), st.integers(0, 5))
def test_equal_texts_hash_equally_wherever_they_lie(texts: list[str], start: int) -> None:
    """In a slice, among other texts, with other text behind them in the buffer."""
    array = pa.array(["x" * start, *texts, "tail"], pa.string()).slice(1, len(texts))
    hashes = sketches.hashes_of(array)
    assert hashes is not None
    by_text: dict[str, set[int]] = {}
    for text, code in zip(texts, hashes.tolist()):
        by_text.setdefault(text, set()).add(code)
    alone = {text: sketches.hashes_of(pa.array([text], pa.string())) for text in texts}
    for text, codes in by_text.items():
        found = alone[text]
        assert found is not None and codes == {int(found[0])}
    assert len({next(iter(codes)) for codes in by_text.values()}) == len(by_text)


def step(state: State, *changes: Change, rows: tuple[pa.RecordBatch, ...] = ()) -> State:
    return apply(state, Commit(state.number + 1, START + state.number, 1, "w", changes, rows))


def test_names_are_looked_up_with_hints() -> None:
    state = step(State(), CreateTable(table_of(1, "flights")), CreateSchema(Schema("raw")))
    state = step(state, CreateTable(Table(2, "raw", "flights", table_of().columns, "flights__2")))
    state = step(state, CreateView(View(3, "public", "late", (), "SELECT 1")))
    assert state.table("flights").id == 1
    assert state.table("flights", "raw").id == 2
    assert state.view("late").query == "SELECT 1"
    assert [item.name for item in state.relations()] == ["flights", "late", "flights"]
    with pytest.raises(UndefinedTable, match='relation "flihgts" does not exist') as raised:
        state.table("flihgts")
    assert raised.value.hint == 'Did you mean "flights"?'
    with pytest.raises(UndefinedTable) as raised:
        state.table("Flights")
    assert raised.value.hint == 'Did you mean "flights"?'
    with pytest.raises(UndefinedTable) as raised:
        state.table("zzz")
    assert raised.value.hint is None
    assert state.free_folder("flights") == "flights__3"
    assert state.free_folder("a/b c") == "a_b_c"


def test_what_cannot_follow_a_state_is_refused() -> None:
    state = step(State(), CreateTable(table_of(1, "t")), CreateSchema(Schema("s")))
    named = Column.of(1, "a", BIGINT)
    refused: list[tuple[Change, type[Exception]]] = [
        (CreateTable(table_of(2, "t")), DuplicateObject),
        (CreateView(View(2, "public", "t", (), "")), DuplicateObject),
        (CreateTable(Table(2, "none", "x", (named,), "x")), UndefinedSchema),
        (CreateTable(Table(2, "public", "x", (), "x")), InvalidTableDefinition),
        (CreateTable(Table(2, "public", "x", (named, named), "x")), DuplicateColumn),
        (CreateTable(Table(2, "public", "x", (Column.of(1, "_row_id", BIGINT),), "x")), InvalidTableDefinition),
        (DropTable(9), UndefinedTable),
        (DropView(9), UndefinedTable),
        (CreateSchema(Schema("s")), DuplicateObject),
        (DropSchema("none"), UndefinedSchema),
        (DropSchema("public"), DependentObjects),
        (AppendRows(9, 1, 1, inline=0), UndefinedTable),
    ]
    for change, error in refused:
        with pytest.raises(error):
            step(state, change, rows=(rows_of(1),))
    assert step(state, DropSchema("s"), DropTable(1)).find("t") is None


def test_applying_leaves_the_state_before_as_it_was() -> None:
    """A snapshot of an older state answers as it did, whatever came after."""
    states = [step(State(), CreateTable(table_of(1)))]
    for number in range(50):
        change = AppendRows(1, 1, number + 1, inline=0)
        states.append(step(states[-1], change, rows=(rows_of(number),)))
    order = list(range(51))
    random.Random(4).shuffle(order)
    for at in order:
        tail = states[at].tails.get(1)
        found = [row for chunk in tail.chunks(None) for row in chunk.column("a").to_pylist()] if tail else []
        assert found == list(range(at)) and states[at].tail_rows == at


def test_a_tail_of_many_small_commits_is_read_as_few_batches() -> None:
    state = step(State(), CreateTable(table_of(1)))
    for number in range(3_000):
        state = step(state, AppendRows(1, 1, number + 1, inline=0), rows=(rows_of(number),))
        if number % 7 == 0:
            assert len(state.tails[1].chunks(None)) <= 12
    chunks = state.tails[1].chunks(None)
    assert sum(chunk.num_rows for chunk in chunks) == 3_000
    assert state.tails[1].parts == 3_000
    again = decode_state(encode_state(state, None), "x")
    assert again.tails[1].parts == 1 and again.tail_rows == 3_000
    assert (again.names, again.tables, again.times) == (state.names, state.tables, state.times)


def test_the_time_index_stays_small_and_finds_commits() -> None:
    times: tuple[tuple[int, int], ...] = ()
    for second in range(3 * TIMES_MAX):
        times = index_times(times, second * 1_000_000, second)
        times = index_times(times, second * 1_000_000 + 1, second)
        assert len(times) <= TIMES_MAX
    state = State(number=3 * TIMES_MAX, time=3 * TIMES_MAX * 1_000_000, times=times)
    assert state.number_at(state.time) == state.number
    assert state.number_at(times[-2][0]) == times[-2][1]
    assert state.number_at(times[-2][0] + 5) == times[-2][1]
    assert state.number_at(-1) == 0


def test_types_are_read_from_their_text() -> None:
    for type in (BIGINT, Decimal(15, 2), List(List(Decimal(38, 0)))):
        assert Column.of(1, "c", type).type == type
