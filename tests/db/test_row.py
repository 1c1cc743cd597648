"""UPDATE and DELETE of one key, and INSERT of a few rows, without the engine: all is as the engine's way leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from lake.config import load
from lake.db.database import Database
from lake.db.session import Session
from lake.db.statements import dml
from lake.db.write import change, row
from lake.errors import LakeError

MADE = (
    "CREATE TYPE mood AS ENUM ('low', 'high')",
    "CREATE TABLE {t} (k INT PRIMARY KEY, i INT, b BIGINT, s SMALLINT, d DOUBLE, t TEXT, n DECIMAL(9,2), m mood, w INT NOT NULL)",
    "INSERT INTO {t} SELECT x, x, x, x, x / 2.0, 't' || x, x, 'low', x FROM range(8) AS r(x)",
    "INSERT INTO {t} VALUES (8, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0), "
    "(9, 2147483647, 9223372036854775807, -32768, 1e308, '', 0, 'high', 0)",
)
# Each is carried out in turn on both tables; those that the short way must not take are among them.
PLAIN = (
    "UPDATE {t} SET i = i + 1 WHERE k = 1",
    "UPDATE {t} SET i = i - 3, b = b + 2, d = d - 1, t = 'new' WHERE k = 2",
    "UPDATE {t} SET d = 3, s = 7, i = 0 WHERE k = 3",
    "UPDATE {t} SET i = '12', s = s - '-3', b = b + '9' WHERE k = '1'",
    "UPDATE {t} SET d = 1.5e0, t = '' WHERE 4 = k AND k = 4",
    "UPDATE {t} SET d = 2.5e0 WHERE k = 4",
    "UPDATE {t} SET i = 1 WHERE k = 100",
    "UPDATE {t} SET i = 1 WHERE k = 99999999999",
    "UPDATE {t} SET I = 11 WHERE K = 1",
    "DELETE FROM {t} WHERE k = 5",
    "DELETE FROM {t} WHERE k = 5",
    "UPDATE {t} SET i = 1 WHERE k = 5",
    "INSERT INTO {t} (k, w) VALUES (5, 1)",
    "UPDATE {t} SET i = 5 WHERE k = 5",
)
OTHERS = (
    "UPDATE {t} SET i = i + 1 WHERE k = 8",  # NULL
    "UPDATE {t} SET d = d + 1, b = 4 WHERE k = 8",
    "UPDATE {t} SET i = i + 1 WHERE k = 9",  # out of range
    "UPDATE {t} SET b = b + 1 WHERE k = 9",
    "UPDATE {t} SET s = s - 1 WHERE k = 9",
    "UPDATE {t} SET d = d + 1e308 WHERE k = 9",
    "UPDATE {t} SET i = 2147483648 WHERE k = 1",
    "UPDATE {t} SET i = 2147483648 WHERE k = 100",
    "UPDATE {t} SET i = 'x' WHERE k = 1",
    "UPDATE {t} SET i = ' 12' WHERE k = 1",
    "UPDATE {t} SET s = s + '70000', i = '1.0' WHERE k = 1",
    "UPDATE {t} SET s = s + 1 WHERE k = '99999999999'",
    "UPDATE {t} SET d = d + '1' WHERE k = '1'",
    "UPDATE {t} SET t = 12 WHERE k = 1",
    "UPDATE {t} SET t = t + 1 WHERE k = 1",
    "UPDATE {t} SET i = i + 1.5, n = n + 1 WHERE k = 1",
    "UPDATE {t} SET m = 'high' WHERE k = 1",
    "UPDATE {t} SET m = 'none' WHERE k = 1",
    "UPDATE {t} SET w = NULL WHERE k = 1",
    "UPDATE {t} SET i = DEFAULT WHERE k = 1",
    "UPDATE {t} SET i = 1, i = 2 WHERE k = 1",
    "UPDATE {t} SET nothing = 2 WHERE k = 1",
    'UPDATE {t} SET "I" = 12 WHERE k = 1',
    "UPDATE {t} SET k = 11 WHERE k = 1",
    "UPDATE {t} SET i = b + 1 WHERE k = 1",
    "UPDATE {t} SET i = 8 WHERE k = 1 AND i = 100",
    "UPDATE {t} SET i = 8 WHERE k = 1.0",
    "UPDATE {t} SET i = true WHERE k = 1",
    "UPDATE {t} SET i = 8 WHERE k = true",
    "UPDATE {t} SET i = 8 WHERE k = NULL",
    "UPDATE {t} SET i = 8 WHERE k = 1 OR k = 2",
    "UPDATE {t} AS x SET i = 8 WHERE x.k = 2",
    "UPDATE {t} SET i = 8 WHERE k = 2 RETURNING i",
    "DELETE FROM {t} WHERE k = 6 RETURNING t",
    "DELETE FROM {t} WHERE k > 6 AND k = 7",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A lake that this process leads."""
    database = Database.open(load(options={"lake": str(tmp_path / "lake"), "tier_secs": "0"}))
    database.start(None)
    yield database
    database.close()


