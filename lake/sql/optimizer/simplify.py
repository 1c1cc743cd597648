"""Constant folding, boolean algebra, and plans that a constant empties.

    Filter: NOT (a < 5 OR b IS NULL) AND 1 = 1        Filter: a >= 5 AND b IS NOT NULL
    └─ Scan: t                                        └─ Scan: t

A conjunct of a filter only has to be true or not: there NULL counts as false. Everywhere else the three values are kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from lake.arrow_names import is_spelled_alike
from lake.errors import LakeError
from lake.sql import bound
from lake.sql import plan as plans
from lake.sql.bound import (
    LITERALS,
    And,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    InList,
    IsNull,
    Lambda,
    Literal,
    MakeList,
    Not,
    Or,
)
from lake.sql.optimizer.comparisons import cast_literal, compare_literals, simplify_comparison, simplify_in
from lake.sql.optimizer.copies import with_fields
from lake.sql.optimizer.expressions import (
    FALSE,
    FLIPPED,
    NEGATED,
    TRUE,
    UNKNOWN,
    columns_in,
    disjunction,
    disjuncts,
    has_subquery,
    is_constant,
    is_not_null,
    is_null,
    is_volatile,
    map_plans,
    may_be_null,
    not_,
)
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.properties import properties
from lake.sql.optimizer.ranges import merge_ranges
from lake.sql.plan import Aggregate, Filter, Join, JoinKind, Plan, Project, Scan, SetKind, SetOperation, Values
from lake.types import BOOLEAN, TEXT, Integer

COMMON_FACTOR_BRANCHES_MAX: Final = 64
LEFT_ALONE: Final = frozenset((plans.CteScan, plans.Materialize, plans.Recursion, plans.Sample, plans.AsofJoin))
WILDCARDS: Final = frozenset("%_\\")
RECKONED: Final[Mapping[str, Callable[[int, int], int]]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}

NonNull: TypeAlias = Callable[[], frozenset[int]]


def simplify(plan: Plan, planning: Planning) -> Plan:
    """``plan`` with every expression in its simplest form, empty parts left out."""
    if planning.simple_plans.get(id(plan)) is plan:
        return plan
    made = _simplify_node(plans.with_inputs(plan, lambda child: simplify(child, planning)), planning)
    planning.simple_plans[id(made)] = made
    return made


def _simplify_node(node: Plan, planning: Planning) -> Plan:
    if not all(_is_simple(expr, planning) for expr in plans.expressions_of(node)):
        node = plans.map_expressions(node, lambda expr: simplify_expression(expr, planning))
    return node if type(node) in LEFT_ALONE else _simplify_shape(node, planning)


def _simplify_shape(node: Plan, planning: Planning) -> Plan:
    """``node``, whose expressions are simple, made simple itself."""
    match node:
        case Project():
            return Values((), node.columns) if is_empty(node.input) else node
        case Join():
            return _simplify_join(node, planning)
        case Filter(conjuncts=conjuncts, input=source):
            if isinstance(source, Filter):
                conjuncts, source = (*source.conjuncts, *conjuncts), source.input
            below = source
            kept = simplify_conjuncts(conjuncts, planning, lambda: properties(below, planning).non_null)
            if kept == (FALSE,) or is_empty(source):
                return Values((), node.columns)
            return with_fields(node, conjuncts=kept, input=source) if kept else source
        case Scan(outputs=outputs, filters=filters) if filters:
            kept = simplify_conjuncts(filters, planning, lambda: _non_null(outputs))
            return Values((), outputs) if kept == (FALSE,) else with_fields(node, filters=kept)
        case SetOperation(kind=SetKind.UNION, all=True, left=left, right=right, outputs=outputs):
            for empty, other in ((left, right), (right, left)):
                if is_empty(empty):
                    return Project(outputs, other.columns, other)
            return node
        case Aggregate(groups=groups, grouping_sets=None) if groups and is_empty(node.input):
            return Values((), node.columns)
        case plans.Sort() | plans.Distinct() | plans.Window() | plans.Unnest() | plans.Limit():
            return Values((), node.columns) if is_empty(node.input) else node
        case _:
            return node


def _non_null(columns: tuple[Column, ...]) -> frozenset[int]:
    return columns_in(column for column in columns if not column.nullable)


def is_empty(plan: Plan) -> bool:
    """Whether ``plan`` is written as no rows."""
    return type(plan) is Values and not plan.rows


def _simplify_join(node: Join, planning: Planning) -> Plan:
    left, right = node.left, node.right

    def non_null() -> frozenset[int]:
        return properties(left, planning).non_null | properties(right, planning).non_null

    if node.mark_nulls:
        conditions = tuple(part for item in node.conditions for part in bound.conjuncts(item))
    else:
        conditions = simplify_conjuncts(node.conditions, planning, non_null)
    node = with_fields(node, conditions=conditions)
    never = conditions == (FALSE,)
    match node.kind:
        case JoinKind.INNER if never or is_empty(node.left) or is_empty(node.right):
            return Values((), node.columns)
        case JoinKind.SEMI if never or is_empty(node.left) or is_empty(node.right):
            return Values((), node.columns)
        case JoinKind.LEFT | JoinKind.SINGLE | JoinKind.ANTI | JoinKind.MARK if is_empty(node.left):
            return Values((), node.columns)
        case JoinKind.LEFT | JoinKind.SINGLE if never or is_empty(node.right):
            nothing = tuple(Literal(column.type, None) for column in node.right.columns)
            return Project(node.columns, (*node.left.columns, *nothing), node.left)
        case JoinKind.RIGHT if is_empty(node.right):
            return Values((), node.columns)
        case JoinKind.RIGHT if never or is_empty(node.left):
            nothing = tuple(Literal(column.type, None) for column in node.left.columns)
            return Project(node.columns, (*nothing, *node.right.columns), node.right)
        case JoinKind.ANTI if never or is_empty(node.right):
            return node.left
        case JoinKind.MARK if never or is_empty(node.right):
            return Project(node.columns, (*node.left.columns, FALSE), node.left)
        case _:
            return node


# --- conjuncts -------------------------------------------------------------------------------------------------------


def simplify_conjuncts(conjuncts: tuple[Expr, ...], planning: Planning, non_null: NonNull) -> tuple[Expr, ...]:
    """``conjuncts`` of a filter, each in its simplest form, none twice; ``(FALSE,)`` where no row can pass.

    non_null  answers the columns of the rows tested that are never NULL: few conditions ask
    """
    parts: list[Expr] = []
    for conjunct in conjuncts:
        for part in bound.conjuncts(conjunct):
            simple = _as_condition(part, non_null)
            for item in bound.conjuncts(simplify_expression(simple, planning) if simple is not part else part):
                if isinstance(item, Literal) and item in (FALSE, UNKNOWN):
                    return (FALSE,)
                if item != TRUE:
                    parts.append(item)
    return merge_ranges(tuple(_unique(parts)))


def _as_condition(expr: Expr, non_null: NonNull) -> Expr:
    """A condition that is true where ``expr`` is, though it may be false where that is NULL."""
    if type(expr) is Compare and expr.op != "is not distinct" and expr.left != expr.right:
        return expr
    match expr:
        case Literal(value=None):
            return FALSE
        case And(operands=operands):
            return bound.conjunction(tuple(_as_condition(item, non_null) for item in operands))
        case Or(operands=operands):
            return disjunction(tuple(_as_condition(item, non_null) for item in operands))
        case Compare(op="=" | "<=" | ">=", left=left, right=right) if left == right and not is_volatile(left):
            return is_not_null(left) if may_be_null(left, non_null()) else TRUE
        case Compare(op="<>" | "<" | ">", left=left, right=right) if left == right and not is_volatile(left):
            return FALSE
        case Compare(op="is not distinct", left=left, right=Literal(value=True, type=of)) if of == BOOLEAN:
            return _as_condition(left, non_null)
        case Compare(op="is not distinct", left=left, right=right):
            if not may_be_null(left, non_null()) or not may_be_null(right, non_null()):
                return Compare.of("=", left, right)
            return expr
        case InList(operand=operand, items=items):
            kept = tuple(item for item in items if not (isinstance(item, Literal) and item.value is None))
            return expr if len(kept) == len(items) else InList(expr.type, operand, kept) if kept else FALSE
        case Not(operand=InList(items=items)) if any(
            isinstance(item, Literal) and item.value is None for item in items
        ):
            return FALSE
        case IsNull(operand=operand) if not may_be_null(operand, non_null()):
            return FALSE
        case Not(operand=IsNull(operand=operand)) if not may_be_null(operand, non_null()):
            return TRUE
        case _:
            return expr


# --- expressions -----------------------------------------------------------------------------------------------------


def simplify_expression(expr: Expr, planning: Planning) -> Expr:
    """``expr`` in its simplest form with the same three values; plans of subqueries are simplified too."""
    if _is_simple(expr, planning):
        return expr
    if has_subquery(expr):
        expr = map_plans(expr, lambda plan: simplify(plan, planning))

    def simplify_one(node: Expr) -> Expr:
        if _is_simple(node, planning):
            return node
        made = _simplify_one(node, planning)
        planning.simple[id(made)] = made
        return made

    return bound.rewrite(expr, simplify_one)


def _is_simple(expr: Expr, planning: Planning) -> bool:
    return type(expr) is Column or type(expr) is Literal or planning.simple.get(id(expr)) is expr


def _simplify_one(expr: Expr, planning: Planning) -> Expr:
    """``expr``, whose parts are simple, made simple itself."""
    if type(expr) is Call:
        return fold(_simplify_call(expr), planning)
    if type(expr) is Compare:
        return fold(_simplify_compare(expr), planning)
    match expr:
        case And():
            return _simplify_and(expr)
        case Or():
            return _simplify_or(expr)
        case Not(operand=operand):
            return _negate(operand)
        case IsNull(operand=Literal(value=value)):
            return TRUE if value is None else FALSE
        case IsNull(operand=IsNull()):
            return FALSE
        case InList():
            return fold(simplify_in(expr), planning)
        case Case():
            return _simplify_case(expr)
        case Cast(type=to, operand=operand) if operand.type == to and is_spelled_alike(to, operand.type):
            return operand
        case Cast(type=to, operand=Literal() as operand):
            return cast_literal(operand, to) or fold(expr, planning)
        case MakeList():
            return fold(expr, planning)
        case _:
            return expr


def fold(expr: Expr, planning: Planning) -> Expr:
    """The value of an expression of constants; what fails when it is computed is left for the row that needs it."""
    if planning.fold is None or type(expr) is Column or type(expr) in LITERALS:
        return expr
    for child in bound.children(expr):
        if type(child) not in LITERALS:
            return expr
    if type(expr) is Call:
        if expr.function.volatility == "volatile":
            return expr
        if (found := _whole_number(expr)) is not None:
            return found
    try:
        return planning.fold(expr)
    except LakeError:
        return expr


def _whole_number(expr: Call) -> Literal | None:
    """The answer of a sum, difference or product of integers (``d_year = 1999 + 1``); the engine takes 100 times as long."""
    reckon, type = RECKONED.get(expr.function.name), expr.type
    if reckon is None or not isinstance(type, Integer) or type.spelled or len(expr.arguments) != 2:
        return None
    values = [item.value for item in expr.arguments if isinstance(item, Literal) and isinstance(item.type, Integer)]
    if len(values) != 2 or None in values:
        return None
    value, limit = reckon(*values), 1 << (type.bits - 1)  # type: ignore[arg-type]
    return Literal(type, value) if -limit <= value < limit else None


def _simplify_and(expr: And) -> Expr:
    parts = _unique(part for part in bound.conjuncts(expr) if part != TRUE)
    present = set(parts)
    if FALSE in present:
        return FALSE
    kept = [part for part in parts if not (isinstance(part, Or) and any(item in present for item in part.operands))]
    return bound.conjunction(tuple(kept))


def _simplify_or(expr: Or) -> Expr:
    parts = _unique(part for part in disjuncts(expr) if part != FALSE)
    present = set(parts)
    if TRUE in present:
        return TRUE
    kept = [part for part in parts if not (isinstance(part, And) and any(item in present for item in part.operands))]
    return _common_factors(_equalities_to_in(kept))


def _unique(parts: Iterable[Expr]) -> list[Expr]:
    """``parts`` in order without repeats; a volatile one stands as often as it is written."""
    found: list[Expr] = []
    seen: set[Expr] = set()
    for part in parts:
        if part not in seen or is_volatile(part):
            found.append(part)
            seen.add(part)
    return found


def _equalities_to_in(parts: list[Expr]) -> tuple[Expr, ...]:
    """``a = 1 OR a IN (2, 3)`` as one IN, at the place of the first."""
    items: dict[Expr, list[Expr]] = {}
    for part in parts:
        operand, values = _membership(part)
        if operand is not None:
            items.setdefault(operand, []).extend(values)
    found: list[Expr] = []
    for part in parts:
        operand, _ = _membership(part)
        if operand is None:
            found.append(part)
        elif operand in items:
            values = tuple(dict.fromkeys(items.pop(operand)))
            is_list = len(values) > 1
            found.append(InList(BOOLEAN, operand, values) if is_list else Compare.of("=", operand, values[0]))
    return tuple(found)


def _membership(part: Expr) -> tuple[Expr | None, tuple[Expr, ...]]:
    """The expression that ``part`` holds equal to one of some constants, and those."""
    match part:
        case Compare(op="=", left=operand, right=Literal() as value) if not is_volatile(operand):
            return operand, (value,)
        case InList(operand=operand, items=values) if not is_volatile(operand):
            if all(isinstance(value, Literal) for value in values):
                return operand, values
    return None, ()


def _common_factors(parts: tuple[Expr, ...]) -> Expr:
    """``(a AND b) OR (a AND c)`` as ``a AND (b OR c)``: AND distributes over OR in three values too."""
    if not 2 <= len(parts) <= COMMON_FACTOR_BRANCHES_MAX:
        return disjunction(parts)
    branches = [bound.conjuncts(part) for part in parts]
    common = tuple(item for item in branches[0] if all(item in branch for branch in branches[1:]))
    if not common:
        return disjunction(parts)
    rests = [tuple(item for item in branch if item not in common) for branch in branches]
    if not all(rests):
        return bound.conjunction(common)
    rest = disjunction(_equalities_to_in([bound.conjunction(items) for items in rests]))
    return bound.conjunction((*common, rest))


def _negate(operand: Expr) -> Expr:
    """NOT ``operand``, carried down to comparisons."""
    match operand:
        case Literal(value=value):
            return UNKNOWN if value is None else (FALSE if value else TRUE)
        case Not(operand=inner):
            return inner
        case Compare(op=op, left=left, right=right):
            return Compare.of(NEGATED[op], left, right)
        case And(operands=operands):
            return disjunction(tuple(_negate(item) for item in operands))
        case Or(operands=operands):
            return bound.conjunction(tuple(_negate(item) for item in operands))
        case _:
            return not_(operand)


def _simplify_compare(expr: Compare) -> Expr:
    left, right, op = expr.left, expr.right, expr.op
    if is_constant(left) and not is_constant(right):
        left, right, op = right, left, FLIPPED[op]
    if isinstance(right, Literal) and right.value is None:
        match op:
            case "is not distinct":
                return _simplify_is_null(left)
            case "is distinct":
                return _negate(_simplify_is_null(left))
            case _:
                return UNKNOWN
    if isinstance(left, Literal) and left.value is None:
        return {"is not distinct": is_null(right), "is distinct": is_not_null(right)}.get(op, UNKNOWN)
    if isinstance(left, Literal) and isinstance(right, Literal):
        found = compare_literals(op, left, right)
        return Compare.of(op, left, right) if found is None else (TRUE if found else FALSE)
    if isinstance(right, Literal) and isinstance(right.value, bool) and op in ("=", "<>"):
        return left if right.value == (op == "=") else _negate(left)
    return simplify_comparison(Compare.of(op, left, right))


def _simplify_is_null(operand: Expr) -> Expr:
    if isinstance(operand, Literal):
        return TRUE if operand.value is None else FALSE
    return is_null(operand)


def _simplify_case(expr: Case) -> Expr:
    whens: list[tuple[Expr, Expr]] = []
    otherwise = expr.otherwise
    for condition, value in expr.whens:
        if condition in (FALSE, UNKNOWN):
            continue
        if condition == TRUE:
            otherwise = value
            break
        whens.append((condition, value))
    while whens and whens[-1][1] == otherwise and not is_volatile(whens[-1][0]):
        whens.pop()
    return Case(expr.type, tuple(whens), otherwise) if whens else otherwise


def _simplify_call(expr: Call) -> Expr:
    """A call that needs no evaluation: NULL in, NULL out; LIKE without wildcards."""
    function, arguments = expr.function, expr.arguments
    made = [type(item) for item in arguments]
    if Lambda in made:
        return expr
    if function.strict and Literal in made and any(isinstance(item, Literal) and item.value is None for item in arguments):
        return Literal(expr.type, None)
    if function.name == "coalesce":
        return _simplify_coalesce(expr)
    match arguments:
        case (operand, Literal(value=str() as pattern)) if function.name == "like" and operand.type == TEXT:
            if not WILDCARDS & set(pattern):
                return Compare.of("=", operand, arguments[1])
    return expr


def _simplify_coalesce(expr: Call) -> Expr:
    kept: list[Expr] = []
    for item in expr.arguments:
        if isinstance(item, Literal) and item.value is None:
            continue
        kept.append(item)
        if not may_be_null(item, frozenset()):
            break
    if not kept:
        return Literal(expr.type, None)
    return kept[0] if len(kept) == 1 else Call(expr.type, expr.function, tuple(kept))
