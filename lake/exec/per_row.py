"""The mark of functions that go through their rows in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

PER_ROW: Final[dict[str, str]] = {}
"""Module and name of each marked function, and what its docstring says of why."""


def per_row(function: F) -> F:
    """Marks a function that goes through its rows in Python because no column operation does it.

    A sentence of its docstring with the words "row by row" says of which rows and why. ``python -m tests bench rows``
    prints all of them with what a row costs.
    """
    text = " ".join((function.__doc__ or "").split())
    reason = next((part for part in text.replace(": ", ":\0").split(". ") if " row by row" in part), "")
    PER_ROW[f"{function.__module__}.{function.__name__}"] = reason.replace("\0", " ").rstrip(".")
    return function
