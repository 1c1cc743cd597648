"""Enum types in expressions: casts are checked, and enum_range and its like are given the labels. Spec: SQL, Enum types.

    'x'::mood              enum_label('x', 'mood', ['sad', 'ok'])
    enum_range(NULL::mood) enum_range(NULL, ['sad', 'ok'])
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from lake.errors import DatatypeMismatch, FeatureNotSupported
from lake.sql import ast
from lake.sql.bind.coerce import cast
from lake.sql.bind.overload import call_function
from lake.sql.bind.scope import Env
from lake.sql.bound import Expr, Literal, MakeList
from lake.types import TEXT, List

FUNCTIONS: Final = ("enum_range", "enum_first", "enum_last")


def enum_of(name: ast.TypeName, env: Env) -> tuple[str, tuple[str, ...]] | None:
    """The name and labels of an enum type; None where the name means none.

    0A000  a list of enums
    """
    found: tuple[str, tuple[str, ...]] | None = None
    if name.labels:
        found = ("enum", name.labels)
    elif env.shared.settings.enums is not None and not name.fields and not name.arguments:
        found = env.shared.settings.enums(name.name)
    if found is not None and name.dimensions:
        raise FeatureNotSupported(f'a list of the enum type "{found[0]}" is not supported')
    return found


def cast_to_enum(operand: Expr, enum: tuple[str, tuple[str, ...]], env: Env, node: ast.Expr, *, is_try: bool) -> Expr:
    """A text that is one of the labels."""
    name, labels = enum
    value = cast(operand, TEXT, time_zone=env.time_zone)
    listed = MakeList(List(TEXT), tuple(Literal(TEXT, label) for label in labels))
    function = "try_enum_label" if is_try else "enum_label"
    return call_function(function, (value, Literal(TEXT, name), listed), env, node)


def with_labels(call: ast.Call, name: str, env: Env) -> ast.Call:
    """A call of enum_range and its like with the labels of its argument's type as a further argument.

    42804  no argument is a value of an enum type
    """
    for argument in call.arguments:
        match argument.value:
            case ast.Cast(type=type) | ast.TypedLiteral(type=type):
                found = enum_of(type, env)
                if found is not None:
                    listed = ast.ListLiteral(tuple(ast.Literal(label) for label in found[1]))
                    return replace(call, arguments=(*call.arguments, ast.Argument(listed)))
            case ast.ListLiteral():
                return call
    raise DatatypeMismatch(
        f"{name} takes a value of an enum type, such as {name}(NULL::mood)", position=env.position(call)
    )
