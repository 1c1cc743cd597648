"""COPY as a conversation: lines from the client into a table, rows of a query to the client as lines.

Lines come while earlier ones are written; a queue of a few blocks holds back a client that sends faster.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from lake.db.prepared import prepare
from lake.db.write.copy import copy_columns, copy_rows
from lake.db.write.incoming import Incoming
from lake.doors.postgres.copy import Copy, copy_lines, header_line
from lake.doors.postgres.copy_binary import END, HEAD, Tuples, with_head
from lake.doors.postgres.copy_text import Lines
from lake.doors.postgres.messages import encode
from lake.doors.postgres.portals import SLICE_ROWS, Running
from lake.doors.postgres.rows import BINARY_FORMAT, data_rows
from lake.errors import LakeError, ProtocolViolation, QueryCanceled
from lake.sql.catalog import Settings
from lake.storage.catalog.model import Table

if TYPE_CHECKING:
    from lake.doors.postgres.connection import Connection

BLOCK_BYTES: Final = 4 << 20  # of what is received that becomes one batch of columns
BLOCKS_WAITING: Final = 4
WAIT_SECS: Final = 0.25  # between two looks whether the writing has ended meanwhile


class _Incoming:
    """Blocks between the coroutine that receives them and the thread that writes them."""

    def __init__(self, copy: Copy, table: Table, names: tuple[str, ...]) -> None:
        self._copy = copy
        self._table = table
        self._names = names
        self._waiting: queue.Queue[bytes | LakeError | None] = queue.Queue(BLOCKS_WAITING)
        self.is_ended = False

    def put(self, block: bytes | LakeError | None) -> None:
        """Adds a block, None for the end, or what ends it badly; waits while too many wait. Blocks."""
        while not self.is_ended:
            try:
                self._waiting.put(block, timeout=WAIT_SECS)
                return
            except queue.Full:
                continue

    def columns(self, settings: Settings) -> Iterator[Incoming]:
        """The blocks as columns of the table."""
        return self._tuples() if self._copy.binary else self._lines(settings)

    def _blocks(self) -> Iterator[bytes]:
        while (block := self._waiting.get()) is not None:
            if isinstance(block, LakeError):
                raise block
            yield block

    def _tuples(self) -> Iterator[Incoming]:
        columns = {column.name: column.type for column in self._table.columns}
        tuples = Tuples(self._names, [columns[name] for name in self._names])
        for block in self._blocks():
            made = tuples.columns(block)
            if made is not None:
                yield made
        tuples.finish()

    def _lines(self, settings: Settings) -> Iterator[Incoming]:
        lines = Lines(self._copy, self._table, self._names, settings)
        for block in self._blocks():
            made = lines.columns(block)
            if made is not None:
                yield made
        made = lines.columns(b"", is_last=True)
        if made is not None:
            yield made


async def copy_in(connection: Connection, copy: Copy) -> None:
    """COPY FROM STDIN: the rows in one commit, whole or not at all.

    22P04, 22P02  lines or values that are none; nothing is written      57014  the client gave up
    """
    session, wire = connection.client.session, connection.wire
    table, names = await connection.work(
        lambda: copy_columns(session, _parts(copy.source), tuple(_part(name) for name in copy.columns))
    )
    wire.send(encode("CopyInResponse", int(copy.binary), [int(copy.binary)] * len(names)))
    await wire.flush()
    incoming = _Incoming(copy, table, names)

    def write() -> int:
        try:
            return copy_rows(session, table, incoming.columns(session.statement_settings()))
        finally:
            incoming.is_ended = True

    writing = asyncio.ensure_future(connection.node.call(write))
    try:
        await _receive(connection, incoming)
        rows = await writing
    except BaseException as error:
        if not writing.done():
            incoming.is_ended = False
            ending = error if isinstance(error, LakeError) else QueryCanceled("COPY ended: its client went away")
            await connection.node.call(lambda: incoming.put(ending))
            await asyncio.wait([writing])
        if writing.done() and not writing.cancelled():
            writing.exception()
        raise
    wire.send(encode("CommandComplete", f"COPY {rows}"))


async def _receive(connection: Connection, incoming: _Incoming) -> None:
    """Passes on what the client sends until it says that it is done. Refused rows show when it has."""
    parts: list[bytes] = []
    size = 0
    failure: LakeError | None = None
    while True:
        name, fields = await connection.wire.message()
        match name:
            case "CopyData":
                parts.append(fields["body"])
                size += len(fields["body"])
                if size >= BLOCK_BYTES:
                    block, parts, size = b"".join(parts), [], 0
                    if not incoming.is_ended:
                        await connection.node.call(lambda block=block: incoming.put(block))  # type: ignore[misc]
            case "CopyDone":
                break
            case "CopyFail":
                raise QueryCanceled(f"COPY from stdin failed: {fields['reason']}")
            case "Flush" | "Sync":
                continue
            case _:
                failure = ProtocolViolation(f"unexpected message {name} during COPY from stdin")
                raise failure
        if connection.cancellation.is_stopped:
            connection.cancellation.check()
    if not incoming.is_ended:
        if parts:
            await connection.node.call(lambda: incoming.put(b"".join(parts)))
        await connection.node.call(lambda: incoming.put(None))


def _parts(source: str) -> tuple[str, ...]:
    """The parts of a table's name."""
    parts, word, quoted = [], "", False
    for char in source:
        if char == '"':
            quoted = not quoted
        if char == "." and not quoted:
            parts.append(word)
            word = ""
        else:
            word += char
    return tuple(_part(item.strip()) for item in (*parts, word))


def _part(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


async def copy_out(connection: Connection, copy: Copy) -> None:
    """COPY TO STDOUT: a CopyData message for each row."""
    session, wire = connection.client.session, connection.wire
    running = await connection.work(
        lambda: Running.start(prepare(copy.query), session, (), connection.cancellation)
    )
    zone = session.settings["timezone"].value

    def lines() -> bytes:
        batch = running.batch(SLICE_ROWS)
        if batch is None:
            return b""
        if copy.binary:
            return data_rows(batch, running.types, [BINARY_FORMAT] * len(running.types), zone, "d")
        return copy_lines(copy, batch, running.types, zone)

    try:
        wire.send(encode("CopyOutResponse", int(copy.binary), [int(copy.binary)] * len(running.types)))
        if copy.header:
            wire.send(header_line(copy, running.result.names))
        head = HEAD if copy.binary else b""
        while not running.is_finished:
            rows = await connection.work(lines)
            if head and rows:
                rows, head = with_head(rows), b""
            await wire.send_rows(rows)
    except BaseException:
        connection.node.background(running.close)
        raise
    if copy.binary:
        wire.send(encode("CopyData out", head + END))
    wire.send(encode("CopyDone out"))
    wire.send(encode("CommandComplete", f"COPY {running.sent}"))
