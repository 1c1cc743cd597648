"""Views and tables that a request brings along. Spec: HTTP, Query (body: views, tables)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster import Node, Reply
from tests.doors.test_http_operations import bearer
from tests.doors.test_http_sql import ask, header


def sent(node: Node, sql: str, query: str = "", session: str | None = None, **members: Any) -> Reply:
    """The answer to a request with such members."""
    headers = {"Content_Type": "application/json"} | ({} if session is None else {"x_lake_session": session})
    return ask(node, json.dumps({"sql": sql, **members}), query, **headers)


def test_views_and_tables(node: Node) -> None:
    """Queries by name, and rows by name; both join with what the lake has. HTTP Query 4."""
    node.sql("CREATE TABLE lent_orders (id INT, of INT); INSERT INTO lent_orders VALUES (1, 7), (2, 8)")
    people = [{"id": 7, "name": "Ann", "since": "2024-01-01"}, {"id": 8, "rate": 1.5}]
    reply = sent(
        node, "SELECT r.id, p.name, p.rate FROM recent r JOIN people p ON p.id = r.of WHERE r.id > $least ORDER BY 1",
        params={"least": 0}, views={"recent": "SELECT * FROM lent_orders"}, tables={"people": people},
    )  # fmt: skip
    assert reply.json() == [{"id": 1, "name": "Ann"}, {"id": 2, "rate": 1.5}]
    assert header(ask(node, "SELECT * FROM recent"), "x-lake-sqlstate") == "42P01", "they are gone behind it"


@pytest.mark.parametrize("format", ["json", "typed", "csv", "arrow"])
def test_answers_are_read_after_they_are_gone(node: Node, format: str) -> None:
    """A large answer is made while it is sent."""
    text = "SELECT v.i, t.a FROM v, t ORDER BY 1"
    members = {"views": {"v": "SELECT i FROM range(50000) AS r(i)"}, "tables": {"t": [{"a": "some text of a size"}]}}
    assert len(sent(node, text, f"format={format}", **members).body) > 200_000


def test_a_session_keeps_none(node: Node) -> None:
    """Of one session too; its own temporary tables are not touched, and hide nothing."""
    session = "session-lent"
    ask(node, "CREATE TEMP TABLE mine AS SELECT 1 AS a", x_lake_session=session)
    assert sent(node, "SELECT a + b AS c FROM mine, theirs", session=session, tables={"theirs": [{"b": 2}]}).json() == [{"c": 3}]
    assert header(sent(node, "SELECT * FROM theirs", session=session), "x-lake-sqlstate") == "42P01"
    assert header(sent(node, "SELECT 1", session=session, tables={"mine": [{"a": 1}]}), "x-lake-sqlstate") == "42P07"
    assert ask(node, "SELECT a FROM mine", x_lake_session=session).json() == [{"a": 1}]
    ask(node, "BEGIN", x_lake_session=session)
    assert header(sent(node, "SELECT 1", session=session, views={"v": "SELECT 1"}), "x-lake-sqlstate") == "0A000"


def test_they_hide_relations_of_the_lake(node: Node) -> None:
    """And the same statement without them is another one."""
    node.sql("CREATE TABLE hidden_by AS SELECT 1 AS a")
    text = "SELECT a FROM hidden_by"
    assert sent(node, text).json() == [{"a": 1}]
    assert sent(node, text, tables={"hidden_by": [{"a": 2}]}).json() == [{"a": 2}]
    assert sent(node, text).json() == [{"a": 1}]


@pytest.mark.parametrize(
    ("members", "sqlstate"),
    [({"tables": {"t": []}}, "22023"), ({"tables": {"t": [{}]}}, "22023"), ({"views": {"v": "SELECT * FROM nowhere"}}, "42P01"),
     ({"views": {"v": "DROP TABLE x"}}, "42601"), ({"views": {"v": "SELECT 1; SELECT 2"}}, "22023"),
     ({"views": {"v": "SELECT 1"}, "tables": {"v": [{"a": 1}]}}, "42P07"),
     ({"views": {f"v{n}": "SELECT 1" for n in range(101)}}, "22023")],
)  # fmt: skip
def test_what_is_refused(node: Node, members: dict[str, Any], sqlstate: str) -> None:
    """By code, and nothing of it stays. HTTP Query 4."""
    assert header(sent(node, "SELECT 1", **members), "x-lake-sqlstate") == sqlstate


def test_a_reader_brings_its_own(locked: Node) -> None:
    """They take no right to define; what they read is asked for as in any query."""
    body = json.dumps({"sql": "SELECT a FROM v, t", "views": {"v": "SELECT 1 AS b"}, "tables": {"t": [{"a": 1}]}})
    wire = locked.wire()
    assert wire.send("POST", "/sql", body, Content_Type="application/json", **bearer("reads")).json() == [{"a": 1}]
    body = json.dumps({"sql": "SELECT * FROM v", "views": {"v": "SELECT * FROM '/etc/passwd'"}})
    assert wire.send("POST", "/sql", body, Content_Type="application/json", **bearer("reads")).status == 403
