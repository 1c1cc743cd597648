"""Windows: frames, named windows, where they may stand; lambdas over lists."""

from __future__ import annotations

import pytest

from lake.errors import DatatypeMismatch, LakeError, WindowingFailure
from tests.sql.binding import bind, tree, type_of


@pytest.mark.parametrize(
    ("over", "line"),
    [
        ("()", "[] [] sum(a) RANGE UNBOUNDED PRECEDING..UNBOUNDED FOLLOWING"),
        ("(ORDER BY d)", "[] [d] sum(a) RANGE UNBOUNDED PRECEDING..CURRENT ROW"),
        ("(PARTITION BY b ORDER BY a DESC)",
         "[b] [a DESC NULLS FIRST] sum(a) RANGE UNBOUNDED PRECEDING..CURRENT ROW"),
        ("(ORDER BY a ROWS 2 PRECEDING)", "[] [a] sum(a) ROWS 2 PRECEDING..CURRENT ROW"),
        ("(ORDER BY d RANGE BETWEEN '1 day' PRECEDING AND UNBOUNDED FOLLOWING)",
         "[] [d] sum(a) RANGE (0, 1, 0)::INTERVAL PRECEDING..UNBOUNDED FOLLOWING"),
        ("(ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES)",
         "[] [x] sum(a) RANGE 100::DECIMAL(15,2) PRECEDING..100::DECIMAL(15,2) FOLLOWING EXCLUDE TIES"),
        ("(ORDER BY a GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING)", "[] [a] sum(a) GROUPS CURRENT ROW..1 FOLLOWING"),
    ],
)  # fmt: skip
def test_frames(over: str, line: str) -> None:
    assert f"Window {line}" in tree(f"SELECT sum(a) OVER {over} FROM t")


def test_windows_over_groups() -> None:
    text = tree("SELECT b, sum(sum(a)) OVER (ORDER BY b) FROM t GROUP BY b QUALIFY sum(sum(a)) OVER (ORDER BY b) > 5")
    assert text.splitlines()[1:] == [
        "  Filter sum > 5",
        "    Window [] [b] sum(sum) RANGE UNBOUNDED PRECEDING..CURRENT ROW",
        "      Aggregate [b] [sum(a)]",
        "        Scan public.t",
    ]


def test_calls_share_a_node_where_partition_and_order_are_equal() -> None:
    text = tree("SELECT sum(a) OVER w, max(f) OVER w, sum(a) OVER (w ORDER BY d) FROM t WINDOW w AS (PARTITION BY b)")
    assert text.count("Window") == 2
    assert "sum(a) RANGE UNBOUNDED PRECEDING..UNBOUNDED FOLLOWING, max(f)" in text


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT a FROM t WHERE sum(a) OVER () > 1", "window functions are not allowed in WHERE"),
        ("SELECT a FROM t GROUP BY sum(a) OVER ()", "window functions are not allowed in GROUP BY"),
        ("SELECT sum(sum(a) OVER ()) OVER () FROM t", "window function calls cannot be nested"),
        ("SELECT sum(sum(a) OVER ()) FROM t", "aggregate function calls cannot contain window function calls"),
        ("SELECT sum(a) OVER w FROM t", 'window "w" does not exist'),
        ("SELECT sum(a) OVER (w PARTITION BY a) FROM t WINDOW w AS (ORDER BY a)",
         'cannot override PARTITION BY clause of window "w"'),
        ("SELECT sum(a) OVER (w ORDER BY a) FROM t WINDOW w AS (ORDER BY a)",
         'cannot override ORDER BY clause of window "w"'),
        ("SELECT sum(a) OVER (w ROWS 1 PRECEDING) FROM t WINDOW w AS (ORDER BY a ROWS 2 PRECEDING)",
         'cannot copy window "w" because it has a frame clause'),
        ("SELECT sum(a) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM t",
         "frame starting from current row cannot have preceding rows"),
        ("SELECT sum(a) OVER (ORDER BY a, b RANGE 1 PRECEDING) FROM t",
         "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"),
        ("SELECT sum(a) OVER (GROUPS 1 PRECEDING) FROM t", "GROUPS mode requires an ORDER BY clause"),
    ],
)  # fmt: skip
def test_errors(sql: str, words: str) -> None:
    with pytest.raises(LakeError) as failure:
        bind(sql)
    assert failure.value.message == words
    assert isinstance(failure.value, WindowingFailure)
    assert failure.value.position is not None


def test_range_needs_a_type_that_adds() -> None:
    with pytest.raises(DatatypeMismatch, match="not supported for column type varchar"):
        bind("SELECT sum(a) OVER (ORDER BY b RANGE 1 PRECEDING) FROM t")


def test_lambdas() -> None:
    assert type_of("list_transform(l, x -> x + 0.5)") == "DECIMAL(22,1)[]"
    assert "list_transform(list_filter(l, (x) -> x > 1), (x) -> (x * a))" in tree(
        "SELECT [x * a FOR x IN l IF x > 1] FROM t"
    )
    assert bind("SELECT list_transform(l, x -> x + 1) FROM t").plan.outer_columns == frozenset()
