"""`python -m tests slt`: runs sqllogictest files on the lake, and counts what passed.

    python -m tests slt FOLDER --dialect duckdb              on a lake in this process, a fresh one for each file
    python -m tests slt FILE .. --dialect df --http -v       on a node of its own for each file; failures are shown
    python -m tests slt tests/slt                            our own golden files, record by record

Relative paths in DataFusion's files start at the folder above ``test_files``. A statement that must fail passes with any
error, or with ``--messages`` only with the words of the file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tests import slt
from tests.engines import LakeEngine
from tests.sqllogic.answers import fresh_lake
from tests.sqllogic.file import Counted, FileRun, Options, Skipped

SUFFIXES: Final = (".slt", ".test")


@dataclass
class Total:
    """What a run of many files counted."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    files: list[dict[str, object]] = field(default_factory=list)

    def add(self, path: Path, counted: Counted, secs: float) -> None:
        """Adds a file and prints its line."""
        self.passed += counted.passed
        self.failed += len(counted.failures)
        self.skipped += counted.skipped
        failures = [asdict(failure) for failure in counted.failures]
        self.files.append({"file": str(path), "passed": counted.passed, "skipped": counted.skipped, "failures": failures})
        why = f"  [{counted.why}]" if counted.why else ""
        print(
            f"{counted.passed:6} passed {len(failures):5} failed {counted.skipped:5} skipped {secs:7.2f} s  {path}{why}",
            flush=True,
        )


def find(paths: Sequence[Path], only: str) -> list[Path]:
    """The files named, and those under the folders named, whose path holds the pattern."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES) if path.is_dir() else [path]
        found += [file.resolve() for file in inside if re.search(only, str(file))]
    return found


def run_golden(path: Path) -> Counted:
    """Runs one of our own golden files, on after a record that fails."""
    counted = Counted()
    engine = LakeEngine()
    labels: dict[str, list[str]] = {}
    try:
        for place, record in slt.flat(path):
            if not record.runs_on(engine.name):
                counted.skipped += 1
            elif record.kind == "restart":
                engine.restart()
            elif record.kind == "halt":
                break
            else:
                try:
                    slt.check(record, engine, labels)
                    counted.passed += 1
                except slt.Mismatch as wrong:
                    counted.fail(record.line, record.sql, f"{place.name}: {wrong}")
    finally:
        engine.close()
    return counted


def run_file(path: Path, options: Options) -> Counted:
    """Runs a file on a fresh lake."""
    if options.dialect == "lake":
        return run_golden(path)
    counted = Counted()
    try:
        steps = FileRun(path, options, counted)
        with fresh_lake(over_http=options.over_http) as lake:
            steps.run(lake)
    except Skipped as skipped:
        counted.why = str(skipped)
    return counted


def excluded(path: Path | None) -> dict[str, frozenset[int]]:
    """Lines of records to leave out by the end of their file's path, from a JSON list of ``path:line``."""
    found: dict[str, set[int]] = {}
    for entry in json.loads(path.read_text()) if path else ():
        name, _, line = entry.rpartition(":")
        found.setdefault(name, set()).add(int(line))
    return {name: frozenset(lines) for name, lines in found.items()}


def arguments_of(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests slt", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder of .slt and .test files")
    parser.add_argument("--dialect", choices=("lake", "df", "duckdb", "sqlite"), default="lake", help="of the files (lake)")
    parser.add_argument("--http", action="store_true", help="over HTTP, on nodes started for the run")
    parser.add_argument("--only", default="", metavar="PATTERN", help="files whose path holds this pattern")
    parser.add_argument("--exclude", type=Path, metavar="FILE", help="a JSON list of path:line of records to leave out")
    parser.add_argument("--root", type=Path, help="where relative paths in DataFusion's files start")
    parser.add_argument("--no-explain", action="store_true", help="leave EXPLAIN out")
    parser.add_argument("--messages", action="store_true", help="errors must have the words of the file")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds a statement may take (60)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes what failed as JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="show each failure")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """`python -m tests slt`: 1 where a record failed, 2 where there is no file."""
    wanted = arguments_of(arguments)
    if wanted.http and wanted.dialect == "lake":
        print("golden files run in this process", file=sys.stderr)
        return 2
    options = Options(
        wanted.dialect, wanted.http, excluded(wanted.exclude), wanted.root, wanted.no_explain, wanted.messages, wanted.timeout,
    )
    total = Total()
    files = find(wanted.paths, wanted.only)
    for path in files:
        began = time.monotonic()
        counted = run_file(path, options)
        if wanted.verbose:
            for failure in counted.failures:
                print(f"--- {path}:{failure.line}\n{failure.sql}\n    {failure.why}")
        total.add(path, counted, time.monotonic() - began)
    if wanted.json:
        wanted.json.write_text(json.dumps(total.files))
    ran = total.passed + total.failed
    share = f"{100 * total.passed / ran:.2f} % of {ran} records passed" if ran else "no record ran"
    print(f"{len(files)} files: {total.passed} passed, {total.failed} failed, {total.skipped} skipped; {share}")
    return 2 if not files else 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
