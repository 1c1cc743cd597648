"""The listening socket: connections and their keys, cancel requests, draining. Spec: Doors, Postgres door."""

from __future__ import annotations

import asyncio
import os
from typing import Final

from lake.doors.postgres.connection import Connection
from lake.doors.postgres.wire import Wire
from lake.errors import IoFailure
from lake.net.node import Node
from lake.net.tls import context_of

CONNECTIONS_MAX: Final = 10_000
BACKLOG_MAX: Final = 1_024
WRITE_BYTES_MAX: Final = 1 << 20  # in a socket's buffer before its statement waits


class PostgresDoor:
    """The Postgres door of a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.context = context_of(node.config)
        self._server: asyncio.Server | None = None
        self._connections: dict[int, Connection] = {}
        self._last_pid = 0

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listens; answers the address.

        58030  the address cannot be had
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._accept, host, port, backlog=BACKLOG_MAX)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise IoFailure(f"cannot listen at {host}:{port}: {reason}", hint="choose another --pg") from None
        found = self._server.sockets[0].getsockname()
        return str(found[0]), int(found[1])

    def _accept(self) -> Wire:
        while True:
            self._last_pid = self._last_pid % 0x7FFF_FFFF + 1
            if self._last_pid not in self._connections:
                break
        connection = Connection(self, self._last_pid)
        if len(self._connections) < CONNECTIONS_MAX:
            self._connections[connection.pid] = connection
            return Wire(connection.serve)
        return Wire(connection.serve_too_many)

    def cancel(self, pid: int, secret: int) -> None:
        """Stops the statement of the connection whose key this is; a wrong key is left without an answer."""
        found = self._connections.get(pid)
        if found is not None and found.secret == secret:
            found.stop_statement()

    def forget(self, connection: Connection) -> None:
        """Lets go of a connection that has ended."""
        self._connections.pop(connection.pid, None)

    def drain(self) -> None:
        """Accepts nobody any more and ends connections that wait for their client."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections.values()):
            connection.drain()

    async def stop(self) -> None:
        """Ends what is left."""
        self.drain()
        left = list(self._connections.values())
        for connection in left:
            connection.cancellation.stop()
            connection.abort()
        await asyncio.gather(*(connection.ended() for connection in left), return_exceptions=True)
