"""Pages of the lake's own Parquet files to arrays, where that is faster than pyarrow: about half its time.

    decode_chunk(source, record, levels, stored type)     a column of a row group, or None for pyarrow to decode it

Taken are numbers, plain, as a dictionary or as deltas, and dictionary-coded text; pages of version 1, uncompressed or LZ4.
Values of a page are unpacked by one kernel without branches (``unpack``). Dictionaries of text that are the same in many
row groups are one array, whose codes those above look up once. Anything else is left to pyarrow, damage too: it says what
is wrong.
Sources: Apache Parquet, "Encodings" and "File format"; Thrift compact protocol.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.compiled import kernel, rehearsal
from lake.storage.tables.unpack import spread_values, unpack_codes, unpack_deltas, unpack_levels, unpack_values

if TYPE_CHECKING:
    import pyarrow.parquet as pq

ROWS_MIN: Final = 16_384
"""Smaller chunks are not worth the kernels' loading."""

KIND, SIZE, STORED, VALUES, ENCODING, BODY, FIELDS = 0, 1, 2, 3, 4, 5, 6  # a page in the answer of ``page_headers``
DATA_PAGE, DICTIONARY_PAGE = 0, 2
PLAIN, PLAIN_DICTIONARY, DELTA, RLE_DICTIONARY = 0, 2, 5, 8
STRUCT, BINARY, DOUBLE, BYTE, TRUE, FALSE = 12, 8, 7, 3, 1, 2  # kinds of fields in the compact protocol; 4 to 6 are integers
PAGES_MAX: Final = 4_096
SLACK: Final = 16  # bytes after a page that may be read
DELTA_WIDTH_MIN: Final = 4  # bytes of an integer that deltas are decoded to
CODECS: Final = {"LZ4": "lz4_raw", "UNCOMPRESSED": None}
WIDTHS: Final[dict[str, Any]] = {"INT32": np.int32, "INT64": np.int64, "FLOAT": np.float32, "DOUBLE": np.float64}
ARRAYS: Final[dict[int, Any]] = {
    pa.int8().id: np.int8, pa.int16().id: np.int16, pa.int32().id: np.int32, pa.int64().id: np.int64,
    pa.float32().id: np.float32, pa.float64().id: np.float64, pa.date32().id: np.int32,
    pa.timestamp("us").id: np.int64, pa.time64("us").id: np.int64, pa.decimal64(18, 0).id: np.int64,
}  # fmt: skip


# --- page headers ----------------------------------------------------------------------------------------------------


@kernel
def varint(data: Any, at: Any) -> Any:
    """The unsigned integer that starts at ``at``, and where it ends; beyond the data it is 0."""
    value, shift = np.int64(0), np.int64(0)
    while at < data.size and shift < 63:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return value, at


@kernel
def skip_field(data: Any, at: Any, kind: Any) -> Any:
    """Where a field of ``kind`` that starts at ``at`` ends; -1 for lists, sets and maps, which page headers have none of."""
    depth = 0
    while True:
        if kind == STRUCT:
            depth += 1
        elif kind == BINARY:
            length, at = varint(data, at)
            at += length
        elif kind == DOUBLE:
            at += 8
        elif kind == BYTE:
            at += 1
        elif kind > BINARY:
            return np.int64(-1)
        elif kind != TRUE and kind != FALSE:
            _, at = varint(data, at)
        while depth > 0 and at < data.size and data[at] == 0:
            depth -= 1
            at += 1
        if depth == 0 or at >= data.size:
            return np.int64(at)
        kind = np.int64(data[at]) & 15
        if data[at] >> 4 == 0:
            _, at = varint(data, at + 1)
        else:
            at += 1


@kernel
def page_headers(data: Any, rows: Any, pages: Any) -> Any:
    """The pages of a column chunk until they have ``rows`` values: how many, -1 where they are not understood.

    data  uint8[any]  in    pages  int64[PAGES_MAX, FIELDS]  out  kind, size, stored size, values, encoding, place
    """
    at, found, seen = np.int64(0), 0, np.int64(0)
    while seen < rows:
        if found == pages.shape[0] or at >= data.size:
            return -1
        inside, field, outer = 0, np.int64(0), np.int64(0)
        for field_at in range(FIELDS):
            pages[found, field_at] = -1
        while True:
            if at >= data.size:
                return -1
            lead = np.int64(data[at])
            at += 1
            if lead == 0:
                if inside == 0:
                    break
                inside, field = 0, outer
                continue
            kind = lead & 15
            if lead >> 4 == 0:
                number, at = varint(data, at)
                field = (number >> 1) ^ -(number & 1)
            else:
                field += lead >> 4
            if inside == 0 and kind == STRUCT and (field == 5 or field == 7):
                inside, outer, field = 1, field, np.int64(0)
            elif field >= 1 and ((inside == 0 and field <= 3) or (inside == 1 and field <= 2)):
                number, at = varint(data, at)
                pages[found, (VALUES if inside == 1 else KIND) + field - 1] = (number >> 1) ^ -(number & 1)
            else:
                at = skip_field(data, at, kind)
                if at < 0:
                    return -1
        pages[found, BODY] = at
        stored = pages[found, STORED]
        if stored < 0 or at + stored > data.size or pages[found, SIZE] < 0 or pages[found, VALUES] < 0:
            return -1
        if pages[found, KIND] == DATA_PAGE:
            seen += pages[found, VALUES]
        at += stored
        found += 1
    return found if seen == rows else -1


