"""Batches to Parquet files that decode fastest and that any other tool reads.

Files of up to FILE_ROWS rows in row groups of one size, at most GROUP_ROWS rows, which is a batch of the engine. How a column
is stored is decided by its first rows (``encodings``). ``README.md`` has the measurements.

    batches ── cut at FILE_ROWS ── file 1 ── thread 1 ──┐
                                └─ file 2 ── thread 2 ──┴── DataFile records, in the order of the rows
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.clock import Clock
from lake.errors import DiskFull, IoFailure
from lake.storage.catalog import sketches
from lake.storage.catalog.changes import Placed
from lake.storage.catalog.deletes import Positions, encode_numbers
from lake.storage.catalog.model import (
    DELETED,
    ROW_ID,
    UPDATED_AT,
    VERSION,
    Column,
    ColumnRange,
    DataFile,
    Table,
)
from lake.storage.objects.base import ObjectStore, ObjectWriter
from lake.storage.tables.arrange import arrange, is_arranged
from lake.storage.tables.columns import stored_type, to_stored
from lake.storage.tables.encodings import Encodings, encodings_of
from lake.storage.tables.keys import Ints
from lake.types import BOOLEAN, Text, Type

if TYPE_CHECKING:
    import pyarrow.parquet as pq

GROUP_ROWS: Final = 262_144
CLUSTERED_GROUP_ROWS: Final = 131_072
KEYED_GROUP_ROWS: Final = 65_536
PAGE_ROWS: Final = 65_536  # pyarrow's own choice, 20,000, costs a third more decoding
FILE_ROWS: Final = 4 * GROUP_ROWS
FILE_BYTES: Final = 256 << 20  # of Arrow buffers


class Written(Struct, frozen=True):
    """Files in the order of their rows, and sketches of all of them together by column id.

    places  of each file, of each of its rows the number in what was written; None where rows kept their order, or
            were combined
    taken   rows that were written, those too that gave way to others of their key
    """

    files: tuple[DataFile, ...]
    sketches: dict[int, bytes]
    places: tuple[Ints | None, ...] = ()
    taken: int = 0

    @property
    def rows(self) -> int:
        """Rows in the files."""
        return sum(file.rows for file in self.files)


class Target(Struct, frozen=True):
    """Where files go and what they hold.

    has_system  whether the batches carry the hidden columns, which the files then do too
    """

    store: ObjectStore
    clock: Clock
    table: Table
    codec: str = "lz4"
    has_system: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The table's; of files written anew, dropped ones too, which the table's past still shows."""
        return self.table.stored_columns if self.has_system and not self.table.design.key else self.table.columns

    @property
    def group_rows(self) -> int:
        """Rows of a row group: fewer where filters are meant to skip some, fewer still where single rows are looked up."""
        design = self.table.design
        return KEYED_GROUP_ROWS if design.key else CLUSTERED_GROUP_ROWS if design.cluster else GROUP_ROWS

    def fields(self) -> list[tuple[str, Type]]:
        """Stored names and types in the order of the file."""
        own = [(column.stored, column.type) for column in self.columns]
        return own + (list(self.table.hidden_columns.items()) if self.has_system else [])


def write_files(
    target: Target,
    batches: Iterable[pa.RecordBatch],
    pool: ThreadPoolExecutor,
    *,
    workers: int,
    file_rows: int = FILE_ROWS,
) -> Written:
    """Writes ``batches``, of stored names and physical types, to as many files as it takes.

    At most ``workers`` files are written at once; another is collected meanwhile, and then the source waits.
    An error removes what was written, as far as the store lets it.
    53100  the store is full
    """
    pending: deque[Future[list[_Done]]] = deque()
    done: list[_Done] = []
    rows = 0
    try:
        for number, chunk in enumerate(_chunks(batches, file_rows)):
            while len(pending) >= workers:
                done += pending.popleft().result()
            pending.append(pool.submit(_write_chunk, target, chunk, number, rows))
            rows += sum(batch.num_rows for batch in chunk)
        while pending:
            done += pending.popleft().result()
    except BaseException:
        for future in pending:
            if future.exception() is None:
                done += future.result()
        for file, _, _ in done:
            target.store.delete(file.path)
        raise
    sketched = folded_sketches([found for _, found, _ in done])
    return Written(tuple(file for file, _, _ in done), sketched, tuple(places for _, _, places in done), rows)


