"""The cheapest tree of joins over relations: every connected order up to a size, a greedy one beyond.

    relations  lineitem, orders, customer        Join: inner
    equal      l_orderkey = o_orderkey           ├─ lineitem
               o_custkey = c_custkey             └─ Join: inner
                                                    ├─ orders
                                                    └─ customer

Source: Moerkotte and Neumann, "Analysis of Two Existing and One New Dynamic Programming Algorithm for the Generation of
Optimal Bushy Join Trees without Cross Products", VLDB 2006 (DPccp).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from lake.sql import bound
from lake.sql.bound import Column, Compare, Expr
from lake.sql.optimizer import cost
from lake.sql.optimizer.enumeration import connected_pairs, members
from lake.sql.optimizer.estimates import Estimate
from lake.sql.optimizer.planning import Planning
from lake.sql.plan import Filter, Join, JoinKind, Plan

SEARCHED_ALWAYS: Final = 6
"""Relations of which every order is tried, whatever they are."""

LOOKUP_CHANGES: Final = 0.05
"""The share of rows that a relation which is only looked up may add or take: NULLs, and errors of estimates."""


class Predicate(Struct, frozen=True):
    """A condition of the region and the relations it names, as bits."""

    expr: Expr
    names: int


class Attachment(Struct, frozen=True):
    """The join that attaches a relation: allowed on any left side that holds the relations of ``needs``."""

    join: Join
    needs: int
    factor: float


class Equality(Struct, frozen=True):
    """Columns of several relations that are all equal; ``columns`` holds one for each relation, ``names`` those as bits."""

    columns: dict[int, Column]
    names: int


class Region(Struct):
    """Relations, conditions and attachments taken from a tree of joins.

    relations     plans, by number; a set of them is an int of bits
    attachments   by the number of the relation attached
    padded        estimates of relations attached by LEFT, with NULLs for rows without a partner
    inner         rows of each relation that is not attached, with its bit
    distincts     distinct values of the columns of each equality, fewest first, each with its relation's bit
    fractions     what relations together have fewer rows by, for their bits: predicates, then corrections
    """

    planning: Planning
    relations: list[Plan] = field(default_factory=list)
    estimates: list[Estimate] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)
    attachments: dict[int, Attachment] = field(default_factory=dict)
    padded: dict[int, Estimate] = field(default_factory=dict)
    predicates: list[Predicate] = field(default_factory=list)
    equalities: list[Equality] = field(default_factory=list)
    owner: dict[int, int] = field(default_factory=dict)
    known: dict[int, float] = field(default_factory=dict)
    inner: list[tuple[int, float]] = field(default_factory=list)
    distincts: list[tuple[int, list[tuple[float, int]]]] = field(default_factory=list)
    fractions: list[tuple[int, float]] = field(default_factory=list)

    def bits_of(self, expr: Expr | tuple[Expr, ...]) -> int:
        """The relations whose columns ``expr`` uses."""
        found = 0
        for id in bound.columns_of(expr):
            if id in self.owner:
                found |= 1 << self.owner[id]
        return found

    def rows(self, chosen: int) -> float:
        """Rows of the relations of ``chosen`` joined, in whatever order."""
        found = self.known.get(chosen)
        if found is None:
            found = self.known[chosen] = self._rows(chosen)
        return found

    def _rows(self, chosen: int) -> float:
        rows = 1.0
        inner = 0
        for bit, count in self.inner:
            if chosen & bit:
                rows *= count
                inner |= bit
        for names, counts in self.distincts:
            # Of the columns that are there, all but the one with the fewest values divide the rows.
            there = names & inner
            is_first = True
            for count, bit in counts if there & (there - 1) else ():
                if there & bit:
                    if not is_first:
                        rows /= count
                    is_first = False
        for names, fraction in self.fractions:
            if names & chosen == names:
                rows *= fraction
        if chosen != inner:
            for number in members(chosen & ~inner):
                rows *= self.attachments[number].factor
        return rows


# --- the search ---------------------------------------------------------------------------------------------------------


class _Entry(Struct):
    """The cheapest way found to join a set: from two smaller sets, the right one built; a relation has none.

    rows      of the set
    built     rows a join builds of it: an attached relation stands alone, as it is
    classes   the equalities that name a relation of the set, as bits
    """

    cost: float
    left: int
    right: int
    rows: float
    built: float
    classes: int


class Search:
    """The cheapest tree over a region's relations."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.count = len(region.relations)
        self.table: dict[int, _Entry] = {}
        self.neighbours = self._graph()
        self.has_predicates = any(_is_equality(item.expr) for item in region.predicates)

    def best(self) -> Plan:
        """The plan of all relations."""
        for number in range(self.count):
            self._enter_relation(number)
        whole = (1 << self.count) - 1
        pairs = connected_pairs(self._without_lookups(whole)) if whole else []
        if pairs is not None:
            for one, two in pairs:
                self._consider(one, two)
        if whole not in self.table:
            self._join_greedily(whole)
        return self._build(whole)

    def _enter_relation(self, number: int) -> None:
        chosen = 1 << number
        classes = sum(1 << index for index, equal in enumerate(self.region.equalities) if equal.names & chosen)
        built = self.region.estimates[number].rows
        self.table[chosen] = _Entry(0.0, 0, 0, self.region.rows(chosen), built, classes)

    def _graph(self) -> list[int]:
        """For each relation the relations some condition joins it to."""
        found = [0] * self.count
        region = self.region

        def connect(chosen: int) -> None:
            for number in members(chosen):
                found[number] |= chosen & ~(1 << number)

        for equal in region.equalities:
            connect(equal.names)
        for predicate in region.predicates:
            connect(predicate.names)
        for number, attachment in region.attachments.items():
            for other in members(attachment.needs):
                connect(1 << number | 1 << other)
        return found

    def _without_lookups(self, whole: int) -> list[int]:
        """The graph without relations that are looked up for each row of the one they are joined to, and keep its rows.

        A tree is hardly ever cheaper for having such a relation early, and each of them doubles the trees there are: they
        are joined greedily once the others are. One whose other neighbours are all such relations may be one itself.
        """
        left = whole
        found = self.neighbours.copy()
        is_done = False
        while not is_done and left.bit_count() > SEARCHED_ALWAYS:
            is_done = True
            for number in members(left):
                others = found[number]
                if others and not others & (others - 1) and self._is_lookup(1 << number, others):
                    found[number] = 0
                    found[others.bit_length() - 1] &= ~(1 << number)
                    left ^= 1 << number
                    is_done = False
                    if left.bit_count() <= SEARCHED_ALWAYS:
                        break
        return found

    def _is_lookup(self, one: int, other: int) -> bool:
        """Whether rows of ``other`` are as many with ``one`` joined to them as without."""
        alone = self.region.rows(other)
        return abs(self.region.rows(one | other) - alone) <= alone * LOOKUP_CHANGES

    def _consider(self, one: int, two: int) -> None:
        """Enters the join of two sets, each as build side, where it may be made and is cheaper than what is known."""
        first, second = self.table.get(one), self.table.get(two)
        if first is None or second is None:
            return
        both = one | two
        best = self.table.get(both)
        if best is not None and first.cost + second.cost >= best.cost:
            return
        has_keys = bool(first.classes & second.classes) or (self.has_predicates and self._has_keys(one, two))
        for left, right in ((one, two), (two, one)):
            found = self._cost(left, right, has_keys)
            if found is None:
                continue
            if best is None:
                rows = self.region.rows(both)
                best = self.table[both] = _Entry(found, left, right, rows, rows, first.classes | second.classes)
            elif found < best.cost:
                best.cost, best.left, best.right = found, left, right

    def _has_keys(self, one: int, two: int) -> bool:
        """Whether a predicate that is an equality joins two sets, as a condition of an inner join."""
        return any(map(_is_equality, self._between(one, two)))

    def _cost(self, left: int, right: int, has_keys: bool) -> float | None:
        """What joining ``left`` with ``right`` as build side costs with all below; None where it may not be made."""
        region = self.region
        if region.attachments:
            attached = self._attached(left, right)
            if attached is False:
                return None
            if isinstance(attached, Attachment):
                has_keys = any(map(_is_equality, attached.join.conditions))
        probing, building = self.table[left], self.table[right]
        below = probing.cost + building.cost
        return below + cost.join(probing.rows, building.built, region.rows(left | right), has_keys=has_keys)

    def _attached(self, left: int, right: int) -> Attachment | bool:
        """The attachment that joins ``right`` to ``left``; True for an inner join, False where neither may be made."""
        region = self.region
        number = right.bit_length() - 1
        if right == 1 << number and number in region.attachments:
            attachment = region.attachments[number]
            is_lone = left.bit_count() == 1 and left.bit_length() - 1 in region.attachments
            return attachment if attachment.needs & ~left == 0 and not is_lone else False
        other = left.bit_length() - 1
        return not (left == 1 << other and other in region.attachments)

    def _keys(self, left: int, right: int) -> list[Expr]:
        """An equality for each class with columns on both sides."""
        found: list[Expr] = []
        for equal in self.region.equalities:
            one = next((column for number, column in equal.columns.items() if left >> number & 1), None)
            two = next((column for number, column in equal.columns.items() if right >> number & 1), None)
            if one is not None and two is not None:
                found.append(Compare.of("=", one, two))
        return found

    def _between(self, left: int, right: int) -> list[Expr]:
        """Predicates that can be tested once both sides are together, and not before."""
        both = left | right
        return [
            item.expr
            for item in self.region.predicates
            if item.names & ~both == 0 and item.names & ~left and item.names & ~right
        ]

    def _join_greedily(self, whole: int) -> None:
        """Joins what is left two at a time: those that give the fewest rows first, unconnected ones last."""
        parts = self._largest_parts(whole)
        while len(parts) > 1:
            best: tuple[bool, float, int, int] | None = None
            for one, two in _pairs(parts):
                keys = bool(self.table[one].classes & self.table[two].classes) or self._has_keys(one, two)
                costs = [item for item in (self._cost(one, two, keys), self._cost(two, one, keys)) if item is not None]
                if not costs:
                    continue
                is_cross = not self._is_connected(one, two)
                candidate = (is_cross, self.region.rows(one | two) + (min(costs) * 1e-9), one, two)
                if best is None or candidate < best:
                    best = candidate
            assert best is not None, "some pair of parts can always be joined"
            _, _, one, two = best
            self._consider(one, two)
            parts = [part for part in parts if part not in (one, two)] + [one | two]

    def _largest_parts(self, whole: int) -> list[int]:
        """Disjoint sets that are joined already, largest first, and what is left over as single relations."""
        parts: list[int] = []
        taken = 0
        for chosen in sorted(self.table, key=lambda item: -item.bit_count()):
            if not chosen & taken and chosen & ~whole == 0:
                parts.append(chosen)
                taken |= chosen
        return parts

    def _is_connected(self, one: int, two: int) -> bool:
        return any(self.neighbours[number] & two for number in members(one))

    # --- the plan ----------------------------------------------------------------------------------------------------

    def _build(self, chosen: int) -> Plan:
        entry = self.table[chosen]
        if not entry.left:
            number = chosen.bit_length() - 1
            plan = self.region.relations[number]
            return plan if number in self.region.attachments else self._with_own(chosen, plan)
        left, right = self._build(entry.left), self._build(entry.right)
        attached = self._attached(entry.left, entry.right)
        between = tuple(self._between(entry.left, entry.right)) + self._own(entry.right, attached)
        if isinstance(attached, Attachment):
            joined: Plan = replace(attached.join, left=left, right=right)
            return Filter(between, joined) if between else joined
        keys = self._keys(entry.left, entry.right)
        return Join(JoinKind.INNER, left, right, (*keys, *between))

    def _own(self, right: int, attached: Attachment | bool) -> tuple[Expr, ...]:
        """Predicates on an attached relation alone: they are tested after it is attached."""
        if not isinstance(attached, Attachment):
            return ()
        return tuple(item.expr for item in self.region.predicates if item.names == right)

    def _with_own(self, chosen: int, plan: Plan) -> Plan:
        own = tuple(item.expr for item in self.region.predicates if item.names == chosen)
        return Filter(own, plan) if own else plan


def _is_equality(expr: Expr) -> bool:
    return isinstance(expr, Compare) and expr.op in ("=", "is not distinct")


def _pairs(parts: list[int]) -> Iterator[tuple[int, int]]:
    for index, one in enumerate(parts):
        for two in parts[index + 1 :]:
            yield one, two
