"""Lines of JSON for as long as the connection stays open: a table's feed, and answers of live queries.

    GET /watch/orders?marks=true     {"id": 7, "state": "new"}
                                     {"_after": 41}                         after each batch: resume with ?after=41
    GET /live?sql=SELECT ..          {"at": 41, "rows": [{"n": 7}]}         again after each commit that changes it

Spec: HTTP, Events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Hashable
from typing import Any, Final, cast

import orjson
from aiohttp import web
from msgspec import Struct

from lake.db.feed import Batch
from lake.db.result import Result
from lake.doors.http.encode import CONTENT_TYPES, STREAMS
from lake.doors.http.lines import json_lines
from lake.doors.http.routes import Answer, Asked, caller_of, json_body, node_of, route
from lake.errors import InvalidParameter, LakeError, ProgramLimitExceeded, ProtocolViolation
from lake.net.feeds import Chunk
from lake.net.live import EVERY_MS, Topic
from lake.net.node import Node
from lake.roles import Principal, Role

NDJSON: Final = "application/x-ndjson"
QUERIES_MAX: Final = 1_000  # of one connection
LIVE_BYTES_MAX: Final = 64 << 20  # of one answer, which a topic keeps


def lookup_at_hand(node: Node, caller: Principal, request: Asked, body: bytes) -> Answer | None:
    """The row, where memory tells."""
    found = node.lookup_at_hand(caller, request.match_info["table"], request.match_info["key"])
    return None if found is None else _row(found)


@route("GET", "/lookup/{table}/{key}", role=Role.READ, at_hand=lookup_at_hand)
async def lookup(request: web.Request) -> web.StreamResponse:
    """The current row of a key of a keyed table: an array with the row, or an empty array.

    Path    of a key of several columns, its values in their order between commas
    42P16   the table has no key      22023, 22P02  a key that is none of its
    """
    given = request.match_info
    return _row(await node_of(request).lookup(caller_of(request), given["table"], given["key"])).response()


def _row(found: Result) -> Answer:
    return Answer(b"".join(STREAMS["json"](found)), CONTENT_TYPES["json"])


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


# --- live queries -----------------------------------------------------------------------------------------------------


class _Asked(Struct):
    """One live query of a connection.

    seen  the turn of its topic that has been sent
    """

    id: Any
    key: Hashable
    topic: Topic | None
    failure: LakeError | None = None
    seen: int = 0


@route("GET", "/live", role=Role.READ)
async def live(request: web.Request) -> web.StreamResponse:
    """Streams a query's answer: ``{"at": commit, "rows": [..]}`` now, and after each commit that changes it.

    Query   sql, every_ms (shortest time between two runs); x-lake-session names a session
    An error is a line ``{"error": ..}``, which ends the stream.
    """
    text = request.query.get("sql", "")
    return await _stream_live(request, [{"sql": text, "session": request.headers.get("x-lake-session")}], alone=True)


@route("POST", "/live", role=Role.READ)
async def live_many(request: web.Request) -> web.StreamResponse:
    """Several live queries on one connection; each line names its ``id``, and one that fails leaves the others.

    Body   ``{"queries": [{"id", "sql", "params", "session"}, ..], "every_ms": 100}``
    08P01  another body
    """
    body = await json_body(request)
    queries = body.get("queries") if isinstance(body, dict) else None
    if not isinstance(queries, list) or not all(isinstance(item, dict) for item in queries):
        raise ProtocolViolation('the body is {"queries": [{"id": .., "sql": "..", "params": {..}}, ..]}')
    if len(queries) > QUERIES_MAX:
        raise InvalidParameter(f"a connection takes at most {QUERIES_MAX} live queries")
    return await _stream_live(request, queries, alone=False, every_ms=body.get("every_ms"))


async def _stream_live(
    request: web.Request, queries: list[dict[str, Any]], *, alone: bool, every_ms: Any = None
) -> web.StreamResponse:
    lives, reader = node_of(request).lives, asyncio.Event()
    every = _every_ms(request.query.get("every_ms") if every_ms is None else every_ms)
    asked = [_ask(request, query, every, reader) for query in queries]
    try:
        response = await start_lines(request)
        while not lives.stopped:
            reader.clear()
            for item in asked:
                await _tell(response, item, alone)
            if all(item.topic is None for item in asked):
                break
            await reader.wait()
        await response.write_eof()
        return response
    finally:
        for item in asked:
            if item.topic is not None:
                lives.leave(item.key, item.topic, reader)


def _ask(request: web.Request, query: dict[str, Any], every_ms: int, reader: asyncio.Event) -> _Asked:
    """Joins a query's topic; what cannot be asked is an error of that query alone."""
    node, caller = node_of(request), caller_of(request)
    text, params, session = query.get("sql"), query.get("params"), query.get("session")
    key = (caller, session, every_ms, text, orjson.dumps(params, option=orjson.OPT_SORT_KEYS))
    try:
        if not isinstance(text, str) or not isinstance(params, dict | None) or not isinstance(session, str | None):
            raise ProtocolViolation("a live query has sql, a text; params, an object; session, a text")
        topic = node.lives.join(key, lambda: node.live(caller, session, text, params), every_ms, _rows_of, reader)
    except LakeError as failure:
        return _Asked(query.get("id"), key, None, failure)
    return _Asked(query.get("id"), key, topic)


async def _tell(response: web.StreamResponse, item: _Asked, alone: bool) -> None:
    """Sends what a query has to say."""
    head = b"{" if alone else b'{"id":' + orjson.dumps(item.id) + b","
    topic = item.topic
    if topic is not None:
        if topic.turn != item.seen and topic.answer is not None:
            item.seen = topic.turn
            await response.write(head + b'"at":%d,"rows":' % topic.at + topic.answer + b"}\n")
        if topic.failure is None:
            return
        item.failure, item.topic = topic.failure, None
    if item.failure is not None:
        failure, item.failure = item.failure, None
        await response.write(head + error_line(failure)[1:])


def _rows_of(result: Result) -> bytes:
    """An answer as an array of objects.

    54000  one too large to be kept
    """
    pieces: list[bytes] = []
    size = 0
    for batch in result.batches():
        pieces.append(json_lines(batch, result.names, result.types, ","))
        size += len(pieces[-1])
        if size > LIVE_BYTES_MAX:
            raise ProgramLimitExceeded(f"the answer of a live query is at most {LIVE_BYTES_MAX} bytes")
    return b"[" + b"".join(pieces)[:-1] + b"]"


def _every_ms(given: Any) -> int:
    if given is None:
        return EVERY_MS
    text = str(given)
    if text.isascii() and text.isdigit() and len(text) < 9:
        return int(text)
    raise InvalidParameter(f"every_ms is a whole number from 0, not {text[:40]!r}")
