"""Row orders: ORDER BY, top rows, peers; and ranks of texts.

    sort_rows([["b", NULL, "a"]], [Direction()])   -> [2, 0, 1]

Each key becomes one or more *fields*: unsigned words of known width whose order is the wanted one, NULLs and direction
included. ``sorting`` orders rows by their fields.

Numbers: -0.0 equals 0.0, NaN is above all others. Text is in byte order. Intervals go by their length, a month as 30 days.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.groups import key_column
from lake.exec.kernels.hashing import NAN_BITS, load_word, same_bytes
from lake.exec.kernels.nested import encoded, lengths_of
from lake.exec.kernels.sorting import Field, in_blocks, plain_field, sort_fields
from lake.exec.kernels.text_table import TextTable
from lake.exec.kernels.views import (
    ALL_VALID,
    AnyArray,
    Ints,
    codes_of,
    is_text,
    is_wide,
    mask_of,
    single,
    text_of,
    values_of,
)

SAMPLE_ROWS: Final = 4096
SIGN: Final = np.int64(-0x8000000000000000)
HIGHEST: Final = np.int64(0x7FFFFFFFFFFFFFFF)
INFINITY: Final = np.int64(0x7FF0000000000000)
PREFIX_BYTES: Final = 7  # bytes of text in one word; the lowest byte tells how many there were


class Direction(Struct, frozen=True):
    """How a key is ordered."""

    descending: bool = False
    nulls_first: bool = False


# --- fields ----------------------------------------------------------------------------------------------------------


@kernel
def order_doubles(bits: Any, words: Any) -> None:
    """int64 words in the order of doubles: bits int64[rows] in, words int64[rows] out; one word for all NaN, for both zeros.

    Below zero the distance from zero is taken, not the bits' complement: lowest bits that are 0 stay 0.
    """
    for row in range(bits.size):
        value = bits[row]
        magnitude = value & HIGHEST
        word = magnitude if value >= 0 else -magnitude
        words[row] = NAN_BITS if magnitude > INFINITY else word


@kernel
def extent(words: Any, valid: Any) -> Any:
    """The least and the greatest of int64 ``words`` that are not NULL, the bits that all have and those that some have.

    The least is above the greatest where there are none.
    """
    has_nulls = valid.size > 0
    low, high = HIGHEST, SIGN
    every, some = np.int64(-1), np.int64(0)
    for row in range(words.size):
        if has_nulls and valid[row] == 0:
            continue
        word = words[row]
        low, high = min(low, word), max(high, word)
        every &= word
        some |= word
    return low, high, every, some


def ordered_words(array: pa.Array, *, threads: int = 1) -> Ints:
    """int64[rows]: words in the order of the values, for columns of one number a row; equal where they are equal."""
    values = values_of(array)
    if values.dtype.kind == "f":
        bits = values.astype(np.float64, copy=False).view(np.int64)
        words = np.empty(len(bits), np.int64)
        in_blocks(len(bits), threads, lambda block: order_doubles(bits[block], words[block]))
        return words
    if values.dtype == np.uint64:
        return values.view(np.int64) ^ SIGN
    return values.astype(np.int64, copy=False)


def doubles_of(words: Ints) -> Ints:
    """float64[rows]: the inverse of ``ordered_words`` for doubles."""
    return np.where(words < 0, SIGN - words, words).view(np.float64)


def fields_of(array: pa.Array, direction: Direction, *, threads: int = 1) -> list[Field]:
    """The fields of one sort key, most significant first."""
    valid = mask_of(array)
    if valid.size and not valid.any():
        return []
    return [
        field
        for index, words in enumerate(_signed_parts(array, valid, threads))
        for field in _fields(words, valid, direction, is_first=index == 0, threads=threads)
    ]


def _signed_parts(array: pa.Array, valid: Ints, threads: int = 1) -> list[Ints]:
    """int64[rows] words whose order, the first most significant, is that of the values."""
    type = array.type
    if pa.types.is_dictionary(type):
        ranks = _signed_parts(array.dictionary, mask_of(array.dictionary))
        return [part[codes_of(array)] for part in ranks]
    if is_text(type):
        return [text_ranks(array)]
    if pa.types.is_interval(type):
        return list(np.ascontiguousarray(lengths_of(values_of(array)).T))
    if is_wide(type):
        words = values_of(array)
        return [np.ascontiguousarray(words[:, 1]), words[:, 0] ^ SIGN]
    if pa.types.is_nested(type):
        return [text_ranks(encoded(array))]
    return [ordered_words(array, threads=threads)]


def _fields(words: Ints, valid: Ints, direction: Direction, *, is_first: bool, threads: int = 1) -> list[Field]:
    """Fields over signed words; NULL has a slot in the first field of a key, or where there is no room, a field."""
    found = in_blocks(len(words), threads, lambda block: extent(words[block], valid[block]))
    found = [each for each in found if each[0] <= each[1]] or [(0, 0, 0, 0)]
    lows, highs, every, some = zip(*found, strict=True)
    low, high = int(min(lows)), int(max(highs))
    differing = int(reduce(or_, some) & ~reduce(and_, every))
    skip = (differing & -differing).bit_length() - 1 if differing else 0
    span = (high - low) >> skip
    has_slot = valid.size > 0 and is_first
    fields = []
    if has_slot and span + 1 >= 1 << 64:
        flags = valid ^ 1 if not direction.nulls_first else valid
        fields.append(plain_field(flags.astype(np.uint64), 1))
        has_slot = False
    first = 1 if has_slot and direction.nulls_first else 0
    null_slot = span + 1 if has_slot and not direction.nulls_first else 0
    bits = (span + (1 if has_slot else 0)).bit_length()
    origin = high if direction.descending else low
    field = Field(words, valid, bits, origin, direction.descending, skip, first, null_slot)
    return [*fields, field] if bits else fields


def ranks(array: pa.Array) -> Ints:
    """int64[rows]: words in the order of the values of any type, equal where they are; undefined for NULL."""
    valid = mask_of(array)
    if valid.size and not valid.any():
        return np.zeros(len(array), np.int64)
    parts = _signed_parts(array, valid)
    if len(parts) == 1:
        return parts[0]
    fields = [field for part in parts for field in _fields(part, ALL_VALID, Direction(), is_first=True)]
    order = sort_fields(fields, len(array))
    changes = np.zeros(len(array), np.uint8)
    for part in parts:
        mark_changes(part[order], ALL_VALID, changes)
    found = np.empty(len(array), np.int64)
    found[order] = np.cumsum(changes, dtype=np.int64)
    return found


def dense_ranks(array: pa.Array) -> Ints:
    """int64[rows]: each value's place among the different ones, from 0; undefined for NULL."""
    return np.unique(ranks(array), return_inverse=True)[1].astype(np.int64)


