"""Rows of one worker kept apart by the hash of their keys, in memory or, when memory is short, on disk.

    buffer = PartitionBuffer(scratch, account, keys=(0, 1))
    buffer.add(batch)                    whose first two columns are the keys
    buffer.seal()
    for batch in buffer.read(7): ...     the rows of partition 7
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.kernels.hashing import hash_columns
from lake.exec.kernels.partition import deal_rows
from lake.exec.memory import Account
from lake.exec.operators.batches import join_batches, own_bytes, take_rows
from lake.exec.spill import Scratch, SpillFile

PARTITION_BITS: Final = 5
PARTITIONS: Final = 1 << PARTITION_BITS
FLUSH_ROWS: Final = 1 << 18
"""Rows gathered before they are dealt: with fewer the pieces become too small to work on."""


class PartitionBuffer:
    """One worker's rows in PARTITIONS pieces; equal keys are in the same piece for every buffer."""

    def __init__(self, scratch: Callable[[], Scratch], account: Account, keys: Sequence[int]) -> None:
        self._scratch = scratch
        self._account = account
        self._keys = keys
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._kept: list[list[pa.RecordBatch]] = [[] for _ in range(PARTITIONS)]
        self._files: list[SpillFile] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes a batch in; writes everything to disk when the query holds too much."""
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._account.grow(own_bytes(batch))
        if self._account.must_spill:
            self.spill()
        elif self._waiting_rows >= FLUSH_ROWS:
            self._deal()

    def spill(self) -> None:
        """Writes all rows to disk."""
        self._deal()
        if self._files is None:
            scratch = self._scratch()
            self._files = [scratch.create("partition") for _ in range(PARTITIONS)]
        for number, batches in enumerate(self._kept):
            if batches:
                self._files[number].write(join_batches(batches))
                batches.clear()
        self._account.set(0)

    def read_joined(self, number: int, rows_max: int = FLUSH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows of a partition in few large batches of at least ``rows_max`` rows, except the last."""
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for batch in self.read(number):
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= rows_max:
                yield join_batches(waiting)
                waiting, rows = [], 0
        if waiting:
            yield join_batches(waiting)

    def seal(self) -> None:
        """Says that all rows have been added: partitions may be read, by several threads."""
        self._deal()

    def read(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        if self._files is not None:
            yield from self._files[number].read()
        yield from self._kept[number]

    def drop(self, number: int) -> None:
        """Forgets a partition's rows."""
        self._account.grow(-sum(map(own_bytes, self._kept[number])))
        self._kept[number] = []
        if self._files is not None:
            self._files[number].delete()

    def rows(self, number: int) -> int:
        """How many rows a partition has."""
        kept: int = sum(batch.num_rows for batch in self._kept[number])
        return kept + (0 if self._files is None else self._files[number].rows)

    def _deal(self) -> None:
        if not self._waiting:
            return
        batch = join_batches(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        order, starts = deal_rows(key_hashes(batch, self._keys), PARTITION_BITS)
        dealt = take_rows(batch, order)
        for number in np.flatnonzero(np.diff(starts)):
            first = int(starts[number])
            self._kept[number].append(dealt.slice(first, int(starts[number + 1]) - first))


def key_hashes(batch: pa.RecordBatch, keys: Sequence[int]) -> Any:
    """uint64[rows]: the hash of the key columns."""
    return hash_columns([batch.column(key) for key in keys])
