"""ROUTES: every endpoint of the HTTP door, with the least role that may call it.

    @route("GET", "/lookup/{table}/{key}", role=Role.READ)
    async def lookup(request: web.Request) -> web.StreamResponse: ...

Spec: HTTP, Endpoints.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson
from aiohttp import web
from msgspec import Struct

from lake.errors import ProtocolViolation
from lake.net.node import Node
from lake.roles import Principal, Role

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NODE: Final = web.AppKey("node", Node)
CALLER: Final = "caller"
JSON_BYTES_MAX: Final = 16 << 20  # of a body that is not a statement or rows
COMPRESS_BYTES: Final = 4 << 10  # a smaller answer is sent as it is
COMPRESSED: Final = frozenset(
    ("application/json", "application/x-ndjson", "text/plain", "text/csv", "text/tab-separated-values", "text/html")
)


class Route(Struct, frozen=True):
    """A row of ROUTES.

    role          None lets everyone in
    while_stopping  whether a draining node still answers
    by_grant        whether a user that holds less than ``role`` is asked for grants below instead of refused here
    """

    method: str
    path: str
    handler: Handler
    role: Role | None
    while_stopping: bool
    by_grant: bool


ROUTES: Final[list[Route]] = []


def route(
    method: str, path: str, *, role: Role | None, while_stopping: bool = False, by_grant: bool = False
) -> Callable[[Handler], Handler]:
    """Registers an endpoint."""

    def register(handler: Handler) -> Handler:
        ROUTES.append(Route(method, path, handler, role, while_stopping, by_grant))
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


def compress(response: web.StreamResponse) -> web.StreamResponse:
    """The answer, compressed as far as the request accepts that and it is worth it: text of some size, and no file."""
    size = len(response.body) if isinstance(response, web.Response) and isinstance(response.body, bytes) else 0
    if size >= COMPRESS_BYTES and response.content_type in COMPRESSED and "ETag" not in response.headers:
        response.enable_compression()
    return response
