"""Aggregates: collecting their calls, GROUP BY, and what an expression over groups may use.

    SELECT a + 1, sum(b) FROM t GROUP BY a + 1

    1. bind over FROM        a#1 + 1, column#9            (sum(b#2) is collected as output 9)
    2. replace groups        column#10, column#9          (a#1 + 1 is the group with output 10)
    3. what is left of FROM's own columns is an error: 42803
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from lake.errors import DatatypeMismatch, GroupingFailure, InvalidColumnReference, UndefinedFunction, WrongObjectType
from lake.sql import ast, bound, plan
from lake.sql.bind.arguments import bind_arguments, ordered_arguments
from lake.sql.bind.coerce import cast
from lake.sql.bind.overload import call_operator, choose
from lake.sql.bind.scope import Entry, Env, Shared, find_column
from lake.sql.bound import AggregateCall, And, Column, Expr, IsNull, Literal, Not, SortKey
from lake.sql.registry import FUNCTIONS, Aggregate
from lake.types import BIGINT, BOOLEAN, INT, Integer, Type

# Aggregates whose value is what WITHIN GROUP sorts, before the arguments in parentheses.
NULL_ORDER_SETTING: Final = "datafusion.sql_parser.default_null_ordering"
ORDERED_SETS: Final = frozenset(
    ("percentile_cont", "percentile_disc", "quantile_cont", "quantile_disc", "mode", "median", "approx_percentile_cont",
     "approx_percentile_cont_with_weight")
)  # fmt: skip


class Aggregates(Struct):
    """The aggregate calls of one SELECT, each once, with the column that stands for it.

    groups       the expressions of GROUP BY, for grouping()
    grouping_id  the column of Aggregate.grouping_id once grouping() needs it
    """

    calls: dict[AggregateCall, Column] = field(default_factory=dict)
    groups: list[Expr] = field(default_factory=list)
    has_sets: bool = False
    grouping_id: Column | None = None

    @property
    def pairs(self) -> tuple[tuple[Column, AggregateCall], ...]:
        """Outputs and calls, as an Aggregate node holds them."""
        return tuple((column, call) for call, column in self.calls.items())

    @property
    def ids(self) -> frozenset[int]:
        """Ids of the columns that stand for calls."""
        made = frozenset(column.id for column in self.calls.values())
        return made if self.grouping_id is None else made | {self.grouping_id.id}


def bind_aggregate_call(call: ast.Call, name: str, env: Env) -> Expr:
    """The column that stands for an aggregate call, which is collected: where its columns are all of an outer query, there.

    42803  where no aggregate may stand, or inside another
    """
    level = _level(call, env)
    if level is not env:
        return bind_aggregate_call(call, name, level)
    aggregates = env.aggregates
    if aggregates is None:
        position = env.position(call)
        if env.clause == "aggregate":
            raise GroupingFailure("aggregate function calls cannot be nested", position=position)
        raise GroupingFailure(f"aggregate functions are not allowed in {env.clause}", position=position)
    inner = replace(env, aggregates=None, windows=None, clause="aggregate")
    function, arguments, order, type = bind_parts(call, name, inner)
    filter = None
    if call.filter is not None:
        filter = as_condition(call.filter, replace(inner, clause="FILTER"), "FILTER")
    if call.ignore_nulls and (name in ORDERED_SETS or name in ("median", "approx_median")):
        raise WrongObjectType(f"IGNORE NULLS is not for {name}", position=env.position(call))
    if call.ignore_nulls:
        filter = not_null_filter(filter, arguments)
    bound_call = AggregateCall(type, function, arguments, call.distinct, filter, order)
    found = aggregates.calls.get(bound_call)
    if found is None:
        nullable = function.of_nothing is None
        found = aggregates.calls[bound_call] = env.shared.column(name, type, nullable)
    return found


def _level(call: ast.Call, env: Env) -> Env:
    """The place an aggregate belongs to: the innermost query that one of its columns is of; without columns its own."""
    outer = env.scope.outer
    if outer is None:
        return env
    columns = [node for node in ast.walk(call) if isinstance(node, ast.Column)]
    for node in columns:
        own = find_column(env.scope, node.name, env.position(node), outward=False)
        if own is not None or node.name.last in env.aliases or node.name.last in env.locals:
            return env
        if find_column(outer, node.name, env.position(node)) is None:
            return env
    if columns and outer.env is None:
        words = "aggregate functions are not allowed in FROM clause of their own query level"
        raise GroupingFailure(words, position=env.position(call))
    return _level(call, outer.env) if columns and outer.env is not None else env


def bind_parts(
    call: ast.Call, name: str, env: Env
) -> tuple[Aggregate, tuple[Expr, ...], tuple[SortKey, ...], Type]:
    """The overload of an aggregate call, its arguments and order, and its type."""
    overloads = [item for item in FUNCTIONS[name] if isinstance(item, Aggregate)]
    given = call.arguments
    if len(given) == 1 and isinstance(given[0].value, ast.Star) and given[0].value.qualifier is None:
        given = ()
    values = ordered_arguments(given, overloads, name, env)
    order = bind_order(call.within_group or call.order, env)
    if name in ORDERED_SETS and call.order and not call.within_group:
        fewest = min(item.signature.required for item in overloads)
        if len(values) < fewest:
            call = replace(call, within_group=call.order, order=())
    if call.within_group and name in ORDERED_SETS and values and values[0] is None:
        values = values[1:]  # a named argument left the place of the ordered value free
    arguments = bind_arguments(values, name, overloads, env)
    if call.within_group and name in ORDERED_SETS:
        arguments = (*[key.expr for key in order], *arguments)
    if call.distinct and any(key.expr not in arguments for key in order) and not call.within_group:
        words = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"
        raise InvalidColumnReference(words, position=env.position(call))
    if call.distinct and not arguments:
        raise UndefinedFunction(f"DISTINCT needs an argument of {name}", position=env.position(call))
    choice = choose(name, overloads, arguments, env, env.position(call))
    assert isinstance(choice.function, Aggregate)
    if call.within_group and (name == "array_agg" or (name not in ORDERED_SETS and not choice.function.keeps_order)):
        words = f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
        raise WrongObjectType(words, position=env.position(call))
    if call.within_group and name in ORDERED_SETS:
        order = tuple(replace(key, expr=value) for key, value in zip(order, choice.arguments))
    return choice.function, choice.arguments, order, choice.type


def not_null_filter(filter: Expr | None, arguments: Sequence[Expr]) -> Expr | None:
    """A FILTER that IGNORE NULLS makes stricter: the first argument is not NULL."""
    if not arguments:
        return filter
    known = Not(BOOLEAN, IsNull(BOOLEAN, arguments[0]))
    return known if filter is None else And(BOOLEAN, (filter, known))


def bind_order(items: Sequence[ast.SortItem], env: Env) -> tuple[SortKey, ...]:
    """Sort keys over the inputs; NULLs stand last ascending and first descending where the text does not say."""
    return tuple(sort_key(env.bind(item.expr), item, env) for item in items)


def sort_key(expr: Expr, item: ast.SortItem, env: Env) -> SortKey:
    """The key of a bound expression with the direction of ``item``."""
    nulls_first = item.nulls_first
    if nulls_first is None:
        match env.shared.settings.session.get(NULL_ORDER_SETTING, ""):
            case "nulls_first":
                nulls_first = True
            case "nulls_last":
                nulls_first = False
            case "nulls_min":
                nulls_first = not item.descending
            case _:
                nulls_first = item.descending
    return SortKey(expr, item.descending, nulls_first)


def as_condition(expr: ast.Expr, env: Env, clause: str) -> Expr:
    """A bound condition.

    42804  not a boolean
    """
    made = env.bind(expr)
    return to_boolean(made, clause, env.position(expr), env)


def to_boolean(expr: Expr, clause: str, position: int | None, env: Env) -> Expr:
    """``expr`` as a boolean: NULL and string literals are read as one; 42804 for other types."""
    from_text = isinstance(expr, Literal) and expr.type.sql in ("NULL", "VARCHAR")
    counts = clause == "CASE/WHEN" and isinstance(expr.type, Integer)  # the base reads a number as whether it is not 0
    if expr.type != BOOLEAN and not from_text and not counts:
        raise DatatypeMismatch(
            f"argument of {clause} must be type boolean, not type {expr.type.sql.lower()}", position=position
        )
    return cast(expr, BOOLEAN)


# --- grouping() ------------------------------------------------------------------------------------------------------


def bind_grouping(call: ast.Call, env: Env) -> Expr:
    """``grouping(a, b)``: a bit for each argument, the last lowest, set where the row's set leaves it out."""
    aggregates = env.aggregates
    if aggregates is None or not aggregates.groups:
        raise GroupingFailure("GROUPING must be used with GROUP BY", position=env.position(call))
    inner = replace(env, aggregates=None, windows=None, clause="GROUPING")
    places = []
    for argument in call.arguments:
        expr = inner.bind(argument.value)
        if expr not in aggregates.groups:
            raise GroupingFailure(
                "arguments to GROUPING must be grouping expressions of the associated query level",
                position=env.position(argument.value),
            )
        places.append(aggregates.groups.index(expr))
    if not places:
        raise WrongObjectType("grouping() needs an argument", position=env.position(call))
    if not aggregates.has_sets:
        return Literal(INT, 0)
    if aggregates.grouping_id is None:
        aggregates.grouping_id = env.shared.column("grouping_id", BIGINT, nullable=False)
    total: Expr | None = None
    for shift, place in enumerate(reversed(places)):
        bit = call_operator("&", aggregates.grouping_id, Literal(BIGINT, 1 << place), env, call)
        is_out = bound.Compare.of("<>", bit, Literal(BIGINT, 0))
        part = bound.Case(BIGINT, ((is_out, Literal(BIGINT, 1 << shift)),), Literal(BIGINT, 0))
        total = part if total is None else call_operator("+", total, part, env, call)
    assert total is not None
    return cast(total, INT)


