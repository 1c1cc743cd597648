"""A keyed table through many rounds of updates: look-ups, scans against a clean table, bytes written.

    python -m tests bench keyed [--rows 10000000] [--rounds 60] [--updates 100000]

Each round upserts random keys, tiers them to a generation and does what upkeep does. Then the table is scanned, hot, with the
result cache off, against a table of the same rows that was written once and has no key; keys are looked up in it at random,
in the process and over HTTP's own call. Bytes are those of all files written in the rounds, against writing the table anew
each time.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from lake.config import load
from lake.db.database import Database
from lake.db.lookup import look_up
from lake.db.session import Session
from lake.doors.http.encode import STREAMS
from lake.storage.commits.sequencer import Append
from tests.bench import Figure, median, percentile, save, table

CASE: Final = "keyed"
COLUMNS: Final = "id BIGINT, name VARCHAR, price DECIMAL(12,2), amount BIGINT, seen TIMESTAMP"
MAKE: Final = (
    "SELECT i, concat('name ', i % 9973), CAST(i % 100000 AS DECIMAL(12,2)) / 100, (i * 7919) % 1000003, "
    "TIMESTAMP '2026-01-01' + INTERVAL '1 second' * (i % 8640000) FROM generate_series(0, {last}) AS g(i)"
)
SCANS: Final = {
    "sum": "SELECT sum(amount), max(price) FROM {table}",
    "group": "SELECT name, count(*), sum(price) FROM {table} GROUP BY name ORDER BY 2 DESC, 1 LIMIT 5",
    "filter": "SELECT count(*), min(name) FROM {table} WHERE amount < 1000",
}
LOOKUPS: Final = 2_000
REPEATS: Final = 5


def main(arguments: Sequence[str]) -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(prog="python -m tests bench keyed", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--updates", type=int, default=100_000)
    parser.add_argument("--folder", default=None, help="where the lake is made")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="lake-keyed-bench-", dir=given.folder))
    try:
        figures = measure(folder, given.rows, given.rounds, given.updates)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(("what", "value", "unit"), [(each.what, f"{each.value:.4g}", each.unit) for each in figures]))
    save(figures)
    return 0


def measure(folder: Path, rows: int, rounds: int, updates: int) -> list[Figure]:
    """All figures of one table."""
    database = Database.open(load(options={"lake": str(folder), "tier_secs": "0"}))
    database.start(None)
    session = Session(database)
    session.execute("SET lake.result_cache = off")
    found: list[Figure] = []

    def note(what: str, value: float, unit: str) -> None:
        found.append(Figure(CASE, "lake", what, value, unit))

    session.execute(f"CREATE TABLE k ({COLUMNS}, PRIMARY KEY (id))")
    session.execute(f"CREATE TABLE clean ({COLUMNS})")
    started = time.perf_counter()
    session.execute(f"INSERT INTO k {MAKE.format(last=rows - 1)}")
    loaded = time.perf_counter() - started
    started = time.perf_counter()
    session.execute(f"INSERT INTO clean {MAKE.format(last=rows - 1)}")
    note("bulk load", loaded, "s")
    note("bulk load against a table without a key", loaded / (time.perf_counter() - started), "x")
    full = size_of(database, "k")
    clean = {name: hot(session, text.format(table="clean")) for name, text in SCANS.items()}
    for name, text in SCANS.items():
        note(f"scan {name}, one generation, against clean", hot(session, text.format(table="k")) / clean[name], "x")
    written, spent = run_rounds(database, rows, rounds, updates)
    note(f"{rounds} rounds of {updates}", spent, "s")
    note("bytes written", written / 1e6, "MB")
    note("bytes of full rewrites", full * rounds / 1e6, "MB")
    note("generations at the end", len({file.generation for file in database.lake.state.table("k").files}), "")
    started = time.perf_counter()
    session.execute("SELECT count(*) FROM k")
    note("first merge on read", (time.perf_counter() - started) * 1e3, "ms")
    for name, text in SCANS.items():
        note(f"scan {name}, updated, against clean", hot(session, text.format(table="k")) / clean[name], "x")
    found += lookups(database, session, rows)
    database.close()
    return found


def run_rounds(database: Database, rows: int, rounds: int, updates: int) -> tuple[int, float]:
    """The rounds; answers bytes of files written and seconds."""
    chance = np.random.default_rng(7)
    id = database.lake.state.table("k").id
    seen = {file.path for file in database.lake.state.table("k").files}
    written, started = 0, time.perf_counter()
    for number in range(rounds):
        keys = chance.integers(0, rows, updates)
        database.lake.commit(appends=[Append(id, update_of(keys, number))])
        for step in (database.lake.tier, database.lake.upkeep.merge):
            step()
            for file in database.lake.state.table("k").files:
                if file.path not in seen:
                    seen.add(file.path)
                    written += file.bytes
    return written, time.perf_counter() - started


def update_of(keys: np.ndarray, number: int) -> pa.RecordBatch:
    """New rows of some keys."""
    names = pa.array([f"name {key % 9973}" for key in keys.tolist()])
    seen = pa.array(np.full(len(keys), 1_800_000_000_000_000 + number), pa.int64()).cast(pa.timestamp("us"))
    arrays = [pa.array(keys), names, pa.array(keys % 100_000), pa.array(keys * 7919 % 1_000_003 + number), seen]
    return pa.RecordBatch.from_arrays(arrays, names=["id", "name", "price", "amount", "seen"])


def lookups(database: Database, session: Session, rows: int) -> list[Figure]:
    """Latencies of single keys."""
    chance = random.Random(3)

    def over_http() -> None:
        b"".join(STREAMS["json"](look_up(database, ("k",), str(chance.randrange(rows)))))

    def by_sql() -> None:
        list(session.execute(f"SELECT * FROM k WHERE id = {chance.randrange(rows)}").batches())

    def after_write() -> None:
        key = chance.randrange(rows)
        session.execute(f"INSERT INTO k (id, amount) VALUES ({key}, 1)")
        times_of(lambda: look_up(database, ("k",), str(key)), 1)

    found = []
    for name, work, count in (
        ("lookup", over_http, LOOKUPS), ("SELECT by key", by_sql, LOOKUPS), ("upsert and lookup", after_write, 200),
    ):  # fmt: skip
        times = times_of(work, count)
        found.append(Figure(CASE, "lake", f"{name} p50", median(times) * 1e3, "ms"))
        found.append(Figure(CASE, "lake", f"{name} p99", percentile(times, 0.99) * 1e3, "ms"))
    return found


def times_of(work: Callable[[], object], count: int) -> list[float]:
    """Seconds of each call."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return times


def hot(session: Session, text: str) -> float:
    """The best of some runs, in seconds."""
    return min(times_of(lambda: list(session.execute(text).batches()), REPEATS))


def size_of(database: Database, name: str) -> int:
    """Bytes of a table's files."""
    return database.lake.state.table(name).file_bytes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
