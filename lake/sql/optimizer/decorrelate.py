"""Subqueries in expressions become joins, and joins whose right side depends on the left become plain ones.

    Filter: EXISTS (..)                               Join: semi, l_orderkey#9 = o_orderkey#1
    └─ Scan: orders [o_orderkey#1]                    ├─ Scan: orders [o_orderkey#1]
         where the subquery is                        └─ Scan: lineitem [l_orderkey#9]
         Filter: l_orderkey#9 = o_orderkey#1
         └─ Scan: lineitem [l_orderkey#9]

Two steps. Here every subquery is lifted out of its expression into a dependent join over the node's input: a conjunct of a
filter gives SEMI or ANTI, any other place MARK for a truth value and LEFT or SINGLE for a value. ``unnest`` then removes the
dependence, outermost join first. Nothing else runs a correlated subquery, so both are complete.

Source: Neumann and Kemper, "Unnesting Arbitrary Queries", BTW 2015.
"""

from __future__ import annotations

from functools import reduce

from msgspec.structs import replace

from lake.errors import FeatureNotSupported
from lake.sql import bound, traits
from lake.sql import plan as plans
from lake.sql.bound import Case, Column, Compare, Exists, Expr, Lambda, Literal, Not, Quantified, ScalarSubquery
from lake.sql.optimizer.copies import copy_plan, fixed
from lake.sql.optimizer.expressions import (
    FALSE,
    NEGATED,
    TRUE,
    Subquery,
    columns_in,
    disjunction,
    has_subquery,
    may_be_null,
    not_,
    substitute,
)
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.properties import free_columns, properties
from lake.sql.optimizer.unnest import unnest
from lake.sql.optimizer.windows import numbering
from lake.sql.plan import (
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
    SetKind,
    SetOperation,
    Sort,
    Values,
    Window,
)
from lake.types import BIGINT, BOOLEAN


def decorrelate(plan: Plan, planning: Planning) -> Plan:
    """``plan`` without subqueries in expressions and without dependent joins.

    0A000  a form that cannot be taken apart, named
    """
    return unnest(_lift(plan, planning), planning)


