"""Every node answers only what is used above it; scans read only those columns.

    Aggregate: groups [] aggregates [sum#9]          Aggregate: groups [] aggregates [sum#9]
    └─ Join: inner, l_orderkey#1 = o_orderkey#4      └─ Project: l_price#3
       ├─ Scan: lineitem, all 16 columns                └─ Join: inner, l_orderkey#1 = o_orderkey#4
       └─ Scan: orders, all 9 columns                      ├─ Scan: lineitem [l_orderkey#1, l_price#3]
                                                           └─ Scan: orders [o_orderkey#4]

Columns that only a filter or a join condition needed go in a projection right above, so that no later join or sort carries
them. A projection over a projection is one. An outer join whose right side adds neither column nor row is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from lake.sql import bound, traits
from lake.sql import plan as plans
from lake.sql.bound import Case, Column, Expr, Literal
from lake.sql.optimizer.copies import aligned, with_fields
from lake.sql.optimizer.expressions import columns_in, definitions, is_volatile, substitute
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.properties import equated_columns, properties
from lake.sql.plan import (
    Aggregate,
    AsofJoin,
    CteScan,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Limit,
    Materialize,
    Plan,
    Project,
    Recursion,
    Sample,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    Unnest,
    Values,
    Window,
)

Ids = frozenset[int]


def prune_columns(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with every column gone that nothing above uses."""
    pruned = _Pruning(planning).prune(plan, plan.ids)
    return aligned(pruned, plan.columns)


