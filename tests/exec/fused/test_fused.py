"""Queries whose scans are taken by compiled loops answer what they answer without them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.exec.fused import partial
from tests.exec.fused.narrow_rows import PARTS, answer, compiled, loops, profile_of

COVERED = [
    "SELECT count(*) FROM t WHERE small < 3",
    "SELECT count(*), count(whole), count(word), sum(small), avg(price), min(day), max(at) FROM t",
    "SELECT word, yes, count(*), sum(price * (1 - amount)), avg(amount), max(price) FROM t WHERE day > DATE '1970-01-05' GROUP BY word, yes",
    "SELECT small, count(*), min(spread), max(whole) FROM t WHERE small BETWEEN -20 AND 20 GROUP BY small",
    "SELECT word, sum(CASE WHEN real > 0 THEN price ELSE 0 END) FROM t GROUP BY word",
    "SELECT sum(whole + 7), sum(whole), avg(whole) FROM t",
    "SELECT sum(price) FILTER (WHERE word LIKE '%a%'), count(*) FILTER (WHERE yes OR small IS NULL) FROM t",
    "SELECT count(*) FROM t WHERE (word = 'cat' OR small IN (1, 2, 3)) AND price <> 4 AND NOT (real >= 2.0 AND yes)",
    "SELECT sum(big), avg(big), min(big), max(big) FROM t",
    "SELECT count(*), sum(price) FROM t WHERE price > amount AND word IS NOT NULL",
    "SELECT yes, count(*) FROM t WHERE word < 'b' GROUP BY yes",
    "SELECT word, sum(money), avg(money * 1.5::DOUBLE - money), avg(price) FROM t WHERE money < 1e6 AND money IS NOT NULL GROUP BY word",
]  # fmt: skip
PLAIN = [
    "SELECT max(money) FROM t",
    "SELECT spread, count(*) FROM t GROUP BY spread",
    "SELECT string_agg(word, word ORDER BY small) FROM t WHERE small = 1",
    "SELECT max(word) FROM t",
    "SELECT sum(price / amount) FROM t WHERE amount <> 0",
    "SELECT word, yes, count(*) FROM t GROUP BY ROLLUP (word, yes)",
]


def same(sql: str, *, workers: int = 1) -> list[bool]:
    """Holds the query's answer against the plain one; answers which batches loops took."""
    with loops(are_used=False):
        expected = answer(sql)
    with loops(are_used=True) as taken:
        assert answer(sql, workers=workers) == expected
    return taken


@pytest.mark.parametrize("sql", COVERED)
def test_covered_queries(sql: str) -> None:
    """Loops take every batch, and the answer is the same, with two workers too."""
    assert same(sql) == [True] * PARTS
    same(sql, workers=2)


@pytest.mark.parametrize("sql", PLAIN)
def test_other_queries_go_the_plain_way(sql: str) -> None:
    """What is not covered is answered all the same."""
    assert not any(same(sql))


# --- random queries --------------------------------------------------------------------------------------------------

WHOLE = st.sampled_from(["small", "whole", "big", "price", "amount", "0", "1", "-3", "2.50", "1000000", "4000000000", "NULL::INT"])
VALUES = st.recursive(
    WHOLE,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
        st.builds("CAST({} AS {})".format, inner, st.sampled_from(["SMALLINT", "BIGINT", "DECIMAL(12,3)", "DECIMAL(30,5)"])),
        st.builds("(CASE WHEN {} > {} THEN {} ELSE {} END)".format, inner, inner, inner, inner),
        st.builds("(CASE WHEN small < 2 THEN {} END)".format, inner),
    ),
    max_leaves=4,
)
COMPARED = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
CONDITIONS = st.recursive(
    st.one_of(
        st.builds("{} {} {}".format, VALUES, COMPARED, VALUES),
        st.builds("small {} {}".format, COMPARED, st.integers(-30, 30)),
        st.builds("small {} {}".format, COMPARED, st.sampled_from([-(1 << 15), (1 << 15) - 1, 100, -100])),
        st.builds("real {} {}".format, COMPARED, st.sampled_from(["-1.5", "0.0", "2.5", "'Infinity'::DOUBLE"])),
        st.builds("day {} DATE '1970-03-01'".format, COMPARED),
        st.builds("at {} TIMESTAMP '1970-01-01 00:00:00.05'".format, COMPARED),
        st.builds("word {} 'bear'".format, COMPARED),
        st.sampled_from(["yes", "word LIKE 'a%'", "word IS NULL", "whole IS NOT NULL", "word IN ('cat', 'dog')", "yes IS NULL",
                         "small IN (1, -2, 3)", "price BETWEEN -5 AND 300", "length(word) > 3"]),
    ),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=3,
)  # fmt: skip
CALLS = st.builds(
    "{}{}".format,
    st.one_of(
        st.just("count(*)"),
        st.builds("{}({})".format, st.sampled_from(["count", "sum", "avg", "min", "max"]), VALUES),
        st.sampled_from(["min(day)", "max(at)", "sum(money)", "avg(money + money)", "sum(real)", "count(word)", "count(real)"]),
    ),
    st.one_of(st.just(""), st.builds(" FILTER (WHERE {})".format, CONDITIONS)),
)
KEYS = st.sampled_from(["", "word", "small % 1 = 0", "yes", "yes, word", "small", "day", "whole, small"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CALLS, min_size=1, max_size=3), st.lists(CONDITIONS, max_size=2), KEYS)
def test_random_queries(calls: list[str], conditions: list[str], keys: str) -> None:
    """Answers and errors are those of the plain way, whatever overflows."""
    columns = ", ".join([keys, *calls] if keys else calls)
    where = " WHERE " + " AND ".join(conditions) if conditions else ""
    same(f"SELECT {columns} FROM t{where}" + (f" GROUP BY {keys}" if keys else ""))


