"""States that cannot be written to disk are refused at the memory of queries, and others go on. Spec: HTTP, LAKE_MEMORY_GB."""

from __future__ import annotations

from pathlib import Path

import pytest

import lake
from lake.errors import OutOfMemory
from lake.exec.context import Context
from lake.exec.memory import HELD_BYTES_MIN

MEMORY_GB = 0.03


@pytest.mark.parametrize(
    "step",
    [
        "n(i) AS (SELECT 1::BIGINT UNION ALL SELECT i * 2 + k FROM n, (VALUES (0), (1)) AS v(k))",
        "n(i) AS (SELECT 1::BIGINT UNION SELECT i * 2 + k FROM n, (VALUES (0), (1)) AS v(k))",
        "n(i) USING KEY (i) AS (SELECT 1::BIGINT UNION SELECT i * 2 + k FROM n, (VALUES (0), (1)) AS v(k))",
        "n(i) AS (SELECT 'x' UNION ALL SELECT i || i FROM n)",
    ],
)
def test_a_recursion_without_an_end_is_refused_at_the_budget(tmp_path: Path, step: str) -> None:
    """53200 once it holds what queries may hold, whatever makes it grow; the next query has all of it again."""
    database = lake.open(tmp_path / "lake", memory_gb=MEMORY_GB)
    try:
        with pytest.raises(OutOfMemory, match="a recursive query holds"):
            database.sql(f"WITH RECURSIVE {step} SELECT count(*) FROM n").rows()
        text = "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 100) SELECT sum(i) FROM n"
        assert list(database.sql(text).rows()) == [(5050,)]
    finally:
        database.close()


@pytest.mark.parametrize(
    ("what", "query"),
    [
        ("a group of an aggregate", "SELECT cardinality(array_agg(value)) FROM range(20000000)"),
        ("a group of an aggregate", "SELECT value % 2, length(string_agg(value::TEXT, ',')) FROM range(20000000) GROUP BY 1"),
        ("a group of an aggregate", "SELECT median(value) FROM range(20000000)"),
        ("a group of an aggregate", "SELECT grouping(value), mode(value) FROM range(20000000) GROUP BY ROLLUP (value)"),
    ],
)
def test_what_cannot_be_written_is_refused_at_the_budget(tmp_path: Path, what: str, query: str) -> None:
    """One group holds its values, whatever their number."""
    database = lake.open(tmp_path / "lake", memory_gb=MEMORY_GB)
    try:
        with pytest.raises(OutOfMemory, match=what):
            database.sql(query).rows()
        text = "SELECT count(*), max(value) FROM (SELECT value FROM range(2000000) GROUP BY value) AS t"
        assert list(database.sql(text).rows()) == [(2_000_000, 1_999_999)]
    finally:
        database.close()


def test_a_small_state_is_not_what_is_in_the_way() -> None:
    """A query that holds next to nothing goes on beside one that holds too much."""
    context = Context(settings=None, memory=16 * HELD_BYTES_MIN)  # type: ignore[arg-type]
    other = context.budget.open()
    other.set(17 * HELD_BYTES_MIN)
    account = context.budget.open()
    account.hold(HELD_BYTES_MIN - 1, "a state")
    with pytest.raises(OutOfMemory):
        account.hold(HELD_BYTES_MIN, "a state")
