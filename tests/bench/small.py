"""Small requests: SELECT 1, a key looked up, a dashboard's query asked again, beside handlers that do nothing.

    python -m tests bench small [--seconds 3] [--clients 32]

The node, a bare aiohttp handler and a bare asyncio protocol each run in a process of their own; so does the client, which
keeps its connections open and sends the next request when the answer is there. Rates are of 32 connections, latencies of
one. Ratios of rates are to the bare handler's.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aiohttp import web

from tests.bench import Figure, percentile, save, table
from tests.cluster import free_port, running_node

CASE: Final = "small"
KEYS: Final = 100_000
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


def request(method: str, path: str, body: str = "") -> bytes:
    """A request's bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: {len(body.encode())}\r\n\r\n"
    return (head + body).encode()


class _Asker(asyncio.Protocol):
    """Sends one request after another until the time is up, and notes how long each answer took."""

    def __init__(self, message: bytes, until: float, took: list[float], ended: asyncio.Future[None]) -> None:
        self.message, self.until, self.took, self.ended = message, until, took, ended
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, mark, body = self.buffer.partition(b"\r\n\r\n")
        if not mark:
            return
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        if len(body) < length:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self.ended.set_exception(RuntimeError(self.buffer.decode(errors="replace")))
            return
        self.buffer = b""
        now = time.perf_counter()
        self.took.append(now - self.began)
        if now < self.until:
            self._send()
        elif not self.ended.done():
            self.ended.set_result(None)
            self.transport.close()

    def _send(self) -> None:
        self.began = time.perf_counter()
        self.transport.write(self.message)


async def _ask(port: int, message: bytes, clients: int, seconds: float) -> list[float]:
    loop = asyncio.get_running_loop()
    took: list[float] = []
    until = time.perf_counter() + seconds
    ends = []
    for _ in range(clients):
        ended = loop.create_future()
        ends.append(ended)
        await loop.create_connection(lambda ended=ended: _Asker(message, until, took, ended), "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*ends)
    return took


def ask(port: int, message: bytes, clients: int, seconds: float) -> list[float]:
    """Seconds of each answer, asked for by so many connections for so long after a short warm-up."""
    asyncio.run(_ask(port, message, clients, seconds / 5))
    return asyncio.run(_ask(port, message, clients, seconds))


# --- the run ---------------------------------------------------------------------------------------------------------


def wait_for(port: int) -> None:
    """Returns once somebody listens."""
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)


def measured(who: str, what: str, port: int, message: bytes, options: argparse.Namespace, bare: float | None) -> list[Figure]:
    """Latency of one connection and the rate of many."""
    one = ask(port, message, 1, options.seconds)
    rate = len(ask(port, message, options.clients, options.seconds)) / options.seconds
    return [
        Figure(CASE, who, f"{what}, one connection, p50", percentile(one, 0.5) * 1000, "ms"),
        Figure(CASE, who, f"{what}, one connection, p99", percentile(one, 0.99) * 1000, "ms"),
        Figure(CASE, who, f"{what}, {options.clients} connections", rate, "requests/s", rate / bare if bare else None),
    ]


def main(arguments: Sequence[str]) -> int:
    """Measures; 0 when all answered."""
    parser = argparse.ArgumentParser(prog="python -m tests bench small", description="Small requests beside bare handlers")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement (3)")
    parser.add_argument("--clients", type=int, default=32, help="connections of the rates (32)")
    parser.add_argument("--no-save", action="store_true", help="leave results.csv alone")
    options = parser.parse_args(arguments)
    figures: list[Figure] = []
    bare: float | None = None
    select = request("POST", "/sql", "SELECT 1")
    for who, serve in (("bare aiohttp", _serve_aiohttp), ("bare asyncio", _serve_protocol)):
        port = free_port()
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(port,), daemon=True)
        server.start()
        wait_for(port)
        found = measured(who, "SELECT 1", port, select, options, bare)
        bare = bare or found[-1].value
        figures += found
        server.terminate()
        server.join()
    with tempfile.TemporaryDirectory() as folder, running_node(Path(folder) / "lake") as node:
        wire = node.wire()
        wire.send("POST", "/sql", "CREATE TABLE keyed (id BIGINT PRIMARY KEY, name TEXT, value DOUBLE)")
        wire.send("POST", "/sql", f"INSERT INTO keyed SELECT i, 'name ' || i % 97, i * 0.5 FROM generate_series(1, {KEYS}) AS s(i)")
        for what, message in (
            ("SELECT 1", select),
            ("key lookup", request("GET", f"/lookup/keyed/{KEYS // 2}")),
            ("SELECT by key", request("POST", "/sql", f"SELECT * FROM keyed WHERE id = {KEYS // 3}")),
            ("dashboard query again", request("POST", "/sql", DASHBOARD)),
        ):
            figures += measured("lake", what, node.port, message, options, bare)
    rows = [(each.who, each.what, f"{each.value:.3g} {each.unit}", f"{each.ratio:.2f}" if each.ratio else "") for each in figures]
    print(table(["who", "what", "value", "of bare aiohttp"], rows))
    if not options.no_save:
        save(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
