"""Logical plans to physical operators: one match, one arm a node.

    Project: a                     Flow(Break(Flow(Scan t), HashAggregate), (Project,))
    └─ Aggregate: groups [a]
       └─ Scan: t

Lowering goes down with the ids of the columns that are read above, so that an operator answers those alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from lake.errors import FeatureNotSupported
from lake.exec.context import Context
from lake.exec.operators.asof_join import AsofJoin
from lake.exec.operators.base import Breaker, Operator, Source
from lake.exec.operators.distinct_on import DistinctOn
from lake.exec.operators.filter import Filter
from lake.exec.operators.hash_aggregate import HashAggregate
from lake.exec.operators.hash_join import Condition, HashJoin
from lake.exec.operators.limit import Limit
from lake.exec.operators.loop_join import LoopJoin
from lake.exec.operators.marking_join import MarkingJoin
from lake.exec.operators.materialize import CteScan, CteSlot
from lake.exec.operators.project import Project
from lake.exec.operators.recursion import Recursion
from lake.exec.operators.sample import Reservoir, SamplePercent
from lake.exec.operators.scan import Scan
from lake.exec.operators.set_operation import CountedRows, UnionAll
from lake.exec.operators.sort import Sort
from lake.exec.operators.top_n import TOP_ROWS_MAX, TopN
from lake.exec.operators.unnest import Unnest
from lake.exec.operators.values import Values
from lake.exec.operators.window import Window
from lake.exec.pipeline import Break, Flow
from lake.sql import plan
from lake.sql.bound import AggregateCall, Column, Compare, Expr, columns_of
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.statistics import rows_of
from lake.sql.plan import JoinKind, Plan, SetKind
from lake.types import Text

Needed = frozenset[int]

MARKING_ADVANTAGE: Final = 2.0
"""How many times larger the right side of a SEMI or ANTI join must be thought for the left one to be built."""


def lower_plan(root: Plan, context: Context) -> Flow:
    """The operators that compute a plan.

    0A000  a node that the engine does not run
    """
    return Lowering(context, root).lower(root, frozenset(column.id for column in root.columns))


class Lowering:
    """One plan's lowering: the WITH queries in sight by number."""

    def __init__(self, context: Context, root: Plan) -> None:
        self._context = context
        self._root = root
        self._planning: Planning | None = None
        self._slots: dict[int, CteSlot] = {}
        self._scanned: set[int] = set()

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
                return flow.then(Filter(_only(flow.columns, needed), conjuncts))
            case plan.Project():
                return self._project(node, needed)
            case plan.Aggregate():
                return self._aggregate(node, needed)
            case plan.Window(partition=partition, order=order, calls=calls, input=below):
                kept_calls = tuple(pair for pair in calls if pair[0].id in needed)
                if not kept_calls:
                    return self.lower(below, needed)
                flow = self.lower(below, needed | columns_of(partition, order, tuple(call for _, call in kept_calls)))
                return _broken(flow, Window(_only(node.columns, needed), flow.columns, partition, order, kept_calls))
            case plan.Sort(keys=keys, input=below, limit=limit, offset=offset):
                flow = self.lower(below, needed | columns_of(keys))
                columns = _only(below.columns, needed)
                if limit is not None and limit + offset <= TOP_ROWS_MAX:
                    return _broken(flow, TopN(columns, keys, limit, offset))
                return _broken(flow, Sort(columns, keys, limit, offset))
            case plan.Limit(limit=count, offset=first, input=below, is_percent=is_percent, ties=ties):
                flow = self.lower(below, needed | columns_of(ties))
                return Flow(Limit(flow.columns, flow, count, first, is_percent, ties))
            case plan.Distinct():
                return self._distinct(node, needed)
            case plan.Unnest(lists=lists, input=below):
                flow = self.lower(below, needed | columns_of(tuple(expr for _, expr in lists)))
                kept_lists = tuple((column, expr) for column, expr in lists)
                columns = _only(node.columns, needed)
                return flow.then(Unnest(columns, _only(flow.columns, needed), kept_lists, node.ordinality, node.is_outer))
            case plan.Sample(amount=amount, is_percent=is_percent, seed=seed, input=below):
                flow = self.lower(below, needed)
                if is_percent:
                    return flow.then(SamplePercent(flow.columns, amount, seed))
                return _broken(flow, Reservoir(flow.columns, int(amount), seed))
            case plan.Join():
                return self._join(node, needed)
            case plan.AsofJoin():
                return self._asof(node, needed)
            case plan.SetOperation():
                return self._set_operation(node, needed)
            case plan.Materialize(cte=cte, name=name, definition=definition, input=below):
                self._slots[cte] = CteSlot(name, definition.columns, self.lower(definition, _ids(definition)))
                return self.lower(below, needed)
            case plan.CteScan(cte=cte, outputs=outputs):
                if cte not in self._slots:
                    raise FeatureNotSupported("a WITH query is read where it is not defined")
                cte_scan = CteScan(_only(outputs, needed), outputs, self._slots[cte], cte not in self._scanned)
                self._scanned.add(cte)
                return Flow(cte_scan)
            case plan.Recursion():
                return self._recursion(node, needed)
            case _:
                raise FeatureNotSupported(f"{type(node).__name__} is not supported by the engine")

    def _project(self, node: plan.Project, needed: Needed) -> Flow:
        pairs = [(column, expr) for column, expr in zip(node.outputs, node.exprs, strict=True) if column.id in needed]
        exprs = tuple(expr for _, expr in pairs)
        flow = self.lower(node.input, columns_of(exprs))
        if all(isinstance(expr, Column) and expr.id == column.id for column, expr in pairs) and pairs:
            return flow
        return flow.then(Project(tuple(column for column, _ in pairs), exprs))

    def _aggregate(self, node: plan.Aggregate, needed: Needed) -> Flow:
        aggregates = tuple(pair for pair in node.aggregates if pair[0].id in needed)
        exprs = tuple(expr for _, expr in node.groups)
        flow = self.lower(node.input, columns_of(exprs, tuple(call for _, call in aggregates)))
        code_texts(flow, exprs, [call for _, call in aggregates])
        every = tuple(range(len(node.groups)))
        sets = (every,) if node.grouping_sets is None else node.grouping_sets
        return _broken(
            flow, HashAggregate(_only(node.columns, needed), node.groups, aggregates, sets, node.grouping_id)
        )

    def _distinct(self, node: plan.Distinct, needed: Needed) -> Flow:
        if not node.on:
            flow = self.lower(node.input, _ids(node.input))
            columns = node.input.columns
            groups = tuple((column, column) for column in columns)
            code_texts(flow, columns, ())
            return _broken(flow, HashAggregate(_only(columns, needed), groups, (), (tuple(range(len(groups))),)))
        flow = self.lower(node.input, needed | columns_of(node.on, node.order))
        if node.order:
            flow = _broken(flow, Sort(flow.columns, node.order))
        return _broken(flow, DistinctOn(_only(flow.columns, needed), node.on))

    def _join(self, node: plan.Join, needed: Needed) -> Flow:
        if node.dependent:
            raise FeatureNotSupported("a dependent join is not supported by the engine")
        condition = split_condition(node.conditions, _ids(node.left), _ids(node.right))
        used = columns_of(node.conditions)
        probe_flow = self.lower(node.left, (needed | used) & _ids(node.left))
        build_flow = self.lower(node.right, (needed | used) & _ids(node.right))
        answers_build = node.kind not in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)
        probe = _only(probe_flow.columns, needed)
        build = _only(build_flow.columns, needed) if answers_build else ()
        mark = node.mark if node.kind is JoinKind.MARK else None
        columns = (*probe, *build) if mark is None else (*probe, mark)
        with_nulls = node.kind is JoinKind.MARK and node.mark_nulls
        if node.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK) and condition.keys and not with_nulls:
            if self._is_much_smaller(node.left, node.right):
                return self._marking_join(node, condition, probe_flow, build_flow, needed)
        tested = used if with_nulls or not condition.keys else columns_of(condition.residual)
        kept = _only(build_flow.columns, frozenset(column.id for column in build) | tested)
        through = _only(probe_flow.columns, frozenset(column.id for column in probe) | tested)
        if not condition.keys:
            loop = LoopJoin(
                columns, node.kind, node.conditions, build_flow, probe, build, kept, through, mark, node.mark_nulls
            )
            return probe_flow.then(loop)
        join = HashJoin(columns, node.kind, condition, build_flow, probe, build, kept, through, mark, node.mark_nulls)
        if node.kind in (JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT):
            join.filters = hand_down([key for key, _ in condition.keys], condition.null_safe, probe_flow)
        return probe_flow.then(join)

    def _marking_join(self, node: plan.Join, condition: Condition, left: Flow, right: Flow, needed: Needed) -> Flow:
        """A join that answers left rows, with the left side built: the right one is much larger."""
        turned = Condition(tuple((one, other) for other, one in condition.keys), condition.null_safe, condition.residual)
        build = _only(left.columns, needed)
        tested = columns_of(condition.residual)
        kept = _only(left.columns, frozenset(column.id for column in build) | tested)
        mark = node.mark if node.kind is JoinKind.MARK else None
        columns = build if mark is None else (*build, mark)
        join = MarkingJoin(columns, node.kind, turned, left, build, kept, _only(right.columns, tested), mark)
        join.filters = hand_down([key for key, _ in turned.keys], turned.null_safe, right)
        return right.then(join)

    def _is_much_smaller(self, left: Plan, right: Plan) -> bool:
        """Whether the left side is thought to have far fewer rows than the right one."""
        if self._planning is None:
            self._planning = Planning.of(self._root, self._context.settings, None)
        return rows_of(left, self._planning) * MARKING_ADVANTAGE < rows_of(right, self._planning)

    def _asof(self, node: plan.AsofJoin, needed: Needed) -> Flow:
        keys = tuple(expr for pair in node.keys for expr in pair)
        used = columns_of(keys, node.left_time, node.right_time, node.conditions)
        tested = columns_of(node.conditions)
        answers_build = node.kind not in (JoinKind.SEMI, JoinKind.ANTI)
        build = _only(node.right.columns, needed) if answers_build else ()
        left = self.lower(node.left, (needed | used) & _ids(node.left))
        right = self.lower(node.right, (needed | used) & _ids(node.right))
        return left.then(
            AsofJoin(
                (*_only(left.columns, needed), *build), node, right, _only(left.columns, needed), build,
                _only(left.columns, tested), _only(right.columns, tested | columns_of(build)),
            )
        )  # fmt: skip

    def _set_operation(self, node: plan.SetOperation, needed: Needed) -> Flow:
        keeps_all = node.kind is SetKind.UNION and node.all
        wanted = [index for index, column in enumerate(node.outputs) if not keeps_all or column.id in needed]
        outputs = tuple(node.outputs[index] for index in wanted)
        sides = []
        for side in (node.left, node.right):
            columns = tuple(side.columns[index] for index in wanted)
            sides.append((self.lower(side, frozenset(column.id for column in columns)), columns))
        if node.kind is not SetKind.UNION:
            both = UnionAll(outputs, tuple(sides), tagged=True)
            return _broken(Flow(both), CountedRows(outputs, node.kind, node.all))
        union = Flow(UnionAll(outputs, tuple(sides)))
        if node.all:
            return union
        groups = tuple((column, column) for column in outputs)
        return _broken(union, HashAggregate(_only(outputs, needed), groups, (), (tuple(range(len(groups))),)))

    def _recursion(self, node: plan.Recursion, needed: Needed) -> Flow:
        outer = self._slots.get(node.cte)
        anchor = self.lower(node.anchor, _ids(node.anchor))
        round_columns = node.outputs if node.keyed is None or not node.all else node.keyed.inputs
        slot = CteSlot(node.name, round_columns, None)
        so_far = CteSlot(f"recurring.{node.name}", node.outputs, None) if node.recurring else None
        self._slots[node.cte] = slot

        def lower_step() -> Flow:
            lowering = Lowering(self._context, self._root)
            lowering._slots = {**slots, node.cte: slot}
            if so_far is not None:
                lowering._slots[node.recurring] = so_far
            return lowering.lower(node.step, _ids(node.step))

        slots = dict(self._slots)
        if outer is not None:
            self._slots[node.cte] = outer
        return Flow(
            Recursion(
                node.outputs, anchor, node.anchor.columns, lower_step, node.step.columns, slot, so_far, node.all, node.keyed
            )
        )


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


