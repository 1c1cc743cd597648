"""The log: one writer, exactly once, and every acknowledged commit there when the lake is opened again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lake.clock import SystemClock, VirtualClock
from lake.errors import (
    DataCorrupted,
    DuplicateObject,
    InvalidParameter,
    InvalidText,
    IoFailure,
    NotLeading,
    SerializationFailure,
    TooManyRequests,
    UndefinedTable,
)
from lake.storage import Append, Flush, Lake, StorageOptions
from lake.storage.catalog.changes import AlterTable, Change, Commit, CreateTable, DropTable, Truncate
from lake.storage.catalog.model import Column
from lake.storage.catalog.state import State
from lake.storage.commits import checkpoint, terms
from lake.storage.commits.commit import commit_name
from lake.storage.objects.memory import MemoryStore
from lake.types import BIGINT
from tests.storage.faulty import FaultyStore
from tests.storage.lakes import START, append, contents, lake_with_table, numbers, open_lake, rows_of, table_of


def hold(lake: Lake) -> Callable[[], None]:
    """Keeps the writer thread busy, so that what is submitted meanwhile waits together; answers what lets it go."""
    started, gate = threading.Event(), threading.Event()

    def wait(state: State) -> list[Change | Append]:
        started.set()
        gate.wait(10)
        return []

    blocked = lake.submit(Flush(prepare=wait))
    started.wait(10)

    def release() -> None:
        gate.set()
        blocked.result()

    return release


def test_rows_are_there_after_reopening(tmp_path: Path) -> None:
    lake = lake_with_table(tmp_path)
    for number in range(20):
        assert append(lake, number, None).seg == number + 3
    before = contents(lake)
    assert [row[3] for row in before] == list(range(1, 41))
    assert [row[4] for row in before] == [seg for seg in range(3, 23) for _ in range(2)]
    lake.close()
    again = open_lake(tmp_path)
    assert contents(again) == before
    again.close()


def test_a_second_leader_fences_the_first(tmp_path: Path) -> None:
    """The first finds its commit number taken, steps down for good, and reads what the second wrote."""
    first = lake_with_table(tmp_path)
    append(first, 1)
    second = open_lake(tmp_path)
    with pytest.raises(NotLeading):
        append(first, 2)
    assert not first.leads
    with pytest.raises(NotLeading):
        append(first, 3)
    append(second, 4)
    assert first.refresh().number == second.state.number
    assert numbers(first) == numbers(second) == [1, 4]
    assert first.lead() == second.term + 1
    append(first, 5)
    with pytest.raises(NotLeading):
        append(second, 6)
    first.close()
    second.close()


def test_many_leaders_take_turns_and_lose_nothing() -> None:
    """Four processes that claim whenever they are fenced: each acknowledged row is there once."""
    store = MemoryStore()
    lake_with_table(store).close()
    acknowledged: list[int] = []

    def work(base: int) -> None:
        lake = Lake.open(store, clock=SystemClock(), options=StorageOptions(upkeep=False), writable=False)
        for number in range(base, base + 25):
            while True:
                try:
                    lake.lead()
                    append(lake, number, producer=f"p{base}", seq=number - base + 1)
                    break
                except NotLeading:
                    lake.release()
        acknowledged.extend(range(base, base + 25))
        lake.close()

    threads = [threading.Thread(target=work, args=(base,)) for base in (0, 100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lake = open_lake(store)
    assert sorted(number for number in numbers(lake) if number is not None) == sorted(acknowledged)
    assert len(acknowledged) == 100
    lake.close()


def test_elections_stay_when_commits_go() -> None:
    """A leader that slept through its successor's election and the removal of its commits is still fenced."""
    store, clock = MemoryStore(), VirtualClock(START)
    store._clock = clock
    asleep = lake_with_table(store, VirtualClock(START))  # its own clock sleeps with it, and tells it nothing
    append(asleep, 1)
    awake = open_lake(store, clock)
    for number in range(5):
        append(awake, number)
    awake.write_checkpoint()
    append(awake, 6)
    awake.write_checkpoint()
    clock.advance(3_600)
    awake.upkeep.round(force=True)
    assert store.head(commit_name(asleep.state.number)) is None, "the commits are gone"
    with pytest.raises(NotLeading):
        append(asleep, 99)
    assert 99 not in numbers(awake)
    assert asleep.refresh().number == awake.state.number


@pytest.mark.parametrize("kind", ["lost", "late"])
def test_a_lost_reply_is_not_a_lost_write(kind: str) -> None:
    """One failed request is tried again, and finds its own commit if it had been written."""
    store = FaultyStore()
    lake = lake_with_table(store)
    store.faults = [("put_if_absent", "catalog/commit/", kind)]
    assert append(lake, 1).seg == 3
    append(lake, 2)
    assert numbers(lake) == [1, 2]
    assert lake.leads and store.faults == []


