"""`python -m tests` itself, and what the package says of itself."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lake
from tests import __main__ as tests_main
from tests import bench

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [*tests_main.MODULES.values(), "tests.bench.tpch", "tests.bench.doors"])
def test_every_subcommand_has_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A module that is dispatched to takes arguments, and says which."""
    with pytest.raises(SystemExit) as left:
        importlib.import_module(name).main(["--help"])
    assert left.value.code == 0
    assert "python -m tests" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["no-such"], ["bench"], ["bench", "no-such"], ["check", "more"]])
def test_a_wrong_subcommand_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, and what there is."""
    assert tests_main.main(arguments) == 2
    assert "python -m tests" in capsys.readouterr().err


def test_a_failed_check_does_not_stop_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything runs, and the exit status tells."""
    ran: list[str] = []
    monkeypatch.setattr(tests_main, "check", lambda: ran.append("check") or 2)
    monkeypatch.setattr(tests_main, "unit", lambda: ran.append("unit") or 0)
    assert tests_main.main([]) == 1
    assert ran == ["check", "unit"]


def test_the_package_says_one_version_and_ships_its_grammar() -> None:
    """One version in two places; the wheel carries grammars where the parser looks for them."""
    assert PROJECT["project"]["version"] == lake.__version__
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"] == {"grammars": "lake/sql/grammars"}


def test_what_is_imported_is_declared() -> None:
    """Every package that `lake` imports is a dependency, or is asked for only by who has it."""
    named = (word.partition(">")[0].partition("<")[0] for word in PROJECT["project"]["dependencies"])
    declared = {name.strip().lower().replace("-", "_") for name in named}
    optional = {"pandas", "polars", "uvloop"}
    from tests import tidy

    imported = {module.split(".")[0] for source in tidy.of_lake() for _, module in tidy._imports(source.tree)}
    foreign = {name for name in imported if name not in sys.stdlib_module_names and name != "lake"}
    assert foreign - optional <= declared
    for name in declared:
        assert importlib.util.find_spec(name), f"{name} is declared, and is not installed"


def test_the_ci_script_is_bash() -> None:
    """It parses, and may be run."""
    script = ROOT / ".ci" / "run"
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    assert script.stat().st_mode & 0o111


def test_figures_are_written_as_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row of a new file names the columns; a figure has its commit and machine."""
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results.csv")
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    bench.save([bench.Figure("case", "lake", "p50", 1.23456, "ms", 2.0)])
    bench.save([bench.Figure("case", "lake", "rate", 123456.7, "rows/s")])
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert lines[0] == ",".join(bench.COLUMNS)
    assert [line.split(",")[2:8] for line in lines[1:]] == [
        ["case", "lake", "p50", "1.235", "ms", "2.00"], ["case", "lake", "rate", "123457", "rows/s", ""],
    ]
    assert bench.percentile([3, 1, 2], 0.99) == 3
