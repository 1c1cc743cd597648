"""The sum of doubles by group, exact and so independent of order, rounded once at the end.

    sum(1e308, 1.0, -1e308) is 1.0, in whatever order, on however many workers

Each group has a fixed-point number of 32-bit digits in int64 limbs, which leave room for 2**30 additions before carries
must be passed on. A whole double's range would take 67 limbs; a table of groups holds the limbs that its column's
exponents need (prices: five) and grows them when values come that need others. Limb ``i`` weighs 2**(32 * i - 1074).
NaN and infinities are flags beside the limbs.

Where there are few groups, blocks of rows are first added up as doubles, which is exact too: each value is cut in a high and
a low part such that no sum of a block's parts rounds. Their sums, two for each group, are what goes to the limbs.

Source: Kulisch, "Computer Arithmetic and Validity", 2008, on long accumulators; Demmel and Nguyen, "Fast Reproducible
Floating-Point Summation", ARITH 2013, on parts whose sums are exact.
Measured: 5 ns a row by limbs and 2 by parts, where a sum that rounds takes 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.aggregates import Count, resized
from lake.exec.kernels.views import ALL_VALID, Ints, mask_of, to_array, values_of

ADDITIONS_MAX: Final = 1 << 30
LIMBS_OF_A_DOUBLE: Final = 3  # 53 bits shifted by up to 31 reach into a third limb
SEEN_NAN, SEEN_PLUS, SEEN_MINUS = 1, 2, 4
MANTISSA: Final = np.int64((1 << 52) - 1)
LIMB: Final = np.int64(0xFFFFFFFF)
EXPONENT: Final = np.int64(0x7FF)

BLOCK_BITS: Final = 16
ROWS_OF_A_GROUP: Final = 16  # with fewer rows of a block for each group, going over the groups costs as much as is gained
HIGH_BITS: Final = 53 - BLOCK_BITS - 1
"""Bits of a high part above the unit of all high parts: 2**16 of them, rounded upwards even, stay within a double's 53."""
SPREAD_MAX: Final = HIGH_BITS + 53 - BLOCK_BITS
"""Bits from the highest of a block's values to the unit of the lowest: the low parts have those that the high ones leave."""
EXPONENT_MAX: Final = 2000  # field of values so large that sums of a block might overflow


@kernel
def exponent_range(bits: Any, valid: Any) -> Any:
    """The least and the greatest exponent field of finite doubles other than zero: bits int64[rows]; (1, 0) for none."""
    has_nulls = valid.size > 0
    low, high = np.int64(0x7FF), np.int64(0)
    for row in range(bits.size):
        field = (bits[row] >> np.int64(52)) & EXPONENT
        is_counted = field != EXPONENT and (bits[row] << np.int64(1)) != 0
        if has_nulls and valid[row] == 0:
            is_counted = False
        if is_counted:
            low, high = min(low, max(field, np.int64(1))), max(high, max(field, np.int64(1)))
    if high == 0:
        return np.int64(1), np.int64(0)
    return low, high


@kernel
def add_parts(groups: Any, values: Any, valid: Any, cutter: Any, sums: Any) -> None:
    """Adds the high and low parts of doubles by group: a value plus ``cutter`` less ``cutter`` is its high part.

    groups  int64[rows]  in    values  float64[rows]  in    valid  uint8[rows] or empty  in
    sums    float64[2, groups, 2]  in/out  high, low; rows take turns at two sums of a group, so that one need not wait for
                                          the other to be written
    """
    has_nulls = valid.size > 0
    for row in range(groups.size):
        if has_nulls and valid[row] == 0:
            continue
        value, group = values[row], groups[row]
        high = (value + cutter) - cutter
        sums[row & 1, group, 0] += high
        sums[row & 1, group, 1] += value - high


def sum_parts(groups: Ints, values: Any, valid: Ints, group_count: int) -> Any:
    """float64[2, groups, 2]: doubles whose exact sum is that of each group; None where values are too far apart for that.

    At most 2**BLOCK_BITS rows.
    """
    low, high = exponent_range(values.view(np.int64), valid)
    if high >= EXPONENT_MAX or high - low + 53 > SPREAD_MAX:
        return None
    # High parts are multiples of 2**unit: adding 1.5 times a number of 53 bits above the unit rounds to it.
    unit = int(high) - 1022 - HIGH_BITS
    sums = np.zeros((2, group_count, 2))
    add_parts(groups, values, valid, math.ldexp(1.5, unit + 52), sums)
    return sums if np.isfinite(sums).all() else None


