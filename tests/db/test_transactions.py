"""Transactions of several sessions on one table: what each sees, who wins, what is left of the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.config import load
from lake.db.database import Database
from lake.db.session import Session
from lake.errors import FailedTransaction, SerializationFailure


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A lake with accounts of 100 each."""
    opened = Database.open(load(options={"lake": str(tmp_path / "lake"), "tier_secs": "0"}))
    opened.start(None)
    Session(opened).execute("CREATE TABLE t (id INT, amount INT); INSERT INTO t SELECT i, 100 FROM range(10) AS r(i)")
    yield opened
    opened.close()


def rows(session: Session, text: str) -> list[tuple[object, ...]]:
    """A query's rows."""
    return session.execute(text).rows()


def test_a_snapshot_does_not_move(database: Database) -> None:
    """What others commit is not seen before the end, nor what is uncommitted by them."""
    first, second = Session(database), Session(database)
    first.execute("BEGIN")
    second.execute("UPDATE t SET amount = 1 WHERE id = 1")
    assert rows(first, "SELECT amount FROM t WHERE id = 1") == [(100,)]
    first.execute("UPDATE t SET amount = 2 WHERE id = 2")
    assert rows(second, "SELECT amount FROM t WHERE id = 2") == [(100,)]
    first.execute("COMMIT")
    assert rows(second, "SELECT id, amount FROM t WHERE id < 3 ORDER BY id") == [(0, 100), (1, 1), (2, 2)]


@pytest.mark.parametrize("moved", [False, True])
def test_the_first_committer_wins(database: Database, moved: bool) -> None:
    """Of two that change one row the second is refused whole, also where tiering moved the row meanwhile."""
    first, second = Session(database), Session(database)
    for session in (first, second):
        session.execute("BEGIN; UPDATE t SET amount = amount + 1 WHERE id = 3; INSERT INTO t VALUES (50, 0)")
    if moved:
        database.tier()
    first.execute("COMMIT")
    with pytest.raises(SerializationFailure):
        second.execute("COMMIT")
    assert second.transaction is None
    assert rows(second, "SELECT amount FROM t WHERE id = 3") == [(101,)]
    assert rows(second, "SELECT count(*) FROM t WHERE id = 50") == [(1,)]


def test_a_transaction_outlives_tiering(database: Database) -> None:
    """Rows that moved to files are found again by id and version."""
    session = Session(database)
    session.execute("BEGIN; DELETE FROM t WHERE id = 3; UPDATE t SET amount = 0 WHERE id > 7")
    database.tier()
    Session(database).execute("UPDATE t SET amount = 7 WHERE id = 1")
    session.execute("COMMIT")
    assert rows(session, "SELECT count(*), sum(amount) FROM t") == [(9, 607)]


def test_an_altered_table_refuses(database: Database) -> None:
    """A definition that changed meanwhile is a conflict."""
    session = Session(database)
    session.execute("BEGIN; UPDATE t SET amount = 0")
    Session(database).execute("ALTER TABLE t ADD COLUMN note VARCHAR")
    with pytest.raises(SerializationFailure):
        session.execute("COMMIT")


def test_an_idle_transaction_ends(database: Database) -> None:
    """After ``txn_idle_secs`` it is rolled back, and says so."""
    session = Session(database)
    session.execute("BEGIN; DELETE FROM t")
    assert session.transaction is not None
    session.transaction.used_at -= database.config.txn_idle_secs + 1
    with pytest.raises(FailedTransaction):
        session.execute("SELECT 1")
    session.execute("COMMIT")
    assert rows(session, "SELECT count(*) FROM t") == [(10,)]


