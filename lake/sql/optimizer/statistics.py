"""How many rows a node answers, and what is known of its columns: estimates that order joins and choose sides.

    Scan: lineitem, l_shipdate#11 < DATE '1995-01-01'      rows 6,001,215 x 0.46      l_shipdate 1992-01-02 .. 1995-01-01

Rows of a table come from its statistics. Conjuncts are taken as independent but for ranges on one column, values as spread
evenly between least and greatest, and keys of the side with fewer as contained in those of the other.
Source: Selinger et al., "Access Path Selection in a Relational Database Management System", SIGMOD 1979.
"""

from __future__ import annotations

import math
from typing import Final, assert_never

from msgspec.structs import replace

from lake.sql import bound
from lake.sql.bound import Call, Column, Expr, Literal
from lake.sql.optimizer.estimates import Both, Changed, ColumnEstimate, Estimate, Scanned, TableColumns, thin
from lake.sql.optimizer.expressions import equality
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.selectivity import filtered, selectivity
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
from lake.types import Date

ROWS_UNKNOWN: Final = 1000.0
"""Rows of what nothing is known of."""

GROUPS_UNKNOWN: Final = 0.1
"""Groups for each row where distinct values are not known."""

DAYS_OF_YEAR: Final = 365.25
PARTS_OF_DATE: Final = {"quarter": 4.0, "month": 12.0, "day": 31.0, "dow": 7.0, "week": 53.0, "doy": 366.0}
"""How many values a part of a date has."""

UNNEST_ROWS: Final = 5.0
RECURSION_ROUNDS: Final = 10.0


def estimate(plan: Plan, planning: Planning) -> Estimate:
    """Rows and columns of ``plan``."""
    return planning.remember("estimate", plan, _estimate)


def rows_of(plan: Plan, planning: Planning) -> float:
    """How many rows ``plan`` is thought to answer."""
    return estimate(plan, planning).rows


def _estimate(plan: Plan, planning: Planning) -> Estimate:
    match plan:
        case Scan():
            return filtered(table_estimate(plan, planning), plan.filters)
        case Values(rows=rows, outputs=outputs):
            return Estimate(float(len(rows)), {column.id: ColumnEstimate(float(len(rows))) for column in outputs})
        case CteScan():
            return _cte_scan(plan, planning)
        case Filter(conjuncts=conjuncts, input=source):
            return filtered(estimate(source, planning), conjuncts)
        case Project():
            return _project(plan, estimate(plan.input, planning))
        case Aggregate():
            return _aggregate(plan, estimate(plan.input, planning))
        case Window(input=source) | Materialize(input=source):
            if isinstance(plan, Materialize):
                note_cte(plan.cte, plan.definition, planning)
            return estimate(source, planning)
        case Sort(limit=limit, input=source):
            return _limited(estimate(source, planning), limit)
        case Limit():
            return _limit(plan, estimate(plan.input, planning))
        case Distinct(on=on):
            found = estimate(plan.input, planning)
            return _grouped(found, list(on) if on else list(plan.columns))
        case Unnest(input=source):
            found = estimate(source, planning)
            return Estimate(found.rows * UNNEST_ROWS, found.columns)
        case Sample(amount=amount, is_percent=is_percent, input=source):
            found = estimate(source, planning)
            return found.scaled(amount / 100.0) if is_percent else _limited(found, int(amount))
        case Join():
            return estimate_join(plan, estimate(plan.left, planning), estimate(plan.right, planning))
        case AsofJoin():
            left, right = estimate(plan.left, planning), estimate(plan.right, planning)
            return Estimate(left.rows, Both(right.columns, left.columns))
        case SetOperation():
            return _set_operation(plan, estimate(plan.left, planning), estimate(plan.right, planning))
        case Recursion(anchor=anchor, outputs=outputs):
            found = estimate(anchor, planning)
            return Estimate(found.rows * RECURSION_ROUNDS, {column.id: ColumnEstimate() for column in outputs})
        case _:
            raise AssertionError(f"no estimate of {type(plan).__name__}")


def table_estimate(plan: Scan, planning: Planning) -> Estimate:
    """The rows of a scan's table, before its filters."""
    known = planning.tables.get(id(plan.table))
    if known is None:
        known = planning.tables[id(plan.table)] = (plan.table, TableColumns.of(plan.table))
    columns = known[1]
    known_names = columns.names
    names = {column.id: name for column, name in zip(plan.outputs, plan.names, strict=True) if name in known_names}
    return Estimate(columns.rows, Scanned(names, columns))


# --- one input -------------------------------------------------------------------------------------------------------


def _project(plan: Project, found: Estimate) -> Estimate:
    columns: dict[int, ColumnEstimate] = {}
    for column, expr in zip(plan.outputs, plan.exprs, strict=True):
        columns[column.id] = _of_expression(expr, found)
    return Estimate(found.rows, columns)


