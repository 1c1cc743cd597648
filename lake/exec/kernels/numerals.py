"""Numbers and moments in the digits that people write, read from bytes and written to them.

    read_decimals("12.345", scale 2)  1235        write_decimals(1235, scale 2)  "12.35"

Readers know the plain forms only and answer the first row that has another one, -1 where there is none: whoever asks reads
those by a slower way that knows every form and words the errors. A length of -1 is NULL, whose number is 0.
Writers put the texts of rows one behind the other and answer the bytes of all; ``made`` has room for the longest ones.

Source of the days of a date: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lake.exec.kernels import allocating_kernel, kernel, rehearsal
from lake.exec.kernels.views import ALL_VALID

NUMBER_BYTES_MAX: Final = 21  # a sign, 19 digits and a point
FLOAT_BYTES_MAX: Final = 32  # a sign, 17 digits, zeros before them or an exponent behind them
MOMENT_BYTES_MAX: Final = 26
INFINITY: Final = np.frombuffer(b"Infinity", np.uint8).copy()
NAN: Final = np.frombuffer(b"NaN", np.uint8).copy()
MICROS_MIN: Final = -62_135_596_800_000_000  # 0001-01-01
MICROS_MAX: Final = 253_402_300_799_999_999  # the end of 9999-12-31
_DAY: Final = 86_400_000_000


# --- reading ---------------------------------------------------------------------------------------------------------


@kernel
def read_integers(body: Any, starts: Any, lengths: Any, low: Any, high: Any, made: Any) -> Any:
    """Whole numbers from ``low`` to ``high``: a sign or none, 1 to 19 digits.

    body  uint8[bytes]  in    starts, lengths  int32[rows]  in    low, high  int64  in    made  int64[rows]  out
    """
    for row in range(lengths.size):
        made[row] = 0
        if lengths[row] < 0:
            continue
        at = np.int64(starts[row])
        end = at + lengths[row]
        negative = at < end and body[at] == 45
        if at < end and (body[at] == 45 or body[at] == 43):
            at += 1
        if at == end or end - at > 19:
            return np.int64(row)
        number = np.uint64(0)
        while at < end:
            digit = np.int64(body[at]) - 48
            if digit < 0 or digit > 9:
                return np.int64(row)
            number = number * np.uint64(10) + np.uint64(digit)
            at += 1
        if negative:
            if number > np.uint64(-(low + 1)) + np.uint64(1):
                return np.int64(row)
            made[row] = -np.int64(number)
        elif number > np.uint64(high):
            return np.int64(row)
        else:
            made[row] = np.int64(number)
    return np.int64(-1)


@kernel
def read_decimals(body: Any, starts: Any, lengths: Any, scale: Any, limit: Any, made: Any) -> Any:
    """Numbers with or without a point, scaled, rounded half away from zero and below ``limit``.

    body   uint8[bytes]  in    starts, lengths  int32[rows]  in
    scale  int64         in    digits behind the point, 0 to 18    limit  int64  in  at most 10 ** 18
    made   int64[rows]   out
    """
    most = (limit - 1) // 10  # what a further digit may follow
    for row in range(lengths.size):
        made[row] = 0
        if lengths[row] < 0:
            continue
        at = np.int64(starts[row])
        end = at + lengths[row]
        negative = at < end and body[at] == 45
        if at < end and (body[at] == 45 or body[at] == 43):
            at += 1
        number = np.int64(0)
        digits, behind = np.int64(0), np.int64(-1)  # behind the point, -1 before it
        rounds = False
        while at < end:
            digit = np.int64(body[at]) - 48
            at += 1
            if digit == -2 and behind < 0:
                behind = np.int64(0)
                continue
            if digit < 0 or digit > 9:
                return np.int64(row)
            digits += 1
            if behind < scale:
                if number > most:
                    return np.int64(row)
                number = number * 10 + digit
            elif behind == scale:
                rounds = digit >= 5
            if behind >= 0:
                behind += 1
        if digits == 0:
            return np.int64(row)
        for _ in range(max(behind, np.int64(0)), scale):
            if number > most:
                return np.int64(row)
            number *= 10
        number += np.int64(rounds)
        if number >= limit:
            return np.int64(row)
        made[row] = -number if negative else number
    return np.int64(-1)


@kernel
def number_at(body: Any, at: Any, size: Any) -> Any:
    """The number that ``size`` digits write, below 0 where one is none."""
    number = np.int64(0)
    for place in range(size):
        digit = np.int64(body[at + place]) - 48
        if digit < 0 or digit > 9:
            return np.int64(-1)
        number = number * 10 + digit
    return number


@kernel
def clock_at(body: Any, at: Any, end: Any, marks: Any) -> Any:
    """The microseconds of ``HH:MM:SS``, which a point and up to six digits may follow; below 0 for anything else.

    marks  int64[1]  out  where what follows begins
    """
    if end - at < 8 or body[at + 2] != 58 or body[at + 5] != 58:
        return np.int64(-1)
    hour, minute, second = number_at(body, at, 2), number_at(body, at + 3, 2), number_at(body, at + 6, 2)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return np.int64(-1)
    micros = np.int64(0)
    at += 8
    if at < end and body[at] == 46:
        unit = np.int64(100_000)
        at += 1
        if at == end or body[at] < 48 or body[at] > 57:
            return np.int64(-1)
        while at < end and body[at] >= 48 and body[at] <= 57:
            if unit == 0:
                return np.int64(-1)
            micros += unit * (np.int64(body[at]) - 48)
            unit //= 10
            at += 1
    marks[0] = at
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros


@kernel
def offset_at(body: Any, at: Any, end: Any) -> Any:
    """The microseconds of ``+HH``, ``+HHMM`` or ``+HH:MM`` up to 15 hours; a great number for anything else."""
    refused = np.int64(1) << 60
    size = end - at
    if size == 1 and body[at] == 90:
        return np.int64(0)
    if (size != 3 and size != 5 and size != 6) or (body[at] != 43 and body[at] != 45):
        return refused
    if size == 6 and body[at + 3] != 58:
        return refused
    hours = number_at(body, at + 1, 2)
    minutes = np.int64(0) if size == 3 else number_at(body, end - 2, 2)
    if hours < 0 or hours > 15 or minutes < 0:
        return refused
    micros = (hours * 60 + minutes) * 60_000_000
    return -micros if body[at] == 45 else micros


@allocating_kernel
def read_moments(body: Any, starts: Any, lengths: Any, zone: Any, made: Any) -> Any:
    """Microseconds since 1970 of ``YYYY-MM-DD HH:MM:SS.ffffff``, from the year 1 on, as its parts allow.

    zone  int64  in  0: without an offset    1: with one    2: with or without one, which is UTC
    body  uint8[bytes]  in    starts, lengths  int32[rows]  in    made  int64[rows]  out
    """
    marks = np.zeros(1, np.int64)
    for row in range(lengths.size):
        made[row] = 0
        if lengths[row] < 0:
            continue
        at = np.int64(starts[row])
        end = at + lengths[row]
        if end - at < 19 or body[at + 4] != 45 or body[at + 7] != 45 or (body[at + 10] != 32 and body[at + 10] != 84):
            return np.int64(row)
        year, month, day = number_at(body, at, 4), number_at(body, at + 5, 2), number_at(body, at + 8, 2)
        if year < 1 or month < 1 or month > 12 or day < 1:
            return np.int64(row)
        last = 30 + ((month + month // 8) & 1)
        if month == 2:
            last = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
        if day > last:
            return np.int64(row)
        clock = clock_at(body, at + 11, end, marks)
        if clock < 0:
            return np.int64(row)
        away = np.int64(0)
        if marks[0] == end:
            if zone == 1:
                return np.int64(row)
        elif zone == 0:
            return np.int64(row)
        else:
            away = offset_at(body, marks[0], end)
            if away > np.int64(1) << 50:
                return np.int64(row)
        year -= np.int64(month <= 2)
        era, month = year // 400, month - 3 if month > 2 else month + 9
        years = year - era * 400
        days = era * 146_097 + years * 365 + years // 4 - years // 100 + (153 * month + 2) // 5 + day - 1 - 719_468
        made[row] = days * _DAY + clock - away
    return np.int64(-1)


@allocating_kernel
def read_clocks(body: Any, starts: Any, lengths: Any, made: Any) -> Any:
    """Microseconds since midnight of ``HH:MM:SS.ffffff``; arguments as of ``read_integers``."""
    marks = np.zeros(1, np.int64)
    for row in range(lengths.size):
        made[row] = 0
        if lengths[row] < 0:
            continue
        end = np.int64(starts[row]) + lengths[row]
        made[row] = clock_at(body, np.int64(starts[row]), end, marks)
        if made[row] < 0 or marks[0] != end:
            return np.int64(row)
    return np.int64(-1)


# --- writing ---------------------------------------------------------------------------------------------------------


@kernel
def put_number(number: Any, least: Any, made: Any, at: Any) -> Any:
    """Writes a number of uint64 in ``least`` digits or more; answers where they end."""
    size, rest = 1, number // np.uint64(10)
    while rest > 0:
        size += 1
        rest //= np.uint64(10)
    size = max(size, least)
    for place in range(at + size - 1, at - 1, -1):
        rest = number // np.uint64(10)
        made[place] = np.uint8(48) + np.uint8(number - rest * np.uint64(10))
        number = rest
    return at + size


@kernel
def write_decimals(values: Any, valid: Any, scale: Any, offsets: Any, made: Any) -> Any:
    """Scaled integers with all digits of their scale, 0 to 18.

    values   int64[rows]  in        valid  uint8[rows] or empty  in
    offsets  int32[rows + 1]  out   made   uint8[rows * NUMBER_BYTES_MAX]  out
    """
    unit = np.uint64(1)
    for _ in range(scale):
        unit *= np.uint64(10)
    at = np.int64(0)
    offsets[0] = 0
    for row in range(values.size):
        if valid.size == 0 or valid[row] != 0:
            number = np.uint64(values[row])
            if values[row] < 0:
                made[at] = 45
                at += 1
                number = np.uint64(0) - number
            if scale == 0:
                at = put_number(number, 1, made, at)
            else:
                whole = number // unit
                at = put_number(whole, 1, made, at)
                made[at] = 46
                at = put_number(number - whole * unit, scale, made, at + 1)
        offsets[row + 1] = at
    return at


@kernel
def write_doubles(values: Any, valid: Any, offsets: Any, made: Any) -> Any:
    """Zeros, and doubles from 1e-3 to 1e9 with at most six digits behind the point, in the digits that read back alike.

    Two decimals of 15 digits or fewer never read as one double, so the first that reads back is the shortest.
    Answers the bytes of all, -1 where one is another number.
    values   float64[rows]  in      valid  uint8[rows] or empty  in
    offsets  int32[rows + 1]  out   made   uint8[rows * NUMBER_BYTES_MAX]  out
    """
    at = np.int64(0)
    offsets[0] = 0
    for row in range(values.size):
        if valid.size == 0 or valid[row] != 0:
            size = abs(values[row])
            if not size < 1e9 or (size < 1e-3 and size > 0.0):
                return np.int64(-1)
            unit, digits = 1.0, 0
            number = np.floor(size + 0.5)
            while number / unit != size:
                digits += 1
                if digits > 6:
                    return np.int64(-1)
                unit *= 10.0
                number = np.floor(size * unit + 0.5)
            if values[row] < 0.0 or (size == 0.0 and np.copysign(1.0, values[row]) < 0.0):
                made[at] = 45
                at += 1
            whole = np.floor(size)
            at = put_number(np.uint64(whole), 1, made, at)
            if digits > 0:
                made[at] = 46
                at = put_number(np.uint64(number - whole * unit), digits, made, at + 1)
        offsets[row + 1] = at
    return at


@allocating_kernel
def respell_floats(texts: Any, characters: Any, high: Any, offsets: Any, made: Any) -> Any:
    """Floats in their shortest digits as Postgres writes them: ``1e+20``, ``1e-05``, ``0.0001``, ``Infinity``, ``NaN``.

    From 1e-4 on and below ten to the power of ``high`` they have no exponent. Answers the bytes of all.
    texts    int32[rows + 1]  in    characters  uint8[any]  in  in any form that has a digit, or inf or nan; or nothing
    offsets  int32[rows + 1]  out   made        uint8[rows * FLOAT_BYTES_MAX]  out
    """
    figures = np.zeros(FLOAT_BYTES_MAX, np.uint8)
    place = np.int64(0)
    offsets[0] = 0
    for row in range(texts.size - 1):
        at, end = np.int64(texts[row]), np.int64(texts[row + 1])
        if at < end and characters[at] == 45:
            made[place] = 45
            place += 1
            at += 1
        if at < end and characters[at] > 57:
            word = INFINITY if characters[at] == 105 else NAN
            for index in range(word.size):
                made[place + index] = word[index]
            place += word.size
            at = end
        count, point, exponent, seen = 0, -1, 0, 0
        is_first = at < end
        while at < end and characters[at] != 101:
            if characters[at] == 46:
                point = seen
            else:
                if count > 0 or characters[at] != 48:
                    figures[count] = characters[at]
                    count += 1
                seen += 1
            at += 1
        if at < end:
            negative = characters[at + 1] == 45
            for index in range(at + 2 if negative or characters[at + 1] == 43 else at + 1, end):
                exponent = exponent * 10 + np.int64(characters[index]) - 48
            exponent = -exponent if negative else exponent
        exponent += (seen if point < 0 else point) - (seen - count) - 1  # of the first figure
        while count > 1 and figures[count - 1] == 48:
            count -= 1
        if is_first and count == 0:
            made[place] = 48
            place += 1
        elif is_first and -4 <= exponent < high:
            for index in range(min(exponent, 0), max(exponent + 1, count)):
                if index == 1 + exponent and index > min(exponent, 0):
                    made[place] = 46
                    place += 1
                made[place] = figures[index] if 0 <= index < count else 48
                place += 1
        elif is_first:
            made[place] = figures[0]
            place += 1
            for index in range(1, count):
                made[place + index] = figures[index]
            if count > 1:
                made[place] = 46
                place += count
            made[place], made[place + 1] = 101, 45 if exponent < 0 else 43
            place = put_number(np.uint64(abs(exponent)), 2, made, place + 2)
        offsets[row + 1] = place
    return place


@kernel
def put_two(number: Any, made: Any, at: Any) -> None:
    """Writes a number below 100 in two digits."""
    tens = number * 103 >> 10
    made[at], made[at + 1] = 48 + tens, 48 + number - 10 * tens


@kernel
def put_day(days: Any, made: Any, at: Any) -> None:
    """Writes the date that is so many days from 1970-01-01: ``YYYY-MM-DD``."""
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    years = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year = years + era * 400 + (1 if month <= 2 else 0)
    put_two(year // 100, made, at)
    put_two(year % 100, made, at + 2)
    made[at + 4] = 45
    put_two(month, made, at + 5)
    made[at + 7] = 45
    put_two(day, made, at + 8)


@kernel
def write_moments(values: Any, valid: Any, offsets: Any, made: Any) -> Any:
    """Microseconds since 1970 as ``YYYY-MM-DD HH:MM:SS.ffffff`` without zeros at the end of the fraction.

    values   int64[rows]  in  MICROS_MIN to MICROS_MAX    valid  uint8[rows] or empty  in
    offsets  int32[rows + 1]  out                         made   uint8[rows * MOMENT_BYTES_MAX]  out
    """
    at, before, last = np.int64(0), np.int64(0), np.int64(-1)
    offsets[0] = 0
    for row in range(values.size):
        if valid.size == 0 or valid[row] != 0:
            days = values[row] // _DAY
            micros = values[row] - days * _DAY
            if last >= 0 and days == before:
                for place in range(10):  # moments of one day often stand together
                    made[at + place] = made[last + place]
            else:
                put_day(days, made, at)
            before, last = days, at
            seconds = micros // 1_000_000
            minutes = seconds // 60
            hours = minutes // 60
            made[at + 10], made[at + 13], made[at + 16] = 32, 58, 58
            put_two(hours, made, at + 11)
            put_two(minutes - hours * 60, made, at + 14)
            put_two(seconds - minutes * 60, made, at + 17)
            at += 19
            fraction = micros - seconds * 1_000_000
            if fraction > 0:
                made[at] = 46
                first = fraction // 10_000
                second = fraction // 100 - first * 100
                put_two(first, made, at + 1)
                put_two(second, made, at + 3)
                put_two(fraction - first * 10_000 - second * 100, made, at + 5)
                at += 7
                while made[at - 1] == 48:
                    at -= 1
        offsets[row + 1] = at
    return at


@rehearsal
def _rehearse() -> None:
    body = np.frombuffer(b"2024-01-01 00:00:00", np.uint8).copy()
    starts, lengths = np.zeros(1, np.int32), np.full(1, 4, np.int32)
    made, offsets = np.zeros(1, np.int64), np.zeros(2, np.int32)
    read_integers(body, starts, lengths, -(1 << 63), (1 << 63) - 1, made)
    read_decimals(body, starts, lengths, 2, 10**18, made)
    read_moments(body, starts, lengths, 0, made)
    read_clocks(body, starts, lengths, made)
    respell_floats(np.array([0, 4], np.int32), body, 15, offsets, np.zeros(FLOAT_BYTES_MAX, np.uint8))
    for valid in (ALL_VALID, np.ones(1, np.uint8)):
        write_decimals(made, valid, 2, offsets, np.zeros(NUMBER_BYTES_MAX, np.uint8))
        write_doubles(np.ones(1), valid, offsets, np.zeros(NUMBER_BYTES_MAX, np.uint8))
        write_moments(made, valid, offsets, np.zeros(MOMENT_BYTES_MAX, np.uint8))