@pytest.mark.parametrize("kind", ["lost", "late"])
def test_an_unknown_outcome_is_found_out_before_the_next_commit(kind: str) -> None:
    """When every try fails the writer is told; sent again with its producer, the row is there once either way."""
    store = FaultyStore()
    lake = lake_with_table(store)
    store.faults = [("put_if_absent", "catalog/commit/", kind)] * 3 + [("get", "catalog/commit/", "lost")] * 3
    with pytest.raises(IoFailure):
        append(lake, 1, producer="p", seq=1)
    store.faults = []
    again = append(lake, 1, producer="p", seq=1)
    assert again.duplicate == (kind == "late")
    append(lake, 2, producer="p", seq=2)
    assert numbers(lake) == [1, 2]
    reopened = open_lake(store)
    assert numbers(reopened) == [1, 2]


# Spec: HTTP, Append and bulk insert.
def test_producers_are_applied_once() -> None:
    store = MemoryStore()
    lake = lake_with_table(store)
    assert append(lake, 1, producer="p", seq=1).seg == 3
    assert append(lake, 1, producer="p", seq=1).duplicate
    assert append(lake, 0, producer="p", seq=1).seg == 0
    assert append(lake, 2, producer="p", seq=5).seg == 4, "gaps are allowed"
    assert append(lake, 9, producer="p", seq=3).duplicate
    assert append(lake, 9, producer="p", seq=7, prev=4).conflict
    assert append(lake, 3, producer="p", seq=7, prev=5).seg == 5
    assert append(lake, 4, producer="q", seq=1, prev=0).seg == 6
    lake.close()
    again = open_lake(store)
    assert append(again, 4, producer="q", seq=1).duplicate
    assert numbers(again) == [1, 2, 3, 4]
    with pytest.raises(InvalidParameter, match="counts from 1"):
        append(again, 1, producer="p", seq=0)


