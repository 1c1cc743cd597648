"""Writes the answers of a door into the transcripts: ``python -m tests.wire.postgres.write PORT``."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.wire.postgres.transcript import play

if __name__ == "__main__":
    for file in sorted(Path(__file__).parent.glob("*.wire")):
        file.write_text(play(int(sys.argv[1]), file.read_text(encoding="utf-8")), encoding="utf-8")
