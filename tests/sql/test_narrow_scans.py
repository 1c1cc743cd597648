"""Which columns of its tables a plan keeps before the other rules: ``lake.sql.optimizer.narrow_scans``."""

from __future__ import annotations

import pytest

from lake.sql.optimizer.narrow_scans import narrow_scans
from lake.sql.optimizer.planning import Planning, walk_deep
from lake.sql.plan import Scan
from tests.plans.runner import SETTINGS, bind


@pytest.mark.parametrize(
    ("sql", "scans"),
    [
        ("SELECT o_custkey FROM orders WHERE o_totalprice > 1", [("o_custkey", "o_totalprice")]),
        ("SELECT count(*) FROM orders", [()]),
        # The rows that DISTINCT and UNION tell apart are whole ones.
        ("SELECT count(*) FROM (SELECT DISTINCT * FROM v)", [("a", "z", "at", "l")]),
        ("SELECT a FROM (SELECT * FROM v UNION SELECT * FROM v)", [("a", "z", "at", "l")] * 2),
        # Scans of one table stay alike, so that parts which are equal can be shared.
        ("SELECT x.o_custkey FROM orders AS x, orders AS y WHERE y.o_orderkey = 1", [("o_orderkey", "o_custkey")] * 2),
        # Keys tell that rows are unique, also where nothing names them.
        ("SELECT n FROM k", [("id", "n")]),
        # What a subquery names of the table around it counts, and its own tables are narrowed too.
        (
            "SELECT o_orderstatus FROM orders WHERE EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey)",
            [("o_orderkey", "o_orderstatus"), ("l_orderkey",)],
        ),
    ],
)
def test_scans_keep_what_is_named(sql: str, scans: list[tuple[str, ...]]) -> None:
    """Each scan keeps the columns that any scan of its table needs, and keys."""
    plan = bind(sql)
    narrowed = narrow_scans(plan, Planning.of(plan, SETTINGS, None))
    assert [node.names for node in walk_deep(narrowed) if isinstance(node, Scan)] == scans
    assert [column.id for column in narrowed.columns] == [column.id for column in plan.columns]
