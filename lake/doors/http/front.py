"""What stands before aiohttp: a small request whose answer is in memory is answered where its bytes come in.

    POST /sql HTTP/1.1 | fields | SELECT 1     ->     HTTP/1.1 200 OK | fields | [{"Int64(1)":1}]

Making a request, a task and a response takes longer than looking into memory. A request is answered here where it is whole,
plainly written, the only one of its connection, and of an endpoint that has ``at_hand``. Everything else is aiohttp's, byte
by byte, and so is whatever is wrong: it is said there. Who asks, what they may do, what is noted and counted, and an answer's
bytes are the same on both ways.
Source: RFC 9112, 2 to 6 (message format and framing).
"""

from __future__ import annotations

import asyncio
import logging
import re
from functools import lru_cache
from typing import Final, cast

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import SERVER_SOFTWARE
from msgspec import Struct

from lake.db.rights.credentials import Credentials
from lake.doors.http.app import check_role, credentials_of, make_app
from lake.doors.http.routes import ROUTES, Answer, AtHand, Route, packed
from lake.late import late_pattern
from lake.metrics import HTTP_REQUESTS
from lake.net.node import Node

REQUEST_BYTES_MAX: Final = 8_000  # with its body; aiohttp takes lines of up to 8,190
FIELDS_MAX: Final = 64
KEPT_MAX: Final = 512  # clients send the same lines and fields each time
ORDINARY_SECS: Final = 60.0  # after which a request is aiohttp's, whose clock ends connections that are idle for an hour
SHUTDOWN_SECS: Final = 1.0
# What changes where a message ends or what follows it.
REFUSED: Final = frozenset(("transfer-encoding", "te", "trailer", "content-encoding", "expect", "upgrade"))

_LINE: Final = late_pattern(rb"(?:GET|POST|PUT|DELETE) /[!-~]* HTTP/1\.1")
_FIELDS: Final = late_pattern(rb"(?:[A-Za-z0-9_-]+:[ -~]*\r\n)*")
_HOST: Final = late_pattern(r"[A-Za-z0-9._:-]+|\[[0-9a-fA-F:.]+\](?::[0-9]+)?", re.ASCII)
_LENGTH: Final = late_pattern(r"0|[1-9][0-9]{0,9}", re.ASCII)
_TYPE: Final = late_pattern(r"([a-z]+/[a-z0-9.+-]+)(?:; ?charset=utf-8)?", re.ASCII)
_SEGMENT: Final = r"(?P<\1>[A-Za-z0-9_,-][A-Za-z0-9_,.-]*)"  # needs no decoding
_QUERY: Final = r"(?:\?(?P<query>[A-Za-z0-9_.=&-]*))? HTTP/1\.1"


# --- requests ---------------------------------------------------------------------------------------------------------


class Fields(Struct, frozen=True):
    """The header of a request.

    headers       by name in lower case
    length        bytes of the body
    content_type  None of one that is written in a way that only aiohttp reads
    """

    headers: dict[str, str]
    length: int
    content_type: str | None
    credentials: Credentials


class Small(Struct):
    """A request as ``routes.Asked`` describes it."""

    headers: dict[str, str]
    query: dict[str, str]
    match_info: dict[str, str]
    remote: str | None
    content_type: str


@lru_cache(KEPT_MAX)
def fields_of(block: bytes) -> Fields | None:
    """A header from its lines; None of one that is not plain, says a thing twice, or ends the message in another way."""
    if not _FIELDS.fullmatch(block) or block.count(b"\n") > FIELDS_MAX:
        return None
    headers: dict[str, str] = {}
    for line in block.decode("ascii").splitlines():
        name, _, value = line.partition(":")
        name = name.lower()
        if name in headers or name in REFUSED:
            return None
        headers[name] = value.strip(" ")
    length = headers.get("content-length", "0")
    if not _HOST.fullmatch(headers.get("host", "")) or not _LENGTH.fullmatch(length):
        return None
    if headers.get("connection", "keep-alive").lower() != "keep-alive":
        return None
    type = _TYPE.fullmatch(headers.get("content-type", "application/octet-stream"))
    return Fields(headers, int(length), type[1] if type else None, credentials_of(headers))


class Target(Struct, frozen=True):
    """What a request line is for: an endpoint with ``at_hand``, the values of its path, and of its query string."""

    row: Route
    at_hand: AtHand
    values: dict[str, str]
    query: dict[str, str]


@lru_cache(KEPT_MAX)
def target_of(line: bytes) -> Target | None:
    """The target of a request line that has no escapes, and no name without a value or with several."""
    text = line.decode("ascii")
    for pattern, row, at_hand in _AT_HAND:
        found = pattern.fullmatch(text)
        if found is not None:
            values = found.groupdict("")
            given = values.pop("query")
            pairs = [pair.split("=") for pair in given.split("&")] if given else []
            query = {pair[0]: pair[-1] for pair in pairs}
            is_plain = len(query) == len(pairs) and all(len(pair) == 2 for pair in pairs)
            return Target(row, at_hand, values, query) if is_plain else None
    return None


def _pattern(row: Route) -> re.Pattern[str]:
    """The request lines of an endpoint, as far as they are plain."""
    return late_pattern(f"{row.method} " + re.sub(r"\\\{(\w+)\\\}", _SEGMENT, re.escape(row.path)) + _QUERY, re.ASCII)


