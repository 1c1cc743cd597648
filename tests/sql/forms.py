"""Forms of the dialect, one a line in ``expressions.txt`` and ``statements.txt``: the corpus of the parser and unparse."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent
EXPRESSIONS = (_FOLDER / "expressions.txt").read_text(encoding="utf-8").splitlines()
STATEMENTS = (_FOLDER / "statements.txt").read_text(encoding="utf-8").splitlines()
