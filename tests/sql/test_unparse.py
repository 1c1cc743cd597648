"""Trees as text: what is written reads back as the same tree."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lake.sql import ast
from lake.sql.parser import parse, parse_expression, parse_type
from lake.sql.quoting import quote_name, type_text
from lake.sql.unparse import unparse
from lake.sql.unparse_statement import unparse_statement
from tests.sql.forms import EXPRESSIONS, STATEMENTS
from tests.tpch import QUERIES


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression_round_trip(text: str) -> None:
    """Every form of an expression reads back from its canonical text."""
    expr = parse_expression(text)
    assert parse_expression(unparse(expr)) == expr


@pytest.mark.parametrize("text", [*STATEMENTS, *QUERIES.values()])
def test_statement_round_trip(text: str) -> None:
    """Every form of a statement reads back from its canonical text."""
    (statement,) = parse(text)
    (again,) = parse(unparse_statement(statement))
    assert without_words(again) == without_words(statement)


def without_words(statement: ast.Statement) -> ast.Statement:
    """A statement without the texts that it keeps as the user wrote them."""
    match statement:
        case ast.CreateView():
            return replace(statement, query_text="")
        case ast.CreateTable():
            columns = tuple(
                replace(column, default_text=None, rules=tuple(replace(rule, condition_text=None) for rule in column.rules))
                for column in statement.columns
            )
            constraints = tuple(replace(constraint, condition_text=None) for constraint in statement.constraints)
            return replace(statement, columns=columns, constraints=constraints)
    return statement


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("((a+b))*c-(d)", "(a + b) * c - d"),
        ("a or (b and c)", "a OR b AND c"),
        ("(a or b) and not (c = d)", "(a OR b) AND NOT c = d"),
        ("a-(b-c)", "a - (b - c)"),
        ("- - a", "- -a"),
        ("~ ~ a", "~ ~a"),
        ("cast(a as INT)", "CAST(a AS int)"),
        ("(a::int[])[1]", "(a::int[])[1]"),
        ('"select" + "Year" + "year"', '"select" + "Year" + year'),
        ("count( * )filter(where a)", "count(*) FILTER (WHERE a)"),
        ("interval 3 month", "INTERVAL '3' MONTH"),
        ("x'00FF'", "x'00ff'"),
        ("1e5 + 1.50", "100000.0e0 + 1.50"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    """Parentheses stand only where they must, and words have one spelling."""
    assert unparse(parse_expression(text)) == canonical


def test_names_are_quoted_where_they_must_be() -> None:
    """Reserved words, capitals and odd letters need quotes; a label may be a reserved word."""
    texts = [quote_name(name) for name in ("a", "select", "A", "a b", 'a"b', "1a", "é", "date")]
    assert texts == ["a", '"select"', '"A"', '"a b"', '"a""b"', '"1a"', "é", "date"]
    assert quote_name("select", is_label=True) == "select"


@pytest.mark.parametrize("text", ["decimal(15, 2)[]", "timestamp(3) with time zone", "double precision", '"My type"'])
def test_type_round_trip(text: str) -> None:
    """Types read back as they are written."""
    assert type_text(parse_type(text)) == text


# --- any expression --------------------------------------------------------------------------------------------------


def node(kind: type[ast.Node], *fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Nodes of a kind; Hypothesis would look up a struct's annotations, which are known to mypy alone."""
    return st.builds(lambda *values: kind(*values), *fields)


names = st.sampled_from(["a", "b", "x", "y", "select", "Mixed", "two words", "interval", "values", "row"])
constants: st.SearchStrategy[bool | int | str | bytes | Decimal | float | None] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 10**30),
    st.text(st.characters(codec="utf-8"), max_size=6),
    st.binary(max_size=4),
    st.decimals(0, 10**12, allow_nan=False, places=3),
    st.floats(0, 1e300, allow_nan=False),
)
leaves = st.one_of(
    node(ast.Literal, constants),
    st.builds(lambda *parts: ast.Column(ast.Name(parts)), names),
    st.builds(lambda *parts: ast.Column(ast.Name(parts)), names, names),
    node(ast.Parameter, st.sampled_from(["1", "p"])),
    node(ast.IntervalLiteral, st.sampled_from(["1", "1 day"]), st.sampled_from([None, "DAY", "YEAR TO MONTH"])),
    node(ast.TypedLiteral, st.just(ast.TypeName("date")), st.just("2024-01-01")),
)
type_names = node(
    ast.TypeName,
    st.sampled_from(["int", "double precision", "timestamp with time zone"]),
    st.just(()),
    st.integers(0, 1),
)
BINARY = "+ - * / // % ^ ** || & | # << >> = <> < <= > >= ~ ~* !~ -> ->> @> <@ && ? ^@".split()


