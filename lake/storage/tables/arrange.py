"""The rows of one write in the order and the pieces in which files hold them: one partition a file, sorted or clustered.

    rows ── newest of each key ── by cluster or key ── cut where the partition changes ── files

One column of CLUSTER BY sorts; several follow a Hilbert curve over the ranks of their values, so that rows that are near
in any of them are near in the file, and ranges of each stay narrow. Spec: SQL, Table options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from lake.compiled import kernel, rehearsal
from lake.errors import ProgramLimitExceeded
from lake.storage.catalog.model import Column, DataFile, Table
from lake.storage.tables.columns import decoded, decoded_batch
from lake.storage.tables.combine import combine
from lake.storage.tables.keys import Ints
from lake.storage.tables.runs import Rule, run_of
from lake.types import Date, Timestamp

PARTITIONS_MAX: Final = 4_096  # of one write
RANK_BITS: Final = 31  # of two columns; more share 62 bits
_UNITS: Final = {"year": "M8[Y]", "month": "M8[M]", "day": "M8[D]", "hour": "M8[h]"}


class Piece(Struct, frozen=True, eq=False):
    """Rows of one file, and of each the place in what was given; None where rows were combined."""

    rows: pa.RecordBatch
    places: Ints | None


def is_arranged(table: Table) -> bool:
    """Whether files of the table hold rows in another order than that of arrival."""
    return bool(table.design.key or table.design.cluster or table.design.partition)


def arrange(table: Table, batches: Sequence[pa.RecordBatch]) -> list[Piece]:
    """The files that rows of stored names make.

    54000  they are of more than PARTITIONS_MAX partitions
    """
    places: Ints | None = None
    if table.kind == "merge":
        combined = combine(table, batches)
        assert combined is not None, "a write has rows"
        rows = combined
    else:
        rows = pa.concat_batches([decoded_batch(batch) for batch in batches])
        places = np.arange(rows.num_rows, dtype=np.int64)
    order: Ints | None = None
    if table.kind == "upsert":
        rule = Rule.of(table)
        arrays = [rows.column(column.stored) for column in rule.columns]
        order = run_of(rule, rule.keys(arrays), np.arange(rows.num_rows, dtype=np.int64), rule.numbers(arrays))[0].rows
    if table.design.cluster:
        found = _clustered([table.column_by_id(id) for id in table.design.cluster], rows, order)
        order = found if order is None else order[found]
    if not table.design.partition:
        return [_taken(rows, places, order)]
    values = partitions_of(table, rows.column(table.column_by_id(table.design.partition).stored))
    if order is not None:
        values = values[order]
    by_partition = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(values[by_partition]) != 0))
    if len(starts) > PARTITIONS_MAX:
        raise ProgramLimitExceeded(
            f'rows of {len(starts)} partitions of table "{table.name}" are written at once; the limit is {PARTITIONS_MAX}'
        )
    cuts = np.split(by_partition, starts[1:])
    return [_taken(rows, places, cut if order is None else order[cut]) for cut in cuts]


def partitions_of(table: Table, values: pa.Array) -> Ints:
    """A number for each row, the same for rows of one partition; NULL is a partition of its own."""
    design = table.design
    values = decoded(values)
    if design.unit:
        type = table.column_by_id(design.partition).type
        assert isinstance(type, Date | Timestamp), "units are of times"
        return unit_numbers(values, design.unit, is_date=isinstance(type, Date))
    codes = values.dictionary_encode(null_encoding="encode") if values.null_count else values.dictionary_encode()
    found: Ints = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def unit_numbers(values: pa.Array, unit: str, *, is_date: bool) -> Ints:
    """Years, months, days or hours since 1970 of dates or timestamps; of NULL the least number."""
    numbers = values.cast(pa.int32()).cast(pa.int64()) if is_date else values.view(pa.int64())
    least = np.iinfo(np.int64).min
    plain = numbers.fill_null(least).to_numpy(zero_copy_only=False)
    found: Ints = plain.view("M8[D]" if is_date else "M8[us]").astype(_UNITS[unit]).astype(np.int64)
    return found if not values.null_count else np.where(plain == least, least, found)


def partition_of(table: Table, file: DataFile) -> object | None:
    """What tells a file's partition from others, or None where its record does not say."""
    design = table.design
    found = file.ranges.get(design.partition)
    if found is None or (found.low is None and found.nulls < file.rows):
        return None
    if found.low is None:
        return ("null",)
    if not design.unit:
        return (found.low,) if found.low == found.high else None
    type = table.column_by_id(design.partition).type
    array = pa.array([found.low, found.high], pa.int64())
    ends = array.cast(pa.int32()).view(pa.date32()) if isinstance(type, Date) else array.view(type.physical)
    low, high = unit_numbers(ends, design.unit, is_date=isinstance(type, Date))
    return (int(low),) if low == high else None


