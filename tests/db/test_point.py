"""Look-ups that are answered without planning give what planned queries give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lake
from lake.db.point import point_read
from lake.embedded import EmbeddedConnection
from lake.sql import ast
from lake.sql.parser import parse


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedConnection]:
    """Keyed tables by number, by text and by both; some rows in files, some in the tail, some gone."""
    folder: Path = tmp_path_factory.mktemp("point")
    with lake.open(folder / "lake", tier_secs="0") as opened:
        assert isinstance(opened, EmbeddedConnection)
        opened.sql("CREATE TABLE n (id INT PRIMARY KEY, name TEXT, value DOUBLE, at DATE)")
        opened.sql("CREATE TABLE w (word TEXT PRIMARY KEY, n BIGINT); INSERT INTO w VALUES ('a', 1), ('', 2)")
        opened.sql("CREATE TABLE pairs (a BIGINT, b TEXT, c INT, PRIMARY KEY (b, a)); INSERT INTO pairs VALUES (1, 'x', 10)")
        opened.sql("CREATE TABLE plain (id INT); INSERT INTO plain VALUES (1)")
        opened.sql("INSERT INTO n SELECT i, 'name ' || i, i / 2.0, DATE '2026-01-01' + i FROM generate_series(1, 500) AS s(i)")
        opened.sql("CHECKPOINT")
        opened.database.tier()
        opened.sql("INSERT INTO n VALUES (7, 'new', 7, NULL); DELETE FROM n WHERE id = 9")
        yield opened


def is_point(db: EmbeddedConnection, text: str) -> bool:
    """Whether a query is recognised."""
    (stmt,) = parse(text)
    assert isinstance(stmt, ast.QueryStatement)
    return point_read(stmt.query, db.database.lake.state, db.database.name) is not None


@pytest.mark.parametrize(("text", "params"), [
    ("SELECT * FROM n WHERE id = $id", {"id": 7}), ("SELECT * FROM n WHERE id = $id", {"id": 8}),
    ("SELECT * FROM n WHERE id = $id", {"id": "7"}), ("SELECT * FROM n WHERE id = $id", {"id": " 7"}),
    ("SELECT c FROM pairs WHERE a = $a AND b = $b", {"a": "01", "b": "x"}), ("SELECT * FROM n WHERE id = $id", {"id": "-1"}),
    ("SELECT * FROM n WHERE id = $id", {"id": 9}), ("SELECT name AS x, id FROM n WHERE id = 12", {}),
    ("SELECT * FROM n WHERE id = $id", {"id": 1 << 40}), ("SELECT at FROM n WHERE id = $id", {"id": -1}),
    ("SELECT * FROM w WHERE word = $w", {"w": "a"}), ("SELECT n FROM w WHERE word = ''", {}),
    ("SELECT c FROM pairs WHERE a = 1 AND b = 'x'", {}), ("SELECT c, b FROM pairs WHERE b = $b AND a = $a", {"a": 2, "b": "x"}),
])  # fmt: skip
def test_rows_are_those_of_the_planned_query(db: EmbeddedConnection, text: str, params: dict[str, object]) -> None:
    """Names, types and rows are alike."""
    assert is_point(db, text)
    found = db.session.execute(text, params)
    planned = db.session.execute(f"{text} AND 1 = 1", params)
    assert (found.names, found.types) == (planned.names, planned.types)
    assert found.rows() == planned.rows()


@pytest.mark.parametrize("text", [
    "SELECT id FROM plain WHERE id = 1", "SELECT * FROM n", "SELECT * FROM n WHERE id = 1 LIMIT 1", "SELECT id + 1 FROM n WHERE id = 1",
    "SELECT * FROM n WHERE id > 1", "SELECT * FROM n WHERE id = 1 AND id = 2", "SELECT * FROM n WHERE id = 1 AND name = 'x'",
    "SELECT n.* FROM n WHERE id = 1", "SELECT * FROM n AS m WHERE id = 1", "SELECT DISTINCT id FROM n WHERE id = 1",
    "SELECT id, id FROM n WHERE id = 1", "SELECT c FROM pairs WHERE a = 1", "SELECT * EXCLUDE (at) FROM n WHERE id = 1",
    "SELECT _row_id FROM n WHERE id = 1", "SELECT count(*) FROM n WHERE id = 1", "SELECT * FROM n WHERE id = 1 ORDER BY 1",
])  # fmt: skip
def test_what_is_planned(db: EmbeddedConnection, text: str) -> None:
    """Anything more than columns by a whole key is a query like any other."""
    assert not is_point(db, text)


@pytest.mark.parametrize(("value", "count"), [(None, 0), (7.0, 1), ("7", 1)])
def test_other_kinds_of_values_go_the_way_of_all_queries(db: EmbeddedConnection, value: object, count: int) -> None:
    """NULL equals nothing, and a value of another type is compared as SQL does."""
    assert len(db.session.execute("SELECT * FROM n WHERE id = $id", {"id": value}).rows()) == count


def test_a_table_made_anew_is_read_anew(db: EmbeddedConnection) -> None:
    """What was recognised holds for one definition."""
    db.sql("CREATE TABLE again (id INT PRIMARY KEY, a INT); INSERT INTO again VALUES (1, 2)")
    assert db.session.execute("SELECT * FROM again WHERE id = 1").rows() == [(1, 2)]
    db.sql("DROP TABLE again; CREATE TABLE again (id INT PRIMARY KEY, b TEXT); INSERT INTO again VALUES (1, 'x')")
    assert db.session.execute("SELECT * FROM again WHERE id = 1").rows() == [(1, "x")]
    db.sql("ALTER TABLE again ADD COLUMN c INT")
    assert db.session.execute("SELECT * FROM again WHERE id = 1").rows() == [(1, "x", None)]


@pytest.mark.parametrize(("text", "params", "rows"), [
    ("UPDATE n SET value = value + 1, name = $new WHERE id = $id", {"id": 7, "new": "x"}, 1),
    ("UPDATE n SET value = 0 WHERE id = $id", {"id": 9}, 0), ("DELETE FROM n WHERE n.id = 10", {}, 1),
    ("DELETE FROM n WHERE id = $id", {"id": 10}, 0), ("UPDATE pairs AS p SET c = p.c + 1 WHERE p.b = 'x' AND a = $a", {"a": 1}, 1),
])  # fmt: skip
def test_the_row_of_a_key_is_changed_without_the_engine(
    db: EmbeddedConnection, monkeypatch: pytest.MonkeyPatch, text: str, params: dict[str, object], rows: int
) -> None:
    """What the row is then, ``tests/slt/statements/keyed.slt`` says."""

    def refuse(*_: object) -> None:
        raise AssertionError("the engine is asked")

    monkeypatch.setattr("lake.db.run.Run.optimize", refuse)
    assert db.session.execute(text, params).count == rows


def test_a_row_in_memory_is_recalled_without_waiting(db: EmbeddedConnection) -> None:
    """One that is not is left to a thread, which may wait for the disk."""
    text = "SELECT name, value FROM n WHERE id = $id"
    reader = db.database.lake.reader
    reader.hot.clear()
    db.session.execute(text, {"id": 1}).rows()
    reader.hot.clear()
    assert db.session.recall(text, {"id": 20}, None) is None
    assert db.session.execute(text, {"id": 20}).rows() == [("name 20", 10.0)]
    for id, rows in ((20, [("name 20", 10.0)]), (9, []), (1000, [])):
        found = db.session.recall(text, {"id": id}, None)
        assert found is not None and found.rows() == rows
    db.session.begin()
    db.session.execute("UPDATE n SET value = 7 WHERE id = 20")
    found = db.session.recall(text, {"id": 20}, None)
    db.session.rollback()
    assert found is not None and found.rows() == [("name 20", 7.0)], "a transaction sees rows of its own"


@pytest.mark.parametrize("limit", ["lookup.AT_ONCE_FILES_MAX", "keyed.AT_ONCE_ROWS_MAX"])
def test_what_takes_long_to_look_through_is_left_to_a_thread(
    db: EmbeddedConnection, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Many files, or many rows that came since the last look: the event loop has others to answer."""
    text = "SELECT name, value FROM n WHERE id = $id"
    db.session.execute(text, {"id": 20}).rows()
    db.session.execute("INSERT INTO n SELECT id + 5000, name, value FROM n")
    monkeypatch.setattr(f"lake.storage.tables.{limit}", 0)
    monkeypatch.setattr("lake.storage.tables.keyed.LINKS_NEAR", 0)
    assert db.session.recall(text, {"id": 20}, None) is None
    assert db.session.execute(text, {"id": 20}).rows() == [("name 20", 10.0)]
    monkeypatch.undo()
    found = db.session.recall(text, {"id": 20}, None)
    assert found is not None and found.rows() == [("name 20", 10.0)]


