"""Binary searches of many rows at once, each within a range of its own of sorted values."""

from __future__ import annotations

from typing import Any

import numpy as np

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.views import Ints


@kernel
def search_ranges(values: Any, targets: Any, lows: Any, highs: Any, after: Any, found: Any) -> None:
    """For each row the first position in ``[low, high)`` whose value is >= its target, or > it with ``after``; else high.

    values  int64/float64[any]  in  ascending within every range    targets  same dtype[rows]  in
    lows, highs  int64[rows]  in    after  bool  in                 found  int64[rows]  out
    """
    for row in range(targets.size):
        low, high, target = lows[row], highs[row], targets[row]
        while low < high:
            middle = (low + high) >> 1
            if values[middle] < target or (after and values[middle] == target):
                low = middle + 1
            else:
                high = middle
        found[row] = low


def search(values: Ints, targets: Ints, lows: Ints, highs: Ints, *, after: bool) -> Ints:
    """int64[rows]: ``search_ranges``; values and targets of different types are compared as doubles."""
    if values.dtype != targets.dtype:
        values, targets = values.astype(np.float64), targets.astype(np.float64)
    found = np.empty(len(targets), np.int64)
    search_ranges(values, np.ascontiguousarray(targets), lows, highs, after, found)
    return found


@rehearsal
def _rehearse() -> None:
    row = np.zeros(1, np.int64)
    for values in (row, np.zeros(1)):
        search(values, values, row, row, after=True)
