"""Logical plans: what a query computes, as a tree of frozen nodes.

    SELECT o_custkey, count(*) FROM orders WHERE o_totalprice > 100 GROUP BY 1

    Project: o_custkey#2, count#9
    └─ Aggregate: groups [o_custkey#2] aggregates [count#9 = count(*)]
       └─ Filter: o_totalprice#4 > 100.00
          └─ Scan: orders [o_custkey#2, o_totalprice#4]

``columns`` of a node are what it answers, in order. A node's expressions use the columns of its inputs, and, in a
correlated subquery, columns of the outer query (``outer_columns``). Inputs of one node never share a column id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import ClassVar, Final, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lake.sql import bound
from lake.sql.bound import AggregateCall, Column, Expr, Literal, SortKey, WindowCall
from lake.sql.catalog import Table


class Plan(Struct, frozen=True, dict=True):
    """A node of a plan. What is worked out of it is kept with it, as with an expression (``lake.sql.bound``).

    answered, answered_ids   its columns
    parts                    its own expressions
    used_and_made            what it and all below use and make
    traits                   what stands in it and below (``lake.sql.traits``)
    """

    answered: ClassVar[tuple[Column, ...] | None] = None
    answered_ids: ClassVar[frozenset[int] | None] = None
    parts: ClassVar[tuple[Expr, ...] | None] = None
    used_and_made: ClassVar[tuple[frozenset[int], frozenset[int]] | None] = None
    traits: ClassVar[int | None] = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns this node answers, in order."""
        found = self.answered
        if found is None:
            found = self._columns()
            force_setattr(self, "answered", found)
        return found

    def _columns(self) -> tuple[Column, ...]:
        raise NotImplementedError

    @property
    def ids(self) -> frozenset[int]:
        """The ids of ``columns``."""
        found = self.answered_ids
        if found is None:
            found = frozenset([column.id for column in self.columns])
            force_setattr(self, "answered_ids", found)
        return found

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The nodes directly below."""
        return tuple([getattr(self, name) for name in input_names(type(self))])

    @property
    def outer_columns(self) -> frozenset[int]:
        """Ids of columns that neither this node nor any below makes: the plan is correlated by them."""
        used, made = uses_and_makes(self)
        return used - made


# --- leaves ----------------------------------------------------------------------------------------------------------


class Scan(Plan, frozen=True):
    """Rows of a table, of a file or of a system table.

    names     the stored name of each of ``outputs``
    filters   conjuncts over ``outputs``: they skip files and row groups where they can, and every row is tested
    """

    table: Table
    outputs: tuple[Column, ...]
    names: tuple[str, ...]
    filters: tuple[Expr, ...] = ()

    def _columns(self) -> tuple[Column, ...]:
        return self.outputs


class Values(Plan, frozen=True):
    """Rows of expressions that use no column of this query, perhaps none. SELECT without FROM is one empty row."""

    rows: tuple[tuple[Expr, ...], ...]
    outputs: tuple[Column, ...]

    def _columns(self) -> tuple[Column, ...]:
        return self.outputs

    @property
    def is_constant(self) -> bool:
        """Whether it has many rows and every value is a constant."""
        return len(self.rows) > FEW_ROWS and all(type(item) is Literal for row in self.rows for item in row)


class CteScan(Plan, frozen=True):
    """The rows of a Materialize above, found by ``cte``, under columns of this scan's own.

    Inside the step of a Recursion with the same number, the rows of the round before.
    """

    cte: int
    name: str
    outputs: tuple[Column, ...]

    def _columns(self) -> tuple[Column, ...]:
        return self.outputs


# --- one input -------------------------------------------------------------------------------------------------------


class Filter(Plan, frozen=True):
    """Rows for which every conjunct is true."""

    conjuncts: tuple[Expr, ...]
    input: Plan

    def _columns(self) -> tuple[Column, ...]:
        return self.input.columns


class Project(Plan, frozen=True):
    """An expression for each output; a column passed on keeps its id by being its own output."""

    outputs: tuple[Column, ...]
    exprs: tuple[Expr, ...]
    input: Plan

    def _columns(self) -> tuple[Column, ...]:
        return self.outputs


class Aggregate(Plan, frozen=True):
    """Groups of rows.

    groups          pairs of output and expression; none is one group of all rows (one row even of none), unless sets
    aggregates      pairs of output and call
    grouping_sets   None for one plain GROUP BY, else the positions in ``groups`` of each set; groups outside are NULL
    grouping_id     where GROUPING SETS are used and grouping() is called: a BIGINT output with bit i (from the lowest)
                    set where ``groups[i]`` is not in the row's set
    """

    groups: tuple[tuple[Column, Expr], ...]
    aggregates: tuple[tuple[Column, AggregateCall], ...]
    input: Plan
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    grouping_id: Column | None = None

    def _columns(self) -> tuple[Column, ...]:
        made = tuple(column for column, _ in self.groups) + tuple(column for column, _ in self.aggregates)
        return made if self.grouping_id is None else (*made, self.grouping_id)


class Window(Plan, frozen=True):
    """The input's columns and one more for each call; all calls share partition and order."""

    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, WindowCall], ...]
    input: Plan

    def _columns(self) -> tuple[Column, ...]:
        return self.input.columns + tuple(column for column, _ in self.calls)


