"""ClickBench's queries over a few generated rows: each runs, and sums of shifted columns are right."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

import lake
from tests.bench.click import SCHEMA, Generator
from tests.clickbench import COLUMNS, QUERIES


def test_every_query_runs(tmp_path: Path) -> None:
    """105 columns, 43 queries."""
    rows = Generator(2_000).chunk(2_000)
    assert rows.schema == SCHEMA and len(COLUMNS) == 105 and list(QUERIES) == list(range(43))
    pq.write_table(rows, tmp_path / "hits.parquet")
    database = lake.open(tmp_path / "lake")
    try:
        database.sql(f"CREATE TABLE hits ({', '.join(f'{name} {kind}' for name, kind in COLUMNS)})")
        database.sql(f"INSERT INTO hits SELECT * FROM '{tmp_path}/hits.parquet'")
        for number, text in QUERIES.items():
            answer = database.sql(text).arrow()
            assert answer.num_columns >= 1, number
        (sums,) = database.sql(QUERIES[29]).rows()
        width = sum(rows["ResolutionWidth"].to_pylist())
        assert list(sums) == [width + shift * 2_000 for shift in range(90)]
    finally:
        database.close()
