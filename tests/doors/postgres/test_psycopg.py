"""psycopg 3: values both ways, prepared statements, pipelines, cursors, COPY, transactions, cancel, errors."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tests.doors.postgres.conftest import PgNode

VALUES: list[Any] = [
    True, 5, -(2**40), 1.5, float("inf"), Decimal("1.25"), Decimal("-12345678901234567890.5"), Decimal("0.00001"), "é\n\t",
    "",
    b"\x00A\\", dt.date(1969, 7, 20), dt.time(1, 2, 3, 4), dt.datetime(2024, 2, 29, 12, 30, 0, 500),
    dt.datetime(1999, 12, 31, 23, 59, 59, tzinfo=dt.UTC), dt.timedelta(days=1, seconds=5), [1, 2, 3], [], None,
]  # fmt: skip

TYPED = (
    "SELECT 1.5::decimal(10,2), 2::smallint, 3::tinyint, 4::int, true, DATE '2024-01-01', "
    "TIMESTAMP '2024-01-01 10:00:00.25', "
    "[1,NULL,3], ['a b',NULL,'q\"'], X'41', INTERVAL '1 day 02:00:00', 1::real, 'x', NULL, TIME '10:00:00'"
)
ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) WHERE x * y % 7 = 3"
TYPED_ROW = (
    Decimal("1.50"), 2, 3, 4, True, dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 10, 0, 0, 250_000), [1, None, 3],
    ["a b", None, 'q"'], b"A", dt.timedelta(days=1, hours=2), 1.0, "x", None, dt.time(10),
)  # fmt: skip


@pytest.fixture
def db(pg: PgNode) -> Iterator[psycopg.Connection[Any]]:
    """A connection where each statement commits by itself."""
    with psycopg.connect(pg.dsn(), autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_parameter_comes_back(db: psycopg.Connection[Any], value: Any, binary: bool) -> None:
    """A value sent as text or as binary is the value received."""
    placeholder = "%b" if binary else "%s"
    row = db.execute(f"SELECT {placeholder}", [value], binary=binary).fetchone()
    assert row in ((value,), ("{}",)) if value == [] else row == (value,)


def test_uuid_is_text(db: psycopg.Connection[Any]) -> None:
    """There is no UUID type: it travels as text."""
    value = uuid.UUID(int=7)
    assert db.execute("SELECT %b", [value]).fetchone() == (str(value),)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_every_type_comes_out(db: psycopg.Connection[Any], binary: bool) -> None:
    """One of each, in both formats."""
    cursor = db.execute(TYPED, binary=binary)
    assert cursor.fetchone() == TYPED_ROW
    assert cursor.statusmessage == "SELECT 1"


def test_statements_are_prepared(db: psycopg.Connection[Any]) -> None:
    """The driver prepares what it runs often; DEALLOCATE forgets it."""
    for number in range(8):
        assert db.execute("SELECT %s::int + 1", [number]).fetchone() == (number + 1,)
    db.execute("DEALLOCATE ALL")
    assert db.execute("SELECT %s::int + 1", [1], prepare=True).fetchone() == (2,)


def test_pipeline_and_its_errors(db: psycopg.Connection[Any]) -> None:
    """Statements in flight answer in order; what follows a failed one is skipped up to Sync."""
    with db.pipeline():
        cursors = [db.execute("SELECT %s::int", [number]) for number in range(20)]
        assert [cursor.fetchone() for cursor in cursors] == [(number,) for number in range(20)]
    with pytest.raises(psycopg.errors.UndefinedColumn), db.pipeline():
        db.execute("SELECT 1")
        db.execute("SELECT nope")
        db.execute("SELECT 2")
    assert db.execute("SELECT 3").fetchone() == (3,)


def test_server_cursors(db: psycopg.Connection[Any]) -> None:
    """DECLARE, FETCH, MOVE and CLOSE, with a parameter."""
    with db.transaction(), db.cursor("rows") as cursor:
        cursor.execute("SELECT x FROM generate_series(1, %s) g(x)", [100_000])
        assert cursor.fetchmany(2) == [(1,), (2,)]
        cursor.scroll(10)
        assert cursor.fetchone() == (13,)
        assert len(cursor.fetchall()) == 100_000 - 13
    with pytest.raises(psycopg.errors.FeatureNotSupported), db.transaction(), db.cursor("back") as cursor:
        cursor.execute("SELECT 1")
        cursor.scroll(-1)


def test_copy_in_and_out(db: psycopg.Connection[Any]) -> None:
    """Text and CSV, both ways; a refused row leaves nothing behind."""
    db.execute("CREATE TABLE copied (a INT, b TEXT)")
    rows = [(1, "x\ty"), (2, None), (3, "back\\slash\nline"), (4, ""), (5, "\\N")]
    with db.cursor() as cursor:
        with cursor.copy("COPY copied (a, b) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        assert cursor.statusmessage == "COPY 5"
        with cursor.copy("COPY (SELECT * FROM copied ORDER BY a) TO STDOUT") as copy:
            copy.set_types(["int4", "text"])
            assert list(copy.rows()) == rows
        with cursor.copy("COPY copied FROM STDIN WITH (FORMAT csv, HEADER true, DELIMITER ';')") as copy:
            copy.write('a;b\n6;"q""; z"\n7;\n8;""\n')
        with cursor.copy("COPY (SELECT * FROM copied WHERE a > 5 ORDER BY a) TO STDOUT WITH CSV HEADER") as copy:
            assert b"".join(copy) == b'a,b\n6,"q""; z"\n7,\n8,""\n'
        with pytest.raises(psycopg.errors.InvalidTextRepresentation), cursor.copy("COPY copied FROM STDIN") as copy:
            copy.write(b"9\tx\nnine\ty\n")
        with pytest.raises(psycopg.errors.BadCopyFileFormat), cursor.copy("COPY copied FROM STDIN") as copy:
            copy.write(b"9\tx\ty\n")
    assert db.execute("SELECT count(*) FROM copied").fetchone() == (8,)


def test_copy_takes_no_unique_table(db: psycopg.Connection[Any]) -> None:
    """Constraints 1.4, 2.2, 3.8; Sequences 19; Enums 6, 16: COPY refuses a table with UNIQUE by name, and checks others' rows."""
    db.execute("CREATE TABLE once (a INT UNIQUE)")
    unsupported = psycopg.errors.FeatureNotSupported
    with db.cursor() as cursor, pytest.raises(unsupported) as refused, cursor.copy("COPY once FROM STDIN") as copy:
        copy.write(b"1\n")
    assert 'unique constraint "once_a_key"' in str(refused.value)
    assert refused.value.diag.constraint_name == "once_a_key"
    db.execute("CREATE TYPE hue AS ENUM ('red', 'blue')")
    db.execute("CREATE TABLE hues (id INT GENERATED ALWAYS AS IDENTITY, h hue CHECK (h <> 'blue'), n INT DEFAULT 5 NOT NULL)")
    with db.cursor() as cursor:
        with cursor.copy("COPY hues (h) FROM STDIN") as copy:
            copy.write(b"red\n\\N\n")
        with cursor.copy("COPY hues (id, h) FROM STDIN") as copy:
            copy.write(b"70\tred\n")
        with pytest.raises(psycopg.errors.InvalidTextRepresentation), cursor.copy("COPY hues (h) FROM STDIN") as copy:
            copy.write(b"green\n")
        with pytest.raises(psycopg.errors.CheckViolation), cursor.copy("COPY hues (h) FROM STDIN") as copy:
            copy.write(b"blue\n")
        with pytest.raises(psycopg.errors.NotNullViolation), cursor.copy("COPY hues (n) FROM STDIN") as copy:
            copy.write(b"7\n\\N\n")
    assert db.execute("SELECT count(*), max(id), count(DISTINCT id), sum(n) FROM hues").fetchone() == (3, 70, 3, 15)
    shown = db.execute("SELECT h FROM hues WHERE id = 70")
    assert shown.fetchone() == ("red",)
    assert shown.description is not None and shown.description[0].type_code == psycopg.postgres.types["text"].oid
    db.execute("DROP TABLE hues PURGE")
    db.execute("DROP TABLE once")
    db.execute("DROP TYPE hue")


