"""Random expressions that the dialect and Postgres must answer alike; whole SELECTs: `random_select.py`.

Expressions are made by family (int, dec, dbl, text, date, ts, time, iv, bool). What is not made, because the dialect rightly
differs: arithmetic that may overflow or divide by zero (the order of evaluation decides who sees the error; under CASE it
may not be seen), casts of fractions to integers, DATE with INTERVAL, texts of timestamps and floats, upper and lower of
letters beyond ASCII (Postgres in the C locale leaves them alone).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.random_tables import Column, Draw, RandomTable

LITERALS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("1", "0", "2", "-1", "5"),
    "dec": ("1.5", "0.00", "-2.25", "10.0"),
    "dbl": ("1e0", "5e-1", "0e0", "-225e-2"),
    "text": ("'a'", "''", "'ab'", "'B'", "'%'", "'日本'"),
    "date": ("DATE '2024-02-29'", "DATE '1970-01-01'"),
    "ts": ("TIMESTAMP '2024-02-29 23:59:59.999999'", "TIMESTAMP '1970-01-01 00:00:00'"),
    "time": ("TIME '12:30:00'", "TIME '00:00:00'"),
    "iv": ("INTERVAL '1 month'", "INTERVAL '0 days'", "INTERVAL '-36 hours'"),
    "bool": ("true", "false"),
}
CASTS: Final = {
    "int": "BIGINT", "dec": "DECIMAL(10,2)", "dbl": "DOUBLE PRECISION", "text": "VARCHAR", "date": "DATE",
    "ts": "TIMESTAMP", "time": "TIME", "iv": "INTERVAL", "bool": "BOOLEAN",
}
FAMILIES: Final = tuple(CASTS)
NUMBERS: Final = ("int", "dec", "dbl")
PATTERNS: Final = ("'a%'", "'%'", "'_'", "'%b'", "'%a_%'", "''", "'a!%b' ESCAPE '!'", "'a\\%b'", "'%xyz%z'", "'__'",
                   "'_%_%_'", "'!_' ESCAPE '!'", "'%\\%%' ESCAPE ''", "'%日%'", "'%''%'")
TEXT_NUMBERS: Final = ("'1.5'", "'-0.0055'", "' 12.345 '", "'1e2'")
REGEXES: Final = ("'a'", "'^a'", "'b$'", "'[a-c]+'", "'x|z'", "'^$'", "'.'")
SIMILAR: Final = ("'a'", "'(a|b)%'", "'%[b-x]'", "'_+'", "'ab?'")
QUOTED_X, EMPTY, TWO, EACH = "'x'", "''", "'%b'", "'g'"
COMPARISONS: Final = ("=", "<", "<=", ">", ">=", "<>")


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
        makers: dict[str, Callable[[Scope, int], str]] = {
            "int": self.integer, "dec": self.decimal, "dbl": self.double, "text": self.text, "date": self.date,
            "ts": self.timestamp, "time": self.time, "iv": self.interval, "bool": self.boolean,
        }
        match self.draw.below(8):
            case 0:
                return self.leaf(family, scope, small=small)
            case 1:
                return self.conditional(family, scope, depth, small=small)
            case 2 if depth > 1:
                return self.scalar_subquery(family, scope, small=small)
            case _:
                return makers[family](scope, depth - 1)

    def leaf(self, family: str, scope: Scope, *, small: bool = False) -> str:
        """A column, or a literal where there is none."""
        outer = [each.name for each in scope.outer if each.family == family and (each.small or not small)]
        names = scope.of(family, small=small) + outer
        if names and not self.draw.chance(12):
            return self.draw.pick(names)
        if self.draw.chance(10):
            return f"CAST(NULL AS {CASTS[family]})"
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

    def integer(self, scope: Scope, depth: int) -> str:
        """Integers: sums, products of leaves, quotients of what is not 0, lengths, fields of dates."""
        one = self.leaf("int", scope, small=True)
        match self.draw.below(16):
            case 0:
                return f"({one} {self.draw.pick('+-*')} {self.leaf('int', scope, small=True)})"
            case 1:
                return f"({one} {self.draw.pick('/%')} NULLIF({self.leaf('int', scope, small=True)}, 0))"
            case 2:
                return f"length({self.expression('text', scope, depth)})"
            case 3:
                return f"abs({one})"
            case 4:
                return f"EXTRACT({self.draw.pick(('YEAR', 'MONTH', 'DAY', 'DOY'))} FROM {self.leaf('date', scope)})"
            case 5:
                return f"EXTRACT({self.draw.pick(('YEAR', 'HOUR', 'MINUTE', 'QUARTER'))} FROM {self.leaf('ts', scope)})"
            case 6:
                return f"({self.leaf('date', scope)} - {self.leaf('date', scope)})"
            case 7:
                return f"strpos({self.expression('text', scope, depth)}, {self.leaf('text', scope)})"
            case 8:
                # Guarded: nobody sees the error of the branch that is not taken.
                divisor = self.leaf("int", scope, small=True)
                return f"CASE WHEN {divisor} <> 0 THEN {one} {self.draw.pick('/%')} {divisor} ELSE {one} END"
            case 9:
                return f"({one} {self.draw.pick('&|')} {self.leaf('int', scope, small=True)})"
            case 10:
                return f"mod({one}, {self.draw.pick(('2', '3', '-2'))})"
            case 11:
                function = self.draw.pick(("octet_length", "char_length", "ascii", "bit_length"))
                return f"{function}({self.leaf('text', scope)})"
            case 12:
                return f"CAST({self.draw.pick((chr(39) + '12' + chr(39), chr(39) + ' -3 ' + chr(39)))} AS BIGINT)"
            case 13:
                part = self.draw.pick(("DOW", "ISODOW", "WEEK", "ISOYEAR", "CENTURY", "DECADE"))
                return f"EXTRACT({part} FROM {self.leaf(self.draw.pick(('date', 'ts')), scope)})"
            case 14:
                return f"EXTRACT({self.draw.pick(('HOUR', 'MINUTE'))} FROM {self.leaf('time', scope)})"
            case _:
                return f"(- {one})"

    def decimal(self, scope: Scope, depth: int) -> str:
        """Decimals: sums, products of leaves, rounding."""
        one, two = self.leaf("dec", scope, small=True), self.leaf("dec", scope, small=True)
        match self.draw.below(10):
            case 0:
                return f"({one} {self.draw.pick('+-*')} {two})"
            case 4:
                return f"CAST({one} AS DECIMAL({self.draw.pick(('12,1', '20,0', '38,8', '9,3'))}))"
            case 5:
                return f"trunc({one}, {self.draw.pick('10')})"
            case 6:
                return f"CAST({self.leaf('dbl', scope, small=True)} AS DECIMAL(20,{self.draw.pick('230')}))"
            case 7:
                return f"CAST({self.draw.pick(TEXT_NUMBERS)} AS DECIMAL(8,{self.draw.pick('310')}))"
            case 8:
                return f"({one} % NULLIF({two}, 0))"
            case 1:
                return f"({one} {self.draw.pick('+-*')} {self.leaf('int', scope, small=True)})"
            case 2:
                return f"round({one}, {self.draw.pick('10')})"
            case 3:
                return f"{self.draw.pick(('floor', 'ceil', 'abs'))}({one})"
            case _:
                return f"CAST({self.leaf('int', scope, small=True)} AS DECIMAL(12,2))"

    def double(self, scope: Scope, depth: int) -> str:
        """Doubles: arithmetic, quotients of what is not 0, roots of what is not negative."""
        one = self.leaf("dbl", scope, small=True)
        match self.draw.below(9):
            case 0:
                return f"({one} {self.draw.pick('+-*')} {self.leaf('dbl', scope, small=True)})"
            case 5:
                return f"{self.draw.pick(('sign', 'trunc', 'cbrt', 'sin', 'degrees'))}({one})"
            case 6:
                return f"power({one}, {self.draw.pick('203')})"
            case 7:
                return f"EXTRACT(EPOCH FROM {self.leaf(self.draw.pick(('ts', 'iv')), scope)})"
            case 1:
                return f"({one} / NULLIF({self.leaf('dbl', scope, small=True)}, 0))"
            case 2:
                return f"sqrt(abs({one}))"
            case 3:
                return f"CAST({self.leaf('int', scope, small=True)} AS DOUBLE PRECISION)"
            case 4:
                return f"CAST({self.leaf('dec', scope, small=True)} AS DOUBLE PRECISION)"
            case _:
                return f"{self.draw.pick(('floor', 'ceil', 'abs'))}({one})"

    def text(self, scope: Scope, depth: int) -> str:
        """Texts: parts, joins, replacements, casts whose text is the same everywhere."""
        one = self.expression("text", scope, depth)
        match self.draw.below(21):
            case 0:
                return f"({one} || {self.leaf('text', scope)})"
            case 1:
                return f"{self.draw.pick(('upper', 'lower', 'trim', 'ltrim', 'rtrim', 'reverse'))}({one})"
            case 2:
                return f"substr({one}, {self.draw.pick(('1', '2', '0', '-1', '5'))}, {self.draw.pick('102')})"
            case 3:
                return f"{self.draw.pick(('left', 'right'))}({one}, {self.draw.pick(('1', '2', '0', '-1'))})"
            case 4:
                return f"replace({one}, {self.leaf('text', scope)}, 'x')"
            case 5:
                return f"concat({one}, {self.leaf('text', scope)})"
            case 6:
                return f"CAST({self.leaf('int', scope)} AS VARCHAR)"
            case 7:
                return f"CAST({self.leaf('date', scope)} AS VARCHAR)"
            case 8:
                return f"{self.draw.pick(('lpad', 'rpad'))}({one}, {self.draw.pick('530')}, '*')"
            case 9:
                return f"repeat({self.leaf('text', scope)}, {self.draw.pick('201')})"
            case 10:
                return f"initcap({one})"
            case 11:
                return f"translate({one}, 'ab%', {self.draw.pick((QUOTED_X, EMPTY, TWO))})"
            case 12:
                return f"overlay({one} PLACING {self.leaf('text', scope)} FROM {self.draw.pick('132')})"
            case 13:
                return f"concat_ws('-', {one}, {self.leaf('text', scope)}, {self.leaf('text', scope)})"
            case 14:
                return f"regexp_replace({one}, {self.draw.pick(REGEXES)}, 'z', {self.draw.pick((EMPTY, EACH))})"
            case 15:
                return f"{self.draw.pick(('btrim', 'ltrim', 'rtrim'))}({one}, 'ab ')"
            case 16:
                return f"CAST({self.leaf('dec', scope)} AS VARCHAR)"
            case 17:
                return f"CAST({self.leaf('bool', scope)} AS VARCHAR)"
            case 18:
                return f"substring({one} FROM {self.draw.pick('213')} FOR {self.draw.pick('120')})"
            case 19:
                return f"{self.draw.pick(('md5', 'quote_literal', 'quote_ident'))}({one})"
            case _:
                return f"split_part({one}, 'x', {self.draw.pick('12')})"

    def date(self, scope: Scope, depth: int) -> str:
        """Days: so many days later, or a timestamp's day."""
        if self.draw.chance(40):
            return f"CAST({self.leaf('ts', scope)} AS DATE)"
        if self.draw.chance(20):
            return f"(DATE '2024-01-31' {self.draw.pick('+-')} CAST({self.leaf('int', scope, small=True)} % 1000 AS INT))"
        return f"({self.leaf('date', scope)} {self.draw.pick('+-')} {self.draw.pick(('1', '31', '365'))})"

    def timestamp(self, scope: Scope, depth: int) -> str:
        """Timestamps: with intervals, cut to a unit, from days."""
        one = self.leaf("ts", scope)
        match self.draw.below(5):
            case 1:
                return f"({one} {self.draw.pick('+-')} {self.leaf('iv', scope)})"
            case 2:
                return f"({self.leaf('date', scope)} + {self.leaf('time', scope)})"
            case 0:
                unit = self.draw.pick(("1 day", "1 month", "90 minutes", "1 year", "-1 week"))
                return f"({one} {self.draw.pick('+-')} INTERVAL '{unit}')"
            case 3:
                return f"date_trunc('{self.draw.pick(('month', 'day', 'hour', 'year', 'week', 'quarter'))}', {one})"
            case _:
                return f"CAST({self.leaf('date', scope)} AS TIMESTAMP)"

    def time(self, scope: Scope, depth: int) -> str:
        """Times of day: later ones, and a timestamp's."""
        if self.draw.chance(50):
            return f"CAST({self.leaf('ts', scope)} AS TIME)"
        return f"({self.leaf('time', scope)} {self.draw.pick('+-')} INTERVAL '{self.draw.pick(('1 hour', '90 minutes'))}')"

    def interval(self, scope: Scope, depth: int) -> str:
        """Intervals: between timestamps and times, sums, multiples."""
        match self.draw.below(4):
            case 0:
                return f"({self.leaf('ts', scope)} - {self.leaf('ts', scope)})"
            case 1:
                return f"({self.leaf('iv', scope)} {self.draw.pick('+-')} {self.leaf('iv', scope)})"
            case 2:
                return f"({self.leaf('iv', scope)} * {self.draw.pick(('2', '0', '-1'))})"
            case _:
                return f"(- {self.leaf('iv', scope)})"

    # Conditions.

    def boolean(self, scope: Scope, depth: int) -> str:
        """A condition, three-valued."""
        match self.draw.below(18 if depth > 0 else 4):
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
                word = self.draw.pick(("BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC"))
                family = self.draw.pick(FAMILIES[:-1])
                one, two, three = (self.expression(family, scope, depth - 1) for _ in range(3))
                return f"({one} {word} {two} AND {three})"
            case 8:
                word = self.draw.pick(("LIKE", "NOT LIKE", "ILIKE"))
                return f"({self.expression('text', scope, depth - 1)} {word} {self.draw.pick(PATTERNS)})"
            case 11:
                return self.rows(scope, depth)
            case 12:
                word = self.draw.pick(("LIKE", "NOT LIKE"))
                return f"({self.leaf('text', scope)} {word} {self.expression('text', scope, depth - 1)})"
            case 13:
                return f"({self.leaf('text', scope)} {self.draw.pick(('~', '!~', '~*'))} {self.draw.pick(REGEXES)})"
            case 14:
                word = self.draw.pick(("SIMILAR TO", "NOT SIMILAR TO"))
                return f"({self.leaf('text', scope)} {word} {self.draw.pick(SIMILAR)})"
            case 15:
                family = self.draw.pick(FAMILIES)
                items = ", ".join(self.typed(family, scope) for _ in range(1 + self.draw.below(3)))
                word = f"{self.draw.pick(COMPARISONS)} {self.draw.pick(('ANY', 'ALL'))}"
                return f"({self.leaf(family, scope)} {word} (ARRAY[{items}]))"
            case 16:
                return f"({self.boolean(scope, depth - 1)} = {self.boolean(scope, depth - 1)})"
            case 9:
                word = self.draw.pick(("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN"))
                return f"({self.boolean(scope, depth - 1)} {word})"
            case 10:
                return f"({self.draw.pick(('EXISTS', 'NOT EXISTS'))} ({self.inner(scope, ('1',), depth)}))"
            case _:
                return self.quantified(scope, depth)

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
        source = f"{table.name} {alias} {self.beside(here)}" if self.draw.chance(20) else f"{table.name} {alias}"
        where = f" WHERE {self.boolean(here, 1)}" if self.draw.chance(70) else ""
        # Of its own columns: the aggregate of an outer column would belong to the query around it.
        value = self.leaf(family, Scope(here.columns), small=small)
        if family == "bool" or self.draw.chance(40):
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