@kernel
def add_exact(groups: Any, bits: Any, valid: Any, start: Any, base: Any, limbs: Any, flags: Any) -> Any:
    """Adds doubles to the limbs of their groups; answers the row it stopped at because its limbs are not there.

    groups  int64[rows]  in      bits  int64[rows]  in  the doubles' bits       valid  uint8[rows] or empty  in
    limbs   int64[groups, width]  in/out  the first one is limb ``base``        flags  uint8[groups]  in/out  see SEEN_*
    """
    has_nulls = valid.size > 0
    last = limbs.shape[1] - LIMBS_OF_A_DOUBLE - 1
    for row in range(start, groups.size):
        if has_nulls and valid[row] == 0:
            continue
        value, group = bits[row], groups[row]
        field = (value >> np.int64(52)) & EXPONENT
        mantissa = value & MANTISSA
        sign = value >> np.int64(63)
        if field == EXPONENT:
            flags[group] |= SEEN_NAN if mantissa != 0 else SEEN_MINUS if sign != 0 else SEEN_PLUS
            continue
        if field == 0:
            if mantissa == 0:
                continue
            field = np.int64(1)
        else:
            mantissa |= np.int64(1) << np.int64(52)
        limb = ((field - 1) >> np.int64(5)) - base
        if limb < 0 or limb > last:
            return row
        shift = (field - 1) & np.int64(31)
        low = (mantissa & LIMB) << shift
        high = ((mantissa >> np.int64(32)) << shift) + ((low >> np.int64(32)) & LIMB)
        limbs[group, limb] += ((low & LIMB) ^ sign) - sign
        limbs[group, limb + 1] += ((high & LIMB) ^ sign) - sign
        limbs[group, limb + 2] += ((high >> np.int64(32)) ^ sign) - sign
    return groups.size


@kernel
def carry_limbs(limbs: Any) -> None:
    """Passes carries on: afterwards all limbs but the last of each row of int64[groups, width] lie in 0 .. 2**32 - 1."""
    for group in range(limbs.shape[0]):
        carry = np.int64(0)
        for limb in range(limbs.shape[1] - 1):
            total = limbs[group, limb] + carry
            limbs[group, limb] = total & LIMB
            carry = total >> np.int64(32)
        limbs[group, limbs.shape[1] - 1] += carry


@kernel
def merge_limbs(mapping: Any, others: Any, offset: Any, limbs: Any) -> None:
    """Adds int64[others, narrower] to the limbs of groups ``mapping``, ``offset`` limbs up: limbs int64[groups, width]."""
    for index in range(mapping.size):
        for limb in range(others.shape[1]):
            limbs[mapping[index], offset + limb] += others[index, limb]


@kernel
def round_limbs(limbs: Any, base: Any, flags: Any, out: Any) -> None:
    """The nearest double of each group, ties to even.

    limbs  int64[groups, width]  in/out  carried, the magnitude afterwards    flags  uint8[groups]  in
    out    float64[groups]       out
    """
    width = limbs.shape[1]
    for group in range(out.size):
        number = limbs[group]
        is_negative = number[width - 1] < 0
        if is_negative:
            carry = np.int64(0)
            for limb in range(width):
                total = carry - number[limb]
                number[limb] = total & LIMB if limb < width - 1 else total
                carry = total >> np.int64(32)
        top = width - 1
        while top > 0 and number[top] == 0:
            top -= 1
        # 96 bits from the highest limbs on: at least 64 of them count, and a bit says whether anything lies below.
        high = np.uint64(number[top])
        middle = np.uint64(number[top - 1]) if top > 0 else np.uint64(0)
        low = np.uint64(number[top - 2]) if top > 1 else np.uint64(0)
        below = False
        for limb in range(top - 2):
            below |= number[limb] != 0
        shift = np.int64(0)
        while shift < 32 and (high >> np.uint64(32 - shift)) == 0:
            shift += 1
        shift -= 1
        shift = max(shift, np.int64(0))
        word = (high << np.uint64(32)) | middle
        if shift > 0:
            word = (word << np.uint64(shift)) | (low >> np.uint64(32 - shift))
            below |= (low << np.uint64(32 + shift)) != 0
        else:
            below |= low != 0
        mantissa, rest = word >> np.uint64(11), word & np.uint64(0x7FF)
        if rest > np.uint64(0x400) or (rest == np.uint64(0x400) and (below or mantissa & np.uint64(1) != 0)):
            mantissa += np.uint64(1)
        exponent = 32 * (base + top - 1) - 1074 - shift + 11
        if exponent > 971 or (exponent == 971 and mantissa >> np.uint64(53) != 0):
            value = np.inf
        else:
            value = math.ldexp(np.float64(mantissa), int(exponent))
        if is_negative:
            value = -value
        seen = flags[group]
        if seen & SEEN_NAN or (seen & SEEN_PLUS and seen & SEEN_MINUS):
            value = np.nan
        elif seen & SEEN_PLUS:
            value = np.inf
        elif seen & SEEN_MINUS:
            value = -np.inf
        out[group] = value