def test_rows_and_progress_of_one_round_are_grouped() -> None:
    """Flushes that wait together become one commit; each learns where its rows are, and repeats in a round are found."""
    lake = lake_with_table()
    release = hold(lake)
    table = lake.state.table("t").id
    waiting = [
        lake.submit(Flush((Append(table, rows_of(number, number)),), producer=f"p{number % 4}", seq=1 + number // 4))
        for number in range(8)
    ]
    repeated = lake.submit(Flush((Append(table, rows_of(99)),), producer="p0", seq=1))
    release()
    answers = [future.result() for future in waiting]
    assert {answer.seg for answer in answers} == {3}
    assert [answer.row for answer in answers] == list(range(0, 16, 2))
    assert repeated.result().duplicate
    assert numbers(lake) == [number for number in range(8) for _ in range(2)]


def test_a_refused_flush_leaves_the_others_of_its_round() -> None:
    """Its changes, rows and progress are taken back; those before and after it stand."""
    lake = lake_with_table()
    table = lake.state.table("t").id
    release = hold(lake)
    seen: list[int] = []

    def refuse(state: State) -> list[Change | Append]:
        seen.append(state.waiting_rows(table))
        raise SerializationFailure("stale")

    taken = (CreateTable(table_of(7, "u")), CreateTable(table_of(8, "t")))
    futures = [
        lake.submit(Flush((Append(table, rows_of(1)),))),
        lake.submit(Flush((Append(table, rows_of(2)),), prepare=refuse, producer="p", seq=1)),
        lake.submit(Flush((Append(table, rows_of(3)),), changes=taken, producer="p", seq=1)),
        lake.submit(Flush((Append(12345, rows_of(4)),))),
        lake.submit(Flush((Append(table, rows_of(5)),), producer="p", seq=1)),
    ]
    release()
    futures[0].result()
    for future, error in zip(futures[1:4], (SerializationFailure, DuplicateObject, UndefinedTable)):
        with pytest.raises(error):
            future.result()
    assert not futures[4].result().duplicate
    assert seen == [1], "a check sees the rows before it in its own round"
    assert numbers(lake) == [1, 5]
    assert lake.state.find("u") is None
    assert numbers(open_lake(lake.store)) == [1, 5]


def test_definitions_and_rows_keep_their_order_in_a_round() -> None:
    def made_with_a_row(state: State) -> list[Change | Append]:
        return [CreateTable(table_of(state.next_id, "u")), Append(state.next_id, rows_of(3))]

    lake = lake_with_table()
    table = lake.state.table("t").id
    release = hold(lake)
    futures = [
        lake.submit(Flush((Append(table, rows_of(1)),))),
        lake.submit(Flush(changes=(Truncate(table),))),
        lake.submit(Flush((Append(table, rows_of(2)),))),
        lake.submit(Flush(prepare=made_with_a_row)),
        lake.submit(Flush((Append(table, rows_of(4)),))),
    ]
    release()
    assert len({future.result().seg for future in futures}) == 1
    assert numbers(lake) == [2, 4]
    assert contents(lake, ["a"], name="u") == [(3,)]
    assert contents(open_lake(lake.store)) == contents(lake)


def test_rows_for_a_table_that_changed_are_refused() -> None:
    lake = lake_with_table()
    table = lake.state.table("t")
    more = (*table.columns, Column.of(4, "e", BIGINT))
    append(lake, 1)
    lake.commit([AlterTable(table.id, "public", "t", more, (), {}, None, 5)])
    append(lake, 2)
    assert contents(lake, ["a", "e"]) == [(1, None), (2, None)]
    lake.commit([AlterTable(table.id, "public", "t", table.columns[:1], (), {}, None, 5)])
    with pytest.raises(SerializationFailure):
        append(lake, 3)
    lake.commit([DropTable(table.id)])
    with pytest.raises(UndefinedTable):
        lake.commit(appends=[Append(table.id, rows_of(1))])


def test_a_text_that_is_not_unicode_is_refused_to_its_writer_alone() -> None:
    lake = lake_with_table()
    table = lake.state.table("t").id
    release = hold(lake)
    good = lake.submit(Flush((Append(table, rows_of(1)),)))
    bad = lake.submit(Flush((Append(table, rows_of(2)),), producer="\ud800", seq=1))
    worse = lake.submit(Flush(changes=(CreateTable(table_of(9, "\ud800")),)))
    release()
    assert good.result().seg == 3
    for future in (bad, worse):
        with pytest.raises(InvalidText):
            future.result()
    assert numbers(lake) == [1]
    with pytest.raises(InvalidParameter):
        append(lake, 1, producer="p", seq=1 << 63)


def test_a_failing_listener_does_not_fail_the_writer(capsys: pytest.CaptureFixture[str]) -> None:
    lake = lake_with_table()
    heard: list[int] = []
    lake.on_commit(lambda commit, state: 1 // 0)
    end = lake.on_commit(lambda commit, state: heard.append(state.number))
    append(lake, 1)
    end()
    append(lake, 2)
    assert heard == [3] and numbers(lake) == [1, 2]
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_queue_has_a_limit() -> None:
    lake = lake_with_table(queue_flushes=2)
    table = lake.state.table("t").id
    release = hold(lake)
    futures = [lake.submit(Flush((Append(table, rows_of(number)),))) for number in range(2)]
    with pytest.raises(TooManyRequests):
        lake.submit(Flush((Append(table, rows_of(9)),)))
    release()
    assert [future.result().seg for future in futures] == [3, 3]


def test_large_flushes_are_segments() -> None:
    """Past ``inline_bytes`` the commit names a segment, which is read back, checked, when the lake is opened again."""
    store = MemoryStore()
    lake = lake_with_table(store, inline_bytes=1_000)
    append(lake, *range(1_000))
    append(lake, 1)
    (segment,) = [info.name for info in store.list("log/")]
    before = contents(lake)
    assert len(before) == 1_001
    again = open_lake(store)
    assert contents(again) == before
    data = bytearray(store.get(segment))
    data[len(data) // 2] ^= 1
    store.put(segment, bytes(data))
    with pytest.raises(DataCorrupted, match=segment):
        contents(open_lake(store))


def test_opening_an_old_lake_takes_few_requests() -> None:
    """200 tables and 1,000 commits: two listings, a checkpoint, and the commits after it."""
    store = MemoryStore()
    lake = open_lake(store, checkpoint_secs=0.0)
    lake.commit([CreateTable(table_of(id, f"t{id}")) for id in range(1, 201)])
    for number in range(1_000):
        lake.commit(appends=[Append(1 + number % 200, rows_of(number))])
        if lake.checkpoint_is_due():
            lake.write_checkpoint()
    store.requests.clear()
    reader = Lake.open(store, writable=False)
    assert reader.state.number == 1_002
    covered = checkpoint.checkpoint_numbers(store)[-1]
    assert store.requests["get"] <= 1 + (1_002 - covered) + 1
    assert sum(store.requests.values()) <= 260
    assert all(reader.state.rows(id) == 5 for id in range(1, 201))
    lake.close()
    store.requests.clear()
    assert Lake.open(store, writable=False).state.number == 1_002
    assert sum(store.requests.values()) <= 4, "a leader that ends leaves a checkpoint"


def test_damage_is_named() -> None:
    """A missing commit and a flipped one stop the opening, with the object's name; a damaged checkpoint does not."""
    store = MemoryStore()
    lake = lake_with_table(store)
    for number in range(4):
        append(lake, number)
    lake.write_checkpoint()
    append(lake, 4)
    lake.write_checkpoint()
    append(lake, 5)
    newest = checkpoint.checkpoint_name(lake.state.number - 1)
    whole = store.get(newest)
    store.put(newest, whole[:-1] + bytes([whole[-1] ^ 1]))
    assert numbers(Lake.open(store, writable=False)) == [0, 1, 2, 3, 4, 5]
    store.put(newest, whole)
    last = commit_name(lake.state.number)
    data = store.get(last)
    store.put(last, data[:40] + b"?" + data[41:])
    with pytest.raises(DataCorrupted, match=last):
        Lake.open(store, writable=False)
    append_name = commit_name(lake.state.number + 2)
    store.put(last, data)
    store.put(append_name, data)
    with pytest.raises(DataCorrupted, match="missing"):
        Lake.open(store, writable=False)


def test_a_checkpoint_holds_the_tail() -> None:
    """Many small parts become few, segments stay, and tiering up to a commit inside a merged part splits it."""
    store = MemoryStore()
    lake = lake_with_table(store, inline_bytes=2_000)
    for number in range(10):
        append(lake, number)
    append(lake, *range(100, 200))
    middle = lake.snapshot()
    for number in range(20, 30):
        append(lake, number)
    lake.write_checkpoint()
    before = contents(lake)
    again = Lake.open(store, clock=lake.clock, options=lake.options, writable=False)
    assert contents(again) == before
    tail = again.state.tails[1]
    assert (tail.parts, tail.rows) == (3, 120)

    from lake.storage.tiering.tier import fold

    again.lead()
    flush = fold(middle, again.clock, again.options, again.writers)
    assert flush is not None
    again.submit(flush).result()
    assert again.state.tails[1].rows == 10
    assert contents(again) == before
    assert contents(open_lake(store)) == before


def test_a_reader_follows_and_survives_removed_commits() -> None:
    store, clock = MemoryStore(), VirtualClock(START)
    store._clock = clock
    lake = lake_with_table(store, clock)
    reader = Lake.open(store, clock=clock, writable=False)
    append(lake, 1)
    assert reader.refresh().number == lake.state.number
    for number in range(70):
        append(lake, number)
    assert reader.refresh().number == lake.state.number
    for _ in range(2):
        append(lake, 1)
        lake.write_checkpoint()
    clock.advance(1_000)
    lake.upkeep.round(force=True)
    assert reader.refresh().number == lake.state.number
    assert contents(reader) == contents(lake)


def test_the_leader_can_be_found() -> None:
    store, clock = MemoryStore(), VirtualClock(START)
    lake = lake_with_table(store, clock)
    assert lake.find_leader() is None, "a leader without an address takes no requests"
    lake.announce("127.0.0.1:8080")
    assert lake.find_leader() == "127.0.0.1:8080"
    clock.advance(terms.ALIVE_SECS + 1)
    assert lake.find_leader() is None
    lake.announce("127.0.0.1:8080")
    lake.close()
    assert terms.find_address(store, clock) is None


def test_a_quiet_leader_looks_whether_it_still_leads() -> None:
    store, clock = MemoryStore(), VirtualClock(START)
    lake = lake_with_table(store, clock)
    append(lake, 1)
    terms.claim(store, clock, "another")
    clock.advance(31)
    with pytest.raises(NotLeading):
        append(lake, 2)


def test_refused_files_are_discarded_only_when_nothing_names_them() -> None:
    lake = lake_with_table()
    table = lake.state.table("t")
    kept = lake.write_files(table, [rows_of(1)])
    lost = lake.write_files(table, [rows_of(2)])
    from lake.storage.catalog.changes import AddFiles

    lake.commit([AddFiles(table.id, kept.files, kept.sketches)])
    lake.discard_files([*kept.files, *lost.files])
    assert [info.name for info in lake.store.list("data/")] == [kept.files[0].path]
    assert numbers(lake) == [1]


def test_a_refusal_comes_behind_the_commit_of_its_round() -> None:
    """Whoever is refused because of a flush of the same round finds that flush in the state and may try again."""
    lake = lake_with_table()
    is_committing, may_go_on = threading.Event(), threading.Event()

    def wait(commit: Commit, state: State) -> None:
        is_committing.set()
        may_go_on.wait(10)

    end = lake.on_commit(wait)
    table = lake.state.table("t").id
    first = lake.submit(Flush(appends=(Append(table, rows_of(1)),)))
    is_committing.wait(10)
    before = lake.state.rows(table)

    def refuse(state: State) -> list[Any]:
        raise SerializationFailure(f"{state.rows(table)} rows")

    second = lake.submit(Flush(appends=(Append(table, rows_of(2)),)))
    third = lake.submit(Flush(prepare=refuse))
    end()
    may_go_on.set()
    failure = third.exception(10)
    assert isinstance(failure, SerializationFailure) and lake.state.rows(table) == before + 1
    assert str(failure) == f"{before + 1} rows"
    assert first.result().seg < second.result().seg
    lake.close()
