"""Inner joins that only ask whether there is a partner become semi joins, and ``<>`` among partners asks their extremes.

    Join: semi, a#1 = b#2                        Join: semi, a#1 = b#2
    ├─ Scan: t                                   ├─ Scan: t
    └─ Project: b#2                              └─ Join: semi, b#2 = c#3, min#5 <> d#6 OR max#7 <> d#6
       └─ Join: inner, b#2 = c#3, d#6 <> e#4        ├─ Scan: u
          ├─ Scan: u                                └─ Aggregate: groups [c#3] aggregates [min#5 = min(e#4), max#7 = ..]
          └─ Scan: v                                   └─ Scan: v

Where it does not matter how often a row stands (the right side of a semi join, below DISTINCT or ``max``), a side of a join
of which nothing is used above only tells which rows have a partner, and there may be many. That holds of a definition, too,
all of whose scans are in such places. Some partner differs from a value exactly if the least or the greatest of them does.
"""

from __future__ import annotations

from typing import Final

from lake.sql import bound, traits
from lake.sql import plan as plans
from lake.sql.bound import AggregateCall, Column, Compare, Expr
from lake.sql.optimizer.copies import with_fields
from lake.sql.optimizer.expressions import disjunction, is_volatile
from lake.sql.optimizer.partial_aggregates import overload
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.statistics import groups_of, rows_of
from lake.sql.plan import (
    Aggregate,
    CteScan,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    SetKind,
    SetOperation,
    Sort,
)
from lake.types import Date, Decimal, Integer, Timestamp

Ids = frozenset[int]

PARTNERS: Final = frozenset((JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK))
PRODUCTS: Final = frozenset((JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL))

PARTNERS_MIN: Final = 1.2
"""Partners a row from which a semi join is less work."""

SHARE_MAX: Final = 0.5
"""Groups for each partner above which testing the pairs costs as little."""

LEFT_MIN: Final = 0.5
"""Left rows for each partner below which the left side is built, and partners are not grouped but looked up."""


