"""COPY in the binary format: every type there and back, asyncpg's records, and files that are none."""

from __future__ import annotations

import asyncio
import datetime as dt
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.doors.postgres.conftest import PgNode

EVERY = (
    "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, r REAL, d DOUBLE, n DECIMAL(12,2), w DECIMAL(30,4), x TEXT, y BYTEA, "
    "j JSON, u UUID, day DATE, clock TIME, at TIMESTAMP, atz TIMESTAMPTZ, span INTERVAL, ints INT[], words TEXT[], sums DECIMAL(9,3)[]"
)
VALUES = (
    "(true, -7, 300, -70000, 5000000000, 1.5, -2.25, 1234.56, -12345678901234567890.1234, 'é', X'00FF', '{\"a\":1}', "
    "'00000000-0000-0000-0000-0000000000ff', DATE '1969-07-20', TIME '01:02:03.5', TIMESTAMP '2024-02-29 12:30:00.25', "
    "TIMESTAMPTZ '1999-12-31 23:59:59+00', INTERVAL '1 month 2 days 03:00:00', [1, NULL, 3], ['a b', ''], [1.5, -0.125])"
)
HEAD = b"PGCOPY\n\xff\r\n\x00" + bytes(8)


@pytest.fixture
def db(pg: PgNode) -> Iterator[psycopg.Connection[Any]]:
    """A connection where each statement commits by itself."""
    with psycopg.connect(pg.dsn(), autocommit=True) as connection:
        yield connection


def test_every_type_goes_out_and_in(db: psycopg.Connection[Any]) -> None:
    """What COPY TO sends, COPY FROM takes; NULLs, and more rows than one message."""
    db.execute(f"CREATE TABLE every ({EVERY})")
    db.execute(f"INSERT INTO every VALUES {VALUES}")
    db.execute("INSERT INTO every (i) SELECT x FROM generate_series(1, 500) g(x)")
    db.execute("CREATE TABLE copied_every CLONE every")
    with db.cursor() as cursor:
        with cursor.copy("COPY every TO STDOUT (FORMAT binary)") as copy:
            body = b"".join(bytes(piece) for piece in copy)
        assert body.startswith(HEAD) and body.endswith(b"\xff\xff")
        db.execute("TRUNCATE copied_every")
        with cursor.copy("COPY copied_every FROM STDIN BINARY") as copy:
            for place in range(0, len(body), 1_000):
                copy.write(body[place : place + 1_000])
        assert cursor.statusmessage == "COPY 501"
    columns = "b, t, s, i, l, r, d, n, w, x, y, j, u, day, clock, at, atz, span::text, ints, words, sums"
    rows = [db.execute(f"SELECT {columns} FROM {table} ORDER BY i").fetchall() for table in ("every", "copied_every")]
    assert rows[0] == rows[1]
    db.execute("DROP TABLE every")
    db.execute("DROP TABLE copied_every")


def test_psycopg_rows(db: psycopg.Connection[Any]) -> None:
    """Rows that the driver writes and reads in binary; numerics are rounded to the column's scale."""
    db.execute("CREATE TABLE pairs (a INT, b TEXT, c NUMERIC(8,2))")
    rows = [(1, "x", Decimal("1.005")), (2, None, None), (3, "", Decimal("-7"))]
    with db.cursor() as cursor:
        with cursor.copy("COPY pairs (a, b, c) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int4", "text", "numeric"])
            for row in rows:
                copy.write_row(row)
        with cursor.copy("COPY (SELECT * FROM pairs ORDER BY a) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["int4", "text", "numeric"])
            assert list(copy.rows()) == [(1, "x", Decimal("1.01")), (2, None, None), (3, "", Decimal("-7.00"))]
    db.execute("DROP TABLE pairs")


def test_asyncpg_records(pg: PgNode) -> None:
    """copy_records_to_table, and binary copies of tables and queries."""
    async def run() -> None:
        db = await asyncpg.connect(host="127.0.0.1", port=pg.port, user="admin", database="lake")
        await db.execute("CREATE TABLE records (id BIGINT, at TIMESTAMPTZ, tags TEXT[], price NUMERIC)")
        at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
        records = [(number, at, [f"t{number}", None], Decimal(number)) for number in range(2_000)]
        assert await db.copy_records_to_table("records", records=records) == "COPY 2000"
        assert [tuple(row) for row in await db.fetch("SELECT * FROM records ORDER BY id")] == records
        pieces: list[bytes] = []

        async def keep(piece: bytes) -> None:
            pieces.append(bytes(piece))

        assert await db.copy_from_query("SELECT id FROM records", output=keep, format="binary") == "COPY 2000"
        assert len(b"".join(pieces)) == len(HEAD) + 2_000 * (2 + 4 + 8) + 2
        await db.execute("DROP TABLE records")
        await db.close()

    asyncio.run(run())


def _field(value: bytes) -> bytes:
    return struct.pack("!hi", 1, len(value)) + value


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"PGCOPY\n\xff\r\n\x01" + bytes(8), "22P04"),
        (HEAD[:-4] + struct.pack("!i", 1), "22P04"),
        (HEAD[:-1], "22P04"),
        (HEAD + _field(bytes(3)), "22P03"),
        (HEAD + _field(bytes(4))[:-1], "22P04"),
        (HEAD + struct.pack("!h", 2) + bytes(8), "22P04"),
        (HEAD + struct.pack("!hi", 1, -5), "22P04"),
        (HEAD + b"\xff\xff" + _field(bytes(4)), "22P04"),
    ],
    ids=["signature", "flags", "half a head", "width", "cut off", "fields", "length", "after the end"],
)
def test_files_that_are_none(db: psycopg.Connection[Any], body: bytes, code: str) -> None:
    """Each is refused by its own code, and nothing is written."""
    db.execute("CREATE TABLE IF NOT EXISTS whole (a INT)")
    text = "COPY whole FROM STDIN (FORMAT binary)"
    with pytest.raises(psycopg.Error) as caught, db.cursor() as cursor, cursor.copy(text) as copy:
        copy.write(body)
    assert caught.value.sqlstate == code
    assert db.execute("SELECT count(*) FROM whole").fetchone() == (0,)


def test_options_of_binary(db: psycopg.Connection[Any]) -> None:
    """Those of lines have no place."""
    with pytest.raises(psycopg.errors.SyntaxError, match="cannot specify HEADER in BINARY mode"):
        db.execute("COPY whole TO STDOUT (FORMAT binary, HEADER)")
