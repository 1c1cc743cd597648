"""Scans answer only columns that the query names, before any other rule carries the rest along.

    Aggregate: sum(l_quantity#5)              Aggregate: sum(l_quantity#5)
    └─ Scan: lineitem, 16 columns             └─ Scan: lineitem [l_quantity#5]

Scans of one table keep the same columns, those that any of them needs, so that equal parts of a plan stay equal; and a
table's keys, which tell that rows are unique. What a single scan needs of them is left to ``prune_columns``.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from lake.sql import bound, traits
from lake.sql import plan as plans
from lake.sql.optimizer.expressions import map_plans
from lake.sql.optimizer.planning import Planning
from lake.sql.plan import Distinct, Materialize, Plan, Recursion, Scan, SetOperation

WHOLE: Final = frozenset((Distinct, Materialize, Recursion, SetOperation))
"""Nodes that take all columns of their inputs, by position or to tell rows apart."""

Names = dict[int, set[str]]


def narrow_scans(plan: Plan, planning: Planning) -> Plan:
    """``plan`` without columns of tables that nothing in it names."""
    used, scans = _used(plan)
    names: Names = {id(scan.table): {name for key in scan.table.unique for name in key} for scan in scans}
    for scan in scans:
        named = zip(scan.outputs, scan.names, strict=True)
        names[id(scan.table)].update([name for column, name in named if column.id in used])
    return _narrow(plan, names)


def _used(plan: Plan) -> tuple[set[int], list[Scan]]:
    """The ids of all columns that an expression, the answer or a node as a whole takes; and all scans."""
    used: set[int] = set()
    scans: list[Scan] = []
    left = [plan]
    while left:
        top = left.pop()
        used |= top.ids
        enters = traits.of_plan(top) & traits.SUBQUERY
        for node in plans.walk(top):
            if type(node) is Scan:
                scans.append(node)
            elif type(node) in WHOLE:
                used.update(*[child.ids for child in node.inputs])
            for expr in plans.expressions_of(node):
                used |= bound.columns_of(expr)
                if enters and traits.of_expression(expr) & traits.SUBQUERY:
                    left += [part.plan for part in bound.walk(expr) if isinstance(part, bound.SUBQUERIES)]
    return used, scans


def _narrow(plan: Plan, names: Names) -> Plan:
    if type(plan) is Scan:
        wanted = names[id(plan.table)]
        kept = [index for index, name in enumerate(plan.names) if name in wanted]
        if len(kept) == len(plan.names):
            return plan
        outputs = tuple([plan.outputs[index] for index in kept])
        return replace(plan, outputs=outputs, names=tuple([plan.names[index] for index in kept]))
    plan = plans.with_inputs(plan, lambda child: _narrow(child, names))
    if traits.has_trait(traits.SUBQUERY, plans.expressions_of(plan)):
        plan = plans.map_expressions(plan, lambda expr: map_plans(expr, lambda inner: _narrow(inner, names)))
    return plan
