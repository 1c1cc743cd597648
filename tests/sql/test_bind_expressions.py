"""Expressions: types, casts by themselves, operators, names."""

from __future__ import annotations

import datetime
from decimal import Decimal as PyDecimal

import pytest

from lake.errors import (
    DatatypeMismatch,
    InvalidText,
    LakeError,
    NumericOutOfRange,
    UndefinedFunction,
    UndefinedObject,
    UndefinedParameter,
)
from lake.sql.bind import literal_of
from lake.types import BIGINT, BYTES, DATE, INTERVAL, TIMESTAMPTZ, Decimal, List
from tests.sql.binding import bind, expr, type_of


@pytest.mark.parametrize(
    ("sql", "type"),
    [
        ("1", "BIGINT"),
        ("1.50", "DECIMAL(3,2)"),
        (".07", "DECIMAL(2,2)"),
        ("1e3", "DOUBLE"),
        ("9223372036854775807", "BIGINT"),
        ("-9223372036854775808", "BIGINT"),
        ("9223372036854775808", "DECIMAL(19,0)"),
        ("1.5 * 1.5", "DECIMAL(5,2)"),
        ("1.5 + 1", "DECIMAL(22,1)"),
        ("1 / 3.0", "DECIMAL(25,4)"),
        ("1.00::decimal(10,2) / 3::decimal(10,2)", "DECIMAL(16,6)"),
        ("5.5 % 2", "DECIMAL(2,1)"),
        ("7 / 2", "BIGINT"),
        ("2 ^ 3", "DOUBLE"),
        ("a * f", "DOUBLE"),
        ("x * (1 - x)", "DECIMAL(38,4)"),
        ("a & 3", "BIGINT"),
        ("d + INTERVAL '1 month'", "DATE"),
        ("d + 1", "DATE"),
        ("d - d", "BIGINT"),
        ("d - '2024-01-01'", "BIGINT"),
        ("d::timestamp - d", "INTERVAL"),
        ("TIME '10:00' - TIME '09:30'", "INTERVAL"),
        ("INTERVAL '1 day' * 3", "INTERVAL"),
        ("INTERVAL '1 month' / 2", "INTERVAL"),
        ("sum(x)", "DECIMAL(25,2)"),
        ("avg(x)", "DECIMAL(19,6)"),
        ("avg(a)", "DOUBLE"),
        ("coalesce(NULL, 1, 2.5)", "DECIMAL(21,1)"),
        ("CASE WHEN a = 1 THEN 1 ELSE 2.5 END", "DECIMAL(21,1)"),
        ("CASE WHEN a = 1 THEN 1 ELSE 'x' END", "VARCHAR"),
        ("CASE WHEN a = 1 THEN d ELSE '2024-01-01' END", "DATE"),
        ("[1, 2.5, NULL]", "DECIMAL(21,1)[]"),
        ("ARRAY[[1], [2]]", "BIGINT[][]"),
        ("NULL = NULL", "BOOLEAN"),
        ("extract(year FROM d)", "INT"),
        ("extract(epoch FROM d)", "DOUBLE"),
        ("date_trunc('month', '2024-01-01')", "TIMESTAMP"),
        ("current_date", "DATE"),
        ("now()", "TIMESTAMPTZ"),
        ("b || a", "VARCHAR"),
        ("'{}'::json", "JSON"),
        ("NULL::int[]", "INT[]"),
        ("DECIMAL '1.5'", "DECIMAL(2,1)"),
    ],
)
def test_types(sql: str, type: str) -> None:
    assert type_of(sql) == type


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        # A string literal is read as its neighbour's type; a number keeps the column as it is where it can.
        ("d < '2024-01-01'", "d < 19723::DATE"),
        ("x < 24", "x < 2400::DECIMAL(15,2)"),
        ("x = 2.555", "CAST(x AS DECIMAL(16,3)) = 2555::DECIMAL(16,3)"),
        ("a > 2.0", "a > 2"),
        ("a = '5'", "a = 5"),
        ("f = 1", "f = 1.0::DOUBLE"),
        ("f = x", "f = CAST(x AS DOUBLE)"),
        ("b > 9", "CAST(b AS BIGINT) > 9"),
        ("a IN (1, '2')", "a IN (1, 2)"),
        ("a NOT IN (1, 2)", "NOT a IN (1, 2)"),
        ("d BETWEEN '2024-01-01' AND d", "(d >= 19723::DATE AND d <= d)"),
        ("a BETWEEN SYMMETRIC 3 AND 1", "((a >= 3 AND a <= 1) OR (a >= 1 AND a <= 3))"),
        ("a IS DISTINCT FROM 1", "a is distinct 1"),
        ("(a > 1) IS TRUE", "a > 1 is not distinct true"),
        ("(a > 1) IS NOT UNKNOWN", "NOT a > 1 IS NULL"),
        ("CASE a WHEN 1 THEN 'x' END", "CASE WHEN a = 1 THEN 'x' ELSE NULL END"),
        ("(a, b) = (1, 'x')", "(a = 1 AND b = 'x')"),
        ("(a, b) < (1, 'x')", "(a < 1 OR (a = 1 AND b < 'x'))"),
        ("(a, b) >= (1, 'x')", "(a > 1 OR (a = 1 AND b >= 'x'))"),
        ("(a, b) IN ((1, 'x'), (2, 'y'))", "((a = 1 AND b = 'x') OR (a = 2 AND b = 'y'))"),
        ("a = ANY(ARRAY[1, 2])", "(a = 1 OR a = 2)"),
        ("a > ALL(ARRAY[1, 2])", "(a > 1 AND a > 2)"),
        ("b LIKE 'x%'", "like(b, 'x%')"),
        ("b NOT ILIKE 'a#_' ESCAPE '#'", "NOT ilike(b, 'a#_', '#')"),
        ("2.7::int", "2::INT"),
        ("try_cast(b AS int)", "TRY_CAST(b AS INT)"),
        ("-INTERVAL '1 day'", "(0, -1, 0)::INTERVAL"),
        ("'5' + a", "(5 + a)"),
        ("1 + 2 * 3", "(1 + (2 * 3))"),
    ],
)
def test_bound_forms(sql: str, bound: str) -> None:
    assert expr(sql) == bound


