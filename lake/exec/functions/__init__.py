"""The functions of the dialect, one group a file: signature, text, examples and code together.

``sql.registry.FUNCTIONS`` imports them when it is first asked for one. A function takes whole columns (``registry.Scalar``);
one that must go row by row in Python is marked ``@per_row``, and its docstring says why: ``python -m tests bench rows``
lists them.
"""

from __future__ import annotations

from typing import Final

from lake.sql.registry import FUNCTIONS

MODULES: Final = (
    "aggregates", "arithmetic", "attempts", "binary", "ciphers", "clock", "collecting", "compare", "date_fields",
    "dates", "distinct_counts", "enums", "filling", "interval_parts", "intervals", "json", "json_members", "lambdas",
    "list_contents", "list_summaries", "lists", "maps", "matches", "math", "patterns", "pg", "pg_arrays", "pg_rights",
    "predicates", "quantiles", "readable", "rounding", "schemas", "sequences", "series", "session",
    "several_extremes", "similarity", "spark_hashes", "spark_lists", "spark_numbers", "spark_parts", "spark_session",
    "spark_texts", "spark_times", "spark_types", "statistics", "string_forms", "strings", "struct_changes", "structs",
    "time_text", "vectors", "weighing", "windows", "xml",
)  # fmt: skip

FUNCTIONS.fill_from(*(f"{__name__}.{name}" for name in MODULES))
