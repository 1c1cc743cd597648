"""Snapshot isolation: short histories without an anomaly, and a checker that sees each kind of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lake.config import load
from lake.db.database import Database
from tests.isolation import History, Transaction, check


def test_histories_have_no_anomaly(tmp_path: Path) -> None:
    """``python -m tests isolation`` runs more of them."""
    database = Database.open(load(options={"lake": str(tmp_path / "lake"), "tier_secs": "0"}))
    database.start(None)
    for number in range(4):
        history = History(database, f"h{number}", f"test/{number}", 8, is_keyed=number % 2 == 1)
        last = history.run()
        assert check(history.transactions, last)[0] == []
        assert any(each.committed and each.writes for each in history.transactions)
    database.close()


def done(id: int, reads: list[tuple[int, tuple[int, ...]]], writes: dict[int, tuple[int, ...]], at: float = 0) -> Transaction:
    """A transaction that committed."""
    return Transaction(id, at, at + 10, reads, writes, True)


@pytest.mark.parametrize(
    ("transactions", "last", "word"),
    [
        ([done(1, [(0, ())], {0: ()}), done(2, [(0, ())], {0: ()})], {0: (2,)}, "lost"),
        ([done(1, [(0, ())], {0: ()}), done(2, [(0, ())], {0: ()})], {0: (1, 2)}, "another value"),
        ([done(1, [(0, (7,))], {})], {0: ()}, "never committed"),
        ([done(1, [(0, ()), (0, (2,))], {}), done(2, [], {0: ()})], {0: (2,)}, "moved"),
        ([done(1, [(0, (2,)), (1, ())], {}), done(2, [], {0: (), 1: ()})], {0: (2,), 1: (2,)}, "half"),
        ([done(1, [(0, ())], {}, at=50), done(2, [], {0: ()})], {0: (2,)}, "does not see"),
        ([done(1, [(0, (1,))], {})], {0: ()}, "not its own write"),
    ],
)
def test_the_checker_sees(transactions: list[Transaction], last: dict[int, tuple[int, ...]], word: str) -> None:
    """Each anomaly has its words."""
    found, _ = check(transactions, last)
    assert any(word in each for each in found), found


def test_write_skew_is_counted() -> None:
    """Two that read what the other writes and write something else: allowed, and told."""
    skewed = [done(1, [(0, ()), (1, ())], {0: ()}), done(2, [(0, ()), (1, ())], {1: ()})]
    assert check(skewed, {0: (1,), 1: (2,)}) == ([], 1)
