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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import lake
from lake.client import Connection
from lake.storage.faults import CRASH_POINTS
from tests.crash.victim import HALF, PRODUCERS, TABLE, last_seqs, rows_of

READY_SECS: Final = 120.0
POINT_SECS: Final = 20.0  # after so long an armed point that was not passed is given up: the process is killed anyway
LIVES: Final = 5  # runs that one lake lives through
READY: Final = "ready"


@dataclass(slots=True)
class Heard:
    """What the victim said before it died."""

    acknowledged: dict[int, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    is_ready: threading.Event = field(default_factory=threading.Event)

    def listen(self, process: subprocess.Popen[str]) -> None:
        """Reads lines until the process is gone; a line cut off by the kill says nothing."""
        assert process.stdout is not None
        for line in process.stdout:
            words = line.split()
            if not line.endswith("\n"):
                continue
            if words[0] == "ack":
                self.acknowledged[int(words[1])] = int(words[2])
            elif words[0] == "broken":
                self.broken.append(line.strip())
            elif words[0] == READY:
                self.is_ready.set()
        self.is_ready.set()


def run_once(folder: Path, seed: int, number: int, acknowledged: dict[int, int]) -> str:
    """One life of the victim; what was done to it. ``acknowledged`` is what earlier lives were told, and grows."""
    chance = random.Random(f"{seed}/{number}")
    point = chance.choice(CRASH_POINTS) if chance.random() < 0.6 else None
    after = chance.randint(1, 12)
    command = [sys.executable, "-m", "tests.crash.victim", str(folder), str(seed)]
    process = subprocess.Popen(
        [*command, *([point, str(after)] if point else [])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    heard = Heard()
    listener = threading.Thread(target=heard.listen, args=(process,))
    listener.start()
    assert heard.is_ready.wait(READY_SECS), "the victim did not start"
    _wait(process, POINT_SECS if point else chance.uniform(0.0, 1.5))
    suicide = process.poll() is not None
    process.kill()
    _, errors = process.communicate()
    listener.join()
    assert process.returncode == -9, f"the victim ended by itself with {process.returncode}:\n{errors}"
    acknowledged.update(heard.acknowledged)
    assert not heard.broken, heard.broken
    return f"{point} ({after})" if suicide else "a random instant"


def _wait(process: subprocess.Popen[str], secs: float) -> None:
    until = time.monotonic() + secs
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)


def check(db: Connection, seed: int, acknowledged: dict[int, int]) -> int:
    """Looks for every batch, and sends the one after the last again; how many rows there are."""
    assert db.sql(HALF).rows() == [], "half a batch is there"
    kept = last_seqs(db)
    for producer, seq in acknowledged.items():
        assert kept.get(producer, 0) >= seq, f"producer {producer}: batch {seq} was acknowledged, {kept.get(producer)} is last"
    doubled = db.sql(
        f"SELECT producer, seq, row, count(*) FROM {TABLE} GROUP BY producer, seq, row HAVING count(*) > 1"
    ).rows()
    assert doubled == [], f"rows are doubled: {doubled[:3]}"
    expected = {producer: 0 for producer in range(PRODUCERS)}
    for producer in range(PRODUCERS):
        last = kept.get(producer, 0)
        for seq in (last, last + 1):  # the first is known already, the second is new; or both are sent for the first time
            if seq:
                rows = rows_of(producer, seq, seed)
                done = db.append(TABLE, rows, producer=f"p{producer}", seq=seq)
                assert done.duplicate == (seq == last), f"batch {seq} of producer {producer}: {done}"
        acknowledged[producer] = last + 1
        expected[producer] = sum(len(rows_of(producer, seq, seed)) for seq in range(1, last + 2))
    counted = dict(db.sql(f"SELECT producer, count(*) FROM {TABLE} GROUP BY producer").rows())
    assert counted == expected, f"rows by producer are {counted}, not {expected}"
    return sum(counted.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the lives asked for; 1 at the first that leaves a lake in a wrong state."""
    options = argparse.ArgumentParser("python -m tests crash")
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args(argv)
    root = Path(tempfile.mkdtemp(prefix="lake-crash-"))
    at_points = 0
    folder, acknowledged = root / "0", dict[int, int]()
    for number in range(given.runs):
        if number % LIVES == 0:
            shutil.rmtree(folder, ignore_errors=True)
            folder, acknowledged = root / str(number), {}
        try:
            how = run_once(folder, given.seed, number, acknowledged)
            with lake.open(folder, tier_secs="0") as db:
                rows = check(db, given.seed, acknowledged)
        except AssertionError as error:
            print(f"run {number} of seed {given.seed} failed; its lake is {folder}\n{error}")
            return 1
        at_points += how != "a random instant"
        print(f"run {number}: killed at {how}, {rows} rows, each once", flush=True)
    shutil.rmtree(root)
    print(f"{given.runs} kills, {at_points} at named points: every acknowledged row was there once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
