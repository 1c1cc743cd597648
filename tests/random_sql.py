"""Random SELECTs on the lake and on Postgres, whose answers must be the same but for the rules listed here.

    python -m tests random --count 5000 --seed 7       5,000 queries; the first that differ are shrunk and printed
    python -m tests random --seed 7 --only 1234        one of them again

Query number n of a seed depends on the two alone. Tables and the session's time zone change every TABLES_EVERY queries. A query that Postgres
refuses for a limit of its own is counted and left out; any other difference fails the run.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from tests.engines import Answer, Engine, Failure, Interval, LakeEngine, PostgresEngine, row_text
from tests.pg.server import Server
from tests.random_select import Query, generate
from tests.random_tables import Draw, RandomTable, random_tables

TABLES_EVERY: Final = 100
ZONES: Final = ("UTC", "UTC", "America/New_York", "Asia/Kolkata", "Europe/Berlin")
SHRINK_TRIES: Final = 400
SHOWN: Final = 5  # differences printed in full
MERGING: Final = re.compile(r"\b(UNION|INTERSECT|EXCEPT|DISTINCT|GROUP BY|MIN|MAX|USING)\b", re.IGNORECASE)  # keeps one of equal values
RELATIVE_TOLERANCE: Final = 1e-9
ABSOLUTE_TOLERANCE: Final = 1e-9

# What Postgres refuses by a limit of its own, by SQLSTATE and words; the dialect answers.
POSTGRES_LIMITS: Final = (
    ("0A000", "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions"),
    ("22003", "value out of range: overflow"),  # of doubles, which are endless in the dialect,
    ("22003", "value out of range: underflow"),  # or zero
    ("", ""),  # a value that its Python driver cannot hold, such as a day before year 1
)


# What the lake refuses by a limit of its own that Postgres has not, by SQLSTATE and words.
OUR_LIMITS: Final = (
    ("22003", "cannot convert nan to numeric"), ("22003", "cannot convert infinity to numeric"),  # decimals have neither
    ("22003", "numeric field overflow"),  # decimals have 38 digits: two that are compared meet in one type of them
)

# What the lake may not refuse a query with, though Postgres refuses it too: a mistake of ours, or a form not built.
OUR_MISTAKES: Final = ("XX000", "0A000")
DATA_ERRORS: Final = ("21", "22")  # classes of SQLSTATEs that say what is wrong with a value, or with a number of rows
# SQLSTATEs that mean the same: what does not cast is 22P02, and what a function does not take 22023, at every door.
STATES: Final = frozenset((
    ("22P02", "22007"), ("22P02", "22008"), ("22P02", "22003"), ("22023", "22011"), ("22023", "22014"), ("22023", "22016"),
    ("22023", "22013"), ("42P20", "22013"), ("22P02", "22023"), ("22003", "22023"), ("22023", "2201G"), ("22023", "22008"), ("22023", "22004"),
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """A difference that is allowed, with its reason; ``same`` answers whether it explains two values."""

    name: str
    reason: str
    same: Callable[[Any, Any], bool]


def _numbers(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return False
    if not (isinstance(ours, int | float | Decimal) and isinstance(theirs, int | float | Decimal)):
        return False
    if isinstance(ours, int) and isinstance(theirs, int):
        return ours == theirs
    left, right = float(ours), float(theirs)
    if isinstance(ours, Decimal):
        # The dialect's averages stop at their type's scale, which is the fourth digit or a later one.
        cut = Decimal(1).scaleb(int(ours.as_tuple().exponent))
        if cut <= Decimal("0.0001") and math.isfinite(right) and abs(ours - Decimal(theirs)) < cut:
            return True
        if isinstance(theirs, Decimal):
            return ours == theirs
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)


def _moments(ours: Any, theirs: Any) -> bool:
    if not isinstance(ours, datetime.datetime) or not isinstance(theirs, datetime.datetime):
        return False
    if ours.tzinfo is None or theirs.tzinfo is None:
        return ours.tzinfo is theirs.tzinfo and ours == theirs
    # In UTC: Python holds no two moments equal whose clocks are read twice, in different zones.
    return ours.astimezone(datetime.UTC) == theirs.astimezone(datetime.UTC)


def _intervals(ours: Any, theirs: Any) -> bool:
    def parts(value: Any) -> Interval | None:
        if isinstance(value, datetime.timedelta):
            return Interval(0, value.days, (value.seconds * 10**6 + value.microseconds) * 1000)
        return value if isinstance(value, Interval) else None

    return parts(ours) is not None and parts(ours) == parts(theirs)


def _lists(ours: Any, theirs: Any) -> bool:
    both = isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)
    return both and all(map(same_value, ours, theirs))


RULES: Final = (
    Rule("numbers", "AVG of integers, deviations and EXTRACT are NUMERIC there, and DOUBLE or integers in the dialect; "
         "sums of doubles depend on their order there; averages of decimals stop at the type's scale; -0 equals 0",
         _numbers),
    Rule("moments", "timestamps are compared as microseconds, however each engine writes them", _moments),
    Rule("intervals", "intervals are compared as months, days and nanoseconds: the difference of two timestamps has "
         "another type in the dialect", _intervals),
    Rule("lists", "arrays are compared element by element by these rules", _lists),
)


def _in_nanoseconds(answer: Answer) -> Answer:
    """The answer with its intervals as what they are compared by: months of 30 days, days of 24 hours."""

    def total(value: Any) -> Any:
        if not isinstance(value, Interval):
            return value
        return Interval(0, 0, (value.months * 30 + value.days) * 86_400 * 10**9 + value.nanoseconds)

    return dataclasses.replace(answer, rows=[tuple(map(total, row)) for row in answer.rows])


def same_value(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same: equal and of one type, or explained by a rule."""
    if ours is None or theirs is None:
        return ours is theirs
    if type(ours) is type(theirs) and not isinstance(ours, float | list) and ours == theirs:
        return True
    return any(rule.same(ours, theirs) for rule in RULES)


