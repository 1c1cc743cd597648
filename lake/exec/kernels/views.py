"""Arrow arrays as numpy arrays and back, without copying where their layouts agree.

    >>> values_of(pa.array([1, None, 3])), valid_of(pa.array([1, None, 3]))
    (array([1, 0, 3]), array([1, 0, 1], dtype=uint8))

Views of Arrow memory carry numpy's writable flag, because Numba compiles a kernel once more for read-only arrays; nothing
writes to them. What stands in ``values_of`` where a value is NULL is undefined.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

AnyArray: TypeAlias = "pa.Array | pa.ChunkedArray"
Ints: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

ALL_VALID: Final = np.empty(0, np.uint8)
"""The validity that kernels take where there are no NULLs."""

WIDE_BYTES: Final = 16

_NUMPY: Final[dict[int, Any]] = {
    pa.int8().id: np.int8, pa.int16().id: np.int16, pa.int32().id: np.int32, pa.int64().id: np.int64,
    pa.uint8().id: np.uint8, pa.uint16().id: np.uint16, pa.uint32().id: np.uint32, pa.uint64().id: np.uint64,
    pa.float16().id: np.float16, pa.float32().id: np.float32, pa.float64().id: np.float64,
    pa.date32().id: np.int32, pa.date64().id: np.int64, pa.time32("s").id: np.int32, pa.time64("us").id: np.int64,
    pa.timestamp("us").id: np.int64, pa.duration("us").id: np.int64, pa.decimal64(18, 0).id: np.int64,
    pa.decimal32(9, 0).id: np.int32,
}  # fmt: skip
_TEXT: Final = frozenset({pa.string().id, pa.binary().id})
_LARGE_TEXT: Final = frozenset({pa.large_string().id, pa.large_binary().id})
_OTHER_TEXT: Final = {pa.string_view().id: pa.string(), pa.binary_view().id: pa.binary()}


class _Memory:
    """A stretch of an Arrow buffer, offered to numpy."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: pa.Buffer, address: int, count: int, dtype: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "data": (address, False), "shape": (count,), "typestr": np.dtype(dtype).str,
        }  # fmt: skip


def buffer_view(buffer: pa.Buffer | None, dtype: Any, count: int, start: int = 0) -> Ints:
    """``count`` items of a buffer from item ``start``, kept alive by the answer."""
    if buffer is None or count == 0:
        return np.empty(0, dtype)
    itemsize = np.dtype(dtype).itemsize
    assert (start + count) * itemsize <= buffer.size
    return np.asarray(_Memory(buffer, buffer.address + start * itemsize, count, dtype))


def single(array: AnyArray) -> pa.Array:
    """The rows of an array or a chunked array as one array; dictionaries of chunks become one."""
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks == 1:
            return array.chunk(0)
        if pa.types.is_dictionary(array.type):
            if any(chunk.dictionary.null_count for chunk in array.chunks):
                return pa.concat_arrays([plain(chunk) for chunk in array.chunks])
            array = array.unify_dictionaries()
        combined = array.combine_chunks()
        return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
    return array


def concat(arrays: list[pa.Array]) -> pa.Array:
    """Arrays of one SQL type as one array; text stays a dictionary where all of them are."""
    types = {array.type for array in arrays}
    if len(types) > 1:
        arrays = [plain(array) for array in arrays]
    return single(pa.chunked_array(arrays))


def plain(array: pa.Array) -> pa.Array:
    """The array without a dictionary."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def is_text(type: pa.DataType) -> bool:
    """Whether values are offsets and bytes."""
    return type.id in _TEXT or type.id in _LARGE_TEXT or type.id in _OTHER_TEXT


def is_wide(type: pa.DataType) -> bool:
    """Whether values are sixteen bytes: decimal128 and intervals."""
    return bool(pa.types.is_decimal128(type) or pa.types.is_interval(type))


def is_fixed(type: pa.DataType) -> bool:
    """Whether ``values_of`` takes the type and answers one number for each row."""
    return type.id in _NUMPY or bool(pa.types.is_boolean(type))


def values_of(array: pa.Array) -> Ints:
    """The values of a fixed-width array, a view where they are not bits.

    BOOLEAN   uint8[rows], 0 or 1         DECIMAL128, INTERVAL  int64[rows, 2]: low word first, as they lie in memory
    DATE      int32[rows], days           TIMESTAMP             int64[rows], in the type's unit
    """
    type = array.type
    if type.id in _NUMPY:
        return buffer_view(array.buffers()[1], _NUMPY[type.id], len(array), array.offset)
    if pa.types.is_boolean(type):
        return _unpack_bits(array.buffers()[1], array.offset, len(array))
    if is_wide(type):
        return buffer_view(array.buffers()[1], np.int64, 2 * len(array), 2 * array.offset).reshape(-1, 2)
    if pa.types.is_null(type):
        return np.zeros(len(array), np.int64)
    raise AssertionError(f"no fixed width: {type}")


def valid_of(array: pa.Array) -> Ints | None:
    """uint8[rows], 1 where there is a value; None where there are no NULLs."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.uint8)
    if array.null_count == 0:
        valid = None
    else:
        valid = _unpack_bits(array.buffers()[0], array.offset, len(array))
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        codes = values_of(array.indices)
        of_entry = valid_of(array.dictionary)
        assert of_entry is not None
        named = of_entry[np.where(valid == 1, codes, 0) if valid is not None else codes]
        valid = named if valid is None else valid & named
    return valid


