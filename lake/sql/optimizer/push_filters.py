"""Conjuncts move as near to the scans as they may, and outer joins that a conjunct makes pointless become inner ones.

    Filter: o_orderdate#5 < .., n_name#9 = 'FRANCE'     Join: inner, o_nationkey#4 = n_nationkey#8
    └─ Join: left, o_nationkey#4 = n_nationkey#8        ├─ Scan: orders, o_orderdate#5 < ..
       ├─ Scan: orders                                  └─ Scan: nation, n_name#9 = 'FRANCE'
       └─ Scan: nation

Through inner joins conjuncts are told of equal columns (``a = b AND b = 5`` gives ``a = 5``), and an OR over both sides tells
each side what all its branches ask of that side alone. Volatile conjuncts stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from lake.sql import bound, traits
from lake.sql import plan as plans
from lake.sql.bound import Column, Compare, Expr, InList, Literal, Not, Or
from lake.sql.optimizer.copies import with_fields
from lake.sql.optimizer.expressions import (
    columns_in,
    definitions,
    disjunction,
    disjuncts,
    equality,
    is_volatile,
    rejects_null,
    substitute,
)
from lake.sql.optimizer.planning import Planning
from lake.sql.plan import (
    Aggregate,
    AsofJoin,
    CteScan,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    Scan,
    SetOperation,
    Sort,
    Unnest,
    Window,
)

Conjuncts = tuple[Expr, ...]


def push_filters(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with every conjunct as near to the scans as it may be."""
    return _push(plan, ())


def _push(plan: Plan, conjuncts: Conjuncts) -> Plan:
    """``plan`` with ``conjuncts``, which use its columns, applied to its rows or further down."""
    match plan:
        case Filter(conjuncts=own, input=source):
            held = tuple(item for item in own if is_volatile(item))
            moved = tuple(item for item in own if not is_volatile(item))
            if held:
                return _over(Filter(held, _push(source, moved)), conjuncts)
            return _push(source, _merged(moved, conjuncts))
        case Scan(filters=filters):
            return with_fields(plan, filters=_merged(filters, conjuncts)) if conjuncts else plan
        case Project():
            return _push_project(plan, conjuncts)
        case Aggregate():
            return _push_through(plan, plan.input, conjuncts, _group_keys(plan) if conjuncts else {})
        case Window(partition=partition):
            return _push_through(plan, plan.input, conjuncts, _itself(partition))
        case Sort(limit=None, input=source):
            return with_fields(plan, input=_push(source, conjuncts))
        case Distinct(on=on):
            return _push_through(plan, plan.input, conjuncts, _itself(on if on else plan.columns))
        case Unnest():
            return _push_through(plan, plan.input, conjuncts, _itself(plan.input.columns))
        case Join():
            return _push_join(plan, conjuncts)
        case AsofJoin(kind=JoinKind.RIGHT | JoinKind.FULL):
            return _over(with_fields(plan, left=_push(plan.left, ()), right=_push(plan.right, ())), conjuncts)
        case AsofJoin():
            ids = plan.left.ids
            to_left = tuple(item for item in conjuncts if _is_within(item, ids))
            kept = tuple(item for item in conjuncts if item not in to_left)
            return _over(with_fields(plan, left=_push(plan.left, to_left), right=_push(plan.right, ())), kept)
        case SetOperation():
            return _push_set_operation(plan, conjuncts)
        case Materialize():
            source = _push(plan.input, conjuncts)
            asked = _asked_by_all(source, plan.cte, plan.definition)
            return with_fields(plan, definition=_push(plan.definition, asked), input=source)
        case _:
            return _over(plans.with_inputs(plan, lambda child: _push(child, ())), conjuncts)


def _over(plan: Plan, conjuncts: Conjuncts) -> Plan:
    return Filter(conjuncts, plan) if conjuncts else plan


def _merged(first: Conjuncts, second: Conjuncts) -> Conjuncts:
    """Both without repeats, in order."""
    return tuple(dict.fromkeys((*first, *second)))


def _is_within(expr: Expr, ids: frozenset[int]) -> bool:
    """Whether ``expr`` uses columns, and of ``ids`` alone."""
    used = bound.columns_of(expr)
    return bool(used) and used <= ids


# --- one input -------------------------------------------------------------------------------------------------------


