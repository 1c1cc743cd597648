"""Rows dealt to partitions by the highest bits of their hash.

    deal_rows([hash, ..], 2) -> the rows of partition 0, then those of 1, 2 and 3, each in their order, and where each begins
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.views import Ints


@kernel
def count_partitions(hashes: Any, shift: Any, starts: Any) -> None:
    """Counts rows: hashes uint64[rows] in, starts int64[partitions + 1] in/out, partition p is counted at p + 1."""
    for row in range(hashes.size):
        starts[np.int64(hashes[row] >> shift) + 1] += 1


@kernel
def list_partitions(hashes: Any, shift: Any, places: Any, rows: Any) -> None:
    """Lists rows by partition: places int64[partitions] in/out, where each goes on; rows int64[rows] out."""
    for row in range(hashes.size):
        partition = np.int64(hashes[row] >> shift)
        rows[places[partition]] = row
        places[partition] += 1


def deal_rows(hashes: Ints, bits: int) -> tuple[Ints, Ints]:
    """int64[rows], the rows by partition, and int64[2**bits + 1], where each partition begins among them."""
    shift = np.uint64(64 - bits)
    starts = np.zeros((1 << bits) + 1, np.int64)
    count_partitions(hashes, shift, starts)
    np.cumsum(starts, out=starts)
    rows = np.empty(len(hashes), np.int64)
    list_partitions(hashes, shift, starts[:-1].copy(), rows)
    return rows, starts


@rehearsal
def _rehearse() -> None:
    deal_rows(np.zeros(2, np.uint64), 2)
