"""Long lists of VALUES read in one pass over their bytes: what a client that loads rows by INSERT sends.

    INSERT INTO t VALUES (1, 'it''s', 0.5, NULL), (2, 'b', -1, true)
                         kinds  INTEGER QUOTED DECIMAL NULL  ..        where each value starts and ends

A list is plain where every value is a number, a text in single quotes, NULL, TRUE or FALSE, and all rows are of one
length. 1,000 rows of four values take the lexer and the parser 45 ms, and this pass 0.1. Anything else, whatever is wrong
included, is for the parser to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, overload

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from lake.compiled import kernel, rehearsal
from lake.errors import LakeError
from lake.late import late_pattern
from lake.sql import ast

CHARS_MIN: Final = 1_000  # a shorter text is parsed as fast as its head
NULL, INTEGER, DECIMAL, FLOAT, TEXT, QUOTED, TRUE, FALSE = range(8)
DIGITS_MAX: Final = 18  # of each side of a number's point, so that every number fits every type of numbers
_HEAD: Final = late_pattern(r"\s*INSERT\s+INTO\s[^'(;]*?(?:\([^'();]*\)\s*)?VALUES\s*(?=\()", re.IGNORECASE)

Ints = NDArray[np.int64]
Row = tuple[ast.Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PlainRows(Sequence[Row]):
    """The rows of a plain list; as a sequence they are what the parser makes of them, when somebody asks.

    data    the statement's text in UTF-8
    starts  uint32[rows, width], and ``ends``: where each value stands, a text without its quotes
    kinds   uint8[rows, width]: NULL, INTEGER, DECIMAL, FLOAT, TEXT, QUOTED (a text with doubled quotes), TRUE, FALSE
    first   the first row as the parser has it
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    kinds: NDArray[np.uint8]
    first: Row
    parse: Callable[[], tuple[Row, ...]]

    def __len__(self) -> int:
        return len(self.kinds)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self.first if index == 0 else self.parse()[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.parse())

    def kinds_of(self, place: int) -> set[int]:
        """The kinds of the values of a column."""
        return set(np.flatnonzero(np.bincount(self.kinds[:, place], minlength=8)).tolist())

    def texts(self, place: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """The values of a column as they are written, doubled quotes being one: offsets and bytes; NULL is empty."""
        starts, ends = (np.ascontiguousarray(each[:, place]) for each in (self.starts, self.ends))
        offsets = np.zeros(len(self) + 1, np.int32)
        out = np.empty(int((ends - starts).sum()), np.uint8)
        size = pack_texts(self.data, starts, ends, np.ascontiguousarray(self.kinds[:, place]), offsets, out)
        return offsets, out[:size]


def plain_insert(text: str, parse: Callable[[str], object]) -> ast.Insert | None:
    """An INSERT of a plain list, its rows PlainRows; None of every other text.

    parse  what reads a script of statements
    """
    head = _HEAD.match(text)
    if head is None or len(text) < CHARS_MIN:
        return None
    try:
        data = np.frombuffer(text.encode(), np.uint8)
        start = len(text[: head.end()].encode())
        found = _scan(data, start)
        if found is None:
            return None
        starts, ends, kinds, stop = found
        statements = parse(bytes(data[:stop]).decode())
    except (LakeError, UnicodeEncodeError):
        return None
    match statements:
        case [ast.Insert(query=ast.Query(body=ast.Values(rows=(first,)) as body) as query) as insert]:
            if query != ast.Query(body):
                return None
        case _:
            return None

    def parse_all() -> tuple[Row, ...]:
        whole = parse(text)
        assert isinstance(whole, list), "what the pass takes is what the parser takes"
        rows: tuple[Row, ...] = whole[0].query.body.rows
        return rows

    rows = PlainRows(data, starts, ends, kinds, first, parse_all)
    begins = insert.span.start if insert.span else 0
    span = ast.Span(begins, len(text.rstrip("; \t\n\r\f\v")))
    return replace(insert, query=replace(query, body=replace(body, rows=rows)), span=span)


def _scan(
    data: NDArray[np.uint8], start: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint8], int] | None:
    """Where the values stand, of which kind they are, and where the first row ends; None of a list that is not plain."""
    most = int(np.count_nonzero(data[start:] == ord(","))) + 1
    starts, ends, kinds = np.empty(most, np.uint32), np.empty(most, np.uint32), np.empty(most, np.uint8)
    found = np.zeros(3, np.int64)
    scan_rows(data, start, starts, ends, kinds, found)
    cells, width, stop = found.tolist()
    if not cells:
        return None
    return (*(each[:cells].reshape(-1, width) for each in (starts, ends)), kinds[:cells].reshape(-1, width), stop)  # type: ignore[return-value]


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def skip_blanks(data: Any, at: Any) -> Any:
    """The first byte from ``at`` that is no blank."""
    while at < data.size and (data[at] == 32 or 9 <= data[at] <= 13):
        at += 1
    return at


