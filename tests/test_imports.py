"""What the program imports before its answer: nothing that a small statement can do without."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import lake
from lake.late import late_pattern

MODULES_MAX: Final = 272
"""Of the lake's own for SELECT 1; a module more takes half a millisecond."""

HELP_NEEDS_NO: Final = (
    "numpy",
    "pyarrow",
    "lark",
    "asyncio",
    "ssl",
    "http.client",
    "lake.embedded",
    "lake.sql",
    "lake.storage",
)
STATEMENT_NEEDS_NO: Final = (
    "numba", "llvmlite", "pandas", "lark", "aiohttp", "asyncio", "cryptography", "http.client", "ssl", "pyarrow.parquet", "pyarrow._compute_docstrings", "prompt_toolkit",
    "pygments", "python_calamine", "lake.client", "lake.net", "lake.doors.postgres", "lake.exec.lower_joins",
    "lake.exec.lower_breakers", "lake.exec.functions.strings", "lake.exec.functions.aggregates", "lake.db.functions.ai",
    "lake.db.statements.dml", "lake.db.system.pg_catalog",
)  # fmt: skip


def imported(*words: str) -> set[str]:
    """The modules that the program has imported when it ends."""
    text = (
        "import atexit, json, sys; atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr)); "
        f"sys.argv = {['lake', *words]!r}; from lake.__main__ import run; sys.exit(run())"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stderr.splitlines()[-1]))


def found(modules: set[str], names: tuple[str, ...]) -> list[str]:
    """Which of the packages or modules are there."""
    return [name for name in names if name in modules]


def test_help_imports_little() -> None:
    """The program's help needs the table of settings, and no engine."""
    assert found(imported("--help"), HELP_NEEDS_NO) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one table."""
    path = tmp_path_factory.mktemp("imports") / "lake"
    with lake.open(path) as database:
        database.sql("CREATE TABLE t AS SELECT 1 AS a")
    return path


def test_functions_of_arrow_are_imported_when_one_is_called(folder: Path) -> None:
    """An answer that needs one of pyarrow's functions is right, and has imported them."""
    assert "pyarrow._compute_docstrings" in imported(
        "sql", str(folder), "SELECT count(*) FROM t WHERE a BETWEEN 1 AND 3 AND a IS NOT DISTINCT FROM 1"
    )


def test_a_small_statement_imports_little(folder: Path) -> None:
    """SELECT 1 needs no compiler, no door, no function and nothing that writes."""
    modules = imported("sql", str(folder), "SELECT 1")
    assert found(modules, STATEMENT_NEEDS_NO) == []
    assert sum(name.startswith("lake.") for name in modules) <= MODULES_MAX


def test_a_table_is_read_without_the_compiler(folder: Path) -> None:
    """Few rows are counted and filtered without Numba, and without pandas, which pyarrow would import where it is."""
    modules = imported("sql", str(folder), "SELECT count(*) FROM t WHERE a > 0")
    assert found(modules, ("numba", "pandas", "lark", "aiohttp", "lake.exec.lower_joins")) == []


def test_a_pattern_is_compiled_when_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that nobody asks costs nothing; one that is asked answers as any other, and is compiled once."""
    texts: list[str] = []
    compile = re.compile
    monkeypatch.setattr(re, "compile", lambda text, flags=0: texts.append(text) or compile(text, flags))
    number = late_pattern("([a-z])([0-9]+)", re.IGNORECASE)
    assert texts == []
    found = [number.fullmatch(text) for text in ("X12", "12")]
    assert [match and match[2] for match in found] == ["12", None]
    assert texts == ["([a-z])([0-9]+)"]


def test_the_program_ends_as_python_would() -> None:
    """What was written goes out, threads are waited for and exit functions called, and the status is the program's."""
    text = (
        "import atexit, threading, time; from lake.__main__ import leave; atexit.register(lambda: print('at exit')); "
        "threading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start(); print('main', end=' '); leave(3)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (3, "main thread\nat exit\n", "")
