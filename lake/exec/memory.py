"""How much memory a query's breakers hold, and when one of them must spill.

    account = budget.open(operator.metrics)
    account.set(table.nbytes)
    if account.must_spill:
        ...

The budget is one number for the query. A breaker that grows while the whole is above the budget writes its own state to
disk: no breaker can make another one shrink. What streams hold (a batch each) is not counted.
"""

from __future__ import annotations

import threading
from typing import Final

from lake.exec.operators.base import Metrics

SPILL_BYTES_MIN: Final = 1 << 18
"""A state smaller than this is kept: writing it would free next to nothing."""


class Budget:
    """The bytes that a query's breakers may hold together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._lock = threading.Lock()

    def open(self, metrics: Metrics | None = None) -> Account:
        """An account for one state of one breaker."""
        return Account(self, metrics)

    def add(self, change: int) -> int:
        """Adds to what is held; answers the new sum."""
        with self._lock:
            self.held += change
            return self.held


class Account:
    """What one state holds; used by one thread at a time."""

    __slots__ = ("_budget", "_metrics", "bytes")

    def __init__(self, budget: Budget, metrics: Metrics | None) -> None:
        self._budget = budget
        self._metrics = metrics
        self.bytes = 0

    def set(self, size: int) -> None:
        """Says how many bytes are held."""
        if size != self.bytes:
            self._budget.add(size - self.bytes)
            self.bytes = size
            if self._metrics is not None and size > self._metrics.bytes:
                self._metrics.bytes = size

    def grow(self, size: int) -> None:
        """Says that so many bytes more are held."""
        self.set(self.bytes + size)

    @property
    def must_spill(self) -> bool:
        """Whether the query is over its budget and this state is large enough to help."""
        return self._budget.held > self._budget.limit and self.bytes >= SPILL_BYTES_MIN

    def close(self) -> None:
        """Says that nothing is held any more."""
        self.set(0)
