"""The side with fewer rows is built into the hash table: the right one, which the other side's rows then probe.

    Join: left, 100 rows with 6,000,000       Join: right, 6,000,000 rows with 100

INNER and FULL swap freely; LEFT and RIGHT are each other's mirror. The other joins answer left rows, so their right side is
built whatever its size.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from lake.sql import plan as plans
from lake.sql import traits
from lake.sql.optimizer.copies import aligned
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.statistics import note_cte, rows_of
from lake.sql.plan import Join, JoinKind, Materialize, Plan, Recursion, SetOperation

MIRRORED: Final = {
    JoinKind.INNER: JoinKind.INNER,
    JoinKind.FULL: JoinKind.FULL,
    JoinKind.LEFT: JoinKind.RIGHT,
    JoinKind.RIGHT: JoinKind.LEFT,
}

ADVANTAGE: Final = 1.2
"""How many times larger the right side must be thought before an outer join is mirrored."""


def choose_sides(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with the smaller side of each join on the right."""
    if not traits.of_plan(plan) & traits.JOIN:
        return plan
    if type(plan) is Materialize:
        definition = aligned(choose_sides(plan.definition, planning), plan.definition.columns)
        note_cte(plan.cte, definition, planning)
        return replace(plan, definition=definition, input=choose_sides(plan.input, planning))
    if type(plan) is SetOperation or type(plan) is Recursion:
        return plans.with_inputs(plan, lambda child: aligned(choose_sides(child, planning), child.columns))
    plan = plans.with_inputs(plan, lambda child: choose_sides(child, planning))
    if type(plan) is not Join or plan.kind not in MIRRORED:
        return plan
    factor = 1.0 if plan.kind is JoinKind.INNER else ADVANTAGE
    if rows_of(plan.right, planning) <= rows_of(plan.left, planning) * factor:
        return plan
    return replace(plan, kind=MIRRORED[plan.kind], left=plan.right, right=plan.left)
