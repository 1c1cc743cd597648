"""POST /sql and its pages.

    POST /sql?format=typed        {"sql": "SELECT * FROM t WHERE id = $id", "params": {"id": 7}}

Spec: HTTP, Query.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import orjson
from aiohttp import web

from lake.db.result import Result
from lake.doors.http import encode
from lake.doors.http.pages import Pages
from lake.doors.http.routes import caller_of, node_of, route
from lake.errors import FeatureNotSupported, InvalidParameter, ProtocolViolation
from lake.roles import Role

FIRST_ROWS: Final = 10_000
ROWS_MAX: Final = 100_000
SQL_BYTES_MAX: Final = 64 << 20
PAGES: Final = web.AppKey("pages", Pages)


@route("POST", "/sql", role=Role.READ)
async def sql(request: web.Request) -> web.StreamResponse:
    """Runs the statements of the body; answers the last one's result in ``format``.

    Body    SQL text, or JSON ``{"sql": .., "params": {..}}``
    Query   format, job, rows (with typed), after, stale_ms, spread
    22023   an unknown format or a number out of range      08P01  a body that is not text or not such JSON
    """
    node, caller = node_of(request), caller_of(request)
    format = request.query.get("format", "json")
    if format not in encode.FORMATS:
        raise InvalidParameter(f'unknown format "{format}"', hint=f"one of {', '.join(encode.FORMATS)}")
    if format == "xlsx":
        raise FeatureNotSupported("format=xlsx is not supported yet")
    text, params = await _statement_of(request)
    session = node.session(caller, request.headers.get("x-lake-session"))
    after = _number(request, "after", 0, 2**63 - 1)
    if after is not None:
        await node.wait_for(after)
    _number(request, "stale_ms", 0, 2**63 - 1)
    job = request.query.get("job")
    if format == "typed":
        rows = _number(request, "rows", 1, ROWS_MAX) or FIRST_ROWS
        pages = request.app[PAGES]
        return await node.execute(
            session, text, params, job=job, then=lambda result: _response(result, _typed(result, rows, pages), "typed")
        )
    if format in ("json", "table"):
        make = encode.json_rows if format == "json" else encode.table
        return await node.execute(
            session, text, params, job=job, then=lambda result: _response(result, make(result), format)
        )
    return await _stream(request, format, await node.execute(session, text, params, job=job, then=lambda r: r))


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
    return web.json_response({"ended": True})


async def _statement_of(request: web.Request) -> tuple[str, dict[str, Any] | None]:
    body = await request.read()
    if len(body) > SQL_BYTES_MAX:
        raise InvalidParameter(f"a statement is at most {SQL_BYTES_MAX} bytes; rows go to POST /append")
    try:
        if request.content_type != "application/json":
            return body.decode("utf-8"), None
        parsed = orjson.loads(body)
    except UnicodeDecodeError as error:
        raise ProtocolViolation(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    except orjson.JSONDecodeError as error:
        raise ProtocolViolation(f"the body is not JSON: {error}") from None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("sql"), str):
        raise ProtocolViolation('a JSON body is {"sql": "..", "params": {..}}')
    params = parsed.get("params") or {}
    if not isinstance(params, dict):
        raise ProtocolViolation("params is an object of names and values")
    if parsed.get("views") or parsed.get("tables"):
        raise FeatureNotSupported("views and tables of a request are not supported yet")
    return parsed["sql"], params


def _typed(result: Result, rows: int, pages: Pages) -> bytes:
    if not result.is_query:
        return orjson.dumps(result.outcome)
    kept = encode.Kept(result.names, result.types, result.arrow())
    id = pages.keep(kept) if kept.table.num_rows > rows else None
    return encode.typed(kept, 0, rows, id)


async def _stream(request: web.Request, format: str, result: Result) -> web.StreamResponse:
    """A download, sent as the query makes it: a slow reader holds the query back."""
    if not result.is_query:
        return _response(result, orjson.dumps(result.outcome), "json")
    chunks: Iterator[bytes] = encode.STREAMS[format](result)
    node = node_of(request)
    # The first piece is made before the answer starts, so that a query that fails at once fails with its status.
    first = await node.call(lambda: next(chunks, b""))
    response = web.StreamResponse(headers=_headers(result))
    response.content_type = encode.CONTENT_TYPES[format]
    if format in ("csv", "tsv", "ndjson", "parquet"):
        response.headers["Content-Disposition"] = f'attachment; filename="answer.{format}"'
    await response.prepare(request)
    try:
        await response.write(first)
        async for chunk in node.chunks(chunks):
            await response.write(chunk)
    finally:
        result.close()
    await response.write_eof()
    return response


def _response(result: Result, body: bytes, format: str) -> web.Response:
    kind = encode.CONTENT_TYPES[format]
    return web.Response(body=body, content_type=kind, charset="utf-8", headers=_headers(result))


def _headers(result: Result) -> dict[str, str]:
    """The command tag, and what a statement wants to say beside its answer. Spec: HTTP, Query, answer rule 5."""
    headers = {"x-lake-tag": result.tag}
    if result.notices:
        headers["x-lake-notices"] = json.dumps(result.notices)
    return headers


def _number(request: web.Request, name: str, low: int, high: int) -> int | None:
    """A whole number of the query string, or None where it is not given.

    22023  not a whole number from ``low`` to ``high``
    """
    given = request.query.get(name)
    if given is None or given == "":
        return None
    if given.lstrip("-").isascii() and given.lstrip("-").isdigit() and low <= int(given[:25]) <= high:
        return int(given)
    raise InvalidParameter(f"{name} is a whole number from {low} to {high}, not {given[:40]!r}")
