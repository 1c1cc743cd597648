"""A script cut into statements, and the statements that only this door has.

    >>> [piece.text for piece in split("SELECT ';'; CLOSE ALL")]
    ["SELECT ';'", ' CLOSE ALL']

Cursors, LISTEN and the like belong to a connection, and COPY .. STDIN to its wire, so they are known by their words here
and never reach the SQL parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lake.late import late_pattern

_TOKEN: Final = late_pattern(
    r"""(?P<skip>--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<escaped>\b[eE]'(?:[^'\\]|\\.|'')*')
      | (?P<dollar>(?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$)
      | (?P<comment>/\*)
      | (?P<end>;)""",
    re.X | re.S,
)
_COMMENT_PART: Final = late_pattern(r"/\*|\*/")
_LEADING: Final = late_pattern(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.S)
_WORD: Final = late_pattern(r"[A-Za-z_]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a script, and where it starts there."""

    text: str
    start: int

    @property
    def word(self) -> str:
        """Its first word, upper case; empty for a statement of nothing."""
        found = _WORD.match(self.text, _leading(self.text))
        return found[0].upper() if found else ""

    @property
    def is_empty(self) -> bool:
        """Whether it is blank or comments only."""
        return _leading(self.text) == len(self.text)

    @property
    def bare(self) -> str:
        """The statement without what comes before its first word and after its last."""
        return self.text[_leading(self.text) :].rstrip()


def _leading(text: str) -> int:
    found = _LEADING.match(text)
    return found.end() if found else 0


def split(script: str) -> list[Piece]:
    """The statements of a script, without those of nothing."""
    start = 0
    pieces = []
    if ";" not in script:
        whole = Piece(script, 0)
        return [] if whole.is_empty else [whole]
    for end in (*_ends(script), len(script)):
        pieces.append(Piece(script[start:end], start))
        start = end + 1
    return [piece for piece in pieces if not piece.is_empty]


def _ends(script: str) -> Iterator[int]:
    """Where the semicolons stand that end a statement."""
    place = 0
    while (found := _TOKEN.search(script, place)) is not None:
        place = found.end()
        if found["end"]:
            yield found.start()
        elif found["comment"]:
            place = _after_comment(script, place)


def _after_comment(script: str, place: int) -> int:
    depth = 1
    while depth and (found := _COMMENT_PART.search(script, place)) is not None:
        depth += 1 if found[0] == "/*" else -1
        place = found.end()
    return len(script) if depth else place
