"""Small requests: SELECT 1, a key looked up, a dashboard's query asked again, beside handlers that do nothing.

    python -m tests bench small [--seconds 3] [--clients 32]

Over HTTP, and over the Postgres protocol as prepared statements. The node, a bare aiohttp handler and a bare asyncio protocol
each run in a process of their own; so does the client, which keeps its connections open and sends the next request when the
answer is there. Rates are of 32 connections, latencies of one; beside a rate is the processor time that the server took for a
request, which tells more where others use the machine. Ratios that are saved are to the bare handler.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

from lake.doors.postgres.messages import encode
from tests.bench import Figure, percentile, save, table
from tests.cluster import free_port, running_node

CASE: Final = "small"
KEYS: Final = 100_000
BY_KEY: Final = "SELECT * FROM keyed WHERE id = "
_STARTUP: Final = struct.pack("!i", 196_608) + b"user\0admin\0database\0lake\0\0"
STARTUP: Final = struct.pack("!i", len(_STARTUP) + 4) + _STARTUP
DASHBOARD: Final = "SELECT name, count(*) AS n, sum(value) AS total FROM keyed GROUP BY name ORDER BY n DESC LIMIT 10"


# --- the bare servers ------------------------------------------------------------------------------------------------


def _serve_aiohttp(port: int) -> None:
    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=b'[{"Int64(1)":1}]', content_type="application/json")

    app = web.Application()
    app.router.add_post("/sql", answer)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


class _Answers(asyncio.Protocol):
    """Answers whatever comes with one fixed reply."""

    REPLY: Final = b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\nContent-Type: application/json\r\n\r\n[{"Int64(1)":1}]'

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(self.REPLY)


def _serve_protocol(port: int) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(_Answers, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(run())


# --- the client ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """What is asked again and again.

    greeting  what a connection sends first, and gets an answer to
    state     whether an answer is whole; None of one that is a failure
    """

    message: bytes
    state: Callable[[bytes], bool | None]
    greeting: bytes = b""


def request(method: str, path: str, body: str = "") -> Question:
    """A request over HTTP."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: {len(body.encode())}\r\n\r\n"
    return Question((head + body).encode(), _http_state)


def _http_state(answer: bytes) -> bool | None:
    head, mark, body = answer.partition(b"\r\n\r\n")
    if not mark:
        return False
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return None if not head.startswith(b"HTTP/1.1 200") else len(body) >= length


def prepared(text: str, *values: bytes) -> Question:
    """A statement that a connection to the Postgres door prepares once and runs again as drivers do."""
    greeting = STARTUP + encode("Parse", "s", text, []) + encode("Sync")
    bind = encode("Bind", "", "s", [], list(values), [])
    return Question(bind + encode("Describe", "P", "") + encode("Execute", "", 0) + encode("Sync"), _pg_state, greeting)


def _pg_state(answer: bytes) -> bool | None:
    """Goes from message to message: a row may hold any bytes."""
    at, ready = 0, 0
    while at + 5 <= len(answer):
        if answer[at : at + 1] == b"E":
            return None
        end = at + 1 + struct.unpack_from("!i", answer, at + 1)[0]
        ready += answer[at : at + 1] == b"Z" and end <= len(answer)
        at = end
    return ready == (2 if answer[:1] == b"R" else 1)  # a greeting is answered twice: for the startup, and for the Sync


class _Asker(asyncio.Protocol):
    """Sends one request after another until the time is up, and notes how long each answer took."""

    def __init__(self, question: Question, until: float, took: list[float], ended: asyncio.Future[None]) -> None:
        self.question, self.until, self.took, self.ended = question, until, took, ended
        self.buffer = b""
        self.greets = bool(question.greeting)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self.greets:
            transport.write(self.question.greeting)
        else:
            self._send()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        state = self.question.state(self.buffer)
        if state is None:
            self.ended.set_exception(RuntimeError(self.buffer.decode(errors="replace")))
        if not state:
            return
        self.buffer = b""
        now = time.perf_counter()
        if self.greets:
            self.greets = False
            self._send()
            return
        self.took.append(now - self.began)
        if now < self.until:
            self._send()
        elif not self.ended.done():
            self.ended.set_result(None)
            self.transport.close()

    def _send(self) -> None:
        self.began = time.perf_counter()
        self.transport.write(self.question.message)


