"""Aggregates of distinct values in two steps: the values are groups first, and what stands beside them is added up in parts.

    Aggregate: groups [a] [count(DISTINCT b), count(*), avg(c)]

    Project: a, count, total, sum / number
    └─ Aggregate: groups [a] [count = count(b), total = sum(n), sum = sum(s), number = sum(m)]
       └─ Aggregate: groups [a, b] [n = count(*), s = sum(c), m = count(c)]

One hash table over (a, b) then does what a table of groups and a table of values in it would do, and it is one that workers
divide between them. Parts are taken only of what cannot overflow before the whole does.
"""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from lake.sql.bound import AggregateCall, Call, Cast, Column, Expr
from lake.sql.optimizer.planning import Planning
from lake.sql.plan import Aggregate, Plan, Project
from lake.sql.registry import FUNCTIONS, Function
from lake.sql.registry import Aggregate as AggregateFunction
from lake.types import BIGINT, DOUBLE, Decimal, Integer, Type

SAFE_BITS = 32
"""Integers so wide that sums of all rows a table can have stay within 64 bits."""


def in_two_steps(node: Aggregate, planning: Planning) -> Plan | None:
    """``node`` by way of its distinct values; None where that cannot be or there are none."""
    distinct = [call for _, call in node.aggregates if call.distinct]
    others = [call for _, call in node.aggregates if not call.distinct]
    if not distinct or not all(_is_plain(call) and call.arguments == distinct[0].arguments for call in distinct):
        return None
    if others and (not node.groups or not all(has_parts(call) for call in others)):
        return None
    arguments = distinct[0].arguments
    values = tuple(planning.column(expr.type, "value") for expr in arguments)
    inner = tuple((planning.copy(column), expr) for column, expr in node.groups)
    parts = Parts(planning)
    over_values = tuple(
        (column, replace(call, arguments=values, distinct=False)) for column, call in node.aggregates if call.distinct
    )
    beside, answers = in_parts(
        tuple((column, call) for column, call in node.aggregates if not call.distinct), parts, planning
    )
    distinct_rows = Aggregate((*inner, *zip(values, arguments, strict=True)), parts.calls(), node.input)
    groups = tuple((column, key) for (column, _), (key, _) in zip(node.groups, inner, strict=True))
    whole = Aggregate(groups, (*over_values, *beside), distinct_rows)
    if not answers and whole.columns == node.columns:
        return whole
    return Project(node.columns, tuple(answers.get(column.id, column) for column in node.columns), whole)


def in_parts(
    aggregates: tuple[tuple[Column, AggregateCall], ...], parts: Parts, planning: Planning
) -> tuple[tuple[tuple[Column, AggregateCall], ...], dict[int, Expr]]:
    """The second step's aggregates over ``parts`` of the first, and what stands for a column that they do not answer."""
    answers: dict[int, Expr] = {}
    outer: list[tuple[Column, AggregateCall]] = []
    for column, call in aggregates:
        if call.function.name == "avg":
            total, number = (planning.column(BIGINT, name) for name in ("sum", "number"))
            (argument,) = call.arguments
            outer += [
                (total, _added(BIGINT, parts.column(AggregateCall(BIGINT, _of_numbers("sum"), (argument,))))),
                (number, _added(BIGINT, parts.column(AggregateCall(BIGINT, _counting(), (argument,))))),
            ]
            quotient = Call(DOUBLE, FUNCTIONS["/"][0], (Cast(DOUBLE, total, False), Cast(DOUBLE, number, False)))  # type: ignore[arg-type]
            answers[column.id] = quotient
        else:
            outer.append((column, of_parts(call, parts.column(call))))
    return tuple(outer), answers


class Parts(Struct):
    """The aggregates of the first step, each made once."""

    planning: Planning
    found: dict[tuple[str, tuple[Expr, ...]], tuple[Column, AggregateCall]] = field(default_factory=dict)

    def column(self, call: AggregateCall) -> Column:
        """What the first step answers for a call."""
        key = (call.function.name, call.arguments)
        if key not in self.found:
            self.found[key] = (self.planning.column(call.type, call.function.name), call)
        return self.found[key][0]

    def calls(self) -> tuple[tuple[Column, AggregateCall], ...]:
        """All of them."""
        return tuple(self.found.values())


def _is_plain(call: AggregateCall) -> bool:
    return call.filter is None and not call.order and not call.function.keeps_order and bool(call.arguments)


def has_parts(call: AggregateCall) -> bool:
    """Whether the aggregate of all rows follows from the aggregates of some of them."""
    if call.filter is not None or call.order:
        return False
    types = [argument.type for argument in call.arguments]
    is_narrow = len(types) == 1 and isinstance(types[0], Integer) and types[0].bits <= SAFE_BITS
    match call.function.name:
        case "count":
            return len(types) <= 1
        case "min" | "max":
            return len(types) == 1
        case "sum":
            return is_narrow or (len(types) == 1 and isinstance(types[0], Decimal) and types[0].is_short)
        case "avg":
            return is_narrow and call.type == DOUBLE
        case _:
            return False


def of_parts(call: AggregateCall, part: Expr) -> AggregateCall:
    """The aggregate of all rows, from a column of parts."""
    if call.function.name in ("count", "sum"):
        return _added(call.type, part)
    return replace(call, arguments=(part,))


def _added(type: Type, part: Expr) -> AggregateCall:
    return AggregateCall(type, _of_numbers("sum"), (part,))


def _of_numbers(name: str) -> AggregateFunction:
    """The overload of an aggregate that takes any number."""
    return overload(name, "NUMERIC")


def _counting() -> AggregateFunction:
    return overload("count", "ANY")


def overload(name: str, word: str) -> AggregateFunction:
    """The first overload of an aggregate whose first parameter is spelled ``word``."""

    def takes(function: Function) -> bool:
        parameters = function.signature.parameters
        return bool(parameters) and parameters[0].type == word

    found = next(function for function in FUNCTIONS[name] if takes(function))
    assert isinstance(found, AggregateFunction)
    return found
