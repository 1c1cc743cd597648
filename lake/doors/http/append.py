"""POST /append/{table} and POST /insert/{table}. Spec: HTTP, Append and bulk insert."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from lake.doors.http.routes import caller_of, json_answer, node_of, route
from lake.errors import InvalidParameter, ProtocolViolation
from lake.roles import Role

ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"
NAME_CHARS_MAX: Final = 256


@route("POST", "/append/{table}", role=Role.WRITE, by_grant=True)
async def append(request: web.Request) -> web.StreamResponse:
    """Appends the rows of the body, exactly once for a producer and its seq; durable when it answers.

    Body    newline-delimited JSON, or an Arrow IPC stream with its content type
    Query   producer, seq (from 1), prev
    Answer  {"seg", "duplicate", "conflict", "row", "ms"}
    22023   a seq below 1, or seq and producer not together
    """
    node, caller = node_of(request), caller_of(request)
    producer = request.query.get("producer")
    seq, prev = _counter(request, "seq", 1), _counter(request, "prev", 0)
    if (producer is None) != (seq is None):
        raise InvalidParameter("producer and seq go together: seq counts a producer's sends from 1")
    if prev is not None and producer is None:
        raise InvalidParameter("prev needs a producer and its seq")
    if producer is not None and not 1 <= len(producer) <= NAME_CHARS_MAX:
        raise InvalidParameter(f"a producer's name has 1 to {NAME_CHARS_MAX} characters")
    body = await request.read()
    is_arrow = request.content_type == ARROW_STREAM
    done = await node.append(
        caller, request.match_info["table"], body, is_arrow=is_arrow, producer=producer, seq=seq, prev=prev
    )
    return json_answer(
        {"seg": done.seg, "duplicate": done.duplicate, "conflict": done.conflict, "row": done.row, "ms": done.ms}
    )


@route("POST", "/insert/{table}", role=Role.WRITE, by_grant=True)
async def insert(request: web.Request) -> web.StreamResponse:
    """Writes the rows of the body's query to a table, made if absent; a job id is applied once.

    Answer  {"rows": N} or {"duplicate": true}
    """
    node, caller = node_of(request), caller_of(request)
    try:
        query = (await request.read()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProtocolViolation(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    outcome = await node.insert(caller, request.match_info["table"], query, request.query.get("job"))
    return json_answer(outcome)


def _counter(request: web.Request, name: str, low: int) -> int | None:
    given = request.query.get(name)
    if given is None:
        return None
    if given.isascii() and given.isdigit() and len(given) < 19 and int(given) >= low:
        return int(given)
    what = "seq counts from 1" if name == "seq" else f"{name} is a whole number from {low}"
    raise InvalidParameter(f"{what}, not {given[:40]!r}")
