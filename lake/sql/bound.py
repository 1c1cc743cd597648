"""Bound expressions: every name is a column with an id, every expression has a SQL type, every call an implementation.

    SELECT l_quantity * 2 FROM lineitem         Call(*, (Column(7 l_quantity DECIMAL(15,2)), Literal(2 BIGINT)))

A column's ``id`` is unique in its plan and says which value is meant wherever it stands, so rules move expressions
between nodes without renumbering. A column of an outer query inside a subquery is what makes that subquery correlated:
its id is not among the subquery's own columns.

Both sides of a comparison, all items of IN and all branches of CASE have one type: the binder puts in the casts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from operator import is_
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from lake.sql.ast.expr import BoundKind, Exclusion, FrameUnit
from lake.types import BOOLEAN, Type

if TYPE_CHECKING:
    from lake.sql.plan import Plan
    from lake.sql.registry import Aggregate, Scalar, Window


class Expr(Struct, frozen=True, cache_hash=True, dict=True):
    """A bound expression; ``type`` is what it answers.

    It never changes, so what is worked out of it is kept with it, neither compared nor copied; None until then. In a
    dictionary of its own: a slot that is empty is found out by an exception, which takes twenty times as long.

    below    the expressions directly below (``children``)
    form     a number that expressions equal but for column ids have in common (``lake.sql.optimizer.common``)
    used     ids of the columns that it uses (``columns_of``)
    traits   what stands in it (``lake.sql.traits``)
    """

    type: Type
    below: ClassVar[tuple[Expr, ...] | None] = None
    form: ClassVar[int | None] = None
    used: ClassVar[frozenset[int] | None] = None
    traits: ClassVar[int | None] = None


class Column(Expr, frozen=True):
    """A column of the plan: equal when the ids are."""

    id: int
    name: str
    nullable: bool = True

    def __eq__(self, other: object) -> bool:
        return type(other) is Column and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)


class Literal(Expr, frozen=True):
    """A constant in physical form; ``value`` is None for NULL.

    DECIMAL  the scaled integer        DATE       days since 1970-01-01     INTERVAL  (months, days, nanoseconds)
    TIME     microseconds              TIMESTAMP  microseconds since 1970   LIST      a tuple of such values
    """

    value: bool | int | float | str | bytes | tuple[object, ...] | None


class Unknown(Literal, frozen=True):
    """A parameter that has no value yet, bound as NULL; ``seen`` collects the types it is cast to, which tell its own."""

    seen: list[Type] = field(default_factory=list)

    def __eq__(self, other: object) -> bool:
        return type(other) is Unknown and self.type == other.type and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.type, self.value))


LITERALS: Final[frozenset[type[Expr]]] = frozenset((Literal, Unknown))


class Call(Expr, frozen=True):
    """A scalar function or operator over arguments already cast to the types of its overload."""

    function: Scalar
    arguments: tuple[Expr, ...]


class Compare(Expr, frozen=True):
    """``op`` is one of = <> < <= > >= and the two that never answer NULL: ``is distinct``, ``is not distinct``."""

    op: str
    left: Expr
    right: Expr

    @staticmethod
    def of(op: str, left: Expr, right: Expr) -> Compare:
        """The comparison of two expressions of one type."""
        return Compare(BOOLEAN, op, left, right)


class And(Expr, frozen=True):
    """A conjunction of two or more, with SQL's three values."""

    operands: tuple[Expr, ...]


class Or(Expr, frozen=True):
    """A disjunction of two or more, with SQL's three values."""

    operands: tuple[Expr, ...]


class Not(Expr, frozen=True):
    """NOT."""

    operand: Expr


class IsNull(Expr, frozen=True):
    """IS NULL; IS NOT NULL is Not over it."""

    operand: Expr


class InList(Expr, frozen=True):
    """``operand IN (items)``; NOT IN is Not over it."""

    operand: Expr
    items: tuple[Expr, ...]


class Case(Expr, frozen=True):
    """The first branch whose condition is true; ``otherwise`` is a NULL literal where the text has no ELSE."""

    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr


class Cast(Expr, frozen=True):
    """A cast to ``type``; with ``is_try`` a refused value becomes NULL.

    ``spelled`` is the type's, so that casts to two Arrow types held by one SQL type are two.
    """

    operand: Expr
    is_try: bool = False
    spelled: str = ""

    @staticmethod
    def of(type: Type, operand: Expr, *, is_try: bool = False) -> Cast:
        """The cast of an expression."""
        return Cast(type, operand, is_try, type.spelled)


class Lambda(Expr, frozen=True):
    """A function of list elements: ``type`` is the body's, ``parameters`` are columns of the body."""

    parameters: tuple[Column, ...]
    body: Expr


