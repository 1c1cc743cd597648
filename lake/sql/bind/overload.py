"""Which overload a call means: each is scored by what the arguments must go through, and the cheapest wins.

    as it is < wider in its family < another family < a string literal read as the type < cast to text
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from lake.errors import AmbiguousFunction, UndefinedFunction, near_name
from lake.sql import ast, bound
from lake.sql.bind.coerce import ARITHMETIC, arithmetic_types, cast, is_numeric, is_string_literal
from lake.sql.bind.fit import GENERIC, VARIABLES, Choice, fit, named_type, parameters_of, unify
from lake.sql.bind.scope import Env
from lake.sql.bound import Expr, Literal
from lake.sql.catalog import Settings
from lake.sql.registry import FUNCTIONS, Function, Scalar, TableFunction
from lake.types import (
    DATE,
    INTERVAL,
    NULL,
    TIMESTAMPTZ,
    Boolean,
    Date,
    Decimal,
    Float,
    Integer,
    Json,
    List,
    Null,
    Text,
    Timestamp,
    Type,
    Uuid,
)

BITWISE: Final = frozenset(("&", "|", "#"))
SPARK: Final = "spark_"
OPERATOR_NAMES: Final = {"**": "^"}
# A string literal is read as the first of these that an overload takes.
LITERAL_COSTS: Final = {Timestamp: 10.0, Date: 10.1, Float: 10.2, Decimal: 10.3, Integer: 10.4}


def dialect_name(name: str, settings: Settings) -> str:
    """The registry's name for a name as written.

    Where the dialect is Spark's, a name that both dialects have means Spark's version, ``spark_NAME``; and that prefix
    reaches names that differ nowhere, too.
    """
    if settings.dialect == "spark" and f"{SPARK}{name}" in FUNCTIONS:
        return f"{SPARK}{name}"
    if name.startswith(SPARK) and name not in FUNCTIONS and name.removeprefix(SPARK) in FUNCTIONS:
        return name.removeprefix(SPARK)
    return name


# --- calls over bound arguments --------------------------------------------------------------------------------------


def call_function(name: str, arguments: Sequence[Expr], env: Env, node: ast.Node | None = None) -> Expr:
    """A call of the scalar function or operator ``name`` over bound arguments."""
    overloads = [item for item in FUNCTIONS.get(name, ()) if isinstance(item, Scalar)]
    if not overloads:
        raise unknown_function(name, [item.type for item in arguments], env.position(node))
    choice = choose(name, overloads, tuple(arguments), env, env.position(node))
    assert isinstance(choice.function, Scalar)
    return bound.Call(choice.type, choice.function, choice.arguments)


def call_operator(op: str, left: Expr, right: Expr, env: Env, node: ast.Node | None = None) -> Expr:
    """Arithmetic and the other operators that are functions of the registry.

    42883  no such operator for these types
    """
    op = OPERATOR_NAMES.get(op, op)
    left, right = _type_literals(op, left, right, env)
    for one, other in ((left, right), (right, left)):
        if one.type.spelled == "Date64" and isinstance(other.type, Integer):
            day = cast(one, DATE)
            moved = call_operator(op, day, right, env, node) if one is left else call_operator(op, left, day, env, node)
            return bound.Cast.of(one.type, moved)
    if op in ARITHMETIC or op in BITWISE:
        types = arithmetic_types(op, left.type, right.type)
        if types is not None:
            arguments = (cast(left, types[0]), cast(right, types[1]))
            overloads = [item for item in FUNCTIONS.get(op, ()) if isinstance(item, Scalar)]
            choice = choose(op, overloads, arguments, env, env.position(node))
            assert isinstance(choice.function, Scalar)
            generic = choice.function.signature.returns in GENERIC
            return bound.Call(types[2] if generic else choice.type, choice.function, choice.arguments)
    return call_function(op, (left, right), env, node)


def _type_literals(op: str, left: Expr, right: Expr, env: Env) -> tuple[Expr, Expr]:
    """String literals beside a typed operand of arithmetic, read as what the operator wants."""
    if op not in ARITHMETIC:
        return left, right
    if is_string_literal(left) and not is_string_literal(right) and not isinstance(right.type, Text | Null | List):
        return cast(left, right.type, time_zone=env.time_zone), right
    if is_string_literal(right) and not is_string_literal(left) and not isinstance(left.type, Text | Null | List):
        temporal = isinstance(left.type, Date | Timestamp)
        if temporal and op in "+-":
            assert isinstance(right, Literal) and isinstance(right.value, str)
            dated = op == "-" and right.value.strip()[:4].isdigit()
            return left, cast(right, left.type if dated else INTERVAL, time_zone=env.time_zone)
        return left, cast(right, left.type, time_zone=env.time_zone)
    return left, right


def unknown_function(name: str, types: Sequence[Type] | None, position: int | None) -> UndefinedFunction:
    """42883 for a name, or for a name with these argument types."""
    if types is None:
        hint = near_name(name, FUNCTIONS)
        return UndefinedFunction(f"function {name} does not exist", hint=hint, position=position)
    if not name[:1].isalpha() and name[:1] != "_":
        words = [_spell(item) for item in types]
        text = f"{words[0]} {name} {words[1]}" if len(words) == 2 else f"{name} {', '.join(words)}"
        return UndefinedFunction(
            f"operator does not exist: {text}",
            hint="No operator matches the given name and argument types. You might need to add explicit type casts.",
            position=position,
        )
    return UndefinedFunction(
        f"function {name}({', '.join(_spell(item) for item in types)}) does not exist",
        hint="No function matches the given name and argument types. You might need to add explicit type casts.",
        position=position,
    )


def _spell(type: Type) -> str:
    return "unknown" if isinstance(type, Null) else type.sql.lower()


CALLS_MAX: Final = 4096
"""Kinds of calls remembered: of the functions of a busy server, some hundreds."""

_CHEAPEST: Final[dict[tuple[object, ...], tuple[tuple[Function, ...], tuple[Function, ...]]]] = {}
"""The cheapest of some overloads by their identities, which stay theirs as they are kept too, and the arguments' types."""


