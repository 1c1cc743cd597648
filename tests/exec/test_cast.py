"""Casts: every type to and from text, ranges, rounding, TRY_CAST."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import LakeError
from lake.exec import cast as casts
from lake.exec.cast import cast
from lake.exec.constants import physical_values, to_array, to_scalar
from lake.exec.evaluate import fold
from lake.sql.bound import Cast, Literal
from lake.sql.catalog import Settings
from lake.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    JSON,
    NULL,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    Decimal,
    List,
    Type,
)

FROM_TEXT: list[tuple[Type, str, object]] = [
    (INT, " 42 ", 42), (BIGINT, "-9223372036854775808", -(2**63)), (TINYINT, "+7", 7), (DOUBLE, "inf", float("inf")),
    (DOUBLE, "-1e-3", -0.001), (REAL, "1.5", 1.5), (Decimal(10, 2), "1.005", 101), (Decimal(10, 2), "-1.005", -101),
    (Decimal(38, 2), "123456789012345678901234567890.12", 12345678901234567890123456789012),
    (Decimal(5, 2), "1e2", 10000),
    (BOOLEAN, "yes", True), (BOOLEAN, "off", False), (DATE, "2024-02-29", 19782), (TIME, "12:30", 45_000_000_000),
    (TIMESTAMP, "2024-03-01 12:00", 1_709_294_400_000_000),
    (TIMESTAMP, "2024-03-01T12:00:00.1234567", 1_709_294_400_123_457),
    (TIMESTAMPTZ, "2024-03-01 12:00:00+02", 1_709_287_200_000_000), (INTERVAL, "1 year 2 days", (12, 2, 0)),
    (BYTES, "\\x4142", b"AB"), (BYTES, "abc", b"abc"), (List(INT), "{1,2,NULL}", (1, 2, None)),
    (List(TEXT), '["a, b", c]', ("a, b", "c")), (JSON, '{"a": 1}', '{"a": 1}'),
]  # fmt: skip

TO_TEXT: list[tuple[Type, object, str]] = [
    (DOUBLE, 1.0, "1.0"), (DOUBLE, 1e20, "1e20"), (DOUBLE, 1e-7, "1e-7"), (DOUBLE, 0.1, "0.1"),
    (DOUBLE, 1e15, "1000000000000000.0"),
    (DOUBLE, float("nan"), "NaN"), (DOUBLE, float("-inf"), "-inf"), (DOUBLE, -0.0, "-0.0"),
    (DOUBLE, 123456789012.5, "123456789012.5"),
    (REAL, 1.100000023841858, "1.1"), (BOOLEAN, True, "true"), (Decimal(5, 2), -5, "-0.05"), (Decimal(5, 0), 12, "12"),
    (Decimal(38, 3), -(10**30), "-1000000000000000000000000000.000"), (DATE, 19782, "2024-02-29"),
    (TIMESTAMP, 1_709_294_400_000_000, "2024-03-01T12:00:00"),
    (TIMESTAMP, 1_709_294_400_500_000, "2024-03-01T12:00:00.500"),
    (TIMESTAMP, -1, "1969-12-31T23:59:59.999999"), (TIMESTAMPTZ, 0, "1970-01-01T00:00:00Z"),
    (TIME, 1_500_000, "00:00:01.500"),
    (INTERVAL, (14, 3, 14_706_500_000_000), "14 mons 3 days 4 hours 5 mins 6.500000000 secs"),
    (INTERVAL, (0, -1, -3_600_000_000_000), "-1 days -1 hours"), (INTERVAL, (0, 0, 0), "0 secs"), (BYTES, b"AB", "AB"),
    (List(INT), (1, None, 3), "[1, NULL, 3]"), (List(DOUBLE), (1.0,), "[1.0]"), (List(INT), (), "[]"),
]  # fmt: skip

OTHERS: list[tuple[Type, object, Type, object]] = [
    (DOUBLE, 2.7, INT, 2), (DOUBLE, -2.7, INT, -2), (Decimal(4, 1), 25, INT, 2), (Decimal(4, 1), -27, BIGINT, -2),
    (DOUBLE, 2.345, Decimal(5, 2), 235), (DOUBLE, -0.5, Decimal(3, 0), -1), (BIGINT, 5, Decimal(20, 2), 500),
    (Decimal(5, 3), 1005, Decimal(4, 2), 101), (Decimal(5, 3), -1005, Decimal(4, 2), -101),
    (Decimal(4, 2), 150, Decimal(38, 10), 15 * 10**9),
    (Decimal(38, 10), 15 * 10**9, Decimal(4, 2), 150), (Decimal(15, 2), 12345, DOUBLE, 123.45),
    (Decimal(38, 1), 10**37, DOUBLE, 1e36),
    (BOOLEAN, True, INT, 1), (INT, 3, BOOLEAN, True), (DATE, 1, TIMESTAMP, 86_400_000_000), (TIMESTAMP, -1, DATE, -1),
    (TIMESTAMP, 90_000_000_000, TIME, 3_600_000_000), (INT, 7, DOUBLE, 7.0), (BIGINT, 300, SMALLINT, 300),
    (INT, 12, TEXT, "12"),
    (List(BIGINT), (1, 2), List(Decimal(5, 1)), (10, 20)), (NULL, None, INT, None),
    (DOUBLE, 2.0**100, Decimal(38, 0), 2**100),
]  # fmt: skip

REFUSED: list[tuple[Type, object, Type, str, str]] = [
    (TEXT, "abc", INT, "22P02", 'invalid input syntax for type integer: "abc"'),
    (TEXT, "1.5", INT, "22P02", 'invalid input syntax for type integer: "1.5"'),
    (TEXT, "300", TINYINT, "22003", 'value "300" is out of range for type tinyint'),
    (BIGINT, 300, TINYINT, "22003", "value 300 is out of range for type tinyint"),
    (DOUBLE, 3e9, INT, "22003", "value 3000000000.0 is out of range for type integer"),
    (DOUBLE, float("nan"), BIGINT, "22003", "value NaN is out of range for type bigint"),
    (BIGINT, 1000, Decimal(3, 0), "22003", "numeric field overflow"),
    (DOUBLE, 1e40, Decimal(38, 0), "22003", "numeric field overflow"),
    (TEXT, "1e9", Decimal(3, 0), "22003", "numeric field overflow"),
    (TEXT, "2024-02-30", DATE, "22008", 'date/time field value out of range: "2024-02-30"'),
    (TEXT, "maybe", BOOLEAN, "22P02", 'invalid input syntax for type boolean: "maybe"'),
    (TEXT, "{", JSON, "22P02", 'invalid input syntax for type json: "{"'),
    (TEXT, "1, 2", List(INT), "22P02", 'malformed array literal: "1, 2"'),
    (BYTES, b"\xff", TEXT, "22P02", "invalid byte sequence for encoding UTF-8: \\xff"),
]


@pytest.mark.parametrize(("target", "text", "expected"), FROM_TEXT, ids=str)
def test_from_text(target: Type, text: str, expected: object) -> None:
    """A text is read as a value of the type, alone and among others."""
    assert fold(Cast(target, Literal(TEXT, text))) == Literal(target, expected)  # type: ignore[arg-type]
    column = cast(pa.array([text, None, text]), TEXT, target)
    assert physical_values(column, target) == [expected, None, expected]


@pytest.mark.parametrize(("source", "value", "text"), TO_TEXT, ids=str)
def test_to_text(source: Type, value: object, text: str) -> None:
    """A value is written as the base dialect does."""
    column = cast(to_array([value, None], source), source, TEXT)
    assert column.to_pylist() == [text, None]


@pytest.mark.parametrize(("source", "value", "target", "expected"), OTHERS, ids=str)
def test_between_types(source: Type, value: object, target: Type, expected: object) -> None:
    """Fractions are cut on the way to integers and rounded half away from zero on the way to decimals."""
    assert fold(Cast(target, Literal(source, value))) == Literal(target, expected)  # type: ignore[arg-type]
    if source != NULL:
        column = cast(to_array([None, value], source), source, target)
        assert physical_values(column, target) == [None, expected]


@pytest.mark.parametrize(("source", "value", "target", "sqlstate", "message"), REFUSED, ids=str)
def test_refused(source: Type, value: object, target: Type, sqlstate: str, message: str) -> None:
    """What does not fit is named in the error, and NULL with TRY_CAST."""
    column = to_array([None, value], source)
    with pytest.raises(LakeError) as caught:
        cast(column, source, target)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)
    assert cast(column, source, target, is_try=True).to_pylist() == [None, None]


def test_instants_are_read_in_the_session_zone() -> None:
    """A wall clock's reading becomes an instant by the session's time zone, and back."""
    settings = Settings(now=0, time_zone="America/New_York")
    noon = to_scalar(1_719_835_200_000_000, TIMESTAMP)
    instant = cast(noon, TIMESTAMP, TIMESTAMPTZ, settings=settings)
    assert instant.value == 1_719_849_600_000_000
    assert cast(instant, TIMESTAMPTZ, TIMESTAMP, settings=settings) == noon
    assert cast(pa.array(["2024-07-01 12:00"]), TEXT, TIMESTAMPTZ, settings=settings)[0] == instant


ITEMS = st.sampled_from(("1", "-2", "NULL", "null", "a", "é", "\u00a0", " 3", "", '"4"', "{5}", "\\6", "[7]"))
LISTS = st.one_of(st.none(), st.tuples(st.sampled_from(("{}", "{}", "{}", "[]")), st.lists(ITEMS, max_size=3)).map(
    lambda each: each[0][0] + ",".join(each[1]) + each[0][1]))  # fmt: skip


@settings(deadline=None)
@given(texts=st.lists(LISTS, min_size=1, max_size=3), of=st.sampled_from((TEXT, INT, Decimal(5, 2))))
def test_plain_lists_are_read_as_all_are(texts: list[str | None], of: Type) -> None:
    """Split as columns or one by one: the same lists, the same refusals."""
    answers: list[object] = []
    for quick in (casts._plain_lists, lambda value: None):
        with patch.object(casts, "_plain_lists", quick):
            try:
                made = cast(pa.array(texts, pa.string()), TEXT, List(of))
                assert isinstance(made, pa.Array)
                answers.append(made.to_pylist())
            except LakeError as error:
                answers.append((error.sqlstate, error.message))
    assert answers[0] == answers[1]
