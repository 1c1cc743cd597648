"""All pairs of connected sets of relations that a condition joins, smaller sets first.

A set is an int: bit n says that relation n is in it. For a chain a - b - c the pairs are (a, b), (b, c), (a, bc), (ab, c).
Source: Moerkotte and Neumann, VLDB 2006, algorithms EnumerateCsg and EnumerateCmp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

PAIRS_MAX: Final = 6_000
"""Pairs past which a greedy order is taken: about 20 ms of search. A star of ten relations has 2,304."""

SETS_MAX: Final = PAIRS_MAX + 64
"""Connected sets past which there are more pairs than that: every set but a relation alone is the union of a pair."""


def members(chosen: int) -> Iterator[int]:
    """The numbers in ``chosen``, lowest first."""
    while chosen:
        lowest = chosen & -chosen
        yield lowest.bit_length() - 1
        chosen ^= lowest


def connected_pairs(neighbours: Sequence[int]) -> list[tuple[int, int]] | None:
    """The pairs of a graph, each once, so that both sets of a pair were completed by pairs before it.

    neighbours  for each relation the set of those it is joined to
    None        where there are more than PAIRS_MAX
    """
    around = _Neighbourhoods(neighbours)
    sets = _connected_sets(len(neighbours), around)
    if len(sets) > SETS_MAX:
        return None
    pairs: list[tuple[int, int]] = []
    for one in sets:
        pairs += [(one, two) for two in _complements(one, around)]
        if len(pairs) > PAIRS_MAX:
            return None
    return sorted(pairs, key=lambda pair: (pair[0] | pair[1]).bit_count())


class _Neighbourhoods(dict[int, int]):
    """For each set asked for, the relations outside that are joined to one inside."""

    def __init__(self, neighbours: Sequence[int]) -> None:
        super().__init__({1 << number: found for number, found in enumerate(neighbours)})

    def __missing__(self, chosen: int) -> int:
        lowest = chosen & -chosen
        rest = chosen ^ lowest
        found = self[chosen] = (self[rest] | self[lowest]) & ~chosen
        return found


def _connected_sets(count: int, around: _Neighbourhoods) -> list[int]:
    """All connected sets; some SETS_MAX of them where there are more."""
    found: list[int] = []
    for number in reversed(range(count)):
        start = 1 << number
        found.append(start)
        _extend(start, (start << 1) - 1, around, found)
    return found


def _complements(one: int, around: _Neighbourhoods) -> list[int]:
    """Connected sets beside ``one`` and joined to it, whose lowest relation comes after that of ``one``."""
    lowest = one & -one
    excluded = ((lowest << 1) - 1) | one
    beside = left = around[one] & ~excluded
    found: list[int] = []
    while left:
        start = 1 << left.bit_length() - 1
        left ^= start
        found.append(start)
        _extend(start, excluded | (((start << 1) - 1) & beside), around, found)
    return found


def _extend(chosen: int, excluded: int, around: _Neighbourhoods, found: list[int]) -> None:
    """Adds to ``found`` the connected sets that hold ``chosen`` and none of ``excluded`` beyond it."""
    beside = around[chosen] & ~excluded
    if not beside:
        return
    first = len(found)
    part = beside & -beside
    while part and len(found) <= SETS_MAX:
        found.append(chosen | part)
        part = (part - beside) & beside
    excluded |= beside
    for place in range(first, len(found)):
        one = found[place]
        if around[one] & ~excluded and len(found) <= SETS_MAX:
            _extend(one, excluded, around, found)
