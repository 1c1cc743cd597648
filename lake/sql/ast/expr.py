"""Expressions as the text says them; names and types come with binding."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal as PyDecimal
from enum import Enum
from typing import TYPE_CHECKING

from lake.sql.ast.base import Name, Node

if TYPE_CHECKING:
    from lake.sql.ast.query import Query


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """An expression."""


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A type as written: ``DECIMAL(15, 2)[]``, ``ENUM('a', 'b')``; ``dimensions`` counts the brackets."""

    name: str
    arguments: tuple[int, ...] = ()
    dimensions: int = 0
    fields: tuple[tuple[str, TypeName], ...] = ()
    labels: tuple[str, ...] = ()


# --- literals --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """NULL, true, a whole number, a number with a point (exact), one with an exponent (float), text or bytes."""

    value: bool | int | PyDecimal | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class TypedLiteral(Expr):
    """``DATE '2024-01-01'``, ``TIMESTAMP '..'``, ``DECIMAL '1.5'``: any type name before a string."""

    type: TypeName
    text: str


@dataclass(frozen=True, slots=True)
class IntervalLiteral(Expr):
    """``INTERVAL '1 year 2 days'``; with ``unit``, ``INTERVAL '3' MONTH``, ``INTERVAL 3 MONTH``, ``'1-2' YEAR TO MONTH``."""

    text: str
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class ListLiteral(Expr):
    """``[a, b]`` or ``ARRAY[a, b]``."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class StructLiteral(Expr):
    """``{a: 1, 'b': 2}``."""

    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Parameter(Expr):
    """``$name`` or ``$1``; ``name`` has no dollar sign."""

    name: str


# --- names -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """``a``, ``t.a``, ``schema.t.a``; binding decides which part is which (a later part may be a struct's field)."""

    name: Name


@dataclass(frozen=True, slots=True)
class Star(Expr):
    """``*`` or ``t.*`` in a select list, with its EXCLUDE, REPLACE and RENAME; also the argument of ``count(*)``."""

    qualifier: Name | None = None
    exclude: tuple[Name, ...] = ()
    replace: tuple[tuple[Expr, str], ...] = ()
    rename: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Columns(Expr):
    """``COLUMNS('regex')``, ``COLUMNS(*)``, ``COLUMNS(['a', 'b'])``, ``COLUMNS(c -> c LIKE 'a%')``."""

    pattern: Expr


# --- operators -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """``op`` is one of - + ~ @."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """Arithmetic, comparison, text, JSON and bit operators.

    ``op`` is the operator as written, with <> for !=: + - * / // % ^ ** || & | # << >> = <> < <= > >= ~ ~* !~ !~* -> ->>
    @> <@ && ? ^@
    """

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class And(Expr):
    """A conjunction of two or more."""

    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Expr):
    """A disjunction of two or more."""

    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """NOT."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    """``IS [NOT] NULL``."""

    operand: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsTruth(Expr):
    """``IS [NOT] TRUE | FALSE | UNKNOWN``; ``value`` is None for UNKNOWN."""

    operand: Expr
    value: bool | None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsDistinct(Expr):
    """``IS [NOT] DISTINCT FROM``; ``negated`` is the NOT."""

    left: Expr
    right: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expr):
    """``[NOT] BETWEEN [SYMMETRIC] low AND high``."""

    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False
    symmetric: bool = False


@dataclass(frozen=True, slots=True)
class InList(Expr):
    """``[NOT] IN (a, b)``."""

    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


class LikeKind(Enum):
    """Which pattern language."""

    LIKE = "LIKE"
    ILIKE = "ILIKE"
    SIMILAR = "SIMILAR TO"
    GLOB = "GLOB"
    REGEX = "RLIKE"


@dataclass(frozen=True, slots=True)
class Like(Expr):
    """``[NOT] LIKE | ILIKE | SIMILAR TO pattern [ESCAPE c]``."""

    kind: LikeKind
    operand: Expr
    pattern: Expr
    escape: Expr | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """``CASE [operand] WHEN .. THEN .. ELSE .. END``."""

    operand: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """``CAST(x AS t)``, ``x::t``, ``TRY_CAST(x AS t)``; ``is_infix`` for the ``::`` form, which names the column."""

    operand: Expr
    type: TypeName
    is_try: bool = False
    is_infix: bool = False


@dataclass(frozen=True, slots=True)
class Extract(Expr):
    """``EXTRACT(field FROM x)``."""

    field: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class AtTimeZone(Expr):
    """``x AT TIME ZONE zone``."""

    operand: Expr
    zone: Expr


@dataclass(frozen=True, slots=True)
class Subscript(Expr):
    """``x[i]``: an element, a struct's field or a map's value."""

    operand: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Slice(Expr):
    """``x[a:b]`` with either bound left out, or ``x[a:b:stride]``."""

    operand: Expr
    low: Expr | None
    high: Expr | None
    stride: Expr | None = None


@dataclass(frozen=True, slots=True)
class Row(Expr):
    """``(a, b)`` or ``ROW(a, b)``."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Lambda(Expr):
    """``x -> e``, ``(x, y) -> e``, ``LAMBDA x: e``."""

    parameters: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class ListComprehension(Expr):
    """``[e FOR x IN l IF c]``."""

    body: Expr
    variable: str
    source: Expr
    condition: Expr | None


# --- calls -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SortItem(Node):
    """An item of ORDER BY; ``nulls_first`` is None where the text does not say."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None


class FrameUnit(Enum):
    """What a window frame counts."""

    ROWS = "ROWS"
    RANGE = "RANGE"
    GROUPS = "GROUPS"


class BoundKind(Enum):
    """Where a frame begins or ends."""

    UNBOUNDED_PRECEDING = "UNBOUNDED PRECEDING"
    PRECEDING = "PRECEDING"
    CURRENT_ROW = "CURRENT ROW"
    FOLLOWING = "FOLLOWING"
    UNBOUNDED_FOLLOWING = "UNBOUNDED FOLLOWING"


class Exclusion(Enum):
    """Which rows around the current one a frame leaves out."""

    NO_OTHERS = "NO OTHERS"
    CURRENT_ROW = "CURRENT ROW"
    GROUP = "GROUP"
    TIES = "TIES"


@dataclass(frozen=True, slots=True)
class FrameBound(Node):
    """One end of a frame; ``offset`` with PRECEDING and FOLLOWING."""

    kind: BoundKind
    offset: Expr | None = None


@dataclass(frozen=True, slots=True)
class Frame(Node):
    """``ROWS BETWEEN a AND b EXCLUDE ..``."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound
    exclusion: Exclusion = Exclusion.NO_OTHERS


@dataclass(frozen=True, slots=True)
class Window(Node):
    """``OVER (base PARTITION BY .. ORDER BY .. frame)``; ``OVER w`` has only ``base``."""

    base: str | None = None
    partition: tuple[Expr, ...] = ()
    order: tuple[SortItem, ...] = ()
    frame: Frame | None = None


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """An argument of a call, with its name in ``name => value``."""

    value: Expr
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """``f([DISTINCT] args [ORDER BY ..]) [WITHIN GROUP (..)] [FILTER (WHERE ..)] [IGNORE NULLS] [OVER ..]``."""

    name: Name
    arguments: tuple[Argument, ...] = ()
    distinct: bool = False
    order: tuple[SortItem, ...] = ()
    within_group: tuple[SortItem, ...] = ()
    filter: Expr | None = None
    ignore_nulls: bool = False
    over: Window | None = None


# --- subqueries ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScalarSubquery(Expr):
    """``(SELECT ..)`` as a value."""

    query: Query


@dataclass(frozen=True, slots=True)
class ArraySubquery(Expr):
    """``ARRAY(SELECT ..)``."""

    query: Query


@dataclass(frozen=True, slots=True)
class Exists(Expr):
    """``EXISTS (SELECT ..)``."""

    query: Query


@dataclass(frozen=True, slots=True)
class InSubquery(Expr):
    """``x [NOT] IN (SELECT ..)``; ``operand`` may be a Row."""

    operand: Expr
    query: Query
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Quantified(Expr):
    """``x op ANY|ALL (SELECT ..)`` or ``x op ANY|ALL (list)``; ``every`` is ALL."""

    op: str
    operand: Expr
    source: Query | Expr
    every: bool
