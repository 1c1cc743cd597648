"""Small random tables that the lake and DuckDB make from one text."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

# Columns by family: SQL type, and the literals their values come from.
COLUMNS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "k": ("int", "BIGINT", ("1", "2", "3")),
    "n": ("int", "BIGINT", ("0", "1", "2", "-1", "7", "40")),
    "m": ("int", "INT", ("0", "5", "-3", "12")),
    "g": ("text", "VARCHAR", ("'a'", "'b'", "'c'")),
    "s": ("text", "VARCHAR", ("'x'", "'abc'", "''", "'B b'", "'été'", "'a_c'")),
    "d": ("dbl", "DOUBLE", ("0", "1", "0.5", "-2.25", "1024")),
    "c": ("dec", "DECIMAL(10,2)", ("0.00", "1.50", "-2.25", "99.99")),
    "b": ("bool", "BOOLEAN", ("true", "false")),
    "f": ("date", "DATE", ("DATE '2024-02-29'", "DATE '2024-01-01'", "DATE '1999-12-31'")),
    "t": ("ts", "TIMESTAMP", ("TIMESTAMP '2024-02-29 23:59:59'", "TIMESTAMP '2024-01-01 00:00:00'",
                              "TIMESTAMP '1969-12-31 12:00:00.5'")),
    "l": ("ints", "BIGINT[]", ("[1, 2, 3]", "[2]", "[]::BIGINT[]", "[1, NULL]", "[7, 7, 0]")),
}


@dataclass(frozen=True, slots=True)
class FriendlyTable:
    """A table: its name, the names of its columns (``id`` first, unique and never NULL), and its rows as literals."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def of(self, family: str) -> list[str]:
        """The names of the columns of a family."""
        named = [name for name in self.columns if COLUMNS[name][0] == family]
        return [*named, "id"] if family == "int" else named

    def statements(self) -> list[str]:
        """What makes the table."""
        columns = ", ".join(f"{name} {COLUMNS[name][1]}" for name in self.columns)
        made = [f"CREATE TABLE {self.name} (id BIGINT, {columns})"]
        rows = ",\n  ".join(f"({', '.join(row)})" for row in self.rows)
        return [*made, f"INSERT INTO {self.name} VALUES\n  {rows}"] if self.rows else made


def friendly_tables(chance: random.Random, count: int = 3) -> list[FriendlyTable]:
    """Tables t0, t1 .. of up to eight rows with every column, and with NULLs and duplicates; now and then one is empty."""
    tables = []
    for number in range(count):
        rows = []
        for row in range(chance.choice((0, 3, 5, 6, 7, 8))):
            values = ("NULL" if chance.random() < 0.15 else chance.choice(each[2]) for each in COLUMNS.values())
            rows.append((str(row + 1), *values))
        tables.append(FriendlyTable(f"t{number}", tuple(COLUMNS), tuple(rows)))
    return tables
