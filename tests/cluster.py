"""Nodes as processes, on ports of their own: `lake serve` as a user runs it.

    with running_node(folder) as node:
        node.sql("SELECT 1 AS one")          [{"one": 1}]
        node.kill()                          SIGKILL, as a machine that stops would
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
READY_SECS: Final = 300.0  # the first node of a machine compiles the kernels
STOP_SECS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Wire:
    """One kept-alive connection; not for several threads."""

    def __init__(self, port: int, timeout: float = 600.0) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def send(self, method: str, path: str, body: bytes | str = b"", **headers: str) -> Reply:
        """The answer to one request; header names are written with ``_`` for ``-``."""
        data = body.encode() if isinstance(body, str) else body
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, data, named)
        answer = self._connection.getresponse()
        return Reply(answer.status, dict(answer.getheaders()), answer.read())

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


class Node:
    """A node in a process of its own."""

    def __init__(
        self, folder: Path, *flags: str, environ: Mapping[str, str] | None = None, at: Path = ROOT
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self.started = time.monotonic()
        self.wait_secs = 0.0
        self._log = (at / folder.parent / f"{folder.name}.{self.port}.log").open("wb")
        place = str(folder) if folder.is_absolute() else f"./{folder}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lake", "serve", place, "--addr", f"127.0.0.1:{self.port}", *flags],
            cwd=at, env={**os.environ, **(environ or {})}, stdout=self._log, stderr=subprocess.STDOUT,
        )

    @property
    def url(self) -> str:
        """The node's address."""
        return f"http://127.0.0.1:{self.port}"

    def wire(self) -> Wire:
        """A connection to the node."""
        return Wire(self.port)

    def wait(self) -> None:
        """Returns when GET /ready answers 200; ``wait_secs`` are then the seconds from the process's start.

        RuntimeError  the process ended, or was not ready in READY_SECS; with its output
        """
        while True:
            try:
                wire = Wire(self.port, timeout=5)
                status = wire.send("GET", "/ready").status
                wire.close()
                if status == 200:
                    self.wait_secs = time.monotonic() - self.started
                    return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() - self.started > READY_SECS:
                raise RuntimeError(f"the node was not ready:\n{self.output()}")
            time.sleep(0.005)

    def output(self) -> str:
        """What the node has printed."""
        return Path(self._log.name).read_text(errors="replace")

    def sql(self, text: str) -> Any:
        """The JSON answer of a statement; a RuntimeError where it fails."""
        wire = self.wire()
        try:
            reply = wire.send("POST", "/sql", text)
        finally:
            wire.close()
        if reply.status != 200:
            raise RuntimeError(f"{text}\n{reply.status} {reply.body.decode(errors='replace')}\n{self.output()}")
        return reply.json()

    def stop(self) -> None:
        """SIGTERM, and waits: the node hands over what it leads."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise RuntimeError(f"the node did not stop in {STOP_SECS} s:\n{self.output()}") from None
        self._log.close()

    def kill(self) -> None:
        """SIGKILL: nothing is handed over."""
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_node(
    folder: Path, *flags: str, environ: Mapping[str, str] | None = None, at: Path = ROOT
) -> Iterator[Node]:
    """A node of the source at ``at`` that is ready, and stops at the end."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    node = Node(folder, *flags, environ=environ, at=at)
    try:
        node.wait()
        yield node
    finally:
        node.stop()
