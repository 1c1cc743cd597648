"""GET /watch: new rows and changes as they are committed, from any position, to many readers. Spec: HTTP, Events."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster import Node, running_node


class Lines:
    """A stream being read, line by line."""

    def __init__(self, node: Node, path: str, body: str | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=30)
        headers = {} if body is None else {"Content-Type": "application/json"}
        self._connection.request("GET" if body is None else "POST", path, body, headers)
        self._response = self._connection.getresponse()
        self.status = self._response.status

    def next(self, count: int = 1) -> list[Any]:
        """The next lines."""
        return [json.loads(self._response.readline()) for _ in range(count)]

    def rest(self) -> str:
        """What is left, for a stream that ends."""
        return self._response.read().decode()

    def close(self) -> None:
        """Goes away."""
        self._connection.close()


@contextmanager
def lines(node: Node, path: str, body: str | None = None) -> Iterator[Lines]:
    """A stream, closed at the end."""
    stream = Lines(node, path, body)
    try:
        yield stream
    finally:
        stream.close()


def test_new_rows_arrive(node: Node) -> None:
    """Rows of every way of writing, from now on; NULLs are left out. HTTP Streams 4."""
    node.sql("CREATE TABLE watched (a INT, b TEXT); INSERT INTO watched VALUES (0, 'before')")
    with lines(node, "/watch/watched") as stream:
        assert stream.status == 200
        node.sql("INSERT INTO watched VALUES (1, 'x'), (2, NULL)")
        assert stream.next(2) == [{"a": 1, "b": "x"}, {"a": 2}]
        node.wire().send("POST", "/append/watched", '{"a": 3}\n{"a": 4, "b": "y"}')
        assert stream.next(2) == [{"a": 3}, {"a": 4, "b": "y"}]
        node.sql("UPDATE watched SET b = 'z' WHERE a = 3")
        node.sql("DELETE FROM watched WHERE a = 4")
        assert stream.next() == [{"a": 3, "b": "z"}]
        node.sql("INSERT INTO watched SELECT i, 'bulk' FROM generate_series(10, 30009) AS r(i)")
        assert [row["a"] for row in stream.next(30_000)] == list(range(10, 30_010))


def test_after_replays_and_marks_resume(node: Node) -> None:
    """``after`` starts anywhere; a mark follows each batch, and resuming from it misses and repeats nothing. HTTP Streams 5, 6."""
    node.sql("CREATE TABLE marked (a INT)")
    seg = node.wire().send("POST", "/append/marked", '{"a": 0}').json()["seg"]
    for number in range(1, 6):
        node.sql(f"INSERT INTO marked VALUES ({number})")
    with lines(node, f"/watch/marked?after={seg}&marks=true") as stream:
        found = stream.next(6)
        assert [row["a"] for row in found[:5]] == [1, 2, 3, 4, 5] and found[5].keys() == {"_after"}
    node.wire().send("POST", "/tier")
    node.sql("INSERT INTO marked VALUES (6)")
    with lines(node, f"/watch/marked?after={found[5]['_after']}&marks=1") as stream:
        assert stream.next()[0] == {"a": 6}
        node.sql("INSERT INTO marked VALUES (7)")
        assert [line.get("a") for line in stream.next(3)] == [None, 7, None]
    with lines(node, "/watch/marked?after=0") as stream:
        assert [row["a"] for row in stream.next(8)] == list(range(8))


def test_changes_have_both_sides(node: Node) -> None:
    """``changes=true``: old before new in a commit, with what names the row. HTTP Streams 7."""
    node.sql("CREATE TABLE changed (a INT, b TEXT); INSERT INTO changed VALUES (1, 'x'), (2, 'y')")
    first = node.sql("SELECT max(_version) AS v FROM changed")[0]["v"]
    with lines(node, f"/watch/changed?changes=true&after={first - 1}&marks=true") as stream:
        rows = stream.next(3)
        assert [row.get("_change_type") for row in rows] == ["insert", "insert", None]
        assert set(rows[0]) == {"a", "b", "_change_type", "_row_id", "_version", "_created_at", "_updated_at"}
        node.sql("UPDATE changed SET b = 'z' WHERE a = 1")
        old, new, mark = stream.next(3)
        assert (old["_change_type"], old["b"]) == ("update_preimage", "x")
        assert (new["_change_type"], new["b"]) == ("update_postimage", "z")
        assert old["_row_id"] == new["_row_id"] == rows[0]["_row_id"]
        assert old["_version"] == new["_version"] == mark["_after"]
        node.sql("DELETE FROM changed WHERE a = 2")
        gone, _ = stream.next(2)
        assert (gone["_change_type"], gone["b"], gone["_row_id"]) == ("delete", "y", rows[1]["_row_id"])
        node.sql("TRUNCATE changed")
        assert stream.next()[0]["_change_type"] == "delete"
        node.sql(f"RESTORE TABLE changed TO VERSION AS OF {first}")
        assert [row["_change_type"] for row in stream.next(3)[1:]] == ["insert", "insert"]


def test_a_dropped_table_ends_its_stream(node: Node) -> None:
    """What came before is told, then an error."""
    node.sql("CREATE TABLE ending (a INT)")
    with lines(node, "/watch/ending") as stream:
        node.sql("INSERT INTO ending VALUES (1); DROP TABLE ending")
        assert stream.next() == [{"a": 1}]
        assert json.loads(stream.rest())["sqlstate"] == "42P01"


@pytest.mark.parametrize(
    ("path", "sqlstate"),
    [
        ("/watch/nobody", "42P01"),
        ("/watch/refusing?after=100000000", "22023"),
        ("/watch/refusing?after=-1", "22023"),
        ("/watch/refusing?marks=perhaps", "22023"),
    ],
)
def test_what_cannot_be_watched_is_refused(node: Node, path: str, sqlstate: str) -> None:
    """An error before the first line is an answer with its status."""
    node.sql("CREATE TABLE IF NOT EXISTS refusing (a INT)")
    reply = node.wire().send("GET", path)
    assert (reply.status, reply.headers["x-lake-sqlstate"]) == (500, sqlstate)


def test_a_position_that_is_gone(node: Node) -> None:
    """Deleted rows of a table without retention go at the next merge, and positions before them."""
    node.sql("CREATE TABLE short (a INT) WITH (retention = '0 seconds'); INSERT INTO short VALUES (1)")
    before = node.sql("SELECT max(_version) AS v FROM short")[0]["v"]
    node.sql("TRUNCATE short")
    reply = node.wire().send("GET", f"/watch/short?after={before}")
    assert reply.headers["x-lake-sqlstate"] == "22023" and b"no longer kept" in reply.body


def test_a_slow_reader_holds_nobody(node: Node) -> None:
    """One that does not read, while another gets every row of many; then it reads them as well."""
    node.sql("CREATE TABLE slow (a INT, b TEXT)")
    rounds, rows = 12, 4_000
    with lines(node, "/watch/slow") as idle, lines(node, "/watch/slow") as quick:
        got: list[Any] = []
        reader = threading.Thread(target=lambda: got.extend(quick.next(rounds * rows)))
        reader.start()
        for number in range(rounds):
            node.sql(f"INSERT INTO slow SELECT {number * rows} + i, repeat('x', 300) FROM range({rows}) AS r(i)")
        reader.join(60)
        assert [row["a"] for row in got] == list(range(rounds * rows))
        assert [row["a"] for row in idle.next(rounds * rows)] == list(range(rounds * rows))


def test_streams_end_when_the_node_stops(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A node that drains ends its streams and does not wait for their readers."""
    with running_node(tmp_path_factory.mktemp("watch") / "lake") as node:
        node.sql("CREATE TABLE t (a INT)")
        with lines(node, "/watch/t") as stream, lines(node, "/watch/t?changes=true") as other:
            node.sql("INSERT INTO t VALUES (1)")
            assert stream.next() == [{"a": 1}] and other.next()[0]["a"] == 1
            node.stop()
            assert stream.rest() == "" and other.rest() == ""