class MakeList(Expr, frozen=True):
    """``[a, b]``: items of one type."""

    items: tuple[Expr, ...]


# --- subqueries: gone after the optimizer's decorrelate --------------------------------------------------------------


class ScalarSubquery(Expr, frozen=True):
    """The one value of ``plan``'s first column; NULL of no rows, 21000 of two."""

    plan: Plan


class Exists(Expr, frozen=True):
    """Whether ``plan`` has a row; never NULL."""

    plan: Plan


class Quantified(Expr, frozen=True):
    """``operands op ANY|ALL (plan)``, with SQL's three values; IN is ``= ANY``, NOT IN is Not over it.

    ``operands`` pair with the plan's columns: several of them only for = and <>.
    """

    op: str
    operands: tuple[Expr, ...]
    plan: Plan
    every: bool


# --- calls that are not values of one row ----------------------------------------------------------------------------


class SortKey(Struct, frozen=True):
    """An item of ORDER BY, with its direction and the place of NULLs decided."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False


class AggregateCall(Struct, frozen=True):
    """An aggregate of an Aggregate node; ``order`` is the ORDER BY inside the call or of WITHIN GROUP."""

    type: Type
    function: Aggregate
    arguments: tuple[Expr, ...]
    distinct: bool = False
    filter: Expr | None = None
    order: tuple[SortKey, ...] = ()


class FrameBound(Struct, frozen=True):
    """One end of a frame; ``offset`` is a constant expression with PRECEDING and FOLLOWING."""

    kind: BoundKind
    offset: Expr | None = None


class Frame(Struct, frozen=True):
    """The rows around the current one that a window function sees."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound
    exclusion: Exclusion = Exclusion.NO_OTHERS


class WindowCall(Struct, frozen=True):
    """A window function, or an aggregate over a window, of a Window node."""

    type: Type
    function: Window | Aggregate
    arguments: tuple[Expr, ...]
    frame: Frame
    filter: Expr | None = None
    distinct: bool = False
    ignore_nulls: bool = False
    order: tuple[SortKey, ...] = ()


# --- walking ---------------------------------------------------------------------------------------------------------

T = TypeVar("T")
Rule = Callable[[Expr], Expr]


SUBQUERIES = (ScalarSubquery, Exists, Quantified)
_LEAVES = frozenset((Column, Literal, Unknown))
_EXPRESSIONS = frozenset((*Expr.__subclasses__(), Unknown))
"""By type, since ``isinstance`` of a struct's class costs five times as much as a look into a set."""

_HOLDERS = frozenset((SortKey, AggregateCall, WindowCall, Frame, FrameBound))
_HOLDS_EXPRESSIONS = ("Expr", "Column", "SortKey", "AggregateCall", "WindowCall", "Frame")


class Shape(Enum):
    """What a field that may hold expressions holds: one or None, a tuple of them, or something with them inside."""

    ONE = 1
    MANY = 2
    NESTED = 3


ONE, MANY = Shape.ONE, Shape.MANY
Fields = tuple[tuple[str, Shape], ...]
_SHAPES = {
    "Expr": Shape.ONE, "Expr | None": Shape.ONE, "Column": Shape.ONE, "Column | None": Shape.ONE,
    "tuple[Expr, ...]": Shape.MANY, "tuple[Column, ...]": Shape.MANY,
}  # fmt: skip
_FIELDS: dict[type, Fields] = {}


def field_types(made: type[Struct]) -> dict[str, str]:
    """The annotations of a struct's fields, as they are written, in the fields' order."""
    found = {name: text for base in reversed(made.__mro__) for name, text in inspect.get_annotations(base).items()}
    return {name: found[name] for name in made.__struct_fields__}


def expression_fields(made: type[Struct]) -> Fields:
    """Those fields that may hold expressions, by the words of their annotations, and how they hold them."""
    found = _FIELDS.get(made)
    if found is None:
        held = {name: text for name, text in field_types(made).items() if any(word in text for word in _HOLDS_EXPRESSIONS)}
        found = _FIELDS[made] = tuple([(name, _SHAPES.get(text, Shape.NESTED)) for name, text in held.items()])
    return found


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly below; a subquery's plan is not entered."""
    known = expr.below
    if known is None:
        found: list[Expr] = []
        _add_fields(expr, found)
        known = tuple(found)
        force_setattr(expr, "below", known)
    return known


def _add_fields(node: Struct, found: list[Expr]) -> None:
    for name, shape in expression_fields(type(node)):
        value = getattr(node, name)
        if shape is MANY:
            found += value
        elif shape is ONE:
            if value is not None:
                found.append(value)
        elif value:
            _add_expressions(value, found)


