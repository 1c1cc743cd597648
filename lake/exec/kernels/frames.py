"""Window functions over sorted partitions: ranks, neighbours, and aggregates of each row's frame.

    starts [0, 0, 1], ends [1, 2, 3]       frame of row 2 is rows 1 and 2
    frame_counts, frame_sums, frame_sum_doubles, frame_extremes, nth_rows

A frame is one or more *pieces*, pairs of int64[rows] starts and exclusive ends (EXCLUDE makes up to three), start <= end.
Integers are summed by differences of running sums in 128 bits. Doubles and extremes follow the frame as it slides: each
row enters and leaves once where starts and ends never go back, which is so for all frames SQL has; where they do, the
frame is taken up again from its start. Sums of doubles are exact, so that nothing is left behind by rows that have gone.

Answers that are rows are int64[rows], -1 where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.exact_sum import LIMBS_OF_A_DOUBLE, carry_limbs, exponent_range, round_limbs
from lake.exec.kernels.views import ALL_VALID, Ints

Pieces: TypeAlias = Sequence[tuple[Ints, Ints]]

NANS, PLUS, MINUS = 0, 1, 2  # fields of ``specials``: how many of each the frame holds


# --- ranks -----------------------------------------------------------------------------------------------------------


def row_numbers(partition_start: Ints) -> Ints:
    """row_number(): from 1 on in each partition."""
    return np.arange(1, len(partition_start) + 1) - partition_start


def ranks(partition_start: Ints, peer_start: Ints) -> Ints:
    """rank(): the row number of the first peer."""
    return peer_start - partition_start + 1


def dense_ranks(partition_start: Ints, peer_start: Ints) -> Ints:
    """dense_rank(): the number of the peer group in its partition, from 1 on."""
    is_first = peer_start == np.arange(len(peer_start))
    groups = np.cumsum(is_first)
    return groups - groups[partition_start] + 1 if len(groups) else groups


def percent_ranks(partition_start: Ints, partition_end: Ints, peer_start: Ints) -> Ints:
    """percent_rank(): rows before the peers, of all rows but one; 0 in a partition of one row."""
    shares: Ints = (peer_start - partition_start) / np.maximum(partition_end - partition_start - 1, 1)
    return shares


def cume_dists(partition_start: Ints, partition_end: Ints, peer_end: Ints) -> Ints:
    """cume_dist(): rows up to the last peer, of all rows."""
    shares: Ints = (peer_end - partition_start) / (partition_end - partition_start)
    return shares


def ntiles(partition_start: Ints, partition_end: Ints, buckets: Ints | int) -> Ints:
    """ntile(buckets): which of so many buckets, the first ones larger by a row where rows do not share out evenly."""
    rows = partition_end - partition_start
    place = np.arange(len(rows)) - partition_start
    size, larger = rows // buckets, rows % buckets
    in_larger = larger * (size + 1)
    return np.where(
        place < in_larger, place // (size + 1), larger + (place - in_larger) // np.maximum(size, 1)
    ) + 1


# --- rows ------------------------------------------------------------------------------------------------------------


def shifted_rows(partition_start: Ints, partition_end: Ints, offset: Ints | int, valid: Ints = ALL_VALID) -> Ints:
    """The row ``offset`` rows on (lead; lag where it is negative) in the same partition.

    valid  where given, only rows that are valid count: lag(x, 2) IGNORE NULLS is the second value before
    """
    rows = np.arange(len(partition_start), dtype=np.int64)
    if valid.size == 0:
        target = rows + offset
        return np.where((target >= partition_start) & (target < partition_end), target, -1)
    listed = np.flatnonzero(valid)
    before = np.concatenate(([0], np.cumsum(valid, dtype=np.int64)))
    # Among valid rows the next one on is the number of those up to this row, the one before it is one less than those before.
    place = np.where(np.greater(offset, 0), before[rows + 1] + offset - 1, before[rows] + offset)
    inside = (place >= before[partition_start]) & (place < before[partition_end])
    found = listed[np.where(inside, place, 0)] if len(listed) else rows
    return np.where(np.equal(offset, 0), rows, np.where(inside, found, -1))


def nth_rows(pieces: Pieces, nth: Ints | int, valid: Ints = ALL_VALID) -> Ints:
    """The nth row of each frame: 1 for first_value, -1 for last_value; only valid rows count where ``valid`` is given."""
    rows = len(pieces[0][0])
    if valid.size:
        listed, before = np.flatnonzero(valid), np.concatenate(([0], np.cumsum(valid, dtype=np.int64)))
        pieces = [(before[starts], before[ends]) for starts, ends in pieces]
    counts = sum((ends - starts for starts, ends in pieces), np.zeros(rows, np.int64))
    place = np.where(np.greater(nth, 0), np.subtract(nth, 1), counts + nth)
    inside = (place >= 0) & (place < counts)
    found = np.full(rows, -1, np.int64)
    for starts, ends in pieces:
        size = ends - starts
        here = inside & (place >= 0) & (place < size)
        found = np.where(here, starts + place, found)
        place = place - size
    if valid.size:
        return np.where(found >= 0, listed[np.maximum(found, 0)], -1) if len(listed) else found
    return found


# --- counts and sums -------------------------------------------------------------------------------------------------


@kernel
def running_sums(values: Any, valid: Any, sums: Any) -> None:
    """Running sums in two words: values int64[rows, 2] in, sums int64[rows + 1, 2] out, modulo 2**128."""
    has_nulls = valid.size > 0
    low, high = np.uint64(0), np.int64(0)
    sums[0, 0] = sums[0, 1] = 0
    for row in range(values.shape[0]):
        if not has_nulls or valid[row] != 0:
            added = np.uint64(values[row, 0])
            low += added
            high += values[row, 1] + np.int64(low < added)
        sums[row + 1, 0], sums[row + 1, 1] = np.int64(low), high


@kernel
def add_differences(sums: Any, starts: Any, ends: Any, out: Any) -> None:
    """Adds sums[end] - sums[start] to each row: sums int64[any, 2] in, out int64[rows, 2] in/out, modulo 2**128."""
    for row in range(starts.size):
        end, start = np.uint64(sums[ends[row], 0]), np.uint64(sums[starts[row], 0])
        low = end - start
        high = sums[ends[row], 1] - sums[starts[row], 1] - np.int64(end < start)
        total = np.uint64(out[row, 0]) + low
        out[row, 1] += high + np.int64(total < low)
        out[row, 0] = np.int64(total)


def frame_counts(pieces: Pieces, valid: Ints = ALL_VALID) -> Ints:
    """int64[rows]: how many rows of each frame are valid."""
    if valid.size == 0:
        return sum((ends - starts for starts, ends in pieces), np.zeros(len(pieces[0][0]), np.int64))
    before = np.concatenate(([0], np.cumsum(valid, dtype=np.int64)))
    return sum((before[ends] - before[starts] for starts, ends in pieces), np.zeros(len(pieces[0][0]), np.int64))


def frame_sums(values: Ints, pieces: Pieces, valid: Ints = ALL_VALID) -> Ints:
    """int64[rows, 2]: the exact sum of each frame in two words, of int64[rows] or int64[rows, 2] values."""
    sums, out = np.empty((len(values) + 1, 2), np.int64), np.zeros((len(pieces[0][0]), 2), np.int64)
    if values.ndim == 1:
        values = np.stack([values.astype(np.int64, copy=False), values.astype(np.int64, copy=False) >> 63], axis=1)
    running_sums(values, valid, sums)
    for starts, ends in pieces:
        add_differences(sums, starts, ends, out)
    return out


@kernel
def slide_double(bits: Any, sign: Any, base: Any, limbs: Any, specials: Any) -> None:
    """Adds (sign 0) or takes away (sign -1) one double: bits int64; limbs int64[width], specials int64[3] in/out."""
    field = (bits >> np.int64(52)) & np.int64(0x7FF)
    mantissa = bits & np.int64(0xFFFFFFFFFFFFF)
    sign ^= bits >> np.int64(63)
    if field == 0x7FF:
        which = NANS if mantissa != 0 else PLUS if bits > 0 else MINUS
        specials[which] += 1 if (sign ^ (bits >> np.int64(63))) == 0 else -1
        return
    if field == 0:
        field = np.int64(1)
    else:
        mantissa |= np.int64(1) << np.int64(52)
    if mantissa == 0:
        return
    limb, shift = ((field - 1) >> np.int64(5)) - base, (field - 1) & np.int64(31)
    low = (mantissa & np.int64(0xFFFFFFFF)) << shift
    high = ((mantissa >> np.int64(32)) << shift) + (low >> np.int64(32))
    limbs[limb] += ((low & np.int64(0xFFFFFFFF)) ^ sign) - sign
    limbs[limb + 1] += ((high & np.int64(0xFFFFFFFF)) ^ sign) - sign
    limbs[limb + 2] += ((high >> np.int64(32)) ^ sign) - sign


@kernel
def slide_sums(
    bits: Any, valid: Any, starts: Any, ends: Any, base: Any, limbs: Any, specials: Any, flags: Any, out: Any
) -> None:
    """The exact sum of each frame of doubles, rounded once.

    bits   int64[rows]  in       starts, ends  int64[pieces, rows]  in    valid  uint8[rows] or empty  in
    limbs  int64[2, width]  scratch, zeros    specials  int64[3]  scratch, zeros    flags  uint8[1]  scratch
    out    float64[rows]  out
    """
    has_nulls = valid.size > 0
    for row in range(out.size):
        for piece in range(starts.shape[0]):
            start, end = starts[piece, row], ends[piece, row]
            before = starts[piece, row - 1] if row > 0 else start
            until = ends[piece, row - 1] if row > 0 else start
            if start < before or end < until or start > until:
                for index in range(before, until):
                    if not has_nulls or valid[index] != 0:
                        slide_double(bits[index], np.int64(-1), base, limbs[0], specials)
                before = until = start
            for index in range(before, start):
                if not has_nulls or valid[index] != 0:
                    slide_double(bits[index], np.int64(-1), base, limbs[0], specials)
            for index in range(until, end):
                if not has_nulls or valid[index] != 0:
                    slide_double(bits[index], np.int64(0), base, limbs[0], specials)
        for limb in range(limbs.shape[1]):
            limbs[1, limb] = limbs[0, limb]
        carry_limbs(limbs[1:2])
        flags[0] = (1 if specials[NANS] else 0) | (2 if specials[PLUS] else 0) | (4 if specials[MINUS] else 0)
        round_limbs(limbs[1:2], base, flags, out[row : row + 1])


def frame_sum_doubles(values: Ints, pieces: Pieces, valid: Ints = ALL_VALID) -> Ints:
    """float64[rows]: the sum of each frame's valid doubles, exact and rounded once; 0 where there are none."""
    bits = values.astype(np.float64, copy=False).view(np.int64)
    low, high = exponent_range(bits, valid)
    base = (low - 1) >> 5
    width = ((high - 1) >> 5) - base + LIMBS_OF_A_DOUBLE + 2 if high >= low else LIMBS_OF_A_DOUBLE + 2
    out = np.empty(len(pieces[0][0]), np.float64)
    starts, ends = _stacked(pieces)
    limbs, specials = np.zeros((2, width), np.int64), np.zeros(3, np.int64)
    slide_sums(bits, valid, starts, ends, base, limbs, specials, np.zeros(1, np.uint8), out)
    return out


