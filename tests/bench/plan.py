"""Parse, bind and plan: how long a statement takes before its first row is asked for.

    python -m tests bench plan [--scale 0.01] [--tpcds FOLDER] [--runs 7] [--rules]

A query of TPC-H, and of TPC-DS where ``tests/tpcds.py`` has made FOLDER, is read, bound and optimised over tables that hold the
data, so with real statistics. Uncached is all three steps; cached is what a repeated text costs: reading it again and finding
the plan that is kept. Times are of the processor, which one thread uses here, and the best of so many runs; Python looks for
cycles as it does in a node that serves.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import lake
from lake.db.session import Run, Session
from lake.exec.context import Cancellation
from lake.net.lifecycle import look_for_cycles_seldom
from lake.sql import ast, parser
from lake.sql.optimizer import RULES
from lake.sql.optimizer.planning import Planning
from tests.bench import Figure, median, save, table
from tests.bench.tpch import TABLES, data_of
from tests.tpch import QUERIES

TRIVIAL: Final = "SELECT 1"
STEPS: Final = ("parse", "bind", "plan")


def best(run: Callable[[], Any], runs: int) -> float:
    """Milliseconds of the quickest of so many runs."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) * 1_000


class Planner:
    """The steps of one session over one lake."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run_of(self, text: str) -> Run:
        """A statement as its handler is given it."""
        settings = self.session.statement_settings()
        catalog = self.session.database.catalog(settings)
        return Run(self.session, catalog, settings, {}, text, None, Cancellation(), None, script=text)

    def query(self, text: str) -> ast.Query:
        """The query of a text."""
        (statement,) = parser.parse(text)
        assert isinstance(statement, ast.QueryStatement)
        return statement.query

    def steps(self, text: str, runs: int) -> tuple[float, float, float]:
        """Milliseconds of reading, binding and optimising."""
        query, run = self.query(text), self.run_of(text)
        bound = run.binder().query(query)
        return (
            best(lambda: parser._run(text, "script"), runs),
            best(lambda: self.run_of(text).binder().query(query), runs),
            best(lambda: run.optimize(bound.plan), runs),
        )

    def cached(self, text: str, runs: int) -> float:
        """Milliseconds of a text whose plan is kept."""
        self.session.execute(text).rows()

        def again() -> None:
            query, run = self.query(text), self.run_of(text)
            run.select(query).close()

        return best(again, runs)

    def rules(self, text: str) -> dict[str, float]:
        """Milliseconds of each rule."""
        run = self.run_of(text)
        plan = run.binder().query(self.query(text)).plan
        planning = Planning.of(plan, run.settings, None)
        spent: dict[str, float] = {}
        for name, rule in RULES:
            start = time.process_time()
            plan = rule(plan, planning)
            spent[name] = (time.process_time() - start) * 1_000
        return spent


def measure(planner: Planner, queries: dict[str, str], runs: int) -> dict[str, tuple[float, ...]]:
    """Milliseconds of each query: its three steps, and cached."""
    return {name: (*planner.steps(text, runs), planner.cached(text, runs)) for name, text in queries.items()}


def report(case: str, times: dict[str, tuple[float, ...]]) -> list[Figure]:
    """Prints the queries that take longest, and answers the figures."""
    uncached = {name: sum(row[:3]) for name, row in times.items()}
    slowest = sorted(uncached, key=lambda name: -uncached[name])[:5]
    rows = [[name, *(f"{part:.2f}" for part in times[name]), f"{uncached[name]:.2f}"] for name in slowest]
    print(f"{case}: {len(times)} queries, the slowest")
    print(table(["query", *STEPS, "cached", "uncached"], rows))
    cached = [row[3] for row in times.values()]
    values = {
        "uncached median": median(list(uncached.values())), "uncached worst": max(uncached.values()),
        "cached median": median(cached), "cached worst": max(cached),
    }  # fmt: skip
    print("  ".join(f"{what} {value:.2f} ms" for what, value in values.items()), flush=True)
    return [Figure(case, "lake", what, value, "ms") for what, value in values.items()]


def load(database: Any, files: Sequence[Path]) -> None:
    """One table of each Parquet file."""
    for path in files:
        database.sql(f"CREATE TABLE {path.stem} AS SELECT * FROM '{path}'")


def bench(case: str, files: Sequence[Path], queries: dict[str, str], options: argparse.Namespace) -> list[Figure]:
    """The figures of a set of queries over tables of these files."""
    with tempfile.TemporaryDirectory() as folder, lake.open(Path(folder) / "lake") as database:
        load(database, files)
        planner = Planner(database.session)
        look_for_cycles_seldom()
        figures = report(case, measure(planner, queries, options.runs))
        if options.rules:
            spent = [planner.rules(text) for text in queries.values()]
            totals = {name: sum(item[name] for item in spent) / len(spent) for name in spent[0]}
            print(table(["rule", "mean ms"], [[name, f"{value:.3f}"] for name, value in totals.items()]))
    return figures


def main(arguments: Sequence[str]) -> int:
    """0, after the figures."""
    options = argparse.ArgumentParser(prog="python -m tests bench plan", description=__doc__.partition("\n")[0])
    options.add_argument("--scale", type=float, default=0.01, help="of TPC-H")
    options.add_argument("--data", type=Path, help="folder of TPC-H's Parquet files")
    options.add_argument("--tpcds", type=Path, help="folder that tests tpcds has made")
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--rules", action="store_true", help="the time of each rule")
    options.add_argument("--save", action="store_true", help="adds to results.csv")
    given = options.parse_args(arguments)
    figures = bench("trivial statement", [], {TRIVIAL: TRIVIAL}, given)
    data = data_of(given.scale, given.data)
    files = [data / f"{name}.parquet" for name in TABLES]
    figures += bench("plan tpch", files, {str(number): text for number, text in QUERIES.items()}, given)
    if given.tpcds is not None:
        texts = json.loads((given.tpcds / "queries.json").read_text())
        figures += bench("plan tpcds", sorted(given.tpcds.glob("*.parquet")), texts, given)
    if given.save:
        save(figures)
    return 0
