"""Late materialisation: the columns of a few rows, once it is known which rows these are.

    SELECT * FROM hits ORDER BY at LIMIT 10

    FetchRows  the other 104 columns of ten rows, by their places
    TopN       at, place
    Scan       at, place

Source: Abadi et al., "Materialization Strategies in a Column-Oriented DBMS", ICDE 2007.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.kernels.views import values_of
from lake.exec.operators.base import Stream, column_name
from lake.exec.operators.batches import concat_columns, make_batch
from lake.exec.operators.scan import PLACE, PLACE_BITS, Scan
from lake.sql.bound import Column

FETCHED_ROWS_MAX: Final = 1_024
"""More rows lie in so many row groups that fetching reads as much as the scan would have."""


@dataclass(eq=False)
class FetchRows(Stream):
    """Puts the deferred columns of a scan beside rows that hold their places.

    Cost  each row group with one of the rows is read once, its deferred columns whole
    """

    columns: tuple[Column, ...]
    scan: Scan

    def describe(self) -> str:
        return ", ".join(column.name for column in self.scan.deferred)

    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        places = values_of(batch.column(column_name(PLACE)))
        order = np.argsort(places)
        fetched = self._fetched(places[order])
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        found = {column_name(column): array for column, array in zip(self.scan.deferred, fetched, strict=True)}
        names = [column_name(column) for column in self.columns]
        arrays = [found[name].take(pa.array(back)) if name in found else batch.column(name) for name in names]
        yield make_batch(names, arrays, batch.num_rows)

    def _fetched(self, places: Any) -> Sequence[pa.Array]:
        """The deferred columns of rows by their places, which ascend."""
        parts = places >> PLACE_BITS
        cuts = [0, *(np.flatnonzero(np.diff(parts)) + 1), len(places)]
        rows = places & ((1 << PLACE_BITS) - 1)
        pieces = [self.scan.fetch(int(parts[start]), rows[start:end]) for start, end in pairwise(cuts)]
        return [concat_columns(chunks) for chunks in zip(*pieces, strict=True)]
