"""CSV and newline-delimited JSON files outside the lake, through Arrow's parsers.

Types come from the first block of the first file (with ``union_by_name`` of every file), unless they are given. A file is
one part: its parser uses threads of its own, and turns only the columns asked for into values. A file whose name ends in
.gz, .bz2, .zst or .lz4 is decompressed on the way. Source: RFC 4180 (CSV); jsonlines.org.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.json as pajson
from msgspec import Struct, field

from lake.errors import InvalidText, IoFailure
from lake.late import late_pattern
from lake.rows import Part, Predicate, RowSource, physical_array
from lake.storage.external.files import ExternalTable
from lake.types import BIGINT, DOUBLE, NULL, TEXT, Type, from_arrow

BLOCK_BYTES: Final = 4 << 20
BATCH_ROWS: Final = 65_536
NULL_SPELLINGS: Final = ("", "NULL", "\\N")


class CsvOptions(Struct, frozen=True):
    """How CSV files are written.

    columns   names and types by position, in place of what the file says
    comment   lines that begin with it are skipped
    new_line  ``\\r`` for files whose lines end with a carriage return alone
    """

    header: bool = True
    delimiter: str | None = None
    quote: str = '"'
    escape: str | None = None
    comment: str | None = None
    new_line: str | None = None
    null: tuple[str, ...] = NULL_SPELLINGS
    columns: Mapping[str, Type] = field(default_factory=dict)


def open_csv(paths: Sequence[str], options: CsvOptions, *, by_name: bool = False) -> ExternalTable:
    """CSV files as one table; ``by_name`` takes the columns of all files, not only of the first.

    22P02  a value that is not of its column's type      58030  a file that cannot be read
    """
    types = dict(options.columns) or _types_of(paths, partial(_csv_reader, options=options), by_name)
    return ExternalTable(tuple(types.items()), TextRows(tuple(paths), types, partial(_csv_reader, options=options)), None)


def open_json(
    paths: Sequence[str], *, columns: Mapping[str, Type] | None = None, by_name: bool = False
) -> ExternalTable:
    """Newline-delimited JSON files as one table; ``by_name`` takes the columns of all files, not only of the first.

    22P02  a line that is not JSON      58030  a file that cannot be read
    """
    types = dict(columns or {}) or _types_of(paths, _json_reader, by_name)
    return ExternalTable(tuple(types.items()), TextRows(tuple(paths), types, _json_reader), None)


def _types_of(paths: Sequence[str], reader: Any, by_name: bool) -> dict[str, Type]:
    """The columns that files say: one that files tell different types of is the wider number, else text."""
    types: dict[str, Type] = {}
    for path in paths if by_name else paths[:1]:
        with _opened(reader, path) as opened:
            for item in opened.schema:
                types[item.name] = _wider(types.get(item.name, NULL), from_arrow(item.type))
    return types


def _wider(one: Type, two: Type) -> Type:
    if one in (two, NULL):
        return two
    if two == NULL:
        return one
    return DOUBLE if {one, two} == {BIGINT, DOUBLE} else TEXT


class TextRows(Struct, frozen=True):
    """Rows of text files; ``reader`` opens one with the types of its columns and the names of those that are wanted."""

    paths: tuple[str, ...]
    types: Mapping[str, Type]
    reader: Any

    def single(self, place: int) -> RowSource:
        """The rows of one file."""
        return TextRows((self.paths[place],), self.types, self.reader)

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """A part for each file."""
        return [Part(None, partial(self._read, path, tuple(columns))) for path in self.paths]

    def _read(self, path: str, columns: tuple[str, ...]) -> Iterable[pa.RecordBatch]:
        try:
            with self.reader(path, types=self.types, wanted=columns or tuple(self.types)[:1]) as reader:
                for batch in reader:
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        yield self._shaped(batch.slice(start, BATCH_ROWS), columns)
        except pa.ArrowInvalid as error:
            raise _bad_text(path, error) from None
        except OSError as error:
            raise IoFailure(f'"{path}" cannot be read: {error}') from None

    def _shaped(self, batch: pa.RecordBatch, columns: tuple[str, ...]) -> pa.RecordBatch:
        if not columns:
            return batch.select([])
        arrays = [
            physical_array(batch.column(name), self.types[name])
            if name in batch.schema.names
            else pa.nulls(batch.num_rows, self.types[name].physical)
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _opened(reader: Any, path: str) -> Any:
    try:
        return reader(path, types={}, wanted=())
    except pa.ArrowInvalid as error:
        raise _bad_text(path, error) from None
    except OSError as error:
        raise IoFailure(f'"{path}" cannot be read: {error}') from None


def _bad_text(path: str, error: pa.ArrowInvalid) -> InvalidText:
    return InvalidText(
        f'"{Path(path).name}": {str(error).splitlines()[0]}',
        hint="columns => {name: 'VARCHAR', ..} says what the columns are" if "conversion error" in str(error) else None,
    )


def _csv_reader(
    path: str, *, options: CsvOptions, types: Mapping[str, Type], wanted: Sequence[str]
) -> csv.CSVStreamingReader:
    is_tabbed = ".tsv" in "".join(Path(path).suffixes).lower()
    names = list(options.columns) or None
    return csv.open_csv(
        _csv_source(path, options.comment, options.new_line),
        read_options=csv.ReadOptions(
            block_size=BLOCK_BYTES, column_names=names, skip_rows=1 if names and options.header else 0,
            autogenerate_column_names=not options.header and names is None,
        ),
        parse_options=csv.ParseOptions(
            delimiter=options.delimiter or ("\t" if is_tabbed else ","), quote_char=options.quote or False,
            escape_char=options.escape or False, newlines_in_values=True,
        ),
        convert_options=csv.ConvertOptions(
            column_types={name: type.arrow for name, type in types.items()},
            null_values=list(options.null), strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=["true", "True", "TRUE", "t"], false_values=["false", "False", "FALSE", "f"],
            include_columns=list(wanted), include_missing_columns=bool(wanted),
        ),
    )  # fmt: skip


def _json_reader(path: str, *, types: Mapping[str, Type], wanted: Sequence[str]) -> Any:
    schema = pa.schema([(name, types[name].arrow) for name in wanted]) if wanted else None
    return pajson.open_json(
        _filtered(path, _objects),
        read_options=pajson.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore" if types else "infer"),
    )


# --- lines on their way to the parser ----------------------------------------------------------------------------------


def _csv_source(path: str, comment: str | None, new_line: str | None) -> Any:
    """What Arrow's parser reads: the path, or the file without comments and with line feeds."""
    if comment is None and new_line != "\r":
        return path
    pattern = None if comment is None else re.compile(rb"(?m)^" + re.escape(comment.encode()) + rb"[^\n]*(?:\n|\Z)")
    return _filtered(path, (lambda lines: lines) if pattern is None else partial(pattern.sub, b""), new_line == "\r")


