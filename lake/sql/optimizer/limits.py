"""LIMIT and ORDER BY in the form that sorts least.

    Limit: 10                       Project: a#1 + 1
    └─ Project: a#1 + 1             └─ Sort: b#2, first 10
       └─ Sort: b#2                    └─ ..
          └─ ..

A limit goes through projections and into both sides of UNION ALL. A sort whose order nothing sees is left out; so are keys
that are constant or repeat, and all keys after those that already tell every row apart.
"""

from __future__ import annotations

from lake.sql import plan as plans
from lake.sql import traits
from lake.sql.bound import Column, Expr, Literal, SortKey
from lake.sql.optimizer.copies import with_fields
from lake.sql.optimizer.expressions import definitions, is_constant, is_volatile
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.properties import properties
from lake.sql.plan import (
    Aggregate,
    Distinct,
    Filter,
    Limit,
    Materialize,
    Plan,
    Project,
    Recursion,
    Sample,
    SetKind,
    SetOperation,
    Sort,
    Unnest,
    Values,
)
from lake.types import BIGINT


def push_limits(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with limits near the rows they limit, and without sorts and DISTINCTs that do nothing."""
    return _Limits(planning).change(plan, is_ordered=True)


class _Limits:
    """One pass from the root down."""

    def __init__(self, planning: Planning) -> None:
        self.planning = planning

    def change(self, plan: Plan, *, is_ordered: bool) -> Plan:
        """``plan`` changed; ``is_ordered`` says that the order of its rows is seen above."""
        if not traits.of_plan(plan) & traits.ORDER:
            return plan
        match plan:
            case Limit():
                return self._limit(plan)
            case Sort():
                return self._sort(plan, is_ordered=is_ordered)
            case Distinct(on=()) if properties(plan.input, self.planning).is_unique(
                column.id for column in plan.columns
            ):
                return self.change(plan.input, is_ordered=is_ordered)
            case Project() | Filter() | Unnest():
                return with_fields(plan, input=self.change(plan.input, is_ordered=is_ordered))
            case Sample():
                return with_fields(plan, input=self.change(plan.input, is_ordered=True))
            case Aggregate(aggregates=aggregates):
                sees = any(call.function.keeps_order and not call.order for _, call in aggregates)
                return with_fields(plan, input=self.change(plan.input, is_ordered=sees))
            case plans.Window():
                return with_fields(plan, input=self.change(plan.input, is_ordered=is_ordered or not plan.order))
            case Materialize(definition=definition, input=source):
                changed = self.change(definition, is_ordered=False)
                return with_fields(plan, definition=changed, input=self.change(source, is_ordered=is_ordered))
            case SetOperation(kind=SetKind.UNION, all=True) | Recursion():
                return plans.with_inputs(plan, lambda child: self.change(child, is_ordered=False))
            case _:
                return plans.with_inputs(plan, lambda child: self.change(child, is_ordered=False))

    def _limit(self, plan: Limit) -> Plan:
        limit, offset = _constant(plan.limit), _constant(plan.offset)
        is_plain = not plan.is_percent and not plan.ties
        if not is_plain or limit is _UNKNOWN or offset is _UNKNOWN:
            return with_fields(plan, input=self.change(plan.input, is_ordered=True))
        assert not isinstance(limit, str) and not isinstance(offset, str)
        if limit == 0:
            return Values((), plan.columns)
        if limit is None and not offset:
            return self.change(plan.input, is_ordered=True)
        return self._within(plan.input, limit, offset or 0)

    def _within(self, plan: Plan, limit: int | None, offset: int) -> Plan:
        """The rows of ``plan`` after ``offset``, at most ``limit``."""
        match plan:
            case Project(exprs=exprs) if not any(is_volatile(expr) for expr in exprs):
                return with_fields(plan, input=self._within(plan.input, limit, offset))
            case Sort(limit=None, offset=0) if limit is not None:
                return self._sort(with_fields(plan, limit=limit, offset=offset), is_ordered=True)
            case Materialize(definition=definition, input=source):
                changed = self.change(definition, is_ordered=False)
                return with_fields(plan, definition=changed, input=self._within(source, limit, offset))
            case SetOperation(kind=SetKind.UNION, all=True) if limit is not None:
                left = self._within(plan.left, limit + offset, 0)
                right = self._within(plan.right, limit + offset, 0)
                return _limited(with_fields(plan, left=left, right=right), limit, offset)
            case Limit(limit=inner, offset=None, is_percent=False, ties=()) if offset == 0 and limit is not None:
                known = _constant(inner)
                if isinstance(known, int):
                    return self._within(plan.input, min(known, limit), 0)
        return _limited(self.change(plan, is_ordered=True), limit, offset)

    def _sort(self, plan: Sort, *, is_ordered: bool) -> Plan:
        keys = self._needed_keys(plan)
        source = self.change(plan.input, is_ordered=not keys)
        if plan.limit is None:
            return Sort(keys, source) if keys and is_ordered else source
        if not keys:
            return _limited(source, plan.limit, plan.offset)
        return Sort(keys, source, plan.limit, plan.offset)

    def _needed_keys(self, plan: Sort) -> tuple[SortKey, ...]:
        found: list[SortKey] = []
        made = definitions(plan.input) if isinstance(plan.input, Project) else {}
        seen: set[Expr] = {column for column in plan.input.columns if column.id in made and is_constant(made[column.id])}
        known = properties(plan.input, self.planning)
        for key in plan.keys:
            if known.is_unique(expr.id for expr in seen if isinstance(expr, Column)):
                break
            if key.expr not in seen and not is_constant(key.expr):
                found.append(key)
                seen.add(key.expr)
        return tuple(found)


_UNKNOWN = "unknown"


def _constant(expr: Expr | None) -> int | str | None:
    """The number of LIMIT or OFFSET, None where there is none, ``_UNKNOWN`` where only running tells."""
    match expr:
        case None | Literal(value=None):
            return None
        case Literal(value=int() as value) if value >= 0:
            return value
        case _:
            return _UNKNOWN


def _limited(plan: Plan, limit: int | None, offset: int) -> Plan:
    first = Literal(BIGINT, offset) if offset else None
    return Limit(None if limit is None else Literal(BIGINT, limit), first, plan)
