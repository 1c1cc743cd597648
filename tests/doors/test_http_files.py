"""Files kept in the lake: etags, versions, restore, files() and file_read. Spec: HTTP, Files; SQL, Function catalog (Files)."""

from __future__ import annotations

import concurrent.futures

import pytest

from tests.cluster import Node, Reply
from tests.doors.test_http_operations import bearer
from tests.doors.test_http_sql import header


def send(node: Node, method: str, path: str, body: bytes | str = b"", **headers: str) -> Reply:
    """The answer to one request."""
    wire = node.wire()
    try:
        return wire.send(method, path, body, **headers)
    finally:
        wire.close()


def state(reply: Reply) -> tuple[int, str | None]:
    """Status and SQLSTATE."""
    return reply.status, header(reply, "x-lake-sqlstate")


def test_a_file_is_stored_once_and_replaced_by_its_etag(node: Node) -> None:
    """PUT makes, a second is 409, If-Match replaces, and 412 keeps the other save. Spec: HTTP, PUT /files. HTTP Files 1, 2, 3, 4, 5."""
    path = "/files/notes/one.sql"
    made = send(node, "PUT", path, "SELECT 1")
    assert (made.status, made.json()["path"], made.json()["bytes"]) == (200, "files/notes/one.sql", 8)
    assert state(send(node, "PUT", path, "SELECT 2")) == (409, "58P02")
    got = send(node, "GET", path)
    etag = header(got, "etag") or ""
    assert (got.body, etag.strip('"')) == (b"SELECT 1", made.json()["version"])
    assert header(got, "content-type") == "text/plain; charset=utf-8"
    replaced = send(node, "PUT", path, "SELECT 2", If_Match=etag)
    assert replaced.status == 200 and replaced.json()["version"] != made.json()["version"]
    late = send(node, "PUT", path, "SELECT 3", If_Match=etag)
    assert state(late) == (412, "58P03") and late.body == b"the file changed since it was opened"
    assert send(node, "GET", path).body == b"SELECT 2", "the other save is kept"
    assert send(node, "GET", path, If_None_Match=header(replaced, "etag") or "").status == 304
    assert state(send(node, "PUT", "/files/never/was", "x", If_Match=etag)) == (412, "58P03")


def test_versions_restore_and_delete(node: Node) -> None:
    """Every save is a version, newest first; a removed file keeps its own. Spec: HTTP, GET /files?versions, POST ?restore. HTTP Files 6, 7, 8, 9."""
    path, texts = "/files/versioned.txt", [b"first", b"second", b"third"]
    tag = None
    for text in texts:
        reply = send(node, "PUT", path, text, **({} if tag is None else {"If_Match": tag}))
        tag = header(reply, "etag") or ""
    kept = send(node, "GET", path + "?versions").json()
    assert [item["bytes"] for item in kept] == [5, 6, 5] and [item["who"] for item in kept] == ["anyone"] * 3
    assert kept == sorted(kept, key=lambda item: item["at"], reverse=True) and kept[0]["at"].endswith("Z")
    assert [send(node, "GET", f"{path}?version={item['id']}").body for item in kept] == texts[::-1]
    assert send(node, "DELETE", path).json() == {"removed": "files/versioned.txt"}
    assert state(send(node, "GET", path)) == (404, "58P01")
    assert state(send(node, "DELETE", path)) == (404, "58P01")
    assert len(send(node, "GET", path + "?versions").json()) == 3
    back = send(node, "POST", f"{path}?restore={kept[2]['id']}")
    assert (back.status, back.json()["bytes"]) == (200, 5) and send(node, "GET", path).body == b"first"
    newest = send(node, "GET", path + "?versions").json()[0]["id"]
    assert newest == back.json()["version"] == (header(send(node, "GET", path), "etag") or "").strip('"')
    assert state(send(node, "POST", path + "?restore=nonsense")) == (404, "58P01")
    assert state(send(node, "GET", path + "?version=nonsense")) == (404, "58P01")
    assert state(send(node, "POST", path)) == (500, "22023")
    assert send(node, "GET", "/files/never/was?versions").json() == []


def test_one_of_many_saves_wins(node: Node) -> None:
    """Of writers that opened the same version one replaces it. Spec: HTTP, Files (If-Match). HTTP Files 3, 4."""
    path = "/files/raced"
    tag = header(send(node, "PUT", path, b"0"), "etag") or ""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: send(node, "PUT", path, f"save {number}", If_Match=tag), range(8)))
    statuses = sorted(reply.status for reply in replies)
    assert statuses == [200] + [412] * 7
    won = next(number for number, reply in enumerate(replies) if reply.status == 200)
    assert send(node, "GET", path).body == f"save {won}".encode()
    assert len(send(node, "GET", path + "?versions").json()) == 2, "what came too late leaves nothing"


