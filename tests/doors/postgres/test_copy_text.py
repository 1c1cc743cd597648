"""COPY FROM STDIN in text and CSV: rows and refusals as Postgres has them, whatever the bytes and wherever they are cut."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lake.doors.postgres.copy import parse_copy
from lake.doors.postgres.copy_text import Lines
from lake.doors.postgres.text import text_column
from lake.errors import BadCopyData, LakeError
from lake.sql.catalog import Settings
from lake.storage.catalog.model import Column, Table
from lake.types import Float
from tests.doors.postgres.conftest import PgNode

FORMS = (
    "", "(DELIMITER '|', NULL 'a')", "(FORMAT csv)", "(FORMAT csv, ESCAPE '\\')", "(FORMAT csv, NULL 'a', HEADER)", "(HEADER)",
    "(FORMAT csv, QUOTE '|', DELIMITER E'\\t')",
)  # fmt: skip
PIECES = ("a", "b1", "\t", ",", "|", "\n", "\n", "\r\n", "\r", "\\", "\\N", '"', '""', "\\x4", "\\101", "\\n", "é", "")
Rows = list[tuple[Any, ...]]


def _table(types: dict[str, str]) -> Table:
    return Table(1, "main", "t", tuple(Column(id, name, type) for id, (name, type) in enumerate(types.items())), "t")


def _read(form: str, pieces: list[bytes], types: dict[str, str]) -> Rows:
    """The rows that pieces make."""
    copy = parse_copy(f"COPY t FROM STDIN {form}")
    assert copy is not None
    lines = Lines(copy, _table(types), tuple(types), Settings(now=0))
    made = [*(lines.columns(piece) for piece in pieces), lines.columns(b"", is_last=True)]
    return [row for each in made if each is not None for row in zip(*(each.arrays[name].to_pylist() for name in types), strict=True)]


@pytest.fixture(scope="module")
def theirs(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """Postgres with a table of two texts."""
    with psycopg.connect(postgres) as db:
        db.execute("CREATE TEMP TABLE t (a TEXT, b TEXT)")
        db.commit()
        yield db


def _asked(db: psycopg.Connection[Any], form: str, body: bytes) -> Rows | str:
    try:
        with db.cursor() as cursor:
            with cursor.copy(f"COPY t FROM STDIN {form}") as copy:
                copy.write(body)
            return cursor.execute("SELECT a, b FROM t").fetchall()
    except psycopg.Error as error:
        return error.diag.message_primary or ""
    finally:
        db.rollback()


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(form=st.sampled_from(FORMS), words=st.lists(st.sampled_from(PIECES), max_size=14), cuts=st.lists(st.integers(0, 30), max_size=3))
@example(form="(FORMAT csv)", words=[',,,"'], cuts=[])
@example(form="(FORMAT csv)", words=[",,,", "\r", "x", "\n"], cuts=[])
@example(form="", words=["\t\t\t", "\r", "x", "\n"], cuts=[2])
@example(form="", words=["\t\t\t", "x", "\n", "1\t2\n"], cuts=[])
@example(form="(HEADER)", words=["\\", "\n", "a\n", "1\t2\n"], cuts=[1])
def test_rows_are_those_of_postgres(
    theirs: psycopg.Connection[Any], form: str, words: list[str], cuts: list[int]
) -> None:
    """Two columns of text: the same rows or the same refusal."""
    body = "".join(words).encode()
    ends = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [body[start:end] for start, end in itertools.pairwise(ends)]
    try:
        ours: Rows | str = _read(form, pieces, {"a": "VARCHAR", "b": "VARCHAR"})
    except LakeError as error:
        ours = error.message
    assert ours == _asked(theirs, form, body)


@pytest.mark.parametrize("form", ["", "(FORMAT csv, DELIMITER E'\\t')"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_what_stands_behind_the_end_mark_is_not_read(form: str, end: str) -> None:
    """A line that is the mark alone ends the rows, wherever the bytes are cut; behind other text it is none."""
    body = end.join(("1\t2", "3\t4", "\\.", "5", "6")).encode()
    for cut in range(len(body)):
        assert _read(form, [body[:cut], body[cut:]], {"a": "INT", "b": "INT"}) == [(1, 2), (3, 4)]
    assert _read("(DELIMITER ',')", [b"\\.,\\.\n"], {"a": "VARCHAR", "b": "VARCHAR"}) == [(".", ".")]


TYPES = {
    "i": "BIGINT", "s": "SMALLINT", "n": "DECIMAL(12,2)", "w": "DECIMAL(38,4)", "d": "DOUBLE", "at": "TIMESTAMP", "atz": "TIMESTAMPTZ",
    "day": "DATE", "flag": "BOOLEAN",
}  # fmt: skip
FIELDS = st.tuples(
    st.sampled_from(("0", "-9223372036854775808", "9223372036854775807", "+12", " 5 ", "\\N", "1_0", "", "9223372036854775808")),
    st.sampled_from(("0", "32767", "-32768", "32768", "007")),
    st.sampled_from(("1.5", "-0.005", "9999999999.99", "1e3", "9999999999.995", ".5", "5.", "\\N", "NaN")),
    st.sampled_from(("0.00005", "-12345678901234567890.5", "17", "\\N")),
    st.sampled_from(("0.1", "1e400", "-1.25", "\\N")),
    st.sampled_from(("2024-02-29 23:59:59.5", "2024-02-29T00:00:00", "2024-02-29", "0001-01-01 00:00:00", "2023-02-29 00:00:00", "\\N")),
    st.sampled_from(("2024-02-29 23:59:59.123456+05:30", "2024-02-29 00:00:00Z", "2024-02-29 12:00:00", "2024-02-29 00:00:00-08")),
    st.sampled_from(("2024-02-29", "\\N")),
    st.sampled_from(("t", "no", "\\N")),
)


@settings(deadline=None, max_examples=200)
@given(rows=st.lists(FIELDS, min_size=1, max_size=4))
def test_values_are_those_of_casts(rows: list[tuple[str, ...]]) -> None:
    """Numbers and moments read from the bytes are what the cast of their texts gives, and so are refusals."""
    plain = "\n".join("\t".join(row) for row in rows).encode()
    # A backslash before a character keeps it, and a field that has one is read as a text.
    escaped = "\n".join("\t".join(each if each == "\\N" or not each else f"\\{each[0]}{each[1:]}" if not each[0].isalnum() else
                                  f"\\x{ord(each[0]):02x}{each[1:]}" for each in row) for row in rows).encode()  # fmt: skip
    answers: list[Rows | tuple[str, str, str | None]] = []
    for body in (plain, escaped):
        try:
            answers.append(_read("", [body], TYPES))
        except LakeError as error:
            answers.append((error.sqlstate, error.message, error.detail))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("form", "body", "message", "row"),
    [
        ("", b"1\t2\n3\n", 'missing data for column "b"', 2),
        ("", b"1\t2\t3\n", "extra data after last expected column", 1),
        ("", b"1\t2\n1\r\n", "literal carriage return found in data", 2),
        ("(FORMAT csv)", b'1,"2\n3,4\n', "unterminated CSV quoted field", 1),
        ("", b"1\t\xff\n", 'invalid byte sequence for encoding "UTF8" in column "b"', None),
        ("", b"1\t\\xff\n", 'invalid byte sequence for encoding "UTF8" in column "b"', None),
    ],
)
def test_refused_rows_are_told(form: str, body: bytes, message: str, row: int | None) -> None:
    """22P04 with the row where it is known, counted over all blocks."""
    before = b"7,7\n" if "csv" in form else b"7\t7\n"
    with pytest.raises(BadCopyData) as caught:
        _read(form, [before * 3, body], {"a": "INT", "b": "VARCHAR"})
    assert caught.value.message == message
    assert caught.value.detail == (None if row is None else f"COPY t, row {row + 3}")


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    doubles=st.lists(st.one_of(st.floats(), st.floats(1e-6, 1e-2), st.floats(1e13, 1e17)), max_size=120),
    reals=st.lists(st.one_of(st.floats(width=32), st.floats(0, 2**24, width=32)), max_size=8),
)
def test_floats_are_written_as_by_postgres(
    theirs: psycopg.Connection[Any], doubles: list[float], reals: list[float]
) -> None:
    """With an exponent where Postgres has one, in its digits, or in fewer that read back alike: it never takes a bound's."""
    for values, name, bits in ((doubles, "float8", 64), (reals, "float4", 32)):
        type = Float(bits)
        written = text_column(pa.array(values, type.arrow), type, "UTC").cast(pa.string()).to_pylist()
        asked = theirs.execute(f"SELECT x::{name}::text FROM unnest(%s::float8[]) x", [values]).fetchall()
        for ours, (text,) in zip(written, asked, strict=True):
            fewer = len(ours) < len(text) and ("e" in ours) == ("e" in text)
            assert ours == text or (fewer and pa.scalar(float(ours), type.arrow) == pa.scalar(float(text), type.arrow))


