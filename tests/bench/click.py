"""ClickBench: 43 queries over one wide table of page views, on the lake and on DuckDB, interleaved in one run.

    python -m tests bench click --rows 1000000 --runs 3

    lake files, lake hot        as in the TPC-H bench
    duckdb, duckdb parquet      its own table, and the generated file

The rows are generated: 105 columns of the types and about the distributions of the real ones, texts repeated by a power law,
most columns nearly constant. Ratios are to DuckDB's own table. Answers are compared with DuckDB's where they are determined:
of a LIMIT over equal counts only the counts are (``clickbench.COMPARED``).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench import save
from tests.bench.tpch import RIVAL, Contestant, _answer, figures, lake_contestant, measure, report, rows_of
from tests.clickbench import COLUMNS, COMPARED, QUERIES
from tests.random_sql import same_answer

CACHE: Final = Path("~/.cache/lake-tests/click").expanduser()
CHUNK_ROWS: Final = 500_000
JULY: Final = 1_372_636_800  # 2013-07-01, seconds
WORDS: Final = "buy car news google yandex shop photo video free online price map weather moto house film music game".split()
ARROW: Final = {
    "BIGINT": pa.int64(), "INTEGER": pa.int32(), "SMALLINT": pa.int16(), "TEXT": pa.string(), "TIMESTAMP": pa.timestamp("us"),
    "DATE": pa.date32(),
}  # fmt: skip
SCHEMA: Final = pa.schema([(name, ARROW[kind]) for name, kind in COLUMNS])

# Texts: how many different ones for a million rows, the share that is empty, how they begin, words in each.
TEXTS: Final[dict[str, tuple[int, float, str, int]]] = {
    "Title": (120_000, 0.15, "", 6), "URL": (280_000, 0.0, "http://{}.example.com/", 4),
    "Referer": (240_000, 0.19, "https://www.{}.example.org/", 4), "OriginalURL": (60_000, 0.8, "http://{}.example.com/", 4),
    "SearchPhrase": (90_000, 0.87, "", 3), "MobilePhoneModel": (160, 0.95, "", 1), "Params": (900, 0.98, "", 2),
    "PageCharset": (4, 0.02, "", 1), "BrowserLanguage": (30, 0.0, "", 1), "BrowserCountry": (60, 0.0, "", 1),
    "HitColor": (3, 0.0, "", 1), "UserAgentMinor": (40, 0.2, "", 1), "FlashMinor2": (60, 0.4, "", 1),
}  # fmt: skip
# Numbers of few values: how many, and the share of zeros.
SMALL: Final[dict[str, tuple[int, float]]] = {
    "AdvEngineID": (18, 0.994), "SearchEngineID": (40, 0.87), "TraficSourceID": (10, 0.4), "MobilePhone": (40, 0.95),
    "IsRefresh": (2, 0.87), "DontCountHits": (2, 0.95), "IsLink": (2, 0.9), "IsDownload": (2, 0.997), "OS": (90, 0.05),
    "UserAgent": (80, 0.02), "ResolutionHeight": (300, 0.02), "WindowClientWidth": (1_900, 0.05), "CodeVersion": (60, 0.1),
    "WindowClientHeight": (1_100, 0.05), "Age": (60, 0.4), "Sex": (3, 0.3), "Income": (5, 0.4), "Interests": (9_000, 0.6),
    "URLCategoryID": (12_000, 0.5), "RefererCategoryID": (12_000, 0.5), "URLRegionID": (400, 0.6), "RefererRegionID": (400, 0.6),
    "HistoryLength": (200, 0.1), "ClientTimeZone": (24, 0.05), "SendTiming": (30_000, 0.4), "ResponseEndTiming": (30_000, 0.3),
    "ResponseStartTiming": (30_000, 0.3), "FetchTiming": (30_000, 0.5), "IPNetworkID": (4_000_000, 0.0),
}  # fmt: skip


def texts(random: np.random.Generator, count: int, start: str, words: int) -> pa.Array:
    """``count`` different texts."""
    picked = random.integers(0, len(WORDS), (count, words))
    begins = [start.format(WORDS[number % 7]) for number in range(count)] if start else [""] * count
    joined = ["-".join(WORDS[word] for word in row) for row in picked.tolist()]
    return pa.array([f"{begin}{text.title() if not start else text}{at}" for at, (begin, text) in enumerate(zip(begins, joined))])


def by_power_law(random: np.random.Generator, rows: int, count: int) -> Any:
    """int64[rows] below ``count``, small numbers more often."""
    return np.minimum((count ** random.random(rows) - 1).astype(np.int64) + random.integers(0, 1 + count // 50, rows), count - 1)


class Generator:
    """Rows of the table, chunk by chunk; the same for the same number of rows."""

    def __init__(self, rows: int) -> None:
        self.random = np.random.default_rng(62)
        self.rows = rows
        scale = max(rows / 1_000_000, 0.01)
        self.pools = {
            name: texts(self.random, int(count * scale) if count > 1_000 else count, start, words)
            for name, (count, _, start, words) in TEXTS.items()
        }
        self.users = self.random.integers(-(1 << 62), 1 << 62, int(180_000 * scale))
        self.addresses = self.random.integers(-(1 << 31), 1 << 31, int(150_000 * scale))

    def chunk(self, rows: int) -> pa.Table:
        """The next rows."""
        random, user = self.random, by_power_law(self.random, rows, len(self.users))
        at = JULY + random.integers(0, 31 * 86_400, rows)
        arrays: dict[str, Any] = {
            "WatchID": random.integers(1 << 62, (1 << 63) - 1, rows), "UserID": self.users[user],
            "ClientIP": self.addresses[user % len(self.addresses)], "RemoteIP": self.addresses[user % len(self.addresses)],
            "EventTime": at * 1_000_000, "ClientEventTime": (at + 3) * 1_000_000, "LocalEventTime": (at + 10_800) * 1_000_000,
            "EventDate": at // 86_400, "CounterID": by_power_law(random, rows, 6_500) + 38,
            "RegionID": by_power_law(random, rows, 9_000) + 1, "HID": random.integers(0, 1 << 30, rows),
            "FUniqID": np.where(random.random(rows) < 0.3, 0, self.users[user]),
            "ResolutionWidth": random.choice(np.array([1024, 1280, 1366, 1440, 1600, 1680, 1920, 1750, 0]), rows),
            "URLHash": np.where(random.random(rows) < 0.01, 2868770270353813622, random.integers(0, 1 << 62, rows)),
            "RefererHash": np.where(random.random(rows) < 0.05, 3594120000172545465, random.integers(0, 1 << 62, rows)),
        }  # fmt: skip
        return pa.table([self._column(field, arrays.get(field.name), rows) for field in SCHEMA], schema=SCHEMA)

    def _column(self, field: pa.Field, values: Any, rows: int) -> pa.Array:
        random = self.random
        if values is not None:
            plain = pa.array(values.astype(np.int64))
            return plain.cast(pa.int32()).cast(field.type) if pa.types.is_date(field.type) else plain.cast(field.type)
        if field.name in TEXTS:
            pool, empty = self.pools[field.name], TEXTS[field.name][1]
            picked = by_power_law(random, rows, len(pool))
            return pool.take(pa.array(picked)).fill_null("") if empty == 0 else _some_empty(random, pool, picked, empty)
        if pa.types.is_string(field.type):
            return pa.array([""]).take(pa.array(np.zeros(rows, np.int64)))
        count, zeros = SMALL.get(field.name, (2, 0.97))
        numbers = np.where(random.random(rows) < zeros, 0, by_power_law(random, rows, max(count - 1, 1)) + 1)
        return pa.array(numbers).cast(field.type)


def _some_empty(random: np.random.Generator, pool: pa.Array, picked: Any, empty: float) -> pa.Array:
    return pool.take(pa.array(picked, mask=random.random(len(picked)) < empty)).fill_null("")


def data_of(rows: int) -> Path:
    """The Parquet file of so many rows, generated where it is not there."""
    found = CACHE / f"hits-{rows}.parquet"
    if not found.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        began, generator = time.perf_counter(), Generator(rows)
        unfinished = found.with_suffix(".part")
        with pq.ParquetWriter(unfinished, SCHEMA, compression="snappy") as writer:
            for start in range(0, rows, CHUNK_ROWS):
                writer.write_table(generator.chunk(min(CHUNK_ROWS, rows - start)), row_group_size=122_880)
        unfinished.rename(found)
        print(f"{found}: {rows} rows generated in {time.perf_counter() - began:.1f} s", flush=True)
    return found


def load_lake(data: Path, folder: Path) -> float:
    """Makes a lake of the file; answers seconds."""
    import lake

    database = lake.open(folder)
    try:
        database.sql(f"CREATE TABLE hits ({', '.join(f'{name} {kind}' for name, kind in COLUMNS)})")
        began = time.perf_counter()
        database.sql(f"INSERT INTO hits SELECT * FROM '{data}'")
        return time.perf_counter() - began
    finally:
        database.close()


def duckdb_contestant(name: str, data: Path, threads: int, *, own: bool) -> Contestant:
    """DuckDB over a table of its own, in memory, or over the file."""
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute(f"SET threads = {threads}")
    began = time.perf_counter()
    connection.execute(f"CREATE {'TABLE' if own else 'VIEW'} hits AS SELECT * FROM read_parquet('{data}')")
    took = time.perf_counter() - began if own else None
    return Contestant(name, lambda text: connection.sql(text).to_arrow_table(), connection.close, load_secs=took)


def warm_up(engines: Sequence[Contestant], queries: dict[int, str]) -> list[str]:
    """Asks each query once of each engine; answers what was wrong with the answers."""
    wrong = []
    for number, text in queries.items():
        answers = {}
        for engine in engines:
            try:
                answers[engine.name] = engine.ask(text)
            except Exception as error:  # one query that fails does not end the bench
                engine.failures[number] = f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
        if RIVAL not in answers:
            continue
        expected = _determined(number, answers[RIVAL])
        for name, answer in answers.items():
            if not same_answer(_answer(_determined(number, answer)), _answer(expected), ordered=False):
                wrong.append(f"Q{number} on {name}: {_determined(number, answer)[:2]} against {expected[:2]}")
    return wrong


def _determined(number: int, answer: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of an answer, of columns that every right answer agrees on; their number where there are none."""
    places = COMPARED.get(number)
    if places is None:
        return rows_of(answer)
    return rows_of(answer.select(list(places))) if places else [(answer.num_rows,)]


