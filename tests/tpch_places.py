"""TPC-H answers, wherever the rows are and whichever way they are asked for.

    python -m tests tpch --scale 1

    files   one INSERT .. SELECT a table
    half    half of each table in files, the rest appended over HTTP and still in the tail
    tail    everything appended over HTTP and still in the tail

Each of the 22 queries is asked over HTTP and by the program (``lake sql --url``), and answers as DuckDB does over the same
generated files: decimals, integers, dates and texts exactly, doubles within the rounding of a sum. A table's tail holds
less than a million rows, past which a node tiers by itself: at larger scales ``half`` leaves fewer rows there and ``tail``
is left out, saying so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

import lake
from lake.client import HttpConnection
from tests.bench.tpch import TABLES, data_of, duckdb_contestant, rows_of
from tests.cluster import ROOT, Node, running_node
from tests.engines import Answer
from tests.random_sql import same_answer
from tests.tpch import QUERIES

TAIL_ROWS_MAX: Final = 900_000
APPEND_ROWS: Final = 50_000
SHARES: Final = {"files": 0.0, "half": 0.5, "tail": 1.0}


def load(folder: Path, data: Path, share: float) -> dict[str, pa.Table]:
    """Puts rows into files; answers those that are to be appended: the last ``share`` of each table."""
    waiting = {}
    with lake.open(folder, tier_secs="0") as db:
        for name in TABLES:
            path = data / f"{name}.parquet"
            rows = pq.read_metadata(path).num_rows
            late = min(int(rows * share), TAIL_ROWS_MAX)
            db.sql(f"CREATE TABLE {name} AS SELECT * FROM '{path}' LIMIT {rows - late}")
            if late:
                waiting[name] = pq.read_table(path).slice(rows - late)
    return waiting


def append(node: Node, waiting: dict[str, pa.Table]) -> None:
    """Appends over HTTP, some rows at a time."""
    with HttpConnection(node.url) as db:
        for name, rows in waiting.items():
            for seq, start in enumerate(range(0, rows.num_rows, APPEND_ROWS), 1):
                db.append(name, rows.slice(start, APPEND_ROWS), producer=name, seq=seq)


def by_http(node: Node, text: str) -> pa.Table:
    """The answer over HTTP."""
    with HttpConnection(node.url) as db:
        return db.sql(text).arrow()


def by_program(node: Node, text: str) -> pa.Table:
    """The answer of ``lake sql --url``."""
    command = [sys.executable, "-m", "lake", "sql", "--url", node.url, "--format", "arrow", text]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    with pa.ipc.open_stream(done.stdout) as reader:
        return reader.read_all()


def compare(node: Node, expected: dict[int, Answer], place: str) -> list[str]:
    """Asks every query both ways; what is wrong."""
    wrong = []
    for number, text in QUERIES.items():
        for way in (by_http, by_program):
            rows = rows_of(way(node, text))
            found = Answer(letters="?" * (len(rows[0]) if rows else 0), rows=rows)
            if not same_answer(found, expected[number], ordered=False):
                wrong.append(f"Q{number} {place} {way.__name__}: {rows[:2]} not {expected[number].rows[:2]}")
    return wrong


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m tests tpch``: 1 where an answer differs."""
    options = argparse.ArgumentParser("python -m tests tpch")
    options.add_argument("--scale", type=float, default=0.1)
    options.add_argument("--data", type=Path)
    options.add_argument("--places", default="files,half,tail")
    given = options.parse_args(argv)
    data = data_of(given.scale, given.data).resolve()
    oracle = duckdb_contestant("duckdb", data, 2, own=False)
    expected = {}
    for number, text in QUERIES.items():
        rows = rows_of(oracle.ask(text))
        expected[number] = Answer(letters="?" * (len(rows[0]) if rows else 0), rows=rows)
    wrong: list[str] = []
    for place in given.places.split(","):
        if place == "tail" and pq.read_metadata(data / "lineitem.parquet").num_rows > TAIL_ROWS_MAX:
            print(f"tail: left out, a node tiers a table by itself past a million waiting rows (scale {given.scale:g})")
            continue
        with tempfile.TemporaryDirectory() as root:
            folder = Path(root) / "lake"
            waiting = load(folder, data, SHARES[place])
            with running_node(folder, "--tier-secs", "0") as node:
                append(node, waiting)
                untiered = HttpConnection(node.url).request("GET", "/stats")[0]
                found = compare(node, expected, place)
            wrong += found
            print(f"{place}: 22 queries over HTTP and by lake sql, {len(found)} wrong; {untiered.decode()}", flush=True)
    print("\n".join(wrong) or "all answers alike")
    return 1 if wrong else 0
