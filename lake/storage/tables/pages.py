"""Pages of the lake's own Parquet files to arrays, where that is faster than pyarrow: about half its time.

    decode_chunk(source, record, levels, stored type)     a column of a row group, or None for pyarrow to decode it

Taken are columns without NULLs of 32 or 64 bits, plain or as a dictionary, and dictionary-coded text; pages of version 1,
uncompressed or LZ4. Values of a page are unpacked by one kernel without branches. Dictionaries of text that are the same
in many row groups are one array, whose codes those above look up once. Anything else is left to pyarrow, damage too: it
says what is wrong.
Sources: Apache Parquet, "Encodings" and "File format"; Thrift compact protocol.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lake.compiled import kernel, rehearsal

ROWS_MIN: Final = 16_384
"""Smaller chunks are not worth the kernels' loading."""

KIND, SIZE, STORED, VALUES, ENCODING, BODY, FIELDS = 0, 1, 2, 3, 4, 5, 6  # a page in the answer of ``page_headers``
DATA_PAGE, DICTIONARY_PAGE = 0, 2
PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY = 0, 2, 8
STRUCT, BINARY, DOUBLE, BYTE, TRUE, FALSE = 12, 8, 7, 3, 1, 2  # kinds of fields in the compact protocol; 4 to 6 are integers
PAGES_MAX: Final = 4_096
CODECS: Final = {"LZ4": "lz4_raw", "UNCOMPRESSED": None}
WIDTHS: Final[dict[str, Any]] = {"INT32": np.int32, "INT64": np.int64, "DOUBLE": np.float64}
ARRAYS: Final[dict[int, Any]] = {
    pa.int32().id: np.int32, pa.int64().id: np.int64, pa.date32().id: np.int32, pa.float64().id: np.float64,
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
        pages[found, :] = -1
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


# --- values ----------------------------------------------------------------------------------------------------------


@kernel
def levels_end(data: Any, values: Any) -> Any:
    """Where a page's definition levels end, if they say that all ``values`` are there in one run; else -1."""
    if data.size < 4:
        return -1
    length = np.int64(data[0]) | np.int64(data[1]) << 8 | np.int64(data[2]) << 16 | np.int64(data[3]) << 24
    head, at = varint(data, 4)
    if head & 1 == 1 or head >> 1 < values or at >= data.size or data[at] != 1:
        return -1
    return 4 + length


@kernel
def unpack_codes(data: Any, at: Any, words: Any, codes: Any) -> Any:
    """Codes of the hybrid of runs and packed bits, whose width is the byte at ``at``; answers the greatest, -1 for damage.

    data  uint8[any]  in    words  uint64[values + 2 or more]  scratch    codes  int32[values]  out
    """
    if at >= data.size:
        return np.int64(-1)
    width = np.int64(data[at])
    at += 1
    if width > 31:
        return np.int64(-1)
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    done, most = np.int64(0), np.int64(0)
    while done < codes.size:
        head, at = varint(data, at)
        if head == 0 or head >> 4 > codes.size or (at >= data.size and width > 0):
            return np.int64(-1)
        if head & 1 == 0:
            count = min(head >> 1, codes.size - done)
            value = np.int64(0)
            for byte in range((width + 7) >> 3):
                if at < data.size:
                    value |= np.int64(data[at]) << (8 * byte)
                at += 1
            codes[done : done + count] = value
            most = max(most, value)
            done += count
            continue
        count = min((head >> 1) * 8, codes.size - done)
        size = (head >> 1) * width
        taken = (count * width + 7) >> 3
        if size < taken or at + taken > data.size:
            return np.int64(-1)
        whole = taken >> 3
        body = data[at : at + taken]
        for word in range(whole):
            value64 = np.uint64(0)
            for byte in range(8):
                value64 |= np.uint64(body[8 * word + byte]) << np.uint64(8 * byte)
            words[word] = value64
        words[whole] = 0
        words[whole + 1] = 0
        for byte in range(taken - 8 * whole):
            words[whole] |= np.uint64(body[8 * whole + byte]) << np.uint64(8 * byte)
        out = codes[done : done + count]
        for value_at in range(out.size):
            bit = np.uint64(value_at) * np.uint64(width)
            word_at, shift = bit >> np.uint64(6), bit & np.uint64(63)
            upper = (words[word_at + np.uint64(1)] << np.uint64(1)) << (np.uint64(63) - shift)
            out[value_at] = np.int32(((words[word_at] >> shift) | upper) & mask)
        for value_at in range(out.size):
            most = max(most, np.int64(out[value_at]))
        at += size
        done += count
    return most


@kernel
def look_up(entries: Any, codes: Any, out: Any) -> None:
    """out[row] = entries[codes[row]]: entries and out of one type, codes int32[rows] in."""
    for row in range(codes.size):
        out[row] = entries[codes[row]]


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
    statistics, rows = record.statistics, record.num_values
    is_text = pa.types.is_string(type) and record.physical_type == "BYTE_ARRAY"
    if rows < ROWS_MIN or levels > 1 or record.compression not in CODECS or not (is_text or type.id in ARRAYS):
        return None
    if statistics is None or not statistics.has_null_count or statistics.null_count:
        return None
    if not is_text and np.dtype(WIDTHS.get(record.physical_type, np.int8)).kind != np.dtype(ARRAYS[type.id]).kind:
        return None
    first = record.dictionary_page_offset if record.has_dictionary_page else record.data_page_offset
    source.seek(first)
    chunk = _Chunk(source.read_buffer(record.total_compressed_size), CODECS[record.compression], levels)
    pages = np.empty((PAGES_MAX, FIELDS), np.int64)
    found = page_headers(chunk.data, rows, pages)
    if found < 1:
        return None
    listed: list[list[int]] = pages[:found].tolist()
    if is_text:
        return _text(chunk, listed, rows, type)
    return _numbers(chunk, listed, rows, WIDTHS[record.physical_type], type)


class _Chunk:
    """The bytes of a column chunk, and how its pages are packed."""

    __slots__ = ("_buffer", "_codec", "_levels", "data")

    def __init__(self, buffer: pa.Buffer, codec: str | None, levels: int) -> None:
        self._buffer = buffer
        self._codec = pa.Codec(codec) if codec else None
        self._levels = levels
        self.data = _bytes_of(buffer)

    def page(self, page: list[int]) -> Any:
        """uint8[size]: a page, unpacked."""
        stored = self._buffer.slice(page[BODY], page[STORED])
        if self._codec is None:
            return _bytes_of(stored)
        return _bytes_of(self._codec.decompress(stored, decompressed_size=page[SIZE]))

    def start(self, body: Any, values: int) -> int:
        """Where the values of a data page begin; -1 where some are NULL."""
        return int(levels_end(body, values)) if self._levels else 0


def _numbers(chunk: _Chunk, pages: list[list[int]], rows: int, width: Any, type: pa.DataType) -> pa.Array | None:
    """A column of numbers, each page plain or codes."""
    out = np.empty(rows, ARRAYS[type.id])
    entries, done = None, 0
    for page in pages:
        body, values, encoding = chunk.page(page), page[VALUES], page[ENCODING]
        if page[KIND] == DICTIONARY_PAGE:
            if encoding not in (PLAIN, PLAIN_DICTIONARY):
                return None
            if values * np.dtype(width).itemsize > len(body):
                return None
            entries = np.frombuffer(body, width, values).astype(out.dtype)
            continue
        start = chunk.start(body, values)
        if page[KIND] != DATA_PAGE or start < 0:
            return None
        if encoding == PLAIN:
            if start + values * np.dtype(width).itemsize > len(body):
                return None
            out[done : done + values] = np.frombuffer(body, width, values, start)
        elif encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY) and entries is not None:
            words, own = _scratch(values)
            if not 0 <= unpack_codes(body, start, words, own) < len(entries):
                return None
            look_up(entries, own, out[done : done + values])
        else:
            return None
        done += values
    return pa.Array.from_buffers(type, rows, [None, pa.py_buffer(out)], null_count=0)