def test_a_keyed_table_tells_upserts(node: Node) -> None:
    """Every row that is written, whatever the table keeps of it; a delete has its key. HTTP Streams 8."""
    node.sql("CREATE TABLE keyed (id INT PRIMARY KEY, v TEXT)")
    with lines(node, "/watch/keyed?changes=true&marks=true") as stream, lines(node, "/watch/keyed") as new:
        node.sql("INSERT INTO keyed VALUES (1, 'a'), (2, 'b')")
        first = stream.next(3)
        assert [(row["_change_type"], row["id"], row["v"]) for row in first[:2]] == [("upsert", 1, "a"), ("upsert", 2, "b")]
        node.sql("INSERT INTO keyed VALUES (1, 'c')")
        node.sql("UPDATE keyed SET v = 'd' WHERE id = 2")
        node.sql("DELETE FROM keyed WHERE id = 1")
        node.wire().send("POST", "/tier")
        rest = [row for row in stream.next(6) if "_after" not in row]
        assert [(row["_change_type"], row["id"]) for row in rest] == [("upsert", 1), ("upsert", 2), ("delete", 1)]
        assert [row["v"] for row in new.next(4)] == ["a", "b", "c", "d"]
    with lines(node, f"/watch/keyed?changes=true&after={first[2]['_after']}") as stream:
        assert [row["_change_type"] for row in stream.next(3)] == ["upsert", "upsert", "delete"]
        node.sql("INSERT INTO keyed SELECT i, 'bulk' FROM range(30000) AS r(i)")
        assert {row["_change_type"] for row in stream.next(30_000)} == {"upsert"}


def test_a_keyed_table_is_replayed_as_long_as_the_log_is_kept(tmp_path_factory: pytest.TempPathFactory) -> None:
    """``--changelog-secs`` keeps commits and segments for feeds."""
    folder = tmp_path_factory.mktemp("keyed") / "lake"
    with running_node(folder, "--changelog-secs", "3600", "--retain-secs", "0", environ={"LAKE_GC_SECS": "0"}) as node:
        node.sql("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)")
        start = node.wire().send("GET", "/stats").json()["hwm"]
        node.sql("INSERT INTO t SELECT i, repeat('x', 100) FROM range(2000) AS r(i)")
        node.wire().send("POST", "/tier")
        for number in range(5):
            node.sql(f"INSERT INTO t VALUES ({number}, 'y')")
            node.wire().send("POST", "/tier")
        with lines(node, f"/watch/t?after={start}") as stream:
            assert [row["id"] for row in stream.next(2_005)] == [*range(2_000), *range(5)]
