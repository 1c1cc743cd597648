"""Tail to files to fewer files: the rows and their system columns stay as they were, and what is not needed goes."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from lake.clock import VirtualClock
from lake.errors import TooManyRequests
from lake.rows import Predicate
from lake.storage import Append, StorageOptions, Upkeep
from lake.storage.catalog.changes import Change, CreateTable, DropTable, SealFiles, Truncate
from lake.storage.catalog.model import FILES_MAX
from lake.storage.commits import checkpoint
from lake.storage.lake import Lake
from lake.storage.objects import LocalStore, MemoryStore
from lake.storage.tiering.compact import choose
from lake.storage.tiering.tier import fold
from tests.storage.lakes import (
    START,
    append,
    contents,
    lake_with_table,
    numbers,
    open_lake,
    rows_of,
    table_of,
)


def clocked_lake(**options: object) -> tuple[Lake, VirtualClock]:
    clock = VirtualClock(START)
    return lake_with_table(MemoryStore(clock), clock, **options), clock


@pytest.mark.parametrize("seed", range(6))
def test_random_work_keeps_every_row(seed: int) -> None:
    """Appends small and large, bulk files, tiering, merging, sealing, checkpoints and restarts, in any order."""
    chance = random.Random(seed)
    clock = VirtualClock(START)
    store = MemoryStore(clock)
    lake = lake_with_table(store, clock, inline_bytes=2_000)
    expected: list[tuple[object, ...]] = []
    for number in range(80):
        clock.advance(chance.choice([0.0, 0.5, 20.0]))
        match chance.randrange(8):
            case 0 | 1 | 2:
                append(lake, *range(number, number + chance.choice([1, 3, 200])))
            case 3:
                lake.insert_files(lake.state.table("t"), [rows_of(number, None)])
            case 4 | 5:
                lake.tier()
            case 6:
                lake.upkeep.round(force=True)
            case _:
                lake.close()
                lake = open_lake(store, clock, inline_bytes=2_000)
        found = sorted(contents(lake), key=lambda row: row[3])
        assert found[: len(expected)] == expected, "rows of before are as they were"
        expected = found
        assert lake.state.rows(1) == len(found) == len({row[3] for row in found})
        assert lake.state.tail_rows == sum(tail.rows for tail in lake.state.tails.values())
    lake.close()


def test_tiering_moves_rows_and_keeps_snapshots() -> None:
    lake, _ = clocked_lake()
    append(lake, 1, None)
    append(lake, 3)
    snapshot = lake.snapshot()
    before = contents(lake)
    assert lake.tier() == 3
    assert lake.tier() == 0
    assert contents(lake) == before
    assert lake.state.tail_rows == 0 and not lake.state.tails
    assert len(lake.state.table("t").files) == 1
    assert snapshot.table("t").tail is not None and snapshot.table("t").rows == 3
    append(lake, 4)
    assert numbers(lake) == [1, None, 3, 4]


def test_rows_that_arrive_while_tiering_stay_in_the_tail() -> None:
    lake, _ = clocked_lake()
    append(lake, 1)
    flush = fold(lake.snapshot(), lake.clock, lake.options, lake.writers)
    append(lake, 2)
    assert flush is not None
    lake.submit(flush).result()
    assert numbers(lake) == [1, 2]
    assert lake.state.tails[1].rows == 1


@pytest.mark.parametrize("change", [Truncate(1), DropTable(1)])
def test_a_job_for_rows_that_are_gone_is_dropped(change: Change) -> None:
    """Emptied or dropped while it was tiered, a table does not get its rows back; other tables' rows are recorded."""
    lake, _ = clocked_lake()
    lake.commit([CreateTable(table_of(2, "u"))])
    append(lake, 1)
    lake.commit(appends=[Append(2, rows_of(7))])
    flush = fold(lake.snapshot(), lake.clock, lake.options, lake.writers)
    lake.commit([change])
    assert flush is not None
    lake.submit(flush).result()
    assert contents(lake, ["a"], name="u") == [(7,)] and len(lake.state.table("u").files) == 1
    if isinstance(change, Truncate):
        append(lake, 2)
        assert numbers(lake) == [2]


