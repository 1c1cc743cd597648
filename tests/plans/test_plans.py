"""Golden plans, and the join orders of TPC-H."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plans.runner import FOLDER, Record, golden_files, read_records, run, tpch_orders


def _all() -> list[tuple[Path, Record]]:
    return [(path, record) for path in golden_files() for record in read_records(path)]


@pytest.mark.parametrize(("path", "record"), _all(), ids=lambda item: item.title if isinstance(item, Record) else item.stem)
def test_golden_plan(path: Path, record: Record) -> None:
    """The plan is the one written down; after a wanted change run ``python -m tests.plans.runner --update``."""
    assert run(record) == record.plan


def test_join_orders_of_tpch() -> None:
    """The 22 join orders over the statistics of scale 1 are those written down."""
    assert tpch_orders() == (FOLDER / "tpch_orders.txt").read_text()
