"""Kernels: Numba functions over contiguous arrays, and a thin layer that takes Arrow arrays to them.

Reading order: ``views`` (Arrow to numpy and back), ``hashing``, ``tables``, ``text_table`` and ``groups`` (numbers of
keys), ``join``, ``partition``, ``sorting``, ``order``, ``search``, ``decimals``, ``aggregates``, ``extremes``, ``moments``,
``exact_sum``, ``frames``, ``strings``, ``similarity``, ``ranges``, ``numerals``, ``tuples``,
``fields``, ``layout``, ``taking``; ``warming`` compiles them all.

    @kernel
    def add_ones(values, out):
        for row in range(values.size):
            out[row] = values[row] + 1

``@kernel`` holds the only compile options. A kernel is compiled when it is first called with new types, or read from
the cache folder; until then numba is not even imported, which takes longer than a small query.

Validity is an argument: a byte for each row, 1 where there is a value, and an empty array where there are no NULLs, so
that one compiled kernel serves both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from lake.compiled import KERNELS, REHEARSALS, Kernel, allocating_kernel, kernel, rehearsal

__all__ = ["KERNELS", "REHEARSALS", "Kernel", "allocating_kernel", "interpreted", "kernel", "rehearsal"]

MODULES: Final = (
    "tables", "text_table", "groups", "partition", "join", "sorting", "order", "search", "decimals", "aggregates",
    "extremes", "moments", "exact_sum", "frames", "strings", "similarity", "gammas", "json", "ranges", "tuples",
    "numerals", "fields", "layout", "taking",
)
BELOW: Final = ("lake.storage.tables.pages", "lake.sql.plain_rows")
"""Modules of the layers below that have kernels."""


@contextmanager
def interpreted() -> Iterator[None]:
    """Runs all kernels as plain Python within the block: the oracle of their tests."""
    before = {name: made._jitted for name, made in KERNELS.items()}
    try:
        for made in KERNELS.values():
            made._jitted = made.py_func
        with np.errstate(over="ignore"):
            yield
    finally:
        for name, made in KERNELS.items():
            made._jitted = before[name]