# --- values ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1_024)
def text_entries(page: bytes, count: int, type: pa.DataType) -> pa.Array | None:
    """The texts of a dictionary page, each with its length before it; None where they do not fill the page."""
    texts, at = [], 0
    if 4 * count > len(page):
        return None
    for _ in range(count):
        length = int.from_bytes(page[at : at + 4], "little")
        texts.append(page[at + 4 : at + 4 + length])
        at += 4 + length
    return pa.array(texts, pa.binary()).cast(type) if at == len(page) else None  # the cast checks that it is UTF-8


# --- chunks ----------------------------------------------------------------------------------------------------------


def decode_chunk(source: pa.NativeFile, record: pq.ColumnChunkMetaData, levels: int, type: pa.DataType) -> pa.Array | None:
    """The values of a column chunk in ``type``, text as a dictionary; None where pyarrow is to decode it.

    levels  the column's maximum definition level
    """
    rows, kind = record.num_values, record.physical_type
    is_text = pa.types.is_string(type) and kind == "BYTE_ARRAY"
    if rows < ROWS_MIN or levels > 1 or record.compression not in CODECS:
        return None
    if not is_text and not (type.id in ARRAYS and np.dtype(WIDTHS.get(kind, "S1")).kind == np.dtype(ARRAYS[type.id]).kind):
        return None
    first = record.dictionary_page_offset if record.has_dictionary_page else record.data_page_offset
    source.seek(first)
    # The footer, or the next chunk, lies behind: SLACK bytes more can be read.
    buffer = source.read_buffer(record.total_compressed_size + SLACK)
    if buffer.size < record.total_compressed_size + SLACK:
        return None
    pages = np.empty((PAGES_MAX, FIELDS), np.int64)
    found = page_headers(_bytes_of(buffer)[: record.total_compressed_size], rows, pages)
    if found < 1:
        return None
    chunk = _Chunk(buffer, CODECS[record.compression], levels, rows)
    listed: list[list[int]] = pages[:found].tolist()
    if is_text:
        return _text(chunk, listed, type)
    return _numbers(chunk, listed, WIDTHS[kind], type)


class _Page(Struct):
    """The bytes of a page as words (``unpack``): its values are the bytes from ``at`` to ``end``, ``present`` of them."""

    words: Any
    at: int
    end: int
    present: int

    def bytes(self) -> Any:
        """uint8[any]: the bytes of its values."""
        return self.words.view(np.uint8)[self.at : self.end]


class _Chunk:
    """The bytes of a column chunk, how its pages are packed, and which of its rows are NULL."""

    __slots__ = ("_buffer", "_codec", "_done", "_levels", "_missing", "_valid", "rows")

    def __init__(self, buffer: pa.Buffer, codec: str | None, levels: int, rows: int) -> None:
        self._buffer = buffer
        self._codec = pa.Codec(codec) if codec else None
        self._levels = levels
        self._valid = np.empty(rows if levels else 0, np.uint8)
        self._done = 0
        self._missing = 0
        self.rows = rows

    def page(self, page: list[int]) -> _Page | None:
        """A page, unpacked; None where its levels are damaged."""
        buffer, start, size = self._buffer, page[BODY], page[STORED]
        if self._codec is not None:
            stored = buffer.slice(start, size)
            buffer, start, size = self._codec.decompress(stored, decompressed_size=page[SIZE] + SLACK), 0, page[SIZE]
        base = buffer.address & ~7
        at = buffer.address - base + start
        made = _Page(_view(buffer, base, (at + size + SLACK) >> 3, "<u8"), at, at + size, page[VALUES])
        if page[KIND] == DATA_PAGE and self._levels:
            valid = self._valid[self._done : self._done + page[VALUES]]
            self._done += page[VALUES]
            made.at, made.present = unpack_levels(made.words, made.at, made.end, valid)
            if made.at < 0:
                return None
            self._missing += page[VALUES] - made.present
        return made

    def spread(self, values: Any, out: Any) -> None:
        """Puts the values of the page made last where its rows are that have one."""
        spread_values(values, self._valid[self._done - len(out) : self._done], out)

    def array(self, values: Any, type: pa.DataType) -> pa.Array:
        """The chunk's values as an Arrow array."""
        valid = pa.py_buffer(np.packbits(self._valid, bitorder="little")) if self._missing else None
        return pa.Array.from_buffers(type, self.rows, [valid, pa.py_buffer(values)], null_count=self._missing)


