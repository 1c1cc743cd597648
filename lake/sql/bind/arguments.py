"""Arguments of calls: named ones put in their places, lambdas bound over the lists before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from lake.errors import SyntaxFailure, UndefinedFunction, near_name
from lake.sql import ast, bound
from lake.sql.bind.scope import Env
from lake.sql.bound import Expr
from lake.sql.registry import Function
from lake.types import BIGINT, List, Map

# Lambdas whose first parameter is the running value, not an element.
FOLDS: Final = frozenset(("reduce", "list_reduce", "array_reduce", "aggregate", "fold"))


def function_name(name: ast.Name) -> str:
    """The registry's name of a call; a schema of the system is as good as none."""
    if len(name.parts) == 2 and name.parts[0] in ("pg_catalog", "information_schema", "main", "public"):
        return name.last.lower()
    return ".".join(name.parts).lower()


def ordered_arguments(
    arguments: Sequence[ast.Argument], overloads: Sequence[Function], name: str, env: Env
) -> list[ast.Expr | None]:
    """The arguments by position, named ones put in their places; None where a default goes."""
    values: list[ast.Expr | None] = [item.value for item in arguments if item.name is None]
    named = {item.name.lower(): item for item in arguments if item.name is not None}
    if not named:
        return values
    if len(named) + len(values) < len(arguments):
        raise SyntaxFailure(f"an argument of {name} is given twice")
    for overload in overloads:
        names = [parameter.name for parameter in overload.signature.parameters]
        if all(key in names[len(values) :] for key in named):
            last = max(names.index(key) for key in named)
            return values + [named[key].value if key in named else None for key in names[len(values) : last + 1]]
    first = next(iter(named.values()))
    known = [parameter.name for overload in overloads for parameter in overload.signature.parameters]
    raise UndefinedFunction(
        f'function {name} has no argument named "{first.name}"',
        hint=near_name(str(first.name), known),
        position=env.position(first),
    )


def bind_arguments(
    values: Sequence[ast.Expr | None], name: str, overloads: Sequence[Function], env: Env
) -> tuple[Expr | None, ...]:
    """The arguments bound, lambdas over the lists before them."""
    made: list[Expr | None] = []
    for place, value in enumerate(values):
        as_lambda = None if value is None else _as_lambda(value, place, overloads)
        if as_lambda is not None:
            made.append(_bind_lambda(as_lambda, name, [item for item in made if item is not None], env))
        else:
            made.append(None if value is None else env.bind(value))
    return tuple(made)


def _as_lambda(value: ast.Expr, place: int, overloads: Sequence[Function]) -> ast.Lambda | None:
    if isinstance(value, ast.Lambda):
        return value
    if not isinstance(value, ast.Binary) or value.op != "->":
        return None
    if not any(_parameter_at(item, place) == "LAMBDA" for item in overloads):
        return None
    names = value.left.items if isinstance(value.left, ast.Row) else (value.left,)
    parameters = tuple(item.name.last for item in names if isinstance(item, ast.Column) and len(item.name.parts) == 1)
    return ast.Lambda(parameters, value.right, span=value.span) if len(parameters) == len(names) else None


def _parameter_at(function: Function, place: int) -> str:
    parameters = function.signature.parameters
    if place < len(parameters):
        return parameters[place].type
    return parameters[-1].type if function.signature.is_variadic else ""


def _bind_lambda(value: ast.Lambda, name: str, before: Sequence[Expr], env: Env) -> Expr:
    """A lambda whose parameters are elements of the lists before it, then their place; of maps the key, then values."""
    if len(set(value.parameters)) < len(value.parameters):
        raise SyntaxFailure("the parameters of a lambda have different names", position=env.position(value))
    elements = [item.type.of for item in before if isinstance(item.type, List)]
    maps = [item.type for item in before if isinstance(item.type, Map)]
    if maps and not elements:
        elements = [maps[0].key, *(item.value for item in maps)]
    if name in FOLDS and elements:
        starts = [item.type for item in before if not isinstance(item.type, List)]
        elements = [starts[0] if starts else elements[0], *elements]
    types = [elements[place] if place < len(elements) else BIGINT for place in range(len(value.parameters))]
    columns = tuple(env.shared.column(word, type) for word, type in zip(value.parameters, types, strict=True))
    inner = replace(env, locals={**env.locals, **{column.name: column for column in columns}}, aggregates=None)
    body = inner.bind(value.body)
    return bound.Lambda(body.type, columns, body)
