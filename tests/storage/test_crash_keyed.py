"""A process that upserts, deletes, tiers and compacts a keyed table, killed at named instants."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lake
from lake.connection import Connection
from lake.storage.tiering.expire import named_objects
from tests.crash.victim import KEYED, last_upsert, make_tables, upsert

WORKER = """
import sys
import lake
from lake.storage import faults
from lake.storage.tiering import generations
from tests.crash.victim import last_upsert, make_tables, upsert

folder, point, after = sys.argv[1], sys.argv[2], int(sys.argv[3])
generations.GENERATIONS_MAX = 3
db = lake.open(folder, tier_secs="0", retain_secs="0", gc_secs="0")
make_tables(db)
faults.arm(point, after=after)
storage = db.database.lake
for number in range(last_upsert(db) + 1, 400):
    upsert(db, number)
    print(number, flush=True)
    if number % 2 == 0:
        storage.tier()
    if number % 5 == 0:
        storage.upkeep.round(force=True)
"""


@pytest.mark.parametrize(
    ("point", "after"),
    [
        ("compact-files-written", 2),
        ("tier-files-written", 4),
        ("tier-committed", 5),
        ("commit-written", 25),
        ("checkpoint-written", 3),
        ("expire-removed", 2),
    ],
)
def test_the_newest_rows_survive(tmp_path: Path, point: str, after: int) -> None:
    """After the kill the table is as after the last step that was told, or the next; nothing is left that nobody names."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(tmp_path), point, str(after)],
        capture_output=True, text=True, timeout=60, cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == -9, f"{point} was not reached: {done.stderr}"
    told = [int(line) for line in done.stdout.split()]
    db: Connection
    with lake.open(str(tmp_path), tier_secs="0", retain_secs="0", gc_secs="0") as db:
        make_tables(db)
        last = last_upsert(db)
        assert told[-1] <= last <= told[-1] + 1
        for number in range(last + 1, last + 8):
            upsert(db, number)
            assert last_upsert(db) == number
            db.sql("CHECKPOINT")
        storage = db.database.lake  # type: ignore[attr-defined]
        storage.upkeep.round(force=True)
        assert last_upsert(db) == last + 7
        named = named_objects(storage.store, storage.manifests, storage.state)
        found = {info.name for info in storage.store.list("data/") if KEYED in info.name}
        assert found, "the table has files"
        assert {file.path for file in storage.state.table(KEYED).files} <= found & set(named)
