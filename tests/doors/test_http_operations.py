"""Rights, health, metrics, and callers that misbehave. Spec: HTTP, Operations; Authentication."""

from __future__ import annotations

import base64
import gzip
import socket
import time
import zlib

import pytest

from lake.doors.http.later import LATER
from tests.cluster import Node
from tests.doors.test_http_sql import header


def bearer(token: str) -> dict[str, str]:
    """The header that carries a token."""
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("method", "path", "body", "role"),
    [
        ("POST", "/sql", "SELECT 1", "reads"),
        ("GET", "/metrics", "", "reads"),
        ("GET", "/whoami", "", "reads"),
        ("POST", "/sql", "INSERT INTO allowed VALUES (1)", "writes"),
        ("POST", "/append/allowed", '{"a": 1}', "writes"),
        ("POST", "/insert/allowed", "SELECT 2 AS a", "writes"),
        ("POST", "/sql", "CREATE TABLE IF NOT EXISTS allowed (a INT)", "rules"),
        ("POST", "/tables/allowed", '[["a", "Int32"]]', "rules"),
        ("POST", "/tier", "", "rules"),
    ],
)
def test_each_role_may_do_its_part(locked: Node, method: str, path: str, body: str, role: str) -> None:
    """Roles nest: a lesser token is refused with 403, none or a wrong one with 401. HTTP Rights 1, 2."""
    wire = locked.wire()
    wire.send("POST", "/sql", "CREATE TABLE IF NOT EXISTS allowed (a INT)", **bearer("rules"))
    ranks = ["reads", "writes", "rules"]
    for token in ranks:
        reply = wire.send(method, path, body, **bearer(token))
        allowed = ranks.index(token) >= ranks.index(role)
        assert reply.status == (200 if allowed else 403), (token, reply.body)
        assert allowed or header(reply, "x-lake-sqlstate") == "42501"
    for headers in ({}, bearer("wrong"), bearer(""), {"Authorization": "Basic ???"}):
        reply = wire.send(method, path, body, **headers)
        assert (reply.status, header(reply, "x-lake-sqlstate")) == (401, "28000")
        assert header(reply, "www-authenticate")


def test_a_token_as_password(locked: Node) -> None:
    """Basic carries a token too; who the caller is, is told. HTTP Rights 4; HTTP Operations 5."""
    word = base64.b64encode(b"anybody:writes").decode()
    told = locked.wire().send("GET", "/whoami", Authorization=f"Basic {word}").json()
    assert told == {"user": "write", "role": "write", "superuser": False, "open": False}


def test_the_open_paths(locked: Node) -> None:
    """Health asks nobody to sign in; a path that is none is a plain 404, a wrong method 405. HTTP Rights 3; HTTP Operations 1, 2, 3."""
    wire = locked.wire()
    assert wire.send("GET", "/healthz").body == b"ok"
    assert wire.send("GET", "/ready").status == 200
    stats = wire.send("GET", "/stats").json()
    assert (stats["role"], stats["lake"], stats["nodes"]) == ("leader", "locked", [stats["leader"]])
    assert stats["leader"] == f"127.0.0.1:{locked.port}" and stats["releases"] == {stats["leader"]: stats["version"]}
    assert {"term", "hwm", "untiered_rows", "commits", "commit_ms_p50", "format"} <= stats.keys()
    assert wire.send("GET", "/nowhere").status == 404
    assert wire.send("GET", "/sql").status == 405
    assert b"POST /sql" in wire.send("GET", "/").body


def test_metrics_count_requests(node: Node) -> None:
    """The text exposition format, by route and not by path. HTTP Operations 8."""
    wire = node.wire()
    wire.send("POST", "/append/no_such_table", b"{}")
    text = wire.send("GET", "/metrics").body.decode()
    assert 'lake_http_requests_total{method="POST",path="/append/{table}",status="500"}' in text
    assert "# TYPE lake_commit_seconds histogram" in text


