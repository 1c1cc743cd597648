"""Text changed, taken apart, quoted, and put in formats."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, NumericOutOfRange
from lake.exec.constants import list_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import (
    NOT_CONSTANT,
    by_ascii,
    columns,
    constant,
    map_distinct,
    map_rows,
    with_constants,
)
from lake.exec.functions.lists import Lists, offsets_of, ranges
from lake.exec.functions.strings import substr
from lake.exec.kernels import alphabets, views
from lake.exec.kernels.similarity import CODE_POINTS, points_of
from lake.exec.per_row import per_row
from lake.late import late_pattern
from lake.sql.quoting import quote_name
from lake.sql.registry import scalar

GROUP: Final = "text"
STRINGS: Final = pa.list_(pa.string())


# --- changing --------------------------------------------------------------------------------------------------------


@scalar("replace(text VARCHAR, part VARCHAR, by VARCHAR) -> VARCHAR", group=GROUP)
@per_row
def replace(text: Value, part: Value, by: Value) -> pa.Array:
    """The text with all of a part replaced. Parts of each row's own go row by row: Arrow replaces one part in all rows.

    >>> replace('ABabbaBA', 'ab', 'cd')
    ABcdbaBA
    """

    def run(column: pa.Array, part: str, by: str) -> pa.Array:
        return pc.replace_substring(column, part, by) if part else column

    if NOT_CONSTANT in (constant(part), constant(by)):
        return map_rows(lambda item, part, by: item.replace(part, by) if part else item, pa.string(), text, part, by)
    return with_constants(run, pa.string(), text, part, by)


@scalar("reverse(text VARCHAR) -> VARCHAR", group=GROUP)
def reverse(text: pa.Array) -> pa.Array:
    """The characters in the other order.

    >>> reverse('datafusion')
    noisufatad
    """
    return pc.utf8_reverse(text)


@scalar("translate(text VARCHAR, characters VARCHAR, by VARCHAR) -> VARCHAR", group=GROUP)
@per_row
def translate(text: Value, characters: Value, by: Value) -> pa.Array:
    """The text with characters replaced one for one; those without a partner are left out.

    Texts beyond ASCII go row by row: Arrow replaces one text at a time, and not all at once.

    >>> translate('twice', 'wic', 'her')
    there
    """

    def run(column: pa.Array, characters: str, by: str) -> pa.Array:
        table: dict[int, str | None] = {}
        for index, char in enumerate(characters):
            table.setdefault(ord(char), by[index] if index < len(by) else None)
        if not by.isascii():
            return map_distinct(lambda item: item.translate(table), pa.string(), column)
        bytes = np.arange(256, dtype=np.int16)
        for code, sign in table.items():
            if code < 128:
                bytes[code] = -1 if sign is None else ord(sign)
        return by_ascii(lambda plain: alphabets.mapped(plain, bytes), lambda item: item.translate(table), pa.string(), column)

    return with_constants(run, pa.string(), text, characters, by)


@scalar("overlay(text VARCHAR, by VARCHAR, start BIGINT) -> VARCHAR", group=GROUP)
@scalar("overlay(text VARCHAR, by VARCHAR, start BIGINT, count BIGINT) -> VARCHAR", group=GROUP)
def overlay(text: Value, by: Value, start: Value, count: Value | None = None) -> pa.Array:
    """The text with characters from a position on replaced, as many as the replacement has or as said.

    >>> overlay('Txxxxas', 'hom', 2, 4)
    Thomas
    """

    given = columns(text, by, start) if count is None else columns(text, by, start, count)
    texts, parts, places = given[:3]
    many = given[3] if count is not None else pc.utf8_length(parts).cast(pa.int64())
    if pc.any(pc.less(places, 1)).as_py():
        raise InvalidParameter("negative substring length not allowed")
    head = substr(texts, pa.scalar(1), pc.subtract(places, 1))
    tail = substr(texts, pc.max_element_wise(pc.add(places, many), 1, skip_nulls=False))
    return pc.binary_join_element_wise(head, parts, tail, "")


@scalar("strip_accents(text VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb")
@per_row
def strip_accents(text: pa.Array) -> pa.Array:
    """The letters without their accents. Texts beyond ASCII go row by row: Arrow knows no classes of combining marks.

    >>> strip_accents('mühleisen')
    muhleisen
    """

    def strip(item: str) -> str:
        parts = unicodedata.normalize("NFD", item)
        return unicodedata.normalize("NFC", "".join(char for char in parts if not unicodedata.combining(char)))

    return by_ascii(lambda plain: plain, strip, pa.string(), text)


# --- characters and numbers ------------------------------------------------------------------------------------------


@scalar("ascii(text VARCHAR) -> INT", group=GROUP, aliases=("ord", "unicode"))
def ascii_(text: pa.Array) -> pa.Array:
    """The code point of the first character; 0 of an empty text.

    >>> ascii('A')
    65
    """
    first = pc.utf8_slice_codeunits(text, 0, 1)
    offsets, points = points_of(pc.if_else(pc.equal(pc.binary_length(first), 0), "\0", first))
    return views.to_array(np.append(points, 0)[offsets[:-1]], pa.int32(), views.valid_of(text))


@scalar("chr(code BIGINT) -> VARCHAR", group=GROUP, aliases=("char",))
def chr_(code: pa.Array) -> pa.Array:
    """The character of a code point.

    >>> chr(65)
    A

    22003  a number that is no code point, or 0
    """

    numbers = views.values_of(pc.fill_null(code, 1))
    bad = numbers[(numbers < 1) | (numbers >= CODE_POINTS) | ((numbers >= 0xD800) & (numbers < 0xE000))]
    if len(bad):
        known = "null character not permitted" if bad[0] == 0 else f"requested character too large for encoding: {bad[0]}"
        raise NumericOutOfRange(known)
    made = pa.array(numbers.astype(np.uint32).view("<U1"), pa.string())
    return made if code.null_count == 0 else pc.if_else(pc.is_valid(code), made, pa.scalar(None, pa.string()))


@scalar("to_hex(number BIGINT) -> VARCHAR", group=GROUP)
def to_hex(number: pa.Array) -> pa.Array:
    """The number in base 16, negative ones as 64 bits.

    >>> to_hex(255)
    ff
    """
    return alphabets.written(views.values_of(number), 16, number, is_lower=True)


@scalar("bin(number BIGINT) -> VARCHAR", group=GROUP, origin="spark")
def bin_(number: pa.Array) -> pa.Array:
    """The number in base 2, negative ones as 64 bits.

    >>> bin(13)
    1101
    """
    return alphabets.written(views.values_of(number), 2, number)


@scalar("to_base(number BIGINT, base BIGINT) -> VARCHAR", group=GROUP, origin="duckdb")
def to_base(number: Value, base: Value) -> pa.Array:
    """A number that is not negative in a base from 2 to 36.

    >>> to_base(42, 16)
    2A
    """
    numbers, bases = columns(number, base)
    given, known = views.values_of(pc.fill_null(numbers, 0)), views.values_of(pc.fill_null(bases, 2))
    if (given < 0).any() or (known < 2).any() or (known > 36).any():
        raise InvalidParameter("to_base takes a number of 0 or more and a base from 2 to 36")
    made = alphabets.written(given, known, numbers)
    return pc.if_else(pc.is_valid(bases), made, pa.scalar(None, pa.string()))


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
    texts, *rest = columns(*given)
    # NULL says something as a parameter here, and rows with a NULL parameter are none of ``with_constants``.
    told = [pc.fill_null(pc.binary_join_element_wise("=", column, ""), "") for column in rest]
    return with_constants(_split_all, STRINGS, texts, *told)


def _split_all(texts: pa.Array, delimiter: str, missing: str = "") -> pa.Array:
    """The parts of texts; parameters stand behind ``=``, and are empty for NULL."""
    if delimiter == "":
        parts = characters_of(texts)
    elif delimiter == "=":
        parts = pa.ListArray.from_arrays(pa.array(np.arange(len(texts) + 1, dtype=np.int32)), texts)
    else:
        parts = pc.split_pattern(texts, delimiter[1:])
    lists = Lists(parts)
    counts = np.where(views.values_of(pc.fill_null(pc.binary_length(texts), 0)) > 0, lists.lengths, 0)
    items = lists.items.take(pa.array(ranges(lists.offsets[:-1], counts)))
    if missing:
        items = pc.if_else(pc.equal(items, missing[1:]), pa.scalar(None, pa.string()), items)
    return list_array(offsets_of(counts), items, lists.valid if delimiter != "=" else views.valid_of(texts))


def characters_of(texts: pa.Array) -> pa.Array:
    """The lists of all characters; NULL where the text is."""
    offsets, characters = views.text_of(texts)
    used = characters[offsets[0] : offsets[-1]]
    starts = np.flatnonzero((used & 0xC0) != 0x80)
    bounds = np.append(starts, len(used)).astype(np.int32)
    letters = views.text_array(bounds, np.ascontiguousarray(used), pa.string())
    return list_array(np.searchsorted(starts, offsets.astype(np.int64) - offsets[0]), letters, views.valid_of(texts))


@scalar("string_split(text VARCHAR, delimiter VARCHAR) -> VARCHAR[]", group=GROUP, origin="duckdb",
        aliases=("str_split",))  # fmt: skip
def string_split(text: Value, delimiter: Value) -> pa.Array:
    """The parts between delimiters; all characters apart where the delimiter is empty.

    >>> string_split('a-b', '-')
    [a, b]
    """

    def run(column: pa.Array, delimiter: str) -> pa.Array:
        if delimiter == "":
            return characters_of(column)
        return pc.split_pattern(column, delimiter)

    return with_constants(run, STRINGS, text, delimiter)


# --- quoting and formatting ------------------------------------------------------------------------------------------


@scalar("quote_ident(name VARCHAR) -> VARCHAR", group=GROUP, origin="postgres")
@per_row
def quote_ident(name: pa.Array) -> pa.Array:
    """The name as SQL writes it, in quotation marks where it needs them.

    Goes row by row: names are looked up among the reserved words.

    >>> quote_ident('A b')
    "A b"
    """
    return map_distinct(quoted_identifier, pa.string(), name)


def quoted_identifier(name: str) -> str:
    """A name as SQL writes it."""
    if re.fullmatch(r"[a-z_][a-z0-9_$]*", name):
        return quote_name(name)
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


_PLACE = late_pattern(r"%(?:(\d+)\$)?([-+ 0#,]*)(\*|\d+)?(?:\.(\d+))?([a-zA-Z%])|\{(?::([^{}]*))?\}")


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
        position, flags, width, precision, kind, shape = place.groups()
        if kind == "%":
            return "%"
        if kind is None:
            return _shaped(next_value(None), shape or "")
        size = next_value(None) if width == "*" else width
        written = _written(kind, next_value(position), flags or "", precision)
        return (
            written.ljust(int(size)) if size and "-" in (flags or "") else written.rjust(int(size or 0), _fill(flags))
        )

    return _PLACE.sub(fill, pattern)


def _shaped(value: str | None, shape: str) -> str:
    """A value in a shape such as ``>6`` or ``05.2f``.

    22023  a shape that cannot be read, or a value that is not of it
    """
    if value is None or not shape:
        return value or ""
    try:
        if shape[-1] in "bdoxX":
            return format(int(value), shape)
        if shape[-1] in "eEfFgG%" or (shape[-1].isdigit() and "." in shape):
            return format(float(value), shape)
        is_number = shape[0] in "0+-" or shape[-1] == ","
        return format(int(value) if is_number else value, shape)
    except ValueError:
        raise InvalidParameter(f'"{value}" cannot be formatted as "{{:{shape}}}"') from None


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
