"""What a syntax error says: the place, a caret, what was expected, and a near keyword."""

from __future__ import annotations

import pytest

from lake.errors import FeatureNotSupported, LakeError, SyntaxFailure
from lake.sql.parser import parse


def failure_of(text: str) -> LakeError:
    """The error of a text."""
    with pytest.raises(LakeError) as caught:
        parse(text)
    return caught.value


def test_detail_shows_the_place() -> None:
    """Line, column, the line itself, a caret, and what could stand there."""
    failure = failure_of("SELECT a\nFROM t\nWHERE a = = 1")
    assert isinstance(failure, SyntaxFailure)
    assert failure.message == 'syntax error at or near "="'
    assert failure.position == 27
    assert failure.detail == (
        "line 3, column 11\n"
        "WHERE a = = 1\n"
        "          ^\n"
        'expected a name, a text, a number, a parameter, "(", "[", "{", NOT, ...'
    )


def test_end_of_input() -> None:
    """A text that stops short is told so, at the character after its last."""
    failure = failure_of("SELECT (1")
    assert failure.message == "syntax error at end of input"
    assert failure.position == 10


def test_long_line_is_cut() -> None:
    """Of a very long line, what is near the place is shown, and the caret still stands under it."""
    failure = failure_of("SELECT " + "a, " * 500 + "b c d" + ", e" * 500)
    assert failure.detail is not None
    _, line, caret, _ = failure.detail.split("\n")
    assert len(line) <= 120
    assert line[caret.index("^")] == "d"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELEC 1", "did you mean SELECT?"),
        ("SELECT 1 FORM t", "did you mean FROM?"),
        ("SELECT * FROM t WHRE a = 1", "did you mean WHERE?"),
        ("SELECT * FROM t ORDR BY 1", "did you mean ORDER?"),
        ("SELECT * FROM t GROUP x", "did you mean GROUP BY?"),
        ("SELECT * FROM t LEFT u ON x", "did you mean LEFT ANTI JOIN or LEFT JOIN or LEFT OUTER JOIN?"),
        ("CRATE TABLE t (a INT)", "did you mean CREATE?"),
        ("SELECT * FROM t xyzzy plugh", None),
    ],
)
def test_hint(text: str, hint: str | None) -> None:
    """A word that is nearly a keyword, at fault or before the fault, is named."""
    assert failure_of(text).hint == hint


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("SELECT 'abc", 'unterminated quoted string at or near "\'abc"', 8),
        ("SELECT E'abc\\'", "unterminated quoted string at or near \"E'abc\\'\"", 8),
        ('SELECT "abc', 'unterminated quoted identifier at or near ""abc"', 8),
        ("SELECT $$abc", 'unterminated dollar-quoted string at or near "$$abc"', 8),
        ("SELECT 1 /* a /* b */", 'unterminated /* comment at or near "/*"', 10),
        ('SELECT ""', 'zero-length delimited identifier at or near """"', 8),
        ("SELECT 1abc", 'trailing junk after numeric literal at or near "1a"', 8),
        ("SELECT §", 'syntax error at or near "§"', 8),
        ("SELECT x'4z'", "invalid hexadecimal data: x'4z'", 8),
        ("SELECT E'\\ud800'", "invalid Unicode escape value \\ud800", None),
        ("VALUES (1), (2, 3)", "VALUES lists must all be the same length", 1),
        ("SELECT 1 LIMIT 1 LIMIT 2", "multiple LIMIT clauses not allowed", 10),
        ("SELECT f(a) OVER (ROWS UNBOUNDED FOLLOWING)", "frame start cannot be UNBOUNDED FOLLOWING", 19),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT)", "OR REPLACE and IF NOT EXISTS do not go together", 1),
        ("CREATE TABLE t (a INT NULL NOT NULL)", 'conflicting constraints for column "a"', 17),
        ("SELECT upper(a FROM b)", "upper takes no FROM here", 8),
    ],
)
def test_message(text: str, message: str, position: int | None) -> None:
    """Failures of the lexer and of the builders say what is wrong, and where."""
    failure = failure_of(text)
    assert (failure.sqlstate, failure.message, failure.position) == ("42601", message, position)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1; ATTACH t", "ATTACH is not supported"),
        ("CREATE TASK t SCHEDULE x", "TASK in CREATE is not supported"),
    ],
)
def test_what_is_not_built_is_named(text: str, message: str) -> None:
    """Statements of the dialect that have no grammar are no syntax errors."""
    failure = failure_of(text)
    assert isinstance(failure, FeatureNotSupported)
    assert failure.message == message


def test_no_form_of_an_error_takes_long() -> None:
    """Errors in long texts are found as fast as their absence."""
    for text in ("SELECT " + "(" * 5_000, "a " * 20_000, "/*" * 20_000, "SELECT '" + "a''" * 50_000):
        failure_of(text)
