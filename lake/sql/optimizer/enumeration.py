"""All pairs of connected sets of relations that a condition joins, smaller sets first.

A set is an int: bit n says that relation n is in it. For a chain a - b - c the pairs are (a, b), (b, c), (a, bc), (ab, c).
Source: Moerkotte and Neumann, VLDB 2006, algorithms EnumerateCsg and EnumerateCmp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

PAIRS_MAX: Final = 6_000
"""Pairs past which a greedy order is taken: about 50 ms of search. A star of ten relations has 2,304."""


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
    pairs: list[tuple[int, int]] = []
    for one in _connected_sets(neighbours):
        for two in _complements(one, neighbours):
            pairs.append((one, two))
            if len(pairs) > PAIRS_MAX:
                return None
    return sorted(pairs, key=lambda pair: (pair[0] | pair[1]).bit_count())


def _connected_sets(neighbours: Sequence[int]) -> Iterator[int]:
    for number in reversed(range(len(neighbours))):
        start = 1 << number
        yield start
        yield from _extend(start, (start << 1) - 1, neighbours)


def _complements(one: int, neighbours: Sequence[int]) -> Iterator[int]:
    """Connected sets beside ``one`` and joined to it, whose lowest relation comes after that of ``one``."""
    lowest = one & -one
    excluded = ((lowest << 1) - 1) | one
    around = _neighbourhood(one, neighbours) & ~excluded
    for number in reversed(list(members(around))):
        start = 1 << number
        yield start
        lower = ((start << 1) - 1) & around
        yield from _extend(start, excluded | lower, neighbours)


def _extend(chosen: int, excluded: int, neighbours: Sequence[int]) -> Iterator[int]:
    """Connected sets that hold ``chosen`` and none of ``excluded`` beyond it."""
    around = _neighbourhood(chosen, neighbours) & ~excluded
    if not around:
        return
    part = around & -around
    while part:
        yield chosen | part
        part = (part - around) & around
    part = around & -around
    while part:
        yield from _extend(chosen | part, excluded | around, neighbours)
        part = (part - around) & around


def _neighbourhood(chosen: int, neighbours: Sequence[int]) -> int:
    found = 0
    for number in members(chosen):
        found |= neighbours[number]
    return found & ~chosen
