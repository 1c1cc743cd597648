"""Planned join orders against random ones: how much slower the plan is than the best of so many orders of TPC-H.

    python -m tests bench orders [--scale 0.1] [--orders 20] [--queries 5,7]

A random order joins two connected parts of a region at a time, by chance, and builds either side; all else is planned as usual.
Times are of the processor, and the best of ``--runs``; a random order that takes three times as long as the plan is given up.
The best of so many has had the quietest moment of all: it and the plan then run in turns, and what counts is those runs.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from unittest import mock

import lake
from lake import exec as engine
from lake.errors import QueryCanceled
from lake.sql.optimizer.join_search import Search
from lake.sql.plan import Plan
from tests.bench import Figure, save, table
from tests.bench.plan import Planner, load
from tests.bench.tpch import TABLES, data_of
from tests.tpch import QUERIES

GIVEN_UP: Final = 3.0
TURNS: Final = 9


def random_best(chance: random.Random) -> Callable[[Search], Plan]:
    """What finds an order by chance in place of the search."""

    def best(search: Search) -> Plan:
        parts = [1 << number for number in range(search.count)]
        for number in range(search.count):
            search._enter_relation(number)
        while len(parts) > 1:
            pairs = [(one, two) for one in parts for two in parts if one != two]
            chance.shuffle(pairs)
            pairs.sort(key=lambda pair: not search._is_connected(*pair))
            one, two = next(pair for pair in pairs if search._cost(*pair, True) is not None)
            search._consider(one, two)
            entry = search.table[one | two]
            entry.left, entry.right = one, two
            parts = [part for part in parts if part not in (one, two)] + [one | two]
        return search._build(parts[0])

    return best


def took(planner: Planner, text: str, runs: int, limit: float | None = None) -> float:
    """Milliseconds of the quickest of so many runs; infinite past the limit."""
    times = []
    for _ in range(runs):
        run = planner.run_of(text)
        plan = run.optimize(run.binder().query(planner.query(text)).plan)
        context = run.context()
        start = time.process_time()
        try:
            for _ in engine.run(plan, context).batches():
                if limit is not None and (time.process_time() - start) * 1_000 > limit:
                    context.cancellation.stop()
        except QueryCanceled:
            return float("inf")
        times.append((time.process_time() - start) * 1_000)
        if limit is not None and times[-1] > limit:
            break
    return min(times)


def compared(planner: Planner, text: str, given: argparse.Namespace) -> tuple[float, float, float]:
    """Milliseconds of the plan and of the best random order, and the median of the first look at all random orders."""
    def by_chance(seed: int, runs: int, limit: float) -> float:
        with mock.patch.object(Search, "best", random_best(random.Random(seed))):
            return took(planner, text, runs, limit)

    planned = took(planner, text, given.runs + 1)
    others = [by_chance(given.seed + order, given.runs, planned * GIVEN_UP) for order in range(given.orders)]
    winner = given.seed + others.index(min(others))
    turns = [(took(planner, text, 1), by_chance(winner, 1, planned * GIVEN_UP)) for _ in range(TURNS)]
    return min(mine for mine, _ in turns), min(best for _, best in turns), sorted(others)[len(others) // 2]


def main(arguments: Sequence[str]) -> int:
    """0, after the figures."""
    options = argparse.ArgumentParser(prog="python -m tests bench orders", description=__doc__.partition("\n")[0])
    options.add_argument("--scale", type=float, default=0.1, help="of TPC-H")
    options.add_argument("--data", type=Path, help="folder of TPC-H's Parquet files")
    options.add_argument("--queries", help="numbers with commas (all that join)")
    options.add_argument("--orders", type=int, default=20)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--save", action="store_true", help="adds to results.csv")
    given = options.parse_args(arguments)
    chosen = (
        [int(word) for word in given.queries.split(",")] if given.queries else [n for n in QUERIES if n not in (1, 6)]
    )
    data = data_of(given.scale, given.data)
    rows: list[list[str]] = []
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as folder, lake.open(Path(folder) / "lake") as database:
        load(database, [data / f"{name}.parquet" for name in TABLES])
        for number in chosen:
            planned, best, middle = compared(Planner(database.session), QUERIES[number], given)
            ratios.append(planned / min(best, planned))
            rows.append([str(number), f"{planned:.1f}", f"{best:.1f}", f"{middle:.1f}", f"{ratios[-1]:.2f}"])
    print(table(["query", "planned ms", "best random", "median random", "planned to best"], rows))
    print(f"worst {max(ratios):.2f}")
    if given.save:
        save([Figure("orders tpch", "lake", f"planned to best of {given.orders} random, worst", max(ratios), "x")])
    return 0
