"""Starting, serving, draining: from a configuration to a node that answers, and back.

    starting   the lake is opened, led and announced; kernels are made ready; /healthz answers, /ready says 503;
               a stop signal ends it at once
    serving    /ready answers 200
    leaving    a stop signal came: /ready says 503, so that nobody new is sent here; requests are taken as before,
               for ``drain_grace_secs``
    draining   new requests get 503, running ones ``drain_secs`` to end; a second signal ends at once

Spec: HTTP, Node readiness.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, Protocol

from lake import log
from lake.config import Config
from lake.db import import_all
from lake.db.database import Database
from lake.errors import InvalidParameter, IoFailure
from lake.exec.kernels.warming import has_compiled, warm
from lake.metrics import ROLE
from lake.net.node import Node
from lake.net.owner import leave_owner_key
from lake.net.tls import TlsListener, context_of

try:
    import uvloop
except ImportError:  # no wheel for this machine
    uvloop = None  # type: ignore[assignment]

BACKLOG_MAX: Final = 1_024  # connections that wait to be accepted
LEAVE_SECS: Final = 5.0  # a statement that was stopped looks at that between two batches
COLLECTED_AFTER: Final = 20_000  # objects that a node makes before Python looks for cycles
COMPILING_SECS: Final = 1.5  # reading compiled kernels from the cache takes less
WELCOME: Final = """\
lake {name} is served at {scheme}://{address}
  try   curl -d "SELECT 'hello' AS greeting" "{scheme}://{address}/sql?format=table"
        lake {path}          the shell, in another terminal
  stop  control-C"""


class Runner(Protocol):
    """The HTTP door."""

    async def setup(self) -> None:
        """Makes it ready to take connections."""

    def connection(self) -> asyncio.Protocol:
        """What answers a connection that was accepted."""

    async def cleanup(self) -> None:
        """Ends its connections."""


class Door(Protocol):
    """A door beside HTTP, with a socket of its own."""

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listens; answers the address."""

    def drain(self) -> None:
        """Accepts nobody any more; what runs goes on."""

    async def stop(self) -> None:
        """Ends what is left."""


def run(serving: Coroutine[Any, Any, None]) -> None:
    """Runs ``serve`` to its end, on uvloop where it is installed and on asyncio's own loop elsewhere."""
    make = None if uvloop is None else uvloop.new_event_loop
    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(serving)


async def serve(
    config: Config,
    make_http: Callable[[Node], Runner],
    say: Callable[[str], None],
    make_pg: Callable[[Node], Door] | None = None,
) -> None:
    """Serves a lake until a signal, or the end of standard input, says stop.

    say      prints what a person who started the node wants to read
    make_pg  the Postgres door, opened where --pg says
    """
    host, port = _place(config.addr)
    context_of(config)  # says what is wrong with certificates before anything is opened
    database = await asyncio.to_thread(Database.open, config)
    database.hold()
    node = Node(database, config)
    owner: Path | None = None
    expiring: asyncio.Task[None] | None = None
    stopping = asyncio.Event()
    _listen_for_signals(stopping, node)
    if config.stop_with_stdin:
        arguments = (asyncio.get_running_loop(), stopping)
        threading.Thread(target=_wait_for_stdin, args=arguments, name="stdin", daemon=True).start()
    http = make_http(node)
    await http.setup()
    listening: asyncio.Server | TlsListener | None = None
    pg = make_pg(node) if make_pg is not None and config.pg is not None else None
    try:
        listening, port = await _listen(config, http.connection, host, port)
        address = _address_of(host, port)
        node.address = address
        await asyncio.to_thread(import_all)
        await asyncio.to_thread(_warm_kernels, say, config.cores)
        await asyncio.to_thread(database.start, address)
        owner = await asyncio.to_thread(leave_owner_key, config, address)
        if pg is not None:
            assert config.pg is not None
            say("Postgres clients: {}:{}".format(*await pg.start(*_place(config.pg, "--pg"))))
        expiring = asyncio.create_task(node.expire())
        look_for_cycles_seldom()
        node.state = "serving"
        ROLE.set(1, role="leader")
        scheme = "https" if isinstance(listening, TlsListener) else "http"
        say(WELCOME.format(name=database.name, scheme=scheme, address=address, path=config.lake))
        await stopping.wait()
        say("stopping: running requests may finish; a second signal stops at once")
        node.state = "leaving"
        await asyncio.sleep(config.drain_grace_secs)
        if pg is not None:
            pg.drain()
        await node.drain()
    finally:
        if expiring is not None:
            expiring.cancel()
        if pg is not None:
            await pg.stop()
        if isinstance(listening, TlsListener):
            await listening.stop()
        elif listening is not None:
            listening.close()
        await http.cleanup()
        await asyncio.to_thread(node.close)
        if owner is not None:
            owner.unlink(missing_ok=True)
        await _leave(node)


def look_for_cycles_seldom() -> None:
    """What is there when a node is ready stays, and is not looked through any more, which takes a tenth of a second."""
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)


async def _listen(
    config: Config, make: Callable[[], asyncio.Protocol], host: str, port: int
) -> tuple[asyncio.Server | TlsListener, int]:
    """What accepts connections, encrypted where there is a certificate, and its port.

    58030  the address cannot be had
    """
    context = context_of(config)
    try:
        if context is not None:
            listener = TlsListener(config, context, make)
            return listener, listener.start(host, port, BACKLOG_MAX)
        server = await asyncio.get_running_loop().create_server(make, host, port, backlog=BACKLOG_MAX)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise IoFailure(f"cannot listen at {config.addr}: {reason}", hint="choose another --addr") from None
    return server, int(server.sockets[0].getsockname()[1])


async def _leave(node: Node) -> None:
    """Returns once no statement runs; ends the process where one does not stop."""
    until = time.monotonic() + LEAVE_SECS
    while node.running:
        if time.monotonic() > until:
            log.warn("statements did not stop", running=node.running)
            os._exit(1)
        await asyncio.sleep(0.02)


def _warm_kernels(say: Callable[[str], None], cores: int) -> None:
    """Makes the engine's kernels ready; says how far it is where they must be compiled, which happens once a machine."""
    started = time.monotonic()

    def progress(done: int, count: int) -> None:
        if has_compiled() and time.monotonic() - started > COMPILING_SECS:
            say(f"compiling the engine for this machine, once: {done} of {count}")

    warm(progress, processes=cores)


def _place(addr: str, flag: str = "--addr") -> tuple[str, int]:
    """Host and port of an address flag; a port alone is one of this machine.

    22023  not an address
    """
    host, _, port = addr.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise InvalidParameter(f"{flag} is HOST:PORT, not {addr!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def _address_of(host: str, port: int) -> str:
    """The address as clients reach it; port 0 has become a real one."""
    return f"{'127.0.0.1' if host in ('0.0.0.0', '::', '') else host}:{port}"


def _listen_for_signals(stopping: asyncio.Event, node: Node) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopping.is_set():
            # What was acknowledged is durable; whatever runs is not waited for.
            log.warn("stopped at once by a second signal")
            os._exit(1)
        if node.state == "starting":
            # Nothing was acknowledged, and kernels that are being compiled cannot be told to stop.
            log.warn("stopped while it was starting")
            os._exit(0)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)


def _wait_for_stdin(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    with contextlib.suppress(OSError, ValueError):
        while sys.stdin.buffer.read(4_096):
            pass
    loop.call_soon_threadsafe(stopping.set)
