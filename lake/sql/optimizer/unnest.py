"""Dependent joins become plain ones: the right side is computed for all values of the outer columns at once.

    Join: left, dependent                              Join: left, p_partkey#1 = l_partkey#5
    ├─ Scan: part [p_partkey#1]                        ├─ Scan: part [p_partkey#1]
    └─ Aggregate: groups [] [avg#9 = avg(..#6)]        └─ Aggregate: groups [l_partkey#5] [avg#9 = avg(..#6)]
       └─ Filter: l_partkey#5 = p_partkey#1               └─ Filter: l_partkey#5 IS NOT NULL
          └─ Scan: lineitem [l_partkey#5]                    └─ Scan: lineitem [l_partkey#5]

An outer column that the right side holds equal to a column of its own is replaced by that column, as above. Others come from
the *domain*: the distinct values of those columns in the left side, joined to the right side's leaves. What each node does
with the domain's columns is in ``_Push``. Outer joins are taken before the joins inside their right side, so that a column
never has to be carried through two dependences at once.

Source: Neumann and Kemper, "Unnesting Arbitrary Queries", BTW 2015.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from lake.sql import bound, traits
from lake.sql import plan as plans
from lake.sql.bound import Column, Compare, Expr
from lake.sql.optimizer.copies import copy_plan, fixed
from lake.sql.optimizer.expressions import (
    columns_in,
    definitions,
    equality,
    is_not_null,
    is_true,
    is_volatile,
    not_,
    substitute,
)
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.properties import expression_columns, free_columns, properties
from lake.sql.optimizer.push_domain import Domain, Given, NeedsDomain, Push, of_nothing
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
    Scan,
    Sort,
    Unnest,
    Values,
)

PARTNERS: Final = frozenset((JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK))
"""Joins that answer no column of the right side."""


def unnest(plan: Plan, planning: Planning) -> Plan:
    """``plan`` without dependent joins, outermost first.

    0A000  a form that cannot be taken apart, named
    """
    if not traits.of_plan(plan) & traits.DEPENDENT:
        return plan
    while isinstance(plan, Join) and plan.dependent:
        plan = _independent(plan, planning)
    return plans.with_inputs(plan, lambda child: unnest(child, planning))


def _independent(join: Join, planning: Planning) -> Plan:
    """The plan of one dependent join whose right side no longer uses the left."""
    if join.kind in PARTNERS:
        join = _dissolve_projects(join)
    needed = free_columns(join.right, planning) & join.left.ids
    if not needed:
        return replace(join, dependent=False)
    for attempt in (_graft, _use_one_row, _pull_conditions):
        found = attempt(join, needed, planning)
        if found is not None:
            return found
    join = _hoist(join, needed, planning)
    needed = free_columns(join.right, planning) & join.left.ids
    return _pull_aggregate(join, needed, planning) or _with_domain(join, needed, planning)


def _dissolve_projects(join: Join) -> Join:
    """A join that answers no right column, its conditions computed from what is under the right side's projections."""
    right, conditions = join.right, join.conditions
    while isinstance(right, Project | Sort | Distinct):
        if isinstance(right, Sort) and right.limit is not None:
            break
        if isinstance(right, Distinct) and right.on:
            break
        if isinstance(right, Project):
            if any(is_volatile(expr) for expr in right.exprs):
                break
            conditions = substitute(conditions, definitions(right))
        right = right.input
    return replace(join, right=right, conditions=conditions)


# --- the right side only computes from the left's row ----------------------------------------------------------------