class Sort(Plan, frozen=True):
    """The input's rows in order; with ``limit`` only the first so many (after ``offset``): a TopN."""

    keys: tuple[SortKey, ...]
    input: Plan
    limit: int | None = None
    offset: int = 0

    def _columns(self) -> tuple[Column, ...]:
        return self.input.columns


class Limit(Plan, frozen=True):
    """At most ``limit`` rows after ``offset``; the expressions use no column. ``ties`` is the order of WITH TIES."""

    limit: Expr | None
    offset: Expr | None
    input: Plan
    is_percent: bool = False
    ties: tuple[SortKey, ...] = ()

    def _columns(self) -> tuple[Column, ...]:
        return self.input.columns


class Distinct(Plan, frozen=True):
    """One row of each kind; with ``on``, the first row of each value of ``on`` in ``order``."""

    input: Plan
    on: tuple[Expr, ...] = ()
    order: tuple[SortKey, ...] = ()

    def _columns(self) -> tuple[Column, ...]:
        return self.input.columns


class Unnest(Plan, frozen=True):
    """Each input row once for every element of its lists, side by side; a shorter list gives NULLs.

    lists        pairs of output (an element) and list expression
    ordinality   output that counts from 1, or None
    is_outer     a row whose lists are all empty or NULL stays once, with NULLs
    """

    lists: tuple[tuple[Column, Expr], ...]
    input: Plan
    ordinality: Column | None = None
    is_outer: bool = False

    def _columns(self) -> tuple[Column, ...]:
        made = self.input.columns + tuple(column for column, _ in self.lists)
        return made if self.ordinality is None else (*made, self.ordinality)


class Sample(Plan, frozen=True):
    """Some rows: a percentage of them (each by chance) or a number (a reservoir)."""

    amount: float
    is_percent: bool
    seed: int | None
    input: Plan

    def _columns(self) -> tuple[Column, ...]:
        return self.input.columns


# --- several inputs --------------------------------------------------------------------------------------------------


