"""approx_distinct: exact counts of few values, and sketches of bounded size for groups of many.

Source: Flajolet et al., "HyperLogLog", AofA 2007; Heule et al., "HyperLogLog in Practice", EDBT 2013 (64-bit hashes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.functions.aggregates import Constants
from lake.exec.kernels import views
from lake.exec.kernels.hashing import hash_columns
from lake.sql.registry import Accumulator, CallInfo, aggregate

GROUP: Final = "aggregates"
REGISTER_BITS: Final = 12  # a standard error of 1.6 %
REGISTERS: Final = 1 << REGISTER_BITS
REST_BITS: Final = 64 - REGISTER_BITS
SKETCH_FROM: Final = 1 << 13
"""Different hashes of a group from which on a sketch stands for them."""
WAITING_MAX: Final = 1 << 18
ALPHA: Final = 0.7213 / (1 + 1.079 / REGISTERS)


@aggregate("approx_distinct(value ANY) -> BIGINT", group=GROUP, of_nothing=0, duplicates_matter=False,
           aliases=("approx_count_distinct", "ndv"))  # fmt: skip
def approx_distinct(call: CallInfo, constants: Constants) -> Accumulator:
    """About how many different values: exact up to 8,192 of a group, and within about 1.6 % above.

    >>> approx_distinct(x) FROM (VALUES (1), (2), (1), (NULL)) AS t(x)
    2
    """
    return DistinctHashes()


class DistinctHashes:
    """The different hashes of each group, or its sketch.

    pairs      uint64[n, 2]: group and hash, of groups with few        rows  group: row of its sketch
    registers  uint8[sketches, REGISTERS]: the longest run of zeros of the hashes that fall to a register, and one
    """

    def __init__(self) -> None:
        self._pairs: Any = np.empty((0, 2), np.uint64)
        self._pending: list[Any] = []
        self._waiting = 0
        self._rows: dict[int, int] = {}
        self._registers: Any = np.zeros((0, REGISTERS), np.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes of the hashes and sketches kept."""
        return int(self._pairs.nbytes + self._registers.nbytes) + 16 * self._waiting

    def update(self, groups: Any, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Takes in a batch."""
        if len(groups) == 0:
            return
        valid = views.valid_of(arguments[0])
        pairs = np.stack((groups.astype(np.uint64), hash_columns([arguments[0]])), axis=1)
        self._keep(pairs if valid is None else pairs[valid == 1])

    def merge(self, other: DistinctHashes, mapping: Any, group_count: int) -> None:
        """Takes in another state."""
        other._weed()
        for group, row in other._rows.items():
            mine = self._row(int(mapping[group]))
            np.maximum(self._registers[mine], other._registers[row], out=self._registers[mine])
        pairs = other._pairs.copy()
        pairs[:, 0] = mapping[pairs[:, 0].astype(np.int64)]
        self._keep(pairs)

    def finish(self, group_count: int) -> pa.Array:
        """BIGINT."""
        self._weed()
        counts = np.bincount(self._pairs[:, 0].astype(np.int64), minlength=group_count)
        for group, row in self._rows.items():
            counts[group] = estimate(self._registers[row])
        return views.to_array(counts.astype(np.int64), pa.int64())

    def _keep(self, pairs: Any) -> None:
        self._pending.append(pairs)
        self._waiting += len(pairs)
        if self._waiting > max(WAITING_MAX, 2 * len(self._pairs)):
            self._weed()

    def _row(self, group: int) -> int:
        """The row of a group's sketch, made where there is none."""
        row = self._rows.setdefault(group, len(self._rows))
        if row >= len(self._registers):
            more = np.zeros((max(4, len(self._registers)), REGISTERS), np.uint8)
            self._registers = np.concatenate((self._registers, more))
        return row

    def _weed(self) -> None:
        """Drops hashes that are there twice, and turns groups of many into sketches."""
        pairs = np.concatenate((self._pairs, *self._pending))
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        fresh = np.ones(len(pairs), np.bool_)
        fresh[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
        pairs = pairs[fresh]
        self._pending, self._waiting = [], 0
        groups = pairs[:, 0].astype(np.int64)
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        sizes = np.diff(np.append(starts, len(groups)))
        kept = np.ones(len(pairs), np.bool_)
        known = np.array(list(self._rows), np.int64)
        large = (sizes >= SKETCH_FROM) | np.isin(groups[starts], known)
        for start, size in zip(starts[large].tolist(), sizes[large].tolist()):
            self._sketch(self._row(int(groups[start])), pairs[start : start + size, 1])
            kept[start : start + size] = False
        self._pairs = pairs[kept]

    def _sketch(self, row: int, hashes: Any) -> None:
        place = (hashes >> np.uint64(REST_BITS)).astype(np.int64)
        rest = hashes & np.uint64((1 << REST_BITS) - 1)
        # A number below 2**53 is exact as a float, whose exponent is how many bits it has.
        runs = REST_BITS + 1 - np.frexp(rest.astype(np.float64))[1]
        np.maximum.at(self._registers[row], place, runs.astype(np.uint8))


def estimate(registers: Any) -> int:
    """About how many different hashes the registers have seen."""
    raw = ALPHA * REGISTERS * REGISTERS / float(np.exp2(-registers.astype(np.float64)).sum())
    empty = int(np.count_nonzero(registers == 0))
    if raw <= 2.5 * REGISTERS and empty:
        raw = REGISTERS * np.log(REGISTERS / empty)
    return round(raw)
