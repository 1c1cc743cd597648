"""UNIQUE among many: sessions that insert the same keys, transactions that meet at COMMIT, rows that move meanwhile."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lake.config import load
from lake.db.database import Database
from lake.db.session import Session
from lake.db.write.unique import Piece
from lake.errors import FeatureNotSupported, SerializationFailure, UniqueViolation
from lake.storage.commits.sequencer import Append, Flush

SESSIONS = 16


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A lake with a table that has a UNIQUE column."""
    opened = Database.open(load(options={"lake": str(tmp_path / "lake"), "tier_secs": "0"}))
    opened.start(None)
    Session(opened).execute("CREATE TABLE t (k INT UNIQUE, who INT)")
    yield opened
    opened.close()


def test_one_of_sixteen_wins_each_key(database: Database) -> None:
    """Constraints 3.2: sessions insert the same keys, each in its own order, while rows are tiered; every key is there once."""
    keys = 40
    won: Counter[int] = Counter()
    lock = threading.Lock()

    def insert(who: int) -> None:
        session = Session(database)
        order = list(range(keys))
        random.Random(who).shuffle(order)
        for key in order:
            try:
                session.execute(f"INSERT INTO t VALUES ({key}, {who})")
            except UniqueViolation:
                continue
            with lock:
                won[key] += 1

    threads = [threading.Thread(target=insert, args=(who,)) for who in range(SESSIONS)]
    for thread in threads:
        thread.start()
    database.tier()
    for thread in threads:
        thread.join()
    assert won == dict.fromkeys(range(keys), 1)
    rows = Session(database).execute("SELECT k FROM t ORDER BY k").rows()
    assert rows == [(key,) for key in range(keys)]


@pytest.mark.parametrize("is_moved", [False, True])
def test_transactions_meet_at_commit(database: Database, is_moved: bool) -> None:
    """Two transactions insert one key: the second is refused at COMMIT, whole, also where rows moved to files."""
    first, second = Session(database), Session(database)
    first.execute("INSERT INTO t VALUES (9, 0)")
    for who, session in enumerate((first, second)):
        session.execute(f"BEGIN; INSERT INTO t VALUES (1, {who}), ({who + 10}, {who})")
    second.execute("DELETE FROM t WHERE k = 9")
    first.execute("COMMIT")
    if is_moved:
        database.tier()
    with pytest.raises(UniqueViolation):
        second.execute("COMMIT")
    assert first.execute("SELECT k, who FROM t ORDER BY k").rows() == [(1, 0), (9, 0), (10, 0)]


def test_a_key_that_left_may_come_back(database: Database) -> None:
    """A transaction that takes a key which another transaction lets go meanwhile, in this order of commits."""
    first, second = Session(database), Session(database)
    first.execute("INSERT INTO t VALUES (1, 0)")
    first.execute("BEGIN; UPDATE t SET k = 2")
    with pytest.raises(UniqueViolation):
        second.execute("INSERT INTO t VALUES (1, 1)")
    first.execute("COMMIT")
    second.execute("INSERT INTO t VALUES (1, 1)")
    assert second.execute("SELECT k FROM t ORDER BY k").rows() == [(1,), (2,)]


def test_rows_prepared_before_a_constraint_are_refused(database: Database) -> None:
    """Rows that were on their way when the table got a rule are not written without it."""
    session = Session(database)
    session.execute("CREATE TABLE plain (k INT)")
    table = database.lake.state.table("plain")
    batch = pa.record_batch({"k": pa.array([-1], pa.int32())})
    session.execute("ALTER TABLE plain ADD CHECK (k > 0)")
    with pytest.raises(SerializationFailure):
        database.commit(Flush(appends=(Append(table.id, batch, table),)))
    assert session.execute("SELECT count(*) FROM plain").rows() == [(0,)]


def test_append_takes_no_unique_table(database: Database) -> None:
    """POST /append is refused by name. Spec: SQL, Constraints and defaults 3."""
    with pytest.raises(FeatureNotSupported, match='unique constraint "t_k_key"'):
        database.append(("t",), b'{"k": 1}', is_arrow=False, once=None)


def test_restore_brings_no_key_back_twice(database: Database) -> None:
    """The rule came after the rows that RESTORE would bring back."""
    session = Session(database)
    session.execute("CREATE TABLE again (a INT, note VARCHAR); INSERT INTO again VALUES (1, 'x'), (1, 'y')")
    before = database.version
    session.execute("DELETE FROM again WHERE note = 'y'; ALTER TABLE again ADD UNIQUE (a)")
    with pytest.raises(UniqueViolation):
        session.execute(f"RESTORE TABLE again TO VERSION AS OF {before}")
    assert session.execute("SELECT note FROM again").rows() == [("x",)]


def test_a_repeated_job_is_a_duplicate(database: Database) -> None:
    """A job sent again does not meet its own rows."""
    session = Session(database)
    assert session.execute("INSERT INTO t VALUES (1, 1)", job="one").outcome == {"rows": 1}
    assert session.execute("INSERT INTO t VALUES (1, 1)", job="one").outcome == {"duplicate": True}


def test_equal_hashes_are_found_in_pairs() -> None:
    """All pairs of rows with one hash, whichever side is longer; NULLs have none."""
    few = Piece.of([pa.array([3, None, 1, 3], pa.int64())])
    many = Piece.of([pa.array([1, 2, 3, 3, None, 9, 9], pa.int64())], 100)
    expected = {(0, 102), (0, 103), (3, 102), (3, 103), (2, 100)}
    assert set(zip(*(side.tolist() for side in few.pairs(many)))) == expected
    assert set(zip(*(side.tolist() for side in many.pairs(few)))) == {(b, a) for a, b in expected}
    assert sorted(sorted(group.tolist()) for group in many.repeated()) == [[102, 103], [105, 106]]