def _text(chunk: _Chunk, pages: list[list[int]], rows: int, type: pa.DataType) -> pa.Array | None:
    """A column of text whose pages are all codes."""
    codes = np.empty(rows, np.int32)
    entries, done = None, 0
    for page in pages:
        body, values = chunk.page(page), page[VALUES]
        if page[KIND] == DICTIONARY_PAGE:
            entries = text_entries(body.tobytes(), values, type)
            continue
        start = chunk.start(body, values)
        if page[KIND] != DATA_PAGE or start < 0 or entries is None or page[ENCODING] == PLAIN:
            return None
        words, _ = _scratch(values)
        if not 0 <= unpack_codes(body, start, words, codes[done : done + values]) < len(entries):
            return None
        done += values
    indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(codes)], null_count=0)
    return pa.DictionaryArray.from_arrays(indices, entries, safe=False) if entries is not None else None


class _Scratch(threading.local):
    """Memory of this thread for unpacking a page."""

    words: Any = np.empty(0, np.uint64)
    codes: Any = np.empty(0, np.int32)


_SCRATCH: Final = _Scratch()


def _scratch(values: int) -> tuple[Any, Any]:
    """Words and codes for a page of so many values."""
    if len(_SCRATCH.codes) < values:
        _SCRATCH.words, _SCRATCH.codes = np.empty(values + 2, np.uint64), np.empty(values, np.int32)
    return _SCRATCH.words, _SCRATCH.codes[:values]


class _Memory:
    """A buffer offered to numpy as if it could be written: Numba compiles a kernel once more for arrays that cannot."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: pa.Buffer) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "data": (owner.address, False), "shape": (owner.size,), "typestr": "|u1",
        }  # fmt: skip


def _bytes_of(buffer: pa.Buffer) -> Any:
    return np.asarray(_Memory(buffer)) if buffer.size else np.empty(0, np.uint8)


@rehearsal
def _rehearse() -> None:
    rows = np.arange(ROWS_MIN)
    table = pa.table({"a": rows % 9, "b": rows.astype(np.int32) % 9, "c": rows % 2.0})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="lz4")
    source = pa.BufferReader(sink.getvalue())
    group = pq.ParquetFile(source).metadata.row_group(0)
    for place, field in enumerate(table.schema):
        assert decode_chunk(source, group.column(place), 1, field.type) is not None
