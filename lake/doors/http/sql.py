"""POST /sql and its pages.

    POST /sql?format=typed        {"sql": "SELECT * FROM t WHERE id = $id", "params": {"id": 7}}

Spec: HTTP, Query.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import orjson
import pyarrow as pa
from aiohttp import web
from msgspec import Struct

from lake import log
from lake.db.accounted import Origin
from lake.db.lent import Lent
from lake.db.result import Result
from lake.db.session import Session
from lake.doors.http import encode
from lake.doors.http.pages import Pages
from lake.doors.http.routes import COMPRESSED, Answer, Asked, caller_of, json_answer, json_of, node_of, route
from lake.errors import InvalidParameter, LakeError, ProtocolViolation
from lake.exec.memory import Budget
from lake.net.node import Node
from lake.net.threads import Stream
from lake.roles import Principal, Role

FIRST_ROWS: Final = 10_000
ROWS_MAX: Final = 100_000
SQL_BYTES_MAX: Final = 64 << 20
TEXT_BYTES: Final = 200  # of the texts that a text table makes of a value
PIECE_BYTES: Final = 64 << 10  # a smaller answer is sent whole, with its length
DOWNLOADS: Final = ("csv", "tsv", "ndjson", "parquet", "xlsx")
RECALLED: Final = ("json", "arrow")  # formats of answers that are looked up on the event loop
PAGES: Final = web.AppKey("pages", Pages)


class _Statements(Struct, frozen=True):
    """What a request asks for, with the views and tables that it brings along, in the session that it names."""

    session: Session
    format: str
    text: str
    params: dict[str, Any] | None
    lent: Lent | None
    after: int | None
    stale_ms: int | None
    job: str | None


def sql_at_hand(node: Node, caller: Principal, request: Asked, body: bytes) -> Answer | None:
    """An answer that is remembered, or a row in memory."""
    asked = _asked(node, caller, request, body)
    return None if asked.after is not None else _recalled(node, asked)


@route("POST", "/sql", role=Role.READ, at_hand=sql_at_hand)
async def sql(request: web.Request) -> web.StreamResponse:
    """Runs the statements of the body; answers the last one's result in ``format``.

    Body    SQL text, or JSON ``{"sql": .., "params": {..}, "views": {name: query}, "tables": {name: [row, ..]}}``
    Query   format, job, rows (with typed), after, stale_ms, spread
    22023   an unknown format or a number out of range      08P01  a body that is not text or not such JSON
    53200   an answer in format typed or table that holds more memory than queries may; the others come in pieces
    """
    node, caller = node_of(request), caller_of(request)
    asked = _asked(node, caller, request, await request.read())
    if asked.after is not None:
        await node.wait_for(asked.after)
    known = _recalled(node, asked)
    if known is not None:
        return known.response()
    format, session, text, params = asked.format, asked.session, asked.text, asked.params
    if format in ("typed", "table"):
        rows, pages = _number(request, "rows", 1, ROWS_MAX) or FIRST_ROWS, request.app[PAGES]

        def answer(result: Result) -> web.Response:
            if not result.is_query:
                return _response(result, orjson.dumps(result.outcome) + b"\n" * (format == "table"), format)
            budget = node.database.budget()  # counts until this function ends
            kept = _whole(format, result, budget)
            return _response(result, encode.table(kept) if format == "table" else _typed(kept, rows, pages), format)

        return await node.execute(
            session, text, params, job=asked.job, stale_ms=asked.stale_ms, lent=asked.lent, then=answer
        )
    make = partial(_pieces, format)
    stream = await node.stream(
        session, text, params, job=asked.job, stale_ms=asked.stale_ms, lent=asked.lent, make=make
    )
    try:
        return await _send(request, format, stream)
    finally:
        stream.close()


@route("GET", "/sql/pages/{id}", role=Role.READ)
async def page(request: web.Request) -> web.StreamResponse:
    """More rows of a typed answer, in the same form and order, without running it again; 410 once the page is gone."""
    kept = request.app[PAGES].get(request.match_info["id"])
    if kept is None:
        return web.Response(status=410, text="this page is gone: run the query again")
    start = _number(request, "from", 0, 2**63 - 1) or 0
    rows = _number(request, "rows", 1, ROWS_MAX) or FIRST_ROWS
    body = await node_of(request).call(lambda: encode.typed(kept, start, rows, request.match_info["id"]))
    return web.Response(body=body, content_type="application/json")


@route("DELETE", "/sessions/{id}", role=Role.READ)
async def end_session(request: web.Request) -> web.StreamResponse:
    """Ends a session."""
    node_of(request).end_session(caller_of(request), request.match_info["id"])
    return json_answer({"ended": True})


def _asked(node: Node, caller: Principal, request: Asked, body: bytes) -> _Statements:
    format = request.query.get("format", "json")
    if format not in encode.FORMATS:
        raise InvalidParameter(f'unknown format "{format}"', hint=f"one of {', '.join(encode.FORMATS)}")
    text, params, lent = _read(body, is_json=request.content_type == "application/json")
    id = request.headers.get("x-lake-session")
    session = node.session(caller, id)
    session.origin = Origin("http", request.remote or "", id or "")
    _number(request, "spread", 0, 1)  # of a node that is alone there is nothing to spread to
    after, stale_ms = _number(request, "after", 0, 2**63 - 1), _number(request, "stale_ms", 0, 2**53)
    return _Statements(session, format, text, params, lent, after, stale_ms, request.query.get("job"))


def _read(body: bytes, *, is_json: bool) -> tuple[str, dict[str, Any] | None, Lent | None]:
    """The text of statements, their parameters, and what they may name beside the lake's own."""
    if len(body) > SQL_BYTES_MAX:
        raise web.HTTPRequestEntityTooLarge(
            SQL_BYTES_MAX, len(body), text=f"a statement is at most {SQL_BYTES_MAX} bytes; rows go to POST /append"
        )
    if not is_json:
        try:
            return body.decode("utf-8"), None, None
        except UnicodeDecodeError as error:
            raise ProtocolViolation(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    parsed = json_of(body)
    if not isinstance(parsed, dict) or not isinstance(parsed.get("sql"), str):
        raise ProtocolViolation('a JSON body is {"sql": "..", "params": {..}}')
    params = parsed.get("params")
    if params is not None and not isinstance(params, dict):
        raise ProtocolViolation("params is an object of names and values")
    return parsed["sql"], params, _lent(parsed.get("views"), parsed.get("tables"))


def _lent(views: Any, tables: Any) -> Lent | None:
    views, tables = {} if views is None else views, {} if tables is None else tables
    if not isinstance(views, dict) or not all(isinstance(text, str) for text in views.values()):
        raise ProtocolViolation("views is an object of names and queries")
    if not isinstance(tables, dict) or not all(_are_rows(rows) for rows in tables.values()):
        raise ProtocolViolation("tables is an object of names and arrays of rows, which are objects")
    return Lent(views, tables) if views or tables else None


def _are_rows(rows: Any) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) for row in rows)