def run(session: Session, text: str, **parameters: Any) -> object:
    """Rows and outcome of a statement, or its error."""
    try:
        result = session.execute(text, parameters)
        return result.rows(), result.outcome
    except LakeError as error:
        return error.sqlstate, error.message.replace("fast", "slow")


def state_of(session: Session, table: str) -> object:
    """The table, with the order of row ids."""
    text = f"SELECT rank() OVER (ORDER BY _row_id), * FROM {table} ORDER BY k"
    return session.execute(text).rows()


@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize("is_tiered", [False, True])
def test_both_ways_do_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch, in_transaction: bool, is_tiered: bool
) -> None:
    session = Session(database)
    for name in ("fast", "slow"):
        for text in MADE if name == "fast" else MADE[1:]:
            session.execute(text.format(t=name)).run_through()
    if is_tiered:
        database.tier()
    taken: list[str] = []

    def noted(*given: Any) -> int | None:
        found = row.change_row(*given)
        taken.append(text) if found is not None else None
        return found

    for text in (*PLAIN, *OTHERS):
        answers = []
        for name in ("fast", "slow"):
            monkeypatch.setattr(change, "change_row", noted if name == "fast" else lambda *_: None)
            if in_transaction:
                session.execute("BEGIN")
            answers.append(run(session, text.format(t=name)))
            if in_transaction:
                run(session, "COMMIT")
        assert answers[0] == answers[1], text
        assert state_of(session, "fast") == state_of(session, "slow"), text
    assert set(taken) == {text for text in PLAIN if "4 = k" not in text and "INSERT" not in text}


