"""POST /tables/{name}: a table from a JSON definition. Spec: HTTP, Table definition."""

from __future__ import annotations

from typing import Any, Final

import orjson
from aiohttp import web

from lake.arrow_names import parse_arrow_name
from lake.doors.http.routes import caller_of, json_answer, node_of, route
from lake.errors import FeatureNotSupported, ProtocolViolation
from lake.roles import Role
from lake.types import Type

LATER: Final = ("key", "merge", "publish", "cluster_by", "partition_by", "ttl", "order_by")


@route("POST", "/tables/{name}", role=Role.ADMIN)
async def define_table(request: web.Request) -> web.StreamResponse:
    """Makes a table, or adds columns at the end of one that exists; answers ``{table, publish}``.

    Body    an array of [name, Arrow type], or an object with ``columns``
    08P01   a body of another shape      42704  an unknown type      0A000  a member that is not built yet
    """
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise ProtocolViolation(f"the body is not JSON: {error}") from None
    name = request.match_info["name"]
    outcome = await node_of(request).define_table(caller_of(request), name, _columns(body))
    return json_answer(outcome)


def _columns(body: Any) -> list[tuple[str, Type]]:
    if isinstance(body, dict):
        for member in body:
            if member in LATER and body[member]:
                raise FeatureNotSupported(f'"{member}" of a table definition is not supported yet')
            if member not in LATER and member != "columns":
                raise ProtocolViolation(f'unknown member "{member}"; known: columns, {", ".join(LATER)}')
        body = body.get("columns")
    if not isinstance(body, list) or not all(_is_pair(item) for item in body):
        raise ProtocolViolation("columns are an array of [name, type]")
    return [(name, parse_arrow_name(type)) for name, type in body]


def _is_pair(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item)