def test_eight_small_files_become_one() -> None:
    lake, _ = clocked_lake()
    for number in range(7):
        append(lake, number, None)
        lake.tier()
        assert not lake.upkeep.merge()
    lake.insert_files(lake.state.table("t"), [rows_of(100)])
    before = contents(lake)
    assert lake.upkeep.merge()
    assert len(lake.state.table("t").files) == 1
    assert contents(lake) == before
    assert len(lake.state.garbage) == 8


def test_a_large_file_is_not_rewritten_for_crumbs() -> None:
    lake, _ = clocked_lake()
    lake.insert_files(lake.state.table("t"), [rows_of(*range(1_000))])
    for number in range(7):
        append(lake, number)
        lake.tier()
    assert not lake.upkeep.merge()
    append(lake, 8)
    lake.tier()
    assert lake.upkeep.merge()
    files = lake.state.table("t").files
    assert [file.rows for file in files] == [1_000, 8]
    assert choose(files) == []


def test_replaced_files_go_after_their_time_and_not_from_under_a_reader() -> None:
    lake, clock = clocked_lake(inline_bytes=100, retain_secs=60.0)
    for number in range(8):
        append(lake, *range(number * 10, number * 10 + 10))
        lake.tier()
    reading = lake.snapshot()
    parts = reading.table("t").parts(["a"])
    assert lake.upkeep.merge()
    clock.advance(61)
    append(lake, 1)
    lake.upkeep.round()
    assert sum(batch.num_rows for part in parts for batch in part.read()) == 80
    del reading, parts
    lake.upkeep.round()
    assert {info.name for info in lake.store.list("data/")} == {file.path for file in lake.state.table("t").files}
    assert lake.store.list("log/") == []
    assert not lake.state.garbage
    assert len(numbers(lake)) == 81


def test_files_of_dropped_tables_go_sealed_ones_too() -> None:
    lake, clock = clocked_lake()
    table = lake.state.table("t")
    for number in range(FILES_MAX + 1):
        lake.insert_files(table, [rows_of(number)])
    lake.upkeep.round(force=True)
    append(lake, 5)
    lake.commit([DropTable(table.id)])
    clock.advance(3_600)
    lake.upkeep.round(force=True)
    assert lake.store.list("data/") == [] and not lake.state.garbage


def test_orphans_go_when_they_are_old() -> None:
    lake, clock = clocked_lake(inline_bytes=100)
    append(lake, *range(50))
    lake.insert_files(lake.state.table("t"), [rows_of(1)])
    lake.write_files(lake.state.table("t"), [rows_of(2)])
    lake.store.put("log/orphan.seg", b"x")
    before = contents(lake)
    lake.upkeep.round()
    assert len(lake.store.list("data/")) == 2 and len(lake.store.list("log/")) == 2
    clock.advance(86_401)
    lake.upkeep._orphans_at = -1e9
    lake.upkeep.round()
    assert len(lake.store.list("data/t/")) == len(lake.state.table("t").files) == 2
    assert {row[0] for row in contents(lake)} == {row[0] for row in before}
    assert lake.store.head("log/orphan.seg") is None


def test_past_128_files_the_older_are_sealed() -> None:
    """The entry stays small, reads and skips go through manifests, and merged manifests keep the order."""
    lake, _ = clocked_lake()
    table = lake.state.table("t")
    written = [lake.write_files(table, [rows_of(number, number + 1)]).files[0] for number in range(200)]
    from lake.storage.catalog.changes import AddFiles

    lake.commit([AddFiles(table.id, tuple(written), {})])
    before = contents(lake)
    from lake.storage.tiering.tier import seal_all

    flush = seal_all(lake.snapshot(), lake.clock)
    assert flush is not None
    lake.submit(flush).result()
    table = lake.state.table("t")
    assert (len(table.files), len(table.manifests), table.file_count, table.file_rows) == (64, 1, 200, 400)
    assert contents(lake) == before
    snapshot = lake.snapshot().table("t")
    assert len(snapshot.parts(["a"], [Predicate("a", "=", 50)])) == 2
    assert len(snapshot.parts(["a"], [Predicate("a", ">", 150)])) == 50
    assert snapshot.statistics().columns["a"].max == 200
    lake.store.requests.clear()  # type: ignore[attr-defined]
    assert snapshot.parts(["a"], [Predicate("a", ">", 1_000)]) == []
    assert contents(open_lake(lake.store)) == before