def _numbers(chunk: _Chunk, pages: list[list[int]], width: Any, type: pa.DataType) -> pa.Array | None:
    """A column of numbers, each page plain, codes or deltas."""
    out = np.empty(chunk.rows, ARRAYS[type.id])
    size, entries, done = np.dtype(width).itemsize, None, 0
    for listed in pages:
        page, values = chunk.page(listed), listed[VALUES]
        if page is None:
            return None
        if listed[KIND] == DICTIONARY_PAGE:
            if listed[ENCODING] not in (PLAIN, PLAIN_DICTIONARY) or values * size > page.end - page.at:
                return None
            entries = np.frombuffer(page.bytes(), width, values).astype(out.dtype)
            continue
        if listed[KIND] != DATA_PAGE:
            return None
        rows = out[done : done + values]
        held = rows if page.present == values else np.empty(page.present, out.dtype)
        if not _fill(page, listed[ENCODING], entries, width, held):
            return None
        if held is not rows:
            chunk.spread(held, rows)
        done += values
    return chunk.array(out, type)


def _fill(page: _Page, encoding: int, entries: Any, width: Any, held: Any) -> bool:
    """Decodes a page's values into ``held``; False where they are damaged or stored in a way that is not taken."""
    if len(held) == 0:
        return True
    if encoding == PLAIN:
        if len(held) * np.dtype(width).itemsize > page.end - page.at:
            return False
        held[:] = np.frombuffer(page.bytes(), width, len(held))
        return True
    if encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY) and entries is not None:
        return bool(unpack_values(page.words, page.at, page.end, entries, held))
    if encoding == DELTA and held.dtype.kind == "i":
        deltas = held if held.dtype.itemsize >= DELTA_WIDTH_MIN else np.empty(len(held), np.int32)
        if not unpack_deltas(page.words, page.at, page.end, deltas):
            return False
        held[:] = deltas
        return True
    return False


def _text(chunk: _Chunk, pages: list[list[int]], type: pa.DataType) -> pa.Array | None:
    """A column of text whose pages are all codes."""
    codes = np.empty(chunk.rows, np.int32)
    entries, done = None, 0
    for listed in pages:
        page, values = chunk.page(listed), listed[VALUES]
        if page is None:
            return None
        if listed[KIND] == DICTIONARY_PAGE:
            entries = text_entries(page.bytes().tobytes(), values, type)
            continue
        if listed[KIND] != DATA_PAGE or entries is None or listed[ENCODING] == PLAIN:
            return None
        rows = codes[done : done + values]
        held = rows if page.present == values else np.empty(page.present, np.int32)
        if len(held) and not unpack_codes(page.words, page.at, page.end, len(entries), held):
            return None
        if held is not rows:
            chunk.spread(held, rows)
        done += values
    if entries is None:
        return None
    return pa.DictionaryArray.from_arrays(chunk.array(codes, pa.int32()), entries, safe=False)


class _Memory:
    """A stretch of memory offered to numpy as if it could be written: Numba compiles once more for arrays that cannot."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: pa.Buffer, address: int, count: int, kind: str) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": (count,), "typestr": kind}


def _view(owner: pa.Buffer, address: int, count: int, kind: str) -> Any:
    return np.asarray(_Memory(owner, address, count, kind))


def _bytes_of(buffer: pa.Buffer) -> Any:
    return _view(buffer, buffer.address, buffer.size, "|u1") if buffer.size else np.empty(0, np.uint8)


@rehearsal
def _rehearse() -> None:
    import pyarrow.parquet as pq

    rows = np.arange(ROWS_MIN)
    table = pa.table({
        "a": rows % 9, "b": rows.astype(np.int32) % 9, "c": rows % 2.0, "d": pa.array(rows % 3).cast(pa.string()),
        "e": pa.array([None, *rows[1:]]), "f": rows.astype(np.int32), "g": pa.array([None, *rows[1:] % 7], pa.int32()),
    })  # fmt: skip
    sink = pa.BufferOutputStream()
    deltas = dict.fromkeys("ef", "DELTA_BINARY_PACKED")
    pq.write_table(table, sink, compression="lz4", use_dictionary=list("abcdg"), column_encoding=deltas)
    source = pa.BufferReader(sink.getvalue())
    group = pq.ParquetFile(source).metadata.row_group(0)
    for place, field in enumerate(table.schema):
        assert decode_chunk(source, group.column(place), 1, field.type) is not None
