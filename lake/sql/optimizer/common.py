"""Parts of a plan that stand in several places are computed once; definitions that are read once are put in place.

    Join: value#4 = max#9                            Materialize: shared
    ├─ Aggregate: lineitem by supplier               ├─ Aggregate: lineitem by supplier
    └─ Aggregate: max                                └─ Join: value#4 = max#9
       └─ Aggregate: lineitem by supplier               ├─ CteScan: shared
                                                        └─ Aggregate: max
                                                           └─ CteScan: shared
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lake.sql import bound, traits
from lake.sql import plan as plans
from lake.sql.bound import Call, Column, Compare, Expr, Literal
from lake.sql.catalog import Table
from lake.sql.optimizer.copies import copy_plan, fixed
from lake.sql.optimizer.expressions import is_volatile
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.statistics import rows_of
from lake.sql.plan import (
    Aggregate,
    CteScan,
    Distinct,
    Filter,
    Join,
    Materialize,
    Plan,
    Project,
    Recursion,
    Scan,
    Values,
)
from lake.sql.registry import Function

WORTH: Final = 2.0
"""How many times fewer rows a shared part must have than its tables: keeping rows costs about as much as a scan."""

SHARED: Final = frozenset((Join, Aggregate, Distinct))
"""What may be computed once for several places."""

ROWS_MIN: Final = 10_000.0
"""Rows scanned below which computing a part twice costs less than keeping it."""


# --- definitions in place --------------------------------------------------------------------------------------------


def inline_definitions(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with a common table expression in place where it is read once, or is a plain table."""
    if not traits.of_plan(plan) & traits.DEFINITION:
        return plan
    match plan:
        case Materialize(cte=cte, definition=definition, input=source):
            source = inline_definitions(source, planning)
            definition = inline_definitions(definition, planning)
            uses = list(_uses(source, cte, in_round=False))
            if not uses:
                return source
            if len(uses) == 1 and not uses[0]:
                return traits.rewrite_where(source, traits.DEFINITION, lambda node: _in_place(node, cte, definition))
            if _is_plain(definition):
                return traits.rewrite_where(source, traits.DEFINITION, lambda node: _copied(node, cte, definition, planning))
            return replace(plan, definition=definition, input=source)
        case _:
            return plans.with_inputs(plan, lambda child: inline_definitions(child, planning))


def _uses(plan: Plan, cte: int, *, in_round: bool) -> Iterator[bool]:
    """For each scan of ``cte``, whether it is run again in every round of a recursion."""
    if isinstance(plan, CteScan) and plan.cte == cte:
        yield in_round
    for child in plan.inputs if traits.of_plan(plan) & traits.DEFINITION else ():
        again = in_round or (isinstance(plan, Recursion) and child is plan.step)
        yield from _uses(child, cte, in_round=again)


def _in_place(node: Plan, cte: int, definition: Plan) -> Plan:
    if isinstance(node, CteScan) and node.cte == cte:
        return Project(node.outputs, definition.columns, definition)
    return node


def _copied(node: Plan, cte: int, definition: Plan, planning: Planning) -> Plan:
    if isinstance(node, CteScan) and node.cte == cte:
        copy, _ = copy_plan(definition, planning)
        return Project(node.outputs, copy.columns, copy)
    return node


def _is_plain(plan: Plan) -> bool:
    """Whether reading ``plan`` twice costs no more than keeping its rows."""
    while isinstance(plan, Filter | Project):
        if any(is_volatile(expr) for expr in plans.expressions_of(plan)):
            return False
        plan = plan.input
    return isinstance(plan, Scan | CteScan) or (isinstance(plan, Values) and len(plan.rows) <= 1)


# --- equal parts -----------------------------------------------------------------------------------------------------


