"""GET /lookup: the current row of a key. Spec: HTTP, Reading keys and streams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Node, Wire


@pytest.fixture
def wire(node: Node) -> Iterator[Wire]:
    """A connection, and keyed tables with rows in files and in the log."""
    node.sql("CREATE OR REPLACE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR, at DATE)")
    node.sql("CREATE OR REPLACE TABLE pairs (a VARCHAR, b DATE, c DECIMAL(20,2), v INT, PRIMARY KEY (a, b, c))")
    node.sql("CREATE OR REPLACE TABLE plain (id BIGINT)")
    node.sql("INSERT INTO users VALUES (1, 'ann', '2024-01-01'), (2, 'bob', NULL), (3, 'eve', NULL)")
    node.sql("INSERT INTO pairs VALUES ('x', '2024-01-01', 1.5, 1), ('x y', '2024-01-01', 1.5, 2)")
    node.sql("CHECKPOINT")
    wire = node.wire()
    yield wire
    wire.close()


def test_the_newest_row_of_a_key(node: Node, wire: Wire) -> None:
    """From files, from the log over files, not after a DELETE; an append upserts. HTTP Streams 1."""
    assert wire.send("GET", "/lookup/users/1").json() == [{"id": 1, "name": "ann", "at": "2024-01-01"}]
    assert wire.send("POST", "/append/users", b'{"id": 1, "name": "anna"}\n').status == 200
    assert wire.send("GET", "/lookup/users/1").json() == [{"id": 1, "name": "anna"}]
    node.sql("DELETE FROM users WHERE id = 2")
    assert wire.send("GET", "/lookup/users/2").json() == []
    assert wire.send("GET", "/lookup/users/99").json() == []
    assert node.sql("SELECT count(*) AS n FROM users") == [{"n": 2}]


@pytest.mark.parametrize("format", ["json", "arrow", "typed", "csv"])
def test_a_query_of_one_key_answers_the_same_each_time(wire: Wire, format: str) -> None:
    """From a file, then from memory, where it is found without a thread. HTTP Streams 1."""
    query = "SELECT id, name FROM users WHERE id = 3"
    first, *more = (wire.send("POST", f"/sql?format={format}", query) for _ in range(3))
    assert first.status == 200 and b"eve" in first.body
    assert [(reply.status, reply.body) for reply in more] == [(200, first.body)] * 2


def test_keys_of_several_columns(node: Node, wire: Wire) -> None:
    """Values stand between commas in the order of the key. HTTP Streams 2."""
    assert wire.send("GET", "/lookup/pairs/x%20y,2024-01-01,1.5").json() == [
        {"a": "x y", "b": "2024-01-01", "c": 1.5, "v": 2}
    ]
    assert wire.send("GET", "/lookup/pairs/x,2024-01-02,1.5").json() == []


@pytest.mark.parametrize(
    ("path", "state"),
    [
        ("/lookup/plain/1", "42P16"),
        ("/lookup/nothing/1", "42P01"),
        ("/lookup/users/one", "22P02"),
        ("/lookup/pairs/x", "22023"),
    ],
)
def test_what_is_no_key_is_refused(wire: Wire, path: str, state: str) -> None:
    """A table without a key, none, a value of another type, too few values. HTTP Streams 3."""
    reply = wire.send("GET", path)
    assert (reply.status >= 400, reply.headers.get("x-lake-sqlstate")) == (True, state)
