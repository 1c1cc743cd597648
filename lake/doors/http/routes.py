"""ROUTES: every endpoint of the HTTP door, with the least role that may call it.

    @route("GET", "/lookup/{table}/{key}", role=Role.READ)
    async def lookup(request: web.Request) -> web.StreamResponse: ...

Spec: HTTP, Endpoints.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson
from aiohttp import web

from lake.net.node import Node
from lake.roles import Principal, Role

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NODE: Final = web.AppKey("node", Node)
CALLER: Final = "caller"


@dataclass(frozen=True, slots=True)
class Route:
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
