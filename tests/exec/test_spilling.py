"""Breakers with a tiny budget: rows that go through partitions on disk answer what they answer in memory."""

from __future__ import annotations

import pytest

import lake.exec.functions  # noqa: F401  fills the function table
from lake.exec import Profile, run
from lake.sql import plan
from lake.sql.bound import SortKey
from lake.sql.plan import SetKind
from lake.types import BIGINT
from tests.exec.memory_rows import column, context, rows_of
from tests.exec.sample_plans import TYPES, Rows, aggregate_call, grouped, in_any_order, scan_of


@pytest.fixture(autouse=True)
def _every_batch_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches are not put together, so that breakers see several."""
    monkeypatch.setattr("lake.exec.operators.batches.SMALL_ROWS", 0)


def spilled_rows(node: plan.Plan, name: str, *, memory: int = 1 << 20, workers: int = 1) -> Rows:
    """What a plan answers where its operator ``name`` writes to disk, in any order."""
    answer = run(node, context(memory=memory, workers=workers))
    rows = [row for batch in answer.batches() for row in zip(*(array.to_pylist() for array in batch.columns))]
    assert spilled_by(answer.profile(), name) > 0
    return in_any_order(rows)


def spilled_by(profile: Profile, name: str) -> int:
    """The bytes that the operators ``name`` wrote."""
    return (profile.spilled if profile.name == name else 0) + sum(spilled_by(below, name) for below in profile.inputs)


def test_order_is_kept_where_rows_are_dealt() -> None:
    """What a worker had of a group before it dealt rows to partitions came before what it dealt."""
    rows = [(index * 7919 % 9_011, None, index) for index in range(60_000)]
    source = scan_of(rows, pieces=20)
    g, _t, x = source.outputs
    calls = [(name, aggregate_call(name, x)) for name in ("first_value", "last_value")]
    node = plan.Aggregate(((g, g),), tuple((column(name, BIGINT), call) for name, call in calls), source)
    values = grouped(rows, lambda row: row[0]).items()
    expected = [(key, min(group)[2], max(group)[2]) for key, group in values]
    assert spilled_rows(node, "HashAggregate", memory=1 << 19) == in_any_order(expected)


@pytest.mark.parametrize("kind", [SetKind.INTERSECT, SetKind.EXCEPT])
@pytest.mark.parametrize("keeps_all", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_spilled_sets_are_the_sets(kind: SetKind, keeps_all: bool, workers: int) -> None:
    """With a tiny budget the rows of both sides go through partitions on disk."""
    left = [(index % 30_011, f"text {index % 17}", None) for index in range(60_000)]
    right = [(index % 20_011 * 2, f"text {index % 17}", None) for index in range(40_000)]
    outputs = tuple(column(name, type) for name, type in TYPES.items())
    node = plan.SetOperation(kind, keeps_all, scan_of(left, pieces=9), scan_of(right, pieces=9), outputs)
    plain = in_any_order(rows_of(node))
    assert plain and spilled_rows(node, "HashAggregate", workers=workers) == plain


def test_spilled_first_rows_are_the_first_rows() -> None:
    """DISTINCT ON with a tiny budget: rows met before they are dealt to partitions, and after."""
    rows = [(index * 7919 % 30_011, f"text {index % 17}", index) for index in range(120_000)]
    source = scan_of(rows, pieces=20)
    g, _t, x = source.outputs
    for order, pick in (((), min), ((SortKey(g), SortKey(x, descending=True)), max)):
        expected = [pick(group, key=lambda row: row[2]) for group in grouped(rows, lambda row: row[0]).values()]
        assert spilled_rows(plan.Distinct(source, (g,), order), "DistinctOn") == in_any_order(expected)
