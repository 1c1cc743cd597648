"""The Postgres door beside Postgres: pgbench, point reads, a million rows out and in, many connections.

    python -m tests bench pg [--seconds 8] [--parts pgbench,point,out,in,many] [--rows 1000000]

A node and a Postgres with its own settings (it syncs its log, as the lake does) run in processes of their own on one
machine, and both are reached over TCP. Ratios are the lake's time to Postgres's: below 1 the lake is faster.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg
import psutil
import psycopg

from tests.bench import Figure, median, percentile, save, table
from tests.cluster import Node, free_port, running_node
from tests.pg.server import DEBIAN, Server

CASE: Final = "pg"
ACCOUNTS: Final = 100_000
POINT_TRIES: Final = 1_500
RUNS: Final = 3
IDLE, ACTIVE, ACTIVE_TRIES = 2_000, 200, 10
ROW: Final = "id BIGINT, name TEXT, value DOUBLE PRECISION, at TIMESTAMP, price NUMERIC(12,2)"
MADE: Final = (
    "INSERT INTO wide SELECT x, 'name ' || (x % 1000), x * 0.5, TIMESTAMP '2024-01-01', x % 100000 / 100.0 "
    "FROM generate_series(1, {rows}) g(x)"
)
# pgbench's own tables, with the keys they have from the start.
TABLES: Final = (
    "CREATE TABLE pgbench_branches (bid INT PRIMARY KEY, bbalance INT, filler CHAR(88))",
    "CREATE TABLE pgbench_tellers (tid INT PRIMARY KEY, bid INT, tbalance INT, filler CHAR(84))",
    "CREATE TABLE pgbench_accounts (aid INT PRIMARY KEY, bid INT, abalance INT, filler CHAR(84))",
    "CREATE TABLE pgbench_history (tid INT, bid INT, aid INT, delta INT, mtime TIMESTAMP, filler CHAR(22))",
)


@dataclass(frozen=True, slots=True)
class Rival:
    """One of the two; ``dsn`` is what libpq connects by, ``pid`` its process."""

    name: str
    port: int
    user: str
    pid: int

    @property
    def dsn(self) -> str:
        """What libpq connects by."""
        return f"host=127.0.0.1 port={self.port} user={self.user} dbname=postgres sslmode=disable"

    def connect(self) -> psycopg.Connection[Any]:
        """A connection where each statement commits by itself."""
        return psycopg.connect(self.dsn, autocommit=True)

    async def fast(self) -> asyncpg.Connection:
        """The same by asyncpg."""
        return await asyncpg.connect(host="127.0.0.1", port=self.port, user=self.user, database="postgres", ssl=False)


Timed = dict[str, float]
Part = Callable[[Rival, argparse.Namespace], Timed]


def pgbench(rival: Rival, arguments: argparse.Namespace) -> Timed:
    """Transactions a second and mean latency, by pgbench's own scripts."""
    with rival.connect() as db:
        for text in TABLES:
            db.execute(text)
    _pgbench(rival, "-i", "-I", "g")
    found: Timed = {}
    for script, words in (("select-only", ["-S"]), ("tpcb-like", ["-b", "tpcb-like", "--max-tries", "100"])):
        for clients in (1, 8):
            shown = _pgbench(
                rival, "-n", *words, "-M", "prepared", "-T", str(arguments.seconds), "-c", str(clients), "-j", "1"
            )
            found[f"{script}, {clients} clients, ms"] = float(re.findall(r"latency average = ([\d.]+)", shown)[0])
    return found


