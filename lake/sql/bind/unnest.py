"""unnest() in a select list: every row once for each element, several lists side by side.

    SELECT id, unnest(tags) AS tag FROM t        Project: id, tag
                                                 └─ Unnest: tag = tags
                                                    └─ Scan: t

A call becomes a column that is made above groups and windows, or below them where they use it. A list inside a list
(``unnest(unnest(l))``) is a node of its own, as far up as it can be. A struct becomes a column for each of its fields.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import field
from msgspec.structs import replace

from lake.errors import FeatureNotSupported, UndefinedFunction
from lake.sql import ast, bound, plan
from lake.sql.bind.aggregate import Aggregates
from lake.sql.bind.overload import call_function
from lake.sql.bind.scope import Env
from lake.sql.bind.window import Windows
from lake.sql.bound import Column, Expr
from lake.types import List, Map, Null, Struct

NAMES = ("unnest", "generate_subscripts", "_pg_expandarray")


class Unnests(msgspec.Struct):
    """The unnest calls of one SELECT, each list once, with the column that stands for an element.

    made   ids of those that are in the plan already
    """

    lists: dict[Expr, Column] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)

    def column(self, expr: Expr, name: str, env: Env) -> Column:
        """The column of the elements of ``expr``."""
        found = self.lists.get(expr)
        if found is None:
            assert isinstance(expr.type, List)
            found = self.lists[expr] = env.shared.column(name, expr.type.of)
        return found

    def map(self, change: bound.Rule) -> None:
        """Changes the lists that are not in the plan."""
        self.lists = {
            expr if column.id in self.made else change(expr): column for expr, column in self.lists.items()
        }

    def under(self, node: plan.Plan, used: frozenset[int]) -> plan.Plan:
        """``node`` with the elements that ``used`` columns are, and what those need."""
        wanted: set[int] = set()
        pending = set(used)
        while pending:
            pending = {item for item in pending if item not in wanted}
            wanted |= pending
            found = [bound.columns_of(expr) for expr, column in self.lists.items() if column.id in pending]
            pending = {item for ids in found for item in ids} - wanted
        return self._above(node, [pair for pair in self.lists.items() if pair[1].id in wanted])

    def above(self, node: plan.Plan) -> plan.Plan:
        """``node`` with all elements that are not in the plan."""
        return self._above(node, list(self.lists.items()))

    def _above(self, node: plan.Plan, pairs: list[tuple[Expr, Column]]) -> plan.Plan:
        waiting = [(column, expr) for expr, column in pairs if column.id not in self.made]
        self.made |= {column.id for column, _ in waiting}
        levels: list[list[tuple[Column, Expr]]] = []
        while waiting:
            needed = bound.columns_of(*(expr for _, expr in waiting))
            levels.append([pair for pair in waiting if pair[0].id not in needed])
            waiting = [pair for pair in waiting if pair[0].id in needed]
        for level in reversed(levels):
            node = plan.Unnest(tuple(level), node)
        return node


def bind_unnest_call(call: ast.Call, name: str, env: Env) -> Expr:
    """The column that stands for the elements of a list, which is collected.

    0A000  where it may not stand     42883  not a list
    """
    unnests = env.unnests
    if unnests is None:
        raise FeatureNotSupported(f"{name}() is not supported in {env.clause}", position=env.position(call))
    if name != "unnest":  # they answer lists, of which each item is a row
        arguments = [env.bind(item.value) for item in call.arguments]
        return unnests.column(call_function(name, arguments, env, call), name, env)
    if len(call.arguments) != 1:
        raise UndefinedFunction(f"function {name}() takes one list", position=env.position(call))
    expr = env.bind(call.arguments[0].value)
    if isinstance(expr.type, Map):
        raise FeatureNotSupported(f"{name}() of a map in a select list is not supported", position=env.position(call))
    if not isinstance(expr.type, List):
        words = "unknown" if isinstance(expr.type, Null) else expr.type.sql.lower()
        raise UndefinedFunction(f"function {name}({words}) does not exist", position=env.position(call))
    return unnests.column(expr, name, env)


def expand_structs(items: Sequence[ast.SelectItem], env: Env) -> Sequence[ast.SelectItem]:
    """Select items with ``unnest(struct)`` as an item for each field."""
    if not any(_is_unnest(item.expr) for item in items):
        return items
    trial = replace(env, clause="SELECT", aggregates=Aggregates(), windows=Windows(), unnests=Unnests())
    made: list[ast.SelectItem] = []
    for item in items:
        value = item.expr.arguments[0].value if _is_unnest(item.expr) else None  # type: ignore[attr-defined]
        type = None if value is None else trial.bind(value).type
        if value is None or not isinstance(type, Struct):
            made.append(item)
            continue
        made += [ast.SelectItem(ast.Subscript(value, ast.Literal(name)), name) for name, _ in type.fields]
    return made


def _is_unnest(expr: ast.Expr) -> bool:
    return type(expr) is ast.Call and expr.name.parts[-1].lower() in NAMES and len(expr.arguments) == 1
