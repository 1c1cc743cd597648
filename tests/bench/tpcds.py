"""TPC-DS: the 99 queries on the lake and on DuckDB's own tables, interleaved in one run, answers compared.

    python -m tests tpcds --data FOLDER --make DS/bin/python --scale 1     makes the files (see `tests/tpcds.py`)
    python -m tests bench tpcds --data FOLDER

The lake's tables are made of the files, columns kept in memory as usual. Both have two threads. One run of each query warms
up and is compared, then the engines take turns, ``--runs`` times, and the medians count.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import lake
from tests.bench import save
from tests.bench.tpch import RIVAL, Contestant, figures, lake_contestant, measure, report, rows_of
from tests.tpcds import answer_of, load, same, tables_of, without_limit

WORST: int = 15


def contestants(data: Path, scratch: Path, threads: int) -> list[Contestant]:
    """The lake and DuckDB, each with the tables."""
    began = time.perf_counter()
    with lake.open(scratch / "lake", cores=threads) as database:
        load(database, data)
    ours = lake_contestant("lake", scratch / "lake", cores=threads)
    ours.load_secs = time.perf_counter() - began
    began = time.perf_counter()
    connection = tables_of(data, threads)
    took = time.perf_counter() - began
    theirs = Contestant(RIVAL, lambda text: connection.sql(text).to_arrow_table(), connection.close, load_secs=took)
    return [ours, theirs]


def warm_up(ours: Contestant, theirs: Contestant, queries: dict[int, str]) -> list[str]:
    """Asks each query once of both; answers what was wrong with the lake's answers."""
    wrong = []
    for number, text in queries.items():
        try:
            found = answer_of(rows_of(ours.ask(without_limit(text))))
            expected = answer_of(rows_of(theirs.ask(without_limit(text))))
            if not same(found, expected):
                wrong.append(f"Q{number}: {len(found.rows)} rows against {len(expected.rows)}")
            ours.ask(text)
            theirs.ask(text)
        except Exception as error:  # one query that fails does not end the bench
            ours.failures[number] = f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
            wrong.append(f"Q{number}: {ours.failures[number]}")
    return wrong


def worst(ours: Contestant, theirs: Contestant, queries: dict[int, str]) -> list[str]:
    """The queries that lose most milliseconds to DuckDB."""
    lost = {number: (ours.took(number) or 0.0) - (theirs.took(number) or 0.0) for number in queries}
    names = sorted(queries, key=lambda number: -lost[number])[:WORST]
    return [f"Q{number} +{lost[number] * 1000:.0f} ms ({(ours.took(number) or 0) / (theirs.took(number) or 1):.1f} x)"
            for number in names]


def main(arguments: Sequence[str]) -> int:
    """`python -m tests bench tpcds`: 1 where an answer of the lake is wrong or missing."""
    parser = argparse.ArgumentParser(prog="python -m tests bench tpcds", description="TPC-DS against DuckDB")
    parser.add_argument("--data", type=Path, required=True, help="folder of the files and queries.json")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each query (3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine (2)")
    parser.add_argument("--queries", help="numbers with commas (all)")
    parser.add_argument("--no-save", action="store_true", help="leave results.csv alone")
    options = parser.parse_args(arguments)
    data = options.data.resolve()
    known = {int(number): text for number, text in json.loads((data / "queries.json").read_text()).items()}
    chosen = [int(word) for word in options.queries.split(",")] if options.queries else sorted(known)
    queries = {number: known[number].rstrip().rstrip(";") for number in chosen}
    scratch = Path(tempfile.mkdtemp(prefix="lake-tpcds-"))
    ours, theirs = contestants(data, scratch, options.threads)
    try:
        wrong = warm_up(ours, theirs, queries)
        measure([ours, theirs], queries, options.runs)
    finally:
        ours.close()
        theirs.close()
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"TPC-DS, ms, medians of {options.runs}, {options.threads} threads; x: times what {RIVAL}'s own tables take")
    print(report([ours, theirs], queries))
    print(f"lost most: {', '.join(worst(ours, theirs, queries))}")
    print("\n".join(wrong) or f"answers: all {len(queries)} alike")
    if not options.no_save:
        save(figures([ours, theirs], queries, "tpcds"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
