"""Text changed, taken apart, quoted, put in formats, and compared for likeness."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, NumericOutOfRange
from lake.exec.decimals import Value
from lake.exec.functions.columns import (
    columns,
    map_distinct,
    map_rows,
    over_texts,
    per_row,
    with_constants,
)
from lake.sql.quoting import quote_name
from lake.sql.registry import scalar

GROUP: Final = "text"
STRINGS: Final = pa.list_(pa.string())


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
    return with_constants(over_texts(put, pa.string()), pa.string(), text, *given)


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
        aliases=("str_split",))  # fmt: skip
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


_PLACE = re.compile(r"%(?:(\d+)\$)?([-+ 0#,]*)(\*|\d+)?(?:\.(\d+))?([a-zA-Z%])|\{(?::([^{}]*))?\}")


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
