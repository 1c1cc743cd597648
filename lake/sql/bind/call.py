"""Calls as the text writes them: scalar, aggregate or window function, lambdas and list comprehensions."""

from __future__ import annotations

from typing import Final

from lake.arrow_names import arrow_spelling
from lake.errors import FeatureNotSupported, SyntaxFailure, WrongObjectType
from lake.sql import ast, bound
from lake.sql.bind import aggregate, enums, generators, unnest, window
from lake.sql.bind.arguments import bind_arguments, function_name, ordered_arguments
from lake.sql.bind.expr import compare, negate
from lake.sql.bind.overload import call_function, call_operator, choose, dialect_name, takes_count, unknown_function
from lake.sql.bind.scope import Env, binds
from lake.sql.bound import Expr, Literal, MakeList
from lake.sql.registry import FUNCTIONS, Aggregate, Generator, Scalar, Window
from lake.types import BOOLEAN, TEXT, Interval, List, Type


@binds(ast.Call)
def bind_call(call: ast.Call, env: Env) -> Expr:
    """A call of a scalar, aggregate or window function."""
    name = dialect_name(function_name(call.name), env.shared.settings)
    if name in ("grouping", "grouping_id"):
        return aggregate.bind_grouping(call, env)
    if name == "overlaps" and len(call.arguments) == 4:
        return bind_overlaps(call, env)
    if name in unnest.NAMES:
        return unnest.bind_unnest_call(call, name, env)
    if name in enums.FUNCTIONS:
        call = enums.with_labels(call, name, env)
    overloads = FUNCTIONS.get(name)
    if not overloads:
        raise unknown_function(name, None, env.position(call))
    kinds = {item.__class__ for item in overloads}
    if Generator in kinds:
        return generators.bind_generator(call, name, env)
    if call.over is not None and kinds & {Window, Aggregate}:
        return window.bind_window_call(call, name, env)
    if Aggregate in kinds and (Scalar not in kinds or _looks_aggregate(call, name)):
        return aggregate.bind_aggregate_call(call, name, env)
    if Scalar in kinds:
        _refuse_decorations(call, name, env)
        return bind_scalar_call(call, name, env)
    if Window in kinds:
        raise WrongObjectType(f"window function {name} requires an OVER clause", position=env.position(call))
    raise FeatureNotSupported(f"table function {name}() outside FROM is not supported", position=env.position(call))


def bind_scalar_call(call: ast.Call, name: str, env: Env) -> Expr:
    """A call of a scalar function with its arguments as written."""
    overloads = [item for item in FUNCTIONS[name] if isinstance(item, Scalar)]
    values = ordered_arguments(call.arguments, overloads, name, env)
    if name == "arrow_typeof" and len(values) > 1:
        raise unknown_function(name, [env.bind(value).type for value in values if value], env.position(call))
    arguments = bind_arguments(values, name, overloads, env)
    if name in CONCATENATIONS:
        arguments = _of_one_depth(arguments)
    choice = choose(name, overloads, arguments, env, env.position(call))
    assert isinstance(choice.function, Scalar)
    if name == "arrow_typeof":
        # Rules may put another expression of an equal type in the argument's place, spelled otherwise.
        value = choice.arguments[0]
        return bound.Call(choice.type, choice.function, (value, Literal(TEXT, arrow_spelling(value.type))))
    return bound.Call(choice.type, choice.function, choice.arguments)


CONCATENATIONS: Final = frozenset(("array_concat", "array_cat", "list_cat", "list_concat"))


def _of_one_depth(arguments: tuple[Expr | None, ...]) -> tuple[Expr | None, ...]:
    """Lists of fewer dimensions than the deepest wrapped until they have as many: a row among rows."""
    deepest = max((_depth(item.type) for item in arguments if item is not None), default=0)
    made: list[Expr | None] = []
    for item in arguments:
        while item is not None and isinstance(item.type, List) and _depth(item.type) < deepest:
            item = MakeList(List(item.type), (item,))
        made.append(item)
    return tuple(made)


