"""Regular expressions of the RE2 kind for Arrow, which runs them, and for Python's ``re``, which knows the parts of a match.

    python_regex(r"[\\p{Greek}\\d]+")      the letters of \\p written out, which Python's ``re`` does not know
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, InvalidRegularExpression
from lake.late import late_pattern

_FLAGS: Final = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "n": re.MULTILINE, "x": re.VERBOSE}
_CLASSES: Final = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "word": r"\w", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f",
}  # fmt: skip
_PROPERTIES: Final = {
    "letter": "L", "uppercase_letter": "Lu", "lowercase_letter": "Ll", "titlecase_letter": "Lt", "modifier_letter": "Lm",
    "other_letter": "Lo", "mark": "M", "number": "N", "decimal_number": "Nd", "punctuation": "P", "symbol": "S",
    "separator": "Z", "other": "C", "control": "Cc",
}  # fmt: skip
"""Long names of Unicode's general categories, which RE2 knows by the short ones. Source: Unicode Standard Annex 44."""

_PROPERTY: Final = late_pattern(r"\\([pP])(?:\{(\^?)(\w+)\}|([A-Z]))")
_SURROGATES: Final = (0xD800, 0xE000)  # code points that no text holds
_CODE_POINTS: Final = 0x110000


def with_flags(regex: str, flags: str) -> str:
    """The expression as RE2 reads it, with its flags inside.

    22023  a flag that is not known
    """
    unknown = set(flags) - set("imsxUgcn")
    if unknown:
        raise InvalidParameter(f'invalid regular expression option: "{unknown.pop()}"')
    inside = "".join(sorted(set(flags.replace("n", "m")) & set("imsU")))
    if "x" in flags:
        regex = re.sub(r"(?<!\\)#.*|(?<!\\)\s+", "", regex)
    if "\\p{" in regex or "\\P{" in regex:
        regex = _PROPERTY.sub(_short_name, regex)
    return f"(?{inside}){regex}" if inside else regex


def _short_name(found: re.Match[str]) -> str:
    letter, negated, name, single = found.groups()
    return found[0] if single else f"\\{letter}{{{negated}{_PROPERTIES.get(name.lower(), name)}}}"


@lru_cache(1000)
def python_regex(regex: str, flags: str = "") -> re.Pattern[str]:
    """The expression for Python's ``re``.

    2201B  it does not compile
    """
    with_flags("", flags)
    translated = re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], match[0]), regex)
    translated = re.sub(r"\(\?<(?![=!])", "(?P<", translated).replace(r"\z", r"\Z")
    if "\\p" in translated or "\\P" in translated:
        translated = _written_out(translated)
    combined = 0
    for flag in flags:
        combined |= _FLAGS.get(flag, 0)
    try:
        return re.compile(translated, combined)
    except re.error as error:
        raise InvalidRegularExpression(f"invalid regular expression: {error}") from None


def _written_out(regex: str) -> str:
    """The expression with the characters of each Unicode property in its place, in brackets where it stands in none."""
    parts: list[str] = []
    in_class, place = False, 0
    while place < len(regex):
        char = regex[place]
        found = _PROPERTY.match(regex, place) if char == "\\" else None
        if found is not None:
            letter, negated, name, single = found.groups()
            inside = _members(_PROPERTIES.get((name or single).lower(), name or single), (letter == "P") != bool(negated))
            parts.append(inside if in_class else f"[{inside}]")
            place = found.end()
            continue
        step = 2 if char == "\\" else 1
        if char == "[" and not in_class:
            in_class = True
            step += regex.startswith(("]", "^"), place + 1) + regex.startswith("^]", place + 1)
        elif char == "]":
            in_class = False
        parts.append(regex[place : place + step])
        place += step
    return "".join(parts)


@lru_cache(100)
def _members(name: str, negated: bool) -> str:
    """The characters of a property, as the inside of a bracket: what Arrow leaves of all there are without the others.

    2201B  no such property
    """
    points = np.concatenate((np.arange(_SURROGATES[0]), np.arange(_SURROGATES[1], _CODE_POINTS)))
    every = points.astype("<u4").tobytes().decode("utf-32-le")
    others = f"\\{'p' if negated else 'P'}{{{name}}}+"
    try:
        (left,) = pc.replace_substring_regex(pa.array([every]), pattern=others, replacement="").to_pylist()
    except pa.ArrowInvalid as error:
        raise InvalidRegularExpression(f"invalid regular expression: {error}") from None
    members = np.frombuffer(left.encode("utf-32-le"), np.uint32)
    if len(members) == 0:
        return ""
    breaks = np.flatnonzero(np.diff(members) != 1)
    first = members[np.concatenate(([0], breaks + 1))]
    last = members[np.concatenate((breaks, [len(members) - 1]))]
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in zip(first.tolist(), last.tolist(), strict=True))