def _of_expression(expr: Expr, found: Estimate) -> ColumnEstimate:
    """What is thought of an expression's values: of several columns, at most all combinations."""
    match expr:
        case Column(id=id):
            return found.columns.get(id, ColumnEstimate())
        case Literal(value=value):
            return ColumnEstimate(1.0, 1.0 if value is None else 0.0, value, value)
    used = bound.columns_of(expr)
    if not used or not all(found.knows(id) for id in used):
        return ColumnEstimate()
    combinations = 1.0
    for id in used:
        combinations *= found.distinct(id)
    return ColumnEstimate(min(combinations, _parts_of_date(expr, found), found.rows))


def _parts_of_date(expr: Expr, found: Estimate) -> float:
    """How many values the year or another part of a date has: no bound where it is neither."""
    match expr:
        case Call(function=function, arguments=(Literal(value=str() as part), Column(type=Date(), id=id))) if (
            function.name in ("date_part", "extract")
        ):
            pass
        case Call(function=function, arguments=(Column(type=Date(), id=id),)):
            part = function.name
        case _:
            return math.inf
    if part == "year":
        known = found.columns[id]
        if isinstance(known.min, int) and isinstance(known.max, int):
            return max((known.max - known.min) / DAYS_OF_YEAR, 0.0) + 1.0
    return PARTS_OF_DATE.get(str(part), math.inf)


def _aggregate(plan: Aggregate, found: Estimate) -> Estimate:
    keys = [expr for _, expr in plan.groups]
    sets = plan.grouping_sets if plan.grouping_sets is not None else (tuple(range(len(keys))),)
    rows = sum(_grouped(found, [keys[index] for index in members]).rows if members else 1.0 for members in sets)
    columns = {column.id: _of_expression(expr, found) for column, expr in plan.groups}
    return Estimate(rows, columns)


def _grouped(found: Estimate, keys: list[Expr] | list[Column]) -> Estimate:
    """One row for each combination of ``keys`` that occurs."""
    combinations, is_guess = 1.0, False
    for key in keys:
        known = _of_expression(key, found).distinct
        if known is None:
            is_guess = True
        else:
            combinations *= max(known, 1.0)
    if is_guess:
        combinations = max(combinations, found.rows * GROUPS_UNKNOWN)
    rows = min(combinations, found.rows)
    return Estimate(max(rows, min(found.rows, 1.0)), found.columns)


def groups_of(plan: Plan, keys: tuple[Column, ...], planning: Planning) -> float:
    """How many combinations of ``keys`` the rows of ``plan`` are thought to have."""
    return _grouped(estimate(plan, planning), list(keys)).rows


def _limited(found: Estimate, limit: int | None) -> Estimate:
    if limit is None or limit >= found.rows:
        return found
    return found.scaled(limit / found.rows)


def _limit(plan: Limit, found: Estimate) -> Estimate:
    match plan.limit:
        case Literal(value=int() as value) if not plan.is_percent:
            return _limited(found, value)
        case Literal(value=int() | float() as value) if plan.is_percent:
            return found.scaled(min(float(value) / 100.0, 1.0))
        case _:
            return found


# --- several inputs --------------------------------------------------------------------------------------------------


def note_cte(cte: int, definition: Plan, planning: Planning) -> None:
    """Remembers the rows of a materialized definition for the scans of it."""
    found = estimate(definition, planning)
    by_position = [found.columns.get(column.id, ColumnEstimate()) for column in definition.columns]
    planning.note_cte(cte, found.rows, by_position)


def _cte_scan(plan: CteScan, planning: Planning) -> Estimate:
    if plan.cte not in planning.ctes_known and plan.cte in planning.definitions:
        note_cte(plan.cte, planning.definitions[plan.cte], planning)
    known = planning.ctes_known.get(plan.cte)
    if known is None:
        return Estimate(ROWS_UNKNOWN, {})
    rows, by_position = known
    return Estimate(rows, {column.id: item for column, item in zip(plan.outputs, by_position, strict=False)})


def _set_operation(plan: SetOperation, left: Estimate, right: Estimate) -> Estimate:
    rows = {
        SetKind.UNION: left.rows + right.rows,
        SetKind.INTERSECT: min(left.rows, right.rows),
        SetKind.EXCEPT: left.rows,
    }[plan.kind]
    columns: dict[int, ColumnEstimate] = {}
    for output, one, two in zip(plan.outputs, plan.left.columns, plan.right.columns, strict=True):
        if left.knows(one.id) and right.knows(two.id):
            columns[output.id] = ColumnEstimate(left.distinct(one.id) + right.distinct(two.id))
    found = Estimate(rows, columns)
    return found if plan.all else _grouped(found, list(plan.outputs))