def mask_of(array: pa.Array) -> Ints:
    """``valid_of`` as kernels take it: ALL_VALID where there are no NULLs."""
    valid = valid_of(array)
    return ALL_VALID if valid is None else valid


def text_of(array: pa.Array) -> tuple[Ints, Ints]:
    """Offsets (int32, or int64 of large types; rows + 1 of them) and bytes of a text or bytes array.

    Row ``r`` is ``bytes[offsets[r]:offsets[r + 1]]``; offsets need not begin at 0.
    """
    if array.type.id in _OTHER_TEXT:
        array = array.cast(_OTHER_TEXT[array.type.id])
    _, offsets_buffer, bytes_buffer = array.buffers()
    dtype = np.int64 if array.type.id in _LARGE_TEXT else np.int32
    if len(array) == 0:
        return np.zeros(1, dtype), np.zeros(0, np.uint8)
    offsets = buffer_view(offsets_buffer, dtype, len(array) + 1, array.offset)
    return offsets, buffer_view(bytes_buffer, np.uint8, 0 if bytes_buffer is None else bytes_buffer.size)


def codes_of(array: pa.DictionaryArray) -> Ints:
    """int32[rows]: the entry of each row in ``array.dictionary``, 0 where it is NULL."""
    codes = values_of(array.indices).astype(np.int32, copy=False)
    if array.indices.null_count:
        valid = _unpack_bits(array.indices.buffers()[0], array.indices.offset, len(array))
        codes = codes * valid.astype(np.int32)
    return codes


def to_array(values: Ints, type: pa.DataType, valid: Ints | None = None) -> pa.Array:
    """An Arrow array over ``values``, the inverse of ``values_of``; they are cast to the width of ``type``."""
    rows = len(values)
    bitmap = None if valid is None or valid.size == 0 else pack_bits(valid)
    if pa.types.is_boolean(type):
        body = pack_bits(values)
    elif is_wide(type):
        body = pa.py_buffer(np.ascontiguousarray(values, np.int64))
    else:
        body = pa.py_buffer(np.ascontiguousarray(values, _NUMPY[type.id]))
    return pa.Array.from_buffers(type, rows, [bitmap, body])


def to_boolean(mask: Ints) -> pa.Array:
    """A BOOLEAN array of a byte or bool mask."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pack_bits(mask)])


def true_of(array: AnyArray) -> Ints:
    """bool[rows]: where a BOOLEAN array is true; NULL is not true."""
    array = single(array)
    if array.null_count:
        array = pc.fill_null(array, False)
    return values_of(array).view(np.bool_)


def text_array(offsets: Ints, characters: Ints, type: pa.DataType, valid: Ints | None = None) -> pa.Array:
    """A text or bytes array over offsets and bytes; int32 offsets for ``string``, int64 for ``large_string``."""
    bitmap = None if valid is None or valid.size == 0 else pack_bits(valid)
    return pa.Array.from_buffers(
        type, len(offsets) - 1, [bitmap, pa.py_buffer(offsets), pa.py_buffer(characters)]
    )


def pack_bits(mask: Ints) -> pa.Buffer:
    """An Arrow bitmap of a byte or bool mask."""
    return pa.py_buffer(np.packbits(mask.astype(np.bool_, copy=False), bitorder="little"))


def _unpack_bits(buffer: pa.Buffer, offset: int, count: int) -> Ints:
    if count == 0:
        return np.empty(0, np.uint8)
    first = offset >> 3
    packed = buffer_view(buffer, np.uint8, ((offset + count + 7) >> 3) - first, first)
    skipped = offset & 7
    return np.unpackbits(packed, count=skipped + count, bitorder="little")[skipped:]
