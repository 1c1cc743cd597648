"""What the rules of one optimization share: fresh column ids, constant folding, and facts worked out once for each node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias, TypeVar

from lake.sql import bound
from lake.sql import plan as plans
from lake.sql.bound import Column, Expr, Literal
from lake.sql.catalog import Settings
from lake.sql.plan import CteScan, Materialize, Plan, Recursion
from lake.types import Type

Fold: TypeAlias = Callable[[Expr], Literal]
T = TypeVar("T")


@dataclass(slots=True)
class Planning:
    """The surroundings of one optimization.

    fold    computes a constant expression; without it only what needs no evaluation is simplified
    definitions   what the plan at hand materializes, by number
    ctes_known    rows and columns by position of materialized definitions met so far
    facts   what ``remember`` keeps: a node's facts under the rule's name and the node's identity, with the node itself,
            so that the identity stays its own
    simple  expressions that are simple already, by identity
    """

    settings: Settings
    fold: Fold | None
    ids: Iterator[int]
    ctes: Iterator[int]
    definitions: dict[int, Plan] = field(default_factory=dict)
    ctes_known: dict[int, tuple[float, list[Any]]] = field(default_factory=dict)
    facts: dict[tuple[str, int], tuple[Plan, Any]] = field(default_factory=dict)
    simple: dict[int, Expr] = field(default_factory=dict)

    @staticmethod
    def of(plan: Plan, settings: Settings, fold: Fold | None) -> Planning:
        """Surroundings whose fresh numbers are above all those of ``plan``."""
        nodes = list(walk_deep(plan))
        column = max(map(_largest_column, nodes), default=0)
        definitions = {node.cte: node.definition for node in nodes if isinstance(node, Materialize)}
        cte = max((node.cte for node in nodes if isinstance(node, CteScan | Materialize | Recursion)), default=0)
        return Planning(settings, fold, count(column + 1), count(cte + 1), definitions)

    def column(self, type: Type, name: str, *, nullable: bool = True) -> Column:
        """A column of its own id."""
        return Column(type, next(self.ids), name, nullable)

    def copy(self, column: Column) -> Column:
        """A column like ``column`` under an id of its own."""
        return Column(column.type, next(self.ids), column.name, column.nullable)

    def remember(self, name: str, plan: Plan, work_out: Callable[[], T]) -> T:
        """The fact ``name`` of ``plan``, worked out at most once."""
        key = (name, id(plan))
        found = self.facts.get(key)
        if found is None:
            found = self.facts[key] = (plan, work_out())
        fact: T = found[1]
        return fact


def walk_deep(plan: Plan) -> Iterator[Plan]:
    """``plan`` and all below it, those inside subquery expressions too."""
    for node in plans.walk(plan):
        yield node
        for expr in plans.expressions_of(node):
            for part in bound.walk(expr):
                if isinstance(part, bound.ScalarSubquery | bound.Exists | bound.Quantified):
                    yield from walk_deep(part.plan)


def _largest_column(node: Plan) -> int:
    """The largest id of a column that ``node`` answers or that is a lambda's own; what is used is answered somewhere."""
    largest = max((item.id for item in node.columns), default=0)
    for expr in plans.expressions_of(node):
        for part in bound.walk(expr):
            if isinstance(part, bound.Lambda):
                largest = max(largest, max((item.id for item in part.parameters), default=0))
            elif isinstance(part, Column):
                largest = max(largest, part.id)
    return largest
