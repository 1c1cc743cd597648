"""Lines of COPY cut into fields: where each one lies in the bytes, and its bytes with escapes undone.

    a\\tb\\n\\N\\tc\\td\\n     two rows of two fields, the first of the second one NULL; the tab of ``c\\td`` is data

A row that has not come whole waits. Fields without escapes are never touched: ``special`` says which columns have others.
Source: PostgreSQL documentation, COPY, Text Format and CSV Format.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lake.exec.kernels import kernel, rehearsal
from lake.primitives import copy_bytes

PLAIN, DELIMITER, NEWLINE, RETURN, BACKSLASH, QUOTE = range(6)
"""What a byte is, as ``kinds`` tells for each of 256."""

MORE, ENDED, MISSING, EXTRA, STRAY_NEWLINE, STRAY_RETURN = range(6)
"""How splitting ended: the bytes did, the mark ``\\.`` came, or a row is none."""

UNKNOWN, LF, CRLF, CR = range(4)
"""How lines end; the first one decides."""

REST, STATE, COLUMN, STYLE = range(4)
"""Places of ``marks``: where the first row begins that is not whole, how it ended, at which column, and how lines end."""

MARKS: Final = 4


@kernel
def line_end(body: Any, at: Any, is_last: Any, marks: Any) -> Any:
    """How many bytes end the line at ``at``, 0 where more must come to tell, -1 where it is another end than others'."""
    is_return = body[at] == 13
    style = marks[STYLE]
    if is_return and style != LF and style != CR:
        if at + 1 == body.size and not is_last:
            return np.int64(0)
        follows = at + 1 < body.size and body[at + 1] == 10
        if style == UNKNOWN:
            marks[STYLE] = CRLF if follows else CR
        elif not follows:
            marks[STATE] = STRAY_RETURN
            return np.int64(-1)
        return np.int64(2) if follows else np.int64(1)
    if style == UNKNOWN:
        marks[STYLE] = LF
    elif style != (CR if is_return else LF):
        marks[STATE] = STRAY_RETURN if is_return else STRAY_NEWLINE
        return np.int64(-1)
    return np.int64(1)


@kernel
def end_mark(body: Any, at: Any, is_last: Any) -> Any:
    """Whether a line that is ``\\.`` alone begins at ``at``: 1 yes, 0 no, -1 where more must come to tell."""
    if at + 1 < body.size and body[at + 1] != 46:
        return 0
    if at + 2 >= body.size:
        return int(at + 1 < body.size) if is_last else -1
    return 1 if body[at + 2] == 10 or body[at + 2] == 13 else 0


@kernel
def same_field(body: Any, start: Any, stop: Any, null: Any) -> Any:
    """Whether ``body[start:stop]`` is what NULL is written as."""
    if stop - start != null.size:
        return False
    same = True
    for place in range(null.size):
        same &= body[start + place] == null[place]
    return same


@kernel
def split_text(
    body: Any, kinds: Any, null: Any, is_last: Any, starts: Any, lengths: Any, special: Any, marks: Any
) -> Any:
    """How many whole rows there are in the text format.

    body     uint8[bytes]          in   where ``is_last``, its end is the last line's too
    kinds    uint8[256]            in   what bytes are    null  uint8[any]  in  what NULL is written as
    starts   int32[columns, rows]  out  of each field; rows are at least as many as the bytes can hold
    lengths  int32[columns, rows]  out  -1 of NULL
    special  uint8[columns]        out  1 where a field has a backslash, else as it was
    marks    int64[MARKS]          in, out
    """
    columns, size = starts.shape[0], body.size
    row, column = np.int64(0), np.int64(0)
    at, start, begun = np.int64(0), np.int64(0), np.int64(0)
    escaped = False
    marks[STATE] = MORE
    while at < size or (is_last and at == size and begun < size):
        kind = kinds[body[at]] if at < size else NEWLINE
        if kind == PLAIN:
            at += 1
            continue
        if kind == BACKSLASH:
            if at == begun:
                ends = end_mark(body, at, is_last)
                if ends > 0:
                    marks[STATE] = ENDED
                    begun = size
                if ends != 0:
                    break
            escaped = True
            at = min(at + 2, size)
            continue
        stop = at
        if kind == DELIMITER:
            at += 1
        else:
            ends = line_end(body, at, is_last, marks) if at < size else np.int64(1)
            if ends <= 0:
                break
            at += ends
        if column >= columns:  # told of where the row ends, for what is wrong further on in it is told before
            column += 1
            start, escaped = at, False
            if kind == DELIMITER:
                continue
            marks[STATE] = EXTRA
            break
        starts[column, row] = start
        lengths[column, row] = -1 if same_field(body, start, stop, null) else stop - start
        special[column] |= escaped
        column += 1
        start, escaped = at, False
        if kind != DELIMITER:
            if column < columns:
                marks[STATE] = MISSING
                break
            row, column, begun = row + 1, np.int64(0), at
    marks[REST], marks[COLUMN] = begun, column
    return row


