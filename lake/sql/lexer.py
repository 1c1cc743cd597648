"""Text to tokens.

A word that the grammar knows is left undecided (kind ``WORD``): whether it is a keyword, the beginning of a keyword of
several words, or a name is for the parser to say, which knows what it can use. Everything else is decided here.

Source: PostgreSQL documentation, 4.1 Lexical Structure.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Set
from decimal import Decimal
from functools import cache

from msgspec import Struct, field

from lake.errors import NumericOutOfRange, SyntaxFailure
from lake.late import late_pattern

WORD = "word"
END = "$END"

# Characters of a number; no type holds more, and Python refuses to read 4,300.
DIGITS_MAX = 1_000

_PATTERN = (
    r"""(?:\s++|--[^\n]*+)*+(?:
      (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*+')
    | (?P<bytes>[xX]'[^']*+')
    | (?P<unicode>[uU]&'(?:[^']|'')*+')
    | (?P<named>(?i:operator)\s*\(\s*(?:\w+\s*\.\s*)?(?P<sign>[-+*/<>=~!@\#%^&|`?]+)\s*\))
    | (?P<word>(?![eExX]'|[uU]&')[^\W\d][\w$]*+)
    | (?P<number>0[xX][0-9a-fA-F](?:_?[0-9a-fA-F])*+
               | (?:\d(?:_?\d)*+(?:\.(?:\d(?:_?\d)*+)?+)?+|\.\d(?:_?\d)*+)(?:[eE][+-]?\d++)?+)
    | (?P<string>'(?:[^']|'')*+')
    | (?P<quoted>"(?:[^"]|"")++")
    | (?P<dollar>\$(?P<tag>(?:[^\W\d]\w*+)?+)\$(?P<inside>.*?)\$(?P=tag)\$)
    | (?P<parameter>\$\w++)
    | (?P<comment>/\*)
    | (?P<operator>->>?|\#>>?|<=>|<->|<@|<<|<=|<>|@>|>>|>=|=>|==|=|::|:=|:|//|/|\*\*|\*|!~~\*|!~~|!~\*|!~|!=|~~\*|~~|~\*|~
                 |\|\||\||&&|&|\^@|\^|\?\||\?&|\?|[-+%\#<>@(),;.\[\]{}])
    | (?P<end>\Z)
    )"""
)
_PLAIN_STRING = "(?P<string>'(?:[^']|'')*+')"
_TOKEN = late_pattern(_PATTERN, re.VERBOSE | re.DOTALL)
_SPARK_STRING = r'''(?P<string>'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+")'''
_PLAIN_NAME = '(?P<quoted>"(?:[^"]|"")++")'
_COMMENT_EDGE = late_pattern(r"/\*|\*/")
_ESCAPE = late_pattern(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))|''", re.DOTALL)
_CODE = late_pattern(r"\\(?:\\|\+([0-9a-fA-F]{6})|([0-9a-fA-F]{4})|)")
_ESCAPED_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Tokens(Struct):
    """The tokens of a text, as columns; the last one is ``END``.

    kinds   the grammar's terminal, or WORD
    values  what the token says: a WORD in capitals, a name folded, a string without quotes, a number
    starts  and ``ends``: its 0-based characters in the text
    """

    kinds: list[str] = field(default_factory=list)
    values: list[object] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


@cache
def _spark_token() -> re.Pattern[str]:
    pattern = _PATTERN.replace(_PLAIN_STRING, _SPARK_STRING).replace(_PLAIN_NAME, "(?P<quoted>`(?:[^`]|``)++`)")
    return re.compile(pattern, re.VERBOSE | re.DOTALL)


def tokenize(text: str, words: Set[str], signs: dict[str, str], *, spark: bool = False) -> Tokens:
    """The tokens of ``text``.

    words  every word that is part of a keyword, in capitals
    signs  operators and brackets that the grammar names, to their terminals; any other operator is an OPERATOR
    spark  Spark's strings, in either quotes and with a backslash before what is meant as it stands, and names in `backticks`
    42601  a string, name or comment that does not end, or a character that begins nothing
    """
    tokens = Tokens()
    kinds, values, starts, ends = tokens.kinds, tokens.values, tokens.starts, tokens.ends
    match, position = (_spark_token() if spark else _TOKEN).match, 0
    while True:
        found = match(text, position)
        if found is None:
            raise _no_token(text, _skip_blanks(text, position))
        kind, position = found.lastgroup or "", found.end()
        # The dollar group holds named groups of its own.
        if kind in ("tag", "inside"):
            kind = "dollar"
        elif kind == "sign":
            kind = "named"
        start, written = found.start(kind), found.group(kind)
        value: object = written
        if kind == "word":
            upper = written.upper()
            terminal, value = (WORD, upper) if upper in words else ("IDENT", written.lower())
        elif kind == "operator":
            terminal = signs.get(written, "OPERATOR")
        elif kind == "named":
            value = found.group("sign")
            terminal = signs.get(found.group("sign"), "OPERATOR")
        elif kind == "comment":
            position = _comment_end(text, start)
            continue
        elif kind == "end":
            terminal, value, start = END, "", len(text)
        else:
            if kind == "dollar":
                written = found.group("inside")
            elif spark and kind == "string":
                kind = "spark"
            terminal, value = _LITERALS[kind](written, start)
            if kind == "number" and text[position : position + 1].isalpha():
                raise _failure("trailing junk after numeric literal", text, start, position + 1)
        kinds.append(terminal)
        values.append(value)
        starts.append(start)
        ends.append(position)
        if terminal == END:
            return tokens


def _number(value: str, start: int) -> tuple[str, object]:
    digits = value.replace("_", "")
    if len(digits) > DIGITS_MAX:
        raise NumericOutOfRange(f"a number of {len(digits)} characters is out of range", position=start + 1)
    if digits[:2] in ("0x", "0X"):
        return "INTEGER", int(digits, 16)
    if "e" in digits or "E" in digits:
        number = float(digits)
        if math.isinf(number):
            raise NumericOutOfRange(f'"{value}" is out of range for type double', position=start + 1)
        return "FLOAT", number
    if "." in digits:
        return "DECIMAL", Decimal(digits)
    return "INTEGER", int(digits)


def _bytes(value: str, start: int) -> tuple[str, object]:
    try:
        digits = value[2:-1]
        return "BYTES", bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")
    except ValueError as error:
        raise SyntaxFailure(f"invalid hexadecimal data: {value}", position=start + 1) from error


def _escaped(value: str, start: int) -> tuple[str, object]:
    return "STRING", _ESCAPE.sub(_unescape, value[2:-1])


def _unicode(value: str, start: int) -> tuple[str, object]:
    """A string with characters written as \\XXXX or \\+XXXXXX."""
    return "STRING", _CODE.sub(_coded, value[3:-1].replace("''", "'"))


def _coded(found: re.Match[str]) -> str:
    if found.group() == "\\\\":
        return "\\"
    short, long = found.groups()
    if not short and not long:
        raise SyntaxFailure("invalid Unicode escape", hint="Unicode escapes must be \\XXXX or \\+XXXXXX.")
    return _character(int(short or long, 16), found.group())


def _character(code: int, written: str) -> str:
    if code > sys.maxunicode or 0xD800 <= code < 0xE000:
        raise SyntaxFailure(f"invalid Unicode escape value {written}")
    return chr(code)


def _spark_string(value: str, start: int) -> tuple[str, object]:
    """A string in either quotes, a doubled quote in it being one."""
    return "STRING", _ESCAPE.sub(_unescape, value[1:-1].replace(value[0] * 2, f"\\{value[0]}"))


def _unescape(found: re.Match[str]) -> str:
    if found.group() == "''":
        return "'"
    byte, short, long, octal, letter = found.groups()
    if byte or short or long:
        return _character(int(byte or short or long, 16), found.group())
    if octal:
        return chr(int(octal, 8))
    return _ESCAPED_LETTERS.get(letter, letter)


_LITERALS: dict[str, Callable[[str, int], tuple[str, object]]] = {
    "number": _number,
    "bytes": _bytes,
    "escaped": _escaped,
    "spark": _spark_string,
    "unicode": _unicode,
    "string": lambda value, start: ("STRING", value[1:-1].replace("''", "'")),
    "quoted": lambda value, start: ("IDENT", value[1:-1].replace(value[0] * 2, value[0])),
    "dollar": lambda value, start: ("STRING", value),
    "parameter": lambda value, start: ("PARAMETER", value[1:]),
}


def _comment_end(text: str, start: int) -> int:
    """The character after a block comment, which may hold others."""
    depth, position = 0, start
    while True:
        edge = _COMMENT_EDGE.search(text, position)
        if edge is None:
            raise _failure("unterminated /* comment", text, start, start + 2)
        depth += 1 if edge.group() == "/*" else -1
        position = edge.end()
        if depth == 0:
            return position


def _skip_blanks(text: str, position: int) -> int:
    blanks = re.compile(r"(?:\s++|--[^\n]*+)*+").match(text, position)
    assert blanks is not None
    return blanks.end()


def _no_token(text: str, start: int) -> SyntaxFailure:
    begins = text[start : start + 2]
    if begins[0] == "'" or begins in ("e'", "E'", "x'", "X'", "u&", "U&"):
        return _failure("unterminated quoted string", text, start, len(text))
    if begins == '""':
        return _failure("zero-length delimited identifier", text, start, start + 2)
    if begins[0] == '"':
        return _failure("unterminated quoted identifier", text, start, len(text))
    if begins[0] == "$":
        return _failure("unterminated dollar-quoted string", text, start, len(text))
    return _failure("syntax error", text, start, start + 1)


def _failure(message: str, text: str, start: int, end: int) -> SyntaxFailure:
    near = text[start : min(end, start + 40)]
    return SyntaxFailure(f'{message} at or near "{near}"', detail=point_at(text, start), position=start + 1)


def point_at(text: str, position: int) -> str:
    """Where a 0-based character stands: line and column, and the line with a caret under the character.

    >>> print(point_at("SELECT FORM t", 7))
    line 1, column 8
    SELECT FORM t
           ^
    """
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line = text[line_start : len(text) if line_end < 0 else line_end]
    column = position - line_start
    shown_from = max(0, column - 60)
    shown = line[shown_from : shown_from + 120].expandtabs(1)
    place = f"line {text.count(chr(10), 0, position) + 1}, column {column + 1}"
    return f"{place}\n{shown}\n{' ' * (column - shown_from)}^"
