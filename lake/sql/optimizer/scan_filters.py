"""The filters of a scan in the order that tests least, and ranges that a pattern implies.

    Scan: part filters [p_name#2 LIKE 'forest%', p_size#6 = 5]
    Scan: part filters [p_size#6 = 5, p_name#2 >= 'forest', p_name#2 < 'foresu', p_name#2 LIKE 'forest%']

Comparisons of columns with constants and with each other never fail, so they may come first, those on the most selective
columns before the others. Everything else keeps its place behind them: what guards a division still does.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from lake.sql import bound
from lake.sql import plan as plans
from lake.sql.bound import Call, Column, Compare, Expr, InList, IsNull, Literal, Not
from lake.sql.optimizer.comparisons import prefix_range
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.selectivity import filtered
from lake.sql.optimizer.statistics import table_estimate
from lake.sql.plan import Plan, Scan
from lake.types import TEXT

TEXT_COST: Final = 2.0
"""What comparing texts costs, with the comparison of numbers as 1."""

LIST_COST: Final = 1.5


def order_scan_filters(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with the filters of each scan in order, and ranges added for LIKE with a prefix."""
    return plans.rewrite(plan, lambda node: _ordered(node, planning) if type(node) is Scan and node.filters else node)


def _ordered(scan: Scan, planning: Planning) -> Scan:
    found = table_estimate(scan, planning)
    groups: dict[frozenset[int], list[Expr]] = {}
    others: list[Expr] = []
    for conjunct in scan.filters:
        if _is_safe(conjunct):
            groups.setdefault(bound.columns_of(conjunct), []).append(conjunct)
        else:
            others.extend((*_implied_range(conjunct), conjunct))

    def rank(group: list[Expr]) -> float:
        kept = filtered(found, tuple(group)).rows / max(found.rows, 1.0)
        return (kept - 1.0) / sum(map(_cost, group))

    filters = (*(item for group in sorted(groups.values(), key=rank) for item in group), *others)
    return replace(scan, filters=tuple(dict.fromkeys(filters)))


def _is_safe(conjunct: Expr) -> bool:
    """Whether ``conjunct`` only compares columns and constants."""
    match conjunct:
        case Compare(left=Column(), right=Column() | Literal()):
            return True
        case InList(operand=Column(), items=items) | Not(operand=InList(operand=Column(), items=items)):
            return all(isinstance(item, Literal) for item in items)
        case IsNull(operand=Column()) | Not(operand=IsNull(operand=Column())):
            return True
        case _:
            return False


def _cost(conjunct: Expr) -> float:
    match conjunct:
        case Compare(left=left):
            return TEXT_COST if left.type == TEXT else 1.0
        case InList(operand=operand) | Not(operand=InList(operand=operand)):
            return LIST_COST * (TEXT_COST if operand.type == TEXT else 1.0)
        case _:
            return 1.0


def _implied_range(conjunct: Expr) -> tuple[Expr, ...]:
    """The range of texts that ``LIKE 'abc%'`` matches: files and row groups without it are skipped."""
    match conjunct:
        case Call(function=function, arguments=(Column() as operand, Literal(value=str() as pattern))) if (
            function.name == "like" and operand.type == TEXT
        ):
            prefix = pattern[: min([pattern.find(char) for char in "%_\\" if char in pattern], default=0)]
            return prefix_range(operand, prefix) if prefix else ()
        case _:
            return ()