def _add_expressions(value: object, found: list[Expr]) -> None:
    made = type(value)
    if made in _EXPRESSIONS:
        found.append(value)  # type: ignore[arg-type]
    elif made is tuple:
        for part in value:  # type: ignore[attr-defined]
            _add_expressions(part, found)
    elif made in _HOLDERS:
        _add_fields(value, found)  # type: ignore[arg-type]


def walk(expr: Expr) -> Iterator[Expr]:
    """``expr`` and all below it, parents first; subqueries' plans are not entered."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        if type(node) not in _LEAVES:
            stack += reversed(children(node))


def rewrite(expr: Expr, rule: Rule) -> Expr:
    """``expr`` with ``rule`` applied to every node, children first; subqueries' plans are not entered.

    Long chains of one operator nest in the first argument: they cost no depth of the stack.
    """
    spine: list[Call] = []
    while type(expr) is Call and expr.arguments:
        spine.append(expr)
        expr = expr.arguments[0]
    if type(expr) not in _LEAVES:
        expr = rewrite_children(expr, lambda child: rewrite(child, rule))
    made = rule(expr)
    for call in reversed(spine):
        before = call.arguments
        after = (made, *[rewrite(item, rule) for item in before[1:]])
        made = rule(call if all(map(is_, after, before)) else replace(call, arguments=after))
    return made


def rewrite_children(expr: T, change: Rule) -> T:
    """An expression, a call or a sort key with every expression directly below changed; itself where nothing changes."""
    changed: dict[str, object] = {}
    for name, shape in expression_fields(type(expr)):  # type: ignore[arg-type]
        before = getattr(expr, name)
        after: object = before
        if shape is ONE:
            if before is not None:
                after = change(before)
        elif shape is MANY:
            after = _map_many(before, change)
        else:
            after = map_expressions(before, change)
        if after is not before:
            changed[name] = after
    return replace(expr, **changed) if changed else expr  # type: ignore[type-var]


def _map_many(before: tuple[Expr, ...], change: Rule) -> tuple[Expr, ...]:
    after = tuple([change(part) for part in before])
    return before if all(map(is_, after, before)) else after


def map_expressions(value: T, change: Rule) -> T:
    """``value`` with every expression directly in it changed: an expression, a call, a sort key, or tuples of them."""
    made: type = type(value)
    if made in _EXPRESSIONS:
        return change(value)  # type: ignore[arg-type, return-value]
    if made is tuple:
        parts = tuple([map_expressions(part, change) for part in value])  # type: ignore[attr-defined]
        return value if all(map(is_, parts, value)) else parts  # type: ignore[call-overload, return-value]
    return rewrite_children(value, change) if made in _HOLDERS else value


def columns_of(*values: object) -> frozenset[int]:
    """The ids of all columns used in expressions, calls and sort keys: subqueries' outer columns, no lambda's own."""
    if len(values) == 1 and type(values[0]) in _EXPRESSIONS:
        return _used_by(values[0])  # type: ignore[arg-type]
    return frozenset[int]().union(*[_used_by(expr) for value in values for expr in expressions_in(value)])


def _used_by(expr: Expr) -> frozenset[int]:
    if expr.used is not None:
        return expr.used
    ids: set[int] = set()
    parameters: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if type(node) is Column:
            ids.add(node.id)
            continue
        if node.used is not None:
            ids |= node.used
            continue
        if type(node) is Lambda:
            parameters |= {column.id for column in node.parameters}
        elif type(node) in SUBQUERIES:
            ids |= node.plan.outer_columns  # type: ignore[attr-defined]
        stack += children(node)
    found = frozenset(ids - parameters)
    force_setattr(expr, "used", found)
    return found


def expressions_in(value: object) -> Sequence[Expr]:
    """The expressions that ``value`` is: itself, those of a call or a sort key, or those of tuples of them."""
    if type(value) in _EXPRESSIONS:
        return (value,)  # type: ignore[return-value]
    found: list[Expr] = []
    _add_expressions(value, found)
    return found


def conjuncts(expr: Expr | None) -> tuple[Expr, ...]:
    """The parts of a conjunction, nested ones flattened; none for None."""
    if expr is None:
        return ()
    if type(expr) is And:
        return tuple([part for operand in expr.operands for part in conjuncts(operand)])
    return (expr,)


def conjunction(parts: tuple[Expr, ...]) -> Expr:
    """The AND of ``parts``; true of none."""
    if not parts:
        return Literal(BOOLEAN, True)
    return parts[0] if len(parts) == 1 else And(BOOLEAN, parts)
