"""The throwaway Postgres itself: found or carried by its wheel, it starts, sorts by bytes, and goes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import psycopg
import pytest

from tests.pg import server


def ask(conninfo: str, text: str) -> list[tuple[object, ...]]:
    """The rows of a query."""
    with psycopg.connect(conninfo) as connection:
        return connection.execute(text.encode()).fetchall()


def test_it_sorts_text_by_bytes(postgres: str) -> None:
    """Upper case stands before lower case, as in the lake."""
    assert ask(postgres, "SELECT x FROM (VALUES ('a'), ('B'), ('é'), ('b')) t(x) ORDER BY x") == [
        ("B",), ("a",), ("b",), ("é",),
    ]


@pytest.mark.skipif(importlib.util.find_spec("pgserver") is None, reason="no pgserver wheel for this Python")
def test_the_wheel_serves_where_the_machine_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing on PATH and nothing in the usual folders, the wheel's Postgres runs, also as root."""
    monkeypatch.setattr(server.shutil, "which", lambda name: None)
    monkeypatch.setattr(server, "DEBIAN", Path("/nowhere"))
    started = server.Server()
    folder = Path(re.search(r"host=(\S+)", started.conninfo)[1])  # type: ignore[index]
    try:
        assert ask(started.conninfo, "SELECT 1") == [(1,)]
    finally:
        started.stop()
    assert not folder.exists()