@pytest.mark.parametrize("made", [
    "CREATE TABLE k (id BIGINT PRIMARY KEY, s SMALLINT, i INT, d DOUBLE, r REAL, b BOOLEAN, t TEXT, few TEXT)",
    "CREATE TABLE k (id BIGINT PRIMARY KEY, s SMALLINT, i INT, d DOUBLE, r REAL, b BOOLEAN, t TEXT, few TEXT) SEQUENCE BY s",
    "CREATE TABLE k (id BIGINT PRIMARY KEY, s SMALLINT MERGE SUM, i INT MERGE MAX, d DOUBLE MERGE MIN,"
    " r REAL MERGE MAX, b BOOLEAN MERGE MIN, t TEXT MERGE MAX, few TEXT MERGE MIN)",
], ids=["keyed", "in sequence", "merge"])  # fmt: skip
def test_a_recalled_row_has_the_values_of_a_query(db: EmbeddedConnection, made: str) -> None:
    """In files, in the tail, with NULLs, deleted, changed, and with a column that came later."""
    db.sql(made.replace("TABLE", "OR REPLACE TABLE"))
    columns = "x, x % 100, x * 7, x / 3.0, CAST(x AS REAL) / 3, x % 2 = 0, 't' || x, 'f' || x % 3"
    db.sql(f"INSERT INTO k SELECT {columns} FROM range(30) AS g(x)")
    db.sql("INSERT INTO k (id) VALUES (30)")
    db.sql("CHECKPOINT")
    db.sql(f"INSERT INTO k SELECT {columns} FROM range(25, 40) AS g(x)")
    changes = ["DELETE FROM k WHERE id IN (3, 33)", "ALTER TABLE k ADD COLUMN late INT"]  # which a merge table refuses
    for change in ["SELECT 1"] if "MERGE" in made else changes:
        db.sql(change)
        for id in (0, 3, 24, 28, 30, 33, 35, 39, 77):
            text = "SELECT * FROM k WHERE id = $id"
            rows = db.session.execute(text, {"id": id}).rows()
            found = db.session.recall(text, {"id": id}, None)
            assert rows == db.session.execute("SELECT * FROM k WHERE id + 0 = $id", {"id": id}).rows()
            if found is not None:
                assert found.rows() == rows
                assert found.few is None or found.few == rows
            else:
                assert "MERGE" in made, "only rows that are put together are not at hand"
