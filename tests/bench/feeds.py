"""Feeds: from a commit's acknowledgement to the line that tells it, for `/watch`, `/live`, and a thousand watchers.

    python -m tests bench feeds [--commits 300] [--watchers 1000]

One process writes a row at a time over HTTP and waits for each acknowledgement; the same process reads the streams. A line
may come before the acknowledgement has been read: that counts as 0. Everything shares the machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.bench import Figure, percentile, save, table
from tests.cluster import Node, running_node

CASE: Final = "feeds"
PAUSE_SECS: Final = 0.005  # between two writes, so that each is a commit that the streams tell alone
LIVE: Final = "SELECT count(*) AS n FROM t"


class _Stream:
    """A stream being read: when each of its lines came."""

    def __init__(self, port: int, path: str) -> None:
        self.port = port
        self.path = path
        self.came: list[float] = []

    async def open(self) -> None:
        """Sends the request and reads the headers."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writer.write(f"GET {self.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head.split(b"\r\n", 1)[0], head

    async def read(self, lines: int) -> None:
        """Reads until so many lines have come; chunk sizes are lines too and are left out."""
        while len(self.came) < lines:
            line = await self.reader.readline()
            if line.startswith(b"{"):
                self.came.append(time.perf_counter())

    def close(self) -> None:
        """Goes away."""
        self.writer.close()


async def _write(node: Node, commits: int) -> list[float]:
    """Writes rows one at a time; when each was acknowledged."""
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    acknowledged = []
    for number in range(commits):
        body = b'{"a": %d, "b": "some text"}\n' % number
        writer.write(b"POST /append/t HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        await reader.readexactly(length)
        acknowledged.append(time.perf_counter())
        await asyncio.sleep(PAUSE_SECS)
    writer.close()
    return acknowledged


async def _measure(node: Node, path: str, commits: int, streams: int, skipped: int) -> list[float]:
    """Milliseconds from acknowledgements to lines, of all streams."""
    opened = [_Stream(node.port, path) for _ in range(streams)]
    for start in range(0, streams, 50):
        await asyncio.gather(*(stream.open() for stream in opened[start : start + 50]))
    await asyncio.gather(*(stream.read(skipped) for stream in opened))
    reading = asyncio.gather(*(stream.read(skipped + commits) for stream in opened))
    acknowledged = await _write(node, commits)
    await reading
    for stream in opened:
        stream.close()
    return [
        max(0.0, came - sent) * 1_000 for stream in opened for sent, came in zip(acknowledged, stream.came[skipped:])
    ]


async def _run(node: Node, commits: int, watchers: int) -> list[Figure]:
    figures = []
    cases = [
        ("watch", "/watch/t", 1, commits, 0),
        ("watch changes=true", "/watch/t?changes=true&marks=false", 1, commits, 0),
        ("live", f"/live?every_ms=0&sql={quote(LIVE)}", 1, commits, 1),
        (f"{watchers} watchers", "/watch/t", watchers, max(20, commits // 10), 0),
    ]
    for name, path, streams, count, skipped in cases:
        found = await _measure(node, path, count, streams, skipped)
        for share in (0.5, 0.95):
            figures.append(Figure(CASE, "lake", f"{name} p{int(share * 100)}", percentile(found, share), "ms"))
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the bench and adds its figures."""
    options = argparse.ArgumentParser("python -m tests bench feeds")
    options.add_argument("--commits", type=int, default=300)
    options.add_argument("--watchers", type=int, default=1_000)
    given = options.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="lake-feeds-") as folder, running_node(Path(folder) / "lake") as node:
        node.sql("CREATE TABLE t (a INT, b TEXT)")
        figures = asyncio.run(_run(node, given.commits, given.watchers))
    print(table(("feed", "ms"), [(figure.what, f"{figure.value:.2f}") for figure in figures]))
    save(figures)
    return 0
