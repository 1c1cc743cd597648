"""Quotas, the audit and the history of statements. Spec: HTTP, Quotas; Audit log; SQL, System tables and views."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lake.clock import SystemClock
from lake.db.accounted import Origin
from lake.db.recorder import DAY, Entry, Recorder, fingerprint, recorded
from lake.errors import QueryCanceled
from lake.exec.context import Cancellation
from tests.cluster import Node, Reply, free_port, running_node
from tests.db.rights import Lake, open_lake

SETUP = """
CREATE TABLE t AS SELECT value AS a FROM range(1000);
CREATE USER root PASSWORD 'password of root' SUPERUSER;
CREATE USER slow PASSWORD 'password of slow' STATEMENT_TIMEOUT '200 milliseconds';
CREATE USER few PASSWORD 'password of few' MAX_QUERIES 1;
CREATE USER ann PASSWORD 'password of ann';
GRANT SELECT ON t TO public
"""
# Rows that take a while to count: each pair of t, many times over.
LONG = "SELECT count(*) FROM t a, t b, t c WHERE a.a + b.a * c.a = 7"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, int]]:
    """A node with users whose limits differ, and the port of its Postgres door."""
    port = free_port()
    environ = {"LAKE_AUDIT": "role,ddl"}
    with running_node(tmp_path_factory.mktemp("accounts") / "lake", "--pg", f"127.0.0.1:{port}", environ=environ) as node:
        node.sql(SETUP)
        yield node, port


def ask(node: Node, user: str, text: str) -> Reply:
    """What a user is answered."""
    wire = node.wire()
    token = wire.send("POST", "/login", f'{{"user": "{user}", "password": "password of {user}"}}').json()["token"]
    try:
        return wire.send("POST", "/sql", text, Authorization=f"Bearer {token}")
    finally:
        wire.close()


def wait_for(node: Node, text: str) -> list[dict[str, Any]]:
    """The rows of a query of root's once there are some: what happened is committed once a second."""
    while not (rows := ask(node, "root", text).json()):
        pass
    return list(rows)


def test_a_statement_has_its_time(served: tuple[Node, int]) -> None:
    """STATEMENT_TIMEOUT stops it with 57014, which names the user and the limit; at both doors. HTTP Rights 13."""
    node, port = served
    reply = ask(node, "slow", LONG)
    assert (reply.status, reply.headers["x-lake-sqlstate"]) == (500, "57014")
    assert reply.body == b'user "slow": the statement took longer than its STATEMENT_TIMEOUT of 0.2 s'
    assert ask(node, "slow", "SELECT count(*) AS n FROM t").json() == [{"n": 1000}]
    dsn = f"host=127.0.0.1 port={port} user=slow password='password of slow' dbname=lake sslmode=disable"
    with psycopg.connect(dsn, autocommit=True) as client:
        with pytest.raises(psycopg.errors.QueryCanceled, match="STATEMENT_TIMEOUT of"):
            client.execute(LONG)
        assert client.execute("SELECT count(*) FROM t").fetchone() == (1000,)


def test_a_remembered_answer_is_told_as_well(served: tuple[Node, int]) -> None:
    """The history counts what was asked, whether it was run or remembered."""
    node, _ = served
    for _ in range(3):
        assert ask(node, "few", "SELECT count(*) AS asked_often FROM t").json() == [{"asked_often": 1000}]
    query = "SELECT count(*) AS n FROM lake.history WHERE statement LIKE '%asked_often%' AND \"user\" = 'few' HAVING count(*) = 3"
    assert wait_for(node, query) == [{"n": 3}]


def test_statements_at_once(served: tuple[Node, int]) -> None:
    """MAX_QUERIES 1: a statement waits until the one before it has ended; others are not held up. HTTP Rights 12."""
    node, _ = served
    stop = threading.Event()
    wire = node.wire()
    token = wire.send("POST", "/login", '{"user": "few", "password": "password of few"}').json()["token"]
    ended: list[int] = []

    def run() -> None:
        own = node.wire()
        while not stop.is_set():
            ended.append(own.send("POST", "/sql", "SELECT sum(a) FROM t", Authorization=f"Bearer {token}").status)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    while len(ended) < 60:
        assert ask(node, "ann", "SELECT 1").status == 200
    stop.set()
    for thread in threads:
        thread.join()
    assert set(ended) == {200}
    wire.close()


def test_the_limit_is_named() -> None:
    """Who waits too long is refused with 53300; whoever gives up waits no longer; every turn is given back. HTTP Rights 12."""
    with open_lake(setup=SETUP + ";ALTER USER few MAX_QUERIES 2") as lake:
        held = [lake.run("few", "SELECT a FROM t") for _ in range(2)]
        given_up = Cancellation()
        given_up.stop()
        with pytest.raises(QueryCanceled):
            lake.session("few").execute("SELECT 1", cancellation=given_up)
        held[0].close()
        next(held[1].batches())
        del held
        assert [lake.rows("few", "SELECT 1") for _ in range(3)] == [[(1,)]] * 3


