"""How alike texts are, over code points: edits, Jaro, common characters, and the sound of a word.

    distances(["kitten"], ["sitting"])  ->  [3]

Texts come as ``Points``: int32 code points of all rows, and where each row begins. Rows that are not valid keep what
stands in the output.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.views import Ints, text_of

CODE_POINTS: Final = 0x110000
PREFIX_MAX: Final = 4
PREFIX_WEIGHT: Final = 0.1
WINKLER_LEAST: Final = 0.7
SOUND_SIZE: Final = 4
SOUNDS: Final = np.zeros(128, np.int64)
"""The digit of each capital letter's sound, 0 of vowels, -1 of H and W, which do not part equal sounds."""
for _digit, _letters in enumerate(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), 1):
    SOUNDS[np.frombuffer(_letters.encode(), np.uint8)] = _digit
SOUNDS[np.frombuffer(b"HW", np.uint8)] = -1


class Points(NamedTuple):
    """The code points of texts: row ``r`` is ``points[offsets[r]:offsets[r + 1]]``."""

    offsets: Ints
    points: Ints

    @property
    def longest(self) -> int:
        """How many code points the longest text has."""
        return int(np.diff(self.offsets).max(initial=0))


def points_of(array: pa.Array) -> Points:
    """The code points of a text column."""
    offsets, characters = text_of(array)
    used = characters[offsets[0] : offsets[-1]]
    begins = np.concatenate(([0], np.cumsum((used & 0xC0) != 0x80, dtype=np.int64)))
    points = np.frombuffer(used.tobytes().decode().encode("utf-32-le"), np.int32)
    return Points(begins[offsets - offsets[0]], points.copy())


# --- edits -----------------------------------------------------------------------------------------------------------


@kernel
def edit_distances(firsts: Any, one: Any, seconds: Any, two: Any, line: Any, out: Any) -> None:
    """Levenshtein's distance of each pair.

    firsts, seconds  int64[rows + 1]  in    one, two  int32[any]  in    line  int64[longest of two + 1]  scratch
    out  int64[rows]  out

    Source: Wagner and Fischer, "The String-to-String Correction Problem", J. ACM 1974; one line of the table is kept.
    """
    for row in range(out.size):
        begin, size = seconds[row], seconds[row + 1] - seconds[row]
        for place in range(size + 1):
            line[place] = place
        for at in range(firsts[row], firsts[row + 1]):
            corner, line[0] = line[0], line[0] + 1
            for place in range(size):
                change = corner + (1 if one[at] != two[begin + place] else 0)
                corner = line[place + 1]
                line[place + 1] = min(change, min(corner, line[place]) + 1)
        out[row] = line[size]


@kernel
def swap_distances(firsts: Any, one: Any, seconds: Any, two: Any, cells: Any, lasts: Any, out: Any) -> None:
    """Damerau's distance of each pair: neighbours may be swapped, and what lies between them changed too.

    firsts, seconds  int64[rows + 1]  in    one, two  int32[any]  in
    cells  int64[(longest of one + 2) * (longest of two + 2)]  scratch    lasts  int64[longest of two]  scratch: the last line
    so far whose character is that of each column    out  int64[rows]  out

    Source: Lowrance and Wagner, "An Extension of the String-to-String Correction Problem", J. ACM 1975.
    """
    for row in range(out.size):
        begin, size = seconds[row], seconds[row + 1] - seconds[row]
        far, width = firsts[row + 1] - firsts[row] + size, size + 2
        for place in range(width):
            cells[place] = far
            cells[width + place] = place - 1 if place else far
        for place in range(size):
            lasts[place] = 0
        lines = firsts[row + 1] - firsts[row]
        for number in range(1, lines + 1):
            char, here, last = one[firsts[row] + number - 1], (number + 1) * width, 0
            cells[here], cells[here + 1] = far, number
            for place in range(1, size + 1):
                other = lasts[place - 1]
                swap = cells[other * width + last] + (number - other - 1) + 1 + (place - last - 1)
                is_same = char == two[begin + place - 1]
                change = cells[here - width + place] + (0 if is_same else 1)
                step = min(cells[here + place], cells[here - width + place + 1]) + 1
                cells[here + place + 1] = min(swap, min(change, step))
                if is_same:
                    last = place
            for place in range(size):
                if two[begin + place] == char:
                    lasts[place] = number
        out[row] = cells[(lines + 1) * width + size + 1]


@kernel
def count_differences(firsts: Any, one: Any, seconds: Any, two: Any, out: Any) -> None:
    """In how many places texts of one length differ, -1 where their lengths do: out int64[rows] out."""
    for row in range(out.size):
        size = firsts[row + 1] - firsts[row]
        out[row] = -1
        if size == seconds[row + 1] - seconds[row]:
            found = 0
            for place in range(size):
                found += 1 if one[firsts[row] + place] != two[seconds[row] + place] else 0
            out[row] = found


# --- what is common --------------------------------------------------------------------------------------------------


@kernel
def common_shares(firsts: Any, one: Any, seconds: Any, two: Any, seen: Any, met: Any, out: Any) -> None:
    """The share of the different characters that both texts have: seen, met int32[CODE_POINTS] zeros, out float64[rows]."""
    for row in range(out.size):
        mark, total, common = row + 1, 0, 0
        for at in range(firsts[row], firsts[row + 1]):
            if seen[one[at]] != mark:
                seen[one[at]] = mark
                total += 1
        for at in range(seconds[row], seconds[row + 1]):
            if met[two[at]] != mark:
                met[two[at]] = mark
                if seen[two[at]] == mark:
                    common += 1
                else:
                    total += 1
        out[row] = common / max(total, 1)


