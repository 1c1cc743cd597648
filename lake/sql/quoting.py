"""Names, literals and types as SQL text."""

from __future__ import annotations

import math
from decimal import Decimal

from lake.late import late_pattern
from lake.sql import ast
from lake.sql.parser import reserved_words

# Words that are names, but would be read as a keyword where an expression, a window or a CTE begins.
_SOFT_WORDS = frozenset(
    "cube double groups grouping interval lambda pivot position range recursive rollup rows try_cast unpivot values".split()
)

_PLAIN_NAME = late_pattern(r"[^\W\dA-Z][\w$]*\Z")
_PLAIN_TYPE = late_pattern(r"[a-z_][a-z0-9_]*(?:[. ][a-z_][a-z0-9_]*)*\Z")
_ZONE_SUFFIX = " with time zone"


def quote_name(name: str, *, is_label: bool = False) -> str:
    """A name as SQL: in quotes where it must be. A label, after AS or a dot, may be any plain word."""
    if _PLAIN_NAME.match(name) and name.lower() == name:
        if is_label or (name.upper() not in reserved_words() and name not in _SOFT_WORDS):
            return name
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_literal(value: bool | int | Decimal | float | str | bytes | None) -> str:
    """A constant as SQL that reads back as the same constant."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return quote_text(value)
        case bytes():
            return f"x'{value.hex()}'"
        case Decimal():
            text = format(value, "f")
            return text if "." in text else f"{text}."
        case float() if not math.isfinite(value):
            return f"CAST('{value}' AS double)"
        case float():
            text = repr(value)
            return text if "e" in text else f"{text}e0"
    return str(value)


def type_text(type_name: ast.TypeName) -> str:
    """``decimal(15, 2)[]``."""
    name, suffix = type_name.name, ""
    if name.endswith(_ZONE_SUFFIX):
        name, suffix = name.removesuffix(_ZONE_SUFFIX), _ZONE_SUFFIX
    if not _PLAIN_TYPE.match(name):
        name = quote_name(name)
    if type_name.fields:
        inner = ", ".join(f"{quote_name(key, is_label=True)} {type_text(of)}" for key, of in type_name.fields)
        if name == "map":
            inner = ", ".join(type_text(of) for _, of in type_name.fields)
        return f"{name}({inner}){'[]' * type_name.dimensions}"
    if type_name.labels:
        return f"{name}({', '.join(map(quote_text, type_name.labels))}){'[]' * type_name.dimensions}"
    arguments = f"({', '.join(map(str, type_name.arguments))})" if type_name.arguments else ""
    return f"{name}{arguments}{suffix}{'[]' * type_name.dimensions}"


def name_text(name: ast.Name) -> str:
    """``schema.t``."""
    first, *rest = name.parts
    return ".".join([quote_name(first), *(quote_name(part, is_label=True) for part in rest)])


def function_text(name: ast.Name) -> str:
    """A function's name, which in its place before a parenthesis only a reserved word keeps from being plain."""
    first = name.parts[0]
    return first if name.parts == (first,) and first in _SOFT_WORDS - {"try_cast"} else name_text(name)
