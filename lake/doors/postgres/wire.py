"""A socket's two directions: messages in, in order; bytes out, at the pace the reader takes them.

A client that sends faster than it is served is not read any further; one that reads slowly holds its own statement only.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from lake.doors.postgres.frames import Frames, Startup
from lake.errors import ProtocolViolation

WAITING_BYTES_MAX: Final = 4 << 20  # received and not taken; then the socket is not read
HANDSHAKE_SECS: Final = 10.0
OUT_BYTES: Final = 64 << 10  # gathered before they are written


class Gone(Exception):
    """The client has closed its connection."""


class Wire(asyncio.Protocol):
    """One socket; ``serve`` is the coroutine that lives as long as it."""

    def __init__(self, serve: Callable[[Wire], Awaitable[None]]) -> None:
        self.frames = Frames()
        self.on_gone: Callable[[], None] | None = None
        self.at_once: Callable[[bytes], bytes | None] | None = None  # answers what needs no task, while nothing else waits
        self._serve = serve
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Future[None] | None = None
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_paused = False
        self._is_gone = False
        self._out: list[bytes] = []
        self._out_bytes = 0

    # --- asyncio.Protocol --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._task = asyncio.ensure_future(self._serve(self))

    def data_received(self, data: bytes) -> None:
        if self.at_once is not None and not self.frames.waiting and not self._out and self._writable.is_set():
            answer = self.at_once(data)
            if answer is not None:
                assert self._transport is not None
                self._transport.write(answer)
                return
        self.frames.feed(data)
        self._arrived.set()
        if self.frames.waiting > WAITING_BYTES_MAX and not self._is_paused and self.frames.is_whole:
            assert self._transport is not None
            self._transport.pause_reading()
            self._is_paused = True

    def eof_received(self) -> bool:
        self._leave()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _leave(self) -> None:
        if not self._is_gone:
            self._is_gone = True
            self._arrived.set()
            self._writable.set()
            if self.on_gone is not None:
                self.on_gone()

    @property
    def is_encrypted(self) -> bool:
        """Whether what goes over the socket is encrypted."""
        return self._transport is not None and self._transport.get_extra_info("ssl_object") is not None

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Agrees to encryption and goes on encrypted.

        08P01  the client has sent more than its request, which nobody could trust
        """
        if self.frames.waiting:
            raise ProtocolViolation("received unencrypted data after SSL request")
        transport = self._transport
        assert transport is not None
        transport.write(b"S")
        loop = asyncio.get_running_loop()
        try:
            made = await loop.start_tls(transport, self, context, server_side=True, ssl_handshake_timeout=HANDSHAKE_SECS)
        except (OSError, ssl.SSLError):
            raise Gone from None
        self._transport = cast(asyncio.Transport, made)

    @property
    def own_address(self) -> str:
        """This end's address."""
        found = self._transport.get_extra_info("sockname") if self._transport is not None else None
        return str(found[0]) if isinstance(found, tuple) and found else ""

    @property
    def address(self) -> str:
        """The client's address."""
        found = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(found[0]) if isinstance(found, tuple) and found else ""

    # --- for the one who serves --------------------------------------------------------------------------------------

    async def startup(self) -> Startup:
        """The first packet."""
        while (found := self.frames.next_startup()) is None:
            await self.more()
        return found

    async def message(self) -> tuple[str, dict[str, Any]]:
        """The next message; what was written goes out before waiting for it.

        08P01  what is no message
        """
        while (found := self.frames.next()) is None:
            await self.flush()
            await self.more()
        return found

    async def more(self) -> None:
        """Returns when more bytes have come."""
        if self._is_gone:
            raise Gone
        self._arrived.clear()
        if self._is_paused and self._transport is not None:
            self._transport.resume_reading()
            self._is_paused = False
        await self._arrived.wait()

    def send(self, message: bytes) -> None:
        """Adds to what goes out."""
        self._out.append(message)
        self._out_bytes += len(message)

    async def send_rows(self, messages: bytes) -> None:
        """Adds rows to what goes out, and waits while the reader is behind."""
        self.send(messages)
        if self._out_bytes >= OUT_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Hands what goes out to the socket and waits while its buffer is full."""
        if self._is_gone:
            raise Gone
        if self._out and self._transport is not None:
            self._transport.write(self._out[0] if len(self._out) == 1 else b"".join(self._out))
            self._out, self._out_bytes = [], 0
        if not self._writable.is_set():
            await self._writable.wait()
            if self._is_gone:
                raise Gone

    def close(self) -> None:
        """Ends the connection once what was written has gone out."""
        if self._transport is not None:
            if self._out:
                self._transport.write(b"".join(self._out))
                self._out, self._out_bytes = [], 0
            self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def ended(self) -> None:
        """Returns when the one who serves has."""
        if self._task is not None:
            await asyncio.wait([self._task])
