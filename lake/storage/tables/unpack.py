"""Kernels that unpack the values of Parquet pages: runs and packed bits, dictionary codes, packed deltas.

They read 64 bits at a time from words that lie in memory as the bytes do. A page seldom begins at a word, so places are
bytes counted from the first word; whoever makes the words sees to it that 16 bytes after the page may be read.
Sources: Apache Parquet, "Encodings": RLE/bit-packing hybrid, DELTA_BINARY_PACKED.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lake.compiled import kernel

BLOCK_VALUES_MAX: Final = 4_096
"""The longest block of deltas that is taken; writers make 128."""


@kernel
def byte_at(words: Any, at: Any) -> Any:
    """The byte at a place, as int64."""
    return np.int64((words[at >> 3] >> np.uint64((at & 7) << 3)) & np.uint64(255))


@kernel
def varint_at(words: Any, at: Any, end: Any) -> Any:
    """The unsigned integer that starts at ``at``, and where it ends; beyond ``end`` it is 0."""
    value, shift = np.int64(0), np.int64(0)
    while at < end and shift < 64:
        byte = byte_at(words, at)
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return value, at


@kernel
def next_run(words: Any, at: Any, end: Any, width: Any, room: Any) -> Any:
    """The head of a run of the hybrid: how many values it gives, whether they are packed, where its body begins.

    The count is at most ``room``, and -1 for damage: a body that ends after ``end``, no value at all.
    """
    head, at = varint_at(words, at, end)
    if head < 2:
        return np.int64(-1), False, at
    if head & 1 == 0:
        return min(head >> 1, room) if at + ((width + 7) >> 3) <= end else np.int64(-1), False, at
    if head >> 1 > room:  # of groups of eight: one of them may be padding, more may not
        return np.int64(-1), True, at
    count = min((head >> 1) * 8, room)
    return count if at + ((count * width + 7) >> 3) <= end else np.int64(-1), True, at


@kernel
def unpack_codes(words: Any, at: Any, end: Any, entries: Any, codes: Any) -> Any:
    """Codes of the hybrid of runs and packed bits, whose width is the byte at ``at``; False for damage.

    words  uint64[any]  in    at, end  places of the page's bytes    entries  codes below it are right
    codes  int32[values]  out
    """
    width, at = byte_at(words, at), at + 1
    if width > 31 or entries == 0:
        return False
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    done, most = np.int64(0), np.int64(0)
    while done < codes.size:
        count, is_packed, at = next_run(words, at, end, width, codes.size - done)
        if count < 0:
            return False
        out = codes[done : done + count]
        if not is_packed:
            value = np.int64(words_at(words, at * 8) & mask)
            for place in range(out.size):
                out[place] = value
            most = max(most, value)
            at += (width + 7) >> 3
        else:
            start = np.uint64(at) * np.uint64(8)
            for place in range(out.size):
                bit = start + np.uint64(place) * np.uint64(width)
                word, shift = bit >> np.uint64(6), bit & np.uint64(63)
                upper = (words[word + np.uint64(1)] << np.uint64(1)) << (np.uint64(63) - shift)
                out[place] = np.int32(((words[word] >> shift) | upper) & mask)
            for place in range(out.size):
                most = max(most, np.int64(out[place]))
            at += ((count + 7) >> 3) * width
        done += count
    return most < entries


@kernel
def unpack_values(words: Any, at: Any, end: Any, entries: Any, out: Any) -> Any:
    """``unpack_codes`` with each code's entry in its place: out[row] = entries[code]; False for damage.

    entries, out  of one type
    """
    width, at = byte_at(words, at), at + 1
    if width > 31 or entries.size == 0:
        return False
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    done, is_right, last = np.int64(0), True, np.uint64(entries.size - 1)
    while done < out.size:
        count, is_packed, at = next_run(words, at, end, width, out.size - done)
        if count < 0:
            return False
        filled = out[done : done + count]
        if not is_packed:
            code = words_at(words, at * 8) & mask
            is_right &= code <= last
            entry = entries[min(code, last)]
            for place in range(filled.size):
                filled[place] = entry
            at += (width + 7) >> 3
        else:
            start = np.uint64(at) * np.uint64(8)
            for place in range(filled.size):
                bit = start + np.uint64(place) * np.uint64(width)
                word, shift = bit >> np.uint64(6), bit & np.uint64(63)
                upper = (words[word + np.uint64(1)] << np.uint64(1)) << (np.uint64(63) - shift)
                code = ((words[word] >> shift) | upper) & mask
                is_right &= code <= last
                filled[place] = entries[min(code, last)]
            at += ((count + 7) >> 3) * width
        done += count
    return is_right


@kernel
def words_at(words: Any, bit: Any) -> Any:
    """64 bits from any bit on."""
    word, shift = np.uint64(bit) >> np.uint64(6), np.uint64(bit) & np.uint64(63)
    return (words[word] >> shift) | ((words[word + np.uint64(1)] << np.uint64(1)) << (np.uint64(63) - shift))


@kernel
def unpack_deltas(words: Any, at: Any, end: Any, out: Any) -> Any:
    """Values that are stored as packed differences from one to the next; False for damage.

    words  uint64[any]  in    at, end  places of the page's bytes    out  int32[values] or int64[values]  out
    """
    block, at = varint_at(words, at, end)
    pieces, at = varint_at(words, at, end)
    total, at = varint_at(words, at, end)
    first, at = varint_at(words, at, end)
    if total != out.size or total == 0 or pieces < 1 or block < 1 or block > BLOCK_VALUES_MAX:
        return False
    size = block // pieces
    if size % 32 != 0 or size * pieces != block:
        return False
    value = ((first >> 1) & np.int64(0x7FFFFFFFFFFFFFFF)) ^ -(first & 1)
    out[0] = value
    done = np.int64(1)
    while done < total:
        low, at = varint_at(words, at, end)
        least = ((low >> 1) & np.int64(0x7FFFFFFFFFFFFFFF)) ^ -(low & 1)
        widths = at
        at += pieces
        if at > end:
            return False
        for piece in range(pieces):
            if done >= total:
                break
            width = byte_at(words, widths + piece)
            if width > 64 or at + ((size * width) >> 3) > end:
                return False
            count = min(size, total - done)
            mask = ~np.uint64(0) if width == 64 else (np.uint64(1) << np.uint64(width)) - np.uint64(1)
            start = np.uint64(at) * np.uint64(8)
            filled = out[done : done + count]
            for place in range(filled.size):
                bit = start + np.uint64(place) * np.uint64(width)
                word, shift = bit >> np.uint64(6), bit & np.uint64(63)
                upper = (words[word + np.uint64(1)] << np.uint64(1)) << (np.uint64(63) - shift)
                value += np.int64(((words[word] >> shift) | upper) & mask) + least
                filled[place] = value
            at += (size * width) >> 3
            done += count
    return True


@kernel
def unpack_levels(words: Any, at: Any, end: Any, valid: Any) -> Any:
    """Definition levels of 0 or 1: where they end, and how many are 1; -1 for damage.

    words  uint64[any]  in    at, end  places of the page's bytes    valid  uint8[rows]  out
    """
    if at + 4 > end:
        return np.int64(-1), np.int64(0)
    length = np.int64(words_at(words, at * 8) & np.uint64(0xFFFFFFFF))
    at += 4
    stop = at + length
    if stop > end:
        return np.int64(-1), np.int64(0)
    done, present = np.int64(0), np.int64(0)
    while done < valid.size:
        count, is_packed, at = next_run(words, at, stop, np.int64(1), valid.size - done)
        if count < 0:
            return np.int64(-1), np.int64(0)
        out = valid[done : done + count]
        if not is_packed:
            level = byte_at(words, at) & 1
            for place in range(out.size):
                out[place] = level
            present += level * count
            at += 1
        else:
            start = at * 8
            for place in range(out.size):
                bit = np.uint64(start + place)
                level = (words[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1)
                out[place] = level
                present += np.int64(level)
            at += (count + 7) >> 3
        done += count
    return stop, present


@kernel
def spread_values(values: Any, valid: Any, out: Any) -> None:
    """out[row] = the next of ``values`` where ``valid[row]`` is 1, and 0 where it is not.

    values, out  of one type, as many values as ``valid`` has ones    valid  uint8[rows]  in
    """
    taken = 0
    for row in range(out.size):
        if valid[row] != 0:
            out[row] = values[taken]
            taken += 1
        else:
            out[row] = 0