def _recalled(node: Node, asked: _Statements) -> Answer | None:
    """An answer on the event loop itself, where it is at hand."""
    if asked.format not in RECALLED or asked.job is not None or asked.lent is not None:
        return None
    known = node.recall(asked.session, asked.text, asked.params, asked.stale_ms)
    if known is None:
        return None
    return Answer(_encoded(known, asked.format), encode.CONTENT_TYPES[asked.format], _headers(known))


def _encoded(known: Result, format: str) -> bytes:
    """An answer at hand as bytes, which are remembered with one that is; there are few formats, and the answer is small."""
    kept = known.encoded
    body = None if kept is None else kept.get(format)
    if body is None:
        body = b"".join(encode.STREAMS[format](known))
        if kept is not None:
            kept[format] = body
    return body


def _whole(format: str, result: Result, budget: Budget) -> encode.Kept:
    """All rows of an answer in a format that is not made in pieces.

    53200  they hold more memory than queries may
    """
    account, batches = budget.open(), []
    for batch in result.batches():
        batches.append(batch)
        texts = TEXT_BYTES * batch.num_rows * batch.num_columns if format == "table" else 0
        account.hold(account.bytes + batch.nbytes + texts, f"an answer in format {format}, which is made as a whole,")
    return encode.Kept(result.names, result.types, pa.Table.from_batches(batches, result.schema))


def _typed(kept: encode.Kept, rows: int, pages: Pages) -> bytes:
    id = pages.keep(kept) if kept.table.num_rows > rows else None
    return encode.typed(kept, 0, rows, id)


def _pieces(format: str, result: Result) -> Iterator[bytes]:
    """The answer in pieces of some size; the first is the whole of a small answer, and says so by being the only one."""
    if not result.is_query:
        yield orjson.dumps(result.outcome)
        return
    waiting: list[bytes] = []
    size = 0
    for piece in encode.STREAMS[format](result):
        waiting.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


async def _send(request: web.Request, format: str, stream: Stream[bytes]) -> web.StreamResponse:
    """A small answer whole; a large one as the query makes it, and a slow reader holds the query back.

    What fails before the first piece is full fails with its status; what fails later ends the connection, so that nobody
    takes half an answer for a whole one.
    """
    result = stream.result
    first = await stream.next()
    assert first is not None, "every answer has a piece"
    if not result.is_query:
        return _response(result, first, "json")
    download = {"Content-Disposition": f'attachment; filename="answer.{format}"'} if format in DOWNLOADS else {}
    if len(first) < PIECE_BYTES:
        return _response(result, first, format, download)
    response = web.StreamResponse(headers=_headers(result) | download)
    response.content_type = encode.CONTENT_TYPES[format]
    if response.content_type in COMPRESSED:
        response.enable_compression()
    await response.prepare(request)
    piece: bytes | None = first
    try:
        while piece is not None:
            await response.write(piece)
            piece = await stream.next()
    except LakeError as error:
        log.warn("an answer ended half way", sqlstate=error.sqlstate, message=error.message)
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write_eof()
    return response


def _response(result: Result, body: bytes, format: str, headers: dict[str, str] | None = None) -> web.Response:
    kind = encode.CONTENT_TYPES[format]
    charset = "utf-8" if kind.startswith("text/") else None
    return web.Response(body=body, content_type=kind, charset=charset, headers=_headers(result) | (headers or {}))


def _headers(result: Result) -> dict[str, str]:
    """The command tag, and what a statement wants to say beside its answer. Spec: HTTP, Query, answer rule 5."""
    headers = {"x-lake-tag": result.tag}
    if result.notices:
        headers["x-lake-notices"] = json.dumps(result.notices)
    return headers


def _number(request: Asked, name: str, low: int, high: int) -> int | None:
    """A whole number of the query string, or None where it is not given.

    22023  not a whole number from ``low`` to ``high``
    """
    given = request.query.get(name)
    if given is None or given == "":
        return None
    if given.lstrip("-").isascii() and given.lstrip("-").isdigit() and low <= int(given[:25]) <= high:
        return int(given)
    raise InvalidParameter(f"{name} is a whole number from {low} to {high}, not {given[:40]!r}")
