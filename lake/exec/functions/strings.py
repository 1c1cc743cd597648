"""Functions of text. Positions count characters from 1."""

from __future__ import annotations

import functools
import re
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, NumericOutOfRange
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import (
    NOT_CONSTANT,
    by_ascii,
    columns,
    constant,
    map_rows,
    with_constants,
)
from lake.exec.kernels import alphabets, views
from lake.exec.kernels.strings import TEXT_BYTES_MAX, characters_before, substring
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar

GROUP: Final = "text"
SPACE: Final = pa.scalar(" ")
SPLITS_MAX: Final = 1 << 30
LENGTH_MAX: Final = 1 << 28
"""Characters of a text that a function may make: a quarter of what a column of texts holds."""


# --- length and case -------------------------------------------------------------------------------------------------


@scalar("length(text VARCHAR) -> INT", group=GROUP, aliases=("char_length", "character_length", "len"))
def length(text: pa.Array) -> pa.Array:
    """How many characters.

    >>> length('Ångström')
    8
    """
    return pc.utf8_length(text)


@scalar("octet_length(text VARCHAR) -> INT", group=GROUP, aliases=("strlen",))
def octet_length(text: pa.Array) -> pa.Array:
    """How many bytes.

    >>> octet_length('Ångström')
    10
    """
    return pc.binary_length(text)


@scalar("bit_length(text VARCHAR) -> INT", group=GROUP)
def bit_length(text: pa.Array) -> pa.Array:
    """How many bits.

    >>> bit_length('jose')
    32
    """
    return pc.multiply(pc.binary_length(text), pa.scalar(8, pa.int32()))


@scalar("upper(text VARCHAR) -> VARCHAR", group=GROUP, aliases=("ucase",))
def upper(text: pa.Array) -> pa.Array:
    """Upper case.

    >>> upper('straße')
    STRASSE
    """
    return pc.utf8_upper(pc.replace_substring(text, "ß", "SS"))


@scalar("lower(text VARCHAR) -> VARCHAR", group=GROUP, aliases=("lcase",))
def lower(text: pa.Array) -> pa.Array:
    """Lower case.

    >>> lower('ÅB')
    åb
    """
    return pc.utf8_lower(text)


@scalar("initcap(text VARCHAR) -> VARCHAR", group=GROUP)
@per_row
def initcap(text: pa.Array) -> pa.Array:
    """Each word's first letter in upper case, the others in lower case; a word is letters and digits.

    Texts beyond ASCII go row by row: what a letter is there, and its two cases, Arrow decides otherwise than the base.

    >>> initcap('hello wORLD foo-bar')
    Hello World Foo-Bar
    """
    def capitalize(item: str) -> str:
        return re.sub(r"[^\W_]+", lambda word: word[0].capitalize(), item)

    return by_ascii(alphabets.capitalized, capitalize, pa.string(), text)


# --- joining ---------------------------------------------------------------------------------------------------------


@scalar("||(a VARCHAR, b VARCHAR) -> VARCHAR", group=GROUP)
def join(a: Value, b: Value) -> pa.Array:
    """Both texts as one; NULL where one is.

    >>> 'a' || 'b'
    ab
    """
    return pc.binary_join_element_wise(a, b, "")


@scalar("concat(value BYTEA, values BYTEA...) -> BYTEA", group=GROUP, strict=False, takes_call=True)
def concat_bytes(*values: Value, call: CallInfo) -> pa.Array:
    """All byte strings as one; NULLs are skipped.

    >>> encode(concat(X'61', NULL, X'62'), 'hex')
    6162
    """
    joined = pc.binary_join_element_wise(*values, b"", null_handling="replace", null_replacement=b"")
    return as_array(joined, call.rows)


