"""Answers from where the bytes come in are those of the ordinary way; everything else is aiohttp's, byte by byte.

The oracle is the same door without a Front before its connections: both get the same bytes, cut in the same places.
"""

from __future__ import annotations

import asyncio
import base64
import random
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from lake.config import load
from lake.db import import_all
from lake.db.database import Database
from lake.db.recorder import Entry
from lake.db.session import Session
from lake.doors.http import front
from lake.doors.http.front import Front, Runner
from lake.metrics import HTTP_REQUESTS
from lake.net.node import Node

LAST: Final = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
PAUSE: Final = 0.01  # between two looks
SAME_TIMES: Final = 20  # looks, a PAUSE apart, that find two replies the same before nothing more is expected
ENDS_SECS: Final = 20.0
TRIES: Final = 4


class Relayed:
    """aiohttp's protocol of a connection."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Spied(Relayed):
    """The same behind a Front, and how many bytes it was given."""

    taken = 0

    def data_received(self, data: bytes) -> None:
        Spied.taken += len(data)
        self._inner.data_received(data)


class Reply:
    """What came back so far."""

    data = b""

    async def collect(self, reader: asyncio.StreamReader) -> None:
        """Takes in what comes, to the connection's end; what came before it was cut stays."""
        with suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                self.data += piece

    @property
    def comparable(self) -> bytes:
        """Without the time of day, and the addresses of objects in what aiohttp's parser says."""
        return re.sub(rb"Date: [^\r]*|0x[0-9a-f]{8,}", b"-", self.data)


class Door:
    """A node, served at one port with a Front before each connection and at another without."""

    def __init__(self, node: Node, fronted: int, plain: int) -> None:
        self.node, self.fronted, self.plain = node, fronted, plain
        self.entries: list[Entry] = []

    async def ask(self, port: int, *pieces: bytes) -> bytes:
        """All that comes back on a connection of its own, to its end."""
        replies = [Reply()]
        await asyncio.wait_for(self._ask(port, pieces, replies[0]), ENDS_SECS)
        return replies[0].comparable

    async def ask_both(self, *pieces: bytes) -> tuple[bytes, bytes]:
        """What comes back with a Front, and without.

        Whether a request is answered before what follows it is refused is a matter of time with aiohttp: where the replies
        differ both ways are asked again, and what differs always is a fault.
        """
        fronted = plain = b""
        for _ in range(TRIES):
            fronted, plain = await self._ask_both(pieces)
            if fronted == plain:
                break
        return fronted, plain

    async def _ask_both(self, pieces: tuple[bytes, ...]) -> tuple[bytes, bytes]:
        """To the connections' ends, or until it is the same and no more comes."""
        replies = Reply(), Reply()
        ports = self.fronted, self.plain
        tasks = [asyncio.ensure_future(self._ask(*each)) for each in zip(ports, (pieces, pieces), replies, strict=True)]
        same = 0
        for _ in range(int(ENDS_SECS / PAUSE)):
            same = same + 1 if replies[0].comparable == replies[1].comparable else 0
            if all(task.done() for task in tasks) or same > SAME_TIMES + len(pieces):
                break
            await asyncio.sleep(PAUSE)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return replies[0].comparable, replies[1].comparable

    async def _ask(self, port: int, pieces: tuple[bytes, ...], reply: Reply) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        own = writer.get_extra_info("sockname")[1], port
        collecting = asyncio.ensure_future(reply.collect(reader))
        try:
            sent = 0
            for piece in pieces:
                writer.write(piece)
                sent += len(piece)
                while HEARD.get(own, 0) < sent and not collecting.done():
                    await asyncio.sleep(0)
            await collecting
        finally:
            collecting.cancel()
            writer.close()


Body = Callable[[Door], Awaitable[None]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., None]]:
    """Runs a test's coroutine with a door that is open to everyone, or asks for tokens."""
    import_all()
    folder = tmp_path_factory.mktemp("front")
    databases: dict[bool, Database] = {}

    def opened(locked: bool) -> Database:
        if locked not in databases:
            tokens = {"admin_token": "rules", "read_token": "reads"} if locked else {}
            databases[locked] = _database(folder / str(locked), tokens)
        return databases[locked]

    def run(body: Body, *, locked: bool = False) -> None:
        async def whole() -> None:
            async with _door(opened(locked)) as door:
                await body(door)

        asyncio.run(whole())

    yield run
    for database in databases.values():
        database.close()