@kernel
def jaro_shares(firsts: Any, one: Any, seconds: Any, two: Any, taken: Any, matched: Any, is_winkler: Any, out: Any) -> None:
    """The Jaro similarity of each pair, from 0 to 1; Winkler's gives more for a common beginning.

    taken  uint8[longest of two]  scratch    matched  int32[longest of one]  scratch    is_winkler  bool  in
    out  float64[rows]  out

    Source: Winkler, "String Comparator Metrics and Enhanced Decision Rules in the Fellegi-Sunter Model", 1990.
    """
    for row in range(out.size):
        begin, size = firsts[row], firsts[row + 1] - firsts[row]
        other_begin, other_size = seconds[row], seconds[row + 1] - seconds[row]
        reach = max(max(size, other_size) // 2 - 1, 0)
        taken[:other_size] = 0
        count = 0
        for place in range(size):
            for other in range(max(0, place - reach), min(other_size, place + reach + 1)):
                if taken[other] == 0 and two[other_begin + other] == one[begin + place]:
                    taken[other] = 1
                    matched[count] = one[begin + place]
                    count += 1
                    break
        if count == 0:
            out[row] = 1.0 if size + other_size == 0 else 0.0
            continue
        swapped, at = 0, 0
        for other in range(other_size):
            if taken[other]:
                swapped += 1 if two[other_begin + other] != matched[at] else 0
                at += 1
        alike = (count / size + count / other_size + (count - swapped // 2) / count) / 3
        if is_winkler and alike > WINKLER_LEAST:
            same = 0
            while same < min(PREFIX_MAX, min(size, other_size)) and one[begin + same] == two[other_begin + same]:
                same += 1
            alike += same * PREFIX_WEIGHT * (1 - alike)
        out[row] = alike


@kernel
def write_sounds(offsets: Any, points: Any, sounds: Any, out: Any, is_word: Any) -> None:
    """Four letters for each text of upper case: its first letter and the digits of the sounds behind it.

    sounds  int64[128]  in  ``SOUNDS``    out  uint8[rows, 4]  out
    is_word  uint8[rows]  out  it begins with a letter A to Z
    """
    for row in range(is_word.size):
        begin = offsets[row]
        is_word[row] = 1 if begin < offsets[row + 1] and 65 <= points[begin] <= 90 else 0
        if is_word[row] == 0:
            continue
        out[row, 0] = points[begin]
        written, last = 1, sounds[points[begin]]
        for at in range(begin + 1, offsets[row + 1]):
            sound = sounds[points[at]] if 65 <= points[at] <= 90 else 0
            if sound > 0 and sound != last and written < SOUND_SIZE:
                out[row, written] = 48 + sound
                written += 1
            if sound >= 0:
                last = sound
        for place in range(written, SOUND_SIZE):
            out[row, place] = 48


# --- Arrow -----------------------------------------------------------------------------------------------------------


def distances(a: pa.Array, b: pa.Array) -> Ints:
    """int64[rows]: Levenshtein's distances."""
    one, two, out = points_of(a), points_of(b), np.zeros(len(a), np.int64)
    edit_distances.over(len(a))(*one, *two, np.empty(two.longest + 1, np.int64), out)
    return out


def distances_with_swaps(a: pa.Array, b: pa.Array) -> Ints:
    """int64[rows]: Damerau's distances; memory for the longest pair's table."""
    one, two, out = points_of(a), points_of(b), np.zeros(len(a), np.int64)
    cells = np.empty((one.longest + 2) * (two.longest + 2), np.int64)
    swap_distances.over(len(a))(*one, *two, cells, np.empty(two.longest, np.int64), out)
    return out


def differences(a: pa.Array, b: pa.Array) -> Ints:
    """int64[rows]: in how many places texts differ, -1 where their lengths do."""
    out = np.zeros(len(a), np.int64)
    count_differences.over(len(a))(*points_of(a), *points_of(b), out)
    return out


def shares(a: pa.Array, b: pa.Array) -> Ints:
    """float64[rows]: the part of the different characters that both texts have."""
    seen, met, out = np.zeros(CODE_POINTS, np.int32), np.zeros(CODE_POINTS, np.int32), np.zeros(len(a))
    common_shares.over(len(a))(*points_of(a), *points_of(b), seen, met, out)
    return out


def jaro(a: pa.Array, b: pa.Array, *, is_winkler: bool) -> Ints:
    """float64[rows]: the Jaro or Jaro-Winkler similarity."""
    one, two, out = points_of(a), points_of(b), np.zeros(len(a))
    taken, matched = np.empty(two.longest, np.uint8), np.empty(one.longest, np.int32)
    jaro_shares.over(len(a))(*one, *two, taken, matched, is_winkler, out)
    return out


def sounds_of(upper: pa.Array) -> tuple[Ints, Ints]:
    """uint8[rows, 4] sounds, and uint8[rows] where a text of upper case has one."""
    out, is_word = np.zeros((len(upper), SOUND_SIZE), np.uint8), np.zeros(len(upper), np.uint8)
    write_sounds.over(len(upper))(*points_of(upper), SOUNDS, out, is_word)
    return out, is_word


@rehearsal
def _rehearse() -> None:
    texts = pa.array(["AB"]).take(pa.array(np.zeros(1000, np.int64)))
    for run in (distances, distances_with_swaps, differences, shares):
        run(texts, texts)
    jaro(texts, texts, is_winkler=True)
    sounds_of(texts)