def test_copy_of_many_rows(db: psycopg.Connection[Any]) -> None:
    """More than one block in, more than one batch out."""
    db.execute("CREATE TABLE many (a BIGINT, b TEXT)")
    with db.cursor() as cursor, cursor.copy("COPY many FROM STDIN") as copy:
        for start in range(0, 300_000, 10_000):
            copy.write("".join(f"{number}\tname {number} {'x' * 20}\n" for number in range(start, start + 10_000)))
    assert db.execute("SELECT count(*), sum(a), max(b) FROM many").fetchone() == (
        300_000, sum(range(300_000)), f"name 99999 {'x' * 20}",
    )  # fmt: skip
    assert sum(row[0] for row in db.execute("SELECT a FROM many", binary=True)) == sum(range(300_000))


def test_transactions(pg: PgNode) -> None:
    """BEGIN, COMMIT, ROLLBACK, a failed block, savepoints of a block that reads and of one that writes."""
    with psycopg.connect(pg.dsn()) as db:
        db.execute("CREATE TABLE moved (a INT)")
        db.commit()
        db.execute("INSERT INTO moved VALUES (1)")
        assert db.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        db.rollback()
        assert db.execute("SELECT count(*) FROM moved").fetchone() == (0,)
        db.execute("INSERT INTO moved VALUES (2)")
        db.commit()
        with pytest.raises(psycopg.errors.UndefinedColumn):
            db.execute("SELECT nope")
        assert db.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            db.execute("SELECT 1")
        db.rollback()
        with db.transaction(), db.transaction():
            assert db.execute("SELECT a FROM moved").fetchall() == [(2,)]
        with pytest.raises(psycopg.errors.UndefinedColumn), db.transaction():
            db.execute("SELECT nope")
        assert db.execute("SELECT 1").fetchone() == (1,)
        with db.transaction():
            db.execute("INSERT INTO moved VALUES (3)")
            with pytest.raises(psycopg.errors.UndefinedColumn), db.transaction():
                db.execute("DELETE FROM moved")
                db.execute("SELECT nope")
        assert db.execute("SELECT a FROM moved ORDER BY a").fetchall() == [(2,), (3,)]


