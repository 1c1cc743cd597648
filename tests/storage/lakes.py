"""Small lakes for tests: a table, rows for it, and what the lake says it holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lake.clock import Clock, VirtualClock
from lake.rows import Predicate
from lake.storage import Append, Lake, StorageOptions
from lake.storage.catalog.changes import CreateTable
from lake.storage.catalog.model import SYSTEM_COLUMNS, Column, Table
from lake.storage.objects.base import ObjectStore
from lake.types import BIGINT, TEXT, Decimal, Type

ALL = ("a", "s", "d", *SYSTEM_COLUMNS)
START = 1_700_000_000_000_000


def table_of(id: int = 1, name: str = "t", columns: Sequence[tuple[str, Type]] | None = None) -> Table:
    """A table of (a BIGINT, s VARCHAR, d DECIMAL(15,2)), or of the columns given."""
    columns = columns or [("a", BIGINT), ("s", TEXT), ("d", Decimal(15, 2))]
    made = tuple(Column.of(at, column, type) for at, (column, type) in enumerate(columns, 1))
    return Table(id, "public", name, made, name, next_column=len(made) + 1)


def rows_of(*values: int | None) -> pa.RecordBatch:
    """Rows of ``table_of()`` made from numbers."""
    texts = [None if value is None else f"text {value}" for value in values]
    cents = [None if value is None else value * 100 for value in values]
    arrays = [pa.array(values, pa.int64()), pa.array(texts, pa.string()), pa.array(cents, pa.int64())]
    return pa.RecordBatch.from_arrays(arrays, names=["a", "s", "d"])


def open_lake(where: str | Path | ObjectStore, clock: Clock | None = None, **options: Any) -> Lake:
    """The lake, led, with no upkeep but what the test asks for."""
    options = {"upkeep": False, **options}
    return Lake.open(where, clock=clock or VirtualClock(START), options=StorageOptions(**options))


def lake_with_table(where: str | Path | ObjectStore = "memory:", clock: Clock | None = None, **options: Any) -> Lake:
    """A lake with the table ``t``, empty."""
    lake = open_lake(where, clock, **options)
    lake.commit([CreateTable(table_of(lake.state.next_id))])
    return lake


def append(lake: Lake, *values: int | None, **once: Any) -> Any:
    """Appends rows to ``t``; answers the acknowledgement."""
    return lake.commit(appends=[Append(lake.state.table("t").id, rows_of(*values))], **once)


def contents(
    lake: Lake, columns: Sequence[str] = ALL, predicates: Sequence[Predicate] = (), name: str = "t"
) -> list[tuple[Any, ...]]:
    """All rows of a table in their order."""
    found: list[tuple[Any, ...]] = []
    for part in lake.snapshot().table(name).parts(columns, predicates):
        for batch in part.read():
            found += zip(*(column.to_pylist() for column in batch.columns))
    return found


def numbers(lake: Lake) -> list[int | None]:
    """The column ``a`` of ``t``."""
    return [row[0] for row in contents(lake, ["a"])]
