"""Answers as bytes: json, typed, table, arrow, csv, tsv, ndjson, parquet, xlsx.

``typed`` and ``table`` answer everything at once; STREAMS answer piece by piece as the query runs.
Spec: HTTP, Query, answer rules 1 to 4.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, Final

import orjson
import pyarrow as pa
from msgspec import Struct

from lake.arrow_names import arrow_name
from lake.db.result import Result
from lake.db.values import json_rows, json_values, text_values
from lake.doors.http.lines import csv_field, csv_lines, json_lines
from lake.doors.http.xlsx import xlsx
from lake.types import Decimal, Float, Integer, Type

FORMATS: Final = ("json", "typed", "table", "arrow", "csv", "tsv", "ndjson", "parquet", "xlsx")
CONTENT_TYPES: Final = {
    "json": "application/json",
    "typed": "application/json",
    "table": "text/plain",
    "arrow": "application/vnd.apache.arrow.stream",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
CELL_CHARS_MAX: Final = 200  # of a line of a cell of a text table
GROUP_ROWS: Final = 262_144  # of a row group of a Parquet download, which is in memory until it is whole


class Kept(Struct, frozen=True):
    """A whole answer in memory."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    table: pa.Table


def typed(kept: Kept, start: int, rows: int, id: str | None) -> bytes:
    """Columns with types, rows as arrays, the total and the id under which more rows are kept."""
    part = kept.table.slice(start, rows)
    columns = [json_values(part.column(i), type, exact=True) for i, type in enumerate(kept.types)]
    return orjson.dumps(
        {
            "columns": [
                {"name": name, "type": arrow_name(type)} for name, type in zip(kept.names, kept.types, strict=True)
            ],
            "rows": list(zip(*columns, strict=True)) if columns else [[] for _ in range(part.num_rows)],
            "total": kept.table.num_rows,
            "pages": id,
        }
    )


def table(kept: Kept) -> bytes:
    """A text table, numbers to the right, with a line that counts the rows."""
    columns = [text_values(kept.table.column(i), type) for i, type in enumerate(kept.types)]
    return draw(kept.names, kept.types, columns, kept.table.num_rows).encode()


def draw(names: tuple[str, ...], types: tuple[Type, ...], columns: list[list[str | None]], rows: int) -> str:
    """A text table of columns of texts; None is NULL, a long line is cut, a value of several lines takes several.

    +----+-------+
    | id | name  |
    +----+-------+
    |  1 | Alice |
    +----+-------+
    (1 row)
    """
    cells = [[_lines(value) for value in column] for column in columns]
    widths = [
        max([len(name), *(len(line) for cell in column for line in cell)]) for name, column in zip(names, cells, strict=True)
    ]
    right = [isinstance(type, Integer | Float | Decimal) for type in types]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [rule, _row(names, widths, [False] * len(names)), rule]
    for row in zip(*cells, strict=True):
        for texts in zip_longest(*row, fillvalue=""):
            lines.append(_row(texts, widths, right))
    count = f"{rows} row" if rows == 1 else f"{rows} rows"
    return "\n".join([*lines, rule, f"({count})", ""])


def _lines(value: str | None) -> list[str]:
    if value is None:
        return ["NULL"]
    lines = value.replace("\r", "\\r").replace("\t", "\\t").split("\n")
    return [line if len(line) <= CELL_CHARS_MAX else line[: CELL_CHARS_MAX - 1] + "…" for line in lines]


def _row(texts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    columns = zip(texts, widths, right, strict=True)
    return "| " + " | ".join(text.rjust(width) if flush else text.ljust(width) for text, width, flush in columns) + " |"


# --- streams ---------------------------------------------------------------------------------------------------------


def _json(result: Result) -> Iterator[bytes]:
    """An array with an object for each row, NULLs left out."""
    if result.few is not None:
        yield orjson.dumps(json_rows(result.few, result.names, result.types))
        return
    before = b"["
    for batch in result.batches():
        if batch.num_rows:
            yield before + json_lines(batch, result.names, result.types, ",")[:-1]
            before = b","
    yield b"[]" if before == b"[" else b"]"


def _ndjson(result: Result) -> Iterator[bytes]:
    for batch in result.batches():
        yield json_lines(batch, result.names, result.types, "\n")


def _separated(separator: str, result: Result) -> Iterator[bytes]:
    """A line of names, then the records."""
    yield (separator.join(csv_field(name, separator) for name in result.names) + "\n").encode()
    for batch in result.batches():
        yield csv_lines(batch, result.types, separator)


class _Sink(io.RawIOBase):
    """A file that is only written to, and from which what was written is taken piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, piece: Any) -> int:
        taken = bytes(piece)
        self._pieces.append(taken)
        self._position += len(taken)
        return len(taken)

    def take(self) -> bytes:
        """What was written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _arrow(result: Result) -> Iterator[bytes]:
    sink = _Sink()
    with pa.ipc.new_stream(sink, result.schema) as writer:
        yield sink.take()
        for batch in result.batches():
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


def _parquet(result: Result) -> Iterator[bytes]:
    """Parquet with a codec that every reader knows."""
    import pyarrow.parquet as pq

    sink = _Sink()
    waiting: list[pa.RecordBatch] = []
    with pq.ParquetWriter(sink, result.schema, compression="snappy") as writer:
        for batch in result.batches():
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
                yield sink.take()
        writer.write_table(pa.Table.from_batches(waiting, result.schema))
    yield sink.take()


STREAMS: Final[dict[str, Callable[[Result], Iterator[bytes]]]] = {
    "arrow": _arrow,
    "csv": partial(_separated, ","),
    "json": _json,
    "tsv": partial(_separated, "\t"),
    "ndjson": _ndjson,
    "parquet": _parquet,
    "xlsx": xlsx,
}
