"""The parser: what each form means, how tight operators bind, which words are names, and how long it all takes."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest

from lake.errors import FeatureNotSupported, LakeError, NumericOutOfRange, ProgramLimitExceeded, StatementTooComplex
from lake.sql import ast, parser, tables
from lake.sql.parser import keywords, parse, parse_expression, parse_type, reserved_words
from tests.sql.forms import EXPRESSIONS, STATEMENTS
from tests.tpch import QUERIES

A, B, C, D, X, Y = (ast.Column(ast.Name((name,))) for name in "abcdxy")
ONE, TWO, THREE = ast.Literal(1), ast.Literal(2), ast.Literal(3)


def call(name: str, *values: ast.Expr, **rest: object) -> ast.Call:
    """A call with plain arguments."""
    return ast.Call(ast.Name((name,)), tuple(ast.Argument(value) for value in values), **rest)  # type: ignore[arg-type]


def query_of(text: str) -> ast.Query:
    """The query that a text is."""
    (statement,) = parse(text)
    assert isinstance(statement, ast.QueryStatement)
    return statement.query


def select_of(text: str) -> ast.Select:
    """The SELECT that a text is."""
    body = query_of(text).body
    assert isinstance(body, ast.Select)
    return body


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression_is_read(text: str) -> None:
    """Every form of an expression parses and spans its text."""
    expr = parse_expression(text)
    assert expr.span is not None
    assert 0 <= expr.span.start < expr.span.end <= len(text)


@pytest.mark.parametrize("text", STATEMENTS)
def test_statement_is_read(text: str) -> None:
    """Every form of a statement parses to one statement that spans it."""
    (statement,) = parse(text)
    assert statement.span == ast.Span(0, len(text))


@pytest.mark.parametrize(
    ("short", "explicit"),
    [
        ("a OR b AND c", "a OR (b AND c)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT a = b", "NOT (a = b)"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("a IS NULL = b", "(a IS NULL) = b"),
        ("a = b IN (c)", "a = (b IN (c))"),
        ("a LIKE b || c", "a LIKE (b || c)"),
        ("a < b LIKE c", "a < (b LIKE c)"),
        ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
        ("a BETWEEN b + 1 AND c || d", "a BETWEEN (b + 1) AND (c || d)"),
        ("a || b + c", "a || (b + c)"),
        ("a -> b ->> c = d", "((a -> b) ->> c) = d"),
        ("a + b * c ^ d", "a + (b * (c ^ d))"),
        ("a - b - c", "(a - b) - c"),
        ("a ^ b ^ c", "(a ^ b) ^ c"),
        ("-a ^ b", "(-a) ^ b"),
        ("-a::int", "-(a::int)"),
        ("a::int[1]", "a::int[]"),
        ("a AT TIME ZONE b ^ c", "(a AT TIME ZONE b) ^ c"),
        ("-a AT TIME ZONE b", "(-a) AT TIME ZONE b"),
        ("a % b // c", "(a % b) // c"),
        ("a & b = c", "(a & b) = c"),
        ("a[1]::int", "(a[1])::int"),
        ("~a + b", "(~a) + b"),
        ("a != b", "a <> b"),
        ("a == b", "a = b"),
        ("a ~~ b", "a LIKE b"),
        ("a <=> b", "a IS NOT DISTINCT FROM b"),
        ("a NOTNULL", "a IS NOT NULL"),
        ("f(x -> a = b)", "f((x -> a) = b)"),
        ("f(x -> a + b IS NULL AND c)", "f(((x -> (a + b)) IS NULL) AND c)"),
        ("f(x -> (a = b))", "f((x -> (a = b)))"),
        ("substring(a FROM b FOR c)", "substring(a, b, c)"),
        ("substring(a FOR b)", "substring(a, 1, b)"),
        ("position(a IN b)", "strpos(b, a)"),
        ("trim(a)", "trim(a)"),
        ("trim(LEADING b FROM a)", "ltrim(a, b)"),
        ("trim(b FROM a)", "btrim(a, b)"),
        ("overlay(a PLACING b FROM 1 FOR 2)", "overlay(a, b, 1, 2)"),
        ("(a, b) OVERLAPS (c, d)", "overlaps(a, b, c, d)"),
        ("INTERVAL 3 MONTH", "INTERVAL '3' MONTH"),
        ("INTERVAL (a) DAY", "a * INTERVAL '1' DAY"),
        ("ARRAY[a, b]", "[a, b]"),
        ("ROW(a, b)", "(a, b)"),
        ("f(a := 1)", "f(a => 1)"),
        ("first(a IGNORE NULLS) OVER ()", "first(a) IGNORE NULLS OVER ()"),
        ("first(lower(a) IGNORE NULLS) OVER ()", "first(lower(a)) IGNORE NULLS OVER ()"),
        ("sum(a) OVER (ROWS 1 PRECEDING)", "sum(a) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"),
        ("((((a))))", "a"),
    ],
)
def test_expression_means(short: str, explicit: str) -> None:
    """Two ways to write one expression make one tree."""
    assert parse_expression(short) == parse_expression(explicit)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A.\"B\".c", ast.Column(ast.Name(("a", "B", "c")))),
        ("a AND b AND c", ast.And((A, B, C))),
        ("a OR b OR c", ast.Or((A, B, C))),
        ("1_000 + 0x1F", ast.Binary("+", ast.Literal(1000), ast.Literal(31))),
        ("[1., .5, 1e5, 2.50]", ast.ListLiteral(
            (ast.Literal(Decimal("1")), ast.Literal(Decimal("0.5")), ast.Literal(1e5), ast.Literal(Decimal("2.50")))
        )),
        ("'it''s'", ast.Literal("it's")),
        (r"E'a\n\x41\u00e9\\'", ast.Literal("a\nAé\\")),
        ("$$a'b$$ || $t$c$$d$t$", ast.Binary("||", ast.Literal("a'b"), ast.Literal("c$$d"))),
        ("x'00ff'", ast.Literal(b"\x00\xff")),
        ("$name + $1", ast.Binary("+", ast.Parameter("name"), ast.Parameter("1"))),
        ("? = ?", ast.Binary("=", ast.Parameter("1"), ast.Parameter("2"))),
        ("a ? 'k'", ast.Binary("?", A, ast.Literal("k"))),
        ("DATE '2024-01-01'", ast.TypedLiteral(ast.TypeName("date"), "2024-01-01")),
        ("INTERVAL '1-2' YEAR TO MONTH", ast.IntervalLiteral("1-2", "YEAR TO MONTH")),
        ("EXTRACT(Year FROM a)", ast.Extract("year", A)),
        ("a::timestamp(3) with time zone[]", ast.Cast(A, ast.TypeName("timestamp with time zone", (3,), 1), False, True)),
        ("TRY_CAST(a AS DOUBLE PRECISION)", ast.Cast(A, ast.TypeName("double precision"), is_try=True)),
        ("(a).b[1:]", ast.Slice(ast.Subscript(A, ast.Literal("b")), ONE, None)),
        ("{a: 1, 'B': 2}", ast.StructLiteral((("a", ONE), ("B", TWO)))),
        ("f(x -> x + 1)", call("f", ast.Lambda(("x",), ast.Binary("+", X, ONE)))),
        ("f((x, y) -> 1)", call("f", ast.Lambda(("x", "y"), ONE))),
        ("f(LAMBDA x: 1)", call("f", ast.Lambda(("x",), ONE))),
        ("f(x -> 1)", call("f", ast.Binary("->", X, ONE))),
        ("[x * 2 FOR x IN a IF b]", ast.ListComprehension(ast.Binary("*", X, TWO), "x", A, B)),
        ("count(*)", call("count", ast.Star())),
        ("count(DISTINCT a) FILTER (WHERE b)", call("count", A, distinct=True, filter=B)),
        ("f(a ORDER BY b DESC NULLS LAST)", call("f", A, order=(ast.SortItem(B, True, False),))),
        ("f(1) WITHIN GROUP (ORDER BY a)", call("f", ONE, within_group=(ast.SortItem(A),))),
        ("f(a) OVER w", call("f", A, over=ast.Window("w"))),
        ("COLUMNS(* EXCLUDE (a))", ast.Columns(ast.Star(exclude=(ast.Name(("a",)),)))),
        ("current_date", call("current_date")),
        ("a = ALL (b)", ast.Quantified("=", A, B, every=True)),
        ("a IS NOT UNKNOWN", ast.IsTruth(A, None, negated=True)),
        ("a NOT ILIKE b ESCAPE c", ast.Like(ast.LikeKind.ILIKE, A, B, C, negated=True)),
        ("a NOT BETWEEN SYMMETRIC b AND c", ast.Between(A, B, C, negated=True, symmetric=True)),
        ("CASE a WHEN 1 THEN 2 ELSE 3 END", ast.Case(A, ((ONE, TWO),), THREE)),
    ],
)  # fmt: skip
def test_expression_tree(text: str, expected: ast.Expr) -> None:
    """The tree of a form, node by node."""
    assert repr(parse_expression(text)) == repr(expected)


def test_frame() -> None:
    """A frame has both its ends, and what it leaves out."""
    expr = parse_expression("sum(a) OVER (ORDER BY b GROUPS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES)")
    assert isinstance(expr, ast.Call) and expr.over is not None
    assert expr.over.frame == ast.Frame(
        ast.FrameUnit.GROUPS,
        ast.FrameBound(ast.BoundKind.PRECEDING, ONE),
        ast.FrameBound(ast.BoundKind.UNBOUNDED_FOLLOWING),
        ast.Exclusion.TIES,
    )


@pytest.mark.parametrize(
    ("text", "explicit"),
    [
        ("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3", "SELECT 1 UNION (SELECT 2 INTERSECT SELECT 3)"),
        ("SELECT 1 EXCEPT SELECT 2 UNION ALL SELECT 3", "(SELECT 1 EXCEPT SELECT 2) UNION ALL SELECT 3"),
        ("(SELECT 1) UNION (SELECT 2) ORDER BY 1", "SELECT 1 UNION SELECT 2 ORDER BY 1"),
        ("FROM t", "SELECT * FROM t"),
        ("FROM t SELECT a WHERE b", "SELECT a FROM t WHERE b"),
        ("TABLE t", "SELECT * FROM t"),
        ("SELECT a, b, FROM t", "SELECT a, b FROM t"),
        ("SELECT a FROM t OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY", "SELECT a FROM t LIMIT 3 OFFSET 2"),
        ("SELECT a FROM t OFFSET 2 LIMIT 3", "SELECT a FROM t LIMIT 3 OFFSET 2"),
        ("SELECT a FROM t LIMIT 10%", "SELECT a FROM t LIMIT 10 PERCENT"),
        ("SELECT a FROM t LIMIT ALL", "SELECT a FROM t"),
        ("SELECT 1 FROM t LEFT OUTER JOIN u USING (a)", "SELECT 1 FROM t LEFT JOIN u USING (a)"),
        ("SELECT 1 FROM a JOIN b JOIN c ON x ON y", "SELECT 1 FROM a JOIN (b JOIN c ON x) ON y"),
        ("SELECT 1 FROM a JOIN b ON x JOIN c ON y", "SELECT 1 FROM (a JOIN b ON x) JOIN c ON y"),
        ("SELECT 1 FROM a LEFT SEMI JOIN b ON x", "SELECT 1 FROM a SEMI JOIN b ON x"),
        ("SELECT 1 FROM t FOR SYSTEM_TIME AS OF 'x'", "SELECT 1 FROM t AT (TIMESTAMP => 'x')"),
        ("SELECT 1 FROM t VERSION AS OF 3", "SELECT 1 FROM t AT (VERSION => 3)"),
        ("SELECT 1 FROM t TABLESAMPLE (10)", "SELECT 1 FROM t TABLESAMPLE (10 PERCENT)"),
        ("FROM t USING SAMPLE 10", "FROM t USING SAMPLE 10 ROWS"),
        ("SELECT ((SELECT 1))", "SELECT (SELECT 1)"),
        ("PIVOT t ON a IN (1) USING sum(b) GROUP BY c", "SELECT * FROM t PIVOT (sum(b) FOR a IN (1) GROUP BY c)"),
        ("UNPIVOT t ON a, b INTO NAME n VALUE v", "SELECT * FROM t UNPIVOT (v FOR n IN (a, b))"),
        ("SELECT 1 GROUP BY ()", "SELECT 1 GROUP BY GROUPING SETS (())"),
    ],
)
def test_query_means(text: str, explicit: str) -> None:
    """Two ways to write one query make one tree."""
    assert query_of(text) == query_of(explicit)


def test_select_keeps_words_and_spans() -> None:
    """Items keep what the user wrote, and nodes where it stands."""
    text = "SELECT  a +  1, (b)  AS c FROM t"
    select = select_of(text)
    assert [(item.text, item.alias) for item in select.items] == [("a +  1", None), ("(b)", "c")]
    span = select.sources[0].span
    assert span is not None and text[span.start : span.end] == "t"
    first = select.items[0].expr
    assert isinstance(first, ast.Binary) and first.right.span == ast.Span(13, 14)


def test_statement_texts_of_a_script() -> None:
    """Statements of a script know their own text; empty ones are skipped."""
    text = "SELECT 1; -- one\n;\n  DROP TABLE t ;"
    spans = [statement.span for statement in parse(text)]
    assert [text[span.start : span.end] for span in spans if span] == ["SELECT 1", "DROP TABLE t"]
    assert parse(" ; -- nothing\n") == []


def test_ddl_keeps_the_users_words() -> None:
    """DEFAULT, CHECK and the query of a view are kept as written."""
    (table,) = parse("CREATE TABLE t (a INT DEFAULT 1  + 2 NOT NULL CHECK (a  > 0), CONSTRAINT k CHECK (a<9))")
    assert isinstance(table, ast.CreateTable)
    (column,) = table.columns
    assert (column.default_text, column.not_null, column.rules[0].condition_text) == ("1  + 2", True, "a  > 0")
    assert (table.constraints[0].name, table.constraints[0].condition_text) == ("k", "a<9")
    (view,) = parse("CREATE VIEW v AS SELECT  1 -- one\n;")
    assert isinstance(view, ast.CreateView) and view.query_text == "SELECT  1"


def test_select_into_makes_a_table() -> None:
    """SELECT .. INTO t is CREATE TABLE t AS, and stands only where a table can be made."""
    (statement,) = parse("SELECT a INTO t FROM u UNION SELECT 1")
    assert isinstance(statement, ast.CreateTable) and statement.name == ast.Name(("t",))
    for text in ("SELECT 1 UNION SELECT 2 INTO t", "SELECT (SELECT 1 INTO t)"):
        with pytest.raises(FeatureNotSupported):
            parse(text)


# Words that are names but not everywhere, because a keyword of that spelling could begin or go on there.
_NOT_NAMES = {
    "SELECT {} FROM t": {"TRY_CAST"},
    "SELECT 1 AS {}": set(),
    "SELECT a {} FROM t": {"COLLATE", "OVERLAPS"},
    "SELECT t.{} FROM t": set(),
    "SELECT * FROM {}": set(),
    "SELECT * FROM t AS {}": set(),
    "SELECT * FROM t {}": {"PIVOT", "UNPIVOT", "TABLESAMPLE"},
    "SELECT {}(1)": {"TRY_CAST", "INTERVAL"},
    "CREATE TABLE t ({} INT)": set(),
    "SELECT 1 FROM t WHERE a = {} ORDER BY b": {"TRY_CAST"},
}


@pytest.mark.parametrize("form", _NOT_NAMES)
def test_unreserved_words_are_names(form: str) -> None:
    """A keyword that is not reserved is a name wherever the grammar has no use for the keyword."""

    def is_refused(word: str) -> bool:
        try:
            parse(form.format(word))
        except LakeError:
            return True
        return False

    assert {word for word in keywords() - reserved_words() if is_refused(word)} == _NOT_NAMES[form]


@pytest.mark.parametrize("word", sorted(reserved_words()))
def test_reserved_words_are_labels_and_quoted_names(word: str) -> None:
    """A reserved word is a label after AS or a dot, a name in quotes, and nothing else."""
    assert select_of(f'SELECT t.{word} AS {word}, "{word}" FROM t').items[0].alias == word.lower()
    with pytest.raises(LakeError):
        parse(f"INSERT INTO t ({word}) VALUES (1)")


@pytest.mark.parametrize("number", QUERIES)
def test_tpch_parses_fast(number: int) -> None:
    """A query of TPC-H takes about half a millisecond; ten are allowed here, for slow and busy machines."""
    parse("SELECT 1")
    times = []
    for _ in range(5):
        start = time.thread_time()
        parse(QUERIES[number])
        times.append(time.thread_time() - start)
    assert min(times) < 0.01


def test_types() -> None:
    """Types stand alone too."""
    assert parse_type("DECIMAL(15, 2)[][]") == ast.TypeName("decimal", (15, 2), 2)
    assert parse_type("character varying(10)") == ast.TypeName("varchar", (10,))
    assert parse_type("timestamp without time zone") == ast.TypeName("timestamp")


def test_threads_share_the_parser() -> None:
    """Many threads parse at once, each its own text."""
    texts = [f"SELECT a{number} + ? FROM t WHERE b = 'x{number}'" for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        for text, statements in zip(texts, pool.map(parse, texts), strict=True):
            assert statements == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a IN (" + ",".join(map(str, range(20_000))) + ")",
        "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
        "SELECT " + " OR ".join(["a = 1"] * 5_000),
        "VALUES " + ", ".join(["(1, 'a')"] * 10_000),
        " UNION ALL ".join(["SELECT 1"] * 500),
        "SELECT 1;" * 2_000,
    ],
    ids=["in", "parentheses", "or", "values", "union", "script"],
)
def test_long_texts_take_linear_time(text: str) -> None:
    """Size alone is no difficulty."""
    start = time.thread_time()
    parse(text)
    assert time.thread_time() - start < 3


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "+".join(["1"] * 10_000),
        "SELECT " + "NOT " * 3_000 + "a",
        "SELECT " + "(SELECT " * 3_000 + "1" + ")" * 3_000,
        "SELECT " + "[" * 3_000 + "]" * 3_000,
        "SELECT a" + "::int" * 3_000,
    ],
    ids=["sum", "not", "subquery", "list", "cast"],
)
def test_deep_trees_are_refused(text: str) -> None:
    """Depth is limited, so that no pass over a tree runs out of stack."""
    with pytest.raises(StatementTooComplex, match="deeper than 1000"):
        parse(text)


def test_trees_of_allowed_depth_can_be_walked() -> None:
    """Comparing, walking and rewriting a tree of the greatest depth works in a thread."""
    text = "+".join(["a"] * (parser.DEPTH_MAX - 10))

    def work() -> int:
        expr = parse_expression(text)
        assert ast.rewrite(expr, lambda node: node) == parse_expression(text)
        return sum(1 for _ in ast.walk(expr))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == 2 * (parser.DEPTH_MAX - 10) - 1


def test_limits_of_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts and numbers past all use are refused by their own codes."""
    monkeypatch.setattr(parser, "TEXT_MAX", 20)
    with pytest.raises(ProgramLimitExceeded):
        parse("SELECT 'aaaaaaaaaaaaaaaaaaaaaaaa'")
    for number in ("9" * 5_000, "1e999"):
        monkeypatch.setattr(parser, "TEXT_MAX", 10_000)
        with pytest.raises(NumericOutOfRange):
            parse(f"SELECT {number}")


def test_tables_are_kept_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are kept in the cache; a spoilt file is made again, and a folder that cannot be written is no failure."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(tables, "cache_folder", lambda: folder)
    made = tables.load_tables()
    (path,) = folder.iterdir()
    assert tables.load_tables() == made
    path.write_bytes(b"spoilt")
    again = tables.load_tables()
    assert again.words == made.words
    assert tables.load_tables() == again
    monkeypatch.setattr(tables, "cache_folder", lambda: path / "no")
    assert tables.load_tables().words == made.words


def test_kept_tables_load_without_lark() -> None:
    """A process that finds its tables does not import Lark."""
    parse("SELECT 1")
    code = "import sys; from lake.sql.parser import parse; parse('SELECT 1'); sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
