"""Joins lowered: which operator joins, which side it builds, and which scans its keys narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lake.errors import FeatureNotSupported
from lake.exec.lower import Lowering, Needed, ids, only
from lake.exec.operators.asof_join import AsofJoin
from lake.exec.operators.base import Source
from lake.exec.operators.filter import Filter
from lake.exec.operators.hash_aggregate import HashAggregate
from lake.exec.operators.hash_join import Condition, HashJoin
from lake.exec.operators.loop_join import LoopJoin
from lake.exec.operators.marking_join import MarkingJoin
from lake.exec.operators.project import Project
from lake.exec.operators.scan import Scan
from lake.exec.operators.set_operation import UnionAll
from lake.exec.operators.sort import Sort
from lake.exec.operators.unnest import Unnest
from lake.exec.operators.window import Window
from lake.exec.pipeline import Break, Flow
from lake.sql import plan
from lake.sql.bound import Column, Compare, Expr, columns_of
from lake.sql.optimizer.statistics import rows_of
from lake.sql.plan import JoinKind, Plan

MARKING_ADVANTAGE: Final = 2.0
"""How many times larger the right side of a SEMI or ANTI join must be thought for the left one to be built."""


def lower_join(lowering: Lowering, node: plan.Join, needed: Needed) -> Flow:
    """A join whose right side is built, or whose left side is where that is much smaller.

    0A000  a dependent join
    """
    if node.dependent:
        raise FeatureNotSupported("a dependent join is not supported by the engine")
    condition = split_condition(node.conditions, ids(node.left), ids(node.right))
    used = columns_of(node.conditions)
    probe_flow = lowering.lower(node.left, (needed | used) & ids(node.left))
    build_flow = lowering.lower(node.right, (needed | used) & ids(node.right))
    answers_build = node.kind not in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)
    probe = only(probe_flow.columns, needed)
    build = only(build_flow.columns, needed) if answers_build else ()
    mark = node.mark if node.kind is JoinKind.MARK else None
    columns = (*probe, *build) if mark is None else (*probe, mark)
    with_nulls = node.kind is JoinKind.MARK and node.mark_nulls
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK) and condition.keys and not with_nulls:
        if _is_much_smaller(lowering, node.left, node.right):
            return _marking_join(lowering, node, condition, probe_flow, build_flow, needed)
    tested = used if with_nulls or not condition.keys else columns_of(condition.residual)
    kept = only(build_flow.columns, frozenset(column.id for column in build) | tested)
    through = only(probe_flow.columns, frozenset(column.id for column in probe) | tested)
    if not condition.keys:
        loop = LoopJoin(
            columns, node.kind, node.conditions, build_flow, probe, build, kept, through, mark, node.mark_nulls
        )
        return probe_flow.then(loop)
    join = HashJoin(columns, node.kind, condition, build_flow, probe, build, kept, through, mark, node.mark_nulls)
    if node.kind in (JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT):
        join.filters = hand_down([key for key, _ in condition.keys], condition.null_safe, probe_flow)
    return probe_flow.then(join)


def _marking_join(
    lowering: Lowering, node: plan.Join, condition: Condition, left: Flow, right: Flow, needed: Needed
) -> Flow:
    """A join that answers left rows, with the left side built: the right one is much larger."""
    turned = Condition(tuple((one, other) for other, one in condition.keys), condition.null_safe, condition.residual)
    build = only(left.columns, needed)
    tested = columns_of(condition.residual)
    kept = only(left.columns, frozenset(column.id for column in build) | tested)
    mark = node.mark if node.kind is JoinKind.MARK else None
    columns = build if mark is None else (*build, mark)
    join = MarkingJoin(columns, node.kind, turned, left, build, kept, only(right.columns, tested), mark)
    join.filters = hand_down([key for key, _ in turned.keys], turned.null_safe, right)
    return right.then(join)


def _is_much_smaller(lowering: Lowering, left: Plan, right: Plan) -> bool:
    """Whether the left side is thought to have far fewer rows than the right one."""
    planning = lowering.planning()
    return rows_of(left, planning) * MARKING_ADVANTAGE < rows_of(right, planning)


def lower_asof(lowering: Lowering, node: plan.AsofJoin, needed: Needed) -> Flow:
    """An ASOF join, whose right side is built."""
    keys = tuple(expr for pair in node.keys for expr in pair)
    used = columns_of(keys, node.left_time, node.right_time, node.conditions)
    tested = columns_of(node.conditions)
    answers_build = node.kind not in (JoinKind.SEMI, JoinKind.ANTI)
    build = only(node.right.columns, needed) if answers_build else ()
    left = lowering.lower(node.left, (needed | used) & ids(node.left))
    right = lowering.lower(node.right, (needed | used) & ids(node.right))
    return left.then(
        AsofJoin(
            (*only(left.columns, needed), *build), node, right, only(left.columns, needed), build,
            only(left.columns, tested), only(right.columns, tested | columns_of(build)),
        )
    )  # fmt: skip


def split_condition(conditions: Sequence[Expr], left: Needed, right: Needed) -> Condition:
    """The equalities between the sides as keys, and the rest."""
    keys, safe, residual = [], [], []
    for expr in conditions:
        if isinstance(expr, Compare) and expr.op in ("=", "is not distinct"):
            one, other = columns_of(expr.left), columns_of(expr.right)
            if one and other and one <= left and other <= right:
                keys.append((expr.left, expr.right))
                safe.append(expr.op != "=")
                continue
            if one and other and one <= right and other <= left:
                keys.append((expr.right, expr.left))
                safe.append(expr.op != "=")
                continue
        residual.append(expr)
    return Condition(tuple(keys), tuple(safe), tuple(residual))


def hand_down(keys: Sequence[Expr], null_safe: Sequence[bool], flow: Flow) -> list[tuple[int, Scan, Column]]:
    """The scans below a join's probe side that its build keys can narrow: position of the key, scan, column."""
    found = []
    for position, (key, is_safe) in enumerate(zip(keys, null_safe, strict=True)):
        if isinstance(key, Column) and not is_safe:
            found += [(position, scan, column) for scan, column in origins(flow, key.id)]
    return found


