"""Drivers of other languages: pgjdbc and node-postgres, each by a program of its own in ``clients``."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.doors.postgres.conftest import PgNode

CLIENTS = Path(__file__).parent / "clients"
JAVA, NODE = shutil.which("java"), shutil.which("node")
JARS = [Path(path) for path in (os.environ.get("LAKE_TEST_PGJDBC", ""), "/usr/share/java/postgresql.jar") if path]
JAR = next((path for path in JARS if path.exists()), None)
# npm installs a package nowhere in general: its folder is named, or `npm install pg` was run in the home folder.
MODULES = [Path(os.environ.get("LAKE_TEST_NODE_MODULES", "")), Path.home() / "node_modules", Path("/usr/lib/node_modules")]
MODULE = next((path for path in MODULES if (path / "pg").is_dir()), None)


def run(*words: str, environ: Mapping[str, str] | None = None) -> str:
    """What a client's program prints; it tells of each check, and its last line counts them."""
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, **(environ or {})}
    )
    failed = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    assert done.returncode == 0, "\n".join(failed) + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.skipif(
    JAVA is None or JAR is None,
    reason="pgjdbc IS NOT INSTALLED: apt-get install default-jdk-headless libpostgresql-jdbc-java",
)
def test_pgjdbc(pg: PgNode) -> None:
    """Statements, both formats, fetch size, batches, generated keys, COPY, metadata, updatable rows, cancel."""
    assert JAVA is not None
    url = f"jdbc:postgresql://127.0.0.1:{pg.port}/lake?user=admin"
    last = run(JAVA, "-cp", str(JAR), str(CLIENTS / "Client.java"), url)
    assert last.startswith("18 passed, 0 failed, pgjdbc 42.")


@pytest.mark.skipif(
    NODE is None or MODULE is None,
    reason="node-postgres IS NOT INSTALLED: npm install pg, and LAKE_TEST_NODE_MODULES names its node_modules",
)
def test_node_postgres(pg: PgNode) -> None:
    """Simple and extended queries, types in both formats, row limits, a pool, transactions, errors, notices."""
    assert NODE is not None
    url = f"postgres://admin@127.0.0.1:{pg.port}/lake"
    last = run(NODE, str(CLIENTS / "client.js"), url, environ={"NODE_PATH": str(MODULE)})
    assert last.startswith("13 passed, 0 failed, node-postgres 8.")
