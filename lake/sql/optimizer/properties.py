"""What is certain of a node's rows: columns without NULL, keys, at least one row, columns of a query around it.

    Aggregate: groups [o_custkey#2] aggregates [count#9]
        non_null {9}   keys ({2},)   has_row False   free {}
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from msgspec import Struct

from lake.sql import bound
from lake.sql import plan as plans
from lake.sql.bound import AggregateCall, Column, Expr, Literal, WindowCall
from lake.sql.optimizer.expressions import columns_in, equality, is_volatile, may_be_null, null_rejected
from lake.sql.optimizer.planning import Planning
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

KEYS_MAX: Final = 8
"""Keys remembered of a node: a join of nodes with many keys would have their product."""

KEEPS_NOT_NULL: Final = frozenset(("sum", "min", "max", "avg", "any_value", "bool_and", "bool_or", "first", "last"))
"""Aggregates that answer NULL only where every argument is NULL."""

NUMBERING: Final = frozenset(("row_number", "rank", "dense_rank", "ntile", "percent_rank", "cume_dist"))
"""Window functions that never answer NULL."""

ONE_ROW: Final[frozenset[int]] = frozenset()
"""The key of at most one row: no column is needed to tell rows apart."""


class Properties(Struct, frozen=True):
    """Facts of a node.

    non_null   columns that are never NULL
    keys       sets of columns whose values together never repeat; ONE_ROW among them is at most one row
    has_row    there is at least one row
    """

    non_null: frozenset[int]
    keys: tuple[frozenset[int], ...] = ()
    has_row: bool = False

    @property
    def is_at_most_one(self) -> bool:
        """Whether there are no two rows."""
        return ONE_ROW in self.keys

    @property
    def is_one(self) -> bool:
        """Whether there is exactly one row."""
        return self.has_row and self.is_at_most_one

    def is_unique(self, ids: Iterable[int]) -> bool:
        """Whether no two rows agree in all columns of ``ids``."""
        among = frozenset(ids)
        return any(key <= among for key in self.keys)


def properties(plan: Plan, planning: Planning) -> Properties:
    """What is certain of ``plan``'s rows."""
    return planning.remember("properties", plan, _properties)


def _properties(plan: Plan, planning: Planning) -> Properties:
    def below(child: Plan) -> Properties:
        return properties(child, planning)

    match plan:
        case Scan():
            return _scan(plan)
        case Values(rows=rows, outputs=outputs):
            non_null = [
                column.id
                for index, column in enumerate(outputs)
                if not any(may_be_null(row[index], frozenset()) for row in rows)
            ]
            return Properties(frozenset(non_null), (ONE_ROW,) if len(rows) <= 1 else (), bool(rows))
        case CteScan() | Recursion():
            return Properties(frozenset())
        case Filter(conjuncts=conjuncts, input=source):
            found = below(source)
            narrowed = _narrow(found.keys, conjuncts, source.ids)
            return Properties(found.non_null | null_rejected(conjuncts), narrowed)
        case Project():
            return _project(plan, below(plan.input))
        case Aggregate():
            return _aggregate(plan, below(plan.input))
        case Window():
            found = below(plan.input)
            made = {column.id for column, call in plan.calls if call.function.name in NUMBERING or _counts(call)}
            return Properties(found.non_null | made, found.keys, found.has_row)
        case Sort(input=source, limit=limit):
            found = below(source)
            return found if limit is None else Properties(found.non_null, found.keys)
        case Limit(input=source, limit=limit, ties=ties, is_percent=is_percent):
            found = below(source)
            is_single = isinstance(limit, Literal) and limit.value in (0, 1) and not ties and not is_percent
            return Properties(found.non_null, (ONE_ROW, *found.keys) if is_single else found.keys)
        case Distinct():
            return _distinct(plan, below(plan.input))
        case Unnest(input=source, is_outer=is_outer):
            found = below(source)
            return Properties(found.non_null, (), found.has_row and is_outer)
        case Sample(input=source):
            found = below(source)
            return Properties(found.non_null, found.keys)
        case Join():
            return _join(plan, below(plan.left), below(plan.right))
        case AsofJoin():
            left = below(plan.left)
            if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
                return Properties(frozenset(), (), left.has_row and plan.kind is JoinKind.FULL)
            return Properties(left.non_null, left.keys, left.has_row and plan.kind is JoinKind.LEFT)
        case SetOperation():
            return _set_operation(plan, below(plan.left), below(plan.right))
        case Materialize(input=source):
            return below(source)
        case _:
            raise AssertionError(f"no properties of {type(plan).__name__}")


