"""Arguments cast to the overload that takes them, and the type that it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lake.arrow_names import common_spelling
from lake.errors import UndefinedObject
from lake.sql.bind.coerce import Mixed, cast, is_string_literal, merged_type
from lake.sql.bind.scope import Env
from lake.sql.bound import Expr, Literal
from lake.sql.registry import Function, Parameter, Scalar, TableFunction
from lake.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    NULL,
    TEXT,
    TIMESTAMP,
    Bytes,
    Decimal,
    Integer,
    Interval,
    List,
    Null,
    Text,
    Time,
    Timestamp,
    Type,
    parse_type_name,
)

FIRST_OF: Final = frozenset(("coalesce", "ifnull", "nvl", "nvl2"))
"""Functions that pick one of their arguments: text among numbers makes text of all, elsewhere it is read as numbers."""
VARIABLES: Final = frozenset(("T", "U"))
GENERIC: Final = frozenset(("ANY", "NUMERIC", "INTEGER", "DECIMAL", "TEMPORAL"))


class Choice(Struct, frozen=True):
    """An overload with its arguments cast to it, defaults filled in, and the type it answers."""

    function: Function
    arguments: tuple[Expr, ...]
    type: Type


def parameters_of(function: Function, count: int) -> list[Parameter]:
    """The parameter of each of ``count`` arguments, a variadic one as often as needed."""
    parameters = list(function.signature.parameters)
    if function.signature.is_variadic:
        last = parameters.pop()
        parameters += [last] * max(0, count - len(parameters))
    return parameters[:count]


_NAMED: Final[dict[str, Type]] = {}


def named_type(word: str) -> Type:
    """The SQL type a signature's word names."""
    found = _NAMED.get(word)
    if found is None:
        head, _, rest = word.partition("(")
        numbers = tuple(int(part) for part in rest.rstrip(")").split(",") if part.strip())
        try:
            found = List(named_type(word[:-2])) if word.endswith("[]") else parse_type_name(head.strip(), numbers)
        except UndefinedObject:
            raise AssertionError(f"a signature names the type {word}, which does not exist") from None
        _NAMED[word] = found
    return found


def unify(function: Function, arguments: Sequence[Expr | None]) -> dict[str, Type] | None:
    """What T and U stand for in this call; None where the arguments have no common type."""
    bindings: dict[str, list[Expr]] = {}
    for parameter, argument in zip(parameters_of(function, len(arguments)), arguments, strict=True):
        word, depth = parameter.type, 0
        while word.endswith("[]"):
            word, depth = word[:-2], depth + 1
        if word not in VARIABLES or argument is None:
            continue
        type: Type = argument.type
        for _ in range(depth):
            type = type.of if isinstance(type, List) else NULL
        bindings.setdefault(word, []).append(argument if depth == 0 else Literal(type, None))
    found: dict[str, Type] = {}
    for word, exprs in bindings.items():
        mixed = Mixed.TEXT if function.name in FIRST_OF else Mixed.NUMBERS
        type_or_none = merged_type(exprs, mixed)
        if type_or_none is None:
            return None
        found[word] = type_or_none
    return found


def fit(function: Function, arguments: Sequence[Expr | None], env: Env) -> Choice:
    """The arguments cast to an overload that takes them, its defaults added, and the type of its result."""
    variables = unify(function, arguments)
    assert variables is not None
    fitted: list[Expr] = []
    for parameter, argument in zip(parameters_of(function, len(arguments)), arguments, strict=True):
        if argument is None:
            fitted.append(_default(parameter))
        else:
            fitted.append(_pass(argument, parameter.type, variables, env))
    if not function.signature.is_variadic:
        fitted += [_default(item) for item in function.signature.parameters[len(arguments) :]]
    types = tuple(item.type for item in fitted)
    if isinstance(function, Scalar) and function.literal_rule is not None:
        return Choice(function, tuple(fitted), function.literal_rule(tuple(fitted)))
    return Choice(function, tuple(fitted), _result(function, types, variables))


def _pass(argument: Expr, word: str, variables: dict[str, Type], env: Env) -> Expr:
    target = _target(argument, word, variables)
    return argument if target is None else cast(argument, target, time_zone=env.time_zone)


def _target(argument: Expr, word: str, variables: dict[str, Type]) -> Type | None:
    """The type ``argument`` is cast to for a parameter of type ``word``; None where it is passed as it is."""
    if word in VARIABLES:
        return variables[word]
    if word in ("ANY", "LAMBDA"):
        return None
    if word.endswith("[]"):
        inner = argument.type.of if isinstance(argument.type, List) else NULL
        target = _target(Literal(inner, None), word[:-2], variables)
        return List(target) if target is not None else (None if isinstance(argument.type, List) else List(NULL))
    unknown = is_string_literal(argument) or isinstance(argument.type, Null)
    match word:
        case "NUMERIC":
            return DOUBLE if unknown else None
        case "INTEGER":
            return BIGINT if unknown else None
        case "TEMPORAL":
            return TIMESTAMP if unknown else None
        case "DECIMAL":
            if isinstance(argument.type, Integer):
                return Decimal(20 if argument.type.bits == 64 else argument.type.digits, 0)
            return Decimal(38, 10) if unknown else None
        case _:
            return named_type(word)


def _default(parameter: Parameter) -> Expr:
    """The literal of a parameter's default, of the parameter's type."""
    assert parameter.default is not None, parameter
    text = parameter.default.strip()
    word = text.lower()
    value: Literal
    if word == "null":
        value = Literal(NULL, None)
    elif word in ("true", "false"):
        value = Literal(BOOLEAN, word == "true")
    elif text.startswith("'"):
        value = Literal(TEXT, text[1:-1].replace("''", "'"))
    elif word.lstrip("-").isdigit():
        value = Literal(BIGINT, int(text))
    else:
        value = Literal(DOUBLE, float(text))
    if parameter.type in VARIABLES or parameter.type in GENERIC:
        return value
    return cast(value, named_type(parameter.type))


def _result(function: Function, types: tuple[Type, ...], variables: dict[str, Type]) -> Type:
    if isinstance(function, TableFunction):
        return NULL
    if function.return_rule is not None:
        return function.return_rule(types)
    word, depth = function.signature.returns, 0
    while word.endswith("[]"):
        word, depth = word[:-2], depth + 1
    if word in VARIABLES:
        found = variables.get(word, NULL)
    elif word in GENERIC:
        places = [place for place, item in enumerate(function.signature.parameters) if item.type == word]
        found = types[places[0]] if places and places[0] < len(types) else NULL
    else:
        found = _spelled_as(named_type(word), types)
    for _ in range(depth):
        found = List(found)
    return _spelled_as(found, types) if depth else found


def _spelled_as(result: Type, types: tuple[Type, ...]) -> Type:
    """A text, moment or list that a function answers, spelled as its arguments of that type are."""
    if not isinstance(result, Text | Bytes | Timestamp | Time | Interval | List):
        return result
    alike = [item for item in types if item == result]
    found: Type = result if not alike else alike[0]
    for item in alike[1:]:
        found = common_spelling(found, item)
    if found.spelled.startswith("FixedSizeList"):
        return replace(found, spelled="List(non-null {})" if "non-null" in found.spelled else "")
    return result if found.spelled.startswith(("Dictionary", "RunEndEncoded", "FixedSizeBinary")) else found