def _lift(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with every subquery expression as a join, inner ones first."""

    def change(node: Plan) -> Plan:
        return _lift_node(node, planning) if has_subquery(plans.expressions_of(node)) else node

    return traits.rewrite_where(plan, traits.SUBQUERY, change)


def _lift_node(node: Plan, planning: Planning) -> Plan:
    match node:
        case Filter():
            return _lift_filter(node, planning)
        case Join(kind=JoinKind.INNER):
            below = Join(JoinKind.INNER, node.left, node.right, dependent=node.dependent)
            return _lift_filter(Filter(node.conditions, below), planning)
        case Join():
            return _lift_outer_join(node, planning)
        case AsofJoin():
            return _lift_asof(node, planning)
        case Values(rows=rows, outputs=outputs):
            return _lift_values(rows, outputs, planning)
        case Limit():
            raise FeatureNotSupported("a subquery in LIMIT or OFFSET is not supported")
        case Project() | plans.Aggregate():
            return _lift_expressions(node, planning)
        case plans.Window() | Sort() | Distinct() | plans.Unnest():
            lifted = _lift_expressions(node, planning)
            return Project(node.columns, node.columns, lifted)
        case _:
            raise FeatureNotSupported(f"a subquery in {type(node).__name__} is not supported")


def _lift_expressions(node: plans.P, planning: Planning) -> plans.P:
    """A node of one input with its subqueries joined to that input."""
    lifting = Lifting(node.inputs[0], planning)
    changed = plans.map_expressions(node, lifting.lift)
    return replace(changed, input=lifting.input)


def _lift_filter(node: Filter, planning: Planning) -> Plan:
    """Conjuncts without a subquery first: what they leave is what the subqueries are joined to."""
    conjuncts = [part for item in node.conjuncts for part in bound.conjuncts(item)]
    plain = tuple(item for item in conjuncts if not has_subquery(item))
    lifting = Lifting(Filter(plain, node.input) if plain else node.input, planning)
    for conjunct in conjuncts:
        if has_subquery(conjunct) and not lifting.join_conjunct(conjunct):
            lifting.input = Filter((lifting.lift(conjunct),), lifting.input)
    if lifting.input.ids == node.ids:
        return lifting.input
    return Project(node.columns, node.columns, lifting.input)


def _lift_values(rows: tuple[tuple[Expr, ...], ...], outputs: tuple[Column, ...], planning: Planning) -> Plan:
    """VALUES with subqueries: a projection of one empty row for each row."""

    def project(row: tuple[Expr, ...], columns: tuple[Column, ...]) -> Plan:
        return _lift_node(Project(columns, row, Values(((),), ())), planning)

    if len(rows) == 1:
        return project(rows[0], outputs)
    sides = [project(row, tuple(planning.copy(column) for column in outputs)) for row in rows]

    def append(left: Plan, right: Plan) -> Plan:
        columns = outputs if right is sides[-1] else tuple(planning.copy(column) for column in outputs)
        return SetOperation(SetKind.UNION, True, left, right, columns)

    return reduce(append, sides)


def _lift_asof(node: AsofJoin, planning: Planning) -> Plan:
    left, right = Lifting(node.left, planning), Lifting(node.right, planning)
    keys = tuple((left.lift(one), right.lift(two)) for one, two in node.keys)
    left_time, right_time = left.lift(node.left_time), right.lift(node.right_time)
    if any(has_subquery(condition) for condition in node.conditions):
        raise FeatureNotSupported("a subquery over both sides of an ASOF join is not supported")
    changed = replace(node, keys=keys, left_time=left_time, right_time=right_time, left=left.input, right=right.input)
    return Project(node.columns, node.columns, changed)


# --- outer joins -----------------------------------------------------------------------------------------------------


def _lift_outer_join(node: Join, planning: Planning) -> Plan:
    """LEFT, RIGHT or FULL with subqueries in ON: lifted to one side where they use no column of the other."""
    if node.dependent:
        raise FeatureNotSupported("a subquery in the ON of a LATERAL join is not supported")
    if node.kind not in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL):
        raise FeatureNotSupported(f"a subquery in the condition of a {node.kind.value} join is not supported")
    left_ids, right_ids = node.left.ids, node.right.ids
    left, right = Lifting(node.left, planning), Lifting(node.right, planning)
    kept: list[Expr] = []
    for condition in node.conditions:
        used = _subquery_columns(condition, planning)
        if not used & left_ids:
            kept.append(right.lift(condition))
        elif not used & right_ids:
            kept.append(left.lift(condition))
        else:
            return _lift_over_pairs(node, planning)
    changed = replace(node, left=left.input, right=right.input, conditions=tuple(kept))
    return Project(node.columns, node.columns, changed)


def _subquery_columns(expr: Expr, planning: Planning) -> frozenset[int]:
    """Columns that the subqueries of ``expr`` use, the operands of ANY among them."""
    found: frozenset[int] = frozenset()
    for part in bound.walk(expr):
        if isinstance(part, Subquery):
            found |= free_columns(part.plan, planning)
        if isinstance(part, Quantified):
            found |= bound.columns_of(part.operands)
    return found


def _lift_over_pairs(node: Join, planning: Planning) -> Plan:
    """An outer join whose ON holds subqueries over both sides: the pairs come first, as an inner join of numbered rows.

    Join: left, id#1 = id#7
    ├─ l with id#1
    └─ Filter: ON        (pairs of id#7 and r)
       └─ Join: inner
    """
    left, left_copy, left_number = _numbered(node.left, planning)
    right, right_copy, right_number = _numbered(node.right, planning)
    conditions = substitute(node.conditions, {**left_copy.columns, **right_copy.columns})
    pairs = _lift_filter(Filter(conditions, Join(JoinKind.INNER, left_copy.plan, right_copy.plan)), planning)
    numbers = (left_copy.number, right_copy.number)
    pairs = Project(numbers, numbers, pairs)
    keeps_left = node.kind in (JoinKind.LEFT, JoinKind.FULL)
    joined: Plan = Join(
        JoinKind.LEFT if keeps_left else JoinKind.INNER, left, pairs, (Compare.of("=", left_number, numbers[0]),)
    )
    keeps_right = node.kind in (JoinKind.RIGHT, JoinKind.FULL)
    kind = {
        (True, True): JoinKind.FULL,
        (True, False): JoinKind.LEFT,
        (False, True): JoinKind.RIGHT,
    }[keeps_left, keeps_right]
    joined = Join(kind, joined, right, (Compare.of("=", numbers[1], right_number),))
    result: Plan = Project(node.columns, node.columns, joined)
    for copy in (left_copy, right_copy):
        result = Materialize(copy.cte, "rows", copy.definition, result)
    return result


class _Numbered:
    """A second reading of numbered rows: its scan, its number column, and what its columns are called there."""

    def __init__(self, cte: int, definition: Plan, scan: CteScan, columns: dict[int, Expr]) -> None:
        self.cte = cte
        self.definition = definition
        self.plan = scan
        self.number = scan.outputs[-1]
        self.columns = columns


def _numbered(plan: Plan, planning: Planning) -> tuple[CteScan, _Numbered, Column]:
    """``plan`` computed once with a number for each row, read twice: under its own columns, and under others."""
    copy, _ = copy_plan(plan, planning)
    number, call = numbering("row_number", planning)
    definition = fixed(Window((), (), ((number, call),), copy))
    cte = next(planning.ctes)
    own = planning.copy(number)
    first = CteScan(cte, "rows", (*plan.columns, own))
    second = CteScan(cte, "rows", tuple(planning.copy(column) for column in first.outputs))
    names: dict[int, Expr] = {old.id: new for old, new in zip(plan.columns, second.outputs, strict=False)}
    return first, _Numbered(cte, definition, second, names), own


# --- expressions -----------------------------------------------------------------------------------------------------


class Lifting:
    """Subqueries of the expressions over one input, joined to it one after another.

    input   the input with what was joined so far
    """

    def __init__(self, source: Plan, planning: Planning) -> None:
        self.input = source
        self.planning = planning

    def lift(self, expr: Expr, guard: tuple[Expr, ...] = ()) -> Expr:
        """``expr`` with columns of joins in place of its subqueries.

        guard   conditions without which the expression is not evaluated: a value of two rows is no error where they fail
        """
        if not has_subquery(expr):
            return expr
        match expr:
            case ScalarSubquery(plan=plan):
                return self._value(plan, guard)
            case Exists(plan=plan):
                return self._mark(plan, (), False)
            case Quantified(every=True):
                return not_(self.lift(_as_any(expr), guard))
            case Quantified(operands=operands, plan=plan):
                lifted = tuple(self.lift(item, guard) for item in operands)
                source = self._prepared(plan)
                conditions = _comparisons(expr.op, lifted, source.columns)
                return self._mark(source, conditions, self._may_compare_null(conditions, source))
            case Case():
                return self._lift_case(expr, guard)
            case Lambda(parameters=parameters):
                self._refuse_parameters(expr, columns_in(parameters))
        changed = {}
        for name in expr.__struct_fields__:
            before = getattr(expr, name)
            after = bound.map_expressions(before, lambda part: self.lift(part, guard))
            if after is not before:
                changed[name] = after
        return replace(expr, **changed)

    def join_conjunct(self, conjunct: Expr) -> bool:
        """Joins a conjunct that is EXISTS, ANY or the negation of one; false where it is none of them."""
        match conjunct:
            case Quantified(every=True):
                return self.join_conjunct(not_(_as_any(conjunct)))
            case Not(operand=Quantified(every=True) as inner):
                return self.join_conjunct(_as_any(inner))
            case Exists(plan=plan):
                self._join(JoinKind.SEMI, self._for_existence(plan), ())
                return True
            case Not(operand=Exists(plan=plan)):
                self._join(JoinKind.ANTI, self._for_existence(plan), ())
                return True
            case Quantified(op=op, operands=operands, plan=plan):
                lifted = tuple(self.lift(item) for item in operands)
                source = self._prepared(plan)
                self._join(JoinKind.SEMI, source, _comparisons(op, lifted, source.columns))
                return True
            case Not(operand=Quantified(op=op, operands=operands, plan=plan)):
                lifted = tuple(self.lift(item) for item in operands)
                source = self._prepared(plan)
                conditions = _comparisons(op, lifted, source.columns)
                if self._may_compare_null(conditions, source):
                    mark = self._join_mark(source, conditions, True)
                    self.input = Filter((not_(mark),), self.input)
                else:
                    self._join(JoinKind.ANTI, source, conditions)
                return True
            case _:
                return False

    def _lift_case(self, expr: Case, guard: tuple[Expr, ...]) -> Expr:
        whens: list[tuple[Expr, Expr]] = []
        passed = guard
        for condition, value in expr.whens:
            holds = self.lift(condition, passed)
            whens.append((holds, self.lift(value, (*passed, holds))))
            passed = (*passed, Compare.of("is distinct", holds, TRUE))
        return Case(expr.type, tuple(whens), self.lift(expr.otherwise, passed))

    def _refuse_parameters(self, expr: Expr, parameters: frozenset[int]) -> None:
        for part in bound.walk(expr):
            if isinstance(part, Subquery) and free_columns(part.plan, self.planning) & parameters:
                raise FeatureNotSupported("a subquery that uses a lambda's parameter is not supported")

    def _value(self, plan: Plan, guard: tuple[Expr, ...]) -> Expr:
        """The column that holds the value of a scalar subquery."""
        source = self._prepared(plan)
        found = properties(source, self.planning)
        if not found.is_at_most_one:
            self._join(JoinKind.SINGLE, source, guard)
        elif found.is_one and not self._depends(source):
            self._join(JoinKind.INNER, source, ())
        else:
            self._join(JoinKind.LEFT, source, ())
        return source.columns[0]

    def _mark(self, plan: Plan, conditions: tuple[Expr, ...], nulls: bool) -> Expr:
        source = plan if conditions else self._for_existence(plan)
        if not conditions and properties(source, self.planning).has_row:
            return TRUE
        return self._join_mark(source, conditions, nulls)

    def _join_mark(self, source: Plan, conditions: tuple[Expr, ...], nulls: bool) -> Column:
        mark = self.planning.column(BOOLEAN, "mark", nullable=nulls)
        depends = self._depends(source)
        self.input = Join(JoinKind.MARK, self.input, source, conditions, mark, nulls, depends)
        return mark

    def _join(self, kind: JoinKind, source: Plan, conditions: tuple[Expr, ...]) -> None:
        if not conditions and kind in (JoinKind.SEMI, JoinKind.ANTI) and properties(source, self.planning).has_row:
            if kind is JoinKind.ANTI:
                self.input = Filter((FALSE,), self.input)
            return
        self.input = Join(kind, self.input, source, conditions, dependent=self._depends(source))

    def _depends(self, source: Plan) -> bool:
        return bool(free_columns(source, self.planning) & self.input.ids)

    def _may_compare_null(self, conditions: tuple[Expr, ...], source: Plan) -> bool:
        non_null = properties(self.input, self.planning).non_null | properties(source, self.planning).non_null
        return any(may_be_null(condition, non_null) for condition in conditions)

    def _prepared(self, plan: Plan) -> Plan:
        """A subquery's plan, its own subqueries lifted, under columns that the input does not have."""
        lifted = _lift(plan, self.planning)
        taken = self.input.ids
        if not lifted.ids & taken:
            return lifted
        outputs = tuple(self.planning.copy(column) if column.id in taken else column for column in lifted.columns)
        return Project(outputs, lifted.columns, lifted)

    def _for_existence(self, plan: Plan) -> Plan:
        """What tells whether a subquery has a row: neither order nor values matter, and of rows without correlation one."""
        source = strip_for_existence(self._prepared(plan), self.planning)
        taken = self.input.ids
        if source.ids & taken:
            kept = tuple(column for column in source.columns if column.id not in taken)
            source = Project(kept, kept, source)
        if free_columns(source, self.planning) or properties(source, self.planning).is_at_most_one:
            return source
        return Limit(Literal(BIGINT, 1), None, source)


def strip_for_existence(plan: Plan, planning: Planning) -> Plan:
    """``plan`` without nodes on top that change neither whether there is a row nor what is correlated."""
    while True:
        match plan:
            case Project(input=source) | Sort(input=source, limit=None) | Distinct(input=source):
                plan = source
            case plans.Window(input=source):
                plan = source
            case plans.Aggregate(groups=groups, grouping_sets=None, input=source) if groups:
                plan = source
            case Limit(limit=limit, offset=None, is_percent=False, input=source) if _is_positive(limit):
                plan = source
            case _:
                return plan


def _is_positive(limit: Expr | None) -> bool:
    return limit is None or (isinstance(limit, Literal) and isinstance(limit.value, int) and limit.value > 0)


def _as_any(expr: Quantified) -> Quantified:
    """``x op ALL (..)`` as what it negates: ``x not-op ANY (..)``."""
    return Quantified(expr.type, NEGATED[expr.op], expr.operands, expr.plan, False)


def _comparisons(op: str, operands: tuple[Expr, ...], columns: tuple[Column, ...]) -> tuple[Expr, ...]:
    """The conditions of a pair: rows are equal in every column, and different in one."""
    parts = tuple(Compare.of(op, operand, column) for operand, column in zip(operands, columns, strict=True))
    return (disjunction(parts),) if op in ("<>", "is distinct") else parts

