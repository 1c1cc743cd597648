"""What every join does once it knows candidate pairs: test what is left of the condition, and answer rows by its kind.

    probe rows [0, 0, 2] with build rows [5, 6, 5], kind LEFT, condition p > b true for the second pair alone
    -> (0, 6), (1, NULL), (2, NULL)

The probe side is the join's left input and the build side its right one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.errors import CardinalityViolation
from lake.exec.kernels.join import is_every, mark_rows
from lake.exec.kernels.taking import taken
from lake.exec.kernels.views import to_array, to_boolean
from lake.exec.operators.base import MORSEL_ROWS, column_name
from lake.exec.operators.batches import filter_rows, make_batch, normal_text, null_column, take_rows
from lake.exec.selection import Selector
from lake.sql.bound import Column
from lake.sql.plan import JoinKind

Pairs = tuple[Any, Any]
"""Probe rows int64[pairs], ascending, and build rows int64[pairs]."""

KEEPS_PROBE = frozenset({JoinKind.LEFT, JoinKind.FULL, JoinKind.SINGLE})
KEEPS_BUILD = frozenset({JoinKind.RIGHT, JoinKind.FULL})
ANSWERS_PROBE = frozenset({JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK})
DROPS_UNMATCHED = frozenset({JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT})


class BuildRows:
    """The build side's rows in memory, one array a column, and which of them have found a partner.

    coded  names of text columns that are answered as codes of the build rows, all of them by the same array of codes
    """

    def __init__(self, columns: dict[str, pa.Array], rows: int, coded: Collection[str] = ()) -> None:
        self.columns = columns
        self.rows = rows
        self.marks = np.zeros(rows, np.uint8)
        self.coded = frozenset(name for name in coded if pa.types.is_string(columns[name].type)) if rows else frozenset()

    def take_all(self, names: Iterable[str], rows: Any, *, may_miss: bool) -> list[pa.Array]:
        """The values of some columns at row numbers, NULL at -1."""
        codes: pa.Array = None
        arrays = []
        for name in names:
            if name not in self.coded:
                arrays.append(self.take(name, rows, may_miss=may_miss))
                continue
            if codes is None:
                codes = to_array(rows, pa.int32(), (rows >= 0).view(np.uint8) if may_miss else None)
            arrays.append(pa.DictionaryArray.from_arrays(codes, self.columns[name], safe=False))
        return arrays

    def take(self, name: str, rows: Any, *, may_miss: bool) -> pa.Array:
        """A column's values at row numbers, NULL at -1."""
        column = self.columns[name]
        if self.rows == 0:
            return pa.nulls(len(rows), column.type)
        return normal_text(taken(column, rows, may_miss=may_miss))


