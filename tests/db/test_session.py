"""A session: statements in order, parameters, jobs, and what is left of a statement that fails."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lake
from lake.connection import Connection
from lake.db.prepared import prepare
from lake.db.write.path import LOG_ROWS
from lake.embedded import EmbeddedConnection
from lake.errors import FeatureNotSupported, InvalidText, NotNullViolation, UndefinedTable


@pytest.fixture
def db(tmp_path: Path) -> Iterator[EmbeddedConnection]:
    """A lake of this process that tiers when it is told."""
    with lake.open(tmp_path / "lake", tier_secs="0") as opened:
        assert isinstance(opened, EmbeddedConnection)
        yield opened


def test_the_answer_is_the_last_statements(db: Connection) -> None:
    """Several statements run in order; those before a failed one stay done."""
    assert db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1); SELECT a FROM t").rows() == [(1,)]
    with pytest.raises(UndefinedTable):
        db.sql("INSERT INTO t VALUES (2); SELECT * FROM nowhere; INSERT INTO t VALUES (3)")
    assert db.sql("SELECT a FROM t ORDER BY a").rows() == [(1,), (2,)]


@pytest.mark.parametrize(
    "value",
    [1, -(2**63), True, "it's; --", 1.5, Decimal("12.30"), b"\x00\xff", None, datetime.date(2024, 2, 29),
     datetime.datetime(2024, 2, 29, 12, 30, 1, 5), datetime.time(23, 59, 59), [1, 2]],
)  # fmt: skip
def test_parameters_are_bound(db: Connection, value: object) -> None:
    """A parameter of each kind comes back as it went in: bound as a value, never pasted into the text."""
    assert db.sql("SELECT $value", value=value).item() == value


def test_a_parameter_may_be_an_expression(db: Connection) -> None:
    """``{"sql": ..}`` is a constant expression. Spec: HTTP, Query."""
    assert db.sql("SELECT $d + 1", d={"sql": "DATE '2024-02-28'"}).item() == datetime.date(2024, 2, 29)


def test_a_job_is_applied_once(db: Connection) -> None:
    """A write retried under its job id writes nothing, after a restart too. Spec: HTTP, Query, ``job``."""
    db.sql("CREATE TABLE t (a INT)")
    assert db.sql("INSERT INTO t VALUES (1)", job="load-1").outcome == {"rows": 1}
    assert db.sql("INSERT INTO t VALUES (1)", job="load-1").outcome == {"duplicate": True}
    assert db.sql("SELECT count(*) FROM t").item() == 1


@pytest.mark.parametrize("rows", [1, LOG_ROWS, LOG_ROWS + 1, 300_000])
def test_inserts_of_any_size_are_one_commit(db: EmbeddedConnection, rows: int) -> None:
    """Few rows go through the log, many straight to files; either way in one commit."""
    db.sql("CREATE TABLE t (a BIGINT)")
    before = db.database.version
    numbers = pa.table({"a": range(rows)})
    path = Path(db.database.config.lake or "").parent / "numbers.parquet"
    pq.write_table(numbers, path)
    assert db.sql(f"INSERT INTO t SELECT a FROM '{path}'").outcome == {"rows": rows}
    assert db.database.version == before + 1
    assert db.sql("SELECT count(*), sum(a), count(DISTINCT _row_id) FROM t").rows() == [
        (rows, rows * (rows - 1) // 2, rows)
    ]
    assert (db.database.lake.state.tail_rows > 0) == (rows <= LOG_ROWS)


def test_a_refused_row_leaves_nothing(db: EmbeddedConnection, tmp_path: Path) -> None:
    """A bulk insert whose last row is refused writes no row and leaves no file."""
    db.sql("CREATE TABLE t (a BIGINT NOT NULL)")

    pq.write_table(pa.table({"a": [*range(200_000), None]}), tmp_path / "rows.parquet")
    with pytest.raises(NotNullViolation):
        db.sql(f"INSERT INTO t SELECT a FROM '{tmp_path / 'rows.parquet'}'")
    assert db.sql("SELECT count(*) FROM t").item() == 0
    assert list((tmp_path / "lake" / "data").rglob("*.parquet")) == []


def test_appended_rows_are_checked(db: Connection) -> None:
    """A column that is left out takes its DEFAULT, an explicit null stays null; a wrong value is named."""
    db.sql("CREATE TABLE t (id BIGINT NOT NULL, word VARCHAR DEFAULT 'none', price DECIMAL(9,2))")
    db.append("t", [{"id": 1}, {"id": 2, "word": None, "price": "1.5"}, {"id": 3, "word": "x", "price": 2}])
    assert db.sql("SELECT * FROM t ORDER BY id").rows() == [
        (1, "none", None),
        (2, None, Decimal("1.50")),
        (3, "x", Decimal("2.00")),
    ]
    with pytest.raises(InvalidText, match=r"price.*many"):
        db.append("t", [{"id": 4, "price": "many"}])
    with pytest.raises(NotNullViolation):
        db.append("t", pa.table({"word": ["x"]}))
    assert db.sql("SELECT count(*) FROM t").item() == 3


def test_appends_are_exactly_once(db: Connection) -> None:
    """A repeated seq is a duplicate; ``prev`` that is not the last seq is a conflict. Spec: HTTP, Append."""
    db.sql("CREATE TABLE t (id INT)")
    first = db.append("t", [{"id": 1}], producer="p", seq=1)
    assert (first.duplicate, first.conflict) == (False, False)
    again = db.append("t", [{"id": 1}], producer="p", seq=1)
    assert (again.duplicate, again.seg) == (True, 0)
    assert db.append("t", [{"id": 2}], producer="p", seq=3, prev=2).conflict
    assert not db.append("t", [{"id": 2}], producer="p", seq=2, prev=1).conflict
    assert db.sql("SELECT id FROM t ORDER BY id").rows() == [(1,), (2,)]


def test_statements_that_are_not_built_are_named(db: Connection) -> None:
    """0A000 says what is not supported."""
    with pytest.raises(FeatureNotSupported, match="ATTACH"):
        db.sql("ATTACH 'x' AS y")


def test_a_query_reads_one_commit(db: EmbeddedConnection) -> None:
    """Rows that are committed while a query is read are not in its answer."""
    db.sql("CREATE TABLE t (a INT)")
    db.sql("INSERT INTO t VALUES (1)")
    result = db.session.execute("SELECT a FROM t")
    db.sql("INSERT INTO t VALUES (2)")
    db.tier()
    assert result.rows() == [(1,)]
    assert db.sql("SELECT count(*) FROM t").item() == 2


def test_parameters_of_a_prepared_statement_are_counted_everywhere_in_it() -> None:
    """The greatest number counts, in whatever part of the statement it stands."""
    for text, count in (
        ("SELECT 1", 0), ("SELECT $2::INT WHERE $1 = (SELECT max(a) FROM t WHERE b IN ($3, 4))", 3),
        ("INSERT INTO t VALUES ($1, 2), (3, $4)", 4), ("UPDATE t SET a = $1 WHERE id = $2 RETURNING a + $3", 3),
        ("CREATE TABLE t (a INT DEFAULT 1)", 0), ("", 0),
    ):  # fmt: skip
        assert prepare(text).parameters == count