def _push_project(plan: Project, conjuncts: Conjuncts) -> Plan:
    if not conjuncts:
        return with_fields(plan, input=_push(plan.input, ()))
    volatile = columns_in(
        column for column, expr in zip(plan.outputs, plan.exprs, strict=True) if is_volatile(expr)
    )
    kept = tuple(item for item in conjuncts if bound.columns_of(item) & volatile)
    moved = substitute(tuple(item for item in conjuncts if item not in kept), definitions(plan))
    flat = tuple(part for item in moved for part in bound.conjuncts(item))
    return _over(with_fields(plan, input=_push(plan.input, flat)), kept)


def _push_through(
    plan: Aggregate | Window | Distinct | Unnest, source: Plan, conjuncts: Conjuncts, known: dict[int, Expr]
) -> Plan:
    """Conjuncts over columns that are ``known`` below go there; the others stay above."""
    ids = frozenset(known)
    moved = tuple(item for item in conjuncts if _is_within(item, ids))
    kept = tuple(item for item in conjuncts if item not in moved)
    return _over(with_fields(plan, input=_push(source, substitute(moved, known))), kept)


def _itself(exprs: Iterable[Expr]) -> dict[int, Expr]:
    return {expr.id: expr for expr in exprs if isinstance(expr, Column)}


def _group_keys(plan: Aggregate) -> dict[int, Expr]:
    """Group outputs that every grouping set has, with what they are below; volatile keys are left out."""
    sets = plan.grouping_sets
    return {
        column.id: expr
        for index, (column, expr) in enumerate(plan.groups)
        if (sets is None or all(index in members for members in sets)) and not is_volatile(expr)
    }


def _push_set_operation(plan: SetOperation, conjuncts: Conjuncts) -> Plan:
    def of(side: Plan) -> Plan:
        names: dict[int, Expr] = {
            output.id: column for output, column in zip(plan.outputs, side.columns, strict=True)
        }
        return _in_order(_push(side, substitute(conjuncts, names)), side)

    return with_fields(plan, left=of(plan.left), right=of(plan.right))


def _in_order(changed: Plan, plan: Plan) -> Plan:
    """``changed`` under the columns of ``plan``, in order."""
    if tuple(column.id for column in changed.columns) == tuple(column.id for column in plan.columns):
        return changed
    return Project(plan.columns, plan.columns, changed)


# --- definitions that are read several times -------------------------------------------------------------------------


def _asked_by_all(plan: Plan, cte: int, definition: Plan) -> Conjuncts:
    """For each column of a definition that all its scans filter, what at least one of them lets through.

    The scans keep their filters: of a year and the year after, the definition computes both.
    """
    uses = list(_filtered_scans(plan, cte))
    found: list[Expr] = []
    for place, column in enumerate(definition.columns):
        branches = []
        for scan, conjuncts in uses:
            ids = frozenset((scan.outputs[place].id,)) if place < len(scan.outputs) else frozenset[int]()
            own = tuple(item for item in conjuncts if _is_within(item, ids) and not is_volatile(item))
            if not own:
                break
            branches.append(bound.conjunction(substitute(own, {scan.outputs[place].id: column})))
        else:
            found += [disjunction(tuple(dict.fromkeys(branches)))] if branches else []
    return tuple(found)


def _filtered_scans(plan: Plan, cte: int) -> Iterator[tuple[CteScan, Conjuncts]]:
    """The scans of a definition below ``plan``, each with the conjuncts that stand directly over it."""
    match plan:
        case CteScan() if plan.cte == cte:
            yield plan, ()
        case Filter(conjuncts=conjuncts, input=CteScan() as scan) if scan.cte == cte:
            yield scan, conjuncts
        case _:
            for child in plan.inputs if traits.of_plan(plan) & traits.DEFINITION else ():
                yield from _filtered_scans(child, cte)


# --- joins -----------------------------------------------------------------------------------------------------------


