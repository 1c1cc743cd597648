"""Random tables and expressions that the dialect and Postgres must answer alike; whole SELECTs: `random_select.py`.

A query is a function of its choices, a list of numbers: option 0 is always the simplest and a list that has ended goes
on with zeros, so shortening and lowering the list makes the query smaller, and a failing query shrinks by itself.

Expressions are made by family (int, dec, dbl, text, date, ts, bool). What is not made, because the dialect rightly
differs: arithmetic that may overflow or divide by zero (the order of evaluation decides who sees the error), casts of
fractions to integers, DATE with INTERVAL, texts of timestamps and floats, upper and lower of letters beyond ASCII
(Postgres in the C locale leaves them alone).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

T = TypeVar("T")


class Draw:
    """A stream of choices: recorded as they are made, or replayed."""

    def __init__(self, source: random.Random | Sequence[int]) -> None:
        self._random = source if isinstance(source, random.Random) else None
        self._replayed = [] if isinstance(source, random.Random) else list(source)
        self.made: list[int] = []

    def below(self, count: int) -> int:
        """A number under ``count``; 0 where the replayed list has ended."""
        at = len(self.made)
        if self._random:
            number = self._random.randrange(count)
        else:
            number = min(self._replayed[at], count - 1) if at < len(self._replayed) else 0
        self.made.append(number)
        return number

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """True so many times in a hundred; false is the simpler."""
        return self.below(100) >= 100 - percent

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """One to ``most`` of the options, each once."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(min(1 + self.below(most), len(left)))]


