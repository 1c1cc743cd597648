"""Statements that differ in their literals alone are parsed once: what clients send that write values into their texts.

    SELECT name FROM t WHERE id = 17        shape  SELECT name FROM t WHERE id = #        tree  .. Literal(17) ..
    SELECT name FROM t WHERE id = 4         the same shape: the tree above with Literal(4), and its places moved

A shape that comes a second time is made a template, and proven to be one: a text of the same shape with other literals is
parsed too, and what the template makes of it must be the same tree, places and all. Whatever the grammar does with a
literal beside keeping it (``INTERVAL '3' DAY``, a name made of an expression's text) fails that, and is parsed each time.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final

from msgspec import Struct

from lake.errors import LakeError, SyntaxFailure
from lake.late import late_pattern
from lake.sql import ast

CHARS_MAX: Final = 1_000  # a longer text is no statement about a row or two
SHAPES_KEPT: Final = 512
# A text in quotes, or digits that are no part of a name, a parameter or a longer number; all else is the shape.
_LITERAL: Final = late_pattern(r"('(?:[^']|'')*+'|(?<![\w$.])\d{1,18}(?:\.\d{1,18})?(?![\w.]))")
# What may hide where a literal begins: comments, quoted names, and texts that are written in another way.
_UNCLEAR: Final = late_pattern(r"""--|/\*|["'`\\]|\$\w*\$|[\w&]\0s""")
_NODES: Final = (
    ast.QueryStatement, ast.Query, ast.Select, ast.SelectItem, ast.Star, ast.TableSource, ast.Insert, ast.Values, ast.Update,
    ast.Assignment, ast.Delete, ast.Name, ast.Column, ast.Literal, ast.Parameter, ast.Unary, ast.Binary, ast.And, ast.Or,
    ast.Not, ast.Call, ast.Argument,
)  # fmt: skip

Parse = Callable[[str], object]


class _Template(Struct, frozen=True):
    """The tree of a shape: ``ends`` and ``lengths`` are of the literals in the text it was parsed of."""

    statement: ast.Statement
    ends: tuple[int, ...]
    lengths: tuple[int, ...]

    @staticmethod
    def of(text: str, written: list[str], parse: Parse) -> _Template | None:
        """The template of a text's shape, or None where it has none."""
        places = [(found.start(), found.end()) for found in _LITERAL.finditer(text)]
        template = _Template(_parsed(text, parse), tuple([end for _, end in places]), tuple(map(len, written)))
        others = [f"'{at}{each[1:]}" if each[0] == "'" else f"{each}{7 + at}" for at, each in enumerate(written)]
        gaps = [0, *template.ends]
        pieces = [text[gap:start] + other for gap, (start, _), other in zip(gaps, places, others, strict=False)]
        other = _parsed("".join(pieces) + text[gaps[-1] :], parse)
        if not all(isinstance(node, _NODES) for node in ast.walk(template.statement)):
            return None
        return template if _is_same(template.statement_of(others), other) else None

    def statement_of(self, written: list[str]) -> ast.Statement:
        """The statement with these literals."""
        moved = [0, *accumulate(map(int.__sub__, map(len, written), self.lengths))]
        statement: ast.Statement = _renewed(self.statement, map(_value, written), self.ends, moved)
        return statement


_kept: Final[OrderedDict[str, _Template | str]] = OrderedDict()  # a text that says why there is none
_keeping: Final = threading.Lock()
_ONCE, _NEVER = "seen once", "is parsed each time"


def parse_shape(text: str, parse: Parse) -> ast.Statement | None:
    """The statement of a text whose shape is known; None of every other text.

    parse  what reads a script of statements
    """
    if len(text) > CHARS_MAX or "\0" in text:
        return None
    parts = _LITERAL.split(text)
    written = parts[1::2]
    if not written:
        return None
    parts[1::2] = ["\0s" if each[0] == "'" else "\0d" if "." in each else "\0i" for each in written]
    shape = "".join(parts)
    with _keeping:
        found = _kept.get(shape)
        if found is None:
            _kept[shape] = _NEVER if _UNCLEAR.search(shape) else _ONCE
            while len(_kept) > SHAPES_KEPT:
                _kept.popitem(last=False)
            return None
        _kept.move_to_end(shape)
    if found is _ONCE:
        try:
            found = _Template.of(text, written, parse) or _NEVER
        except LakeError:
            found = _NEVER  # what is wrong with it is for the parser to say
        with _keeping:
            _kept[shape] = found
    return found.statement_of(written) if isinstance(found, _Template) else None


def _parsed(text: str, parse: Parse) -> ast.Statement:
    match parse(text):
        case [ast.Statement() as statement]:
            return statement
    raise SyntaxFailure("several statements")


def _value(written: str) -> str | int | Decimal:
    if written[0] == "'":
        return written[1:-1].replace("''", "'")
    return Decimal(written) if "." in written else int(written)


def _renewed(old: Any, values: Iterator[object], ends: tuple[int, ...], moved: list[int]) -> Any:
    """A part of a tree with the next of ``values`` for each literal, and its places moved by as much as those before it."""
    if isinstance(old, ast.Node):
        span = old.span
        if span is not None:
            first, last = bisect_right(ends, span.start), bisect_right(ends, span.end)
            if first == last and not moved[first]:
                return old  # neither changed nor moved
            span = ast.Span(span.start + moved[first], span.end + moved[last])
        if type(old) is ast.Literal and type(old.value) in (str, int, Decimal):
            return ast.Literal(next(values), span=span)  # type: ignore[arg-type]
        made = [_renewed(getattr(old, name), values, ends, moved) for name in ast.field_names(type(old))]
        return type(old)(*made, span=span)
    if type(old) is tuple:
        return tuple([_renewed(item, values, ends, moved) for item in old])
    return old


def _is_same(one: Any, other: Any) -> bool:
    """Whether two trees are the same, places and texts too."""
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.Node):
        return all(_is_same(getattr(one, name), getattr(other, name)) for name in one.__struct_fields__)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)
