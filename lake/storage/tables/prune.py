"""Which files and row groups a filter can skip, by the range of each column.

A piece is skipped only when no row in it can make a predicate true: never by a guess, and with an unknown range never.
Values are in physical form. A column with NaN has no range, because SQL puts NaN above every number and Parquet's own
statistics leave it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lake.rows import Predicate
from lake.storage.catalog.model import (
    CREATED_AT,
    ROW_ID,
    UPDATED_AT,
    VERSION,
    Column,
    ColumnRange,
    DataFile,
    Manifest,
)
from lake.types import Date, Decimal, Float, Integer, Text, Time, Timestamp, Type

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def may_match(found: ColumnRange | None, rows: int, predicate: Predicate) -> bool:
    """Whether a row of a piece with this range may make ``predicate`` true; ``rows`` are all rows of the piece.

    >>> may_match(ColumnRange(10, 20, 0), 100, Predicate("x", "<", 10))
    False
    """
    if predicate.op == "is null":
        return found is None or found.nulls > 0
    if predicate.op == "is not null":
        return found is None or found.nulls < rows
    if predicate.value is None:
        return False
    if found is None:
        return True
    if found.nulls >= rows:
        return False
    if found.low is None or found.high is None or predicate.op not in _OVERLAPS:
        return True
    if _has_nan(predicate.value):
        return True
    try:
        return _OVERLAPS[predicate.op](found.low, found.high, predicate.value)
    except TypeError:
        return True  # a constant of another kind than the column's: the engine will say what that means


def _any_inside(low: Any, high: Any, values: Any) -> bool:
    return any(value is not None and low <= value <= high for value in values)


_OVERLAPS: Final[dict[str, Callable[[Any, Any, Any], bool]]] = {
    "=": lambda low, high, value: low <= value <= high,
    "<>": lambda low, high, value: not (low == value == high),
    "<": lambda low, high, value: low < value,
    "<=": lambda low, high, value: low <= value,
    ">": lambda low, high, value: high > value,
    ">=": lambda low, high, value: high >= value,
    "in": _any_inside,
}


def _has_nan(value: Any) -> bool:
    if isinstance(value, tuple | list | frozenset | set):
        return any(_has_nan(each) for each in value)
    return isinstance(value, float) and math.isnan(value)


def keeps_file(piece: DataFile | Manifest, columns: Mapping[str, Column], predicates: Sequence[Predicate]) -> bool:
    """Whether a file, or a manifest's files, may hold rows for which all predicates are true."""
    return all(may_match(file_range(piece, columns, test.column), piece.rows, test) for test in predicates)


def file_range(piece: DataFile | Manifest, columns: Mapping[str, Column], name: str) -> ColumnRange | None:
    """The range of the column that SQL calls ``name``, or None where none is known."""
    match name:
        case "_row_id":
            return ColumnRange(piece.row_id, piece.row_id_high, 0)
        case "_version":
            return ColumnRange(piece.version, piece.version_high, 0)
        case "_created_at" | "_updated_at":
            if isinstance(piece, DataFile) and not piece.has_system:
                return ColumnRange(piece.created, piece.created, 0)
            return None
        case _:
            column = columns.get(name)
            return piece.ranges.get(column.id) if column is not None else None


assert (ROW_ID, VERSION, CREATED_AT, UPDATED_AT) == ("_row_id", "_version", "_created_at", "_updated_at")


class GroupRanges:
    """The ranges of a file's row groups by its footer, each worked out when it is first asked for: that takes 10 us."""

    def __init__(self, footer: pq.FileMetaData) -> None:
        self._footer = footer
        self._known: dict[tuple[int, int, Type], ColumnRange | None] = {}

    def of(self, group: int, place: int, type: Type) -> ColumnRange | None:
        """Of the column at ``place``; None where the footer has none that can be trusted."""
        key = (group, place, type)
        if key not in self._known:
            self._known[key] = group_range(self._footer.row_group(group).column(place), type)
        return self._known[key]


def keeps_group(
    ranges: GroupRanges,
    places: Mapping[str, int],
    group: int,
    file: DataFile,
    columns: Mapping[str, Column],
    predicates: Sequence[Predicate],
) -> bool:
    """Whether a row group may hold rows for which all predicates are true, by the statistics of its footer."""
    for test in predicates:
        column = columns.get(test.column)
        place = places.get(column.stored) if column is not None else None
        if column is None or place is None:
            continue
        known = file.ranges.get(column.id)
        if known is None or known.low is None:
            continue  # the whole file has no range for a reason (NaN, long texts), which its row groups share
        if not may_match(ranges.of(group, place, column.type), file.groups[group], test):
            return False
    return True


def group_range(chunk: pq.ColumnChunkMetaData, type: Type) -> ColumnRange | None:
    """The range of one column of one row group, or None where the footer has none that can be trusted."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_null_count:
        return None
    nulls = int(statistics.null_count)
    if not statistics.has_min_max:
        return ColumnRange(None, None, nulls)
    low, high = statistics.min_raw, statistics.max_raw
    match type:
        case Text():
            try:
                return ColumnRange(low.decode(), high.decode(), nulls)
            except UnicodeDecodeError:
                return ColumnRange(None, None, nulls)
        case Integer() | Date() | Time() | Timestamp():
            return ColumnRange(int(low), int(high), nulls)
        case Decimal() if chunk.physical_type in ("INT32", "INT64"):
            return ColumnRange(int(low), int(high), nulls)
        case Float():
            return ColumnRange(float(low), float(high), nulls)
        case _:
            return ColumnRange(None, None, nulls)
