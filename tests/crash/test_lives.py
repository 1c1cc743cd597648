"""A few of the lives that ``python -m tests crash`` makes many of."""

from __future__ import annotations

import pytest

from tests.crash.run import main


def test_what_was_acknowledged_survives(capsys: pytest.CaptureFixture[str]) -> None:
    """Six kills of two lakes, at named points and at random instants."""
    status = main(["--runs", "6", "--seed", "7", "--point-secs", "2"])
    assert status == 0, capsys.readouterr().out
