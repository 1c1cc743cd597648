"""The messages by which a driver runs a prepared query again, answered as one while its answer is at hand.

    B "" name, formats, values, results | D "" | E "" | S     ->     2 | T | D .. | C | Z

Taking messages apart and waking up whoever answers them costs more than finding a row in memory. Here the bytes around the
values are compared with those of the time before, and the answer goes out from where the messages came in. Whatever is not
exactly of this form, or takes more than a look into memory, goes message by message, which also says what is wrong.
Source: PostgreSQL documentation, 55.2.3 (Extended Query).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from lake.db.prepared import Prepared, recall
from lake.doors.postgres.described import definitions_of
from lake.doors.postgres.few import Encode, encoders_of, rows_at_hand
from lake.doors.postgres.frames import Frames
from lake.doors.postgres.messages import encode
from lake.doors.postgres.parameters import decode_parameter
from lake.doors.postgres.portals import Portal, description_of
from lake.doors.postgres.rows import row_description
from lake.doors.postgres.session import READY

if TYPE_CHECKING:
    from lake.db.result import Result
    from lake.doors.postgres.session import Client, Statement

BURST_BYTES_MAX: Final = 4 << 10
FORMS_MAX: Final = 8  # of one statement; a client that changes it each time gains nothing here
BIND_COMPLETE: Final = encode("BindComplete")
_NAME_AT: Final = 6  # behind the tag, the size and the empty name of the portal
_SIZE: Final = struct.Struct("!i")


class Burst:
    """The form of a client's messages around the values of one prepared query."""

    def __init__(
        self, statement: Statement, head: bytes, formats: list[int], results: list[int], describes: bool, tail: bytes
    ) -> None:
        self.head = head
        self._statement = statement
        self._formats = formats
        self._results = results
        self._describes = describes
        self._tail = tail
        self._tail_in_bind = 2 + 2 * len(results)
        self._definitions = -1
        self._lead = b""
        self._columns: tuple[int, ...] = ()
        self._encoders: list[Encode | None] = []

    def values(self, data: bytes, at: int) -> list[bytes | None] | None:
        """The values of a Bind that begin at ``at``; None where what follows them is not as before."""
        found: list[bytes | None] = []
        for _ in self._formats:
            (size,) = _SIZE.unpack_from(data, at)
            at += 4
            if size < 0:
                found.append(None)
                if size != -1:
                    return None
                continue
            found.append(data[at : at + size])
            at += size
        is_same = data[at:] == self._tail and _SIZE.unpack_from(data, 1)[0] == at - 1 + self._tail_in_bind
        return found if is_same else None

    def answer(self, client: Client, values: list[bytes | None]) -> bytes | None:
        """All that is sent back; None where the answer is not at hand."""
        statement, session = self._statement, client.session
        definitions = definitions_of(client)
        if statement.told is not None and statement.definitions != definitions:
            return None
        arguments = [
            decode_parameter(value, statement.oid(number), format)
            for number, (value, format) in enumerate(zip(values, self._formats, strict=True), 1)
        ]
        assert isinstance(statement.source, Prepared)
        found = recall(statement.source, session, arguments)
        if found is None:
            return None
        if definitions != self._definitions:
            self._describe(found)
            self._definitions = definitions
        rows, count = rows_at_hand(found, self._columns, session.settings.texts["timezone"], self._encoders)
        return b"".join((self._lead, rows, _selected(count), READY[client.status]))

    def _describe(self, found: Result) -> None:
        """Notes what comes before the rows as long as no definition changes."""
        shape = Portal(self._statement.source, (), tuple(self._results)).formats_for(len(found.types))
        self._columns, self._encoders = tuple(shape), encoders_of(found.types, shape)
        described = row_description(description_of(found), self._columns) if self._describes else b""
        self._lead = BIND_COMPLETE + described


def answer_at_once(client: Client, data: bytes) -> bytes | None:
    """The answer to ``data`` where that is a query's whole burst and what it asks for is at hand; None otherwise."""
    if data[:1] != b"B" or data[5:6] != b"\0" or len(data) > BURST_BYTES_MAX:
        return None
    end = data.find(b"\0", _NAME_AT) + 1
    statement = client.statements.get(data[_NAME_AT : end - 1].decode("utf-8", "replace"))
    if statement is None or not statement.is_at_hand or client.told_of is not client.session.settings.texts:
        return None
    made = None
    try:
        burst = statement.burst
        if burst is None or not data.startswith(burst.head, end):
            burst = statement.burst = _burst_of(statement, data, end)
        values = None if burst is None else burst.values(data, end + len(burst.head))
        if burst is not None and values is not None:
            made = burst.answer(client, values)
    except Exception:  # whatever is wrong is wrong message by message too, and said there
        pass
    statement.is_at_hand = made is not None
    return made


def _burst_of(statement: Statement, data: bytes, end: int) -> Burst | None:
    """The form of the messages in ``data``, whose first names its statement up to ``end``; None where it is another."""
    if statement.bursts == FORMS_MAX or not isinstance(statement.source, Prepared):
        return None
    statement.bursts += 1
    frames = Frames()
    frames.feed(data)
    found = []
    while (message := frames.next()) is not None:
        found.append(message)
    names = [name for name, _ in found]
    if names not in (["Bind", "Execute", "Sync"], ["Bind", "Describe", "Execute", "Sync"]) or frames.waiting:
        return None
    bind, *described, execute, _ = (fields for _, fields in found)
    is_plain = execute == {"portal": "", "rows": 0} and all(each == {"kind": "P", "name": ""} for each in described)
    if not is_plain or len(bind["values"]) != statement.source.parameters:
        return None
    count, formats = len(bind["values"]), bind["formats"]
    if len(formats) not in (0, 1, count):
        return None
    head = data[end : end + 4 + 2 * len(formats)]
    tail_in_bind = 2 + 2 * len(bind["results"])
    (size,) = _SIZE.unpack_from(data, 1)
    tail = data[1 + size - tail_in_bind :]
    each = formats if len(formats) == count else (formats or [0]) * count
    return Burst(statement, head, each, bind["results"], bool(described), tail)


@lru_cache(64)
def _selected(count: int) -> bytes:
    return encode("CommandComplete", f"SELECT {count}")
