"""SELECT, step by step in the order in which SQL means it.

    FROM -> WHERE -> GROUP BY -> HAVING -> windows -> QUALIFY -> select list -> DISTINCT -> ORDER BY

All expressions are bound over FROM's columns first, with columns standing for aggregate and window calls; where there are
groups they are then moved over the groups (``aggregate.Regroup``), and the plan is put together from below.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lake.errors import AmbiguousColumn, InvalidColumnReference, WindowingFailure
from lake.sql import ast, bound, plan, traits
from lake.sql.bind import names
from lake.sql.bind.aggregate import Aggregates, Regroup, sort_key, to_boolean
from lake.sql.bind.coerce import is_nullable
from lake.sql.bind.dependencies import determined
from lake.sql.bind.generators import expand_generators
from lake.sql.bind.group import Grouping, bind_grouping_elements
from lake.sql.bind.scope import Bound, Env, Ready, Scope, Shared
from lake.sql.bind.source import bind_from, bind_sample
from lake.sql.bind.star import expand_condition, expand_items
from lake.sql.bind.unnest import Unnests, expand_structs
from lake.sql.bind.window import Windows
from lake.sql.bound import Column, Expr, SortKey


class Parts(Struct):
    """A SELECT on its way: what is bound so far, over FROM's columns and then over groups.

    order   sort keys, each with the place of the select item it is, or None
    """

    items: Sequence[ast.SelectItem]
    aggregates: Aggregates
    windows: Windows
    unnests: Unnests
    exprs: list[Expr] = field(default_factory=list)
    having: Expr | None = None
    qualify: Expr | None = None
    distinct_on: list[Expr] = field(default_factory=list)
    order: list[SortKey] = field(default_factory=list)
    order_nodes: list[ast.Node] = field(default_factory=list)


def bind_select(
    select: ast.Select, query: ast.Query | None, scope: Scope, shared: Shared
) -> tuple[Bound, list[SortKey]]:
    """The SELECT with the ORDER BY of the query around it, and the sort keys over its plan.

    The plan may answer more columns than the Bound's: what ORDER BY needs besides.
    """
    node, scope = bind_from(select.sources, scope, shared)
    env = Env(shared, scope, "WHERE")
    if select.sample is not None:
        node = bind_sample(node, select.sample, env)
    items = expand_generators(expand_structs(expand_items(select.items, env), env), env)
    aliases = {item.alias: item.expr for item in reversed(items) if item.alias is not None}
    if select.where is not None:
        test = condition(select.where, replace(env, aliases=aliases), "WHERE")
        node = plan.Filter(bound.conjuncts(test), node)
    grouping = Grouping()
    unnests = Unnests()
    if select.group:
        grouping = bind_grouping_elements(select.group, items, replace(env, clause="GROUP BY", unnests=unnests))
    aggregates = Aggregates(groups=grouping.exprs, has_sets=grouping.sets is not None)
    if len(dict(select.windows)) < len(select.windows):
        raise WindowingFailure("a window is defined twice", position=env.position(select))
    parts = Parts(items, aggregates, Windows(dict(select.windows)), unnests)
    _bind_parts(parts, select, query, grouping, env)
    if select.group_all:
        _group_all(parts, grouping)
    if select.group or select.group_all or select.having is not None or parts.aggregates.calls:
        node = parts.unnests.under(node, bound.columns_of(tuple(grouping.exprs), tuple(parts.aggregates.calls)))
        node = _aggregate(parts, grouping, node, env)
        if parts.having is not None:
            node = plan.Filter(bound.conjuncts(parts.having), node)
    node = parts.unnests.under(node, parts.windows.used)
    node = parts.windows.above(node)
    if parts.qualify is not None:
        node = plan.Filter(bound.conjuncts(parts.qualify), node)
    node = parts.unnests.above(node)
    return _project(parts, select, node, env)


def condition(expr: ast.Expr, env: Env, clause: str) -> Expr:
    """A bound condition; COLUMNS(..) in it is ANDed."""
    expanded = expand_condition(expr, env)
    return to_boolean(env.bind(expanded), clause, env.position(expr), env)


# --- binding ---------------------------------------------------------------------------------------------------------


def _bind_parts(
    parts: Parts, select: ast.Select, query: ast.Query | None, grouping: Grouping, env: Env
) -> None:
    """Binds select list, HAVING, QUALIFY, DISTINCT ON and ORDER BY over FROM's columns."""
    inner = replace(env, clause="SELECT", aggregates=parts.aggregates, windows=parts.windows, unnests=parts.unnests)
    before: dict[str, ast.Expr] = {}
    for place, item in enumerate(parts.items):
        found = grouping.items.get(place)
        parts.exprs.append(inner.bind(item.expr) if found is None else found)
        if item.alias is not None and item.alias not in before:
            before = {**before, item.alias: _aliased(item, parts.exprs[-1])}
            inner = replace(inner, aliases=before)
    if select.having is not None:
        parts.having = condition(select.having, replace(inner, clause="HAVING", windows=None, unnests=None), "HAVING")
    if select.qualify is not None:
        parts.qualify = condition(select.qualify, replace(inner, clause="QUALIFY", unnests=None), "QUALIFY")
        if not parts.windows.calls:
            words = "QUALIFY needs a window function in it or in the select list"
            raise WindowingFailure(words, position=env.position(select.qualify))
    for expr in (item.expr for item in expand_items([ast.SelectItem(on) for on in select.distinct_on], inner)):
        place_or_none = _output_place(expr, parts, inner, "SELECT DISTINCT ON")
        parts.distinct_on.append(inner.bind(expr) if place_or_none is None else parts.exprs[place_or_none])
    if query is None:
        return
    if query.order_all:
        direction = query.order[0] if query.order else ast.SortItem(ast.Literal(None))
        parts.order = [sort_key(expr, direction, env) for expr in parts.exprs]
        parts.order_nodes = [item.expr for item in parts.items]
        return
    inner = replace(inner, clause="ORDER BY")
    for key in query.order:
        place_or_none = _output_place(key.expr, parts, inner, "ORDER BY")
        made = inner.bind(key.expr) if place_or_none is None else parts.exprs[place_or_none]
        parts.order.append(sort_key(made, key, inner))
        parts.order_nodes.append(key.expr)


