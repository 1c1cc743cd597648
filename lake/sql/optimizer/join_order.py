"""In which order a tree of joins is computed: every connected order up to a size, a greedy one beyond.

    Join: inner                                     Join: inner
    ├─ Join: inner                                  ├─ Scan: lineitem      6,001,215 rows
    │  ├─ Scan: lineitem      6,001,215 rows        └─ Join: inner
    │  └─ Scan: orders        1,500,000 rows           ├─ Scan: orders     1,500,000 rows
    └─ Scan: customer, c_mktsegment#3 = ..  30,000     └─ Scan: customer, c_mktsegment#3 = ..  30,000

A *region* is a tree of inner joins and filters, and of joins that keep what they are for each left row (SEMI, ANTI, LEFT,
MARK, SINGLE): such a join may be made before or after any inner join, once the relations its condition names are together,
so its right side is a relation that can only be attached. Everything else is a relation, ordered within itself.
"""

from __future__ import annotations

from msgspec.structs import replace

from lake.sql import plan as plans
from lake.sql import traits
from lake.sql.bound import Column, Compare
from lake.sql.optimizer.copies import aligned
from lake.sql.optimizer.enumeration import members
from lake.sql.optimizer.estimates import ColumnEstimate, Estimate
from lake.sql.optimizer.expressions import equality, is_volatile
from lake.sql.optimizer.join_search import Attachment, Equality, Predicate, Region, Search
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.selectivity import selectivity
from lake.sql.optimizer.statistics import estimate, estimate_join, key_fraction, note_cte, padded
from lake.sql.plan import Filter, Join, JoinKind, Materialize, Plan, Project

ATTACHED = frozenset((JoinKind.SEMI, JoinKind.ANTI, JoinKind.LEFT, JoinKind.MARK, JoinKind.SINGLE))


