"""Golden transcripts of the main flows; what the door answers is what the files say.

To write the answers anew after a change that was meant: ``python -m tests.wire.postgres.write PORT``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import free_port, running_node
from tests.wire.postgres.transcript import play

FILES = sorted(Path(__file__).parent.glob("*.wire"))


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a door that is open to everyone."""
    found = free_port()
    with running_node(tmp_path_factory.mktemp("wire") / "lake", "--tier-secs", "0", "--pg", f"127.0.0.1:{found}"):
        yield found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_transcript(port: int, file: Path) -> None:
    """The door answers as recorded."""
    recorded = file.read_text(encoding="utf-8")
    assert play(port, recorded) == recorded
