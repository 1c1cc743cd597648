"""Parquet files of the lake to batches, one row group at a time.

    Footers            parsed footers, bounded
    read_group         a row group's columns, from hot memory or decoded, in physical types, without rows that are gone
    row_batches        whole arrays cut to batches of MORSEL_ROWS rows

Text columns with few values are read as dictionary codes. Decimals come as scaled int64, a view of what was decoded. The
system columns are read where the file has them and computed where it has not. Columns a file lacks are NULL, or what they
were added with.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from lake.errors import DataCorrupted
from lake.narrow import widened
from lake.storage.catalog.deletes import NONE, Numbers
from lake.storage.catalog.model import CREATED_AT, ROW_ID, SYSTEM_COLUMNS, UPDATED_AT, VERSION, Column, DataFile
from lake.storage.objects.base import ObjectMissing, ObjectStore
from lake.storage.tables.columns import absent, from_stored
from lake.storage.tables.hot import LIVING, HotColumns
from lake.storage.tables.pages import ROWS_MIN, decode_chunk
from lake.storage.tables.prune import GroupRanges
from lake.types import Type

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MORSEL_ROWS: Final = 262_144
# Where a row is in one snapshot: which file and which row of it. A column that storage alone answers, for writers of
# changes; ``TableSnapshot.deletes_at`` takes it back.
PLACE: Final = "_place"
PLACE_BITS: Final = 40
FOOTER_BYTES_MAX: Final = 128 << 20  # of footers kept, as they are serialised


class Layout(Struct, frozen=True):
    """The columns of a file: places by path, Arrow types by name, maximum definition levels by place; ranges asked for."""

    places: dict[str, int]
    types: dict[str, pa.DataType]
    levels: tuple[int, ...]
    ranges: GroupRanges


class Footers:
    """Footers of files, parsed once and kept within FOOTER_BYTES_MAX."""

    def __init__(self, budget: int = FOOTER_BYTES_MAX) -> None:
        self._budget = budget
        self._kept: OrderedDict[str, pq.FileMetaData] = OrderedDict()
        self._layouts: dict[str, Layout] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def layout(self, path: str, footer: pq.FileMetaData) -> Layout:
        """The columns of the file."""
        found = self._layouts.get(path)
        if found is None:
            columns = [footer.schema.column(place) for place in range(footer.num_columns)]
            found = Layout(
                {column.path: place for place, column in enumerate(columns)},
                {field.name: field.type for field in footer.schema.to_arrow_schema()},
                tuple(column.max_definition_level for column in columns),
                GroupRanges(footer),
            )
            with self._lock:
                if path in self._kept:
                    self._layouts[path] = found
        return found

    def get(self, path: str) -> pq.FileMetaData | None:
        """The footer, or None."""
        with self._lock:
            found = self._kept.get(path)
            if found is not None:
                self._kept.move_to_end(path)
            return found

    def put(self, path: str, footer: pq.FileMetaData) -> None:
        """Keeps a footer."""
        with self._lock:
            if path in self._kept:
                return
            self._kept[path] = footer
            self._bytes += footer.serialized_size
            while self._bytes > self._budget and len(self._kept) > 1:
                name, gone = self._kept.popitem(last=False)
                self._layouts.pop(name, None)
                self._bytes -= gone.serialized_size


class NotInMemory(Exception):
    """What was asked for is not in memory, and who asks cannot wait for it."""


class Reader(Struct, frozen=True):
    """What reading needs: the store and the caches over it; one that does not wait raises NotInMemory instead."""

    store: ObjectStore
    footers: Footers
    hot: HotColumns
    waits: bool = True

    def open(self, file: DataFile, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
        """The file, its footer from the cache.

        XX001  it is missing or not Parquet
        """
        import pyarrow.parquet as pq

        if not self.waits:
            raise NotInMemory
        try:
            source = self.store.open_reader(file.path)
            known = self.footers.get(file.path)
            opened = pq.ParquetFile(source, metadata=known, read_dictionary=list(dictionaries), pre_buffer=False)
        except ObjectMissing:
            raise DataCorrupted(f"object {file.path} is missing from {self.store.address}") from None
        except (pa.ArrowException, OSError) as error:
            raise DataCorrupted(f"{file.path} cannot be read: {error}") from error
        if known is None:
            self.footers.put(file.path, opened.metadata)
        return opened

    def footer(self, file: DataFile) -> pq.FileMetaData:
        """The file's footer."""
        return self.footers.get(file.path) or self.open(file).metadata


