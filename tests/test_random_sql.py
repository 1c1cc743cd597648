"""A few hundred random SELECTs, as the lake and Postgres answer them; and that the comparison sees a difference."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal

import pytest

from tests import random_sql
from tests.engines import Answer, LakeEngine, PostgresEngine
from tests.random_select import generate
from tests.random_tables import Draw, random_tables

COUNT = 200


def test_random_selects_are_answered_as_by_postgres(postgres: str) -> None:
    """No query differs; those both refuse are few."""
    ours, theirs = LakeEngine(), PostgresEngine(postgres, schema="random")
    stories: list[str] = []
    try:
        outcome = random_sql.run(random_sql.Comparison(ours, theirs), 1, range(COUNT), stories.append)
    finally:
        theirs.close()
        ours.close()
    assert not outcome.different, "\n".join(stories)
    assert outcome.answered > COUNT * 0.9


def test_postgres_understands_the_queries(postgres: str) -> None:
    """Nearly every query means something, and many answer rows: else the comparison would compare nothing."""
    one, two = PostgresEngine(postgres, schema="one"), PostgresEngine(postgres, schema="two")
    try:
        outcome = random_sql.run(random_sql.Comparison(one, two), 2, range(COUNT))
    finally:
        one.close()
        two.close()
    assert not outcome.different
    senseless = sum(count for code, count in outcome.both_failed.items() if code[:2] not in random_sql.DATA_ERRORS)
    assert senseless < COUNT * 0.02
    assert outcome.rows > COUNT


def test_a_query_is_its_choices() -> None:
    """The same number makes the same query, and a shorter list of choices a query too."""
    tables = random_tables(random.Random(3))
    draw = Draw(random.Random(4))
    query = generate(draw, tables)
    assert generate(Draw(draw.made), tables) == query
    assert generate(Draw([]), tables).text.startswith("SELECT ")


def test_a_failing_query_shrinks(postgres: str) -> None:
    """What stays of a long query is what makes it fail."""
    engine = PostgresEngine(postgres, schema="shrink")

    class Wrong:
        """Postgres, with every answer of more than one row short of one."""

        name = "wrong"
        restart = engine.restart
        close = engine.close

        def execute(self, text: str) -> Answer:
            """The answer, less its last row."""
            if not text.startswith(("SELECT", "WITH", "(")):
                return Answer()
            answer = engine.execute(text)
            return Answer(answer.names, answer.letters, answer.rows[:-1]) if len(answer.rows) > 1 else answer

    stories: list[str] = []
    try:
        comparison = random_sql.Comparison(Wrong(), engine)
        outcome = random_sql.run(comparison, 5, range(20), stories.append)
    finally:
        engine.close()
    assert outcome.different
    smallest = min(stories, key=len)
    assert "JOIN" not in smallest and smallest.count("SELECT") == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (1, 1, True), (1, 2, False), (1, True, False), (None, 0, False), ("a", "a", True), ("a", "b", False),
        (2.3333333333333335, Decimal("2.3333333333333333"), True), (0.1 + 0.2, 0.3, True), (0.3, 0.31, False),
        (Decimal("0.333333"), Decimal("0.33333333333333333333"), True), (Decimal("1.5"), Decimal("1.6"), False),
        (Decimal("1.50"), Decimal("1.5"), True), (-0.0, 0.0, True), (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False), (float("inf"), float("inf"), True), (2**62, 2**62 + 1, False),
        (datetime.datetime(2024, 1, 1), datetime.date(2024, 1, 1), False), ([1, None], [Decimal(1), None], True),
        ([1], [1, 2], False),
    ],
)
def test_values_are_the_same_or_not(ours: object, theirs: object, same: bool) -> None:
    """Each rule lets through what it is for, and nothing beside it."""
    assert random_sql.same_value(ours, theirs) is same


def test_rows_without_an_order_are_a_multiset() -> None:
    """Order counts only where it is defined, and copies count always."""
    one, two = Answer(("a",), "I", [(1,), (2,), (2,)]), Answer(("a",), "I", [(2,), (1,), (2,)])
    assert random_sql.same_answer(one, two, ordered=False)
    assert not random_sql.same_answer(one, two, ordered=True)
    assert not random_sql.same_answer(one, Answer(("a",), "I", [(1,), (1,), (2,)]), ordered=False)
