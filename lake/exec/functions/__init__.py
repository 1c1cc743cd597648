"""The functions of the dialect, one group a file: signature, text, examples and code together.

Importing the package fills ``sql.registry.FUNCTIONS``. A function takes whole columns (``registry.Scalar``); one that must
go row by row in Python is marked ``@per_row``, and its docstring says why.
"""

from __future__ import annotations

from lake.exec.functions import (
    aggregates,
    arithmetic,
    binary,
    collecting,
    compare,
    dates,
    intervals,
    json,
    lambdas,
    list_contents,
    list_summaries,
    lists,
    math,
    patterns,
    series,
    session,
    statistics,
    strings,
    time_text,
    vectors,
    windows,
)

__all__ = [
    "aggregates",
    "arithmetic",
    "binary",
    "collecting",
    "compare",
    "dates",
    "intervals",
    "json",
    "lambdas",
    "list_contents",
    "list_summaries",
    "lists",
    "math",
    "patterns",
    "series",
    "session",
    "statistics",
    "strings",
    "time_text",
    "vectors",
    "windows",
]