def test_only_the_newest_versions_stay(node: Node) -> None:
    """LAKE_FILE_VERSIONS of them. Spec: HTTP, Files (Rules); Limits, File versions. HTTP Files 11."""
    path = "/files/many"
    send(node, "PUT", path, b"0")
    for number in range(1, 55):
        assert send(node, "PUT", path, str(number), If_Match="*").status == 200
    kept = send(node, "GET", path + "?versions").json()
    assert len(kept) == 50 and send(node, "GET", f"{path}?version={kept[-1]['id']}").body == b"5"


@pytest.mark.parametrize("path", ["", "a//b", "../x", "a/../../x", ".versions/x/y", "a%00b", "a%0Ab", "a" * 256, "a/" * 400 + "a", "a/"])
@pytest.mark.parametrize("method", ["PUT", "GET", "DELETE"])
def test_paths_that_are_none(node: Node, method: str, path: str) -> None:
    """A path that leaves the folder, or is the lake's own, is refused by name."""
    reply = send(node, method, f"/files/{path}", b"x")
    assert state(reply) in ((500, "22023"), (404, None)), reply.body


def test_a_file_holds_no_files(node: Node) -> None:
    """A disk has no room for a file and a folder of one name, so neither has a bucket."""
    send(node, "PUT", "/files/place", b"x")
    assert state(send(node, "PUT", "/files/place/below", b"x")) == (500, "22023")
    send(node, "PUT", "/files/folder/below", b"x")
    assert state(send(node, "PUT", "/files/folder", b"x")) == (500, "22023")
    assert state(send(node, "GET", "/files/folder")) == (404, "58P01")


def test_files_and_file_read(node: Node) -> None:
    """SQL sees the newest bytes at its next statement, and no versions. Spec: HTTP, Files (Rules). HTTP Files 10, 12."""
    send(node, "PUT", "/files/seen/a.txt", "old")
    send(node, "PUT", "/files/seen/b.bin", b"\x00\xff")
    rows = node.sql("SELECT path, size, written > TIMESTAMPTZ '2020-01-01 00:00:00Z' AS late FROM files('seen/') ORDER BY path")
    assert rows == [
        {"path": "files/seen/a.txt", "size": 3, "late": True}, {"path": "files/seen/b.bin", "size": 2, "late": True}
    ]  # fmt: skip
    assert node.sql("SELECT count(*) AS n FROM files() WHERE path LIKE '%.versions%'") == [{"n": 0}]
    text = "SELECT encode(file_read('seen/a.txt'), 'hex') AS a, byte_length(file_read('files/seen/b.bin')) AS b"
    assert node.sql(text) == [{"a": b"old".hex(), "b": 2}]
    send(node, "PUT", "/files/seen/a.txt", "newer", If_Match="*")
    assert node.sql(text) == [{"a": b"newer".hex(), "b": 2}]
    assert node.sql("SELECT file_read('seen/none') IS NULL AS missing") == [{"missing": True}]
    assert state(send(node, "POST", "/sql", "SELECT file_read('../x')")) == (500, "22023")


def test_who_may(locked: Node) -> None:
    """Reading takes the read role, storing and removing the write role; a user takes a grant on all tables."""
    assert send(locked, "PUT", "/files/theirs", b"x", **bearer("reads")).status == 403
    assert send(locked, "PUT", "/files/theirs", b"x", **bearer("writes")).status == 200
    assert send(locked, "GET", "/files/theirs").status == 401
    assert send(locked, "GET", "/files/theirs", **bearer("reads")).body == b"x"
    assert send(locked, "GET", "/files/theirs?versions", **bearer("reads")).json()[0]["who"] == "write"
    assert send(locked, "DELETE", "/files/theirs", **bearer("reads")).status == 403
    assert send(locked, "POST", "/files/theirs?restore=x", **bearer("reads")).status == 403


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", "text/csv; charset=utf-8"), ("a.png", "image/png"), ("a.ipynb", "application/x-ipynb+json"),
     ("a.nothing", "application/octet-stream"), ("a.json", "application/json")],
)  # fmt: skip
def test_content_types_come_from_names(node: Node, name: str, kind: str) -> None:
    """Spec: HTTP, GET /files (content type from the name). HTTP Files 5."""
    send(node, "PUT", f"/files/kinds/{name}", b"{}")
    assert header(send(node, "GET", f"/files/kinds/{name}"), "content-type") == kind