@kernel
def is_word(data: Any, at: Any, word: Any) -> Any:
    """Whether the letters of ``word``, lower case, stand at ``at`` in either case."""
    same, place = at + word.size <= data.size, 0
    while same and place < word.size:
        same = (data[at + place] | 32) == word[place]
        place += 1
    return same


@kernel
def skip_digits(data: Any, at: Any, most: Any) -> Any:
    """The first byte from ``at`` that is no digit, or ``at`` where there are none or more than ``most``."""
    end = at
    while end < data.size and 48 <= data[end] <= 57:
        end += 1
    return end if end - at <= most else at


@kernel
def scan_number(data: Any, at: Any) -> Any:
    """The end of a number and its kind; the end is ``at`` where there is none."""
    begin = at + 1 if data[at] == 45 else at
    end = skip_digits(data, begin, 18)
    if end == begin:
        return at, 1
    kind = 1
    if end < data.size and data[end] == 46:
        after = skip_digits(data, end + 1, 18)
        if after == end + 1:
            return at, 1
        end, kind = after, 2
    if end < data.size and (data[end] | 32) == 101:
        begin = end + 1
        if begin < data.size and (data[begin] == 43 or data[begin] == 45):
            begin += 1
        after = skip_digits(data, begin, 2)
        if after == begin:
            return at, 1
        end, kind = after, 3
    return end, kind


@kernel
def scan_text(data: Any, at: Any) -> Any:
    """The end of a text whose first quote is at ``at``, and its kind; the end is ``at`` where it does not end."""
    kind, end = 4, at + 1
    while end < data.size:
        if data[end] == 39:
            if end + 1 < data.size and data[end + 1] == 39:
                kind = 5
                end += 1
            else:
                return end + 1, kind
        end += 1
    return at, kind


@kernel
def scan_rows(data: Any, start: Any, starts: Any, ends: Any, kinds: Any, found: Any) -> None:
    """Finds the values of a plain list.

    data    uint8     in   the text
    start   int       in   where the first row begins
    starts  uint32[]  out  and ``ends``: where each value stands, row by row
    kinds   uint8[]   out  what each is
    found   int64[3]  out  values, values of a row, end of the first row; no values where the list is not plain
    """
    null, true, false = WORDS
    at, cells, width, count = start, 0, 0, 0
    while True:
        at = skip_blanks(data, at)
        if count == 0:
            if at >= data.size or data[at] != 40:
                return
            at = skip_blanks(data, at + 1)
        if at >= data.size or cells == kinds.size:
            return
        edge = 0
        if data[at] == 39:
            end, kind = scan_text(data, at)
            edge = 1
        elif is_word(data, at, null):
            end, kind = at + 4, 0
        elif is_word(data, at, true):
            end, kind = at + 4, 6
        elif is_word(data, at, false):
            end, kind = at + 5, 7
        else:
            end, kind = scan_number(data, at)
        if end == at:
            return
        is_written = kind != 0
        starts[cells] = at + edge if is_written else 0
        ends[cells] = end - edge if is_written else 0
        kinds[cells] = kind
        cells += 1
        count += 1
        at = skip_blanks(data, end)
        if at >= data.size:
            return
        if data[at] == 44:
            at += 1
            continue
        if data[at] != 41 or (width and count != width):
            return
        at += 1
        if width == 0:
            width = count
            found[1], found[2] = width, at
        count = 0
        at = skip_blanks(data, at)
        if at < data.size and data[at] == 44:
            at += 1
            continue
        if at < data.size and data[at] == 59:
            at = skip_blanks(data, at + 1)
        if at == data.size:
            found[0] = cells
        return


WORDS: Final = tuple(np.frombuffer(word, np.uint8) for word in (b"null", b"true", b"false"))


@kernel
def pack_texts(data: Any, starts: Any, ends: Any, kinds: Any, offsets: Any, out: Any) -> Any:
    """Puts values one behind the other; answers the bytes of all.

    data          uint8      in   the text      kinds    uint8[n]      in   QUOTED has doubled quotes
    starts, ends  uint32[n]  in                 offsets  int32[n + 1]  out  the first is there
    out           uint8      out  at least as large as all values
    """
    size = 0
    for row in range(starts.size):
        at = np.int64(starts[row])
        end = np.int64(ends[row])
        while at < end:
            out[size] = data[at]
            size += 1
            at += 2 if kinds[row] == 5 and data[at] == 39 else 1
        offsets[row + 1] = size
    return size


@rehearsal
def rehearse() -> None:
    """A list of two rows."""
    found = _scan(np.frombuffer(b"(1, 'a', NULL), (-1.5e1, 'it''s', true)", np.uint8), 0)
    assert found is not None
    starts, ends, kinds, _ = found
    PlainRows(np.frombuffer(b"", np.uint8), starts[:0], ends[:0], kinds[:0], (), tuple).texts(1)
