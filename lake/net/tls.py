"""TLS on the doors' own ports: a connection says by its first byte whether it is encrypted.

    first byte 22 (a handshake)      TLS
    any other                        plain: taken from this machine, and from others where LAKE_TLS=optional

Spec: HTTP, TLS. Source: RFC 8446, 5.1 (record types).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

from lake import log
from lake.config import Config
from lake.errors import InvalidParameter

HANDSHAKE: Final = 22
FIRST_BYTE_SECS: Final = 10.0  # a client that says nothing for so long is let go of
WAITING_MAX: Final = 1_024  # connections that have said nothing yet
PLAIN_REFUSED: Final = "this node takes plain connections from its own machine only: use TLS"
_ANSWER: Final = (
    f"HTTP/1.1 426 Upgrade Required\r\nUpgrade: TLS/1.2\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    f"Content-Length: {len(PLAIN_REFUSED)}\r\n\r\n{PLAIN_REFUSED}"
).encode()


def context_of(config: Config) -> ssl.SSLContext | None:
    """The certificate and key that the doors show; None where none are set.

    22023  one without the other, or files that are no certificate and its key
    """
    if not config.tls_cert and not config.tls_key:
        return None
    if not config.tls_cert or not config.tls_key:
        raise InvalidParameter("--tls-cert and --tls-key go together")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.tls_cert, config.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidParameter(f"--tls-cert and --tls-key are no certificate and its key: {error}") from None
    return context


def takes_plain(config: Config, context: ssl.SSLContext | None, peer: str, own: str) -> bool:
    """Whether a connection without TLS is taken; ``peer`` and ``own`` are the addresses of its two ends."""
    return context is None or config.tls == "optional" or is_own_machine(peer, own)


def is_own_machine(peer: str, own: str) -> bool:
    """Whether the other end of a connection is on this machine.

    >>> is_own_machine("127.0.0.1", "127.0.0.1"), is_own_machine("10.0.0.7", "10.0.0.1")
    (True, False)
    """
    try:
        return ipaddress.ip_address(peer.split("%")[0]).is_loopback or peer == own
    except ValueError:
        return False


class TlsListener:
    """A listening socket whose connections are encrypted or not, and go to protocols that ``make`` makes."""

    def __init__(self, config: Config, context: ssl.SSLContext, make: Callable[[], asyncio.BaseProtocol]) -> None:
        self._config = config
        self._context = context
        self._make = make
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._waiting: set[asyncio.Task[None]] = set()

    def start(self, host: str, port: int, backlog: int) -> int:
        """Listens; answers the port.

        OSError  the address cannot be had
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setblocking(False)
        self._socket.bind((host, port))
        self._socket.listen(backlog)
        self._accepting = asyncio.ensure_future(self._accept(self._socket))
        return int(self._socket.getsockname()[1])

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(listening)
            except OSError as error:
                log.warn("a connection could not be accepted", error=error)
                await asyncio.sleep(0.1)
                continue
            if len(self._waiting) >= WAITING_MAX:
                connection.close()
                continue
            task = asyncio.ensure_future(self._admit(connection, peer))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _admit(self, connection: socket.socket, peer: Any) -> None:
        loop = asyncio.get_running_loop()
        taken = False
        try:
            first = await asyncio.wait_for(_first_byte(connection), FIRST_BYTE_SECS)
            if first == HANDSHAKE:
                taken = True
                await loop.connect_accepted_socket(
                    self._make, connection, ssl=self._context, ssl_handshake_timeout=FIRST_BYTE_SECS
                )
            elif first is not None and takes_plain(
                self._config, self._context, str(peer[0]), str(connection.getsockname()[0])
            ):
                taken = True
                await loop.connect_accepted_socket(self._make, connection)
            elif first is not None:
                await asyncio.wait_for(loop.sock_sendall(connection, _ANSWER), FIRST_BYTE_SECS)
        except (OSError, TimeoutError, ssl.SSLError):
            pass  # a client that went away, or whose handshake failed: it was told
        finally:
            if not taken:
                connection.close()

    async def stop(self) -> None:
        """Accepts nobody any more."""
        tasks = [*self._waiting, *([self._accepting] if self._accepting is not None else [])]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._socket is not None:
            self._socket.close()


async def _first_byte(connection: socket.socket) -> int | None:
    """The first byte that comes, left where it is; None where the client ends the connection."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            found = connection.recv(1, socket.MSG_PEEK)
            return found[0] if found else None
        except BlockingIOError:
            arrived: asyncio.Future[None] = loop.create_future()
            loop.add_reader(connection, _settle, arrived)
            try:
                await arrived
            finally:
                loop.remove_reader(connection)


def _settle(arrived: asyncio.Future[None]) -> None:
    if not arrived.done():
        arrived.set_result(None)
