"""Keyed tables where SQL alone does not reach: conflicts across tiering, many rows at once, several writers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import lake
from lake.db.database import Database
from lake.db.feed import Feed
from lake.db.session import Session
from lake.embedded import EmbeddedConnection
from lake.errors import InvalidParameter, SerializationFailure
from lake.storage.tiering import generations


@pytest.fixture
def db(tmp_path: Path) -> Iterator[EmbeddedConnection]:
    """A lake with a keyed table of three rows in a file."""
    with lake.open(tmp_path / "lake", tier_secs="0") as opened:
        assert isinstance(opened, EmbeddedConnection)
        opened.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)")
        opened.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
        opened.sql("CHECKPOINT")
        yield opened


@pytest.mark.parametrize("key", [1, 2])
def test_first_committer_wins_by_key(db: EmbeddedConnection, key: int) -> None:
    """Whoever else wrote the key meanwhile is found in files as in the log; another key is no conflict."""
    mine, other = Session(db.database), Session(db.database)
    mine.execute("BEGIN")
    mine.execute("UPDATE t SET v = v + 10 WHERE id = 1")
    other.execute(f"UPDATE t SET v = 100 WHERE id = {key}")
    db.database.tier()
    other.execute("INSERT INTO t VALUES (4, 4)")
    if key == 1:
        with pytest.raises(SerializationFailure):
            mine.execute("COMMIT")
    else:
        mine.execute("COMMIT")
    expected = {(1, 100), (2, 2)} if key == 1 else {(1, 11), (2, 100)}
    assert set(db.sql("SELECT * FROM t WHERE id < 3").rows()) == expected


@pytest.mark.parametrize("key", [1, 2, 5])
def test_compaction_is_no_conflict(db: EmbeddedConnection, monkeypatch: pytest.MonkeyPatch, key: int) -> None:
    """Where markers are gone with a compaction, whether the key was written is seen by its row: changed, deleted or made."""
    monkeypatch.setattr(generations, "GENERATIONS_MAX", 1)
    mine, other = Session(db.database), Session(db.database)
    mine.execute("BEGIN")
    mine.execute("UPDATE t SET v = v + 10 WHERE id IN (1, 3)")
    mine.execute("INSERT INTO t VALUES (5, 5) ON CONFLICT (id) DO NOTHING")
    other.execute(f"DELETE FROM t WHERE id = {key}; INSERT INTO t VALUES (9, 9)")
    if key == 5:
        other.execute("INSERT INTO t VALUES (5, 50)")
    db.database.lake.upkeep.round(force=True)
    assert len(db.database.lake.state.table("t").files) == 1
    other.execute("INSERT INTO t VALUES (4, 4)")
    if key == 2:
        mine.execute("COMMIT")
    else:
        with pytest.raises(SerializationFailure):
            mine.execute("COMMIT")
    expected = {1: {(3, 3)}, 2: {(1, 11), (3, 13), (5, 5)}, 5: {(1, 1), (3, 3), (5, 50)}}[key]
    assert set(db.sql("SELECT * FROM t WHERE id IN (1, 3, 5)").rows()) == expected


def test_writers_of_one_key(db: EmbeddedConnection) -> None:
    """Eight sessions add to one row with UPDATE while it is tiered: no addition is lost."""
    def add() -> None:
        session = Session(db.database)
        for _ in range(20):
            session.execute("UPDATE t SET v = v + 1 WHERE id = 1")

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        db.database.tier()
    assert db.sql("SELECT v FROM t WHERE id = 1").rows() == [(161,)]


def test_files_of_a_bulk_write_are_newer_than_the_log(db: EmbeddedConnection) -> None:
    """Rows in the log when files are added give way to them, whatever arrives meanwhile."""
    db.sql("CREATE TABLE big (id BIGINT PRIMARY KEY, v BIGINT)")
    stop = threading.Event()

    def upsert() -> None:
        session = Session(db.database)
        number = 0
        while not stop.is_set():
            number += 1
            session.execute(f"INSERT INTO big VALUES (-{number % 5}, {number})")

    thread = threading.Thread(target=upsert)
    thread.start()
    try:
        for number in range(1, 4):
            db.sql(f"INSERT INTO big VALUES (7, -{number})")
            db.sql(f"INSERT INTO big SELECT i, {number} FROM generate_series(0, 20000) AS g(i)")
            assert db.sql("SELECT count(*), min(v), max(v) FROM big WHERE id > 0").rows() == [(20_000, number, number)]
            assert db.sql("SELECT v FROM big WHERE id = 7").rows() == [(number,)]
    finally:
        stop.set()
        thread.join()
    assert db.sql("SELECT count(*) FROM big WHERE id < 0").rows() == [(4,)]


def replayed(database: Database, name: str, after: int) -> dict[int, tuple[int, str]]:
    """The rows of a keyed table by its feed from ``after``, where it was empty."""
    rows: dict[int, tuple[int, str]] = {}
    for batch in Feed.of(database, (name,), old=True).read(after):
        for change in batch.rows.to_pylist():
            if change["_change_type"] == "delete":
                assert rows.pop(change["id"], None) is not None, f"the feed takes away {change['id']}, which is not there"
            else:
                rows[change["id"]] = (change["v"], change["w"])
    return rows


def test_truncate_is_told_row_by_row(db: EmbeddedConnection) -> None:
    """Rows in files and in the log, under the columns of now; a transaction's TRUNCATE comes before its rows."""
    db.sql("CREATE TABLE told (id INT PRIMARY KEY, v INT)")
    start = db.database.version
    db.sql("INSERT INTO told VALUES (1, 1), (2, 2), (3, 3)")
    db.sql("CHECKPOINT")
    db.sql("INSERT INTO told VALUES (2, 20), (4, 4); DELETE FROM told WHERE id = 3")
    db.sql("TRUNCATE told")
    db.sql("ALTER TABLE told ADD COLUMN w VARCHAR DEFAULT 'w'")
    assert replayed(db.database, "told", start) == {}
    db.sql("INSERT INTO told VALUES (1, 5)")
    session = Session(db.database)
    session.execute("BEGIN; TRUNCATE told; INSERT INTO told VALUES (7, 7, 'x'); COMMIT")
    assert replayed(db.database, "told", start) == {7: (7, "x")}
    kinds = [change["_change_type"] for batch in Feed.of(db.database, ("told",), old=False).read(start)
             for change in batch.rows.to_pylist() if "_change_type" in change]  # fmt: skip
    assert kinds == []


def test_a_truncate_that_keeps_nothing_ends_the_feed(db: EmbeddedConnection) -> None:
    """With retention 0 there is no past to tell the rows from; what comes after is told."""
    db.sql("CREATE TABLE brief (id INT PRIMARY KEY, v INT, w VARCHAR) WITH (retention = '0 seconds')")
    start = db.database.version
    db.sql("INSERT INTO brief VALUES (1, 1, 'w')")
    db.sql("TRUNCATE brief")
    after = db.database.version
    db.sql("INSERT INTO brief VALUES (2, 2, 'w')")
    with pytest.raises(InvalidParameter, match="no longer kept"):
        replayed(db.database, "brief", start)
    assert replayed(db.database, "brief", after) == {2: (2, "w")}
