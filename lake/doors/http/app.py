"""The aiohttp application: sign-in, roles, drain and errors around every endpoint of ROUTES.

An error answers its message as plain text with its SQLSTATE in ``x-lake-sqlstate``: 401 and 403 for rights, 404 for a path
or file that is none, 409 and 412 for a file that somebody else saved, 413 for a body too large, 503 from a node that
stops, else 500.
Spec: HTTP, Query, answer rule 7; Authentication; Errors.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from lake import log
from lake.db.accounted import Origin
from lake.db.rights.credentials import NOTHING, Credentials
from lake.doors.http import append, define, files, later, operations, sql, streams  # noqa: F401  (importing them fills ROUTES)
from lake.doors.http.pages import Pages
from lake.doors.http.routes import CALLER, NODE, ROUTES, Handler, Route, compress
from lake.doors.http.sql import PAGES
from lake.errors import (
    DuplicateFile,
    FileChanged,
    InsufficientPrivilege,
    InternalError,
    InvalidAuthorization,
    InvalidPassword,
    LakeError,
    NodeStopping,
    NotLeading,
    ProgramLimitExceeded,
    ProtocolViolation,
    UndefinedFile,
)
from lake.metrics import HTTP_REQUESTS
from lake.net.node import Node
from lake.roles import Principal

BODY_BYTES_MAX: Final = 1 << 30
NOWHERE: Final = r"/{nowhere:[\s\S]*}"
NOT_ENOUGH: Final = "this needs more rights than this token's or user's"
STATUS: Final[dict[type[LakeError], int]] = {
    InvalidAuthorization: 401,
    InvalidPassword: 401,
    InsufficientPrivilege: 403,
    NodeStopping: 503,
    NotLeading: 503,
    UndefinedFile: 404,
    DuplicateFile: 409,
    FileChanged: 412,
}


def make_app(node: Node) -> web.Application:
    """The application that serves ``node``."""
    app = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[_around])
    app[NODE] = node
    app[PAGES] = Pages(node.database.clock, node.config.pages_mb << 20)
    for row in ROUTES:
        path = row.path.replace("{path}", r"{path:[\s\S]*}")
        app.router.add_route(row.method, path, _checked(row), expect_handler=_expected)
    app.router.add_route("*", NOWHERE, _nowhere, expect_handler=_expected)
    return app


@web.middleware
async def _around(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns every failure into an answer, and counts requests."""
    status = 500
    node = request.app[NODE]
    try:
        with node.request():
            response = await handler(request)
        status = response.status
        return compress(response, request.headers.get("Accept-Encoding", ""))
    except LakeError as error:
        if isinstance(error, InvalidAuthorization | InvalidPassword | InsufficientPrivilege):
            _note_refusal(request, error)
        response = error_response(error)
        status = response.status
        return response
    except web.HTTPException as error:
        status = error.status
        if status == 413:
            return web.Response(status=413, text=error.text, headers={"x-lake-sqlstate": ProgramLimitExceeded.sqlstate})
        raise
    except ConnectionError:
        raise
    except web.RequestPayloadError as error:
        return error_response(ProtocolViolation(f"the body cannot be read: {str(error).splitlines()[-1].strip()}"))
    except Exception as error:
        log.error("internal error", error, method=request.method, path=request.path)
        return error_response(InternalError(f"internal error: {type(error).__name__}: {error}"))
    finally:
        resource = request.match_info.route.resource
        path = resource.canonical if resource is not None and resource.canonical != "/{nowhere}" else "other"
        HTTP_REQUESTS.add(1, method=request.method, path=path, status=str(status))


async def _nowhere(request: web.Request) -> web.StreamResponse:
    """404 for a path that is none, 405 for a method that its path does not take; a node that stops answers neither."""
    request.app[NODE].check_serving()
    allowed: set[str] = set()
    for resource in request.app.router.resources():
        _, methods = await resource.resolve(request)
        allowed |= methods - {"*"}
    if allowed:
        raise web.HTTPMethodNotAllowed(request.method, allowed)
    raise web.HTTPNotFound


async def _expected(request: web.Request) -> web.StreamResponse | None:
    """Tells a client that waits for it to send its body; what else a client may expect is refused."""
    if request.headers.get("Expect", "").lower() != "100-continue":
        return web.Response(status=417, text="the one expectation that is met is 100-continue")
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0
    return None


def _checked(row: Route) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        node = request.app[NODE]
        if not row.while_stopping:
            node.check_serving()
        if row.role is not None:
            principal = await node.sign_in(credentials_of(request.headers))
            check_role(row, principal)
            request[CALLER] = principal
        return await row.handler(request)

    return handler


def check_role(row: Route, principal: Principal) -> None:
    """Returns where the caller may come in here; 42501 elsewhere."""
    if row.role is not None and not principal.may(row.role) and not (row.by_grant and principal.id):
        raise InsufficientPrivilege(NOT_ENOUGH)


def _note_refusal(request: web.Request, error: LakeError) -> None:
    """Puts a refusal into the audit; of a request that presents nothing, there is nothing to tell."""
    given = credentials_of(request.headers)
    if given == NOTHING and request.path != "/login":
        return
    caller = request.get(CALLER)
    user = caller.user if caller is not None else given.user or ""
    origin = Origin("http", request.remote or "", request.headers.get("x-lake-session", ""))
    request.app[NODE].note_refusal(error, origin, user, f"{request.method} {request.path}")


def credentials_of(headers: Mapping[str, str]) -> Credentials:
    """The token of a Bearer header, name and password of a Basic one, the owner's key.

    headers  by name, whose case does not matter or is lower
    """
    owner_key = headers.get("x-lake-owner")
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "bearer":
            return Credentials(token=rest.strip(), owner_key=owner_key)
        case "basic":
            try:
                user, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
            except (binascii.Error, ValueError):
                return Credentials(owner_key=owner_key)
            return Credentials(user=user, password=password, owner_key=owner_key)
        case _:
            return Credentials(owner_key=owner_key) if owner_key is not None else NOTHING


def error_response(error: LakeError) -> web.Response:
    """The answer that tells a LakeError."""
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    headers = {"x-lake-sqlstate": error.sqlstate}
    if status == 503:
        headers["Retry-After"] = "1"
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="lake"'
    if error.position is not None:
        headers["x-lake-position"] = str(error.position)
    if error.about:
        headers["x-lake-about"] = json.dumps(error.about)
    return web.Response(status=status, text=str(error), headers=headers)
