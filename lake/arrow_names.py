"""Arrow names of types: what DESCRIBE and definitions over HTTP write, and what ``arrow_cast`` takes.

    >>> arrow_name(Decimal(15, 2)), parse_arrow_name("LargeList(Utf8View)")
    ('Decimal128(15, 2)', List(of=Text()))
    >>> arrow_spelling(parse_arrow_name("LargeList(Utf8View)"))
    'LargeList(Utf8View)'

An Arrow type that SQL has no type for is the SQL type that holds its values, ``spelled`` as Arrow has it.
``arrow_name`` says what the SQL type is, ``arrow_spelling`` what it was asked for by.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from lake.errors import UndefinedObject
from lake.late import late_pattern
from lake.types import (
    BIGINT,
    BYTES,
    INTERVAL,
    NULL,
    REAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TYPES,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Decimal,
    Integer,
    List,
    Map,
    Null,
    Struct,
    Text,
    Time,
    Timestamp,
    Type,
    names_of,
    parse_type_name,
)

_BY_ARROW_NAME: Final = {row.arrow_name.lower(): row.type for row in reversed(TYPES)}  # of several the first


def arrow_name(type: Type) -> str:
    """The Arrow name of ``type`` as table definitions write it, however it is spelled."""
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


def arrow_spelling(type: Type) -> str:
    """The name of the Arrow type that ``type`` stands for, as Arrow itself writes it: ``Timestamp(µs)``."""
    match type:
        case List(of):
            return (type.spelled or "List({})").replace("{}", arrow_spelling(of))
        case Struct(fields) if not type.spelled:
            return "Struct(" + ", ".join(f'"{name}": {arrow_spelling(of)}' for name, of in fields) + ")"
        case Map(key, value) if not type.spelled:
            key_name, value_name = arrow_spelling(key), arrow_spelling(value)
            return f'Map("entries": non-null Struct("key": non-null {key_name}, "value": {value_name}), unsorted)'
        case Timestamp(zoned) if not type.spelled:
            return 'Timestamp(µs, "UTC")' if zoned else "Timestamp(µs)"
        case Time() if not type.spelled:
            return "Time64(µs)"
        case _:
            return type.spelled or arrow_name(type)


def is_spelled(type: Type) -> bool:
    """Whether ``type``, or a type within it, is spelled otherwise than SQL's."""
    if type.spelled:
        return True
    match type:
        case List(of):
            return is_spelled(of)
        case Struct(fields):
            return any(is_spelled(of) for _, of in fields)
        case Map(key, value):
            return is_spelled(key) or is_spelled(value)
        case _:
            return False


# --- two spellings of one type ---------------------------------------------------------------------------------------

_DICTIONARY: Final = late_pattern(r"Dictionary\((\w+), (.+)\)")
_RANK: Final = ("Timestamp(s", "Timestamp(ms", "", "LargeUtf8", "LargeBinary", "Utf8View", "BinaryView", "Timestamp(ns")


def common_spelling(left: Type, right: Type) -> Type:
    """``left``, of a type equal to ``right``, spelled as both can be: a view before a large text before a plain one.

    Finer moments win over coarser ones, large lists over lists and lists over those of one size. Numbers that are spelled
    otherwise are just numbers.
    """
    if left is right:
        return left
    match left, right:
        case List(one), List(two):
            return List(common_spelling(one, two), spelled=_list_spelling(left.spelled, right.spelled))
        case Struct(ones), Struct(twos):
            pairs = zip(ones, twos, strict=True)
            return Struct(tuple((name, common_spelling(one, two)) for (name, one), (_, two) in pairs))
        case Map(), Map():
            return Map(common_spelling(left.key, right.key), common_spelling(left.value, right.value))
    if left.spelled == right.spelled:
        return left
    first, second = _DICTIONARY.fullmatch(left.spelled), _DICTIONARY.fullmatch(right.spelled)
    if first is not None and second is not None:
        key = max(first[1], second[1], key=lambda word: int(word.lstrip("UInt") or 0))
        value = common_spelling(parse_arrow_name(first[2]), parse_arrow_name(second[2]))
        return replace(left, spelled=f"Dictionary({key}, {arrow_spelling(value)})")
    if isinstance(left, Integer | Decimal):
        return replace(left, spelled="")
    return max(left, right, key=_rank)


def _rank(type: Type) -> int:
    if type.spelled.startswith("Dictionary"):
        return _RANK.index("Utf8View")
    found = [place for place, head in enumerate(_RANK) if head and type.spelled.startswith(head)]
    return found[0] if found else _RANK.index("")


def _list_spelling(left: str, right: str) -> str:
    if left == right:
        return left
    return "LargeList({})" if "Large" in left + right else ""


# --- names read ------------------------------------------------------------------------------------------------------


