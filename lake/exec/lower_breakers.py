"""Nodes lowered that gather rows before they answer any: groups, orders, windows, sets, WITH queries; and lists."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lake.errors import FeatureNotSupported
from lake.exec.lower import Lowering, Needed, broken, ids, only
from lake.exec.operators.distinct_on import DistinctOn
from lake.exec.operators.fetch import FETCHED_ROWS_MAX, FetchRows
from lake.exec.operators.filter import Filter
from lake.exec.operators.hash_aggregate import HashAggregate
from lake.exec.operators.hash_join import HashJoin
from lake.exec.operators.materialize import CteScan, CteSlot
from lake.exec.operators.project import Project
from lake.exec.operators.recursion import Recursion
from lake.exec.operators.sample import Reservoir, SamplePercent
from lake.exec.operators.scan import PLACE, Scan
from lake.exec.operators.set_operation import CountedRows, UnionAll
from lake.exec.operators.sort import Sort
from lake.exec.operators.top_n import TOP_ROWS_MAX, TopN
from lake.exec.operators.unnest import Unnest
from lake.exec.operators.window import Window
from lake.exec.pipeline import Flow
from lake.sql import plan
from lake.sql.bound import AggregateCall, Column, Expr, columns_of
from lake.sql.optimizer.expressions import is_volatile
from lake.sql.optimizer.partial_aggregates import overload
from lake.sql.optimizer.statistics import rows_of
from lake.sql.plan import JoinKind, SetKind
from lake.types import BIGINT, BOOLEAN, Text


def lower_window(lowering: Lowering, node: plan.Window, needed: Needed) -> Flow:
    """A window's values beside the rows; those that nobody reads are not computed."""
    calls = tuple(pair for pair in node.calls if pair[0].id in needed)
    if not calls:
        return lowering.lower(node.input, needed)
    read = columns_of(node.partition, node.order, tuple(call for _, call in calls))
    flow = lowering.lower(node.input, needed | read)
    return broken(flow, Window(only(node.columns, needed), flow.columns, node.partition, node.order, calls))


def lower_sort(lowering: Lowering, node: plan.Sort, needed: Needed) -> Flow:
    """The rows in order; where few of them are asked for, only those are kept."""
    flow = lowering.lower(node.input, needed | columns_of(node.keys))
    columns = only(node.input.columns, needed)
    if node.limit is not None and node.limit + node.offset <= TOP_ROWS_MAX:
        return _lower_top(flow, columns, node, node.limit)
    return broken(flow, Sort(columns, node.keys, node.limit, node.offset))


def _lower_top(flow: Flow, columns: tuple[Column, ...], node: plan.Sort, limit: int) -> Flow:
    """The first rows; of a scan's the columns that are no keys are fetched when it is known which rows these are."""
    kept = _defer(flow, columns, node)
    top = TopN(kept or columns, node.keys, limit, node.offset)
    _offer_bound(flow, top)
    rows = broken(flow, top)
    if not kept:
        return rows
    assert isinstance(flow.source, Scan)
    fetch = FetchRows(columns, flow.source)
    top.plan, fetch.plan = node, plan.Project(flow.source.deferred, flow.source.deferred, node)
    return rows.then(fetch)


def _defer(flow: Flow, columns: Sequence[Column], node: plan.Sort) -> tuple[Column, ...]:
    """Has a scan answer the sort keys and places alone, where few rows are asked for and more columns; else answers ()."""
    scan = flow.source
    if flow.streams or not isinstance(scan, Scan) or not getattr(scan.rows, "is_by_column", False):
        return ()
    used = columns_of(node.keys)
    keys = only(scan.columns, used)
    if node.limit is None or node.limit + node.offset > FETCHED_ROWS_MAX or not set(columns) - set(keys):
        return ()
    scan.defer(keys)
    return (*only(columns, used), PLACE)


def _offer_bound(flow: Flow, top: TopN) -> None:
    """Tells a scan of the bound of its column that is the first key, where dropping its rows drops no others."""
    key: Expr = top.keys[0].expr
    for stream in reversed(flow.streams):
        match stream:
            case Project(columns=columns, exprs=exprs):
                key = next((expr for column, expr in zip(columns, exprs, strict=True) if column == key), key)
                is_passed = not any(map(is_volatile, exprs))
            case Filter(conjuncts=conjuncts):
                is_passed = not any(map(is_volatile, conjuncts))
            case HashJoin(kind=kind):
                is_passed = kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
            case _:
                is_passed = False
        if not is_passed:
            return
    source = flow.source
    if top.bound is not None and isinstance(source, Scan) and isinstance(key, Column) and key in source.columns:
        source.top = (key, top.bound)


def lower_sample(lowering: Lowering, node: plan.Sample, needed: Needed) -> Flow:
    """A share of the rows, or a number of them."""
    flow = lowering.lower(node.input, needed)
    if node.is_percent:
        return flow.then(SamplePercent(flow.columns, node.amount, node.seed))
    return broken(flow, Reservoir(flow.columns, int(node.amount), node.seed))


def lower_unnest(lowering: Lowering, node: plan.Unnest, needed: Needed) -> Flow:
    """A row for each element of lists."""
    flow = lowering.lower(node.input, needed | columns_of(tuple(expr for _, expr in node.lists)))
    columns = only(node.columns, needed)
    return flow.then(Unnest(columns, only(flow.columns, needed), tuple(node.lists), node.ordinality, node.is_outer))


def lower_materialize(lowering: Lowering, node: plan.Materialize, needed: Needed) -> Flow:
    """What reads a WITH query that is computed once."""
    definition = node.definition
    lowering.slots[node.cte] = CteSlot(node.name, definition.columns, lowering.lower(definition, ids(definition)))
    return lowering.lower(node.input, needed)