def _scan(plan: Scan) -> Properties:
    by_name = dict(zip(plan.names, plan.outputs, strict=True))
    non_null = {column.id for column in plan.outputs if not column.nullable} | null_rejected(plan.filters)
    keys = tuple(
        frozenset(by_name[name].id for name in names)
        for names in plan.table.unique
        if all(name in by_name and by_name[name].id in non_null for name in names)
    )
    return Properties(frozenset(non_null), _narrow(keys, plan.filters, columns_in(plan.outputs)))


def _narrow(
    keys: tuple[frozenset[int], ...], conjuncts: tuple[Expr, ...], own: frozenset[int]
) -> tuple[frozenset[int], ...]:
    """``keys`` without columns that an equality makes constant: with a constant, or with a column of a query around."""
    fixed = set()
    for conjunct in conjuncts:
        sides = equality(conjunct)
        for this, other in (sides, sides[::-1]) if sides is not None else ():
            if isinstance(this, Column) and this.id in own and not bound.columns_of(other) & own:
                if not is_volatile(other):
                    fixed.add(this.id)
    return tuple(key - fixed for key in keys) if fixed else keys


def _project(plan: Project, found: Properties) -> Properties:
    non_null = frozenset(
        column.id
        for column, expr in zip(plan.outputs, plan.exprs, strict=True)
        if not may_be_null(expr, found.non_null)
    )
    passed: dict[int, int] = {}
    for column, expr in zip(plan.outputs, plan.exprs, strict=True):
        if isinstance(expr, Column):
            passed.setdefault(expr.id, column.id)
    keys = tuple(frozenset(passed[id] for id in key) for key in found.keys if all(id in passed for id in key))
    return Properties(non_null, keys, found.has_row)


def _aggregate(plan: Aggregate, found: Properties) -> Properties:
    is_plain = plan.grouping_sets is None
    non_null = {column.id for column, expr in plan.groups if is_plain and not may_be_null(expr, found.non_null)}
    for column, call in plan.aggregates:
        if _counts(call) or (is_plain and plan.groups and _keeps_not_null(call, found.non_null)):
            non_null.add(column.id)
    if plan.grouping_id is not None:
        non_null.add(plan.grouping_id.id)
    if not is_plain:
        has_row = any(not members for members in plan.grouping_sets or ())
        return Properties(frozenset(non_null), (), has_row or found.has_row)
    if not plan.groups:
        return Properties(frozenset(non_null), (ONE_ROW,), True)
    return Properties(frozenset(non_null), (columns_in(column for column, _ in plan.groups),), found.has_row)


def _counts(call: AggregateCall | WindowCall) -> bool:
    return getattr(call.function, "of_nothing", None) is not None


def _keeps_not_null(call: AggregateCall, non_null: frozenset[int]) -> bool:
    return (
        call.function.name in KEEPS_NOT_NULL
        and call.filter is None
        and bool(call.arguments)
        and not may_be_null(call.arguments[0], non_null)
    )


def _distinct(plan: Distinct, found: Properties) -> Properties:
    if plan.on:
        made = columns_in(expr for expr in plan.on if isinstance(expr, Column))
        keys = (made,) if len(made) == len(plan.on) else ()
    else:
        keys = (plan.ids,)
    return Properties(found.non_null, found.keys + keys, found.has_row)


