"""The gamma function and its logarithm, which numpy lacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.views import Ints


@kernel
def gamma_values(numbers: Any, out: Any) -> None:
    """The gamma function: numbers, out float64[rows]; NaN at whole numbers below 1, infinity past the largest double."""
    for row in range(numbers.size):
        number = numbers[row]
        is_pole = number <= 0 and number == np.floor(number)
        out[row] = math.nan if is_pole else math.inf if number > 171.7 else math.gamma(number)


@kernel
def log_gamma_values(numbers: Any, out: Any) -> None:
    """The logarithm of the gamma function: numbers, out float64[rows]; NaN at whole numbers below 1."""
    for row in range(numbers.size):
        number = numbers[row]
        is_pole = number <= 0 and number == np.floor(number)
        out[row] = math.nan if is_pole else math.lgamma(number)


def gammas(numbers: Ints, *, is_log: bool) -> Ints:
    """float64[rows]: the gamma function or its logarithm."""
    out = np.empty(len(numbers))
    (log_gamma_values if is_log else gamma_values).over(len(numbers))(numbers, out)
    return out


@rehearsal
def _rehearse() -> None:
    for is_log in (False, True):
        gammas(np.ones(1000), is_log=is_log)
