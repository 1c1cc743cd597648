"""Sessions that change the same rows by key: they take turns, and begin later where nobody can tell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lake.config import load
from lake.db.database import Database
from lake.db.session import Session
from lake.db.write import holds
from lake.db.write.holds import RowHolds
from lake.errors import SerializationFailure


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A lake with a table of three keys."""
    monkeypatch.setattr(holds, "HOLD_SECS", 60.0)
    database = Database.open(load(options={"lake": str(tmp_path / "lake"), "tier_secs": "0"}))
    database.start(None)
    Session(database).execute("CREATE TABLE t (k INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
    yield database
    database.close()


def add(session: Session, key: int, value: int = 1) -> None:
    """Changes one row."""
    session.execute("UPDATE t SET v = v + $v WHERE k = $k", {"k": key, "v": value})


def value(session: Session, key: int) -> int:
    """One row's value."""
    found: int = session.execute("SELECT v FROM t WHERE k = $k", {"k": key}).rows()[0][0]
    return found


def test_a_transaction_begins_later_where_nobody_can_tell(database: Database) -> None:
    mine, other = Session(database), Session(database)
    mine.execute("BEGIN")
    add(mine, 1)
    assert value(mine, 1) == 1
    assert mine.execute("SELECT v FROM t WHERE k = 9").rows() == []
    add(other, 2, 10)
    add(other, 3, 10)
    database.tier()
    add(mine, 2)
    assert [value(mine, key) for key in (1, 2, 3)] == [1, 11, 10]
    mine.execute("DELETE FROM t WHERE k = 3")
    mine.execute("COMMIT")
    assert other.execute("SELECT k, v FROM t ORDER BY k").rows() == [(1, 1), (2, 11)]


@pytest.mark.parametrize(
    "before",
    [
        "SELECT v FROM t WHERE k = 2",
        "SELECT count(*) FROM t",
        "UPDATE t SET v = v * 2 WHERE k = 1",
        "UPDATE t SET v = v + 1 WHERE k > 2",
        "INSERT INTO t VALUES (4, 4)",
        "SAVEPOINT here",
        "SELECT v FROM t WHERE k = 4",
    ],
)
def test_it_does_not_where_an_answer_would_be_another(database: Database, before: str) -> None:
    """Or where it is not known: then the first committer wins."""
    mine, other = Session(database), Session(database)
    mine.execute("BEGIN")
    first = mine.execute(before).rows()
    add(other, 2, 10)
    other.execute("INSERT INTO t VALUES (4, 40)")
    add(mine, 2)
    if before.startswith("SELECT"):
        assert mine.execute(before).rows() == ([(1,)] if "k = 2" in before else first)
    with pytest.raises(SerializationFailure):
        mine.execute("COMMIT")
    assert value(other, 2) == 10


@pytest.mark.parametrize("key", [1, 2])
def test_a_row_that_is_recalled_was_read(database: Database, key: int) -> None:
    mine, other = Session(database), Session(database)
    value(mine, key)
    mine.execute("BEGIN")
    recalled = mine.recall("SELECT v FROM t WHERE k = $k", {"k": key}, None)
    assert recalled is not None
    assert recalled.rows() == [(0,)]
    add(other, 2, 10)
    add(mine, 2)
    if key == 2:
        with pytest.raises(SerializationFailure):
            mine.execute("COMMIT")
    else:
        mine.execute("COMMIT")
    assert value(other, 2) == (10 if key == 2 else 11)


def test_it_does_not_past_a_definition(database: Database) -> None:
    mine, other = Session(database), Session(database)
    mine.execute("BEGIN")
    add(other, 2, 10)
    other.execute("ALTER TABLE t ADD COLUMN w INT")
    add(mine, 2)
    with pytest.raises(SerializationFailure):
        mine.execute("COMMIT")


def waiting(rows: RowHolds, count: int) -> None:
    """Returns once so many wait."""
    with rows._changed:
        while len(rows._waiting) < count:
            rows._changed.wait(0.001)


def started(work: Callable[[], object]) -> threading.Thread:
    """A thread that does it."""
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_sessions_take_turns(database: Database, end: str) -> None:
    first = Session(database)
    first.execute("BEGIN")
    add(first, 1, 100)

    def turn() -> None:
        session = Session(database)
        session.execute("BEGIN")
        add(session, 2)
        add(session, 1) if number else value(session, 3)
        add(session, 1)
        session.execute("COMMIT")

    number = 0
    threads = [started(turn)]
    waiting(database.holds, 1)
    first.execute(end)
    threads[0].join()
    assert value(first, 1) == (101 if end == "COMMIT" else 1)
    number = 1
    threads = [started(turn) for _ in range(8)]
    for thread in threads:
        thread.join()
    assert value(first, 2) == 9
    assert value(first, 1) == (117 if end == "COMMIT" else 17)
    assert not database.holds._holders


def test_who_would_wait_for_ever_does_not(database: Database) -> None:
    first, second = Session(database), Session(database)
    for session, key in ((first, 1), (second, 2)):
        session.execute("BEGIN")
        add(session, key)
    thread = started(lambda: add(second, 1))
    waiting(database.holds, 1)
    add(first, 2)  # who holds it waits for us
    first.execute("COMMIT")
    thread.join()
    with pytest.raises(SerializationFailure):
        second.execute("COMMIT")
    assert [value(first, key) for key in (1, 2)] == [1, 1]


def test_waiting_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, one, two = RowHolds(), object(), object()
    monkeypatch.setattr(holds, "HOLD_SECS", 0.001)
    rows.take(one, (1, ("a",)))
    rows.take(two, (1, ("a",)))
    assert rows._holders == {(1, ("a",)): one}
    rows.release(one)
    rows.release(two)
    rows.take(two, (1, ("a",)))
    monkeypatch.setattr(holds, "HOLD_SECS", 60.0)
    monkeypatch.setattr(holds, "WAITING_MAX", 0)
    rows.take(one, (1, ("a",)))
    assert rows._holders == {(1, ("a",)): two}


def test_a_holder_has_so_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, one, two = RowHolds(), object(), object()
    monkeypatch.setattr(holds, "HELD_MAX", 2)
    for number in range(4):
        rows.take(one, (1, (number,)))
        rows.take(one, (1, (number,)))
    rows.take(two, (1, (3,)))
    assert rows._holders == {(1, (0,)): one, (1, (1,)): one, (1, (3,)): two}
    rows.release(one)
    assert rows._holders == {(1, (3,)): two}
