"""Columns of whole numbers in the fewest bytes their values need, and back.

    narrowed(int64 [1, 2, 300])        int16 [1, 2, 300]
    widened(int16 [1, 2, 300], int64)  int64 [1, 2, 300]
    widened_row(int16 [1, 2], 1, int64)  int64 [2]

Integers, dates, times, timestamps and scaled decimals become signed integers of 8, 16 or 32 bits; the codes of dictionaries
likewise. Everything else stays as it is. NULLs stay where they are.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_WIDTHS: Final = ((pa.int8(), 1 << 7), (pa.int16(), 1 << 15), (pa.int32(), 1 << 31))


def narrowed(array: pa.Array) -> pa.Array:
    """The same values, whole numbers in the fewest bytes."""
    if isinstance(array, pa.DictionaryArray):
        codes = _fit(array.indices, 0, len(array.dictionary))
        return array if codes is array.indices else pa.DictionaryArray.from_arrays(codes, array.dictionary, safe=False)
    whole = _whole(array.type)
    if whole is None:
        return array
    numbers = array.view(whole)
    ends = pc.min_max(numbers)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    fitting = _fit(numbers, low or 0, high or 0)
    return array if fitting is numbers else fitting


def widened(array: pa.Array, type: pa.DataType) -> pa.Array:
    """The values of ``narrowed`` in their own type; an array that is not narrow as it is."""
    if isinstance(array, pa.DictionaryArray):
        if array.indices.type == pa.int32():
            return array
        return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), array.dictionary, safe=False)
    if array.type == type or not pa.types.is_signed_integer(array.type):
        return array
    whole = _whole(type)
    return array if whole is None else array.cast(whole).view(type)


def widened_row(array: pa.Array, row: int, type: pa.DataType) -> pa.Array:
    """One row of what ``widened`` answers, without a kernel; coded text as plain text."""
    if isinstance(array, pa.DictionaryArray):
        code = array.indices[row].as_py()
        return pa.nulls(1, array.dictionary.type) if code is None else array.dictionary.slice(code, 1)
    if array.type == type or not pa.types.is_signed_integer(array.type):
        return array.slice(row, 1)
    whole = _whole(type)
    return array.slice(row, 1) if whole is None else pa.array([array[row].as_py()], whole).view(type)


def _whole(type: pa.DataType) -> pa.DataType | None:
    """The integers that a type's values are in memory; None where they are none or narrow already."""
    if pa.types.is_int32(type) or pa.types.is_date32(type):
        return pa.int32()
    if pa.types.is_int64(type) or pa.types.is_timestamp(type) or pa.types.is_time64(type):
        return pa.int64()
    return pa.int16() if pa.types.is_int16(type) else None


def _fit(numbers: pa.Array, low: int, high: int) -> pa.Array:
    for type, end in _WIDTHS:
        if type.bit_width >= numbers.type.bit_width:
            break
        if -end <= low and high < end:
            return numbers.cast(type, safe=False)
    return numbers
