"""Arithmetic of scaled integers: int64 with overflow told, and 128 bits in two words.

    price * (1 - discount), rounded to two digits    multiply_divide(prices, rests, 100, rounds=True)

Wide numbers are int64[rows, 2], the low word first: how decimal128 lies in memory. Short ones are int64[rows]. Where a
side is a constant it is an array of one row. Every function answers its numbers and the first row whose result does not
fit (-1 where all do); rows that ``valid`` says are NULL are not looked at. Rounding is half away from zero.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lake.exec.kernels import allocating_kernel, kernel, rehearsal
from lake.exec.kernels.views import ALL_VALID, Ints

LOW, HIGH = 0, 1
LIMBS: Final = 4  # of 32 bits in a wide number
ONE, BITS, LIMB = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
INT64_MIN: Final = np.int64(-0x8000000000000000)
DIVIDED_BY_ZERO: Final = -2
"""Rows below 0 other than -1: the first divisor of zero is row ``-2 - answer``."""


# --- short -----------------------------------------------------------------------------------------------------------


@kernel
def add_short(left: Any, right: Any, sign: Any, valid: Any, out: Any) -> Any:
    """left + right or left - right, by ``sign``; answers the first row that overflows, -1 for none.

    left, right  int64[rows] or int64[1]  in    valid  uint8[rows] or empty  in    out  int64[rows]  out
    """
    has_nulls = valid.size > 0
    first = np.int64(-1)
    for row in range(out.size):
        one = left[row] if left.size > 1 else left[0]
        two = right[row] if right.size > 1 else right[0]
        if sign > 0:
            result = one + two
            overflows = ((one ^ result) & (two ^ result)) < 0
        else:
            result = one - two
            overflows = ((one ^ two) & (one ^ result)) < 0
        out[row] = result
        if overflows and first < 0 and (not has_nulls or valid[row] != 0):
            first = row
    return first


@kernel
def multiply_short(left: Any, right: Any, divisor: Any, rounds: Any, valid: Any, out: Any) -> Any:
    """left * right / divisor where the product fits 64 bits; answers the first row where it does not, -1 for none.

    left, right  int64[rows] or int64[1]  in    divisor  int64 > 0    valid  uint8[rows] or empty  in
    out          int64[rows]  out
    """
    has_nulls = valid.size > 0
    first = np.int64(-1)
    half = divisor >> np.int64(1)
    for row in range(out.size):
        if has_nulls and valid[row] == 0:
            out[row] = 0
            continue
        one = left[row] if left.size > 1 else left[0]
        two = right[row] if right.size > 1 else right[0]
        result = one * two
        # Doubles tell the product's size to within one part in 2**52: 9.2e18 is safely below 2**63.
        if abs(np.float64(one) * np.float64(two)) > 9.2e18:
            if first < 0:
                first = row
        elif divisor > 1:
            negative = result < 0
            magnitude = -result if negative else result
            quotient = magnitude // divisor
            if rounds and magnitude - quotient * divisor >= divisor - half:
                quotient += 1
            result = -quotient if negative else quotient
        out[row] = result
    return first


# --- wide ------------------------------------------------------------------------------------------------------------


@kernel
def add_wide(left: Any, right: Any, sign: Any, valid: Any, out: Any) -> Any:
    """left + right or left - right, by ``sign``; answers the first row that passes 128 bits, -1 for none.

    left, right  int64[rows, 2] or int64[1, 2]  in    valid  uint8[rows] or empty  in    out  int64[rows, 2]  out
    """
    has_nulls = valid.size > 0
    first = np.int64(-1)
    for row in range(out.shape[0]):
        one, two = row if left.shape[0] > 1 else 0, row if right.shape[0] > 1 else 0
        low, high = np.uint64(left[one, LOW]), left[one, HIGH]
        other, other_high = np.uint64(right[two, LOW]), right[two, HIGH]
        if sign > 0:
            sum_low = low + other
            result = high + other_high + np.int64(sum_low < other)
            overflows = ((high ^ result) & (other_high ^ result)) < 0
        else:
            sum_low = low - other
            result = high - other_high - np.int64(low < other)
            overflows = ((high ^ other_high) & (high ^ result)) < 0
        out[row, LOW] = np.int64(sum_low)
        out[row, HIGH] = result
        if overflows and first < 0 and (not has_nulls or valid[row] != 0):
            first = row
    return first


@kernel
def load_limbs(low: Any, high: Any, limbs: Any) -> Any:
    """Writes the magnitude of a wide number as four limbs, lowest first; answers whether it is negative."""
    negative = high < 0
    word, upper = np.uint64(low), np.uint64(high)
    if negative:
        word = ~word + ONE
        upper = ~upper + np.uint64(word == 0)
    limbs[0], limbs[1] = word & LIMB, word >> BITS
    limbs[2], limbs[3] = upper & LIMB, upper >> BITS
    return negative


@kernel
def limbs_used(limbs: Any, count: Any) -> Any:
    """How many of the first ``count`` limbs are left without zeros at the top."""
    while count > 0 and limbs[count - 1] == 0:
        count -= 1
    return count


@kernel
def multiply_limbs(left: Any, right: Any, product: Any) -> None:
    """product uint64[8 or more] = left uint64[4] * right uint64[4], 32 bits in each limb."""
    for index in range(2 * LIMBS):
        product[index] = 0
    for index in range(LIMBS):
        if left[index] == 0:
            continue
        carry = np.uint64(0)
        for other in range(LIMBS):
            total = left[index] * right[other] + product[index + other] + carry
            product[index + other] = total & LIMB
            carry = total >> BITS
        product[index + LIMBS] = carry


@kernel
def divide_limbs(top: Any, top_count: Any, bottom: Any, bottom_count: Any, quotient: Any) -> Any:
    """Divides limbs in place and answers whether twice the remainder is at least the divisor.

    top       uint64[top_count + 1 or more]  in/out  destroyed       bottom  uint64[bottom_count]  in/out  shifted
    quotient  uint64[top_count]              out     bottom_count > 0, its last limb not 0

    Source: Knuth, The Art of Computer Programming 2, 4.3.1, algorithm D.
    """
    for index in range(top_count):
        quotient[index] = 0
    if bottom_count == 1:
        rest = np.uint64(0)
        for index in range(top_count - 1, -1, -1):
            rest = (rest << BITS) | top[index]
            quotient[index] = rest // bottom[0]
            rest -= quotient[index] * bottom[0]
        return rest + rest >= bottom[0]
    shift = np.uint64(0)
    while (bottom[bottom_count - 1] << shift) & np.uint64(0x80000000) == 0:
        shift += ONE
    top[top_count] = 0
    for index in range(top_count, 0, -1):
        top[index] = ((top[index] << shift) | (top[index - 1] >> (BITS - shift))) & LIMB
    top[0] = (top[0] << shift) & LIMB
    for index in range(bottom_count - 1, 0, -1):
        bottom[index] = ((bottom[index] << shift) | (bottom[index - 1] >> (BITS - shift))) & LIMB
    bottom[0] = (bottom[0] << shift) & LIMB
    lead, second = bottom[bottom_count - 1], bottom[bottom_count - 2]
    for place in range(top_count - bottom_count, -1, -1):
        two = (top[place + bottom_count] << BITS) | top[place + bottom_count - 1]
        guess = two // lead
        rest = two - guess * lead
        while guess > LIMB or guess * second > ((rest << BITS) | top[place + bottom_count - 2]):
            guess -= ONE
            rest += lead
            if rest > LIMB:
                break
        borrow = np.uint64(0)
        for index in range(bottom_count):
            product = guess * bottom[index] + borrow
            borrow = product >> BITS
            product &= LIMB
            if top[place + index] < product:
                borrow += ONE
            top[place + index] = (top[place + index] - product) & LIMB
        if top[place + bottom_count] < borrow:
            guess -= ONE
            carry = np.uint64(0)
            for index in range(bottom_count):
                total = top[place + index] + bottom[index] + carry
                top[place + index] = total & LIMB
                carry = total >> BITS
        top[place + bottom_count] = 0
        quotient[place] = guess
    for index in range(bottom_count, -1, -1):
        twice = (top[index] << ONE) & LIMB
        if index > 0:
            twice |= top[index - 1] >> np.uint64(31)
        against = bottom[index] if index < bottom_count else np.uint64(0)
        if twice != against:
            return twice > against
    return True


@kernel
def multiply_divide_wide(left: Any, factor: Any, divisor: Any, rounds: Any, valid: Any, work: Any, out: Any) -> Any:
    """left * factor / divisor over a product of 256 bits.

    left, factor, divisor  int64[rows, 2] or int64[1, 2]  in    valid  uint8[rows] or empty  in
    work  uint64[4, 9]  scratch    out  int64[rows, 2]  out, 0 for NULL
    Answers the first row that passes 127 bits, ``-2 - row`` for the first divisor of zero, or -1.
    """
    has_nulls = valid.size > 0
    one, two, top, quotient = work[0], work[1], work[2], work[3]
    first = np.int64(-1)
    for row in range(out.shape[0]):
        out[row, LOW] = out[row, HIGH] = 0
        if has_nulls and valid[row] == 0:
            continue
        at = row if left.shape[0] > 1 else 0
        negative = load_limbs(left[at, LOW], left[at, HIGH], one)
        at = row if factor.shape[0] > 1 else 0
        negative ^= load_limbs(factor[at, LOW], factor[at, HIGH], two)
        multiply_limbs(one, two, top)
        count = limbs_used(top, 2 * LIMBS)
        at = row if divisor.shape[0] > 1 else 0
        negative ^= load_limbs(divisor[at, LOW], divisor[at, HIGH], two)
        divisor_count = limbs_used(two, LIMBS)
        if divisor_count == 0:
            return np.int64(DIVIDED_BY_ZERO) - row
        result = top
        if divisor_count > 1 or two[0] != ONE:
            if count < divisor_count:
                count = divisor_count
            is_half = divide_limbs(top, count, two, divisor_count, quotient)
            result = quotient
            if rounds and is_half:
                index = 0
                while index < count and result[index] == LIMB:
                    result[index] = 0
                    index += 1
                if index == count:
                    result[count] = 0
                    count += 1
                result[index] += ONE
            for index in range(count, 2 * LIMBS):
                result[index] = 0
        fits = result[3] >> np.uint64(31) == 0
        for index in range(LIMBS, 2 * LIMBS):
            fits &= result[index] == 0
        if not fits:
            if first == -1:
                first = row
            continue
        low, high = (result[1] << BITS) | result[0], (result[3] << BITS) | result[2]
        if negative:
            low = ~low + ONE
            high = ~high + np.uint64(low == 0)
        out[row, LOW], out[row, HIGH] = np.int64(low), np.int64(high)
    return first


@allocating_kernel
def compare_wide(left: Any, left_factor: Any, right: Any, right_factor: Any, work: Any, out: Any) -> None:
    """-1, 0 or 1 for left * left_factor against right * right_factor, whose products may take 256 bits.

    left, right  int64[rows, 2] or int64[1, 2]  in    factors  int64[1, 2] > 0  in    work  uint64[4, 9]  scratch
    out          int8[rows]  out
    """
    limbs, factor, one, two = work[0], np.empty(LIMBS, np.uint64), work[2], work[3]
    for row in range(out.size):
        at = row if left.shape[0] > 1 else 0
        is_negative = load_limbs(left[at, LOW], left[at, HIGH], limbs)
        load_limbs(left_factor[0, LOW], left_factor[0, HIGH], factor)
        multiply_limbs(limbs, factor, one)
        at = row if right.shape[0] > 1 else 0
        other_negative = load_limbs(right[at, LOW], right[at, HIGH], limbs)
        load_limbs(right_factor[0, LOW], right_factor[0, HIGH], factor)
        multiply_limbs(limbs, factor, two)
        answer = 0
        for index in range(2 * LIMBS - 1, -1, -1):
            if one[index] != two[index]:
                answer = 1 if one[index] > two[index] else -1
                break
        if is_negative != other_negative:
            is_zero = limbs_used(one, 2 * LIMBS) == 0 and limbs_used(two, 2 * LIMBS) == 0
            answer = 0 if is_zero else -1 if is_negative else 1
        elif is_negative:
            answer = -answer
        out[row] = answer


@kernel
def find_beyond(words: Any, valid: Any, limit_low: Any, limit_high: Any) -> Any:
    """The first row of int64[rows, 2] whose absolute value passes a limit of two words (uint64, int64); -1 for none."""
    has_nulls = valid.size > 0
    for row in range(words.shape[0]):
        if has_nulls and valid[row] == 0:
            continue
        low, high = np.uint64(words[row, LOW]), np.uint64(words[row, HIGH])
        if words[row, HIGH] < 0:  # magnitudes are unsigned: that of -2**127 fits no signed word
            low = ~low + ONE
            high = ~high + np.uint64(low == 0)
        if high > np.uint64(limit_high) or (high == np.uint64(limit_high) and low > limit_low):
            return row
    return -1


# --- arrays ----------------------------------------------------------------------------------------------------------


def wide(words: Ints) -> Ints:
    """int64[rows, 2] of int64[rows]: the same numbers in two words; wide numbers as they are."""
    if words.ndim == 2:
        return words
    out = np.empty((len(words), 2), np.int64)
    out[:, LOW] = words
    out[:, HIGH] = words >> 63
    return out


def wide_constant(number: int) -> Ints:
    """int64[1, 2]: a number of at most 128 bits."""
    low = number & (1 << 64) - 1
    return np.array([[low - (1 << 64) if low >> 63 else low, number >> 64]], np.int64)


def narrow(words: Ints, valid: Ints = ALL_VALID) -> Ints | None:
    """int64[rows] of int64[rows, 2] where all numbers fit; None where one does not."""
    misfits = words[:, HIGH] != words[:, LOW] >> 63
    if valid.size:
        misfits &= valid == 1
    return None if misfits.any() else np.ascontiguousarray(words[:, LOW])


def integers_of(words: Ints) -> list[int]:
    """The numbers of int64[rows, 2] as Python integers."""
    return [(high << 64) + (low & (1 << 64) - 1) for low, high in words.tolist()]


def add(left: Ints, right: Ints, rows: int, *, subtracts: bool = False, valid: Ints = ALL_VALID) -> tuple[Ints, int]:
    """The sums (differences) of short or wide numbers of one scale; wide where a side is."""
    sign = -1 if subtracts else 1
    if left.ndim == 1 and right.ndim == 1:
        short = np.empty(rows, np.int64)
        return short, add_short(left, right, sign, valid, short)
    out = np.empty((rows, 2), np.int64)
    return out, add_wide(wide(left), wide(right), sign, valid, out)


def multiply(left: Ints, right: Ints, rows: int, *, valid: Ints = ALL_VALID, divisor: int = 1) -> tuple[Ints, int]:
    """The products of short numbers, divided by a power of ten with rounding; a row that does not fit is told."""
    out = np.empty(rows, np.int64)
    return out, multiply_short(left, right, divisor, True, valid, out)


def multiply_divide(
    left: Ints, factor: Ints | int, divisor: Ints | int, rows: int, *, rounds: bool, valid: Ints = ALL_VALID
) -> tuple[Ints, int]:
    """left * factor / divisor as wide numbers, rounded or cut, over products of 256 bits.

    It multiplies (divisor 1), divides (factor a power of ten), rescales (both integers) and averages.
    A divisor of zero in row ``r`` is told as ``-2 - r``.
    """
    out, work = np.empty((rows, 2), np.int64), np.empty((4, 9), np.uint64)
    factors = wide_constant(factor) if isinstance(factor, int) else wide(factor)
    divisors = wide_constant(divisor) if isinstance(divisor, int) else wide(divisor)
    return out, multiply_divide_wide(wide(left), factors, divisors, rounds, valid, work, out)


def rescale(words: Ints, digits: int, *, rounds: bool = True, valid: Ints = ALL_VALID) -> tuple[Ints, int]:
    """Numbers with ``digits`` more digits after the point, or fewer where it is negative, as wide numbers."""
    return multiply_divide(words, 10 ** max(digits, 0), 10 ** max(-digits, 0), len(words), rounds=rounds, valid=valid)


def compare(left: Ints, left_scale: int, right: Ints, right_scale: int, rows: int) -> Ints:
    """int8[rows]: -1, 0 or 1 for numbers of two scales."""
    out, work = np.empty(rows, np.int8), np.zeros((4, 9), np.uint64)
    scale = max(left_scale, right_scale)
    factors = [wide_constant(10 ** (scale - own)) for own in (left_scale, right_scale)]
    compare_wide(wide(left), factors[0], wide(right), factors[1], work, out)
    return out


def first_beyond(words: Ints, digits: int, valid: Ints = ALL_VALID) -> int:
    """The first row of wide numbers with more than ``digits`` digits; -1 for none."""
    limit = 10**digits - 1
    row: int = find_beyond(words, valid, np.uint64(limit & (1 << 64) - 1), limit >> 64)
    return row


def from_doubles(values: Ints, scale: int, valid: Ints = ALL_VALID) -> tuple[Ints, int]:
    """Doubles as wide numbers of a scale, rounded; what is no number or passes 127 bits is told."""
    with np.errstate(all="ignore"):
        scaled = values * 10.0**scale
        whole = np.trunc(scaled)
        whole += np.where(np.abs(scaled - whole) >= 0.5, np.sign(scaled), 0.0)
    misfits = ~(np.abs(whole) < 2.0**127)
    if valid.size:
        misfits &= valid == 1
    bad = int(np.argmax(misfits)) if misfits.any() else -1
    magnitude = np.where(np.abs(whole) < 2.0**127, np.abs(whole), 0.0)
    high = np.floor(magnitude / 2.0**64)
    low = (magnitude - high * 2.0**64).astype(np.uint64).view(np.int64)
    upper = high.astype(np.int64)
    negative = whole < 0
    upper = np.where(negative, -upper - (low != 0), upper)
    return np.stack([np.where(negative, -low, low), upper], axis=1), bad


def to_doubles(words: Ints, scale: int) -> Ints:
    """float64[rows] of short or wide numbers; the nearest double where the number has at most 15 digits."""
    if words.ndim == 1:
        return words / 10.0**scale
    unsigned = np.ascontiguousarray(words[:, LOW]).view(np.uint64)
    fits = words[:, HIGH] == words[:, LOW] >> 63
    whole = np.where(fits, words[:, LOW].astype(np.float64), words[:, HIGH] * 2.0**64 + unsigned)
    return whole / 10.0**scale


@rehearsal
def _rehearse() -> None:
    numbers = np.array([1, 2])
    add(numbers, numbers, 2)
    add(wide(numbers), numbers, 2)
    multiply(numbers, numbers, 2, divisor=10)
    rescale(numbers, -1)
    compare(numbers, 0, numbers, 1, 2)
    first_beyond(wide(numbers), 18)
