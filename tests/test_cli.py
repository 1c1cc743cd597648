"""The program: `lake sql` in all its forms, exit status, and who leads a lake meanwhile."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lake
from lake.cli import main
from lake.errors import NotLeading
from tests.cluster import ROOT, Node, free_port, running_node

FEW = "CREATE TABLE t (a INT, b VARCHAR); INSERT INTO t VALUES (1, 'x'), (2, NULL)"


def run(*words: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    command = [sys.executable, "-m", "lake", *words]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LAKE_")}
    return subprocess.run(command, cwd=ROOT, input=input, capture_output=True, text=True, check=False, env=environ)


def test_a_query_prints_a_table(lake_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A write prints its JSON, a query its table; the status is 0, and a second process goes on at once."""
    assert main(["sql", str(lake_folder), FEW]) == 0
    assert capfd.readouterr().out == '{"rows": 2}\n'
    found = run("sql", str(lake_folder), "SELECT * FROM t ORDER BY a")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == "+---+------+\n| a | b    |\n+---+------+\n| 1 | x    |\n| 2 | NULL |\n+---+------+\n(2 rows)\n"


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("json", '[{"a":1,"b":"x"},{"a":2}]\n'), ("ndjson", '{"a":1,"b":"x"}\n{"a":2}\n'), ("csv", "a,b\n1,x\n2,\n"),
        ("tsv", "a\tb\n1\tx\n2\t\n"),
    ],
)  # fmt: skip
def test_formats(lake_folder: Path, capfd: pytest.CaptureFixture[str], format: str, expected: str) -> None:
    """--format says how a query's rows are written."""
    main(["sql", str(lake_folder), FEW])
    capfd.readouterr()
    assert main(["sql", "--format", format, "--dir", str(lake_folder), "SELECT * FROM t ORDER BY a"]) == 0
    assert capfd.readouterr().out == expected