@scalar("concat(text VARCHAR, texts VARCHAR...) -> VARCHAR", group=GROUP, strict=False, takes_call=True)
def concat(*texts: Value, call: CallInfo) -> pa.Array:
    """All texts as one; NULLs are skipped.

    >>> concat('a', NULL, 'b', 1)
    ab1
    """
    if not texts:
        return as_array(pa.scalar(""), call.rows)
    return as_array(pc.binary_join_element_wise(*texts, "", null_handling="replace", null_replacement=""), call.rows)


@scalar("concat_ws(separator BYTEA, values BYTEA...) -> BYTEA", group=GROUP, strict=False, takes_call=True)
@scalar("concat_ws(separator VARCHAR, texts VARCHAR...) -> VARCHAR", group=GROUP, strict=False, takes_call=True)
def concat_ws(separator: Value, *texts: Value, call: CallInfo) -> pa.Array:
    """All texts with a separator between them; NULLs are skipped.

    >>> concat_ws('-', 'a', NULL, 'b')
    a-b
    """
    columns_given = [as_array(text, call.rows) for text in texts]
    there = functools.reduce(pc.or_, (pc.is_valid(text) for text in columns_given), pa.scalar(False))
    # The join leaves out rows of which every text is NULL, so the last one is empty there.
    nothing = pa.scalar("").cast(call.returns.physical)
    *others, last = columns_given or [as_array(nothing, call.rows)]
    last = pc.if_else(there, last, pc.coalesce(last, nothing))
    joined = pc.binary_join_element_wise(*others, last, as_array(separator, call.rows), null_handling="skip")
    return as_array(joined, call.rows)


@scalar("repeat(text VARCHAR, count BIGINT) -> VARCHAR", group=GROUP)
def repeat(text: Value, count: Value) -> pa.Array:
    """The text so many times.

    >>> repeat('ab', 3)
    ababab
    """
    text, count = columns(text, count)
    count = pc.max_element_wise(count, 0, skip_nulls=False)
    _refuse_long(pc.max(pc.multiply(pc.binary_length(text).cast(pa.int64()), count)).as_py())
    return pc.binary_repeat(text, count)


def _refuse_long(size: int | None) -> None:
    if size is not None and size > LENGTH_MAX:
        raise NumericOutOfRange(f"requested length too large: {size}")


# --- parts -----------------------------------------------------------------------------------------------------------


@scalar("substr(str STRING, start_pos BIGINT) -> VARCHAR", group=GROUP, aliases=("substring", "mid"))
@scalar("substr(str STRING, start_pos BIGINT, length BIGINT) -> VARCHAR", group=GROUP, aliases=("substring", "mid"))
def substr(text: Value, start: Value, length: Value | None = None) -> pa.Array:
    """Characters from a position on; positions before the first count, though nothing is there.

    >>> substr('datafusion', 5, 3)
    fus
    >>> substr('abc', -1, 3)
    a

    22023  a length below 0
    """
    first, many = constant(start), None if length is None else constant(length)
    text = columns(text, start)[0] if length is None else columns(text, start, length)[0]
    if first is None or (length is not None and many is None):
        return pa.nulls(len(text), pa.string())
    if first is not NOT_CONSTANT and many is not NOT_CONSTANT:
        if text.null_count == len(text):
            return pa.nulls(len(text), pa.string())
        end = None if length is None else first - 1 + _not_negative(many)
        begin = max(first - 1, 0)
        return pc.utf8_slice_codeunits(text, begin, None if end is None else max(end, begin))
    return _slices(text, start, length)


@scalar("array_slice(text STRING, begin BIGINT, stop BIGINT) -> VARCHAR", group=GROUP, aliases=("list_slice",))
def text_slice(text: Value, begin: Value, stop: Value) -> pa.Array:
    """The characters from ``begin`` to ``stop``, both taken in, counted from the end where negative: ``text[2:3]``.

    >>> array_slice('duck', 2, -1)
    uck
    """
    texts, *ends = columns(text, begin, stop)
    lengths = views.values_of(pc.fill_null(pc.utf8_length(texts), 0)).astype(np.int64)
    first, last = (views.values_of(column) for column in ends)
    first = np.where(first < 0, np.maximum(lengths + first, 0), np.maximum(first - 1, 0))
    last = np.where(last < 0, lengths + last, np.minimum(last - 1, lengths - 1))
    made = _slices(texts, pa.array(first + 1), pa.array(np.maximum(last - first + 1, 0)))
    known = pc.and_(pc.is_valid(ends[0]), pc.is_valid(ends[1]))
    return pc.if_else(known, made, pa.scalar(None, made.type))


