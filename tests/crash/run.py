"""``python -m tests crash``: kills the victim, and looks what it left."""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import lake
from lake.connection import Connection
from lake.embedded import EmbeddedConnection
from lake.storage.faults import CRASH_POINTS
from tests.crash import changes
from tests.crash.victim import (
    BULK,
    BULK_HALF,
    BULK_INSERT,
    BULK_ROWS,
    HALF,
    PRODUCERS,
    TABLE,
    last_batch,
    last_seqs,
    last_upsert,
    make_tables,
    rows_of,
    upsert,
)

READY_SECS: Final = 120.0
POINT_SECS: Final = 6.0  # an armed point that is not passed by then is given up: the process is killed anyway
LIVES: Final = 5  # runs that one lake lives through
# A manifest takes 128 files, which merging does not let come about here; tests/storage kills at these.
POINTS: Final = tuple(point for point in CRASH_POINTS if point not in ("manifest-written", "purge-file-written"))
OFTEN: Final = ("commit-encoded", "commit-linked", "commit-written", "commit-applied", "segment-written")
READY: Final = "ready"
RANDOM: Final = "a random instant"


@dataclass(slots=True)
class Heard:
    """What the victim said before it died."""

    acknowledged: dict[int, int] = field(default_factory=dict)
    bulk: int = 0
    step: int = 0
    definition: int | None = None
    upsert: int = 0
    broken: list[str] = field(default_factory=list)
    is_ready: threading.Event = field(default_factory=threading.Event)

    def listen(self, process: subprocess.Popen[str]) -> None:
        """Reads lines until the process is gone; a line cut off by the kill says nothing."""
        assert process.stdout is not None
        for line in process.stdout:
            words = line.split()
            if not line.endswith("\n") or not words:
                continue
            if words[0] == "ack":
                self.acknowledged[int(words[1])] = int(words[2])
            elif words[0] == "bulk":
                self.bulk = int(words[1])
            elif words[0] == "step":
                self.step = int(words[1])
            elif words[0] == "define":
                self.definition = int(words[1])
            elif words[0] == "upsert":
                self.upsert = int(words[1])
            elif words[0] == "broken":
                self.broken.append(line.strip())
            elif words[0] == READY:
                self.is_ready.set()
        self.is_ready.set()


@dataclass(slots=True)
class Told:
    """What one lake's writers were told, over all its lives: the last batch of each producer, the last in bulk, and so on.

    definition  the last one of the last life, None where it came to none
    """

    acknowledged: dict[int, int] = field(default_factory=dict)
    bulk: int = 0
    step: int = 0
    definition: int | None = None
    upsert: int = 0