def test_arrow_to_standard_output(lake_folder: Path) -> None:
    """Bytes go out as they are."""
    found = subprocess.run(
        [sys.executable, "-m", "lake", "sql", str(lake_folder), "--format", "arrow", "SELECT 1 AS one"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    assert pa.ipc.open_stream(io.BytesIO(found.stdout)).read_all().to_pydict() == {"one": [1]}


def test_an_error_is_told_with_its_place(lake_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Status 1, and the error on standard error; 2 where the command line is wrong."""
    assert main(["sql", str(lake_folder), "SELECT nope"]) == 1
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.splitlines()[0] == 'error: column "nope" does not exist (42703)'
    assert told.err.splitlines()[1:3] == ["LINE 1: SELECT nope", "               ^"]
    assert main(["sql", str(lake_folder), "SELECT FROM FROM x"]) == 1
    assert "^" in capfd.readouterr().err
    assert main(["sql"]) == 2
    assert main(["serve"]) == 2
    with pytest.raises(SystemExit) as left:
        main(["sql", "--format", "nonsense", "x"])
    assert left.value.code == 2


def test_scripts(lake_folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """-f FILE and standard input; the last statement's answer is printed."""
    script = tmp_path / "few.sql"
    script.write_text(f"-- a comment\n{FEW};\nSELECT count(*) AS n FROM t;\n")
    assert main(["sql", str(lake_folder), "-f", str(script), "--format", "csv"]) == 0
    assert capfd.readouterr().out == "n\n2\n"
    assert main(["sql", str(lake_folder), "-f", str(tmp_path / "no-such.sql")]) == 2
    piped = run("sql", str(lake_folder), "--format", "csv", input="SELECT sum(a) AS s FROM t")
    assert piped.stdout == "s\n3\n"


def test_help_and_version() -> None:
    """Every flag of serve is listed, those without effect as such; --help takes no engine."""
    told = run("serve", "--help")
    assert told.returncode == 0 and "--tier-secs" in told.stdout and "(not used yet)" in told.stdout
    assert run("--version").stdout == f"lake {lake.__version__}\n"
    loaded = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "lake", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "pyarrow" not in loaded.stderr and "numba" not in loaded.stderr


def test_through_the_node_that_serves(lake_folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`lake sql LAKE` goes through the node that serves the lake, which keeps its lead; files are read as its owner."""
    (tmp_path / "few.csv").write_text("a,b\n7,seven\n")
    environ = {"LAKE_CONFIG_DIR": str(tmp_path / "settings")}
    with running_node(lake_folder, environ=environ) as node, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKE_CONFIG_DIR", environ["LAKE_CONFIG_DIR"])
        term = node.wire().send("GET", "/stats").json()["term"]
        assert main(["sql", str(lake_folder), f"CREATE TABLE t AS SELECT * FROM '{tmp_path}/few.csv'"]) == 0
        assert main(["sql", "--url", node.url, "SELECT * FROM t", "--format", "csv"]) == 0
        assert capfd.readouterr().out.splitlines()[-1] == "7,seven"
        assert node.wire().send("GET", "/stats").json()["term"] == term
        assert main(["sql", "--url", node.url, f"SELECT * FROM '{tmp_path}/few.csv'"]) == 1, "an address alone is no owner"
        assert "(42501)" in capfd.readouterr().err
        second = run("serve", str(lake_folder), "--addr", "127.0.0.1:0")
        assert second.returncode == 1 and "57P03" in second.stderr
        node.kill()
        assert main(["sql", str(lake_folder), "INSERT INTO t VALUES (8, 'eight')"]) == 0, "a node that was killed is gone"
    assert main(["sql", str(lake_folder), "SELECT sum(a) AS s FROM t", "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "15"


def test_a_lake_that_a_program_has_open(lake_folder: Path) -> None:
    """Another process may read it and may not take it away; connections of one process share it."""
    with lake.open(lake_folder) as one, lake.open(lake_folder) as two:
        one.sql(FEW)
        assert two.sql("SELECT count(*) FROM t").item() == 2
        assert run("sql", str(lake_folder), "SELECT count(*) AS n FROM t", "--format", "csv").stdout == "n\n2\n"
        refused = run("sql", str(lake_folder), "INSERT INTO t VALUES (3, NULL)")
        assert refused.returncode == 1 and f"process {os.getpid()} " in refused.stderr and "(57P03)" in refused.stderr
        one.sql("INSERT INTO t VALUES (3, NULL)")
    assert run("sql", str(lake_folder), "INSERT INTO t VALUES (4, NULL)").stdout == '{"rows": 1}\n'


def test_a_reader_follows_a_writer(lake_folder: Path) -> None:
    """A connection that only reads sees what another process has written since it was opened."""
    run("sql", str(lake_folder), FEW)
    with lake.open(lake_folder) as db:
        assert db.sql("SELECT count(*) FROM t").item() == 2
        assert run("sql", str(lake_folder), "INSERT INTO t VALUES (3, NULL)").returncode == 0
        assert db.sql("SELECT count(*) FROM t").item() == 3
        db.sql("INSERT INTO t VALUES (4, NULL)")
        with pytest.raises(NotLeading):
            from lake.db.hold import Hold

            Hold.take(str(lake_folder))


def test_what_serve_refuses(lake_folder: Path) -> None:
    """An address that is none, and a port that is taken: one line, status 1."""
    wrong = run("serve", str(lake_folder), "--addr", "nonsense")
    assert (wrong.returncode, wrong.stderr.splitlines()[0]) == (1, "error: --addr is HOST:PORT, not 'nonsense' (22023)")
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = run("serve", str(lake_folder), "--addr", f"127.0.0.1:{port}")
    assert found.returncode == 1 and "cannot listen" in found.stderr and "Traceback" not in found.stderr
    nobody = run("sql", "--url", f"http://127.0.0.1:{free_port()}", "SELECT 1")
    assert nobody.returncode == 1 and "(58030)" in nobody.stderr


def test_stopping(lake_folder: Path) -> None:
    """SIGTERM hands the lake over, and what was written is there."""
    with running_node(lake_folder) as node:
        node.sql(FEW)
    assert node.process.returncode == 0
    assert "stopping" in node.output()
    restarted: Node
    with running_node(lake_folder) as restarted:
        assert restarted.sql("SELECT count(*) AS n FROM t") == [{"n": 2}]
