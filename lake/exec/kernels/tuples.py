"""Tuples of Postgres's binary COPY taken apart: where each field lies, then each column's bytes by themselves; numerics made.

    count (int16) | length (int32) bytes | length (int32) bytes | ..        a count of -1 ends the rows

Numbers are big-endian. Source: PostgreSQL documentation, COPY, Binary Format.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lake.exec.kernels import allocating_kernel, kernel, rehearsal
from lake.exec.kernels.views import ALL_VALID
from lake.primitives import copy_bytes

NUMERIC_BYTES_MAX: Final = 28  # eight of head and ten groups of four digits: a short decimal has no more
_BEFORE: Final = 5  # groups before the point
MORE, ENDED, WRONG_COUNT, WRONG_LENGTH = 0, 1, 2, 3


@kernel
def find_fields(body: Any, starts: Any, lengths: Any, marks: Any) -> Any:
    """How many whole tuples there are.

    body     uint8[bytes]          in
    starts   int64[columns, rows]  out  of each field; rows are at least as many as the bytes can hold
    lengths  int32[columns, rows]  out  -1 of NULL
    marks    int64[2]              out  where the rest begins, and MORE, ENDED or what is wrong there
    """
    columns, size = starts.shape[0], body.size
    place, row = np.int64(0), np.int64(0)
    marks[1] = 0
    while place + 2 <= size:
        count = np.int64(body[place]) << 8 | np.int64(body[place + 1])
        if count == 0xFFFF:
            place += 2
            marks[1] = 1
            break
        if count != columns:
            marks[1] = 2
            break
        at = place + 2
        whole = True
        for column in range(columns):
            if at + 4 > size:
                whole = False
                break
            length = np.int64(body[at]) << 24 | np.int64(body[at + 1]) << 16
            length |= np.int64(body[at + 2]) << 8 | np.int64(body[at + 3])
            if length >= 0x80000000:
                length -= 0x100000000
            at += 4
            if length < -1:
                marks[1] = 3
                whole = False
                break
            if length > size - at:
                whole = False
                break
            starts[column, row] = at
            lengths[column, row] = length
            if length > 0:
                at += length
        if not whole:
            break
        place = at
        row += 1
    marks[0] = place
    return row


@kernel
def gather_fixed(body: Any, starts: Any, lengths: Any, made: Any) -> Any:
    """The first row whose field is not of the width of ``made``, -1 where all are or are NULL.

    body  uint8[bytes]  in    starts  int64[rows]  in    lengths  int32[rows]  in    made  uint8[rows, width]  out, 0 of NULL
    """
    width = made.shape[1]
    for row in range(starts.size):
        if lengths[row] == width:
            for place in range(width):
                made[row, place] = body[starts[row] + place]
        elif lengths[row] == -1:
            for place in range(width):
                made[row, place] = 0
        else:
            return np.int64(row)
    return np.int64(-1)


@kernel
def gather_bytes(body: Any, starts: Any, lengths: Any, offsets: Any, made: Any) -> None:
    """Puts fields behind each other: body uint8[bytes], starts int64[rows], lengths int32[rows], offsets int32[rows] in,
    made uint8[..] out.
    """
    for row in range(starts.size):
        copy_bytes(body, starts[row], made, offsets[row], lengths[row])


@kernel
def scaled_numerics(body: Any, starts: Any, lengths: Any, scale: Any, limit: Any, made: Any) -> Any:
    """The first row whose numeric is none, not finite, or ``limit`` and more when scaled; -1 where there is none.

    body   uint8[bytes]  in    starts  int64[rows]  in    lengths  int32[rows]  in
    scale  int64         in    digits behind the point, 0 to 18    limit  int64  in  at most 10 ** 18
    made   int64[rows]   out   rounded half away from zero, 0 of NULL
    """
    for row in range(starts.size):
        made[row] = 0
        if lengths[row] == -1:
            continue
        at = starts[row]
        if lengths[row] < 8:
            return np.int64(row)
        count = np.int64(body[at]) << 8 | np.int64(body[at + 1])
        weight = np.int64(body[at + 2]) << 8 | np.int64(body[at + 3])
        weight -= (weight & 0x8000) << 1
        sign = np.int64(body[at + 4]) << 8 | np.int64(body[at + 5])
        if lengths[row] != 8 + 2 * count or (sign != 0 and sign != 0x4000):
            return np.int64(row)
        value = np.int64(0)
        for group in range(count):
            at += 2
            digit = np.int64(body[at + 6]) << 8 | np.int64(body[at + 7])
            power = 4 * (weight - group) + scale
            if digit >= 10_000 or (power >= 18 and digit != 0):
                return np.int64(row)
            if power >= 0:
                for _ in range(min(power, 18)):
                    digit *= 10
                    if digit >= limit:
                        return np.int64(row)
                value += digit
            elif power > -4:
                unit = np.int64(1)
                for _ in range(-power):
                    unit *= 10
                value += (digit + unit // 2) // unit
            elif power == -4 and digit >= 5_000:
                value += 1
            if power < 0:
                break
            if value >= limit:
                return np.int64(row)
        if value >= limit:
            return np.int64(row)
        made[row] = -value if sign == 0x4000 else value
    return np.int64(-1)


@allocating_kernel
def write_numerics(values: Any, valid: Any, scale: Any, offsets: Any, made: Any) -> Any:
    """Puts scaled integers as numerics one behind the other, without groups of zeros at either end; answers their bytes.

    values   int64[rows]  in        valid  uint8[rows] or empty  in    scale  int64  in  0 to 18
    offsets  int32[rows + 1]  out   made   uint8[rows * NUMERIC_BYTES_MAX]  out
    """
    after = (scale + 3) // 4
    unit, odd = np.uint64(1), np.uint64(1)
    for place in range(scale):
        unit *= np.uint64(10)
        if place < scale % 4:
            odd *= np.uint64(10)
    groups = np.zeros(_BEFORE + after, np.int64)
    at = np.int64(0)
    offsets[0] = 0
    for row in range(values.size):
        if valid.size > 0 and valid[row] == 0:
            offsets[row + 1] = at
            continue
        negative = values[row] < 0
        number = np.uint64(-values[row]) if negative else np.uint64(values[row])
        whole = number // unit
        part = number - whole * unit
        last = _BEFORE + after - 1
        if scale % 4:
            groups[last] = np.int64(part % odd * (np.uint64(10_000) // odd))
            part //= odd
            last -= 1
        for place in range(last, _BEFORE - 1, -1):
            groups[place] = np.int64(part % np.uint64(10_000))
            part //= np.uint64(10_000)
        for place in range(_BEFORE - 1, -1, -1):
            groups[place] = np.int64(whole % np.uint64(10_000))
            whole //= np.uint64(10_000)
        first, end = 0, groups.size
        while end > 0 and groups[end - 1] == 0:
            end -= 1
        while first < end and groups[first] == 0:
            first += 1
        weight = _BEFORE - 1 - first if end > first else 0
        made[at], made[at + 1] = 0, end - first
        made[at + 2], made[at + 3] = weight >> 8 & 255, weight & 255
        made[at + 4], made[at + 5] = 64 if negative else 0, 0
        made[at + 6], made[at + 7] = 0, scale
        at += 8
        for place in range(first, end):
            made[at], made[at + 1] = groups[place] >> 8, groups[place] & 255
            at += 2
        offsets[row + 1] = at
    return at


@rehearsal
def _rehearse() -> None:
    body = np.frombuffer(b"\x00\x01\x00\x00\x00\x0a\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\xff\xff", np.uint8).copy()
    starts, lengths = np.zeros((1, 4), np.int64), np.zeros((1, 4), np.int32)
    find_fields(body, starts, lengths, np.zeros(2, np.int64))
    gather_fixed(body, starts[0, :1], lengths[0, :1], np.zeros((1, 10), np.uint8))
    gather_bytes(body, starts[0, :1], lengths[0, :1], np.zeros(1, np.int32), np.zeros(10, np.uint8))
    scaled_numerics(body, starts[0, :1], lengths[0, :1], 2, 10**18, np.zeros(1, np.int64))
    for valid in (ALL_VALID, np.ones(1, np.uint8)):
        write_numerics(np.ones(1, np.int64), valid, 2, np.zeros(2, np.int32), np.zeros(NUMERIC_BYTES_MAX, np.uint8))
