"""Random queries in friendly forms on the lake and on DuckDB, whose answers must be the same but for the rules listed here.

    python -m tests random --friendly --count 10000 --seed 7      the first that differ are shrunk and printed
    python -m tests random --friendly --seed 7 --only 1234        one of them again

Query number n of a seed depends on the two alone. Tables change every TABLES_EVERY queries. Where DuckDB refuses a query
by a limit of its own, or both refuse it, it is counted and left out; any other difference fails the run.
"""

from __future__ import annotations

import argparse
import datetime
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from tests.engines import Answer, DuckDBEngine, Engine, Failure, Interval, LakeEngine, row_text
from tests.friendly.queries import Friendly, generate
from tests.friendly.tables import FriendlyTable, friendly_tables
from tests.random_tables import Draw

TABLES_EVERY: Final = 100
SHRINK_TRIES: Final = 400
SHOWN: Final = 5  # differences printed in full
TOLERANCE: Final = 1e-9
OUR_MISTAKES: Final = ("XX000", "0A000")  # what the lake may not refuse a query with, though DuckDB refuses it too

# What DuckDB refuses by a limit of its own, by words of its message.
DUCKDB_LIMITS: Final[tuple[tuple[str, str], ...]] = (
    ("but the expression has a subquery. This is not yet supported", "an alias of an expression with a subquery"),
    ("PERCENTILEs can only take parameters", "an aggregate of a constant with an order, taken for WITHIN GROUP"),
    ("Cannot copy BoundSubqueryExpression", "a mistake of its own"),
)

# Both refuse it where they come by such a row; which rows of a query are looked at is for each planner to say.
EMPTY_REDUCE: Final = "cannot perform list_reduce on an empty input list"


@dataclass(frozen=True, slots=True)
class Rule:
    """A difference that is allowed, with its reason; ``same`` answers whether it explains two values."""

    name: str
    reason: str
    same: Callable[[Any, Any], bool]


def _numbers(ours: Any, theirs: Any) -> bool:
    kinds = int | float | Decimal
    if isinstance(ours, bool) or isinstance(theirs, bool) or not isinstance(ours, kinds) or not isinstance(theirs, kinds):
        return False
    if isinstance(ours, int) and isinstance(theirs, int):
        return ours == theirs
    if isinstance(ours, Decimal):
        cut = Decimal(1).scaleb(int(ours.as_tuple().exponent))
        if cut <= Decimal("0.0001") and math.isfinite(theirs) and abs(ours - Decimal(theirs)) < cut:
            return True
    left, right = float(ours), float(theirs)
    return left == right or (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _days(ours: Any, theirs: Any) -> bool:
    def moment(value: Any) -> datetime.datetime | None:
        if isinstance(value, datetime.datetime):
            return value
        return datetime.datetime.combine(value, datetime.time()) if isinstance(value, datetime.date) else None

    return moment(ours) is not None and moment(ours) == moment(theirs)


def _lists(ours: Any, theirs: Any) -> bool:
    both = isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)
    return both and all(map(same_value, ours, theirs))


def _structs(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list) and isinstance(theirs, dict):  # Arrow gives maps as lists of pairs
        ours = dict(ours) if all(isinstance(item, tuple) for item in ours) else None
    if isinstance(theirs, tuple) and isinstance(ours, dict):
        theirs = dict(zip(ours, theirs, strict=False))
    if not isinstance(ours, dict) or not isinstance(theirs, dict) or ours.keys() != theirs.keys():
        return False
    return all(same_value(ours[key], theirs[key]) for key in ours)


def _intervals(ours: Any, theirs: Any) -> bool:
    def parts(value: Any) -> Interval | None:
        if isinstance(value, datetime.timedelta):
            return Interval(0, value.days, (value.seconds * 10**6 + value.microseconds) * 1000)
        return value if isinstance(value, Interval) else None

    return parts(ours) is not None and parts(ours) == parts(theirs)


