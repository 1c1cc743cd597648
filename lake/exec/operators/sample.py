"""TABLESAMPLE: a percentage of rows, each by chance, or a number of them.

With REPEATABLE (a seed) the same rows are chosen from the same data: chance is drawn in the order of rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lake.exec.context import Context
from lake.exec.operators.base import Breaker, Source, Stream
from lake.exec.operators.batches import concat_batches, filter_rows, slices, take_rows
from lake.exec.pipeline import Held
from lake.sql.bound import Column


@dataclass(eq=False)
class SamplePercent(Stream):
    """Each row with a chance of ``percent`` in a hundred."""

    columns: tuple[Column, ...]
    percent: float
    seed: int | None
    _random: Any = field(init=False, repr=False)
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False)

    def describe(self) -> str:
        return f"{self.percent:g} percent"

    def open(self, context: Context) -> None:
        self._random = np.random.default_rng(self.seed)

    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        with self._lock:
            draws = self._random.random(batch.num_rows)
        return (filter_rows(batch, draws * 100.0 < self.percent),)


@dataclass(eq=False)
class Reservoir(Breaker):
    """``count`` rows, every choice of them equally likely: those with the smallest of random numbers."""

    columns: tuple[Column, ...]
    count: int
    seed: int | None
    is_sequential = True
    _random: Any = field(init=False, repr=False)

    def describe(self) -> str:
        return f"{self.count} rows"

    def start(self, context: Context) -> list[tuple[pa.RecordBatch, Any]]:
        self._random = np.random.default_rng(self.seed)
        return []

    def absorb(self, state: list[tuple[pa.RecordBatch, Any]], batch: pa.RecordBatch) -> None:
        state.append((batch, self._random.random(batch.num_rows)))
        if sum(len(draws) for _, draws in state) > 2 * self.count + 1_000_000:
            state[:] = [self._smallest(state)]

    def _smallest(self, state: list[tuple[pa.RecordBatch, Any]]) -> tuple[pa.RecordBatch, Any]:
        rows = concat_batches([batch for batch, _ in state], self.columns)
        draws = np.concatenate([draws for _, draws in state])
        chosen = np.sort(np.argsort(draws, kind="stable")[: self.count])
        return take_rows(rows, chosen), draws[chosen]

    def merge(self, context: Context, states: Sequence[list[tuple[pa.RecordBatch, Any]]]) -> Source:
        if not states[0]:
            return Held(self.columns, [])
        return Held(self.columns, list(slices(self._smallest(states[0])[0])))
