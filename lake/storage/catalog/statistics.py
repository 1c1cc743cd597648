"""What the planner may know of a table: rows, and of each column its range, NULLs and distinct values.

Folded from the records of files and manifests, and from the tail's batches; nothing is read from a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from lake.storage.catalog import sketches
from lake.storage.catalog.manifests import folded_ranges
from lake.storage.catalog.model import Column, ColumnRange, DataFile, Manifest, RangeValue, Table

TAIL_SAMPLE_ROWS: Final = 262_144  # of the tail that are looked at; beyond, counts are scaled


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Least and greatest value in physical form, share of NULLs, distinct values; None where not known."""

    min: RangeValue = None
    max: RangeValue = None
    null_fraction: float | None = None
    distinct: float | None = None


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Rows of a table and what is known of its columns, by the name SQL gives them."""

    rows: float
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)


def table_statistics(table: Table, tail: Sequence[pa.RecordBatch] = ()) -> TableStatistics:
    """The statistics of a table whose tail holds the batches ``tail``."""
    pieces: list[Manifest | DataFile] = [*table.manifests, *table.files]
    tail_rows = sum(batch.num_rows for batch in tail)
    rows = sum(piece.rows for piece in pieces) + tail_rows
    sample = _sample(tail)
    seen = sum(batch.num_rows for batch in sample)
    folded = folded_ranges([piece.ranges for piece in pieces], [piece.rows for piece in pieces])
    columns = {}
    for column in table.columns:
        in_tail, sketch = _column_of_tail(column, sample)
        known = [table.sketches.get(column.id, b""), sketch]
        found = _fold_two(folded.get(column.id), sum(piece.rows for piece in pieces), in_tail, seen)
        distinct = sketches.estimate(sketches.merged(known)) if any(known) else None
        if distinct is not None and seen < tail_rows and distinct > 0.5 * seen:
            distinct *= tail_rows / max(seen, 1)
        counted = sum(piece.rows for piece in pieces) + seen
        columns[column.name] = ColumnStatistics(
            min=found.low if found else None,
            max=found.high if found else None,
            null_fraction=found.nulls / counted if found and counted else None,
            distinct=min(distinct, rows) if distinct is not None else None,
        )
    return TableStatistics(float(rows), columns)


def _sample(tail: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    taken: list[pa.RecordBatch] = []
    rows = 0
    for batch in tail:
        if rows >= TAIL_SAMPLE_ROWS:
            break
        taken.append(batch)
        rows += batch.num_rows
    return taken


def _column_of_tail(column: Column, batches: Sequence[pa.RecordBatch]) -> tuple[ColumnRange | None, bytes]:
    ends: list[ColumnRange] = []
    counts: list[int] = []
    found: list[bytes] = []
    for batch in batches:
        if column.stored not in batch.schema.names:
            ends.append(ColumnRange(None, None, batch.num_rows))
        else:
            array = batch.column(column.stored)
            low, high = sketches.range_of(array, column.type)
            ends.append(ColumnRange(low, high, array.null_count))
            found.append(sketches.sketch_of(array))
        counts.append(batch.num_rows)
    if not ends:
        return None, b""
    folded = folded_ranges([{0: each} for each in ends], counts)[0]
    sketch = sketches.merged(found)
    return folded, b"" if sketch == sketches.EMPTY else sketch


def _fold_two(
    files: ColumnRange | None, file_rows: int, tail: ColumnRange | None, tail_rows: int
) -> ColumnRange | None:
    if tail is None or tail_rows == 0:
        return files
    if file_rows == 0:
        return tail
    if files is None:
        return None
    return folded_ranges([{0: files}, {0: tail}], [file_rows, tail_rows])[0]