def test_temporary_tables(pg: PgNode) -> None:
    """A connection's own: COPY fills them, a block takes them back, and another connection sees nothing."""
    with psycopg.connect(pg.dsn()) as db, psycopg.connect(pg.dsn(), autocommit=True) as other:
        db.execute("CREATE TEMP TABLE own (a INT, b TEXT)")
        with db.cursor().copy("COPY own FROM STDIN") as copy:
            copy.write("".join(f"{number}\tname {number}\n" for number in range(30_000)))
        assert db.execute("SELECT count(*), max(a) FROM own").fetchone() == (30_000, 29_999)
        with pytest.raises(psycopg.errors.UndefinedTable):
            other.execute("SELECT * FROM own")
        db.commit()
        db.execute("DELETE FROM own WHERE a >= 10")
        db.execute("SAVEPOINT s")
        db.execute("DROP TABLE own")
        db.execute("ROLLBACK TO s")
        assert db.execute("SELECT count(*) FROM own").fetchone() == (10,)
        db.rollback()
        assert db.execute("SELECT count(*) FROM own").fetchone() == (30_000,)
        db.commit()
        db.autocommit = True
        db.execute("DISCARD TEMP")
        with pytest.raises(psycopg.errors.UndefinedTable):
            db.execute("SELECT * FROM own")


def test_a_definition_in_a_block_warns(pg: PgNode) -> None:
    """Drivers open blocks around everything, so CREATE TABLE runs there and says that it stays."""
    with psycopg.connect(pg.dsn()) as db:
        notices: list[str] = []
        db.add_notice_handler(lambda notice: notices.append(f"{notice.severity} {notice.sqlstate}"))
        db.execute("CREATE TABLE stays (a INT)")
        db.execute("INSERT INTO stays VALUES (1)")
        db.rollback()
        assert notices == ["WARNING 01000", "WARNING 01000"]
        assert db.execute("SELECT count(*) FROM stays").fetchone() == (0,)


