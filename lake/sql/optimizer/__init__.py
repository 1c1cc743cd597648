"""From the plan a query means to the plan that is run: RULES, applied one after another.

    plan = optimize(bound_plan, settings, fold=evaluate_constant)

Each rule is a function ``(plan, planning) -> plan`` in a file of its own, with the plan before and after in its docstring. A
plan answers the same rows before and after every rule; only ``decorrelate`` is needed for a plan to run at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from lake.errors import StatementTooComplex
from lake.sql import plan as plans
from lake.sql import traits
from lake.sql.catalog import Settings
from lake.sql.optimizer.aggregates import simplify_aggregates
from lake.sql.optimizer.common import inline_definitions, share_common
from lake.sql.optimizer.copies import fixed
from lake.sql.optimizer.decorrelate import decorrelate
from lake.sql.optimizer.eager_aggregates import aggregate_early
from lake.sql.optimizer.join_order import order_joins
from lake.sql.optimizer.join_sides import choose_sides
from lake.sql.optimizer.limits import push_limits
from lake.sql.optimizer.narrow_scans import narrow_scans
from lake.sql.optimizer.planning import Fold, Planning
from lake.sql.optimizer.prune_columns import prune_columns
from lake.sql.optimizer.push_filters import push_filters
from lake.sql.optimizer.scan_filters import order_scan_filters
from lake.sql.optimizer.set_joins import join_sets
from lake.sql.optimizer.simplify import simplify
from lake.sql.plan import Materialize, Plan, Project, Recursion, SetOperation

Rule: TypeAlias = Callable[[Plan, Planning], Plan]
Trace: TypeAlias = Callable[[str, Plan], None]

RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("narrow_scans", narrow_scans),
    ("simplify", simplify),
    ("decorrelate", decorrelate),
    ("inline_definitions", inline_definitions),
    ("push_filters", push_filters),
    ("simplify_pushed", simplify),
    ("order_joins", order_joins),
    ("share_common", share_common),
    ("aggregates", simplify_aggregates),
    ("eager_aggregates", aggregate_early),
    ("limits", push_limits),
    ("prune_columns", prune_columns),
    ("set_joins", join_sets),
    ("join_sides", choose_sides),
    ("scan_filters", order_scan_filters),
)
"""In this order. Equal parts are found while all scans of a table have the same columns, so pruning comes after."""


def optimize(
    plan: Plan,
    settings: Settings,
    fold: Fold | None = None,
    *,
    without: Collection[str] = (),
    trace: Trace | None = None,
) -> Plan:
    """The plan to run for ``plan``, with the same columns in the same order.

    fold     computes a constant expression; without it constants stay as they are written
    without  names of rules to leave out
    trace    told each rule's name and the plan after it
    0A000    a correlated form that cannot be taken apart, named
    54001    a statement nested too deep
    """
    try:
        return _optimize(plan, Planning.of(plan, settings, fold), without, trace)
    except RecursionError:
        raise StatementTooComplex("the statement is nested too deep") from None


def _optimize(plan: Plan, planning: Planning, without: Collection[str], trace: Trace | None) -> Plan:
    columns = plan.columns
    plan = traits.rewrite_where(plan, traits.POSITIONS, _keep_positions)
    for name, rule in RULES:
        if name not in without:
            plan = rule(plan, planning)
            if trace is not None:
                trace(name, plan)
    if tuple(column.id for column in plan.columns) != tuple(column.id for column in columns):
        plan = Project(columns, columns, plan)
    return plan


def _keep_positions(node: Plan) -> Plan:
    """Nodes that read columns by position get inputs whose order no rule changes."""
    if isinstance(node, SetOperation | Recursion):
        return plans.with_inputs(node, fixed)
    if isinstance(node, Materialize):
        return Materialize(node.cte, node.name, fixed(node.definition), node.input)
    return node


__all__ = ["RULES", "Fold", "optimize"]
