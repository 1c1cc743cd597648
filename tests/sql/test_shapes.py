"""Statements that differ in their literals alone: each is what the parser makes of its own text, its places too."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import LakeError
from lake.sql import ast, parser, shapes

# A hole is where a literal stands. Those of OTHERS have no template: a literal of theirs is more than a value, or may be.
SHAPES = (
    "SELECT * FROM t WHERE id = #",
    "SELECT name, v AS x FROM s.t WHERE id = # AND b = # OR NOT c < #;",
    "SELECT count(a) AS n FROM t1 WHERE a2 = $1 AND b = f($x, -#)",
    "SELECT a FROM t WHERE id = # LIMIT # PERCENT",
    "SELECT a FROM t WHERE x = 1e3 AND y = .5 AND z = 1. AND v = 0x1F AND w = 1_000 AND id = #",
    "INSERT INTO t VALUES (#, -#, #, NULL, $1)",
    "  INSERT INTO t (a, b) VALUES (#,#) , (# ,  #)\n",
    "UPDATE t SET a = a + #, b = # WHERE k = # AND l = #",
    "DELETE FROM t WHERE k = # AND l = # ",
    "INSERT INTO t VALUES (#, coalesce(#, f(#)), CURRENT_TIMESTAMP)",
)
OTHERS = (
    "SELECT # FROM t WHERE id = #",
    "SELECT a FROM t WHERE id = # -- it's 1",
    "SELECT a FROM t WHERE id = # /* ' */ AND b = #",
    'SELECT "a 1" FROM t WHERE id = #',
    "SELECT a FROM t WHERE b = E'x' AND id = #",
    "SELECT a FROM t WHERE b = DATE '2024-01-01' AND id = #",
    "SELECT a FROM t WHERE b > now() - INTERVAL '1 day' AND id = #",
    "SELECT a FROM t WHERE b = $$x 1$$ AND id = #",
    "SELECT count(a, #) FROM t WHERE id = #",
    "SELECT a FROM t WHERE x = 1e-3 AND id = #",
    "SELECT a FROM t WHERE CAST(a AS DECIMAL(9, 2)) = #",
    "SELECT a FROM t WHERE id = #; SELECT 1",
    "SELECT a FROM t WHERE id = 1x",
    "SELECT extract('year' FROM a) FROM t WHERE id = #",
    "CREATE TABLE t (a INT DEFAULT #)",
)
LITERALS = st.one_of(
    st.integers(0, 10**17).map(str),
    st.decimals(0, 10**6, places=3).map(str),
    st.text("ab'\" -/*;$1\\\u00e9\u4e16#", max_size=6).map(lambda text: "'" + text.replace("'", "''") + "'"),
)


def parsed(text: str, *, whole: bool) -> object:
    """The statements with every place and text, or the error; ``whole``: by the parser alone."""
    try:
        found = parser._run(text, "script") if whole else parser.parse(text)
    except LakeError as error:
        return error.sqlstate, error.message, error.position
    assert isinstance(found, list)
    nodes = [node for statement in found for node in ast.walk(statement)]
    return found, [(type(node), node.span, getattr(node, "text", "")) for node in nodes]


def filled(shape: str, literals: list[str]) -> str:
    """The shape with literals in its holes."""
    first, *rest = shape.split("#")
    return first + "".join([literal + part for literal, part in zip(literals, rest, strict=False)])


@given(shape=st.sampled_from(SHAPES + OTHERS), rows=st.lists(st.lists(LITERALS, min_size=6, max_size=6), min_size=3, max_size=5))
@settings(max_examples=300, deadline=None)
def test_each_text_is_what_the_parser_makes_of_it(shape: str, rows: list[list[str]]) -> None:
    for literals in rows:
        text = filled(shape, literals)
        assert parsed(text, whole=False) == parsed(text, whole=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_parsed_twice_and_then_no_more(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def parse(text: str) -> object:
        asked.append(text)
        return parser._run_script(text)

    monkeypatch.setattr(shapes, "_kept", type(shapes._kept)())
    texts = [filled(shape, [str(number), f"'{number}'", f"{number}.5", str(number), "'x'", "0"]) for number in range(8, 13)]
    found = [shapes.parse_shape(text, parse) for text in texts]
    assert found[0] is None and None not in found[1:]
    assert len(asked) == 2, "the second text, and one with other literals"


@pytest.mark.parametrize("shape", OTHERS)
def test_what_is_more_than_a_value_has_no_template(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_kept", type(shapes._kept)())
    for number in range(4):
        assert shapes.parse_shape(filled(shape, [str(number)] * 6), parser._run_script) is None


def test_shapes_are_as_many_as_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "SHAPES_KEPT", 4)
    monkeypatch.setattr(shapes, "_kept", type(shapes._kept)())
    for number in range(20):
        shapes.parse_shape(f"SELECT c{number} FROM t WHERE a = 1", parser._run_script)
    assert len(shapes._kept) == 4