class _Recipe(Struct, frozen=True):
    """What was chosen for a call whose arguments' types tell all.

    overloads  kept, so that their identities stay theirs
    targets    what each argument is cast to
    defaults   literals of the parameters that are left out
    """

    overloads: tuple[Function, ...]
    function: Function
    targets: tuple[Type | None, ...]
    defaults: tuple[Expr, ...]
    type: Type


_RECIPES: Final[dict[tuple[object, ...], _Recipe]] = {}
_PLAIN: Final[frozenset[type[Type]]] = frozenset((Integer, Float, Decimal, Text, Boolean, Date, Timestamp))
"""Types that are made of no others, which may be spelled in ways of their own."""
_PLAIN_FORMS: Final = frozenset((bound.Column, bound.Call, bound.Cast, bound.Case, bound.Compare))
"""Expressions that are no constants."""


# --- overloads -------------------------------------------------------------------------------------------------------


def choose(
    name: str, overloads: Sequence[Function], arguments: Sequence[Expr | None], env: Env, position: int | None
) -> Choice:
    """The cheapest overload for these arguments, with the arguments cast to it.

    42883  none takes them     42725  two take them equally well
    """
    key = _types_alone(overloads, arguments)
    if key is None:
        return _choose(name, overloads, arguments, env, position)
    known = _RECIPES.get(key)
    if known is None:
        choice = _choose(name, overloads, arguments, env, position)
        if not (isinstance(choice.function, Scalar) and choice.function.literal_rule):
            if len(_RECIPES) >= CALLS_MAX:
                _RECIPES.clear()
            _RECIPES[key] = _recipe(tuple(overloads), arguments, choice)
        return choice
    fitted = [
        item if target is None else cast(item, target, time_zone=env.time_zone)
        for item, target in zip(arguments, known.targets)
        if item is not None
    ]
    return Choice(known.function, (*fitted, *known.defaults), known.type)


def _types_alone(overloads: Sequence[Function], arguments: Sequence[Expr | None]) -> tuple[object, ...] | None:
    """What tells a call's overload and type where the arguments' types do; None where values may have a say."""
    kinds: list[object] = []
    for item in arguments:
        if item is None or type(item) not in _PLAIN_FORMS or type(item.type) not in _PLAIN:
            return None
        kinds += (item.type, item.type.spelled)
    return (*map(id, overloads), *kinds)


def _recipe(overloads: tuple[Function, ...], arguments: Sequence[Expr | None], choice: Choice) -> _Recipe:
    fitted = choice.arguments
    targets = tuple([None if new is old else new.type for new, old in zip(fitted, arguments)])
    return _Recipe(overloads, choice.function, targets, fitted[len(arguments) :], choice.type)


def _choose(
    name: str, overloads: Sequence[Function], arguments: Sequence[Expr | None], env: Env, position: int | None
) -> Choice:
    best = _known_cheapest(overloads, arguments)
    if not best:
        raise unknown_function(name, [NULL if item is None else item.type for item in arguments], position)
    if len(best) > 1 and not _all_unknown(arguments):
        types = {_returns_word(item) for item in best}
        if len(types) > 1:
            words = ", ".join(_spell(NULL if item is None else item.type) for item in arguments)
            raise AmbiguousFunction(f"function {name}({words}) is not unique", position=position)
    return fit(best[0], arguments, env)


def _known_cheapest(overloads: Sequence[Function], arguments: Sequence[Expr | None]) -> tuple[Function, ...]:
    """The overloads that cost least, as they were found before for arguments of these types: few calls are of others."""
    kinds: list[object] = []
    for item in arguments:
        if item is None or isinstance(item, bound.Lambda):
            return _cheapest(overloads, arguments)
        kinds += (item.type, item.type.spelled, is_string_literal(item))
    key = (*map(id, overloads), *kinds)
    known = _CHEAPEST.get(key)
    if known is None:
        if len(_CHEAPEST) >= CALLS_MAX:
            _CHEAPEST.clear()
        known = _CHEAPEST[key] = (tuple(overloads), _cheapest(overloads, arguments))
    return known[1]


