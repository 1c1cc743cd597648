"""Starting, draining, being killed. Spec: HTTP, Node readiness."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.cluster import ROOT, Node, free_port, running_node
from tests.doors.test_http_sql import header

LARGE = b"SELECT i, 'some text that is not short at all' AS words FROM range(0, 1000000) AS r(i)"


def begin(node: Node, text: bytes) -> socket.socket:
    """A connection on which a large answer has begun to arrive."""
    raw = socket.create_connection(("127.0.0.1", node.port), 60)
    raw.sendall(b"POST /sql?format=csv HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    assert raw.recv(1_000).startswith(b"HTTP/1.1 200 OK")
    return raw


def rest(raw: socket.socket) -> bytes:
    """The end of what arrives."""
    last = b""
    while piece := raw.recv(1 << 20):
        last = last[-64:] + piece
        if last.endswith(b"0\r\n\r\n"):
            break
    return last


def test_draining_lets_running_requests_finish(lake_folder: Path) -> None:
    """After the stop signal new requests get 503 and running ones finish; then the process ends well. HTTP Drain 1, 2."""
    with running_node(lake_folder) as node:
        wire, raw = node.wire(), begin(node, LARGE)
        assert wire.send("GET", "/ready").status == 200
        node.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 30
        while wire.send("GET", "/ready").status != 503:
            assert time.monotonic() < until
        for method, path in (("POST", "/sql"), ("GET", "/stats"), ("GET", "/nowhere")):
            refused = wire.send(method, path, "SELECT 1")
            assert (refused.status, header(refused, "retry-after")) == (503, "1")
            assert header(refused, "x-lake-sqlstate") == "57P01"
        assert wire.send("GET", "/healthz").status == 200
        assert rest(raw).endswith(b"0\r\n\r\n"), "the answer was cut off"
        assert node.process.wait(30) == 0


ENDLESS = b"SELECT count(*) FROM range(0, 3000000) AS a(i), range(0, 3000000) AS b(j) WHERE i + j = -1"


def ask(node: Node, text: bytes) -> socket.socket:
    """A connection on which a statement was sent, and runs."""
    raw = socket.create_connection(("127.0.0.1", node.port), 60)
    raw.sendall(b"POST /sql HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    until = time.monotonic() + 30
    while b"lake_statements_running 1" not in node.wire().send("GET", "/metrics").body:
        assert time.monotonic() < until
    return raw


@pytest.mark.parametrize("signals", [1, 2])
def test_a_statement_that_does_not_end_is_stopped(lake_folder: Path, signals: int) -> None:
    """Draining waits ``drain_secs`` for it, a second signal does not; either way the process ends. HTTP Drain 4, 5."""
    with running_node(lake_folder, environ={"LAKE_DRAIN_SECS": "0.5" if signals == 1 else "30"}) as node:
        raw = ask(node, ENDLESS)
        for _ in range(signals):
            node.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        assert node.process.wait(20) == signals - 1
        raw.close()


def test_the_grace_before_draining(lake_folder: Path) -> None:
    """/ready says at once that nobody new shall come; who comes all the same is served. HTTP Drain 3, 5."""
    with running_node(lake_folder, environ={"LAKE_DRAIN_GRACE_SECS": "300"}) as node:
        wire = node.wire()
        node.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 30
        while wire.send("GET", "/ready").status != 503:
            assert time.monotonic() < until
        assert node.sql("SELECT 1 AS one") == [{"one": 1}]
        node.process.send_signal(signal.SIGTERM)
        assert node.process.wait(20) == 1


def test_draining_at_the_postgres_door(lake_folder: Path) -> None:
    """A new statement on an open connection is 57P01, and no connection is taken. HTTP Drain 7."""
    port = free_port()
    with running_node(lake_folder, "--pg", f"127.0.0.1:{port}") as node:
        address = f"host=127.0.0.1 port={port} user=admin dbname={lake_folder.name}"
        with psycopg.connect(address, autocommit=True) as client:
            wire, raw = node.wire(), begin(node, LARGE)
            node.process.send_signal(signal.SIGTERM)
            until = time.monotonic() + 30
            while wire.send("GET", "/stats").status != 503:
                assert time.monotonic() < until
            with pytest.raises(psycopg.errors.AdminShutdown):
                client.execute("SELECT 1")
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(address)
        assert rest(raw).endswith(b"0\r\n\r\n")
        assert node.process.wait(30) == 0


def test_a_node_that_starts_stops_at_once(lake_folder: Path) -> None:
    """Until it serves it says 503, and a signal is not kept waiting by kernels that compile. HTTP Drain 8."""
    node = Node(lake_folder, environ={"NUMBA_CACHE_DIR": str(lake_folder.parent / "no kernels yet")})
    wire, until = node.wire(), time.monotonic() + 60
    while True:
        try:
            replies = [wire.send("GET", path) for path in ("/ready", "/stats", "/healthz")]
            break
        except OSError:
            wire.close()
            assert time.monotonic() < until
            time.sleep(0.02)
    assert [reply.status for reply in replies] == [503, 503, 200]
    assert header(replies[1], "x-lake-sqlstate") == "57P03"
    node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(20) == 0
    node.stop()


def test_a_slow_reader_holds_its_query_back(lake_folder: Path) -> None:
    """Of an answer that nobody reads a part is made, and then its query waits; other statements run."""
    with running_node(lake_folder) as node:
        memory = psutil.Process(node.process.pid).memory_info
        begin(node, LARGE).close()
        readers = [begin(node, LARGE.replace(b"1000000", b"1000000000")) for _ in range(2)]
        sizes = [0, memory().rss]
        until = time.monotonic() + 30
        while sizes[-1] - sizes[-2] > 16 << 20:
            assert time.monotonic() < until, f"memory grows on: {sizes}"
            time.sleep(0.5)
            sizes.append(memory().rss)
        assert sizes[-1] - sizes[1] < 512 << 20, sizes
        assert node.sql("SELECT 1 AS one") == [{"one": 1}]
        for raw in readers:
            raw.close()


def test_a_killed_node_is_followed_by_another(lake_folder: Path) -> None:
    """Everything acknowledged is there; the term is a later one."""
    with running_node(lake_folder) as node:
        node.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
        term = node.wire().send("GET", "/stats").json()["term"]
        node.kill()
    with running_node(lake_folder) as node:
        assert node.sql("SELECT a FROM t") == [{"a": 1}]
        assert node.wire().send("GET", "/stats").json()["term"] > term


def test_stop_with_stdin(lake_folder: Path) -> None:
    """A node that a program started ends when that program does. HTTP Drain 6."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lake", "serve", str(lake_folder), "--addr", f"127.0.0.1:{free_port()}", "--stop-with-stdin"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    for line in process.stdout:
        if "is served at" in line:
            break
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()