def parse_arrow_name(name: str) -> Type:
    """The type an Arrow name stands for: ``Int64``, ``Decimal128(15, 2)``, ``List(Utf8)``; SQL spellings do too.

    22023  a unit or a zone that there is none of     42704  no such type
    """
    name = name.strip()
    lowered = name.lower()
    if lowered in _BY_ARROW_NAME:
        return _BY_ARROW_NAME[lowered]
    if lowered in _PLAIN:
        return _PLAIN[lowered]
    if lowered.endswith("[]"):
        return List(parse_arrow_name(name[:-2]))
    head, _, rest = name.partition("(")
    head = head.strip().lower()
    arguments = _split_arguments(rest[:-1]) if rest.endswith(")") else []
    if head in ("list", "largelist", "listview", "largelistview", "fixedsizelist"):
        return _list_type(head, arguments)
    match head, arguments:
        case "dictionary", [key, of]:
            return _valued(of, f"Dictionary({arrow_spelling(parse_arrow_name(key))}, {{}})")
        case "runendencoded", [_, of]:
            return _valued(_item_name(of.partition(":")[2]), name)
        case "timestamp" | "time32" | "time64" | "duration" | "interval" | "fixedsizebinary", [_, *_]:
            return _measured(head, arguments)
        case "struct", _:
            pairs = (argument.partition(":") for argument in arguments)
            return Struct(tuple((key.strip().strip('"'), parse_arrow_name(_item_name(of))) for key, _, of in pairs))
        case "map", [entries, *_]:
            pair = parse_arrow_name(_item_name(entries.partition(":")[2]))
            assert isinstance(pair, Struct), name
            return Map(pair.fields[0][1], pair.fields[1][1])
        case ("decimal32" | "decimal64" | "decimal128" | "decimal256"), _:
            found = parse_type_name("decimal", tuple(int(part) for part in arguments))
            assert isinstance(found, Decimal)
            spelled = f"{head.title()}({', '.join(arguments)})"
            return found if head == "decimal128" else replace(found, spelled=spelled)
    return parse_type_name(head, tuple(int(part) for part in arguments if part.isdigit()))


_PLAIN: Final[dict[str, Type]] = {
    "null": NULL, "utf8view": Text(spelled="Utf8View"), "largeutf8": Text(spelled="LargeUtf8"),
    "binaryview": replace(BYTES, spelled="BinaryView"), "largebinary": replace(BYTES, spelled="LargeBinary"),
    "float16": replace(REAL, spelled="Float16"), "date64": replace(TIMESTAMP, spelled="Date64"), "uint8": UINT8,
    "uint16": UINT16, "uint32": UINT32, "uint64": UINT64, "fixedsizebinary": BYTES, "time32": TIME, "time64": TIME,
    "duration": INTERVAL, "int8": Integer(8), "int64": BIGINT, "utf8": TEXT,
}  # fmt: skip

_UNITS: Final = {
    "second": "s", "s": "s", "millisecond": "ms", "ms": "ms", "microsecond": "µs", "us": "µs", "µs": "µs",
    "nanosecond": "ns", "ns": "ns", "yearmonth": "YearMonth", "daytime": "DayTime", "monthdaynano": "MonthDayNano",
}  # fmt: skip


def _valued(of: str, form: str) -> Type:
    """The type of values that Arrow keeps in a form of its own."""
    found = parse_arrow_name(of)
    return replace(found, spelled=form.replace("{}", arrow_spelling(found)))


def _list_type(head: str, arguments: list[str]) -> Type:
    """``List(Int64)``, ``LargeList(non-null Int32)``, ``FixedSizeList(3, Int64)`` or ``FixedSizeList(3 x Int64)``."""
    if not arguments:
        raise UndefinedObject(f'type "{head}" takes the type of its items')
    of, size = arguments[-1], ""
    if head == "fixedsizelist":
        counted = re.fullmatch(r"(\d+)\s+x\s+(.+)", of, re.DOTALL)
        size, of = (counted[1], counted[2]) if counted else (arguments[0], of)
        size += " x "
    required = "non-null " if "non-null " in of.partition("(")[0] else ""
    word = {"list": "List", "largelist": "LargeList", "fixedsizelist": "FixedSizeList"}.get(head, "List")
    form = f"{word}({size}{required}{{}})"
    return List(parse_arrow_name(_item_name(of)), spelled="" if form == "List({})" else form)


def _measured(head: str, arguments: list[str]) -> Type:
    """A type with a unit, a zone or a size: ``Timestamp(ms, "UTC")``, ``Time32(s)``, ``Duration(ns)``."""
    if head == "fixedsizebinary":
        return replace(BYTES, spelled=f"FixedSizeBinary({arguments[0]})")
    unit = _UNITS.get(arguments[0].lower())
    if unit is None:
        raise UndefinedObject(f'type "{head}({arguments[0]})" does not exist')
    if head == "timestamp":
        zone = _zone(arguments[1]) if len(arguments) > 1 else None
        spelled = f"Timestamp({unit})" if zone is None else f'Timestamp({unit}, "{zone}")'
        plain = spelled in ("Timestamp(µs)", 'Timestamp(µs, "UTC")')
        return Timestamp(zone is not None, spelled="" if plain else spelled)
    if head in ("time32", "time64"):
        return Time(spelled="" if unit == "µs" else f"{head.title()}({unit})")
    if head == "duration":
        return replace(INTERVAL, spelled=f"Duration({unit})")
    return INTERVAL if unit == "MonthDayNano" else replace(INTERVAL, spelled=f"Interval({unit})")


def _zone(text: str) -> str | None:
    """The zone in ``Some("UTC")``, ``"UTC"`` or ``None``."""
    text = text.strip()
    if text.lower() == "none":
        return None
    return text.removeprefix("Some(").removesuffix(")").strip().strip('"')


def zone_of_type(type: Type) -> str | None:
    """The zone in which an instant of the type is written and taken apart; None for the session's."""
    if not (isinstance(type, Timestamp) and type.zoned and type.spelled):
        return None
    return type.spelled.partition('"')[2].rstrip('")') or None


def is_spelled_alike(one: Type, other: Type) -> bool:
    """Whether types that are equal are one in every way: of one Arrow type, their instants read in one zone.

    TIMESTAMPTZ is ``Timestamp(us, "UTC")`` and is read in the session's zone; what AT TIME ZONE 'UTC' answers is read in UTC.
    """
    return one is other or (arrow_spelling(one) == arrow_spelling(other) and zone_of_type(one) == zone_of_type(other))


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