def _not_negative(length: Any) -> int:
    if length < 0:
        raise InvalidParameter("negative substring length not allowed")
    return int(length)


def _slices(text: Value, start: Value, length: Value | None) -> pa.Array:
    """Parts at each row's own place."""
    given = columns(text, start) if length is None else columns(text, start, length)
    rows = pa.array(np.flatnonzero(np.logical_and.reduce([column.is_valid() for column in given])))
    live = [column.take(rows) for column in given]
    counts = views.values_of(live[2]) if length is not None else np.full(len(rows), TEXT_BYTES_MAX)
    if counts.size and counts.min() < 0:
        _not_negative(int(counts.min()))
    firsts = np.maximum(views.values_of(live[1]) - 1, -TEXT_BYTES_MAX)
    if length is None:
        firsts = np.maximum(firsts, 0)
    cut = substring(live[0], firsts, np.minimum(counts, TEXT_BYTES_MAX))
    place = np.full(len(given[0]), -1, np.int64)
    place[rows.to_numpy()] = np.arange(len(rows))
    return cut.take(views.to_array(np.maximum(place, 0), pa.int64(), (place >= 0).astype(np.uint8)))


@scalar("left(text VARCHAR, count BIGINT) -> VARCHAR", group=GROUP)
def left(text: Value, count: Value) -> pa.Array:
    """The first characters, or all but so many last ones where the count is negative.

    >>> left('datafusion', -3)
    datafus
    """
    return with_constants(lambda column, many: pc.utf8_slice_codeunits(column, 0, many), pa.string(), text, count)


@scalar("right(text VARCHAR, count BIGINT) -> VARCHAR", group=GROUP)
def right(text: Value, count: Value) -> pa.Array:
    """The last characters, or all but so many first ones where the count is negative.

    >>> right('datafusion', 3)
    ion
    """

    def run(column: pa.Array, many: int) -> pa.Array:
        if many == 0:
            return pc.utf8_slice_codeunits(column, 0, 0)
        return pc.utf8_slice_codeunits(column, -many, None)

    return with_constants(run, pa.string(), text, count)


@scalar("split_part(text STRING, delimiter VARCHAR, part BIGINT) -> VARCHAR", group=GROUP)
def split_part(text: Value, delimiter: Value, part: Value) -> pa.Array:
    """One of the parts between delimiters, counted from 1, or from the end where negative; empty where there is none.

    >>> split_part('1.2.3', '.', -1)
    3

    22023  part 0
    """

    def run(column: pa.Array, delimiter: str, number: int) -> pa.Array:
        if number == 0:
            raise InvalidParameter("field position must not be zero")
        if delimiter == "":
            return column if number in (1, -1) else pc.utf8_slice_codeunits(column, 0, 0)
        parts = pc.split_pattern(column, delimiter)
        counts = pc.list_value_length(parts)
        place = number - 1 if number > 0 else None
        at = pa.scalar(place) if place is not None else pc.add(counts, number)
        there = pc.and_(pc.greater_equal(at, 0), pc.less(at, counts))
        rows = views.values_of(counts).astype(np.int64)
        starts = np.concatenate(([0], np.cumsum(np.where(np.asarray(parts.is_valid()), rows, 0))))[:-1]
        offsets = starts + (place if place is not None else rows + number)
        chosen = pa.array(np.where(views.true_of(there), offsets, 0))
        items = parts.flatten()
        taken = items.take(chosen) if len(items) else pa.nulls(len(column), pa.string())
        return pc.if_else(there, taken, "")

    return with_constants(run, pa.string(), text, delimiter, part)