def _database(folder: Path, options: dict[str, str]) -> Database:
    database = Database.open(load(options={"lake": str(folder), "history": False, **options}))
    database.start("127.0.0.1:1")
    session = Session(database)
    session.execute("CREATE TABLE keyed (id BIGINT PRIMARY KEY, name TEXT, value DOUBLE, at DATE)")
    session.execute("INSERT INTO keyed SELECT i, 'name ' || i, i * 0.5, NULL FROM generate_series(1, 500) AS s(i)").run_through()
    session.execute("CREATE TABLE wide (id BIGINT PRIMARY KEY, name TEXT)")
    session.execute("INSERT INTO wide SELECT i, repeat('x', 5000) FROM generate_series(1, 9) AS s(i)").run_through()
    if database.recorder is not None:
        database.recorder.flush()  # its table is made now: a new one changes the definitions that answers are kept under
    return database


HEARD: Final[dict[tuple[int, int], int]] = {}
"""Bytes that have come on each connection, by its two ports: the next piece is sent when the one before was taken in.

A connection that has ended is not in it: the system gives its ports to another.
"""


def _heard(protocol: Any) -> Any:
    connect, take, lose = protocol.connection_made, protocol.data_received, protocol.connection_lost
    ports = 0, 0

    def connection_made(transport: asyncio.BaseTransport) -> None:
        nonlocal ports
        ports = transport.get_extra_info("peername")[1], transport.get_extra_info("sockname")[1]
        HEARD[ports] = 0
        connect(transport)

    def data_received(data: bytes) -> None:
        take(data)
        HEARD[ports] += len(data)

    def connection_lost(exc: Exception | None) -> None:
        del HEARD[ports]
        lose(exc)

    protocol.connection_made, protocol.data_received, protocol.connection_lost = connection_made, data_received, connection_lost
    return protocol


@asynccontextmanager
async def _door(database: Database) -> Any:
    node = Node(database, database.config)
    node.state = "serving"
    runner = Runner(node)
    await runner.setup()
    HEARD.clear()

    def fronted() -> asyncio.Protocol:
        found = runner.connection()
        assert isinstance(found, Front)
        found._inner = Spied(found._inner)  # type: ignore[assignment]
        return _heard(found)

    def plain() -> asyncio.Protocol:
        assert runner.server is not None
        return _heard(Relayed(runner.server()))

    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(make, "127.0.0.1", 0) for make in (fronted, plain)]
    door = Door(node, *(server.sockets[0].getsockname()[1] for server in servers))
    for text in ("SELECT 1", "SELECT $a + 1", "SELECT repeat('x', 5000) AS x", "SELECT 'ä' AS umlaut"):
        for _ in range(2):
            await door.ask(door.plain, post(text), LAST)
            body = b'{"sql": "%s", "params": {"a": 4}}' % text.encode()
            await door.ask(door.plain, post(body, "Content-Type: application/json"), LAST)
    if database.recorder is not None:
        database.recorder.note = door.entries.append  # type: ignore[method-assign, assignment]
    try:
        yield door
    finally:
        for server in servers:
            server.close()
        await runner.cleanup()


def post(body: str | bytes, *fields: str, path: str = "/sql") -> bytes:
    """A request's bytes."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(data)}", *fields]
    return "\r\n".join([*lines, "", ""]).encode() + data


def get(path: str, *fields: str) -> bytes:
    """A request without a body."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *fields, "", ""]).encode()


