"""The optimizer changes no answer: every query of ``tests/plans/queries.sql`` with all rules, and with each left out."""

from __future__ import annotations

import functools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lake.exec.functions  # noqa: F401 - fills the table of functions
from lake.errors import UndefinedTable
from lake.exec.evaluate import fold
from lake.sql import parser
from lake.sql.bind import Binder
from lake.sql.catalog import Table
from lake.sql.optimizer import RULES, optimize
from lake.types import INT, TEXT, List
from tests.exec.memory_rows import SETTINGS, rows_of, table_of
from tests.plans.random_subqueries import make_query

QUERIES = Path(__file__).parent.parent / "plans" / "queries.sql"
NEEDED = frozenset(("decorrelate",))
LEFT_OUT = (None, *(name for name, _ in RULES if name not in NEEDED))


def all_queries() -> list[str]:
    """Every query of the file."""
    return [line for line in QUERIES.read_text().splitlines() if line and not line.startswith("--")]


def _integers(draw: random.Random, count: int, top: int) -> list[int | None]:
    return [None if draw.random() < 0.15 else draw.randrange(top) for _ in range(count)]


@functools.cache
def tables() -> dict[str, Table]:
    """Four small tables with NULLs and duplicates."""
    draw = random.Random(7)
    texts = [None if draw.random() < 0.1 else draw.choice("abc") for _ in range(25)]
    lists = [draw.choice([None, [], [1], [1, 2, 3], [None, 4]]) for _ in range(8)]
    described: dict[str, dict[str, tuple[Any, list[Any]]]] = {
        "t": {"a": (INT, _integers(draw, 25, 7)), "b": (INT, _integers(draw, 25, 4)), "c": (TEXT, texts)},
        "u": {"a": (INT, _integers(draw, 16, 6)), "x": (INT, _integers(draw, 16, 5)), "y": (INT, _integers(draw, 16, 3))},
        "v": {"a": (INT, _integers(draw, 8, 6)), "z": (INT, _integers(draw, 8, 4)), "l": (List(INT), lists)},
        "e": {"a": (INT, [])},
    }
    return {name: table_of(name, data, pieces=3)[0] for name, data in described.items()}


class SmallCatalog:
    """The tables above."""

    def find(self, name: tuple[str, ...], at: tuple[str, object] | None) -> Table:
        """The table of that name."""
        if name[-1] not in tables():
            raise UndefinedTable(f"no table {name[-1]}")
        return tables()[name[-1]]

    def find_file(self, path: str) -> Table:
        """No files."""
        raise UndefinedTable(f"no file {path}")


@functools.cache
def oracle() -> duckdb.DuckDBPyConnection:
    """DuckDB with the same rows."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, table in tables().items():
        types = ", ".join(f"{item.name} {item.type.sql}" for item in table.columns)
        connection.execute(f"CREATE TABLE {name} ({types})")
        for batch in table.rows.batches:
            for row in batch.to_pylist():
                marks = ", ".join("?" for _ in row)
                connection.execute(f"INSERT INTO {name} VALUES ({marks})", list(row.values()))
    return connection


def answer(sql: str, without: str | None) -> list[tuple[Any, ...]]:
    """The engine's answer with one rule left out."""
    statement = parser.parse(sql)[0]
    plan = Binder(SmallCatalog(), SETTINGS).query(statement.query).plan  # type: ignore[attr-defined]
    optimized = optimize(plan, SETTINGS, fold, without=[without] if without else [])
    return rows_of(optimized)


def normal(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows as a bag, numbers of all kinds alike."""
    return Counter(tuple(_normal(value) for value in row) for row in rows)


def _normal(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return round(float(value), 6)


@pytest.mark.parametrize("sql", all_queries())
def test_rules_change_no_answer(sql: str) -> None:
    """With all rules, and with each left out, the rows are those of DuckDB."""
    expected = normal(oracle().execute(sql).fetchall())
    for without in LEFT_OUT:
        assert normal(answer(sql, without)) == expected, f"without {without}"


@pytest.mark.parametrize("seed", range(60))
def test_random_subqueries(seed: int) -> None:
    """Subqueries in subqueries, whatever they are correlated with, answer as DuckDB does."""
    sql = make_query(random.Random(seed))
    expected = normal(oracle().execute(sql).fetchall())
    without = LEFT_OUT[seed % len(LEFT_OUT)]
    assert normal(answer(sql, without)) == expected, f"{sql}\nwithout {without}"
