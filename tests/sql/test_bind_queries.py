"""Queries: names, groups, windows, subqueries, joins, set operations, WITH, as golden plans."""

from __future__ import annotations

from textwrap import dedent

import pytest

from lake.errors import ERRORS, LakeError, StatementTooComplex
from lake.sql import plan
from lake.sql.bind import Binder
from lake.sql.catalog import Settings
from tests.sql.binding import Names, bind, query_of, tree, types


def assert_tree(sql: str, expected: str) -> None:
    """The plan of ``sql`` is ``expected``."""
    assert tree(sql) == dedent(expected).strip()


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT a, t.b, SUM( a ), COUNT(*), a+1, 'x' FROM t GROUP BY ALL", "a|b|sum(a)|count(*)|a + 1|'x'"),
        ("SELECT d::date FROM t", "d"),
        ("SELECT d::date, d FROM t", "d::DATE|d"),
        ("SELECT id, id, id FROM orders", "id|id_1|id_2"),
        ("SELECT a AS id_1, c AS id, a AS id FROM s", "id_1|id|id_2"),
        ("SELECT * FROM s, s AS r", "a|c|a_1|c_1"),
        ("SELECT * EXCLUDE (c) FROM s", "a"),
        ("SELECT * RENAME (a AS q) FROM s", "q|c"),
        ("SELECT * REPLACE (a + 1 AS a) FROM s", "a|c"),
        ("SELECT s.*, t.a FROM s, t", "a|c|a_1"),
        ("SELECT COLUMNS('^a') FROM t", "a"),
        ("SELECT COLUMNS(c -> c LIKE '%') FROM s", "a|c"),
        ("SELECT max(COLUMNS(*)) FROM s", "max(a)|max(c)"),
        ("FROM s", "a|c"),
        ("VALUES (1, 'a')", "column1|column2"),
        ("SELECT * FROM s JOIN t USING (a)", "a|c|b|d|x|f|l"),
        ("SELECT mixed FROM orders", "mixed"),
        ("SELECT * FROM w", "first"),
        ("SELECT (a + 1) * 2 FROM t", "(a + 1) * 2"),
    ],
)
def test_names(sql: str, names: str) -> None:
    assert "|".join(bind(sql).names) == names


def test_where_may_use_aliases_but_a_column_wins() -> None:
    assert "Filter (a + 1) > 2" in tree("SELECT a + 1 AS z FROM t WHERE z > 2")
    assert "Filter b = 'x'" in tree("SELECT a AS b FROM t WHERE b = 'x'")


def test_groups() -> None:
    assert_tree(
        "SELECT upper(b) AS u, count(*) FROM t GROUP BY upper(b) HAVING sum(a) > 1 ORDER BY upper(b), u",
        """
        Sort u, u
          Project u, count
            Filter sum > 1
              Aggregate [upper(b) = upper(b)] [count(*), sum(a)]
                Scan public.t
        """.replace("Project u, count", "Project upper(b), count").replace("Sort u, u", "Sort upper(b), upper(b)"),
    )
    assert "Aggregate [b, a + 1 = (a + 1)]" in tree("SELECT b, a + 1, count(*) FROM t GROUP BY 1, 2")
    assert "Aggregate [z = (a + 1)]" in tree("SELECT a + 1 AS z, count(*) FROM t GROUP BY z")
    assert "Aggregate [b] [count(*)]" in tree("SELECT b, count(*) FROM t GROUP BY ALL")
    assert "Aggregate [] [count(*)]" in tree("SELECT 1 FROM t HAVING count(*) > 1")


def test_aggregates_are_collected_once() -> None:
    assert "[sum(a), count(DISTINCT b) FILTER a > 1]" in tree(
        "SELECT sum(a), sum(a) + 1, count(DISTINCT b) FILTER (WHERE a > 1) FROM t ORDER BY sum(a)"
    )


def test_grouping_sets() -> None:
    assert "sets ((0, 1), (0), ())" in tree("SELECT a, b FROM t GROUP BY ROLLUP (a, b)")
    assert "sets ((0, 1), (0), (1), ())" in tree("SELECT a, b FROM t GROUP BY CUBE (a, b)")
    assert "sets ((0, 1), (0, 2))" in tree("SELECT a FROM t GROUP BY a, GROUPING SETS (b, d)")
    text = tree("SELECT a, grouping(a, b) FROM t GROUP BY ROLLUP (a, b)")
    assert "grouping_id & 2" in text
    assert "sets ((0, 1), (0), ()) grouping_id" in text


def test_order_by() -> None:
    assert_tree(
        "SELECT a AS z FROM t ORDER BY z + 1 DESC, b LIMIT 2 OFFSET 1",
        """
        Project a
          Limit limit 2 offset 1
            Sort order DESC NULLS FIRST, b
              Project a, order = (a + 1), b
                Scan public.t
        """,
    )
    assert tree("SELECT a FROM t ORDER BY ALL DESC NULLS LAST").startswith("Sort a DESC\n")
    assert "ties c" in tree("SELECT c FROM s ORDER BY c FETCH FIRST 2 ROWS WITH TIES")


