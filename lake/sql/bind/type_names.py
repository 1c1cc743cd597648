"""Names of types as the text writes them: SQL's, Arrow's, lists, structs and maps of them."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from lake.arrow_names import parse_arrow_name
from lake.errors import DuplicateColumn, UndefinedObject
from lake.sql import ast
from lake.types import (
    DECIMAL_DEFAULT,
    DECIMAL_SPELLINGS,
    TEXT,
    VARCHAR,
    List,
    Map,
    Struct,
    Timestamp,
    Type,
    parse_type_name,
)


def bind_type(name: ast.TypeName) -> Type:
    """The type a TypeName means.

    42704  no such type
    """
    if name.fields:
        found: Type = _nested_type(name)
    elif name.name.lower() in DECIMAL_SPELLINGS and not name.arguments:
        found = DECIMAL_DEFAULT
    elif "(" in name.name:
        found = parse_arrow_name(name.name)
    else:
        found = _spelled(parse_type_name(name.name, name.arguments), name.arguments)
    for _ in range(name.dimensions):
        found = List(found)
    return found


def _spelled(type: Type, arguments: tuple[int, ...]) -> Type:
    """What SQL's name of a type is in Arrow: text is a view, and TIMESTAMP(p) counts in the unit of p digits."""
    if type is TEXT:
        return VARCHAR
    if isinstance(type, Timestamp) and arguments:
        unit = next((unit for digits, unit in _UNIT_OF_DIGITS if arguments[0] <= digits), "ns")
        return replace(type, spelled=f'Timestamp({unit}, "UTC")' if type.zoned else f"Timestamp({unit})")
    return type


_UNIT_OF_DIGITS: Final = ((0, "s"), (3, "ms"), (6, "µs"))


def _nested_type(name: ast.TypeName) -> Type:
    """``STRUCT(a INT)`` or ``MAP(VARCHAR, INT)``; 42704 for another name with fields."""
    fields = tuple((key, bind_type(of)) for key, of in name.fields)
    match name.name.lower():
        case "map":
            return Map(fields[0][1], fields[1][1])
        case "struct" | "row":
            if len({key for key, _ in fields}) < len(fields):
                raise DuplicateColumn("a struct has two fields of one name")
            return Struct(fields)
    raise UndefinedObject(f'type "{name.name}" takes no fields')
