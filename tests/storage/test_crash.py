"""Real processes, killed at named instants: what was acknowledged is there once, and nothing is there by half."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lake.storage import Append, StorageOptions
from lake.storage.catalog.changes import CreateTable
from lake.storage.faults import CRASH_POINTS
from lake.storage.lake import Lake
from lake.storage.tiering.expire import named_objects
from tests.storage.lakes import contents, rows_of, table_of

BATCH = 5  # rows of one append: all of them are visible or none

# Appends batches of equal numbers, tiering and cleaning as it goes, and prints each one that was acknowledged.
WORKER = """
import sys
import numpy as np
from lake.storage import Append, Lake, StorageOptions
from lake.storage.catalog.changes import AddFiles, CreateTable, DropTable
from lake.storage.faults import arm
from lake.storage.tables.read import PLACE
from lake.storage.tiering.tier import seal_all
from tests.storage.lakes import rows_of, table_of

folder, point, after = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = StorageOptions(
    upkeep=False, inline_bytes=400, retain_secs=0.0, gc_secs=0.0, orphan_secs=0.0, keep_secs=0.0, purge_rows=0
)
arm(point, after=after)
lake = Lake.open(folder, options=options)
if lake.state.find("t") is None:
    lake.commit([CreateTable(table_of(lake.state.next_id))])
table = lake.state.table("t")
start = lake.state.producers["p"].seq if "p" in lake.state.producers else 0
print("open", flush=True)
for number in range(start + 1, start + 400):
    rows = 5 if number % 3 else 15
    lake.commit(appends=[Append(table.id, rows_of(*[number] * rows))], producer="p", seq=number)
    print(number, flush=True)
    if number % 4 == 0:
        lake.tier()
    if number % 40 == 0:
        lake.upkeep.round(force=True)
    if number % 50 == 0:
        lake.insert_files(table, [rows_of(*[-number] * 5)])
    if number % 30 == 0:
        lake.commit([CreateTable(table_of(lake.state.next_id, "side"))])
        side = lake.state.table("side")
        lake.insert_files(side, [rows_of(1, 2)])
        lake.commit([DropTable(side.id, True)])
    if number % 20 == 0 and point in ("manifest-written", "purge-file-written"):
        files = [lake.write_files(table, [rows_of(*[-1000 * number - at] * 5)]).files[0] for at in range(130)]
        lake.commit([AddFiles(table.id, tuple(files), {})])
        lake.submit(seal_all(lake.snapshot(), lake.clock)).result()
        rows = lake.snapshot().table("t")
        gone = [batch for part in rows.parts(("a", PLACE)) for batch in part.read()]
        gone = [place for batch in gone for a, place in zip(*batch.to_pydict().values()) if a == -1000 * number]
        lake.commit([rows.deletes_at(np.array(gone))])
        lake.upkeep.merge()
"""


# Not on the main thread, which hands its flushes over: a writer that is alone commits by itself.
ON_A_THREAD = f"""
import threading
worker = threading.Thread(target=exec, args=({WORKER!r}, {{}}))
worker.start()
worker.join()
"""


def run(folder: Path, point: str, after: int) -> tuple[int, list[int]]:
    """A worker's exit status and the numbers it had acknowledged."""
    done = subprocess.run(
        [sys.executable, "-c", ON_A_THREAD, str(folder), point, str(after)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    lines = done.stdout.split()
    return done.returncode, [int(line) for line in lines if line != "open"]


@pytest.mark.parametrize(
    ("point", "after"),
    [
        ("segment-written", 3),
        ("commit-encoded", 20),
        ("commit-linked", 20),
        ("commit-written", 20),
        ("commit-applied", 20),
        ("term-claimed", 1),
        ("checkpoint-written", 2),
        ("commits-removed", 7),
        ("tier-files-written", 3),
        ("tier-committed", 3),
        ("merge-file-written", 1),
        ("manifest-written", 1),
        ("bulk-files-written", 1),
        ("purge-file-written", 1),
        ("past-over", 1),
        ("expire-removed", 1),
    ],
)
def test_acknowledged_rows_survive(tmp_path: Path, point: str, after: int) -> None:
    """The process dies at ``point``; its rows are whole, and the next process goes on where it was."""
    status, acknowledged = run(tmp_path, point, after)
    assert status == -9, f"{point} was not reached"
    lake = Lake.open(tmp_path, options=StorageOptions(upkeep=False, retain_secs=0.0, gc_secs=0.0, orphan_secs=0.0))
    if lake.state.find("t") is None:
        assert not acknowledged
        lake.commit([CreateTable(table_of())])
    check(lake, acknowledged)
    table = lake.state.table("t")
    last = lake.state.producers["p"].seq if "p" in lake.state.producers else 0
    for number in (last, last + 1):
        rows = BATCH if number % 3 else 3 * BATCH
        if number:
            lake.commit(appends=[Append(table.id, rows_of(*[number] * rows))], producer="p", seq=number)
    lake.upkeep.round(force=True)
    check(lake, [*acknowledged, last + 1])
    named = named_objects(lake.store, lake.manifests, lake.state)
    assert all(info.name in named for info in lake.store.list("data/")), "what nobody names is gone"
    lake.close()
    again = Lake.open(tmp_path, writable=False)
    check(again, [*acknowledged, last + 1])


def check(lake: Lake, acknowledged: list[int]) -> None:
    """Every acknowledged append is there, whole and once; so is every other that is there."""
    rows = contents(lake)
    counted: dict[int, int] = {}
    for row in rows:
        counted[row[0]] = counted.get(row[0], 0) + 1
    positive = {number: count for number, count in counted.items() if number > 0}
    assert all(count == (BATCH if number % 3 else 3 * BATCH) for number, count in positive.items()), "none by half"
    assert all(count == BATCH for number, count in counted.items() if number < 0)
    assert set(acknowledged) <= set(positive), "none is lost"
    assert sorted(positive) == list(range(1, len(positive) + 1)), "in order, without gaps"
    assert len({row[3] for row in rows}) == len(rows), "row ids are unlike"


def test_every_crash_point_is_tried() -> None:
    tried = {case[0] for case in test_acknowledged_rows_survive.pytestmark[0].args[1]}
    # tests/crash kills at statements, test_crash_keyed at compaction
    elsewhere = {"restore-prepared", "definition-prepared", "compact-files-written"}
    assert tried | elsewhere == set(CRASH_POINTS)