# --- what happens in the midst of a query ----------------------------------------------------------------------------


def test_hand_over_in_the_midst(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batches go the plain way, the others through the loop, and their groups meet."""
    sql = COVERED[2]
    with loops(are_used=False):
        expected = answer(sql)
    with loops(are_used=True) as taken:
        asked: list[object] = []

        def later(key: Any, rows: int) -> Any:
            asked.append(key)
            return compiled(key, rows) if len(asked) > 2 else None

        monkeypatch.setattr(partial, "loop_of", later)
        assert answer(sql) == expected
    assert taken == [False, False, True, True]


def test_overflow_is_left_to_the_plain_way() -> None:
    """A product past 64 bits is computed in two words, one past the type's range is refused; the other batches are taken."""
    assert same("SELECT sum(big::DECIMAL(19,0) * 1000000000) FROM t") == [True, True, True, False]
    assert same("SELECT sum(whole * 3::INT) FROM t") == [True, True, True, False]
    with loops(are_used=True):
        assert answer("SELECT sum(whole * 3::INT) FROM t") == ("22003", "integer out of range")


def test_batches_that_fail_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some overflows a query is not tried again."""
    monkeypatch.setattr(partial, "FAILURES_MAX", 1)
    asked: list[object] = []
    with loops(are_used=True) as taken:

        def noted(key: Any, rows: int) -> Any:
            asked.append(key)
            return compiled(key, rows)

        monkeypatch.setattr(partial, "loop_of", noted)
        answer("SELECT sum(CAST(whole AS SMALLINT)) FROM t WHERE whole > 40000 OR day IS NOT NULL")
        answer("SELECT sum(amount * amount * amount * amount) FROM t")
    assert taken.count(False) > len(asked) - taken.count(True) > 0


def test_too_many_groups_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of a wide range go the plain way; a table is emptied where the next batch's keys do not fit it."""
    sql = "SELECT small, count(*), sum(price) FROM t WHERE small BETWEEN -20 AND 20 GROUP BY small"
    monkeypatch.setattr(partial, "PLACES_MAX", 10)
    assert not any(same(sql))
    monkeypatch.setattr(partial, "PLACES_MAX", 4_096)
    monkeypatch.setattr(partial, "GROUPS_MAX", 10)
    monkeypatch.setattr(partial.KeyRange, "holds", lambda self, other: False)
    monkeypatch.setattr(partial.KeyRange, "widened", lambda self, other: partial.KeyRange(0, 1 << 20))
    assert any(taken := same(sql)) and not all(taken)


def test_scans_of_which_next_to_nothing_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once that is known, row groups are read column by column, as without loops."""
    monkeypatch.setattr(partial, "TRIAL_ROWS", 1)
    assert same("SELECT sum(price), count(*) FROM t WHERE small = 77") == [True]


def test_profile_counts_rows_that_were_taken() -> None:
    """EXPLAIN ANALYZE tells how many rows the scan let pass, whichever way they went."""
    with loops(are_used=True):
        counted = answer("SELECT count(*) FROM t WHERE small < 3")
        assert [(profile_of("SELECT sum(price) FROM t WHERE small < 3").rows,)] == counted
