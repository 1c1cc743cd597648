"""Aggregation in the form that computes least.

    Aggregate: groups [a] [count(DISTINCT b)]        Aggregate: groups [a] [count(b)]
                                                     └─ Aggregate: groups [a, b]

Where the aggregates are of distinct values of the same arguments, those values are groups first; others beside them are
worked out from parts (``partial_aggregates``). DISTINCT is dropped where repeats change nothing (``min``), a group without
aggregates over rows that are unique is a projection, and a key that is computed from other keys is computed afterwards.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from lake.sql import traits
from lake.sql.bound import Column, Expr, Lambda, columns_of, walk
from lake.sql.optimizer.expressions import Subquery, is_volatile, substitute
from lake.sql.optimizer.partial_aggregates import in_two_steps
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.properties import properties
from lake.sql.plan import Aggregate, Plan, Project
from lake.types import Boolean, Date, Decimal, Integer, Text, Timestamp


def simplify_aggregates(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with each aggregation in its cheapest form."""

    def change(node: Plan) -> Plan:
        return _simplify(node, planning) if isinstance(node, Aggregate) else node

    return traits.rewrite_where(plan, traits.AGGREGATE, change)


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
    return _without_dependent_keys(in_two_steps(node, planning) or node, planning)


def _without_dependent_keys(node: Plan, planning: Planning) -> Plan:
    """``GROUP BY a, a - 1`` as ``GROUP BY a`` with ``a - 1`` above it; floats stay, whose -0.0 and 0.0 are one group."""
    if not isinstance(node, Aggregate):
        return node
    keys = {
        expr.id: column
        for column, expr in node.groups
        if isinstance(expr, Column) and isinstance(expr.type, Integer | Decimal | Text | Date | Timestamp | Boolean)
    }
    dependent = {column.id: substitute(expr, keys) for column, expr in node.groups if _depends(expr, keys.keys())}
    if not dependent:
        return node
    kept = tuple((column, expr) for column, expr in node.groups if column.id not in dependent)
    exprs = tuple(dependent.get(column.id, column) for column in node.columns)
    return Project(node.columns, exprs, replace(node, groups=kept))


def _depends(expr: Expr, keys: Collection[int]) -> bool:
    """Whether ``expr`` is computed from some of the columns ``keys`` and nothing else."""
    if isinstance(expr, Column) or is_volatile(expr) or any(isinstance(part, Subquery | Lambda) for part in walk(expr)):
        return False
    used = columns_of(expr)
    return bool(used) and all(id in keys for id in used)


def _is_unique(node: Aggregate, planning: Planning) -> bool:
    keys = [expr.id for _, expr in node.groups if isinstance(expr, Column)]
    return properties(node.input, planning).is_unique(keys)