def join_sets(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with semi joins where partners are not used, and by the extremes of partners where they differ."""
    return _Sets(planning).change(plan, plan.ids, is_set=False)


class _Sets:
    """One pass from the root down.

    read_as_sets  for each definition whether all of its scans so far are where repeats do not matter
    """

    def __init__(self, planning: Planning) -> None:
        self.planning = planning
        self.read_as_sets: dict[int, bool] = {}

    def change(self, plan: Plan, need: Ids, *, is_set: bool) -> Plan:
        """``plan`` answering at least the columns ``need``; with ``is_set`` as few as one of equal rows."""
        known = traits.of_plan(plan)
        if not known & (traits.JOIN | traits.DEFINITION):
            return plan
        if known & traits.VOLATILE and is_volatile(plans.expressions_of(plan)):
            return self._each(plan)
        match plan:
            case CteScan(cte=cte):
                self.read_as_sets[cte] = self.read_as_sets.get(cte, True) and is_set
                return plan
            case Filter(conjuncts=conjuncts, input=source):
                return with_fields(plan, input=self.change(source, need | bound.columns_of(conjuncts), is_set=is_set))
            case Project(exprs=exprs, input=source):
                return with_fields(plan, input=self.change(source, bound.columns_of(exprs), is_set=is_set))
            case Sort(limit=None, keys=keys, input=source):
                return with_fields(plan, input=self.change(source, need | bound.columns_of(keys), is_set=is_set))
            case Distinct(on=(), input=source):
                return with_fields(plan, input=self.change(source, source.ids, is_set=True))
            case Aggregate(input=source):
                used = bound.columns_of(tuple(plans.expressions_of(plan)))
                return with_fields(plan, input=self.change(source, used, is_set=_wants_set(plan)))
            case Join():
                return self._join(plan, need, is_set=is_set)
            case SetOperation(kind=kind, all=keeps_all, left=left, right=right):
                of_sets = (is_set and kind is SetKind.UNION) if keeps_all else True
                sides = (self.change(side, side.ids, is_set=of_sets) for side in (left, right))
                return with_fields(plan, left=next(sides), right=next(sides))
            case Materialize(cte=cte, definition=definition, input=source):
                source = self.change(source, need, is_set=is_set)
                of_sets = self.read_as_sets.get(cte, False)
                return with_fields(plan, definition=self.change(definition, definition.ids, is_set=of_sets), input=source)
            case _:
                return self._each(plan)

    def _each(self, plan: Plan) -> Plan:
        return plans.with_inputs(plan, lambda child: self.change(child, child.ids, is_set=False))

    def _join(self, plan: Join, need: Ids, *, is_set: bool) -> Plan:
        if plan.kind is JoinKind.INNER and is_set and plan.conditions:
            if not need & plan.right.ids and self._is_multiplied(plan, plan.left):
                return self._join(with_fields(plan, kind=JoinKind.SEMI), need, is_set=True)
            if not need & plan.left.ids and self._is_multiplied(plan, plan.right):
                turned = with_fields(plan, kind=JoinKind.SEMI, left=plan.right, right=plan.left)
                return self._join(turned, need, is_set=True)
        used = need | bound.columns_of(plan.conditions)
        of_right = plan.kind in PARTNERS or (is_set and plan.kind in PRODUCTS)
        left = self.change(plan.left, used & plan.left.ids, is_set=is_set)
        right = self.change(plan.right, used & plan.right.ids, is_set=of_right)
        return self._by_extremes(with_fields(plan, left=left, right=right))

    def _is_multiplied(self, plan: Join, side: Plan) -> bool:
        """Whether rows of a side are thought to find more partners than one; otherwise the inner join is as good."""
        return rows_of(plan, self.planning) > PARTNERS_MIN * rows_of(side, self.planning)

    def _by_extremes(self, plan: Join) -> Join:
        """SEMI and ANTI with one ``<>`` besides equal columns: partners are grouped by those, with their extremes."""
        keys, rest = [], []
        for condition in plan.conditions:
            pair = _columns_of_both(condition, plan, "=")
            keys.append(pair) if pair else rest.append(condition)
        other = _columns_of_both(rest[0], plan, "<>") if len(rest) == 1 else None
        if plan.kind not in (JoinKind.SEMI, JoinKind.ANTI) or not keys or other is None:
            return plan
        partners = tuple(partner for _, partner in keys)
        rows = max(rows_of(plan.right, self.planning), 1.0)
        if groups_of(plan.right, partners, self.planning) > SHARE_MAX * rows:
            return plan
        if rows_of(plan.left, self.planning) < LEFT_MIN * rows:
            return plan
        value, partner = other
        groups = tuple((self.planning.copy(column), column) for column in dict.fromkeys(partners))
        ends = tuple(
            (self.planning.column(partner.type, name), AggregateCall(partner.type, overload(name, "ANY"), (partner,)))
            for name in ("min", "max")
        )
        named = {column.id: copy for copy, column in groups}
        equal: list[Expr] = [Compare.of("=", mine, named[theirs.id]) for mine, theirs in keys]
        differs = disjunction(tuple(Compare.of("<>", end, value) for end, _ in ends))
        return with_fields(plan, right=Aggregate(groups, ends, plan.right), conditions=(*equal, differs))


def _wants_set(plan: Aggregate) -> bool:
    """Whether equal rows count once for every aggregate."""
    return all(
        (call.distinct or not call.function.duplicates_matter) and not call.function.keeps_order
        for _, call in plan.aggregates
    )


def _columns_of_both(condition: Expr, plan: Join, op: str) -> tuple[Column, Column] | None:
    """The left and the right column, both of one exact type, of ``left op right``."""
    match condition:
        case Compare(op=found, left=Column() as one, right=Column() as two) if found == op and one.type == two.type:
            if not isinstance(one.type, Integer | Decimal | Date | Timestamp):
                return None
            if one.id in plan.left.ids and two.id in plan.right.ids:
                return one, two
            if two.id in plan.left.ids and one.id in plan.right.ids:
                return two, one
    return None
