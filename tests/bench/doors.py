"""The HTTP door: SELECT 1, appends, restart, idle memory, start.

    python -m tests bench doors [--seconds 5] [--parts select,append,restart,start]

A node runs in a process of its own, as `lake serve` starts it; clients are threads of this process, on kept-alive
connections. Everything shares the machine's cores, so these are floors. Each append is acknowledged before its client
sends the next.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import psutil
import pyarrow as pa

from tests.bench import Figure, median, percentile, save, table
from tests.cluster import Node, Wire, running_node

PRODUCERS: Final = 8
BATCH_ROWS: Final = 1_000
RESTART_COMMITS: Final = 1_000
RESTART_TABLES: Final = 200
ARROW: Final = "application/vnd.apache.arrow.stream"
NDJSON: Final = "application/x-ndjson"
CASE: Final = "http"

Part = Callable[[Path, float], list[Figure]]


def rows(count: int, first: int = 0) -> list[dict[str, object]]:
    """Rows of the table that appends go to."""
    return [
        {"id": first + number, "name": f"name {number % 97}", "value": number * 0.5, "at": "2026-03-01 12:00:00"}
        for number in range(count)
    ]


def ndjson(count: int) -> bytes:
    """Rows as lines of JSON."""
    return "".join(json.dumps(row) + "\n" for row in rows(count)).encode()


def arrow(count: int) -> bytes:
    """Rows as an Arrow stream."""
    batch = pa.RecordBatch.from_pylist(rows(count))
    batch = batch.set_column(3, "at", batch.column(3).cast(pa.timestamp("us")))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def expect(wire: Wire, method: str, path: str, body: bytes | str, **headers: str) -> bytes:
    """The body of an answer 200; a RuntimeError for any other."""
    reply = wire.send(method, path, body, **headers)
    if reply.status != 200:
        raise RuntimeError(f"{method} {path}: {reply.status} {reply.body.decode(errors='replace')}")
    return reply.body


def timed(wire: Wire, seconds: float, send: Callable[[Wire, int], object]) -> list[float]:
    """Seconds of each call made one after another for so long, after a tenth of that to warm up."""
    number = 0
    for phase in (seconds / 10, seconds):
        took: list[float] = []
        until = time.perf_counter() + phase
        while time.perf_counter() < until:
            began = time.perf_counter()
            number += 1
            send(wire, number)
            took.append(time.perf_counter() - began)
    return took


def select_one(folder: Path, seconds: float) -> list[Figure]:
    """SELECT 1 over one kept-alive connection."""
    with running_node(folder / "select") as node:
        wire = node.wire()
        took = timed(wire, seconds, lambda wire, _: expect(wire, "POST", "/sql", "SELECT 1"))
    return [
        Figure(CASE, "lake", "SELECT 1 p50", median(took) * 1000, "ms"),
        Figure(CASE, "lake", "SELECT 1 p99", percentile(took, 0.99) * 1000, "ms"),
        Figure(CASE, "lake", "SELECT 1, one connection", len(took) / sum(took), "requests/s"),
    ]


def appends(folder: Path, seconds: float) -> list[Figure]:
    """Appends of 1 and of 1,000 rows, by one producer and by eight, as JSON and as Arrow; then every row is counted."""
    found: list[Figure] = []
    with running_node(folder / "append") as node:
        node.sql("CREATE TABLE events (id BIGINT, name VARCHAR, value DOUBLE, at TIMESTAMP)")
        sent = 0
        for kind, label, encode in ((NDJSON, "NDJSON", ndjson), (ARROW, "Arrow", arrow)):
            for count in (1, BATCH_ROWS):
                body = encode(count)
                took = timed(node.wire(), seconds, sender(body, kind, f"one-{label}-{count}"))
                # The warm-up's appends count too; the table is asked below how many there are.
                noun = "1 row" if count == 1 else f"{count:,} rows"
                found.append(Figure(CASE, "lake", f"append of {noun}, {label}, p50", median(took) * 1000, "ms"))
                rate, appended = together(node, seconds, body, kind, f"many-{label}-{count}")
                found.append(
                    Figure(CASE, "lake", f"append of {noun}, {label}, {PRODUCERS} producers", rate * count, "rows/s"))
                sent += appended * count
        there = node.sql("SELECT count(*) AS n FROM events")[0]["n"]
        assert there >= sent, f"{sent} rows were acknowledged, and {there} are there"
    return found


def sender(body: bytes, kind: str, producer: str) -> Callable[[Wire, int], object]:
    """A call that appends ``body`` as number ``seq`` of a producer."""
    return lambda wire, seq: expect(
        wire, "POST", f"/append/events?producer={producer}&seq={seq}", body, Content_Type=kind
    )


def together(node: Node, seconds: float, body: bytes, kind: str, producer: str) -> tuple[float, int]:
    """Appends a second by eight producers at once, and how many there were."""
    counts = [0] * PRODUCERS
    failures: list[BaseException] = []
    until = time.perf_counter() + seconds

    def work(number: int) -> None:
        wire, send = node.wire(), sender(body, kind, f"{producer}-{number}")
        try:
            while time.perf_counter() < until:
                send(wire, counts[number] + 1)
                counts[number] += 1
        except Exception as error:  # raised again below, in the thread that measures
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(PRODUCERS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts) / (time.perf_counter() - began), sum(counts)


def restarts(folder: Path, seconds: float) -> list[Figure]:
    """A lake of 1,000 commits and 200 tables, opened again after a stop and after a kill."""
    found = []
    home = folder / "restart"
    body = ndjson(10)
    with running_node(home, "--tier-secs", "0") as node:
        wire = node.wire()
        columns = "id BIGINT, name VARCHAR, value DOUBLE, at TIMESTAMP"
        for number in range(RESTART_TABLES):
            expect(wire, "POST", "/sql", f"CREATE TABLE t{number} ({columns})")
        for number in range(RESTART_COMMITS - RESTART_TABLES):
            expect(wire, "POST", f"/append/t{number % RESTART_TABLES}", body, Content_Type=NDJSON)
        wanted = node.sql("SELECT count(*) AS n FROM t7")
        node.kill()
    for name in ("kill", "stop"):
        with running_node(home, "--tier-secs", "0") as node:
            took = node.wait_secs
            assert node.sql("SELECT count(*) AS n FROM t7") == wanted
        found.append(Figure(
            CASE, "lake", f"restart after a {name}: {RESTART_COMMITS:,} commits, {RESTART_TABLES} tables", took, "s"))
    return found


def starts(folder: Path, seconds: float) -> list[Figure]:
    """From `lake serve` to /ready on a new folder, three times; and the memory of a node that idles."""
    took, memory = [], []
    for number in range(3):
        with running_node(folder / f"start{number}") as node:
            took.append(node.wait_secs)
            time.sleep(1.0)
            memory.append(psutil.Process(node.process.pid).memory_info().rss / 2**20)
    return [
        Figure(CASE, "lake", "lake serve to /ready, new folder", median(took), "s"),
        Figure(CASE, "lake", "idle memory", median(memory), "MiB"),
    ]


PARTS: Final[dict[str, Part]] = {"start": starts, "select": select_one, "append": appends, "restart": restarts}


def main(arguments: Sequence[str]) -> int:
    """`python -m tests bench doors`."""
    parser = argparse.ArgumentParser(prog="python -m tests bench doors", description="the HTTP door, measured")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each measurement (5)")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--no-save", action="store_true", help="leave results.csv alone")
    options = parser.parse_args(arguments)
    found: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="lake-doors-") as folder:
        for name in options.parts.split(","):
            found += PARTS[name](Path(folder), options.seconds)
    print(table(("what", "value", "unit"), [(each.what, f"{each.value:,.4g}", each.unit) for each in found]))
    if not options.no_save:
        save(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
