"""The runner of other engines' sqllogictest files: reading, directives, comparison, both ways to a lake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lake.types import BIGINT, BOOLEAN, DOUBLE, INTERVAL, TEXT, TIMESTAMP, List, Map, Struct, Type
from tests.sqllogic.file import Options
from tests.sqllogic.run import main, run_file
from tests.sqllogic.texts import datafusion_text, duckdb_text, sqlite_text

DUCKDB = """# name: a file
statement ok
CREATE TABLE t (a INTEGER, b VARCHAR);

loop i 0 3

statement count 1
INSERT INTO t VALUES (${i}, 'x{i}')

endloop

foreach column a b

query I
SELECT count(DISTINCT {column}) FROM t
----
3

onlyif column=b
query I
SELECT max({column}) FROM t
----
x2

endloop

mode skip

query I
SELECT nonsense
----
1

mode unskip

statement error
SELECT nothing FROM t
----
Binder Error

query IT rowsort
SELECT a, b FROM t
----
2	x2
0	x0
1	x1

query I con2
SELECT 1.004::DOUBLE
----
1.0

query T
SELECT {'a': [1, NULL], 'b': ''}
----
<REGEX>:.*NULL.*

query I
SELECT 2
----
3
"""
DATAFUSION = """query TR
SELECT 'a', 0.50
----
a 0.5

statement error DataFusion error: .*
SELECT nothing

query T
SELECT E'x\\n  y'
----
01)x
02)--y

skipif datafusion
query I
SELECT 2
----
1

query I
SELECT 7
----
7
"""
SQLITE = """hash-threshold 8

query IRT nosort first
SELECT 1, 2, ''
----
1
2.000
(empty)

query I valuesort
SELECT * FROM (VALUES (3), (1)) AS t(a)
----
2 values hashing to 0a88863510308751293f4b91afc07dd6

query IRT nosort first
SELECT 1, 3, ''

query I
SELECT 1
----
2
"""


@pytest.mark.parametrize(
    ("dialect", "text", "passed", "skipped", "failed"),
    [("duckdb", DUCKDB, 11, 2, [58]), ("df", DATAFUSION, 4, 1, []), ("sqlite", SQLITE, 2, 0, [15, 18])],
)
def test_files_are_run(tmp_path: Path, dialect: str, text: str, passed: int, skipped: int, failed: list[int]) -> None:
    """Records pass, fail and are skipped as the dialect says."""
    path = tmp_path / "a.test"
    path.write_text(text)
    counted = run_file(path, Options(dialect))
    assert (counted.passed, counted.skipped) == (passed, skipped)
    assert [failure.line for failure in counted.failures] == failed


def test_files_that_need_another_engine_are_skipped(tmp_path: Path) -> None:
    """Every record counts as skipped, and the reason is told."""
    path = tmp_path / "a.test"
    path.write_text(f"require tpch\n\n{DUCKDB}")
    counted = run_file(path, Options("duckdb"))
    assert (counted.passed, counted.skipped, counted.why) == (0, 10, "require tpch")


def test_excluded_records_run_and_do_not_count(tmp_path: Path) -> None:
    """A list names records by file and line."""
    path = tmp_path / "a.test"
    path.write_text(DUCKDB)
    (tmp_path / "list.json").write_text(json.dumps([f"{tmp_path.name}/a.test:58"]))
    assert main([str(tmp_path), "--dialect", "duckdb"]) == 1
    assert main([str(tmp_path), "--dialect", "duckdb", "--exclude", str(tmp_path / "list.json")]) == 0
    assert main([str(tmp_path), "--dialect", "duckdb", "--only", "nowhere"]) == 2


def test_a_node_is_asked_alike(tmp_path: Path) -> None:
    """The same file over HTTP."""
    path = tmp_path / "a.test"
    path.write_text(DUCKDB)
    counted = run_file(path, Options("duckdb", over_http=True, messages=True))
    assert counted.passed == 10
    assert [failure.line for failure in counted.failures] == [36, 58], "the words of the error differ"


def test_golden_files_count_their_records(tmp_path: Path) -> None:
    """A record that fails does not end the file."""
    path = tmp_path / "a.slt"
    path.write_text("query I\nSELECT 1\n----\n2\n\nquery I\nSELECT 1\n----\n1\n")
    counted = run_file(path, Options("lake"))
    assert counted.passed == 1
    assert [failure.line for failure in counted.failures] == [1]


@pytest.mark.parametrize(
    ("value", "type", "datafusion", "duckdb"),
    [
        (None, TEXT, "NULL", "NULL"),
        ("", TEXT, "(empty)", "(empty)"),
        (0.1, DOUBLE, "0.1", "0.1"),
        (1e20, DOUBLE, "100000000000000000000", "1e+20"),
        ("Infinity", DOUBLE, "Infinity", "inf"),
        ("2024-01-02T03:04:05.120000", TIMESTAMP, "2024-01-02T03:04:05.120", "2024-01-02 03:04:05.12"),
        ([1, None], List(BIGINT), "[1, NULL]", "[1, NULL]"),
        (["a,b", "", "c"], List(TEXT), "[a,b, , c]", "['a,b', '', c]"),
        ([1e9, 0.5], List(DOUBLE), "[1.0e9, 0.5]", "[1000000000.0, 0.5]"),
        ({"a": 1, "b": "x"}, Struct((("a", BIGINT), ("b", TEXT))), "{a: 1, b: x}", "{'a': 1, 'b': x}"),
        ({"k": 1}, Map(TEXT, BIGINT), "{k: 1}", "{k=1}"),
        ("14 mons 3 days -4 hours", INTERVAL, "14 mons 3 days -4 hours", "1 year 2 months 3 days -04:00:00"),
        ("6.500000000 secs", INTERVAL, "6.500000000 secs", "00:00:06.5"),
    ],
)
def test_values_are_written_as_each_dialect_does(value: Any, type: Type, datafusion: str, duckdb: str) -> None:
    """Cells of DataFusion's and of DuckDB's files."""
    assert datafusion_text(value, type) == datafusion
    assert duckdb_text(value, type) == duckdb


def test_letters_say_how_sqlite_writes() -> None:
    """An integer column cuts, a real column has three digits, a text column has no other signs than ASCII's."""
    assert [sqlite_text("2.75", BIGINT, letter) for letter in "IRT"] == ["2", "2.750", "2.75"]
    assert [sqlite_text("x\ny", TEXT, letter) for letter in "IRT"] == ["0", "0.000", "x@y"]
    assert sqlite_text(True, BOOLEAN, "I") == "1"
