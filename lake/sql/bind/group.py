"""GROUP BY: expressions, positions, aliases, GROUP BY ALL, and grouping sets.

    GROUP BY a, ROLLUP (b, c)         groups a, b, c     sets (a, b, c) (a, b) (a)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from lake.errors import InvalidColumnReference, StatementTooComplex
from lake.sql import ast
from lake.sql.bind import names
from lake.sql.bind.coerce import is_nullable
from lake.sql.bind.scope import Env, find_column
from lake.sql.bound import Column, Expr

SETS_MAX: Final = 4_096

GroupSet = tuple[int, ...]


class Grouping(Struct):
    """What GROUP BY says.

    exprs   the group expressions, each once         names  what each would be called
    items   select items that are group expressions, by place, already bound
    sets    grouping sets as places in ``exprs``; None where there are none
    """

    exprs: list[Expr] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    items: dict[int, Expr] = field(default_factory=dict)
    sets: tuple[GroupSet, ...] | None = None

    def add(self, expr: Expr, name: str) -> int:
        """The place of ``expr`` among the groups."""
        if expr in self.exprs:
            return self.exprs.index(expr)
        self.exprs.append(expr)
        self.names.append(name)
        return len(self.exprs) - 1

    def outputs(self, env: Env) -> tuple[tuple[Column, Expr], ...]:
        """The groups as an Aggregate holds them; a plain column keeps its id unless a set may make it NULL."""
        made: list[tuple[Column, Expr]] = []
        for expr, name in zip(self.exprs, self.names, strict=True):
            if isinstance(expr, Column) and self.sets is None and expr.id in env.scope.ids:
                made.append((expr, expr))
            else:
                nullable = self.sets is not None or is_nullable(expr)
                made.append((env.shared.column(name, expr.type, nullable), expr))
        return tuple(made)


def bind_grouping_elements(
    elements: Sequence[ast.Expr | ast.GroupingSets], items: Sequence[ast.SelectItem], env: Env
) -> Grouping:
    """The groups of GROUP BY's elements.

    42P10  a position outside the select list     54000  too many grouping sets
    """
    grouping = Grouping()
    parts = [_element_sets(element, grouping, items, env) for element in elements]
    if any(isinstance(element, ast.GroupingSets) for element in elements):
        count = 1
        for part in parts:
            count *= len(part)
        if count > SETS_MAX:
            raise StatementTooComplex(f"too many grouping sets present (maximum {SETS_MAX})")
        sets = []
        for choice in product(*parts):
            sets.append(tuple(dict.fromkeys(place for part in choice for place in part)))
        grouping.sets = tuple(sets)
    return grouping


def _element_sets(
    element: ast.Expr | ast.GroupingSets, grouping: Grouping, items: Sequence[ast.SelectItem], env: Env
) -> list[GroupSet]:
    """The grouping sets one element stands for: one, for a plain expression."""
    if not isinstance(element, ast.GroupingSets):
        members = element.items if isinstance(element, ast.Row) else (element,)
        return [tuple(_group(member, grouping, items, env) for member in members)]
    kind = element.kind.lower()
    if kind == "grouping sets":
        found: list[GroupSet] = []
        for member in element.sets:
            if isinstance(member, ast.GroupingSets):
                found += _element_sets(member, grouping, items, env)
            else:
                found.append(_set_of(member, grouping, items, env))
        return found
    units = [
        _element_sets(member, grouping, items, env)[0]
        if isinstance(member, ast.GroupingSets)
        else _set_of(member, grouping, items, env)
        for member in element.sets
    ]
    if kind == "rollup":
        return [_merge(units[:count]) for count in range(len(units), -1, -1)]
    if len(units) > 12:
        raise StatementTooComplex("CUBE is limited to 12 elements", position=env.position(element))
    return [_merge(chosen) for count in range(len(units), -1, -1) for chosen in combinations(units, count)]


def _set_of(
    members: tuple[ast.Expr, ...], grouping: Grouping, items: Sequence[ast.SelectItem], env: Env
) -> GroupSet:
    flat: list[ast.Expr] = []
    for member in members:
        flat += member.items if isinstance(member, ast.Row) else (member,)
    return tuple(_group(member, grouping, items, env) for member in flat)


def _merge(units: Sequence[GroupSet]) -> GroupSet:
    return tuple(dict.fromkeys(place for unit in units for place in unit))


def _group(element: ast.Expr, grouping: Grouping, items: Sequence[ast.SelectItem], env: Env) -> int:
    """The place of one group expression: a position, an alias where no column has the name, or an expression."""
    place = _item_place(element, items, env)
    if place is None:
        bound = env.bind(element)
        for same, item in enumerate(items):
            # Two bound subqueries are never equal: an item written as the group is the group.
            if type(item.expr) is type(element) and item.expr == element:
                grouping.items.setdefault(same, bound)
        return grouping.add(bound, names.name_of(element))
    if place not in grouping.items:
        grouping.items[place] = replace(env, clause="GROUP BY").bind(items[place].expr)
    return grouping.add(grouping.items[place], names.output_name(items[place]))


def _item_place(element: ast.Expr, items: Sequence[ast.SelectItem], env: Env) -> int | None:
    if isinstance(element, ast.Literal) and isinstance(element.value, int) and not isinstance(element.value, bool):
        if not 1 <= element.value <= len(items):
            raise InvalidColumnReference(
                f"GROUP BY position {element.value} is not in select list", position=env.position(element)
            )
        return element.value - 1
    if not isinstance(element, ast.Column) or len(element.name.parts) != 1:
        return None
    if find_column(env.scope, element.name, env.position(element), outward=False) is not None:
        return None
    found = [place for place, item in enumerate(items) if item.alias == element.name.last]
    return found[0] if found else None
