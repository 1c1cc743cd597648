"""Which share of rows a condition keeps.

    l_discount BETWEEN 0.05 AND 0.07     0.02 of the 0.10 between least and greatest
    n_name IN ('FRANCE', 'GERMANY')      2 of 25 distinct values
    p_name LIKE '%green%'                a guess
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lake.sql import bound
from lake.sql.bound import And, Call, Cast, Column, Compare, Expr, InList, IsNull, Literal, Not, Or
from lake.sql.optimizer.estimates import Both, ColumnEstimate, Estimate

GUESS: Final = 0.25
"""A condition of which nothing is known."""

RANGE_GUESS: Final = 0.3
EQUAL_GUESS: Final = 0.05
CONTAINS_GUESS: Final = 0.05
PREFIX_GUESS: Final = 0.02
SUFFIX_GUESS: Final = 0.1
NULL_GUESS: Final = 0.02

AGGREGATE_RANGE_GUESS: Final = 0.1
"""HAVING keeps few groups: a comparison of a column of which not even the number of values is known."""


def filtered(found: Estimate, conjuncts: tuple[Expr, ...]) -> Estimate:
    """The rows of ``found`` for which all ``conjuncts`` are true, ranges on one column taken together."""
    if not conjuncts:
        return found
    fraction = 1.0
    changed: dict[int, ColumnEstimate] = {}
    ranges: dict[int, _Span] = {}
    for conjunct in conjuncts:
        column = _compared(conjunct)
        if column is not None and column.id in found.columns:
            match conjunct:
                case Compare(op=op, right=Literal(value=value)) if op in ("<", "<=", ">", ">="):
                    span = ranges.setdefault(column.id, _Span(found.columns[column.id]))
                    span.narrow(op, value)
                    continue
                case Compare(op="=", right=Literal(value=value)):
                    one = found.columns[column.id]
                    changed[column.id] = replace(one, distinct=1.0, null_fraction=0.0, min=value, max=value)
                case InList(items=items):
                    changed[column.id] = replace(found.columns[column.id], distinct=float(len(items)), null_fraction=0.0)
        fraction *= selectivity(conjunct, found)
    for id, span in ranges.items():
        share = span.share()
        fraction *= share * (1.0 - found.columns[id].null_fraction)
        before = found.columns[id].distinct
        distinct = None if before is None else max(before * share, 1.0)
        changed[id] = replace(found.columns[id], distinct=distinct, null_fraction=0.0, min=span.low, max=span.high)
    rest = found.scaled(fraction)
    return Estimate(rest.rows, Both(changed, rest.columns) if changed else rest.columns)


def _compared(conjunct: Expr) -> Column | None:
    match conjunct:
        case Compare(left=Column() as column, right=Literal()) | InList(operand=Column() as column):
            return column
        case _:
            return None


class _Span(Struct):
    """The part of a column's values that comparisons leave."""

    column: ColumnEstimate
    low: object | None = None
    high: object | None = None
    guesses: float = 1.0

    def __post_init__(self) -> None:
        self.low, self.high = self.column.min, self.column.max

    def narrow(self, op: str, value: object) -> None:
        """Takes in ``column op value``."""
        at = _number(value)
        low, high = _number(self.low), _number(self.high)
        if at is None or low is None or high is None or type(value) is not type(self.low):
            self.guesses *= RANGE_GUESS
        elif op in ("<", "<=") and at < high:
            self.high = value
        elif op in (">", ">=") and at > low:
            self.low = value

    def share(self) -> float:
        """The share of the values that is left."""
        least, greatest = _number(self.column.min), _number(self.column.max)
        low, high = _number(self.low), _number(self.high)
        if least is None or greatest is None or low is None or high is None:
            return self.guesses
        if high < low:
            return 1e-6 * self.guesses
        one = 1.0 / max(self.column.distinct or 100.0, 1.0)
        whole = greatest - least
        if whole <= 0:
            return self.guesses
        return min(max((high - low) / whole, one), 1.0) * self.guesses


def _number(value: object) -> float | None:
    """A place on a line for a value; texts by their first eight bytes."""
    match value:
        case bool():
            return float(value)
        case int() | float():
            return float(value)
        case str():
            return float(int.from_bytes(value.encode()[:8].ljust(8, b"\0"), "big"))
        case _:
            return None


def selectivity(expr: Expr, found: Estimate) -> float:
    """The share of rows of ``found`` for which ``expr`` is true, between 0 and 1."""
    match expr:
        case Literal(value=value):
            return 1.0 if value is True else 0.0
        case Column(id=id):
            return 0.5 * (1.0 - _null_fraction(id, found))
        case And(operands=operands):
            kept = filtered(found, operands)
            return kept.rows / found.rows if found.rows > 0 else 1.0
        case Or(operands=operands):
            missed = 1.0
            for operand in operands:
                missed *= 1.0 - selectivity(operand, found)
            return 1.0 - missed
        case Not(operand=IsNull(operand=Column(id=id))):
            return 1.0 - _null_fraction(id, found)
        case Not(operand=operand):
            return max(1.0 - selectivity(operand, found), 0.0)
        case IsNull(operand=Column(id=id)):
            return _null_fraction(id, found)
        case IsNull():
            return NULL_GUESS
        case InList(operand=operand, items=items):
            return min(len(items) * _equal_share(operand, found), 1.0)
        case Compare():
            return _comparison(expr, found)
        case Call():
            return _call(expr)
        case _:
            return GUESS


def _null_fraction(id: int, found: Estimate) -> float:
    return found.columns[id].null_fraction if id in found.columns else NULL_GUESS


def _equal_share(operand: Expr, found: Estimate) -> float:
    """The share of rows that have one given value of ``operand``."""
    if not isinstance(operand, Column | Cast):
        return EQUAL_GUESS
    used = bound.columns_of(operand)
    distinct = 1.0
    for id in used:
        if not found.knows(id):
            return EQUAL_GUESS
        distinct *= found.distinct(id)
    return 1.0 / distinct if used else EQUAL_GUESS


def _comparison(expr: Compare, found: Estimate) -> float:
    left, right, op = expr.left, expr.right, expr.op
    if op in ("<>", "is distinct"):
        return 1.0 - _comparison(Compare.of("=", left, right), found)
    if op in ("=", "is not distinct"):
        if isinstance(right, Literal):
            return _outside(left, right, found) or _equal_share(left, found)
        return min(_equal_share(left, found), _equal_share(right, found))
    if isinstance(left, Column) and isinstance(right, Literal) and left.id in found.columns:
        span = _Span(found.columns[left.id])
        span.narrow(op, right.value)
        return span.share()
    is_unknown = any(not found.knows(id) for id in bound.columns_of(expr))
    return AGGREGATE_RANGE_GUESS if is_unknown and isinstance(right, Literal) else RANGE_GUESS


def _outside(operand: Expr, value: Literal, found: Estimate) -> float | None:
    """Almost nothing where a constant lies outside a column's values."""
    if not isinstance(operand, Column) or operand.id not in found.columns:
        return None
    column = found.columns[operand.id]
    at, low, high = _number(value.value), _number(column.min), _number(column.max)
    if at is None or low is None or high is None or low <= at <= high:
        return None
    return 1e-6


def _call(expr: Call) -> float:
    match expr.arguments:
        case (_, Literal(value=str() as pattern), *_) if expr.function.name in ("like", "ilike"):
            if pattern.startswith("%"):
                return CONTAINS_GUESS if pattern.endswith("%") else SUFFIX_GUESS
            return PREFIX_GUESS
        case _:
            return GUESS