AT_HAND: Final = {
    "a query": post("SELECT 1"),
    "its text typed": post("SELECT 1", "Content-Type: text/plain; charset=utf-8"),
    "letters": post("SELECT 'ä' AS umlaut"),
    "as arrow": post("SELECT 1", path="/sql?format=arrow"),
    "however old": post("SELECT 1", path="/sql?format=json&stale_ms=1000&spread=0&after="),
    "no values": post("SELECT 1", path="/sql?"),
    "in a session": post("SELECT 1", "x-lake-session: session-one"),
    "kept alive": post("SELECT 1", "Connection: Keep-Alive", "User-Agent: curl/8"),
    "with parameters": post('{"sql": "SELECT $a + 1", "params": {"a": 4}}', "Content-Type: application/json"),
    "long": post("SELECT repeat('x', 5000) AS x"),
    "long, packed": post("SELECT repeat('x', 5000) AS x", "Accept-Encoding: gzip, deflate"),
    "long, in gzip": post("SELECT repeat('x', 5000) AS x", "accept-encoding: gzip"),
    "short, not packed": post("SELECT 1", "Accept-Encoding: gzip"),
    "a row": get("/lookup/keyed/7"),
    "a row with a type and a length": get("/lookup/keyed/7", "Content-Type: text/plain", "Content-Length: 0"),
    "no row": get("/lookup/keyed/-7"),
    "a row of a schema": get("/lookup/public.keyed/7"),
    "a long row": get("/lookup/wide/7", "Accept-Encoding: deflate"),
    "a row by a query": post("SELECT name, value FROM keyed WHERE id = 8"),
}


@pytest.mark.parametrize("what", AT_HAND)
def test_both_ways_answer_alike(run: Callable[..., None], what: str) -> None:
    """Status, fields in their order and body are the same, and what is counted and noted is."""

    async def body(door: Door) -> None:
        request = AT_HAND[what]
        await door.ask_both(request, LAST)  # a row comes into memory
        method, path = ("POST", "/sql") if request.startswith(b"POST") else ("GET", "/lookup/{table}/{key}")
        replies, counted, noted = [], [], []
        for port in (door.fronted, door.plain):
            before, taken = HTTP_REQUESTS.value(method=method, path=path, status="200"), Spied.taken
            door.entries.clear()
            replies.append(await door.ask(port, request, LAST))
            assert Spied.taken - taken == (len(LAST) if port == door.fronted else 0), "answered by aiohttp"
            counted.append(HTTP_REQUESTS.value(method=method, path=path, status="200") - before)
            noted.append([entry._replace(at=0, ms=0.0) for entry in door.entries])
        assert replies[0].startswith(b"HTTP/1.1 200 OK\r\n") and replies[0] == replies[1]
        assert counted == [1.0, 1.0] and noted[0] == noted[1]

    run(body)


@pytest.mark.parametrize("cut", [1, 20, -len("SELECT 1"), -1])
def test_a_request_in_two_pieces(run: Callable[..., None], cut: int) -> None:
    """A body that comes behind its header is waited for; half a header is aiohttp's."""

    async def body(door: Door) -> None:
        request = post("SELECT 1")
        taken = Spied.taken
        answered = await door.ask(door.fronted, request[:cut], request[cut:], LAST)
        assert Spied.taken - taken == len(LAST) + (len(request) if cut > 0 else 0)
        assert answered == await door.ask(door.plain, request, LAST)

    run(body)


def _chunked(text: str) -> bytes:
    return post("")[:-2].replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + b"\r\n%x\r\n%s\r\n0\r\n\r\n" % (
        len(text), text.encode(),
    )  # fmt: skip


