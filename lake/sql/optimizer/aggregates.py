"""Aggregation in the form that computes least.

    Aggregate: groups [a] [count(DISTINCT b)]        Aggregate: groups [a] [count(b)]
                                                     └─ Aggregate: groups [a, b]

Where all aggregates are of distinct values of the same arguments, those values are groups first. DISTINCT is dropped where
repeats change nothing (``min``), and a group without aggregates over rows that are unique is a projection.
"""

from __future__ import annotations

from dataclasses import replace

from lake.sql import plan as plans
from lake.sql.bound import AggregateCall, Column, Expr
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.properties import properties
from lake.sql.plan import Aggregate, Plan, Project


def simplify_aggregates(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with each aggregation in its cheapest form."""
    return plans.rewrite(plan, lambda node: _simplify(node, planning) if isinstance(node, Aggregate) else node)


def _simplify(node: Aggregate, planning: Planning) -> Plan:
    calls = tuple(
        (column, replace(call, distinct=False) if call.distinct and not call.function.duplicates_matter else call)
        for column, call in node.aggregates
    )
    if calls != node.aggregates:
        node = replace(node, aggregates=calls)
    if node.grouping_sets is not None:
        return node
    if not calls and node.groups and _is_unique(node, planning):
        outputs = tuple(column for column, _ in node.groups)
        return Project(outputs, tuple(expr for _, expr in node.groups), node.input)
    return _in_two_steps(node, planning) if _is_all_distinct(node) else node


def _is_unique(node: Aggregate, planning: Planning) -> bool:
    keys = [expr.id for _, expr in node.groups if isinstance(expr, Column)]
    return properties(node.input, planning).is_unique(keys)


def _is_all_distinct(node: Aggregate) -> bool:
    """Whether every aggregate is of the distinct values of the same arguments, and nothing else."""
    calls = [call for _, call in node.aggregates]
    return bool(calls) and all(
        call.distinct
        and call.filter is None
        and not call.order
        and not call.function.keeps_order
        and call.arguments
        and call.arguments == calls[0].arguments
        for call in calls
    )


def _in_two_steps(node: Aggregate, planning: Planning) -> Plan:
    arguments = node.aggregates[0][1].arguments
    values = tuple(planning.column(expr.type, "value") for expr in arguments)
    inner_groups = tuple((planning.copy(column), expr) for column, expr in node.groups)
    distinct = Aggregate((*inner_groups, *zip(values, arguments, strict=True)), (), node.input)
    groups: tuple[tuple[Column, Expr], ...] = tuple(
        (column, inner) for (column, _), (inner, _) in zip(node.groups, inner_groups, strict=True)
    )
    calls = tuple((column, _over_values(call, values)) for column, call in node.aggregates)
    return Aggregate(groups, calls, distinct)


def _over_values(call: AggregateCall, values: tuple[Column, ...]) -> AggregateCall:
    return replace(call, arguments=values, distinct=False)
