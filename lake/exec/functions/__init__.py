"""The functions of the dialect, one group a file: signature, text, examples and code together.

Importing the package fills ``sql.registry.FUNCTIONS``. A function takes whole columns (``registry.Scalar``); one that must
go row by row in Python is marked ``@per_row``, and its docstring says why.
"""

from __future__ import annotations

from lake.exec.functions import (
    aggregates,
    arithmetic,
    binary,
    clock,
    collecting,
    compare,
    date_fields,
    dates,
    interval_parts,
    intervals,
    json,
    lambdas,
    list_contents,
    list_summaries,
    lists,
    math,
    patterns,
    pg,
    rounding,
    series,
    session,
    statistics,
    string_forms,
    strings,
    structs,
    time_text,
    vectors,
    windows,
)

__all__ = [
    "aggregates",
    "arithmetic",
    "binary",
    "clock",
    "collecting",
    "compare",
    "date_fields",
    "dates",
    "interval_parts",
    "intervals",
    "json",
    "lambdas",
    "list_contents",
    "list_summaries",
    "lists",
    "math",
    "patterns",
    "pg",
    "rounding",
    "series",
    "session",
    "statistics",
    "string_forms",
    "strings",
    "structs",
    "time_text",
    "vectors",
    "windows",
]