def _push_join(plan: Join, conjuncts: Conjuncts) -> Plan:
    plan = _without_outer(plan, conjuncts)
    kind = plan.kind
    match kind:
        case JoinKind.INNER:
            return _push_inner(plan, conjuncts)
        case JoinKind.LEFT | JoinKind.SINGLE:
            return _push_left(plan, conjuncts)
        case JoinKind.RIGHT:
            turned = with_fields(plan, kind=JoinKind.LEFT, left=plan.right, right=plan.left)
            return _turned_back(_push_left(turned, conjuncts))
        case JoinKind.SEMI | JoinKind.ANTI | JoinKind.MARK:
            return _push_partner(plan, conjuncts)
        case JoinKind.FULL:
            return _over(with_fields(plan, left=_push(plan.left, ()), right=_push(plan.right, ())), conjuncts)
        case _:
            assert_never(kind)


def _turned_back(plan: Plan) -> Plan:
    match plan:
        case Filter(conjuncts=conjuncts, input=Join() as join):
            return Filter(conjuncts, _turned_back(join))
        case Join(left=left, right=right):
            return with_fields(plan, kind=JoinKind.RIGHT, left=right, right=left)
        case _:
            return plan


def _without_outer(plan: Join, conjuncts: Conjuncts) -> Join:
    """An outer join as a narrower one, where ``conjuncts`` drop the rows it would add."""
    if plan.kind not in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL):
        return plan
    left, right = plan.left.ids, plan.right.ids
    drops_left_padded = any(rejects_null(item, left) for item in conjuncts)  # rows without a left partner
    drops_right_padded = any(rejects_null(item, right) for item in conjuncts)
    keeps_left = plan.kind in (JoinKind.LEFT, JoinKind.FULL) and not drops_right_padded
    keeps_right = plan.kind in (JoinKind.RIGHT, JoinKind.FULL) and not drops_left_padded
    kind = {
        (True, True): JoinKind.FULL,
        (True, False): JoinKind.LEFT,
        (False, True): JoinKind.RIGHT,
        (False, False): JoinKind.INNER,
    }[keeps_left, keeps_right]
    return plan if kind is plan.kind else with_fields(plan, kind=kind)


def _push_inner(plan: Join, conjuncts: Conjuncts) -> Plan:
    """All conjuncts of a tree of inner joins put together, closed under equality, and dealt out again."""
    bare, lifted = _gather(plan)
    pool = _merged(lifted, conjuncts)
    narrow = _narrowed(bare, pool)
    if narrow is not bare:
        return _push(narrow, pool)
    pool = _merged(pool, _of_equal_columns(pool, pool))
    return _deal(bare, pool)


def _narrowed(plan: Plan, pool: Conjuncts) -> Plan:
    """A tree of inner joins whose outer joins below are narrower where ``pool``, its conditions too, drops what they add."""
    if type(plan) is not Join:
        return plan
    if plan.kind is JoinKind.INNER:
        return plans.with_inputs(plan, lambda child: _narrowed(child, pool))
    return _without_outer(plan, pool)


def _gather(plan: Plan) -> tuple[Plan, Conjuncts]:
    """A tree of inner joins without its conjuncts, and those."""
    match plan:
        case Join(kind=JoinKind.INNER, left=left, right=right, conditions=conditions):
            bare_left, of_left = _gather(left)
            bare_right, of_right = _gather(right)
            joined = Join(JoinKind.INNER, bare_left, bare_right)
            return joined, _merged(_merged(of_left, of_right), conditions)
        case Filter(conjuncts=conjuncts, input=source) if not any(is_volatile(item) for item in conjuncts):
            bare, below = _gather(source)
            return bare, _merged(below, conjuncts)
        case _:
            return plan, ()


def _deal(plan: Plan, pool: Conjuncts) -> Plan:
    """A tree of inner joins with each conjunct of ``pool`` at the lowest join or leaf that has its columns."""
    if not (type(plan) is Join and plan.kind is JoinKind.INNER):
        return _push(plan, pool)
    left_ids, right_ids = plan.left.ids, plan.right.ids
    to_left = tuple(item for item in pool if bound.columns_of(item) <= left_ids)
    to_right = tuple(item for item in pool if _is_within(item, right_ids))
    both = tuple(item for item in pool if item not in to_left and item not in to_right)
    to_left = _merged(to_left, _implied_by_all(both, left_ids))
    to_right = _merged(to_right, _implied_by_all(both, right_ids))
    return with_fields(plan, left=_deal(plan.left, to_left), right=_deal(plan.right, to_right), conditions=both)


