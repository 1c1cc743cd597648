"""Aggregation in part below the joins that only add columns to group by: rows are fewer before they are made wide.

    Aggregate: groups [c_name, d_year] [sum(s_price)]     Aggregate: groups [c_name, d_year] [sum(part)]
    └─ Join: inner, s_customer = c_customer               └─ Join: inner, s_customer = c_customer
       ├─ Join: sales with dates                             ├─ Aggregate: groups [s_customer, d_year] [part = sum(s_price)]
       └─ Scan: customer                                     │  └─ Join: sales with dates
                                                             └─ Scan: customer

Rows of one part agree in all that is used above: they meet the same partners, as often, and end in the same group. Parts are
taken only of aggregates that add up to the whole (`partial_aggregates.py`), and only where they are thought much fewer. Of
``sum(CASE WHEN d_day = 'Sunday' THEN s_price END)`` a part is ``sum(s_price)``, and the choice is made of parts.
Source: Yan and Larson, "Eager Aggregation and Lazy Aggregation", VLDB 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lake.sql import bound, traits
from lake.sql import plan as plans
from lake.sql.bound import AggregateCall, Case, Cast, Column, Expr, Literal
from lake.sql.optimizer.expressions import columns_in, is_volatile
from lake.sql.optimizer.partial_aggregates import Parts, has_parts, in_parts, of_parts
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.statistics import groups_of, rows_of
from lake.sql.plan import Aggregate, Filter, Join, JoinKind, Plan, Project
from lake.types import Decimal, Integer, Text

ROWS_MIN: Final = 100_000.0
"""Rows below which another aggregation is not worth its start."""

GAIN_MIN: Final = 1.5
"""How many times the work must be less: what groups there are is a guess."""

SHARE_MAX: Final = 0.3
"""Groups for each row above which parts are not taken: joins above may drop more rows than is thought."""

TEXT_WEIGHT: Final = 3.0
"""What a text as a key costs, a number being 1."""

CHOICE_WEIGHT: Final = 1.0
"""What it costs to choose a row's value for an aggregate."""

KEEPING_LEFT: Final = frozenset((JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI))


class Place(Struct, frozen=True):
    """A node of the input whose rows may be aggregated first.

    needed   ids of the columns used above it
    work     rows of the joins above it
    put      the input with another plan in its place
    """

    plan: Plan
    needed: frozenset[int]
    work: float
    put: Callable[[Plan], Plan]


