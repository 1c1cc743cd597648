"""A prepared query's run of messages is answered at once where its answer is at hand, and as message by message."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lake.config import load
from lake.db.database import Database
from lake.doors.postgres import described
from lake.doors.postgres.burst import answer_at_once
from lake.doors.postgres.messages import encode
from lake.doors.postgres.server import PostgresDoor
from lake.net.node import Node

SYNC = encode("Sync")
EXECUTE = encode("Execute", "", 0)
DESCRIBE = encode("Describe", "P", "")
READY = encode("ReadyForQuery", "I")


class Pipe(asyncio.Transport):
    """A socket whose other end is the test."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def close(self) -> None:
        pass


class Guest:
    """A client of a door in this process."""

    def __init__(self, door: PostgresDoor) -> None:
        self.door = door
        self._wire, self._pipe = door._accept(), Pipe()
        self._wire.connection_made(self._pipe)

    def send(self, data: bytes) -> bytes:
        """What the door writes before it gives the loop a turn."""
        self._pipe.sent = b""
        self._wire.data_received(data)
        return self._pipe.sent

    async def ask(self, data: bytes) -> bytes:
        """What the door answers, up to its ReadyForQuery."""
        self.send(data)
        async with asyncio.timeout(60):
            while self._pipe.sent[-6:-1] != READY[:5]:
                await asyncio.sleep(0)
        return self._pipe.sent

    async def query(self, text: str) -> bytes:
        """The answer to a script."""
        return await self.ask(encode("Query", text))

    async def leave(self) -> None:
        """Says goodbye."""
        self.send(encode("Terminate"))
        await self._wire.ended()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A lake with a table of three rows."""
    database = Database.open(load({}, {"lake": str(tmp_path / "lake")}))
    database.hold()
    database.start("127.0.0.1:1")
    yield database
    database.close()


async def _guest(node: Node) -> Guest:
    guest = Guest(PostgresDoor(node))
    packet = struct.pack("!i", 3 << 16) + b"user\0admin\0\0"
    await guest.ask(struct.pack("!i", len(packet) + 4) + packet)
    return guest


def _run(database: Database, test: Any) -> None:
    async def run() -> None:
        node = Node(database, database.config)
        node.state = "serving"
        guest = await _guest(node)
        await guest.query("CREATE TABLE IF NOT EXISTS t (id BIGINT PRIMARY KEY, name TEXT)")
        await guest.query("INSERT INTO t VALUES (1, 'one'), (2, NULL), (3, 'three')")
        await test(guest, node)
        await guest.leave()

    asyncio.run(run())


def _prepare(name: str, text: str, oids: Sequence[int] = ()) -> bytes:
    return encode("Parse", name, text, oids) + encode("Describe", "S", name) + SYNC


def _burst(
    name: str, *values: bytes | None, formats: Sequence[int] = (), results: Sequence[int] = (), describe: bool = True
) -> bytes:
    bind = encode("Bind", "", name, formats, values, results)
    return bind + (DESCRIBE if describe else b"") + EXECUTE + SYNC


LOOK_UP = "SELECT id, name FROM t WHERE id = $1"
BIG_1, BIG_2, BIG_9 = (struct.pack("!q", number) for number in (1, 2, 9))


@pytest.mark.parametrize(("name", "text", "oids", "bursts"), [
    ("constant", "SELECT 1 AS one, 'x' AS x", (), [_burst("s")]),
    ("no description", "SELECT 1 AS one", (), [_burst("s", describe=False)]),
    ("key in text", LOOK_UP, (), [_burst("s", value) for value in (b"1", b"2", b"9", b"-1", None, b" 3 ")]),
    ("key in binary", LOOK_UP, (20,), [_burst("s", each, formats=[1], results=[1]) for each in (BIG_1, BIG_2, BIG_9, None)]),
    ("several formats", LOOK_UP, (20,), [_burst("s", BIG_1, formats=[1], results=[1, 0])]),
    ("kept answer", "SELECT count(*), min(name) FROM t WHERE id > $1", (20,), [_burst("s", b"0"), _burst("s", b"1")]),
    ("rows", "SELECT id, name FROM t ORDER BY id", (), [_burst("s", results=[1, 0])]),
])  # fmt: skip
def test_a_burst_is_answered_as_its_messages_are(
    database: Database, name: str, text: str, oids: Sequence[int], bursts: list[bytes]
) -> None:
    """Byte for byte, and without a turn of the loop once the answer is known."""

    async def test(guest: Guest, node: Node) -> None:
        other = await _guest(node)
        await guest.ask(_prepare("s", text, oids))
        await other.ask(_prepare("s", text, oids))
        for burst in bursts:
            other.send(burst[:7])  # in two pieces it is no burst
            pieces = await other.ask(burst[7:])
            assert await guest.ask(burst) == pieces
            if burst is bursts[0]:
                await guest.ask(burst)
            if not burst.count(b" 3 ") and b"\xff\xff\xff\xff" not in burst:
                assert guest.send(burst) == pieces, "answered at once"
        await other.leave()

    _run(database, test)


def test_no_byte_of_a_burst_is_taken_for_granted(database: Database) -> None:
    """With any byte another, the messages are answered at once only as they are one by one."""

    async def test(guest: Guest, node: Node) -> None:
        other = await _guest(node)
        burst = _burst("s", BIG_1, formats=[1], results=[1])
        for each in (guest, other):
            await each.ask(_prepare("s", LOOK_UP, (20,)))
            await each.ask(burst)
        client = next(iter(guest.door._connections.values())).client
        known = client.statements["s"]
        for place, value in itertools.product(range(len(burst)), (0, 1, 2, 127, 255)):
            changed = burst[:place] + bytes([value]) + burst[place + 1 :]
            known.is_at_hand, known.bursts = True, 0
            made = answer_at_once(client, changed)
            if made is not None:
                other.send(changed[:7])
                assert made == await other.ask(changed[7:]), f"byte {place} is {value}"
        await other.leave()

    _run(database, test)


def test_what_was_committed_is_seen_at_once(database: Database) -> None:
    """Spec: SQL, Transactions: a statement sees what was acknowledged before it."""

    async def test(guest: Guest, node: Node) -> None:
        await guest.ask(_prepare("s", LOOK_UP))
        await guest.ask(_prepare("c", "SELECT count(*) FROM t"))
        assert b"four" not in await guest.ask(_burst("s", b"4"))
        assert b"\x013" in await guest.ask(_burst("c"))
        await guest.query("INSERT INTO t VALUES (4, 'four')")
        assert b"four" in guest.send(_burst("s", b"4"))
        assert b"\x014" in await guest.ask(_burst("c"))
        await guest.query("DELETE FROM t WHERE id = 4")
        assert b"SELECT 0" in guest.send(_burst("s", b"4"))

    _run(database, test)


def test_a_changed_table_is_told_of(database: Database) -> None:
    """Columns that were described are no others afterwards."""

    async def test(guest: Guest, node: Node) -> None:
        await guest.ask(_prepare("s", "SELECT * FROM t WHERE id = $1"))
        first = await guest.ask(_burst("s", b"1"))
        assert guest.send(_burst("s", b"1")) == first
        await guest.query("ALTER TABLE t ADD COLUMN more INT")
        assert guest.send(_burst("s", b"1")) == b""
        assert b"cached plan must not change result type" in await guest.ask(_burst("s", b"1"))

    _run(database, test)


def test_a_block_reads_its_own_state_and_tells_it(database: Database) -> None:
    """Its own writes and no later commit are seen; it is told that it is in a block, or in one that failed."""

    async def test(guest: Guest, node: Node) -> None:
        other = await _guest(node)
        await guest.ask(_prepare("s", LOOK_UP))
        first = await guest.ask(_burst("s", b"1"))
        await guest.query("BEGIN")
        await guest.ask(_burst("s", b"1"))
        await other.query("UPDATE t SET name = 'later' WHERE id = 1")
        await guest.query("UPDATE t SET name = 'mine' WHERE id = 3")
        assert guest.send(_burst("s", b"1")) == first[:-1] + b"T"
        assert b"mine" in guest.send(_burst("s", b"3"))
        await guest.query("SELECT 1 / 0")
        refused = await guest.ask(_burst("s", b"1"))
        assert b"25P02" in refused
        assert refused.endswith(b"E")
        await guest.query("ROLLBACK")
        assert b"later" in await guest.ask(_burst("s", b"1"))
        await other.leave()

    _run(database, test)


def test_errors_and_settings_go_message_by_message(database: Database) -> None:
    """What is wrong is said, and what was set is obeyed."""

    async def test(guest: Guest, node: Node) -> None:
        await guest.ask(_prepare("s", LOOK_UP))
        await guest.ask(_burst("s", b"1"))
        first = guest.send(_burst("s", b"1"))
        assert first.endswith(READY)
        refused = await guest.ask(_burst("s", b"x"))
        assert b"22P02" in refused
        assert refused.endswith(READY)
        assert b"08P01" in await guest.ask(_burst("s", b"1", b"2"))
        assert b"26000" in await guest.ask(_burst("unknown", b"1"))
        await guest.query("SET application_name = 'other'")
        assert await guest.ask(_burst("s", b"1")) == first
        node.state = "draining"
        assert b"57P01" in await guest.ask(_burst("s", b"1"))

    _run(database, test)


def test_a_description_is_made_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a definition changes, and not for a caller or types of parameters that are others."""
    made = []
    describe = described.describe
    monkeypatch.setattr(described, "describe", lambda *given: made.append(given[0].text) or describe(*given))

    async def test(guest: Guest, node: Node) -> None:
        other = await _guest(node)
        text = "SELECT id + $1 AS n, name FROM t"
        first = await guest.ask(_prepare("s", text))
        assert await other.ask(_prepare("s", text)) == first
        assert made == [text]
        assert await other.ask(_prepare("double", text, (701,))) != first
        assert await guest.ask(_prepare("now", "SELECT now()")) == await guest.ask(_prepare("again", "SELECT now()"))
        assert made == [text, text, "SELECT now()", "SELECT now()"]
        await guest.query("ALTER TABLE t ADD COLUMN more INT")
        assert await other.ask(_prepare("later", text)) == first
        assert made[4:] == [text]
        await other.leave()

    _run(database, test)
