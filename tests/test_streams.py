"""``db.watch`` and ``db.live`` in this process and through a node: the same rows either way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

import lake
from lake.connection import Connection
from lake.errors import FeatureNotSupported, InvalidParameter, UndefinedTable
from tests.cluster import Node, running_node


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node."""
    with running_node(tmp_path_factory.mktemp("streams") / "served") as node:
        yield node


@pytest.fixture(params=["embedded", "http"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    """A connection to a lake with an empty table."""
    place = str(tmp_path / "lake") if request.param == "embedded" else request.getfixturevalue("node").url
    with lake.connect(place) if request.param == "http" else lake.open(place) as db:
        db.sql("DROP TABLE IF EXISTS t; CREATE TABLE t (a INT, b TEXT)")
        yield db


def test_watch_follows_and_resumes(db: Connection) -> None:
    """Rows as they are committed; the position leads on."""
    db.sql("INSERT INTO t VALUES (1, 'x'), (2, NULL)")
    start = int(db.sql("SELECT min(_version) FROM t").item())
    stream = db.watch("t", after=start - 1)
    assert list(islice(stream, 2)) == [{"a": 1, "b": "x"}, {"a": 2}]
    db.sql("INSERT INTO t VALUES (3, 'y')")
    assert next(stream) == {"a": 3, "b": "y"}
    db.sql("INSERT INTO t VALUES (4, 'z')")
    assert next(stream) == {"a": 4, "b": "z"}
    position = db.position
    assert position is not None and position >= start
    stream.close()
    db.sql("UPDATE t SET b = 'w' WHERE a = 4; DELETE FROM t WHERE a = 1")
    stream = db.watch("t", after=position, changes=True)
    kinds = []
    while kinds[-1:] != ["delete"]:
        kinds.append(next(stream)["_change_type"])
    assert kinds[-3:] == ["update_preimage", "update_postimage", "delete"]
    stream.close()


def test_watch_waits_for_others(db: Connection) -> None:
    """Rows written by another thread meanwhile."""
    stream = db.watch("t", after=0)
    writer = threading.Timer(0.05, lambda: db.sql("INSERT INTO t VALUES (9, 'later')"))
    writer.start()
    assert next(stream) == {"a": 9, "b": "later"}
    stream.close()
    writer.join()


def test_live_answers_again(db: Connection) -> None:
    """Now, and when the answer is another."""
    stream = db.live("SELECT count(*) AS n FROM t WHERE a > $low", every_ms=0, low=1)
    assert next(stream) == [{"n": 0}]
    db.sql("INSERT INTO t VALUES (1, 'no')")
    db.sql("INSERT INTO t VALUES (2, 'yes')")
    assert next(stream) == [{"n": 1}]
    stream.close()


def test_what_cannot_be_followed_is_raised(db: Connection) -> None:
    """Errors are those of the lake."""
    with pytest.raises(UndefinedTable):
        next(db.watch("nobody"))
    with pytest.raises(InvalidParameter):
        next(db.watch("t", after=10_000_000))
    with pytest.raises(FeatureNotSupported):
        next(db.live("DELETE FROM t"))
    stream = db.watch("t", after=0)
    db.sql("DROP TABLE t")
    with pytest.raises(UndefinedTable):
        next(stream)