def _join(plan: Join, left: Properties, right: Properties) -> Properties:
    kind = plan.kind
    left_equal, right_equal = equated_columns(plan)
    left_once = right.is_unique(right_equal)  # no left row has two partners
    right_once = left.is_unique(left_equal)
    match kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            rejected = null_rejected(plan.conditions) if kind is JoinKind.SEMI else frozenset()
            return Properties(left.non_null | (rejected & plan.left.ids), left.keys)
        case JoinKind.MARK:
            made = frozenset() if plan.mark is None or plan.mark_nulls else frozenset((plan.mark.id,))
            return Properties(left.non_null | made, left.keys, left.has_row)
        case JoinKind.SINGLE:
            return Properties(left.non_null, left.keys, left.has_row)
        case JoinKind.INNER:
            keys = _join_keys(left, right, left_once=left_once, right_once=right_once)
            has_row = not plan.conditions and left.has_row and right.has_row
            return Properties(left.non_null | right.non_null | null_rejected(plan.conditions), keys, has_row)
        case JoinKind.LEFT:
            keys = _join_keys(left, right, left_once=left_once, right_once=False)
            return Properties(left.non_null, keys, left.has_row)
        case JoinKind.RIGHT:
            keys = _join_keys(left, right, left_once=False, right_once=right_once)
            return Properties(right.non_null, keys, right.has_row)
        case JoinKind.FULL:
            return Properties(frozenset(), (), left.has_row or right.has_row)
        case _:
            assert_never(kind)


def _join_keys(
    left: Properties, right: Properties, *, left_once: bool, right_once: bool
) -> tuple[frozenset[int], ...]:
    keys = (left.keys if left_once else ()) + (right.keys if right_once else ())
    if not keys:
        keys = tuple(one | two for one in left.keys for two in right.keys)
    return keys[:KEYS_MAX]


def equated_columns(plan: Join) -> tuple[frozenset[int], frozenset[int]]:
    """Columns of the left and of the right side that conditions hold equal to something of the other side."""
    left_ids, right_ids = plan.left.ids, plan.right.ids
    left: set[int] = set()
    right: set[int] = set()
    for condition in plan.conditions:
        match condition:
            case bound.Compare(op="=" | "is not distinct", left=one, right=two):
                for this, other in ((one, two), (two, one)):
                    if not isinstance(this, Column):
                        continue
                    if this.id in left_ids and not bound.columns_of(other) & left_ids:
                        left.add(this.id)
                    elif this.id in right_ids and not bound.columns_of(other) & right_ids:
                        right.add(this.id)
    return frozenset(left), frozenset(right)


def _set_operation(plan: SetOperation, left: Properties, right: Properties) -> Properties:
    def by_position(side: Plan, found: Properties) -> list[bool]:
        return [column.id in found.non_null for column in side.columns]

    of_left, of_right = by_position(plan.left, left), by_position(plan.right, right)
    non_null = []
    for output, in_left, in_right in zip(plan.outputs, of_left, of_right, strict=True):
        is_certain = {
            SetKind.UNION: in_left and in_right,
            SetKind.INTERSECT: in_left or in_right,
            SetKind.EXCEPT: in_left,
        }
        if is_certain[plan.kind]:
            non_null.append(output.id)
    keys = () if plan.all else (columns_in(plan.outputs),)
    has_row = plan.kind is SetKind.UNION and (left.has_row or right.has_row)
    return Properties(frozenset(non_null), keys, has_row)


# --- correlation -----------------------------------------------------------------------------------------------------


def free_columns(plan: Plan, planning: Planning) -> frozenset[int]:
    """Ids of columns of a query around ``plan``: used by a node and answered by none of its inputs."""
    return planning.remember("free", plan, _free_columns)


def _free_columns(plan: Plan, planning: Planning) -> frozenset[int]:
    given = frozenset[int]().union(*(child.ids for child in plan.inputs))
    free = expression_columns(plans.expressions_of(plan), planning) - given
    for child in plan.inputs:
        inner = free_columns(child, planning)
        if isinstance(plan, Join) and plan.dependent and child is plan.right:
            inner -= plan.left.ids
        free |= inner
    return free


def expression_columns(exprs: Iterable[Expr], planning: Planning) -> frozenset[int]:
    """Ids of columns that ``exprs`` need of the rows they run over; a lambda's parameters are its own."""
    found: set[int] = set()
    for expr in exprs:
        for node in bound.walk(expr):
            match node:
                case Column(id=id):
                    found.add(id)
                case bound.ScalarSubquery(plan=plan) | bound.Exists(plan=plan) | bound.Quantified(plan=plan):
                    found |= free_columns(plan, planning)
        for node in bound.walk(expr):
            if isinstance(node, bound.Lambda):
                found -= columns_in(node.parameters)
    return frozenset(found)