def placed_in(written: Written, gone: Positions) -> Placed:
    """Where rows that are gone, counted in what was written, are in the files that hold it in another order."""
    found: Placed = {}
    if not gone.rows:
        return found
    for file, places in zip(written.files, written.places, strict=True):
        assert places is not None, "rows in another order have their places"
        at = np.minimum(np.searchsorted(gone.at, places), gone.rows - 1)
        rows = np.flatnonzero(gone.at[at] == places)
        if len(rows):
            found[file.path] = encode_numbers(rows), encode_numbers(gone.numbers[at[rows]])
    return found


def folded_sketches(found: Sequence[dict[int, bytes]]) -> dict[int, bytes]:
    """One sketch for each column of several files."""
    ids = {id for each in found for id in each}
    return {id: sketches.merged(each[id] for each in found if id in each) for id in sorted(ids)}


def _chunks(batches: Iterable[pa.RecordBatch], file_rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Batches in lists of ``file_rows`` rows, the last one shorter; a list ends early at FILE_BYTES."""
    chunk: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        while batch.num_rows:
            taken = batch.slice(0, file_rows - rows)
            batch = batch.slice(taken.num_rows)
            chunk.append(taken)
            rows += taken.num_rows
            size += taken.nbytes
            if rows >= file_rows or size >= FILE_BYTES:
                yield chunk
                chunk, rows, size = [], 0, 0
    if chunk:
        yield chunk


_Done = tuple[DataFile, dict[int, bytes], Ints | None]


def _write_chunk(target: Target, batches: list[pa.RecordBatch], number: int, first: int) -> list[_Done]:
    """Writes the files that rows make, of which the first is row ``first`` of all: one, or one for each partition."""
    if not is_arranged(target.table):
        return [(*_write_file(target, batches), None)]
    done: list[_Done] = []
    try:
        for piece in arrange(target.table, batches):
            file, found = _write_file(target, [piece.rows])
            places = None if piece.places is None else piece.places + first
            done.append((msgspec.structs.replace(file, generation=number), found, places))
    except BaseException:
        for file, _, _ in done:
            target.store.delete(file.path)
        raise
    return done


def _write_file(target: Target, batches: list[pa.RecordBatch]) -> tuple[DataFile, dict[int, bytes]]:
    """Writes one file."""
    fields = target.fields()
    stored_as = encodings_of(batches[0], fields, target.codec)
    name = f"data/{target.table.folder}/{uuid.UUID(int=target.clock.random.getrandbits(128), version=4)}.parquet"
    output = target.store.open_writer(name)
    schema = pa.schema([(stored, stored_type(type)) for stored, type in fields])
    seen = [_ColumnSeen(type) for _, type in fields]
    groups: list[int] = []
    try:
        with _parquet_writer(output, schema, stored_as) as writer:
            for table in _row_groups(batches, fields, target.group_rows):
                for column, values in zip(seen, table.columns):
                    column.add(values.chunks)
                arrays = [
                    pa.chunked_array([to_stored(chunk, type) for chunk in values.chunks], stored_type(type))
                    for values, (_, type) in zip(table.columns, fields)
                ]
                writer.write_table(pa.table(arrays, schema=schema), row_group_size=target.group_rows)
                groups.append(table.num_rows)
        size = output.close()
    except OSError as error:
        output.abort()
        raise (DiskFull if error.errno in (28, 122) else IoFailure)(f"cannot write {name}: {error}") from error
    except BaseException:
        output.abort()
        raise
    return _record(target, name, size, groups, stored_as.dictionaries, seen)


def _parquet_writer(output: ObjectWriter, schema: pa.Schema, stored_as: Encodings) -> pq.ParquetWriter:
    import pyarrow.parquet as pq

    return pq.ParquetWriter(
        output.sink,
        schema,
        compression=stored_as.codecs,
        use_dictionary=list(stored_as.dictionaries) or False,
        column_encoding=dict.fromkeys(stored_as.deltas, "DELTA_BINARY_PACKED") or None,
        store_decimal_as_integer=True,
        max_rows_per_page=PAGE_ROWS,
        write_statistics=True,
    )


def _row_groups(
    batches: list[pa.RecordBatch], fields: list[tuple[str, Type]], group_rows: int
) -> Iterator[pa.Table]:
    names = [stored for stored, _ in fields]
    columns = [[batch.column(name) for batch in batches] for name in names]
    plain = [
        pa.chunked_array([_without_codes(array) for array in arrays], type.physical)
        for arrays, (_, type) in zip(columns, fields)
    ]
    table = pa.table(plain, names=names)
    for start, stop in pairwise(_cuts(table.num_rows, group_rows)):
        yield table.slice(start, stop - start)


def _cuts(rows: int, most: int) -> list[int]:
    """Where ``rows`` rows are cut so that pieces have at most so many and are of one size."""
    count = -(-rows // most)
    return [rows * number // count for number in range(count + 1)] if count else []


def _without_codes(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


class _ColumnSeen:
    """What is learned of a column while a file is written."""

    def __init__(self, type: Type) -> None:
        self._type = type
        self._ends: list[tuple[object, object]] = []
        self._sketches: list[bytes] = []
        self._is_unknown = False
        self.nulls = 0
        self.trues = 0

    def add(self, chunks: Sequence[pa.Array]) -> None:
        for array in chunks:
            self.nulls += array.null_count
            if array.null_count == len(array):
                continue
            if self._type == BOOLEAN:
                self.trues += array.true_count
            self._sketches.append(sketches.sketch_of(array))
            low, high = sketches.range_of(array, self._type)
            if low is None:
                self._is_unknown = True
            else:
                self._ends.append((low, high))

    @property
    def range(self) -> ColumnRange:
        if self._is_unknown or not self._ends:
            return ColumnRange(None, None, self.nulls)
        low = min(end[0] for end in self._ends)  # type: ignore[type-var]
        high = max(end[1] for end in self._ends)  # type: ignore[type-var]
        return ColumnRange(low, high, self.nulls)  # type: ignore[arg-type]

    @property
    def sketch(self) -> bytes:
        return sketches.merged(self._sketches)


def _record(
    target: Target, name: str, size: int, groups: list[int], dictionaries: Sequence[str], seen: list[_ColumnSeen]
) -> tuple[DataFile, dict[int, bytes]]:
    coded = {column.stored for column in target.columns if isinstance(column.type, Text)} & set(dictionaries)
    own = list(zip(target.columns, seen))
    names = [stored for stored, _ in target.fields()[len(own) :]]
    system = dict(zip(names, seen[len(own) :]))
    file = DataFile(
        path=name,
        rows=sum(groups),
        bytes=size,
        groups=tuple(groups),
        ranges={column.id: found.range for column, found in own},
        dictionaries=tuple(sorted(coded)),
        has_system=target.has_system,
    )
    if system:
        file = _with_system(file, system)
    return file, {column.id: found.sketch for column, found in own if found.sketch != sketches.EMPTY}


def _with_system(file: DataFile, system: dict[str, _ColumnSeen]) -> DataFile:
    return msgspec.structs.replace(
        file,
        row_id=system[ROW_ID].range.low,
        row_id_high=system[ROW_ID].range.high,
        version=system[VERSION].range.low,
        version_high=system[VERSION].range.high,
        created=system[UPDATED_AT].range.high,
        markers=system[DELETED].trues if DELETED in system else 0,
    )
