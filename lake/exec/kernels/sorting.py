"""Rows sorted by fields: unsigned words of known width, the first one most significant.

    fields [7, 3, 7] of 3 bits and [1, 0, 0] of 1 bit   -> [1, 2, 0]

Fields and the row number are packed into one uint64 where they fit, which numpy sorts with vector instructions; wider keys
take several such passes. The row number makes it stable.
Measured: 6 million int64 keys of a small range in 60 ms, doubles in 80, where np.argsort takes 263.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from msgspec import Struct

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.views import Ints

PARALLEL_ROWS_MIN: Final = 1 << 18
"""Below this many rows a second thread costs more than it brings."""
SAMPLE_TIES: Final = 1024  # rows looked at to guess whether the highest bits of a key leave many ties


class Field(Struct, frozen=True):
    """Part of a sort key: uint64[rows] below 2**bits, in ascending order."""

    words: Ints
    bits: int


def sort_fields(fields: Sequence[Field], rows: int, *, threads: int = 1) -> Ints:
    """int64[rows]: the rows in the order of the fields, the first most significant.

    What does not fit into one word beside the row number is sorted by its highest bits first, and only rows that tie are
    sorted by the rest; where a sample has many ties, by the lowest bits first, all rows each time.
    """
    room = 64 - max(rows - 1, 0).bit_length()
    parts = [Part(field.words, 0, field.bits) for field in fields]
    if sum(part.bits for part in parts) <= room:
        return _sort_digits(_digits(parts, rows), None, 64 - room, threads)[0]
    high, low = _split(parts, room)
    digits = _digits(high, rows)
    step = max(rows // SAMPLE_TIES, 1)
    sample = digits[::step]
    if 2 * len(np.unique(sample)) < len(sample):
        return _sort_lowest_first(parts, rows, threads)
    order, packed = _sort_digits(digits, None, 64 - room, threads)
    places, runs = np.empty(rows, np.int64), np.empty(rows, np.int64)
    count = tied_places(packed, 64 - room, places, runs)
    if count:
        places = places[:count]
        tied = order[places]
        run_bits = int(runs[count - 1]).bit_length()
        rest = [Field((part.words >> np.uint64(part.skip))[tied] & part.mask, part.bits) for part in low]
        within = sort_fields([Field(runs[:count].view(np.uint64), run_bits), *rest], count, threads=threads)
        order[places] = tied[within]
    return order


class Part(Struct, frozen=True):
    """Some bits of a field: ``bits`` of them above the lowest ``skip``."""

    words: Ints
    skip: int
    bits: int

    @property
    def mask(self) -> np.uint64:
        """The lowest ``bits`` bits set."""
        return np.uint64((1 << self.bits) - 1)


def _split(parts: Sequence[Part], room: int) -> tuple[list[Part], list[Part]]:
    """The highest ``room`` bits of a key, and the rest."""
    high: list[Part] = []
    low: list[Part] = []
    for part in parts:
        width = min(part.bits, room)
        room -= width
        if width:
            high.append(Part(part.words, part.skip + part.bits - width, width))
        if width < part.bits:
            low.append(Part(part.words, part.skip, part.bits - width))
    return high, low


def _digits(parts: Sequence[Part], rows: int) -> Ints:
    """uint64[rows]: the parts side by side, the first one highest; 64 bits at most."""
    digits, shift = np.zeros(rows, np.uint64), sum(part.bits for part in parts)
    for part in parts:
        shift -= part.bits
        add_field(part.words, part.skip, part.bits, shift, digits)
    return digits


def _sort_lowest_first(parts: Sequence[Part], rows: int, threads: int) -> Ints:
    """The order by several passes, each of which keeps that of the one before among equals."""
    row_bits = max(rows - 1, 0).bit_length()
    passes: list[list[Part]] = []
    rest = list(parts)
    while rest:
        extra = sum(part.bits for part in rest) - (64 - row_bits)
        rest, lowest = _split(rest, max(extra, 0))
        passes.append(lowest)
    order: Ints | None = None
    for lowest in passes:
        order, _ = _sort_digits(_digits(lowest, rows), order, row_bits, threads)
    assert order is not None
    return order


def _sort_digits(digits: Ints, order: Ints | None, row_bits: int, threads: int) -> tuple[Ints, Ints]:
    """The rows of ``order`` (of the input for None) by their digits, and the sorted digits with the places below them."""
    rows = len(digits)
    if order is None:
        packed = (digits << np.uint64(row_bits)) | np.arange(rows, dtype=np.uint64)
    else:
        packed = np.empty(rows, np.uint64)
        number_rows(digits, order, row_bits, packed)
    packed = _sorted(packed, threads)
    if order is None:
        return (packed & np.uint64((1 << row_bits) - 1)).view(np.int64), packed
    after = np.empty(rows, np.int64)
    follow(packed, row_bits, order, after)
    return after, packed


@kernel
def tied_places(packed: Any, bits: Any, places: Any, runs: Any) -> Any:
    """Finds runs of equal digits in sorted words; answers how many places they cover.

    packed  uint64[rows]  in   digits above ``bits``     places  int64[rows]  out  where ties are, ascending
    runs    int64[rows]   out  the run of each place, from 0 on
    """
    count, run = 0, -1
    shift = np.uint64(bits)
    for place in range(packed.size):
        digit = packed[place] >> shift
        before = place > 0 and packed[place - 1] >> shift == digit
        after = place + 1 < packed.size and packed[place + 1] >> shift == digit
        if before or after:
            run += 0 if before else 1
            places[count] = place
            runs[count] = run
            count += 1
    return count


def _sorted(words: Ints, threads: int) -> Ints:
    """The words in ascending order, in place or not; two halves side by side where there are threads for it."""
    if threads < 2 or len(words) < PARALLEL_ROWS_MIN:
        words.sort()
        return words
    middle = len(words) // 2
    left, right = words[:middle], words[middle:]
    out = np.empty_like(words)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(np.ndarray.sort, (left, right)))
        pivot = left[middle // 2]
        cut = int(np.searchsorted(right, pivot))
        split = middle // 2 + cut
        lower = pool.submit(merge_words, left[: middle // 2], right[:cut], out[:split])
        merge_words(left[middle // 2 :], right[cut:], out[split:])
        lower.result()
    return out


@kernel
def merge_words(left: Any, right: Any, out: Any) -> None:
    """Merges sorted uint64[a] and uint64[b] into uint64[a + b], equal words from the left first."""
    first, second, place = np.int64(0), np.int64(0), np.int64(0)
    while first < left.size and second < right.size:
        lesser, other = left[first], right[second]
        is_left = np.int64(lesser <= other)
        out[place] = min(lesser, other)
        first += is_left
        second += 1 - is_left
        place += 1
    # Loops, not slices: what numba makes of assigned slices takes seconds to compile.
    for index in range(first, left.size):
        out[place] = left[index]
        place += 1
    for index in range(second, right.size):
        out[place] = right[index]
        place += 1


@kernel
def add_field(words: Any, skip: Any, width: Any, shift: Any, out: Any) -> None:
    """Adds ``width`` bits of each word, without its lowest ``skip``, to ``out`` at ``shift``: uint64[rows] both."""
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1) if width < 64 else ~np.uint64(0)
    for row in range(words.size):
        out[row] |= ((words[row] >> np.uint64(skip)) & mask) << np.uint64(shift)


@kernel
def number_rows(digits: Any, order: Any, bits: Any, out: Any) -> None:
    """out[place] = digit of row order[place], shifted left by ``bits``, with the place: uint64[rows]; order int64[rows]."""
    for place in range(order.size):
        out[place] = (digits[order[place]] << np.uint64(bits)) | np.uint64(place)


@kernel
def follow(packed: Any, bits: Any, order: Any, out: Any) -> None:
    """out[i] = order[place in the lowest ``bits`` of packed[i]]: packed uint64[rows], order and out int64[rows]."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for index in range(packed.size):
        out[index] = order[packed[index] & mask]


@rehearsal
def _rehearse() -> None:
    words = np.arange(9).astype(np.uint64)
    sort_fields([Field(words, 64), Field(words, 64)], 9)
    sort_fields([Field(words & np.uint64(1), 64), Field(words, 64)], 9)
    merge_words(words, words, np.zeros(18, np.uint64))
