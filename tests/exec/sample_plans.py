"""Rows, scans and calls that the operators' tests share."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from lake.sql import plan
from lake.sql.bound import AggregateCall, Expr, Literal
from lake.sql.registry import FUNCTIONS, Aggregate
from lake.types import BIGINT, TEXT, Type
from tests.exec.memory_rows import scan, table_of

TYPES = {"g": BIGINT, "t": TEXT, "x": BIGINT}
Rows = list[tuple[Any, ...]]


def random_rows(count: int, groups: int, seed: int = 1) -> Rows:
    """Rows of a group, a text and a number, any of them NULL."""
    draw = random.Random(seed)
    return [
        (draw.choice([None, *range(groups)]), draw.choice([None, *"abcd"]), draw.choice([None, *range(-50, 50)]))
        for _ in range(count)
    ]


def scan_of(rows: Rows, types: dict[str, Type] = TYPES, pieces: int = 4) -> plan.Scan:
    """A scan of a table of such rows, in some parts."""
    data = {key: (type, [row[index] for row in rows]) for index, (key, type) in enumerate(types.items())}
    return scan(table_of("t", data, pieces)[0])


def aggregate_call(name: str, *arguments: Expr, type: Type = BIGINT, **options: Any) -> AggregateCall:
    """A call of an aggregate that takes so many arguments."""
    found = [
        item for item in FUNCTIONS[name]
        if isinstance(item, Aggregate) and item.signature.required == len(arguments)
    ]  # fmt: skip
    return AggregateCall(type, found[0], arguments, **options)


def literal(value: int) -> Literal:
    """A BIGINT constant."""
    return Literal(BIGINT, value)


def in_any_order(rows: Rows) -> Rows:
    """The rows in an order of their own, to compare those that have none."""
    return sorted(rows, key=lambda row: tuple((value is None, str(value)) for value in row))


def grouped(rows: Rows, key: Any) -> dict[Any, Rows]:
    """The rows of each key."""
    groups: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups
