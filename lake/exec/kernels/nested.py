"""Nested values as bytes whose order is theirs: equal exactly where the values are.

    encoded([[1, 2], [1], None])  ->  [.. 1 .. 2 end, .. 1 end, NULL]

Lists are ordered by their first different items, and before those that go on; structs by their first different fields. NULL
inside is equal to NULL and above all else, NaN above all numbers. The bytes depend on the value alone, so that batches agree.

    NULL                2
    number              1, then 8 bytes, the most significant first; 16 of decimals and intervals
    text                1, its bytes, 0;   the bytes 0 and 1 inside as 1 1 and 1 2
    list                1, its items, 0
    struct              1, its fields
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec.kernels.views import Ints, buffer_view, is_text, is_wide, text_array, text_of, valid_of, values_of

DAYS_OF_MONTH: Final = 30  # where intervals are compared, as in Postgres
_LISTS: Final = (pa.types.is_list, pa.types.is_large_list, pa.types.is_map, pa.types.is_fixed_size_list)
_SIGN: Final = np.uint64(1 << 63)
_THERE, _MISSING, _END, _NOTHING = (pa.scalar(item, pa.binary()) for item in (b"\x01", b"\x02", b"\x00", b""))


def encoded(array: pa.Array) -> pa.Array:
    """BYTEA: the bytes of each value, NULL where it is."""
    content = _content(array)
    missing = pc.is_null(array)
    return pc.if_else(missing, pa.scalar(None, pa.binary()), content) if array.null_count else content


def _items(array: pa.Array) -> pa.Array:
    """The bytes of values inside others, with the mark of NULL."""
    there = pc.binary_join_element_wise(_THERE, _content(array), _NOTHING)
    return pc.if_else(pc.is_null(array), _MISSING, there) if array.null_count else there


def _content(array: pa.Array) -> pa.Array:
    """BYTEA without NULLs; what stands where a value is NULL is undefined."""
    type = array.type
    if pa.types.is_dictionary(type):
        return _content(array.dictionary_decode())
    if pa.types.is_null(type):
        return pa.repeat(_NOTHING, len(array))
    if any(is_one(type) for is_one in _LISTS):
        return _list_content(array)
    if pa.types.is_struct(type):
        fields = [_items(field) for field in array.flatten()]
        return pc.binary_join_element_wise(*fields, _NOTHING) if fields else pa.repeat(_NOTHING, len(array))
    if is_text(type):
        return _text_content(array)
    if is_wide(type):
        return _fixed(_wide_words(array))
    return _fixed(_words(array)[:, None])


def _list_content(array: pa.Array) -> pa.Array:
    items = _items((_map_entries(array) if pa.types.is_map(array.type) else array).flatten())
    offsets, characters = text_of(items)
    valid = valid_of(array)
    sizes = _sizes(array)
    bounds = np.concatenate(([0], np.cumsum(sizes if valid is None else sizes * valid)))
    ends = offsets[bounds].astype(np.int32)
    return pc.binary_join_element_wise(text_array(ends, characters, pa.binary()), _END, _NOTHING)


def _map_entries(array: pa.Array) -> pa.Array:
    """Maps as lists of their entries."""
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    bitmap, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        pa.list_(entries.type), len(array), [bitmap, offsets], offset=array.offset, children=[entries]
    )


def _sizes(array: pa.Array) -> Ints:
    """int64[rows]: how many items each list has, whatever stands where it is NULL."""
    if pa.types.is_fixed_size_list(array.type):
        return np.full(len(array), array.type.list_size, np.int64)
    dtype = np.int64 if pa.types.is_large_list(array.type) else np.int32
    return np.diff(buffer_view(array.buffers()[1], dtype, len(array) + 1, array.offset)).astype(np.int64)


def _text_content(array: pa.Array) -> pa.Array:
    texts = pc.fill_null(array.cast(pa.binary()), _NOTHING)
    offsets, characters = text_of(texts)
    used = characters[offsets[0] : offsets[-1]]
    if used.size and used.min() <= 1:
        texts = pc.replace_substring(texts, b"\x01", b"\x01\x02")
        texts = pc.replace_substring(texts, b"\x00", b"\x01\x01")
    return pc.binary_join_element_wise(texts, _END, _NOTHING)


def _words(array: pa.Array) -> Ints:
    """uint64[rows] in the order of the numbers: -0.0 is 0.0, and every NaN the same and the greatest."""
    values = values_of(array)
    if values.dtype == np.uint64:
        return values
    if values.dtype.kind == "f":
        numbers = values.astype(np.float64) + 0.0
        bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
        values = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return values.astype(np.int64, copy=False).view(np.uint64) ^ _SIGN


def _wide_words(array: pa.Array) -> Ints:
    """uint64[rows, 2] in the order of decimals or of intervals' lengths, the more significant word first."""
    words = values_of(array)
    if pa.types.is_interval(array.type):
        return lengths_of(words).view(np.uint64) ^ np.array([_SIGN, 0], np.uint64)
    return np.stack((words[:, 1].view(np.uint64) ^ _SIGN, words[:, 0].view(np.uint64)), axis=1)


def lengths_of(intervals: Ints) -> Ints:
    """int64[rows, 2]: whole seconds, a month of 30 days, and the nanoseconds beyond of intervals as they lie in memory."""
    days = (intervals[:, 0] >> 32) + intervals[:, 0].astype(np.int32).astype(np.int64) * DAYS_OF_MONTH
    seconds, nanoseconds = np.divmod(intervals[:, 1], 1_000_000_000)
    return np.stack((days * 86_400 + seconds, nanoseconds), axis=1)


def _fixed(words: Any) -> pa.Array:
    """BYTEA of the words of each row, the most significant byte first."""
    rows, width = words.shape
    characters = np.ascontiguousarray(words.astype(">u8")).view(np.uint8).reshape(-1)
    return text_array(np.arange(rows + 1, dtype=np.int32) * (8 * width), characters, pa.binary())
