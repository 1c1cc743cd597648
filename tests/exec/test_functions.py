"""Every example in a function's docstring is a query that answers what the docstring says."""

from __future__ import annotations

from typing import Any

import pytest

import lake.exec.functions  # noqa: F401 - fills the table of functions
from lake.errors import LakeError, UndefinedTable
from lake.exec import Context, run
from lake.exec.cast import cast
from lake.sql.bind import Binder
from lake.sql.catalog import Settings
from lake.sql.parser import parse
from lake.sql.registry import FUNCTIONS
from lake.types import TEXT

SETTINGS = Settings(now=1_709_294_400_000_000)


class NoTables:
    """A catalog in which nothing is found."""

    def find(self, name: tuple[str, ...], at: object) -> Any:
        raise UndefinedTable(f'relation "{".".join(name)}" does not exist')

    def find_file(self, path: str) -> Any:
        raise UndefinedTable(path)


def rows_of(sql: str, settings: Settings = SETTINGS) -> list[list[str]]:
    """The answer of a query, each value as its cast to text."""
    (statement,) = parse(sql)
    query = Binder(NoTables(), settings).query(statement.query)  # type: ignore[attr-defined, arg-type]
    rows: list[list[str]] = []
    for batch in run(query.plan, Context(settings, workers=1)).batches():
        texts = [
            cast(column if not hasattr(column, "dictionary") else column.dictionary_decode(), bound.type, TEXT)
            for column, bound in zip(batch.columns, query.columns, strict=True)
        ]
        rows += [["NULL" if text is None else text for text in row] for row in zip(*(t.to_pylist() for t in texts))]
    return rows


def examples() -> list[tuple[str, str, str]]:
    """Function, example and expected answer of every docstring."""
    found, seen = [], set()
    for name, overloads in FUNCTIONS.items():
        for overload in overloads:
            lines = [line.strip() for line in overload.doc.splitlines()]
            for index, line in enumerate(lines):
                if line.startswith(">>> ") and (line, overload.doc) not in seen:
                    seen.add((line, overload.doc))
                    found.append((name, line[4:], lines[index + 1]))
    return found


@pytest.mark.parametrize(("name", "example", "expected"), examples(), ids=lambda item: item[:40])
def test_example(name: str, example: str, expected: str) -> None:
    """The example answers what stands below it."""
    if example.startswith("SELECT"):
        answer = rows_of(example)
        assert " / ".join(" | ".join(row) for row in answer) == expected
    else:
        ((text,),) = rows_of(f"SELECT {example}")
        assert text == expected


def test_every_function_has_an_example() -> None:
    """Nothing is registered without an example that runs."""
    for name, overloads in FUNCTIONS.items():
        for overload in overloads:
            assert ">>> " in overload.doc, name


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SELECT 9223372036854775807 + 1", "22003"),
        ("SELECT 1 / 0", "22012"),
        ("SELECT 1.5 % 0", "22012"),
        ("SELECT chr(0)", "22003"),
        ("SELECT split_part('a', '.', 0)", "22023"),
        ("SELECT date_trunc('fortnight', DATE '2024-01-01')", "22023"),
        ("SELECT make_date(2023, 2, 29)", "22008"),
        ("SELECT 'a' LIKE 'a!' ESCAPE '!'", "22025"),
        ("SELECT 'a' ~ '('", "2201B"),
        ("SELECT TIMESTAMP '2024-01-01 00:00:00' AT TIME ZONE 'Nowhere'", "22023"),
    ],
)
def test_refused(sql: str, sqlstate: str) -> None:
    """What cannot be answered is an error with its code."""
    with pytest.raises(LakeError) as caught:
        rows_of(sql)
    assert caught.value.sqlstate == sqlstate
