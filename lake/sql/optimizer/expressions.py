"""Questions about expressions, and ways to change them, that several rules share.

    rejects_null(o_total > 100, {o_total})            True: a row whose o_total is NULL never passes
    substitute(a + 1, {a: b * 2})                     b * 2 + 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from lake.sql import bound, traits
from lake.sql import plan as plans
from lake.sql.bound import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Exists,
    Expr,
    InList,
    IsNull,
    Lambda,
    Literal,
    MakeList,
    Not,
    Or,
    Quantified,
    ScalarSubquery,
)
from lake.sql.plan import Plan, Project
from lake.sql.registry import Scalar
from lake.types import BOOLEAN

T = TypeVar("T")

TRUE: Final = Literal(BOOLEAN, True)
FALSE: Final = Literal(BOOLEAN, False)
UNKNOWN: Final = Literal(BOOLEAN, None)

FLIPPED: Final = {
    "=": "=",
    "<>": "<>",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "is distinct": "is distinct",
    "is not distinct": "is not distinct",
}
"""The operator that holds of swapped operands."""

NEGATED: Final = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "is distinct": "is not distinct",
    "is not distinct": "is distinct",
}
"""The operator that is true where the other is false, and NULL where it is NULL."""

NEVER_ANSWER_NULL: Final = frozenset(("+", "-", "*", "||", "abs", "lower", "upper", "length", "year", "extract"))
"""Functions that answer NULL for a NULL argument alone."""

Subquery = ScalarSubquery | Exists | Quantified


def columns_in(columns: Iterable[Column]) -> frozenset[int]:
    """The ids of ``columns``."""
    return frozenset(column.id for column in columns)


def not_(expr: Expr) -> Expr:
    """The negation of ``expr``."""
    return Not(BOOLEAN, expr)


def is_null(expr: Expr) -> Expr:
    """``expr IS NULL``."""
    return IsNull(BOOLEAN, expr)


def is_not_null(expr: Expr) -> Expr:
    """``expr IS NOT NULL``."""
    return not_(is_null(expr))


def is_true(expr: Expr) -> Expr:
    """``expr IS TRUE``: false where ``expr`` is NULL."""
    return Compare.of("is not distinct", expr, TRUE)


def disjunction(parts: tuple[Expr, ...]) -> Expr:
    """The OR of ``parts``; false of none."""
    if not parts:
        return FALSE
    return parts[0] if len(parts) == 1 else Or(BOOLEAN, parts)


def disjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts of a disjunction, nested ones flattened."""
    if isinstance(expr, Or):
        return tuple(part for operand in expr.operands for part in disjuncts(operand))
    return (expr,)


def has_subquery(*values: object) -> bool:
    """Whether a subquery stands anywhere in the expressions."""
    return traits.has_trait(traits.SUBQUERY, *values)


def is_volatile(*values: object) -> bool:
    """Whether a call in the expressions may answer differently each time it is run."""
    return traits.has_trait(traits.VOLATILE, *values)


def is_constant(expr: Expr) -> bool:
    """Whether ``expr`` has one value throughout a statement: no column, no subquery, nothing volatile."""
    return not traits.has_trait(traits.COLUMN | traits.LAMBDA | traits.SUBQUERY | traits.VOLATILE, expr)


def substitute(value: T, mapping: Mapping[int, Expr]) -> T:
    """``value`` (an expression, a call, a sort key, tuples of them) with columns replaced, in subqueries too."""
    if not mapping:
        return value

    def replace_one(expr: Expr) -> Expr:
        match expr:
            case Column():
                return mapping.get(expr.id, expr)
            case ScalarSubquery(type, plan):
                return ScalarSubquery(type, substitute_plan(plan, mapping))
            case Exists(type, plan):
                return Exists(type, substitute_plan(plan, mapping))
            case Quantified(type, op, operands, plan, every):
                return Quantified(type, op, operands, substitute_plan(plan, mapping), every)
            case _:
                return expr

    def replace_all(expr: Expr) -> Expr:
        return expr if bound.columns_of(expr).isdisjoint(mapping) else bound.rewrite(expr, replace_one)

    return bound.map_expressions(value, replace_all)