def _pgbench(rival: Rival, *words: str) -> str:
    program = shutil.which("pgbench") or str(max(DEBIAN.glob("*/bin/pgbench")))
    place = ["-h", "127.0.0.1", "-p", str(rival.port), "-U", rival.user]
    done = subprocess.run([program, *place, *words, "postgres"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


def point(rival: Rival, arguments: argparse.Namespace) -> Timed:
    """Half of the answers come within this time, through psycopg."""
    with rival.connect() as db:
        db.execute("CREATE TABLE point (id BIGINT PRIMARY KEY, name TEXT)")
        db.execute("INSERT INTO point SELECT x, 'name ' || x FROM generate_series(1, 100000) g(x)")
        return {
            "SELECT 1, p50 ms": _p50(lambda number: db.execute("SELECT 1").fetchone()),
            "key lookup, p50 ms": _p50(
                lambda number: db.execute("SELECT name FROM point WHERE id = %s", [number * 37 % 100_000 + 1]).fetchone()
            ),
        }


def _p50(ask: Callable[[int], object]) -> float:
    times = []
    for number in range(POINT_TRIES):
        started = time.perf_counter()
        assert ask(number) is not None
        times.append((time.perf_counter() - started) * 1_000)
    return percentile(times, 0.5)


def rows_out(rival: Rival, arguments: argparse.Namespace) -> Timed:
    """Seconds for all rows of five columns to reach a client."""
    with rival.connect() as db:
        _fill(db, arguments.rows)
        found: Timed = {}
        for name, binary in (("text", False), ("binary", True)):
            found[f"rows out, psycopg {name}, s"] = _best(lambda binary=binary: _psycopg_rows(db, binary))  # type: ignore[misc]
        for form in ("text", "binary"):
            found[f"COPY out {form}, s"] = _best(lambda form=form: _copied(db, f"COPY wide TO STDOUT (FORMAT {form})"))  # type: ignore[misc]
    found["rows out, asyncpg, s"] = _best(lambda: asyncio.run(_asyncpg_rows(rival)))
    return found


def _fill(db: psycopg.Connection[Any], rows: int) -> None:
    db.execute("DROP TABLE IF EXISTS wide")
    db.execute(f"CREATE TABLE wide ({ROW})")
    db.execute(MADE.format(rows=rows))


def _best(run: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return median(times)


def _psycopg_rows(db: psycopg.Connection[Any], binary: bool) -> None:
    """Rows as libpq has them: what Python makes of values costs both the same, and more than either server."""
    result = db.pgconn.exec_params(b"SELECT * FROM wide", None, result_format=int(binary))
    assert result.ntuples > 0, result.error_message
    result.clear()


async def _asyncpg_rows(rival: Rival) -> None:
    db = await rival.fast()
    assert await db.fetch("SELECT * FROM wide")
    await db.close()


def _copied(db: psycopg.Connection[Any], text: str) -> bytes:
    with db.cursor() as cursor, cursor.copy(text) as copy:
        return b"".join(bytes(piece) for piece in copy)


def rows_in(rival: Rival, arguments: argparse.Namespace) -> Timed:
    """Seconds until all rows of five columns are durable."""
    found: Timed = {}
    with rival.connect() as db:
        _fill(db, arguments.rows)
        for form in ("text", "csv", "binary"):
            body = _copied(db, f"COPY wide TO STDOUT (FORMAT {form})")
            found[f"COPY in {form}, s"] = _best(lambda form=form, body=body: _copy_in(db, form, body))  # type: ignore[misc]
    return found


def _copy_in(db: psycopg.Connection[Any], form: str, body: bytes) -> None:
    db.execute("TRUNCATE wide")
    with db.cursor() as cursor, cursor.copy(f"COPY wide FROM STDIN (FORMAT {form})") as copy:
        for start in range(0, len(body), 1 << 18):
            copy.write(body[start : start + (1 << 18)])


def many(rival: Rival, arguments: argparse.Namespace) -> Timed:
    """Memory of connections that wait, and what active ones feel among them, one of which reads nothing."""
    return asyncio.run(_many(rival))


async def _many(rival: Rival) -> Timed:
    before = _memory(rival.pid)
    idle = await _connections(rival, IDLE)
    each = (_memory(rival.pid) - before) / len(idle)
    slow = psycopg.connect(rival.dsn, autocommit=True)
    slow.pgconn.send_query(b"SELECT x, 'some text to fill the buffers' FROM generate_series(1, 3000000) g(x)")
    active = await _connections(rival, ACTIVE)
    times: list[float] = []

    async def ask(db: asyncpg.Connection) -> None:
        for number in range(ACTIVE_TRIES):
            started = time.perf_counter()
            assert await db.fetchval("SELECT $1::int + 1", number) == number + 1
            times.append((time.perf_counter() - started) * 1_000)

    await asyncio.gather(*map(ask, active))
    slow.pgconn.finish()
    await asyncio.gather(*(db.close() for db in (*idle, *active)))
    return {
        f"memory of one of {len(idle)} idle, KiB": each / 1_024,
        f"{ACTIVE} active, p50 ms": percentile(times, 0.5), f"{ACTIVE} active, p99 ms": percentile(times, 0.99),
    }  # fmt: skip


async def _connections(rival: Rival, count: int) -> list[asyncpg.Connection]:
    made: list[asyncpg.Connection] = []
    while len(made) < count:
        made += await asyncio.gather(*(rival.fast() for _ in range(min(50, count - len(made)))))
    return made


def _memory(pid: int) -> float:
    """Bytes of a process and its children that are theirs alone."""
    process, total = psutil.Process(pid), 0.0
    for item in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # a worker of Postgres may end while it is asked
            total += item.memory_full_info().uss
    return total


PARTS: Final[dict[str, Part]] = {"pgbench": pgbench, "point": point, "out": rows_out, "in": rows_in, "many": many}


def main(words: Sequence[str]) -> int:
    """Runs the parts on both, one after the other, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m tests bench pg")
    parser.add_argument("--seconds", type=int, default=8, help="of each run of pgbench")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--no-save", action="store_true")
    arguments = parser.parse_args(words)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
        port = free_port()
        with running_node(Path(scratch) / "postgres", "--pg", f"127.0.0.1:{port}") as node:
            for name in arguments.parts.split(","):
                figures += _compared(PARTS[name], _lake(node, port), arguments)
    if not arguments.no_save:
        save(figures)
    return 0


def _lake(node: Node, port: int) -> Rival:
    return Rival("lake", port, "admin", node.process.pid)


def _compared(part: Part, lake: Rival, arguments: argparse.Namespace) -> list[Figure]:
    """The figures of a part; Postgres runs only while it is measured."""
    ours = part(lake, arguments)
    port = free_port()
    server = Server((f"max_connections={IDLE + ACTIVE + 20}", "shared_buffers=256MB"), port)
    try:
        theirs = part(Rival("Postgres", port, "postgres", server._process.pid), arguments)
    finally:
        server.stop()
    rows = [[name, f"{ours[name]:.4g}", f"{theirs[name]:.4g}", f"{ours[name] / theirs[name]:.2f}"] for name in ours]
    print(table(("what", "lake", "Postgres", "ratio"), rows) + "\n", flush=True)
    units = {name: name.rpartition(", ")[2].split()[-1] for name in ours}
    return [
        Figure(CASE, who, name.rpartition(", ")[0], found[name], units[name], ours[name] / theirs[name] if found is ours else None)
        for name in ours
        for who, found in (("lake", ours), ("Postgres", theirs))
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