def larger(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    """Expressions one level above ``inner``."""
    some = st.lists(inner, min_size=2, max_size=3).map(tuple)
    any_number = st.lists(inner, max_size=3).map(tuple)
    maybe = st.one_of(st.none(), inner)
    flags = st.booleans()
    order = st.lists(node(ast.SortItem, inner, flags, st.sampled_from([None, True, False])), max_size=2).map(tuple)
    window = node(ast.Window, st.sampled_from([None, "w"]), any_number, order)
    arguments = st.lists(node(ast.Argument, inner, st.sampled_from([None, "n"])), min_size=1, max_size=3).map(
        tuple
    )
    return st.one_of(
        node(ast.Binary, st.sampled_from(BINARY), inner, inner),
        node(ast.Unary, st.sampled_from("-+~@"), inner),
        node(ast.And, some),
        node(ast.Or, some),
        node(ast.Not, inner),
        node(ast.IsNull, inner, flags),
        node(ast.IsTruth, inner, st.sampled_from([True, False, None]), flags),
        node(ast.IsDistinct, inner, inner, flags),
        node(ast.Between, inner, inner, inner, flags, flags),
        node(ast.InList, inner, some, flags),
        node(ast.Like, st.sampled_from(ast.LikeKind), inner, inner, maybe, flags),
        node(ast.Case, maybe, st.lists(st.tuples(inner, inner), min_size=1, max_size=2).map(tuple), maybe),
        node(ast.Cast, inner, type_names),
        st.builds(lambda operand, name: ast.Cast(operand, name, is_infix=True), inner, type_names),
        node(ast.Extract, st.sampled_from(["year", "epoch"]), inner),
        node(ast.AtTimeZone, inner, inner),
        node(ast.Subscript, inner, inner),
        node(ast.Slice, inner, maybe, maybe),
        node(ast.Row, some),
        node(ast.ListLiteral, any_number),
        node(ast.StructLiteral, st.lists(st.tuples(names, inner), max_size=2).map(tuple)),
        node(ast.ListComprehension, inner, names, inner, maybe),
        # A subquery in parentheses is the query itself there.
        node(ast.Quantified, st.sampled_from(["=", "<>", "<"]), inner, inner, flags).filter(
            lambda made: not isinstance(made.source, ast.ScalarSubquery)
        ),
        st.builds(lambda body: ast.Call(ast.Name(("f",)), (ast.Argument(ast.Lambda(("x",), body)),)), inner),
        node(ast.Call, st.just(ast.Name(("f",))), arguments, flags, order, order, maybe, flags),
        st.builds(lambda values, over: ast.Call(ast.Name(("f",)), values, over=over), arguments, window),
        st.builds(lambda items: ast.ScalarSubquery(query_of(items)), some),
        st.builds(lambda operand, items, no: ast.InSubquery(operand, query_of(items), no), inner, some, flags),
    )


def query_of(items: tuple[ast.Expr, ...]) -> ast.Query:
    """A query of these items."""
    return ast.Query(ast.Select(tuple(ast.SelectItem(item) for item in items)))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(expr=st.recursive(leaves, larger, max_leaves=12))
def test_any_expression_round_trips(expr: ast.Expr) -> None:
    """What any tree is written as reads back as that tree, to the types of its constants."""
    again = parse_expression(unparse(expr))
    assert again == expr, unparse(expr)
    assert kinds_of_constants(again) == kinds_of_constants(expr)


def kinds_of_constants(expr: ast.Expr) -> list[type]:
    """The Python types of all literals, which equality does not tell apart."""
    return [type(node.value) for node in ast.walk(expr) if isinstance(node, ast.Literal)]