class JoinKind(Enum):
    """What a join answers.

    SEMI and ANTI answer left rows with, without a partner. MARK answers left rows and a BOOLEAN column with the three
    values of ``= ANY``. SINGLE is LEFT that fails with 21000 where a left row has two partners.
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    MARK = "mark"
    SINGLE = "single"


class Join(Plan, frozen=True):
    """Pairs of rows for which every condition is true; no condition is a cross product.

    mark        the output of MARK, true where a pair matches; with ``mark_nulls`` NULL where none does and a comparison
                was NULL, else false (EXISTS)
    dependent   the right side uses columns of the left (LATERAL or correlated): gone after decorrelate
    """

    kind: JoinKind
    left: Plan
    right: Plan
    conditions: tuple[Expr, ...] = ()
    mark: Column | None = None
    mark_nulls: bool = False
    dependent: bool = False

    def _columns(self) -> tuple[Column, ...]:
        match self.kind:
            case JoinKind.SEMI | JoinKind.ANTI:
                return self.left.columns
            case JoinKind.MARK:
                assert self.mark is not None
                return (*self.left.columns, self.mark)
            case _:
                return self.left.columns + self.right.columns


class AsofJoin(Plan, frozen=True):
    """Each left row with the one right row of equal keys that is nearest by ``left_time op right_time``.

    op          one of >= > <= <
    kind        INNER, LEFT, RIGHT, FULL, SEMI or ANTI: which rows without a partner stay
    null_safe   for each key whether NULL equals NULL
    conditions  what a partner must pass besides
    """

    left: Plan
    right: Plan
    keys: tuple[tuple[Expr, Expr], ...]
    left_time: Expr
    op: str
    right_time: Expr
    kind: JoinKind
    null_safe: tuple[bool, ...] = ()
    conditions: tuple[Expr, ...] = ()

    def _columns(self) -> tuple[Column, ...]:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.left.columns
        return self.left.columns + self.right.columns


class SetKind(Enum):
    """Which set operation."""

    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


class SetOperation(Plan, frozen=True):
    """Rows of both sides put together by position, their types equal. Without ``all`` there are no duplicates."""

    kind: SetKind
    all: bool
    left: Plan
    right: Plan
    outputs: tuple[Column, ...]

    def _columns(self) -> tuple[Column, ...]:
        return self.outputs


class Materialize(Plan, frozen=True):
    """``definition`` computed once, for every CteScan of ``cte`` in ``input``."""

    cte: int
    name: str
    definition: Plan
    input: Plan

    def _columns(self) -> tuple[Column, ...]:
        return self.input.columns


class Keyed(Struct, frozen=True):
    """One row a key of a recursion: what its columns are made of.

    inputs   columns that stand for the anchor's and the step's, by position; those of ``keys`` are the key
    calls    for every other position the aggregate of all rows of a key: the last value, if the text names none
    """

    inputs: tuple[Column, ...]
    keys: tuple[int, ...]
    calls: tuple[tuple[int, AggregateCall], ...]


class Recursion(Plan, frozen=True):
    """WITH RECURSIVE: the anchor's rows, then the step over the rows of the round before until a round makes none.

    The step reads the round before by CteScan of ``cte``, and by CteScan of ``recurring`` all that was made so far. Without
    ``all`` a row already made is dropped. With ``keyed`` the answer is one row a key.
    """

    cte: int
    name: str
    all: bool
    anchor: Plan
    step: Plan
    outputs: tuple[Column, ...]
    recurring: int = 0
    keyed: Keyed | None = None

    def _columns(self) -> tuple[Column, ...]:
        return self.outputs


# --- walking ---------------------------------------------------------------------------------------------------------

FEW_ROWS: Final = 16  # of VALUES, which rules look into
P = TypeVar("P", bound=Plan)
OUTPUTS: Final = frozenset(("outputs", "mark", "ordinality", "grouping_id"))
PAIRS: Final = frozenset(("groups", "aggregates", "calls", "lists"))
_INPUTS: dict[type, tuple[str, ...]] = {}
_PARTS: dict[type, tuple[tuple[str, bound.Shape | None], ...]] = {}


def input_names(made: type) -> tuple[str, ...]:
    """The names of those fields of a node that are nodes."""
    found = _INPUTS.get(made)
    if found is None:
        found = _INPUTS[made] = tuple([name for name, text in bound.field_types(made).items() if text == "Plan"])
    return found


def walk(plan: Plan) -> Iterator[Plan]:
    """``plan`` and all below it, parents first; plans inside subquery expressions are not entered."""
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node
        stack += node.inputs[::-1]


def with_inputs(plan: P, change: Callable[[Plan], Plan]) -> P:
    """``plan`` with each node directly below changed."""
    changed: dict[str, object] = {}
    for name in input_names(type(plan)):
        before = getattr(plan, name)
        if (after := change(before)) is not before:
            changed[name] = after
    if changed:
        parts = expressions_of(plan)
        plan = replace(plan, **changed)
        force_setattr(plan, "parts", parts)
    return plan


def rewrite(plan: Plan, rule: Callable[[Plan], Plan]) -> Plan:
    """``plan`` with ``rule`` applied to every node, inputs first.

    A function inside that calls itself would hold the plan, and with it a snapshot, until Python looks for garbage.
    """
    return rule(with_inputs(plan, lambda child: rewrite(child, rule)))


def map_expressions(plan: P, change: Callable[[Expr], Expr]) -> P:
    """``plan`` with every expression of this one node changed; outputs are left alone.

    Rows of constants are what they are: nobody looks into the thousands that an INSERT brings.
    """
    if isinstance(plan, Values) and plan.is_constant:
        return plan
    changed: dict[str, object] = {}
    for name, shape in _expression_fields(type(plan)):
        before = getattr(plan, name)
        if not before:
            continue
        if shape is not None:
            after: object = bound.map_expressions(before, change)
        else:
            after = tuple([(column, bound.map_expressions(value, change)) for column, value in before])
            if all(new[1] is old[1] for new, old in zip(after, before, strict=True)):
                after = before
        if after is not before:
            changed[name] = after
    return replace(plan, **changed) if changed else plan


def _expression_fields(made: type[Plan]) -> tuple[tuple[str, bound.Shape | None], ...]:
    """The fields of a node that hold expressions, outputs left out; no shape is pairs of an output and an expression."""
    if (found := _PARTS.get(made)) is None:
        fields = [(name, shape) for name, shape in bound.expression_fields(made) if name not in OUTPUTS]
        found = _PARTS[made] = tuple([(name, None if name in PAIRS else shape) for name, shape in fields])
    return found


def expressions_of(plan: Plan) -> tuple[Expr, ...]:
    """The expressions of this one node, those in calls and sort keys too."""
    if plan.parts is not None:
        return plan.parts
    found: list[Expr] = []
    if not (type(plan) is Values and plan.is_constant):
        for name, shape in _expression_fields(type(plan)):
            value = getattr(plan, name)
            if shape is bound.MANY:
                found += value
            elif value:
                found += bound.expressions_in(value if shape is not None else tuple([part for _, part in value]))
    parts = tuple(found)
    force_setattr(plan, "parts", parts)
    return parts


def uses_and_makes(plan: Plan) -> tuple[frozenset[int], frozenset[int]]:
    """Ids of all columns that expressions of ``plan`` and below use, and of all that its nodes answer."""
    if plan.used_and_made is not None:
        return plan.used_and_made
    below = [uses_and_makes(child) for child in plan.inputs]
    used = bound.columns_of(expressions_of(plan)).union(*(one for one, _ in below))
    made = plan.ids.union(*(one for _, one in below))
    force_setattr(plan, "used_and_made", (used, made))
    return used, made
