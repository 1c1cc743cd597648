"""psycopg2, asyncpg and SQLAlchemy."""

from __future__ import annotations

import asyncio
import datetime as dt
import io

import asyncpg
import pandas
import psycopg2
import pytest
import sqlalchemy

from tests.doors.postgres.conftest import PgNode


def test_psycopg2(pg: PgNode) -> None:
    """Blocks by default, parameters in the text, COPY, named cursors."""
    connection = psycopg2.connect(pg.dsn())
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE two (a INT, b TEXT)")
    cursor.execute("INSERT INTO two VALUES (%s, %s)", (1, "it's"))
    connection.commit()
    cursor.copy_expert("COPY two FROM STDIN WITH CSV", io.StringIO("5,x\n"))
    connection.commit()
    cursor.execute("SELECT * FROM two ORDER BY a")
    assert cursor.fetchall() == [(1, "it's"), (5, "x")]
    named = connection.cursor("named")
    named.execute("SELECT * FROM generate_series(1, 5000) g(x)")
    assert len(named.fetchall()) == 5000
    connection.close()


def test_asyncpg(pg: PgNode) -> None:
    """Everything binary: types told by Describe, prepared statements, cursors, COPY, reset."""
    async def run() -> None:
        db = await asyncpg.connect(host="127.0.0.1", port=pg.port, user="admin", database="lake")
        await db.execute("CREATE TABLE fast (a INT, b TEXT, d DOUBLE, at TIMESTAMP)")
        at = dt.datetime(2024, 1, 1)
        await db.executemany("INSERT INTO fast VALUES ($1, $2, $3, $4)", [(i, f"n{i}", i / 2, at) for i in range(5)])
        assert await db.fetchval("SELECT b FROM fast WHERE a = $1", 2) == "n2"
        assert len(await db.fetch("SELECT * FROM fast WHERE b = ANY($1::text[]) LIMIT $2", ["n1", "n2"], 1)) == 1
        assert await db.fetchrow("SELECT [1, 2], 1.5::decimal(4,2), NULL, true") is not None
        async with db.transaction():
            assert len([row async for row in db.cursor("SELECT * FROM generate_series(1, 100) g(x)", prefetch=7)]) == 100
        assert await db.copy_to_table("fast", source=io.BytesIO(b"7,x,1.5,\n"), format="csv") == "COPY 1"
        with pytest.raises(asyncpg.UndefinedColumnError):
            await db.fetch("SELECT nope")
        await db.reset()
        await db.close()

    asyncio.run(run())


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_sqlalchemy(pg: PgNode, driver: str) -> None:
    """Reflection, and pandas both ways."""
    engine = sqlalchemy.create_engine(f"postgresql+{driver}://admin@127.0.0.1:{pg.port}/lake")
    frame = pandas.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    frame.to_sql(f"frame_{driver}", engine, index=False)
    assert pandas.read_sql(f"SELECT * FROM frame_{driver} ORDER BY x", engine).equals(frame)
    inspector = sqlalchemy.inspect(engine)
    assert f"frame_{driver}" in inspector.get_table_names()
    assert [column["name"] for column in inspector.get_columns(f"frame_{driver}")] == ["x", "y"]
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine, only=[f"frame_{driver}"])
    engine.dispose()
