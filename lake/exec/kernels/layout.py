"""Columns of texts laid out row by row: messages whose fields stand behind their lengths, and lines of fields.

    sizes -> places ── place_heads ── a column after the other: place_fields or place_lines ── the bytes of all rows

``places`` is int64[rows] in all of them: where the next byte of each row goes, moved on by what was written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.views import ALL_VALID
from lake.primitives import copy_bytes


@kernel
def place_heads(tag: Any, columns: Any, sizes: Any, places: Any, out: Any) -> None:
    """Writes the tag of each message, its size without the tag and, unless below 0, how many columns follow.

    tag, columns  int64  in    sizes  int64[rows]  in  of whole messages    out  uint8[bytes]  out
    """
    for row in range(places.size):
        at, size = places[row], sizes[row] - 1
        out[at] = tag
        out[at + 1], out[at + 2] = size >> 24 & 255, size >> 16 & 255
        out[at + 3], out[at + 4] = size >> 8 & 255, size & 255
        at += 5
        if columns >= 0:
            out[at], out[at + 1] = columns >> 8 & 255, columns & 255
            at += 2
        places[row] = at


@kernel
def place_fields(offsets: Any, characters: Any, valid: Any, places: Any, out: Any) -> None:
    """Writes each value behind its length of four bytes; NULL is the length -1 alone.

    offsets  int32[rows + 1]  in    characters  uint8[any]  in    valid  uint8[rows] or empty  in    out  uint8[bytes]  out
    """
    for row in range(places.size):
        at = places[row]
        if valid.size > 0 and valid[row] == 0:
            for place in range(4):
                out[at + place] = 255
            places[row] = at + 4
            continue
        start = np.int64(offsets[row])
        size = np.int64(offsets[row + 1]) - start
        out[at], out[at + 1] = size >> 24 & 255, size >> 16 & 255
        out[at + 2], out[at + 3] = size >> 8 & 255, size & 255
        at += 4
        copy_bytes(characters, start, out, at, size)
        places[row] = at + size


@kernel
def place_lines(
    offsets: Any, characters: Any, valid: Any, null: Any, behind: Any, places: Any, out: Any
) -> None:
    """Writes each value, or what NULL is written as, and the byte ``behind`` it; arguments as of ``place_fields``.

    null  uint8[any]  in
    """
    for row in range(places.size):
        at = places[row]
        if valid.size > 0 and valid[row] == 0:
            copy_bytes(null, 0, out, at, null.size)
            at += null.size
        else:
            start = np.int64(offsets[row])
            size = np.int64(offsets[row + 1]) - start
            copy_bytes(characters, start, out, at, size)
            at += size
        out[at] = behind
        places[row] = at + 1


@kernel
def find_marked(offsets: Any, characters: Any, marks: Any, mask: Any) -> Any:
    """How many texts have a byte that is marked, and which.

    offsets  int32[rows + 1]  in    characters  uint8[any]   in
    marks    uint8[256]       in    mask        uint8[rows]  out
    """
    found = np.int64(0)
    for row in range(mask.size):
        mask[row] = 0
        for place in range(np.int64(offsets[row]), np.int64(offsets[row + 1])):
            if marks[characters[place]] != 0:
                mask[row] = 1
                found += 1
                break
    return found


@rehearsal
def _rehearse() -> None:
    offsets, characters, out = np.zeros(2, np.int32), np.zeros(1, np.uint8), np.zeros(16, np.uint8)
    places, sizes = np.zeros(1, np.int64), np.full(1, 12, np.int64)
    place_heads(68, 1, sizes, places, out)
    place_fields(offsets, characters, ALL_VALID, places, out)
    place_lines(offsets, characters, ALL_VALID, characters, 10, places, out)
    find_marked(offsets, characters, np.zeros(256, np.uint8), np.zeros(1, np.uint8))
