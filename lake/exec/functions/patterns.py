"""Matching text: LIKE, SIMILAR TO and regular expressions.

Regular expressions are of the RE2 kind, as the base's: no back references and no look-around. What needs the parts of a
match goes through Python's ``re`` for each distinct text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidEscape, InvalidParameter, InvalidRegularExpression
from lake.exec.decimals import Value
from lake.exec.functions.columns import constant, over_texts, per_row, with_constants
from lake.exec.kernels import views
from lake.exec.kernels.strings import like_mask
from lake.sql.registry import scalar

GROUP: Final = "patterns"
NOTHING: Final = pa.scalar("")
KERNEL_ROWS: Final = 1_000
"""Columns of fewer rows are not worth waking the kernels for."""
PYTHON_FLAGS: Final = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "n": re.MULTILINE, "x": re.VERBOSE}
_CLASSES: Final = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "word": r"\w", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f",
}  # fmt: skip


# --- LIKE ------------------------------------------------------------------------------------------------------------


@scalar("like(text VARCHAR, pattern VARCHAR) -> BOOLEAN", group=GROUP, aliases=("~~",))
@scalar("like(text VARCHAR, pattern VARCHAR, escape VARCHAR) -> BOOLEAN", group=GROUP)
def like(text: Value, pattern: Value, escape: Value | None = None) -> pa.Array:
    r"""Whether the whole text matches a pattern: % for any text, _ for any character, behind an escape themselves.

    >>> 'abc' LIKE 'a%'
    true
    >>> 'a_b' LIKE 'a#_b' ESCAPE '#'
    true

    22025  the pattern ends with its escape character, or that is not one character
    """
    return _like(text, pattern, escape, ignore_case=False)


@scalar("ilike(text VARCHAR, pattern VARCHAR) -> BOOLEAN", group=GROUP, aliases=("~~*",))
@scalar("ilike(text VARCHAR, pattern VARCHAR, escape VARCHAR) -> BOOLEAN", group=GROUP)
def ilike(text: Value, pattern: Value, escape: Value | None = None) -> pa.Array:
    """LIKE without regard to case.

    >>> 'ABC' ILIKE 'a%'
    true
    """
    return _like(text, pattern, escape, ignore_case=True)


def _like(text: Value, pattern: Value, escape: Value | None, *, ignore_case: bool) -> pa.Array:
    def run(column: pa.Array, pattern: str, escape: str) -> pa.Array:
        standard = standard_pattern(pattern, escape)
        if ignore_case or len(column) < KERNEL_ROWS:
            return pc.match_like(column, standard, ignore_case=ignore_case)
        return views.to_array(like_mask(column, standard), pa.bool_(), views.valid_of(column))

    return with_constants(run, pa.bool_(), text, pattern, pa.scalar("\\") if escape is None else escape)


@lru_cache(1000)
def standard_pattern(pattern: str, escape: str) -> str:
    """A LIKE pattern whose escape character is the backslash."""
    if len(escape) > 1:
        raise InvalidEscape("invalid escape string", hint="Escape string must be empty or one character.")
    parts, place = [], 0
    while place < len(pattern):
        char = pattern[place]
        if char == escape:
            place += 1
            if place == len(pattern) and escape != "\\":
                raise InvalidEscape("LIKE pattern must not end with escape character")
            # A backslash that nothing follows stands for itself.
            char = pattern[place] if place < len(pattern) else escape
            parts.append("\\" + char if char in "%_\\" else char)
        else:
            parts.append("\\\\" if char == "\\" else char)
        place += 1
    return "".join(parts)


@scalar("similar_to(text VARCHAR, pattern VARCHAR) -> BOOLEAN", group=GROUP)
@scalar("similar_to(text VARCHAR, pattern VARCHAR, escape VARCHAR) -> BOOLEAN", group=GROUP)
def similar_to(text: Value, pattern: Value, escape: Value | None = None) -> pa.Array:
    """Whether the whole text matches an SQL pattern: % and _ as in LIKE, and | * + ? {m,n} () [] of regular expressions.

    >>> 'abc' SIMILAR TO '(a|b)%'
    true
    """

    def run(column: pa.Array, pattern: str, escape: str) -> pa.Array:
        return _matches(column, similar_pattern(pattern, escape), "s")

    return with_constants(run, pa.bool_(), text, pattern, pa.scalar("\\") if escape is None else escape)


@scalar("glob(text VARCHAR, pattern VARCHAR) -> BOOLEAN", group=GROUP, origin="duckdb")
def glob_like(text: Value, pattern: Value) -> pa.Array:
    """Whether the whole text matches a pattern as of file names: * any text, ? one character, [a-c] one of these.

    >>> 'best.txt' GLOB '*.txt'
    true
    """
    return with_constants(lambda column, pattern: _matches(column, glob_pattern(pattern), "s"), pa.bool_(), text, pattern)


@lru_cache(1000)
def glob_pattern(pattern: str) -> str:
    """The regular expression of a GLOB pattern; [!..] is a class left out, a bracket that does not close is itself."""
    parts, place = [], 0
    while place < len(pattern):
        char = pattern[place]
        end = pattern.find("]", place + 2)
        if char == "[" and end > 0:
            inside = pattern[place + 1 : end].replace("\\", "\\\\")
            parts.append(f"[^{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]")
            place = end
        elif char == "\\" and place + 1 < len(pattern):
            place += 1
            parts.append(re.escape(pattern[place]))
        else:
            parts.append({"*": ".*", "?": "."}.get(char, re.escape(char)))
        place += 1
    return f"^(?:{''.join(parts)})$"


@lru_cache(1000)
def similar_pattern(pattern: str, escape: str) -> str:
    """The regular expression of a SIMILAR TO pattern."""
    parts, place, in_class = [], 0, False
    while place < len(pattern):
        char = pattern[place]
        if char == escape:
            place += 1
            if place == len(pattern):
                raise InvalidEscape("SIMILAR TO pattern must not end with escape character")
            parts.append(re.escape(pattern[place]))
        elif in_class:
            in_class = char != "]"
            parts.append("\\\\" if char == "\\" else char)
        elif char == "[":
            in_class = True
            parts.append(char)
        elif char in "%_":
            parts.append(".*" if char == "%" else ".")
        else:
            parts.append(char if char in "|*+?{}(),0123456789" else re.escape(char))
        place += 1
    return f"^(?:{''.join(parts)})$"


# --- regular expressions: does it match ------------------------------------------------------------------------------


@scalar("~(text STRING, pattern STRING) -> BOOLEAN", group=GROUP)
def regex_matches(text: Value, pattern: Value) -> pa.Array:
    """Whether a regular expression matches somewhere.

    >>> 'abc' ~ '^a.c$'
    true
    """
    return with_constants(lambda column, regex: _matches(column, regex, ""), pa.bool_(), text, pattern)


@scalar("~*(text STRING, pattern STRING) -> BOOLEAN", group=GROUP)
def regex_matches_any_case(text: Value, pattern: Value) -> pa.Array:
    """Whether a regular expression matches somewhere, without regard to case.

    >>> 'ABC' ~* 'b'
    true
    """
    return with_constants(lambda column, regex: _matches(column, regex, "i"), pa.bool_(), text, pattern)


@scalar("!~(text STRING, pattern STRING) -> BOOLEAN", group=GROUP)
def regex_differs(text: Value, pattern: Value) -> pa.Array:
    """Whether a regular expression matches nowhere.

    >>> 'abc' !~ 'x'
    true
    """
    return pc.invert(regex_matches(text, pattern))


@scalar("!~*(text STRING, pattern STRING) -> BOOLEAN", group=GROUP)
def regex_differs_any_case(text: Value, pattern: Value) -> pa.Array:
    """Whether a regular expression matches nowhere, without regard to case.

    >>> 'ABC' !~* 'b'
    false
    """
    return pc.invert(regex_matches_any_case(text, pattern))


@scalar("regexp_like(text VARCHAR, pattern VARCHAR) -> BOOLEAN", group=GROUP, aliases=("regexp_matches", "rlike"))
@scalar("regexp_like(text VARCHAR, pattern VARCHAR, flags VARCHAR) -> BOOLEAN", group=GROUP,
        aliases=("regexp_matches", "rlike"))  # fmt: skip
def regexp_like(text: Value, pattern: Value, flags: Value = NOTHING) -> pa.Array:
    """Whether a regular expression matches somewhere; flags: i any case, s dot matches lines' ends, m lines, x comments.

    >>> regexp_like('ABC', 'b', 'i')
    true
    """
    return with_constants(_matches, pa.bool_(), text, pattern, _of_one_match("regexp_like", flags))


def _of_one_match(name: str, flags: Value) -> Value:
    """22023 for the flag ``g`` of a function that looks for one match."""
    known = constant(flags)
    if isinstance(known, str) and "g" in known:
        raise InvalidParameter(f'{name}() does not support the "global" option')
    return flags


@scalar("regexp_full_match(text VARCHAR, pattern VARCHAR) -> BOOLEAN", group=GROUP, origin="duckdb")
def regexp_full_match(text: Value, pattern: Value) -> pa.Array:
    """Whether a regular expression matches the whole text.

    >>> regexp_full_match('anan', '(an)*')
    true
    """
    return with_constants(lambda column, regex: _matches(column, f"^(?:{regex})$", "s"), pa.bool_(), text, pattern)


def _matches(column: pa.Array, regex: str, flags: str) -> pa.Array:
    try:
        return pc.match_substring_regex(column, with_flags(regex, flags))
    except pa.ArrowInvalid as error:
        raise InvalidRegularExpression(f"invalid regular expression: {error}") from None


def with_flags(regex: str, flags: str) -> str:
    """The expression with its flags inside."""
    unknown = set(flags) - set("imsxUgcn")
    if unknown:
        raise InvalidParameter(f'invalid regular expression option: "{unknown.pop()}"')
    inside = "".join(sorted(set(flags.replace("n", "m")) & set("imsU")))
    if "x" in flags:
        regex = re.sub(r"(?<!\\)#.*|(?<!\\)\s+", "", regex)
    return f"(?{inside}){regex}" if inside else regex


# --- regular expressions: replace ------------------------------------------------------------------------------------


@scalar("regexp_replace(text VARCHAR, pattern VARCHAR, replacement VARCHAR) -> VARCHAR", group=GROUP)
@scalar("regexp_replace(text VARCHAR, pattern VARCHAR, replacement VARCHAR, flags VARCHAR) -> VARCHAR", group=GROUP)
def regexp_replace(text: Value, pattern: Value, replacement: Value, flags: Value = NOTHING) -> pa.Array:
    r"""The text with the first match replaced, with flag g all of them; \1 stands for the first group.

    >>> regexp_replace('foobarbaz', 'b(..)', 'X\1Y', 'g')
    fooXarYXazY
    """

    def run(column: pa.Array, regex: str, replacement: str, flags: str) -> pa.Array:
        by = re.sub(r"\$\{?(\d+)\}?", r"\\\1", replacement)
        # At most one match begins at the start of a text, and Arrow is twice as fast where it need not count matches.
        is_anchored = re.match(r"\^[^|*+?{][^|]*$", regex) is not None and not flags
        count = None if "g" in flags or is_anchored else 1
        try:
            return pc.replace_substring_regex(
                column, pattern=with_flags(regex, flags), replacement=by, max_replacements=count
            )
        except pa.ArrowInvalid as error:
            raise InvalidRegularExpression(f"invalid regular expression: {error}") from None

    return with_constants(run, pa.string(), text, pattern, replacement, flags)


# --- regular expressions: the parts of a match -----------------------------------------------------------------------


@lru_cache(1000)
def python_regex(regex: str, flags: str = "") -> re.Pattern[str]:
    """The expression for Python's ``re``.

    2201B  it does not compile
    """
    with_flags("", flags)
    translated = re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], match[0]), regex)
    translated = re.sub(r"\(\?<(?![=!])", "(?P<", translated).replace(r"\z", r"\Z")
    combined = 0
    for flag in flags:
        combined |= PYTHON_FLAGS.get(flag, 0)
    try:
        return re.compile(translated, combined)
    except re.error as error:
        raise InvalidRegularExpression(f"invalid regular expression: {error}") from None


@scalar("regexp_match(text VARCHAR, pattern VARCHAR) -> VARCHAR[]", group=GROUP)
@scalar("regexp_match(text VARCHAR, pattern VARCHAR, flags VARCHAR) -> VARCHAR[]", group=GROUP)
@per_row
def regexp_match(text: Value, pattern: Value, flags: Value = NOTHING) -> pa.Array:
    """The groups of the first match, or the match itself where there are none; NULL where nothing matches.

    Goes text by text: Arrow answers no groups by number.

    >>> regexp_match('foobarbequebaz', '(bar)(beque)')
    [bar, beque]
    """

    def run(text: str, regex: str, flags: str) -> list[str | None] | None:
        match = python_regex(regex, flags).search(text)
        if match is None:
            return None
        return list(match.groups()) if match.re.groups else [match[0]]

    flags = _of_one_match("regexp_match", flags)
    return with_constants(over_texts(run, pa.list_(pa.string())), pa.list_(pa.string()), text, pattern, flags)


@scalar("substring(text VARCHAR, pattern VARCHAR) -> VARCHAR", group=GROUP, origin="lake")
@per_row
def substring(text: Value, pattern: Value) -> pa.Array:
    """The first match of a regular expression, or what its first group matches; NULL where nothing matches.

    Goes text by text: Arrow answers no groups by number. Source: Postgres's SUBSTRING(text FROM pattern).

    >>> substring('foobar', 'o(.)b')
    o
    """

    def run(text: str, regex: str) -> str | None:
        match = python_regex(regex).search(text)
        return None if match is None else match[min(1, match.re.groups)]

    return with_constants(over_texts(run, pa.string()), pa.string(), text, pattern)


@scalar("regexp_count(text VARCHAR, pattern VARCHAR) -> BIGINT", group=GROUP)
@scalar("regexp_count(text VARCHAR, pattern VARCHAR, start BIGINT) -> BIGINT", group=GROUP)
@scalar("regexp_count(text VARCHAR, pattern VARCHAR, start BIGINT, flags VARCHAR) -> BIGINT", group=GROUP)
@per_row
def regexp_count(text: Value, pattern: Value, start: Value | None = None, flags: Value = NOTHING) -> pa.Array:
    """How many matches there are from a position on.

    Goes text by text: Arrow counts from the beginning alone.

    >>> regexp_count('abcAbAbc', 'abc', 2, 'i')
    1
    """

    def run(text: str, regex: str, start: int, flags: str) -> int:
        return sum(1 for _ in python_regex(regex, flags).finditer(text, checked_start(start) - 1))

    first = pa.scalar(1) if start is None else start
    return with_constants(over_texts(run, pa.int64()), pa.int64(), text, pattern, first, flags)


def checked_start(start: int) -> int:
    """A position in a text.

    22023  it is less than 1
    """
    if start < 1:
        raise InvalidParameter(f"start position must be 1 or more, not {start}")
    return start


@scalar("regexp_instr(text VARCHAR, pattern VARCHAR) -> BIGINT", group=GROUP)
@scalar("regexp_instr(text VARCHAR, pattern VARCHAR, start BIGINT) -> BIGINT", group=GROUP)
@scalar("regexp_instr(text VARCHAR, pattern VARCHAR, start BIGINT, n BIGINT) -> BIGINT", group=GROUP)
@scalar("regexp_instr(text VARCHAR, pattern VARCHAR, start BIGINT, n BIGINT, flags VARCHAR, part BIGINT DEFAULT 0) -> BIGINT",
        group=GROUP)  # fmt: skip
@per_row
def regexp_instr(text: Value, pattern: Value, *given: Value) -> pa.Array:
    """Where the n-th match begins, or a group of it, counted from 1; 0 where there is none.

    Goes text by text: Arrow answers no places of later matches.

    >>> regexp_instr('ABCDEF', 'C(.)(..)')
    3
    """

    def run(text: str, regex: str, start: int = 1, n: int = 1, flags: str = "", part: int = 0) -> int:
        for number, match in enumerate(python_regex(regex, flags).finditer(text, checked_start(start) - 1), 1):
            if number == n:
                return match.start(part) + 1 if part <= match.re.groups else 0
        return 0

    return with_constants(over_texts(run, pa.int64()), pa.int64(), text, pattern, *given)


@scalar("regexp_substr(text VARCHAR, pattern VARCHAR) -> VARCHAR", group=GROUP, origin="spark")
@per_row
def regexp_substr(text: Value, pattern: Value) -> pa.Array:
    """The first match; NULL where nothing matches.

    Goes text by text: Arrow answers no match without groups by name.

    >>> regexp_substr('Steven Jones', 'Ste(v|ph)en')
    Steven
    """

    def run(text: str, regex: str) -> str | None:
        match = python_regex(regex).search(text)
        return None if match is None else match[0]

    return with_constants(over_texts(run, pa.string()), pa.string(), text, pattern)


@scalar("regexp_extract(text VARCHAR, pattern VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb")
@scalar("regexp_extract(text VARCHAR, pattern VARCHAR, part BIGINT) -> VARCHAR", group=GROUP, origin="duckdb")
@scalar("regexp_extract(text VARCHAR, pattern VARCHAR, part BIGINT, flags VARCHAR) -> VARCHAR", group=GROUP,
        origin="duckdb")  # fmt: skip
@per_row
def regexp_extract(text: Value, pattern: Value, part: Value | None = None, flags: Value = NOTHING) -> pa.Array:
    """A group of the first match, 0 for all of it; an empty text where nothing matches.

    Goes text by text: Arrow answers no groups by number.

    >>> regexp_extract('ABC', '([a-z])(b)', 1, 'i')
    A
    """

    def run(text: str, regex: str, part: int, flags: str) -> str:
        match = python_regex(regex, flags).search(text)
        if not 0 <= part <= python_regex(regex, flags).groups:
            raise InvalidParameter(f"the pattern has no group {part}")
        return "" if match is None else match[part] or ""

    given = pa.scalar(0) if part is None else part
    return with_constants(over_texts(run, pa.string()), pa.string(), text, pattern, given, flags)


@scalar("regexp_extract_all(text VARCHAR, pattern VARCHAR) -> VARCHAR[]", group=GROUP, origin="duckdb")
@scalar("regexp_extract_all(text VARCHAR, pattern VARCHAR, part BIGINT) -> VARCHAR[]", group=GROUP, origin="duckdb")
@per_row
def regexp_extract_all(text: Value, pattern: Value, part: Value | None = None) -> pa.Array:
    r"""A group of each match, 0 for all of it.

    Goes text by text: Arrow answers the first match alone.

    >>> regexp_extract_all('Peter: 33, Paul:14', '(\w+):\s*(\d+)', 2)
    [33, 14]
    """

    def run(text: str, regex: str, part: int) -> list[str]:
        if not 0 <= part <= python_regex(regex).groups:
            raise InvalidParameter(f"the pattern has no group {part}")
        return [match[part] or "" for match in python_regex(regex).finditer(text)]

    strings, given = pa.list_(pa.string()), pa.scalar(0) if part is None else part
    return with_constants(over_texts(run, strings), strings, text, pattern, given)


@scalar("regexp_split_to_array(text VARCHAR, pattern VARCHAR) -> VARCHAR[]", group=GROUP, origin="duckdb",
        aliases=("string_split_regex", "str_split_regex"))  # fmt: skip
@per_row
def regexp_split_to_array(text: Value, pattern: Value) -> pa.Array:
    """The parts between matches; an empty match at an end of the text, or behind another match, parts nothing.

    Goes text by text: Arrow's own split parts at empty matches too.

    >>> regexp_split_to_array('hello world; 42', ';? ')
    [hello, world, 42]
    """

    def run(text: str, regex: str) -> list[str]:
        parts, done = [], 0
        for match in python_regex(regex).finditer(text):
            if match.end() > match.start() or done < match.start() < len(text):
                parts.append(text[done : match.start()])
                done = match.end()
        return [*parts, text[done:]]

    strings = pa.list_(pa.string())
    return with_constants(over_texts(run, strings), strings, text, pattern)


@scalar("regexp_escape(text VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb")
def regexp_escape(text: pa.Array) -> pa.Array:
    r"""The text as a regular expression that matches it alone.

    >>> regexp_escape('a.b')
    a\.b
    """
    return pc.replace_substring_regex(text, pattern=r"([^0-9A-Za-z_\x80-\x{10FFFF}])", replacement=r"\\\1")
