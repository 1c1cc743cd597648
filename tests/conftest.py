"""Fixtures that every test may ask for, and what is said of tests that could not run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pg.server import Missing, Server

NO_POSTGRES = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[str]:
    """What libpq connects with, to a Postgres of this run; without one the test is skipped, or fails under CI."""
    try:
        server = Server()
    except Missing as missing:
        request.config.stash[NO_POSTGRES] = str(missing)
        if os.environ.get("CI"):
            pytest.fail(f"differential tests need a Postgres: {missing}")
        pytest.skip(f"no Postgres: {missing}")
    yield server.conninfo
    server.stop()


@pytest.fixture
def lake_folder(tmp_path: Path) -> Path:
    """A folder for a lake of the test's own."""
    return tmp_path / "lake"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says loudly, before the last line, that tests did not run for want of a Postgres."""
    reason = config.stash.get(NO_POSTGRES, None)
    if reason:
        skipped = sum("no Postgres" in str(report.longrepr) for report in terminalreporter.stats.get("skipped", []))
        terminalreporter.write_sep("!", f"{skipped} differential tests did NOT run: {reason}", red=True)
