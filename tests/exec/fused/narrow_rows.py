"""A table of every kind of column that loops take, narrow and coded by part, and queries on it with loops and without."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

import lake.exec.functions  # noqa: F401 - fills the table of functions
from lake.errors import LakeError
from lake.exec import Profile, run
from lake.exec.evaluate import fold
from lake.exec.fused import partial as fused
from lake.exec.fused.compiler import Loop, make_loop
from lake.exec.fused.shape import Plan
from lake.exec.operators import hash_aggregate
from lake.narrow import narrowed
from lake.rows import Part, Predicate
from lake.sql import parser
from lake.sql.bind import Binder
from lake.sql.catalog import Table, TableColumn, TableStatistics
from lake.sql.optimizer import optimize
from lake.sql.plan import Plan as QueryPlan
from lake.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, SMALLINT, TEXT, TIMESTAMP, Decimal, Type
from tests.exec.memory_rows import SETTINGS, context, rows_of

ROWS: Final = 5_000
PARTS: Final = 4
TYPES: Final[dict[str, Type]] = {
    "small": SMALLINT, "whole": INT, "big": BIGINT, "price": Decimal(9, 2), "amount": Decimal(18, 4), "day": DATE,
    "at": TIMESTAMP, "yes": BOOLEAN, "word": TEXT, "real": DOUBLE, "spread": INT,
    "money": DOUBLE,
}  # fmt: skip
WORDS: Final = ["apple", "bear", "cat", "", "dog", "ant"]
Rows = list[tuple[Any, ...]]


class NarrowGroup:
    """A part whose columns are read one after the other."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def range_of(self, column: str) -> None:
        """Nothing is known without reading."""

    def may_hold(self, predicates: Sequence[Predicate]) -> bool:
        """Nothing is known without reading."""
        return True

    def read(self, columns: Sequence[str]) -> Sequence[pa.RecordBatch]:
        """The columns, narrow; a slice, for loops must heed offsets."""
        arrays = [narrowed(array) for array in self.batch.select(list(columns)).columns]
        return [pa.RecordBatch.from_arrays(arrays, list(columns)).slice(3)]


class NarrowRows:
    """Parts as storage keeps them: whole numbers narrow, texts coded, each part in its own way."""

    def __init__(self, parts: Sequence[pa.RecordBatch]) -> None:
        self.batches = parts

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """A part for each batch."""
        groups = map(NarrowGroup, self.batches)
        return [Part(group.batch.num_rows, partial(group.read, columns), group) for group in groups]


@functools.cache
def table(seed: int = 1) -> Table:
    """Some thousand rows: two parts without NULLs, extremes in one part alone."""
    draw = np.random.default_rng(seed)
    batches = []
    for part in range(PARTS):
        arrays = {name: _column(draw, type, name, part) for name, type in TYPES.items()}
        batches.append(pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays)))
    columns = tuple(TableColumn(name, type) for name, type in TYPES.items())
    return Table(("t",), columns, NarrowRows(batches), lambda: TableStatistics(float(ROWS)))


def _column(draw: np.random.Generator, type: Type, name: str, part: int) -> pa.Array:
    rows = ROWS // PARTS
    mask = draw.random(rows) < 0.15 if part % 2 else None
    if type == TEXT:
        entries = [*draw.permutation(WORDS)[: 3 + part]]
        return pa.DictionaryArray.from_arrays(pa.array(draw.integers(0, len(entries), rows), pa.int32(), mask=mask), entries)
    if type == BOOLEAN:
        return pa.array(draw.integers(0, 2, rows).astype(bool), mask=mask)
    if name == "money":
        return pa.array(np.append(draw.normal(0, 1_000, rows - 1), 1e15 if part == 3 else 0.0), mask=mask)
    if type == DOUBLE:
        return pa.array(draw.choice([-1.5, -0.0, 0.0, 2.0, np.nan, np.inf, -np.inf], rows), mask=mask)
    top = {"small": 20, "whole": 1_000, "spread": 9_000_000}.get(name, 100_000)
    values = draw.integers(-top, top, rows)
    if part == 3 and name in ("whole", "big"):
        limit = 1 << (type.physical.bit_width - 1)
        values[5:7] = [-limit, limit - 1]
    return pa.array(values, pa.int64(), mask=mask).cast(pa.int32()).cast(type.physical) if type == DATE else pa.array(
        values, pa.int64(), mask=mask
    ).cast(type.physical)  # fmt: skip


class _Catalog:
    def find(self, name: tuple[str, ...], at: tuple[str, object] | None) -> Table:
        return table()

    def ask(self, *arguments: Any) -> Any:
        raise AssertionError("nobody is asked here")

    def find_file(self, path: str) -> Table:
        raise AssertionError("no files here")


def compiled(key: tuple[Plan, tuple[str, ...]], rows: int) -> Loop:
    """A loop, at once."""
    return _made(*key)


_made = functools.cache(make_loop)


@contextmanager
def loops(*, are_used: bool) -> Iterator[list[bool]]:
    """Queries in the block use loops from their first batch on, or none; answers which batches they took."""
    taken: list[bool] = []
    take = fused.Fused.take

    def watched(self: fused.Fused, batch: pa.RecordBatch) -> bool:
        taken.append(take(self, batch))
        return taken[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_aggregate, "FUSED_ROWS", 0 if are_used else 1 << 60)
        patch.setattr(fused, "loop_of", compiled)
        patch.setattr(fused.Fused, "take", watched)
        yield taken


def answer(sql: str, *, workers: int = 1) -> Rows | tuple[str, str]:
    """A query's rows in some order, or its error's state and words."""
    try:
        rows = rows_of(_planned(sql), workers=workers)
    except LakeError as error:
        return error.sqlstate, str(error)
    named = [tuple("NaN" if value != value else value for value in row) for row in rows]
    return sorted(named, key=lambda row: tuple((value is None, str(value)) for value in row))


def profile_of(sql: str) -> Profile:
    """What the scan of a query measured."""
    ran = run(_planned(sql), context())
    for _ in ran.batches():
        pass
    found = ran.profile()
    while found.inputs:
        (found,) = found.inputs
    return found


def _planned(sql: str) -> QueryPlan:
    statement = parser.parse(sql)[0]
    return optimize(Binder(_Catalog(), SETTINGS).query(statement.query).plan, SETTINGS, fold)  # type: ignore[attr-defined]
