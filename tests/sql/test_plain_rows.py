"""Long lists of VALUES that are read in one pass are what the parser makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lake
from lake.embedded import EmbeddedConnection
from lake.errors import LakeError
from lake.exec.kernels import interpreted
from lake.sql import ast, parser, plain_rows
from lake.sql.plain_rows import PlainRows, plain_insert

PADDING = " " * plain_rows.CHARS_MIN  # so that every list is long enough
ITEMS = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.sampled_from(["NULL", "true", "FALSE", "0.5", "-1.25", "1e3", "-2.5E-7", "1.", "007", "-0.0", "'a'", "''", "'it''s'", "''''"]),
    st.text("ab'\" ,();\\\u00e9\u4e16", max_size=6).map(lambda text: "'" + text.replace("'", "''") + "'"),
)
ODD = st.sampled_from(["1 + 1", "DEFAULT", "E'x'", "(1)", "-", "'open", "nullx", "x", ".5", "1_0", "- 1", "--", "/**/1", "'a' 'b'", ""])
GAPS = st.sampled_from(["", " ", "\n", "\t "])


@st.composite
def lists(draw: st.DrawFn, odd: bool = False) -> str:
    """A statement, now and then with something that is not plain."""
    width = draw(st.integers(1, 3))
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        items = [draw(ITEMS) for _ in range(width)]
        if odd and draw(st.integers(0, 5)) == 0:
            items[-1] = draw(ODD)
        gap = draw(GAPS)
        rows.append(f"{gap}({gap}{f'{gap},{gap}'.join(items)}{gap}){gap}")
    return f"INSERT INTO t {PADDING}VALUES {','.join(rows)}{draw(st.sampled_from(['', ';', ' ; ', ' RETURNING a' if odd else '']))}"


def slow(text: str) -> list[ast.Statement]:
    """The statement as the parser alone has it."""
    found = parser._run(text, "script")
    assert isinstance(found, list)
    return found


def value_of(item: ast.Expr) -> object:
    """A number or text as the pass has it."""
    if isinstance(item, ast.Unary):
        value = value_of(item.operand)
        return -value  # type: ignore[operator]
    assert isinstance(item, ast.Literal)
    return item.value


def read(rows: PlainRows, place: int) -> list[object]:
    """A column's values in Python."""
    offsets, data = rows.texts(place)
    found: list[object] = []
    for row, kind in enumerate(rows.kinds[:, place].tolist()):
        text = bytes(data[offsets[row] : offsets[row + 1]]).decode()
        makers = {0: lambda _: None, 1: int, 2: Decimal, 3: float, 4: str, 5: str, 6: lambda _: True, 7: lambda _: False}
        found.append(makers[kind](text))
    return found


@settings(max_examples=300, deadline=None)
@given(lists())
def test_values_are_those_of_the_parser(text: str) -> None:
    """Every value, and the span of the statement."""
    found = plain_insert(text, slow)
    (whole,) = slow(text)
    assert isinstance(whole, ast.Insert) and whole.query is not None and isinstance(whole.query.body, ast.Values)
    if found is None:
        return  # numbers of more digits than the pass reads, or a point with nothing behind it
    assert found.query is not None and isinstance(found.query.body, ast.Values)
    rows = found.query.body.rows
    assert isinstance(rows, PlainRows)
    assert (len(rows), rows.first, list(rows)) == (len(whole.query.body.rows), whole.query.body.rows[0], list(whole.query.body.rows))
    columns = list(zip(*([value_of(item) for item in row] for row in whole.query.body.rows)))
    assert [read(rows, place) for place in range(len(columns))] == [list(column) for column in columns]
    assert found.span == whole.span


@settings(max_examples=300, deadline=None)
@given(lists(odd=True))
def test_what_is_not_plain_is_left_to_the_parser(text: str) -> None:
    """The same rows or the same error."""
    try:
        expected: object = slow(text)
    except LakeError as error:
        expected = str(error)
    try:
        found = plain_insert(text, slow)
        assert found is None or [found.query.body.rows[0]] == [expected[0].query.body.rows[0]]  # type: ignore
    except LakeError as error:
        raise AssertionError(f"it fails itself: {error}") from error
    if isinstance(expected, str):
        assert found is None, expected


