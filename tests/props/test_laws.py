"""Random queries that must answer the same rows: cut in three by a condition, as they are written, and in small pieces.

    SELECT .. FROM t    =    .. WHERE p    and    .. WHERE NOT p    and    .. WHERE p IS NULL
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import pytest

import lake.db.session
from lake.sql.optimizer import RULES, optimize
from tests.engines import Answer, Failure, LakeEngine
from tests.random_select import Selects, generate
from tests.random_sql import same_answer
from tests.random_tables import Draw, RandomTable, random_tables

COUNT = 60
TABLES_EVERY = 20
NEEDED = ("decorrelate",)  # the engine runs no plan with correlated columns
SMALL = {
    "MORSEL_ROWS": 3, "INLINE_ROWS": 0, "SMALL_ROWS": 2, "GATHERED_ROWS": 3, "SPILL_BYTES_MIN": 1, "TOP_ROWS_MAX": 4,
    "KEPT_ROWS": 4, "FLUSH_ROWS": 2, "RUN_BLOCK_ROWS": 2, "CHUNK_ROWS": 3, "EXPANDED_ROWS_MAX": 8, "AHEAD_BATCHES": 2,
}  # fmt: skip


def blocks(name: str) -> Iterator[tuple[list[RandomTable], list[Draw]]]:
    """Tables and the queries over them, as the name says."""
    for block in range(COUNT // TABLES_EVERY):
        tables = random_tables(random.Random(f"{name} tables {block}"))
        numbers = range(block * TABLES_EVERY, (block + 1) * TABLES_EVERY)
        yield tables, [Draw(random.Random(f"{name} {number}")) for number in numbers]


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


def test_a_condition_cuts_the_rows_in_three() -> None:
    """Those where it is true, false and unknown are all rows, each once."""
    engine = LakeEngine()
    try:
        for tables, draws in blocks("partitions"):
            make(engine, tables)
            for draw in draws:
                selects = Selects(draw, tables)
                source, scope = selects.source()
                items = [selects.expression(draw.pick(("int", "text", "dec", "ts")), scope, 2) for _ in range(2)]
                condition = selects.boolean(scope, 3)
                whole = f"SELECT {', '.join(items)} FROM {source}"
                tests = (condition, f"NOT ({condition})", f"({condition}) IS NULL")
                parts = [engine.execute(f"{whole} WHERE {test}") for test in tests]
                expected = engine.execute(whole)
                found = Answer(letters=expected.letters, rows=[row for part in parts for row in part.rows])
                assert same_answer(found, expected, ordered=False), f"{whole} WHERE {condition}"
    finally:
        engine.close()


def test_the_optimizer_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are the same where only the rules run without which a plan cannot be."""
    optimized, plain = LakeEngine(), LakeEngine()
    without = [name for name, _ in RULES if name not in NEEDED]
    try:
        for tables, draws in blocks("rules"):
            make(optimized, tables)
            make(plain, tables)
            for draw in draws:
                query = generate(draw, tables)
                expected = answer_of(optimized, query.text)
                with monkeypatch.context() as patch:
                    patch.setattr(
                        lake.db.session, "optimize",
                        lambda plan, settings, fold=None: optimize(plan, settings, fold, without=without),
                    )  # fmt: skip
                    found = answer_of(plain, query.text)
                assert alike(found, expected, ordered=query.ordered), query.text
    finally:
        optimized.close()
        plain.close()


def test_small_pieces_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are the same where batches hold three rows, threads take turns, and everything is written to disk."""
    usual, small = LakeEngine(), LakeEngine(memory_gb=1e-7, cores=2)
    modules = [module for name, module in sys.modules.items() if name.startswith(("lake.exec.", "lake.storage."))]
    places = [
        (module, name, value)
        for module in modules
        for name, value in SMALL.items()
        if hasattr(module, name) and not module.__name__.startswith("lake.exec.kernels")
    ]
    try:
        for tables, draws in blocks("pieces"):
            make(usual, tables)
            make(small, tables)
            for draw in draws:
                query = generate(draw, tables)
                expected = answer_of(usual, query.text)
                with monkeypatch.context() as patch:
                    for module, name, value in places:
                        patch.setattr(module, name, value)
                    found = answer_of(small, query.text)
                assert alike(found, expected, ordered=query.ordered), query.text
    finally:
        usual.close()
        small.close()
