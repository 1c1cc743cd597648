"""Laws that random queries must keep, each a function of how many queries and which.

    python -m tests props --count 2000 --seed 7             all laws, 2,000 queries each
    python -m tests props --count 2000 --law rules_one_by_one

partitions          SELECT .. FROM t  =  .. WHERE p, .. WHERE NOT p and .. WHERE p IS NULL together
rules               the same rows where only the rules run without which a plan cannot be
rules_one_by_one    the same rows with any one rule left out
early_aggregates    the same rows where aggregates are taken in part below every join that allows it
pieces              the same rows where batches hold three rows, threads take turns, and everything is written to disk
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final
from unittest.mock import patch

import lake.db.run
from lake.sql.optimizer import RULES, eager_aggregates, optimize
from tests.engines import Answer, Failure, LakeEngine
from tests.random_select import Selects, generate
from tests.random_sql import same_answer
from tests.random_tables import Draw, RandomTable, random_tables

TABLES_EVERY: Final = 20
NEEDED: Final = ("decorrelate",)  # the engine runs no plan with correlated columns
SMALL: Final = {
    "MORSEL_ROWS": 3, "INLINE_ROWS": 0, "SMALL_ROWS": 2, "GATHERED_ROWS": 3, "SPILL_BYTES_MIN": 1, "TOP_ROWS_MAX": 4,
    "KEPT_ROWS": 4, "FLUSH_ROWS": 2, "RUN_BLOCK_ROWS": 2, "CHUNK_ROWS": 3, "EXPANDED_ROWS_MAX": 8, "AHEAD_BATCHES": 2,
}  # fmt: skip
EARLY: Final = {"ROWS_MIN": 0.0, "GAIN_MIN": 1e-9, "SHARE_MAX": 1e9}

Patches = list[tuple[Any, str, Any]]


def blocks(name: str, count: int, seed: int) -> Iterator[tuple[list[RandomTable], list[Draw]]]:
    """Tables and the queries over them, as the name says."""
    for first in range(0, count, TABLES_EVERY):
        tables = random_tables(random.Random(f"{name} {seed} tables {first}"))
        numbers = range(first, min(first + TABLES_EVERY, count))
        yield tables, [Draw(random.Random(f"{name} {seed} {number}")) for number in numbers]


def make(engine: LakeEngine, tables: list[RandomTable]) -> None:
    """The tables in place of those before."""
    for table in tables:
        engine.execute(f"DROP TABLE IF EXISTS {table.name}")
        for text in table.statements():
            engine.execute(text)


def answer_of(engine: LakeEngine, text: str) -> Answer | str:
    """The answer, or the SQLSTATE of what refused it; an error of ours is nobody's answer."""
    try:
        return engine.execute(text)
    except Failure as failure:
        assert failure.sqlstate not in ("XX000", "0A000"), f"{text}\n{failure.message}"
        return failure.sqlstate


def alike(one: Answer | str, two: Answer | str, *, ordered: bool) -> bool:
    """Whether both hold the same rows, or refuse."""
    if isinstance(one, str) or isinstance(two, str):
        return isinstance(one, str) and isinstance(two, str)
    return same_answer(one, two, ordered=ordered)


def partitions(count: int, seed: int) -> None:
    """Rows where a condition is true, false and unknown are all rows, each once."""
    engine = LakeEngine()
    try:
        for tables, draws in blocks("partitions", count, seed):
            make(engine, tables)
            for draw in draws:
                selects = Selects(draw, tables)
                source, scope = selects.source()
                items = [selects.expression(draw.pick(("int", "text", "dec", "ts")), scope, 2) for _ in range(2)]
                condition = selects.boolean(scope, 3)
                whole = f"SELECT {', '.join(items)} FROM {source}"
                expected = answer_of(engine, whole)
                tests = (condition, f"NOT ({condition})", f"({condition}) IS NULL")
                parts = [answer_of(engine, f"{whole} WHERE {test}") for test in tests]
                if isinstance(expected, str) or any(isinstance(part, str) for part in parts):
                    continue
                rows = [row for part in parts if isinstance(part, Answer) for row in part.rows]
                found = Answer(letters=expected.letters, rows=rows)
                assert same_answer(found, expected, ordered=False), f"{whole} WHERE {condition}"
    finally:
        engine.close()


def rules(count: int, seed: int) -> None:
    """Rows are the same where only the rules run without which a plan cannot be."""
    _compared("rules", count, seed, lambda number: _without([name for name, _ in RULES if name not in NEEDED]))


def rules_one_by_one(count: int, seed: int) -> None:
    """Rows are the same with any one rule left out."""
    names = [name for name, _ in RULES if name not in NEEDED]
    _compared("one rule", count, seed, lambda number: _without([names[number % len(names)]]))


def early_aggregates(count: int, seed: int) -> None:
    """Rows are the same where aggregates are taken in part wherever that may be."""
    everywhere: Patches = [(eager_aggregates, name, value) for name, value in EARLY.items()]
    _compared("early", count, seed, lambda number: everywhere)


def pieces(count: int, seed: int) -> None:
    """Rows are the same where batches hold three rows, threads take turns, and everything is written to disk."""
    small: Patches = [
        (module, name, value)
        for key, module in sys.modules.items() if key.startswith(("lake.exec.", "lake.storage."))
        for name, value in SMALL.items()
        if hasattr(module, name) and not module.__name__.startswith("lake.exec.kernels")
    ]  # fmt: skip
    _compared("pieces", count, seed, lambda number: small, memory_gb=1e-7, cores=2)


LAWS: Final[dict[str, Callable[[int, int], None]]] = {
    law.__name__: law for law in (partitions, rules, rules_one_by_one, early_aggregates, pieces)
}


def _without(names: Collection[str]) -> Patches:
    return [(lake.db.run, "optimize", lambda plan, settings, fold=None: optimize(plan, settings, fold, without=names))]


def _compared(name: str, count: int, seed: int, patches: Callable[[int], Patches], **settings: Any) -> None:
    """Runs queries as always, and on another lake with the patches of their numbers."""
    usual, other = LakeEngine(), LakeEngine(**settings)
    number = 0
    try:
        for tables, draws in blocks(name, count, seed):
            make(usual, tables)
            make(other, tables)
            for draw in draws:
                query = generate(draw, tables)
                expected = answer_of(usual, query.text)
                with ExitStack() as stack:
                    for module, key, value in patches(number):
                        stack.enter_context(patch.object(module, key, value))
                    found = answer_of(other, query.text)
                assert alike(found, expected, ordered=query.ordered), f"{name} {number} of seed {seed}\n{query.text}"
                number += 1
    finally:
        usual.close()
        other.close()


def main(arguments: Sequence[str]) -> int:
    """`python -m tests props`: 1 where a law is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests props", description="laws of random queries")
    parser.add_argument("--count", type=int, default=1000, help="queries for each law (1000)")
    parser.add_argument("--seed", type=int, default=1, help="which queries (1)")
    parser.add_argument("--law", choices=sorted(LAWS), help="one law (all)")
    options = parser.parse_args(arguments)
    broken = 0
    for name in [options.law] if options.law else LAWS:
        began = time.monotonic()
        try:
            LAWS[name](options.count, options.seed)
            print(f"{name}: {options.count} queries in {time.monotonic() - began:.1f} s", flush=True)
        except AssertionError as failure:
            broken += 1
            print(f"{name}: broken\n{str(failure)[:3000]}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