_AT_HAND: Final = [(_pattern(row), row, row.at_hand) for row in ROUTES if row.at_hand is not None]


# --- answers ----------------------------------------------------------------------------------------------------------


@lru_cache(KEPT_MAX)
def _lead(content_type: str, coding: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    """An answer's bytes up to those that change, as aiohttp writes them."""
    lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in headers), f"Content-Type: {content_type}"]
    lines += [f"Content-Encoding: {coding}"] if coding else []
    assert all(line.isascii() and line.isprintable() for line in lines)
    return "\r\n".join([*lines, "Content-Length: "]).encode()


def _written(answer: Answer, accepted: str) -> bytes:
    body, coding = packed(answer.body, answer.content_type, accepted)
    lead = _lead(answer.content_type, coding, tuple(answer.headers.items()))
    date = rfc822_formatted_time()
    return b"".join((lead, f"{len(body)}\r\nDate: {date}\r\nServer: {SERVER_SOFTWARE}\r\n\r\n".encode(), body))


# --- connections ------------------------------------------------------------------------------------------------------


class Front(asyncio.Protocol):
    """One connection, before aiohttp's protocol of it.

    While every message was plainly written it is known where each one ends, so that aiohttp holds no half of one; after any
    other the connection is aiohttp's for good.
    """

    def __init__(self, node: Node, inner: asyncio.Protocol) -> None:
        self._node = node
        self._inner = inner
        self._is_known = True
        self._running = 0  # requests that aiohttp has and has not answered
        self._owed = 0  # bytes of the body of the last of them
        self._held = b""  # a request whose body has not come
        self._remote: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self._ordinary_at = self._loop.time() + ORDINARY_SECS
        peer = transport.get_extra_info("peername")
        self._remote = str(peer[0]) if isinstance(peer, tuple) else peer
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def eof_received(self) -> bool | None:
        if self._held:
            self._inner.data_received(self._held)
        return self._inner.eof_received()

    def data_received(self, data: bytes) -> None:
        if self._owed:
            self._owed -= len(data)
            self._is_known = self._is_known and self._owed >= 0
        elif self._is_known:
            held, self._held = self._held, b""
            if self._took(held + data):
                return
            if held:
                self._inner.data_received(held)
        self._inner.data_received(data)

    def _took(self, data: bytes) -> bool:
        """Whether a request needs aiohttp no more; else notes where it ends."""
        end = data.find(b"\r\n\r\n", 0, REQUEST_BYTES_MAX)
        start = data.find(b"\r\n") + 2
        fields = fields_of(data[start : end + 2]) if end > 0 else None
        if fields is None or not _LINE.fullmatch(data, 0, start - 2):
            self._is_known = False
            return False
        missing = end + 4 + fields.length - len(data)
        target = target_of(data[: start - 2]) if missing >= 0 and not self._running else None
        if target is not None and not self._transport.get_write_buffer_size():
            if missing and self._node.is_ready and end + fields.length < REQUEST_BYTES_MAX:
                self._held = data
                return True
            answer = self._answer(target, fields, data[end + 4 :]) if not missing else None
            if answer is not None:
                self._transport.write(answer)
                return True
        self._running += 1
        self._owed = missing
        self._is_known = missing >= 0
        return False

    def _answer(self, target: Target, fields: Fields, body: bytes) -> bytes | None:
        """The answer to a request where it is at hand; counted, as every request is."""
        if fields.content_type is None or self._transport.is_closing() or self._is_due():
            return None
        node, row = self._node, target.row
        try:
            node.check_serving()
            caller = node.caller_at_hand(fields.credentials)
            if caller is None:
                return None
            check_role(row, caller)
            request = Small(fields.headers, target.query, target.values, self._remote, fields.content_type)
            answer = target.at_hand(node, caller, request, body)
            if answer is None:
                return None
            written = _written(answer, fields.headers.get("accept-encoding", ""))
        except Exception:  # whatever is wrong is wrong the ordinary way too, and said there
            return None
        HTTP_REQUESTS.add(1, method=row.method, path=row.path, status="200")
        return written

    def _is_due(self) -> bool:
        now = self._loop.time()
        if now < self._ordinary_at:
            return False
        self._ordinary_at = now + ORDINARY_SECS
        return True

    def answered(self, *, stays: bool) -> None:
        """aiohttp has answered one of its requests; ``stays``: the connection goes on."""
        self._running -= 1
        self._is_known = self._is_known and stays


class _Answered(AbstractAccessLogger):
    """Tells a connection's Front that aiohttp has answered, for which it has no other place."""

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        front = None if request.transport is None else request.transport.get_protocol()
        if isinstance(front, Front):
            front.answered(stays=bool(response.keep_alive))


class Runner(web.AppRunner):
    """aiohttp's runner of the door's application, with a Front before each of its connections."""

    def __init__(self, node: Node) -> None:
        self._node = node
        super().__init__(
            make_app(node), access_log=logging.getLogger(__name__), access_log_class=_Answered,
            shutdown_timeout=SHUTDOWN_SECS, handler_cancellation=True,
        )  # fmt: skip

    def connection(self) -> asyncio.Protocol:
        """What answers a connection that was accepted."""
        assert self.server is not None, "setup() comes first"
        return Front(self._node, self.server())