def test_small_manifests_are_merged() -> None:
    lake, _ = clocked_lake()
    table = lake.state.table("t")
    from lake.storage.catalog.changes import AddFiles
    from lake.storage.tiering.tier import seal_all

    for round in range(20):
        written = [lake.write_files(table, [rows_of(round * 100 + number)]).files[0] for number in range(65)]
        lake.commit([AddFiles(table.id, tuple(written), {})])
        flush = seal_all(lake.snapshot(), lake.clock)
        if flush is not None:
            lake.submit(flush).result()
    manifests = lake.state.table("t").manifests
    assert len(manifests) < 16
    assert sum(manifest.files for manifest in manifests) + len(lake.state.table("t").files) == 20 * 65
    expected = [round * 100 + number for round in range(20) for number in range(65)]
    assert numbers(lake) == expected
    assert numbers(open_lake(lake.store)) == expected


def test_a_stale_seal_is_dropped() -> None:
    lake, _ = clocked_lake()
    table = lake.state.table("t")
    for number in range(FILES_MAX + 1):
        lake.insert_files(table, [rows_of(number)])
    from lake.storage.tiering.tier import seal_all

    flush = seal_all(lake.snapshot(), lake.clock)
    lake.commit([Truncate(table.id)])
    assert flush is not None and flush.prepare is not None
    assert [change for change in flush.prepare(lake.state) if isinstance(change, SealFiles)] == []
    assert lake.submit(flush).result().seg >= 0
    assert numbers(lake) == []


def test_writers_wait_for_room() -> None:
    """Past the backlog, room is made by tiering; without upkeep a writer is refused after its wait."""
    lake, _ = clocked_lake(backlog=10)
    append(lake, *range(9))
    lake.make_room(1)
    from lake.storage import lake as module

    waited, module.BACKLOG_WAIT_SECS = module.BACKLOG_WAIT_SECS, 0.01
    try:
        with pytest.raises(TooManyRequests, match="9 rows wait"):
            lake.make_room(2)
    finally:
        module.BACKLOG_WAIT_SECS = waited
    assert lake.tiering_wanted.is_set()
    lake.upkeep.round()
    lake.make_room(2)
    lake.make_room(1_000), "an empty tail takes a flush of any size"


def test_tiering_from_many_threads_is_one_round_after_another() -> None:
    """Four threads tier, each through an Upkeep of its own, while rows arrive: no round meets another's."""
    lake, _ = clocked_lake()
    failures: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        upkeep = Upkeep(lake)
        try:
            while not done.is_set():
                upkeep.tier()
                upkeep.round()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(60):
        append(lake, number)
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert numbers(lake) == list(range(60))


def test_upkeep_runs_on_its_own(tmp_path: Path) -> None:
    """A leader with upkeep tiers when asked, and says where it serves."""
    lake = Lake.open(tmp_path, options=StorageOptions(tier_secs=0.0, sync=False), writable=False)
    lake.lead("127.0.0.1:1")
    lake.commit([CreateTable(table_of())])
    append(lake, 1)
    number = lake.state.number
    lake.tiering_wanted.set()
    assert lake.wait_for(number + 1, 20.0)
    assert lake.state.tail_rows == 0
    assert lake.find_leader() == "127.0.0.1:1"
    lake.close()
    assert isinstance(lake.store, LocalStore) and lake.find_leader() is None


def test_commits_that_checkpoints_cover_go_after_their_time() -> None:
    lake, clock = clocked_lake(gc_secs=60.0)
    for number in range(10):
        append(lake, number)
    lake.write_checkpoint()
    append(lake, 10)
    lake.write_checkpoint()
    append(lake, 11)
    lake.write_checkpoint()
    numbers_kept = checkpoint.checkpoint_numbers(lake.store)
    assert len(numbers_kept) == 2
    keep = {"now": clock.now() + 59_000_000, "keep_secs": 60.0}
    assert checkpoint.remove_commits(lake.store, lake.log, lake.state, **keep) == 0
    keep["now"] += 2_000_000
    assert checkpoint.remove_commits(lake.store, lake.log, lake.state, **keep) > 0
    assert [number for number in lake.log.numbers() if number > 1] == list(range(numbers_kept[0] + 1, lake.state.number + 1))
    assert numbers(open_lake(lake.store, clock)) == list(range(12))