def _cheapest(overloads: Sequence[Function], arguments: Sequence[Expr | None]) -> tuple[Function, ...]:
    """The overloads that take the arguments at the least cost; none where none takes them."""
    least = math.inf
    best: list[Function] = []
    for overload in overloads:
        cost = _cost(overload, arguments)
        if cost is None or cost > least:
            continue
        if cost < least:
            least, best = cost, []
        best.append(overload)
    return tuple(best)


def _returns_word(function: Function) -> tuple[object, ...]:
    return (function.signature.returns, *[item.type for item in function.signature.parameters])


def _all_unknown(arguments: Sequence[Expr | None]) -> bool:
    """Whether no argument has a type of its own: then the first overload is as good as any."""
    return any(item is None or isinstance(item.type, Null) or is_string_literal(item) for item in arguments)


def takes_count(function: Function, count: int) -> bool:
    """Whether a call may give ``function`` so many arguments."""
    signature = function.signature
    return signature.required <= count and (signature.is_variadic or count <= len(signature.parameters))


def _cost(function: Function, arguments: Sequence[Expr | None]) -> float | None:
    if not takes_count(function, len(arguments)):
        return None
    total = 0.1 if function.signature.is_variadic else 0.0
    for parameter, argument in zip(parameters_of(function, len(arguments)), arguments, strict=True):
        if argument is None:
            if parameter.default is None:
                return None
            continue
        cost = argument_cost(argument, parameter.type)
        if cost is None:
            return None
        total += cost
    variables = unify(function, arguments)
    if variables is None:
        return None
    for parameter, argument in zip(parameters_of(function, len(arguments)), arguments, strict=True):
        # A list as the text that is an element of lists of texts: only where no other overload takes it.
        if argument is not None and isinstance(argument.type, List) and isinstance(variables.get(parameter.type), Text):
            total += 10.0
    return total


def argument_cost(argument: Expr, word: str) -> float | None:
    """What it takes to pass ``argument`` for a parameter of a signature's type word; None where it cannot be."""
    if isinstance(argument, bound.Lambda) or word == "LAMBDA":
        return 0.0 if word == "LAMBDA" and isinstance(argument, bound.Lambda) else None
    return _type_cost(argument.type, word, is_string_literal(argument))


def _type_cost(type: Type, word: str, text: bool) -> float | None:
    if word in VARIABLES:
        return 1.0
    if word == "ANY":
        return 3.0
    if isinstance(type, Null):
        return 4.0
    if word == "ANY[]":
        return 2.9 if isinstance(type, List) else None
    if word.endswith("[]"):
        if text and word[:-2] not in VARIABLES:
            return 11.0  # a literal such as '{a,b}'
        return _type_cost(type.of, word[:-2], text=False) if isinstance(type, List) else None
    match word:
        case "NUMERIC":
            return 0.5 if is_numeric(type) else (11.0 if text else None)
        case "INTEGER":
            return 0.4 if isinstance(type, Integer) else (11.5 if text else None)
        case "DECIMAL":
            return 0.4 if isinstance(type, Decimal) else (4.0 if isinstance(type, Integer) else None)
        case "STRING":
            return 0.0 if isinstance(type, Text) else 1.0 if isinstance(type, Json) else None
        case "TEMPORAL":
            return 0.5 if isinstance(type, Date | Timestamp) else (10.05 if text else None)
        case _:
            return cast_cost(type, named_type(word), text)


def cast_cost(source: Type, target: Type, text: bool) -> float | None:
    """What casting a value of ``source`` to ``target`` without being asked costs; None where it does not happen."""
    if source == target:
        return 0.0
    match source, target:
        case Integer(bits=a), Integer(bits=b):
            return 1.0 + (b - a) / 64 if b > a else 6.0
        case Integer(), Decimal():
            return 2.5
        case Decimal(), Integer(bits=64) if source.spelled == "UInt64":
            return 2.6
        case Integer(), Float(bits=bits):
            return 3.0 if bits == 64 else 3.5
        case Decimal(), Decimal():
            return 1.5
        case Decimal(), Float(bits=bits):
            return 3.0 if bits == 64 else 3.5
        case Float(bits=a), Float(bits=b):
            return 1.0 if b > a else 5.0
        case Date(), Timestamp(zoned=zoned):
            return 3.0 if zoned else 2.0
        case Timestamp(zoned=a), Timestamp():
            return 6.0 if a else 2.5
        case Timestamp(), Date():
            return 9.0
        case (Json() | Uuid(), Text()) | (Text(), Json()):
            return 1.0
        case _ if text:
            return LITERAL_COSTS.get(target.__class__, 10.5) + (0.2 if target == TIMESTAMPTZ else 0.0)
        case _, Text():
            return None if isinstance(source, Boolean | List) and isinstance(target, Json) else 15.0
        case _:
            return None


def table_overloads(name: str) -> list[TableFunction]:
    """The overloads of ``name`` that stand in FROM."""
    return [item for item in FUNCTIONS.get(name, ()) if isinstance(item, TableFunction)]
