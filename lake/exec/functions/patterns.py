"""Matching text: LIKE, SIMILAR TO and regular expressions.

Regular expressions are of the RE2 kind, as the base's: no back references and no look-around. What needs the parts of a
match is in ``matches``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidEscape, InvalidParameter, InvalidRegularExpression
from lake.exec.decimals import Value
from lake.exec.functions.columns import NOT_CONSTANT, all_valid, columns, constant, with_constants
from lake.exec.functions.regexes import with_flags
from lake.exec.kernels import views
from lake.exec.kernels.strings import like_mask, like_pairs_mask
from lake.sql.registry import scalar

GROUP: Final = "patterns"
NOTHING: Final = pa.scalar("")
KERNEL_ROWS: Final = 1_000
"""Columns of fewer rows are not worth waking the kernels for."""


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
    if constant(pattern) is NOT_CONSTANT and (escape is None or constant(escape) == "\\"):
        texts, patterns = columns(text, pattern)
        if ignore_case:
            texts, patterns = pc.utf8_lower(texts), pc.utf8_lower(patterns)
        return views.to_array(like_pairs_mask(texts, patterns), pa.bool_(), all_valid(texts, patterns))

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
    return with_constants(_matches, pa.bool_(), text, pattern, of_one_match("regexp_like", flags))


def of_one_match(name: str, flags: Value) -> Value:
    """The flags, none where they are NULL.

    22023  the flag ``g`` of a function that looks for one match
    """
    known = constant(flags)
    if isinstance(known, str) and "g" in known:
        raise InvalidParameter(f'{name}() does not support the "global" option')
    return pc.fill_null(flags, "")


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


@scalar("regexp_escape(text VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb")
def regexp_escape(text: pa.Array) -> pa.Array:
    r"""The text as a regular expression that matches it alone.

    >>> regexp_escape('a.b')
    a\.b
    """
    return pc.replace_substring_regex(text, pattern=r"([^0-9A-Za-z_\x80-\x{10FFFF}])", replacement=r"\\\1")
