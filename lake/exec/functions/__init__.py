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
    math,
    patterns,
    statistics,
    strings,
)

__all__ = [
    "aggregates", "arithmetic", "binary", "collecting", "compare", "dates", "intervals", "math", "patterns", "statistics",
    "strings",
]  # fmt: skip