def test_long_rows_and_many_blocks(pg: PgNode) -> None:
    """A field longer than a block, quotes over newlines, and more rows than one block has."""
    long = "x" * (9 << 20)
    with psycopg.connect(pg.dsn(), autocommit=True) as db:
        db.execute("CREATE TABLE long (id INT, note TEXT, at TIMESTAMPTZ)")
        with db.cursor().copy("COPY long FROM STDIN (FORMAT csv)") as copy:
            copy.write(f'0,"{long}\n""",2024-01-01 00:00:00+01\n')
            for number in range(1, 300_001):
                copy.write(f'{number},"a{number}\nb",2024-01-01 00:00:00.{number:06}+00\n')
        with pytest.raises(psycopg.errors.InvalidTextRepresentation) as caught, db.cursor().copy("COPY long FROM STDIN") as copy:
            copy.write("1\tx\t\\N\nnone\tx\t\\N\n")
        assert caught.value.diag.message_primary == 'invalid input syntax for type integer: "none"'
        assert caught.value.diag.message_detail == "COPY long, rows 1 to 2, column id"
        found = db.execute("SELECT count(*), sum(id), max(length(note)), count(DISTINCT at) FROM long").fetchone()
        assert found == (300_001, 300_000 * 300_001 // 2, len(long) + 2, 300_001)
        db.execute("DROP TABLE long")