ONE: Final = post("SELECT 1")
ROW: Final = get("/lookup/keyed/7")
HOSTILE: Final[dict[str, tuple[bytes, ...]]] = {
    "two at once": (ONE + ROW,),
    "two without waiting": (post("SELECT count(*) FROM keyed WHERE value > 3"), ONE, ROW),
    "ten at once and one": (ONE * 10, ROW),
    "one and a half": (ONE + ROW[:9], ROW[9:]),
    "chunked": (_chunked("SELECT 1"), ONE),
    "a length and chunks": (_chunked("SELECT 1").replace(b"Host: x", b"Content-Length: 3"), ONE),
    "chunks hidden by a tab": (ONE.replace(b"Host: x", b"Transfer-Encoding:\tchunked"), ONE),
    "chunks hidden by a blank": (ONE.replace(b"Host: x", b"Transfer-Encoding : chunked"), ONE),
    "two lengths": (ONE.replace(b"Host: x", b"Content-Length: 8"), ONE),
    "two lengths that differ": (ONE.replace(b"Host: x", b"Content-Length: 0"), ONE),
    "a length with a sign": (ONE.replace(b"Length: 8", b"Length: +8"), ONE),
    "a length with a zero": (ONE.replace(b"Length: 8", b"Length: 08"), ONE),
    "a length in hex": (ONE.replace(b"Length: 8", b"Length: 0x8"), ONE),
    "a length that is none": (ONE.replace(b"Length: 8", b"Length: "), ONE),
    "a length below the body's": (ONE.replace(b"Length: 8", b"Length: 3"), ONE),
    "a huge length": (ONE.replace(b"Length: 8", b"Length: 99999999999999999999"), ONE),
    "a folded field": (ONE.replace(b"Host: x", b"Host: x\r\n y"), ONE),
    "a lone line feed": (ONE.replace(b"Host: x\r\n", b"Host: x\n"), ONE),
    "a field twice": (ONE.replace(b"Host: x", b"Host: x\r\nx-lake-session: session-a\r\nx-lake-session: session-b"), ONE),
    "a host twice": (ONE.replace(b"Host: x", b"Host: x\r\nHost: y"), ONE),
    "a field without a colon": (ONE.replace(b"Host: x", b"Host"), ONE),
    "a name of signs": (ONE.replace(b"Host: x", b"Ho(st: x"), ONE),
    "a NUL in a field": (ONE.replace(b"Host: x", b"Host: \0x"), ONE),
    "no fields": (b"GET /lookup/keyed/7 HTTP/1.1\r\n\r\n",),
    "an old protocol": (ONE.replace(b"HTTP/1.1", b"HTTP/1.0"), ONE),
    "an old protocol, kept": (ONE.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Host: x", b"Connection: keep-alive"), ONE),
    "a protocol to come": (ONE.replace(b"HTTP/1.1", b"HTTP/2.0"), ONE),
    "closed": (post("SELECT 1", "Connection: close"), ONE),
    "upgraded": (post("SELECT 1", "Connection: Upgrade", "Upgrade: h2c"), ONE),
    "expected": (post("SELECT 1", "Expect: 100-continue"), ONE),
    "expected in vain": (post("SELECT 1", "Expect: cake"), ONE),
    "packed": (post("SELECT 1", "Content-Encoding: gzip"), ONE),
    "another method": (ROW.replace(b"GET", b"HEAD"), ROW.replace(b"GET", b"DELETE"), ROW.replace(b"GET", b"get")),
    "an address with a host": (ROW.replace(b" /", b" http://x/"),),
    "an escaped key": (ROW.replace(b"/7", b"/%37"), ROW.replace(b"/keyed", b"/%6Beyed"), ROW.replace(b"/7", b"/%2e%2e")),
    "dots": (ROW.replace(b"/7", b"/../7"), ROW.replace(b"keyed/7", b"./7"), ROW.replace(b"/7", b"/..")),
    "a fragment": (ROW.replace(b"/7", b"/7#x"), ROW.replace(b"/7", b"/7;x"), ROW.replace(b"/7", b"/7?x#y")),
    "values twice": (post("SELECT 1", path="/sql?format=json&format=csv"), post("SELECT 1", path="/sql?a&b=&=")),
    "an unknown format": (post("SELECT 1", path="/sql?format=cake"), ONE),
    "a number out of range": (post("SELECT 1", path="/sql?after=-1"), ONE),
    "a commit to come": (post("SELECT 1", path="/sql?after=1"), ONE),
    "no table": (get("/lookup/nothing/7"), ROW),
    "no key": (get("/lookup/keyed/seven"), get("/lookup/keyed/"), get("/lookup/keyed"), ROW),
    "no text": (post(b"SELECT \xff"), ONE),
    "no JSON": (post("SELECT 1", "Content-Type: application/json"), ONE),
    "a type of its own": (post("SELECT 1", "Content-Type: Application/JSON"), post("SELECT 1", "Content-Type: x"), ONE),
    "a bad session": (post("SELECT 1", "x-lake-session: a"), ONE),
    "a bad statement": (post("SELEKT 1"), ONE),
    "a job": (post("SELECT 1", path="/sql?job=j"), ONE),
    "long fields": (post("SELECT 1", "x: " + "y" * 9_000), ONE),
    "many fields": (post("SELECT 1", *(f"x{n}: y" for n in range(70))), ONE),
    "too many fields": (post("SELECT 1", *(f"x{n}: y" for n in range(200))), ONE),
    "a long statement": (post(f"SELECT '{'x' * 20_000}' AS x"), ONE, ROW),
    "the first half": (ONE[:30],),
    "a body that does not come": (ONE[:-3],),
    "a new line before": (b"\r\n" + ONE, ONE),
    "no HTTP": (b"hello\r\n\r\n", ONE),
    "a handshake": (bytes.fromhex("16030100a5010000a10303") + bytes(160),),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_everything_else_is_aiohttps(run: Callable[..., None], what: str) -> None:
    """What comes back for bytes of any kind is what comes back without a Front, to the connection's end."""

    async def body(door: Door) -> None:
        fronted, plain = await door.ask_both(*HOSTILE[what], LAST)
        assert fronted == plain

    run(body)


def test_bytes_changed_and_cut_at_random(run: Callable[..., None]) -> None:
    """As above, of requests with a few bytes changed, sent in pieces."""

    async def body(door: Door) -> None:
        chance = random.Random(7)
        requests = [*AT_HAND.values(), _chunked("SELECT 1")]
        for _ in range(120):
            data = bytearray(b"".join(chance.choices(requests, k=chance.randint(1, 3))))
            for _ in range(chance.choice((0, 1, 1, 2))):
                data[chance.randrange(len(data))] = chance.choice(b"\0\t\r\n :/?=%0A9aZ\x80\xff")
            cuts = sorted(chance.sample(range(1, len(data)), chance.randint(0, 3)))
            pieces = [bytes(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
            fronted, plain = await door.ask_both(*pieces, LAST)
            assert fronted == plain, pieces

    run(body)


def test_who_may_not_is_refused_alike(run: Callable[..., None]) -> None:
    """A token lets in on both ways; none, a wrong one, and one that was right with another header do not."""

    async def body(door: Door) -> None:
        basic = base64.b64encode(b"anyone:reads").decode()
        for fields, status in (
            (("Authorization: Bearer reads",), b"200"),
            ((f"Authorization: Basic {basic}",), b"200"),
            (("authorization:Bearer reads",), b"200"),
            ((), b"401"),
            (("Authorization: Bearer wrong",), b"401"),
            (("Authorization: Basic !",), b"401"),
            (("x-lake-owner: me",), b"401"),
        ):
            for request in (post("SELECT 1", *fields), get("/lookup/keyed/7", *fields)):
                fronted, plain = await door.ask_both(request, request, LAST)
                assert fronted == plain and fronted.split(b" ")[1] == status

    run(body, locked=True)


def test_a_node_that_stops_says_so(run: Callable[..., None]) -> None:
    """503, on a connection that was answered before."""

    async def body(door: Door) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.fronted)
        for state, status in (("serving", b"200"), ("leaving", b"200"), ("draining", b"503"), ("starting", b"503")):
            door.node.state = state
            writer.write(ONE)
            reply = await reader.readuntil(b"\r\n\r\n")
            assert reply.split(b" ")[1] == status
            await reader.readexactly(int(re.findall(rb"Content-Length: (\d+)", reply)[0]))
        writer.close()

    run(body)


def test_a_reader_that_is_slow_gets_every_answer(run: Callable[..., None]) -> None:
    """Who sends without reading fills no memory: aiohttp takes over, and reads no further. Answers come in order."""

    async def body(door: Door) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.fronted, limit=1 << 12)
        count, wide = 600, get("/lookup/wide/7")
        for number in range(count):
            writer.write(wide if number % 2 else ONE)
            if number % 100 == 0:
                await asyncio.sleep(PAUSE)
        for number in range(count):
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(re.findall(rb"Content-Length: (\d+)", head)[0])
            answer = await reader.readexactly(size)
            assert answer.startswith(b'[{"id":7' if number % 2 else b'[{"1":1}]')
        writer.close()

    run(body)


def test_now_and_then_a_request_is_aiohttps(run: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clock ends connections that it has seen nothing of for an hour, so it sees one request a minute."""

    async def body(door: Door) -> None:
        taken = Spied.taken
        await door.ask(door.fronted, ONE, LAST)
        assert Spied.taken - taken == len(LAST)
        monkeypatch.setattr(front, "ORDINARY_SECS", 0.0)
        taken = Spied.taken
        await door.ask(door.fronted, ONE, LAST)
        assert Spied.taken - taken == len(LAST) + len(ONE)

    run(body)
