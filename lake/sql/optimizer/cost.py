"""What operators cost, in the time one row takes to probe a hash table that fits the cache.

The figures are ratios, and estimates: a row put into a hash table costs about twice as much as one that probes it, and
every row a join answers is copied once for each side. ``tests/plans`` holds the join orders of TPC-H that they lead to.
"""

from __future__ import annotations

import math
from typing import Final

BUILD: Final = 2.0
PROBE: Final = 1.0
OUTPUT: Final = 0.8
LOOP: Final = 0.05
"""One pair tested without a hash table."""

CACHE_ROWS: Final = 200_000.0
"""Build rows past which a probe misses the cache."""

MISS: Final = 0.35
"""What a probe costs more for each doubling of the build side past the cache."""


def hash_join(probe_rows: float, build_rows: float, output_rows: float) -> float:
    """Building the right side, probing with the left, writing the pairs."""
    probe = PROBE + MISS * math.log2(build_rows / CACHE_ROWS) if build_rows > CACHE_ROWS else PROBE
    return BUILD * build_rows + probe * probe_rows + OUTPUT * output_rows


def loop_join(left_rows: float, right_rows: float, output_rows: float) -> float:
    """Every pair tested."""
    return LOOP * left_rows * right_rows + BUILD * right_rows + PROBE * left_rows + OUTPUT * output_rows


def join(left_rows: float, right_rows: float, output_rows: float, *, has_keys: bool) -> float:
    """A join with the right side as build side."""
    if not has_keys:
        return loop_join(left_rows, right_rows, output_rows)
    return hash_join(left_rows, right_rows, output_rows)