def same_row(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Whether two rows are the same, column by column."""
    return len(ours) == len(theirs) and all(map(same_value, ours, theirs))


def same_answer(ours: Answer, theirs: Answer, *, ordered: bool) -> bool:
    """Whether two answers hold the same rows; in the same order where the order is defined."""
    if len(ours.rows) != len(theirs.rows) or len(ours.letters) != len(theirs.letters):
        return False
    if ordered:
        return all(map(same_row, ours.rows, theirs.rows))
    left, right = sorted(ours.rows, key=_sort_key), sorted(theirs.rows, key=_sort_key)
    if all(map(same_row, left, right)):
        return True
    # Numbers at the edge of a rounding may sort apart: then every row looks for a partner of its own.
    unmatched = list(right)
    for row in left:
        partner = next((number for number, other in enumerate(unmatched) if same_row(row, other)), None)
        if partner is None:
            return False
        del unmatched[partner]
    return True


def _sort_key(row: Sequence[Any]) -> tuple[Any, ...]:
    """An order in which rows that are the same stand at the same place, whatever their types."""
    return tuple(_value_key(value) for value in row)


def _value_key(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, datetime.datetime) and value.tzinfo:
        return 4, repr(value.astimezone(datetime.UTC))
    if isinstance(value, int | float | Decimal):
        number = float(value)
        return (3, 0) if math.isnan(number) else (2, float(f"{number:.6g}") + 0.0)
    return 4, repr(value)


@dataclass
class Outcome:
    """What a run counted."""

    ran: int = 0
    answered: int = 0
    rows: int = 0
    both_failed: Counter[str] = field(default_factory=Counter)
    left_out: int = 0
    different: list[int] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)  # of differences: our error, or that rows differ


class Comparison:
    """The two engines over the tables of the moment."""

    def __init__(self, ours: Engine, theirs: Engine) -> None:
        self.ours, self.theirs = ours, theirs
        self.tables: list[RandomTable] = []
        self.zone = "UTC"

    def make(self, tables: list[RandomTable], zone: str = "UTC") -> None:
        """Puts these tables in place of the ones before, in both; sessions are in ``zone``."""
        self.zone = zone
        for engine in (self.ours, self.theirs):
            engine.execute(f"SET TimeZone = '{zone}'")
            for table in self.tables:
                engine.execute(f"DROP TABLE {table.name}")
            for table in tables:
                for text in table.statements():
                    engine.execute(text)
        self.tables = tables

    def differ(self, query: Query, outcome: Outcome | None = None) -> str | None:
        """What both answered, where the answers are not the same; None where they are."""
        ours, theirs = _answer(self.ours, query.text), _answer(self.theirs, query.text)
        outcome = outcome or Outcome()
        match ours, theirs:
            case Failure(), Failure() if _refused_alike(ours, theirs):
                outcome.both_failed[theirs.sqlstate] += 1
                return None
            case Answer(rows=()) | Answer(rows=[]), Failure() if theirs.sqlstate[:2] == "22":
                outcome.left_out += 1  # Postgres reckons constants though there be no row
                return None
            case Failure(), Answer() if _is_limit(ours, OUR_LIMITS):
                outcome.left_out += 1
                return None
            case _, Failure() if _is_limit(theirs, POSTGRES_LIMITS):
                outcome.left_out += 1
                return None
            case Answer(), Answer() if same_answer(ours, theirs, ordered=query.ordered):
                outcome.answered += 1
                outcome.rows += len(theirs.rows)
                return None
        if isinstance(ours, Answer) and isinstance(theirs, Answer) and MERGING.search(query.text):
            if same_answer(_in_nanoseconds(ours), _in_nanoseconds(theirs), ordered=query.ordered):
                outcome.left_out += 1  # of intervals that are equal, 40 days and 1 month 10 days, any one is kept
                return None
        outcome.kinds[_shown(ours).strip() if isinstance(ours, Failure) else "rows that differ"] += 1
        return f"lake:\n{_shown(ours)}\n\npostgres:\n{_shown(theirs)}"


def _refused_alike(ours: Failure, theirs: Failure) -> bool:
    """Whether both may refuse a query so: what is wrong with data has the same SQLSTATE."""
    if ours.sqlstate in OUR_MISTAKES:
        return False
    same = ours.sqlstate == theirs.sqlstate or (ours.sqlstate, theirs.sqlstate) in STATES
    return same or theirs.sqlstate[:2] not in DATA_ERRORS


def _is_limit(failure: Failure, limits: Sequence[tuple[str, str]]) -> bool:
    return any(failure.sqlstate == code and words in failure.message for code, words in limits)


def _answer(engine: Engine, text: str) -> Answer | Failure:
    try:
        return engine.execute(text)
    except Failure as failure:
        return failure


def _shown(answer: Answer | Failure) -> str:
    if isinstance(answer, Failure):
        return f"  error {answer.sqlstate}: {answer.message.splitlines()[0]}"
    lines = [f"  {row_text(row)}" for row in answer.rows[:20]]
    more = [f"  .. {len(answer.rows)} rows"] if len(answer.rows) > 20 else []
    return "\n".join([f"  {answer.letters}", *lines, *more])


def run(
    comparison: Comparison, seed: int, numbers: range, report: Callable[[str], None] = print, shown: int = SHOWN
) -> Outcome:
    """Runs queries of a seed; reports those that differ, the first ones shrunk."""
    outcome = Outcome()
    block = None
    for number in numbers:
        if number // TABLES_EVERY != block:
            block = number // TABLES_EVERY
            chance = random.Random(f"tables {seed} {block}")
            comparison.make(random_tables(chance), chance.choice(ZONES))
        draw = Draw(random.Random(f"query {seed} {number}"))
        query = generate(draw, comparison.tables)
        outcome.ran += 1
        difference = comparison.differ(query, outcome)
        if difference is None:
            continue
        outcome.different.append(number)
        if len(outcome.different) <= shown:
            smallest = shrink(comparison, draw.made)
            report(_story(comparison, seed, number, smallest))
    return outcome


def _story(comparison: Comparison, seed: int, number: int, query: Query) -> str:
    used = [table for table in comparison.tables if f" {table.name} " in query.text.replace("\n", " ")]
    made = "\n".join(f"{text};" for table in used for text in table.statements())
    difference = comparison.differ(query)
    again = f"again: python -m tests random --seed {seed} --only {number}"
    return f"--- query {number}; {again}\nSET TimeZone = '{comparison.zone}';\n{made}\n{query.text};\n" \
           f"\n{difference}\n"


def shrink(comparison: Comparison, choices: list[int]) -> Query:
    """The smallest query found that still differs: choices are dropped, then made zero or halved."""
    best, tries = choices, 0

    def still_differs(candidate: list[int]) -> bool:
        nonlocal best, tries
        tries += 1
        draw = Draw(candidate)
        query = generate(draw, comparison.tables)
        if tries > SHRINK_TRIES or len(query.text) > len(generate(Draw(best), comparison.tables).text):
            return False
        if comparison.differ(query) is None:
            return False
        best = draw.made if len(draw.made) <= len(candidate) else candidate
        return True

    progress = True
    while progress and tries < SHRINK_TRIES:
        progress = any(still_differs(candidate) for candidate in _smaller(best))
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
    """`python -m tests random`: compares, and answers 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests random", description="random SELECTs against Postgres")
    parser.add_argument("--count", type=int, default=1000, help="how many queries (1000)")
    parser.add_argument("--seed", type=int, default=1, help="which queries (1)")
    parser.add_argument("--shown", type=int, default=SHOWN, help=f"so many of those that differ are printed ({SHOWN})")
    parser.add_argument("--only", type=int, help="one query, by its number")
    options = parser.parse_args(arguments)
    numbers = range(options.count) if options.only is None else range(options.only, options.only + 1)
    server = Server()
    ours = LakeEngine()
    theirs = PostgresEngine(server.conninfo)
    began = time.monotonic()
    try:
        outcome = run(Comparison(ours, theirs), options.seed, numbers, shown=options.shown)
    finally:
        theirs.close()
        ours.close()
        server.stop()
    print("allowed differences:")
    for rule in RULES:
        print(f"  {rule.name}: {rule.reason}")
    failed = sum(outcome.both_failed.values())
    print(
        f"{outcome.ran} queries in {time.monotonic() - began:.1f} s: {outcome.answered} answered alike "
        f"({outcome.rows} rows), {failed} refused by both {dict(outcome.both_failed)}, {outcome.left_out} left out by "
        f"a limit of either, {len(outcome.different)} differ {outcome.different[:50] or ''}"
    )
    for kind, count in outcome.kinds.most_common(30):
        print(f"  {count:5} {kind[:160]}")
    return 1 if outcome.different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
