"""Random queries with subqueries in them, up to three deep, correlated with any query around them.

    make_query(random.Random(1))  ->  "SELECT q1.a, q1.b FROM t q1 WHERE q1.a NOT IN (SELECT q2.x FROM u q2 WHERE ..)"

Over the tables of tests/plans/queries.sql but for the empty one.
"""

from __future__ import annotations

import random
from itertools import count
from typing import Final

COLUMNS: Final = {"t": ("a", "b"), "u": ("a", "x", "y"), "v": ("a", "z")}
DEPTH: Final = 2

Scope = list[tuple[str, str]]
"""Aliases in sight, with their tables."""


def make_query(draw: random.Random) -> str:
    """One query."""
    return _Maker(draw).top()


class _Maker:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.numbers = count(1)

    def top(self) -> str:
        source, scope = self.source([])
        items = [self.column(scope), self.column(scope)]
        if self.chance(0.5):
            items.append(f"({self.value(scope, DEPTH)})")
        if self.chance(0.3):
            items.append(self.subquery(scope, [], DEPTH))
        return f"SELECT {', '.join(items)} FROM {source}{self.where(scope, [], DEPTH)}"

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def column(self, scope: Scope) -> str:
        alias, table = self.draw.choice(scope)
        return f"{alias}.{self.draw.choice(COLUMNS[table])}"

    def any_column(self, scope: Scope, outer: Scope, share: float) -> str:
        """A column of the query, or at that share one of a query around it."""
        return self.column(outer if outer and self.chance(share) else scope)

    def source(self, outer: Scope) -> tuple[str, Scope]:
        scope = [(f"q{next(self.numbers)}", self.draw.choice(list(COLUMNS))) for _ in range(1 + self.chance(0.4))]
        (one, table), *rest = scope
        if not rest:
            return f"{table} {one}", scope
        two, other = rest[0]
        kind = self.draw.choice([",", "JOIN", "LEFT JOIN", "FULL JOIN", "LATERAL"])
        if kind == ",":
            return f"{table} {one}, {other} {two}", scope
        if kind == "LATERAL":
            return f"{table} {one} {self.lateral(two, other, [(one, table), *outer])}", scope
        on = f"{one}.a = {two}.a"
        if kind != "FULL JOIN" and self.chance(0.5):
            on += f" AND {self.condition(scope, outer, 0)}"
        return f"{table} {one} {kind} {other} {two} ON {on}", scope

    def lateral(self, alias: str, table: str, outer: Scope) -> str:
        columns = ", ".join(f"{alias}.{name}" for name in COLUMNS[table])
        order = f" ORDER BY {columns} LIMIT 2" if self.chance(0.4) else ""
        inner = f"SELECT {columns} FROM {table} {alias} WHERE {self.condition([(alias, table)], outer, 0)}{order}"
        if self.chance(0.5):
            return f"CROSS JOIN LATERAL ({inner}) {alias}"
        return f"LEFT JOIN LATERAL ({inner}) {alias} ON true"

    def where(self, scope: Scope, outer: Scope, depth: int) -> str:
        conditions = [self.condition(scope, outer, depth) for _ in range(self.draw.randrange(3))]
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def condition(self, scope: Scope, outer: Scope, depth: int) -> str:
        choice = self.draw.random()
        if depth > 0 and choice < 0.3:
            return self.subquery(scope, outer, depth)
        if choice < 0.65:
            op = self.draw.choice(["=", "=", "=", "<", "<>", ">="])
            return f"{self.any_column(scope, outer, 0.15)} {op} {self.any_column(scope, outer, 0.6)}"
        if choice < 0.75:
            return f"{self.any_column(scope, outer, 0.35)} IS {self.draw.choice(['', 'NOT '])}NULL"
        if choice < 0.85:
            return f"({self.condition(scope, outer, depth - 1)} OR {self.condition(scope, outer, depth - 1)})"
        if choice < 0.9:
            return f"NOT ({self.condition(scope, outer, depth - 1)})"
        return f"{self.any_column(scope, outer, 0.35)} {self.draw.choice(['=', '<', '>'])} {self.draw.randrange(5)}"

    def subquery(self, scope: Scope, outer: Scope, depth: int) -> str:
        """A condition with a subquery in it."""
        around, choice = [*scope, *outer], self.draw.random()
        operand = self.any_column(scope, outer, 0.35)
        negated = self.draw.choice(["", "NOT "])
        if choice < 0.35:
            return f"{negated}EXISTS ({self.rows(around, depth - 1)})"
        if choice < 0.7:
            return f"{operand} {negated}IN ({self.rows(around, depth - 1)})"
        if choice < 0.85:
            op = f"{self.draw.choice(['>', '<=', '=', '<>'])} {self.draw.choice(['ANY', 'ALL'])}"
            return f"{operand} {op} ({self.rows(around, depth - 1)})"
        return f"{operand} {self.draw.choice(['=', '<', '>='])} ({self.value(around, depth - 1)})"

    def rows(self, outer: Scope, depth: int) -> str:
        """A query of one column."""
        source, scope = self.source(outer)
        column, choice = self.any_column(scope, outer, 0.15), self.draw.random()
        text = f"SELECT {column} FROM {source}{self.where(scope, outer, depth)}"
        if choice < 0.12:
            return text.replace("SELECT", "SELECT DISTINCT", 1)
        if choice < 0.22:
            return f"{text} GROUP BY {column}" + (" HAVING count(*) > 1" if self.chance(0.5) else "")
        if choice < 0.3:
            return f"{text} ORDER BY {column} NULLS LAST LIMIT {self.draw.randrange(1, 3)}"
        if choice < 0.4:
            more, inside = self.source(outer)
            kind = self.draw.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
            other = self.any_column(inside, outer, 0.15)
            return f"{text} {kind} SELECT {other} FROM {more}{self.where(inside, outer, depth)}"
        return self.value(outer, depth) if choice < 0.5 else text

    def value(self, outer: Scope, depth: int) -> str:
        """A query of one column and at most one row."""
        source, scope = self.source(outer)
        column = self.column(scope)
        call = self.draw.choice(
            ["count(*)", f"max({column})", f"min({column})", f"sum({column})", f"count({column})", "count(*) + 1"]
        )
        having = " HAVING count(*) > 1" if self.chance(0.15) else ""
        return f"SELECT {call} FROM {source}{self.where(scope, outer, depth)}{having}"
