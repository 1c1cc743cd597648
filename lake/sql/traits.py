"""What stands in an expression or a plan, as bits: worked out once for each node and kept with it.

    l_quantity + random()                      COLUMN | VOLATILE
    Filter: l_quantity > random()
    └─ Scan: lineitem                          COLUMN | VOLATILE

Rules ask it before they look: most parts of most plans hold nothing that a rule changes, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import force_setattr

from lake.sql import plan as plans
from lake.sql.bound import SUBQUERIES, Call, Column, Expr, Lambda, children, expressions_in
from lake.sql.plan import (
    Aggregate,
    AsofJoin,
    CteScan,
    Distinct,
    Join,
    Limit,
    Materialize,
    Plan,
    Recursion,
    Sample,
    SetOperation,
    Sort,
    input_names,
)

COLUMN: Final = 1
LAMBDA: Final = 2
SUBQUERY: Final = 4
VOLATILE: Final = 8
"""Of expressions: the last is a call that may answer differently each time it is run."""

JOIN: Final = 32
DEPENDENT: Final = 64
AGGREGATE: Final = 128
ORDER: Final = 256
DEFINITION: Final = 512
POSITIONS: Final = 1024
SAMPLE: Final = 2048

_TRAITS: dict[type[Plan], int] = {
    Join: JOIN,
    AsofJoin: JOIN,
    Aggregate: AGGREGATE,
    Sort: ORDER,
    Limit: ORDER,
    Distinct: ORDER,
    CteScan: DEFINITION,
    Materialize: DEFINITION | POSITIONS,
    Recursion: DEFINITION | POSITIONS,
    SetOperation: POSITIONS,
    Sample: SAMPLE,
}
"""Of plans: ORDER is what limits, orders or tells rows apart, POSITIONS what reads columns by place."""


_OWN: dict[type[Expr], int] = {Column: COLUMN, Lambda: LAMBDA, **dict.fromkeys(SUBQUERIES, SUBQUERY)}


def has_trait(trait: int, *values: object) -> bool:
    """Whether one of these traits stands anywhere in expressions, calls and sort keys; subqueries' plans are not entered."""
    for value in values:
        for expr in expressions_in(value):
            if of_expression(expr) & trait:
                return True
    return False


def of_expression(expr: Expr) -> int:
    """What stands in ``expr``: worked out once for each node, from what is known of those below."""
    if expr.traits is not None:
        return expr.traits
    unknown, stack = list[Expr](), [expr]
    while stack:
        node = stack.pop()
        if node.traits is None:
            unknown.append(node)
            stack += children(node)
    for node in reversed(unknown):
        found = _OWN.get(type(node), 0)
        if type(node) is Call and node.function.volatility == "volatile":
            found = VOLATILE
        for child in children(node):
            found |= child.traits or 0
        force_setattr(node, "traits", found)
    return expr.traits or 0


def of_plan(plan: Plan) -> int:
    """The traits of the nodes and expressions of ``plan`` and below: rules leave parts alone that hold nothing for them."""
    if plan.traits is not None:
        return plan.traits
    found = _TRAITS.get(type(plan), 0)
    if type(plan) is Join and plan.dependent:
        found |= DEPENDENT
    for expr in plans.expressions_of(plan):
        found |= of_expression(expr)
    for name in input_names(type(plan)):
        found |= of_plan(getattr(plan, name))
    force_setattr(plan, "traits", found)
    return found


def rewrite_where(plan: Plan, trait: int, rule: Callable[[Plan], Plan]) -> Plan:
    """``plan`` with ``rule`` applied to nodes that have ``trait`` in or below them, inputs first."""
    if not of_plan(plan) & trait:
        return plan
    return rule(plans.with_inputs(plan, lambda child: rewrite_where(child, trait, rule)))