def _objects(lines: bytes) -> bytes:
    """Lines of which none is null: at one in the place of a block's first object Arrow's reader ends the process."""
    if b"null" in lines and _NULL_LINE.search(lines):
        raise pa.ArrowInvalid("JSON parse error: a row is an object, and there is a row that is null")
    return lines


_NULL_LINE: Final = late_pattern(rb"(?m)^[ \t\r]*null")


def _filtered(path: str, change: Callable[[bytes], bytes], is_returned: bool = False) -> Any:
    """The file with its lines as ``change`` answers them."""
    opened = pa.input_stream(path, compression="detect", buffer_size=BLOCK_BYTES)
    return pa.PythonFile(_Lines(opened, change, is_returned), mode="r")


class _Lines(io.RawIOBase):
    """A file whose lines are changed, some whole lines at a time; ``is_returned`` where carriage returns end them."""

    def __init__(self, inner: Any, change: Callable[[bytes], bytes], is_returned: bool) -> None:
        self._inner, self._change, self._is_returned = inner, change, is_returned
        self._ready, self._rest = b"", b""
        self._at = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes; none at the end."""
        while self._at >= len(self._ready):
            if not self._fill():
                return b""
        end = len(self._ready) if size < 0 else self._at + size
        found = self._ready[self._at : end]
        self._at += len(found)
        return found

    def _fill(self) -> bool:
        """Makes the next whole lines ready."""
        block = self._inner.read(BLOCK_BYTES)
        if self._is_returned:
            block = block.replace(b"\r", b"\n")
        lines = self._rest + block
        cut = lines.rfind(b"\n") + 1 if block else len(lines)
        self._rest, lines = lines[cut:], lines[:cut]
        self._ready, self._at = self._change(lines), 0
        return bool(block) or bool(self._ready)

    def close(self) -> None:
        """Closes the file."""
        self._inner.close()
        super().close()
