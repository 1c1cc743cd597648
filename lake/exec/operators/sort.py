"""ORDER BY: rows gathered, keys packed into words and sorted, rows fetched in order as they are asked for.

When memory is short a worker sorts what it holds and writes it to disk as a run. Runs are merged block by block: of the
blocks at the front of all runs everything is sorted together, and what is not above the last row of any of these blocks
is answered, since no run can have more of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.kernels.order import Direction, sort_rows
from lake.exec.memory import Account
from lake.exec.operators.base import MORSEL_ROWS, Breaker, Morsel, Source, column_name
from lake.exec.operators.batches import (
    concat_columns,
    make_batch,
    names_of,
    normal_text,
    select_columns,
    slices,
    take_rows,
)  # fmt: skip
from lake.exec.operators.project import Projection
from lake.exec.pipeline import Held
from lake.exec.spill import Scratch, SpillFile
from lake.sql.bound import Column, SortKey

RUN_BLOCK_ROWS: Final = 1 << 14
"""Rows of one run in memory while runs are merged."""


def directions_of(keys: Sequence[SortKey]) -> list[Direction]:
    """How the kernels name the direction of sort keys."""
    return [Direction(key.descending, key.nulls_first) for key in keys]


class SortedColumns:
    """The columns that a sort keeps: those answered, and sort keys that are not among them.

    key_names  for each key, the column that holds it
    """

    def __init__(self, columns: Sequence[Column], keys: Sequence[SortKey], context: Context) -> None:
        self.names = names_of(columns)
        exprs: list[Any] = list(columns)
        self.key_names = []
        for index, key in enumerate(keys):
            name = column_name(key.expr) if isinstance(key.expr, Column) else f"s{index}"
            if name not in self.names:
                self.names.append(name)
                exprs.append(key.expr)
            self.key_names.append(name)
        self._projection = Projection(exprs, context)

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of a batch."""
        return make_batch(self.names, self._projection.run(batch), batch.num_rows)

    def join(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Batches as one; at least one batch."""
        if len(batches) == 1:
            return batches[0]
        arrays = [concat_columns([batch.column(index) for batch in batches]) for index in range(len(self.names))]
        return make_batch(self.names, arrays, sum(batch.num_rows for batch in batches))

    def keys_of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The key columns of a batch."""
        return [batch.column(name) for name in self.key_names]

    def order(self, rows: pa.RecordBatch, keys: Sequence[SortKey], *, threads: int = 1) -> Any:
        """int64[rows]: the rows of a batch in order; as they are where there are no keys."""
        if not self.key_names:
            return np.arange(rows.num_rows)
        return sort_rows(self.keys_of(rows), directions_of(keys), threads=threads)


class SortState(Struct):
    """One worker's rows, and the sorted runs it wrote."""

    batches: list[pa.RecordBatch]
    account: Account
    runs: list[SpillFile]


@dataclass(eq=False)
class Sort(Breaker):
    """Rows in the order of ``keys``; ``offset`` rows are left out, and all after ``limit`` more."""

    columns: tuple[Column, ...]
    keys: tuple[SortKey, ...]
    limit: int | None = None
    offset: int = 0
    kept: SortedColumns | None = field(default=None, init=False, repr=False)
    _context: Context = field(init=False, repr=False)
    _scratch: Scratch | None = field(default=None, init=False, repr=False)

    def describe(self) -> str:
        return ", ".join(_spelled(key) for key in self.keys)

    def start(self, context: Context) -> SortState:
        if self.kept is None:
            self._context = context
            self.kept = SortedColumns(self.columns, self.keys, context)
        return SortState([], context.budget.open(self.metrics), [])

    def absorb(self, state: SortState, batch: pa.RecordBatch) -> None:
        assert self.kept is not None
        rows = self.kept.run(batch)
        state.batches.append(rows)
        state.account.grow(rows.nbytes)
        if state.account.must_spill:
            self._write_run(state)

    def _write_run(self, state: SortState) -> None:
        """Sorts the rows held and writes them to disk."""
        if self._scratch is None:
            self._scratch = Scratch(self._context, self.metrics)
        run = self._scratch.create("run")
        for batch in self._sorted(state.batches, RUN_BLOCK_ROWS, 1):
            run.write(batch)
        state.runs.append(run)
        state.batches = []
        state.account.set(0)

    def _sorted(self, batches: list[pa.RecordBatch], step: int, threads: int) -> Iterator[pa.RecordBatch]:
        assert self.kept is not None
        rows = self.kept.join(batches)
        order = self.kept.order(rows, self.keys, threads=threads)
        return (take_rows(rows, order[start : start + step]) for start in range(0, len(order), step))

    def merge(self, context: Context, states: Sequence[SortState]) -> Source:
        assert self.kept is not None
        if any(state.runs for state in states):
            for state in states:
                if state.batches:
                    self._write_run(state)
            merged = merge_runs([run for state in states for run in state.runs], self.kept, self.keys)
            return InOrder(self.columns, _within(merged, self.offset, self.limit))
        batches = [batch for state in states for batch in state.batches]
        for state in states:
            state.batches = []
        if not batches:
            return Held(self.columns, [])
        rows = self.kept.join(batches)
        del batches
        order = self.kept.order(rows, self.keys, threads=context.workers)
        stop = None if self.limit is None else self.offset + self.limit
        return SortedRows(self.columns, rows, order[self.offset : stop])


@dataclass(eq=False)
class SortedRows(Source):
    """Rows of one large batch in a given order, fetched morsel by morsel."""

    columns: tuple[Column, ...]
    rows: pa.RecordBatch
    order: Any

    def rows_expected(self) -> int:
        return len(self.order)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        batch = select_columns(self.rows, self.columns)
        for start in range(0, len(self.order), MORSEL_ROWS):
            yield lambda start=start: (fetch(batch, self.order[start : start + MORSEL_ROWS]),)  # type: ignore[misc]


def fetch(batch: pa.RecordBatch, rows: Any) -> pa.RecordBatch:
    """Rows of a batch whose text may have large offsets, as a batch between operators has them."""
    taken = take_rows(batch, rows)
    arrays = [normal_text(array) for array in taken.columns]
    return make_batch(taken.schema.names, arrays, taken.num_rows)


@dataclass(eq=False)
class InOrder(Source):
    """Batches that come one after the other."""

    columns: tuple[Column, ...]
    batches: Iterable[pa.RecordBatch]

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for batch in self.batches:
            for piece in slices(select_columns(batch, self.columns)):
                yield lambda piece=piece: (piece,)  # type: ignore[misc]


def merge_runs(runs: list[SpillFile], kept: SortedColumns, keys: Sequence[SortKey]) -> Iterator[pa.RecordBatch]:
    """The rows of sorted runs in order."""
    readers = [run.read() for run in runs]
    blocks = [next(reader, None) for reader in readers]
    while True:
        alive = [index for index, block in enumerate(blocks) if block is not None]
        if not alive:
            return
        fronts = [block for block in blocks if block is not None]
        rows = kept.join(fronts)
        order = kept.order(rows, keys)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        ends = np.cumsum([front.num_rows for front in fronts])
        cut = int(place[ends - 1].min()) + 1
        yield take_rows(rows, order[:cut])
        for index, front, end in zip(alive, fronts, ends, strict=True):
            used = int(np.count_nonzero(place[end - front.num_rows : end] < cut))
            blocks[index] = front.slice(used) if used < front.num_rows else next(readers[index], None)


def _within(batches: Iterator[pa.RecordBatch], offset: int, limit: int | None) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if offset >= batch.num_rows:
            offset -= batch.num_rows
            continue
        piece = batch.slice(offset, limit)
        offset = 0
        yield piece
        if limit is not None:
            limit -= piece.num_rows
            if limit <= 0:
                return


def _spelled(key: SortKey) -> str:
    name = key.expr.name if isinstance(key.expr, Column) else "expression"
    return f"{name}{' DESC' if key.descending else ''}{' NULLS FIRST' if key.nulls_first else ''}"
