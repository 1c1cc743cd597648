"""The HTTP door as an OpenAPI 3.1 description, made from ROUTES: what ``lake docs DIR`` writes to ``http.json``.

    describe()["paths"]["/sql/pages/{id}"]["get"]["parameters"]         id, from, rows

What a row of ROUTES does not say is in ENDPOINTS: parameters, bodies, what a good answer is, statuses beside the usual ones.
An error of any kind is 500 with a SQLSTATE, which is never that of an internal error. Source: OpenAPI Specification 3.1.1.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from lake import __version__
from lake.doors.http.encode import CONTENT_TYPES, FORMATS
from lake.doors.http.routes import ROUTES, Route
from lake.late import late_pattern

Schema = Mapping[str, Any]

TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
TRUTH: Final[Schema] = {"enum": ["true", "false", "1", "0"]}
ROWS: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 100_000}
ROW: Final[Schema] = {"type": "object"}
BYTES: Final[Schema] = {}
NAMES: Final[Schema] = {"type": "array", "items": TEXT}


def _object(required: Mapping[str, Schema], **optional: Schema) -> Schema:
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


APPENDED: Final = _object(
    {"seg": WHOLE, "duplicate": {"type": "boolean"}, "conflict": {"type": "boolean"}, "row": WHOLE, "ms": {"type": "number"}}
)
COLUMNS: Final = _array({"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2})
DEFINITION: Final = _object(
    {"columns": COLUMNS}, key=NAMES, merge={"type": "object", "additionalProperties": TEXT}, publish=NAMES, cluster_by=NAMES,
    partition_by=TEXT, ttl=TEXT, order_by=TEXT,
)  # fmt: skip
TYPED: Final = _object(
    {"columns": _array(_object({"name": TEXT, "type": TEXT})), "rows": _array({"type": "array"}), "total": WHOLE,
     "pages": {"type": ["string", "null"]}}
)  # fmt: skip
STORED: Final = _object({"path": {"type": "string", "pattern": "^files/"}, "bytes": WHOLE, "version": TEXT})
ENTRY: Final = _object(
    {"catalog": TEXT, "schema": TEXT, "name": TEXT, "kind": TEXT},
    rows=WHOLE, bytes=WHOLE, key=NAMES, partition={"type": ["string", "null"]}, cluster=NAMES, not_null=NAMES,
    defaults={"type": "object"}, sql=TEXT,
)  # fmt: skip
STATS: Final = _object(
    {"lake": TEXT, "role": {"enum": ["leader", "follower", "reader"]}, "leader": TEXT, "nodes": NAMES, "hwm": WHOLE,
     "version": TEXT, "format": WHOLE, "live_queries": WHOLE}
)  # fmt: skip
STATEMENT: Final = _object(
    {"sql": TEXT}, params={"type": "object"}, views={"type": "object", "additionalProperties": TEXT},
    tables={"type": "object", "additionalProperties": _array(ROW)},
)  # fmt: skip
LIVE: Final = _object(
    {"queries": _array(_object({"sql": TEXT}, params={"type": "object"}, session=TEXT))}, every_ms=WHOLE
)
SESSION: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{8,128}$"}


class Endpoint(Struct, frozen=True):
    """What an endpoint takes and answers.

    query, headers, body  schemas by parameter, by header, by content type
    answer                schemas of 200 by content type; ``statuses`` are others that it answers
    streams               whether it goes on for as long as the connection stays open
    """

    query: Mapping[str, Schema] = field(default_factory=dict)
    headers: Mapping[str, Schema] = field(default_factory=dict)
    body: Mapping[str, Schema] = field(default_factory=dict)
    answer: Mapping[str, Schema] = field(default_factory=dict)
    statuses: tuple[int, ...] = ()
    streams: bool = False


def _json(schema: Schema) -> Mapping[str, Schema]:
    return {"application/json": schema}


PLAIN: Final = {"text/plain": TEXT}
LINES: Final = {"application/x-ndjson": BYTES}
ENDPOINTS: Final[Mapping[tuple[str, str], Endpoint]] = {
    ("POST", "/sql"): Endpoint(
        query={"format": {"enum": list(FORMATS)}, "job": {"type": "string", "maxLength": 256}, "rows": ROWS, "after": WHOLE,
               "stale_ms": WHOLE, "spread": {"enum": [0, 1]}},
        headers={"x-lake-session": SESSION}, body={"text/plain": TEXT, "application/json": STATEMENT},
        answer=dict.fromkeys(dict.fromkeys(CONTENT_TYPES.values()), BYTES),
    ),
    ("GET", "/sql/pages/{id}"): Endpoint(query={"from": WHOLE, "rows": ROWS}, answer=_json(TYPED), statuses=(410,)),
    ("DELETE", "/sessions/{id}"): Endpoint(answer=_json(_object({"ended": {"const": True}}))),
    ("POST", "/append/{table}"): Endpoint(
        query={"producer": {"type": "string", "minLength": 1, "maxLength": 256}, "seq": {"type": "integer", "minimum": 1},
               "prev": WHOLE},
        body={"text/plain": TEXT, "application/x-ndjson": BYTES, "application/vnd.apache.arrow.stream": BYTES},
        answer=_json(APPENDED),
    ),
    ("POST", "/insert/{table}"): Endpoint(
        query={"job": {"type": "string", "maxLength": 256}}, body=PLAIN,
        answer=_json({"anyOf": [_object({"rows": WHOLE}), _object({"duplicate": {"const": True}})]}),
    ),
    ("POST", "/tables/{name}"): Endpoint(
        body=_json({"anyOf": [COLUMNS, DEFINITION]}),
        answer=_json(_object({"table": TEXT, "publish": {"type": ["array", "null"]}})),
    ),
    ("GET", "/lookup/{table}/{key}"): Endpoint(answer=_json({"type": "array", "items": ROW, "maxItems": 1})),
    ("GET", "/watch/{table}"): Endpoint(
        query={"after": WHOLE, "marks": TRUTH, "changes": TRUTH}, answer=LINES, streams=True,
    ),
    ("GET", "/live"): Endpoint(
        query={"sql": TEXT, "every_ms": WHOLE}, headers={"x-lake-session": SESSION}, answer=LINES, streams=True,
    ),
    ("POST", "/live"): Endpoint(query={"every_ms": WHOLE}, body=_json(LIVE), answer=LINES, streams=True),
    ("PUT", "/files/{path}"): Endpoint(
        headers={"If-Match": TEXT}, body={"application/octet-stream": BYTES}, answer=_json(STORED), statuses=(409, 412),
    ),
    ("GET", "/files/{path}"): Endpoint(
        query={"versions": TEXT, "version": TEXT}, headers={"If-None-Match": TEXT}, answer={"*/*": BYTES},
        statuses=(304, 404),
    ),
    ("DELETE", "/files/{path}"): Endpoint(
        headers={"If-Match": TEXT}, answer=_json(_object({"removed": TEXT})), statuses=(404, 412),
    ),
    ("POST", "/files/{path}"): Endpoint(query={"restore": TEXT}, answer=_json(STORED), statuses=(404, 409, 412)),
    ("GET", "/stats"): Endpoint(answer=_json(STATS)),
    ("GET", "/healthz"): Endpoint(answer=PLAIN),
    ("GET", "/ready"): Endpoint(answer=PLAIN),
    ("GET", "/whoami"): Endpoint(
        answer=_json(_object({"user": TEXT, "role": TEXT, "superuser": {"type": "boolean"}, "open": {"type": "boolean"}}))
    ),
    ("POST", "/login"): Endpoint(
        body=_json(_object({"user": TEXT, "password": TEXT})), answer=_json(_object({"token": TEXT, "until": WHOLE})),
        statuses=(401,),
    ),
    ("GET", "/objects"): Endpoint(answer=_json(_array(ENTRY))),
    ("GET", "/kinds"): Endpoint(answer=_json(_array(_object({"kind": TEXT, "family": TEXT, "statements": TEXT})))),
    ("GET", "/metrics"): Endpoint(answer=PLAIN),
    ("POST", "/tier"): Endpoint(answer=_json(_object({"rows_tiered": WHOLE}))),
    ("GET", "/"): Endpoint(answer=PLAIN),
}  # fmt: skip

MEANINGS: Final = {
    200: "done", 304: "the file is at that version still", 400: "not HTTP", 401: "sign in", 403: "more rights are needed",
    404: "no such file", 409: "the file is there already", 410: "the page is gone", 412: "the file changed",
    413: "the body is too large", 417: "an expectation that is not met", 500: "every other error, told by its SQLSTATE",
    503: "the node starts or stops",
}  # fmt: skip
SQLSTATE: Final = {"schema": {"type": "string", "pattern": "^(?!XX)[0-9A-Z]{5}$"}, "required": True}
PATH_NAME: Final = late_pattern(r"\{(\w+)\}")


def describe() -> dict[str, Any]:
    """The description as JSON has it."""
    paths: dict[str, dict[str, Any]] = {}
    for row in ROUTES:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row, ENDPOINTS.get((row.method, row.path)))
    return {
        "openapi": "3.1.0",
        "info": {"title": "lake", "version": __version__, "description": "A database made of a folder: its HTTP door."},
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"}, "password": {"type": "http", "scheme": "basic"},
            }
        },
    }  # fmt: skip


def _operation(row: Route, found: Endpoint | None) -> dict[str, Any]:
    """One endpoint; of one that is still to come no more than that it is refused."""
    endpoint = found or Endpoint()
    doc = inspect.cleandoc(row.handler.__doc__ or "")
    path = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in PATH_NAME.findall(row.path)]
    query = [{"name": name, "in": "query", "schema": schema} for name, schema in endpoint.query.items()]
    headers = [{"name": name, "in": "header", "schema": schema} for name, schema in endpoint.headers.items()]
    made: dict[str, Any] = {
        "operationId": f"{row.method.lower()} {row.path}",
        "summary": doc.partition("\n")[0],
        "description": doc,
        "parameters": [*path, *query, *headers],
        "responses": _responses(row, endpoint, is_built=found is not None),
        "security": [] if row.role is None else [{"token": []}, {"password": []}],
    }
    if endpoint.body:
        made["requestBody"] = {"content": {kind: {"schema": schema} for kind, schema in endpoint.body.items()}}
    if endpoint.streams:
        made["x-streams"] = True
    return made


def _responses(row: Route, endpoint: Endpoint, *, is_built: bool) -> dict[str, Any]:
    statuses = {400, 500, *endpoint.statuses} | ({401, 403} if row.role is not None else set())
    statuses |= {503} if not row.while_stopping or row.path == "/ready" else set()
    statuses |= {413} if row.method in ("POST", "PUT") else set()
    made = {str(status): _refusal(status) for status in sorted(statuses)}
    if is_built:
        made["200"] = {
            "description": MEANINGS[200],
            "content": {kind: {"schema": schema} for kind, schema in endpoint.answer.items()},
        }
    return made


def _refusal(status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": MEANINGS[status]}
    if status != 304:
        answer["content"] = {"text/plain": {"schema": TEXT}}
    if status in (401, 403, 404, 409, 412, 500):
        answer["headers"] = {"x-lake-sqlstate": SQLSTATE}
    return answer
