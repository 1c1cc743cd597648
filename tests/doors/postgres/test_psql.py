"""psql: its commands about the catalog, \\copy, \\timing, and errors with their caret."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.doors.postgres.conftest import PgNode

PSQL = shutil.which("psql")
pytestmark = pytest.mark.skipif(PSQL is None, reason="psql IS NOT INSTALLED: the door is not tried with it")


def psql(pg: PgNode, *commands: str, folder: Path | None = None) -> str:
    """What psql prints for commands run one after another."""
    assert PSQL is not None
    words = [word for command in commands for word in ("-c", command)]
    done = subprocess.run(
        [PSQL, "-X", "-P", "pager=off", pg.dsn(), *words], cwd=folder, capture_output=True, text=True, timeout=60
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module", autouse=True)
def tables(pg: PgNode) -> None:
    """A table with everything that \\d shows, and a view."""
    psql(
        pg,
        "CREATE TABLE shop (id INT NOT NULL, name TEXT DEFAULT 'x', price DECIMAL(10,2), CHECK (id > 0))",
        "INSERT INTO shop VALUES (1, 'a', 1.5), (2, NULL, NULL)",
        "CREATE VIEW cheap AS SELECT id, name FROM shop WHERE price < 2",
    )


def test_describe_a_table(pg: PgNode) -> None:
    r"""\d table: columns, types, NOT NULL, defaults, rules."""
    shown = psql(pg, r"\d shop")
    assert 'Table "public.shop"' in shown
    assert "id     | integer       |           | not null |" in shown
    assert "name   | text          |           |          | 'x'" in shown
    assert "price  | numeric(10,2) |" in shown
    assert 'Check constraints:\n    "shop_check" CHECK (id > 0)' in shown


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (r"\d", "public | cheap"),
        (r"\dt", "public | shop"),
        (r"\dv", "public | cheap"),
        (r"\d cheap", 'View "public.cheap"'),
        (r"\dn", "public | admin"),
        (r"\l", "UTF8"),
        (r"\du", "Superuser"),
        (r"\df lower", "pg_catalog | lower"),
        (r"\d pg_class", 'Table "pg_catalog.pg_class"'),
        (r"\di nothing", "Did not find any relation"),
        (r"\conninfo", "You are connected to database"),
        (r"\encoding", "UTF8"),
    ],
)
def test_commands(pg: PgNode, command: str, expected: str) -> None:
    """Each command's queries are answered."""
    shown = psql(pg, command)
    assert "ERROR" not in shown
    assert expected in shown


def test_copy_and_timing(pg: PgNode, tmp_path: Path) -> None:
    r"""\copy from and to a file of the client."""
    (tmp_path / "in.csv").write_text("id,name,price\n7,seven,7.25\n8,,\n")
    take = r"\copy shop from 'in.csv' csv header"
    give = r"\copy (select * from shop where id > 6 order by id) to 'out.csv' csv"
    shown = psql(pg, take, give, folder=tmp_path)
    assert shown == "COPY 2\nCOPY 2\n"
    assert (tmp_path / "out.csv").read_text() == "7,seven,7.25\n8,,\n"


def test_an_error_has_its_caret(pg: PgNode) -> None:
    """The position counts characters of the whole text."""
    shown = psql(pg, "SELECT 'é', nope FROM shop")
    assert shown.endswith("LINE 1: SELECT 'é', nope FROM shop\n                    ^\n")
