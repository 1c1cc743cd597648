"""TPC-H: the 22 queries on the lake and on its rivals, interleaved in one run, answers compared.

    python -m tests bench tpch --scale 1 --runs 3

    lake files      the lake's own Parquet files, decoded for each query
    lake hot        the same lake with decoded columns kept in memory
    duckdb          DuckDB's own tables
    duckdb parquet, datafusion parquet, polars parquet      the generated files

All engines have two threads (``--threads``). For each query, one run warms every engine up; then the engines take
turns, ``--runs`` times, and the medians count. Ratios are to DuckDB's own tables. An answer is an Arrow table, for
everyone. Answers are compared with DuckDB's as rows without order, numbers by the rules of `tests/random_sql.py`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench import Figure, median, save, table
from tests.engines import Answer
from tests.random_sql import same_answer

TABLES: Final = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
CACHE: Final = Path("~/.cache/lake-tests/tpch").expanduser()
RIVAL: Final = "duckdb"

Rows = list[tuple[Any, ...]]


@dataclass
class Contestant:
    """An engine that is ready to answer; ``times`` are seconds by query."""

    name: str
    ask: Callable[[str], pa.Table]
    close: Callable[[], None]
    load_secs: float | None = None
    times: dict[int, list[float]] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)

    def took(self, number: int) -> float | None:
        """Median seconds of a query; None where it failed."""
        return median(self.times[number]) if self.times.get(number) and number not in self.failures else None


def data_of(scale: float, folder: Path | None) -> Path:
    """The folder of Parquet files at a scale, generated where it is not there."""
    found = folder or CACHE / f"sf{scale:g}"
    if not all((found / f"{name}.parquet").exists() for name in TABLES):
        found.mkdir(parents=True, exist_ok=True)
        beside = Path(sys.executable).with_name("tpchgen-cli")
        program = str(beside) if beside.exists() else shutil.which("tpchgen-cli") or "tpchgen-cli"
        subprocess.run([program, "parquet", "-s", f"{scale:g}", f"--output-dir={found}"], check=True)
    return found


def load_lake(data: Path, folder: Path, memory_gb: float | None) -> dict[str, float]:
    """Makes a lake of the files, one INSERT a table; answers seconds by table."""
    import lake
    from lake.types import from_arrow

    took = {}
    database = lake.open(folder, **({"memory_gb": memory_gb} if memory_gb else {}))
    try:
        for name in TABLES:
            path = data / f"{name}.parquet"
            columns = ", ".join(f"{each.name} {from_arrow(each.type).sql}" for each in pq.read_schema(path))
            database.sql(f"CREATE TABLE {name} ({columns})")
            began = time.perf_counter()
            database.sql(f"INSERT INTO {name} SELECT * FROM '{path}'")
            took[name] = time.perf_counter() - began
    finally:
        database.close()
    return took


def rows_of(answer: pa.Table) -> Rows:
    """The rows of an Arrow table."""
    return list(zip(*(column.to_pylist() for column in answer.columns), strict=True))


def lake_contestant(name: str, folder: Path, **settings: Any) -> Contestant:
    """The lake in a folder."""
    import lake

    database = lake.open(folder, **settings)
    database.sql("SET lake.result_cache = off")
    return Contestant(name, lambda text: database.sql(text).arrow(), database.close)


def duckdb_contestant(
    name: str, data: Path, threads: int, *, own: bool, memory_gb: float | None = None, home: Path | None = None
) -> Contestant:
    """DuckDB over tables of its own, in memory or, where that is limited, in a file in ``home``, or over the files."""
    import duckdb

    connection = duckdb.connect(str(home / "own.duckdb") if own and memory_gb and home else ":memory:")
    connection.execute(f"SET threads = {threads}")
    if memory_gb:
        connection.execute(f"SET memory_limit = '{memory_gb}GiB'; SET temp_directory = '{home}/spill'")
    began = time.perf_counter()
    for each in TABLES:
        kind = "TABLE" if own else "VIEW"
        connection.execute(f"CREATE {kind} {each} AS SELECT * FROM read_parquet('{data / each}.parquet')")
    took = time.perf_counter() - began if own else None
    return Contestant(name, lambda text: connection.sql(text).to_arrow_table(), connection.close, load_secs=took)


def datafusion_contestant(data: Path, threads: int) -> Contestant:
    """DataFusion over the files."""
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(threads))
    for each in TABLES:
        context.register_parquet(each, str(data / f"{each}.parquet"))
    return Contestant("datafusion parquet", lambda text: context.sql(text).to_arrow_table(), lambda: None)


def polars_contestant(data: Path) -> Contestant:
    """Polars over the files, through its SQL."""
    import polars

    frames = {each: polars.scan_parquet(data / f"{each}.parquet") for each in TABLES}
    context = polars.SQLContext(frames)

    def ask(text: str) -> pa.Table:
        return context.execute(text.strip().rstrip(";"), eager=True).to_arrow()

    return Contestant("polars parquet", ask, lambda: None)


def contestants(options: argparse.Namespace, data: Path, scratch: Path) -> list[Contestant]:
    """The engines asked for, each with its data."""
    names = options.engines.split(",") if options.engines else []

    def wanted(name: str) -> bool:
        return not names or any(name.startswith(each) for each in names)

    found: list[Contestant] = []
    if wanted("lake"):
        began = load_lake(data, scratch / "hot", options.memory_gb)
        print("lake load, s: " + ", ".join(f"{name} {took:.2f}" for name, took in began.items()), flush=True)
        # The second lake shares the files: data files never change.
        shutil.copytree(scratch / "hot", scratch / "files", copy_function=os.link)
        limits = {"cores": options.threads} | ({"memory_gb": options.memory_gb} if options.memory_gb else {})
        found.append(lake_contestant("lake files", scratch / "files", **limits, hot_gb=0))
        found.append(lake_contestant("lake hot", scratch / "hot", **limits))
        found[-1].load_secs = sum(began.values())
    found.append(duckdb_contestant(RIVAL, data, options.threads, own=True, memory_gb=options.memory_gb, home=scratch))
    if wanted("duckdb parquet"):
        found.append(duckdb_contestant("duckdb parquet", data, options.threads, own=False))
    if wanted("datafusion parquet"):
        found.append(datafusion_contestant(data, options.threads))
    if wanted("polars parquet"):
        found.append(polars_contestant(data))
    return found


def warm_up(engines: Sequence[Contestant], queries: dict[int, str]) -> list[str]:
    """Asks each query once of each engine; answers what was wrong with the answers."""
    wrong = []
    reference = next(engine for engine in engines if engine.name == RIVAL)
    for number, text in queries.items():
        answers: dict[str, Rows] = {}
        for engine in engines:
            try:
                answers[engine.name] = rows_of(engine.ask(text))
            except Exception as error:  # a rival that cannot answer a query does not end the bench
                engine.failures[number] = f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
        expected = _answer(answers[reference.name])
        for name, rows in answers.items():
            if not same_answer(_answer(rows), expected, ordered=False):
                wrong.append(f"Q{number} on {name}: {len(rows)} rows, {rows[:2]} against {expected.rows[:2]}")
    return wrong


def _answer(rows: Rows) -> Answer:
    return Answer(letters="?" * len(rows[0]) if rows else "", rows=rows)


def measure(engines: Sequence[Contestant], queries: dict[int, str], runs: int) -> None:
    """Times every query, the engines taking turns."""
    for number, text in queries.items():
        for _ in range(runs):
            for engine in engines:
                if number not in engine.failures:
                    began = time.perf_counter()
                    engine.ask(text)
                    engine.times.setdefault(number, []).append(time.perf_counter() - began)


def report(engines: Sequence[Contestant], queries: dict[int, str]) -> str:
    """A row a query: milliseconds of each engine, and the ratio of its own to DuckDB's tables."""
    rival = next(engine for engine in engines if engine.name == RIVAL)
    head = ["query"]
    for engine in engines:
        head += [engine.name] if engine is rival else [engine.name, "x"]
    rows = []
    for number in queries:
        row = [f"Q{number}"]
        for engine in engines:
            row += _cells(engine.took(number), None if engine is rival else rival.took(number))
        rows.append(row)
    last = ["total"]
    for engine in engines:
        last += _cells(*_totals(engine, rival, queries))
    return table(head, [*rows, last])


