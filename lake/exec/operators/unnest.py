"""UNNEST: each row once for every element of its lists, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lake.exec.context import Context
from lake.exec.kernels.views import buffer_view, to_array, valid_of
from lake.exec.operators.base import MORSEL_ROWS, Stream, column_name
from lake.exec.operators.batches import make_batch, take_or_null, take_rows
from lake.exec.operators.project import Projection
from lake.sql.bound import Column, Expr


@dataclass(eq=False)
class Unnest(Stream):
    """Elements beside the columns ``passed`` on.

    is_outer  a row whose lists are all empty or NULL stays once, with NULLs
    """

    columns: tuple[Column, ...]
    passed: tuple[Column, ...]
    lists: tuple[tuple[Column, Expr], ...]
    ordinality: Column | None = None
    is_outer: bool = False
    _projection: Projection = field(init=False, repr=False)

    def open(self, context: Context) -> None:
        self._projection = Projection([expr for _, expr in self.lists], context)

    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        arrays = self._projection.run(batch)
        bounds = [_bounds(array) for array in arrays]
        longest = np.zeros(batch.num_rows, np.int64)
        for _, counts in bounds:
            np.maximum(longest, counts, out=longest)
        if self.is_outer:
            longest = np.maximum(longest, 1)
        running = np.cumsum(longest)
        start = 0
        while start < batch.num_rows:
            done = int(running[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(running, done + MORSEL_ROWS, side="right")))
            yield self._rows(batch, arrays, bounds, longest, np.arange(start, stop))
            start = stop

    def _rows(self, batch: pa.RecordBatch, arrays: list[Any], bounds: list[Any], longest: Any, rows: Any) -> pa.RecordBatch:
        """The answer for some rows of the batch."""
        sizes = longest[rows]
        of_row = np.repeat(rows, sizes)
        place = np.arange(len(of_row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        made: dict[str, pa.Array] = {}
        kept = take_rows(batch.select([column_name(column) for column in self.passed]), of_row)
        for column, array in zip(self.passed, kept.columns, strict=True):
            made[column_name(column)] = array
        for (column, _), array, (starts, counts) in zip(self.lists, arrays, bounds, strict=True):
            element = np.where(place < counts[of_row], starts[of_row] + place, -1)
            made[column_name(column)] = take_or_null(array.values, element)
        if self.ordinality is not None:
            empty = np.zeros(batch.num_rows, np.bool_)
            if self.is_outer:
                empty = np.max([counts for _, counts in bounds], axis=0) == 0
            valid = (~empty[of_row]).astype(np.uint8)
            made[column_name(self.ordinality)] = to_array(place + 1, pa.int64(), None if valid.all() else valid)
        names = [column_name(column) for column in self.columns]
        return make_batch(names, [made[name] for name in names], len(of_row))


def _bounds(array: pa.Array) -> tuple[Any, Any]:
    """Where each list begins among the elements and how many it has, int64[rows] both; none where it is NULL."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.int64)
    offsets = buffer_view(array.buffers()[1], np.int32, len(array) + 1, array.offset).astype(np.int64)
    counts = np.diff(offsets)
    valid = valid_of(array)
    return offsets[:-1], counts if valid is None else counts * valid
