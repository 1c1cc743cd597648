"""An answer as an Excel workbook: one sheet with bold names. Spec: HTTP, Query (format=xlsx); Limits.

Excel has numbers of 15 digits, dates from 1900 on and texts of 32,767 characters: what is more than that is a text, and
a text that is longer is refused. Text is never taken for a formula.
"""

from __future__ import annotations

import datetime
import math
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from lake.db.result import Result
from lake.db.values import text_values
from lake.errors import ProgramLimitExceeded
from lake.types import BOOLEAN, Date, Decimal, Float, Integer, Timestamp, Type

ROWS_MAX: Final = 1_048_575
COLUMNS_MAX: Final = 16_384
TEXT_CHARS_MAX: Final = 32_767
EXACT_MAX: Final = 10**15  # whole numbers below have all their digits
FIRST_DAY: Final = datetime.date(1900, 3, 1)  # Excel has a 29th of February 1900, which confuses what is before
PIECE_BYTES: Final = 1 << 20
FORMATS: Final = {Date: "yyyy-mm-dd", Timestamp: "yyyy-mm-dd hh:mm:ss.000"}

Write = Callable[[int, int, Any], Any]


def xlsx(result: Result) -> Iterator[bytes]:
    """The workbook, in pieces; it is written to a file first, since its parts are not in the order of its bytes.

    54000  more rows or columns than a sheet has, or a longer text than a cell takes
    """
    import xlsxwriter

    if len(result.names) > COLUMNS_MAX:
        raise ProgramLimitExceeded(f"a sheet has at most {COLUMNS_MAX} columns, not {len(result.names)}")
    with tempfile.TemporaryFile() as file:
        with xlsxwriter.Workbook(file, {"constant_memory": True, "default_date_format": FORMATS[Timestamp]}) as book:
            sheet = book.add_worksheet("answer")
            bold = book.add_format({"bold": True})
            formats = {kind: book.add_format({"num_format": text}) for kind, text in FORMATS.items()}
            for place, name in enumerate(result.names):
                sheet.write_string(0, place, name[:TEXT_CHARS_MAX], bold)
            writers = [_writer(sheet, type, formats.get(type.__class__)) for type in result.types]
            start = 1
            for batch in result.batches():
                if start + batch.num_rows - 1 > ROWS_MAX:
                    raise ProgramLimitExceeded(f"a sheet has at most {ROWS_MAX} rows", hint="LIMIT it, or ask for csv")
                _write_batch(batch, result, writers, start)
                start += batch.num_rows
        file.seek(0)
        while piece := file.read(PIECE_BYTES):
            yield piece


def _write_batch(batch: pa.RecordBatch, result: Result, writers: list[Write], start: int) -> None:
    """Rows in order, which is what writing without holding the sheet in memory takes; NULL is an empty cell."""
    columns = [_values(batch.column(place), type) for place, type in enumerate(result.types)]
    for row, values in enumerate(zip(*columns, strict=True), start):
        for place, value in enumerate(values):
            if value is not None:
                if isinstance(value, str) and len(value) > TEXT_CHARS_MAX:
                    words = f'"{result.names[place]}" has {len(value)} in row {row}'
                    raise ProgramLimitExceeded(f"a cell has at most {TEXT_CHARS_MAX} characters; {words}")
                writers[place](row, place, value)


def _values(column: pa.Array, type: Type) -> list[Any]:
    """What is written of each value: a number, a day, a moment, a truth, or text where Excel has no such value."""
    texts = text_values(column, type)
    match type:
        case Integer():
            return [_exact(value, text) for value, text in zip(column.to_pylist(), texts, strict=True)]
        case Float():
            found = zip(column.to_pylist(), texts, strict=True)
            return [text if value is not None and not math.isfinite(value) else value for value, text in found]
        case Decimal():
            return [None if text is None else _decimal(text) for text in texts]
        case Timestamp(zoned=False):
            return [_moment(value, text) for value, text in zip(column.to_pylist(), texts, strict=True)]
        case Date():
            return [_day(value, text) for value, text in zip(column.to_pylist(), texts, strict=True)]
        case _ if type == BOOLEAN:
            return list(column.to_pylist())
        case _:
            return texts


def _exact(value: int | None, text: str | None) -> int | str | None:
    return value if value is None or abs(value) < EXACT_MAX else text


def _decimal(text: str) -> float | str:
    """A number where it has all the digits of the text."""
    digits = text.lstrip("-").replace(".", "").lstrip("0")
    return float(text) if len(digits) <= 15 else text


def _moment(value: datetime.datetime | None, text: str | None) -> datetime.datetime | str | None:
    return value if value is None or value.date() >= FIRST_DAY else text


def _day(value: datetime.date | None, text: str | None) -> datetime.date | str | None:
    return value if value is None or value >= FIRST_DAY else text


def _writer(sheet: Any, type: Type, format: Any) -> Write:
    """What writes the values of a column; a text among them is written as one."""

    def write(row: int, place: int, value: Any) -> None:
        match value:
            case str():
                sheet.write_string(row, place, value)
            case bool():
                sheet.write_boolean(row, place, value)
            case datetime.date():
                sheet.write_datetime(row, place, value, format)
            case _:
                sheet.write_number(row, place, value)

    return write