def test_the_kernels_are_their_plain_functions() -> None:
    """Of whole lists and of cut ones."""
    text = "(1, 'it''s', NULL, -2.5e-3), (2, '', true, 7 ) ;"
    for end in range(len(text) + 1):
        data = plain_rows.np.frombuffer(text[:end].encode() or b" ", plain_rows.np.uint8)
        compiled = plain_rows._scan(data, 0)
        with interpreted():
            plain = plain_rows._scan(data, 0)
        assert repr(compiled) == repr(plain)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedConnection]:
    """A table of each type that is read from the text, and some that are not."""
    folder: Path = tmp_path_factory.mktemp("plain")
    with lake.open(folder / "lake", tier_secs="0") as opened:
        assert isinstance(opened, EmbeddedConnection)
        opened.sql(
            "CREATE TABLE t (i INT, b BIGINT, d DOUBLE, n DECIMAL(8,2), t VARCHAR, day DATE, seen TIMESTAMP, yes BOOLEAN, s SMALLINT,"
            " r REAL, z TIMESTAMPTZ, j JSON, def BIGINT DEFAULT 7, CHECK (i < 1000))"
        )
        yield opened


CASES = {
    "i": ["1", "-5", "NULL", "2147483647", "2147483648", "999", "1000", "1.5", "'7'", "true", "007"],
    "b": ["9223372036854775807", "123456789012345678", "-0", "1e3", "0.5"],
    "d": ["1", "-0.0", "0.1", "-1.5e-3", "1e99", "123456789012345678.123456789012345678", "'1.5'", "NULL"],
    "n": ["1", "1.005", "-2.675", "999999.994", "999999.995", "1e2", "'3.5'", "NULL"],
    "t": ["'a'", "'it''s'", "''", "1", "true", "NULL", "'\u4e16'"],
    "day": ["'2026-01-31'", "'2026-02-30'", "'x'", "NULL", "'2026-01-31 10:00:00'", "'1-1-1'"],
    "seen": ["'2026-01-31 10:11:12.5'", "'2026-01-31'", "'2026-01-31T00:00:00Z'", "'no'", "NULL"],
    "yes": ["true", "FALSE", "NULL", "1", "'t'"],
    "s": ["1", "32767", "32768"], "r": ["0.1", "1e-3", "16777217"], "z": ["'2026-01-31 10:00:00'"], "j": ["'{\"a\": 1}'", "'no'"],
}  # fmt: skip


@pytest.mark.parametrize(("column", "value"), [(column, value) for column, values in CASES.items() for value in values])
def test_a_table_takes_the_same(db: EmbeddedConnection, column: str, value: str) -> None:
    """Rows and refusals of a plain list are those of a list that is not, because of a comment in it."""
    answers: list[object] = []
    for mark in ("", "/**/"):
        db.sql("TRUNCATE t")
        try:
            db.session.execute(f"INSERT INTO t ({column}) {PADDING}VALUES (NULL), {mark}({value}), (NULL)")
            answers.append(db.session.execute("SELECT * FROM t").rows())
        except LakeError as error:
            answers.append((error.sqlstate, error.message))
    assert repr(answers[0]) == repr(answers[1])


def test_names_and_counts_of_columns_are_checked(db: EmbeddedConnection) -> None:
    """As of a short list."""
    rows = ", ".join(f"({n}, 'x')" for n in range(500))
    for names, code in (("(i, nope)", "42703"), ("(i, i)", "42701"), ("(i)", "42601"), ("(i, t, b)", "42601")):
        with pytest.raises(LakeError) as caught:
            db.session.execute(f"INSERT INTO t {names} VALUES {rows}")
        assert caught.value.sqlstate == code
    db.sql("TRUNCATE t")
    assert db.session.execute(f'INSERT INTO t ("i", T) VALUES {rows}').count == 500
    assert db.session.execute("SELECT count(*), sum(i), min(t), sum(def) FROM t").rows() == [(500, 124750, "x", 3500)]