def _push_left(plan: Join, conjuncts: Conjuncts) -> Plan:
    """LEFT and SINGLE: what the left side decides goes left; of the ON, what the right side decides goes right."""
    left_ids, right_ids = plan.left.ids, plan.right.ids
    to_left = tuple(item for item in conjuncts if _is_within(item, left_ids))
    kept = tuple(item for item in conjuncts if item not in to_left)
    to_right = tuple(item for item in plan.conditions if _is_within(item, right_ids))
    conditions = tuple(item for item in plan.conditions if item not in to_right)
    told = tuple(item for item in _of_equal_columns(conditions, to_left) if _is_within(item, right_ids))
    to_right = _merged(_merged(to_right, told), _implied_by_all(conditions, right_ids))
    left, right = _push(plan.left, to_left), _push(plan.right, to_right)
    return _over(with_fields(plan, left=left, right=right, conditions=conditions), kept)


def _push_partner(plan: Join, conjuncts: Conjuncts) -> Plan:
    """SEMI, ANTI and MARK; with ``mark_nulls`` a NULL of the right side counts, so nothing goes there."""
    left_ids, right_ids = plan.left.ids, plan.right.ids
    to_left = tuple(item for item in conjuncts if _is_within(item, left_ids))
    kept = tuple(item for item in conjuncts if item not in to_left)
    conditions = plan.conditions
    to_right: Conjuncts = ()
    if not plan.mark_nulls:
        to_right = tuple(item for item in conditions if _is_within(item, right_ids))
        conditions = tuple(item for item in conditions if item not in to_right)
        told = tuple(item for item in _of_equal_columns(conditions, to_left) if _is_within(item, right_ids))
        to_right = _merged(_merged(to_right, told), _implied_by_all(conditions, right_ids))
    if plan.kind is JoinKind.SEMI:
        on_left = tuple(item for item in conditions if _is_within(item, left_ids))
        conditions = tuple(item for item in conditions if item not in on_left)
        told = tuple(item for item in _of_equal_columns(conditions, to_right) if _is_within(item, left_ids))
        to_left = _merged(_merged(to_left, on_left), _merged(told, _implied_by_all(conditions, left_ids)))
    left, right = _push(plan.left, to_left), _push(plan.right, to_right)
    return _over(with_fields(plan, left=left, right=right, conditions=conditions), kept)


# --- what conjuncts say of other columns -----------------------------------------------------------------------------


def _of_equal_columns(conditions: Conjuncts, known: Conjuncts) -> Conjuncts:
    """What ``known`` conjuncts on one column say of the columns that ``conditions`` hold equal to it."""
    classes = equal_columns(conditions)
    found: list[Expr] = []
    for item in known:
        column = _constrained(item)
        if column is None:
            continue
        for other in classes.get(column.id, ()):
            if other.id != column.id:
                found.append(substitute(item, {column.id: other}))
    return tuple(found)


def equal_columns(conditions: Iterable[Expr]) -> dict[int, tuple[Column, ...]]:
    """For each column that an equality of columns names, all that are equal to it, itself among them."""
    members: dict[int, dict[int, Column]] = {}
    for condition in conditions:
        match equality(condition):
            case (Column() as one, Column() as two) if one.id != two.id:
                joined = {**members.get(one.id, {one.id: one}), **members.get(two.id, {two.id: two})}
                for id in joined:
                    members[id] = joined
    return {id: tuple(columns.values()) for id, columns in members.items()}


def _constrained(item: Expr) -> Column | None:
    """The column that ``item`` compares with constants."""
    match item:
        case Compare(left=Column() as column, right=Literal()):
            return column
        case InList(operand=Column() as column, items=items) | Not(
            operand=InList(operand=Column() as column, items=items)
        ) if all(isinstance(value, Literal) for value in items):
            return column
        case _:
            return None


def _implied_by_all(conjuncts: Conjuncts, ids: frozenset[int]) -> Conjuncts:
    """What each OR asks of the columns ``ids`` alone in all of its branches."""
    found: list[Expr] = []
    for conjunct in conjuncts:
        if type(conjunct) is not Or:
            continue
        branches = []
        for branch in disjuncts(conjunct):
            own = tuple(part for part in bound.conjuncts(branch) if _is_within(part, ids))
            if not own:
                break
            branches.append(bound.conjunction(own))
        else:
            found.append(disjunction(tuple(dict.fromkeys(branches))))
    return tuple(found)