def aggregate_early(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with aggregates taken in part below joins where that is less work."""

    def change(node: Plan) -> Plan:
        return _early(node, planning) if isinstance(node, Aggregate) else node

    return traits.rewrite_where(plan, traits.AGGREGATE, change)


def _early(node: Aggregate, planning: Planning) -> Plan:
    if not node.groups or not node.aggregates or rows_of(node.input, planning) < ROWS_MIN:
        return node
    if any(call.distinct or not has_parts(_chosen_of(call)) for _, call in node.aggregates):
        return node
    if any(is_volatile(expr) for expr in plans.expressions_of(node)):
        return node
    arguments = frozenset(id for _, call in node.aggregates for id in bound.columns_of(_chosen_of(call).arguments))
    keys = frozenset(id for _, key in node.groups for id in bound.columns_of(key))
    best: Place | None = None
    whole = _weight(tuple(key for _, key in node.groups)) * rows_of(node.input, planning)
    least = 1.0 / GAIN_MIN
    for place in _places(node.input, arguments, keys, planning):
        place = _with_choices(place, node)
        columns = _kept(place)
        rows = max(rows_of(place.plan, planning), 1.0)
        share = groups_of(place.plan, columns, planning) / rows
        choices = sum(_is_split(call, place) for _, call in node.aggregates)
        before = max(whole + place.work + CHOICE_WEIGHT * choices * rows_of(node.input, planning), 1.0)
        after = _weight(columns) * rows + share * before
        if rows >= ROWS_MIN and share <= SHARE_MAX and after / before < least:
            best, least = place, after / before
    return node if best is None else _in_parts(node, best, planning)


def _weight(keys: tuple[Expr, ...]) -> float:
    return 1.0 + sum(TEXT_WEIGHT if isinstance(key.type, Text) else 1.0 for key in keys)


def _kept(place: Place) -> tuple[Column, ...]:
    return tuple(column for column in place.plan.columns if column.id in place.needed)


def _chosen_of(call: AggregateCall) -> AggregateCall:
    """``sum(x)`` of ``sum(CASE WHEN c THEN x ELSE 0 END)``, and so with NULL instead of 0; any other call as it is.

    Only of columns, maybe with more digits: what is computed of rows that are not chosen could fail.
    """
    match call.arguments:
        case (Case(whens=((_, Column() | Cast() as value),), otherwise=Literal(value=None | 0 as other)),):
            if isinstance(value, Cast) and isinstance(value.operand, Column) and _has_more_digits(value):
                value = value.operand
            is_sum = call.function.name == "sum"
            if isinstance(value, Column) and (is_sum or (call.function.name in ("min", "max") and other is None)):
                return replace(call, arguments=(value,))
    return call


def _has_more_digits(cast: Cast) -> bool:
    """Whether a cast changes nothing but how many digits there may be, so that sums have one type before and after."""
    to, of = cast.type, cast.operand.type
    if isinstance(to, Integer) and isinstance(of, Integer):
        return to.bits >= of.bits
    return isinstance(to, Decimal) and isinstance(of, Decimal) and to.scale == of.scale and to.precision >= of.precision


def _is_split(call: AggregateCall, place: Place) -> bool:
    """Whether parts are of what the call chooses from: what it chooses by is not all there, or it has no parts itself."""
    return not bound.columns_of(call.arguments) <= place.plan.ids or not has_parts(call)


def _with_choices(place: Place, node: Aggregate) -> Place:
    """The place with the columns that choices above it are made by."""
    split = tuple(call.arguments[0] for _, call in node.aggregates if _is_split(call, place))
    conditions = tuple(condition for case in split if isinstance(case, Case) for condition, _ in case.whens)
    return replace(place, needed=place.needed | bound.columns_of(conditions))


def _places(plan: Plan, arguments: frozenset[int], needed: frozenset[int], planning: Planning) -> Iterator[Place]:
    """The nodes below joins of ``plan`` that have all the ``arguments``, the highest first."""
    work = 0.0
    put: Callable[[Plan], Plan] = _itself
    while True:
        match plan:
            case Filter(conjuncts=conjuncts, input=source) if not any(is_volatile(item) for item in conjuncts):
                needed |= bound.columns_of(conjuncts)
                put = _through(put, plan, source)
            case Project(outputs=outputs, exprs=exprs, input=source) if outputs == exprs:
                put = _through(put, plan, source)
            case Join(kind=kind, left=left, right=right) if kind in KEEPING_LEFT:
                source = left
                if kind is JoinKind.INNER and not arguments <= left.ids:
                    source = right
                if not arguments <= source.ids or any(is_volatile(item) for item in plan.conditions):
                    return
                needed |= bound.columns_of(plan.conditions)
                work += rows_of(plan, planning)
                put = _through(put, plan, source)
                yield Place(source, needed, work, put)
            case _:
                return
        plan = source


def _itself(plan: Plan) -> Plan:
    return plan


def _through(put: Callable[[Plan], Plan], node: Plan, source: Plan) -> Callable[[Plan], Plan]:
    """What puts a plan in the place of ``source``, an input of ``node``, which ``put`` puts in its own."""

    def exchange(made: Plan) -> Plan:
        if isinstance(node, Project):
            # A selection of columns: those of the part take the place of its arguments.
            there = made.ids
            kept = tuple(column for column in node.outputs if column.id in there)
            chosen = (*kept, *(column for column in made.columns if column.id not in columns_in(node.outputs)))
            return put(replace(node, outputs=chosen, exprs=chosen, input=made))
        return put(plans.with_inputs(node, lambda child: made if child is source else child))

    return exchange


def _in_parts(node: Aggregate, place: Place, planning: Planning) -> Plan:
    parts = Parts(planning)
    whole_calls = tuple(pair for pair in node.aggregates if not _is_split(pair[1], place))
    outer, answers = in_parts(whole_calls, parts, planning)
    outer += tuple((column, _choosing(call, parts)) for column, call in node.aggregates if _is_split(call, place))
    groups = tuple((column, column) for column in _kept(place))
    early = Aggregate(groups, parts.calls(), place.plan)
    whole = replace(node, aggregates=outer, input=place.put(early))
    if not answers and whole.columns == node.columns:
        return whole
    return Project(node.columns, tuple(answers.get(column.id, column) for column in node.columns), whole)


def _choosing(call: AggregateCall, parts: Parts) -> AggregateCall:
    """The aggregate of all rows that makes its choice among parts."""
    (case,) = call.arguments
    assert isinstance(case, Case) and isinstance(case.otherwise, Literal)
    part = parts.column(_chosen_of(call))
    ((condition, _),) = case.whens
    return of_parts(call, Case(part.type, ((condition, part),), Literal(part.type, case.otherwise.value)))