def estimate_join(plan: Join, left: Estimate, right: Estimate) -> Estimate:
    """Rows of a join of sides thought to be ``left`` and ``right``."""
    pairs = pair_fraction(plan.conditions, left, right)
    kind = plan.kind
    both = Both(right.columns, left.columns)
    matched = left.rows * right.rows * pairs
    match kind:
        case JoinKind.INNER:
            return _joined(matched, left, right)
        case JoinKind.LEFT | JoinKind.SINGLE:
            found = _joined(max(matched, left.rows), left, padded(plan.conditions, left, right))
            return found if kind is JoinKind.LEFT else Estimate(left.rows, both)
        case JoinKind.RIGHT:
            return _joined(max(matched, right.rows), padded(plan.conditions, right, left), right)
        case JoinKind.FULL:
            return _joined(max(matched, left.rows, right.rows), left, right)
        case JoinKind.SEMI | JoinKind.ANTI:
            share = partner_fraction(plan.conditions, left, right)
            return left.scaled(share if kind is JoinKind.SEMI else max(1.0 - share, 0.01))
        case JoinKind.MARK:
            return Estimate(left.rows, left.columns)
        case _:
            assert_never(kind)


def padded(conditions: tuple[Expr, ...], kept: Estimate, other: Estimate) -> Estimate:
    """The ``other`` side of an outer join that keeps all rows of ``kept``: NULL where a row has no partner."""
    matched = kept.rows * other.rows * pair_fraction(conditions, kept, other)
    alone = kept.rows * (1.0 - min(partner_fraction(conditions, kept, other), matched / max(kept.rows, 1e-9), 1.0))
    share = alone / max(matched + alone, 1e-9)

    def pad(column: ColumnEstimate) -> ColumnEstimate:
        return replace(column, null_fraction=column.null_fraction + (1.0 - column.null_fraction) * share)

    return Estimate(other.rows, Changed(other.columns, pad))


def _joined(rows: float, left: Estimate, right: Estimate) -> Estimate:
    columns = Both(
        thin(right.columns, right.rows, min(rows, right.rows)), thin(left.columns, left.rows, min(rows, left.rows))
    )
    return Estimate(rows, columns)


def pair_fraction(conditions: tuple[Expr, ...], left: Estimate, right: Estimate) -> float:
    """Which share of all pairs of rows meets ``conditions``."""
    both = Estimate(left.rows * right.rows, Both(right.columns, left.columns))
    keys: list[tuple[int, int]] = []
    fraction = 1.0
    for condition in conditions:
        match equality(condition):
            case (Column(id=one), Column(id=two)) if one in left.columns or two in right.columns:
                keys.append((one, two))
            case (Column(id=two), Column(id=one)) if one in left.columns or two in right.columns:
                keys.append((one, two))
            case (one, two):
                known = [item.distinct for item in (_of_expression(one, both), _of_expression(two, both)) if item.distinct]
                fraction /= max(known) if known else max(left.rows, right.rows, 1.0)
            case _:
                fraction *= selectivity(condition, both)
    return fraction * key_fraction(keys, left, right)


def key_fraction(keys: list[tuple[int, int]], left: Estimate, right: Estimate) -> float:
    """Which share of pairs is equal in all of ``keys``, pairs of a left and a right column.

    Several columns together have at most one combination for each row of their table, whatever rows of it are left. Where
    that limit is met on both sides, the smaller table is taken for the one whose key the other refers to.
    """
    if not keys:
        return 1.0
    of_left = of_right = 1.0
    for one, two in keys:
        is_known = left.knows(one) == right.knows(two) or len(keys) == 1
        of_left *= left.distinct(one) if is_known or left.knows(one) else right.distinct(two)
        of_right *= right.distinct(two) if is_known or right.knows(two) else left.distinct(one)
    if len(keys) == 1:
        return 1.0 / max(of_left, of_right, 1.0)
    limit_left = left.table_rows([one for one, _ in keys])
    limit_right = right.table_rows([two for _, two in keys])
    is_limited_left, is_limited_right = of_left > limit_left, of_right > limit_right
    if is_limited_left and is_limited_right:
        return 1.0 / max(min(limit_left, limit_right), 1.0)
    if is_limited_left or is_limited_right:
        return 1.0 / max(of_right if is_limited_left else of_left, 1.0)
    return 1.0 / max(of_left, of_right, 1.0)


def partner_fraction(conditions: tuple[Expr, ...], left: Estimate, right: Estimate) -> float:
    """Which share of left rows has a partner."""
    if right.rows <= 0:
        return 0.0
    if not conditions:
        return 1.0
    share = 1.0
    is_keyed = False
    for condition in conditions:
        match equality(condition):
            case (Column(id=one), Column(id=two)):
                if one in right.columns or two in left.columns:
                    one, two = two, one
                share = min(share, right.distinct(two) / max(left.domain(one), right.domain(two), 1.0))
                is_keyed = True
    if is_keyed:
        return min(share, 1.0)
    return min(1.0, right.rows * pair_fraction(conditions, left, right))
