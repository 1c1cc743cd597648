"""Sheets of Excel workbooks outside the lake, through calamine.

A sheet is read whole: a workbook has no way to read a part, and at most a million rows. The type of a column is what all its
cells are: whole numbers, numbers, truths, days, moments, times; else text. Source: ECMA-376 (Office Open XML).
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from lake.errors import InvalidParameter, IoFailure
from lake.rows import Part, Predicate, physical_array
from lake.storage.external.files import ExternalTable
from lake.types import BIGINT, BOOLEAN, DATE, DOUBLE, TEXT, TIME, TIMESTAMP, Type

BATCH_ROWS: Final = 65_536
KINDS: Final[dict[type, Type]] = {
    bool: BOOLEAN, int: BIGINT, float: DOUBLE, datetime.date: DATE, datetime.datetime: TIMESTAMP, datetime.time: TIME,
}  # fmt: skip
BIGGEST: Final = 2.0**53


def open_xlsx(path: str, *, sheet: str | None = None, header: bool = True) -> ExternalTable:
    """A sheet as a table, the first one where none is named; ``header`` says that its first row names the columns.

    22023  no such sheet      58030  a file that is no workbook
    """
    rows = _rows_of(path, sheet)
    width = max(map(len, rows), default=0)
    if header and rows:
        names = _names([_text(value) or "" for value in rows[0]], width)
        rows = rows[1:]
    else:
        names = _names([], width)
    columns = {name: _column([row[place] if place < len(row) else "" for row in rows]) for place, name in enumerate(names)}
    types = {name: found[0] for name, found in columns.items()}
    table = pa.table({name: found[1] for name, found in columns.items()})
    return ExternalTable(tuple(types.items()), SheetRows(table, types), float(len(rows)))


class SheetRows(Struct, frozen=True):
    """Rows of a sheet that was read."""

    table: pa.Table
    types: dict[str, Type]

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """A part for each batch of rows."""
        found = self.table.to_batches(max_chunksize=BATCH_ROWS)
        return [Part(None, lambda batch=batch: [self._shaped(batch, tuple(columns))]) for batch in found]  # type: ignore[misc]

    def _shaped(self, batch: pa.RecordBatch, columns: tuple[str, ...]) -> pa.RecordBatch:
        if not columns:
            return batch.select([])
        arrays = [physical_array(batch.column(name), self.types[name]) for name in columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _rows_of(path: str, sheet: str | None) -> list[list[Any]]:
    import python_calamine

    try:
        book = python_calamine.CalamineWorkbook.from_path(path)
        if sheet is not None and sheet not in book.sheet_names:
            names = ", ".join(book.sheet_names)
            raise InvalidParameter(f'"{Path(path).name}" has no sheet "{sheet}"', hint=f"its sheets: {names}")
        found = book.get_sheet_by_index(0) if sheet is None else book.get_sheet_by_name(sheet)
        return found.to_python(skip_empty_area=False)
    except (python_calamine.CalamineError, OSError) as error:
        raise IoFailure(f'"{Path(path).name}" cannot be read as a workbook: {error}') from None


def _names(given: list[str], width: int) -> list[str]:
    """Names of columns: those that are written, ``column1`` and so on for the others, each once."""
    names: list[str] = []
    for place in range(width):
        name = (given[place] if place < len(given) else "") or f"column{place + 1}"
        while name in names:
            name += "_1"
        names.append(name)
    return names


def _column(values: list[Any]) -> tuple[Type, pa.Array]:
    """A column's type and its values; an empty cell is NULL."""
    cells = [None if value == "" else value for value in values]
    kinds = {type(value) for value in cells if value is not None}
    if kinds <= {int, float} and kinds:
        whole = all(value is None or (float(value).is_integer() and abs(value) < BIGGEST) for value in cells)
        if whole:
            return BIGINT, pa.array([None if value is None else int(value) for value in cells], pa.int64())
        return DOUBLE, pa.array([None if value is None else float(value) for value in cells], pa.float64())
    if len(kinds) == 1 and (kind := next(iter(kinds))) in KINDS:
        return KINDS[kind], pa.array(cells, KINDS[kind].arrow)
    return TEXT, pa.array([None if value is None else _text(value) for value in cells], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < BIGGEST:
        return str(int(value))
    return str(value)
