"""Aggregates over frames: any aggregate at all, and shortcuts for the common shapes.

    whole partitions     the rows are grouped by partition, and each row is answered its partition's value
    other frames         each distinct frame becomes a group of the rows in it, block by block

The second is quadratic in the size of large frames: sums, counts and extremes have kernels of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.kernels.views import to_array
from lake.exec.operators.batches import concat_columns, make_batch
from lake.exec.operators.tally import Call, make_tally
from lake.exec.operators.window_frames import fast_aggregate
from lake.exec.operators.window_input import WindowInput
from lake.sql.bound import AggregateCall, WindowCall
from lake.sql.registry import Aggregate

EXPANDED_ROWS_MAX: Final = 1 << 20
"""Rows of frames listed at once."""


def aggregate_over(
    window: WindowInput, call: WindowCall, arguments: Sequence[pa.Array], order: Sequence[pa.Array], where: Any
) -> pa.Array:
    """The aggregate's value over each row's frame; ``where`` bool[rows] is the FILTER, or None."""
    assert isinstance(call.function, Aggregate)
    as_aggregate = AggregateCall(call.type, call.function, call.arguments, call.distinct, None, call.order)
    inputs = [*arguments, *order]
    if _is_whole(window):
        return _by_partition(window, as_aggregate, inputs, where)
    if not call.distinct and (made := fast_aggregate(window, as_aggregate, arguments, where)) is not None:
        return made
    return _by_frame(window, as_aggregate, inputs, where)


def _is_whole(window: WindowInput) -> bool:
    if len(window.frame_pieces) > 1:
        return False
    start, end = window.frame_range
    return bool((start == window.partition_start).all() and (end == window.partition_end).all())


def _by_partition(window: WindowInput, call: AggregateCall, inputs: list[pa.Array], where: Any) -> pa.Array:
    sizes = np.diff(window.partitions)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    rows = window.row if where is None else window.row[where]
    values = _accumulated(call, inputs, rows, groups[rows], len(sizes))
    return values.take(to_array(groups, pa.int64()))


def _by_frame(window: WindowInput, call: AggregateCall, inputs: list[pa.Array], where: Any) -> pa.Array:
    """Each distinct frame as a group: rows whose pieces are those of the row before share its value."""
    pieces = window.frame_pieces
    changes = np.zeros(window.rows, np.bool_)
    changes[:1] = True
    sizes = np.zeros(window.rows, np.int64)
    for start, end in pieces:
        changes[1:] |= (start[1:] != start[:-1]) | (end[1:] != end[:-1])
        sizes += end - start
    distinct = np.flatnonzero(changes)
    running = np.cumsum(sizes[distinct])
    values = []
    first = 0
    while first < len(distinct):
        done = int(running[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(running, done + EXPANDED_ROWS_MAX, side="right")))
        rows, groups = _expanded(pieces, distinct[first:last])
        if where is not None:
            kept = where[rows]
            rows, groups = rows[kept], groups[kept]
        values.append(_accumulated(call, inputs, rows, groups, last - first))
        first = last
    number = np.cumsum(changes) - 1
    return concat_columns(values).take(to_array(number, pa.int64()))


def _expanded(pieces: tuple[tuple[Any, Any], ...], frames: Any) -> tuple[Any, Any]:
    """The rows of some rows' frames, and to which of them each belongs; the rows of a frame are in order."""
    rows, groups = [], []
    for start, end in pieces:
        sizes = end[frames] - start[frames]
        group = np.repeat(np.arange(len(frames)), sizes)
        place = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows.append(start[frames][group] + place)
        groups.append(group)
    if len(pieces) == 1:
        return rows[0], groups[0]
    all_rows, all_groups = np.concatenate(rows), np.concatenate(groups)
    order = np.argsort(all_groups, kind="stable")
    return all_rows[order], all_groups[order]


def _accumulated(call: AggregateCall, inputs: list[pa.Array], rows: Any, groups: Any, count: int) -> pa.Array:
    """The aggregate of each group, whose rows are given in order."""
    arguments = len(call.arguments)
    order = tuple(range(arguments, len(inputs))) if call.function.obeys_order else ()
    tally = make_tally(Call(call, tuple(range(arguments)), None, order), None)
    taken = to_array(np.ascontiguousarray(rows), pa.int64())
    arrays = [array.take(taken) for array in inputs]
    batch = make_batch([f"i{index}" for index in range(len(arrays))], arrays, len(rows))
    if len(rows):
        tally.update(np.ascontiguousarray(groups), count, batch)
    return tally.finish(count)
