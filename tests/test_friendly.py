"""Random queries in friendly forms: reproducible, shrunk when they differ, and alike on the lake and on DuckDB."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal

import pytest

from tests.engines import Answer, DuckDBEngine, Failure, Interval, LakeEngine
from tests.friendly import run
from tests.friendly.queries import Friendly, generate
from tests.friendly.tables import friendly_tables
from tests.random_tables import Draw

pytest.importorskip("duckdb")


def test_a_seed_makes_the_same_queries() -> None:
    """A query depends on its choices alone, and no choice at all makes one too."""
    tables = friendly_tables(random.Random(1))
    texts = [generate(Draw(random.Random(number)), tables).text for number in range(200)]
    again = [Draw(random.Random(number)) for number in range(200)]
    assert [generate(draw, tables).text for draw in again] == texts
    assert [generate(Draw(draw.made), tables).text for draw in again] == texts
    assert len(set(texts)) > 190
    assert "SELECT" in generate(Draw([]), tables).text


@pytest.fixture(scope="module")
def comparison() -> Iterator[run.Comparison]:
    """Both engines."""
    ours, theirs = LakeEngine(), run.duckdb_engine()
    yield run.Comparison(ours, theirs)
    theirs.close()
    ours.close()


def test_both_answer_alike(comparison: run.Comparison) -> None:
    """Two hundred queries without a difference."""
    told: list[str] = []
    outcome = run.run(comparison, 7, range(200), told.append)
    assert not outcome.different, told
    assert outcome.answered > 180


class Wrong(DuckDBEngine):
    """DuckDB that loses a row of every answer of several."""

    def execute(self, text: str) -> Answer:
        """The answer less its last row."""
        answer = super().execute(text)
        return Answer(answer.names, answer.letters, answer.rows[:-1] if len(answer.rows) > 1 else answer.rows)


def test_a_difference_is_found_and_shrunk() -> None:
    """An engine that loses rows differs soon, and the query told is a small one."""
    ours, theirs = LakeEngine(), Wrong()
    told: list[str] = []
    try:
        outcome = run.run(run.Comparison(ours, theirs), 3, range(12), told.append)
    finally:
        theirs.close()
        ours.close()
    assert outcome.different
    assert "--only" in told[0] and "duckdb:" in told[0]
    assert len(min(told, key=len)) < 4_000


@pytest.mark.parametrize(
    ("ours", "theirs", "alike"),
    [
        (1, 1, True), (1, 2, False), (1, True, False), (Decimal("0.333333"), 1 / 3, True), (Decimal("0.34"), 1 / 3, False),
        (None, None, True), (None, 0, False), (float("nan"), float("nan"), True), (1.0, 1 + 1e-12, True),
        (datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1), True), ([1, None], [1, None], True), ([1], [2], False),
        ([("a", 1)], {"a": 1}, True), ({"a": 1.0}, {"a": 1}, True), ({"a": 1}, {"b": 1}, False),
        (Interval(0, 1, 0), datetime.timedelta(days=1), True),
    ],
)
def test_values_are_alike_by_rule(ours: object, theirs: object, alike: bool) -> None:
    """What the rules allow, and what they do not."""
    assert run.same_value(ours, theirs) is alike


def test_refusals_count() -> None:
    """What both refuse is counted; what the lake alone refuses, or DuckDB alone, differs; limits of DuckDB's are left out."""

    class Canned:
        """Answers one thing."""

        name = "canned"

        def __init__(self, answer: Answer | Failure) -> None:
            self.answer = answer

        def execute(self, text: str) -> Answer:
            """The answer."""
            if isinstance(self.answer, Failure):
                raise self.answer
            return self.answer

        def restart(self) -> None:
            """Nothing."""

        def close(self) -> None:
            """Nothing."""

    def differ(ours: Answer | Failure, theirs: Answer | Failure) -> bool:
        return run.Comparison(Canned(ours), Canned(theirs)).differ(Friendly("SELECT 1")) is not None

    answer = Answer(("a",), "I", [(1,)])
    assert not differ(answer, answer)
    assert not differ(Failure("no column", "42703"), Failure("Binder Error"))
    assert differ(Failure("not built", "0A000"), Failure("Binder Error"))
    assert differ(Failure("no column", "42703"), answer)
    assert differ(answer, Failure("Binder Error"))
    assert not differ(answer, Failure(run.DUCKDB_LIMITS[0][0]))