# --- extremes --------------------------------------------------------------------------------------------------------


@kernel
def slide_extremes(words: Any, valid: Any, starts: Any, ends: Any, queue: Any, best: Any) -> None:
    """The row of the least word of each frame, the first such; ``best`` is kept where it is less or equal.

    words  int64[rows]  in    valid  uint8[rows] or empty  in    starts, ends  int64[rows]  in
    queue  int64[rows]  scratch: rows of the frame, each less than those after it    best  int64[rows]  in/out  -1 for none
    """
    has_nulls = valid.size > 0
    head = tail = 0
    before = until = np.int64(0)
    for row in range(starts.size):
        start, end = starts[row], ends[row]
        if start < before or end < until or start > until:
            head = tail = 0
            until = start
        for index in range(until, end):
            if has_nulls and valid[index] == 0:
                continue
            while tail > head and words[queue[tail - 1]] > words[index]:
                tail -= 1
            if tail == head:
                head = tail = 0
            queue[tail] = index
            tail += 1
        before, until = start, end
        while head < tail and queue[head] < start:
            head += 1
        if head < tail and (best[row] < 0 or words[queue[head]] < words[best[row]]):
            best[row] = queue[head]


def frame_extremes(words: Ints, pieces: Pieces, valid: Ints = ALL_VALID, *, greatest: bool) -> Ints:
    """The row of each frame's least (greatest) value; ``words`` are in the values' order (``order.ranks``)."""
    best = np.full(len(pieces[0][0]), -1, np.int64)
    queue = np.empty(len(words), np.int64)
    for starts, ends in pieces:
        slide_extremes(~words if greatest else words, valid, starts, ends, queue, best)
    return best


def _stacked(pieces: Pieces) -> tuple[Ints, Ints]:
    """Starts and ends of all pieces as int64[pieces, rows]."""
    return np.stack([starts for starts, _ in pieces]), np.stack([ends for _, ends in pieces])


@rehearsal
def _rehearse() -> None:
    pieces = [(np.array([0, 0]), np.array([1, 2]))]
    frame_sums(np.array([1, 2]), pieces)
    frame_sum_doubles(np.array([1.0, 2.0]), pieces)
    frame_extremes(np.array([1, 2]), pieces, greatest=False)