def test_distinct_on() -> None:
    assert_tree(
        "SELECT DISTINCT ON (a) b FROM t ORDER BY a, f DESC",
        """
        Project b
          Sort a, f DESC NULLS FIRST
            Distinct on [a] [a, f DESC NULLS FIRST]
              Project b, a, f
                Scan public.t
        """,
    )


def test_subqueries() -> None:
    text = tree(
        "SELECT (SELECT max(c) FROM s WHERE s.a = t.a) FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.a = t.a) "
        "AND a NOT IN (SELECT c FROM s) AND (a, b) IN (SELECT a, b FROM t)"
    )
    assert "scalar<Project max / Aggregate [] [max(c)] / Filter a = a / Scan public.s outer 1>" in text
    assert "exists<Project 1 = 1 / Filter a = a / Scan public.s outer 1>" in text
    assert "NOT a = ANY <Project c = CAST(c AS BIGINT) / Project c / Scan public.s>" in text
    assert "a, b = ANY <" in text


def test_an_outer_column_is_made_anew() -> None:
    made = bind("SELECT (SELECT t.a) FROM t, LATERAL (SELECT t.b) AS q").plan
    joins = [node for node in plan.walk(made) if isinstance(node, plan.Join)]
    assert joins[0].dependent
    assert not {c.id for c in joins[0].left.columns} & {c.id for c in joins[0].right.columns}


def test_joins() -> None:
    assert "Join left a = a AND c > 1::INT" in tree("SELECT 1 FROM t LEFT JOIN s ON t.a = s.a AND c > 1")
    assert "CASE WHEN a IS NULL THEN a ELSE a END" in tree("SELECT a FROM t FULL JOIN s USING (a)")
    assert "Join inner a = a" in tree("SELECT * FROM t NATURAL JOIN s")
    assert "Join semi a = a" in tree("SELECT * FROM t SEMI JOIN s USING (a)")
    assert "AsofJoin left [a = a] a >= CAST(c AS BIGINT)" in tree(
        "SELECT * FROM t ASOF JOIN s MATCH_CONDITION (t.a >= s.c) ON t.a = s.a"
    )
    assert "AsofJoin [a = a] a > CAST(c AS BIGINT)" in tree(
        "SELECT * FROM t ASOF JOIN s ON s.a = t.a AND s.c < t.a"
    )


def test_unnest_needs_no_join() -> None:
    assert_tree(
        "SELECT u FROM t LEFT JOIN unnest(t.l) WITH ORDINALITY AS x(u, n) ON true",
        """
        Project unnest
          Unnest unnest = l ordinality outer
            Scan public.t
        """,
    )
    assert bind("SELECT u FROM unnest([1, 2]) AS u").names == ("u",)


def test_pivot_and_unpivot() -> None:
    made = bind("PIVOT t ON b IN ('x', 'y' AS w) USING sum(f) GROUP BY a")
    assert made.names == ("a", "x", "w")
    assert "sum(f) FILTER b is not distinct 'x'" in tree("PIVOT t ON b IN ('x', 'y') USING sum(f) GROUP BY a")
    assert bind("UNPIVOT t ON a, f INTO NAME n VALUE v").names == ("b", "d", "x", "l", "n", "v")
    assert "Unnest n = ['a', 'f'], v = [CAST(a AS DOUBLE), f]" in tree("UNPIVOT t ON a, f INTO NAME n VALUE v")


def test_set_operations_unify_types() -> None:
    assert types("SELECT 1 UNION ALL SELECT 2.5") == ["DECIMAL(21,1)"]
    assert types("SELECT 1 UNION ALL SELECT 'x'") == ["VARCHAR"]
    assert types("SELECT d FROM t UNION SELECT '2024-01-01'") == ["DATE"]
    assert types("SELECT NULL UNION SELECT d FROM t") == ["DATE"]
    assert types("VALUES (1, NULL), (2.5, 'a')") == ["DECIMAL(21,1)", "VARCHAR"]
    made = bind("SELECT a FROM s UNION ALL BY NAME SELECT c, a FROM s")
    assert (made.names, [column.type.sql for column in made.columns]) == (("a", "c"), ["BIGINT", "INT"])
    assert tree("SELECT a FROM s EXCEPT ALL SELECT a FROM t").startswith("SetOperation except all")


def test_with() -> None:
    assert "Materialize" not in tree("WITH c AS (SELECT a FROM t) SELECT * FROM c")
    assert tree("WITH c AS (SELECT a FROM t) SELECT * FROM c, c AS d").startswith("Materialize c")
    assert "CteScan" not in tree("WITH c AS NOT MATERIALIZED (SELECT a FROM t) SELECT * FROM c, c AS d")
    assert tree("WITH c AS MATERIALIZED (SELECT 1) SELECT * FROM c").startswith("Materialize c")
    assert bind("WITH c(q) AS (SELECT a FROM t) SELECT q FROM c").names == ("q",)


