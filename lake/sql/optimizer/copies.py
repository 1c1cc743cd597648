"""Plans like one at hand: with column ids of their own, for a plan that stands in two places; with other fields; in order."""

from __future__ import annotations

from operator import is_
from typing import Any

from msgspec.structs import replace

from lake.sql.bound import AggregateCall, Column, Expr, Frame, FrameBound, SortKey, WindowCall
from lake.sql.optimizer.planning import Planning, walk_deep
from lake.sql.plan import CteScan, Materialize, P, Plan, Project, Recursion, SetOperation, Values


def copy_plan(plan: Plan, planning: Planning) -> tuple[Plan, dict[int, Column]]:
    """``plan`` with a fresh id for every column it makes, and the fresh column of each old id.

    Columns of an outer query stay; common table expressions defined inside get numbers of their own.
    """
    columns: dict[int, Column] = {}
    ctes: dict[int, int] = {}
    for node in walk_deep(plan):
        for column in node.columns:
            if column.id not in columns:
                columns[column.id] = planning.copy(column)
        if isinstance(node, Materialize | Recursion) and node.cte not in ctes:
            ctes[node.cte] = next(planning.ctes)
    return _renamed(plan, columns, ctes), columns


def _renamed(value: Any, columns: dict[int, Column], ctes: dict[int, int]) -> Any:
    """``value`` with columns and numbers replaced, wherever they stand."""
    if type(value) is Column:
        return columns.get(value.id, value)
    if isinstance(value, tuple):
        parts = tuple(_renamed(part, columns, ctes) for part in value)
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    if not isinstance(value, Expr | Plan | SortKey | AggregateCall | WindowCall | Frame | FrameBound):
        return value
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        before = getattr(value, name)
        after = _renamed(before, columns, ctes)
        if after is not before:
            changed[name] = after
    if isinstance(value, CteScan | Materialize | Recursion) and value.cte in ctes:
        changed["cte"] = ctes[value.cte]
    return replace(value, **changed) if changed else value


def fixed(plan: Plan) -> Plan:
    """``plan`` under a projection that keeps its columns' order, for nodes that read it by position."""
    if isinstance(plan, Project | Values | SetOperation | Recursion):
        return plan
    return Project(plan.columns, plan.columns, plan)


def aligned(plan: Plan, columns: tuple[Column, ...]) -> Plan:
    """``plan`` answering ``columns`` (all of which it makes) and no others, in this order."""
    if tuple(column.id for column in plan.columns) == tuple(column.id for column in columns):
        return plan
    return Project(columns, columns, plan)


def with_fields(plan: P, **fields: object) -> P:
    """``plan`` with other fields; itself where each is as it was, so that what is known of it stays known."""
    for name, after in fields.items():
        before = getattr(plan, name)
        if before is not after and not _are_same(before, after):
            return replace(plan, **fields)
    return plan


def _are_same(before: object, after: object) -> bool:
    """Whether two tuples hold the same objects."""
    if not isinstance(before, tuple) or not isinstance(after, tuple):
        return False
    return len(before) == len(after) and all(map(is_, before, after))
