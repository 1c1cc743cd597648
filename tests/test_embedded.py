"""`lake.open` and `lake.connect`: parameters and answers in Python's own types, embedded and over HTTP alike."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lake
from lake.connection import Connection
from lake.errors import InvalidParameter, IoFailure, ObjectNotInState, UndefinedTable
from tests.cluster import free_port, running_node

ZONE = dt.timezone(dt.timedelta(hours=2))
VALUES: list[Any] = [
    None, True, 0, -1, 2**31, 2**63 - 1, -(2**63), 0.1, -1e300, 5e-324, "", "it's", "ü\n\t\"", "$x; --", b"",
    b"\x00\xff", Decimal("1.50"), Decimal("-0.001"), Decimal("12345678901234567890.123"), Decimal(7),
    dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.time(23, 59, 59, 999999),
    dt.datetime(2024, 2, 29, 12, 30, 0, 123456), dt.datetime(1969, 12, 31), [1, 2, None], ["a", "b"],
]  # fmt: skip


@pytest.fixture(scope="module", params=["embedded", "http"])
def db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A lake in this process, and one behind a node."""
    folder = tmp_path_factory.mktemp("both") / "lake"
    if request.param == "embedded":
        with lake.open(folder) as connection:
            yield connection
    else:
        with running_node(folder) as node, lake.connect(node.url) as connection:
            yield connection


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_parameters_come_back(db: Connection, value: Any) -> None:
    """A value that goes in as a parameter is the value that comes out, of the same type."""
    found = db.sql("SELECT $value", value=value).item()
    assert found == value and type(found) is type(value)


def test_parameters_with_zones_and_spans(db: Connection) -> None:
    """Instants keep their instant; an interval is a span of time; NaN and infinities are doubles."""
    at = dt.datetime(2024, 2, 29, 12, 0, tzinfo=ZONE)
    assert db.sql("SELECT $at", at=at).item() == at
    later = db.sql("SELECT TIMESTAMP '2024-02-28 00:00:00' + $span", span=dt.timedelta(days=1, seconds=5)).item()
    assert later == dt.datetime(2024, 2, 29, 0, 0, 5)
    assert math.isnan(db.sql("SELECT $x", x=math.nan).item())
    assert db.sql("SELECT $x", x=-math.inf).item() == -math.inf


def test_answers_in_every_shape(db: Connection) -> None:
    """Rows, Arrow, pandas and Polars; a number of rows, one value, a text."""
    answer = db.sql("SELECT * FROM (VALUES (1, 'a', 1.50), (2, NULL, NULL)) AS t(n, s, d) ORDER BY n")
    assert answer.columns == ("n", "s", "d") and len(answer) == 2
    assert answer.rows() == [(1, "a", Decimal("1.50")), (2, None, None)]
    assert answer.arrow().schema.field("d").type == pa.decimal128(3, 2)
    assert answer.polars().shape == (2, 3) and answer.pandas()["n"].tolist() == [1, 2]
    assert str(answer).splitlines()[-1] == "(2 rows)"
    with pytest.raises(InvalidParameter):
        answer.item()
    done = db.sql("CREATE TABLE IF NOT EXISTS shapes (a INT)")
    assert done.outcome is not None and done.rows() == []


def test_appends(db: Connection) -> None:
    """Mappings and Arrow tables, exactly once for a producer and its seq."""
    db.sql("CREATE TABLE sent (id INT, at TIMESTAMP, price DECIMAL(9,2), name VARCHAR)")
    rows = [{"id": 1, "at": dt.datetime(2024, 2, 29, 12), "price": Decimal("1.25"), "name": "ü"}, {"id": 2}]
    first = db.append("sent", rows, producer="p", seq=1)
    assert first.seg > 0 and not first.duplicate
    assert db.append("sent", rows, producer="p", seq=1).duplicate
    assert db.append("sent", rows, producer="p", seq=9, prev=7).conflict
    db.append("sent", pa.table({"id": [3], "price": pa.array([Decimal("2.50")], pa.decimal128(5, 2))}))
    assert db.sql("SELECT id, at, price, name FROM sent ORDER BY id").rows() == [
        (1, dt.datetime(2024, 2, 29, 12), Decimal("1.25"), "ü"), (2, None, None, None), (3, None, Decimal("2.50"), None),
    ]  # fmt: skip


def test_errors_are_the_same_classes(db: Connection) -> None:
    """The class says what went wrong, with the hint and the place."""
    with pytest.raises(UndefinedTable) as failed:
        db.sql("SELECT * FROM no_such_table")
    assert failed.value.sqlstate == "42P01" and failed.value.position == 15
    with pytest.raises(InvalidParameter):
        db.append("sent", [], producer="p", seq=0)


def test_a_job_is_applied_once(db: Connection) -> None:
    """Whichever way it comes."""
    db.sql("CREATE TABLE once (a INT)")
    assert db.sql("INSERT INTO once VALUES (1)", job="j").outcome == {"rows": 1}
    assert db.sql("INSERT INTO once VALUES (1)", job="j").outcome == {"duplicate": True}


def test_threads_share_a_connection(db: Connection) -> None:
    """Statements of several threads wait for one another and all come through."""
    db.sql("CREATE TABLE shared (a INT)")

    def work(number: int) -> None:
        for _ in range(5):
            db.sql("INSERT INTO shared VALUES ($n)", n=number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.sql("SELECT count(*), sum(a) FROM shared").rows() == [(20, 30)]


def test_a_closed_connection(lake_folder: Path) -> None:
    """It says so; closing twice is nothing; another one of the process goes on."""
    one, two = lake.open(lake_folder), lake.open(str(lake_folder))
    one.sql("CREATE TABLE t (a INT)")
    one.close()
    one.close()
    with pytest.raises(ObjectNotInState):
        one.sql("SELECT 1")
    assert two.sql("INSERT INTO t VALUES (1)").outcome == {"rows": 1}
    two.close()
    with lake.open(lake_folder) as again:
        assert again.sql("SELECT * FROM t").rows() == [(1,)]


def test_what_cannot_be_opened(lake_folder: Path) -> None:
    """A node that is not there, a setting nobody knows, an address that is none."""
    with pytest.raises(IoFailure):
        lake.connect(f"http://127.0.0.1:{free_port()}").sql("SELECT 1")
    with pytest.raises(InvalidParameter):
        lake.open(lake_folder, no_such_setting=1)
    with pytest.raises(InvalidParameter):
        lake.connect("ftp://127.0.0.1")
