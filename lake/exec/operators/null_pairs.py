"""For NOT IN of several keys or with further conditions: rows whose condition is true for no pair and NULL for some.

A pair's condition can be NULL only where one of its keys is NULL, or where all keys are equal and a further condition is
NULL. So a probe row with a NULL among its keys is tested against every build row, any other against the build rows with a
NULL and those with its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lake.exec.context import Context
from lake.exec.evaluate import Program
from lake.exec.kernels.views import to_array, valid_of
from lake.exec.operators.base import column_name
from lake.exec.operators.batches import make_batch
from lake.exec.operators.pairing import BuildRows, Pairs, cross_pairs
from lake.sql.bound import Column, Expr, columns_of, conjunction, walk


class NullPairs:
    """The conditions of a MARK join over all columns that they use."""

    def __init__(
        self, keys: Sequence[pa.Array], conditions: tuple[Expr, ...], null_safe: Sequence[bool], context: Context
    ) -> None:
        condition = conjunction(conditions)
        self._null_safe = null_safe
        self._program = Program([condition], context)
        used = columns_of(condition)  # a lambda's own columns are none of the rows'
        self._names = sorted(
            {column_name(node) for node in walk(condition) if isinstance(node, Column) and node.id in used}
        )
        self._dead = np.flatnonzero(_has_null(keys, null_safe)) if keys else np.empty(0, np.int64)

    def unknown(
        self, batch: pa.RecordBatch, build: BuildRows, keys: Sequence[pa.Array], matched: Any, known: Iterable[Pairs]
    ) -> Any:
        """bool[rows]: unmatched rows for which the condition of some pair is NULL; ``known`` pairs have equal keys."""
        found = np.zeros(batch.num_rows, np.bool_)
        has_null = _has_null(keys, self._null_safe) if keys else np.zeros(batch.num_rows, np.bool_)
        lone = np.flatnonzero(~matched & ~has_null)
        null = np.flatnonzero(~matched & has_null)
        for pairs in (known, cross_pairs(lone, self._dead), cross_pairs(null, np.arange(build.rows))):
            for probe_rows, build_rows in pairs:
                self._test(batch, build, probe_rows, build_rows, found)
        return found & ~matched

    def _test(self, batch: pa.RecordBatch, build: BuildRows, probe_rows: Any, build_rows: Any, found: Any) -> None:
        indices = to_array(probe_rows, pa.int64())
        arrays = [
            build.take(name, build_rows, may_miss=False) if name in build.columns else batch.column(name).take(indices)
            for name in self._names
        ]
        valid = valid_of(self._program.run(make_batch(self._names, arrays, len(probe_rows)))[0])
        if valid is not None:
            found[probe_rows[valid == 0]] = True


def _has_null(keys: Sequence[pa.Array], null_safe: Sequence[bool]) -> Any:
    """bool[rows]: rows with a NULL in a key that NULL does not equal."""
    dead = np.zeros(len(keys[0]), np.bool_)
    for key, safe in zip(keys, null_safe, strict=True):
        valid = None if safe else valid_of(key)
        if valid is not None:
            dead |= valid == 0
    return dead
