"""What every builder shares: the text being read, names, lists, and failures that know their place."""

from __future__ import annotations

from typing import Any

from lake.errors import FeatureNotSupported, SyntaxFailure
from lake.sql import ast
from lake.sql.lexer import point_at


class BaseBuild:
    """The state of one run of the parser, and the rules of ``terms.lark``.

    text   the whole text
    start  and ``end``: the 0-based characters of the rule at hand; the parser sets them, and gives the node that a builder
           answers their span
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.start = 0
        self.end = 0
        self.question_marks = 0
        self.grouped_nodes: dict[int, ast.Node] = {}
        self.into: list[tuple[ast.Select, ast.Name]] = []

    def _words(self) -> str:
        """The text of the rule at hand."""
        return self.text[self.start : self.end]

    def _failure(self, message: str) -> SyntaxFailure:
        """42601 at the rule at hand, for what the grammar cannot say."""
        return SyntaxFailure(message, detail=point_at(self.text, self.start), position=self.start + 1)

    def _clauses(self, clauses: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        """The clauses together.

        42601  one is written twice
        """
        made: dict[str, Any] = {}
        for key, value in (pair for clause in clauses for pair in clause.items()):
            if key == "options":
                made["options"] = (*made.get("options", ()), *value)
            elif key in made:
                raise self._failure(f"{key} is written twice")
            else:
                made[key] = value
        return made

    def _if_taken(self, before: object, if_not_exists: object, *, can_alter: bool = False) -> ast.IfTaken:
        """What OR REPLACE, OR ALTER and IF NOT EXISTS say.

        42601  several of them      0A000  OR ALTER of another kind of object
        """
        if before and if_not_exists:
            raise self._failure(f"{str(before).upper()} and IF NOT EXISTS do not go together")
        if before == "or alter":
            if not can_alter:
                raise FeatureNotSupported("CREATE OR ALTER is for tables and views", position=self.start + 1)
            return ast.IfTaken.ALTER
        if before:
            return ast.IfTaken.REPLACE
        return ast.IfTaken.KEEP if if_not_exists else ast.IfTaken.FAIL

    def nothing(self) -> None:
        """An optional part that is not there."""
        return

    def path(self, name: str) -> ast.Name:
        """``a``."""
        return ast.Name((name,))

    def longer_path(self, path: ast.Name, label: str) -> ast.Name:
        """``a.b``."""
        return ast.Name((*path.parts, label))

    def names(self, *names: str) -> tuple[str, ...]:
        """``a, b, c``."""
        return names
