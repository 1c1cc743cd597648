"""Logical plans to physical operators: one match, one arm a node.

    Project: a                     Flow(Break(Flow(Scan t), HashAggregate), (Project,))
    └─ Aggregate: groups [a]
       └─ Scan: t

Lowering goes down with the ids of the columns that are read above, so that an operator answers those alone. What small
statements do without is in ``lower_joins`` and ``lower_breakers``, which are imported when a plan has such a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lake.errors import FeatureNotSupported
from lake.exec.context import Context
from lake.exec.operators.base import Breaker, Operator
from lake.exec.operators.filter import Filter
from lake.exec.operators.limit import Limit
from lake.exec.operators.project import Project
from lake.exec.operators.scan import Scan
from lake.exec.operators.values import Values
from lake.exec.pipeline import Break, Flow
from lake.sql import plan
from lake.sql.bound import Column, Expr, columns_of
from lake.sql.optimizer.planning import Planning
from lake.sql.plan import Plan

if TYPE_CHECKING:
    from lake.exec.operators.materialize import CteSlot

Needed = frozenset[int]


def lower_plan(root: Plan, context: Context) -> Flow:
    """The operators that compute a plan.

    0A000  a node that the engine does not run
    """
    return Lowering(context, root).lower(root, frozenset(column.id for column in root.columns))


class Lowering:
    """One plan's lowering: the WITH queries in sight by number, and which of them are read."""

    def __init__(self, context: Context, root: Plan) -> None:
        self.context = context
        self.root = root
        self.slots: dict[int, CteSlot] = {}
        self.scanned: set[int] = set()
        self._planning: Planning | None = None

    def planning(self) -> Planning:
        """What the planner thinks of the plan's rows."""
        if self._planning is None:
            self._planning = Planning.of(self.root, self.context.settings, None)
        return self._planning

    def lower(self, node: Plan, needed: Needed) -> Flow:
        """The flow that answers the needed columns of a node (maybe more)."""
        flow = self._lower(node, needed)
        top: Operator = flow.top.breaker if isinstance(flow.top, Break) else flow.top
        if top.plan is None:
            top.plan = node
        return flow

    def _lower(self, node: Plan, needed: Needed) -> Flow:
        match node:
            case plan.Scan():
                return Flow(_scan(node, (), needed))
            case plan.Values(rows=rows, outputs=outputs):
                kept = [index for index, column in enumerate(outputs) if column.id in needed]
                return Flow(Values(tuple(outputs[index] for index in kept), rows, tuple(kept)))
            case plan.Filter(conjuncts=conjuncts, input=plan.Scan() as scan):
                return Flow(_scan(scan, conjuncts, needed))
            case plan.Filter(conjuncts=conjuncts, input=below):
                flow = self.lower(below, needed | columns_of(conjuncts))
                return flow.then(Filter(only(flow.columns, needed), conjuncts))
            case plan.Project():
                return self._project(node, needed)
            case plan.Limit(limit=count, offset=first, input=below, is_percent=is_percent, ties=ties):
                flow = self.lower(below, needed | columns_of(ties))
                return Flow(Limit(flow.columns, flow, count, first, is_percent, ties))
            case plan.Join() | plan.AsofJoin():
                return self._lower_join(node, needed)
            case _:
                return self._lower_breaker(node, needed)

    def _lower_join(self, node: plan.Join | plan.AsofJoin, needed: Needed) -> Flow:
        from lake.exec import lower_joins

        if isinstance(node, plan.Join):
            return lower_joins.lower_join(self, node, needed)
        return lower_joins.lower_asof(self, node, needed)

    def _lower_breaker(self, node: Plan, needed: Needed) -> Flow:
        from lake.exec import lower_breakers

        match node:
            case plan.Aggregate():
                return lower_breakers.lower_aggregate(self, node, needed)
            case plan.Distinct():
                return lower_breakers.lower_distinct(self, node, needed)
            case plan.Window():
                return lower_breakers.lower_window(self, node, needed)
            case plan.Sort():
                return lower_breakers.lower_sort(self, node, needed)
            case plan.Unnest():
                return lower_breakers.lower_unnest(self, node, needed)
            case plan.Sample():
                return lower_breakers.lower_sample(self, node, needed)
            case plan.SetOperation():
                return lower_breakers.lower_set_operation(self, node, needed)
            case plan.Materialize():
                return lower_breakers.lower_materialize(self, node, needed)
            case plan.CteScan():
                return lower_breakers.lower_cte_scan(self, node, needed)
            case plan.Recursion():
                return lower_breakers.lower_recursion(self, node, needed)
            case _:
                raise FeatureNotSupported(f"{type(node).__name__} is not supported by the engine")

    def _project(self, node: plan.Project, needed: Needed) -> Flow:
        pairs = [(column, expr) for column, expr in zip(node.outputs, node.exprs, strict=True) if column.id in needed]
        exprs = tuple(expr for _, expr in pairs)
        flow = self.lower(node.input, columns_of(exprs))
        if all(isinstance(expr, Column) and expr.id == column.id for column, expr in pairs) and pairs:
            return flow
        return flow.then(Project(tuple(column for column, _ in pairs), exprs))


def _scan(node: plan.Scan, more: tuple[Expr, ...], needed: Needed) -> Scan:
    filters = (*node.filters, *more)
    used = needed | columns_of(filters)
    read = [(column, name) for column, name in zip(node.outputs, node.names, strict=True) if column.id in used]
    scan = Scan(
        only(node.outputs, needed), ".".join(node.table.name), node.table.rows,
        tuple(column for column, _ in read), tuple(name for _, name in read), filters,
    )  # fmt: skip
    scan.plan = replace(node, filters=filters) if more else node
    return scan


def broken(flow: Flow, breaker: Breaker) -> Flow:
    """A flow that a breaker ends."""
    return Flow(Break(flow, breaker))


def only(columns: Sequence[Column], ids: Needed) -> tuple[Column, ...]:
    """Those of the columns that have these ids."""
    return tuple(column for column in columns if column.id in ids)


def ids(node: Plan) -> Needed:
    """The ids of all columns of a node."""
    return frozenset(column.id for column in node.columns)
