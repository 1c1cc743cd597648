"""Health, position, metrics and maintenance. Spec: HTTP, Operations."""

from __future__ import annotations

from aiohttp import web

from lake.db.system.objects import KINDS
from lake.doors.http.routes import caller_of, json_answer, json_body, node_of, route
from lake.errors import ProtocolViolation
from lake.metrics import expose
from lake.roles import Role


@route("GET", "/stats", role=None)
async def stats(request: web.Request) -> web.StreamResponse:
    """Health and position."""
    return json_answer(node_of(request).stats())


@route("GET", "/healthz", role=None, while_stopping=True)
async def healthz(request: web.Request) -> web.StreamResponse:
    """200 while the process runs."""
    return web.Response(text="ok")


@route("GET", "/ready", role=None, while_stopping=True)
async def ready(request: web.Request) -> web.StreamResponse:
    """200 when the node serves, 503 while it starts or stops."""
    node = node_of(request)
    if node.is_ready:
        return web.Response(text="ready")
    return web.Response(status=503, text=node.state, headers={"Retry-After": "1"})


@route("GET", "/whoami", role=Role.READ)
async def whoami(request: web.Request) -> web.StreamResponse:
    """Who the node takes the caller for."""
    caller = caller_of(request)
    return json_answer(
        {"user": caller.user, "role": caller.role.label, "superuser": caller.superuser, "open": caller.open}
    )


@route("POST", "/login", role=None)
async def login(request: web.Request) -> web.StreamResponse:
    """A session token for a user's name and password.

    Body    {"user", "password"}
    Answer  {"token", "until"}: until is in milliseconds since 1970
    28P01   no such user, or a wrong password      08P01  a body that is not such JSON
    """
    body = await json_body(request)
    user, password = (body.get("user"), body.get("password")) if isinstance(body, dict) else (None, None)
    if not isinstance(user, str) or not isinstance(password, str):
        raise ProtocolViolation('the body is {"user": "..", "password": ".."}')
    token, until = await node_of(request).login(user, password)
    return json_answer({"token": token, "until": until})


@route("GET", "/objects", role=Role.READ)
async def objects(request: web.Request) -> web.StreamResponse:
    """Tables, views and stored files of the lake, as far as the caller may read them.

    Answer  [{"catalog", "schema", "name", "kind", ..}]: of a table rows, bytes, files, key, partition, cluster, publish,
            not_null and defaults; of a view sql
    """
    return json_answer(await node_of(request).objects(caller_of(request)))


@route("GET", "/kinds", role=Role.READ)
async def kinds(request: web.Request) -> web.StreamResponse:
    """The kinds of objects, each with its family of names and the statements that take it."""
    return json_answer([dict(zip(("kind", "family", "statements"), row, strict=True)) for row in KINDS])


@route("GET", "/metrics", role=Role.READ)
async def metrics(request: web.Request) -> web.StreamResponse:
    """Every counter and gauge, in the text exposition format."""
    return web.Response(text=expose(), content_type="text/plain", charset="utf-8")


@route("POST", "/tier", role=Role.ADMIN)
async def tier(request: web.Request) -> web.StreamResponse:
    """Writes the log into Parquet."""
    return json_answer({"rows_tiered": await node_of(request).tier(caller_of(request))})


@route("GET", "/", role=None)
async def home(request: web.Request) -> web.StreamResponse:
    """What this is and where to go; a page for people comes with the console."""
    lake = node_of(request).database.name
    text = (
        f"lake: {lake}\n\n"
        "POST /sql               run SQL:  curl -d 'SELECT 1' ADDRESS/sql?format=table\n"
        "POST /append/{table}    append newline-delimited JSON or an Arrow stream\n"
        "GET  /stats             health and position\n"
    )
    return web.Response(text=text)