def test_recursion() -> None:
    assert_tree(
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT n FROM r",
        """
        Materialize r
          Recursion r all
            Project 1 = 1
              Values ()
            Project n + 1 = (n + 1)
              Filter n < 10
                CteScan r
          Project n
            CteScan r
        """,
    )


def test_views() -> None:
    made = bind("SELECT v.a, n FROM v JOIN s ON v.a = s.a")
    assert made.names == ("a", "n")
    with pytest.raises(LakeError) as failure:
        bind("SELECT 1, * FROM broken")
    assert failure.value.position is None  # the view's text is not the statement's
    with pytest.raises(StatementTooComplex):
        bind("SELECT * FROM loop")


def test_time_travel_is_handed_to_the_catalog() -> None:
    names = Names()
    Binder(names, Settings(now=0)).query(query_of("SELECT a FROM t AT (OFFSET => -60)"))
    assert names.asked == ("offset", -60)


def test_samples_and_files() -> None:
    assert "Sample 10.0% seed 7" in tree("SELECT * FROM t TABLESAMPLE BERNOULLI (10) REPEATABLE (7)")
    assert bind("FROM 'x.txt'").names == ("line",)


@pytest.mark.parametrize(
    ("sql", "state", "words", "hint"),
    [
        ("SELECT amout FROM orders", "42703", 'column "amout" does not exist', 'Did you mean "amount"?'),
        ("SELECT o.amout FROM orders o", "42703", "column o.amout does not exist", 'Did you mean "amount"?'),
        ("SELECT q.a FROM t", "42P01", 'missing FROM-clause entry for table "q"', None),
        ("SELECT * FROM nope", "42P01", 'relation "nope" does not exist', None),
        ("SELECT a FROM t, s", "42702", 'column reference "a" is ambiguous', None),
        ("SELECT 1 FROM t, s AS t", "42712", 'table name "t" specified more than once', None),
        ("SELECT a, count(*) FROM t", "42803",
         'column "t.a" must appear in the GROUP BY clause or be used in an aggregate function', None),
        ("SELECT (SELECT c FROM s WHERE s.a = t.a) FROM t GROUP BY b", "42803",
         'subquery uses ungrouped column "t.a" from outer query', None),
        ("SELECT sum(sum(a)) FROM t", "42803", "aggregate function calls cannot be nested", None),
        ("SELECT 1 FROM t WHERE sum(a) > 1", "42803", "aggregate functions are not allowed in WHERE", None),
        ("SELECT 1 FROM t GROUP BY sum(a)", "42803", "aggregate functions are not allowed in GROUP BY", None),
        ("SELECT 1 FROM t WHERE a", "42804", "argument of WHERE must be type boolean, not type bigint", None),
        ("SELECT a FROM t ORDER BY 2", "42P10", "ORDER BY position 2 is not in select list", None),
        ("SELECT a FROM t GROUP BY 2", "42P10", "GROUP BY position 2 is not in select list", None),
        ("SELECT DISTINCT a FROM t ORDER BY b", "42P10",
         "for SELECT DISTINCT, ORDER BY expressions must appear in select list", None),
        ("SELECT DISTINCT ON (a) b FROM t ORDER BY b", "42P10",
         "SELECT DISTINCT ON expressions must match initial ORDER BY expressions", None),
        ("SELECT a FROM t AS x(p, q, r, s, u, v, w)", "42P10",
         'table "x" has 6 columns available but 7 columns specified', None),
        ("SELECT (SELECT a, b FROM t)", "42601", "subquery must return only one column", None),
        ("SELECT a IN (SELECT a, b FROM t) FROM t", "42601", "subquery has too many columns", None),
        ("SELECT 1 UNION SELECT 1, 2", "42601", "each UNION query must have the same number of columns", None),
        ("SELECT *", "42601", "SELECT * with no tables specified is not valid", None),
        ("SELECT d FROM t UNION SELECT a FROM t", "42804", "UNION types date and bigint cannot be matched", None),
        ("SELECT * FROM t JOIN s USING (c)", "42703",
         'column "c" specified in USING clause does not exist in left table', None),
        ("SELECT * FROM t RIGHT JOIN LATERAL (SELECT t.a) AS q ON true", "42P10",
         "the combining JOIN type must be INNER or LEFT for a LATERAL reference", None),
        ("SELECT a FROM t LIMIT -1", "22023", "LIMIT must not be negative", None),
        ("WITH RECURSIVE r AS (SELECT 1 FROM r) SELECT * FROM r", "42P19",
         'recursive query "r" does not have the form non-recursive-term UNION [ALL] recursive-term', None),
        ("WITH RECURSIVE r AS (SELECT 1 FROM r UNION SELECT 1) SELECT * FROM r", "42P19",
         'recursive reference to query "r" must not appear within its non-recursive term', None),
    ],
)  # fmt: skip
def test_errors(sql: str, state: str, words: str, hint: str | None) -> None:
    with pytest.raises(ERRORS[state]) as failure:
        bind(sql)
    assert (failure.value.sqlstate, failure.value.message) == (state, words)
    if hint is not None:
        assert failure.value.hint == hint