def main(arguments: Sequence[str]) -> int:
    """`python -m tests bench click`: 1 where an answer of the lake is wrong or missing."""
    parser = argparse.ArgumentParser(prog="python -m tests bench click", description="ClickBench against DuckDB")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table (10000000)")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each query (3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine (2)")
    parser.add_argument("--queries", help="numbers with commas (all), from 0")
    parser.add_argument("--no-save", action="store_true", help="leave results.csv alone")
    options = parser.parse_args(arguments)
    chosen = [int(word) for word in options.queries.split(",")] if options.queries else list(QUERIES)
    queries = {number: QUERIES[number] for number in chosen}
    data = data_of(options.rows)
    scratch = Path(tempfile.mkdtemp(prefix="lake-click-", dir=CACHE))
    took = load_lake(data, scratch / "hot")
    # The second lake shares the files: data files never change.
    shutil.copytree(scratch / "hot", scratch / "files", copy_function=os.link)
    engines = [
        lake_contestant("lake files", scratch / "files", cores=options.threads, hot_gb=0),
        lake_contestant("lake hot", scratch / "hot", cores=options.threads),
        duckdb_contestant(RIVAL, data, options.threads, own=True),
        duckdb_contestant("duckdb parquet", data, options.threads, own=False),
    ]
    engines[1].load_secs = took
    try:
        wrong = warm_up(engines, queries)
        measure(engines, queries, options.runs)
    finally:
        for engine in engines:
            engine.close()
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"ClickBench, {options.rows} rows, ms, medians of {options.runs}, {options.threads} threads; load, s: lake {took:.1f}, "
          f"duckdb {engines[2].load_secs:.1f}; x: times what {RIVAL}'s own table takes")
    print(report(engines, queries))
    for engine in engines:
        for number, reason in engine.failures.items():
            print(f"Q{number} on {engine.name}: {reason}")
    print("\n".join(wrong) or f"answers: all {len(queries)} alike")
    if not options.no_save:
        save(figures(engines, queries, f"click {options.rows}"))
    failed = [engine.name for engine in engines if engine.name.startswith("lake") and engine.failures]
    return 1 if failed or any("on lake" in line for line in wrong) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