def test_the_audit(served: tuple[Node, int]) -> None:
    """Users, definitions and refusals, with quoted values left out; a superuser reads it. HTTP Rights 14."""
    node, port = served
    ask(node, "root", "CREATE USER eve PASSWORD 'secret of eve'; CREATE TABLE made (a INT); SELECT 1")
    ask(node, "ann", "DELETE FROM t")
    wire = node.wire()
    wire.send("POST", "/login", '{"user": "ann", "password": "wrong"}')
    wire.send("POST", "/append/t", '{"a": 1}', Authorization="Basic YW5uOnBhc3N3b3JkIG9mIGFubg==")
    wire.send("GET", "/whoami", Authorization="Bearer nobody")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(f"host=127.0.0.1 port={port} user=ann password=wrong dbname=lake sslmode=disable")
    told = "SELECT \"user\", door, \"from\", class, statement, outcome, message, node FROM lake.audit WHERE {} ORDER BY at"
    wait_for(node, told.format("door = 'postgres' AND class = 'sign-in'"))
    rows = ask(node, "root", told.format("TRUE")).json()
    assert {row["from"] for row in rows if row["user"] != "anyone"} == {"127.0.0.1"}
    assert {row["node"] for row in rows} == {f"127.0.0.1:{node.port}"}
    found = {(row["user"], row["door"], row["class"], row["statement"], row["outcome"]) for row in rows}
    assert ("root", "http", "role", "CREATE USER eve PASSWORD '***'", "ok") in found
    assert ("root", "http", "ddl", "CREATE TABLE made (a INT)", "ok") in found
    assert ("ann", "http", "write", "DELETE FROM t", "refused") in found
    assert ("ann", "http", "misc", "POST /append/t", "refused") in found
    assert ("ann", "postgres", "sign-in", "sign in", "refused") in found
    assert ("", "http", "sign-in", "GET /whoami", "refused") in found
    assert not any("SELECT 1" in row["statement"] or "secret" in str(row) for row in rows)
    reply = ask(node, "ann", "SELECT * FROM lake.audit")
    assert (reply.status, reply.body) == (403, b"permission denied: SELECT on lake.audit")


def test_the_history(served: tuple[Node, int]) -> None:
    """A row for each statement; a user sees its own. HTTP Rights 15."""
    node, _ = served
    ask(node, "ann", "SELECT a FROM t WHERE a < 3")
    ask(node, "ann", "SELECT a FROM t WHERE a < 5")
    ask(node, "ann", "SELECT nothing FROM t")
    text = "SELECT * FROM lake.history WHERE \"user\" = 'ann' AND statement LIKE 'SELECT % FROM t%' ORDER BY at"
    while len(rows := ask(node, "root", text).json()) < 3:
        pass
    first, second, third = (row for row in rows if "a < " in row["statement"] or "nothing" in row["statement"])
    assert (first["rows"], first["outcome"], first["class"], first["door"]) == (3, "ok", "read", "http")
    assert first["fingerprint"] == second["fingerprint"] != third["fingerprint"] and second["rows"] == 5
    assert third["outcome"] == "failed" and third["error"].startswith('42703 column "nothing" does not exist')
    own = ask(node, "ann", 'SELECT DISTINCT "user" FROM lake.history').json()
    assert own == [{"user": "ann"}]
    assert not any("password of" in str(row) for row in ask(node, "root", "SELECT * FROM lake.history").json())


def test_hidden_tables_are_hidden(served: tuple[Node, int]) -> None:
    """What the recorder keeps is named lake.history and lake.audit, and nothing else, by nobody."""
    node, _ = served
    wait_for(node, "SELECT 1 AS a FROM lake.history LIMIT 1")
    for text in ('SELECT * FROM "lake$".history_1', 'DROP SCHEMA "lake$" CASCADE', 'INSERT INTO "lake$".audit_1 VALUES (1)',
                 'GRANT SELECT ON SCHEMA "lake$" TO ann'):  # fmt: skip
        assert ask(node, "root", text).headers["x-lake-sqlstate"] in ("3F000", "2BP01")
    for table in ("information_schema.schemata", "information_schema.tables", "lake.tables", "pg_namespace", "pg_class"):
        assert "lake$" not in ask(node, "root", f"SELECT * FROM {table}").body.decode()


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[tuple[Lake, Recorder]]:
    """A lake and a recorder of its own, which commits when it is told."""
    with open_lake(setup="CREATE USER zoe PASSWORD 'password of zoe' SUPERUSER") as lake:
        recorder = Recorder(lake.database)
        recorder.stop()
        yield lake, recorder


def entry(number: int, **more: Any) -> Entry:
    """A statement that went well."""
    at = SystemClock().now() + number
    return Entry(at, 1.0, "ann", *Origin("http", "::1"), "read", f"SELECT {number}", **more)


def test_the_rate_of_history(recording: tuple[Lake, Recorder]) -> None:
    """Past the rate quick statements are counted in one row, and failures are kept. Spec: HTTP, LAKE_HISTORY_RATE. HTTP Rights 15."""
    lake, recorder = recording
    for number in range(900):
        recorder.note(entry(number, sqlstate="22012" if number == 899 else ""))
    recorder.flush()
    assert lake.rows("zoe", "SELECT class, count(*), max(rows) FROM lake.history GROUP BY 1 ORDER BY 1") == [
        ("read", 501, None), ("skipped", 1, 399)]  # fmt: skip
    assert lake.rows("zoe", "SELECT statement FROM lake.history WHERE outcome = 'failed'") == [("SELECT 899",)]


def test_what_is_over_goes(recording: tuple[Lake, Recorder], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each period has a table of its own; those past HISTORY_DAYS go with the first row of a new one. HTTP Rights 16."""
    lake, recorder = recording
    clock, now = lake.database.clock, lake.database.clock.now()
    for day in range(12):
        monkeypatch.setattr(clock, "now", lambda day=day: now + day * DAY)
        recorder.note(entry(day))
        recorder.flush()
    periods = [period for period, _ in recorded(lake.database.lake.state, "history")]
    assert len(periods) == 8 and periods[-1] - periods[0] == 7


def test_fingerprints() -> None:
    """Values, spaces and case make no difference."""
    one, other = "SELECT a FROM t WHERE b = 'x''y' AND c < 1.5e3", "select a\nfrom t  where b = '' and c < 2"
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint("SELECT a1 FROM t") != fingerprint("SELECT a2 FROM t")
