"""Expressions as the text says them; names and types come with binding."""

from __future__ import annotations

from decimal import Decimal as PyDecimal
from enum import Enum
from typing import TYPE_CHECKING

from lake.sql.ast.base import Name, Node

if TYPE_CHECKING:
    from lake.sql.ast.query import Query


class Expr(Node, frozen=True):
    """An expression."""


class TypeName(Node, frozen=True):
    """A type as written: ``DECIMAL(15, 2)[]``, ``ENUM('a', 'b')``; ``dimensions`` counts the brackets."""

    name: str
    arguments: tuple[int, ...] = ()
    dimensions: int = 0
    fields: tuple[tuple[str, TypeName], ...] = ()
    labels: tuple[str, ...] = ()


# --- literals --------------------------------------------------------------------------------------------------------


class Literal(Expr, frozen=True):
    """NULL, true, a whole number, a number with a point (exact), one with an exponent (float), text or bytes."""

    value: bool | int | PyDecimal | float | str | bytes | None


class TypedLiteral(Expr, frozen=True):
    """``DATE '2024-01-01'``, ``TIMESTAMP '..'``, ``DECIMAL '1.5'``: any type name before a string."""

    type: TypeName
    text: str


class IntervalLiteral(Expr, frozen=True):
    """``INTERVAL '1 year 2 days'``; with ``unit``, ``INTERVAL '3' MONTH``, ``INTERVAL 3 MONTH``, ``'1-2' YEAR TO MONTH``."""

    text: str
    unit: str | None = None


class ListLiteral(Expr, frozen=True):
    """``[a, b]`` or ``ARRAY[a, b]``."""

    items: tuple[Expr, ...]


class StructLiteral(Expr, frozen=True):
    """``{a: 1, 'b': 2}``."""

    fields: tuple[tuple[str, Expr], ...]


class Parameter(Expr, frozen=True):
    """``$name`` or ``$1``; ``name`` has no dollar sign."""

    name: str


# --- names -----------------------------------------------------------------------------------------------------------


class Column(Expr, frozen=True):
    """``a``, ``t.a``, ``schema.t.a``; binding decides which part is which (a later part may be a struct's field)."""

    name: Name


class Star(Expr, frozen=True):
    """``*`` or ``t.*`` in a select list, with its EXCLUDE, REPLACE and RENAME; also the argument of ``count(*)``."""

    qualifier: Name | None = None
    exclude: tuple[Name, ...] = ()
    replace: tuple[tuple[Expr, str], ...] = ()
    rename: tuple[tuple[str, str], ...] = ()


class Columns(Expr, frozen=True):
    """``COLUMNS('regex')``, ``COLUMNS(*)``, ``COLUMNS(['a', 'b'])``, ``COLUMNS(c -> c LIKE 'a%')``."""

    pattern: Expr


# --- operators -------------------------------------------------------------------------------------------------------


class Unary(Expr, frozen=True):
    """``op`` is one of - + ~ @."""

    op: str
    operand: Expr


class Binary(Expr, frozen=True):
    """Arithmetic, comparison, text, JSON and bit operators.

    ``op`` is the operator as written, with <> for !=: + - * / // % ^ ** || & | # << >> = <> < <= > >= ~ ~* !~ !~* -> ->>
    @> <@ && ? ^@
    """

    op: str
    left: Expr
    right: Expr


class And(Expr, frozen=True):
    """A conjunction of two or more."""

    operands: tuple[Expr, ...]


class Or(Expr, frozen=True):
    """A disjunction of two or more."""

    operands: tuple[Expr, ...]


class Not(Expr, frozen=True):
    """NOT."""

    operand: Expr


class IsNull(Expr, frozen=True):
    """``IS [NOT] NULL``."""

    operand: Expr
    negated: bool = False


class IsTruth(Expr, frozen=True):
    """``IS [NOT] TRUE | FALSE | UNKNOWN``; ``value`` is None for UNKNOWN."""

    operand: Expr
    value: bool | None
    negated: bool = False