class Wanted(Struct, frozen=True):
    """A column to read: the name answers give it, the name files give it, its type, and what it is where a file lacks it."""

    name: str
    stored: str
    type: Type
    missing: bytes = b""

    @staticmethod
    def named(column: Column) -> Wanted:
        """A column of a table under its name."""
        return Wanted(column.name, column.stored, column.type, column.missing)

    @property
    def hot_name(self) -> str:
        """Its name among hot columns: clones share files that lack a column, each with a value of its own for it."""
        return f"{self.stored} {self.missing.hex()}" if self.missing else self.stored

    @staticmethod
    def kept(column: Column) -> Wanted:
        """A column of a table under its stored name."""
        return Wanted(column.stored, column.stored, column.type, column.missing)


class Expiry(Struct, frozen=True):
    """Rows whose ``column`` is at or before ``cutoff``, in its physical form, are there no longer; NULL stays."""

    column: Wanted
    cutoff: int


class Visible(Struct, frozen=True):
    """Which rows of a row group are read.

    place   of the group's first row
    dead    rows of the group that are gone
    upto    the newest version to read, or None for all
    expiry  rows whose time is over, or None
    stamp   a number for ``dead``, under which what is left is kept in hot memory; 0 keeps nothing
    """

    place: int = 0
    dead: Numbers = field(default_factory=lambda: NONE.at)
    upto: int | None = None
    expiry: Expiry | None = None
    stamp: int = 0

    def kept(self, rows: int, versions: pa.Array | None, times: pa.Array | None) -> tuple[pa.Array, int]:
        """Which of ``rows`` rows are to be seen, as booleans, and how many.

        Of few rows left out, filtering by bits is three times as fast as taking by numbers.
        """
        mask = np.ones(rows, np.bool_)
        mask[self.dead] = False
        if self.upto is not None:
            assert versions is not None, "reading an older version takes the rows' versions"
            mask &= versions.to_numpy(zero_copy_only=False) <= self.upto
        if self.expiry is not None:
            assert times is not None, "rows that expire are read with their times"
            numbers = times.view(pa.int32() if pa.types.is_date32(times.type) else pa.int64())
            mask &= pc.fill_null(pc.greater(numbers, self.expiry.cutoff), True).to_numpy(zero_copy_only=False)
        bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), rows, [None, bits]), int(np.count_nonzero(mask))

    def needed(self) -> list[Wanted]:
        """Columns that ``kept`` takes."""
        found = [Wanted(VERSION, VERSION, SYSTEM_COLUMNS[VERSION])] if self.upto is not None else []
        return [*found, *([self.expiry.column] if self.expiry is not None else [])]

    @property
    def is_all(self) -> bool:
        """Whether every row is to be seen."""
        return self.upto is None and self.expiry is None and not len(self.dead)


ALL: Final = Visible()


