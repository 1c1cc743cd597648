"""GET /watch/{table}: a table's feed as lines of JSON, for as long as the connection stays open.

    {"id": 7, "state": "new"}
    {"_after": 41}                                              with marks=true, after each batch: resume with ?after=41

Spec: HTTP, Events.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import cast

import orjson
from aiohttp import web

from lake.db.feed import Batch
from lake.doors.http.lines import json_lines
from lake.doors.http.routes import caller_of, node_of, route
from lake.errors import InvalidParameter, LakeError
from lake.net.feeds import Chunk
from lake.roles import Role

NDJSON = "application/x-ndjson"


@route("GET", "/watch/{table}", role=Role.READ)
async def watch(request: web.Request) -> web.StreamResponse:
    """Streams a table's new rows, one a line; with ``changes=true`` updates and deletes too, old versions before new.

    Query   after (a position: a commit), marks, changes
    22023   the position is no longer kept, or is to come      42P01  no such table
    An error after the first line is a line ``{"error": ..}``, which ends the stream.
    """
    node, caller = node_of(request), caller_of(request)
    old, marks = _flag(request, "changes"), _flag(request, "marks")
    chunks = cast(
        AsyncGenerator[Chunk, None],
        node.watch(caller, request.match_info["table"], _position(request), old=old, encode=encode_batch),
    )
    try:
        await anext(chunks)
        response = await start_lines(request)
        try:
            async for chunk in chunks:
                data = chunk.data
                if marks and chunk.data and chunk.upto > chunk.begin:
                    data += _mark(chunk.upto)
                if data:
                    await response.write(data)
        except LakeError as error:
            await response.write(error_line(error))
        await response.write_eof()
        return response
    finally:
        await chunks.aclose()


def encode_batch(batch: Batch) -> bytes:
    """A feed's rows, one a line."""
    return json_lines(batch.rows, batch.rows.schema.names, batch.types, "\n")


async def start_lines(request: web.Request) -> web.StreamResponse:
    """The answer to a request for lines, its headers sent, so that whoever asked knows that the stream has begun."""
    response = web.StreamResponse(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
    response.content_type = NDJSON
    await response.prepare(request)
    return response


def error_line(error: LakeError) -> bytes:
    """What ends a stream."""
    return orjson.dumps({"error": str(error), "sqlstate": error.sqlstate}) + b"\n"


def _mark(position: int) -> bytes:
    return b'{"_after":%d}\n' % position


def _flag(request: web.Request, name: str) -> bool:
    given = request.query.get(name, "false").lower()
    if given not in ("true", "false", "1", "0"):
        raise InvalidParameter(f"{name} is true or false, not {given[:40]!r}")
    return given in ("true", "1")


def _position(request: web.Request) -> int | None:
    given = request.query.get("after")
    if given is None or given == "":
        return None
    if given.isascii() and given.isdigit() and len(given) < 19:
        return int(given)
    raise InvalidParameter(f"after is a commit, a whole number from 0, not {given[:40]!r}")