@scalar("substring_index(text VARCHAR, delimiter VARCHAR, count BIGINT) -> VARCHAR", group=GROUP,
        aliases=("substr_index",))  # fmt: skip
def substring_index(text: Value, delimiter: Value, count: Value) -> pa.Array:
    """What stands before the count-th delimiter, or behind it counted from the end where negative.

    >>> substring_index('www.apache.org', '.', 2)
    www.apache
    """

    def cut(column: pa.Array, delimiter: str, count: int) -> pa.Array:
        if delimiter == "" or count == 0:
            return pc.utf8_slice_codeunits(column, 0, 0)
        many = min(abs(count), SPLITS_MAX)
        parts = pc.split_pattern(column, delimiter, max_splits=many, reverse=count < 0)
        kept = pc.list_slice(parts, 0, many) if count > 0 else pc.list_slice(parts, 1)
        return pc.if_else(pc.greater(pc.list_value_length(parts), many), pc.binary_join(kept, delimiter), column)

    return with_constants(cut, pa.string(), text, delimiter, count)


# --- trimming and padding --------------------------------------------------------------------------------------------


@scalar("btrim(text VARCHAR) -> VARCHAR", group=GROUP, aliases=("trim",))
@scalar("btrim(text VARCHAR, characters VARCHAR) -> VARCHAR", group=GROUP, aliases=("trim",))
def btrim(text: Value, characters: Value = SPACE) -> pa.Array:
    """The text without certain characters (spaces) at both ends.

    >>> btrim('xxabxx', 'x')
    ab
    """
    return with_constants(lambda column, chars: pc.utf8_trim(column, chars), pa.string(), text, characters)


@scalar("ltrim(text VARCHAR) -> VARCHAR", group=GROUP)
@scalar("ltrim(text VARCHAR, characters VARCHAR) -> VARCHAR", group=GROUP)
def ltrim(text: Value, characters: Value = SPACE) -> pa.Array:
    """The text without certain characters (spaces) at its beginning.

    >>> ltrim('xxab', 'x')
    ab
    """
    return with_constants(lambda column, chars: pc.utf8_ltrim(column, chars), pa.string(), text, characters)


@scalar("rtrim(text VARCHAR) -> VARCHAR", group=GROUP)
@scalar("rtrim(text VARCHAR, characters VARCHAR) -> VARCHAR", group=GROUP)
def rtrim(text: Value, characters: Value = SPACE) -> pa.Array:
    """The text without certain characters (spaces) at its end.

    >>> rtrim('abxx', 'x')
    ab
    """
    return with_constants(lambda column, chars: pc.utf8_rtrim(column, chars), pa.string(), text, characters)


@scalar("lpad(text VARCHAR, length BIGINT) -> VARCHAR", group=GROUP)
@scalar("lpad(text VARCHAR, length BIGINT, fill VARCHAR) -> VARCHAR", group=GROUP)
def lpad(text: Value, length: Value, fill: Value = SPACE) -> pa.Array:
    """The text filled up at its beginning, or cut, to so many characters.

    >>> lpad('ab', 5, 'xy')
    xyxab
    """
    return with_constants(lambda column, size, fill: _padded(column, size, fill, before=True), pa.string(),
                          text, length, fill)  # fmt: skip


@scalar("rpad(text VARCHAR, length BIGINT) -> VARCHAR", group=GROUP)
@scalar("rpad(text VARCHAR, length BIGINT, fill VARCHAR) -> VARCHAR", group=GROUP)
def rpad(text: Value, length: Value, fill: Value = SPACE) -> pa.Array:
    """The text filled up at its end, or cut, to so many characters.

    >>> rpad('ab', 5, 'xy')
    abxyx
    """
    return with_constants(lambda column, size, fill: _padded(column, size, fill, before=False), pa.string(),
                          text, length, fill)  # fmt: skip