def share_common(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with parts that are equal but for column ids computed once."""
    tables = [id(node.table) for node in plans.walk(plan) if type(node) is Scan]
    if len(tables) == len(set(tables)):
        return plan
    alike: dict[int, list[Plan]] = {}
    _sketch(plan, alike)
    found: dict[Any, list[tuple[Plan, dict[int, int]]]] = {}
    for nodes in alike.values():
        if len(nodes) > 1 and any(_is_worth_it(node, planning) for node in nodes):
            for node in filter(_may_share, nodes):
                numbers: dict[int, int] = {}
                found.setdefault(_shape(node, numbers), []).append((node, numbers))
    groups = [group for group in found.values() if len(group) > 1 and _is_worth_it(group[0][0], planning)]
    groups.sort(key=lambda group: -sum(1 for _ in plans.walk(group[0][0])))
    for group in groups:
        present = {id(node) for node in plans.walk(plan)}
        group = [item for item in group if id(item[0]) in present]
        if len(group) > 1:
            plan = _shared(plan, group, planning)
    return plan


def _sketch(plan: Plan, alike: dict[int, list[Plan]]) -> int:
    """A number that parts equal but for column ids have in common; collects by it those that may be worth sharing."""
    below = [_sketch(child, alike) for child in plan.inputs]
    table = id(plan.table) if type(plan) is Scan else 0
    made = hash((type(plan), table, *map(_form, plans.expressions_of(plan)), *below))
    if type(plan) in SHARED:
        alike.setdefault(made, []).append(plan)
    return made


def _form(expr: Expr) -> int:
    if expr.form is not None:
        return expr.form
    unknown, stack = list[Expr](), [expr]
    while stack:
        node = stack.pop()
        if node.form is None:
            unknown.append(node)
            stack += bound.children(node)
    for node in reversed(unknown):
        force_setattr(node, "form", hash((_own(node), *[child.form for child in bound.children(node)])))
    return expr.form or 0


def _own(expr: Expr) -> object:
    """What an expression is, the columns and those below it aside: windows of time differ in a sign alone."""
    made = type(expr)
    if made is Literal:
        return expr
    if made is Compare:
        return expr.op  # type: ignore[attr-defined]
    return id(expr.function) if made is Call else made  # type: ignore[attr-defined]


def _may_share(plan: Plan) -> bool:
    """Whether ``plan`` stands for itself and answers the same each time."""
    return not traits.of_plan(plan) & (traits.DEFINITION | traits.SAMPLE | traits.VOLATILE)


def _is_worth_it(plan: Plan, planning: Planning) -> bool:
    scanned = sum(rows_of(node, planning) for node in plans.walk(plan) if isinstance(node, Scan))
    return scanned >= ROWS_MIN and rows_of(plan, planning) * WORTH <= scanned


def _shared(plan: Plan, group: list[tuple[Plan, dict[int, int]]], planning: Planning) -> Plan:
    """``plan`` with the nodes of ``group`` as scans of one definition."""
    first, first_numbers = group[0]
    definition, copies = copy_plan(first, planning)
    cte = next(planning.ctes)
    by_number = {number: id for id, number in first_numbers.items()}
    scans: dict[int, Plan] = {}
    for node, numbers in group:
        own = {by_number[number]: id for id, number in numbers.items()}
        columns = {column.id: column for column in node.columns}
        outputs = tuple(columns[own[column.id]] for column in first.columns)
        scans[id(node)] = CteScan(cte, "shared", outputs)

    def exchange(node: Plan) -> Plan:
        return scans[id(node)] if id(node) in scans else plans.with_inputs(node, exchange)

    assert {column.id for column in definition.columns} == {copies[column.id].id for column in first.columns}
    return Materialize(cte, "shared", fixed(definition), exchange(plan))


def _shape(value: Any, numbers: dict[int, int]) -> Any:
    """``value`` as nested tuples in which columns are numbered in order of appearance, inputs of a node first."""
    kind = type(value)
    if kind is Column:
        return ("column", numbers.setdefault(value.id, len(numbers)))
    if kind is tuple:
        return tuple([_shape(part, numbers) for part in value])
    if kind is str:
        return value
    if isinstance(value, Table | Function):
        return id(value)
    if not issubclass(kind, Struct):
        return (kind.__name__, value)
    names = kind.__struct_fields__
    if issubclass(kind, Plan):
        names = (*plans.input_names(kind), *[name for name in names if name not in plans.input_names(kind)])
    return (kind.__name__, *[_shape(getattr(value, name), numbers) for name in names])

