"""POST /tables/{name}: a table from a JSON definition. Spec: HTTP, Table definition."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from lake.arrow_names import parse_arrow_name
from lake.db.statements.table_body import TableBody
from lake.doors.http.routes import caller_of, json_answer, json_body, node_of, route
from lake.errors import ProtocolViolation
from lake.roles import Role
from lake.types import Type

LISTS: Final = ("publish", "cluster_by")
TEXTS: Final = ("partition_by", "ttl", "order_by")
MEMBERS: Final = ("columns", "key", "merge", *LISTS, *TEXTS)


@route("POST", "/tables/{name}", role=Role.ADMIN)
async def define_table(request: web.Request) -> web.StreamResponse:
    """Makes a table, or changes one that exists: columns at the end, layout, publish; answers ``{table, publish}``.

    Body    an array of [name, Arrow type], or an object with MEMBERS
    08P01   a body of another shape      42704  an unknown type
    42P16   what the table cannot be, or what cannot be changed later
    """
    body = await json_body(request)
    name = request.match_info["name"]
    outcome = await node_of(request).define_table(caller_of(request), name, _body(body))
    return json_answer(outcome)


def _body(body: Any) -> TableBody:
    if not isinstance(body, dict):
        return TableBody(_columns(body))
    for member in body:
        if member not in MEMBERS:
            raise ProtocolViolation(f'unknown member "{member}"; known: {", ".join(MEMBERS)}')
    given = {member: value for member, value in body.items() if value is not None}
    merge = given.get("merge", {})
    if not isinstance(merge, dict) or not all(isinstance(function, str) for function in merge.values()):
        raise ProtocolViolation("merge is an object of functions by column")
    options: dict[str, str | tuple[str, ...]] = {member: _words(given, member) for member in LISTS}
    for member in TEXTS:
        options[member] = given.get(member, "")
        if not isinstance(options[member], str):
            raise ProtocolViolation(f"{member} is a text")
    return TableBody(_columns(given.get("columns", [])), _words(given, "key"), merge, options)


def _words(given: dict[str, Any], member: str) -> tuple[str, ...]:
    value = given.get(member, [])
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ProtocolViolation(f"{member} is an array of texts")
    return tuple(value)


def _columns(columns: Any) -> list[tuple[str, Type]]:
    if not isinstance(columns, list) or not all(_is_pair(item) for item in columns):
        raise ProtocolViolation("columns are an array of [name, type]")
    return [(name, parse_arrow_name(type)) for name, type in columns]


def _is_pair(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item)
