"""``python -m tests isolation``: transactions of many sessions at once, and a checker of what each of them saw.

    python -m tests isolation --histories 200 --seed 1

Each history is a table of keys, every other one with a PRIMARY KEY, each with a list of the writes that made its value: a write by transaction ``w`` reads the
list and puts ``w`` at its end, so a value tells which writes were before it. Sessions run transactions that read and write a
few keys, with tiering and merging between; what every statement answered is recorded. The checker then looks for

    lost updates         a committed write that the last value does not hold, or two writes made on one value
    dirty reads          a value with a write of a transaction that did not commit
    half commits         a transaction that sees one write of another and not the other
    moving snapshots     a read that differs from the first of its transaction, or lacks its own write
    stale snapshots      a commit that was acknowledged before BEGIN and is not seen

Write skew, which snapshot isolation allows, is counted and told. Source: Adya, "Weak Consistency", MIT 1999.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lake.config import load
from lake.db.database import Database
from lake.db.session import Session
from lake.errors import SerializationFailure

SESSIONS: Final = 16
KEYS: Final = 6
TRANSACTIONS: Final = 6  # of one session in one history

Value = tuple[int, ...]


@dataclass(slots=True)
class Transaction:
    """What one transaction did and saw.

    began, ended  by one clock for all
    reads         key and value, in order
    writes        key to the value it was made of
    """

    id: int
    began: float = 0.0
    ended: float = 0.0
    reads: list[tuple[int, Value]] = field(default_factory=list)
    writes: dict[int, Value] = field(default_factory=dict)
    committed: bool = False


def parse(text: str) -> Value:
    """A value of the table: the writes that made it."""
    return tuple(int(part) for part in text.split(",") if part)


class History:
    """One table, its sessions, and their transactions."""

    def __init__(self, database: Database, name: str, seed: str, sessions: int, *, is_keyed: bool) -> None:
        self.database = database
        self.name = name
        self.seed = seed
        self.sessions = sessions
        self.is_keyed = is_keyed
        self.transactions: list[Transaction] = []
        self.failures: list[BaseException] = []
        self._lock = threading.Lock()
        self._next = 0

    def run(self) -> dict[int, Value]:
        """Runs all sessions to their end; the last values."""
        setup = Session(self.database)
        kind = "PRIMARY KEY" if self.is_keyed else ""
        setup.execute(f"CREATE TABLE {self.name} (k INT {kind}, v TEXT)")
        setup.execute(f"INSERT INTO {self.name} SELECT i, '' FROM range({KEYS}) AS r(i)")
        threads = [threading.Thread(target=self._work, args=(number,)) for number in range(self.sessions)]
        for thread in threads:
            thread.start()
        chance = random.Random(self.seed)
        while any(thread.is_alive() for thread in threads):
            if chance.random() < 0.5:
                self.database.tier()
            else:
                self.database.lake.upkeep.round(force=True)
            threads[0].join(0.02)
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
        last = {k: parse(v) for k, v in setup.execute(f"SELECT k, v FROM {self.name}").rows()}
        setup.execute(f"DROP TABLE {self.name} PURGE")
        return last

    def _work(self, number: int) -> None:
        chance, session = random.Random(f"{self.seed}/{number}"), Session(self.database)
        try:
            for _ in range(TRANSACTIONS):
                self._transact(chance, session)
        except BaseException as failure:
            self.failures.append(failure)

    def _transact(self, chance: random.Random, session: Session) -> None:
        with self._lock:
            self._next += 1
            done = Transaction(self._next)
            self.transactions.append(done)
        done.began = time.perf_counter()
        session.execute("BEGIN")
        for _ in range(chance.randrange(1, 5)):
            key = chance.randrange(KEYS)
            if chance.random() < 0.5:
                value = self._read(session, key)
                done.reads.append((key, value))
            elif chance.random() < 0.3:
                found = session.execute(f"SELECT k, v FROM {self.name}").rows()
                done.reads += [(k, parse(v)) for k, v in found]
            elif key not in done.writes:
                value = self._read(session, key)
                done.reads.append((key, value))
                text = ",".join(map(str, (*value, done.id)))
                changed = session.execute(f"UPDATE {self.name} SET v = '{text}' WHERE k = {key}").outcome
                assert changed is not None and changed["updated"] == 1, changed
                done.writes[key] = value
        try:
            if chance.random() < 0.15:
                session.execute("ROLLBACK")
            else:
                done.committed = session.commit()
        except SerializationFailure:
            pass
        done.ended = time.perf_counter()

    def _read(self, session: Session, key: int) -> Value:
        rows = session.execute(f"SELECT v FROM {self.name} WHERE k = {key}").rows()
        assert len(rows) == 1, f"key {key} is there {len(rows)} times"
        return parse(rows[0][0])


def check(transactions: Sequence[Transaction], last: dict[int, Value]) -> tuple[list[str], int]:
    """The anomalies of a history, in words, and how many pairs of transactions are write skews."""
    found: list[str] = []
    committed = {each.id: each for each in transactions if each.committed}
    for key, value in last.items():
        if len(set(value)) != len(value):
            found.append(f"key {key}: a write is there twice in {value}")
        writers = {each.id for each in committed.values() if key in each.writes}
        if writers != set(value):
            found.append(f"key {key}: committed writes {sorted(writers ^ set(value))} are lost or were never made")
        for place, writer in enumerate(value):
            if writer in committed and committed[writer].writes.get(key) != value[:place]:
                found.append(f"key {key}: write {writer} was made on another value than {value[:place]}")
    for each in transactions:
        found += _check_reads(each, committed, last)
    return found, _skews(list(committed.values()))


def _check_reads(each: Transaction, committed: dict[int, Transaction], last: dict[int, Value]) -> list[str]:
    found: list[str] = []
    first: dict[int, Value] = {}
    for key, value in each.reads:
        own = value[-1:] == (each.id,)
        seen = value[:-1] if own else value
        if each.id in seen or (own and each.writes.get(key) != seen):
            found.append(f"{each.id} reads {value} of key {key}, which is not its own write")
        if first.setdefault(key, seen) != seen:
            found.append(f"{each.id}: key {key} moved from {first[key]} to {seen}")
        if seen != last[key][: len(seen)]:
            found.append(f"{each.id} reads {seen} of key {key}, which was never committed")
    for key, seen in first.items():
        for writer in last[key]:
            other = committed.get(writer)
            if other is None or writer == each.id:
                continue
            if other.ended < each.began and writer not in seen:
                found.append(f"{each.id} does not see {writer} on key {key}, which had committed before it began")
            for shared in other.writes.keys() & first.keys():
                if (writer in seen) != (writer in first[shared]):
                    found.append(f"{each.id} sees half of {writer}: keys {key} and {shared}")
    return found


def _skews(committed: Sequence[Transaction]) -> int:
    """Pairs that each read what the other wrote, without its write, and wrote something else."""
    count = 0
    for number, one in enumerate(committed):
        for other in committed[number + 1 :]:
            if one.writes and other.writes and not one.writes.keys() & other.writes.keys():
                count += _missed(one, other) and _missed(other, one)
    return count


def _missed(reader: Transaction, writer: Transaction) -> bool:
    return any(key in writer.writes and writer.id not in value for key, value in reader.reads)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the histories asked for; 1 at the first with an anomaly."""
    options = argparse.ArgumentParser("python -m tests isolation")
    options.add_argument("--histories", type=int, default=20)
    options.add_argument("--sessions", type=int, default=SESSIONS)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args(argv)
    started, counted, skews = time.monotonic(), [0, 0], 0
    with tempfile.TemporaryDirectory(prefix="lake-isolation-") as folder:
        config = load(options={"lake": str(Path(folder) / "lake"), "tier_secs": "0", "retain_secs": "0"})
        database = Database.open(config)
        database.start(None)
        for number in range(given.histories):
            is_keyed = number % 2 == 1
            history = History(database, f"h{number}", f"{given.seed}/{number}", given.sessions, is_keyed=is_keyed)
            anomalies, skewed = check(history.transactions, history.run())
            if anomalies:
                print(f"history {number} of seed {given.seed}:\n" + "\n".join(anomalies[:20]))
                return 1
            skews += skewed
            counted[0] += len(history.transactions)
            counted[1] += sum(each.committed for each in history.transactions)
            if number % 20 == 19:
                print(f"{number + 1} histories, {time.monotonic() - started:.0f} s", flush=True)
        database.close()
    print(
        f"{given.histories} histories of {given.sessions} sessions: {counted[0]} transactions, {counted[1]} committed, "
        f"no anomaly; {skews} write skews, which snapshot isolation allows"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