@kernel
def closing_quote(body: Any, at: Any, quote: Any, escape: Any) -> Any:
    """Where the quote stands that ends what began before ``at``, the end of the bytes without one; and escapes before it."""
    escapes = np.int64(0)
    while at < body.size:
        if body[at] == escape and at + 1 < body.size and (body[at + 1] == quote or body[at + 1] == escape):
            escapes += 1
            at += 2
        elif body[at] == quote:
            break
        else:
            at += 1
    return at, escapes


@kernel
def split_csv(
    body: Any, kinds: Any, signs: Any, null: Any, is_last: Any, starts: Any, lengths: Any, special: Any, marks: Any
) -> Any:
    """How many whole rows there are in the CSV format; arguments as of ``split_text``.

    signs    uint8[2]        in   the quote and the escape before a quote
    special  uint8[columns]  out  1 where a field has more than a pair of quotes around it, which are left out
    """
    columns, size, quote, escape = starts.shape[0], body.size, signs[0], signs[1]
    row, column = np.int64(0), np.int64(0)
    at, start, begun, closed = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    quotes = np.int64(0)  # of a field; 1 for the one pair around it, more for anything else
    marks[STATE] = MORE
    while at < size or (is_last and at == size and begun < size):
        kind = kinds[body[at]] if at < size else NEWLINE
        if kind == PLAIN:
            at += 1
            continue
        if kind == QUOTE:
            quotes += 1 if at == start else 2
            at, escapes = closing_quote(body, at + 1, quote, escape)
            quotes += 2 * escapes
            if at >= size or (at + 1 == size and not is_last):
                break  # what follows tells whether the quote ends the field
            closed = at
            at += 1
            continue
        if kind == BACKSLASH:
            ends = end_mark(body, at, is_last) if at == begun else 0
            if ends > 0:
                marks[STATE] = ENDED
                begun = size
            if ends != 0:
                break
            at += 1
            continue
        stop = at
        if kind == DELIMITER:
            at += 1
        else:
            ends = line_end(body, at, is_last, marks) if at < size else np.int64(1)
            if ends <= 0:
                break
            at += ends
        if column >= columns:  # as in split_text
            column += 1
            start, quotes = at, np.int64(0)
            if kind == DELIMITER:
                continue
            marks[STATE] = EXTRA
            break
        starts[column, row] = start
        lengths[column, row] = stop - start
        if quotes == 0:
            if same_field(body, start, stop, null):
                lengths[column, row] = -1
        elif quotes == 1 and closed == stop - 1:
            starts[column, row] = start + 1
            lengths[column, row] = stop - start - 2
        else:
            special[column] = 1
        column += 1
        start, quotes = at, np.int64(0)
        if kind != DELIMITER:
            if column < columns:
                marks[STATE] = MISSING
                break
            row, column, begun = row + 1, np.int64(0), at
    marks[REST], marks[COLUMN] = begun, column
    return row