RULES: Final = (
    Rule("numbers", "decimals there are doubles in the dialect or the other way round, averages of decimals stop at the type's "
         "scale, and sums of doubles depend on their order there", _numbers),
    Rule("moments", "a date with an interval added stays a date in the dialect", _days),
    Rule("intervals", "intervals are compared as months, days and nanoseconds", _intervals),
    Rule("lists", "lists are compared element by element by these rules", _lists),
    Rule("structs", "structs and maps are compared by their keys, however each driver gives them", _structs),
)


def same_value(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same: equal and of one type, or explained by a rule."""
    if ours is None or theirs is None:
        return ours is theirs
    if type(ours) is type(theirs) and not isinstance(ours, float | list | dict) and ours == theirs:
        return True
    return any(rule.same(ours, theirs) for rule in RULES)


def same_row(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Whether two rows are the same, column by column."""
    return len(ours) == len(theirs) and all(map(same_value, ours, theirs))


def same_answer(ours: Answer, theirs: Answer, *, ordered: bool) -> bool:
    """Whether two answers hold the same rows; in the same order where the order is defined."""
    if len(ours.rows) != len(theirs.rows) or len(ours.names) != len(theirs.names):
        return False
    if ordered:
        return all(map(same_row, ours.rows, theirs.rows))
    unmatched = list(theirs.rows)
    for row in ours.rows:
        partner = next((number for number, other in enumerate(unmatched) if same_row(row, other)), None)
        if partner is None:
            return False
        del unmatched[partner]
    return True


@dataclass
class Outcome:
    """What a run counted."""

    ran: int = 0
    answered: int = 0
    rows: int = 0
    both_refused: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    different: list[int] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)


class Comparison:
    """The two engines over the tables of the moment."""

    def __init__(self, ours: Engine, theirs: Engine) -> None:
        self.ours, self.theirs = ours, theirs
        self.tables: list[FriendlyTable] = []

    def make(self, tables: list[FriendlyTable]) -> None:
        """Puts these tables in place of the ones before, in both."""
        for engine in (self.ours, self.theirs):
            for table in self.tables:
                engine.execute(f"DROP TABLE {table.name}")
            for table in tables:
                for text in table.statements():
                    engine.execute(text)
        self.tables = tables

    def differ(self, query: Friendly, outcome: Outcome | None = None) -> str | None:
        """What both answered, where the answers are not the same; None where they are."""
        ours, theirs = _answer(self.ours, query.text), _answer(self.theirs, query.text)
        outcome = outcome or Outcome()
        if any(isinstance(each, Failure) and EMPTY_REDUCE in each.message.lower() for each in (ours, theirs)):
            outcome.left_out["list_reduce of an empty list"] += 1
            return None
        if isinstance(theirs, Failure):
            limit = next((name for words, name in DUCKDB_LIMITS if words in theirs.message), None)
            if limit is not None:
                outcome.left_out[limit] += 1
                return None
            if isinstance(ours, Failure) and ours.sqlstate not in OUR_MISTAKES:
                outcome.both_refused[ours.sqlstate] += 1
                return None
        elif isinstance(ours, Answer) and same_answer(ours, theirs, ordered=query.ordered):
            outcome.answered += 1
            outcome.rows += len(theirs.rows)
            return None
        if isinstance(ours, Answer) and isinstance(theirs, Answer) and "GROUP BY ALL" in query.text and not ours.rows and len(theirs.rows) == 1:
            # Of no rows the dialect makes no group, also by what uses no column, as the base does.
            outcome.left_out["GROUP BY ALL without a column"] += 1
            return None
        words = ours if isinstance(ours, Failure) else theirs if isinstance(theirs, Failure) else None
        outcome.kinds["rows that differ" if words is None else words.message.splitlines()[0]] += 1
        return f"lake:\n{_shown(ours)}\n\nduckdb:\n{_shown(theirs)}"


def _answer(engine: Engine, text: str) -> Answer | Failure:
    try:
        return engine.execute(text)
    except Failure as failure:
        return failure


def _shown(answer: Answer | Failure) -> str:
    if isinstance(answer, Failure):
        return f"  error {answer.sqlstate}: {answer.message.splitlines()[0]}"
    lines = [f"  {row_text(row)}" for row in answer.rows[:20]]
    return "\n".join([f"  {' '.join(answer.names)}", *lines, *([f"  .. {len(answer.rows)} rows"] if len(answer.rows) > 20 else [])])