def test_malformed_http_is_a_plain_400(node: Node) -> None:
    """What is not HTTP is answered and the connection closed."""
    with socket.create_connection(("127.0.0.1", node.port), 10) as raw:
        raw.sendall(b"NONSENSE\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.0 400")
    assert node.sql("SELECT 1 AS one") == [{"one": 1}]


def running(node: Node) -> int:
    """Requests the node is at."""
    text = node.wire().send("GET", "/metrics").body.decode()
    return next(int(float(line.split()[1])) for line in text.splitlines() if line.startswith("lake_http_running "))


ENDLESS = "SELECT count(*) FROM range(0, 3000000) AS a(i), range(0, 3000000) AS b(j) WHERE i + j = -1"


def wait_until_running(node: Node, count: int) -> None:
    """Returns when the node is at so many requests, the asking one counted."""
    until = time.monotonic() + 30
    while running(node) != count:
        assert time.monotonic() < until, f"the node is at {running(node)} requests, not at {count}"
        time.sleep(0.02)


def test_a_caller_that_goes_away_stops_its_statement(node: Node) -> None:
    """The connection closes, and soon no statement runs."""
    with socket.create_connection(("127.0.0.1", node.port), 10) as raw:
        raw.sendall(b"POST /sql HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(ENDLESS), ENDLESS.encode()))
        wait_until_running(node, 2)
    wait_until_running(node, 1)
    text = node.wire().send("GET", "/metrics").body.decode()
    assert "lake_statements_running 0" in text or _settles(node)


def _settles(node: Node) -> bool:
    """Whether the threads let go of what their callers left."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if "lake_statements_running 0" in node.wire().send("GET", "/metrics").body.decode():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("format", ["json", "csv", "arrow", "ndjson", "parquet"])
def test_a_large_answer_comes_in_pieces(node: Node, format: str) -> None:
    """It is sent while it is made, and whoever stops reading stops it."""
    text = b"SELECT i, i * 2 AS twice, 'some text that is not short' AS words FROM range(0, 20000000) AS r(i)"
    head = b"POST /sql?format=%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (format.encode(), len(text))
    with socket.create_connection(("127.0.0.1", node.port), 30) as raw:
        raw.sendall(head + text)
        assert raw.recv(1_000).startswith(b"HTTP/1.1 200 OK")
        wait_until_running(node, 2)
    wait_until_running(node, 1)
    assert _settles(node)


def test_half_an_answer_is_not_taken_for_a_whole_one(node: Node) -> None:
    """A query that fails after its first piece was sent ends the connection without the answer's end."""
    text = b"SELECT i, 1000 / (i - 400000) AS x FROM range(0, 500000) AS r(i)"
    with socket.create_connection(("127.0.0.1", node.port), 30) as raw:
        raw.sendall(b"POST /sql?format=csv HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
        received = b""
        try:
            while piece := raw.recv(1 << 20):
                received += piece
        except ConnectionResetError:
            pass
    assert received.startswith(b"HTTP/1.1 200 OK") and not received.endswith(b"0\r\n\r\n")
    assert node.sql("SELECT 1 AS one") == [{"one": 1}]


def test_a_body_that_is_too_large(node: Node) -> None:
    """413 with its code, and the node goes on. HTTP Limits 1."""
    wire = node.wire()
    reply = wire.send("POST", "/sql", b" " * (65 << 20))
    assert (reply.status, header(reply, "x-lake-sqlstate")) == (413, "54000")
    assert node.sql("SELECT 1 AS one") == [{"one": 1}]


def test_a_body_that_is_not_what_its_encoding_says(node: Node) -> None:
    """It is told with a code; a body that is compressed is read. HTTP Limits 2."""
    wire = node.wire()
    reply = wire.send("POST", "/sql", b"SELECT 1", Content_Encoding="gzip")
    assert (reply.status, header(reply, "x-lake-sqlstate")) == (500, "08P01")
    assert node.wire().send("POST", "/sql", gzip.compress(b"SELECT 1 AS one"), Content_Encoding="gzip").json() == [{"one": 1}]


@pytest.mark.parametrize("path", ["/sql", "/nowhere"])
def test_a_client_that_expects_something(node: Node, path: str) -> None:
    """100-continue is met; bytes that are no such word are refused, and are no internal error."""
    for word, status in ((b"100-continue", b"100 Continue"), (b"100-con\xf6inue", b"417 Expectation Failed")):
        with socket.create_connection(("127.0.0.1", node.port), 10) as raw:
            raw.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nExpect: %s\r\nContent-Length: 8\r\n\r\n" % (path.encode(), word))
            assert raw.recv(1_000).startswith(b"HTTP/1.1 " + status)


def test_objects_and_kinds(node: Node) -> None:
    """What a tree of a console shows. Spec: HTTP, GET /objects; GET /kinds; Resources (object entry). HTTP Operations 6, 7."""
    node.sql(
        "CREATE TABLE listed (id INT PRIMARY KEY, day DATE NOT NULL, n INT DEFAULT 3) WITH (cluster_by = 'day');"
        "INSERT INTO listed (id, day) VALUES (1, DATE '2024-01-01'); CREATE VIEW listed_view AS SELECT id FROM listed"
    )
    wire = node.wire()
    found = {item["name"]: item for item in wire.send("GET", "/objects").json()}
    table, view = found["listed"], found["listed_view"]
    assert (table["kind"], table["schema"], table["catalog"], table["rows"]) == ("table", "public", "open", 1)
    assert (table["key"], table["cluster"], table["partition"], table["publish"]) == (["id"], ["day"], None, None)
    assert (table["not_null"], table["defaults"]) == (["id", "day"], {"n": "3"}) and {"bytes", "files"} <= table.keys()
    assert view == {"catalog": "open", "schema": "public", "name": "listed_view", "kind": "view", "sql": "SELECT id FROM listed"}
    assert found["files"] == {"catalog": "open", "schema": "", "name": "files", "kind": "files", "files": "files/"}
    kinds = wire.send("GET", "/kinds").json()
    assert {"kind", "family", "statements"} == kinds[0].keys() and "table" in {item["kind"] for item in kinds}


@pytest.mark.parametrize("accepted", ["gzip", "deflate", ""])
@pytest.mark.parametrize("format", ["json", "csv", "typed", "table", "arrow"])
def test_answers_are_compressed_where_that_is_accepted(node: Node, format: str, accepted: str) -> None:
    """Text of some size, whole or in pieces; what is small, or packed already, is sent as it is. HTTP Query 24."""
    for rows in (1, 1_000, 30_000):
        text = f"SELECT i, 'some text' AS words FROM range({rows}) AS r(i)"
        plain = node.wire().send("POST", f"/sql?format={format}", text, Accept_Encoding="identity")
        packed = node.wire().send("POST", f"/sql?format={format}", text, **({"Accept_Encoding": accepted} if accepted else {}))
        how = header(packed, "content-encoding")
        assert (how == accepted) == (bool(accepted) and rows > 1 and format != "arrow") or (not accepted and how is None)
        body = gzip.decompress(packed.body) if how == "gzip" else zlib.decompress(packed.body) if how else packed.body
        assert format == "typed" or body == plain.body


@pytest.mark.parametrize("endpoint", [(method, path) for rows in LATER.values() for method, path, _ in rows], ids=" ".join)
def test_endpoints_to_come_are_refused_by_name(node: Node, endpoint: tuple[str, str]) -> None:
    """0A000, which names the endpoint and what it takes. HTTP Definitions 4."""
    method, path = endpoint
    reply = node.wire().send(method, path.replace("{name}", "x").replace("{id}", "session-1"), b"{}")
    assert (reply.status, header(reply, "x-lake-sqlstate")) == (500, "0A000")
    assert reply.body.decode().startswith(f"{method} {path}: ")
