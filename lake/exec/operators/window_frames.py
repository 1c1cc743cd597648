"""Counts, sums, means and extremes over frames, in time that does not depend on the frames' sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec import decimals
from lake.exec.decimals import Scaled
from lake.exec.kernels import frames
from lake.exec.kernels.order import Direction, sort_rows
from lake.exec.kernels.views import ALL_VALID, Ints, mask_of, plain, to_array, values_of
from lake.exec.operators.tally import new_accumulator
from lake.exec.operators.window_input import WindowInput
from lake.sql.bound import AggregateCall
from lake.types import DECIMAL_DIGITS_MAX, Decimal, Float, Integer

WIDEST: Final = pa.decimal128(DECIMAL_DIGITS_MAX, 0)


def fast_aggregate(
    window: WindowInput, call: AggregateCall, arguments: Sequence[pa.Array], where: Any
) -> pa.Array | None:
    """The aggregate over each row's frame; None where there is no shortcut."""
    valid = _counted(window, arguments, where)
    match call.function.name:
        case "count":
            return to_array(frames.frame_counts(window.frame_pieces, valid), pa.int64())
        case "min" | "max" if len(arguments) == 1:
            return _extreme(window, plain(arguments[0]), valid, greatest=call.function.name == "max")
        case "sum" | "avg" | "mean" if isinstance(call.arguments[0].type, Float):
            return _double(window, call, plain(arguments[0]), valid)
        case "sum" if isinstance(call.arguments[0].type, Integer | Decimal):
            return _sum(window, call, arguments[0], valid)
        case "avg" | "mean" if isinstance(call.arguments[0].type, Integer | Decimal):
            return _average(window, call, arguments[0], valid)
    return None


def _counted(window: WindowInput, arguments: Sequence[pa.Array], where: Any) -> Ints:
    """uint8[rows] or empty: rows that pass the filter and in which no argument is NULL."""
    counted = ALL_VALID if where is None else where.astype(np.uint8)
    for array in arguments:
        valid = mask_of(array)
        if valid.size:
            counted = counted & valid if counted.size else valid
    return counted


def _extreme(window: WindowInput, array: pa.Array, valid: Ints, *, greatest: bool) -> pa.Array:
    """Values are compared by their place in ascending order: any type that sorts will do."""
    order = sort_rows([array], [Direction()])
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    best = frames.frame_extremes(places, window.frame_pieces, valid, greatest=greatest)
    return array.take(to_array(best, pa.int64(), (best >= 0).view(np.uint8)))


def _double(window: WindowInput, call: AggregateCall, array: pa.Array, valid: Ints) -> pa.Array:
    sums = frames.frame_sum_doubles(values_of(array), window.frame_pieces, valid)
    counts = frames.frame_counts(window.frame_pieces, valid)
    if call.function.name != "sum":
        sums = sums / np.maximum(counts, 1)
    return to_array(sums, pa.float64(), (counts > 0).view(np.uint8)).cast(call.type.physical)


def _frame_sums(window: WindowInput, array: pa.Array, valid: Ints) -> tuple[pa.Array, Ints]:
    """The exact sum of each frame as DECIMAL(38, 0), NULL where no row counts, and how many rows do."""
    counts = frames.frame_counts(window.frame_pieces, valid)
    sums = frames.frame_sums(values_of(array), window.frame_pieces, valid)
    return to_array(sums, WIDEST, (counts > 0).view(np.uint8)), counts


def _sum(window: WindowInput, call: AggregateCall, array: pa.Array, valid: Ints) -> pa.Array:
    """A sum of one value, the frame's, gives the type and the errors that sum() has."""
    sums, _ = _frame_sums(window, array, valid)
    accumulator = new_accumulator(call, window.settings)
    accumulator.update(window.row, window.rows, [sums])
    return accumulator.finish(window.rows)


def _average(window: WindowInput, call: AggregateCall, array: pa.Array, valid: Ints) -> pa.Array:
    sums, counts = _frame_sums(window, array, valid)
    totals = decimals.scaled(sums)
    assert totals is not None
    if isinstance(call.type, Decimal):
        of = call.arguments[0].type
        assert isinstance(of, Decimal)
        quotient = decimals.divide(
            Scaled(totals.values, totals.valid), Scaled(np.maximum(counts, 1)), raised=call.type.scale - of.scale
        )
        return decimals.widen(decimals.to_value(quotient, call.type), call.type)
    means = np.asarray(totals.values).astype(np.float64) / np.maximum(counts, 1)
    return to_array(means, pa.float64(), (counts > 0).view(np.uint8))