def duckdb_engine() -> DuckDBEngine:
    """DuckDB, with the lambdas that both dialects have."""
    engine = DuckDBEngine()
    engine.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")
    return engine


def run(comparison: Comparison, seed: int, numbers: range, report: Callable[[str], None] = print) -> Outcome:
    """Runs queries of a seed; reports those that differ, the first ones shrunk."""
    outcome = Outcome()
    block = None
    for number in numbers:
        if number // TABLES_EVERY != block:
            block = number // TABLES_EVERY
            comparison.make(friendly_tables(random.Random(f"friendly tables {seed} {block}")))
        draw = Draw(random.Random(f"friendly {seed} {number}"))
        query = generate(draw, comparison.tables)
        outcome.ran += 1
        if comparison.differ(query, outcome) is None:
            continue
        outcome.different.append(number)
        if len(outcome.different) <= SHOWN:
            report(_story(comparison, seed, number, shrink(comparison, draw.made)))
    return outcome


def _story(comparison: Comparison, seed: int, number: int, query: Friendly) -> str:
    used = [table for table in comparison.tables if table.name in query.text]
    made = "\n".join(f"{text};" for table in used for text in table.statements())
    return f"--- query {number}; again: python -m tests random --friendly --seed {seed} --only {number}\n{made}\n{query.text};\n" \
           f"\n{comparison.differ(query)}\n"


def shrink(comparison: Comparison, choices: list[int]) -> Friendly:
    """The smallest query found that still differs: choices are dropped, then made zero or halved."""
    best, tries = choices, 0
    length = len(generate(Draw(best), comparison.tables).text)
    progress = True
    while progress and tries < SHRINK_TRIES:
        progress = False
        for candidate in _smaller(best):
            tries += 1
            if tries > SHRINK_TRIES:
                break
            draw = Draw(candidate)
            query = generate(draw, comparison.tables)
            if len(query.text) <= length and draw.made != best and comparison.differ(query) is not None:
                best, length, progress = draw.made if len(draw.made) <= len(candidate) else candidate, len(query.text), True
                break
    return generate(Draw(best), comparison.tables)


def _smaller(choices: list[int]) -> Iterator[list[int]]:
    """Lists that make smaller queries: shorter by a block, with a block of zeros, or with one smaller number."""
    size = len(choices)
    while size := size // 2:
        for start in range(0, len(choices), size):
            yield choices[:start] + choices[start + size :]
            if any(choices[start : start + size]):
                yield choices[:start] + [0] * len(choices[start : start + size]) + choices[start + size :]
    for at, number in enumerate(choices):
        if number:
            yield [*choices[:at], number // 2, *choices[at + 1 :]]


def main(arguments: Sequence[str]) -> int:
    """`python -m tests random --friendly`: compares, and answers 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests random --friendly", description="friendly forms against DuckDB")
    parser.add_argument("--count", type=int, default=1000, help="how many queries (1000)")
    parser.add_argument("--seed", type=int, default=1, help="which queries (1)")
    parser.add_argument("--only", type=int, help="one query, by its number")
    options = parser.parse_args(arguments)
    numbers = range(options.count) if options.only is None else range(options.only, options.only + 1)
    ours, theirs = LakeEngine(), duckdb_engine()
    began = time.monotonic()
    try:
        outcome = run(Comparison(ours, theirs), options.seed, numbers)
    finally:
        theirs.close()
        ours.close()
    print("allowed differences:")
    for rule in RULES:
        print(f"  {rule.name}: {rule.reason}")
    print(
        f"{outcome.ran} queries in {time.monotonic() - began:.1f} s: {outcome.answered} answered alike ({outcome.rows} rows), "
        f"{sum(outcome.both_refused.values())} refused by both {dict(outcome.both_refused)}, left out {dict(outcome.left_out)}, "
        f"{len(outcome.different)} differ {outcome.different[:50] or ''}"
    )
    for kind, count in outcome.kinds.most_common(40):
        print(f"  {count:5} {kind[:160]}")
    return 1 if outcome.different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
