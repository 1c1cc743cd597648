"""Hostile bytes: mutated messages are refused by name or end their own connection, and never the node's."""

from __future__ import annotations

import random
import socket
import struct

import psycopg
import pytest

from lake.doors.postgres.messages import encode
from tests.doors.postgres.conftest import PgNode
from tests.wire.postgres.transcript import Client

TRIES = 2_000
GOOD = [
    encode("Query", "SELECT 1; SELECT 'a', 2"),
    encode("Parse", "s", "SELECT $1::int + 1", [23]) + encode("Bind", "", "s", [1], [b"\x00\x00\x00\x07"], [1])
    + encode("Describe", "P", "") + encode("Execute", "", 0) + encode("Sync"),
    encode("Parse", "", "SELECT * FROM generate_series(1, 5) g(x)", []) + encode("Bind", "p", "", [], [], [0])
    + encode("Execute", "p", 2) + encode("Close", "P", "p") + encode("Flush") + encode("Sync"),
    encode("Query", "COPY (SELECT 1) TO STDOUT"),
    encode("CopyData", b"1\n") + encode("CopyDone") + encode("CopyFail", "no"),
    encode("Query", "BEGIN; DECLARE c CURSOR FOR SELECT 1; FETCH 1 FROM c; ROLLBACK"),
]  # fmt: skip


def _mutated(random_: random.Random) -> bytes:
    made = bytearray(b"".join(random_.choice(GOOD) for _ in range(random_.randint(1, 3))))
    for _ in range(random_.randint(1, 8)):
        place = random_.randrange(len(made))
        match random_.randrange(4):
            case 0:
                made[place] = random_.randrange(256)
            case 1:
                del made[place : place + random_.randint(1, 6)]
            case 2:
                made[place:place] = random_.randbytes(random_.randint(1, 6))
            case _:
                number = random_.choice([-1, 0, 3, 4, 1 << 16, 0x7FFFFFFF, -(1 << 31)])
                made[place : place + 4] = struct.pack("!i", number)
        if not made:
            return b"\x00"
    return bytes(made)


def test_mutated_messages_never_kill_the_node(pg: PgNode) -> None:
    """Two thousand of them, over several connections; the node answers after each hundred."""
    random_ = random.Random(7)
    for number in range(TRIES):
        client = Client(pg.port)
        try:
            client.read_to("ReadyForQuery")
            client.socket.sendall(_mutated(random_))
            client.socket.shutdown(socket.SHUT_WR)
            client.socket.settimeout(5)
            while client.socket.recv(65_536):
                pass
        except (ConnectionError, TimeoutError):
            pass
        finally:
            client.close()
        if number % 100 == 99:
            with psycopg.connect(pg.dsn()) as db:
                assert db.execute("SELECT 1").fetchone() == (1,)
    assert pg.node.process.poll() is None
    assert "internal error" not in pg.node.output(), pg.node.output()[-3000:]


@pytest.mark.parametrize(
    "packet",
    [b"GET / HTTP/1.1\r\n\r\n", struct.pack("!ii", 8, 0), struct.pack("!ii", 4, 3 << 16),
     struct.pack("!ii", 9, 3 << 16) + b"x",
     struct.pack("!ii", 8, 2 << 16), struct.pack("!iiii", 16, 80_877_102, 1, 2), struct.pack("!ii", 0x7FFFFFFF, 3 << 16)],
)  # fmt: skip
def test_what_is_no_startup_ends_the_connection(pg: PgNode, packet: bytes) -> None:
    """An answer or none, then the end."""
    with socket.create_connection(("127.0.0.1", pg.port), 10) as raw:
        raw.sendall(packet)
        answer = b""
        while part := raw.recv(4_096):
            answer += part
    assert answer == b"" or answer[:1] == b"E"


def test_encryption_is_declined(pg: PgNode) -> None:
    """SSLRequest and GSSENCRequest are answered N, and startup goes on."""
    with socket.create_connection(("127.0.0.1", pg.port), 10) as raw:
        for code in (80_877_103, 80_877_104):
            raw.sendall(struct.pack("!ii", 8, code))
            assert raw.recv(1) == b"N"


def test_an_unknown_message_is_08p01(pg: PgNode) -> None:
    """The connection stays where the length could be read."""
    client = Client(pg.port)
    client.read_to("ReadyForQuery")
    client.socket.sendall(b"~" + struct.pack("!i", 4) + encode("Sync"))
    found = client.read_to("ReadyForQuery")
    assert [name for name, _ in found] == ["ErrorResponse", "ReadyForQuery"]
    assert found[0][1]["fields"]["C"] == "08P01"
    client.close()