def run_once(folder: Path, seed: int, number: int, told: Told, point_secs: float) -> str:
    """One life of the victim; where it was killed. ``told`` grows by what it was told."""
    chance = random.Random(f"{seed}/{number}")
    point = chance.choice(POINTS) if chance.random() < 0.8 else None
    after = chance.choice((1, 2, 40)) if point in OFTEN else chance.choice((1, 2))
    command = [sys.executable, "-m", "tests.crash.victim", str(folder), str(seed)]
    process = subprocess.Popen(
        [*command, *([point, str(after)] if point else [])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    heard = Heard()
    listener = threading.Thread(target=heard.listen, args=(process,))
    listener.start()
    assert heard.is_ready.wait(READY_SECS), "the victim did not start"
    _wait(process, point_secs if point else chance.uniform(0.0, 1.5))
    suicide = process.poll() is not None
    process.kill()
    _, errors = process.communicate()
    listener.join()
    assert process.returncode == -9, f"the victim ended by itself with {process.returncode}:\n{errors}"
    told.acknowledged.update(heard.acknowledged)
    told.bulk = max(told.bulk, heard.bulk)
    told.step = max(told.step, heard.step)
    told.definition = heard.definition
    told.upsert = max(told.upsert, heard.upsert)
    assert not heard.broken, heard.broken
    return f"{point}" if suicide and point else RANDOM


def _wait(process: subprocess.Popen[str], secs: float) -> None:
    until = time.monotonic() + secs
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)


def check(db: Connection, seed: int, told: Told) -> int:
    """Looks for every batch, and sends the last and the one after it again; how many rows there are."""
    assert db.sql(HALF).rows() == [], "half a batch is there"
    kept = last_seqs(db)
    for producer, seq in told.acknowledged.items():
        found = kept.get(producer, 0)
        assert found >= seq, f"producer {producer}: batch {seq} was acknowledged, and the last that is there is {found}"
    doubled = db.sql(
        f"SELECT producer, seq, row, count(*) FROM {TABLE} GROUP BY producer, seq, row HAVING count(*) > 1"
    ).rows()
    assert doubled == [], f"rows are doubled: {doubled[:3]}"
    expected = dict.fromkeys(range(PRODUCERS), 0)
    for producer in range(PRODUCERS):
        last = kept.get(producer, 0)
        for seq in (last, last + 1):  # the first is known already, the second is new; or both are sent for the first time
            if seq:
                rows = rows_of(producer, seq, seed)
                done = db.append(TABLE, rows, producer=f"p{producer}", seq=seq)
                assert done.duplicate == (seq == last), f"batch {seq} of producer {producer}: {done}"
        told.acknowledged[producer] = last + 1
        expected[producer] = sum(len(rows_of(producer, seq, seed)) for seq in range(1, last + 2))
    counted = dict(db.sql(f"SELECT producer, count(*) FROM {TABLE} GROUP BY producer").rows())
    assert counted == expected, f"rows by producer are {counted}, not {expected}"
    assert isinstance(db, EmbeddedConnection), "no node serves the lake"
    changes.check_changes(db, seed, told.step)
    changes.check_definitions(db, told.definition)
    changes.check_objects(db)
    check_keyed(db, told)
    return sum(counted.values()) + check_bulk(db, told)


def check_keyed(db: Connection, told: Told) -> None:
    """The keyed table is as it was after the last step that was told, or the one after it; the next one holds too."""
    last = last_upsert(db)
    assert told.upsert <= last <= told.upsert + 1, f"step {told.upsert} was told, and the table is as after {last}"
    upsert(db, last + 1)
    assert last_upsert(db) == last + 1, f"the table is as after {last_upsert(db)}, not {last + 1}"
    told.upsert = last + 1


def check_bulk(db: Connection, told: Told) -> int:
    """The same for what was written in bulk."""
    assert db.sql(BULK_HALF).rows() == [], "half of a bulk write is there"
    last = last_batch(db)
    assert last >= told.bulk, f"bulk write {told.bulk} was acknowledged, and the last that is there is {last}"
    for number in (last, last + 1):
        if number:
            done = db.sql(BULK_INSERT, job=f"bulk-{number}", batch=number).outcome
            assert done == ({"duplicate": True} if number == last else {"rows": BULK_ROWS}), f"bulk write {number}: {done}"
    told.bulk = last + 1
    rows = int(db.sql(f"SELECT count(*) FROM {BULK}").item())
    assert rows == told.bulk * BULK_ROWS, f"{rows} rows of {told.bulk} bulk writes"
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the lives asked for; 1 at the first that leaves a lake in a wrong state."""
    options = argparse.ArgumentParser("python -m tests crash")
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--point-secs", type=float, default=POINT_SECS, help="how long a named point is waited for")
    given = options.parse_args(argv)
    root = Path(tempfile.mkdtemp(prefix="lake-crash-"))
    killed: Counter[str] = Counter()
    folder, told = root / "0", Told()
    for number in range(given.runs):
        if number % LIVES == 0:
            shutil.rmtree(folder, ignore_errors=True)
            folder, told = root / str(number), Told()
        try:
            where = run_once(folder, given.seed, number, told, given.point_secs)
            with lake.open(folder, tier_secs="0") as db:
                make_tables(db)
                changes.make_tables(db)
                rows = check(db, given.seed, told)
        except AssertionError as error:
            print(f"run {number} of seed {given.seed} failed; its lake is {folder}\n{error}")
            return 1
        killed[where] += 1
        print(f"run {number}: killed at {where}, {rows} rows, each once", flush=True)
    shutil.rmtree(root)
    print(f"killed at: {', '.join(f'{where} {count}' for where, count in killed.most_common())}")
    at_points = given.runs - killed[RANDOM]
    print(f"{given.runs} kills, {at_points} at named points: every acknowledged row was there once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
