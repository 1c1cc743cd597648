"""COPY FROM STDIN in the text and CSV formats: lines to columns, all of a block's rows by one pass over its bytes.

    received ── split into fields ──┬── numbers and moments of the plain forms, straight from their bytes
                                    └── all others as texts, escapes undone, which are cast

Source: PostgreSQL documentation, COPY, Text Format and CSV Format.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.db.write.checks import about
from lake.db.write.incoming import Incoming
from lake.doors.postgres.copy import Copy
from lake.errors import BadCopyData, LakeError
from lake.exec.cast import cast
from lake.exec.kernels import fields, views
from lake.exec.plain_text import read_plain
from lake.late import late_pattern
from lake.sql.catalog import Settings
from lake.storage.catalog.model import Table
from lake.types import TEXT

_LINE_END: Final = late_pattern(rb"\r\n?|\n")
_END_OR_ESCAPE: Final = late_pattern(rb"\\[\s\S]|\r\n|\r|\n")
_STYLES: Final = {b"\n": fields.LF, b"\r\n": fields.CRLF, b"\r": fields.CR}
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Lines:
    """The lines of a COPY FROM STDIN as they come, as columns of a table.

    names     the columns, in the order of a line's fields
    settings  what casts go by
    """

    def __init__(self, copy: Copy, table: Table, names: tuple[str, ...], settings: Settings) -> None:
        self._copy, self._table, self._names, self._settings = copy, table, names, settings
        self._kinds = _kinds_of(copy)
        self._signs = _bytes_of(copy.quote + copy.escape)
        self._null = _bytes_of(copy.null)
        self._style = fields.UNKNOWN
        self._rest = b""
        self._wanted = 0  # bytes that a row takes which did not come whole: fewer are not looked at again
        self._rows = 0
        self._has_header = copy.header
        self._is_ended = False

    def columns(self, received: bytes, *, is_last: bool = False) -> Incoming | None:
        """The whole rows of what came; what is left waits for more, unless that was all.

        22P04  a row of another number of fields, another line's end than before, quotes that never end, no UTF8
        22P02  a value that does not cast; the error names it, its column and its block of rows
        """
        body = self._rest + received
        if self._is_ended or (len(body) < self._wanted and not is_last):
            self._rest = b"" if self._is_ended else body
            return None
        if self._has_header:
            start, self._style = _after_header(self._copy, body, is_last)
            if not start:
                self._rest = body
                return None
            self._has_header, body = False, body[start:]
        return self._split(body, is_last)

    def _split(self, body: bytes, is_last: bool) -> Incoming | None:
        width = len(self._names)
        rows_max = len(body) // width + 1
        starts, lengths = np.empty((width, rows_max), np.int32), np.empty((width, rows_max), np.int32)
        special, marks = np.zeros(width, np.uint8), np.zeros(fields.MARKS, np.int64)
        marks[fields.STYLE] = self._style
        data = views.buffer_view(pa.py_buffer(body), np.uint8, len(body))
        found = (self._null, is_last, starts, lengths, special, marks)
        if self._copy.csv:
            rows = int(fields.split_csv(data, self._kinds, self._signs, *found))
        else:
            rows = int(fields.split_text(data, self._kinds, *found))
        self._style = int(marks[fields.STYLE])
        self._rest = body[marks[fields.REST] :]
        self._wanted = 0 if rows else 2 * len(body)
        self._is_ended = marks[fields.STATE] == fields.ENDED
        self._check(int(marks[fields.STATE]), int(marks[fields.COLUMN]), rows, is_last)
        if not rows:
            return None
        arrays = {
            name: self._column(name, data, starts[place, :rows], lengths[place, :rows], bool(special[place]))
            for place, name in enumerate(self._names)
        }
        self._rows += rows
        return Incoming(rows, arrays, {column.name: column.type for column in self._table.columns if column.name in arrays})

    def _check(self, state: int, column: int, rows: int, is_last: bool) -> None:
        """22P04 where the row behind the whole ones is none."""
        message, hint = None, None
        match state:
            case fields.MISSING:
                message = f'missing data for column "{self._names[column]}"'
            case fields.EXTRA:
                message = "extra data after last expected column"
            case fields.STRAY_RETURN | fields.STRAY_NEWLINE:
                name, sign = ("carriage return", '"\\r"') if state == fields.STRAY_RETURN else ("newline", '"\\n"')
                message = f"{'unquoted' if self._copy.csv else 'literal'} {name} found in data"
                hint = f"Use {'quoted CSV field' if self._copy.csv else sign} to represent {name}."
            case fields.MORE if is_last and self._rest:
                message = "unterminated CSV quoted field"
        if message is not None:
            raise BadCopyData(message, detail=f"COPY {self._table.name}, row {self._rows + rows + 1}", hint=hint)

    def _column(self, name: str, body: Any, starts: Any, lengths: Any, is_special: bool) -> pa.Array:
        column = self._table.column(name)
        assert column is not None, "the columns were looked up"
        if not is_special:
            read = read_plain(body, starts, lengths, column.type, self._settings.time_zone)
            if read is not None:
                return read
        texts = self._texts(name, body, starts, lengths, is_special)
        try:
            return cast(texts, TEXT, column.type, settings=self._settings)
        except LakeError as error:
            raise type(error)(
                error.message,
                detail=f"COPY {self._table.name}, rows {self._rows + 1} to {self._rows + len(starts)}, column {name}",
                about=about(self._table, column=name),
            ) from None

    def _texts(self, name: str, body: Any, starts: Any, lengths: Any, is_special: bool) -> pa.Array:
        offsets = np.empty(len(starts) + 1, np.int32)
        made = np.empty(int(np.maximum(lengths, 0).sum()), np.uint8)
        if not is_special:
            fields.gather_texts(body, starts, lengths, offsets, made)
        elif self._copy.csv:
            fields.unquote_texts(body, starts, lengths, self._signs, offsets, made)
        else:
            fields.unescape_texts(body, starts, lengths, _CONTROL_BYTES, offsets, made)
        try:
            return views.text_array(offsets, made, pa.binary(), (lengths >= 0).view(np.uint8)).cast(pa.string())
        except pa.ArrowInvalid:
            raise BadCopyData(f'invalid byte sequence for encoding "UTF8" in column "{name}"') from None


def _kinds_of(copy: Copy) -> Any:
    kinds = np.full(256, fields.PLAIN, np.uint8)
    kinds[ord("\n")], kinds[ord("\r")], kinds[ord("\\")] = fields.NEWLINE, fields.RETURN, fields.BACKSLASH
    if copy.csv:
        kinds[ord(copy.quote)] = fields.QUOTE
    kinds[ord(copy.delimiter)] = fields.DELIMITER
    return kinds


def _bytes_of(text: str) -> Any:
    return np.frombuffer(text.encode(), np.uint8).copy()


_CONTROL_BYTES: Final = np.arange(256, dtype=np.uint8)
for _letter, _control in _CONTROLS.items():
    _CONTROL_BYTES[ord(_letter)] = ord(_control)


def _after_header(copy: Copy, body: bytes, is_last: bool) -> tuple[int, int]:
    """Where the rows behind the line of names begin and how that line ends; 0 where its end has not come."""
    for found in (_LINE_END if copy.csv else _END_OR_ESCAPE).finditer(body):
        if found.end() == len(body) and not is_last:
            break  # a newline may follow a return
        if found[0].startswith(b"\\"):
            continue
        if not copy.csv or body.count(copy.quote.encode(), 0, found.start()) % 2 == 0:
            return found.end(), _STYLES[found[0]]
    return (len(body) if is_last else 0), fields.UNKNOWN