@pytest.mark.parametrize("found_by_node", [False, True])
def test_no_savepoint_brings_an_idle_transaction_back(database: Database, found_by_node: bool) -> None:
    """What was rolled back stays so: ROLLBACK TO is refused, and COMMIT commits nothing."""
    session = Session(database)
    session.execute("BEGIN; SAVEPOINT s; DELETE FROM t")
    assert session.transaction is not None
    database.end_idle_transactions()
    assert rows(session, "SELECT count(*) FROM t") == [(0,)]
    session.transaction.used_at -= database.config.txn_idle_secs + 1
    if found_by_node:
        database.end_idle_transactions()
        assert session.transaction.ended
    for _ in range(2):
        with pytest.raises(FailedTransaction):
            session.execute("ROLLBACK TO s")
    assert not session.commit()
    assert rows(session, "SELECT count(*) FROM t") == [(10,)]
    assert database.lake.pinned() == database.version


def test_savepoints_across_sessions(database: Database) -> None:
    """What is undone neither conflicts nor is committed; what is left does and is."""
    first, second = Session(database), Session(database)
    first.execute("BEGIN; UPDATE t SET amount = 1 WHERE id = 1; SAVEPOINT s; UPDATE t SET amount = 1 WHERE id = 2")
    first.execute("INSERT INTO t SELECT i, 0 FROM range(100, 30000) AS r(i); ROLLBACK TO s")
    second.execute("UPDATE t SET amount = 5 WHERE id = 2")
    first.execute("COMMIT")
    assert rows(second, "SELECT id, amount FROM t WHERE id IN (1, 2) ORDER BY id") == [(1, 1), (2, 5)]
    assert rows(second, "SELECT count(*) FROM t") == [(10,)]
    named = {file.path for file in database.lake.state.table("t").files}
    assert {info.name for info in database.lake.store.list("data/")} == named, "files of what was undone are gone"


def test_transfers_lose_nothing(database: Database) -> None:
    """Sessions that move money between accounts, with retries and tiering: the sum stays, and no update is lost."""
    moves = 12

    def work(number: int) -> None:
        session = Session(database)
        done = 0
        while done < moves:
            source, target = (number + done) % 10, (number * 3 + done + 1) % 10
            try:
                session.execute("BEGIN")
                session.execute(f"UPDATE t SET amount = amount - 1 WHERE id = {source}")
                session.execute(f"UPDATE t SET amount = amount + 1 WHERE id = {target}")
                session.execute("COMMIT")
                done += 1
            except SerializationFailure:
                session.rollback()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert rows(Session(database), "SELECT sum(amount), count(*) FROM t") == [(1000, 10)]
        database.tier()
    expected = [100] * 10
    for number in range(4):
        for done in range(moves):
            expected[(number + done) % 10] -= 1
            expected[(number * 3 + done + 1) % 10] += 1
    assert [amount for _, amount in rows(Session(database), "SELECT id, amount FROM t ORDER BY id")] == expected


def test_single_statements_do_not_conflict(database: Database) -> None:
    """Statements that change the same rows at once are done one after another, whatever tiering moves."""

    def work() -> None:
        for _ in range(10):
            Session(database).execute("UPDATE t SET amount = amount + 1 WHERE id < 5")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        database.lake.upkeep.round(force=True)
    assert rows(Session(database), "SELECT DISTINCT amount FROM t WHERE id < 5") == [(140,)]


def test_rows_of_a_transactions_own_file_have_their_ids_once_it_is_over(database: Database) -> None:
    """Rows in bulk, some of them gone again, read in the transaction: behind it ids and versions are the lake's."""
    session = Session(database)
    session.execute("BEGIN; INSERT INTO t SELECT i, 0 FROM range(100, 40100) AS r(i); UPDATE t SET amount = 1 WHERE id % 9 = 1")
    asked = "SELECT id, _row_id, _version FROM t WHERE id >= 100"
    inside = rows(session, asked)
    session.execute("COMMIT")
    found = rows(session, asked)
    assert len({row[1] for row in found}) == len(found) == len(inside) == 40_000, "ids are unlike"
    assert {row[2] for row in found} == {database.version}
    session.execute("DELETE FROM t WHERE id = 100")
    assert sorted(rows(session, asked)) == sorted(row for row in found if row[0] != 100)
