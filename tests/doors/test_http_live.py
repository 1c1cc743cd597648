"""GET and POST /live: answers of queries, again after the commits that change them. Spec: HTTP, Events."""

from __future__ import annotations

import json
import time
from urllib.parse import quote

import pytest

from tests.cluster import Node, running_node
from tests.doors.test_http_watch import lines


def test_an_answer_comes_again_when_it_changes(node: Node) -> None:
    """Now, and after commits to its tables that change it; an unchanged answer is not sent again. HTTP Streams 9, 10."""
    node.sql("CREATE TABLE lively (a INT, b INT); CREATE TABLE other (a INT); INSERT INTO lively VALUES (1, 1)")
    with lines(node, f"/live?every_ms=0&sql={quote('SELECT count(*) AS n, max(b) AS b FROM lively')}") as stream:
        first = stream.next()[0]
        assert first["rows"] == [{"n": 1, "b": 1}]
        node.sql("INSERT INTO other VALUES (1)")
        node.sql("UPDATE lively SET a = 5")
        node.sql("INSERT INTO lively VALUES (2, NULL)")
        second = stream.next()[0]
        assert second["rows"] == [{"n": 2, "b": 1}] and second["at"] > first["at"]
        node.sql("TRUNCATE lively")
        assert stream.next()[0]["rows"] == [{"n": 0}]


def test_views_joins_and_subqueries_are_followed(node: Node) -> None:
    """Every table that the query reads, wherever it stands; a view made anew."""
    node.sql("CREATE TABLE one (a INT); CREATE TABLE two (a INT); CREATE TABLE three (a INT)")
    node.sql("CREATE VIEW both_of_them AS SELECT one.a FROM one JOIN two USING (a)")
    text = "SELECT (SELECT count(*) FROM three) AS c, (SELECT count(*) FROM both_of_them) AS d"
    with lines(node, f"/live?every_ms=0&sql={quote(text)}") as stream:
        assert stream.next()[0]["rows"] == [{"c": 0, "d": 0}]
        node.sql("INSERT INTO three VALUES (1)")
        assert stream.next()[0]["rows"] == [{"c": 1, "d": 0}]
        node.sql("INSERT INTO one VALUES (1)")
        node.sql("INSERT INTO two VALUES (1)")
        assert stream.next()[0]["rows"] == [{"c": 1, "d": 1}]
        node.sql("CREATE OR REPLACE VIEW both_of_them AS SELECT a FROM one UNION ALL SELECT a FROM two")
        assert stream.next()[0]["rows"] == [{"c": 1, "d": 2}]


def test_several_queries_on_a_connection(node: Node) -> None:
    """Each line names its id; one that cannot be watched leaves the others. HTTP Streams 13, 14."""
    node.sql("CREATE TABLE several (a INT); INSERT INTO several VALUES (1), (2)")
    queries = [
        {"id": "all", "sql": "SELECT a FROM several ORDER BY a"},
        {"id": 2, "sql": "SELECT a FROM several WHERE a = $wanted", "params": {"wanted": 2}},
        {"id": "bad", "sql": "SELECT a FROM nobody"},
        {"id": "write", "sql": "DELETE FROM several"},
        {"id": "none"},
        {"id": "named", "sql": "SELECT count(*) AS n FROM several", "session": "session-live"},
    ]
    with lines(node, "/live", json.dumps({"queries": queries, "every_ms": 0})) as stream:
        found = {line["id"]: line for line in stream.next(6)}
        assert found["all"]["rows"] == [{"a": 1}, {"a": 2}] and found[2]["rows"] == [{"a": 2}]
        assert found["bad"]["sqlstate"] == "42P01" and found["none"]["sqlstate"] == "08P01"
        assert found["write"]["sqlstate"] == "0A000" and "error" in found["write"]
        node.sql("INSERT INTO several VALUES (3)")
        assert {line["id"] for line in stream.next(2)} == {"all", "named"}
        node.sql("DROP TABLE several")
        assert {(line["id"], line["sqlstate"]) for line in stream.next(3)} == {
            ("all", "42P01"), (2, "42P01"), ("named", "42P01"),
        }  # fmt: skip
        assert stream.rest() == "", "with no query left the stream ends"


def test_a_busy_table_runs_it_seldom(node: Node) -> None:
    """``every_ms`` is the shortest time between two runs; the last commit is in the last answer. HTTP Streams 12."""
    node.sql("CREATE TABLE busy (a INT)")
    with lines(node, f"/live?every_ms=200&sql={quote('SELECT count(*) AS n FROM busy')}") as stream:
        started = time.monotonic()
        seen = [stream.next()[0]["rows"][0]["n"]]
        for number in range(30):
            node.sql(f"INSERT INTO busy VALUES ({number})")
        while seen[-1] < 30:
            seen.append(stream.next()[0]["rows"][0]["n"])
        assert len(seen) <= 2 + (time.monotonic() - started) / 0.2


def test_one_query_of_many_readers(node: Node) -> None:
    """Equal queries of one caller run once; the last reader that goes ends it."""
    node.sql("CREATE TABLE shared (a INT)")
    path = f"/live?sql={quote('SELECT count(*) AS n FROM shared')}"
    before = node.wire().send("GET", "/stats").json()["live_queries"]
    with lines(node, path) as one, lines(node, path) as other:
        assert one.next()[0] == other.next()[0]
        assert node.wire().send("GET", "/stats").json()["live_queries"] == before + 1
        node.sql("INSERT INTO shared VALUES (1)")
        assert one.next()[0] == other.next()[0]
    until = time.monotonic() + 20
    while node.wire().send("GET", "/stats").json()["live_queries"] > before:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("path", "body", "sqlstate"),
    [
        ("/live?sql=SELECT+1&every_ms=soon", None, "22023"),
        ("/live", "no json", "08P01"),
        ("/live", "{}", "08P01"),
        ("/live", '{"queries": [1]}', "08P01"),
    ],
)
def test_what_is_no_live_query_is_refused(node: Node, path: str, body: str | None, sqlstate: str) -> None:
    """An error before the first line is an answer with its status."""
    reply = node.wire().send("GET" if body is None else "POST", path, body or b"")
    assert (reply.status, reply.headers["x-lake-sqlstate"]) == (500, sqlstate)


def test_an_error_ends_the_stream(node: Node) -> None:
    """GET has one query: its error is the only line. HTTP Streams 11."""
    for text, sqlstate in (("SELEC 1", "42601"), ("", "0A000"), ("SELECT 1 / 0", "22012"), ("SELECT 1; SELECT 2", "0A000")):
        with lines(node, f"/live?sql={quote(text)}") as stream:
            assert json.loads(stream.rest())["sqlstate"] == sqlstate, text


def test_live_streams_end_when_the_node_stops(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A node that drains ends them."""
    with running_node(tmp_path_factory.mktemp("live") / "lake") as node, lines(node, "/live?sql=SELECT+1+AS+a") as stream:
        assert stream.next()[0]["rows"] == [{"a": 1}]
        node.stop()
        assert stream.rest() == ""