def _scan(node: plan.Scan, more: tuple[Expr, ...], needed: Needed) -> Scan:
    filters = (*node.filters, *more)
    used = needed | columns_of(filters)
    read = [(column, name) for column, name in zip(node.outputs, node.names, strict=True) if column.id in used]
    scan = Scan(
        _only(node.outputs, needed), ".".join(node.table.name), node.table.rows,
        tuple(column for column, _ in read), tuple(name for _, name in read), filters,
    )  # fmt: skip
    scan.plan = replace(node, filters=filters) if more else node
    return scan


def code_texts(flow: Flow, keys: Sequence[Expr], calls: Sequence[AggregateCall]) -> None:
    """Has the joins of a flow answer texts as codes where nothing but keys of groups are made of them."""
    used = columns_of(tuple(calls), tuple(key for key in keys if not isinstance(key, Column)))
    wanted = {key.id for key in keys if isinstance(key, Column) and isinstance(key.type, Text)} - used
    for stream in reversed(flow.streams):
        match stream:
            case HashJoin(build=build):
                stream.coded = tuple(column for column in build if column.id in wanted)
            case Project(columns=columns, exprs=exprs):
                made = {column.id: expr for column, expr in zip(columns, exprs, strict=True)}
                wanted = {expr.id for id in wanted if isinstance(expr := made.get(id), Column)}
        if not wanted:
            return


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


def _broken(flow: Flow, breaker: Breaker) -> Flow:
    return Flow(Break(flow, breaker))


def _only(columns: Sequence[Column], ids: Needed) -> tuple[Column, ...]:
    return tuple(column for column in columns if column.id in ids)


def _ids(node: Plan) -> Needed:
    return frozenset(column.id for column in node.columns)
