"""The state of variances, covariances, correlations and regressions for many groups.

    Moments.of("stddev_samp")

Rows are added one by one to the means and to the sums of squared distances from them, which loses nothing to large
means; states of several workers are merged. It is a ``sql.registry.Accumulator``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.aggregates import live_rows, resized
from lake.exec.kernels.views import Ints, to_array, values_of

N, MEAN_X, MEAN_Y, XX, YY, XY = range(6)
"""Fields of a moment state: the count, the means, and sums of products of distances from the means."""


@kernel
def add_moments(groups: Any, xs: Any, ys: Any, states: Any) -> None:
    """Adds points one by one to the moments of their groups.

    groups  int64[rows]  in    xs, ys  float64[rows]  in    states  float64[groups, 6]  in/out  see N .. XY

    Source: Welford, "Note on a method for calculating corrected sums of squares and products", 1962.
    """
    for row in range(groups.size):
        state = states[groups[row]]
        x, y = xs[row], ys[row]
        state[N] += 1.0
        away_x, away_y = x - state[MEAN_X], y - state[MEAN_Y]
        state[MEAN_X] += away_x / state[N]
        state[MEAN_Y] += away_y / state[N]
        state[XX] += away_x * (x - state[MEAN_X])
        state[YY] += away_y * (y - state[MEAN_Y])
        state[XY] += away_x * (y - state[MEAN_Y])


@kernel
def merge_moments(mapping: Any, others: Any, states: Any) -> None:
    """Merges float64[others, 6] moments into those of groups ``mapping``.

    Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
    """
    for index in range(mapping.size):
        other, state = others[index], states[mapping[index]]
        if other[N] == 0.0:
            continue
        total = state[N] + other[N]
        away_x, away_y = other[MEAN_X] - state[MEAN_X], other[MEAN_Y] - state[MEAN_Y]
        share = state[N] * other[N] / total
        state[XX] += other[XX] + away_x * away_x * share
        state[YY] += other[YY] + away_y * away_y * share
        state[XY] += other[XY] + away_x * away_y * share
        state[MEAN_X] += away_x * other[N] / total
        state[MEAN_Y] += away_y * other[N] / total
        state[N] = total


Formula = Callable[[Ints], Ints]
"""float64[groups, 6] moments -> float64[groups], NaN where it may mean NULL too."""


class Moments:
    """Variances, covariances, correlations and regressions of one column, or of two (y first, as SQL has it).

    ``formula`` makes the answer of the moments: a key of MOMENTS. NULL where fewer than ``rows_min`` rows count.
    """

    def __init__(self, formula: Formula, rows_min: int) -> None:
        self._formula, self._rows_min = formula, rows_min
        self._states: Ints = np.zeros((0, 6), np.float64)

    @classmethod
    def of(cls, name: str) -> Moments:
        """The state of a function of MOMENTS."""
        return cls(*MOMENTS[name])

    def update(self, groups: Ints, group_count: int, arguments: Sequence[pa.Array]) -> None:
        """Adds a batch; rows with a NULL do not count."""
        self._states = resized(self._states, group_count)
        groups, arrays = live_rows(groups, arguments)
        ys = values_of(arrays[0]).astype(np.float64, copy=False)
        xs = values_of(arrays[-1]).astype(np.float64, copy=False)
        add_moments(groups, xs, ys, self._states)

    def merge(self, other: Moments, mapping: Ints, group_count: int) -> None:
        """Adds another state."""
        self._states = resized(self._states, group_count)
        merge_moments(mapping, resized(other._states, len(mapping)), self._states)

    def finish(self, group_count: int) -> pa.Array:
        """DOUBLE."""
        states = resized(self._states, group_count)[:group_count]
        with np.errstate(all="ignore"):
            values = self._formula(states)
        enough = states[:, N] >= self._rows_min
        return to_array(values.astype(np.float64), pa.float64(), (enough & ~_is_null(values, states)).astype(np.uint8))


def _is_null(values: Ints, states: Ints) -> Ints:
    """Where a formula divided nothing by nothing though the moments are numbers: NULL in SQL."""
    return np.isnan(values) & ~np.isnan(states).any(axis=1)


def _determination(s: Ints) -> Ints:
    """regr_r2: 1 where y is constant, NULL where x is."""
    of_constant = np.where(s[:, XX] == 0, np.nan, 1.0)
    return np.where(s[:, YY] == 0, of_constant, s[:, XY] ** 2 / (s[:, XX] * s[:, YY]))


MOMENTS: Final[dict[str, tuple[Formula, int]]] = {
    "var_pop": (lambda s: s[:, XX] / s[:, N], 1),
    "var_samp": (lambda s: s[:, XX] / (s[:, N] - 1), 2),
    "stddev_pop": (lambda s: np.sqrt(s[:, XX] / s[:, N]), 1),
    "stddev_samp": (lambda s: np.sqrt(s[:, XX] / (s[:, N] - 1)), 2),
    "covar_pop": (lambda s: s[:, XY] / s[:, N], 1),
    "covar_samp": (lambda s: s[:, XY] / (s[:, N] - 1), 2),
    "corr": (lambda s: s[:, XY] / np.sqrt(s[:, XX] * s[:, YY]), 1),
    "regr_count": (lambda s: s[:, N], 0),
    "regr_avgx": (lambda s: s[:, MEAN_X], 1),
    "regr_avgy": (lambda s: s[:, MEAN_Y], 1),
    "regr_sxx": (lambda s: s[:, XX], 1),
    "regr_syy": (lambda s: s[:, YY], 1),
    "regr_sxy": (lambda s: s[:, XY], 1),
    "regr_slope": (lambda s: s[:, XY] / s[:, XX], 1),
    "regr_intercept": (lambda s: s[:, MEAN_Y] - s[:, XY] / s[:, XX] * s[:, MEAN_X], 1),
    "regr_r2": (_determination, 1),
}  # fmt: skip
"""Formulas over moments by SQL name, and the rows they need."""


@rehearsal
def _rehearse() -> None:
    groups, doubles = np.array([0, 1]), pa.array([1.0, 2.0])
    state = Moments.of("corr")
    state.update(groups, 2, [doubles, doubles])
    state.merge(Moments.of("corr"), groups, 2)
    state.finish(2)
