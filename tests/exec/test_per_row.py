"""Functions that go row by row: each says why, and the bench has a call for each."""

from __future__ import annotations

from lake.db.functions import ai, files  # noqa: F401  (they mark functions)
from lake.doors.postgres import copy_binary, portals  # noqa: F401  (they too)
from lake.exec.per_row import PER_ROW
from tests.bench.rows import CALLS, FEW, short


def test_each_has_a_figure() -> None:
    """No marked function is without a reason; the bench measures each, but for those that few rows go through."""
    assert not [name for name, why in PER_ROW.items() if not why]
    names = {short(name) for name in PER_ROW}
    assert sorted(name for name in names - CALLS.keys() if not name.startswith(FEW)) == []
    assert sorted(CALLS.keys() - names) == []
