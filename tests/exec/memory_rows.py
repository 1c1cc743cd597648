"""Tables in memory and outside Parquet files as the engine's RowSource, for tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lake.exec import Context, run
from lake.exec.operators.base import MORSEL_ROWS
from lake.rows import Part, Predicate, answer_array, physical_array
from lake.sql import plan
from lake.sql.bound import Column
from lake.sql.catalog import ColumnStatistics, Settings, Table, TableColumn, TableStatistics
from lake.types import TEXT, Type, from_arrow

_IDS = itertools.count(1)
SETTINGS = Settings(now=0)


class MemoryRows:
    """Batches of one table; each batch is a part. ``asked`` notes what was asked for."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self.batches = list(batches)
        self.asked: list[tuple[tuple[str, ...], tuple[Predicate, ...]]] = []
        self.read_parts = 0

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """A part for each batch."""
        self.asked.append((tuple(columns), tuple(predicates)))
        return [Part(batch.num_rows, lambda batch=batch: self._read(batch, columns)) for batch in self.batches]

    def _read(self, batch: pa.RecordBatch, columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
        self.read_parts += 1
        yield batch.select(list(columns))


class ParquetRows:
    """An outside Parquet file: a part for each row group; text stays in dictionaries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.schema = pq.read_schema(path)
        self.metadata = pq.read_metadata(path)
        self.types = {item.name: from_arrow(item.type) for item in self.schema}
        self.texts = [name for name, type in self.types.items() if type == TEXT]

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """A part for each row group."""
        return [
            Part(self.metadata.row_group(index).num_rows, lambda index=index: self._read(index, columns))
            for index in range(self.metadata.num_row_groups)
        ]

    def _read(self, group: int, columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
        with pq.ParquetFile(self.path, read_dictionary=[name for name in self.texts if name in columns]) as file:
            for batch in file.iter_batches(65_536, [group], list(columns)):
                arrays = [physical_array(batch.column(name), self.types[name]) for name in columns]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def table_of(name: str, data: dict[str, tuple[Type, list[Any]]], pieces: int = 1) -> tuple[Table, MemoryRows]:
    """A table of Python values in physical form, cut into about so many parts."""
    arrays = {column: pa.array(values, type.physical) for column, (type, values) in data.items()}
    return table_of_arrays(name, {column: (data[column][0], array) for column, array in arrays.items()}, pieces)


def table_of_arrays(name: str, data: dict[str, tuple[Type, pa.Array]], pieces: int = 1) -> tuple[Table, MemoryRows]:
    """A table of Arrow arrays in physical form."""
    whole = pa.RecordBatch.from_arrays([array for _, array in data.values()], names=list(data))
    step = max(1, -(-whole.num_rows // pieces))
    rows = MemoryRows([whole.slice(start, step) for start in range(0, whole.num_rows, step)])
    columns = tuple(TableColumn(column, type) for column, (type, _) in data.items())
    return Table((name,), columns, rows, lambda: TableStatistics(float(whole.num_rows))), rows


def parquet_table(path: Path) -> Table:
    """An outside Parquet file as a table."""
    rows = ParquetRows(path)
    columns = tuple(TableColumn(name, type) for name, type in rows.types.items())
    return Table((path.stem,), columns, rows, lambda: _statistics(rows))


def _statistics(rows: ParquetRows) -> TableStatistics:
    count = float(rows.metadata.num_rows)
    columns = {}
    for index, name in enumerate(rows.types):
        least, most = None, None
        for group in range(rows.metadata.num_row_groups):
            found = rows.metadata.row_group(group).column(index).statistics
            if found is None or not found.has_min_max or not isinstance(found.min, int):
                break
            least = found.min if least is None else min(least, found.min)
            most = found.max if most is None else max(most, found.max)
        distinct = min(count, most - least + 1.0) if least is not None and most is not None else None
        columns[name] = ColumnStatistics(least, most, 0.0, distinct)
    return TableStatistics(count, columns)


def column(name: str, type: Type) -> Column:
    """A column with an id of its own."""
    return Column(type, next(_IDS), name)


def scan(table: Table, *names: str) -> plan.Scan:
    """A scan of some columns, all where none are named."""
    types = {item.name: item.type for item in table.columns}
    wanted = names or tuple(types)
    return plan.Scan(table, tuple(column(name, types[name]) for name in wanted), tuple(wanted))


def context(**given: Any) -> Context:
    """A context for tests."""
    return Context(SETTINGS, **given)


def rows_of(node: plan.Plan, **given: Any) -> list[tuple[Any, ...]]:
    """A plan's answer as Python tuples, decimals as decimals."""
    answer = run(node, context(**given))
    rows: list[tuple[Any, ...]] = []
    for batch in answer.batches():
        assert batch.num_rows <= MORSEL_ROWS
        values = [answer_array(array, item.type).to_pylist() for array, item in zip(batch.columns, answer.columns)]
        rows += zip(*values, strict=True) if values else [()] * batch.num_rows
    return rows
