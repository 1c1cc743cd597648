"""Arrow names of types: what DESCRIBE and definitions over HTTP write, and what ``arrow_cast`` takes.

    >>> arrow_name(Decimal(15, 2)), parse_arrow_name("LargeList(Utf8View)")
    ('Decimal128(15, 2)', List(of=Text()))
"""

from __future__ import annotations

from typing import Final

from lake.types import (
    BYTES,
    DATE,
    INTERVAL,
    REAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TYPES,
    Decimal,
    List,
    Map,
    Null,
    Struct,
    Type,
    names_of,
    parse_type_name,
)

_BY_ARROW_NAME: Final = {row.arrow_name.lower(): row.type for row in reversed(TYPES)}  # of several the first


def arrow_name(type: Type) -> str:
    """The Arrow name of ``type`` as table definitions and DESCRIBE write it."""
    match type:
        case Decimal(precision, scale):
            return f"Decimal128({precision}, {scale})"
        case List(of):
            return f"List({arrow_name(of)})"
        case Struct(fields):
            return "Struct(" + ", ".join(f'"{name}": {arrow_name(of)}' for name, of in fields) + ")"
        case Map(key, value):
            return f'Map("entries": Struct("key": {arrow_name(key)}, "value": {arrow_name(value)}), unsorted)'
        case Null():
            return "Null"
        case _:
            return names_of(type).arrow_name


def parse_arrow_name(name: str) -> Type:
    """The type an Arrow name stands for: ``Int64``, ``Decimal128(15, 2)``, ``List(Utf8)``; SQL spellings do too.

    42704  no such type
    """
    lowered = name.strip().lower()
    if lowered in _BY_ARROW_NAME:
        return _BY_ARROW_NAME[lowered]
    if lowered.endswith("[]"):
        return List(parse_arrow_name(name.strip()[:-2]))
    head, _, rest = name.strip().partition("(")
    head = head.strip().lower()
    arguments = _split_arguments(rest[:-1]) if rest.endswith(")") else []
    if head == "null":
        return Null()
    found = _OTHERS.get(head)
    if found is not None:
        return found
    match head, arguments:
        case ("list" | "largelist" | "listview" | "largelistview"), [of]:
            return List(parse_arrow_name(_item_name(of)))
        case "fixedsizelist", _ if arguments:
            return List(parse_arrow_name(_item_name(arguments[-1] if " x " not in rest else rest[:-1].partition(" x ")[2])))
        case "dictionary", [_, of]:
            return parse_arrow_name(of)
        case "timestamp", _:
            return TIMESTAMPTZ if len(arguments) > 1 and arguments[1].lower() != "none" else TIMESTAMP
        case "struct", _:
            pairs = (argument.partition(":") for argument in arguments)
            return Struct(tuple((key.strip().strip('"'), parse_arrow_name(_item_name(of))) for key, _, of in pairs))
        case "map", [entries, *_]:
            pair = parse_arrow_name(entries.partition(":")[2])
            if isinstance(pair, Struct) and len(pair.fields) == 2:
                return Map(pair.fields[0][1], pair.fields[1][1])
        case ("decimal32" | "decimal64" | "decimal128" | "decimal256"), _:
            return parse_type_name("decimal", tuple(int(part) for part in arguments))
    return parse_type_name(head, tuple(int(part) for part in arguments if part.isdigit()))


_OTHERS: Final[dict[str, Type]] = {
    "utf8view": TEXT, "largeutf8": TEXT, "binaryview": BYTES, "largebinary": BYTES, "fixedsizebinary": BYTES,
    "float16": REAL, "date64": DATE, "time32": TIME, "time64": TIME, "duration": INTERVAL, "interval": INTERVAL,
}  # fmt: skip
"""Arrow types beside the ones in TYPES, and what holds their values; numbers in parentheses say nothing here."""


def _item_name(text: str) -> str:
    """The type in ``field: Int64``, ``nullable Int64`` or ``non-null Int64``."""
    text = text.strip()
    if text.lower().startswith("field:"):
        text = text[len("field:") :].strip()
    for word in ("nullable ", "non-null "):
        text = text.removeprefix(word)
    return text.strip()


def _split_arguments(text: str) -> list[str]:
    """The parts between commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
