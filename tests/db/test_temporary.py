"""Temporary tables: apart from session to session, within LAKE_TEMP_MB, in no commit and in no remembered answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.config import load
from lake.db.database import Database
from lake.db.session import Session
from lake.errors import OutOfMemory, UndefinedTable


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A lake with a table, and one MiB for temporary ones."""
    opened = Database.open(load(options={"lake": str(tmp_path / "lake"), "tier_secs": "0", "temp_mb": "1"}))
    opened.start(None)
    Session(opened).execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    yield opened
    opened.close()


def rows(session: Session, text: str) -> list[tuple[object, ...]]:
    """A query's rows."""
    return session.execute(text).rows()


def test_sessions_have_their_own(database: Database) -> None:
    """Equal names and equal texts in several sessions; a remembered answer of one is not another's."""
    sessions = [Session(database) for _ in range(3)]
    assert [rows(session, "SELECT a FROM t") for session in sessions] == [[(1,)]] * 3
    before = database.version
    for number, session in enumerate(sessions[:2]):
        session.execute(f"CREATE TEMP TABLE t AS SELECT {number} + 10 AS a; CREATE TEMP VIEW v AS SELECT a + 1 AS b FROM t")
    for _ in range(2):
        assert [rows(session, "SELECT a FROM t") for session in sessions] == [[(10,)], [(11,)], [(1,)]]
    assert rows(sessions[1], "SELECT b FROM v") == [(12,)]
    with pytest.raises(UndefinedTable):
        sessions[2].execute("SELECT b FROM v")
    assert database.version == before, "nothing is committed"
    assert rows(sessions[0], "SELECT count(*) FROM lake.tables WHERE name = 'v'") == [(1,)]
    assert rows(sessions[2], "SELECT count(*) FROM lake.tables WHERE name = 'v'") == [(0,)]
    sessions[0].close()
    assert rows(sessions[0], "SELECT a FROM t") == [(1,)]


def test_the_lake_is_written_beside_them(database: Database) -> None:
    """Statements on the lake's tables commit as ever, those that read temporary ones too."""
    session = Session(database)
    session.execute("CREATE TEMP TABLE u AS SELECT 5 AS a; INSERT INTO t SELECT a FROM u; CREATE TABLE w AS SELECT * FROM u")
    session.execute("UPDATE t SET a = t.a + u.a FROM u WHERE t.a = u.a; ALTER TABLE w ADD COLUMN b INT; TRUNCATE u")
    assert rows(Session(database), "SELECT a FROM t ORDER BY a") == [(1,), (10,)]
    assert rows(Session(database), "SELECT a, b FROM w") == [(5, None)]
    session.execute("DROP TABLE u; DROP TABLE w")


def test_all_of_a_node_hold_so_much(database: Database) -> None:
    """A change past LAKE_TEMP_MB is refused whole; what is dropped, undone or ended is given back."""
    first, second = Session(database), Session(database)
    first.execute("CREATE TEMP TABLE u AS SELECT i FROM range(80000) AS r(i)")
    held = database.temporary_space.bytes
    assert held >= 640_000
    for text in (
        "CREATE TEMP TABLE w AS SELECT i FROM range(10000000) AS r(i)",
        "CREATE TEMP TABLE w (a BIGINT); INSERT INTO w SELECT i FROM range(80000) AS r(i)",
    ):
        with pytest.raises(OutOfMemory, match="1 MiB"):
            second.execute(text)
    assert database.temporary_space.bytes == held
    with pytest.raises(OutOfMemory):
        first.execute("INSERT INTO u SELECT i FROM u")
    assert rows(first, "SELECT count(*) FROM u") == [(80_000,)]
    first.execute("DELETE FROM u WHERE i >= 1000")
    assert database.temporary_space.bytes < 200_000, "rows that are gone are held no longer"
    second.execute("BEGIN; CREATE TEMP TABLE x AS SELECT i FROM range(80000) AS r(i); ROLLBACK")
    second.execute("INSERT INTO w SELECT i FROM range(80000) AS r(i)")
    second.close()
    first.execute("DROP TABLE u")
    assert database.temporary_space.bytes == 0
