"""Random expressions that the dialect and Postgres must answer alike; whole SELECTs: `random_select.py`.

Expressions are made by family (int, dec, dbl, text, date ..) from the templates of `random_templates.py`; conditions and
subqueries here, correlated with any query around them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.random_tables import Column, Draw, RandomTable
from tests.random_templates import CASTS, COMPARISONS, CONDITIONS, EXPRESSIONS, FAMILIES, LITERALS, NUMBERS

_HOLE: Final = re.compile(r"\{(\?[^{}]*(?:\{[\d,]+\}[^{}]*)*|[a-z]+[!~=]?)\}")


@dataclass
class Scope:
    """The columns an expression may use, those of outer queries last; ``keys`` together name a row."""

    columns: list[Column]
    keys: list[str] = field(default_factory=list)
    outer: list[Column] = field(default_factory=list)

    def of(self, family: str, *, small: bool = False) -> list[str]:
        """Names of columns of a family."""
        return [column.name for column in self.columns if column.family == family and (column.small or not small)]


class Expressions:
    """Makes expressions from choices, over the tables of the run."""

    def __init__(self, draw: Draw, tables: Sequence[RandomTable]) -> None:
        self.draw = draw
        self.tables = tables
        self._names = 0

    def name(self, prefix: str) -> str:
        """A name nobody has."""
        self._names += 1
        return f"{prefix}{self._names}"

    # Expressions.

    def expression(self, family: str, scope: Scope, depth: int, *, small: bool = False) -> str:
        """An expression of a family; ``small`` where it will be reckoned with."""
        if depth <= 0 or not self.draw.chance(65):
            return self.leaf(family, scope, small=small)
        match self.draw.below(8):
            case 0:
                return self.leaf(family, scope, small=small)
            case 1:
                return self.conditional(family, scope, depth, small=small)
            case 2 if depth > 1:
                return self.scalar_subquery(family, scope, small=small)
            case _:
                return self.boolean(scope, depth) if family == "bool" else self.made(family, scope, depth)

    def made(self, family: str, scope: Scope, depth: int) -> str:
        """An expression from a template of the family."""
        return self.filled(self.draw.pick(EXPRESSIONS[family]), scope, depth - 1)

    def filled(self, template: str, scope: Scope, depth: int = 0) -> str:
        """A template, filled in from left to right."""
        last = ""

        def fill(hole: re.Match[str]) -> str:
            nonlocal last
            word = hole[1]
            family, mark = word.rstrip("!~="), word[-1]
            if word.startswith("?"):
                return self.draw.pick(word[1:].split(";"))
            match family:
                case "same":
                    return last
                case "key":
                    return ", ".join(scope.keys)
                case "table":
                    return self.draw.pick(self.tables).name
                case "any":
                    return self.leaf(self.draw.pick(FAMILIES), scope)
            if mark == "=":
                last = self.typed(family, scope)
            elif mark == "~":
                last = self.expression(family, scope, depth)
            else:
                last = self.leaf(family, scope, small=mark != "!")
            return last

        return _HOLE.sub(fill, template)

    def leaf(self, family: str, scope: Scope, *, small: bool = False) -> str:
        """A column, or a literal where there is none."""
        outer = [each.name for each in scope.outer if each.family == family and (each.small or not small)]
        names = scope.of(family, small=small) + outer
        if names and not self.draw.chance(12):
            return self.draw.pick(names)
        if self.draw.chance(10):
            return f"CAST(NULL AS {CASTS.get(family, 'JSON')})"
        return self.draw.pick(LITERALS[family])

    def typed(self, family: str, scope: Scope) -> str:
        """A column of the family, or a literal that says its type."""
        names = scope.of(family)
        return self.draw.pick(names) if names else f"CAST({self.draw.pick(LITERALS[family])} AS {CASTS[family]})"

    def conditional(self, family: str, scope: Scope, depth: int, *, small: bool) -> str:
        """CASE, COALESCE, NULLIF, GREATEST and LEAST, which every family has."""
        one = self.expression(family, scope, depth - 1, small=small)
        two = self.expression(family, scope, depth - 1, small=small)
        match self.draw.below(6):
            case 0:
                return f"COALESCE({one}, {two})"
            case 1:
                return f"NULLIF({one}, {two})"
            case 2:
                return f"CASE WHEN {self.boolean(scope, depth - 1)} THEN {one} ELSE {two} END"
            case 3:
                subject = self.draw.pick(FAMILIES)
                value = self.expression(subject, scope, depth - 1)
                return f"CASE {value} WHEN {self.leaf(subject, scope)} THEN {one} WHEN {self.leaf(subject, scope)} " \
                       f"THEN {two} END"
            case 4:
                return f"COALESCE({self.leaf(family, scope, small=small)}, {one}, {two})"
            case _:
                return f"{self.draw.pick(('GREATEST', 'LEAST'))}({one}, {two})"

    # Conditions.

    def boolean(self, scope: Scope, depth: int) -> str:
        """A condition, three-valued."""
        match self.draw.below(16 if depth > 0 else 4):
            case 0 | 1:
                return self.comparison(scope, depth)
            case 2:
                family = self.draw.pick(FAMILIES)
                return f"({self.expression(family, scope, depth - 1)} IS {self.draw.pick(('NULL', 'NOT NULL'))})"
            case 3:
                return self.leaf("bool", scope)
            case 4:
                return f"({self.boolean(scope, depth - 1)} {self.draw.pick(('AND', 'OR'))} " \
                       f"{self.boolean(scope, depth - 1)})"
            case 5:
                return f"(NOT {self.boolean(scope, depth - 1)})"
            case 6:
                return self.membership(scope, depth)
            case 7:
                word = self.draw.pick(("BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC", "NOT BETWEEN SYMMETRIC"))
                family = self.draw.pick(FAMILIES)
                one, two, three = (self.expression(family, scope, depth - 1) for _ in range(3))
                return f"({one} {word} {two} AND {three})"
            case 8:
                return self.rows(scope, depth)
            case 9:
                family = self.draw.pick([each for each in FAMILIES if each not in ("ints", "texts")])
                items = ", ".join(self.typed(family, scope) for _ in range(1 + self.draw.below(3)))
                word = f"{self.draw.pick(COMPARISONS)} {self.draw.pick(('ANY', 'ALL'))}"
                return f"({self.leaf(family, scope)} {word} (ARRAY[{items}]))"
            case 10:
                return f"({self.draw.pick(('EXISTS', 'NOT EXISTS'))} ({self.inner(scope, ('1',), depth)}))"
            case 11:
                return self.quantified(scope, depth)
            case _:
                return self.filled(self.draw.pick(CONDITIONS), scope, depth - 1)

    def comparison(self, scope: Scope, depth: int) -> str:
        """Two values of one family, or two numbers."""
        family = self.draw.pick(FAMILIES)
        other = self.draw.pick(NUMBERS) if family in NUMBERS and self.draw.chance(20) else family
        operator = self.draw.pick((*COMPARISONS, "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
        # A double against an extreme integer or decimal is compared as doubles, on both sides alike.
        return f"({self.expression(family, scope, depth - 1)} {operator} {self.expression(other, scope, depth - 1)})"

    def membership(self, scope: Scope, depth: int) -> str:
        """IN a list or a subquery, NULLs among them."""
        family = self.draw.pick(FAMILIES)
        word = self.draw.pick(("IN", "NOT IN"))
        value = self.expression(family, scope, depth - 1)
        if self.draw.chance(50):
            return f"({value} {word} ({self.inner(scope, (family,), depth)}))"
        items = [self.leaf(family, scope) for _ in range(1 + self.draw.below(3))]
        return f"({value} {word} ({', '.join([*items, 'NULL'] if self.draw.chance(15) else items)}))"

    def rows(self, scope: Scope, depth: int) -> str:
        """Rows compared with rows, and rows among those of a subquery."""
        families = [self.draw.pick(FAMILIES), self.draw.pick(FAMILIES)]
        left = ", ".join(self.leaf(family, scope) for family in families)
        if self.draw.chance(50):
            return f"(({left}) {self.draw.pick(('IN', 'NOT IN'))} ({self.inner(scope, families, depth)}))"
        right = ", ".join(self.leaf(family, scope) for family in families)
        return f"(({left}) {self.draw.pick((*COMPARISONS, 'IS DISTINCT FROM'))} ({right}))"

    def quantified(self, scope: Scope, depth: int) -> str:
        """ANY and ALL over a subquery."""
        family = self.draw.pick(FAMILIES)
        operator, word = self.draw.pick(COMPARISONS), self.draw.pick(("ANY", "ALL"))
        value = self.expression(family, scope, depth - 1)
        return f"({value} {operator} {word} ({self.inner(scope, (family,), depth)}))"

    # Subqueries.

    def inner(self, scope: Scope, families: Sequence[str], depth: int) -> str:
        """A subquery of the given columns, of many forms; now and then it uses the query around it."""
        if (shape := self.draw.below(16)) == 7:
            word = self.draw.pick(("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL"))
            return f"{self.plain(scope, families, depth)} {word} {self.plain(scope, families, depth)}"
        table, alias = self.draw.pick(self.tables), self.name("q")
        if shape in (11, 12):
            here = Scope(self.columns_of(table, table.name), [], self.around(scope))
            where = f" WHERE {self.boolean(here, 1)}"
            items = self.items(families, Scope(self.columns_of(table, alias), [], self.around(scope)), depth)
            if shape == 11:
                return f"SELECT {items} FROM (SELECT * FROM {table.name}{where}) {alias}"
            common = self.name("c")
            return f"WITH {common} AS (SELECT * FROM {table.name}{where}) SELECT {items} FROM {common} {alias}"
        here = Scope(self.columns_of(table, alias), [f"{alias}.id"], self.around(scope))
        source = f"{table.name} {alias}"
        if shape in (6, 13):
            source = f"{source} {self.beside(here)}"
        items = self.items(families, here, depth)
        where = f" WHERE {self.boolean(here, min(depth, 2) - 1)}" if self.draw.chance(70) else ""
        text = f"SELECT {items} FROM {source}{where}"
        match shape:
            case 8:
                keys = ", ".join(str(number) for number in range(1, len(families) + 1))
                return f"{text} GROUP BY {keys} HAVING count(*) {self.draw.pick(('>= 1', '> 1', '= 2'))}"
            case 9:
                return text.replace("SELECT", "SELECT DISTINCT", 1)
            case 10:
                offset = self.draw.pick(("", " OFFSET 1"))
                return f"{text} ORDER BY {', '.join(here.keys)} LIMIT {self.draw.pick('12')}{offset}"
        return text

    def plain(self, scope: Scope, families: Sequence[str], depth: int) -> str:
        """A subquery over one table."""
        table, alias = self.draw.pick(self.tables), self.name("q")
        here = Scope(self.columns_of(table, alias), [f"{alias}.id"], self.around(scope))
        where = f" WHERE {self.boolean(here, min(depth, 2) - 1)}" if self.draw.chance(70) else ""
        return f"SELECT {self.items(families, here, depth)} FROM {table.name} {alias}{where}"

    def items(self, families: Sequence[str], scope: Scope, depth: int) -> str:
        """The select list of a subquery."""
        return ", ".join(each if each == "1" else self.expression(each, scope, min(depth, 2) - 1) for each in families)

    def around(self, scope: Scope) -> list[Column]:
        """The columns of queries around that a subquery may use: none, the nearest one's, or all."""
        return scope.columns + (scope.outer if self.draw.chance(30) else []) if self.draw.chance(50) else []

    def beside(self, scope: Scope) -> str:
        """A join with one more table, whose columns come into scope."""
        table, alias = self.draw.pick(self.tables), self.name("q")
        columns = self.columns_of(table, alias)
        both = Scope(scope.columns + columns, [], scope.outer)
        word = self.draw.pick(("JOIN", "LEFT JOIN", "JOIN"))
        key = self.draw.pick([each.name for each in scope.columns if each.family == "int"])
        more = f" AND {self.boolean(both, 1)}" if self.draw.chance(40) else ""
        scope.columns, scope.keys = both.columns, [*scope.keys, f"{alias}.id"]
        return f"{word} {table.name} {alias} ON {key} = {alias}.id{more}"

    def scalar_subquery(self, family: str, scope: Scope, *, small: bool) -> str:
        """A subquery of one value: an aggregate, the first row in a total order, or no table's."""
        if self.draw.chance(8):
            where = f" WHERE {self.boolean(scope, 1)}" if self.draw.chance(50) else ""
            return f"(SELECT {self.leaf(family, scope, small=small)}{where})"
        table, alias = self.draw.pick(self.tables), self.name("q")
        here = Scope(self.columns_of(table, alias), [f"{alias}.id"], self.around(scope))
        if family in ("ints", "texts") and self.draw.chance(50):
            item = f"{self.leaf(family[:-1], Scope(here.columns))}::{CASTS[family[:-1]]}"
            where = f" WHERE {self.boolean(here, 1)}" if self.draw.chance(50) else ""
            return f"ARRAY(SELECT {item} FROM {table.name} {alias}{where} ORDER BY {alias}.id)"
        source = f"{table.name} {alias} {self.beside(here)}" if self.draw.chance(20) else f"{table.name} {alias}"
        where = f" WHERE {self.boolean(here, 1)}" if self.draw.chance(70) else ""
        # Of its own columns: the aggregate of an outer column would belong to the query around it.
        value = self.leaf(family, Scope(here.columns), small=small)
        if family in ("bool", "bytes", "uuid") or self.draw.chance(40):
            return f"(SELECT {value} FROM {source}{where} ORDER BY {', '.join(here.keys)} LIMIT 1)"
        having = f" HAVING count(*) {self.draw.pick(('> 0', '> 1', '< 3'))}" if self.draw.chance(15) else ""
        if family == "int" and self.draw.chance(40):
            return f"(SELECT count({self.draw.pick(('*', value))}) FROM {source}{where}{having})"
        if self.draw.chance(10):
            # One of its groups: the least key's.
            key = self.typed("int", here)
            return f"(SELECT max({value}) FROM {source}{where} GROUP BY {key}{having} ORDER BY {key} LIMIT 1)"
        return f"(SELECT {self.draw.pick(('min', 'max'))}({value}) FROM {source}{where}{having})"

    def columns_of(self, table: RandomTable, alias: str) -> list[Column]:
        """The table's columns under an alias."""
        own = [Column(f"{alias}.{each.column.name}", each.column.family, each.column.small) for each in table.columns]
        return [Column(f"{alias}.id", "int"), *own]