def origins(flow: Flow, wanted: int) -> list[tuple[Scan, Column]]:
    """The scans whose column is a flow's column, where dropping rows of the scan drops only rows with that value.

    Not through joins that keep unmatched build rows, for those depend on all probe rows, nor through LIMIT.
    """
    for stream in reversed(flow.streams):
        match stream:
            case Project(columns=columns, exprs=exprs):
                made = dict(zip((column.id for column in columns), exprs, strict=True))
                expr = made.get(wanted)
                if not isinstance(expr, Column):
                    return []
                wanted = expr.id
            case HashJoin() | LoopJoin():
                if stream.kind in (JoinKind.RIGHT, JoinKind.FULL):
                    return []
                if stream.kind is JoinKind.INNER and any(column.id == wanted for column in stream.build):
                    return origins(stream.build_flow, wanted)
            case MarkingJoin():
                return origins(stream.build_flow, wanted)
            case Filter() | Unnest():
                pass
            case _:
                return []
    return _source_origins(flow.source, wanted)


def _source_origins(source: Source, wanted: int) -> list[tuple[Scan, Column]]:
    match source:
        case Scan(read=read):
            return [(source, column) for column in read if column.id == wanted]
        case Break(breaker=HashAggregate() as breaker, flow=flow):
            exprs = {column.id: (index, expr) for index, (column, expr) in enumerate(breaker.groups)}
            index, expr = exprs.get(wanted, (-1, None))
            if isinstance(expr, Column) and all(index in keys for keys in breaker.sets):
                return origins(flow, expr.id)
        case Break(breaker=Sort(limit=None, offset=0), flow=flow):
            return origins(flow, wanted)
        case Break(breaker=Window(partition=partition), flow=flow):
            if any(isinstance(expr, Column) and expr.id == wanted for expr in partition):
                return origins(flow, wanted)
        case UnionAll(columns=columns, sides_in=sides):
            positions = [index for index, column in enumerate(columns) if column.id == wanted]
            return [found for at in positions for flow, made in sides for found in origins(flow, made[at].id)]
    return []