def test_errors_tell_where(db: psycopg.Connection[Any]) -> None:
    """SQLSTATE, message, hint and position; the connection goes on."""
    with pytest.raises(psycopg.Error) as caught:
        db.execute("SELECT 1; SELECT\n nope FROM generate_series(1, 2)")
    diag = caught.value.diag
    assert (diag.sqlstate, diag.severity, diag.message_primary) == ("42703", "ERROR", 'column "nope" does not exist')
    assert diag.statement_position == "19"
    assert db.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.Error) as caught:
        db.execute("SELECT 1; SELEC 2")
    assert (caught.value.diag.sqlstate, caught.value.diag.statement_position) == ("42601", "11")


def test_several_statements(db: psycopg.Connection[Any]) -> None:
    """A script answers a result for each statement."""
    cursor = db.execute("SELECT 1; SELECT ';' AS a, 2; CREATE TABLE scripted (a INT); INSERT INTO scripted VALUES (1), (2)")
    found = []
    while True:
        found.append(cursor.fetchall() if cursor.description else cursor.statusmessage)
        if not cursor.nextset():
            break
    assert found == [[(1,)], [(";", 2)], "CREATE TABLE", "INSERT 0 2"]
    assert db.execute("").description is None


def test_cancel_stops_the_statement(db: psycopg.Connection[Any]) -> None:
    """A cancel request with the connection's key ends what runs, and only that."""
    timer = threading.Timer(0.5, db.cancel_safe)
    timer.start()
    started = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled):
        db.execute(ENDLESS)
    assert time.monotonic() - started < 10
    timer.join()
    assert db.execute("SELECT 1").fetchone() == (1,)


def test_statement_timeout(db: psycopg.Connection[Any]) -> None:
    """SET statement_timeout bounds a statement."""
    db.execute("SET statement_timeout = '200ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        db.execute(ENDLESS)
    db.execute("RESET statement_timeout")


def test_settings(db: psycopg.Connection[Any]) -> None:
    """What drivers set and ask, and what the server reports."""
    assert db.info.parameter_status("server_version") == "16.0"
    assert db.info.parameter_status("integer_datetimes") == "on"
    db.execute("SET TIME ZONE 'Europe/Berlin'")
    assert db.info.parameter_status("TimeZone") == "Europe/Berlin"
    row = db.execute("SELECT TIMESTAMPTZ '2024-07-01 12:00:00+00'").fetchone()
    assert row is not None and row[0].utcoffset() == dt.timedelta(hours=2)
    assert db.execute("SELECT set_config('application_name', 'me', false)").fetchone() == ("me",)
    assert db.execute("SHOW application_name").fetchone() == ("me",)
    assert db.execute("SHOW transaction isolation level").fetchone() == ("repeatable read",)
    db.execute("DISCARD ALL")
    assert db.execute("SHOW timezone").fetchone() == ("UTC",)


def test_a_slow_reader_holds_only_itself(pg: PgNode, db: psycopg.Connection[Any]) -> None:
    """A million rows nobody reads leave the node free for others."""
    slow = psycopg.connect(pg.dsn(), autocommit=True)
    try:
        slow.pgconn.send_query(b"SELECT x, 'some text to fill the buffers' FROM generate_series(1, 3000000) g(x)")
        time.sleep(0.3)
        started = time.monotonic()
        assert db.execute("SELECT 1").fetchone() == (1,)
        assert time.monotonic() - started < 2.0
    finally:
        slow.pgconn.finish()


def test_errors_name_what_they_are_about(db: psycopg.Connection[Any]) -> None:
    """Drivers find schema, table, column and constraint in fields of their own."""
    db.execute("CREATE TABLE about (a INT NOT NULL, b INT CONSTRAINT positive CHECK (b > 0))")
    with pytest.raises(psycopg.errors.NotNullViolation) as missing:
        db.execute("INSERT INTO about VALUES (NULL, 1)")
    diag = missing.value.diag
    assert (diag.schema_name, diag.table_name, diag.column_name) == ("public", "about", "a")
    with pytest.raises(psycopg.errors.CheckViolation) as failed:
        db.execute("INSERT INTO about VALUES (1, 0)")
    assert (failed.value.diag.table_name, failed.value.diag.constraint_name) == ("about", "positive")
    db.execute("DROP TABLE about")