def test_parameters_are_of_their_columns_kind(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(database)
    for text in MADE:
        session.execute(text.format(t="fast")).run_through()
    taken: list[int | None] = []
    monkeypatch.setattr(change, "change_row", lambda *given: taken.append(row.change_row(*given)) or taken[-1])
    text = "UPDATE fast SET i = i + $by, t = $t, d = $d WHERE k = $k"
    assert run(session, text, by=3, t="three", d=0.25, k=1) == ([], {"rows": 1, "updated": 1, "deleted": 0, "inserted": 0})
    assert run(session, text, by=3, t="three", d=0.25, k=1 << 40) == ([], {"rows": 0, "updated": 0, "deleted": 0, "inserted": 0})
    assert taken == [1, 0]
    run(session, text, by="3", t="four", d=0.5, k="1")
    run(session, text, by=None, t="five", d=0.5, k=2)
    run(session, text, by=1.0, t="six", d=float("nan"), k=3)
    assert taken[2:] == [1, None, None]
    found = session.execute("SELECT k, i, t, d FROM fast WHERE k < 4 ORDER BY k").rows()
    assert [each[:3] for each in found] == [(0, 0, "t0"), (1, 7, "four"), (2, None, "five"), (3, 4, "six")]


INSERTED: Final = (
    "(a) VALUES (1)",
    "VALUES (1, 'x', 2.5, DATE '2024-01-01', 3, DEFAULT)",
    "VALUES (1 + 1, 'a' || 'b', '1e3', '2024-02-29', NULL, TIMESTAMP '2024-01-01 10:00:00'), (2, NULL, 1.5e0, NULL, 1.255, NULL)",
    "VALUES ($n, $t, $d, CURRENT_DATE, $n, CURRENT_TIMESTAMP)",
    "(e, a) VALUES (12.345, 7)",
    "VALUES (1, 'x', 2.5, DATE '2024-01-01', 99999999999, DEFAULT)",
    "VALUES (99999999999)",
    "VALUES ('x')",
    "VALUES (1), ('y')",
    "VALUES (1, 2), (1)",
    "VALUES (1 / 0)",
    "VALUES (NULL)",
    "VALUES ((SELECT max(a) FROM fast))",
    "VALUES (1, CASE WHEN $n > 2 THEN 'big' END)",
    "DEFAULT VALUES",
    "(a, b) VALUES (nextval('numbers'), 'numbered')",
)


PLAIN_ROWS: Final = (
    "VALUES (1, 'x', 2.5, NULL, NULL, NULL, true)",
    "VALUES (-1, '', -0.25, NULL, NULL, NULL, false), ('7', 'it''s', 3, NULL, NULL, NULL, NULL)",
    "(c, a, b) VALUES (-0.0, 2147483647, NULL)",
    "(a, b) VALUES (-2147483648, $t)",
    "(a, b, c, g) VALUES ($n, $t, $d, NULL)",
    "(b, a) VALUES ('r', 3) RETURNING a, b, c",
)
OTHER_ROWS: Final = (
    *INSERTED,
    "(a) VALUES (5)",  # b has a default
    "(a, b) VALUES (2147483648, 'x')",
    "(a, b) VALUES (-2147483649, 'x')",
    "(a, b) VALUES (NULL, 'x')",
    "(a, b) VALUES ($none, 'x')",
    "(a, b) VALUES (true, 'x')",
    "(a, b) VALUES ('1.0', 'x')",
    "(a, b) VALUES (1, 2)",
    "(a, b, c) VALUES (1, 'x', '2.5')",
    "(a, b, c) VALUES (1, 'x', -1e400)",
    "(a, b, g) VALUES (1, 'x', 't')",
    "(a, b, b) VALUES (1, 'x', 'y')",
    "(a, b, z) VALUES (1, 'x', 'y')",
    "(A, B) VALUES (1, 'x', 'y')",
    "(a, b) VALUES (1, 'x') LIMIT 0",
    "(a, b) VALUES (1, 'x', 3)",
    "BY NAME SELECT 4 AS a, 'n' AS b",
)


def test_rows_of_plain_values_are_as_a_query_has_them(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(database)
    session.execute("CREATE SEQUENCE numbers")
    columns = "a INT NOT NULL, b TEXT DEFAULT 'none', c DOUBLE, d DATE, e DECIMAL(9,2), f TIMESTAMP, g BOOLEAN"
    for name in ("fast", "slow"):
        session.execute(f"CREATE TABLE {name} ({columns})")
    parameters = {"n": 3, "t": "three", "d": 0.5, "none": None}
    inserted_rows, taken = dml.inserted_rows, []

    def noted(*given: Any) -> Any:
        taken.append(found := inserted_rows(*given))
        return found

    monkeypatch.setattr(dml, "inserted_rows", noted)
    answers = [run(session, f"INSERT INTO fast {text}", **parameters) for text in (*PLAIN_ROWS, *OTHER_ROWS)]
    assert [found is not None for found in taken] == [True] * len(PLAIN_ROWS) + [False] * (len(taken) - len(PLAIN_ROWS))
    monkeypatch.setattr(dml, "inserted_rows", lambda *given: None)
    assert answers == [run(session, f"INSERT INTO slow {text}", **parameters) for text in (*PLAIN_ROWS, *OTHER_ROWS)]
    asked = "SELECT a, b, c, d, e, date_trunc('day', f), g FROM {} WHERE b IS DISTINCT FROM 'numbered' ORDER BY _row_id"
    found = session.execute(asked.format("fast")).rows()
    assert repr(found) == repr(session.execute(asked.format("slow")).rows()), "-0.0 is no 0.0"


@pytest.mark.parametrize("more", ["CHECK (a > 0)", "UNIQUE (a)", "b INT GENERATED ALWAYS AS IDENTITY", "b mood"])
def test_what_a_table_demands_is_asked_of_plain_values(database: Database, more: str) -> None:
    session = Session(database)
    session.execute("CREATE TYPE mood AS ENUM ('low')")
    session.execute(f"CREATE TABLE t (a INT, {more})")
    for text in ("(a) VALUES (-1)", "(a) VALUES (-1)", "VALUES (5, 5)", "VALUES (6, 'high')"):
        run(session, f"INSERT INTO t {text}")
    found = [row[0] for row in session.execute("SELECT a FROM t ORDER BY a").rows()]
    assert found == ([-1] if more.startswith("UNIQUE") else [] if more.startswith("CHECK") else [-1, -1])


def test_few_rows_are_as_a_query_has_them(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(database)
    monkeypatch.setattr(dml, "inserted_rows", lambda *given: None)
    session.execute("CREATE SEQUENCE numbers")
    for name in ("fast", "slow"):
        session.execute(
            f"CREATE TABLE {name} (a INT NOT NULL, b TEXT DEFAULT 'none', c DOUBLE, d DATE, e DECIMAL(9,2), f TIMESTAMP)"
        )
    parameters = {"n": 3, "t": "three", "d": 0.5}
    few_values, few = dml.few_values, []
    monkeypatch.setattr(dml, "few_values", lambda *given: few.append(few_values(*given)) or few[-1])
    answers = [run(session, f"INSERT INTO fast {text}", **parameters) for text in INSERTED]
    # All that is bound but a value that does not fit, a subquery, and a number of a sequence.
    assert [found is not None for found in few] == [True] * 5 + [False, True, False, True, True, False]
    monkeypatch.setattr(dml, "few_values", lambda *given: None)
    assert answers == [run(session, f"INSERT INTO slow {text}", **parameters) for text in INSERTED]
    asked = "SELECT a, b, c, d, e, date_trunc('day', f) FROM {} WHERE b IS DISTINCT FROM 'numbered' ORDER BY _row_id"
    assert session.execute(asked.format("fast")).rows() == session.execute(asked.format("slow")).rows()


def test_what_others_wrote_meanwhile_is_not_lost(database: Database) -> None:
    mine, other = Session(database), Session(database)
    mine.execute("CREATE TABLE t (k TEXT, n INT, v INT, PRIMARY KEY (k, n))")
    mine.execute("INSERT INTO t VALUES ('a', 1, 0), ('a', 2, 0), ('b', 1, 0)")
    mine.execute("BEGIN")
    for _ in range(3):
        mine.execute("UPDATE t SET v = v + 1 WHERE k = 'a' AND n = 1")
    other.execute("UPDATE t SET v = v + 10 WHERE n = 2 AND k = 'a'")
    assert mine.execute("SELECT v FROM t ORDER BY k, n").rows() == [(3,), (0,), (0,)]
    mine.execute("DELETE FROM t WHERE k = 'b' AND n = 1")
    assert mine.execute("SELECT v FROM t WHERE k = 'b' AND n = 1").rows() == []
    mine.execute("COMMIT")
    assert other.execute("SELECT v FROM t ORDER BY k, n").rows() == [(3,), (10,)]
    mine.execute("BEGIN")
    mine.execute("UPDATE t SET v = v + 1 WHERE k = 'a' AND n = 1")
    other.execute("UPDATE t SET v = v + 1 WHERE k = 'a' AND n = 1")
    assert run(mine, "COMMIT") == ("40001", "could not serialize access due to concurrent update")
    assert other.execute("SELECT v FROM t WHERE k = 'a' AND n = 1").rows() == [(4,)]


def test_many_writes_of_one_transaction(database: Database) -> None:
    """More links of a tail than are looked through by themselves, beside tails that others go on from."""
    mine, other = Session(database), Session(database)
    mine.execute("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
    mine.execute("INSERT INTO t SELECT x, 0 FROM range(100) AS r(x)")
    mine.execute("BEGIN")
    for number in range(60):
        mine.execute("UPDATE t SET v = v + 1 WHERE k = $k", {"k": number % 7})
        other.execute("UPDATE t SET v = v + 1 WHERE k = $k", {"k": 50 + number % 3})
        assert mine.execute("SELECT v FROM t WHERE k = $k", {"k": number % 7}).rows() == [(number // 7 + 1,)]
        assert other.execute("SELECT v FROM t WHERE k = $k", {"k": 50 + number % 3}).rows() == [(number // 3 + 1,)]
        if number == 30:
            database.tier()
    mine.execute("COMMIT")
    assert other.execute("SELECT sum(v), count(*) FROM t").rows() == [(120, 100)]
