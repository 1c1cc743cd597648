"""The first rows in an order, of tables so large that their columns are read apart: the same rows as of the whole order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lake

ROWS = 300_000
KEYS = ("id", "whole", "share", "price", "at", "day", "name", "flag", "whole + id % 3")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A table of files and a tail, from which rows are gone, with NULL and NaN in its columns."""
    folder: Path = tmp_path_factory.mktemp("top")
    with lake.open(folder / "lake", cores=2) as opened:
        opened.sql("SET lake.result_cache = off")
        opened.sql(
            f"""CREATE TABLE t AS SELECT i AS id, CASE WHEN i % 97 = 0 THEN NULL ELSE (i * 7919) % 5003 - 2000 END AS whole,
            CASE WHEN i % 101 = 0 THEN NULL WHEN i % 103 = 0 THEN 'NaN'::DOUBLE ELSE (i * 104729 % 10007 - 5000) / 8.0 END AS share,
            ((i * 31) % 20011)::DECIMAL(12, 2) / 4 AS price, TIMESTAMP '2026-01-01' + to_seconds((i * 13) % 86400) AS at,
            DATE '2026-01-01' + ((i * 17) % 365)::INTEGER AS day,
            CASE WHEN i % 11 = 0 THEN NULL ELSE 'name ' || (i * 37) % 1009 END AS name, i % 3 = 0 AS flag, i % 5 AS few
            FROM range({ROWS}) AS r(i) WHERE i < {ROWS // 2}"""
        )
        for part in range(5, 10):
            opened.sql(f"INSERT INTO t SELECT id + {part * ROWS // 10}, whole, share, price, at, day, name, flag, few FROM t WHERE id < {ROWS // 10}")
        opened.sql("DELETE FROM t WHERE id % 1000 = 7 OR id BETWEEN 1000 AND 3000")
        opened.sql("INSERT INTO t SELECT -id - 1, whole, share, price, at, day, name, flag, few FROM t WHERE id < 50")
        yield opened


def some_order(chance: random.Random) -> str:
    """A few keys with directions, id at the end so that one order is right."""
    keys = chance.sample(KEYS, chance.randint(1, 2))
    spelled = [f"{key} {chance.choice(('ASC', 'DESC'))} NULLS {chance.choice(('FIRST', 'LAST'))}" for key in keys]
    return ", ".join([*spelled, f"id {chance.choice(('ASC', 'DESC'))}"])


@pytest.mark.parametrize("seed", range(40))
def test_first_rows_are_those_of_the_whole_order(database: Any, seed: int) -> None:
    chance = random.Random(seed)
    order, limit, offset = some_order(chance), chance.choice((1, 3, 40, 2_000)), chance.choice((0, 0, 5, 700))
    where = chance.choice(("", "WHERE few = 3", "WHERE whole > 2900 AND flag", "WHERE name LIKE '%77%'", "WHERE id < -10"))
    columns = chance.choice(("*", "id", "name, id, share", "price, whole, name"))
    query = f"SELECT {columns} FROM t {where} ORDER BY {order}"
    expected = database.sql(f"SELECT * FROM ({query} OFFSET {offset}) AS q").arrow().slice(0, limit)
    found = database.sql(f"{query} LIMIT {limit} OFFSET {offset}").arrow()
    assert repr(found.to_pylist()) == repr(expected.to_pylist()), query


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_the_bound_holds_below_joins(database: Any, kind: str) -> None:
    query = f"SELECT t.id, name, d.x FROM t {kind} (VALUES (1, 'a'), (2, 'b')) AS d(few, x) ON t.few = d.few ORDER BY whole DESC NULLS LAST, t.id"
    expected = database.sql(f"SELECT * FROM ({query} OFFSET 0) AS q").arrow().slice(0, 20)
    assert database.sql(f"{query} LIMIT 20").arrow().to_pylist() == expected.to_pylist()


def test_a_bound_drops_no_build_rows_of_a_full_join(database: Any) -> None:
    query = "SELECT t.id, d.few FROM t FULL JOIN (VALUES (4), (77)) AS d(few) ON t.few = d.few ORDER BY t.id NULLS LAST"
    expected = database.sql(f"SELECT * FROM ({query} OFFSET 0) AS q").arrow()
    assert database.sql(f"{query} LIMIT 300000").arrow().to_pylist() == expected.to_pylist()
    assert database.sql("SELECT d.few FROM t FULL JOIN (VALUES (77)) AS d(few) ON t.few = d.few ORDER BY t.id NULLS FIRST LIMIT 1").rows() == [(77,)]


def plan_of(database: Any, query: str) -> str:
    """What EXPLAIN ANALYZE tells."""
    return "\n".join(str(row[-1]) for row in database.sql(f"EXPLAIN ANALYZE {query}").rows())


def test_columns_of_the_first_rows_are_fetched_for_them_alone(database: Any) -> None:
    told = plan_of(database, "SELECT * FROM t ORDER BY whole, id LIMIT 5")
    scan = next(line for line in told.splitlines() if "Scan" in line)
    assert "FetchRows: share" in told
    assert "name" not in scan and "whole" in scan


def test_row_groups_beyond_the_bound_are_left_out(database: Any) -> None:
    told = plan_of(database, "SELECT id, name FROM t WHERE few >= 0 ORDER BY id DESC LIMIT 5")
    assert "skipped=" in told, told


def test_a_small_table_is_read_at_once(database: Any) -> None:
    database.sql("CREATE TABLE small AS SELECT i AS id, i * 2 AS twice FROM range(100) AS r(i)")
    assert "FetchRows" not in plan_of(database, "SELECT * FROM small ORDER BY id LIMIT 5")
