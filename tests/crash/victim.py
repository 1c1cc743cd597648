"""The process that is killed: producers, a bulk writer, transactions, definitions, a tierer and a reader on one lake.

    python -m tests.crash.victim FOLDER SEED [POINT AFTER]

It prints a line for each acknowledged batch, ``ack PRODUCER SEQ``, ``bulk NUMBER``, ``step NUMBER`` or ``define PLACE``, and
``broken ...`` if a query sees half a batch.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final

import lake
from lake.connection import Connection
from lake.embedded import EmbeddedConnection
from lake.storage import faults
from tests.crash import changes

PRODUCERS: Final = 8
ROWS_MAX: Final = 200
LARGE_ROWS_MAX: Final = 4_000
TABLE: Final = "events"
HALF: Final = (
    "SELECT producer, seq, count(*) AS rows, min(size) AS size FROM events "
    "GROUP BY producer, seq HAVING count(*) <> min(size)"
)
BULK: Final = "bulk"
BULK_ROWS: Final = 20_000  # more than the log takes: they go straight to files
BULK_HALF: Final = f"SELECT batch, count(*) FROM {BULK} GROUP BY batch HAVING count(*) <> {BULK_ROWS}"
BULK_INSERT: Final = f"INSERT INTO {BULK} SELECT $batch::INT, i FROM range(0, {BULK_ROWS}) AS r(i)"
BULK_PAUSE_SECS: Final = 0.1
STEP_PAUSE_SECS: Final = 0.002
KEYED: Final = "newest"
KEYED_ROWS: Final = 300
KEYED_GONE: Final = 50
KEYED_HALF: Final = f"SELECT count(*), min(n), max(n) FROM {KEYED}"
SETTINGS: Final = {"tier_secs": "0.2", "retain_secs": "0.3", "gc_secs": "0.3", "purge_rows": "20"}


def say(line: str) -> None:
    """Prints a line in one write: lines of several threads do not mix."""
    os.write(1, f"{line}\n".encode())


def rows_of(producer: int, seq: int, seed: int) -> list[dict[str, object]]:
    """The rows of a batch: made of its names alone, so that a retry sends the same. Some are too large for a commit."""
    chance = random.Random(f"{seed}/{producer}/{seq}")
    size = chance.randint(1, ROWS_MAX if chance.random() < 0.97 else LARGE_ROWS_MAX)
    return [
        {"producer": producer, "seq": seq, "row": row, "size": size, "note": f"{producer}-{seq}-{row}" * (seq % 7)}
        for row in range(size)
    ]


def last_seqs(db: Connection) -> dict[int, int]:
    """The last batch of each producer that the lake holds."""
    return dict(db.sql("SELECT producer, max(seq) FROM events GROUP BY producer").rows())


def main(folder: str, seed: int, point: str | None, after: int) -> None:
    """Runs until it is killed."""
    if point == "term-claimed":
        faults.arm(point, after=1)
    db = lake.open(folder, **SETTINGS)
    assert isinstance(db, EmbeddedConnection), "no node serves the lake"
    make_tables(db)
    changes.make_tables(db)
    known = last_seqs(db)
    say("ready")
    if point is not None and point != "term-claimed":
        faults.arm(point, after=after)
    for producer in range(PRODUCERS):
        threading.Thread(target=_produce, args=(db, producer, known.get(producer, 0), seed), daemon=True).start()
    threading.Thread(target=_write_in_bulk, args=(db,), daemon=True).start()
    threading.Thread(target=_tell, args=("step", changes.change(db, seed)), daemon=True).start()
    threading.Thread(target=_tell, args=("define", changes.define(db)), daemon=True).start()
    threading.Thread(target=_tell, args=("upsert", upserts(db)), daemon=True).start()
    while True:
        half = db.sql(HALF).rows() or db.sql(BULK_HALF).rows()
        if half or last_upsert(db) < 0:
            say(f"broken {half}")
        db.sql("CHECKPOINT")


def make_tables(db: Connection) -> None:
    """The tables, unless a life before this one made them."""
    db.sql(
        f"CREATE TABLE IF NOT EXISTS {TABLE} (producer INT NOT NULL, seq INT NOT NULL, row INT, size INT, note VARCHAR)"
    )
    db.sql(f"CREATE TABLE IF NOT EXISTS {BULK} (batch INT, i BIGINT)")
    db.sql(f"CREATE TABLE IF NOT EXISTS {KEYED} (id INT PRIMARY KEY, n BIGINT)")


def last_batch(db: Connection) -> int:
    """The last batch written in bulk, 0 of none."""
    return int(db.sql(f"SELECT coalesce(max(batch), 0) FROM {BULK}").item())


def _tell(word: str, done: Iterator[int]) -> None:
    """Says what was acknowledged; a failure is told as well."""
    try:
        for number in done:
            say(f"{word} {number}")
            time.sleep(STEP_PAUSE_SECS)
    except Exception as failure:
        say(f"broken {word}: {failure!r}")


def upsert(db: Connection, number: int) -> None:
    """Step ``number`` of the keyed table: two upserts of all keys, then a DELETE of some."""
    if number % 3:
        db.sql(f"INSERT INTO {KEYED} SELECT i, $n::BIGINT FROM range(0, {KEYED_ROWS}) AS r(i)", n=number)
    else:
        db.sql(f"DELETE FROM {KEYED} WHERE id < {KEYED_GONE}")


def last_upsert(db: Connection) -> int:
    """The step after which the keyed table is as it is; -1 where it is so after none."""
    count, low, high = db.sql(KEYED_HALF).rows()[0]
    if count == 0:
        return 0
    if low != high or count not in (KEYED_ROWS, KEYED_ROWS - KEYED_GONE):
        return -1
    return int(high) + (count != KEYED_ROWS)


def upserts(db: Connection) -> Iterator[int]:
    """Steps of the keyed table, from where it is; each once it was acknowledged."""
    number = last_upsert(db)
    while True:
        number += 1
        upsert(db, number)
        yield number


def _write_in_bulk(db: Connection) -> None:
    number = last_batch(db)
    while True:
        number += 1
        db.sql(BULK_INSERT, job=f"bulk-{number}", batch=number)
        say(f"bulk {number}")
        time.sleep(BULK_PAUSE_SECS)


def _produce(db: Connection, producer: int, seq: int, seed: int) -> None:
    while True:
        seq += 1
        done = db.append(TABLE, rows_of(producer, seq, seed), producer=f"p{producer}", seq=seq, prev=seq - 1)
        if done.conflict:
            say(f"broken conflict at {producer} {seq}")
            return
        say(f"ack {producer} {seq}")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(arguments[0], int(arguments[1]), arguments[2] if len(arguments) > 2 else None, int((arguments[3:] or ["1"])[0]))
