"""Parquet files outside the lake: a part for each row group that the predicates do not rule out.

Columns are those of the first file; in the others they are found by name, and one that is missing is NULL.
Source: the Apache Parquet format, row group statistics.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal as PyDecimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from msgspec import Struct

from lake.errors import IoFailure, UndefinedColumn
from lake.rows import Part, Predicate, RowSource, physical_array
from lake.storage.external.files import ExternalTable
from lake.types import Date, Decimal, Text, Timestamp, Type, from_arrow

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BATCH_ROWS: Final = 65_536
CODE_BYTES_MAX: Final = 2.5
"""Bytes a value of a column may take, uncompressed, for its text to be read as dictionary codes."""


def open_parquet(paths: Sequence[str], *, columns: dict[str, Type] | None = None, by_name: bool = False) -> ExternalTable:
    """The files as one table.

    columns  types to read columns as, by name; others keep the file's
    by_name  columns of all files, not only of the first (``union_by_name``)
    58030    a file that is not Parquet
    """
    files = [_File(path, _open(path).metadata) for path in paths]
    found: dict[str, Type] = {}
    for file in files if by_name else files[:1]:
        for field in _open(file.path).schema_arrow:
            found.setdefault(field.name, from_arrow(field.type))
    for name, type in (columns or {}).items():
        if name not in found:
            raise UndefinedColumn(f'column "{name}" is not in {paths[0]}')
        found[name] = type
    rows = sum(file.metadata.num_rows for file in files)
    return ExternalTable(tuple(found.items()), ParquetRows(tuple(files), found), rows)


class _File(Struct, frozen=True):
    path: str
    metadata: pq.FileMetaData


class ParquetRows(Struct, frozen=True):
    """Rows of Parquet files."""

    files: tuple[_File, ...]
    types: dict[str, Type]

    def single(self, place: int) -> RowSource:
        """The rows of one file."""
        return ParquetRows((self.files[place],), self.types)

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """A part for each row group that may hold a row for which all predicates are true."""
        found: list[Part] = []
        for file in self.files:
            places = {file.metadata.schema.column(i).path: i for i in range(file.metadata.num_columns)}
            coded = self._coded(file, columns, places)
            for group in range(file.metadata.num_row_groups):
                record = file.metadata.row_group(group)
                if any(_rules_out(record, places, test, self.types[test.column]) for test in predicates):
                    continue
                found.append(Part(record.num_rows, partial(self._read, file, group, tuple(columns), coded)))
        return found

    def _coded(self, file: _File, columns: Sequence[str], places: dict[str, int]) -> tuple[str, ...]:
        """Text columns whose values repeat so often that they are read as codes."""
        if not file.metadata.num_row_groups:
            return ()
        record = file.metadata.row_group(0)
        names = []
        for name in columns:
            if name in places and isinstance(self.types[name], Text) and record.num_rows:
                chunk = record.column(places[name])
                small = chunk.total_uncompressed_size <= CODE_BYTES_MAX * record.num_rows
                if small and chunk.has_dictionary_page:
                    names.append(name)
        return tuple(names)

    def _read(self, file: _File, group: int, columns: tuple[str, ...], coded: tuple[str, ...]) -> Iterable[pa.RecordBatch]:
        source = _open(file.path, file.metadata, coded)
        present = [name for name in columns if name in source.schema_arrow.names]
        if not present:
            rows = file.metadata.row_group(group).num_rows
            for start in range(0, rows, BATCH_ROWS):
                yield self._shaped(_empty(min(BATCH_ROWS, rows - start)), columns)
            return
        table = source.read_row_group(group, columns=present, use_threads=False)
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            yield self._shaped(batch, columns)

    def _shaped(self, batch: pa.RecordBatch, columns: tuple[str, ...]) -> pa.RecordBatch:
        """The columns asked for, in order and physical form."""
        if not columns:
            return batch.select([])
        arrays = []
        for name in columns:
            type = self.types[name]
            if name in batch.schema.names:
                arrays.append(physical_array(batch.column(name), type))
            else:
                arrays.append(pa.nulls(batch.num_rows, type.physical))
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _open(path: str, metadata: pq.FileMetaData | None = None, coded: Sequence[str] = ()) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, metadata=metadata, read_dictionary=list(coded) or None, memory_map=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise IoFailure(f'"{path}" cannot be read as Parquet: {str(error).splitlines()[0]}') from None


def _empty(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(rows)], ["rows"])


def _rules_out(record: pq.RowGroupMetaData, places: dict[str, int], test: Predicate, type: Type) -> bool:
    """Whether no row of the group can satisfy ``test``; False where the statistics do not tell."""
    if test.column not in places:
        return False
    statistics = record.column(places[test.column]).statistics
    if statistics is None:
        return False
    if test.op == "is not null":
        return bool(statistics.has_null_count and statistics.null_count == record.num_rows)
    if not statistics.has_min_max:
        return False
    low, high = _physical(statistics.min, type), _physical(statistics.max, type)
    if low is None or high is None:
        return False
    check = _OUTSIDE.get(test.op)
    try:
        return check is not None and check(low, high, test.value)
    except TypeError:
        return False


_OUTSIDE: Final[dict[str, Callable[[Any, Any, Any], bool]]] = {
    "=": lambda low, high, value: value < low or value > high,
    "<": lambda low, high, value: low >= value,
    "<=": lambda low, high, value: low > value,
    ">": lambda low, high, value: high <= value,
    ">=": lambda low, high, value: high < value,
    "in": lambda low, high, values: all(value is None or value < low or value > high for value in values),
}


def _physical(value: Any, type: Type) -> Any:
    """A statistic in physical form, or None for a type whose statistics are not used."""
    match type:
        case Date() if isinstance(value, datetime.date):
            return (value - datetime.date(1970, 1, 1)).days
        case Timestamp() if isinstance(value, datetime.datetime):
            naive = value.replace(tzinfo=None)
            return (naive - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
        case Decimal(scale=scale) if isinstance(value, PyDecimal):
            return int(value.scaleb(scale))
        case _ if isinstance(value, bool | int | str):
            return value
        case _:
            return None
