"""`python -m tests`: every check and every test, from one place.

    python -m tests                        ruff, mypy, tidy, then pytest; all run, and any failure is one at the end
    python -m tests check                  the static checks alone
    python -m tests unit [ARGS ..]         pytest alone, with its own arguments
    python -m tests update PATH ..         rewrites the expected answers of .slt files; then read the diff
    python -m tests slt PATH .. --dialect df   sqllogictest files of other engines; tests/sqllogic tells more
    python -m tests pg [ARGS ..]           the .slt files on Postgres and on the lake, compared
    python -m tests random --count 5000    random SELECTs on the lake and on Postgres, compared
    python -m tests random --friendly      random queries in DuckDB's friendly forms on the lake and on DuckDB, compared
    python -m tests props --count 2000     laws that random queries keep: cut in three, without rules, in small pieces
    python -m tests bench tpch --scale 1   a bench of tests/bench, by name
    python -m tests crash --runs 200       kills a writing process, and looks whether what it acknowledged is there
    python -m tests model --runs 2000      random statements against a plain model of tables, now and in the past
    python -m tests isolation              transactions of many sessions at once, and a checker of what they saw
    python -m tests leaks --count 20000    random queries of a user with partial grants, beside a lake that has no more
    python -m tests tpch --scale 0.1       the answers of TPC-H with rows in files and in the tail, over HTTP and the program
    python -m tests tpcds --data FOLDER    TPC-DS on the lake and on DuckDB, compared
    python -m tests functions --file FILE  a catalogue of functions against what each engine answered
    python -m tests fuzz --count 50000     bad input at every door
    python -m tests openapi --tool PROGRAM   requests made by schemathesis of the description of the HTTP door
    python -m tests rules                  the rules of tables and of HTTP in the specification, and how many cases name each

The last line of the default run is pytest's own.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

# Subcommands that are modules of their own: each has `main(arguments) -> exit status`, with its own `--help`.
MODULES: Final = {
    "random": "tests.random_sql",
    "props": "tests.props.laws",
    "crash": "tests.crash.run",
    "model": "tests.model",
    "isolation": "tests.isolation",
    "rules": "tests.rules",
    "fuzz": "tests.fuzz",
    "leaks": "tests.leaks",
    "openapi": "tests.openapi",
    "tpch": "tests.tpch_places",
    "tpcds": "tests.tpcds",
    "update": "tests.slt",
    "slt": "tests.sqllogic.run",
    "functions": "tests.functions_tsv",
}


def run(*command: str) -> int:
    """The exit status of a command run in the repository."""
    print("$", " ".join(command).replace(sys.executable, "python"), flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def check() -> int:
    """The number of static checks that fail: ruff, mypy, tidy; all of them run."""
    from tests import tidy

    failures = 0
    failures += run(sys.executable, "-m", "ruff", "check", ".") != 0
    failures += run(sys.executable, "-m", "mypy") != 0
    print("$ tidy", flush=True)
    failures += tidy.main() != 0
    return failures


def unit(arguments: Sequence[str] = ()) -> int:
    """The exit status of pytest; its output comes last."""
    return run(sys.executable, "-m", "pytest", *arguments)


def everything() -> int:
    """The static checks, then the tests; not 0 when any of them failed."""
    failures = check()
    if failures:
        print(f"static checks: {failures} failed (see above); the tests run all the same", flush=True)
    status = unit()
    return status or (1 if failures else 0)


def dispatch(command: str, arguments: Sequence[str]) -> int:
    """The exit status of the module that a subcommand names."""
    name = MODULES.get(command, "")
    if command == "random" and "--friendly" in arguments:
        name, arguments = "tests.friendly.run", [item for item in arguments if item != "--friendly"]
    if command == "bench":
        known = sorted(path.stem for path in (ROOT / "tests" / "bench").glob("*.py") if not path.stem.startswith("_"))
        if not arguments or arguments[0] not in known:
            print(f"python -m tests bench NAME, one of: {', '.join(known)}", file=sys.stderr)
            return 2
        name, arguments = f"tests.bench.{arguments[0]}", arguments[1:]
    if importlib.util.find_spec(name) is None:
        print(f"python -m tests {command}: there is no {name.replace('.', '/')}.py", file=sys.stderr)
        return 2
    main: Callable[[Sequence[str]], int] = importlib.import_module(name).main
    return main(arguments)


def main(arguments: Sequence[str]) -> int:
    """The exit status of a subcommand, or of everything without one."""
    match list(arguments):
        case []:
            return everything()
        case ["check"]:
            return 1 if check() else 0
        case ["unit", *rest]:
            return unit(rest)
        case ["pg", *rest]:
            return unit(["tests/pg", *rest])
        case [command, *rest] if command in MODULES or command == "bench":
            return dispatch(command, rest)
        case ["-h" | "--help" | "help", *_]:
            print(__doc__)
            return 0
        case [command, *_]:
            print(f"python -m tests: no subcommand {command!r}\n\n{__doc__}", file=sys.stderr)
            return 2
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