class ExactSum:
    """sum of doubles: NULL where no value counted; with ``averages`` the sum divided by the count."""

    def __init__(self, *, averages: bool = False) -> None:
        self._averages = averages
        self._counts = Count()
        self._limbs: Ints = np.zeros((0, 0), np.int64)
        self._base = 0
        self._flags: Ints = np.zeros(0, np.uint8)
        self._additions = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the state takes."""
        return self._counts.counts.nbytes + self._limbs.nbytes + self._flags.nbytes

    def update(self, groups: Ints, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Adds a batch of one argument."""
        (array,) = arguments
        valid = mask_of(array)
        values = values_of(array).astype(np.float64, copy=False)
        self._make_room(group_count, len(groups))
        self._counts.add(groups, group_count, valid)
        for start in range(0, len(groups), 1 << BLOCK_BITS):
            block = slice(start, start + (1 << BLOCK_BITS))
            self._add_block(groups[block], values[block], valid[block], group_count)

    def _add_block(self, groups: Ints, values: Any, valid: Ints, group_count: int) -> None:
        if len(groups) >= ROWS_OF_A_GROUP * group_count:
            sums = sum_parts(groups, values, valid, group_count)
            if sums is not None:
                groups, values, valid = np.tile(np.repeat(np.arange(group_count), 2), 2), sums.ravel(), ALL_VALID
        self._add(groups, values.view(np.int64), valid)

    def _add(self, groups: Ints, bits: Ints, valid: Ints) -> None:
        row = 0
        while (row := add_exact(groups, bits, valid, row, self._base, self._limbs, self._flags)) < len(groups):
            low, high = exponent_range(bits[row:], valid[row:])
            self._widen((low - 1) >> 5, ((high - 1) >> 5) + LIMBS_OF_A_DOUBLE + 1)

    def load(self, digits: Ints, counts: Ints, field: int) -> None:
        """Makes an empty state that of groups added up elsewhere.

        digits  int64[groups, any]  32 bits each and what was carried, lowest first, of the last bit of doubles whose exponent
                field is ``field``
        """
        self._counts.load(counts, counts)
        self._base, shift = divmod(field - 1, 32)
        limbs = np.zeros((len(digits), digits.shape[1] + 2), np.int64)
        limbs[:, : digits.shape[1]] = digits
        carry_limbs(limbs)
        limbs <<= shift
        self._limbs = limbs & LIMB
        self._limbs[:, -1] = limbs[:, -1]
        self._limbs[:, 1:] += limbs[:, :-1] >> 32
        self._flags, self._additions = np.zeros(len(digits), np.uint8), 2

    def merge(self, other: ExactSum, mapping: Ints, group_count: int) -> None:
        """Adds another state."""
        self._make_room(group_count, 1 + other._additions)
        self._counts.merge(other._counts, mapping, group_count)
        theirs = min(len(mapping), len(other._limbs))
        np.bitwise_or.at(self._flags, mapping[:theirs], other._flags[:theirs])
        width = other._limbs.shape[1]
        if width:
            self._widen(other._base, other._base + width)
            merge_limbs(mapping[:theirs], other._limbs[:theirs], other._base - self._base, self._limbs)

    def finish(self, group_count: int) -> pa.Array:
        """DOUBLE."""
        self._make_room(group_count, 0)
        limbs = np.zeros((group_count, self._limbs.shape[1] + 1), np.int64)
        limbs[:, :-1] = self._limbs[:group_count]
        carry_limbs(limbs)
        values = np.empty(group_count, np.float64)
        round_limbs(limbs, self._base, self._flags, values)
        counts = resized(self._counts.counts, group_count)[:group_count]
        if self._averages:
            values /= np.maximum(counts, 1)
        return to_array(values, pa.float64(), (counts > 0).astype(np.uint8))

    def _make_room(self, group_count: int, additions: int) -> None:
        """Room for so many groups, and for so many additions before limbs overflow."""
        self._limbs, self._flags = resized(self._limbs, group_count), resized(self._flags, group_count)
        self._additions += additions
        if self._additions > ADDITIONS_MAX:
            if self._limbs.size:
                carry_limbs(self._limbs)
            self._additions = additions

    def _widen(self, low: int, high: int) -> None:
        """Makes limbs ``low`` up to ``high`` (exclusive) be there, those that are kept."""
        width = self._limbs.shape[1]
        if width:
            low, high = min(low, self._base), max(high, self._base + width)
        if high - low == width:
            return
        spread = np.zeros((len(self._limbs), high - low), np.int64)
        if width:
            spread[:, self._base - low : self._base - low + width] = self._limbs
        self._base, self._limbs = low, spread


@rehearsal
def _rehearse() -> None:
    state, groups = ExactSum(), np.array([0, 1])
    state.update(groups, 2, [pa.array([1.0, None])])
    state.update(np.zeros(ROWS_OF_A_GROUP, np.int64), 1, [pa.array([1.0] * ROWS_OF_A_GROUP)])
    state.merge(state, groups, 2)
    state.finish(2)
