"""Golden files that other engines must answer alike, run on Postgres and on DuckDB.

A file says so in its head (`# engines: postgres duckdb`); what differs there stands under `onlyif` or `skipif` with its
reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import slt
from tests.engines import DuckDBEngine, PostgresEngine


def shared(engine: str) -> list[Path]:
    """The files that ``engine`` must answer as the lake does."""
    return [path for path in slt.files() if engine in slt.engines_of(path)]


def name_of(path: Path) -> str:
    """The file's path under tests/slt."""
    return path.relative_to(slt.SLT).as_posix()


@pytest.mark.parametrize("path", shared("postgres"), ids=name_of)
def test_postgres_answers_alike(path: Path, postgres: str) -> None:
    """The file holds on Postgres too."""
    engine = PostgresEngine(postgres, schema="slt")
    try:
        slt.run_file(path, engine)
    finally:
        engine.close()


@pytest.mark.parametrize("path", shared("duckdb"), ids=name_of)
def test_duckdb_answers_alike(path: Path) -> None:
    """The file holds on DuckDB too."""
    engine = DuckDBEngine()
    try:
        slt.run_file(path, engine)
    finally:
        engine.close()
