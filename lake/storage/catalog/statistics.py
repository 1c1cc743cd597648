"""What the planner may know of a table: rows, and of each column its range, NULLs and distinct values.

Folded from the records of files and manifests, and from the tail's batches; nothing is read from a file. ``min`` and
``max`` are bounds of every row, so that what is proven by them holds; ``distinct`` is an estimate.

Planning asks for them for each statement, so what does not change is kept: the fold of a table's files while it has the
same files, and what was seen in a batch while the batch lives.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct, field

from lake.storage.catalog import sketches
from lake.storage.catalog.manifests import folded_ranges
from lake.storage.catalog.model import Column, ColumnRange, DataFile, Manifest, RangeValue, Table

SKETCHED_ROWS: Final = 262_144  # of a tail; of more rows distinct values are scaled, ranges are of all
KEPT_TABLES: Final = 4_096

Ranges = dict[int, ColumnRange]


class ColumnStatistics(Struct, frozen=True):
    """Least and greatest value in physical form, share of NULLs, distinct values; None where not known."""

    min: RangeValue = None
    max: RangeValue = None
    null_fraction: float | None = None
    distinct: float | None = None


class TableStatistics(Struct, frozen=True):
    """Rows of a table and what is known of its columns, by the name SQL gives them."""

    rows: float
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)


class _Folded(Struct, frozen=True):
    files: tuple[DataFile, ...]
    manifests: tuple[Manifest, ...]
    rows: int
    ranges: Ranges


class _Kept(Struct, frozen=True):
    """What was answered of a table and the batches of its tail, which are not kept alive for it."""

    table: Table
    tail: tuple[weakref.ref[pa.RecordBatch], ...]
    made: TableStatistics

    def holds(self, tail: Sequence[pa.RecordBatch]) -> bool:
        """Whether ``tail`` is still the same batches."""
        return len(tail) == len(self.tail) and all(known() is batch for known, batch in zip(self.tail, tail, strict=True))


class StatisticsCache:
    """Statistics of the tables of one lake."""

    def __init__(self) -> None:
        self._folded: OrderedDict[int, _Folded] = OrderedDict()
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._ranges: dict[tuple[int, int], tuple[weakref.ref[pa.RecordBatch], ColumnRange]] = {}
        self._sketches: dict[tuple[int, int], tuple[weakref.ref[pa.RecordBatch], bytes]] = {}
        self._lock = threading.Lock()

    def table(self, table: Table, tail: Sequence[pa.RecordBatch] = ()) -> TableStatistics:
        """The statistics of a table whose tail holds the batches ``tail``; the last answer stands while neither changes."""
        with self._lock:
            kept = self._kept.get(table.id)
            if kept is not None and kept.table is table and kept.holds(tail):
                self._kept.move_to_end(table.id)
                return kept.made
        made = self._table(table, tail)
        with self._lock:
            self._kept[table.id] = _Kept(table, tuple(map(weakref.ref, tail)), made)
            if len(self._kept) > KEPT_TABLES:
                self._kept.popitem(last=False)
        return made

    def _table(self, table: Table, tail: Sequence[pa.RecordBatch]) -> TableStatistics:
        folded = self._files(table)
        tail_rows = sum(batch.num_rows for batch in tail)
        rows = folded.rows + tail_rows
        columns = {}
        for column in table.columns:
            found = _joined(folded, column, [self._range(batch, column) for batch in tail], tail)
            columns[column.name] = ColumnStatistics(
                min=found.low if found else None,
                max=found.high if found else None,
                null_fraction=found.nulls / rows if found and rows else None,
                distinct=self._distinct(table, column, tail, rows),
            )
        return TableStatistics(float(rows), columns)

    def _files(self, table: Table) -> _Folded:
        with self._lock:
            known = self._folded.get(table.id)
            if known is not None and known.files is table.files and known.manifests is table.manifests:
                self._folded.move_to_end(table.id)
                return known
        pieces: list[Manifest | DataFile] = [*table.manifests, *table.files]
        counts = [piece.rows for piece in pieces]
        made = _Folded(
            table.files, table.manifests, sum(counts), folded_ranges([piece.ranges for piece in pieces], counts)
        )
        with self._lock:
            self._folded[table.id] = made
            if len(self._folded) > KEPT_TABLES:
                self._folded.popitem(last=False)
        return made

    def _distinct(self, table: Table, column: Column, tail: Sequence[pa.RecordBatch], rows: int) -> float | None:
        seen: list[bytes] = [table.sketches.get(column.id, b"")]
        tail_rows = sum(batch.num_rows for batch in tail)
        sketched = 0
        for batch in tail:
            if sketched >= SKETCHED_ROWS:
                break
            seen.append(self._sketch(batch, column))
            sketched += batch.num_rows
        if not any(seen):
            return None
        distinct = sketches.estimate(sketches.merged(seen))
        if sketched < tail_rows and distinct > sketched / 2:
            distinct *= tail_rows / sketched
        return min(distinct, float(rows))

    def _range(self, batch: pa.RecordBatch, column: Column) -> ColumnRange:
        key = (id(batch), column.id)
        known = self._ranges.get(key)
        if known is not None and known[0]() is batch:
            return known[1]
        if column.stored not in batch.schema.names:
            found = ColumnRange(None, None, 0 if column.missing else batch.num_rows)
        else:
            array = batch.column(column.stored)
            low, high = sketches.range_of(array, column.type)
            found = ColumnRange(low, high, array.null_count)
        self._ranges[key] = (weakref.ref(batch, lambda _: self._ranges.pop(key, None)), found)
        return found

    def _sketch(self, batch: pa.RecordBatch, column: Column) -> bytes:
        key = (id(batch), column.id)
        known = self._sketches.get(key)
        if known is not None and known[0]() is batch:
            return known[1]
        found = b""
        if column.stored in batch.schema.names:
            found = sketches.sketch_of(batch.column(column.stored))
            found = b"" if found == sketches.EMPTY else found
        self._sketches[key] = (weakref.ref(batch, lambda _: self._sketches.pop(key, None)), found)
        return found


def _joined(
    folded: _Folded, column: Column, in_tail: Sequence[ColumnRange], tail: Sequence[pa.RecordBatch]
) -> ColumnRange | None:
    """One range of files and tail; None where files do not say, as those from before the column was added."""
    ranges = [{0: found} for found in in_tail]
    counts = [batch.num_rows for batch in tail]
    if folded.rows:
        known = folded.ranges.get(column.id)
        if known is None:
            return None
        ranges.append({0: known})
        counts.append(folded.rows)
    return folded_ranges(ranges, counts).get(0)
