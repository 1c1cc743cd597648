"""TPC-DS: the 99 queries on the lake and on DuckDB over the same files, answers compared.

    python3 -m venv DS && DS/bin/pip install duckdb==1.5.5 duckdb-extensions duckdb-extension-tpcds
    python -m tests tpcds --data FOLDER --make DS/bin/python --scale 0.1       makes the files, then compares
    python -m tests tpcds --data FOLDER --only 14,67                           these queries of the files made before

The generator and the texts of the queries come with DuckDB's extension, in an environment of its own; FOLDER holds a Parquet
file for each table and ``queries.json``. A final LIMIT is taken away before answers are compared, as rows without order:
rows that tie at the limit are anyone's choice. DuckDB is told to put NULLs where the dialect does, and to divide integers.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import lake
from tests.engines import Answer
from tests.random_sql import same_answer, same_value

MAKE: Final = """
import json, sys
import duckdb
from duckdb_extensions import import_extension

folder, scale = sys.argv[1:]
import_extension("tpcds")
connection = duckdb.connect()
connection.execute("LOAD tpcds")
connection.execute(f"CALL dsdgen(sf={scale})")
for (name,) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall():
    connection.execute(f"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)")
texts = dict(connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall())
json.dump(texts, open(f"{folder}/queries.json", "w"))
"""
QUOTIENT_RELATIVE: Final = 1e-5
QUOTIENT_ABSOLUTE: Final = 1e-4  # a quotient cut at the sixth digit, times a hundred
SLOW: Final = 20  # times DuckDB's time
_LIMIT: Final = re.compile(r"\s+LIMIT\s+\d+\s*;?\s*$", re.IGNORECASE)

Ask = Callable[[str], list[tuple[Any, ...]]]


def make(data: Path, python: Path, scale: float) -> None:
    """Makes the files with an environment that has the generator."""
    data.mkdir(parents=True, exist_ok=True)
    subprocess.run([str(python), "-c", MAKE, str(data), f"{scale:g}"], check=True)


def load(database: Any, data: Path) -> None:
    """One table of each file."""
    for path in sorted(data.glob("*.parquet")):
        database.sql(f"CREATE TABLE {path.stem} AS SELECT * FROM '{path}'")


def tables_of(data: Path, threads: int = 2) -> Any:
    """A connection to DuckDB with tables of its own."""
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute(f"SET threads = {threads}")
    connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
    connection.execute("SET integer_division = true")
    for path in sorted(data.glob("*.parquet")):
        connection.execute(f"CREATE TABLE {path.stem} AS SELECT * FROM read_parquet('{path}')")
    return connection


def without_limit(text: str) -> str:
    """The query without its last LIMIT."""
    return _LIMIT.sub("", text)


def answer(ask: Ask, text: str) -> Answer:
    """The rows as an answer that can be compared."""
    return answer_of(ask(text))


def answer_of(rows: list[tuple[Any, ...]]) -> Answer:
    """Rows as an answer that can be compared."""
    return Answer(letters="?" * (len(rows[0]) if rows else 0), rows=rows)


def timed(ask: Ask, text: str) -> tuple[float, int]:
    """Seconds and rows of one run."""
    began = time.perf_counter()
    rows = len(ask(text))
    return time.perf_counter() - began, rows


def compare(ours: Ask, theirs: Ask, text: str) -> tuple[str, float, float]:
    """What is wrong with our answer, or nothing; and the seconds of each."""
    whole = without_limit(text)
    try:
        found = answer(ours, whole)
        expected = answer(theirs, whole)
        if not same(found, expected):
            return _story(found, expected), 0, 0
        our_secs, our_rows = timed(ours, text)
        their_secs, their_rows = timed(theirs, text)
    except Exception as error:  # one query that fails does not end the run
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}", 0, 0
    return "" if our_rows == their_rows else f"{our_rows} rows, not {their_rows}", our_secs, their_secs


def same(found: Answer, expected: Answer) -> bool:
    """Whether both hold the same rows, in any order; quotients of decimals by the rule of ``near``."""
    return same_answer(found, expected, ordered=False) or _same_but_quotients(found, expected)


def near(ours: Any, theirs: Any) -> bool:
    """Whether a quotient of decimals is the same number.

    It is a decimal of four digits more than its dividend in the dialect, cut there, and a DOUBLE in DuckDB; what is
    reckoned with it, a percentage for instance, carries the cut along.
    """
    if isinstance(ours, Decimal) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=QUOTIENT_RELATIVE, abs_tol=QUOTIENT_ABSOLUTE)
    return same_value(ours, theirs)


def _same_but_quotients(found: Answer, expected: Answer) -> bool:
    """Rows with equal values in the columns that are no quotients are partners, each of one row."""
    if len(found.rows) != len(expected.rows) or not found.rows or len(found.rows[0]) != len(expected.rows[0]):
        return False
    quotients = {
        index
        for row in expected.rows for index, value in enumerate(row)
        if isinstance(value, float) and any(isinstance(other[index], Decimal) for other in found.rows)
    }  # fmt: skip

    def key(row: Sequence[Any]) -> str:
        return repr([f"{value:.9g}" if isinstance(value, int | float | Decimal) else value
                     for index, value in enumerate(row) if index not in quotients])  # fmt: skip

    left: dict[str, list[Sequence[Any]]] = {}
    for row in expected.rows:
        left.setdefault(key(row), []).append(row)
    for row in found.rows:
        partners = left.get(key(row), [])
        partner = next((at for at, other in enumerate(partners) if all(map(near, row, other))), None)
        if partner is None:
            return False
        del partners[partner]
    return True


def _story(found: Answer, expected: Answer) -> str:
    lines = [f"{len(found.rows)} rows, not {len(expected.rows)}"]
    ours, theirs = set(map(repr, found.rows)), set(map(repr, expected.rows))
    lines += [f"    lake    {row}" for row in sorted(ours - theirs)[:3]]
    lines += [f"    duckdb  {row}" for row in sorted(theirs - ours)[:3]]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m tests tpcds``: 1 where an answer differs."""
    options = argparse.ArgumentParser("python -m tests tpcds")
    options.add_argument("--data", type=Path, required=True, help="the folder of the files")
    options.add_argument("--make", type=Path, help="the Python that has the generator, where the files are to be made")
    options.add_argument("--scale", type=float, default=0.1, help="of files to be made (0.1)")
    options.add_argument("--only", help="numbers of queries, with commas")
    given = options.parse_args(argv)
    data = given.data.resolve()
    if given.make:
        make(data, given.make, given.scale)
    queries = {int(number): text for number, text in json.loads((data / "queries.json").read_text()).items()}
    chosen = [int(number) for number in given.only.split(",")] if given.only else sorted(queries)
    connection = tables_of(data)
    wrong, slow, totals = 0, [], [0.0, 0.0]

    def ask(text: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = connection.execute(text).fetchall()
        return rows

    with tempfile.TemporaryDirectory() as root, lake.open(Path(root) / "lake", cores=2) as database:
        load(database, data)
        database.sql("SET lake.result_cache = off")
        for number in chosen:
            problem, our_secs, their_secs = compare(lambda text: database.sql(text).rows(), ask, queries[number])
            totals = [totals[0] + our_secs, totals[1] + their_secs]
            wrong += bool(problem)
            if our_secs > SLOW * their_secs:
                slow.append(f"Q{number} {our_secs * 1000:.0f} ms against {their_secs * 1000:.0f}")
            if problem:
                print(f"Q{number}: {problem}", flush=True)
    print(f"{len(chosen)} queries, {wrong} wrong; {totals[0]:.2f} s against {totals[1]:.2f} s of DuckDB's own tables")
    print(f"more than {SLOW} times as long: {'; '.join(slow) or 'none'}")
    return 1 if wrong else 0
