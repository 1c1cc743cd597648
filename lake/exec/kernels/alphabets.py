"""Bytes and numbers in alphabets of digits: base 2 to 36, hex, base 64, the percent signs of URLs.

    written([255, 0], 16)  ->  ["FF", "0"]

Whole columns at once in numpy: a byte is looked up in a table, and what a row does not use of its places is left out.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import NumericOutOfRange
from lake.exec.kernels.views import Ints, text_array, text_of, valid_of

DIGITS: Final = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)
LOWER_DIGITS: Final = np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyz", np.uint8)
BASE64: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
NO_DIGIT: Final = 255
PLAIN_IN_URLS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-*"
BYTES_MAX: Final = (1 << 31) - 1


def _values(letters: Ints, count: int) -> Ints:
    """uint8[256]: the value of each letter, NO_DIGIT of others."""
    table = np.full(256, NO_DIGIT, np.uint8)
    table[letters] = np.arange(count)
    return table


HEX_VALUES: Final = _values(DIGITS[:16], 16)
HEX_VALUES[DIGITS[10:16] | 32] = np.arange(10, 16)
BASE64_VALUES: Final = _values(BASE64, 64)


def _column(sizes: Ints, characters: Ints, type: pa.DataType, source: pa.Array) -> pa.Array:
    """Texts of so many bytes each, NULL where the source is."""
    offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    if offsets[-1] > BYTES_MAX:
        raise NumericOutOfRange("texts of one batch pass 2 GiB")
    return text_array(offsets.astype(np.int32), np.ascontiguousarray(characters), type, valid_of(source))


def _used(array: pa.Array) -> tuple[Ints, Ints, Ints]:
    """Offsets from 0, sizes, and the bytes between the first and the last offset; nothing of rows that are NULL."""
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(b"").cast(array.type))  # bytes may stand below a NULL
    offsets, characters = text_of(array)
    offsets = offsets.astype(np.int64)
    return offsets - offsets[0], np.diff(offsets), characters[offsets[0] : offsets[-1]]


# --- numbers ---------------------------------------------------------------------------------------------------------


def written(numbers: Ints, base: Ints | int, source: pa.Array, *, is_lower: bool = False) -> pa.Array:
    """Whole numbers as digits of a base from 2 to 36, or each of its own; those below 0 as 64 bits.

    numbers  int64[rows]    base  a number, or uint64[rows]    source  whose NULLs are the answer's
    """
    rest, bases = numbers.view(np.uint64).copy(), np.asarray(base, np.uint64)
    places: list[Ints] = []
    while not places or rest.any():
        rest, digit = np.divmod(rest, bases)
        places.append(DIGITS[digit.astype(np.int64)])
    table = np.stack(places[::-1], axis=1)
    sizes = np.maximum(table.shape[1] - np.argmax(table != DIGITS[0], axis=1), 1)
    sizes[(table == DIGITS[0]).all(axis=1)] = 1
    digits = table[np.arange(table.shape[1]) >= table.shape[1] - sizes[:, None]]
    return _column(sizes, np.where(digits >= 65, digits | 32, digits) if is_lower else digits, pa.string(), source)


# --- hex and base 64 -------------------------------------------------------------------------------------------------


def to_hex(array: pa.Array, *, is_lower: bool = True) -> pa.Array:
    """Bytes as two digits each."""
    _, sizes, characters = _used(array)
    digits = DIGITS[np.stack((characters >> 4, characters & 15), axis=1).reshape(-1)]
    return _column(2 * sizes, np.where(digits >= 65, digits | 32, digits) if is_lower else digits, pa.string(), array)


def from_hex(array: pa.Array) -> pa.Array | None:
    """The bytes of texts in base 16; None where a text is not pairs of digits alone."""
    _, sizes, characters = _used(array)
    values = HEX_VALUES[characters]
    if (sizes & 1).any() or (values == NO_DIGIT).any():
        return None
    return _column(sizes // 2, values[::2] << 4 | values[1::2], pa.binary(), array)


def to_base64(array: pa.Array, *, is_padded: bool) -> pa.Array:
    """Bytes in base 64: four letters for three bytes, the last ones filled up with ``=`` where so told."""
    offsets, sizes, characters = _used(array)
    groups = (sizes + 2) // 3
    starts = np.concatenate(([0], np.cumsum(groups)))[:-1]
    spread = np.zeros(3 * int(groups.sum()), np.uint8)
    spread[np.arange(len(characters)) + np.repeat(3 * starts - offsets[:-1], sizes)] = characters
    one, two, three = spread[::3], spread[1::3], spread[2::3]
    letters = np.stack((one >> 2, (one & 3) << 4 | two >> 4, (two & 15) << 2 | three >> 6, three & 63), axis=1)
    text = BASE64[letters.reshape(-1)]
    missing = 3 * groups - sizes  # letters that a text lacks at its end: 0, 1 or 2
    place = np.arange(len(text)) - np.repeat(4 * starts, 4 * groups)
    is_past = place >= np.repeat(4 * groups - missing, 4 * groups)
    if is_padded:
        return _column(4 * groups, np.where(is_past, np.uint8(ord("=")), text), pa.string(), array)
    return _column(4 * groups - missing, text[~is_past], pa.string(), array)


def from_base64(array: pa.Array) -> pa.Array | None:
    """The bytes of texts in base 64, with or without ``=`` at their ends; None for another text or bits left over."""
    offsets, sizes, characters = _used(array)
    values = BASE64_VALUES[characters]
    is_letter = values != NO_DIGIT
    letters = np.concatenate(([0], np.cumsum(is_letter)))[offsets]
    counts = np.diff(letters)
    behind = np.arange(len(characters)) - np.repeat(offsets[:-1], sizes) >= np.repeat(counts, sizes)
    if (is_letter == behind).any() or (characters[~is_letter] != ord("=")).any() or (counts % 4 == 1).any():
        return None
    groups = (counts + 3) // 4
    starts = np.concatenate(([0], np.cumsum(groups)))[:-1]
    spread = np.zeros(4 * int(groups.sum()), np.uint8)
    spread[np.arange(int(counts.sum())) + np.repeat(4 * starts - letters[:-1], counts)] = values[is_letter]
    a, b, c, d = (spread[place::4] for place in range(4))
    whole = np.stack((a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d), axis=1).reshape(-1)
    found = counts * 3 // 4
    is_found = np.arange(len(whole)) - np.repeat(3 * starts, 3 * groups) < np.repeat(found, 3 * groups)
    return None if whole[~is_found].any() else _column(found, whole[is_found], pa.binary(), array)


# --- URLs ------------------------------------------------------------------------------------------------------------


def to_percent(array: pa.Array) -> pa.Array:
    """Texts as forms of the web send them: a space as +, what is neither a letter nor one of ``_.-*`` as %XX."""
    offsets, _, characters = _used(array)
    is_plain = np.zeros(256, np.bool_)
    is_plain[np.frombuffer(PLAIN_IN_URLS, np.uint8)] = is_plain[32] = True
    plain = is_plain[characters]
    bare = np.where(characters == 32, np.uint8(ord("+")), characters)
    table = np.stack((np.where(plain, bare, np.uint8(37)), DIGITS[characters >> 4], DIGITS[characters & 15]), axis=1)
    keep = np.stack((np.ones_like(plain), ~plain, ~plain), axis=1)
    ends = np.concatenate(([0], np.cumsum(np.where(plain, 1, 3))))
    return _column(np.diff(ends[offsets]), table[keep], pa.string(), array)


def from_percent(array: pa.Array) -> pa.Array | None:
    """The bytes that forms of the web have sent; None where a percent sign has not two digits behind it."""
    offsets, sizes, characters = _used(array)
    starts = np.flatnonzero(characters == 37)
    ends = np.repeat(offsets[1:], sizes)[starts] if len(starts) else starts
    if (starts + 2 >= ends).any():
        return None
    high, low = HEX_VALUES[characters[starts + 1]], HEX_VALUES[characters[starts + 2]]
    if ((high == NO_DIGIT) | (low == NO_DIGIT)).any():
        return None
    made, keep = np.where(characters == ord("+"), np.uint8(32), characters), np.ones(len(characters), np.bool_)
    made[starts] = high << 4 | low
    keep[starts + 1] = keep[starts + 2] = False
    left = np.concatenate(([0], np.cumsum(keep)))
    return _column(np.diff(left[offsets]), made[keep], pa.binary(), array)


def digits_of(array: pa.Array) -> tuple[Any, Any]:
    """uint8 values of the characters as decimal digits (above 9 of others), and int64[rows + 1] where each text begins."""
    offsets, _, characters = _used(array)
    return characters - np.uint8(48), offsets


def mapped(array: pa.Array, table: Ints) -> pa.Array:
    """Texts of ASCII with each character replaced: table int16[256], -1 for what is left out."""
    offsets, _, characters = _used(array)
    made = table[characters]
    left = np.concatenate(([0], np.cumsum(made >= 0)))
    return _column(np.diff(left[offsets]), made[made >= 0].astype(np.uint8), array.type, array)


def capitalized(array: pa.Array) -> pa.Array:
    """Texts of ASCII with each word's first letter in upper case, others in lower case; words are letters and digits."""
    offsets, sizes, characters = _used(array)
    lower = np.where((characters >= 65) & (characters <= 90), characters | 32, characters)
    is_letter = (lower >= 97) & (lower <= 122)
    is_word = is_letter | ((characters >= 48) & (characters <= 57))
    inside = np.concatenate((np.zeros(1, np.bool_), is_word))[:-1]
    inside[offsets[:-1][sizes > 0]] = False
    return _column(sizes, np.where(is_letter & ~inside, lower & 223, lower), array.type, array)