def read_group(
    reader: Reader,
    file: DataFile,
    group: int,
    columns: Sequence[Wanted],
    visible: Visible = ALL,
    *,
    narrow: bool = False,
) -> list[pa.RecordBatch]:
    """The visible rows of a row group as batches of at most MORSEL_ROWS rows.

    narrow  whole numbers may come narrower than their type (``lake.narrow``)
    XX001  the file is missing or damaged
    """
    names = [column.name for column in columns]
    rows = file.groups[group]
    if visible.is_all:
        found = group_arrays(reader, file, group, columns, visible.place, narrow=narrow)
        return row_batches([found[column.stored] for column in columns], names, rows)
    if visible.upto is None and visible.expiry is None:
        arrays = _living_arrays(reader, file, group, columns, visible, narrow)
        return row_batches(arrays, names, rows - len(visible.dead))
    given = {column.stored for column in columns}
    wanted = [*columns, *(column for column in visible.needed() if column.stored not in given)]
    found = group_arrays(reader, file, group, wanted, visible.place)
    times = found[visible.expiry.column.stored] if visible.expiry is not None else None
    kept, count = visible.kept(rows, found.get(VERSION), times)
    return row_batches([found[column.stored].filter(kept) for column in columns], names, count)


def read_chunk(chunk: pa.RecordBatch, columns: Sequence[Wanted], visible: Visible = ALL) -> list[pa.RecordBatch]:
    """The visible rows of a batch of the tail as batches of at most MORSEL_ROWS rows."""
    arrays = [chunk_column(chunk, column, visible.place) for column in columns]
    rows = chunk.num_rows
    if not visible.is_all:
        times = chunk_column(chunk, visible.expiry.column) if visible.expiry is not None else None
        kept, rows = visible.kept(rows, chunk.column(VERSION), times)
        arrays = [array.filter(kept) for array in arrays]
    return row_batches(arrays, [column.name for column in columns], rows)


def chunk_column(chunk: pa.RecordBatch, column: Wanted, place: int = 0) -> pa.Array:
    """A column of rows of a tail in its type of now: rows from before it was added lack it."""
    if column.stored == PLACE:
        return pa.array(np.arange(place, place + chunk.num_rows, dtype=np.int64))
    if column.stored not in chunk.schema.names:
        return absent(chunk.num_rows, column.type, column.missing)
    return from_stored(chunk.column(column.stored), column.type)


def group_arrays(
    reader: Reader, file: DataFile, group: int, columns: Sequence[Wanted], place: int = 0, *, narrow: bool = False
) -> dict[str, pa.Array]:
    """Columns of a whole row group by their stored names."""
    rows = file.groups[group]
    found: dict[str, pa.Array] = {}
    missing: list[Wanted] = []
    for column in columns:
        if column.stored == PLACE:
            found[PLACE] = pa.array(np.arange(place, place + rows, dtype=np.int64))
            continue
        if column.stored in SYSTEM_COLUMNS and not file.has_system:
            found[column.stored] = system_column(file, group, column.stored)
            continue
        physical = column.type.physical
        kept = reader.hot.get((file.path, group, column.hot_name), physical)
        if kept is not None:
            found[column.stored] = kept if narrow else widened(kept, physical)
        else:
            missing.append(column)
    if missing:
        for column, array in zip(missing, _decode(reader, file, group, missing)):
            found[column.stored] = array
            reader.hot.put((file.path, group, column.hot_name), array, column.type.physical)
    return found


def _living_arrays(
    reader: Reader, file: DataFile, group: int, columns: Sequence[Wanted], visible: Visible, narrow: bool
) -> list[pa.Array]:
    """Columns of a row group without the rows that are gone, kept until others go."""
    stamp = visible.stamp
    found: dict[str, pa.Array] = {}
    for column in columns:
        key = (file.path, group, column.hot_name + LIVING)
        kept = reader.hot.get(key, column.type.physical, stamp) if stamp else None
        if kept is not None:
            found[column.stored] = kept
    missing = [column for column in columns if column.stored not in found]
    if missing:
        bits, _ = visible.kept(file.groups[group], None, None)
        whole = group_arrays(reader, file, group, missing, visible.place, narrow=True)
        for column in missing:
            found[column.stored] = whole[column.stored].filter(bits)
            # What is not in the file is not kept under its name: a transaction sees its own files under ids yet to be given.
            in_file = column.stored != PLACE and (file.has_system or column.stored not in SYSTEM_COLUMNS)
            if stamp and in_file:
                key = (file.path, group, column.hot_name + LIVING)
                reader.hot.put(key, found[column.stored], column.type.physical, stamp)
    arrays = [found[column.stored] for column in columns]
    return arrays if narrow else [widened(array, column.type.physical) for array, column in zip(arrays, columns)]