@dataclass(frozen=True, slots=True)
class Column:
    """A name and its family; ``small`` values may be reckoned with, others are only compared."""

    name: str
    family: str
    small: bool = True


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of random tables: its SQL type, and the literals its values come from."""

    column: Column
    sql: str
    values: tuple[str, ...]


COLUMNS: Final = (
    TableColumn(Column("i", "int"), "INT", ("0", "1", "2", "-1", "7", "100")),
    TableColumn(Column("b", "int"), "BIGINT", ("0", "1", "2", "3", "-5", "1000000")),
    TableColumn(Column("x", "int", False), "BIGINT",
                ("9223372036854775807", "-9223372036854775808", "0", "2147483648", "1")),
    TableColumn(Column("n", "dec"), "DECIMAL(10,2)", ("0.00", "1.00", "1.50", "-2.25", "99.99", "0.01")),
    TableColumn(Column("m", "dec", False), "DECIMAL(30,4)",
                ("99999999999999999999999999.9999", "-99999999999999999999999999.9999", "0.0001", "1.5000")),
    TableColumn(Column("d", "dbl"), "DOUBLE PRECISION", ("0", "1", "0.5", "-2.25", "1024", "0.125")),
    TableColumn(Column("y", "dbl", False), "DOUBLE PRECISION",
                ("'NaN'", "'Infinity'", "'-Infinity'", "1e300", "-1e-300", "0", "1")),
    TableColumn(Column("s", "text"), "VARCHAR", ("'a'", "'b'", "''", "'ab'", "'B'", "'a%b'", "' c '")),
    TableColumn(Column("u", "text"), "VARCHAR", ("'日本'", "'😀'", "'abc'", "'xyzxyzxyzxyzxyz'", "'it''s'", "'_'")),
    TableColumn(Column("f", "date"), "DATE",
                ("DATE '2024-02-29'", "DATE '2024-01-01'", "DATE '1999-12-31'", "DATE '1970-01-01'")),
    TableColumn(Column("w", "ts"), "TIMESTAMP",
                ("TIMESTAMP '2024-02-29 23:59:59.999999'", "TIMESTAMP '1969-12-31 12:00:00'",
                 "TIMESTAMP '2024-01-01 00:00:00'")),
    TableColumn(Column("p", "bool"), "BOOLEAN", ("true", "false")),
)
LITERALS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("1", "0", "2", "-1", "5"),
    "dec": ("1.5", "0.00", "-2.25", "10.0"),
    "dbl": ("1e0", "5e-1", "0e0", "-225e-2"),
    "text": ("'a'", "''", "'ab'", "'B'", "'%'", "'日本'"),
    "date": ("DATE '2024-02-29'", "DATE '1970-01-01'"),
    "ts": ("TIMESTAMP '2024-02-29 23:59:59.999999'", "TIMESTAMP '1970-01-01 00:00:00'"),
    "bool": ("true", "false"),
}
CASTS: Final = {
    "int": "BIGINT", "dec": "DECIMAL(10,2)", "dbl": "DOUBLE PRECISION", "text": "VARCHAR", "date": "DATE",
    "ts": "TIMESTAMP", "bool": "BOOLEAN",
}
FAMILIES: Final = tuple(CASTS)
NUMBERS: Final = ("int", "dec", "dbl")
PATTERNS: Final = ("'a%'", "'%'", "'_'", "'%b'", "'%a_%'", "''", "'a!%b' ESCAPE '!'")
COMPARISONS: Final = ("=", "<", "<=", ">", ">=", "<>")


@dataclass(frozen=True, slots=True)
class RandomTable:
    """A table of the run: its name, columns (``id`` first, unique and never NULL), and rows as SQL literals."""

    name: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[str, ...], ...]

    def statements(self) -> list[str]:
        """What makes the table."""
        columns = ", ".join(f"{each.column.name} {each.sql}" for each in self.columns)
        made = [f"CREATE TABLE {self.name} (id BIGINT, {columns})"]
        rows = ",\n  ".join(f"({', '.join(row)})" for row in self.rows)
        return [*made, f"INSERT INTO {self.name} VALUES\n  {rows}"] if self.rows else made


def random_tables(chance: random.Random, count: int = 3) -> list[RandomTable]:
    """Tables t0, t1 .. of up to nine rows, with NULLs and duplicates; now and then one is empty."""
    tables = []
    for number in range(count):
        columns = tuple(sorted(chance.sample(COLUMNS, chance.randint(6, 11)), key=COLUMNS.index))
        rows = []
        for row in range(chance.choice((0, 1, 5, 6, 7, 8, 9, 9))):
            values = ("NULL" if chance.random() < 0.2 else chance.choice(each.values) for each in columns)
            rows.append((str(row), *values))
        tables.append(RandomTable(f"t{number}", columns, tuple(rows)))
    return tables


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
            "ts": self.timestamp, "bool": self.boolean,
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
        match self.draw.below(5):
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
            case _:
                return f"{self.draw.pick(('GREATEST', 'LEAST'))}({one}, {two})"

    def integer(self, scope: Scope, depth: int) -> str:
        """Integers: sums, products of leaves, quotients of what is not 0, lengths, fields of dates."""
        one = self.leaf("int", scope, small=True)
        match self.draw.below(9):
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
            case _:
                return f"(- {one})"

    def decimal(self, scope: Scope, depth: int) -> str:
        """Decimals: sums, products of leaves, rounding."""
        one, two = self.leaf("dec", scope, small=True), self.leaf("dec", scope, small=True)
        match self.draw.below(5):
            case 0:
                return f"({one} {self.draw.pick('+-*')} {two})"
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
        match self.draw.below(6):
            case 0:
                return f"({one} {self.draw.pick('+-*')} {self.leaf('dbl', scope, small=True)})"
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
        match self.draw.below(11):
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
            case _:
                return f"split_part({one}, 'x', {self.draw.pick('12')})"

    def date(self, scope: Scope, depth: int) -> str:
        """Days: so many days later, or a timestamp's day."""
        if self.draw.chance(40):
            return f"CAST({self.leaf('ts', scope)} AS DATE)"
        return f"({self.leaf('date', scope)} {self.draw.pick('+-')} {self.draw.pick(('1', '31', '365'))})"

    def timestamp(self, scope: Scope, depth: int) -> str:
        """Timestamps: with intervals, cut to a unit, from days."""
        one = self.leaf("ts", scope)
        match self.draw.below(3):
            case 0:
                unit = self.draw.pick(("1 day", "1 month", "90 minutes", "1 year", "-1 week"))
                return f"({one} {self.draw.pick('+-')} INTERVAL '{unit}')"
            case 1:
                return f"date_trunc('{self.draw.pick(('month', 'day', 'hour', 'year', 'week', 'quarter'))}', {one})"
            case _:
                return f"CAST({self.leaf('date', scope)} AS TIMESTAMP)"

    # Conditions.

    def boolean(self, scope: Scope, depth: int) -> str:
        """A condition, three-valued."""
        match self.draw.below(12 if depth > 0 else 4):
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
            case 9:
                word = self.draw.pick(("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE"))
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

    def quantified(self, scope: Scope, depth: int) -> str:
        """ANY and ALL over a subquery."""
        family = self.draw.pick(FAMILIES)
        operator, word = self.draw.pick(COMPARISONS), self.draw.pick(("ANY", "ALL"))
        value = self.expression(family, scope, depth - 1)
        return f"({value} {operator} {word} ({self.inner(scope, (family,), depth)}))"

    # Subqueries.

    def inner(self, scope: Scope, families: Sequence[str], depth: int) -> str:
        """A subquery of the given columns over one table; now and then it uses the query around it."""
        table, alias = self.draw.pick(self.tables), self.name("q")
        own = self.columns_of(table, alias)
        outer = scope.columns if self.draw.chance(50) else []
        here = Scope(own, [f"{alias}.id"], outer)
        items = ", ".join(f if f == "1" else self.expression(f, here, min(depth, 2) - 1) for f in families)
        where = f" WHERE {self.boolean(here, min(depth, 2) - 1)}" if self.draw.chance(70) else ""
        return f"SELECT {items} FROM {table.name} {alias}{where}"

    def scalar_subquery(self, family: str, scope: Scope, *, small: bool) -> str:
        """A subquery of one value: an aggregate, or the first row in a total order."""
        table, alias = self.draw.pick(self.tables), self.name("q")
        here = Scope(self.columns_of(table, alias), [f"{alias}.id"], scope.columns if self.draw.chance(60) else [])
        where = f" WHERE {self.boolean(here, 1)}" if self.draw.chance(70) else ""
        # Of its own columns: the aggregate of an outer column would belong to the query around it.
        value = self.leaf(family, Scope(here.columns), small=small)
        if family == "bool" or self.draw.chance(40):
            return f"(SELECT {value} FROM {table.name} {alias}{where} ORDER BY {alias}.id LIMIT 1)"
        if family == "int" and self.draw.chance(40):
            return f"(SELECT count(*) FROM {table.name} {alias}{where})"
        return f"(SELECT {self.draw.pick(('min', 'max'))}({value}) FROM {table.name} {alias}{where})"

    def columns_of(self, table: RandomTable, alias: str) -> list[Column]:
        """The table's columns under an alias."""
        own = [Column(f"{alias}.{each.column.name}", each.column.family, each.column.small) for each in table.columns]
        return [Column(f"{alias}.id", "int"), *own]
