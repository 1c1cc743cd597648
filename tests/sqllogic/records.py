"""Reads sqllogictest files: statements, queries and directives, in the dialects of DataFusion, DuckDB and SQLite.

    statement ok                query II rowsort label-3         loop i 0 10
    CREATE TABLE t (a INT)      SELECT a, b FROM t

                                ----
    statement error             1 2
    SELECT nothing

The dialects write one structure and differ in details: DataFusion gives an error's pattern on the head line, DuckDB its
words under ``----``; DuckDB has loops and names of connections.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

DIALECTS: Final = ("df", "duckdb", "sqlite")
SORTS: Final = ("nosort", "rowsort", "valuesort", "sort")
SEPARATOR: Final = "----"


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file.

    kind        ``ok``, ``error``, ``maybe``, ``count``, ``query`` or ``directive``
    line        of its head, from 1
    words       of its head: a directive's name and arguments
    sql         the statement
    letters     of a query's columns
    sort, label of a query's answer
    expected    lines under ``----``; None where there is no ``----``
    message     a pattern or words of an expected error, "" for any
    guards      (``onlyif`` or ``skipif``, condition) over the record
    connection  on which it runs, "" for the first
    """

    kind: str
    line: int
    words: tuple[str, ...] = ()
    sql: str = ""
    letters: str = ""
    sort: str = "nosort"
    label: str = ""
    expected: tuple[str, ...] | None = None
    message: str = ""
    guards: tuple[tuple[str, str], ...] = ()
    connection: str = ""


def parse(text: str, dialect: str) -> list[Record]:
    """The records of a file's text, in order."""
    lines = text.replace("\r\n", "\n").split("\n")
    records: list[Record] = []
    guards: list[tuple[str, str]] = []
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if words[0] in ("onlyif", "skipif"):
            condition = line[len(words[0]) :].partition("#")[0].strip()
            guards.append((words[0], condition))
            continue
        if words[0] in ("statement", "query"):
            record, at = _with_body(lines, at, line, dialect, tuple(guards))
        else:
            record = Record("directive", at, tuple(words), guards=tuple(guards))
        records.append(record)
        guards = []
    return records


def _with_body(
    lines: Sequence[str], at: int, head: str, dialect: str, guards: tuple[tuple[str, str], ...]
) -> tuple[Record, int]:
    """The record whose head is the line before ``at``, and where the next one starts."""
    start = at
    sql: list[str] = []
    expected: tuple[str, ...] | None = None
    while at < len(lines) and lines[at].strip() and lines[at].strip() != SEPARATOR:
        if not (dialect == "duckdb" and lines[at].startswith("#")):
            sql.append(lines[at])
        at += 1
    if at < len(lines) and lines[at].strip() == SEPARATOR:
        expected, at = _answer(lines, at + 1, gaps=dialect == "df" and " error" in head)
    return _record(head, start, "\n".join(sql).strip(), expected, dialect, guards), at


def _answer(lines: Sequence[str], at: int, *, gaps: bool) -> tuple[tuple[str, ...], int]:
    """The lines under ``----``, to an empty one; with ``gaps`` to two empty ones."""
    start = at
    while at < len(lines) and (lines[at].strip() or (gaps and at + 1 < len(lines) and lines[at + 1].strip())):
        at += 1
    return tuple(lines[start:at]), at


def _record(
    head: str, line: int, sql: str, expected: tuple[str, ...] | None, dialect: str, guards: tuple[tuple[str, str], ...]
) -> Record:
    words = head.split()
    rest = head.split(None, 2)[2] if len(words) > 2 else ""
    kind = words[1] if len(words) > 1 else "ok"
    if words[0] == "statement" or kind == "error":
        connection = rest if dialect == "duckdb" else ""
        message = "\n".join(expected) if expected else rest if dialect == "df" else ""
        if kind == "count":
            expected, connection = (rest,), ""
        return Record(
            kind, line, tuple(words), sql, expected=expected, message=message, guards=guards, connection=connection
        )
    sort, names = "nosort", []
    for word in words[2:]:
        if word.startswith("#"):
            break
        if word in SORTS:
            sort = "rowsort" if word == "sort" else word
        else:
            names.append(word)
    connection = next((name for name in names if dialect == "duckdb" and name.startswith("con")), "")
    label = next((name for name in names if name != connection), "")
    return Record(
        "query", line, tuple(words), sql, kind, sort, label, expected, guards=guards, connection=connection
    )
