"""What a lake does does not grow with what it has done: work is counted, not timed."""

from __future__ import annotations

from collections import Counter

from lake.clock import VirtualClock
from lake.storage import Append
from lake.storage.catalog.changes import AddFiles
from lake.storage.catalog.model import FILES_MAX
from lake.storage.lake import Lake
from lake.storage.objects import MemoryStore
from lake.storage.tables.read import PLACE
from lake.storage.tiering.tier import seal_all
from tests.storage.lakes import START, append, lake_with_table, open_lake, rows_of


def requests(store: MemoryStore, before: Counter[str]) -> Counter[str]:
    """What was asked of a store since."""
    return Counter(store.requests) - before


def opened_after(commits: int) -> tuple[Counter[str], int]:
    """What opening a lake asks for after so many commits, and how large its checkpoint is."""
    clock = VirtualClock(START)
    store = MemoryStore(clock)
    lake = lake_with_table(store, clock, checkpoint_commits=50, retain_secs=0.0, gc_secs=0.0, orphan_secs=0.0)
    for number in range(commits):
        append(lake, number)
        if number % 50 == 49:
            clock.advance(60.0)
            lake.tier()
            lake.upkeep.round(force=True)
    lake.close()
    size = max(info.size for info in store.list("catalog/checkpoint/"))
    before = Counter(store.requests)
    again = open_lake(store, clock)
    found = requests(store, before)
    assert again.state.rows(again.state.table("t").id) == commits
    again.close()
    return found, size


def test_a_lake_of_many_commits_opens_as_one_of_few() -> None:
    """The same objects are read after 100 commits and after 1,000."""
    few, small = opened_after(100)
    many, large = opened_after(1_000)
    assert many == few, "opening reads a checkpoint and the commits after it"
    assert large < 8 * small, "a checkpoint grows with tables and files, and with the times of commits up to a limit"


def table_of_files(count: int) -> tuple[Lake, MemoryStore]:
    """A lake whose table has so many files."""
    clock = VirtualClock(START)
    store = MemoryStore(clock)
    lake = lake_with_table(store, clock)
    table = lake.state.table("t")
    for start in range(0, count, 100):
        numbers = range(start, min(start + 100, count))
        files = [lake.write_files(table, [rows_of(number)]).files[0] for number in numbers]
        lake.commit([AddFiles(table.id, tuple(files), {})])
        sealing = seal_all(lake.snapshot(), clock)
        if sealing is not None:
            lake.submit(sealing).result()
    return lake, store


def commits_of(lake: Lake, store: MemoryStore) -> tuple[Counter[str], Counter[str], int]:
    """What an append and a deletion of one row ask for, and how many bytes both write."""
    table = lake.state.table("t")
    assert len(table.files) <= FILES_MAX
    rows = lake.snapshot().table("t")
    newest = rows.parts((PLACE,))[-1].read()[0].column(0).to_numpy()
    before, known = Counter(store.requests), {info.name for info in store.list("catalog/commit/")}
    lake.commit(appends=[Append(table.id, rows_of(7))])
    appended = requests(store, before)
    before = Counter(store.requests)
    lake.commit([rows.deletes_at(newest)])
    deleted = requests(store, before)
    return appended, deleted, sum(info.size for info in store.list("catalog/commit/") if info.name not in known)


def test_a_table_of_many_files_commits_as_one_of_few() -> None:
    """The same requests and as many bytes for a table of 20 files and of 1,000."""
    few, many = commits_of(*table_of_files(20)), commits_of(*table_of_files(1_000))
    assert many[:2] == few[:2], "a commit reads no manifest"
    assert many[2] < 1.2 * few[2]
