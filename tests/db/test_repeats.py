"""Queries asked again: remembered while nothing changed, never longer. Spec: SQL, repeated queries; HTTP, ``stale_ms``."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lake
from lake.embedded import EmbeddedConnection

COUNT = "SELECT count(*) FROM t"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[EmbeddedConnection]:
    """A lake with a table of one row."""
    with lake.open(tmp_path / "lake", tier_secs="0") as opened:
        assert isinstance(opened, EmbeddedConnection)
        opened.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
        yield opened


def remembered(db: EmbeddedConnection, text: str, **params: object) -> bool:
    """Whether asking twice computes once: the second answer's batches are the first's own."""
    db.session.execute(text, params).run_through()
    first = db.session.execute(text, params).source
    return isinstance(first, tuple) and first is db.session.execute(text, params).source


def test_an_answer_is_remembered_until_its_tables_change(db: EmbeddedConnection) -> None:
    """A commit to the table ends it; a commit to another table does not."""
    assert remembered(db, COUNT)
    db.sql("CREATE TABLE other (b INT)")
    assert remembered(db, COUNT)
    db.sql("INSERT INTO other VALUES (1)")
    assert isinstance(db.session.execute(COUNT).source, tuple)
    for change in ("INSERT INTO t VALUES (2)", "CHECKPOINT", "TRUNCATE t", "DROP TABLE t; CREATE TABLE t (a INT)"):
        db.sql(change)
        assert not isinstance(db.session.execute(COUNT).source, tuple), change
        db.sql(COUNT)
    assert db.sql(COUNT).item() == 0


def test_answers_are_right_after_every_write(db: EmbeddedConnection) -> None:
    """What is remembered is never what was true before a write."""
    for expected in range(1, 20):
        assert db.sql(COUNT).item() == expected
        assert db.sql("SELECT max(a) FROM t WHERE a <= $most", most=expected).item() == expected
        db.sql("INSERT INTO t VALUES ($a)", a=expected + 1)


@pytest.mark.parametrize("text", ["SELECT a, now() FROM t", "SELECT random() FROM t", "SELECT name FROM lake.tables",
                                  "SELECT a FROM t WHERE EXISTS (SELECT random())"])  # fmt: skip
def test_what_changes_by_itself_is_not_remembered(db: EmbeddedConnection, text: str) -> None:
    """A query of the clock, of chance or of the system's tables runs each time."""
    assert not remembered(db, text)


def test_files_are_not_remembered(db: EmbeddedConnection, tmp_path: Path) -> None:
    """A file may be another the next time."""
    path = tmp_path / "rows.parquet"
    for rows in ([1], [1, 2]):
        pq.write_table(pa.table({"a": rows}), path)
        assert db.sql(f"SELECT count(*) FROM '{path}'").item() == len(rows)


def test_parameters_and_settings_are_part_of_the_question(db: EmbeddedConnection) -> None:
    """The same text with another value, or under another time zone, is another query."""
    assert [db.sql("SELECT a + $n FROM t", n=n).item() for n in (1, 2, 1)] == [2, 3, 2]
    at = "SELECT count(*) FROM t WHERE TIMESTAMPTZ '2024-01-01 00:00:00+00' = CAST($w AS TIMESTAMPTZ)"
    assert db.sql(at, w="2024-01-01 00:00:00").item() == 1
    db.sql("SET TIME ZONE 'Europe/Paris'")
    assert db.sql(at, w="2024-01-01 00:00:00").item() == 0


def test_a_redefined_view_is_another_query(db: EmbeddedConnection) -> None:
    """A definition that changes ends every plan."""
    db.sql("CREATE VIEW v AS SELECT a FROM t")
    assert db.sql("SELECT * FROM v").rows() == [(1,)]
    db.sql("CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM t")
    assert db.sql("SELECT * FROM v").rows() == [(2,)]


def test_an_old_answer_will_do_where_the_caller_says_so(db: EmbeddedConnection) -> None:
    """``stale_ms`` takes a remembered answer though its table has changed."""
    assert db.sql(COUNT).item() == 1
    db.sql("INSERT INTO t VALUES (2)")
    assert db.session.execute(COUNT, stale_ms=60_000).rows() == [(1,)]
    assert db.session.execute(COUNT).rows() == [(2,)]


def test_a_session_can_ask_for_every_query_to_run(db: EmbeddedConnection) -> None:
    """``SET lake.result_cache = off`` is for those who measure."""
    db.sql("SET lake.result_cache = off")
    assert not remembered(db, COUNT)


def test_an_answer_that_was_not_read_to_its_end_is_not_kept(db: EmbeddedConnection) -> None:
    """Closing a result early leaves nothing behind."""
    db.sql("INSERT INTO t SELECT * FROM (VALUES (2), (3)) AS v(a)")
    result = db.session.execute("SELECT a FROM t")
    next(iter(result.batches()))
    result.close()
    assert len(db.sql("SELECT a FROM t").rows()) == 3


def test_a_remembered_answer_is_recalled_at_once(db: EmbeddedConnection) -> None:
    """``recall`` answers what was asked before and holds, and nothing else: no first query, no write, no open transaction."""
    session = db.session
    assert session.recall("SELECT count(*) FROM t WHERE a > $low", {"low": 0}, None) is None
    first = session.execute("SELECT count(*) FROM t WHERE a > $low", {"low": 0}).rows()
    found = session.recall("SELECT count(*) FROM t WHERE a > $low", {"low": 0}, None)
    assert found is not None and found.rows() == first
    assert session.recall("SELECT count(*) FROM t WHERE a > $low", {"low": 1}, None) is None
    session.execute("INSERT INTO t VALUES (100)").run_through()
    assert session.recall("SELECT count(*) FROM t WHERE a > $low", {"low": 0}, None) is None
    assert session.recall("SELECT now()", None, None) is None
    session.execute("SELECT 1").run_through()
    assert session.recall("SELECT 1; SELECT 1", None, None) is None
    session.execute("BEGIN")
    assert session.recall("SELECT 1", None, None) is None
    session.execute("ROLLBACK")
    session.execute("SET lake.result_cache = off")
    assert session.recall("SELECT 1", None, None) is None


def test_a_remembered_plan_holds_no_files(db: EmbeddedConnection) -> None:
    """Its snapshot is let go of at once, not when Python looks for garbage: what later commits replace can be removed."""
    gc.collect()
    gc.disable()
    try:
        db.sql("SELECT count(*), min(a) FROM t WHERE a IN (SELECT a FROM t)").rows()
        db.sql("INSERT INTO t VALUES (2)")
        storage = db.database.lake
        assert storage.pinned() == storage.state.number
    finally:
        gc.enable()
    assert db.sql("SELECT count(*), min(a) FROM t WHERE a IN (SELECT a FROM t)").rows() == [(2, 1)]
