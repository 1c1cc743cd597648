"""Rounds of commits: who runs them, and that none is lost, doubled or out of order however writers come and go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from lake.errors import IoFailure, NotLeading
from lake.storage import Append, Flush, Lake
from lake.storage.catalog.changes import Change
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Acknowledged
from lake.storage.objects.memory import MemoryStore
from tests.storage.faulty import FaultyStore
from tests.storage.lakes import contents, lake_with_table, numbers, open_lake, rows_of

WRITERS = 12


def held(lake: Lake, pool: ThreadPoolExecutor) -> Callable[[], bool]:
    """A writer whose round runs until the answer is called, which tells whether the writer ran it itself."""
    started, gate = threading.Event(), threading.Event()
    ran: list[int] = []

    def wait(state: State) -> Sequence[Change | Append]:
        ran.append(threading.get_ident())
        started.set()
        gate.wait(10)
        return []

    blocked = pool.submit(lambda: (lake.commit_flush(Flush(prepare=wait)), threading.get_ident())[1])
    started.wait(10)

    def release() -> bool:
        gate.set()
        return blocked.result() == ran[0]

    return release


def until(holds: Callable[[], object]) -> None:
    """Returns when a condition holds."""
    while not holds():
        time.sleep(0.001)


def waiting_flushes(lake: Lake) -> int:
    """How many wait for the writer thread."""
    assert lake._sequencer is not None
    return len(lake._sequencer._queue)


def flush(lake: Lake, *values: int) -> Flush:
    """Rows for the table."""
    return Flush((Append(lake.state.table("t").id, rows_of(*values)),))


def test_a_writer_alone_runs_its_round_and_others_come_after() -> None:
    """What comes while it runs is one commit, of the writer thread's."""
    lake = lake_with_table()
    with ThreadPoolExecutor(WRITERS) as pool:
        release = held(lake, pool)
        waiting: list[Future[Acknowledged]] = [pool.submit(lake.commit_flush, flush(lake, each)) for each in range(4)]
        handed = lake.submit(flush(lake, 4))
        until(lambda: waiting_flushes(lake) == 5)
        assert release()
        assert {each.result().seg for each in (*waiting, handed)} == {3}
    assert sorted(numbers(lake)) == [0, 1, 2, 3, 4]
    lake.close()


def test_the_main_thread_hands_over() -> None:
    """Control-C may come up there at any instant, and a round must not end between its commit and its state."""
    lake = lake_with_table()
    ran: list[str] = []

    def look(state: State) -> Sequence[Change | Append]:
        ran.append(threading.current_thread().name)
        return []

    lake.commit_flush(Flush(prepare=look))
    assert ran == ["lake-commits"]
    lake.close()


def test_many_writers_by_turns_lose_nothing(tmp_path: Path) -> None:
    """Flushes that wait and flushes that are handed over, from many threads: each is there once, in one order for all."""
    lake = lake_with_table(tmp_path)

    def write(writer: int) -> list[int]:
        found = []
        for number in range(30):
            done = flush(lake, writer * 100 + number)
            found.append(lake.submit(done).result().seg if number % 3 == 0 else lake.commit_flush(done).seg)
        return found

    with ThreadPoolExecutor(WRITERS) as pool:
        segments = list(pool.map(write, range(WRITERS)))
    assert all(found == sorted(set(found)) for found in segments)
    before = contents(lake)
    assert sorted(numbers(lake)) == sorted(writer * 100 + number for writer in range(WRITERS) for number in range(30))
    assert [row[3] for row in before] == list(range(1, len(before) + 1))
    lake.close()
    again = open_lake(tmp_path)
    assert contents(again) == before
    again.close()


def test_closing_waits_for_a_writer_s_own_round() -> None:
    lake = lake_with_table()
    with ThreadPoolExecutor(WRITERS) as pool:
        release = held(lake, pool)
        waiting = pool.submit(lake.commit_flush, flush(lake, 1))
        until(lambda: waiting_flushes(lake))
        closing = pool.submit(lake.close)
        until(lambda: not lake.leads)
        assert not closing.done()
        with pytest.raises(NotLeading):
            lake.commit_flush(flush(lake, 2))
        assert release()
        closing.result()
        assert waiting.result().seg == 3


def test_a_failed_round_of_a_writer_s_own_is_settled_by_the_next() -> None:
    """Its outcome is unknown to its writer, and found out before the number is used again."""
    store = FaultyStore()
    lake = lake_with_table(store)
    with ThreadPoolExecutor(1) as pool:
        store.faults = [("put_if_absent", "catalog/commit/", "late")] * 3 + [("get", "catalog/commit/", "lost")] * 3
        with pytest.raises(IoFailure):
            pool.submit(lake.commit_flush, flush(lake, 1)).result()
        store.faults = []
        assert pool.submit(lake.commit_flush, flush(lake, 2)).result().seg == 4
    assert numbers(lake) == [1, 2]
    lake.close()


def test_a_fenced_round_ends_the_leadership_for_all() -> None:
    store = MemoryStore()
    first = lake_with_table(store)
    second = open_lake(store)
    with ThreadPoolExecutor(WRITERS) as pool:
        lost = [pool.submit(first.commit_flush, flush(first, each)) for each in range(WRITERS)]
        for each in lost:
            with pytest.raises(NotLeading):
                each.result()
    assert not first.leads
    first.close()
    second.close()