def test_timestamps_meet_dates_and_zones() -> None:
    assert expr("tz > DATE '2024-01-01'", "e") == "tz > 1704067200000000::TIMESTAMPTZ"
    assert expr("ts = tz", "e") == "CAST(ts AS TIMESTAMPTZ) = tz"
    assert expr("tz < '2024-03-01 14:00+02'", "e") == "tz < 1709294400000000::TIMESTAMPTZ"


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("a + b", UndefinedFunction, "operator does not exist: bigint + varchar"),
        ("a = d", UndefinedFunction, "operator does not exist: bigint = date"),
        ("nosuch(a)", UndefinedFunction, "function nosuch does not exist"),
        ("length(a, b, d)", UndefinedFunction, "function length(bigint, varchar, date) does not exist"),
        ("d < 'abc'", InvalidText, 'invalid input syntax for type date: "abc"'),
        ("'abc'::int", InvalidText, 'invalid input syntax for type int: "abc"'),
        ("300::tinyint", NumericOutOfRange, "tinyint out of range: 300"),
        ("a::nothing", UndefinedObject, 'type "nothing" does not exist'),
        ("$missing", UndefinedParameter, "there is no parameter $missing"),
        ("CASE WHEN true THEN d ELSE 1 END", DatatypeMismatch, "CASE types date and bigint cannot be matched"),
        ("NOT a", DatatypeMismatch, "argument of NOT must be type boolean, not type bigint"),
    ],
)
def test_errors(sql: str, error: type[LakeError], words: str) -> None:
    with pytest.raises(error) as failure:
        expr(sql)
    assert failure.value.message == words
    assert failure.value.position is not None


def test_near_names_are_hints() -> None:
    with pytest.raises(UndefinedFunction) as failure:
        expr("lenght(b)")
    assert failure.value.hint == 'Did you mean "length"?'


def test_positions_point_into_the_text() -> None:
    with pytest.raises(InvalidText) as failure:
        bind("SELECT a FROM t WHERE d > DATE '2024-01-01' AND d < 'soon'")
    assert failure.value.position == 49


def test_overlaps() -> None:
    assert type_of("(d, d) OVERLAPS (DATE '2024-01-15', INTERVAL '1 day')") == "BOOLEAN"


def test_long_chains_bind() -> None:
    assert type_of("+".join(["a"] * 900)) == "BIGINT"
    assert type_of("||".join(["b"] * 900)) == "VARCHAR"
    assert bind("SELECT " + "+".join(["a"] * 500) + ", count(*) FROM t GROUP BY " + "+".join(["a"] * 500)).columns


def test_parameters_take_the_type_of_their_neighbour() -> None:
    from tests.sql.binding import tree

    assert "d = 19723::DATE" in tree("SELECT 1 FROM t WHERE d = $day", day="2024-01-01")
    assert "a = 7" in tree("SELECT 1 FROM t WHERE a = $1", p_1=7)


def test_python_values_become_constants() -> None:
    assert literal_of(5).type == BIGINT
    assert (literal_of(PyDecimal("1.50")).type, literal_of(PyDecimal("1.50")).value) == (Decimal(3, 2), 150)
    assert literal_of(datetime.date(1970, 1, 2)).value == 1
    assert literal_of(datetime.date(1970, 1, 2)).type == DATE
    moment = datetime.datetime(1970, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    assert (literal_of(moment).type, literal_of(moment).value) == (TIMESTAMPTZ, 3_600_000_000)
    assert literal_of(datetime.timedelta(days=1, microseconds=5)).value == (0, 1, 5_000)
    assert literal_of(datetime.timedelta()).type == INTERVAL
    assert literal_of(b"x").type == BYTES
    listed = literal_of([1, 2.5, None])
    assert (listed.type, listed.value) == (List(literal_of(2.5).type), (1.0, 2.5, None))