def _depth(type: Type) -> int:
    return 1 + _depth(type.of) if isinstance(type, List) else 0


def _looks_aggregate(call: ast.Call, name: str) -> bool:
    """Whether a name that is an aggregate and a scalar function too stands for the aggregate here."""
    overloads = [item for item in FUNCTIONS[name] if isinstance(item, Scalar)]
    if call.distinct or call.order or call.within_group or call.filter is not None:
        return True
    return not any(takes_count(item, len(call.arguments)) for item in overloads)


def _refuse_decorations(call: ast.Call, name: str, env: Env) -> None:
    for given, words in (
        (call.distinct, "DISTINCT"),
        (call.filter is not None, "FILTER"),
        (bool(call.within_group), "WITHIN GROUP"),
        (bool(call.order), "ORDER BY"),
    ):
        if given:
            raise WrongObjectType(
                f"{words} specified, but {name} is not an aggregate function", position=env.position(call)
            )
    if call.over is not None:
        raise WrongObjectType(
            f"OVER specified, but {name} is not a window function nor an aggregate function",
            position=env.position(call),
        )


def bind_overlaps(call: ast.Call, env: Env) -> Expr:
    """``(a, b) OVERLAPS (c, d)``: half-open spans that share a moment; a second value may be an interval.

    A span written backwards is turned around, and one of no length is its moment. A span with one end alone begins
    there: the answer is NULL where it hangs on the other end.
    """
    null = Literal(BOOLEAN, None)
    ends: list[tuple[Expr, Expr]] = []
    for place in (0, 2):
        first = env.bind(call.arguments[place].value)
        last = env.bind(call.arguments[place + 1].value)
        if isinstance(last.type, Interval):
            last = call_operator("+", first, last, env, call)
        pair = compare("<", first, last, env, call)
        first, last = pair.left, pair.right
        whens = ((pair, last), (compare(">=", first, last, env, call), first))
        end = bound.Case(first.type, whens, Literal(first.type, None))
        ends.append((call_function("least", (first, last), env, call), end))
    (low, high), (other_low, other_high) = ends

    def reaches(start: Expr, end: Expr, own_end: Expr) -> Expr:
        unknown = bound.And(BOOLEAN, (bound.IsNull(BOOLEAN, own_end), null))
        return bound.Or(BOOLEAN, (compare("<", start, end, env, call), unknown))

    both = bound.And(BOOLEAN, tuple(negate(bound.IsNull(BOOLEAN, end), True) for end in (high, other_high)))
    answers = (
        (compare(">", low, other_low, env, call), reaches(low, other_high, high)),
        (compare("<", low, other_low, env, call), reaches(other_low, high, other_high)),
        (compare("=", low, other_low, env, call), bound.Or(BOOLEAN, (both, null))),
    )
    return bound.Case(BOOLEAN, answers, null)


@binds(ast.Lambda)
def bind_stray_lambda(value: ast.Lambda, env: Env) -> Expr:
    """42601: a lambda stands only in a call of a function that takes one."""
    raise SyntaxFailure("a lambda is only an argument of a function that takes one", position=env.position(value))


@binds(ast.ListComprehension)
def bind_comprehension(value: ast.ListComprehension, env: Env) -> Expr:
    """``[e FOR x IN l IF c]``: list_transform over list_filter."""
    source = value.source
    if value.condition is not None:
        source = _list_call("list_filter", source, value.variable, value.condition, value)
    return env.bind(_list_call("list_transform", source, value.variable, value.body, value))


def _list_call(name: str, source: ast.Expr, variable: str, body: ast.Expr, node: ast.Node) -> ast.Call:
    function = ast.Lambda((variable,), body, span=node.span)
    return ast.Call(ast.Name((name,)), (ast.Argument(source), ast.Argument(function)), span=node.span)