async def _ask(port: int, question: Question, clients: int, seconds: float) -> list[float]:
    loop = asyncio.get_running_loop()
    took: list[float] = []
    until = time.perf_counter() + seconds
    ends = []
    for _ in range(clients):
        ended = loop.create_future()
        ends.append(ended)
        await loop.create_connection(lambda ended=ended: _Asker(question, until, took, ended), "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*ends)
    return took


def ask(port: int, question: Question, clients: int, seconds: float) -> list[float]:
    """Seconds of each answer, asked for by so many connections for so long after a short warm-up."""
    asyncio.run(_ask(port, question, clients, seconds / 5))
    return asyncio.run(_ask(port, question, clients, seconds))


# --- the run ---------------------------------------------------------------------------------------------------------


def wait_for(port: int) -> None:
    """Returns once somebody listens."""
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)


def cpu_secs(pid: int) -> float:
    """Processor time that a process has taken; 0 where the system does not tell in /proc."""
    path = Path(f"/proc/{pid}/stat")
    fields = path.read_text(encoding="utf-8").rpartition(")")[2].split() if path.exists() else ["0"] * 13
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Server:
    """Somebody who answers at a port."""

    who: str
    port: int
    pid: int


def measured(
    server: Server, what: str, question: Question, options: argparse.Namespace, bare: Sequence[Figure] = ()
) -> list[Figure]:
    """Latency of one connection; the rate of many, and the processor time of a request, beside those of ``bare``."""
    one = ask(server.port, question, 1, options.seconds)
    asyncio.run(_ask(server.port, question, options.clients, options.seconds / 5))
    before = cpu_secs(server.pid)
    count = len(asyncio.run(_ask(server.port, question, options.clients, options.seconds)))
    rate, each_us = count / options.seconds, (cpu_secs(server.pid) - before) / count * 1e6
    ratios = (rate / bare[2].value, each_us / bare[3].value) if bare and bare[3].value else (None, None)
    many = f"{what}, {options.clients} connections"
    return [
        Figure(CASE, server.who, f"{what}, one connection, p50", percentile(one, 0.5) * 1000, "ms"),
        Figure(CASE, server.who, f"{what}, one connection, p99", percentile(one, 0.99) * 1000, "ms"),
        Figure(CASE, server.who, many, rate, "requests/s", ratios[0]),
        Figure(CASE, server.who, f"{many}, processor", each_us, "us", ratios[1]),
    ]


def main(arguments: Sequence[str]) -> int:
    """Measures; 0 when all answered."""
    parser = argparse.ArgumentParser(prog="python -m tests bench small", description="Small requests beside bare handlers")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement (3)")
    parser.add_argument("--clients", type=int, default=32, help="connections of the rates (32)")
    parser.add_argument("--no-save", action="store_true", help="leave results.csv alone")
    options = parser.parse_args(arguments)
    figures: list[Figure] = []
    bare: list[list[Figure]] = []
    select = request("POST", "/sql", "SELECT 1")
    for who, serve in (("bare aiohttp", _serve_aiohttp), ("bare asyncio", _serve_protocol)):
        port = free_port()
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(port,), daemon=True)
        server.start()
        wait_for(port)
        assert server.pid is not None
        bare.append(measured(Server(who, port, server.pid), "SELECT 1", select, options, *bare))
        figures += bare[-1]
        server.terminate()
        server.join()
    pg = free_port()
    with tempfile.TemporaryDirectory() as folder, running_node(Path(folder) / "lake", "--pg", f"127.0.0.1:{pg}") as node:
        wire = node.wire()
        wire.send("POST", "/sql", "CREATE TABLE keyed (id BIGINT PRIMARY KEY, name TEXT, value DOUBLE)")
        wire.send("POST", "/sql", f"INSERT INTO keyed SELECT i, 'name ' || i % 97, i * 0.5 FROM generate_series(1, {KEYS}) AS s(i)")
        for what, port, question in (
            ("SELECT 1", node.port, select),
            ("key lookup", node.port, request("GET", f"/lookup/keyed/{KEYS // 2}")),
            ("SELECT by key", node.port, request("POST", "/sql", f"{BY_KEY}{KEYS // 3}")),
            ("dashboard query again", node.port, request("POST", "/sql", DASHBOARD)),
            ("Postgres: SELECT 1", pg, prepared("SELECT 1")),
            ("Postgres: SELECT by key", pg, prepared(f"{BY_KEY}$1", b"%d" % (KEYS // 3))),
            ("Postgres: dashboard query again", pg, prepared(DASHBOARD)),
        ):
            figures += measured(Server("lake", port, node.process.pid), what, question, options, bare[0])
    protocol = {figure.unit: figure.value for figure in bare[1]}
    rows = [
        (
            each.who, each.what, f"{each.value:.3g} {each.unit}", f"{each.ratio:.2f}" if each.ratio else "",
            f"{each.value / protocol[each.unit]:.2f}" if each.ratio else "",
        )
        for each in figures
    ]  # fmt: skip
    print(table(["who", "what", "value", "of bare aiohttp", "of bare asyncio"], rows))
    if not options.no_save:
        save(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
