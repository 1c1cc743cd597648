"""How far estimates are off: rows expected against rows that came, for each operator of TPC-H and TPC-DS.

    python -m tests bench estimates [--scale 0.1] [--tpcds FOLDER] [--queries 22,67]

Joins hand no filters of keys down to scans here, which would take rows from operators below that no estimate is about.
The q-error of an operator is the larger of expected and actual divided by the smaller, with at least one row each: 1 is right.
Source: Moerkotte, Neumann and Steidl, "Preventing Bad Plans by Bounding the Impact of Cardinality Estimation Errors", VLDB 2009.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest import mock

import lake
from lake import exec as engine
from lake.exec.operators.scan import Scan
from lake.sql.explain import Profile, node_text
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.statistics import rows_of
from lake.sql.plan import Limit, Plan, Sort
from tests.bench import Figure, median, save, table
from tests.bench.plan import Planner, load
from tests.bench.tpch import TABLES, data_of
from tests.tpch import QUERIES

WORST: Final = 25


@dataclass(frozen=True, slots=True)
class Guess:
    """An operator with the rows expected of it and those that came."""

    query: str
    text: str
    expected: float
    actual: float

    @property
    def error(self) -> float:
        """The q-error."""
        low, high = sorted((max(self.expected, 1.0), max(self.actual, 1.0)))
        return high / low


def guesses(planner: Planner, name: str, text: str) -> Iterator[Guess]:
    """Each operator of a query that is run; below a LIMIT that stops it early nothing counts."""
    run = planner.run_of(text)
    plan = run.optimize(run.binder().query(planner.query(text)).plan)
    planning = Planning.of(plan, run.settings, None)
    rows_of(plan, planning)
    answer = engine.run(plan, run.context())
    with mock.patch.object(Scan, "offer"):
        for _ in answer.batches():
            pass
    yield from _of_operator(name, answer.profile(), planning, set())


def _of_operator(query: str, profile: Profile, planning: Planning, seen: set[int]) -> Iterator[Guess]:
    plan: Plan | None = profile.plan
    if isinstance(plan, Limit):
        return
    if plan is not None and id(plan) not in seen and not isinstance(plan, Sort):
        seen.add(id(plan))
        yield Guess(query, node_text(plan)[:100], rows_of(plan, planning), float(profile.rows))
    for below in profile.inputs:
        yield from _of_operator(query, below, planning, seen)


def report(case: str, found: list[Guess]) -> list[Figure]:
    """Prints the worst operators, and answers the figures."""
    worst = sorted(found, key=lambda guess: -guess.error)
    rows = [
        [item.query, f"{item.error:.1f}", f"{item.expected:.0f}", f"{item.actual:.0f}", item.text]
        for item in worst[:WORST]
    ]
    print(table(["query", "q-error", "expected", "actual", "operator"], rows))
    errors = sorted(item.error for item in found)
    values = {"median": median(errors), "p90": errors[int(len(errors) * 0.9)], "worst": errors[-1]}
    print(
        f"{case}: q-error of {len(errors)} operators: "
        + "  ".join(f"{what} {value:.2f}" for what, value in values.items())
    )
    return [Figure(case, "lake", f"q-error {what}", value, "x") for what, value in values.items()]


def bench(case: str, files: Sequence[Path], queries: dict[str, str]) -> list[Figure]:
    """The figures of a set of queries over tables of these files."""
    with tempfile.TemporaryDirectory() as folder, lake.open(Path(folder) / "lake") as database:
        load(database, files)
        planner = Planner(database.session)
        return report(case, [guess for name, text in queries.items() for guess in guesses(planner, name, text)])


def main(arguments: Sequence[str]) -> int:
    """0, after the figures."""
    options = argparse.ArgumentParser(prog="python -m tests bench estimates", description=__doc__.partition("\n")[0])
    options.add_argument("--scale", type=float, default=0.1, help="of TPC-H")
    options.add_argument("--data", type=Path, help="folder of TPC-H's Parquet files")
    options.add_argument("--tpcds", type=Path, help="folder that tests tpcds has made")
    options.add_argument("--queries", help="numbers with commas (all)")
    options.add_argument("--save", action="store_true", help="adds to results.csv")
    given = options.parse_args(arguments)
    chosen = set(given.queries.split(",")) if given.queries else None

    def of(queries: dict[Any, str]) -> dict[str, str]:
        return {str(name): text for name, text in queries.items() if chosen is None or str(name) in chosen}

    data = data_of(given.scale, given.data)
    figures = bench("estimates tpch", [data / f"{name}.parquet" for name in TABLES], of(QUERIES))
    if given.tpcds is not None:
        texts = json.loads((given.tpcds / "queries.json").read_text())
        figures += bench("estimates tpcds", sorted(given.tpcds.glob("*.parquet")), of(texts))
    if given.save:
        save(figures)
    return 0