def _cells(took: float | None, rival: float | None) -> list[str]:
    shown = ["-" if took is None else f"{took * 1000:.0f}"]
    return shown if rival is None else [*shown, "-" if took is None else f"{took / rival:.1f}"]


def _totals(engine: Contestant, rival: Contestant, queries: dict[int, str]) -> tuple[float | None, float | None]:
    """Seconds over the queries the engine can answer, and the rival's over the same; no second for the rival itself."""
    able = [number for number in queries if engine.took(number) is not None]
    own = sum(engine.took(number) or 0.0 for number in able) if able else None
    return own, None if engine is rival else sum(rival.took(number) or 0.0 for number in able) or None


def figures(engines: Sequence[Contestant], queries: dict[int, str], case: str) -> list[Figure]:
    """What results.csv keeps: totals, the worst query, load times."""
    rival = next(engine for engine in engines if engine.name == RIVAL)
    found = []
    for engine in engines:
        own, theirs = _totals(engine, rival, queries)
        if own is not None:
            able = sum(engine.took(number) is not None for number in queries)
            ratio = own / theirs if theirs else None
            found.append(Figure(case, engine.name, f"total of {able} queries", own, "s", ratio))
        if engine is not rival and own is not None:
            worst = max(queries, key=lambda number: (engine.took(number) or 0.0) / (rival.took(number) or 1.0))
            took, least = engine.took(worst) or 0.0, rival.took(worst) or 1.0
            found.append(Figure(case, engine.name, f"worst query Q{worst}", took * 1000, "ms", took / least))
        if engine.load_secs is not None:
            found.append(Figure(case, engine.name, "load", engine.load_secs, "s"))
    return found


