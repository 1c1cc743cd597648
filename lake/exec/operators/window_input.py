"""What a window function sees: rows sorted by partition and order, their partitions, peers and frames.

    SELECT sum(x) OVER (PARTITION BY g ORDER BY t)      rows sorted by g, t     partition_start   peer_start
                                                        g=1 t=1                       0               0
                                                        g=1 t=2                       0               1
                                                        g=1 t=2                       0               1
                                                        g=2 t=1                       3               3
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from lake.exec.kernels.order import boundaries
from lake.exec.operators.frames import frame_bounds
from lake.sql.ast.expr import Exclusion
from lake.sql.bound import SortKey
from lake.sql.catalog import Settings
from lake.types import Type

Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_OF_ROWS = (
    "order_values", "peers", "row", "partition_start", "partition_end", "peer_start", "peer_end", "peer_number"
)  # fmt: skip
"""What of a WindowInput depends on its rows alone."""


@dataclass(frozen=True)
class EvaluatedBound:
    """One end of a frame. ``offset`` is the constant of PRECEDING and FOLLOWING, in the physical form of its type."""

    kind: Any
    offset: object = None
    offset_type: Type | None = None


@dataclass(frozen=True)
class EvaluatedFrame:
    """A frame whose offsets are values."""

    unit: Any
    start: EvaluatedBound
    end: EvaluatedBound
    exclusion: Exclusion = Exclusion.NO_OTHERS


@dataclass(frozen=True)
class WindowInput:
    """What a window function sees: whole partitions, one after the other, each sorted by the window's order.

    Arguments of ``registry.Window.run(input, *arguments)`` are arrays of ``rows`` values in this order, constants too.

    rows          how many rows
    partitions    int64[partitions + 1]: partition p is the rows ``partitions[p]:partitions[p + 1]``
    order         the window's sort keys, and ``fetch_order`` what fetches their arrays (sorted)
    constants     for each argument its value in physical form where it is a literal, else None
    ignore_nulls  IGNORE NULLS was said
    returns       SQL type of the answer
    before        rows of the only partition that came before these, where all calls do no more than count rows

    All row arrays below are int64[rows]; ends are exclusive.
    """

    rows: int
    partitions: Ints
    order: tuple[SortKey, ...]
    fetch_order: Callable[[], tuple[pa.Array, ...]]
    frame: EvaluatedFrame
    returns: Type
    constants: tuple[object, ...] = ()
    ignore_nulls: bool = False
    settings: Settings | None = None
    before: int = 0

    def variant(self, **changes: Any) -> WindowInput:
        """The same rows for another call; what was found out about them is kept where it still holds."""
        made = replace(self, **changes)
        kept = set(_OF_ROWS)
        if made.frame == self.frame:
            kept |= {"frame_range", "frame_pieces"}
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name in kept})
        return made

    @cached_property
    def order_values(self) -> tuple[pa.Array, ...]:
        """The window's sort keys."""
        return self.fetch_order()

    @cached_property
    def peers(self) -> Ints:
        """Rows equal in the window's order, in the form of ``partitions``; without ORDER BY a partition's rows."""
        changes = boundaries(self.order_values, self.rows)
        changes[self.partitions[:-1]] = True
        return np.append(np.flatnonzero(changes), self.rows)

    @cached_property
    def row(self) -> Ints:
        """Each row's own number: 0, 1, 2, .."""
        return np.arange(self.rows, dtype=np.int64)

    @cached_property
    def partition_start(self) -> Ints:
        """First row of each row's partition."""
        return np.repeat(self.partitions[:-1], np.diff(self.partitions))

    @cached_property
    def partition_end(self) -> Ints:
        """One past the last row of each row's partition."""
        return np.repeat(self.partitions[1:], np.diff(self.partitions))

    @cached_property
    def peer_start(self) -> Ints:
        """First row of each row's peers."""
        return np.repeat(self.peers[:-1], np.diff(self.peers))

    @cached_property
    def peer_end(self) -> Ints:
        """One past the last row of each row's peers."""
        return np.repeat(self.peers[1:], np.diff(self.peers))

    @cached_property
    def peer_number(self) -> Ints:
        """The number of each row's peer group in its partition, from 0: dense_rank less one."""
        first = np.searchsorted(self.peers, self.partitions[:-1])
        numbers = np.repeat(np.arange(self.peers.size - 1, dtype=np.int64), np.diff(self.peers))
        return numbers - np.repeat(first, np.diff(self.partitions))

    @cached_property
    def frame_range(self) -> tuple[Ints, Ints]:
        """Start and end of each row's frame before EXCLUDE; start <= end, equal where the frame is empty."""
        return frame_bounds(self)

    @property
    def frame_start(self) -> Ints:
        """First row of each row's frame, before EXCLUDE."""
        return self.frame_range[0]

    @property
    def frame_end(self) -> Ints:
        """One past the last row of each row's frame, before EXCLUDE."""
        return self.frame_range[1]

    @cached_property
    def frame_pieces(self) -> tuple[tuple[Ints, Ints], ...]:
        """The frame after EXCLUDE as one to three pieces (starts, ends), in row order, each possibly empty."""
        start, end = self.frame_range
        match self.frame.exclusion:
            case Exclusion.NO_OTHERS:
                return ((start, end),)
            case Exclusion.CURRENT_ROW:
                cuts = (self.row, self.row + 1)
            case _:
                cuts = (self.peer_start, self.peer_end)
        before = (start, np.maximum(start, np.minimum(end, cuts[0])))
        after_start = np.minimum(end, np.maximum(start, cuts[1]))
        after = (after_start, end)
        if self.frame.exclusion is Exclusion.TIES:
            inside = (self.row >= start) & (self.row < end)
            return before, (self.row, np.where(inside, self.row + 1, self.row)), after
        return before, after
