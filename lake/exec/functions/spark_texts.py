"""Texts as Spark has them: parts, URLs, checks of UTF-8, and its versions of names that both dialects have."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac as hmac_
import re
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, InvalidText, LakeError
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import by_ascii, columns, map_distinct, map_rows, over_texts, with_constants
from lake.exec.functions.similarity import levenshtein
from lake.exec.functions.strings import strpos, substr
from lake.exec.kernels import alphabets
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar

GROUP: Final = "text"


# --- parts -----------------------------------------------------------------------------------------------------------


@scalar("elt(place INT, texts VARCHAR...) -> VARCHAR", group=GROUP, origin="spark", strict=False, takes_call=True)
def elt(place: Value, *texts: Value, call: CallInfo) -> pa.Array:
    """One of the texts, counted from 1; NULL where there is none.

    >>> SELECT elt(1, 'scala', 'java'), elt(3, 'a')
    scala | NULL
    """
    number = pc.fill_null(as_array(place, call.rows), 0)
    outside = pc.or_(pc.less(number, 1), pc.greater(number, len(texts)))
    at = pc.if_else(outside, pa.scalar(None, pa.int32()), pc.subtract(number, pa.scalar(1, pa.int32())))
    return pc.choose(at, *(as_array(text, call.rows) for text in texts))


@scalar("locate(part VARCHAR, text VARCHAR) -> INT", group=GROUP, origin="spark")
@scalar("locate(part VARCHAR, text VARCHAR, start INT) -> INT", group=GROUP, origin="spark")
@scalar("spark_position(part VARCHAR, text VARCHAR) -> INT", group=GROUP, origin="spark")
@scalar("spark_position(part VARCHAR, text VARCHAR, start INT) -> INT", group=GROUP, origin="spark")
def locate(part: Value, text: Value, start: Value | None = None) -> pa.Array:
    """Where a part first stands, at a place or behind it, counted from 1; 0 where it does not.

    >>> SELECT locate('bar', 'foobarbar'), locate('bar', 'foobarbar', 5)
    4 | 7
    """
    if start is None:
        return strpos(text, part)

    texts, parts, starts = columns(text, part, start)
    found = strpos(substr(texts, starts), parts)
    before = pc.subtract(starts, pa.scalar(1, starts.type))
    is_inside = pc.and_(pc.greater_equal(before, 0), pc.less_equal(before, pc.utf8_length(texts)))
    none = pc.or_(pc.equal(found, 0), pc.invert(is_inside))
    return pc.if_else(none, pa.scalar(0, pa.int32()), pc.add(found, before.cast(pa.int32())))


@scalar("spark_substring(text VARCHAR, start BIGINT) -> VARCHAR", group=GROUP, origin="spark",
        aliases=("spark_substr", "spark_mid"))  # fmt: skip
@scalar("spark_substring(text VARCHAR, start BIGINT, length BIGINT) -> VARCHAR", group=GROUP, origin="spark",
        aliases=("spark_substr", "spark_mid"))  # fmt: skip
def spark_substring(text: Value, start: Value, length: Value | None = None) -> pa.Array:
    """Characters from a position on, counted from the end where it is negative; position 0 is the first.

    >>> SELECT spark_substring('Spark SQL', -3), spark_substring('Spark SQL', 5, 1)
    SQL | k
    """
    text, start = columns(text, start)
    sizes = pc.utf8_length(text).cast(pa.int64())
    first = pc.if_else(pc.less(start, 0), pc.add(pc.add(sizes, start), 1), pc.max_element_wise(start, 1, skip_nulls=False))
    if length is None:
        return substr(text, first)
    return substr(text, first, pc.max_element_wise(as_array(length, len(text)), 0, skip_nulls=False))


@scalar("spark_concat(texts VARCHAR...) -> VARCHAR", group=GROUP, origin="spark", takes_call=True)
def spark_concat(*texts: Value, call: CallInfo) -> pa.Array:
    """All texts as one; NULL where one is.

    >>> SELECT spark_concat('a', 'b'), spark_concat('a', NULL)
    ab | NULL
    """
    return as_array(pc.binary_join_element_wise(*texts, ""), call.rows) if texts else as_array(pa.scalar(""), call.rows)


@scalar("space(count INT) -> VARCHAR", group=GROUP, origin="spark")
def space(count: pa.Array) -> pa.Array:
    """So many spaces.

    >>> 'a' || space(2) || '1'
    a  1
    """
    return pc.binary_repeat(pa.repeat(pa.scalar(" "), len(count)), pc.max_element_wise(count, 0, skip_nulls=False))


@scalar("mask(text VARCHAR, upper VARCHAR DEFAULT 'X', lower VARCHAR DEFAULT 'x', digit VARCHAR DEFAULT 'n') -> VARCHAR",
        group=GROUP, origin="spark")  # fmt: skip
@scalar("mask(text VARCHAR, upper VARCHAR, lower VARCHAR, digit VARCHAR, other VARCHAR) -> VARCHAR", group=GROUP,
        origin="spark")  # fmt: skip
@per_row
def mask(text: Value, upper: Value, lower: Value, digit: Value, other: Value | None = None) -> pa.Array:
    """Capital letters, small letters and digits each replaced by a letter that tells nothing, and other ones where so told.

    Texts beyond ASCII go row by row: of which case a letter is Arrow does not say of single characters.

    >>> mask('abcd-EFGH-8765')
    xxxx-XXXX-nnnn
    """

    def masked(item: str, upper: str, lower: str, digit: str, other: str | None = None) -> str:
        made = []
        for char in item:
            kind = upper if char.isupper() else lower if char.islower() else digit if char.isdigit() else other
            made.append(char if kind is None else kind)
        return "".join(made)

    def run(column: pa.Array, *signs: str) -> pa.Array:
        if not all(len(sign) == 1 and sign.isascii() for sign in signs):
            return map_distinct(lambda item: masked(item, *signs), pa.string(), column)
        table = np.array([ord(masked(chr(code), *signs)) for code in range(128)] + [0] * 128, np.int16)
        return by_ascii(lambda plain: alphabets.mapped(plain, table), lambda item: masked(item, *signs), pa.string(), column)

    given = (upper, lower, digit) if other is None else (upper, lower, digit, other)
    return with_constants(run, pa.string(), text, *given)


@scalar("quote(text VARCHAR) -> VARCHAR", group=GROUP, origin="spark")
def quote(text: pa.Array) -> pa.Array:
    """The text between single quotes, quotes and backslashes inside led by a backslash.

    >>> quote('Don''t')
    'Don\\'t'
    """
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), "'", "\\'")
    return pc.binary_join_element_wise("'", escaped, "'", "")


@scalar("sentences(text VARCHAR) -> VARCHAR[][]", group=GROUP, origin="spark")
@scalar("sentences(text VARCHAR, language VARCHAR, country VARCHAR DEFAULT '') -> VARCHAR[][]", group=GROUP, origin="spark")
@per_row
def sentences(text: pa.Array, language: Value | None = None, country: Value | None = None) -> pa.Array:
    """The sentences of a text, each the list of its words. Goes row by row: Arrow makes no lists in lists.

    >>> sentences('Hi there! Good morning.')
    [[Hi, there], [Good, morning]]
    """

    def split(item: str) -> list[list[str]]:
        parts = [re.findall(r"[\w'’-]+", part) for part in re.split(r"[.!?]+(?:\s+|$)", item)]
        return [words for words in parts if words]

    return map_distinct(split, pa.list_(pa.list_(pa.string())), columns(text)[0])


@scalar("spark_split(text VARCHAR, pattern VARCHAR) -> VARCHAR[]", group=GROUP, origin="spark", aliases=("split",))
@scalar("spark_split(text VARCHAR, pattern VARCHAR, most INT) -> VARCHAR[]", group=GROUP, origin="spark", aliases=("split",))
@per_row
def spark_split(text: Value, pattern: Value, most: Value | None = None) -> pa.Array:
    """The parts between matches of a pattern, at most so many where that is above 0.

    Goes row by row: Arrow splits without Java's rules for what is empty.

    >>> spark_split('oneAtwoBthreeC', '[ABC]')
    [one, two, three, ]

    2201B  a pattern that cannot be read
    """
    limit = pa.scalar(0) if most is None else most

    def run(column: pa.Array, pattern: str, most: int) -> pa.Array:
        found = _compiled(pattern)
        times = max(most - 1, 0)

        def split(item: str) -> list[str]:
            if most == 1:
                return [item]
            if pattern == "":
                return [*item[:times], *filter(None, [item[times:]])] if times else list(item)
            return found.split(item, maxsplit=times)[:: found.groups + 1]

        return map_distinct(split, pa.list_(pa.string()), column)

    return with_constants(run, pa.list_(pa.string()), text, pattern, limit)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidParameter(f"invalid regular expression: {error}") from None


@scalar("spark_levenshtein(a VARCHAR, b VARCHAR) -> INT", group=GROUP, origin="spark")
@scalar("spark_levenshtein(a VARCHAR, b VARCHAR, most INT) -> INT", group=GROUP, origin="spark")
def spark_levenshtein(a: Value, b: Value, most: Value | None = None) -> pa.Array:
    """How many changes make one text the other; -1 where more than so many.

    >>> SELECT spark_levenshtein('kitten', 'sitting'), spark_levenshtein('kitten', 'sitting', 2)
    3 | -1
    """
    made = levenshtein(*columns(a, b))
    if most is None:
        return made
    return pc.if_else(pc.greater(made, as_array(most, len(made))), pa.scalar(-1, pa.int32()), made)


# --- URLs ------------------------------------------------------------------------------------------------------------


@scalar("url_encode(text VARCHAR) -> VARCHAR", group="urls", origin="spark")
def url_encode(text: pa.Array) -> pa.Array:
    """The text as a form of the web sends it.

    >>> url_encode('https://spark.apache.org')
    https%3A%2F%2Fspark.apache.org
    """
    return alphabets.to_percent(text)


@scalar("url_decode(text VARCHAR) -> VARCHAR", group="urls", origin="spark")
def url_decode(text: pa.Array) -> pa.Array:
    """The text that a form of the web has sent.

    >>> url_decode('https%3A%2F%2Fspark.apache.org')
    https://spark.apache.org

    22P02  a percent sign without two digits behind it
    """
    made = _decoded_urls(text)
    bad = pc.index(pc.and_(pc.is_valid(text), pc.is_null(made)), True).as_py()
    if bad >= 0:
        raise InvalidText(f'"{text[bad]}" is not the encoded text of a URL')
    return made


@scalar("try_url_decode(text VARCHAR) -> VARCHAR", group="urls", origin="spark")
def try_url_decode(text: pa.Array) -> pa.Array:
    """The text that a form of the web has sent, NULL where it is none.

    >>> SELECT try_url_decode('https%3A%2F%2Fspark.apache.org'), try_url_decode('%zz')
    https://spark.apache.org | NULL
    """
    return _decoded_urls(text)


def _decoded_urls(text: pa.Array) -> pa.Array:
    """The texts that forms of the web have sent, NULL where one is none."""
    is_whole = pc.match_substring_regex(text, "^(?s:[^%]|%[0-9A-Fa-f]{2})*$")
    found = alphabets.from_percent(pc.if_else(is_whole, text, pa.scalar(None, text.type)))
    assert found is not None
    return pc.if_else(is_valid_utf8(found), found, pa.scalar(None, pa.binary())).cast(pa.string())


def _or_null(run: Any, *given: Any) -> Any:
    try:
        return run(*given)
    except LakeError:
        return None


@scalar("parse_url(url VARCHAR, part VARCHAR) -> VARCHAR", group="urls", origin="spark")
@scalar("parse_url(url VARCHAR, part VARCHAR, key VARCHAR) -> VARCHAR", group="urls", origin="spark")
def parse_url(url: Value, part: Value, key: Value | None = None) -> pa.Array:
    """A part of a URL: PROTOCOL, HOST, PATH, QUERY, REF, FILE, AUTHORITY or USERINFO, or a key of its query.

    >>> parse_url('http://spark.apache.org/path?query=1', 'QUERY', 'query')
    1

    22P02  a text that is no URL
    """
    given = (part,) if key is None else (part, key)
    return with_constants(partial(_url_parts, is_try=False), pa.string(), url, *given)


@scalar("try_parse_url(url VARCHAR, part VARCHAR) -> VARCHAR", group="urls", origin="spark")
@scalar("try_parse_url(url VARCHAR, part VARCHAR, key VARCHAR) -> VARCHAR", group="urls", origin="spark")
def try_parse_url(url: Value, part: Value, key: Value | None = None) -> pa.Array:
    """A part of a URL, NULL where the text is none.

    >>> SELECT try_parse_url('http://a.b/p', 'HOST'), try_parse_url('http://a b', 'HOST')
    a.b | NULL
    """

    given = (part,) if key is None else (part, key)
    return with_constants(partial(_url_parts, is_try=True), pa.string(), url, *given)


_URL: Final = (
    r"^(?:(?P<PROTOCOL>[a-zA-Z][a-zA-Z0-9+.-]*):)?(?://(?P<AUTHORITY>[^/?#]*))?(?P<PATH>[^?#]*)"
    r"(?:\?(?P<QUERY>[^#]*))?(?:#(?P<REF>.*))?$"
)
_AUTHORITY: Final = r"^(?:(?P<USERINFO>.*)@)?(?P<HOST>[^@]*?)(?::\d*)?$"
_NO_URL: Final = r"""[\s<>"{}|\\^`]|%(?:[^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)"""


def _url_parts(urls: pa.Array, part: str, key: str | None = None, *, is_try: bool) -> pa.Array:
    """A part of each URL, NULL where it lacks it; of a text that is no URL too, where so told.

    Source: RFC 3986, appendix B.
    """
    is_bad = pc.fill_null(pc.match_substring_regex(urls, _NO_URL), False)
    if not is_try and (bad := pc.index(is_bad, True).as_py()) >= 0:
        raise InvalidText(f'"{urls[bad]}" is not a URL')
    parts = pc.extract_regex(pc.if_else(is_bad, pa.scalar(None, pa.string()), urls), _URL)
    if key is not None and part != "QUERY":
        return pa.nulls(len(urls), pa.string())
    if key is not None:
        pairs = pc.extract_regex(pc.struct_field(parts, part), rf"(?:^|&){re.escape(key)}=(?P<value>[^&]*)")
        return pc.struct_field(pairs, "value")
    if part in ("HOST", "USERINFO"):
        parts = pc.extract_regex(pc.struct_field(parts, "AUTHORITY"), _AUTHORITY)
    if part == "FILE":
        path, query = pc.struct_field(parts, "PATH"), pc.struct_field(parts, "QUERY")
        return pc.if_else(pc.equal(query, ""), path, pc.binary_join_element_wise(path, query, "?"))
    if part not in ("PROTOCOL", "AUTHORITY", "USERINFO", "HOST", "PATH", "QUERY", "REF"):
        return pa.nulls(len(urls), pa.string())
    found = pc.struct_field(parts, part)
    if part == "PROTOCOL":
        found = pc.utf8_lower(found)
    return found if part == "PATH" else pc.if_else(pc.equal(found, ""), pa.scalar(None, pa.string()), found)


# --- UTF-8 and bytes -------------------------------------------------------------------------------------------------


@scalar("is_valid_utf8(value BYTEA) -> BOOLEAN", group="bytes", origin="spark")
@scalar("is_valid_utf8(value VARCHAR) -> BOOLEAN", group="bytes", origin="spark")
@per_row
def is_valid_utf8(value: pa.Array) -> pa.Array:
    """Whether bytes are a text in UTF-8. Where Arrow finds one that is not, it goes row by row: Arrow says not which.

    >>> SELECT is_valid_utf8('Spark'), is_valid_utf8('\\xff'::BYTEA)
    true | false
    """
    if pa.types.is_string(value.type):
        return pc.if_else(value.is_valid(), True, pa.scalar(None, pa.bool_()))
    try:
        value.cast(pa.string())
    except pa.ArrowInvalid:
        return map_distinct(lambda item: item.decode(errors="ignore").encode() == item, pa.bool_(), value)
    return pc.if_else(value.is_valid(), True, pa.scalar(None, pa.bool_()))


@scalar("make_valid_utf8(value BYTEA) -> VARCHAR", group="bytes", origin="spark")
@scalar("make_valid_utf8(value VARCHAR) -> VARCHAR", group="bytes", origin="spark")
@per_row
def make_valid_utf8(value: pa.Array) -> pa.Array:
    """The text of bytes, what is not UTF-8 replaced. Goes row by row where something is not: Arrow replaces nothing.

    >>> make_valid_utf8('Spark')
    Spark
    """
    if pa.types.is_string(value.type):
        return value
    try:
        return value.cast(pa.string())
    except pa.ArrowInvalid:
        return map_distinct(lambda item: item.decode(errors="replace"), pa.string(), value)


@scalar("validate_utf8(value BYTEA) -> VARCHAR", group="bytes", origin="spark")
@scalar("validate_utf8(value VARCHAR) -> VARCHAR", group="bytes", origin="spark")
def validate_utf8(value: pa.Array) -> pa.Array:
    """The text of bytes.

    >>> validate_utf8('Spark'::BYTEA)
    Spark

    22P02  bytes that are not UTF-8
    """
    valid = is_valid_utf8(value)
    if pc.any(pc.invert(valid)).as_py():
        raise InvalidText("invalid byte sequence for encoding UTF8")
    return value.cast(pa.string())


@scalar("try_validate_utf8(value BYTEA) -> VARCHAR", group="bytes", origin="spark")
@scalar("try_validate_utf8(value VARCHAR) -> VARCHAR", group="bytes", origin="spark")
def try_validate_utf8(value: pa.Array) -> pa.Array:
    """The text of bytes, NULL where they are not UTF-8.

    >>> SELECT try_validate_utf8('Spark'::BYTEA), try_validate_utf8('\\xff'::BYTEA)
    Spark | NULL
    """
    return pc.if_else(is_valid_utf8(value), value, pa.scalar(None, value.type)).cast(pa.string())


def _read_bytes(text: str, form: str) -> bytes:
    """22P02  a text that is not of the form     22023  another form"""
    name = form.lower().replace("_", "-")
    try:
        match name:
            case "hex":
                return bytes.fromhex(text.rjust(len(text) + len(text) % 2, "0"))
            case "base64":
                return base64.b64decode(text, validate=True)
            case "utf-8" | "utf8":
                return text.encode()
    except (ValueError, binascii.Error):
        raise InvalidText(f'invalid {name} text: "{text}"') from None
    raise InvalidParameter(f'unrecognized encoding: "{form}"', hint="hex, base64 and utf-8 are known.")


@scalar("to_binary(text VARCHAR, form VARCHAR DEFAULT 'hex') -> BYTEA", group="bytes", origin="spark")
@per_row
def to_binary(text: Value, form: Value) -> pa.Array:
    """The bytes of a text: hex, base64 or utf-8.

    Goes row by row: each form is Python's codec, which takes one value at a time.

    >>> hex(to_binary('abc', 'utf-8'))
    616263
    """
    return with_constants(over_texts(_read_bytes, pa.binary()), pa.binary(), text, form)


@scalar("try_to_binary(text VARCHAR, form VARCHAR DEFAULT 'hex') -> BYTEA", group="bytes", origin="spark")
@per_row
def try_to_binary(text: Value, form: Value) -> pa.Array:
    """The bytes of a text: hex, base64 or utf-8; NULL for a text that is not of that form.

    Goes row by row: each form is Python's codec, which takes one value at a time.

    >>> try_to_binary('a!', 'base64') IS NULL
    true
    """
    run = over_texts(lambda item, form: _or_null(_read_bytes, item, form), pa.binary())
    return with_constants(run, pa.binary(), text, form)


@scalar("to_base32(value BYTEA) -> VARCHAR", group="bytes", origin="spark")
@per_row
def to_base32(value: pa.Array) -> pa.Array:
    """Bytes in base 32. Goes row by row: Python's codec takes one value at a time.

    >>> to_base32('A'::BYTEA)
    IE======
    """
    return map_distinct(lambda item: base64.b32encode(item).decode(), pa.string(), value)


@scalar("from_base32(text VARCHAR) -> BYTEA", group="bytes", origin="spark")
@per_row
def from_base32(text: pa.Array) -> pa.Array:
    """The bytes of a text in base 32. Goes row by row: Python's codec takes one value at a time.

    >>> from_base32('IE======')::VARCHAR
    A

    22P02  a text that is not in base 32
    """

    def read(item: str) -> bytes:
        try:
            return base64.b32decode(item, casefold=True)
        except binascii.Error:
            raise InvalidText(f'invalid base32 text: "{item}"') from None

    return map_distinct(read, pa.binary(), text)


@scalar("hmac(value VARCHAR, key VARCHAR, algorithm VARCHAR DEFAULT 'sha256') -> BYTEA", group="bytes", origin="spark")
@scalar("hmac(value BYTEA, key BYTEA, algorithm VARCHAR DEFAULT 'sha256') -> BYTEA", group="bytes", origin="spark")
@per_row
def hmac(value: Value, key: Value, algorithm: Value) -> pa.Array:
    """The hash of a value and a key. Goes row by row: hashlib takes one value at a time.

    >>> substr(encode(hmac('message', 'key'), 'hex'), 1, 8)
    6e9ef29b

    22023  an algorithm that is not known
    """

    def run(item: Any, key: Any, algorithm: str) -> bytes:
        name = algorithm.lower().replace("-", "")
        if name not in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512"):
            raise InvalidParameter(f'unrecognized hash algorithm: "{algorithm}"')
        one, two = (part.encode() if isinstance(part, str) else part for part in (item, key))
        return hmac_.new(two, one, getattr(hashlib, name)).digest()

    return map_rows(run, pa.binary(), *columns(value, key, algorithm))
