"""Tools that draw schemas: the catalog queries that DBeaver, Metabase and Grafana send, as simple and as prepared ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.doors.postgres.conftest import PgNode

FOLDER = Path(__file__).parent / "clients" / "catalog"
TABLES = (
    "CREATE TABLE bi_shop (id INT PRIMARY KEY, name TEXT)",
    "CREATE TABLE bi_order (id BIGINT GENERATED ALWAYS AS IDENTITY, shop INT REFERENCES bi_shop NOT ENFORCED, "
    "amount DECIMAL(10,2) CHECK (amount > 0), placed TIMESTAMP)",
    "CREATE VIEW bi_view AS SELECT * FROM bi_shop",
    "CREATE TYPE bi_mood AS ENUM ('sad', 'ok')",
    "INSERT INTO bi_order (shop, amount, placed) VALUES (1, 2.5, '2024-01-01 10:00:00')",
)


def queries(tool: str) -> list[tuple[int, str]]:
    """The queries of a tool, each with the rows it finds at least."""
    found, rows = [], 0
    for line in (FOLDER / f"{tool}.sql").read_text().splitlines():
        marked = re.fullmatch(r"-- rows (\d+)", line)
        if marked is not None:
            rows = int(marked[1])
        elif line and not line.startswith("--"):
            found.append((rows, line.removesuffix(";")))
            rows = 0
    return found


@pytest.fixture(scope="module")
def db(pg: PgNode) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a node with a few tables, a view, keys and an enum."""
    with psycopg.connect(pg.dsn(), autocommit=True) as connection:
        for text in TABLES:
            connection.execute(text)
        yield connection
        for name in ("TABLE bi_order", "VIEW bi_view", "TABLE bi_shop", "TYPE bi_mood"):
            connection.execute(f"DROP {name}")


@pytest.mark.parametrize("prepare", [False, True], ids=["simple", "prepared"])
@pytest.mark.parametrize("tool", ["dbeaver", "metabase", "grafana"])
def test_queries_of(db: psycopg.Connection[Any], tool: str, prepare: bool) -> None:
    """Each is answered, with rows where the tool needs some."""
    for rows, text in queries(tool):
        cursor = db.execute(text, prepare=prepare)
        if cursor.description is not None:
            assert len(cursor.fetchall()) >= rows, text
    db.execute("RESET ALL")


def test_what_they_find(db: psycopg.Connection[Any]) -> None:
    """The values that a schema is drawn by."""
    fields = next(text for _, text in queries("metabase") if '"database-position"' in text)
    found = {(row[4], row[0]): row for row in db.execute(fields).fetchall()}
    assert found["bi_shop", "id"][1:3] == ("int4", 0) and found["bi_shop", "id"][5] is True
    assert found["bi_order", "amount"][1] == "numeric" and found["bi_order", "amount"][5] is False
    keys = next(text for _, text in queries("metabase") if '"fk-table-name"' in text)
    assert ("public", "bi_order", "shop", "public", "bi_shop", "id") in db.execute(keys).fetchall()
    indexes = next(text for _, text in queries("metabase") if '"indkey"[0]' in text)
    assert ("public", "bi_shop", "id") in db.execute(indexes).fetchall()
