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


def test_shifted_sums_are_the_sums_of_shifted_values(tmp_path: Path) -> None:
    """By group, with NULLs, filters and averages beside them; what may overflow or is DISTINCT goes the plain way."""
    database = lake.open(tmp_path / "lake")
    try:
        database.sql("CREATE TABLE t AS SELECT i % 3 AS g, CASE WHEN i % 7 = 0 THEN NULL ELSE i::INT END AS x FROM range(1000) AS r(i)")
        shifted = "SELECT g, sum(x - 5), sum(x + 2000000), avg(x), sum(x), sum(x + 1) FILTER (WHERE x > 10), sum(DISTINCT x + 1) "
        plain = shifted.replace("x - 5", "y - 5").replace("x + 2", "y + 2").replace("x + 1", "y + 1")
        expected = database.sql(plain + "FROM (SELECT g, x, x::BIGINT AS y FROM t) AS s GROUP BY g ORDER BY g").rows()
        assert database.sql(shifted + "FROM t GROUP BY g ORDER BY g").rows() == expected
        assert database.sql("SELECT sum(x + 5) FROM t WHERE x < 0").rows() == [(None,)]
    finally:
        database.close()