def _clustered(columns: Sequence[Column], rows: pa.RecordBatch, order: Ints | None) -> Ints:
    """The order of rows, or of those that ``order`` names, by their cluster columns; of equal ones, their own."""
    ranks = [_ranks(rows.column(column.stored), order) for column in columns]
    if len(ranks) == 1:
        return np.argsort(ranks[0], kind="stable").astype(np.int64)
    bits = min(RANK_BITS, 62 // len(ranks))
    highest = max(int(rank.max(initial=0)) for rank in ranks).bit_length()
    scaled = np.stack([rank >> max(highest - bits, 0) for rank in ranks]).astype(np.int64)
    curve = np.empty(scaled.shape[1], np.int64)
    hilbert(scaled, min(bits, max(highest, 1)), curve)
    return np.argsort(curve, kind="stable").astype(np.int64)


def _ranks(values: pa.Array, order: Ints | None) -> Ints:
    """The place of each value among the distinct ones, spread over the rows there are; NULL comes last."""
    if order is not None:
        values = values.take(pa.array(order))
    found = pc.rank(values, sort_keys="ascending", tiebreaker="min")
    ranks: Ints = found.to_numpy(zero_copy_only=False).astype(np.int64) - 1
    return ranks


def _taken(rows: pa.RecordBatch, places: Ints | None, order: Ints | None) -> Piece:
    if order is None:
        return Piece(rows, places)
    return Piece(rows.take(pa.array(order)), None if places is None else places[order])


@kernel
def hilbert(axes: Any, bits: Any, out: Any) -> None:
    """The place of each point on a Hilbert curve.

    axes  int64[dimensions, rows]  in/out  coordinates of ``bits`` bits; destroyed
    out   int64[rows]              out
    Source: Skilling, "Programming the Hilbert curve", AIP 707, 2004.
    """
    dimensions = axes.shape[0]
    for row in range(out.size):
        mask = 1 << (bits - 1)
        while mask > 1:
            rest = mask - 1
            for axis in range(dimensions):
                if axes[axis, row] & mask:
                    axes[0, row] ^= rest
                else:
                    swapped = (axes[0, row] ^ axes[axis, row]) & rest
                    axes[0, row] ^= swapped
                    axes[axis, row] ^= swapped
            mask >>= 1
        for axis in range(1, dimensions):
            axes[axis, row] ^= axes[axis - 1, row]
        turn = 0
        mask = 1 << (bits - 1)
        while mask > 1:
            if axes[dimensions - 1, row] & mask:
                turn ^= mask - 1
            mask >>= 1
        place = 0
        for bit in range(bits - 1, -1, -1):
            for axis in range(dimensions):
                place = (place << 1) | (((axes[axis, row] ^ turn) >> bit) & 1)
        out[row] = place


@rehearsal
def rehearse_hilbert() -> None:
    """The curve of two columns."""
    hilbert(np.zeros((2, 1), np.int64), 1, np.zeros(1, np.int64))