def substitute_plan(plan: Plan, mapping: Mapping[int, Expr]) -> Plan:
    """``plan`` with columns replaced in the expressions of all its nodes; what the nodes answer keeps its ids."""
    if not mapping:
        return plan
    return plans.rewrite(plan, lambda node: plans.map_expressions(node, lambda expr: substitute(expr, mapping)))


def definitions(project: Project) -> dict[int, Expr]:
    """The expression of each output of ``project``, those that pass on a column left out."""
    return {
        column.id: expr
        for column, expr in zip(project.outputs, project.exprs, strict=True)
        if not (type(expr) is Column and expr.id == column.id)
    }


def map_plans(expr: Expr, change: Callable[[Plan], Plan]) -> Expr:
    """``expr`` with the plan of every subquery changed."""

    def change_one(node: Expr) -> Expr:
        match node:
            case ScalarSubquery(type, plan):
                return ScalarSubquery(type, change(plan))
            case Exists(type, plan):
                return Exists(type, change(plan))
            case Quantified(type, op, operands, plan, every):
                return Quantified(type, op, operands, change(plan), every)
            case _:
                return node

    return bound.rewrite(expr, change_one)


def equality(expr: Expr) -> tuple[Expr, Expr] | None:
    """The sides of ``a = b``."""
    match expr:
        case Compare(op="=", left=left, right=right):
            return left, right
        case _:
            return None


# --- NULL ------------------------------------------------------------------------------------------------------------

_TRUE, _FALSE, _NULL = "true", "false", "null"
_ANY: Final = frozenset((_TRUE, _FALSE, _NULL))
_NOT_NULL: Final = frozenset((_TRUE, _FALSE))
_ONLY_NULL: Final = frozenset((_NULL,))


def rejects_null(expr: Expr, ids: frozenset[int]) -> bool:
    """Whether ``expr`` is never true where all columns of ``ids`` are NULL."""
    return _TRUE not in _outcomes(expr, ids)


PLAIN: Final = frozenset((Column, Literal))
"""Expressions that are NULL exactly where the column or the constant is."""


def null_rejected(conjuncts: Iterable[Expr]) -> frozenset[int]:
    """Columns that are not NULL in any row for which all ``conjuncts`` are true."""
    found: set[int] = set()
    for conjunct in conjuncts:
        used = bound.columns_of(conjunct)
        if isinstance(conjunct, Compare) and _is_plain(conjunct):
            found |= used
        else:
            found |= {id for id in used if rejects_null(conjunct, frozenset((id,)))}
    return frozenset(found)


def _is_plain(expr: Compare) -> bool:
    """Whether columns and constants are compared, so that NULL makes it NULL: the most frequent conjunct."""
    return "distinct" not in expr.op and type(expr.left) in PLAIN and type(expr.right) in PLAIN


def _outcomes(expr: Expr, ids: frozenset[int]) -> frozenset[str]:
    """What ``expr`` may answer where all columns of ``ids`` are NULL; a value that is no BOOLEAN counts as both."""
    match expr:
        case Column():
            return _ONLY_NULL if expr.id in ids else _ANY
        case Literal(value=value):
            if value is None:
                return _ONLY_NULL
            return frozenset((_TRUE if value else _FALSE,)) if isinstance(value, bool) else _NOT_NULL
        case And(operands=operands):
            return _combine([_outcomes(item, ids) for item in operands], absorbing=_FALSE, neutral=_TRUE)
        case Or(operands=operands):
            return _combine([_outcomes(item, ids) for item in operands], absorbing=_TRUE, neutral=_FALSE)
        case Not(operand=operand):
            flipped = {_TRUE: _FALSE, _FALSE: _TRUE, _NULL: _NULL}
            return frozenset(flipped[item] for item in _outcomes(operand, ids))
        case IsNull(operand=operand):
            found = _outcomes(operand, ids)
            return frozenset(_TRUE if item == _NULL else _FALSE for item in found)
        case Compare(op=op, left=left, right=right):
            return _compare_outcomes(op, _outcomes(left, ids), _outcomes(right, ids))
        case Cast(operand=operand) | InList(operand=operand):
            return _ONLY_NULL if _outcomes(operand, ids) == _ONLY_NULL else _ANY
        case Call(function=function, arguments=arguments):
            found_all = [_outcomes(item, ids) for item in arguments if not isinstance(item, Lambda)]
            if function.strict and _ONLY_NULL in found_all:
                return _ONLY_NULL
            if function.name == "coalesce" and found_all and all(item == _ONLY_NULL for item in found_all):
                return _ONLY_NULL
            return _ANY
        case Case(whens=whens, otherwise=otherwise):
            return _case_outcomes(whens, otherwise, ids)
        case _:
            return _ANY


