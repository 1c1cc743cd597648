"""A search for leaks: a user with partial grants learns from a query what a table cut to the granted columns would tell.

    python -m tests leaks --count 20000 --seed 1

Two lakes: one whole, in which the user is granted some columns of some tables and views, and one that has the granted
columns and nothing else. Each random query is asked of both. Where the cut lake answers, the user gets the same rows or is
refused; where it fails, the user fails. A refusal names no column and no table that is hidden and not in the query.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

from lake.errors import LakeError
from tests.db.rights import Lake, open_lake
from tests.random_select import generate
from tests.random_tables import Draw, RandomTable, random_tables

TABLES_EVERY: Final = 100
SHOWN: Final = 5
WRAPPED: Final = (
    "{query}", "{query}", "{query}", "{query}",
    "SELECT * FROM ({query}) AS wrapped", "SELECT count(*) FROM ({query}) AS wrapped", "DESCRIBE {query}",
    "WITH wrapped AS ({query}) SELECT * FROM wrapped", "PREPARE q AS {query}; EXECUTE q",
)  # fmt: skip
WHOLE: Final = (
    "SELECT * FROM {name}", "FROM {name}", "DESCRIBE {name}", "SUMMARIZE {name}", "SELECT count(*) FROM {name}",
    "SELECT {name}.* FROM {name}", "SELECT COLUMNS('^[a-m]$') FROM {name}", "SELECT * EXCLUDE (id) FROM {name}",
    "SELECT a.id FROM {name} a NATURAL JOIN {name} b", "SELECT max(COLUMNS(*)) FROM {name}", "SHOW COLUMNS FROM {name}",
    "SELECT column_name FROM information_schema.columns WHERE table_name = '{name}'",
    "SELECT attname FROM pg_attribute JOIN pg_class c ON attrelid = c.oid WHERE relname = '{name}' AND attnum > 0",
    "SELECT relname FROM pg_class WHERE relname LIKE 't%' OR relname LIKE 'v%'", "SELECT {name} FROM {name}",
    "PIVOT {name} ON id USING count(*)", "SELECT '{name}'::regclass::text",
)  # fmt: skip


@dataclass(slots=True)
class Outcome:
    """What a search found: how often each thing came of a query, and the leaks."""

    counts: Counter[str] = field(default_factory=Counter)
    leaks: list[str] = field(default_factory=list)


class Pair:
    """The two lakes for one set of tables."""

    def __init__(self, chance: random.Random, stack: ExitStack) -> None:
        tables = random_tables(chance)
        views = [replace(table, name=f"v{number}") for number, table in enumerate(tables)]
        self.granted = [_cut(table, chance) for table in (*tables, *views)]
        self.all = [*tables, *views]
        whole = [text for table in tables for text in table.statements()]
        whole += [f"CREATE VIEW {view.name} AS SELECT * FROM {table.name}" for view, table in zip(views, tables, strict=True)]
        whole.append("CREATE USER ann PASSWORD 'password of ann'")
        for table in self.granted:
            names = ", ".join(("id", *(each.column.name for each in table.columns)))
            whole.append(f"GRANT SELECT ({names}) ON {table.name} TO ann")
        cut = [text for table in self.granted for text in table.statements()]
        self.whole = stack.enter_context(open_lake(setup=";\n".join(whole)))
        self.cut = stack.enter_context(open_lake(setup=";\n".join(cut)))
        self.hidden = {
            each.column.name for table, kept in zip(self.all, self.granted, strict=True)
            for each in table.columns if each not in kept.columns
        }  # fmt: skip

    def query(self, chance: random.Random) -> str:
        """A query over the granted columns, over all of them, or over a table as it is."""
        if chance.random() < 0.15:
            return chance.choice(WHOLE).format(name=chance.choice(self.all).name)
        tables = self.granted if chance.random() < 0.6 else self.all
        query = generate(Draw(chance), tables).text
        return chance.choice(WRAPPED).format(query=query)


def _cut(table: RandomTable, chance: random.Random) -> RandomTable:
    """A table with some of its columns, and always its id."""
    kept = [place for place in range(len(table.columns)) if chance.random() < 0.6]
    rows = tuple((row[0], *(row[place + 1] for place in kept)) for row in table.rows)
    return RandomTable(table.name, tuple(table.columns[place] for place in kept), rows)


def search(count: int, seed: int) -> Outcome:
    """Asks ``count`` queries."""
    outcome = Outcome()
    stack, pair = ExitStack(), None
    with stack:
        for number in range(count):
            if pair is None or number % TABLES_EVERY == 0:
                stack.close()
                pair = Pair(random.Random(f"leak tables {seed} {number // TABLES_EVERY}"), stack)
            text = pair.query(random.Random(f"leak {seed} {number}"))
            found = compare(pair, text)
            outcome.counts[found.partition(":")[0]] += 1
            if found.startswith("LEAK"):
                outcome.leaks.append(f"query {number} of seed {seed}: {found}\n{text}")
    return outcome


def compare(pair: Pair, text: str) -> str:
    """What came of a query: ``same``, ``refused``, ``failed alike``, or ``LEAK`` and what was learnt."""
    ours, theirs = _answer(pair.whole, "ann", text), _answer(pair.cut, "owner", text)
    if isinstance(ours, LakeError):
        told = f"{ours.message} {ours.hint or ''} {ours.detail or ''}"
        named = {word for word in re.findall(r'["(](\w+)[")]', told) if word in pair.hidden}
        unasked = sorted(word for word in named if not re.search(rf"\b{word}\b", text, re.IGNORECASE))
        if unasked and ours.sqlstate.startswith("42"):  # other errors quote values, which are the user's to read
            return f"LEAK: the error names {unasked}: {told}"
        if ours.sqlstate == "42501":
            return "refused" if isinstance(theirs, LakeError) or _is_whole(text) else "refused needlessly"
        if isinstance(theirs, LakeError):
            return "failed alike"
        return f"LEAK: the user fails with {ours.sqlstate} {ours.message} where the cut lake answers"
    if isinstance(theirs, LakeError):
        return f"LEAK: the user is answered where the cut lake fails with {theirs.sqlstate} {theirs.message}: {ours[:3]}"
    return "same" if ours == theirs else f"LEAK: {ours[:3]} and not {theirs[:3]}"


def _is_whole(text: str) -> bool:
    """Whether a query means all columns of a table: ``*``, or NATURAL JOIN, which compares the hidden ones as well."""
    return "*" in text or "NATURAL" in text or text.startswith(("FROM", "PIVOT", "SELECT COLUMNS", "SELECT a.id"))


def _answer(lake: Lake, who: str, text: str) -> list[str] | LakeError:
    try:
        return sorted(map(repr, lake.rows(who, text)))
    except LakeError as error:
        return error


def main(arguments: Sequence[str]) -> int:
    """The exit status of a search."""
    parser = argparse.ArgumentParser(prog="python -m tests leaks", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    outcome = search(options.count, options.seed)
    for leak in outcome.leaks[:SHOWN]:
        print(leak, end="\n\n")
    print(f"{options.count} queries of seed {options.seed}:", ", ".join(f"{n} {what}" for what, n in outcome.counts.most_common()))
    return 1 if outcome.leaks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