@kernel
def gather_texts(body: Any, starts: Any, lengths: Any, offsets: Any, made: Any) -> None:
    """Puts fields behind each other.

    body     uint8[bytes]      in    starts, lengths  int32[rows]  in
    offsets  int32[rows + 1]   out   made             uint8[..]    out  at least as many bytes as the fields have
    """
    place = np.int64(0)
    offsets[0] = 0
    for row in range(lengths.size):
        copy_bytes(body, starts[row], made, place, lengths[row])
        place += max(np.int64(lengths[row]), np.int64(0))
        offsets[row + 1] = place


@kernel
def digit_of(byte: Any, base: Any) -> Any:
    """The value of a digit of base 8 or 16, -1 of what is none."""
    value = np.int64(byte) - 48
    if value > 9 and base == 16:
        value = (np.int64(byte) | 32) - 87
        if value < 10:
            return np.int64(-1)
    return value if 0 <= value < base else np.int64(-1)


@kernel
def unescape_texts(body: Any, starts: Any, lengths: Any, controls: Any, offsets: Any, made: Any) -> None:
    r"""Puts fields of the text format behind each other, backslashes undone: \t, \134, \x5C, and any other character itself.

    controls  uint8[256]  in  what stands for the character behind a backslash    others as of ``gather_texts``
    """
    place = np.int64(0)
    offsets[0] = 0
    for row in range(lengths.size):
        at = np.int64(starts[row])
        end = at + lengths[row]
        while at < end:
            byte = body[at]
            at += 1
            if byte == 92:
                if at == end:
                    break  # a backslash before the end of all
                byte = body[at]
                at += 1
                is_hex = byte == 120 and at < end and digit_of(body[at], 16) >= 0
                if is_hex or digit_of(byte, 8) >= 0:
                    base, left = (16, 2) if is_hex else (8, 2)
                    number = np.int64(0) if is_hex else digit_of(byte, 8)
                    while left > 0 and at < end and digit_of(body[at], base) >= 0:
                        number = number * base + digit_of(body[at], base)
                        at += 1
                        left -= 1
                    byte = np.uint8(number & 255)
                else:
                    byte = controls[byte]
            made[place] = byte
            place += 1
        offsets[row + 1] = place


@kernel
def unquote_texts(body: Any, starts: Any, lengths: Any, signs: Any, offsets: Any, made: Any) -> None:
    """Puts fields of the CSV format behind each other without their quotes and escapes.

    signs  uint8[2]  in  the quote and the escape    others as of ``gather_texts``
    """
    quote, escape = signs[0], signs[1]
    place = np.int64(0)
    offsets[0] = 0
    for row in range(lengths.size):
        at = np.int64(starts[row])
        end = at + lengths[row]
        inside = False
        while at < end:
            byte = body[at]
            at += 1
            if inside and byte == escape and at < end and (body[at] == quote or body[at] == escape):
                byte = body[at]
                at += 1
            elif byte == quote:
                inside = not inside
                continue
            made[place] = byte
            place += 1
        offsets[row + 1] = place


@rehearsal
def _rehearse() -> None:
    body, kinds = np.frombuffer(b"1\\1\n", np.uint8).copy(), np.zeros(256, np.uint8)
    kinds[10], kinds[92] = NEWLINE, BACKSLASH
    starts, lengths, special = np.zeros((1, 4), np.int32), np.zeros((1, 4), np.int32), np.zeros(1, np.uint8)
    signs, null, marks = np.full(2, 34, np.uint8), np.zeros(2, np.uint8), np.zeros(MARKS, np.int64)
    split_text(body, kinds, null, True, starts, lengths, special, marks)
    split_csv(body, kinds, signs, null, True, starts, lengths, special, marks)
    offsets, made = np.zeros(2, np.int32), np.zeros(4, np.uint8)
    gather_texts(body, starts[0, :1], lengths[0, :1], offsets, made)
    unescape_texts(body, starts[0, :1], lengths[0, :1], kinds, offsets, made)
    unquote_texts(body, starts[0, :1], lengths[0, :1], signs, offsets, made)