def _graft(join: Join, needed: frozenset[int], planning: Planning) -> Plan | None:
    """``LATERAL (SELECT f(l.a) ..)`` and ``LATERAL UNNEST(l.list)``: nodes over one empty row move onto the left side."""
    if join.kind not in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SINGLE):
        return None
    chain: list[Plan] = []
    node = join.right
    while isinstance(node, Project | Filter | Unnest):
        chain.append(node)
        node = node.input
    if not isinstance(node, Values) or len(node.rows) != 1:
        return None
    if join.kind is not JoinKind.INNER and not _keeps_every_row(chain, join):
        return None
    source: Plan = join.left
    if node.outputs:
        source = Project((*source.columns, *node.outputs), (*source.columns, *node.rows[0]), source)
    for step in reversed(chain):
        if isinstance(step, Project):
            kept = join.left.columns
            source = Project((*kept, *step.outputs), (*kept, *step.exprs), source)
        elif isinstance(step, Unnest):
            source = replace(step, input=source, is_outer=step.is_outer or join.kind is not JoinKind.INNER)
        else:
            assert isinstance(step, Filter)
            source = Filter(step.conjuncts, source)
    return Filter(join.conditions, source) if join.conditions else source


def _keeps_every_row(chain: list[Plan], join: Join) -> bool:
    """Whether a LEFT join's right side can be computed in place: one row always, or a plain UNNEST made outer."""
    if join.conditions or any(isinstance(step, Filter) for step in chain):
        return False
    unnests = [index for index, step in enumerate(chain) if isinstance(step, Unnest)]
    if not unnests:
        return True
    above = chain[: unnests[0]]
    is_plain = all(isinstance(expr, Column) for step in above if isinstance(step, Project) for expr in step.exprs)
    made = frozenset[int]().union(*(columns_in(chain[index].columns) for index in unnests))
    uses_made = all(
        expr.id in made for step in above if isinstance(step, Project) for expr in step.exprs if isinstance(expr, Column)
    )
    return len(unnests) == 1 and is_plain and uses_made and join.kind is JoinKind.LEFT


def _use_one_row(join: Join, needed: frozenset[int], planning: Planning) -> Plan | None:
    """SEMI, ANTI and MARK with exactly one right row for each left row: a LEFT join and a test of its columns."""
    if join.kind not in PARTNERS or not properties(join.right, planning).is_one:
        return None
    joined = Join(JoinKind.LEFT, join.left, join.right, dependent=True)
    holds = bound.conjunction(join.conditions)
    columns = join.columns
    match join.kind:
        case JoinKind.SEMI:
            return Project(columns, columns, Filter((holds,), joined))
        case JoinKind.ANTI:
            return Project(columns, columns, Filter((not_(is_true(holds)),), joined))
        case _:
            mark = holds if join.mark_nulls else is_true(holds)
            return Project(columns, (*join.left.columns, mark), joined)


# --- conditions pulled up --------------------------------------------------------------------------------------------


def _pull_conditions(join: Join, needed: frozenset[int], planning: Planning) -> Plan | None:
    """The right side's conditions on outer columns as conditions of the join, where nothing else uses those columns."""
    right, pulled = pull_up(join.right, needed, planning, keep_rows=join.kind not in PARTNERS)
    if not pulled or free_columns(right, planning) & needed:
        return None
    if join.mark_nulls:
        right, pulled = _without_nulls(right, pulled, join.left.ids, planning)
    return replace(join, right=right, conditions=(*join.conditions, *pulled), dependent=False)


