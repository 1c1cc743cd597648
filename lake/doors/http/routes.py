"""ROUTES: every endpoint of the HTTP door, with the least role that may call it.

    @route("GET", "/lookup/{table}/{key}", role=Role.READ, at_hand=lookup_at_hand)
    async def lookup(request: web.Request) -> web.StreamResponse: ...

An endpoint whose answers may lie in memory has a second function, ``at_hand``, which looks there without waiting, and which
``front.py`` asks. Both make their answers with the same functions.
Spec: HTTP, Endpoints.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import orjson
from aiohttp import web
from msgspec import Struct

from lake.errors import ProtocolViolation
from lake.net.node import Node
from lake.roles import Principal, Role

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
AtHand = Callable[[Node, Principal, "Asked", bytes], "Answer | None"]

NODE: Final = web.AppKey("node", Node)
CALLER: Final = "caller"
JSON_BYTES_MAX: Final = 16 << 20  # of a body that is not a statement or rows
COMPRESS_BYTES: Final = 4 << 10  # a smaller answer is sent as it is
COMPRESSED: Final = frozenset(
    ("application/json", "application/x-ndjson", "text/plain", "text/csv", "text/tab-separated-values", "text/html")
)
_CODINGS: Final = {"deflate": zlib.MAX_WBITS, "gzip": zlib.MAX_WBITS + 16}


class Asked(Protocol):
    """What the functions that both ways share look at in a request."""

    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def query(self) -> Mapping[str, str]: ...
    @property
    def match_info(self) -> Mapping[str, str]: ...
    @property
    def remote(self) -> str | None: ...
    @property
    def content_type(self) -> str: ...


class Answer(Struct, frozen=True):
    """A whole answer that went well; ``headers`` are those beside its type, its length and what every answer has."""

    body: bytes
    content_type: str
    headers: Mapping[str, str] = {}

    def response(self) -> web.Response:
        """The answer as aiohttp sends it."""
        return web.Response(body=self.body, content_type=self.content_type, headers=self.headers)


class Route(Struct, frozen=True):
    """A row of ROUTES.

    role          None lets everyone in
    while_stopping  whether a draining node still answers
    by_grant        whether a user that holds less than ``role`` is asked for grants below instead of refused here
    at_hand         the answer where it is in memory, else None: it neither waits nor writes; raising is None too
    """

    method: str
    path: str
    handler: Handler
    role: Role | None
    while_stopping: bool
    by_grant: bool
    at_hand: AtHand | None


ROUTES: Final[list[Route]] = []


def route(
    method: str,
    path: str,
    *,
    role: Role | None,
    while_stopping: bool = False,
    by_grant: bool = False,
    at_hand: AtHand | None = None,
) -> Callable[[Handler], Handler]:
    """Registers an endpoint."""

    def register(handler: Handler) -> Handler:
        ROUTES.append(Route(method, path, handler, role, while_stopping, by_grant, at_hand))
        return handler

    return register


def node_of(request: web.Request) -> Node:
    """The node that serves this request."""
    return request.app[NODE]


def caller_of(request: web.Request) -> Principal:
    """Who sent this request; the middleware has signed them in."""
    principal = request[CALLER]
    assert isinstance(principal, Principal)
    return principal


def json_answer(value: Any) -> web.Response:
    """An answer that is JSON."""
    return web.Response(body=orjson.dumps(value), content_type="application/json")


async def json_body(request: web.Request) -> Any:
    """The body of a request, which is JSON.

    08P01  it is not      413  it is longer than any such body has to be
    """
    body = await request.read()
    if len(body) > JSON_BYTES_MAX:
        raise web.HTTPRequestEntityTooLarge(JSON_BYTES_MAX, len(body), text=f"this body is at most {JSON_BYTES_MAX} bytes")
    return json_of(body)


def json_of(body: bytes) -> Any:
    """The value of a JSON text; 08P01 where it is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProtocolViolation(f"the body is not JSON: {error}") from None


def compress(response: web.StreamResponse, accepted: str) -> web.StreamResponse:
    """The answer, compressed as far as ``accepted`` (Accept-Encoding) allows and it is worth it: a text, and no file."""
    body = response.body if isinstance(response, web.Response) else None
    if isinstance(response, web.Response) and isinstance(body, bytes) and "ETag" not in response.headers:
        response.body, coding = packed(body, response.content_type, accepted)
        if coding:
            response.headers["Content-Encoding"] = coding
    return response


def packed(body: bytes, content_type: str, accepted: str) -> tuple[bytes, str]:
    """The bytes to send and their coding, which is empty where they are sent as they are."""
    if len(body) >= COMPRESS_BYTES and content_type in COMPRESSED:
        for coding, window in _CODINGS.items():
            if coding in accepted.lower():
                made = zlib.compressobj(wbits=window)
                return made.compress(body) + made.flush(), coding
    return body, ""
