"""Every example in a function's docstring is a query that answers what the docstring says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

import lake.exec.functions  # noqa: F401 - fills the table of functions
from lake.errors import FeatureNotSupported, LakeError, UndefinedTable
from lake.exec import Context, run
from lake.exec.calls import CODED_ROWS, RunCall
from lake.exec.cast import cast
from lake.exec.constants import to_array
from lake.exec.evaluate import evaluate
from lake.sql.bind import Binder
from lake.sql.bound import Call, Column, Literal
from lake.sql.catalog import Settings
from lake.sql.parser import parse
from lake.sql.registry import FUNCTIONS, Aggregate, CallInfo, Function, Scalar, TableFunction
from lake.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    JSON,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Decimal,
    List,
    Type,
)

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


def is_of_db(function: Function) -> bool:
    """Whether a function needs a database around it; those are tried in tests/db."""
    made = function.run if isinstance(function, Scalar) else function.make if isinstance(function, TableFunction) else None
    return made is not None and made.__module__.startswith("lake.db.")


def examples() -> list[tuple[str, str, str]]:
    """Function, example and expected answer of every docstring."""
    found, seen = [], set()
    for name, overloads in FUNCTIONS.items():
        for overload in overloads:
            if is_of_db(overload):
                continue
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
    """Nothing is registered without an example that runs; readers need files, which their own tests make."""
    for name, overloads in FUNCTIONS.items():
        for overload in overloads:
            assert ">>> " in overload.doc or overload.group == "readers", name


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


# --- every function over columns -------------------------------------------------------------------------------------

SAMPLES: dict[str, tuple[Type, list[object]]] = {
    "BOOLEAN": (BOOLEAN, [True, None, False]),
    "INT": (INT, [1, None, 3]),
    "BIGINT": (BIGINT, [1, None, 3]),
    "INTEGER": (BIGINT, [1, None, 3]),
    "NUMERIC": (Decimal(15, 2), [150, None, -225]),
    "DECIMAL": (Decimal(15, 2), [150, None, -225]),
    "DOUBLE": (DOUBLE, [1.5, None, float("nan")]),
    "VARCHAR": (TEXT, ["a1b", None, ""]),
    "BYTEA": (BYTES, [b"ab", None, b""]),
    "JSON": (JSON, ['{"a": [1]}', None, "2"]),
    "DATE": (DATE, [19782, None, -1]),
    "TIME": (TIME, [1, None, 86_399_999_999]),
    "TIMESTAMP": (TIMESTAMP, [1_709_294_400_000_000, None, -1]),
    "TEMPORAL": (TIMESTAMP, [1_709_294_400_000_000, None, -1]),
    "TIMESTAMPTZ": (TIMESTAMPTZ, [1_709_294_400_000_000, None, -1]),
    "INTERVAL": (INTERVAL, [(1, 2, 3_000), None, (0, 0, -1)]),
}


def sample(word: str) -> tuple[Type, list[object]] | None:
    """A type and three of its values for a word of a signature; None for lambdas and what has no sample."""
    if word.endswith("[]"):
        inner = sample(word[:-2])
        return None if inner is None else (List(inner[0]), [tuple(inner[1]), None, ()])
    return SAMPLES.get({"T": "BIGINT", "U": "BIGINT", "ANY": "VARCHAR"}.get(word, word))


def scalar_calls() -> list[tuple[str, Scalar]]:
    """Every overload whose parameters have samples."""
    return [
        (f"{name}({', '.join(item.type for item in overload.signature.parameters)})", overload)
        for name, overloads in FUNCTIONS.items()
        for overload in overloads
        if isinstance(overload, Scalar)
        and not is_of_db(overload)
        and overload.literal_rule is None
        and all(sample(item.type) is not None for item in overload.signature.parameters)
    ]


@pytest.mark.parametrize("function", [item for _, item in scalar_calls()], ids=[name for name, _ in scalar_calls()])
def test_takes_columns(function: Scalar) -> None:
    """A function takes columns with NULLs, a single row and no row; it answers its type, or refuses with an error of ours."""
    given = [sample(item.type) for item in function.signature.parameters]
    columns = [Column(item[0], place, "x") for place, item in enumerate(given) if item is not None]
    types = tuple(column.type for column in columns)
    if function.return_rule is not None:
        try:
            returns = function.return_rule(types)
        except LakeError:
            return
    else:
        word = function.signature.returns
        found = sample(word)
        if found is None or word in ("ANY", "ANY[]"):
            return
        returns = found[0]
    expr = Call(returns, function, tuple(columns))
    for rows in ([0, 1, 2], [1], [0], []):
        arrays = {
            f"c{place}": to_array([item[1][row] for row in rows], item[0]) for place, item in enumerate(given) if item
        }
        batch = pa.record_batch(arrays) if arrays else pa.record_batch({"c": pa.nulls(len(rows))})
        try:
            made = evaluate(expr, batch, Context(SETTINGS))
        except FeatureNotSupported:
            raise
        except LakeError:
            continue
        assert len(made) == len(rows)
        assert made.type == returns.physical or pa.types.is_dictionary(made.type), (made.type, returns)
        made.validate(full=True)
        if function.strict and rows == [1] and arrays:
            assert made.to_pylist() == [None]


def aggregate_calls() -> list[tuple[str, Aggregate]]:
    """Every overload of an aggregate whose parameters have samples."""
    return [
        (f"{name}({', '.join(item.type for item in overload.signature.parameters)})", overload)
        for name, overloads in FUNCTIONS.items()
        for overload in overloads
        if isinstance(overload, Aggregate) and all(sample(item.type) for item in overload.signature.parameters)
    ]


@pytest.mark.parametrize("function", [item for _, item in aggregate_calls()], ids=[name for name, _ in aggregate_calls()])
def test_aggregates_merge(function: Aggregate) -> None:
    """Two states merged answer what one state answers; groups of no rows have an answer too."""
    given = [found for item in function.signature.parameters if (found := sample(item.type)) is not None]
    types = tuple(item[0] for item in given)
    if function.return_rule is not None:
        returns = function.return_rule(types)
    else:
        found = sample(function.signature.returns)
        assert found is not None
        returns = found[0]
    call = CallInfo(types, returns, 0, SETTINGS)
    constants: tuple[object, ...] = (None, *(0.5 if item[0] == DOUBLE else 1 for item in given[1:2]), *(1 for _ in given[2:]))
    if len(types) > 1 and types[-1] == TEXT:
        constants = (None, None)
    columns = [to_array([*item[1], *item[1][::-1]], item[0]) for item in given]
    groups = np.array([0, 0, 1, 1, 0, 1])
    whole, one, two = (function.make(call, constants) for _ in range(3))
    whole.update(groups, 3, columns)
    one.update(groups[:3], 2, [column[:3] for column in columns])
    two.update(1 - groups[3:], 2, [column[3:] for column in columns])
    one.merge(two, np.array([1, 0]), 3)
    expected, made = whole.finish(3), one.finish(3)
    assert made.type == returns.physical
    assert repr(made.to_pylist()) == repr(expected.to_pylist())
    assert made[2].as_py() in (function.of_nothing, 0, 0.0, "[]", "{}", [])


def test_slow_calls_run_on_distinct_texts() -> None:
    """Once a call has been slow, it is run on the distinct texts of a batch; an error of a text that is there is raised."""
    rows = CODED_ROWS + 1
    texts = pa.array([f"https://h{number % 10}.org/{number % 100}" for number in range(rows)])
    calls = []
    function = FUNCTIONS["regexp_replace"][0]
    pattern, by = Literal(TEXT, "^https://([^/]+)/.*$"), Literal(TEXT, r"\1")

    def counted(*arguments: pa.Array) -> pa.Array:
        calls.append(max(len(value) for value in arguments if isinstance(value, pa.Array)))
        return function.run(*arguments)

    call = RunCall(Call(TEXT, replace(function, run=counted), (Column(TEXT, 1, "a"), pattern, by)), None, lambda expr: expr)
    batch, constants = pa.record_batch([texts], ["c1"]), (pa.scalar(pattern.value), pa.scalar(by.value))
    call._is_worth_codes = True
    found = call(batch, texts, *constants)
    assert calls == [100] and found.dictionary_decode().to_pylist()[:2] == ["h0.org", "h1.org"]
    call._is_worth_codes = True
    call(batch, pa.array([str(number) for number in range(rows)]), *constants)
    assert not call._is_worth_codes
