"""Window functions: places in a partition, and values of other rows of the partition or the frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter
from lake.exec import decimals
from lake.exec.functions.arithmetic import same_type
from lake.exec.kernels import views
from lake.sql.registry import window
from lake.types import Decimal

if TYPE_CHECKING:
    from lake.exec.operators.window_input import WindowInput


# --- places ----------------------------------------------------------------------------------------------------------


@window("row_number() -> BIGINT")
def row_number(input: WindowInput) -> pa.Array:
    """The row's number in its partition, from 1.

    >>> SELECT row_number() OVER (ORDER BY x) AS n FROM (VALUES (5), (2)) AS t(x) ORDER BY n
    1 / 2
    """
    return views.to_array(input.row - input.partition_start + (input.before + 1), pa.int64())


@window("rank() -> BIGINT")
def rank(input: WindowInput) -> pa.Array:
    """The number of the first of the row's peers.

    >>> SELECT rank() OVER (ORDER BY x) AS n FROM (VALUES (1), (2), (2), (5)) AS t(x) ORDER BY n
    1 / 2 / 2 / 4
    """
    return views.to_array(input.peer_start - input.partition_start + 1, pa.int64())


@window("dense_rank() -> BIGINT")
def dense_rank(input: WindowInput) -> pa.Array:
    """The number of the row's peers among groups of peers.

    >>> SELECT dense_rank() OVER (ORDER BY x) AS n FROM (VALUES (1), (2), (2), (5)) AS t(x) ORDER BY n
    1 / 2 / 2 / 3
    """
    return views.to_array(input.peer_number + 1, pa.int64())


@window("percent_rank() -> DOUBLE")
def percent_rank(input: WindowInput) -> pa.Array:
    """The share of the partition's other rows that stand before the row's peers.

    >>> SELECT percent_rank() OVER (ORDER BY x) AS n FROM (VALUES (1), (2), (2), (5), (6)) AS t(x) ORDER BY n
    0.0 / 0.25 / 0.25 / 0.75 / 1.0
    """
    others = np.maximum(input.partition_end - input.partition_start - 1, 1)
    return views.to_array((input.peer_start - input.partition_start) / others, pa.float64())


@window("cume_dist() -> DOUBLE")
def cume_dist(input: WindowInput) -> pa.Array:
    """The share of the partition's rows that stand before the row or are its peers.

    >>> SELECT cume_dist() OVER (ORDER BY x) AS n FROM (VALUES (1), (2), (2), (5)) AS t(x) ORDER BY n
    0.25 / 0.75 / 0.75 / 1.0
    """
    rows = input.partition_end - input.partition_start
    return views.to_array((input.peer_end - input.partition_start) / rows, pa.float64())


@window("ntile(count BIGINT) -> BIGINT")
def ntile(input: WindowInput, count: pa.Array) -> pa.Array:
    """Which of so many equal parts of the partition the row is in, the first ones a row longer where they must.

    >>> SELECT ntile(2) OVER (ORDER BY x) AS n FROM (VALUES (1), (2), (3)) AS t(x) ORDER BY n
    1 / 1 / 2

    22023  a count below 1
    """
    parts, valid = views.values_of(count), views.valid_of(count)
    if (parts[valid == 1] if valid is not None else parts).min(initial=1) < 1:
        raise InvalidParameter("argument of ntile must be greater than zero")
    parts = np.maximum(parts, 1)
    rows = input.partition_end - input.partition_start
    place = input.row - input.partition_start
    size, longer = rows // parts, rows % parts
    in_longer = place < longer * (size + 1)
    part = np.where(in_longer, place // (size + 1), longer + (place - longer * (size + 1)) // np.maximum(size, 1))
    return views.to_array(part + 1, pa.int64(), valid)


# --- other rows of the partition -------------------------------------------------------------------------------------


@window("lag(expr ANY) -> ANY", returns=same_type)
@window("lag(expr ANY, offset BIGINT) -> ANY", returns=same_type)
@window("lag(expr T, offset BIGINT, default T) -> T")
def lag(
    input: WindowInput, value: pa.Array, offset: pa.Array | None = None, default: pa.Array | None = None
) -> pa.Array:
    """The value of the row so many (1) before; else the default (NULL).

    >>> SELECT lag(x, 1, 0) OVER (ORDER BY x) AS n FROM (VALUES (1), (2), (5)) AS t(x) ORDER BY n
    0 / 1 / 2
    """
    return _neighbour(input, value, offset, default, -1)


@window("lead(expr ANY) -> ANY", returns=same_type)
@window("lead(expr ANY, offset BIGINT) -> ANY", returns=same_type)
@window("lead(expr T, offset BIGINT, default T) -> T")
def lead(
    input: WindowInput, value: pa.Array, offset: pa.Array | None = None, default: pa.Array | None = None
) -> pa.Array:
    """The value of the row so many (1) behind; else the default (NULL).

    >>> SELECT lead(x) OVER (ORDER BY x) AS n FROM (VALUES (1), (2), (5)) AS t(x) ORDER BY n
    2 / 5 / NULL
    """
    return _neighbour(input, value, offset, default, 1)


def _neighbour(
    input: WindowInput, value: pa.Array, offset: pa.Array | None, default: pa.Array | None, sign: int
) -> pa.Array:
    value = _wide(input, value)
    away = sign * (np.ones(input.rows, np.int64) if offset is None else views.values_of(offset))
    if input.ignore_nulls:
        place, there = _neighbour_with_value(input, value, away)
    else:
        place = input.row + away
        there = (place >= input.partition_start) & (place < input.partition_end)
    found = _at(value, place, there)
    if default is not None:
        found = pc.if_else(views.to_boolean(there), found, _wide(input, default))
    if offset is not None and offset.null_count:
        found = pc.if_else(pc.is_valid(offset), found, pa.scalar(None, found.type))
    return found


def _neighbour_with_value(input: WindowInput, value: pa.Array, away: Any) -> tuple[Any, Any]:
    """Rows of the values that are so many steps away when NULLs are skipped."""
    positions, before = _values_before(value, ignore_nulls=True)
    is_value = before[1:] - before[:-1]
    step = np.where(away > 0, before[:-1] + is_value + away - 1, before[:-1] + away)
    first, last = before[input.partition_start], before[input.partition_end]
    there = (step >= first) & (step < last)
    if positions.size == 0:
        return np.zeros(input.rows, np.int64), np.zeros(input.rows, np.bool_)
    return np.where(away == 0, input.row, positions[np.clip(step, 0, positions.size - 1)]), there | (away == 0)


def _values_before(value: pa.Array, *, ignore_nulls: bool) -> tuple[Any, Any]:
    """Rows that count, ascending, and for each row (and the end) how many of them stand before it."""
    rows = len(value)
    if not ignore_nulls or value.null_count == 0:
        return np.arange(rows), np.arange(rows + 1)
    live = views.true_of(pc.is_valid(value))
    return np.flatnonzero(live), np.concatenate(([0], np.cumsum(live)))


def _at(value: pa.Array, place: Any, there: Any) -> pa.Array:
    """The values at rows, NULL where ``there`` is false."""
    if len(value) == 0:
        return value
    return value.take(views.to_array(np.where(there, place, 0), pa.int64(), there.astype(np.uint8)))


def _wide(input: WindowInput, value: pa.Array) -> pa.Array:
    return decimals.widen(value, input.returns) if isinstance(input.returns, Decimal) else value


# --- other rows of the frame -----------------------------------------------------------------------------------------


@window("first_value(value ANY) -> ANY", returns=same_type, uses_frame=True, aliases=("first",))
def first_value(input: WindowInput, value: pa.Array) -> pa.Array:
    """The value of the frame's first row.

    >>> SELECT first_value(x) OVER (ORDER BY x DESC) AS n FROM (VALUES (1), (2)) AS t(x) ORDER BY n
    2 / 2
    """
    return _nth_of_frame(input, value, np.ones(input.rows, np.int64))


@window("last_value(value ANY) -> ANY", returns=same_type, uses_frame=True, aliases=("last",))
def last_value(input: WindowInput, value: pa.Array) -> pa.Array:
    """The value of the frame's last row.

    >>> SELECT last_value(x) OVER (ORDER BY x) AS n FROM (VALUES (1), (2)) AS t(x) ORDER BY n
    1 / 2
    """
    return _nth_of_frame(input, value, -np.ones(input.rows, np.int64))


@window("nth_value(value ANY, n BIGINT) -> ANY", returns=same_type, uses_frame=True)
def nth_value(input: WindowInput, value: pa.Array, n: pa.Array) -> pa.Array:
    """The value of the frame's n-th row, from its end where n is negative; NULL where it has fewer.

    >>> SELECT nth_value(x, 2) OVER (ORDER BY x) AS m FROM (VALUES (1), (2), (3)) AS t(x) ORDER BY m
    2 / 2 / NULL
    """
    found = _nth_of_frame(input, value, views.values_of(n))
    return found if n.null_count == 0 else pc.if_else(pc.is_valid(n), found, pa.scalar(None, found.type))


def _nth_of_frame(input: WindowInput, value: pa.Array, number: Any) -> pa.Array:
    value = _wide(input, value)
    positions, before = _values_before(value, ignore_nulls=input.ignore_nulls)
    if positions.size == 0:
        return pa.nulls(input.rows, value.type)
    pieces = input.frame_pieces
    place = np.full(input.rows, -1, np.int64)
    left = np.abs(number)
    for forward in (True, False):
        rest = left.copy()
        for start, end in pieces if forward else reversed(pieces):
            count = before[end] - before[start]
            step = before[start] + rest - 1 if forward else before[end] - rest
            here = (rest > 0) & (rest <= count) & ((number > 0) == forward)
            place = np.where(here, positions[np.clip(step, 0, positions.size - 1)], place)
            rest = np.where(here | (rest <= 0), 0, rest - count)
    return _at(value, place, place >= 0)