class Pairing(Struct, frozen=True):
    """How pairs become rows.

    probe, build   the columns answered of each side          mark       the output of MARK
    residual       conditions that a pair must still pass      residual_probe, residual_build   the columns they use
    """

    kind: JoinKind
    probe: tuple[Column, ...]
    build: tuple[Column, ...]
    mark: Column | None = None
    residual: Selector | None = None
    residual_probe: tuple[Column, ...] = ()
    residual_build: tuple[Column, ...] = ()

    def test(self, batch: pa.RecordBatch, build: BuildRows, pairs: Iterable[Pairs]) -> Iterator[Pairs]:
        """The pairs that pass the residual conditions, in pieces of at most MORSEL_ROWS."""
        for probe_rows, build_rows in _cut(pairs):
            if self.residual is None:
                yield probe_rows, build_rows
                continue
            kept = self.residual.rows(self._columns_of(batch, build, probe_rows, build_rows))
            if kept is None:
                yield probe_rows, build_rows
            elif len(kept):
                yield probe_rows[kept], build_rows[kept]

    def _columns_of(self, batch: pa.RecordBatch, build: BuildRows, probe_rows: Any, build_rows: Any) -> pa.RecordBatch:
        """The columns that the residual conditions use, for each pair."""
        names = [column_name(column) for column in (*self.residual_probe, *self.residual_build)]
        arrays = [taken(batch.column(column_name(column)), probe_rows) for column in self.residual_probe]
        arrays += [build.take(column_name(column), build_rows, may_miss=False) for column in self.residual_build]
        return make_batch(names, arrays, len(probe_rows))

    def answer(
        self, batch: pa.RecordBatch, build: BuildRows, pairs: Iterable[Pairs], *, in_order: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The join's rows for a probe batch, given all candidate pairs of it.

        in_order  the pairs come in the order of the probe rows: those without a partner are answered in their places

        21000  SINGLE, and a probe row has two partners
        """
        matched = np.zeros(batch.num_rows, np.uint8)
        last, done = -1, 0
        for probe_rows, build_rows in self.test(batch, build, pairs):
            if not len(probe_rows):
                continue
            if self.kind is JoinKind.SINGLE:
                if probe_rows[0] == last or (probe_rows[1:] == probe_rows[:-1]).any():
                    raise CardinalityViolation("more than one row returned by a subquery used as an expression")
                last = probe_rows[-1]
            mark_rows(probe_rows, matched)
            if self.kind in KEEPS_BUILD:
                mark_rows(build_rows, build.marks)
            if self.kind in KEEPS_PROBE and in_order:
                # Rows before the last that found a partner will find none any more.
                lone = done + np.flatnonzero(matched[done : probe_rows[-1]] == 0)
                done = int(probe_rows[-1])
                probe_rows = np.concatenate((probe_rows, lone))
                build_rows = np.concatenate((build_rows, np.full(len(lone), -1)))
                order = np.argsort(probe_rows, kind="stable")
                yield self.rows(batch, build, probe_rows[order], build_rows[order], may_miss=True)
            elif self.kind not in ANSWERS_PROBE:
                yield self.rows(batch, build, probe_rows, build_rows)
        if self.kind in KEEPS_PROBE:
            lone = done + np.flatnonzero(matched[done:] == 0)
            if len(lone):
                yield self.rows(batch, build, lone, np.full(len(lone), -1, np.int64), may_miss=True)
        elif self.kind in ANSWERS_PROBE:
            yield self.probe_rows(batch, matched.view(np.bool_))

    def probe_rows(self, batch: pa.RecordBatch, matched: Any, unknown: Any = None) -> pa.RecordBatch:
        """What SEMI, ANTI and MARK answer of a probe batch; ``unknown`` says where MARK is NULL."""
        names = [column_name(column) for column in self.probe]
        kept = batch.select(names)
        match self.kind:
            case JoinKind.SEMI:
                return filter_rows(kept, matched)
            case JoinKind.ANTI:
                return filter_rows(kept, ~matched)
        if self.mark is None:
            return kept
        valid = None if unknown is None or not unknown.any() else (~unknown).astype(np.uint8)
        mark = to_boolean(matched) if valid is None else to_array(matched, pa.bool_(), valid)
        return make_batch([*names, column_name(self.mark)], [*kept.columns, mark], batch.num_rows)

    def rows(
        self, batch: pa.RecordBatch, build: BuildRows, probe_rows: Any, build_rows: Any, *, may_miss: bool = False
    ) -> pa.RecordBatch:
        """Joined rows: a probe row and a build row each, NULLs for build row -1."""
        names = [column_name(column) for column in self.probe]
        left = batch.select(names)
        if not is_every(probe_rows, batch.num_rows):
            left = take_rows(left, probe_rows)
        taken_names = [column_name(column) for column in self.build]
        arrays = build.take_all(taken_names, build_rows, may_miss=may_miss)
        names += taken_names
        return make_batch(names, [*left.columns, *arrays], len(probe_rows))

    def lone_build_rows(self, build: BuildRows) -> Iterator[pa.RecordBatch]:
        """The build rows of RIGHT and FULL that found no partner, with NULLs for the probe side."""
        lone = np.flatnonzero(build.marks == 0)
        names = [column_name(column) for column in (*self.probe, *self.build)]
        for start in range(0, len(lone), MORSEL_ROWS):
            rows = lone[start : start + MORSEL_ROWS]
            arrays = [null_column(column.type, len(rows)) for column in self.probe]
            arrays += [build.take(column_name(column), rows, may_miss=False) for column in self.build]
            yield make_batch(names, arrays, len(rows))


def cross_pairs(probe_rows: Any, build_rows: Any) -> Iterator[Pairs]:
    """Every pair of two lists of row numbers, in blocks of at most MORSEL_ROWS, probe rows ascending."""
    if not len(probe_rows) or not len(build_rows):
        return
    if len(build_rows) >= MORSEL_ROWS:
        for row in probe_rows:
            for start in range(0, len(build_rows), MORSEL_ROWS):
                block = build_rows[start : start + MORSEL_ROWS]
                yield np.full(len(block), row, np.int64), block
        return
    step = max(1, MORSEL_ROWS // len(build_rows))
    for start in range(0, len(probe_rows), step):
        rows = probe_rows[start : start + step]
        yield np.repeat(rows, len(build_rows)), np.tile(build_rows, len(rows))


def _cut(pairs: Iterable[Pairs]) -> Iterator[Pairs]:
    for probe_rows, build_rows in pairs:
        if len(probe_rows) <= MORSEL_ROWS:
            yield probe_rows, build_rows
            continue
        for start in range(0, len(probe_rows), MORSEL_ROWS):
            stop = start + MORSEL_ROWS
            yield probe_rows[start:stop], build_rows[start:stop]