# --- sorting ---------------------------------------------------------------------------------------------------------


def sort_rows(columns: Sequence[AnyArray], directions: Sequence[Direction], *, threads: int = 1) -> Ints:
    """int64[rows]: the rows in order; rows with equal keys stay in theirs."""
    arrays = [single(column) for column in columns]
    fields = [
        field
        for array, direction in zip(arrays, directions, strict=True)
        for field in fields_of(array, direction, threads=threads)
    ]
    return sort_fields(fields, len(arrays[0]) if arrays else 0, threads=threads)


def top_rows(columns: Sequence[AnyArray], directions: Sequence[Direction], count: int) -> Ints:
    """int64[at most count]: the first rows in order, as ``sort_rows`` would answer them.

    Rows whose leading field is above that of the ``count``-th are dropped before the rest is sorted.
    """
    arrays = [single(column) for column in columns]
    rows = len(arrays[0])
    if count >= rows or rows < 64:
        return sort_rows(arrays, directions)[:count]
    if count <= 0:
        return np.empty(0, np.int64)
    lead = _lead(arrays[0], directions[0])
    if lead is None:
        candidates = np.arange(rows)
    else:
        candidates = np.flatnonzero(lead <= np.partition(lead, count - 1)[count - 1])
    if len(candidates) < rows:
        taken = pa.array(candidates)
        arrays = [array.take(taken) for array in arrays]
    return candidates[sort_rows(arrays, directions)[:count]]


