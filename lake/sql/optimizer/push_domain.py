"""A correlated plan computed for every value of the outer columns at once: the domain pushed down through every node.

    push(Aggregate(groups g, input), {o})      Aggregate(groups g and d, push(input, {o}))        and says: o is d
    push(Scan, {o})                            Join: inner, domain of o, Scan

``push`` answers a plan with the same columns and more, and for each outer column asked for the column that holds its value.
The plan holds, for every value in the domain, the rows the correlated plan has for it; values outside the domain may be there
too, as the join with the outer rows drops them.

Source: Neumann and Kemper, "Unnesting Arbitrary Queries", BTW 2015, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from lake.errors import FeatureNotSupported
from lake.sql import bound
from lake.sql import plan as plans
from lake.sql.bound import Case, Column, Compare, Expr, Literal, SortKey
from lake.sql.optimizer.copies import copy_plan
from lake.sql.optimizer.expressions import (
    columns_in,
    equality,
    is_not_null,
    is_null,
    is_volatile,
    substitute,
    substitute_plan,
)
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.properties import expression_columns, free_columns, properties
from lake.sql.optimizer.windows import numbering
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
from lake.types import BIGINT

Given = dict[int, Column]
"""For outer columns, the columns of a pushed plan that hold their values."""


class NeedsDomain(Exception):
    """A plan pushed without a domain turned out to need one."""


class Domain(Struct):
    """The distinct values of outer columns.

    left        the outer rows under their own ids
    definition  the outer rows under other ids, ``columns`` by the outer id
    cte         the number under which ``definition`` is materialized, None where every reading is a copy
    is_used     whether anything read it
    """

    left: Plan
    definition: Plan
    columns: Mapping[int, Column]
    cte: int | None
    is_used: bool = False

    def scan(self, ids: frozenset[int], planning: Planning) -> tuple[Plan, Given]:
        """The distinct values of the outer columns ``ids``, under fresh ids."""
        self.is_used = True
        if self.cte is None:
            source, columns = copy_plan(self.definition, planning)
            given = {id: columns[self.columns[id].id] for id in sorted(ids)}
        else:
            outputs = {column.id: planning.copy(column) for column in self.left.columns}
            source = CteScan(self.cte, "outer", tuple(outputs.values()))
            given = {id: outputs[id] for id in sorted(ids)}
        kept = tuple(given.values())
        return Distinct(Project(kept, kept, source)), given


def of_nothing(column: Column, call: bound.AggregateCall) -> Expr:
    """An aggregate's column where rows without group have NULL: the aggregate of no rows there."""
    value = call.function.of_nothing
    if value is None:
        return column
    assert isinstance(value, bool | int | float | str)
    return Case(call.type, ((is_null(column), Literal(call.type, value)),), column)