class _Pruning:
    """One pass from the root down.

    wanted  positions that scans of each common table expression use
    """

    def __init__(self, planning: Planning) -> None:
        self.planning = planning
        self.wanted: dict[int, set[int]] = {}

    def prune(self, plan: Plan, need: Ids) -> Plan:
        """``plan`` answering the columns ``need``, and perhaps some more."""
        match plan:
            case Scan():
                return self._scan(plan, need)
            case Values():
                return self._values(plan, need)
            case CteScan(cte=cte, outputs=outputs):
                positions = {index for index, column in enumerate(outputs) if column.id in need}
                self.wanted.setdefault(cte, set()).update(positions)
                return plan
            case Filter(conjuncts=conjuncts, input=source):
                return with_fields(plan, input=self.prune(source, need | bound.columns_of(conjuncts)))
            case Project():
                return self._project(plan, need)
            case Aggregate():
                return self._aggregate(plan, need)
            case Window():
                return self._window(plan, need)
            case Sort(keys=keys):
                return with_fields(plan, input=self.exactly(plan.input, need | bound.columns_of(keys)))
            case Limit(ties=ties):
                return with_fields(plan, input=self.prune(plan.input, need | bound.columns_of(ties)))
            case Sample():
                return with_fields(plan, input=self.prune(plan.input, need))
            case Distinct(on=on, order=order):
                used = need | bound.columns_of(on, order) if on else plan.ids
                return with_fields(plan, input=self.exactly(plan.input, used))
            case Unnest(lists=lists):
                used = need | bound.columns_of(tuple(expr for _, expr in lists))
                return with_fields(plan, input=self.prune(plan.input, used))
            case Join():
                return self._join(plan, need)
            case AsofJoin():
                used = need | bound.columns_of(tuple(plans.expressions_of(plan)))
                return with_fields(plan, left=self.exactly(plan.left, used), right=self.exactly(plan.right, used))
            case SetOperation():
                return self._set_operation(plan, need)
            case Materialize():
                return self._materialize(plan, need)
            case Recursion():
                return self._recursion(plan)
            case _:
                raise AssertionError(f"columns of {type(plan).__name__} are not pruned")

    def exactly(self, plan: Plan, need: Ids) -> Plan:
        """``plan`` answering those of its columns that are in ``need``, and no others."""
        pruned = self.prune(plan, need)
        kept = tuple(column for column in pruned.columns if column.id in need)
        return pruned if len(kept) == len(pruned.columns) else project_over(kept, kept, pruned)

    def _scan(self, plan: Scan, need: Ids) -> Plan:
        used = need | bound.columns_of(plan.filters)
        kept = [index for index, column in enumerate(plan.outputs) if column.id in used]
        outputs = tuple(plan.outputs[index] for index in kept)
        return with_fields(plan, outputs=outputs, names=tuple(plan.names[index] for index in kept))

    def _values(self, plan: Values, need: Ids) -> Plan:
        kept = [index for index, column in enumerate(plan.outputs) if column.id in need]
        rows = tuple(tuple(row[index] for index in kept) for row in plan.rows)
        return Values(rows, tuple(plan.outputs[index] for index in kept))

    def _project(self, plan: Project, need: Ids) -> Plan:
        kept = [index for index, column in enumerate(plan.outputs) if column.id in need]
        outputs = tuple(plan.outputs[index] for index in kept)
        exprs = tuple(plan.exprs[index] for index in kept)
        return project_over(outputs, exprs, self.prune(plan.input, bound.columns_of(exprs)))

    def _aggregate(self, plan: Aggregate, need: Ids) -> Plan:
        aggregates = tuple(item for item in plan.aggregates if item[0].id in need)
        grouping_id = plan.grouping_id if plan.grouping_id is not None and plan.grouping_id.id in need else None
        if not aggregates and not plan.groups and plan.grouping_sets is None:
            return Values(((),), ())
        changed = with_fields(plan, aggregates=aggregates, grouping_id=grouping_id)
        used = bound.columns_of(tuple(plans.expressions_of(changed)))
        return with_fields(changed, input=self.prune(plan.input, used))

    def _window(self, plan: Window, need: Ids) -> Plan:
        calls = tuple(item for item in plan.calls if item[0].id in need)
        if not calls:
            return self.prune(plan.input, need)
        changed = with_fields(plan, calls=calls)
        used = need | bound.columns_of(tuple(plans.expressions_of(changed)))
        return with_fields(changed, input=self.exactly(plan.input, used))

    def _join(self, plan: Join, need: Ids) -> Plan:
        if self._adds_nothing(plan, need):
            return self.prune(plan.left, need)
        used = need | bound.columns_of(plan.conditions)
        changed = with_fields(plan, left=self.exactly(plan.left, used), right=self.exactly(plan.right, used))
        kept = tuple(column for column in changed.columns if column.id in need)
        return changed if len(kept) == len(changed.columns) else project_over(kept, kept, changed)

    def _adds_nothing(self, plan: Join, need: Ids) -> bool:
        """Whether each left row comes out once, and nothing of the right side is used."""
        if plan.kind is JoinKind.MARK:
            return plan.mark is not None and plan.mark.id not in need
        if plan.kind is not JoinKind.LEFT or need & plan.right.ids:
            return False
        _, right_equal = equated_columns(plan)
        return properties(plan.right, self.planning).is_unique(right_equal)

    def _set_operation(self, plan: SetOperation, need: Ids) -> Plan:
        is_bag = plan.kind is SetKind.UNION and plan.all
        kept = [index for index, column in enumerate(plan.outputs) if not is_bag or column.id in need]
        outputs = tuple(plan.outputs[index] for index in kept)
        return with_fields(plan, left=self._side(plan.left, kept), right=self._side(plan.right, kept), outputs=outputs)

    def _side(self, plan: Plan, positions: Iterable[int]) -> Plan:
        """``plan`` answering its columns at ``positions``, in order."""
        columns = tuple(plan.columns[index] for index in positions)
        pruned = self.prune(plan, columns_in(columns))
        if tuple(column.id for column in pruned.columns) == tuple(column.id for column in columns):
            return pruned
        return project_over(columns, columns, pruned)

    def _materialize(self, plan: Materialize, need: Ids) -> Plan:
        self.wanted.pop(plan.cte, None)
        source = self.prune(plan.input, need)
        if plan.cte not in self.wanted:
            return source
        positions = sorted(self.wanted[plan.cte])
        definition = self._side(plan.definition, positions)

        def narrow(node: Plan) -> Plan:
            if isinstance(node, CteScan) and node.cte == plan.cte:
                return replace(node, outputs=tuple(node.outputs[index] for index in positions))
            return node

        return with_fields(plan, definition=definition, input=traits.rewrite_where(source, traits.DEFINITION, narrow))

    def _recursion(self, plan: Recursion) -> Plan:
        every = range(len(plan.outputs))
        anchor = self._side(plan.anchor, every)
        step = self._side(plan.step, every)
        return with_fields(plan, anchor=anchor, step=step)


def project_over(outputs: tuple[Column, ...], exprs: tuple[Expr, ...], source: Plan) -> Plan:
    """A projection of ``source``, put together with a projection that ``source`` is; none where it would change nothing."""
    if outputs == exprs and tuple(column.id for column in source.columns) == tuple(column.id for column in outputs):
        return source
    if isinstance(source, Project) and _may_merge(exprs, source):
        return project_over(outputs, substitute(exprs, definitions(source)), source.input)
    return Project(outputs, exprs, source)


def _may_merge(exprs: tuple[Expr, ...], below: Project) -> bool:
    """Whether nothing below would be computed twice, or where it was not before."""
    made = {id: expr for id, expr in definitions(below).items() if not isinstance(expr, Column | Literal)}
    if not made:
        return True
    if any(is_volatile(expr) for expr in made.values()):
        return False
    uses = dict.fromkeys(made, 0)
    for expr in exprs:
        for node in bound.walk(expr):
            if isinstance(node, Column) and node.id in uses:
                uses[node.id] += 1
            if isinstance(node, Case | bound.Lambda) and bound.columns_of(node) & made.keys():
                return False
    return all(count <= 1 for count in uses.values())