class IsDistinct(Expr, frozen=True):
    """``IS [NOT] DISTINCT FROM``; ``negated`` is the NOT."""

    left: Expr
    right: Expr
    negated: bool = False


class Between(Expr, frozen=True):
    """``[NOT] BETWEEN [SYMMETRIC] low AND high``."""

    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False
    symmetric: bool = False


class InList(Expr, frozen=True):
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


class Like(Expr, frozen=True):
    """``[NOT] LIKE | ILIKE | SIMILAR TO pattern [ESCAPE c]``."""

    kind: LikeKind
    operand: Expr
    pattern: Expr
    escape: Expr | None = None
    negated: bool = False


class Case(Expr, frozen=True):
    """``CASE [operand] WHEN .. THEN .. ELSE .. END``."""

    operand: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


class Cast(Expr, frozen=True):
    """``CAST(x AS t)``, ``x::t``, ``TRY_CAST(x AS t)``; ``is_infix`` for the ``::`` form, which names the column."""

    operand: Expr
    type: TypeName
    is_try: bool = False
    is_infix: bool = False


class Extract(Expr, frozen=True):
    """``EXTRACT(field FROM x)``."""

    field: str
    operand: Expr


class AtTimeZone(Expr, frozen=True):
    """``x AT TIME ZONE zone``."""

    operand: Expr
    zone: Expr


class Subscript(Expr, frozen=True):
    """``x[i]``: an element, a struct's field or a map's value."""

    operand: Expr
    index: Expr


class Slice(Expr, frozen=True):
    """``x[a:b]`` with either bound left out, or ``x[a:b:stride]``."""

    operand: Expr
    low: Expr | None
    high: Expr | None
    stride: Expr | None = None


class Row(Expr, frozen=True):
    """``(a, b)`` or ``ROW(a, b)``."""

    items: tuple[Expr, ...]


class Lambda(Expr, frozen=True):
    """``x -> e``, ``(x, y) -> e``, ``LAMBDA x: e``."""

    parameters: tuple[str, ...]
    body: Expr


class ListComprehension(Expr, frozen=True):
    """``[e FOR x IN l IF c]``."""

    body: Expr
    variable: str
    source: Expr
    condition: Expr | None


# --- calls -----------------------------------------------------------------------------------------------------------


class SortItem(Node, frozen=True):
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


class FrameBound(Node, frozen=True):
    """One end of a frame; ``offset`` with PRECEDING and FOLLOWING."""

    kind: BoundKind
    offset: Expr | None = None


class Frame(Node, frozen=True):
    """``ROWS BETWEEN a AND b EXCLUDE ..``."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound
    exclusion: Exclusion = Exclusion.NO_OTHERS


class Window(Node, frozen=True):
    """``OVER (base PARTITION BY .. ORDER BY .. frame)``; ``OVER w`` has only ``base``."""

    base: str | None = None
    partition: tuple[Expr, ...] = ()
    order: tuple[SortItem, ...] = ()
    frame: Frame | None = None


class Argument(Node, frozen=True):
    """An argument of a call, with its name in ``name => value``."""

    value: Expr
    name: str | None = None


class Call(Expr, frozen=True):
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


class ScalarSubquery(Expr, frozen=True):
    """``(SELECT ..)`` as a value."""

    query: Query


class ArraySubquery(Expr, frozen=True):
    """``ARRAY(SELECT ..)``."""

    query: Query


class Exists(Expr, frozen=True):
    """``EXISTS (SELECT ..)``."""

    query: Query


class InSubquery(Expr, frozen=True):
    """``x [NOT] IN (SELECT ..)``; ``operand`` may be a Row."""

    operand: Expr
    query: Query
    negated: bool = False


class Quantified(Expr, frozen=True):
    """``x op ANY|ALL (SELECT ..)`` or ``x op ANY|ALL (list)``; ``every`` is ALL."""

    op: str
    operand: Expr
    source: Query | Expr
    every: bool
