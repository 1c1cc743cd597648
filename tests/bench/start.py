"""What it costs to start: the program's help, one small statement, and a node's first start on a machine.

    python -m tests bench start [--runs 9] [--parts small,first]

    small   whole processes, wall and processor time, medians, one run of each after the other: `lake --help`, `lake sql`
            on a lake of one table, and the rivals: DuckDB and SQLite within Python, sqlite3 and psql (a Postgres that runs)
            where the machine has them
    first   a node from its start until /ready, with an empty folder of kernels, which it compiles, and again with a full one:
            from the source, and as `pip install .` installs it, with the kernels prepared

Ratios of processes are to `import duckdb` and its SELECT 1, which is a Python process too; below 1 the lake is faster.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.bench import ROOT, Figure, median, save, table
from tests.cluster import free_port, running_node
from tests.pg.server import Server

CASE: Final = "start"
RIVAL: Final = "duckdb"
Command = tuple[str, ...]
Times = dict[str, list[tuple[float, float]]]


def commands(folder: Path, port: int) -> dict[str, Command]:
    """The processes to time, by name."""
    lake = (sys.executable, "-m", "lake")
    found: dict[str, Command] = {
        "python -c pass": (sys.executable, "-c", "pass"),
        "import pyarrow": (sys.executable, "-c", "import pyarrow.compute, pyarrow.parquet"),
        RIVAL: (sys.executable, "-c", "import duckdb; print(duckdb.sql('SELECT 1'))"),
        "sqlite in Python": (sys.executable, "-c", "import sqlite3; print(*sqlite3.connect(':memory:').execute('SELECT 1'))"),
        "lake --help": (*lake, "--help"),
        "lake sql": (*lake, "sql", str(folder / "lake"), "SELECT 1"),
        "lake sql, a table": (*lake, "sql", str(folder / "lake"), "SELECT count(*) FROM t WHERE a > 1"),
    }
    if sqlite := shutil.which("sqlite3"):
        found["sqlite3"] = (sqlite, ":memory:", "SELECT 1")
    if psql := shutil.which("psql"):
        found["psql"] = (psql, "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "postgres", "-c", "SELECT 1")
    return found


def timed(command: Command, folder: Path) -> tuple[float, float]:
    """Wall and processor seconds of one process, its compiled modules kept."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environ, check=True, capture_output=True)
    took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def small(folder: Path, runs: int) -> list[Figure]:
    """Help and one statement, beside the rivals."""
    made = (sys.executable, "-m", "lake", "sql", str(folder / "lake"), "CREATE TABLE t AS SELECT * FROM range(100) r(a)")
    timed(made, folder)
    port = free_port()
    server = Server(port=port)
    try:
        every = commands(folder, port)
        times: Times = {name: [] for name in every}
        for turn in range(runs + 1):
            for name, command in every.items():
                once = timed(command, folder)
                if turn > 0:  # the first one fills the caches
                    times[name].append(once)
    finally:
        server.stop()
    walls = {name: median([wall for wall, _ in found]) for name, found in times.items()}
    cpus = {name: median([cpu for _, cpu in found]) for name, found in times.items()}
    rows = [
        [name, *(f"{values[name] * 1000:.0f}" for values in (walls, cpus)), f"{cpus[name] / cpus[RIVAL]:.2f}"]
        for name in every
    ]
    print(table(["process", "wall ms", "cpu ms", f"cpu to {RIVAL}"], rows))
    figures = []
    for name in every:
        figures.append(Figure(CASE, name, "wall", walls[name] * 1000, "ms", walls[name] / walls[RIVAL]))
        figures.append(Figure(CASE, name, "cpu", cpus[name] * 1000, "ms", cpus[name] / cpus[RIVAL]))
    return figures


def first(folder: Path, runs: int) -> list[Figure]:
    """A node's first start on a machine from the source, which compiles the kernels, and its next one; then what pip installs."""
    figures, rows = [], []
    installed = folder / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(installed), str(ROOT)]
    subprocess.run(command, cwd=folder, check=True)
    starts = (
        ("first start", ROOT, "kernels"), ("next start", ROOT, "kernels"), ("first start installed", installed, "installed"),
        ("next start installed", installed, "installed"),
    )  # fmt: skip
    for what, at, kept in starts:
        environ = {"NUMBA_CACHE_DIR": str(folder / kept)}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with running_node(folder / "served", environ=environ, at=at) as node:
            ready = node.wait_secs
            said = node.output().count("compiling")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        rows.append([what, f"{ready:.1f}", f"{cpu:.1f}", str(said)])
        figures += [
            Figure(CASE, "lake serve", f"{what}, until ready", ready, "s"),
            Figure(CASE, "lake serve", f"{what}, cpu", cpu, "s"),
        ]
    print(table(["node", "ready s", "cpu s", "lines of progress"], rows))
    return figures


PARTS: Final = {"small": small, "first": first}


def main(arguments: Sequence[str]) -> int:
    """Runs the parts and keeps their figures."""
    parser = argparse.ArgumentParser("python -m tests bench start", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args(arguments)
    figures: list[Figure] = []
    for name in options.parts.split(","):
        with tempfile.TemporaryDirectory() as folder:
            figures += PARTS[name](Path(folder), options.runs)
    if not options.no_save:
        save(figures)
    return 0