def main(arguments: Sequence[str]) -> int:
    """`python -m tests bench tpch`: 1 where an answer of the lake is wrong or missing."""
    parser = argparse.ArgumentParser(prog="python -m tests bench tpch", description="TPC-H against rivals")
    parser.add_argument("--scale", type=float, default=1.0, help="scale factor (1)")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each query (3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine (2)")
    parser.add_argument("--memory-gb", type=float, help="memory of the lake and of DuckDB, which then keeps its tables in a file")
    parser.add_argument("--data", type=Path, help=f"folder of Parquet files ({CACHE}/sf<scale>)")
    parser.add_argument("--engines", help="names with commas, such as lake,datafusion; DuckDB's tables always run")
    parser.add_argument("--queries", help="numbers with commas (all)")
    parser.add_argument("--no-save", action="store_true", help="leave results.csv alone")
    options = parser.parse_args(arguments)
    os.environ["POLARS_MAX_THREADS"] = str(options.threads)
    from tests.tpch import QUERIES

    chosen = [int(word) for word in options.queries.split(",")] if options.queries else list(QUERIES)
    queries = {number: QUERIES[number] for number in chosen}
    data = data_of(options.scale, options.data)
    scratch = Path(tempfile.mkdtemp(prefix="lake-tpch-", dir=CACHE if CACHE.exists() else None))
    engines = contestants(options, data.resolve(), scratch)
    try:
        wrong = warm_up(engines, queries)
        measure(engines, queries, options.runs)
    finally:
        for engine in engines:
            engine.close()
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"TPC-H at scale {options.scale:g}, ms, medians of {options.runs}, {options.threads} threads; "
          f"x: times what {RIVAL}'s own tables take")
    print(report(engines, queries))
    for engine in engines:
        for number, reason in engine.failures.items():
            print(f"Q{number} on {engine.name}: {reason}")
    print("\n".join(wrong) or f"answers: all {sum(len(engine.times) for engine in engines)} alike")
    if not options.no_save:
        save(figures(engines, queries, f"tpch sf{options.scale:g}" + (f", {options.memory_gb:g} GB" if options.memory_gb else "")))
    failed = [engine.name for engine in engines if engine.name.startswith("lake") and engine.failures]
    return 1 if failed or any("on lake" in line for line in wrong) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
