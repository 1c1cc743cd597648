"""Functions of text. Positions count characters from 1."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, NumericOutOfRange
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import NOT_CONSTANT, columns, constant, map_distinct, map_rows, per_row, with_constants
from lake.exec.kernels import views
from lake.exec.kernels.strings import TEXT_BYTES_MAX, substring
from lake.sql.registry import CallInfo, scalar

GROUP: Final = "text"
SPACE: Final = pa.scalar(" ")
LENGTH_MAX: Final = 1 << 28
"""Characters of a text that a function may make: a quarter of what a column of texts holds."""
STRINGS: Final = pa.list_(pa.string())


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
def initcap(text: pa.Array) -> pa.Array:
    """Each word's first letter in upper case, the others in lower case; a word is letters and digits.

    >>> initcap('hello wORLD foo-bar')
    Hello World Foo-Bar
    """
    return map_distinct(lambda item: re.sub(r"[^\W_]+", lambda word: word[0].capitalize(), item), pa.string(), text)


# --- joining ---------------------------------------------------------------------------------------------------------


@scalar("||(a VARCHAR, b VARCHAR) -> VARCHAR", group=GROUP)
def join(a: Value, b: Value) -> pa.Array:
    """Both texts as one; NULL where one is.

    >>> 'a' || 'b'
    ab
    """
    return pc.binary_join_element_wise(a, b, "")


@scalar("concat(texts VARCHAR...) -> VARCHAR", group=GROUP, strict=False, takes_call=True)
def concat(*texts: Value, call: CallInfo) -> pa.Array:
    """All texts as one; NULLs are skipped.

    >>> concat('a', NULL, 'b', 1)
    ab1
    """
    if not texts:
        return as_array(pa.scalar(""), call.rows)
    return as_array(pc.binary_join_element_wise(*texts, "", null_handling="replace", null_replacement=""), call.rows)


@scalar("concat_ws(separator VARCHAR, texts VARCHAR...) -> VARCHAR", group=GROUP, strict=False, takes_call=True)
def concat_ws(separator: Value, *texts: Value, call: CallInfo) -> pa.Array:
    """All texts with a separator between them; NULLs are skipped.

    >>> concat_ws('-', 'a', NULL, 'b')
    a-b
    """
    if not texts:
        empty = as_array(pa.scalar(""), call.rows)
        return pc.if_else(pc.is_valid(as_array(separator, call.rows)), empty, pa.scalar(None, pa.string()))
    return as_array(pc.binary_join_element_wise(*texts, separator, null_handling="skip"), call.rows)


@scalar("repeat(text VARCHAR, count BIGINT) -> VARCHAR", group=GROUP)
def repeat(text: Value, count: Value) -> pa.Array:
    """The text so many times.

    >>> repeat('ab', 3)
    ababab
    """
    text, count = columns(text, count)
    count = pc.max_element_wise(count, 0)
    _refuse_long(pc.max(pc.multiply(pc.binary_length(text).cast(pa.int64()), count)).as_py())
    return pc.binary_repeat(text, count)


def _refuse_long(size: int | None) -> None:
    if size is not None and size > LENGTH_MAX:
        raise NumericOutOfRange(f"requested length too large: {size}")


# --- parts -----------------------------------------------------------------------------------------------------------


@scalar("substr(text VARCHAR, start BIGINT) -> VARCHAR", group=GROUP, aliases=("substring", "mid"))
@scalar("substr(text VARCHAR, start BIGINT, length BIGINT) -> VARCHAR", group=GROUP, aliases=("substring", "mid"))
def substr(text: Value, start: Value, length: Value | None = None) -> pa.Array:
    """Characters from a position on; positions before the first count, though nothing is there.

    >>> substr('datafusion', 5, 3)
    fus
    >>> substr('abc', -1, 3)
    a

    22023  a length below 0
    """
    first, many = constant(start), None if length is None else constant(length)
    if first is None or (length is not None and many is None):
        return pa.nulls(len(columns(text, start)[0]), pa.string())
    if first is not NOT_CONSTANT and many is not NOT_CONSTANT:
        end = None if length is None else first - 1 + _not_negative(many)
        begin = max(first - 1, 0)
        (text,) = columns(text)
        return pc.utf8_slice_codeunits(text, begin, None if end is None else max(end, begin))
    return _slices(text, start, length)


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


@scalar("split_part(text VARCHAR, delimiter VARCHAR, part BIGINT) -> VARCHAR", group=GROUP)
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

    def cut(item: str, delimiter: str, count: int) -> str:
        parts = item.split(delimiter) if delimiter else [item]
        return delimiter.join(parts[:count] if count > 0 else parts[count:] if count < 0 else [])

    return with_constants(_over(cut, pa.string()), pa.string(), text, delimiter, count)


def _over(run: Callable[..., Any], type: pa.DataType) -> Callable[..., pa.Array]:
    """A column function of a function of one text and constants."""
    return lambda column, *given: map_distinct(lambda item: run(item, *given), type, column)


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


@scalar("strpos(text VARCHAR, part VARCHAR) -> INT", group=GROUP, aliases=("position", "instr"))
def strpos(text: Value, part: Value) -> pa.Array:
    """Where a part first stands, counted in characters from 1; 0 where it does not.

    >>> strpos('datafusion', 'fus')
    5
    """

    def run(column: pa.Array, part: str) -> pa.Array:
        found = pc.find_substring(column, part)
        if pc.all(pc.string_is_ascii(column)).as_py() is False:
            return map_distinct(lambda item: item.find(part) + 1, pa.int32(), column)
        return pc.add(found, pa.scalar(1, found.type)).cast(pa.int32())

    return with_constants(run, pa.int32(), text, part)


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
def find_in_set(text: Value, texts: Value) -> pa.Array:
    """Where a text stands among others that commas separate, counted from 1; 0 where it does not.

    >>> find_in_set('b', 'a,b,c')
    2
    """

    def find(item: str, texts: str) -> int:
        parts = texts.split(",") if texts else []
        return parts.index(item) + 1 if item in parts else 0

    return map_rows(find, pa.int32(), text, texts)


# --- changing --------------------------------------------------------------------------------------------------------


@scalar("replace(text VARCHAR, part VARCHAR, by VARCHAR) -> VARCHAR", group=GROUP)
def replace(text: Value, part: Value, by: Value) -> pa.Array:
    """The text with all of a part replaced.

    >>> replace('ABabbaBA', 'ab', 'cd')
    ABcdbaBA
    """

    def run(column: pa.Array, part: str, by: str) -> pa.Array:
        return pc.replace_substring(column, part, by) if part else column

    return with_constants(run, pa.string(), text, part, by)


@scalar("reverse(text VARCHAR) -> VARCHAR", group=GROUP)
def reverse(text: pa.Array) -> pa.Array:
    """The characters in the other order.

    >>> reverse('datafusion')
    noisufatad
    """
    return pc.utf8_reverse(text)


@scalar("translate(text VARCHAR, characters VARCHAR, by VARCHAR) -> VARCHAR", group=GROUP)
def translate(text: Value, characters: Value, by: Value) -> pa.Array:
    """The text with characters replaced one for one; those without a partner are left out.

    >>> translate('twice', 'wic', 'her')
    there
    """

    def run(column: pa.Array, characters: str, by: str) -> pa.Array:
        table: dict[int, str | None] = {}
        for index, char in enumerate(characters):
            table.setdefault(ord(char), by[index] if index < len(by) else None)
        return map_distinct(lambda item: item.translate(table), pa.string(), column)

    return with_constants(run, pa.string(), text, characters, by)


@scalar("overlay(text VARCHAR, by VARCHAR, start BIGINT) -> VARCHAR", group=GROUP)
@scalar("overlay(text VARCHAR, by VARCHAR, start BIGINT, count BIGINT) -> VARCHAR", group=GROUP)
def overlay(text: Value, by: Value, start: Value, count: Value | None = None) -> pa.Array:
    """The text with characters from a position on replaced, as many as the replacement has or as said.

    >>> overlay('Txxxxas', 'hom', 2, 4)
    Thomas
    """

    def put(item: str, by: str, start: int, count: int | None = None) -> str:
        if start < 1:
            raise InvalidParameter("negative substring length not allowed")
        many = len(by) if count is None else count
        return item[: start - 1] + by + item[max(start - 1 + many, 0) :]

    given = (by, start) if count is None else (by, start, count)
    return with_constants(_over(put, pa.string()), pa.string(), text, *given)


@scalar("strip_accents(text VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb")
def strip_accents(text: pa.Array) -> pa.Array:
    """The letters without their accents.

    >>> strip_accents('mühleisen')
    muhleisen
    """

    def strip(item: str) -> str:
        parts = unicodedata.normalize("NFD", item)
        return unicodedata.normalize("NFC", "".join(char for char in parts if not unicodedata.combining(char)))

    return map_distinct(strip, pa.string(), text)


# --- characters and numbers ------------------------------------------------------------------------------------------


@scalar("ascii(text VARCHAR) -> INT", group=GROUP, aliases=("ord", "unicode"))
def ascii_(text: pa.Array) -> pa.Array:
    """The code point of the first character; 0 of an empty text.

    >>> ascii('A')
    65
    """
    return map_distinct(lambda item: ord(item[0]) if item else 0, pa.int32(), text)


@scalar("chr(code BIGINT) -> VARCHAR", group=GROUP, aliases=("char",))
def chr_(code: pa.Array) -> pa.Array:
    """The character of a code point.

    >>> chr(65)
    A

    22003  a number that is no code point, or 0
    """

    def character(number: int) -> str:
        if number == 0:
            raise NumericOutOfRange("null character not permitted")
        if not 0 < number < 0x110000 or 0xD800 <= number < 0xE000:
            raise NumericOutOfRange(f"requested character too large for encoding: {number}")
        return chr(number)

    return map_distinct(character, pa.string(), code)


@scalar("to_hex(number BIGINT) -> VARCHAR", group=GROUP)
def to_hex(number: pa.Array) -> pa.Array:
    """The number in base 16, negative ones as 64 bits.

    >>> to_hex(255)
    ff
    """
    return map_distinct(lambda item: format(item & 0xFFFFFFFFFFFFFFFF, "x"), pa.string(), number)


@scalar("bin(number BIGINT) -> VARCHAR", group=GROUP, origin="spark")
def bin_(number: pa.Array) -> pa.Array:
    """The number in base 2, negative ones as 64 bits.

    >>> bin(13)
    1101
    """
    return map_distinct(lambda item: format(item & 0xFFFFFFFFFFFFFFFF, "b"), pa.string(), number)


@scalar("to_base(number BIGINT, base BIGINT) -> VARCHAR", group=GROUP, origin="duckdb")
def to_base(number: Value, base: Value) -> pa.Array:
    """A number that is not negative in a base from 2 to 36.

    >>> to_base(42, 16)
    2A
    """
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def write(item: int, base: int) -> str:
        if item < 0 or not 2 <= base <= 36:
            raise InvalidParameter("to_base takes a number of 0 or more and a base from 2 to 36")
        written = ""
        while item:
            item, digit = divmod(item, base)
            written = digits[digit] + written
        return written or "0"

    return map_rows(write, pa.string(), number, base)


# --- lists of texts --------------------------------------------------------------------------------------------------


@scalar("string_to_array(text VARCHAR, delimiter VARCHAR) -> VARCHAR[]", group=GROUP, strict=False,
        aliases=("string_to_list",))  # fmt: skip
@scalar("string_to_array(text VARCHAR, delimiter VARCHAR, missing VARCHAR) -> VARCHAR[]", group=GROUP, strict=False,
        aliases=("string_to_list",))  # fmt: skip
def string_to_array(text: Value, delimiter: Value, missing: Value | None = None) -> pa.Array:
    """The parts between delimiters, all characters apart where the delimiter is NULL; ``missing`` is read as NULL.

    >>> string_to_array('a,NULL,c', ',', 'NULL')
    [a, NULL, c]
    """
    given = (text, delimiter) if missing is None else (text, delimiter, missing)
    rows = zip(*(column.to_pylist() for column in columns(*given)), strict=True)
    return pa.array([_parts(*row) for row in rows], STRINGS)


def _parts(text: str | None, delimiter: str | None, missing: str | None = None) -> list[str | None] | None:
    if text is None:
        return None
    if text == "":
        return []
    parts = list(text) if delimiter is None else text.split(delimiter) if delimiter else [text]
    return [None if part == missing else part for part in parts] if missing is not None else list(parts)


@scalar("string_split(text VARCHAR, delimiter VARCHAR) -> VARCHAR[]", group=GROUP, origin="duckdb",
        aliases=("split", "str_split"))  # fmt: skip
def string_split(text: Value, delimiter: Value) -> pa.Array:
    """The parts between delimiters; all characters apart where the delimiter is empty.

    >>> string_split('a-b', '-')
    [a, b]
    """

    def run(column: pa.Array, delimiter: str) -> pa.Array:
        if delimiter == "":
            return map_distinct(list, STRINGS, column)
        return pc.split_pattern(column, delimiter)

    return with_constants(run, STRINGS, text, delimiter)


# --- quoting and formatting ------------------------------------------------------------------------------------------


@scalar("quote_ident(name VARCHAR) -> VARCHAR", group=GROUP, origin="postgres")
def quote_ident(name: pa.Array) -> pa.Array:
    """The name as SQL writes it, in quotation marks where it needs them.

    >>> quote_ident('A b')
    "A b"
    """
    return map_distinct(quoted_identifier, pa.string(), name)


def quoted_identifier(name: str) -> str:
    """A name as SQL writes it."""
    if re.fullmatch(r"[a-z_][a-z0-9_$]*", name):
        return name
    return '"' + name.replace('"', '""') + '"'


@scalar("quote_literal(text VARCHAR) -> VARCHAR", group=GROUP, origin="postgres")
def quote_literal(text: pa.Array) -> pa.Array:
    """The text as SQL writes it.

    >>> quote_literal('it''s')
    'it''s'
    """
    return pc.binary_join_element_wise("'", pc.replace_substring(text, "'", "''"), "'", "")


@scalar("quote_nullable(text VARCHAR) -> VARCHAR", group=GROUP, origin="postgres", strict=False)
def quote_nullable(text: pa.Array) -> pa.Array:
    """The text as SQL writes it; NULL as the word.

    >>> quote_nullable(NULL)
    NULL
    """
    return pc.fill_null(quote_literal(text), "NULL")


@scalar("format(pattern VARCHAR, values VARCHAR...) -> VARCHAR", group=GROUP, origin="postgres", strict=False,
        aliases=("format_string", "printf"))  # fmt: skip
@per_row
def format_(pattern: Value, *values: Value) -> pa.Array:
    """A pattern with values put in: %s as it is, %I as a name, %L as a literal, %d %f %x as numbers, {} in turn, %% itself.

    Goes row by row: each row's text is put together on its own.

    >>> format('%s-%s', 1, 'a')
    1-a
    """
    given = columns(pattern, *values)
    rows = zip(*(column.to_pylist() for column in given), strict=True)
    return pa.array([None if row[0] is None else formatted(row[0], row[1:]) for row in rows], pa.string())


_PLACE = re.compile(r"%(?:(\d+)\$)?([-+ 0#,]*)(\*|\d+)?(?:\.(\d+))?([a-zA-Z%])|\{\}")


def formatted(pattern: str, values: tuple[str | None, ...]) -> str:
    """The pattern with its places filled.

    22023  more places than values, or a place that is not known
    """
    following = iter(range(len(values)))

    def next_value(position: str | None) -> str | None:
        index = int(position) - 1 if position else next(following, None)
        if index is None or not 0 <= index < len(values):
            raise InvalidParameter("too few arguments for format()")
        return values[index]

    def fill(place: re.Match[str]) -> str:
        position, flags, width, precision, kind = place.groups()
        if kind == "%":
            return "%"
        if kind is None:
            return next_value(None) or ""
        size = next_value(None) if width == "*" else width
        written = _written(kind, next_value(position), flags or "", precision)
        return written.ljust(int(size)) if size and "-" in (flags or "") else written.rjust(int(size or 0), _fill(flags))

    return _PLACE.sub(fill, pattern)


def _fill(flags: str | None) -> str:
    return "0" if flags and "0" in flags else " "


def _written(kind: str, value: str | None, flags: str, precision: str | None) -> str:
    if kind == "s":
        return (value or "") if precision is None else (value or "")[: int(precision)]
    if kind == "I":
        if value is None:
            raise InvalidParameter("null values cannot be formatted as an SQL identifier")
        return quoted_identifier(value)
    if kind == "L":
        return "NULL" if value is None else "'" + value.replace("'", "''") + "'"
    if kind not in "dxXofeEgGc":
        raise InvalidParameter(f'unrecognized format() type specifier "{kind}"')
    if value is None:
        return "null"
    try:
        number = float(value) if kind in "feEgG" else int(value)
        return f"%{flags.replace(',', '').replace('0', '')}{'.' + precision if precision else ''}{kind}" % number
    except ValueError:
        raise InvalidParameter(f'"{value}" is no number for %{kind}') from None


# --- how far apart ---------------------------------------------------------------------------------------------------


@scalar("levenshtein(a VARCHAR, b VARCHAR) -> INT", group=GROUP, aliases=("editdist3",))
@per_row
def levenshtein(a: Value, b: Value) -> pa.Array:
    """How many characters to insert, delete or change to make one text the other.

    Goes row by row: there is no column operation for it.

    >>> levenshtein('kitten', 'sitting')
    3
    """

    def distance(one: str, two: str) -> int:
        before = list(range(len(two) + 1))
        for row, char in enumerate(one, 1):
            after = [row]
            for column, other in enumerate(two, 1):
                after.append(min(before[column] + 1, after[-1] + 1, before[column - 1] + (char != other)))
            before = after
        return before[-1]

    return map_rows(distance, pa.int32(), a, b)


@scalar("hamming(a VARCHAR, b VARCHAR) -> BIGINT", group=GROUP, origin="duckdb", aliases=("mismatches",))
@per_row
def hamming(a: Value, b: Value) -> pa.Array:
    """In how many places texts of one length differ.

    Goes row by row: there is no column operation for it.

    >>> hamming('duck', 'luck')
    1
    """

    def distance(one: str, two: str) -> int:
        if len(one) != len(two):
            raise InvalidParameter("hamming takes texts of the same length")
        return sum(char != other for char, other in zip(one, two))

    return map_rows(distance, pa.int64(), a, b)


@scalar("jaccard(a VARCHAR, b VARCHAR) -> DOUBLE", group=GROUP, origin="duckdb")
@per_row
def jaccard(a: Value, b: Value) -> pa.Array:
    """The share of characters that texts have in common.

    Goes row by row: there is no column operation for it.

    >>> jaccard('duck', 'luck')
    0.6
    """

    def share(one: str, two: str) -> float:
        if not one or not two:
            raise InvalidParameter("jaccard takes texts that are not empty")
        return len(set(one) & set(two)) / len(set(one) | set(two))

    return map_rows(share, pa.float64(), a, b)


@scalar("soundex(text VARCHAR) -> VARCHAR", group=GROUP, origin="spark")
def soundex(text: pa.Array) -> pa.Array:
    """The sound of a word: its first letter and three digits.

    >>> soundex('Miller')
    M460
    """
    codes = {char: digit for digit, chars in enumerate(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), 1) for char in chars}

    def sound(word: str) -> str:
        upper = word.upper()
        if not upper or not upper[0].isascii() or not upper[0].isalpha():
            return word
        written, last = upper[0], codes.get(upper[0])
        for char in upper[1:]:
            code = codes.get(char)
            if code and code != last:
                written += str(code)
            if char not in "HW":
                last = code
        return written[:4].ljust(4, "0")

    return map_distinct(sound, pa.string(), text)


