"""Rows that change, beside Postgres on the same disk, both through psycopg: inserts, updates, deletes, merges, look-ups, loads.

    python -m tests bench changes [--rows 1000000] [--target 10000000] [--seconds 3]

Postgres has its defaults, ``synchronous_commit`` on. Every statement is a transaction of its own that is durable when it is
answered. One connection each. Latencies are medians; ratios are the lake's time to Postgres's, below 1 is faster.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.bench import Figure, median, save, table
from tests.cluster import free_port, running_node
from tests.pg.server import Server

CASE: Final = "changes"
BATCH: Final = 1_000
MANY: Final = 100_000
SERIES: Final = "SELECT i AS id, 'name ' || (i % 9973) AS name, i * 0.5::DOUBLE PRECISION AS value, i % 100 AS grp FROM generate_series({low}, {high}) AS s(i)"
COLUMNS: Final = "(id BIGINT PRIMARY KEY, name VARCHAR, value DOUBLE PRECISION, grp BIGINT)"

Ask = Callable[[str], object]


@contextmanager
def lake_connection(folder: Path) -> Iterator[psycopg.Connection[Any]]:
    """The lake's Postgres door."""
    port = free_port()
    conninfo = f"host=127.0.0.1 port={port} user=lake dbname=lake"
    with (
        running_node(folder / "lake", "--pg", f"127.0.0.1:{port}"),
        psycopg.connect(conninfo, autocommit=True) as connection,
    ):
        connection.execute("SET lake.result_cache = off")  # a scan is a scan
        yield connection


@contextmanager
def postgres_connection() -> Iterator[psycopg.Connection[Any]]:
    """A Postgres of this run."""
    server = Server(options=())
    try:
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = on")
            yield connection
    finally:
        server.stop()


def repeated(ask: Callable[[int], object], seconds: float) -> float:
    """Median seconds of a call that is made again and again."""
    took: list[float] = []
    until = time.perf_counter() + seconds
    number = 0
    while time.perf_counter() < until:
        began = time.perf_counter()
        ask(number)
        took.append(time.perf_counter() - began)
        number += 1
    return median(took[len(took) // 10 :])


def once(ask: Ask, text: str) -> float:
    """Seconds of one statement."""
    began = time.perf_counter()
    ask(text)
    return time.perf_counter() - began


def measure(connection: psycopg.Connection[Any], options: argparse.Namespace) -> dict[str, float]:
    """Seconds of each case."""
    random.seed(7)
    rows = options.rows

    def ask(text: str) -> None:
        connection.execute(text)

    def insert(count: int) -> Callable[[int], object]:
        def run(number: int) -> None:
            low = number * count + 1
            values = ",".join(f"({id}, 'name {id % 97}', {id * 0.5}, {id % 100})" for id in range(low, low + count))
            ask(f"INSERT INTO {'ones' if count == 1 else 'thousands'} VALUES {values}")
        return run

    for name in ("ones", "thousands", "loaded", "target"):
        ask(f"CREATE TABLE {name} {COLUMNS}")
    found = {
        "INSERT of 1 row, p50": repeated(insert(1), options.seconds),
        "INSERT of 1,000 rows, p50": repeated(insert(BATCH), options.seconds),
        f"bulk load of {rows:,} rows (INSERT .. SELECT)": once(ask, f"INSERT INTO loaded {SERIES.format(low=1, high=rows)}"),
    }
    copied = "\n".join(f"{id}\tname {id % 97}\t{id * 0.5}\t{id % 100}" for id in range(rows + 1, rows + MANY + 1)).encode()
    began = time.perf_counter()
    with connection.cursor() as cursor, cursor.copy("COPY loaded FROM STDIN") as copy:
        copy.write(copied + b"\n")
    found[f"COPY FROM STDIN of {MANY:,} rows"] = time.perf_counter() - began

    def key() -> int:
        return random.randrange(1, rows)

    found["key lookup, p50"] = repeated(
        lambda number: connection.execute("SELECT * FROM loaded WHERE id = %s", (key(),)).fetchall(), options.seconds
    )
    found["UPDATE of one key, p50"] = repeated(
        lambda number: connection.execute("UPDATE loaded SET value = value + 1 WHERE id = %s", (key(),)), options.seconds
    )
    def scan() -> float:
        return median([once(ask, "SELECT sum(value), count(*) FROM loaded") for _ in range(9)])

    found["scan"] = scan()
    ask("UPDATE loaded SET value = value + 1 WHERE id % 100 = 7")
    found["scan, 1 % changed"] = scan()
    found[f"UPDATE of {MANY:,} rows"] = once(ask, f"UPDATE loaded SET value = value + 1 WHERE id <= {MANY}")
    found["scan, a tenth changed"] = scan()
    found[f"DELETE of {MANY:,} rows"] = once(ask, f"DELETE FROM loaded WHERE id > {rows - MANY} AND id <= {rows}")
    ask(f"INSERT INTO target {SERIES.format(low=1, high=options.target)}")
    ask(f"CREATE TABLE source AS {SERIES.format(low=options.target - MANY // 2, high=options.target + MANY // 2)}")
    found[f"MERGE of {MANY:,} into {options.target:,}"] = once(
        ask,
        "MERGE INTO target AS t USING source AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET value = s.value + 1 "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, s.value, s.grp)",
    )
    return found


def main(arguments: Sequence[str]) -> int:
    """Measures both, Postgres first."""
    parser = argparse.ArgumentParser(prog="python -m tests bench changes", description="Rows that change, beside Postgres")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table that changes (1000000)")
    parser.add_argument("--target", type=int, default=10_000_000, help="rows of the table that is merged into (10000000)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each latency (3)")
    parser.add_argument("--no-save", action="store_true", help="leave results.csv alone")
    options = parser.parse_args(arguments)
    with postgres_connection() as connection:
        theirs = measure(connection, options)
    with tempfile.TemporaryDirectory() as folder, lake_connection(Path(folder)) as connection:
        ours = measure(connection, options)
    figures = [Figure(CASE, "lake", what, took * 1000, "ms", took / theirs[what]) for what, took in ours.items()]
    rows = [(each.what, f"{each.value:,.2f}", f"{theirs[each.what] * 1000:,.2f}", f"{each.ratio or 0:.2f}") for each in figures]
    print(table(("case", "lake ms", "postgres ms", "ratio"), rows))
    if not options.no_save:
        save(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