# --- over groups -----------------------------------------------------------------------------------------------------


class Regroup(Struct, frozen=True):
    """Moves expressions from FROM's columns to the outputs of an Aggregate.

    groups  group expressions and the outputs that stand for them
    inputs  FROM's own columns, none of which may be left
    source  what the expression was bound from, for errors; ``is_nested`` within a subquery's plan
    """

    groups: Mapping[Expr, Column]
    inputs: Mapping[int, Entry]
    kinds: frozenset[type]
    shared: Shared
    source: ast.Node | None = None
    is_nested: bool = False

    @staticmethod
    def of(groups: Sequence[tuple[Column, Expr]], entries: Sequence[Entry], shared: Shared) -> Regroup:
        """The move for these groups over these columns."""
        by_expr = {expr: column for column, expr in reversed(groups)}
        made = {column.id for column, expr in groups if isinstance(expr, Column)}
        kept = {expr.id for _, expr in groups if isinstance(expr, Column)} & made
        inputs = {entry.column.id: entry for entry in reversed(entries) if entry.column.id not in kept}
        return Regroup(by_expr, inputs, frozenset(expr.__class__ for expr in by_expr), shared)

    def move_from(self, expr: Expr, source: ast.Node | None) -> Expr:
        """``move`` of what ``source`` was bound to, so that an error points at the column."""
        return replace(self, source=source).move(expr)

    def move(self, expr: Expr) -> Expr:
        """``expr`` over the outputs of the Aggregate.

        42803  a column that is in no group
        """
        spine: list[bound.Call] = []
        while isinstance(expr, bound.Call) and expr.arguments and not self._is_group(expr):
            if expr.function.lazy:
                expr = replace(expr, arguments=_reached(expr.arguments))
            spine.append(expr)
            expr = expr.arguments[0]
        made = self._move_one(expr)
        for call in reversed(spine):
            rest = tuple(self.move(item) for item in call.arguments[1:])
            made = replace(call, arguments=(made, *rest))
        return made

    def _is_group(self, expr: Expr) -> bool:
        return expr.__class__ in self.kinds and expr in self.groups

    def _move_one(self, expr: Expr) -> Expr:
        if self._is_group(expr):
            return self.groups[expr]
        if isinstance(expr, Column):
            entry = self.inputs.get(expr.id)
            if entry is None:
                return expr
            name = ".".join((*entry.path[-1:], entry.name))
            words = f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function'
            if self.is_nested:
                words = f'subquery uses ungrouped column "{name}" from outer query'
            raise GroupingFailure(words, position=self._position(entry.name))
        if isinstance(expr, bound.ScalarSubquery | bound.Exists | bound.Quantified):
            expr = replace(expr, plan=map_plan(expr.plan, replace(self, is_nested=True).move))
        if isinstance(expr, bound.Lambda):
            return replace(expr, body=self.move(expr.body))
        return bound.rewrite_children(expr, self.move)

    def _position(self, name: str) -> int | None:
        nodes = () if self.source is None else ast.walk(self.source)
        columns = [node for node in nodes if isinstance(node, ast.Column) and node.name.last == name]
        return self.shared.position(columns[0] if columns else self.source)


def _reached(arguments: Sequence[Expr]) -> tuple[Expr, ...]:
    """The arguments of coalesce up to the first constant: what stands behind it is never asked, nor need it be grouped."""
    for place, argument in enumerate(arguments, 1):
        if _is_value(argument):
            return tuple(arguments[:place])
    return tuple(arguments)


def _is_value(expr: Expr) -> bool:
    """Whether an expression is a constant that is not NULL, maybe with a sign or in another type."""
    match expr:
        case Literal(value=value):
            return value is not None and not isinstance(expr, bound.Unknown)
        case bound.Cast(operand=operand, is_try=False):
            return _is_value(operand)
        case bound.Call(function=function, arguments=(operand,)) if function.name in ("-", "+"):
            return _is_value(operand)
    return False


def map_plan(node: plan.Plan, change: bound.Rule) -> plan.Plan:
    """A subquery's plan with every expression of every node changed."""
    return plan.rewrite(node, lambda item: plan.map_expressions(item, change))
