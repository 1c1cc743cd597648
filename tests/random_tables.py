"""Random tables, and the choices that make random queries over them.

A query is a function of its choices, a list of numbers: option 0 is always the simplest and a list that has ended goes
on with zeros, so shortening and lowering the list makes the query smaller, and a failing query shrinks by itself.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
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
    TableColumn(Column("h", "dec"), "DECIMAL(18,6)", ("0.000000", "1.000000", "0.000001", "-3.141593", "2.500000")),
    TableColumn(Column("k", "dec", False), "DECIMAL(38,10)",
                ("0.0000000001", "1.5000000000", "-1234567890123456789012345678.0123456789", "1.0000000000")),
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
    TableColumn(Column("c", "time"), "TIME", ("TIME '00:00:00'", "TIME '12:30:00'", "TIME '23:59:59.999999'")),
    TableColumn(Column("g", "iv"), "INTERVAL",
                ("INTERVAL '1 month'", "INTERVAL '40 days'", "INTERVAL '36 hours'", "INTERVAL '-5 days'",
                 "INTERVAL '1 year 2 days 03:04:05'")),
    TableColumn(Column("p", "bool"), "BOOLEAN", ("true", "false")),
    TableColumn(Column("o", "int"), "SMALLINT", ("0", "1", "3", "-2", "25")),
    TableColumn(Column("e", "real"), "REAL", ("0", "1", "-0.5", "8", "2.25")),
    TableColumn(Column("z", "tz"), "TIMESTAMPTZ",
                ("TIMESTAMPTZ '2024-03-10 06:30:00+00'", "TIMESTAMPTZ '2024-11-03 01:30:00-04'",
                 "TIMESTAMPTZ '1969-12-31 23:59:59.5+00'", "TIMESTAMPTZ '2024-01-01 00:00:00+05:30'")),
    TableColumn(Column("q", "bytes"), "BYTEA",
                (r"CAST('\x6162' AS BYTEA)", r"CAST('\x' AS BYTEA)", r"CAST('\x00ff10' AS BYTEA)",
                 r"CAST('\x61' AS BYTEA)")),
    TableColumn(Column("l", "ints"), "BIGINT[]",
                ("ARRAY[1, 2, 3]", "ARRAY[2]", "CAST(ARRAY[] AS BIGINT[])", "ARRAY[1, NULL]", "ARRAY[7, 7, 0]")),
    TableColumn(Column("r", "texts"), "VARCHAR[]",
                ("ARRAY['a', 'b']", "ARRAY['']", "CAST(ARRAY[] AS VARCHAR[])", "ARRAY['a', NULL, 'B']", "ARRAY['xyz', 'a']")),
    TableColumn(Column("a", "uuid"), "UUID",
                ("'123e4567-e89b-12d3-a456-426614174000'", "'123E4567E89B12D3A456426614174001'",
                 "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'00000000-0000-0000-0000-000000000000'")),
    TableColumn(Column("j", "json"), "JSON",
                ("""'{"a":1,"b":[1,"x",null]}'""", """'{"b":[],"c":{"a":"z"}}'""", "'[1,2]'", "'null'",
                 """'{"a":"日","c":true}'""")),
)


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
        columns = tuple(sorted(chance.sample(COLUMNS, chance.randint(8, 18)), key=COLUMNS.index))
        rows = []
        for row in range(chance.choice((0, 1, 5, 6, 7, 8, 9, 9))):
            values = ("NULL" if chance.random() < 0.2 else chance.choice(each.values) for each in columns)
            rows.append((str(row), *values))
        tables.append(RandomTable(f"t{number}", columns, tuple(rows)))
    return tables
