"""Rows of the catalogue of functions that the lake does not answer as recorded, and why. One reason for each."""

from __future__ import annotations

from typing import Final

MICROSECONDS: Final = "TIMESTAMP is microseconds (specification, Column types), the recorded engine's nanoseconds"
DECIMALS: Final = "a literal such as 10.0 is a decimal (specification), so its mean has the scale of decimals, not of DOUBLE"
LATER: Final = "an object of the lake that is not built yet"
NO_UNIONS: Final = "there is no union type (specification, Column types)"
NO_SCAN: Final = "it tells of files that a scan reads, and tables of the lake are no files to their readers"
NO_JVM: Final = "it calls methods of a Java machine, of which there is none"
STREAMS: Final = "WINDOW is a reserved word; windows of time are groups by date_bin and SESSION (specification, Materialized views)"
SKETCHES: Final = "bytes of a sketch that only Spark reads"
GRAMMAR: Final = "a form of the grammar, not a function"

REASONS: Final = {
    ("datafusion", "arrow_typeof"): DECIMALS,
    ("datafusion", "avg"): DECIMALS,
    ("datafusion", "mean"): DECIMALS,
    ("datafusion", "current_time"): MICROSECONDS,
    ("datafusion", "now"): "now() is an instant of microseconds (specification), the recorded engine's has no zone",
    ("datafusion", "to_timestamp"): MICROSECONDS,
    ("datafusion", "to_timestamp_nanos"): MICROSECONDS,
    ("datafusion", "to_local_time"): "AT TIME ZONE is Postgres's: of a wall clock it makes the instant, so the zone is gone",
    ("datafusion", "version"): "the name of the recorded engine",
    ("datafusion", "file_row_index"): NO_SCAN,
    ("datafusion", "input_file_name"): NO_SCAN,
    ("datafusion", "union_extract"): NO_UNIONS,
    ("datafusion", "union_tag"): NO_UNIONS,
    ("duckdb", "union_value"): NO_UNIONS,
    ("duckdb", "current_schema"): "the schema of Postgres, public",
    ("duckdb", "dayname"): "a name that Spark has too, whose three letters win",
    ("duckdb", "monthname"): "a name that Spark has too, whose three letters win",
    ("duckdb", "json_contains"): "the specification's json_contains takes a path",
    ("duckdb", "list_sort"): "the base's name for array_sort, which puts NULL first",
    ("duckdb", "list_distinct"): "the base's name for array_distinct, which keeps NULL",
    ("duckdb", "typeof"): "whole numbers are BIGINT, as in the base",
    ("duckdb", "summarize"): GRAMMAR,
    ("spark", "cast"): GRAMMAR,
    ("spark", "extract"): GRAMMAR,
    ("spark", "java_method"): NO_JVM,
    ("spark", "reflect"): NO_JVM,
    ("spark", "try_reflect"): NO_JVM,
    ("spark", "python_worker_logs"): "logs of Spark's own workers",
    ("spark", "measure"): "it reads measures of Spark's metric views, which the lake has not",
    ("spark", "grouping_id"): "ORDER BY puts NULL last, as in the base",
    ("spark", "session_window"): STREAMS,
    ("spark", "window"): STREAMS,
    ("spark", "window_time"): STREAMS,
    ("spark", "count_min_sketch"): SKETCHES,
    ("spark", "counter_diff"): "it reads counters of Spark's own monitoring",
    ("duckdb", "enum_range"): LATER,
    **{
        ("spec", name): LATER
        for name in (
            "nextval", "currval", "setval", "enum_range", "enum_first", "enum_last", "file_read", "files", "read_delta",
            "read_iceberg", "secrets",
        )
    },
    ("spark", "time_trunc"): "recorded is a refusal of the TIME type, which the lake has",
}
