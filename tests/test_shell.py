"""The shell: statements over lines, completion, dot commands, scripts, errors with their place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lake
from lake.errors import LakeError, UndefinedColumn
from lake.shell import COMMANDS, HELP, Names, Shell, explain_error, is_complete, split_statements
from tests.cluster import ROOT


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True), ("SELECT 1", False), ("SELECT ';", False), ("SELECT ';';", True), ("-- x;", False),
        ("/* ; ", False), ("SELECT 1 -- x;", False), ("SELECT $$;$$", False), ("SELECT 1; SELECT 2;", True),
        ("selec 1;", True), ('SELECT "a;', False), ("", False),
    ],
)  # fmt: skip
def test_a_statement_ends_with_its_semicolon(text: str, complete: bool) -> None:
    """Not with one inside a text, a name or a comment; a statement that is wrong is run, to be told so."""
    assert is_complete(text) == complete


def test_statements_are_split() -> None:
    """Each statement's own text; what does not parse stays whole."""
    assert split_statements("SELECT 1; SELECT ';' ;") == ["SELECT 1", "SELECT ';'"]
    assert split_statements("SELECT 1; selec 2") == ["SELECT 1; selec 2"]


def test_errors_show_their_place() -> None:
    """The line, and a caret under the place."""
    error = UndefinedColumn('column "nme" does not exist', position=13, hint='did you mean "name"?')
    assert explain_error(error, "SELECT id,\n nme FROM t").splitlines() == [
        'error: column "nme" does not exist (42703)', "LINE 2:  nme FROM t", "         ^", 'hint: did you mean "name"?',
    ]  # fmt: skip
    assert explain_error(LakeError("x"), "SELECT 1") == "error: x (XX000)"


def test_completion(lake_folder: Path) -> None:
    """Tables, columns, functions and keywords in the case that was begun; what exists is asked once a prompt."""
    with lake.open(lake_folder) as db:
        db.sql("CREATE TABLE people (id INT, person VARCHAR)")
        names = Names(db)
        assert names.candidates("peo") == ["people"]
        assert names.candidates("pe")[:2] == ["people", "person"]
        assert names.candidates("people.")[:2] == ["people.id", "people.person"]
        assert "p.person" in names.candidates("p.pe"), "p may be an alias"
        assert "SELECT" in names.candidates("SEL") and "select" in names.candidates("sel")
        assert "count" in names.candidates("coun")
        assert names.candidates("") == [] and names.candidates("no_such_name") == []
        db.sql("CREATE TABLE peonies (x INT)")
        assert names.candidates("peo") == ["people"]
        names.forget()
        assert names.candidates("peo") == ["peonies", "people"]


SCRIPT = """\
CREATE TABLE t (a INT,
  b VARCHAR);
INSERT INTO t VALUES (1, 'one;'), (2, 'two'); SELECT * FROM t ORDER BY a;
.format csv
SELECT b FROM t
  ORDER BY a;
.nonsense
SELECT nope FROM t;
.tables
.read {file}
SELECT 'no semicolon' AS last"""


def test_a_script_is_run_to_its_end(lake_folder: Path, tmp_path: Path) -> None:
    """Input that is no terminal: errors go to standard error, and the next statement runs; the status tells."""
    (tmp_path / "more.sql").write_text("SELECT 'from a file' AS more;")
    done = subprocess.run(
        [sys.executable, "-m", "lake", str(lake_folder)], cwd=ROOT, input=SCRIPT.format(file=tmp_path / "more.sql"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        '{"table": "t", "publish": null}', '{"rows": 2}', "+---+------+", "| a | b    |", "+---+------+", "| 1 | one; |",
        "| 2 | two  |", "+---+------+", "(2 rows)", "b", "one;", "two", "schema,name,kind,rows",
        "public,t,table,2", "more", "from a file", "last", "no semicolon",
    ]  # fmt: skip
    assert "no command .nonsense" in done.stderr and "LINE 1: SELECT nope FROM t" in done.stderr
    assert done.returncode == 1


def test_dot_commands(lake_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each does what .help says, and .quit leaves."""
    with lake.open(lake_folder) as db:
        db.sql("CREATE TABLE t (a INT NOT NULL)")
        shell = Shell(db, "demo")
        assert all(name in HELP for name in COMMANDS)
        assert shell.run_dot(".schema t")
        assert "| t          | a           | INT       | NO          |" in capsys.readouterr().out
        assert shell.run_dot(".timing off") and not shell.timing
        assert shell.run_dot(".help") and ".quit" in capsys.readouterr().out
        assert shell.run_dot(".format nonsense") and shell.format == "table"
        assert shell.run_dot(".read no-such-file") and "no-such-file" in capsys.readouterr().err
        assert not shell.run_dot(".quit") and not shell.run_dot("\\q")


def test_a_long_answer_is_cut(lake_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table shows its first rows, and says so."""
    with lake.open(lake_folder) as db:
        Shell(db, "demo").run_statement("SELECT * FROM range(0, 5000) AS r(i)")
    assert "the first 1000 of 5000 rows" in capsys.readouterr().out