def row_batches(arrays: Sequence[pa.Array], names: Sequence[str], rows: int) -> list[pa.RecordBatch]:
    """Arrays of ``rows`` rows as batches of at most MORSEL_ROWS; of no arrays, batches that only count."""
    batches = []
    for start in range(0, rows, MORSEL_ROWS):
        count = min(MORSEL_ROWS, rows - start)
        if arrays:
            cut = arrays if count == rows else [array.slice(start, count) for array in arrays]
            batches.append(pa.RecordBatch.from_arrays(list(cut), names=list(names)))
        else:
            empty = pa.Array.from_buffers(pa.struct([]), count, [None])
            batches.append(pa.RecordBatch.from_struct_array(empty))
    return batches


def system_column(file: DataFile, group: int, name: str, start: int = 0, count: int | None = None) -> pa.Array:
    """A system column of a row group whose file does not hold it, or ``count`` rows of it from row ``start``."""
    rows = file.groups[group] if count is None else count
    if name == ROW_ID:
        first = file.row_id + sum(file.groups[:group]) + start
        return pa.array(np.arange(first, first + rows, dtype=np.int64))
    assert name in (VERSION, CREATED_AT, UPDATED_AT), name
    value = file.version if name == VERSION else file.created
    return pa.array(np.full(rows, value, np.int64)).view(SYSTEM_COLUMNS[name].physical)


def _decode(reader: Reader, file: DataFile, group: int, columns: Sequence[Wanted]) -> list[pa.Array]:
    if not reader.waits:
        raise NotInMemory
    footer, rows = reader.footer(file), file.groups[group]
    if group >= footer.num_row_groups or footer.row_group(group).num_rows != rows:
        raise DataCorrupted(f"{file.path} is not the file that the catalog names: row group {group} differs")
    layout = reader.footers.layout(file.path, footer)
    found: dict[str, pa.Array] = {}
    if rows >= ROWS_MIN:
        found = _decode_pages(reader, file, footer.row_group(group), columns, layout)
    names = [column.stored for column in columns if column.stored in layout.types and column.stored not in found]
    if names:
        opened = reader.open(file, [name for name in names if name in file.dictionaries])
        try:
            table = opened.read_row_group(group, columns=names, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise DataCorrupted(f"{file.path} cannot be read: {error}") from error
        finally:
            opened.close(force=True)
        found.update((name, _one_array(table.column(name))) for name in names)
    return [
        from_stored(found[column.stored], column.type)
        if column.stored in found
        else absent(rows, column.type, column.missing)
        for column in columns
    ]


def _decode_pages(
    reader: Reader, file: DataFile, group: pq.RowGroupMetaData, columns: Sequence[Wanted], layout: Layout
) -> dict[str, pa.Array]:
    """Those of the columns that ``pages`` takes; nothing where the file cannot be read: who reads it next says so."""
    found: dict[str, pa.Array] = {}
    try:
        source = reader.store.open_reader(file.path)
        for column in columns:
            place, type = layout.places.get(column.stored), layout.types.get(column.stored)
            if place is None or type is None or (pa.types.is_string(type) and column.stored not in file.dictionaries):
                continue
            array = decode_chunk(source, group.column(place), layout.levels[place], type)
            if array is not None:
                found[column.stored] = array
        source.close()
    except (ObjectMissing, pa.ArrowException, OSError):
        return {}
    return found


def _one_array(chunked: pa.ChunkedArray) -> pa.Array:
    if chunked.num_chunks == 1:
        return chunked.chunk(0)
    if pa.types.is_dictionary(chunked.type):
        chunked = chunked.unify_dictionaries()
    combined = chunked.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
