"""Casts there and back: a value cast to text is read as the value again, and a wider number gives it back."""

from __future__ import annotations

import datetime
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.cast import cast
from lake.rows import answer_array, physical_array
from lake.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    JSON,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    UUID,
    Decimal,
    List,
    Type,
)  # fmt: skip

FIRST, LAST = datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)
SHORT, LONG = Decimal(9, 3), Decimal(38, 10)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    TINYINT: st.integers(-128, 127),
    SMALLINT: st.integers(-(2**15), 2**15 - 1),
    INT: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    REAL: st.floats(width=32, allow_nan=False),
    DOUBLE: st.floats(allow_nan=False),
    SHORT: st.decimals(-999_999, 999_999, places=3),
    LONG: st.decimals(-(10**27), 10**27, places=10),
    DATE: st.dates(FIRST.date(), LAST.date()),
    TIME: st.times(),
    TIMESTAMP: st.datetimes(FIRST, LAST),
    TIMESTAMPTZ: st.datetimes(FIRST, LAST, timezones=st.just(datetime.UTC)),
    UUID: st.uuids().map(str),
    JSON: st.sampled_from(["{}", '{"a": [1, null]}', '"x"', "null"]),
    BYTES: st.text(max_size=8).map(str.encode),
    List(BIGINT): st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=4),
}
WIDER: list[tuple[Type, Type]] = [
    (TINYINT, SMALLINT), (SMALLINT, INT), (INT, BIGINT), (INT, DOUBLE), (REAL, DOUBLE), (BIGINT, Decimal(19, 0)),
    (SHORT, LONG), (SHORT, DOUBLE), (DATE, TIMESTAMP), (TIMESTAMP, TIMESTAMPTZ), (BOOLEAN, INT), (UUID, TEXT),
]  # fmt: skip


def column(values: list[Any], type: Type) -> pa.Array:
    """Python values as a column in physical form."""
    return physical_array(pa.array(values, type.arrow), type)


def there_and_back(values: list[Any], type: Type, other: Type) -> None:
    """Casting to ``other`` and back changes nothing."""
    before = column(values, type)
    after = cast(cast(before, type, other), other, type)
    assert answer_array(after, type).to_pylist() == answer_array(before, type).to_pylist(), (type, other)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_text_and_back(data: st.DataObject) -> None:
    """Every type is written as text that it reads, NULL as NULL."""
    for type, values in VALUES.items():
        if type != BYTES or data.draw(st.booleans()):
            there_and_back(data.draw(st.lists(st.none() | values, max_size=4)), type, TEXT)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_wider_and_back(data: st.DataObject) -> None:
    """A number or moment in a wider type is the same one."""
    for type, other in WIDER:
        there_and_back(data.draw(st.lists(st.none() | VALUES[type], max_size=4)), type, other)


def test_extremes() -> None:
    """Infinities, negative zero and intervals of parts with signs of their own."""
    numbers = column([float("inf"), float("-inf"), -0.0], DOUBLE)
    assert [str(item) for item in cast(cast(numbers, DOUBLE, TEXT), TEXT, DOUBLE).to_pylist()] == ["inf", "-inf", "-0.0"]
    spans = pa.array([pa.MonthDayNano([14, -3, 1_500_000_000]), None], INTERVAL.arrow)
    assert cast(cast(spans, INTERVAL, TEXT), TEXT, INTERVAL).to_pylist() == spans.to_pylist()
    exact = column([PyDecimal("1234567890123456789012345678.0000000001")], LONG)
    assert cast(exact, LONG, TEXT).to_pylist() == ["1234567890123456789012345678.0000000001"]