def lower_cte_scan(lowering: Lowering, node: plan.CteScan, needed: Needed) -> Flow:
    """The rows of a WITH query.

    0A000  it is read where it is not defined
    """
    cte = node.cte
    if cte not in lowering.slots:
        raise FeatureNotSupported("a WITH query is read where it is not defined")
    scan = CteScan(only(node.outputs, needed), node.outputs, lowering.slots[cte], cte not in lowering.scanned)
    lowering.scanned.add(cte)
    return Flow(scan)


def lower_aggregate(lowering: Lowering, node: plan.Aggregate, needed: Needed) -> Flow:
    """The groups with their aggregates; those that nobody reads are not computed."""
    aggregates = tuple(pair for pair in node.aggregates if pair[0].id in needed)
    exprs = tuple(expr for _, expr in node.groups)
    flow = lowering.lower(node.input, columns_of(exprs, tuple(call for _, call in aggregates)))
    code_texts(flow, exprs, [call for _, call in aggregates])
    every = tuple(range(len(node.groups)))
    sets = (every,) if node.grouping_sets is None else node.grouping_sets
    columns = only(node.columns, needed)
    expected = partial(_rows_thought, lowering, node)
    return broken(flow, HashAggregate(columns, node.groups, aggregates, sets, node.grouping_id, expected, _scan_of(flow)))


def _scan_of(flow: Flow) -> Scan | None:
    """The scan that a flow is, where it is nothing else."""
    return flow.source if isinstance(flow.source, Scan) and not flow.streams else None


def _rows_thought(lowering: Lowering, node: plan.Aggregate | plan.Distinct | plan.SetOperation) -> float:
    """How many groups the planner thinks that there are; of several grouping sets no more than rows."""
    thought = rows_of(node, lowering.planning())
    return min(thought, rows_of(node.input, lowering.planning())) if isinstance(node, plan.Aggregate) else thought


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


def lower_distinct(lowering: Lowering, node: plan.Distinct, needed: Needed) -> Flow:
    """Each row once, or the first one of each key of DISTINCT ON."""
    if not node.on:
        flow = lowering.lower(node.input, ids(node.input))
        columns = node.input.columns
        groups = tuple((column, column) for column in columns)
        code_texts(flow, columns, ())
        every = (tuple(range(len(groups))),)
        expected = partial(_rows_thought, lowering, node)
        return broken(flow, HashAggregate(only(columns, needed), groups, (), every, None, expected, _scan_of(flow)))
    flow = lowering.lower(node.input, needed | columns_of(node.on, node.order))
    if node.order:
        flow = broken(flow, Sort(flow.columns, node.order))
    return broken(flow, DistinctOn(only(flow.columns, needed), node.on))


def lower_set_operation(lowering: Lowering, node: plan.SetOperation, needed: Needed) -> Flow:
    """UNION as one flow after the other, INTERSECT and EXCEPT by counting rows of each kind and side."""
    keeps_all = node.kind is SetKind.UNION and node.all
    wanted = [index for index, column in enumerate(node.outputs) if not keeps_all or column.id in needed]
    outputs = tuple(node.outputs[index] for index in wanted)
    sides = []
    for side in (node.left, node.right):
        columns = tuple(side.columns[index] for index in wanted)
        sides.append((lowering.lower(side, frozenset(column.id for column in columns)), columns))
    groups = tuple((column, column) for column in outputs)
    every = (tuple(range(len(groups))),)
    if node.kind is not SetKind.UNION:
        is_right = lowering.planning().column(BOOLEAN, "is_right", nullable=False)
        both, right = (lowering.planning().column(BIGINT, name, nullable=False) for name in ("both", "right"))
        tagged = UnionAll((*outputs, is_right), tuple(sides), tagged=True)
        calls = (
            (both, AggregateCall(BIGINT, overload("count", "ANY"), (is_right,))),
            (right, AggregateCall(BIGINT, overload("count_if", "BOOLEAN"), (is_right,))),
        )
        kinds = HashAggregate((*outputs, both, right), groups, calls, every)
        return broken(Flow(tagged), kinds).then(CountedRows(outputs, node.kind, node.all, both, right))
    union = Flow(UnionAll(outputs, tuple(sides)))
    if node.all:
        return union
    expected = partial(_rows_thought, lowering, node)
    return broken(union, HashAggregate(only(outputs, needed), groups, (), every, None, expected))


def lower_recursion(lowering: Lowering, node: plan.Recursion, needed: Needed) -> Flow:
    """WITH RECURSIVE: its step is lowered again for each round."""
    outer = lowering.slots.get(node.cte)
    anchor = lowering.lower(node.anchor, ids(node.anchor))
    round_columns = node.outputs if node.keyed is None or not node.all else node.keyed.inputs
    slot = CteSlot(node.name, round_columns, None)
    so_far = CteSlot(f"recurring.{node.name}", node.outputs, None) if node.recurring else None
    lowering.slots[node.cte] = slot

    def lower_step() -> Flow:
        step = Lowering(lowering.context, lowering.root)
        step.slots = {**slots, node.cte: slot}
        if so_far is not None:
            step.slots[node.recurring] = so_far
        return step.lower(node.step, ids(node.step))

    slots = dict(lowering.slots)
    if outer is not None:
        lowering.slots[node.cte] = outer
    return Flow(
        Recursion(
            node.outputs, anchor, node.anchor.columns, lower_step, node.step.columns, slot, so_far, node.all, node.keyed
        )
    )