def _aliased(item: ast.SelectItem, made: Expr) -> ast.Expr:
    """What an alias stands for where it is used again: a subquery is bound anew, as its columns stand once in a plan."""
    assert item.alias is not None
    if traits.of_expression(made) & traits.SUBQUERY:
        return item.expr
    return Ready(made, item.alias)


def _output_place(expr: ast.Expr, parts: Parts, env: Env, clause: str) -> int | None:
    """The select item that a position or a bare name in ORDER BY means; None where it is an expression of its own.

    42P10  a position outside the select list     42702  a name that two different items have
    """
    if isinstance(expr, ast.Literal) and isinstance(expr.value, int) and not isinstance(expr.value, bool):
        if not 1 <= expr.value <= len(parts.items):
            raise InvalidColumnReference(
                f"{clause} position {expr.value} is not in select list", position=env.position(expr)
            )
        return expr.value - 1
    if not isinstance(expr, ast.Column) or len(expr.name.parts) != 1:
        return None
    name = expr.name.last
    found = [place for place, item in enumerate(parts.items) if names.output_name(item) == name]
    if len({parts.exprs[place] for place in found}) > 1:
        raise AmbiguousColumn(f'{clause} "{name}" is ambiguous', position=env.position(expr))
    return found[0] if found else None


# --- groups ----------------------------------------------------------------------------------------------------------


def _group_all(parts: Parts, grouping: Grouping) -> None:
    """GROUP BY ALL: the select items that hold no aggregate and no window call."""
    made = parts.aggregates.ids | parts.windows.ids
    for item, expr in zip(parts.items, parts.exprs, strict=True):
        if not bound.columns_of(expr) & made:
            grouping.add(expr, names.output_name(item))


