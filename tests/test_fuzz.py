"""A few of the inputs that ``python -m tests fuzz`` makes many of."""

from __future__ import annotations

import pytest

from tests.fuzz import main


def test_bad_input_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    """Every one gets a status and a code, and the node goes on. HTTP Limits 2."""
    status = main(["--count", "400", "--seed", "7"])
    assert status == 0, capsys.readouterr().out


def test_bad_input_at_the_postgres_door(capsys: pytest.CaptureFixture[str]) -> None:
    """Every conversation is answered by the protocol or ended, and the node goes on."""
    status = main(["--door", "pg", "--count", "200", "--seed", "7"])
    assert status == 0, capsys.readouterr().out