def _lead(array: pa.Array, direction: Direction) -> Ints | None:
    """uint64[rows]: a word that is smaller only where the key comes first; None where all are equal."""
    valid = mask_of(array)
    if is_text(array.type):
        offsets, characters = text_of(array)
        rows = np.arange(len(array))
        words = np.empty(len(array), np.uint64)
        text_words(offsets, characters, rows, _common_prefix(offsets, characters, valid), words)
        fields = _fields((words >> np.uint64(1)).view(np.int64), valid, direction, is_first=True)
    else:
        fields = fields_of(array, direction)
    digits = [field.digits(0, field.bits) for field in fields[:2]]
    if len(fields) > 1 and fields[0].bits == 1:
        return (digits[0] << np.uint64(63)) | (digits[1] >> np.uint64(1))
    return digits[0] if digits else None


# --- texts -----------------------------------------------------------------------------------------------------------


@kernel
def swap_bytes(word: Any) -> Any:
    """A uint64 with its bytes in reverse: the first byte of text becomes the most significant."""
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8)) | (
        (word >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    )
    word = ((word & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16)) | (
        (word >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    )
    return (word << np.uint64(32)) | (word >> np.uint64(32))


@kernel
def text_words(offsets: Any, characters: Any, rows: Any, depth: Any, words: Any) -> None:
    """Seven bytes of each text from ``depth`` on, and in the lowest byte how many are left, 8 at most.

    offsets  int32/int64[any]  in    characters  uint8[any]  in    rows  int64[n]  in    words  uint64[n]  out
    """
    for index in range(rows.size):
        row = rows[index]
        at = np.int64(offsets[row]) + depth
        left = np.int64(offsets[row + 1]) - at
        if left >= 8:
            word = swap_bytes(load_word(characters, np.uint64(at)))
            words[index] = (word & ~np.uint64(0xFF)) | np.uint64(8)
            continue
        left = max(left, 0)
        word = np.uint64(0)
        for byte in range(min(left, 7)):
            word |= np.uint64(characters[at + byte]) << np.uint64(56 - 8 * byte)
        words[index] = word | np.uint64(left)


@kernel
def common_prefix(offsets: Any, characters: Any, valid: Any) -> Any:
    """How many bytes all texts that are not NULL begin with alike; 0 where there are none."""
    has_nulls = valid.size > 0
    model, size = np.int64(-1), np.int64(0)
    for row in range(offsets.size - 1):
        if has_nulls and valid[row] == 0:
            continue
        first = np.int64(offsets[row])
        if model < 0:
            model, size = first, np.int64(offsets[row + 1]) - first
            continue
        size = min(size, np.int64(offsets[row + 1]) - first)
        if not same_bytes(characters, model, characters, first, size):
            shared = 0
            while shared < size and characters[model + shared] == characters[first + shared]:
                shared += 1
            size = shared
        if size == 0:
            break
    return size


@kernel
def split_runs(order: Any, words: Any, runs: Any, split: Any, active: Any) -> Any:
    """Splits runs of texts that were alike by their next bytes.

    order   int64[n]   in      the n rows at work, by run and then by word
    words   uint64[n]  in      ``text_words`` in that order      runs  int64[n]  in  where the run of each begins
    split   int64[n]   out     where its run begins from here on
    active  int64[n]   out     rows whose texts go on and are still alike; the answer is how many
    """
    count, start, begin = 0, 0, 0
    for index in range(order.size):
        if index == 0 or runs[index] != runs[index - 1]:
            begin = start = index
        elif words[index] != words[index - 1]:
            start = index
        split[index] = runs[index] + (start - begin)
    for index in range(order.size):
        if words[index] & np.uint64(0xFF) != np.uint64(8):
            continue
        before = index > 0 and split[index] == split[index - 1]
        after = index + 1 < order.size and split[index] == split[index + 1]
        if before or after:
            active[count] = order[index]
            count += 1
    return count


def text_ranks(array: pa.Array) -> Ints:
    """int64[rows]: a number for each text, in byte order, equal where the texts are; 0 for NULL."""
    offsets, characters = text_of(array)
    valid = mask_of(array)
    rows = len(array)
    if rows > SAMPLE_ROWS:
        sample = TextTable()
        sample.insert(offsets[: SAMPLE_ROWS + 1], characters, valid[:SAMPLE_ROWS])
        if sample.count < SAMPLE_ROWS // 4:
            table = TextTable()
            numbers = table.insert(offsets, characters, valid)
            if not table.count:
                return numbers
            return _ranks(*table.texts, ALL_VALID)[numbers]
    return _ranks(offsets, characters, valid)


def _ranks(offsets: Ints, characters: Ints, valid: Ints) -> Ints:
    ranks = np.zeros(len(offsets) - 1, np.int64)
    active = np.flatnonzero(valid) if valid.size else np.arange(len(ranks))
    depth = _common_prefix(offsets, characters, valid)
    while len(active):
        words = np.empty(len(active), np.uint64)
        text_words(offsets, characters, active, depth, words)
        runs = ranks[active]
        fields = [*_fields(runs, ALL_VALID, Direction(), is_first=True), plain_field(words, 64)]
        order = sort_fields(fields, len(active))
        rows, split, further = active[order], np.empty_like(active), np.empty_like(active)
        count = split_runs(rows, words[order], runs[order], split, further)
        ranks[rows] = split
        active = further[:count]
        depth += PREFIX_BYTES
    return ranks


def _common_prefix(offsets: Ints, characters: Ints, valid: Ints) -> int:
    found: int = common_prefix(offsets, characters, valid)
    return found


# --- peers -----------------------------------------------------------------------------------------------------------


@kernel
def mark_changes(words: Any, valid: Any, marks: Any) -> None:
    """Sets marks[row] where a word differs from the one before: words int64[rows], valid, marks uint8[rows] in/out."""
    has_nulls = valid.size > 0
    for row in range(1, words.size):
        if has_nulls and (valid[row] == 0 or valid[row - 1] == 0):
            if valid[row] != valid[row - 1]:
                marks[row] = 1
        elif words[row] != words[row - 1]:
            marks[row] = 1


@kernel
def mark_text_changes(offsets: Any, characters: Any, valid: Any, marks: Any) -> None:
    """Sets marks[row] where a text differs from the one before: marks uint8[rows] in/out."""
    has_nulls = valid.size > 0
    for row in range(1, marks.size):
        if has_nulls and (valid[row] == 0 or valid[row - 1] == 0):
            if valid[row] != valid[row - 1]:
                marks[row] = 1
            continue
        first, before = np.int64(offsets[row]), np.int64(offsets[row - 1])
        size = np.int64(offsets[row + 1]) - first
        if first - before != size or not same_bytes(characters, before, characters, first, size):
            marks[row] = 1


def boundaries(columns: Sequence[AnyArray], rows: int) -> Ints:
    """bool[rows]: where a row of sorted columns differs from the one before; true of the first row. NULLs are equal."""
    marks = np.zeros(rows, np.uint8)
    marks[:1] = 1
    for column in columns:
        array = single(column)
        if is_text(array.type):
            mark_text_changes(*text_of(array), mask_of(array), marks)
        else:
            mark_changes(key_column(array.type).insert(array), mask_of(array), marks)
    return marks.view(np.bool_)


@rehearsal
def _rehearse() -> None:
    text, up, down = pa.array(["b", "a"] * 40), Direction(), Direction(descending=True)
    doubles = pa.array([2.0, 1.0] * 40)
    top_rows([text, doubles], [up, down], 3)
    boundaries([text, doubles], 80)
    _ranks(np.array([0, 8, 16]), np.zeros(16, np.uint8), ALL_VALID)