def _padded(column: pa.Array, size: int, fill: str, *, before: bool) -> pa.Array:
    _refuse_long(size)
    size = max(size, 0)
    cut = pc.utf8_slice_codeunits(column, 0, size)
    if len(fill) == 1:
        return (pc.utf8_lpad if before else pc.utf8_rpad)(cut, size, fill)
    if fill == "":
        return cut
    whole = pa.scalar((fill * (size // len(fill) + 1))[:size])
    missing = np.maximum(size - views.values_of(pc.utf8_length(cut)), 0)
    filling = _cut_each(whole.as_py(), missing)
    return pc.binary_join_element_wise(*((filling, cut) if before else (cut, filling)), "")


def _cut_each(text: str, lengths: Any) -> pa.Array:
    """The first characters of one text, so many for each row."""
    unique, which = np.unique(lengths, return_inverse=True)
    return pa.array([text[:size] for size in unique.tolist()], pa.string()).take(pa.array(which))


# --- searching -------------------------------------------------------------------------------------------------------


@scalar("strpos(text STRING, part STRING) -> INT", group=GROUP, aliases=("position", "instr"))
def strpos(text: Value, part: Value) -> pa.Array:
    """Where a part first stands, counted in characters from 1; 0 where it does not.

    >>> strpos('datafusion', 'fus')
    5
    """

    def run(column: pa.Array, part: str) -> pa.Array:
        found = pc.find_substring(column, part)
        if pc.all(pc.string_is_ascii(column)).as_py() is False:
            return pc.add(characters_before(column, found), 1).cast(pa.int32())
        return pc.add(found, pa.scalar(1, found.type)).cast(pa.int32())

    return with_constants(run, pa.int32(), text, part)


@scalar("bit_position(part VARCHAR, bits VARCHAR) -> INT", group="bits", origin="duckdb")
def bit_position(part: Value, bits: Value) -> pa.Array:
    """Where a text of 0 and 1 begins in another, from 1; 0 where it does not.

    >>> bit_position('010', '1110101')
    4
    """
    return strpos(bits, part)


@scalar("starts_with(text VARCHAR, part VARCHAR) -> BOOLEAN", group=GROUP, aliases=("prefix", "startswith", "^@"))
def starts_with(text: Value, part: Value) -> pa.Array:
    """Whether the text begins with a part.

    >>> starts_with('datafusion', 'data')
    true
    """
    return with_constants(lambda column, part: pc.starts_with(column, part), pa.bool_(), text, part)


@scalar("ends_with(text VARCHAR, part VARCHAR) -> BOOLEAN", group=GROUP, aliases=("suffix", "endswith"))
def ends_with(text: Value, part: Value) -> pa.Array:
    """Whether the text ends with a part.

    >>> ends_with('datafusion', 'ion')
    true
    """
    return with_constants(lambda column, part: pc.ends_with(column, part), pa.bool_(), text, part)


@scalar("contains(text VARCHAR, part VARCHAR) -> BOOLEAN", group=GROUP)
def contains(text: Value, part: Value) -> pa.Array:
    """Whether a part stands in the text.

    >>> contains('the quick fox', 'quick')
    true
    """
    return with_constants(lambda column, part: pc.match_substring(column, part), pa.bool_(), text, part)


@scalar("find_in_set(text VARCHAR, texts VARCHAR) -> INT", group=GROUP)
@per_row
def find_in_set(text: Value, texts: Value) -> pa.Array:
    """Where a text stands among others that commas separate, counted from 1; 0 where it does not.

    Goes row by row: each row's list is another, and short.

    >>> find_in_set('b', 'a,b,c')
    2
    """

    def find(item: str, texts: str) -> int:
        parts = texts.split(",")
        return parts.index(item) + 1 if item in parts else 0

    return map_rows(find, pa.int32(), text, texts)
