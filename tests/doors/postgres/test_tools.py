"""Programs around a database: dbt's runs of a small project, pgbench with its own tables and with scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.doors.postgres.conftest import PgNode

PROJECT = Path(__file__).parent / "clients" / "dbt"
# dbt has many dependencies of its own: it is looked for as a program, best in an environment of its own.
DBT = os.environ.get("LAKE_TEST_DBT") or shutil.which("dbt")
DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))
PGBENCH = shutil.which("pgbench") or (str(DEBIAN[-1]) if DEBIAN else None)
SCALE_ROWS = 100_000


@pytest.mark.skipif(
    DBT is None, reason="dbt IS NOT INSTALLED: pip install dbt-core dbt-postgres, and LAKE_TEST_DBT names the program"
)
def test_dbt(pg: PgNode, tmp_path: Path) -> None:
    """Seed, view, table and incremental models, tests, a snapshot that keeps what a value was before."""
    assert DBT is not None
    project = tmp_path / "shop"
    shutil.copytree(PROJECT, project)
    environ = {
        **os.environ, "LAKE_PG_PORT": str(pg.port), "LAKE_PG_DATABASE": pg.node.folder.name,
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }  # fmt: skip

    def build() -> str:
        words = [DBT or "", "--no-use-colors", "build", "--profiles-dir", ".", "--project-dir", "."]
        done = subprocess.run(words, cwd=project, env=environ, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "PASS=10 WARN=0 ERROR=0" in build()
    seed = project / "seeds" / "raw_orders.csv"
    seed.write_text(seed.read_text().replace("2,bob,20.00", "2,bob,25.00") + "5,bob,1.00,2024-01-05\n")
    assert "PASS=10 WARN=0 ERROR=0" in build()
    with psycopg.connect(pg.dsn()) as db:
        rows = db.execute("SELECT customer, orders, amount FROM dbt_shop.customers ORDER BY 1").fetchall()
        assert [(name, count, float(amount)) for name, count, amount in rows] == [
            ("ann", 2, 15.75), ("bob", 2, 26.0), ("cem", 1, 0.0),
        ]  # fmt: skip
        kept = db.execute("SELECT id, amount, dbt_valid_to IS NULL FROM dbt_shop.amounts WHERE id = 2 ORDER BY 3").fetchall()
        assert [(id, float(amount), now) for id, amount, now in kept] == [(2, 20.0, False), (2, 25.0, True)]
        assert db.execute("SELECT count(*) FROM dbt_shop.order_log").fetchone() == (5,)


def pgbench(pg: PgNode, *words: str) -> str:
    """What pgbench prints."""
    assert PGBENCH is not None
    place = ["-h", "127.0.0.1", "-p", str(pg.port), "-U", "admin"]
    done = subprocess.run([PGBENCH, *place, *words, "lake"], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(PGBENCH is None, reason="pgbench IS NOT INSTALLED: apt-get install postgresql-contrib")
def test_pgbench(pg: PgNode, tmp_path: Path) -> None:
    """Its own tables, made and filled by it; its built-in scripts in each mode; a script of one's own."""
    pgbench(pg, "-i", "-I", "dtgv")  # without p: a key belongs to a table's making
    for mode in ("simple", "extended", "prepared"):
        shown = pgbench(pg, "-n", "-S", "-t", "3", "-M", mode)
        assert "number of transactions actually processed: 3/3" in shown
        assert "number of failed transactions: 0" in shown
    shown = pgbench(pg, "-n", "-b", "tpcb-like", "-t", "3", "-M", "prepared", "-c", "2", "--max-tries", "20")
    assert "number of transactions actually processed: 6/6" in shown
    with psycopg.connect(pg.dsn()) as db:
        assert db.execute("SELECT count(*) FROM pgbench_accounts").fetchone() == (SCALE_ROWS,)
        totals = [
            db.execute(f"SELECT sum({letter}balance) FROM pgbench_{table}").fetchone()
            for letter, table in (("a", "accounts"), ("t", "tellers"), ("b", "branches"))
        ]
        assert totals == [db.execute("SELECT sum(delta) FROM pgbench_history").fetchone()] * 3
    script = tmp_path / "own.sql"
    script.write_text("\\set n random(1, 100)\nSELECT count(*) FROM pgbench_tellers WHERE tid <= :n;\n")
    assert "actually processed: 8/8" in pgbench(pg, "-n", "-f", str(script), "-t", "4", "-c", "2", "-j", "2")
