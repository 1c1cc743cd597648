"""One operator at a time, lake against DuckDB, two threads each; and the same with a tenth of the memory that it wants.

    python -m tests bench micro [--rows 6000000] [--runs 3] [--cases join,sort]
    python -m tests bench micro --spill          each breaker in memory and spilling, the lake alone

Both have the rows in tables of their own. An answer is an Arrow table, and is compared as rows without order.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

import lake
from tests.bench import Figure, median, save, table
from tests.engines import Answer
from tests.random_sql import same_answer

THREADS: Final = 2
SPILL_SHARE: Final = 10  # the part of what it held in memory that a spilling query is given

TABLES: Final = {
    "facts": """SELECT i AS id, (i * 7919) % {dim} AS dim_id, (i * 104729) % 1000003 AS far, i % 1000 AS grp,
        'name ' || ((i * 31) % 200000) AS name, ((i * 7907) % 100000)::DOUBLE / 8 AS value,
        TIMESTAMP '2026-01-01' + to_seconds((i * 13) % 8640000) AS at FROM range({rows}) AS s(i)""",
    "dims": "SELECT i AS dim_id, 'dim ' || i % 5000 AS label, i % 100 AS weight FROM range({dim}) AS s(i)",
    "quotes": """SELECT i % 1000 AS grp, TIMESTAMP '2026-01-01' + to_seconds((i * 17) % 8640000) AS at, i AS price
        FROM range({dim}) AS s(i)""",
}
CASES: Final = {
    "join": "SELECT weight, count(*), sum(value) FROM facts JOIN dims USING (dim_id) GROUP BY weight",
    "join far": "SELECT count(*) FROM facts AS a JOIN facts AS b ON a.far = b.far AND a.id = b.id",
    "group": "SELECT grp, count(*), sum(value), min(id), max(id) FROM facts GROUP BY grp",
    "group far": "SELECT count(*) FROM (SELECT far, count(*) AS n, sum(id) AS s FROM facts GROUP BY far) AS q WHERE n > 6",
    "string group": "SELECT name, count(*) AS n FROM facts GROUP BY name ORDER BY n DESC, name LIMIT 10",
    "count distinct": "SELECT count(DISTINCT far), count(DISTINCT name) FROM facts",
    "sort": "SELECT sum(n) FROM (SELECT row_number() OVER (ORDER BY value, id) AS n, id FROM facts) AS q WHERE id % 1000 = 0",
    "top n": "SELECT id, value FROM facts ORDER BY value DESC, id LIMIT 100",
    "window": "SELECT max(r) FROM (SELECT sum(value) OVER (PARTITION BY grp ORDER BY id) AS r FROM facts) AS q",
    "window rank": "SELECT count(*) FROM (SELECT rank() OVER (PARTITION BY grp ORDER BY value DESC) AS r FROM facts) AS q WHERE r <= 3",
    "asof": "SELECT count(price), sum(price) FROM facts AS f ASOF LEFT JOIN quotes AS q ON f.grp = q.grp AND f.at >= q.at",
    "like": "SELECT count(*) FROM facts WHERE name LIKE '%99%7%'",
    "filter": "SELECT count(*), sum(value) FROM facts WHERE grp BETWEEN 100 AND 200 AND value < 5000",
}
SPILLS: Final = {
    "join": "SELECT count(*), sum(b.value) FROM facts AS a JOIN facts AS b ON a.id = b.id",
    "group": "SELECT count(*), max(n) FROM (SELECT far, name, count(*) AS n FROM facts GROUP BY far, name) AS q",
    "sort": "SELECT count(*) FROM (SELECT id, name, value FROM facts ORDER BY name, value, id OFFSET 10) AS q",
    "window": "SELECT count(*), max(r) FROM (SELECT sum(value) OVER (PARTITION BY far ORDER BY id) AS r FROM facts) AS q",
    "distinct": "SELECT count(*) FROM (SELECT DISTINCT far, name, grp FROM facts) AS q",
    "intersect": "SELECT count(*) FROM (SELECT id, name FROM facts INTERSECT SELECT id, name FROM facts WHERE id % 3 = 0) AS q",
    "list": "SELECT max(length(l)) FROM (SELECT far, string_agg(name, ',' ORDER BY id) AS l FROM facts GROUP BY far) AS q",
}


def make_data(folder: Path, rows: int) -> None:
    """The tables as Parquet files."""
    connection = duckdb.connect()
    for name, query in TABLES.items():
        text = query.format(rows=rows, dim=max(rows // 20, 10))
        connection.execute(f"COPY ({text}) TO '{folder / name}.parquet' (FORMAT parquet)")
    connection.close()


def open_lake(folder: Path, data: Path | None, **limits: Any) -> Any:
    """The lake of the files."""
    opened = lake.open(folder / "lake", cores=THREADS, **limits)
    opened.sql("SET lake.result_cache = off")
    for name in TABLES if data is not None else ():
        opened.sql(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{data}/{name}.parquet')")
    return opened


def asker(database: Any) -> Callable[[str], pa.Table]:
    """What asks a lake."""
    return lambda text: database.sql(text).arrow()


def timed(ask: Callable[[str], pa.Table], text: str, runs: int) -> tuple[float, pa.Table]:
    """The median of some runs after one, and the answer."""
    answer, took = ask(text), []
    for _ in range(runs):
        began = time.perf_counter()
        answer = ask(text)
        took.append(time.perf_counter() - began)
    return median(took), answer


def is_same(ours: pa.Table, theirs: pa.Table) -> bool:
    """Whether two answers have the same rows."""
    def rows_of(answer: pa.Table) -> Answer:
        return Answer(rows=list(zip(*(column.to_pylist() for column in answer.columns), strict=True)))

    return same_answer(rows_of(ours), rows_of(theirs), ordered=False)


def against_duckdb(folder: Path, options: argparse.Namespace) -> list[Figure]:
    """Every case on both engines."""
    make_data(folder, options.rows)
    ours = open_lake(folder, folder)
    theirs = duckdb.connect()
    theirs.execute(f"SET threads = {THREADS}")
    for name in TABLES:
        theirs.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{folder}/{name}.parquet')")
    figures = []
    for name in options.cases or CASES:
        rival, expected = timed(lambda text: theirs.sql(text).to_arrow_table(), CASES[name], options.runs)
        took, answer = timed(asker(ours), CASES[name], options.runs)
        same = "" if is_same(answer, expected) else ", DIFFERS"
        figures.append(Figure("micro", "lake", f"{name}{same}", took * 1000, "ms", took / rival))
    ours.close()
    return figures


def spilling(folder: Path, options: argparse.Namespace) -> list[Figure]:
    """Every breaker in memory, and with a tenth of what it held."""
    make_data(folder, options.rows)
    ours = open_lake(folder, folder, memory_gb=16)
    held, whole = {}, {}
    for name in options.cases or SPILLS:
        whole[name] = timed(asker(ours), SPILLS[name], options.runs)
        held[name] = peak_of(ours, SPILLS[name])
    ours.close()
    figures = []
    for name, (took, answer) in whole.items():
        limit = max(held[name] // SPILL_SHARE, 1 << 20)
        tight = open_lake(folder, None, memory_gb=limit / (1 << 30), hot_gb=0)
        slow, again = timed(asker(tight), SPILLS[name], options.runs)
        same = "" if again.equals(answer) else ", DIFFERS"
        what = f"{name} in {limit >> 20} of {held[name] >> 20} MiB{same}"
        figures.append(Figure("spill", "lake", what, slow * 1000, "ms", slow / took))
        tight.close()
    return figures


def peak_of(ours: Any, text: str) -> int:
    """The most bytes that the query's breakers said they held."""
    pool = ours.database._memory
    most = 0

    def note(held: int) -> None:
        nonlocal most
        most = max(most, held)

    before, pool._told = pool._told, note
    try:
        ours.sql(text).arrow()
    finally:
        pool._told = before
    return most


def main(arguments: Sequence[str]) -> int:
    """Runs the cases; 1 where an answer differs."""
    parser = argparse.ArgumentParser(prog="python -m tests bench micro", description="One operator at a time")
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows of the large table (6000000)")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each (3)")
    parser.add_argument("--cases", type=lambda text: text.split(","), help="names with commas (all)")
    parser.add_argument("--spill", action="store_true", help="the lake in memory and with a tenth of it")
    parser.add_argument("--no-save", action="store_true", help="leave results.csv alone")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        figures = (spilling if options.spill else against_duckdb)(Path(folder), options)
    against = "in memory" if options.spill else "duckdb"
    rows = [(each.what, f"{each.value:.0f}", f"{each.ratio:.2f}") for each in figures]
    print(table(("case", "ms", f"x of {against}"), rows))
    if not options.no_save:
        save(figures)
    return int(any("DIFFERS" in each.what for each in figures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
