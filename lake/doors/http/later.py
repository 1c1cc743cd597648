"""Endpoints of the specification whose subjects the lake does not have yet: each is refused by its name, 0A000.

They ask for the role that they will ask for, so that who may not call them is told that first. Spec: HTTP, Endpoints.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from lake.doors.http.routes import Handler, route
from lake.errors import FeatureNotSupported
from lake.roles import Role

LATER: Final[dict[str, tuple[tuple[str, str, Role | None], ...]]] = {
    "materialized views": (("POST", "/views/{name}", Role.ADMIN),),
    "tasks": (("POST", "/tasks/{name}", Role.ADMIN),),
    "functions of Flight servers": (
        ("POST", "/functions/{name}", Role.ADMIN), ("DELETE", "/functions/{name}", Role.ADMIN),
        ("GET", "/functions", Role.ADMIN),
    ),
    "routines": (("GET", "/routines", Role.READ),),
    "secrets": (("GET", "/secrets/{name}", None),),
    "variables of Python sessions": (
        ("GET", "/sessions/{id}/python", Role.ADMIN), ("POST", "/sessions/{id}/python", Role.ADMIN),
        ("DELETE", "/sessions/{id}/python", Role.ADMIN),
    ),
    "workers of Python": (
        ("GET", "/python", Role.ADMIN), ("PUT", "/python", Role.ADMIN), ("POST", "/python/format", Role.ADMIN),
    ),
    "settings of the console": (("GET", "/console/settings", None), ("PUT", "/console/settings", None)),
    "several databases of one server": (
        ("GET", "/databases", Role.READ), ("POST", "/databases", Role.ADMIN), ("DELETE", "/databases/{name}", Role.ADMIN),
    ),
}  # fmt: skip


def _refusing(subject: str, method: str, path: str) -> Handler:
    """An endpoint that says what is missing."""

    async def refuse(request: web.Request) -> web.StreamResponse:
        raise FeatureNotSupported(f"{method} {path}: {subject} are not supported yet")

    refuse.__doc__ = f"Refused: {subject} are not supported yet."
    return refuse


for _subject, _endpoints in LATER.items():
    for _method, _path, _role in _endpoints:
        route(_method, _path, role=_role)(_refusing(_subject, _method, _path))
