"""Counts, sums and extremes over frames in time that does not depend on the frames' sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lake.exec.kernels.views import to_array, valid_of
from lake.exec.operators.window_input import WindowInput
from lake.sql.bound import AggregateCall


def fast_aggregate(
    window: WindowInput, call: AggregateCall, arguments: Sequence[pa.Array], where: Any
) -> pa.Array | None:
    """The aggregate over each row's frame; None where there is no shortcut."""
    if call.function.name == "count":
        return to_array(_counts(window, arguments, where), pa.int64())
    return None


def _counts(window: WindowInput, arguments: Sequence[pa.Array], where: Any) -> Any:
    """int64[rows]: rows of each frame that pass the filter and in which no argument is NULL."""
    counted = np.ones(window.rows, np.int64) if where is None else where.astype(np.int64)
    for array in arguments:
        valid = valid_of(array)
        if valid is not None:
            counted &= valid.astype(np.int64)
    running = np.concatenate(([0], np.cumsum(counted)))
    return sum(running[end] - running[start] for start, end in window.frame_pieces)