def _case_outcomes(whens: tuple[tuple[Expr, Expr], ...], otherwise: Expr, ids: frozenset[int]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for condition, value in whens:
        holds = _outcomes(condition, ids)
        if _TRUE in holds:
            found |= _outcomes(value, ids)
        if holds == frozenset((_TRUE,)):
            return found
    return found | _outcomes(otherwise, ids)


def _compare_outcomes(op: str, left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    if op in ("is distinct", "is not distinct"):
        if left == _ONLY_NULL and right == _ONLY_NULL:
            return frozenset((_FALSE if op == "is distinct" else _TRUE,))
        if (left == _ONLY_NULL and _NULL not in right) or (right == _ONLY_NULL and _NULL not in left):
            return frozenset((_TRUE if op == "is distinct" else _FALSE,))
        if op == "is not distinct" and frozenset((_TRUE,)) in (left, right):
            other = right if left == frozenset((_TRUE,)) else left
            return _NOT_NULL if _TRUE in other else frozenset((_FALSE,))
        return _NOT_NULL
    if _ONLY_NULL in (left, right):
        return _ONLY_NULL
    return _ANY if _NULL in left or _NULL in right else _NOT_NULL


def _combine(parts: list[frozenset[str]], *, absorbing: str, neutral: str) -> frozenset[str]:
    """What AND (absorbing false) or OR (absorbing true) may answer of operands that may answer ``parts``."""
    found: set[str] = set()
    if any(absorbing in part for part in parts):
        found.add(absorbing)
    if frozenset((absorbing,)) in parts:
        return frozenset(found)
    if any(_NULL in part for part in parts):
        found.add(_NULL)
    if all(neutral in part for part in parts):
        found.add(neutral)
    return frozenset(found)


def may_be_null(expr: Expr, non_null: frozenset[int]) -> bool:
    """Whether ``expr`` may answer NULL where the columns of ``non_null`` are not NULL."""
    match expr:
        case Column():
            return expr.id not in non_null
        case Literal(value=value):
            return value is None
        case IsNull() | Exists() | Compare(op="is distinct" | "is not distinct"):
            return False
        case Compare(left=left, right=right):
            return may_be_null(left, non_null) or may_be_null(right, non_null)
        case And(operands=operands) | Or(operands=operands):
            return any(may_be_null(item, non_null) for item in operands)
        case Not(operand=operand):
            return may_be_null(operand, non_null)
        case Cast(operand=operand, is_try=is_try):
            return is_try or may_be_null(operand, non_null)
        case InList(operand=operand, items=items):
            return may_be_null(operand, non_null) or any(may_be_null(item, non_null) for item in items)
        case Case(whens=whens, otherwise=otherwise):
            return may_be_null(otherwise, non_null) or any(may_be_null(value, non_null) for _, value in whens)
        case MakeList():
            return False
        case Call(function=function, arguments=arguments):
            if function.name == "coalesce":
                return all(may_be_null(item, non_null) for item in arguments)
            if _is_known(function):
                return any(may_be_null(item, non_null) for item in arguments)
            return True
        case _:
            return True


def _is_known(function: Scalar) -> bool:
    return function.strict and function.name in NEVER_ANSWER_NULL
