"""CSV and newline-delimited JSON files outside the lake, through Arrow's parsers.

Types come from the first block of the first file, unless they are given. A file is one part: its parser uses threads of
its own. Source: RFC 4180 (CSV); jsonlines.org.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.json as pajson

from lake.errors import InvalidParameter, InvalidText, IoFailure
from lake.rows import Part, Predicate, physical_array
from lake.storage.external.files import ExternalTable
from lake.types import Type, from_arrow

BLOCK_BYTES: Final = 4 << 20
BATCH_ROWS: Final = 65_536
NULL_SPELLINGS: Final = ("", "NULL", "\\N")


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How CSV files are written.

    columns  names and types by position, in place of what the file says
    """

    header: bool = True
    delimiter: str | None = None
    quote: str = '"'
    escape: str | None = None
    comment: str | None = None
    null: tuple[str, ...] = NULL_SPELLINGS
    columns: Mapping[str, Type] = field(default_factory=dict)


def open_csv(paths: Sequence[str], options: CsvOptions) -> ExternalTable:
    """CSV files as one table.

    22P02  a value that is not of its column's type      58030  a file that cannot be read
    """
    if options.comment is not None:
        raise InvalidParameter("read_csv: comment is not supported yet")
    if options.columns:
        types = dict(options.columns)
    else:
        with _opened(_csv_reader, paths[0], options, {}) as reader:
            types = {item.name: from_arrow(item.type) for item in reader.schema}
    return ExternalTable(tuple(types.items()), TextRows(tuple(paths), types, partial(_csv_reader, options=options)), None)


def open_json(paths: Sequence[str], *, columns: Mapping[str, Type] | None = None) -> ExternalTable:
    """Newline-delimited JSON files as one table.

    22P02  a line that is not JSON      58030  a file that cannot be read
    """
    if columns:
        types = dict(columns)
    else:
        with _opened(_json_reader, paths[0], None, {}) as reader:
            types = {item.name: from_arrow(item.type) for item in reader.schema}
    return ExternalTable(tuple(types.items()), TextRows(tuple(paths), types, partial(_json_reader, options=None)), None)


@dataclass(frozen=True, slots=True)
class TextRows:
    """Rows of text files; ``reader`` opens one with the types of its columns."""

    paths: tuple[str, ...]
    types: Mapping[str, Type]
    reader: Any

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """A part for each file."""
        return [Part(None, partial(self._read, path, tuple(columns))) for path in self.paths]

    def _read(self, path: str, columns: tuple[str, ...]) -> Iterable[pa.RecordBatch]:
        try:
            with self.reader(path, types=self.types) as reader:
                for batch in reader:
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        yield self._shaped(batch.slice(start, BATCH_ROWS), columns)
        except pa.ArrowInvalid as error:
            raise InvalidText(f'"{Path(path).name}": {str(error).splitlines()[0]}') from None
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


def _opened(reader: Any, path: str, options: Any, types: Mapping[str, Type]) -> Any:
    try:
        return reader(path, options=options, types=types)
    except pa.ArrowInvalid as error:
        raise InvalidText(f'"{Path(path).name}": {str(error).splitlines()[0]}') from None
    except OSError as error:
        raise IoFailure(f'"{path}" cannot be read: {error}') from None


def _csv_reader(path: str, *, options: CsvOptions, types: Mapping[str, Type]) -> csv.CSVStreamingReader:
    delimiter = options.delimiter or ("\t" if path.lower().endswith(".tsv") else ",")
    names = list(options.columns) or None
    return csv.open_csv(
        path,
        read_options=csv.ReadOptions(
            block_size=BLOCK_BYTES, column_names=names, skip_rows=1 if names and options.header else 0,
            autogenerate_column_names=not options.header and names is None,
        ),
        parse_options=csv.ParseOptions(
            delimiter=delimiter, quote_char=options.quote or False, escape_char=options.escape or False,
            newlines_in_values=True,
        ),
        convert_options=csv.ConvertOptions(
            column_types={name: type.arrow for name, type in types.items()},
            null_values=list(options.null), strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=["true", "True", "TRUE", "t"], false_values=["false", "False", "FALSE", "f"],
        ),
    )  # fmt: skip


def _json_reader(path: str, *, options: None, types: Mapping[str, Type]) -> Any:
    schema = pa.schema([(name, type.arrow) for name, type in types.items()]) if types else None
    return pajson.open_json(
        path,
        read_options=pajson.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore" if types else "infer"),
    )