class Push:
    """Pushes the domain of ``outer`` columns; without a domain only what finds their values in the plan itself.

    extended   common table expressions that hold the domain's columns after their own, and which outer columns those are
    """

    def __init__(self, outer: frozenset[int], domain: Domain | None, planning: Planning) -> None:
        self.outer = outer
        self.domain = domain
        self.planning = planning
        self.extended: dict[int, tuple[int, ...]] = {}

    # --- what is needed ----------------------------------------------------------------------------------------------

    def uses(self, plan: Plan) -> frozenset[int]:
        """The outer columns that ``plan`` uses."""
        return free_columns(plan, self.planning) & self.outer

    def uses_of(self, exprs: Iterable[Expr]) -> frozenset[int]:
        """The outer columns that expressions use."""
        return expression_columns(exprs, self.planning) & self.outer

    def requires(self, plan: Plan) -> frozenset[int]:
        """The outer columns whose values decide what rows ``plan`` has."""
        found = self.uses(plan)
        if self.extended:
            for node in plans.walk(plan):
                if isinstance(node, CteScan):
                    found |= frozenset(self.extended.get(node.cte, ()))
        return found

    def same(self, one: Column, two: Column, left: Plan, right: Plan) -> Expr:
        """The condition that two columns of the domain hold the same value; never NULL."""
        left_known, right_known = properties(left, self.planning).non_null, properties(right, self.planning).non_null
        known = one.id in left_known and two.id in right_known
        return Compare.of("=" if known else "is not distinct", one, two)

    # --- pushing -----------------------------------------------------------------------------------------------------

    def push(self, plan: Plan, need: frozenset[int]) -> tuple[Plan, Given]:
        """``plan`` for every value of the outer columns ``need``, and of those it uses."""
        required = self.requires(plan)
        need |= required
        if not required:
            return self._cross(plan, need)
        source, given = self._push_node(plan, need)
        missing = need - given.keys()
        if missing:
            source, more = self._cross(source, missing)
            given = {**given, **more}
        return source, given

    def _cross(self, plan: Plan, need: frozenset[int]) -> tuple[Plan, Given]:
        """Every value of the domain with every row of ``plan``."""
        if not need:
            return plan, {}
        if self.domain is None:
            raise NeedsDomain
        scan, given = self.domain.scan(need, self.planning)
        if isinstance(plan, Values) and len(plan.rows) == 1 and not plan.outputs:
            return scan, given
        return Join(JoinKind.INNER, scan, plan), given

    def _push_node(self, plan: Plan, need: frozenset[int]) -> tuple[Plan, Given]:
        match plan:
            case Filter():
                return self._filter(plan, need)
            case Project():
                source, given = self.push(plan.input, need)
                known = columns_in(plan.outputs)
                more = tuple(column for column in dict.fromkeys(given.values()) if column.id not in known)
                exprs = substitute(plan.exprs, given)
                return Project((*plan.outputs, *more), (*exprs, *more), source), given
            case Aggregate():
                return self._aggregate(plan, need)
            case Window():
                source, given = self.push(plan.input, need)
                changed = plans.map_expressions(plan, lambda expr: substitute(expr, given))
                partition = (*changed.partition, *given.values())
                return replace(changed, input=source, partition=partition), given
            case Sort(limit=None):
                return self.push(plan.input, need)
            case Sort(keys=keys, limit=limit, offset=offset):
                first = Literal(BIGINT, offset) if offset else None
                return self._limit(Limit(Literal(BIGINT, limit), first, Sort(keys, plan.input)), need)
            case Limit():
                return self._limit(plan, need)
            case Distinct():
                source, given = self.push(plan.input, need)
                on = (*substitute(plan.on, given), *given.values()) if plan.on else ()
                return Distinct(source, on, substitute(plan.order, given)), given
            case Unnest():
                source, given = self.push(plan.input, need)
                lists = tuple((column, substitute(expr, given)) for column, expr in plan.lists)
                return replace(plan, input=source, lists=lists), given
            case Sample(is_percent=True):
                source, given = self.push(plan.input, need)
                return replace(plan, input=source), given
            case Sample():
                raise FeatureNotSupported("a sample of a number of rows in a correlated subquery is not supported")
            case Scan(filters=filters):
                return self._filter(Filter(filters, replace(plan, filters=())), need)
            case Values():
                return self._values(plan, need)
            case CteScan():
                return self._cte_scan(plan)
            case Join():
                return self._join(plan, need)
            case AsofJoin():
                return self._asof_join(plan, need)
            case SetOperation():
                return self._set_operation(plan, need)
            case Materialize():
                return self._materialize(plan, need)
            case Recursion():
                return self._recursion(plan, need)
            case _:
                raise FeatureNotSupported(f"{type(plan).__name__} in a correlated subquery is not supported")

    def _filter(self, plan: Filter, need: frozenset[int]) -> tuple[Plan, Given]:
        conjuncts = tuple(part for item in plan.conjuncts for part in bound.conjuncts(item))
        if not self.requires(plan.input):
            found = self._equal_columns(conjuncts, plan.input)
            if need <= found.keys():
                return self._substitute(conjuncts, plan.input, {id: found[id] for id in sorted(need)})
        source, given = self.push(plan.input, need)
        return Filter(substitute(conjuncts, given), source), given

    def _equal_columns(self, conjuncts: tuple[Expr, ...], source: Plan) -> dict[int, Expr]:
        """For outer columns, an expression of ``source`` that the conjuncts hold equal."""
        own = source.ids
        found: dict[int, Expr] = {}
        for conjunct in conjuncts:
            sides = equality(conjunct)
            if sides is None:
                continue
            for outer, inner in (sides, sides[::-1]):
                used = bound.columns_of(inner)
                is_inner = bool(used) and used <= own and not is_volatile(inner)
                if isinstance(outer, Column) and outer.id in self.outer and is_inner:
                    if outer.id not in found or not isinstance(found[outer.id], Column):
                        found[outer.id] = inner
        return found

    def _substitute(
        self, conjuncts: tuple[Expr, ...], source: Plan, found: dict[int, Expr]
    ) -> tuple[Plan, Given]:
        """A filter whose outer columns are replaced by what they equal: no domain is needed."""
        made = {id: self.planning.column(expr.type, "outer") for id, expr in found.items() if not isinstance(expr, Column)}
        if made:
            more = tuple(made.values())
            exprs = tuple(found[id] for id in made)
            source = Project((*source.columns, *more), (*source.columns, *exprs), source)
        given: dict[int, Expr] = {id: made.get(id, expr) for id, expr in found.items()}
        columns: Given = {id: column for id, column in given.items() if isinstance(column, Column)}
        kept: list[Expr] = []
        non_null = properties(source, self.planning).non_null
        for conjunct in conjuncts:
            changed = substitute(conjunct, columns)
            sides = equality(conjunct)
            is_definition = sides is not None and any(
                isinstance(outer, Column) and found.get(outer.id) == inner for outer, inner in (sides, sides[::-1])
            )
            if not is_definition:
                kept.append(changed)
        kept.extend(is_not_null(column) for column in dict.fromkeys(columns.values()) if column.id not in non_null)
        return (Filter(tuple(kept), source) if kept else source), columns

    def _aggregate(self, plan: Aggregate, need: frozenset[int]) -> tuple[Plan, Given]:
        source, inner = self.push(plan.input, need)
        need |= inner.keys()
        changed = plans.map_expressions(plan, lambda expr: substitute(expr, inner))
        keys = {id: self.planning.copy(column) for id, column in inner.items()}
        groups = (*changed.groups, *((keys[id], column) for id, column in inner.items()))
        positions = tuple(range(len(plan.groups), len(groups)))
        sets = None
        if plan.grouping_sets is not None:
            sets = tuple((*members, *positions) for members in plan.grouping_sets)
        grouped = replace(changed, groups=groups, grouping_sets=sets, input=source)
        empty_sets = 1 if plan.grouping_sets is None and not plan.groups else 0
        empty_sets += sum(1 for members in plan.grouping_sets or () if not members)
        if not empty_sets:
            return grouped, keys
        if empty_sets > 1:
            raise FeatureNotSupported("several empty grouping sets in a correlated subquery are not supported")
        return self._padded(grouped, keys, need)

    def _padded(self, grouped: Aggregate, keys: Given, need: frozenset[int]) -> tuple[Plan, Given]:
        """Aggregates of one group for each value of the domain: where no row came, the aggregates of no rows."""
        if self.domain is None:
            raise NeedsDomain
        scan, given = self.domain.scan(frozenset(keys), self.planning)
        calls = tuple((self.planning.copy(column), call) for column, call in grouped.aggregates)
        number = None if grouped.grouping_id is None else self.planning.copy(grouped.grouping_id)
        plan = replace(grouped, aggregates=calls, grouping_id=number)
        conditions = tuple(self.same(given[id], keys[id], scan, plan) for id in sorted(keys))
        joined = Join(JoinKind.LEFT, scan, plan, conditions)
        own = tuple(column for column, _ in grouped.groups if column.id not in columns_in(keys.values()))
        outputs = (*own, *(column for column, _ in grouped.aggregates), *given.values())
        exprs: tuple[Expr, ...] = (*own, *(of_nothing(column, call) for column, call in calls), *given.values())
        if grouped.grouping_id is not None and number is not None:
            every = Literal(number.type, (1 << len(own)) - 1)
            outputs = (*outputs, grouped.grouping_id)
            exprs = (*exprs, Case(number.type, ((is_null(number), every),), number))
        return Project(outputs, exprs, joined), given

    def _limit(self, plan: Limit, need: frozenset[int]) -> tuple[Plan, Given]:
        """LIMIT for each value of the domain: rows are numbered in the order of the Sort below."""
        if plan.is_percent:
            raise FeatureNotSupported("a percentage as LIMIT in a correlated subquery is not supported")
        source = plan.input
        order: tuple[SortKey, ...] = plan.ties
        if isinstance(source, Sort) and source.limit is None:
            order, source = source.keys, source.input
        source, given = self.push(source, need)
        partition: tuple[Expr, ...] = tuple(given.values())
        order = substitute(order, given)
        number, call = numbering("row_number", self.planning)
        calls = [(number, call)]
        conjuncts: list[Expr] = []
        offset = _whole(plan.offset, "OFFSET")
        if offset:
            conjuncts.append(Compare.of(">", number, Literal(BIGINT, offset)))
        limit = _whole(plan.limit, "LIMIT")
        if limit is not None:
            counted = number
            if plan.ties:
                counted, rank = numbering("rank", self.planning)
                calls.append((counted, rank))
            conjuncts.append(Compare.of("<=", counted, Literal(BIGINT, limit + (offset or 0))))
        if not conjuncts:
            return source, given
        return Filter(tuple(conjuncts), Window(partition, order, tuple(calls), source)), given

    def _values(self, plan: Values, need: frozenset[int]) -> tuple[Plan, Given]:
        """Rows of expressions of outer columns: a projection of the domain for each."""
        sides = []
        ids = tuple(sorted(need))
        for row in plan.rows:
            source, given = self._cross(Values(((),), ()), need)
            columns = tuple(given[id] for id in ids)
            outputs = tuple(self.planning.copy(column) for column in plan.outputs)
            sides.append(Project((*outputs, *columns), (*substitute(row, given), *columns), source))
        joined: Plan = sides[0]
        for side in sides[1:]:
            columns = tuple(self.planning.copy(column) for column in joined.columns)
            joined = SetOperation(SetKind.UNION, True, joined, side, columns)
        made = joined.columns[: len(plan.outputs)]
        given_columns = joined.columns[len(plan.outputs) :]
        outputs = (*plan.outputs, *given_columns)
        return Project(outputs, (*made, *given_columns), joined), dict(zip(ids, given_columns, strict=True))

    def _cte_scan(self, plan: CteScan) -> tuple[Plan, Given]:
        ids = self.extended[plan.cte]
        by_id = {column.id: column for column in (self.domain.left.columns if self.domain else ())}
        more = {id: self.planning.copy(by_id[id]) for id in ids}
        return replace(plan, outputs=(*plan.outputs, *more.values())), more

    # --- several inputs ----------------------------------------------------------------------------------------------

    def _join(self, plan: Join, need: frozenset[int]) -> tuple[Plan, Given]:
        kind = plan.kind
        if plan.dependent:
            return self._dependent_join(plan, need)
        match kind:
            case JoinKind.INNER:
                return self._inner_join(plan, need)
            case JoinKind.LEFT | JoinKind.SINGLE | JoinKind.SEMI | JoinKind.ANTI | JoinKind.MARK:
                return self._left_join(plan, need)
            case JoinKind.RIGHT:
                return self._left_join(replace(plan, kind=JoinKind.LEFT, left=plan.right, right=plan.left), need)
            case JoinKind.FULL:
                return self._full_join(plan, need)
            case _:
                assert_never(kind)

    def _dependent_join(self, plan: Join, need: frozenset[int]) -> tuple[Plan, Given]:
        """The right side finds the outer values in the left side, and so stays dependent on that alone."""
        wanted = need | self.uses(plan.right) | self.uses_of(plan.conditions)
        if self.requires(plan.right) - self.uses(plan.right):
            raise FeatureNotSupported("a LATERAL join over a correlated common table expression is not supported")
        left, given = self.push(plan.left, wanted)
        right = substitute_plan(plan.right, given)
        return replace(plan, left=left, right=right, conditions=substitute(plan.conditions, given)), given

    def _inner_join(self, plan: Join, need: frozenset[int]) -> tuple[Plan, Given]:
        outer = tuple(item for item in plan.conditions if self.uses_of((item,)))
        if outer:
            own = tuple(item for item in plan.conditions if item not in outer)
            return self.push(Filter(outer, replace(plan, conditions=own)), need)
        if not self.requires(plan.right):
            left, given = self.push(plan.left, need)
            return replace(plan, left=left), given
        if not self.requires(plan.left):
            right, given = self.push(plan.right, need)
            return replace(plan, right=right), given
        left, given = self.push(plan.left, need)
        right, given_right = self.push(plan.right, need)
        same = tuple(self.same(given[id], given_right[id], left, right) for id in sorted(given.keys() & given_right.keys()))
        conditions = (*plan.conditions, *same)
        return replace(plan, left=left, right=right, conditions=conditions), {**given_right, **given}

    def _left_join(self, plan: Join, need: frozenset[int]) -> tuple[Plan, Given]:
        """A join that keeps what it is for each left row: the left side carries the domain, the right side where it must."""
        required = self.requires(plan.right)
        left, given = self.push(plan.left, need | required | self.uses_of(plan.conditions))
        conditions = substitute(plan.conditions, given)
        if not required:
            return replace(plan, left=left, conditions=conditions), given
        right, given_right = self.push(plan.right, required)
        same = tuple(self.same(given[id], column, left, right) for id, column in given_right.items())
        return replace(plan, left=left, right=right, conditions=(*conditions, *same)), given

    def _full_join(self, plan: Join, need: frozenset[int]) -> tuple[Plan, Given]:
        need = need | self.requires(plan.left) | self.requires(plan.right) | self.uses_of(plan.conditions)
        left, given = self.push(plan.left, need)
        right, given_right = self.push(plan.right, need)
        ids = sorted(need)
        same = tuple(self.same(given[id], given_right[id], left, right) for id in ids)
        joined = replace(plan, left=left, right=right, conditions=(*substitute(plan.conditions, given), *same))
        made = {id: self.planning.copy(given[id]) for id in ids}
        either = tuple(
            Case(given[id].type, ((is_null(given[id]), given_right[id]),), given[id]) for id in ids
        )
        columns = plan.columns
        return Project((*columns, *made.values()), (*columns, *either), joined), made

    def _asof_join(self, plan: AsofJoin, need: frozenset[int]) -> tuple[Plan, Given]:
        if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            words = f"an ASOF {plan.kind.value.upper()} join in a correlated subquery is not supported"
            raise FeatureNotSupported(words)
        if self.requires(plan.right) or self.uses_of(two for _, two in plan.keys) or self.uses_of((plan.right_time,)):
            raise FeatureNotSupported("the right side of an ASOF join in a correlated subquery is not supported")
        left, given = self.push(plan.left, need | self.uses_of(plans.expressions_of(plan)))
        changed = plans.map_expressions(plan, lambda expr: substitute(expr, given))
        return replace(changed, left=left), given

    def _set_operation(self, plan: SetOperation, need: frozenset[int]) -> tuple[Plan, Given]:
        ids = tuple(sorted(need))
        left = self._positional(plan.left, ids)
        right = self._positional(plan.right, ids)
        made = self._copies(left, ids)
        return replace(plan, left=left, right=right, outputs=(*plan.outputs, *made.values())), made

    def _positional(self, plan: Plan, ids: tuple[int, ...]) -> Plan:
        """``plan`` pushed, its own columns first and in order, then the outer columns' values."""
        pushed, given = self.push(plan, frozenset(ids))
        more = tuple(self.planning.copy(given[id]) for id in ids)
        return Project((*plan.columns, *more), (*plan.columns, *(given[id] for id in ids)), pushed)

    def _copies(self, plan: Plan, ids: tuple[int, ...]) -> Given:
        last = plan.columns[len(plan.columns) - len(ids) :]
        return {id: self.planning.copy(column) for id, column in zip(ids, last, strict=True)}

    def _materialize(self, plan: Materialize, need: frozenset[int]) -> tuple[Plan, Given]:
        definition = plan.definition
        required = self.requires(definition)
        if required:
            ids = tuple(sorted(required))
            definition = self._positional(definition, ids)
            self.extended[plan.cte] = ids
        source, given = self.push(plan.input, need)
        return replace(plan, definition=definition, input=source), given

    def _recursion(self, plan: Recursion, need: frozenset[int]) -> tuple[Plan, Given]:
        if plan.recurring or plan.keyed is not None:
            raise FeatureNotSupported("a correlated recursive query with USING KEY or recurring is not supported")
        ids = tuple(sorted(need))
        anchor = self._positional(plan.anchor, ids)
        self.extended[plan.cte] = ids
        step = self._positional(plan.step, ids)
        made = self._copies(anchor, ids)
        return replace(plan, anchor=anchor, step=step, outputs=(*plan.outputs, *made.values())), made


def _whole(expr: Expr | None, clause: str) -> int | None:
    """The constant of LIMIT or OFFSET; None where there is none."""
    match expr:
        case None | Literal(value=None):
            return None
        case Literal(value=int() as value):
            return value
        case _:
            raise FeatureNotSupported(f"{clause} of an expression in a correlated subquery is not supported")
