"""/files/{path}: what people keep in the lake beside its tables, with versions. Spec: HTTP, Files.

PUT    /files/notes.sql                     {"path": "files/notes.sql", "bytes": 9, "version": ..}     409 where it is there
PUT    /files/notes.sql  If-Match: VERSION  replaces that version                                      412 where it changed
GET    /files/notes.sql                     the bytes, the version as etag
GET    /files/notes.sql?versions            what it was, newest first; ?version=ID the bytes of one
POST   /files/notes.sql?restore=ID          makes a version the file again
"""

from __future__ import annotations

import mimetypes
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from lake.doors.http.routes import caller_of, json_answer, node_of, route
from lake.errors import InvalidParameter
from lake.roles import Role
from lake.storage.files import Version, name_of

PATH: Final = "/files/{path}"
# Names whose types Python does not know, or that would be run by a browser that shows them.
TYPES: Final = {
    ".ipynb": "application/x-ipynb+json", ".sql": "text/plain", ".md": "text/markdown", ".py": "text/x-python",
    ".parquet": "application/vnd.apache.parquet", ".ndjson": "application/x-ndjson", ".jsonl": "application/x-ndjson",
    ".arrow": "application/vnd.apache.arrow.file", ".yml": "application/yaml", ".yaml": "application/yaml",
}  # fmt: skip


@route("PUT", PATH, role=Role.WRITE)
async def put_file(request: web.Request) -> web.StreamResponse:
    """Stores the body as a file: a new one, or with If-Match in place of the version that a GET told.

    Header  If-Match: the version that is replaced, ``*`` for whichever it is
    Answer  {"path", "bytes", "version"}
    58P02   409: the file is there already      58P03   412: it changed since      22023   no path of a file
    """
    node, caller, path = node_of(request), caller_of(request), request.match_info["path"]
    data = await request.read()
    wanted = _tag(request, "If-Match")
    version = await node.files(caller, Role.WRITE, lambda files: files.put(path, data, caller.user, wanted))
    return _stored(path, len(data), version)


@route("GET", PATH, role=Role.READ)
async def get_file(request: web.Request) -> web.StreamResponse:
    """A file's bytes with its version as etag, its versions, or the bytes of one of these.

    Query   versions, version
    Header  If-None-Match: 304 where the file is still at that version
    58P01   404: no such file, or no such version
    """
    node, caller, path = node_of(request), caller_of(request), request.match_info["path"]
    if "versions" in request.query:
        found = await node.files(caller, Role.READ, lambda files: files.versions(path))
        return json_answer([_shown(item) for item in found])
    id = request.query.get("version")
    if id is not None:
        return _bytes(path, await node.files(caller, Role.READ, lambda files: files.version(path, id)), id)
    data, version = await node.files(caller, Role.READ, lambda files: files.get(path))
    if _tag(request, "If-None-Match") == version:
        return web.Response(status=304, headers={"ETag": f'"{version}"'})
    return _bytes(path, data, version)


@route("DELETE", PATH, role=Role.WRITE)
async def delete_file(request: web.Request) -> web.StreamResponse:
    """Removes a file; its versions stay.

    Header  If-Match: removes that version only
    Answer  {"removed": path}
    58P01   404: no such file      58P03   412: it changed since
    """
    path, wanted = request.match_info["path"], _tag(request, "If-Match")
    await node_of(request).files(caller_of(request), Role.WRITE, lambda files: files.delete(path, wanted))
    return json_answer({"removed": name_of(path)})


@route("POST", PATH, role=Role.WRITE)
async def restore_file(request: web.Request) -> web.StreamResponse:
    """Makes a version the file again, as its newest save.

    Query   restore: the version's id
    Answer  {"path", "bytes", "version"}
    58P01   404: no such version      22023   without ``restore``
    """
    node, caller, path = node_of(request), caller_of(request), request.match_info["path"]
    id = request.query.get("restore")
    if not id:
        raise InvalidParameter("POST /files/{path} takes ?restore=ID; PUT stores a body")
    version = await node.files(caller, Role.WRITE, lambda files: files.restore(path, id, caller.user))
    found = await node.files(caller, Role.WRITE, lambda files: files.versions(path))
    return _stored(path, next((item.bytes for item in found if item.id == version), 0), version)


def content_type_of(path: str) -> str:
    """The content type by a file's name; bytes of no known kind are ``application/octet-stream``."""
    suffix = "." + path.rpartition(".")[2].lower()
    return TYPES.get(suffix) or mimetypes.guess_type(path.rpartition("/")[2])[0] or "application/octet-stream"


def _stored(path: str, size: int, version: str) -> web.Response:
    answer = json_answer({"path": name_of(path), "bytes": size, "version": version})
    answer.headers["ETag"] = f'"{version}"'
    return answer


def _bytes(path: str, data: bytes, version: str) -> web.Response:
    """The bytes, as what their name says; a browser neither guesses another kind nor runs what they hold."""
    kind = content_type_of(path)
    headers = {
        "Content-Type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind, "ETag": f'"{version}"',
        "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox",
    }  # fmt: skip
    return web.Response(body=data, headers=headers)


def _shown(item: Version) -> dict[str, Any]:
    at = datetime.fromtimestamp(item.at / 1e6, UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    return {"id": item.id, "at": at, "who": item.who, "bytes": item.bytes}


def _tag(request: web.Request, name: str) -> str | None:
    """The version that a header names, with or without the quotes of an etag."""
    given = request.headers.get(name)
    return None if given is None else given.strip().removeprefix("W/").strip('"')
