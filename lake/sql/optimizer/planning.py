"""What the rules of one optimization share: fresh column ids, constant folding, and facts worked out once for each node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct, field

from lake.sql import bound, traits
from lake.sql import plan as plans
from lake.sql.bound import Column, Expr, Literal
from lake.sql.catalog import Settings, Table
from lake.sql.optimizer.estimates import TableColumns
from lake.sql.plan import CteScan, Distinct, Filter, Limit, Materialize, Plan, Recursion, Sample, Sort
from lake.types import Type

Fold: TypeAlias = Callable[[Expr], Literal]
T = TypeVar("T")

PASSING: Final = frozenset((Filter, Sort, Limit, Distinct, Sample))
"""Nodes whose columns are their input's."""

NUMBERED: Final = frozenset((CteScan, Materialize, Recursion))
"""Nodes that define or read a common table expression."""


class Planning(Struct):
    """The surroundings of one optimization.

    fold    computes a constant expression; without it only what needs no evaluation is simplified
    definitions   what the plan at hand materializes, by number
    ctes_known    rows and columns by position of materialized definitions met so far
    facts   what ``remember`` keeps: by its name, a node's fact under the node's identity, with the node itself, so that
            the identity stays its own
    simple, simple_plans   expressions and nodes that are simple already, by identity
    tables  columns of tables as their statistics tell them, by the table's identity
    """

    settings: Settings
    fold: Fold | None
    ids: Iterator[int]
    ctes: Iterator[int]
    definitions: dict[int, Plan] = field(default_factory=dict)
    ctes_known: dict[int, tuple[float, list[Any]]] = field(default_factory=dict)
    facts: dict[str, dict[int, tuple[Plan, Any]]] = field(default_factory=dict)
    simple: dict[int, Expr] = field(default_factory=dict)
    simple_plans: dict[int, Plan] = field(default_factory=dict)
    tables: dict[int, tuple[Table, TableColumns]] = field(default_factory=dict)

    @staticmethod
    def of(plan: Plan, settings: Settings, fold: Fold | None) -> Planning:
        """Surroundings whose fresh numbers are above all those of ``plan``."""
        nodes, column = _survey(plan)
        numbered = [node for node in nodes if type(node) in NUMBERED]
        definitions = {node.cte: node.definition for node in numbered if isinstance(node, Materialize)}
        cte = max([node.cte for node in numbered], default=0)  # type: ignore[attr-defined]
        return Planning(settings, fold, count(column + 1), count(cte + 1), definitions)

    def column(self, type: Type, name: str, *, nullable: bool = True) -> Column:
        """A column of its own id."""
        return Column(type, next(self.ids), name, nullable)

    def copy(self, column: Column) -> Column:
        """A column like ``column`` under an id of its own."""
        return Column(column.type, next(self.ids), column.name, column.nullable)

    def remember(self, name: str, plan: Plan, work_out: Callable[[Plan, Planning], T]) -> T:
        """The fact ``name`` of ``plan``, worked out at most once."""
        known = self.facts.setdefault(name, {})
        found = known.get(id(plan))
        if found is None:
            found = known[id(plan)] = (plan, work_out(plan, self))
        fact: T = found[1]
        return fact

    def note_cte(self, cte: int, rows: float, columns: list[Any]) -> None:
        """Takes in what a materialized definition is thought to answer; any node may stand over a scan of it."""
        found = (rows, columns)
        if self.ctes_known.get(cte) != found:
            self.ctes_known[cte] = found
            self.facts.get("estimate", {}).clear()


def walk_deep(plan: Plan) -> Iterator[Plan]:
    """``plan`` and all below it, those inside subquery expressions too."""
    return iter(_survey(plan)[0])


def _survey(plan: Plan) -> tuple[list[Plan], int]:
    """``plan`` and all below it, those inside subquery expressions too; and the largest id of their columns."""
    nodes: list[Plan] = []
    ids: set[int] = {0}
    left = [plan]
    while left:
        top = left.pop()
        enters = traits.of_plan(top) & (traits.SUBQUERY | traits.LAMBDA)
        for node in plans.walk(top):
            nodes.append(node)
            if type(node) not in PASSING:
                ids |= node.ids
            for expr in plans.expressions_of(node):
                ids |= bound.columns_of(expr)
                for part in bound.walk(expr) if enters and traits.of_expression(expr) & enters else ():
                    if isinstance(part, bound.Lambda):
                        ids.update([item.id for item in part.parameters])
                    elif isinstance(part, bound.ScalarSubquery | bound.Exists | bound.Quantified):
                        left.append(part.plan)
    return nodes, max(ids)