def _aggregate(parts: Parts, grouping: Grouping, node: plan.Plan, env: Env) -> plan.Plan:
    """The Aggregate node; every part is moved over its outputs."""
    if grouping.sets is None:
        _add_determined(parts, grouping, node, env)
    groups = grouping.outputs(env)
    regroup = Regroup.of(groups, env.scope.entries, env.shared)
    parts.exprs = [
        regroup.move_from(expr, item.expr) for expr, item in zip(parts.exprs, parts.items, strict=True)
    ]
    parts.having = None if parts.having is None else regroup.move(parts.having)
    parts.qualify = None if parts.qualify is None else regroup.move(parts.qualify)
    parts.distinct_on = [regroup.move(expr) for expr in parts.distinct_on]
    parts.order = [
        replace(key, expr=regroup.move_from(key.expr, source))
        for key, source in zip(parts.order, parts.order_nodes, strict=True)
    ]
    parts.windows.map(regroup.move)
    parts.unnests.map(regroup.move)
    return plan.Aggregate(groups, parts.aggregates.pairs, node, grouping.sets, parts.aggregates.grouping_id)


def _add_determined(parts: Parts, grouping: Grouping, node: plan.Plan, env: Env) -> None:
    """Groups by what the groups determine and the query names."""
    conditions = tuple(item for item in (parts.having, parts.qualify) if item is not None)
    used = bound.columns_of(*parts.exprs, *conditions, *parts.distinct_on, *(key.expr for key in parts.order))
    used |= parts.windows.used
    own = {expr.id for expr in grouping.exprs if isinstance(expr, Column)}
    entries = {entry.column.id: entry for entry in env.scope.entries}
    missing = [entries[id] for id in used - own if id in entries]
    if not missing or not own:
        return
    found = determined(node, frozenset(own))
    for entry in missing:
        if entry.column.id in found:
            grouping.add(entry.column, entry.name)


# --- the top ---------------------------------------------------------------------------------------------------------


def _project(parts: Parts, select: ast.Select, node: plan.Plan, env: Env) -> tuple[Bound, list[SortKey]]:
    """The select list, with what DISTINCT ON and ORDER BY need besides, and DISTINCT above it."""
    titles = names.output_names(parts.items)
    outputs: list[Column] = []
    exprs: list[Expr] = []
    free = set(node.ids)  # a column of an outer query, or one that was put already, is not passed on but made anew

    def put(expr: Expr, name: str, *, reuse: bool) -> Column:
        if reuse and expr in exprs:
            return outputs[exprs.index(expr)]
        if isinstance(expr, Column) and expr.id in free:
            column = expr
            free.remove(expr.id)
        else:
            column = env.shared.column(name, expr.type, is_nullable(expr))
        outputs.append(column)
        exprs.append(expr)
        return column

    columns = tuple([put(expr, name, reuse=False) for expr, name in zip(parts.exprs, titles, strict=True)])
    visible = len(outputs)
    on = [put(expr, "on", reuse=True) for expr in parts.distinct_on]
    keys = [replace(key, expr=put(key.expr, "order", reuse=True)) for key in parts.order]
    if select.distinct and not select.distinct_on and len(outputs) > visible:
        place = next(at for at, key in enumerate(keys) if key.expr not in columns)
        raise InvalidColumnReference(
            "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
            position=env.position(parts.order_nodes[place]),
        )
    made: plan.Plan = plan.Project(tuple(outputs), tuple(exprs), node)
    if select.distinct_on:
        _check_distinct_on(on, keys, parts, env)
        made = plan.Distinct(made, tuple(on), tuple(keys))
    elif select.distinct:
        made = plan.Distinct(made)
    return Bound(made, columns, titles), keys


def _check_distinct_on(on: list[Column], keys: list[SortKey], parts: Parts, env: Env) -> None:
    """42P10 where ORDER BY does not begin with DISTINCT ON's expressions."""
    wanted: set[Expr] = set(on)
    for place, key in enumerate(keys):
        if not wanted:
            return
        if key.expr not in on:
            raise InvalidColumnReference(
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                position=env.position(parts.order_nodes[place]),
            )
        wanted.discard(key.expr)