def pull_up(
    plan: Plan, outer: frozenset[int], planning: Planning, *, keep_rows: bool
) -> tuple[Plan, tuple[Expr, ...]]:
    """``plan`` without the conditions that use ``outer`` columns, as far as they are above all else; and those conditions.

    keep_rows  how often a row stands in the plan matters, so DISTINCT stays
    """

    def split(conjuncts: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        parts = [part for item in conjuncts for part in bound.conjuncts(item)]
        used = [bool(expression_columns([part], planning) & outer) and not is_volatile(part) for part in parts]
        own = tuple(part for part, is_used in zip(parts, used, strict=True) if not is_used)
        return own, tuple(part for part, is_used in zip(parts, used, strict=True) if is_used)

    def below(child: Plan) -> tuple[Plan, tuple[Expr, ...]]:
        return pull_up(child, outer, planning, keep_rows=keep_rows)

    match plan:
        case Filter(conjuncts=conjuncts, input=source):
            own, pulled = split(conjuncts)
            inner, more = below(source)
            return Filter(own, inner) if own else inner, (*more, *pulled)
        case Project(outputs=outputs, exprs=exprs, input=source):
            inner, pulled = below(source)
            known = columns_in(outputs)
            used = bound.columns_of(pulled) - known
            more_columns = tuple(column for column in inner.columns if column.id in used)
            return Project((*outputs, *more_columns), (*exprs, *more_columns), inner), pulled
        case Sort(input=source, limit=None):
            return below(source)
        case Distinct(input=source, on=()) if not keep_rows:
            return below(source)
        case Join(kind=JoinKind.INNER, dependent=False):
            own, pulled = split(plan.conditions)
            left, of_left = below(plan.left)
            right, of_right = below(plan.right)
            return replace(plan, left=left, right=right, conditions=own), (*of_left, *of_right, *pulled)
        case Join(kind=JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI | JoinKind.MARK | JoinKind.SINGLE):
            left, pulled = below(plan.left)
            return replace(plan, left=left), pulled
        case _:
            return plan, ()


def _without_nulls(
    right: Plan, conditions: tuple[Expr, ...], left_ids: frozenset[int], planning: Planning
) -> tuple[Plan, tuple[Expr, ...]]:
    """Conditions that say which rows are compared, so written that none answers NULL: a MARK must not see those NULLs.

    An equality stays one the join can hash: the right side's NULLs go, and NULL on the left then finds no partner.
    """
    found: list[Expr] = []
    kept: list[Expr] = []
    for condition in conditions:
        sides = equality(condition)
        own = None if sides is None else next((side for side in sides if not bound.columns_of(side) & left_ids), None)
        if sides is None or own is None or not bound.columns_of(own):
            found.append(is_true(condition))
            continue
        found.append(Compare.of("is not distinct", *sides))
        kept.append(is_not_null(own))
    return (Filter(tuple(kept), right) if kept else right), tuple(found)


# --- expressions of outer columns ------------------------------------------------------------------------------------


def _hoist(join: Join, needed: frozenset[int], planning: Planning) -> Join:
    """A join whose left side computes what the right side holds equal to something of its own.

    CAST(o.a AS BIGINT) = i.b, inside the right side, becomes x = i.b with x a column of the left side.
    """
    found: dict[Expr, Column] = {}
    for node in plans.walk(join.right):
        if not isinstance(node, Filter | Join):
            continue
        for conjunct in node.conjuncts if isinstance(node, Filter) else node.conditions:
            for side in equality(conjunct) or ():
                used = bound.columns_of(side)
                if used and used <= needed and not isinstance(side, Column) and not is_volatile(side):
                    found.setdefault(side, planning.column(side.type, "outer"))
    if not found:
        return join

    def exchange(expr: Expr) -> Expr:
        return found.get(expr, expr)

    def exchange_sides(exprs: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(
            item if (sides := equality(item)) is None else Compare.of("=", exchange(sides[0]), exchange(sides[1]))
            for item in exprs
        )

    def change(node: Plan) -> Plan:
        if isinstance(node, Filter):
            return replace(node, conjuncts=exchange_sides(node.conjuncts))
        return replace(node, conditions=exchange_sides(node.conditions)) if isinstance(node, Join) else node

    kept = join.left.columns
    left = Project((*kept, *found.values()), (*kept, *found), join.left)
    return replace(join, left=left, right=plans.rewrite(join.right, change))


# --- a lone row of aggregates ----------------------------------------------------------------------------------------


def _pull_aggregate(join: Join, needed: frozenset[int], planning: Planning) -> Plan | None:
    """A scalar subquery over one group: grouped by the columns it was correlated by, and padded for rows without group.

    Project: l, 0.2 * avg#9                                        over what the projection of the subquery computed
    └─ Join: left, p_partkey#1 = l_partkey#5
    """
    if join.kind in PARTNERS or (join.conditions and join.kind is not JoinKind.INNER):
        return None
    projects: list[Project] = []
    node = join.right
    while isinstance(node, Project):
        projects.append(node)
        node = node.input
    is_lone = isinstance(node, Aggregate) and not node.groups and node.grouping_sets is None
    if not is_lone or expression_columns(plans.expressions_of(node), planning) & needed:
        return None
    assert isinstance(node, Aggregate)
    used = free_columns(node.input, planning) & needed
    if not used:
        return None
    outer, domain = join.left.ids, None
    try:
        source, given = Push(outer, None, planning).push(node.input, used)
    except NeedsDomain:
        domain = _make_domain(join.left, planning)
        source, given = Push(outer, domain, planning).push(node.input, used)
    keys = {id: planning.copy(column) for id, column in given.items()}
    calls = tuple((planning.copy(column), call) for column, call in node.aggregates)
    grouped = Aggregate(tuple((keys[id], column) for id, column in given.items()), calls, source)
    conditions = _equal_to_domain(join, grouped, keys, planning)
    kept = join.left.columns
    values = tuple(of_nothing(column, call) for column, call in calls)
    made = tuple(column for column, _ in node.aggregates)
    left = join.left if domain is None else domain.left
    padded: Plan = Join(JoinKind.LEFT, left, grouped, conditions)
    padded = Project((*kept, *made), (*kept, *values), padded)
    for project in reversed(projects):
        padded = Project((*kept, *project.outputs), (*kept, *project.exprs), padded)
    padded = Filter(join.conditions, padded) if join.conditions else padded
    return padded if domain is None else _with_definition(domain, padded)


# --- with the domain -------------------------------------------------------------------------------------------------


def _with_domain(join: Join, needed: frozenset[int], planning: Planning) -> Plan:
    """The right side for every combination of the outer columns' values, joined on them."""
    domain = _make_domain(join.left, planning)
    right, columns = Push(join.left.ids, domain, planning).push(join.right, needed)
    conditions = (*join.conditions, *_equal_to_domain(join, right, columns, planning))
    left = domain.left if domain.is_used else join.left
    return _with_definition(domain, replace(join, left=left, right=right, conditions=conditions, dependent=False))


def _equal_to_domain(join: Join, right: Plan, given: Given, planning: Planning) -> tuple[Expr, ...]:
    """The conditions that an outer row belongs to a row of the pushed right side."""
    non_null, right_non_null = properties(join.left, planning).non_null, properties(right, planning).non_null
    found: list[Expr] = []
    for column in join.left.columns:
        if column.id in given:
            own = given[column.id]
            is_plain = not join.mark_nulls and (column.id in non_null or own.id in right_non_null)
            found.append(Compare.of("=" if is_plain else "is not distinct", column, own))
    return tuple(found)


def _with_definition(domain: Domain, plan: Plan) -> Plan:
    """``plan`` under the outer rows it reads, where it does and they are not cheap to compute again."""
    if not domain.is_used or domain.cte is None:
        return plan
    return Materialize(domain.cte, "outer", fixed(domain.definition), plan)


def _make_domain(left: Plan, planning: Planning) -> Domain:
    """Where a domain takes its values from: a copy of a plain table, else the left side computed once and read again."""
    definition, columns = copy_plan(left, planning)
    if _is_cheap(left):
        return Domain(left, definition, {old.id: columns[old.id] for old in left.columns}, None)
    cte = next(planning.ctes)
    scan = CteScan(cte, "outer", left.columns)
    return Domain(scan, definition, {old.id: columns[old.id] for old in left.columns}, cte)


def _is_cheap(plan: Plan) -> bool:
    while isinstance(plan, Filter | Project):
        if any(is_volatile(expr) for expr in plans.expressions_of(plan)):
            return False
        plan = plan.input
    return isinstance(plan, Scan | Values | CteScan)

