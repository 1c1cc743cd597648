"""The description of the HTTP door is made of its routes, and says what their code asks for. HTTP Query 23."""

from __future__ import annotations

import inspect
import re

import lake.doors.http.app  # noqa: F401  (fills ROUTES)
from lake.doors.http import append, files, sql, streams
from lake.doors.http.later import LATER
from lake.doors.http.openapi import ENDPOINTS, describe
from lake.doors.http.routes import ROUTES

CALLS = r"(?:request\.query\.get\(|_flag\(request,|_number\(request,|_counter\(request,|_tag\(request,)"
ASKED = re.compile(CALLS + r'\s*"([\w-]+)"|"(\w+)" in request\.query')


def test_every_endpoint_is_described() -> None:
    """Each row of ROUTES that is built has its own; what is still to come is described as refused."""
    later = {(method, path) for rows in LATER.values() for method, path, _ in rows}
    assert {(row.method, row.path) for row in ROUTES} == set(ENDPOINTS) | later
    described = describe()["paths"]
    assert "200" not in described["/views/{name}"]["post"]["responses"]
    assert [item["name"] for item in described["/sql/pages/{id}"]["get"]["parameters"]] == ["id", "from", "rows"]


def test_every_parameter_is_described() -> None:
    """Names in the code of endpoints and in the description are the same."""
    asked = {name for module in (append, files, sql, streams) for found in ASKED.findall(inspect.getsource(module)) for name in found}
    described = {name for item in ENDPOINTS.values() for name in (*item.query, *item.headers)}
    assert asked - {""} == described - {"x-lake-session"}