def order_joins(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with each region of joins in the order thought cheapest."""
    if not traits.of_plan(plan) & traits.JOIN:
        return plan
    match plan:
        case Materialize(definition=definition, input=source):
            ordered = order_joins(definition, planning)
            note_cte(plan.cte, ordered, planning)
            return replace(plan, definition=ordered, input=order_joins(source, planning))
        case Join(kind=kind) if kind is JoinKind.INNER or kind in ATTACHED:
            return _order_region(plan, planning)
        case Filter(input=Join(kind=kind)) if kind is JoinKind.INNER or kind in ATTACHED:
            return _order_region(plan, planning)
        case _:
            return plans.with_inputs(plan, lambda child: order_joins(child, planning))


# --- from a tree to a region -----------------------------------------------------------------------------------------


def _order_region(plan: Plan, planning: Planning) -> Plan:
    region = Region(planning)
    _collect(plan, region)
    _classify(region)
    ordered = Search(region).best()
    unplaced = tuple(item for item in region.conditions if not region.bits_of(item))
    if unplaced:
        ordered = Filter(unplaced, ordered)
    return aligned(ordered, plan.columns) if _needs_columns(plan, ordered) else ordered


def _needs_columns(before: Plan, after: Plan) -> bool:
    """Whether the new tree lacks a column that the old one answered under the same set."""
    return not before.ids >= after.ids


def _collect(plan: Plan, region: Region) -> int:
    """Adds the relations and conditions of ``plan``; answers the relations as bits."""
    match plan:
        case Join(kind=JoinKind.INNER, left=left, right=right, conditions=conditions):
            found = _collect(left, region) | _collect(right, region)
            region.conditions.extend(conditions)
            return found
        case Filter(conjuncts=conjuncts, input=Join() | Filter() as source) if not any(map(is_volatile, conjuncts)):
            found = _collect(source, region)
            region.conditions.extend(conjuncts)
            return found
        case Project(outputs=outputs, exprs=exprs, input=Join() | Filter() as source) if outputs == exprs:
            return _collect(source, region)
        case Join(kind=kind) if kind in ATTACHED:
            return _collect_attached(plan, region)
        case _:
            return _add_relation(order_joins(plan, region.planning), region)


def _add_relation(plan: Plan, region: Region) -> int:
    number = len(region.relations)
    region.relations.append(plan)
    region.estimates.append(estimate(plan, region.planning))
    for column in plan.columns:
        region.owner[column.id] = number
    return 1 << number


def _collect_attached(plan: Join, region: Region) -> int:
    left = _collect(plan.left, region)
    first = len(region.relations)
    right = order_joins(plan.right, region.planning)
    _add_relation(right, region)
    needs = region.bits_of(plan.conditions) & ~(1 << first)
    if plan.mark is not None:
        region.owner[plan.mark.id] = first
    if plan.kind is JoinKind.SINGLE or not needs:
        needs = left
    of_left = estimate(plan.left, region.planning)
    joined = estimate_join(replace(plan, right=right), of_left, region.estimates[first])
    if plan.kind is JoinKind.LEFT:
        region.padded[first] = padded(plan.conditions, of_left, region.estimates[first])
    before = max(of_left.rows, 1e-9)
    region.attachments[first] = Attachment(plan, needs, joined.rows / before)
    return left | 1 << first


def _classify(region: Region) -> None:
    """Sorts conditions into classes of equal columns and other predicates, and measures the latter."""
    classes: dict[int, dict[int, Column]] = {}
    for condition in dict.fromkeys(region.conditions):
        names = region.bits_of(condition)
        match equality(condition):
            case (Column() as one, Column() as two) if _is_between_relations(one, two, region):
                joined = {**classes.get(one.id, {one.id: one}), **classes.get(two.id, {two.id: two})}
                classes.update(dict.fromkeys(joined, joined))
            case _ if names:
                region.predicates.append(Predicate(condition, names))
    seen: set[int] = set()
    for columns in classes.values():
        if id(columns) not in seen:
            seen.add(id(columns))
            _add_class(columns, region)
    for predicate in region.predicates:
        found = _merged_estimate(predicate.names, region)
        region.fractions.append((predicate.names, selectivity(predicate.expr, found)))
    _correct_for_composite_keys(region)
    for number, known in enumerate(region.estimates):
        if number not in region.attachments:
            region.inner.append((1 << number, known.rows))
    for equal in region.equalities:
        counts = sorted((region.estimates[n].distinct(column.id), 1 << n) for n, column in equal.columns.items())
        region.distincts.append((equal.names, counts))


def _is_between_relations(one: Column, two: Column, region: Region) -> bool:
    first, second = region.owner.get(one.id), region.owner.get(two.id)
    if first is None or second is None or first == second:
        return False
    return first not in region.attachments and second not in region.attachments


def _add_class(columns: dict[int, Column], region: Region) -> None:
    """A class of equal columns: one for each relation joins relations, a second one of a relation is tested within it."""
    by_relation: dict[int, Column] = {}
    for column in columns.values():
        number = region.owner[column.id]
        if number in by_relation:
            region.predicates.append(Predicate(Compare.of("=", by_relation[number], column), 1 << number))
        else:
            by_relation[number] = column
    region.equalities.append(Equality(by_relation, sum(1 << number for number in by_relation)))


def _merged_estimate(names: int, region: Region) -> Estimate:
    rows = 1.0
    columns: dict[int, ColumnEstimate] = {}
    for number in members(names):
        found = region.padded.get(number, region.estimates[number])
        rows = max(rows, found.rows)
        columns.update(found.columns)
    return Estimate(rows, columns)


def _correct_for_composite_keys(region: Region) -> None:
    """Two relations equal in several columns: together they have fewer values than each by itself suggests."""
    shared: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for equal in region.equalities:
        numbers = sorted(equal.columns)
        for index, one in enumerate(numbers):
            for two in numbers[index + 1 :]:
                shared.setdefault((one, two), []).append((equal.columns[one].id, equal.columns[two].id))
    for (one, two), keys in shared.items():
        if len(keys) > 1:
            left, right = region.estimates[one], region.estimates[two]
            single = 1.0
            for key in keys:
                single *= key_fraction([key], left, right)
            together = key_fraction(keys, left, right)
            if together > single:
                region.fractions.append((1 << one | 1 << two, together / single))
