"""Row numbers by quick tests: a number within a range, or among those of a bitmap, a dictionary code among those marked.

A test writes the numbers of the rows that pass, ascending, and the next test looks at those alone. Writing every number and
moving on only where the row passes costs the same whatever passes: a third of a nanosecond a row.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.views import ALL_VALID, Ints

LOWEST: Final = -(1 << 63)
HIGHEST: Final = (1 << 63) - 1
SCRATCH_ROWS: Final = 262_144


@kernel
def within_all(values: Any, valid: Any, low: Any, span: Any, outside: Any, found: Any) -> Any:
    """How many rows hold a value in ``[low, low + span]``, or with ``outside`` one that is not; NULL passes neither.

    values  int8..int64[rows]  in    valid  uint8[rows] or ALL_VALID  in    low  int64  in    span  uint64  in
    outside  bool  in                found  int64[rows]  out, as many as answered
    """
    count = np.uintp(0)
    if valid.size == 0:
        for row in range(values.size):
            found[count] = row
            distance = np.uint64(np.int64(values[row]) - low)
            count += np.uintp((distance <= span) != outside)
    else:
        for row in range(values.size):
            found[count] = row
            distance = np.uint64(np.int64(values[row]) - low)
            count += np.uintp(((distance <= span) != outside) & (valid[row] != 0))
    return np.int64(count)


@kernel
def within_some(values: Any, valid: Any, low: Any, span: Any, outside: Any, rows: Any, found: Any) -> Any:
    """``within_all`` of the rows int64[n] alone; ``found`` may be ``rows`` itself."""
    count = np.uintp(0)
    for place in range(rows.size):
        row = rows[place]
        found[count] = row
        distance = np.uint64(np.int64(values[row]) - low)
        passes = (distance <= span) != outside
        if valid.size != 0:
            passes &= valid[row] != 0
        count += np.uintp(passes)
    return np.int64(count)


@kernel
def between_all(values: Any, valid: Any, low: Any, high: Any, with_nan: Any, outside: Any, found: Any) -> Any:
    """``within_all`` of doubles in ``[low, high]``; ``with_nan`` says whether NaN, the greatest number, is within.

    values  float32/float64[rows]  in    low, high  float64  in    with_nan, outside  bool  in
    """
    count = np.uintp(0)
    has_nulls = valid.size != 0
    for row in range(values.size):
        found[count] = row
        value = np.float64(values[row])
        within = ((value >= low) & (value <= high)) | (with_nan & (value != value))
        count += np.uintp((within != outside) & (not has_nulls or valid[row] != 0))
    return np.int64(count)


@kernel
def between_some(
    values: Any, valid: Any, low: Any, high: Any, with_nan: Any, outside: Any, rows: Any, found: Any
) -> Any:
    """``between_all`` of the rows int64[n] alone; ``found`` may be ``rows`` itself."""
    count = np.uintp(0)
    has_nulls = valid.size != 0
    for place in range(rows.size):
        row = rows[place]
        found[count] = row
        value = np.float64(values[row])
        within = ((value >= low) & (value <= high)) | (with_nan & (value != value))
        count += np.uintp((within != outside) & (not has_nulls or valid[row] != 0))
    return np.int64(count)


@kernel
def marked_all(codes: Any, valid: Any, marks: Any, found: Any) -> Any:
    """How many rows hold a code that is marked; a NULL row has the last mark.

    codes  int32[rows]  in, anything where NULL    valid  uint8[rows] or ALL_VALID  in    marks  uint8[entries + 1]  in
    found  int64[rows]  out, as many as answered
    """
    count = np.uintp(0)
    of_null = marks.size - 1
    for row in range(codes.size):
        found[count] = row
        code = np.int64(codes[row])
        if valid.size != 0 and valid[row] == 0:
            code = np.int64(of_null)
        count += np.uintp(marks[code] != 0)
    return np.int64(count)


@kernel
def marked_some(codes: Any, valid: Any, marks: Any, rows: Any, found: Any) -> Any:
    """``marked_all`` of the rows int64[n] alone; ``found`` may be ``rows`` itself."""
    count = np.uintp(0)
    of_null = marks.size - 1
    for place in range(rows.size):
        row = rows[place]
        found[count] = row
        code = np.int64(codes[row])
        if valid.size != 0 and valid[row] == 0:
            code = np.int64(of_null)
        count += np.uintp(marks[code] != 0)
    return np.int64(count)


@kernel
def known_all(values: Any, valid: Any, low: Any, span: Any, bitmap: Any, found: Any) -> Any:
    """How many rows hold a value ``low + bit`` of a bit that is set; NULL does not.

    values  int8..int64[rows]  in    valid   uint8[rows] or ALL_VALID  in    low  int64  in
    bitmap  uint64[any]        in    span    uint64  in, the last bit        found  int64[rows]  out, as many as answered
    """
    count = np.uintp(0)
    for row in range(values.size):
        found[count] = row
        distance = np.uint64(np.int64(values[row]) - low)
        bit = min(distance, span)
        passes = (distance <= span) & ((bitmap[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1) != 0)
        if valid.size != 0:
            passes &= valid[row] != 0
        count += np.uintp(passes)
    return np.int64(count)


@kernel
def known_some(values: Any, valid: Any, low: Any, span: Any, bitmap: Any, rows: Any, found: Any) -> Any:
    """``known_all`` of the rows int64[n] alone; ``found`` may be ``rows`` itself."""
    count = np.uintp(0)
    for place in range(rows.size):
        row = rows[place]
        found[count] = row
        distance = np.uint64(np.int64(values[row]) - low)
        bit = min(distance, span)
        passes = (distance <= span) & ((bitmap[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1) != 0)
        if valid.size != 0:
            passes &= valid[row] != 0
        count += np.uintp(passes)
    return np.int64(count)


def rows_within(values: Ints, valid: Ints, low: int, high: int, *, outside: bool, rows: Ints | None) -> Ints:
    """int64[found]: those of ``rows`` (None for all) whose value is in ``[low, high]``, or with ``outside`` is not."""
    if low > high:
        low, high, outside = LOWEST, HIGHEST, not outside
    bounds = (np.int64(low), np.uint64(high - low), outside)
    if rows is None:
        found = _scratch(len(values))
        return found[: within_all(values, valid, *bounds, found)].copy()
    found = np.empty(len(rows), np.int64)
    return found[: within_some(values, valid, *bounds, rows, found)]


def rows_between(
    values: Ints, valid: Ints, low: float, high: float, *, with_nan: bool, outside: bool, rows: Ints | None
) -> Ints:
    """int64[found]: those of ``rows`` (None for all) whose double is in ``[low, high]``, or with ``outside`` is not."""
    bounds = (np.float64(low), np.float64(high), with_nan, outside)
    if rows is None:
        found = _scratch(len(values))
        return found[: between_all(values, valid, *bounds, found)].copy()
    found = np.empty(len(rows), np.int64)
    return found[: between_some(values, valid, *bounds, rows, found)]


def rows_marked(codes: Ints, valid: Ints, marks: Ints, rows: Ints | None) -> Ints:
    """int64[found]: those of ``rows`` (None for all) whose code is marked."""
    if rows is None:
        found = _scratch(len(codes))
        return found[: marked_all(codes, valid, marks, found)].copy()
    found = np.empty(len(rows), np.int64)
    return found[: marked_some(codes, valid, marks, rows, found)]


def rows_known(values: Ints, valid: Ints, low: int, high: int, bitmap: Ints, rows: Ints | None) -> Ints:
    """int64[found]: those of ``rows`` (None for all) whose value less ``low`` is a bit set, of those up to ``high``."""
    bounds = (np.int64(low), np.uint64(high - low), bitmap)
    if rows is None:
        found = _scratch(len(values))
        return found[: known_all(values, valid, *bounds, found)].copy()
    found = np.empty(len(rows), np.int64)
    return found[: known_some(values, valid, *bounds, rows, found)]


_KEPT: Final = threading.local()


def _scratch(rows: int) -> Ints:
    """int64[rows or more] of this thread, used again: memory that is asked for anew costs a page fault every 512 rows."""
    kept: Ints | None = getattr(_KEPT, "rows", None)
    if kept is None or len(kept) < rows:
        kept = _KEPT.rows = np.empty(max(rows, SCRATCH_ROWS), np.int64)
    return kept


@rehearsal
def _rehearse() -> None:
    row = np.zeros(1, np.int64)
    for rows in (None, row):
        for values in (row, row.astype(np.int32)):
            rows_within(values, ALL_VALID, 0, 1, outside=False, rows=rows)
            rows_known(values, ALL_VALID, 0, 1, np.zeros(1, np.uint64), rows)
        rows_between(np.zeros(1), ALL_VALID, 0.0, 1.0, with_nan=False, outside=False, rows=rows)
        rows_marked(row.astype(np.int32), ALL_VALID, np.zeros(2, np.uint8), rows)
