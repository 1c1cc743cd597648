"""The parts of what regular expressions match.

Texts of ASCII go through Arrow where its expressions say as much; the others, and what Arrow does not answer, through
Python's ``re``, once for each distinct text: its classes know letters and digits beyond ASCII, as the base's do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter
from lake.exec.constants import list_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import by_ascii, map_distinct, over_texts, with_constants
from lake.exec.functions.patterns import GROUP, NOTHING, of_one_match
from lake.exec.functions.regexes import python_regex, with_flags
from lake.exec.per_row import per_row
from lake.late import late_pattern
from lake.sql.registry import scalar

_OPENING: Final = late_pattern(r"\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]])*\]|\((?:\?P?<\w+>|(?!\?))", re.DOTALL)
"""An escape, a class of characters, or what opens a group with a number."""


@lru_cache(1000)
def numbered(regex: str) -> tuple[str, int]:
    """The expression with its groups named g1, g2 and so on, all of it g0; and how many groups it has."""
    count = 0

    def name(match: re.Match[str]) -> str:
        nonlocal count
        if not match[0].startswith("("):
            return match[0]
        count += 1
        return f"(?P<g{count}>"

    named = _OPENING.sub(name, regex)
    return f"(?P<g0>{named})", count


def _first_match(column: pa.Array, regex: str, flags: str = "") -> pa.Array | None:
    """Structs of the groups of the first match, NULL where nothing matches; None for what Arrow does not read.

    A group that takes no part in a match is an empty text there.
    """
    try:
        return pc.extract_regex(column, with_flags(numbered(regex)[0], flags))
    except pa.ArrowInvalid:
        return None


@per_row
def _over_groups(
    column: pa.Array, regex: str, flags: str, slow: Callable[[str], Any], fast: Callable[[pa.Array], pa.Array],
    type: pa.DataType,
) -> pa.Array:
    """``fast`` over the groups of the first matches of texts of ASCII, ``slow`` over each of the other texts.

    Texts beyond ASCII go row by row: Arrow's classes of letters and digits end there.
    """
    python_regex(regex, flags)

    def of_ascii(texts: pa.Array) -> pa.Array:
        groups = _first_match(texts, regex, flags)
        return map_distinct(slow, type, texts) if groups is None else fast(groups)

    return by_ascii(of_ascii, slow, type, column)


@scalar("regexp_match(text VARCHAR, pattern VARCHAR) -> VARCHAR[]", group=GROUP)
@scalar("regexp_match(text VARCHAR, pattern VARCHAR, flags VARCHAR) -> VARCHAR[]", group=GROUP)
@per_row
def regexp_match(text: Value, pattern: Value, flags: Value = NOTHING) -> pa.Array:
    """The groups of the first match, or the match itself where there are none; NULL where nothing matches.

    Texts beyond ASCII go row by row, and expressions with groups, which may take no part in a match: Arrow says not which.

    >>> regexp_match('foobarbequebaz', '(bar)(beque)')
    [bar, beque]
    """

    def run(text: str, regex: str, flags: str) -> list[str | None] | None:
        match = python_regex(regex, flags).search(text)
        if match is None:
            return None
        return list(match.groups()) if match.re.groups else [match[0]]

    strings = pa.list_(pa.string())

    def lists(groups: pa.Array) -> pa.Array:
        there = np.asarray(pc.is_valid(groups)).astype(np.int64)
        offsets = np.concatenate(([0], np.cumsum(there)))
        return list_array(offsets, pc.struct_field(groups, "g0").drop_null(), there.astype(np.uint8))

    def match(column: pa.Array, regex: str, flags: str) -> pa.Array:
        def slow(item: str) -> list[str | None] | None:
            return run(item, regex, flags)

        if numbered(regex)[1]:
            return map_distinct(slow, strings, column)
        return _over_groups(column, regex, flags, slow, lists, strings)

    return with_constants(match, strings, text, pattern, of_one_match("regexp_match", flags))


@scalar("substring(text VARCHAR, pattern VARCHAR) -> VARCHAR", group=GROUP, origin="lake")
@per_row
def substring(text: Value, pattern: Value) -> pa.Array:
    """The first match of a regular expression, or what its first group matches; NULL where nothing matches.

    Texts beyond ASCII go row by row, and expressions whose group may take no part in a match: Arrow says not whether it
    did. Source: Postgres's SUBSTRING(text FROM pattern).

    >>> substring('foobar', 'o(.)b')
    o
    """

    def run(column: pa.Array, regex: str) -> pa.Array:
        name = f"g{min(1, numbered(regex)[1])}"

        def slow(item: str) -> str | None:
            match = python_regex(regex).search(item)
            return None if match is None else match[min(1, match.re.groups)]

        if name == "g1" and re.search(r"[|?*]|\{0|\{,", regex):
            return map_distinct(slow, pa.string(), column)
        return _over_groups(column, regex, "", slow, lambda groups: pc.struct_field(groups, name), pa.string())

    return with_constants(run, pa.string(), text, pattern)


@scalar("regexp_count(text VARCHAR, pattern VARCHAR) -> BIGINT", group=GROUP)
@scalar("regexp_count(text VARCHAR, pattern VARCHAR, start BIGINT) -> BIGINT", group=GROUP)
@scalar("regexp_count(text VARCHAR, pattern VARCHAR, start BIGINT, flags VARCHAR) -> BIGINT", group=GROUP)
@per_row
def regexp_count(text: Value, pattern: Value, start: Value | None = None, flags: Value = NOTHING) -> pa.Array:
    """How many matches there are from a position on.

    Texts beyond ASCII go row by row, and expressions that match empty texts, where Arrow counts otherwise.

    >>> regexp_count('abcAbAbc', 'abc', 2, 'i')
    1
    """

    def run(column: pa.Array, regex: str, start: int, flags: str) -> pa.Array:
        compiled, first = python_regex(regex, flags), checked_start(start) - 1

        def slow(item: str) -> int:
            return sum(1 for _ in compiled.finditer(item[first:])) if first <= len(item) else 0

        def fast(texts: pa.Array) -> pa.Array:
            try:
                return pc.count_substring_regex(texts, with_flags(regex, flags)).cast(pa.int64())
            except pa.ArrowInvalid:
                return map_distinct(slow, pa.int64(), texts)

        if first or compiled.match("") or re.search(r"[\^$]|\\[AbBz]|\(\?", regex) or "m" in flags:
            return map_distinct(slow, pa.int64(), column)
        return by_ascii(fast, slow, pa.int64(), column)

    return with_constants(run, pa.int64(), text, pattern, pa.scalar(1) if start is None else start, flags)


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
    """Where the n-th match begins, or a group of it, counted from 1; 0 where there is none. The text begins at the start.

    Goes row by row: Arrow answers no places of later matches.

    >>> regexp_instr('ABCDEF', 'C(.)(..)')
    3
    """

    def run(text: str, regex: str, start: int = 1, n: int = 1, flags: str = "", part: int = 0) -> int:
        first = checked_start(start) - 1
        for number, match in enumerate(python_regex(regex, flags).finditer(text[first:]), 1):
            if number == n:
                return first + match.start(part) + 1 if part <= match.re.groups else 0
        return 0

    return with_constants(over_texts(run, pa.int64()), pa.int64(), text, pattern, *given)


@scalar("regexp_substr(text VARCHAR, pattern VARCHAR) -> VARCHAR", group=GROUP, origin="spark")
@per_row
def regexp_substr(text: Value, pattern: Value) -> pa.Array:
    """The first match; NULL where nothing matches.

    Texts beyond ASCII go row by row: Arrow's classes of letters and digits end there.

    >>> regexp_substr('Steven Jones', 'Ste(v|ph)en')
    Steven
    """

    def run(column: pa.Array, regex: str) -> pa.Array:
        def slow(item: str) -> str | None:
            match = python_regex(regex).search(item)
            return None if match is None else match[0]

        return _over_groups(column, regex, "", slow, lambda groups: pc.struct_field(groups, "g0"), pa.string())

    return with_constants(run, pa.string(), text, pattern)


@scalar("regexp_extract(text VARCHAR, pattern VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb")
@scalar("regexp_extract(text VARCHAR, pattern VARCHAR, part BIGINT) -> VARCHAR", group=GROUP, origin="duckdb")
@scalar("regexp_extract(text VARCHAR, pattern VARCHAR, part BIGINT, flags VARCHAR) -> VARCHAR", group=GROUP,
        origin="duckdb")  # fmt: skip
@per_row
def regexp_extract(text: Value, pattern: Value, part: Value | None = None, flags: Value = NOTHING) -> pa.Array:
    """A group of the first match, 0 for all of it; an empty text where nothing matches.

    Texts beyond ASCII go row by row: Arrow's classes of letters and digits end there.

    >>> regexp_extract('ABC', '([a-z])(b)', 1, 'i')
    A
    """

    def run(column: pa.Array, regex: str, part: int, flags: str) -> pa.Array:
        if not 0 <= part <= python_regex(regex, flags).groups:
            raise InvalidParameter(f"the pattern has no group {part}")

        def slow(item: str) -> str:
            match = python_regex(regex, flags).search(item)
            return "" if match is None else match[part] or ""

        def fast(groups: pa.Array) -> pa.Array:
            return pc.fill_null(pc.struct_field(groups, f"g{part}"), "")

        made = _over_groups(column, regex, flags, slow, fast, pa.string())
        return made if column.null_count == 0 else pc.if_else(pc.is_valid(column), made, pa.scalar(None, pa.string()))

    given = pa.scalar(0) if part is None else part
    return with_constants(run, pa.string(), text, pattern, given, flags)


@scalar("regexp_extract_all(text VARCHAR, pattern VARCHAR) -> VARCHAR[]", group=GROUP, origin="duckdb")
@scalar("regexp_extract_all(text VARCHAR, pattern VARCHAR, part BIGINT) -> VARCHAR[]", group=GROUP, origin="duckdb")
@per_row
def regexp_extract_all(text: Value, pattern: Value, part: Value | None = None) -> pa.Array:
    r"""A group of each match, 0 for all of it.

    Goes row by row: Arrow answers the first match alone.

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

    Goes row by row: Arrow's own split parts at empty matches too.

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
