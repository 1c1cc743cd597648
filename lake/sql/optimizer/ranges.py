"""Conjuncts on one expression put together: the tightest range, and contradictions.

    a >= 3 AND a > 5 AND a IN (4, 6, 7)         a IN (6, 7)
    a > 5 AND a < 2                             false
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from lake.sql.bound import Compare, Expr, InList, Literal
from lake.sql.optimizer.comparisons import ORDERED
from lake.sql.optimizer.expressions import FALSE, is_volatile
from lake.types import BOOLEAN, Json

RANGES: Final = frozenset(("=", "<", "<=", ">", ">=", "<>"))


class _Range(Struct):
    """What conjuncts say of one expression: bounds with whether they are part of it, members, and values left out."""

    low: Literal | None = None
    low_included: bool = True
    high: Literal | None = None
    high_included: bool = True
    members: tuple[Literal, ...] | None = None
    excluded: list[Literal] = field(default_factory=list)
    count: int = 0

    def add(self, op: str, value: Literal) -> None:
        """Takes in ``expression op value``."""
        match op:
            case "=":
                self.add_members((value,))
            case "<>":
                if value not in self.excluded:
                    self.excluded.append(value)
            case ">" | ">=":
                this: Any = value.value
                if self.low is None or this > self.low.value or (this == self.low.value and op == ">"):
                    self.low, self.low_included = value, op == ">="
            case _:
                this = value.value
                if self.high is None or this < self.high.value or (this == self.high.value and op == "<"):
                    self.high, self.high_included = value, op == "<="

    def add_members(self, values: tuple[Literal, ...]) -> None:
        """Takes in ``expression IN (values)``."""
        if self.members is None:
            self.members = values
        else:
            self.members = tuple(value for value in self.members if value in values)

    def holds(self, value: Literal) -> bool:
        """Whether ``value`` lies in the range and is not left out."""
        this: Any = value.value
        if self.low is not None and (this < self.low.value or (this == self.low.value and not self.low_included)):
            return False
        if self.high is not None and (this > self.high.value or (this == self.high.value and not self.high_included)):
            return False
        return value not in self.excluded

    def conjuncts(self, operand: Expr) -> tuple[Expr, ...]:
        """The fewest conjuncts that say the same; ``(FALSE,)`` of a contradiction."""
        if self.members is not None:
            kept = tuple(value for value in self.members if self.holds(value))
            if not kept:
                return (FALSE,)
            return (Compare.of("=", operand, kept[0]) if len(kept) == 1 else InList(BOOLEAN, operand, kept),)
        if self.low is not None and self.high is not None:
            one: Any = self.low.value
            two: Any = self.high.value
            if one > two or (one == two and not (self.low_included and self.high_included)):
                return (FALSE,)
            if one == two:
                return (FALSE,) if self.low in self.excluded else (Compare.of("=", operand, self.low),)
        found: list[Expr] = []
        if self.low is not None:
            found.append(Compare.of(">=" if self.low_included else ">", operand, self.low))
        if self.high is not None:
            found.append(Compare.of("<=" if self.high_included else "<", operand, self.high))
        inside = _Range(self.low, self.low_included, self.high, self.high_included)
        return (*found, *(Compare.of("<>", operand, value) for value in self.excluded if inside.holds(value)))


def merge_ranges(conjuncts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """``conjuncts`` of a filter with those on one expression merged, at the place of the first; ``(FALSE,)`` of none."""
    operands = [_operand_of(conjunct) for conjunct in conjuncts]
    compared = [operand for operand in operands if operand is not None]
    if len(compared) == len(set(compared)):
        return conjuncts
    ranges: dict[Expr, _Range] = {}
    for conjunct, operand in zip(conjuncts, operands, strict=True):
        if operand is None:
            continue
        found = ranges.setdefault(operand, _Range())
        found.count += 1
        match conjunct:
            case Compare(op=op, right=Literal() as value):
                found.add(op, value)
            case InList(items=items):
                found.add_members(tuple(item for item in items if isinstance(item, Literal)))
    merged: list[Expr] = []
    done: set[Expr] = set()
    for conjunct, operand in zip(conjuncts, operands, strict=True):
        if operand is None or ranges[operand].count == 1:
            merged.append(conjunct)
        elif operand not in done:
            done.add(operand)
            parts = ranges[operand].conjuncts(operand)
            if parts == (FALSE,):
                return (FALSE,)
            merged.extend(parts)
    return tuple(merged)


def _operand_of(conjunct: Expr) -> Expr | None:
    """The expression that ``conjunct`` compares with constants of an ordered type."""
    match conjunct:
        case Compare(op=op, left=operand, right=Literal(type=type, value=value)) if op in RANGES:
            values = [value]
        case InList(operand=operand, items=items) if all(isinstance(item, Literal) for item in items):
            type = operand.type
            values = [item.value for item in items if isinstance(item, Literal)]
        case _:
            return None
    is_ordered = isinstance(type, ORDERED) and not isinstance(type, Json)
    if not is_ordered or any(value is None for value in values) or is_volatile(operand):
        return None
    return operand
