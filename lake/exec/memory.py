"""How much memory a query's breakers hold, and when one of them must spill.

    account = budget.open(operator.metrics)
    account.set(table.nbytes)
    if account.must_spill:
        ...

The limit is one number for all queries of a MemoryPool. A breaker that grows while they hold more than that together writes
its own state to disk: no breaker can make another one shrink. A state that cannot be written, which ``account.hold`` counts,
ends its query instead. What streams hold (a batch each) is not counted.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Final

from lake.errors import OutOfMemory
from lake.exec.operators.base import Metrics

SPILL_BYTES_MIN: Final = 1 << 18
"""A state smaller than this is kept: writing it would free next to nothing."""


HELD_BYTES_MIN: Final = 1 << 26
"""A state smaller than this ends no query, however little memory there is: a table of few keys far apart takes some of it."""

HELD_SHARE_MIN: Final = 16
"""A state that cannot be written ends its query when it is this part of the limit; a smaller one is not in the way."""

TOLD_BYTES: Final = 1 << 20
"""How far what is held must change before it is told."""


class MemoryPool:
    """The bytes that the breakers of several queries may hold together.

    told  called with what they hold whenever that has changed by TOLD_BYTES: caches make room, or take it back
    """

    def __init__(self, limit: int, told: Callable[[int], None] | None = None) -> None:
        self.limit = limit
        self._told = told
        self._last = 0
        self._budgets: weakref.WeakSet[Budget] = weakref.WeakSet()
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """What queries hold; a query that has ended and is forgotten holds nothing."""
        with self._lock:
            return sum(budget.held for budget in self._budgets)

    def open(self) -> Budget:
        """The budget of one more query."""
        made = Budget(self)
        with self._lock:
            self._budgets.add(made)
        return made

    def changed(self) -> None:
        """Says that a query holds more or less than before."""
        if self._told is not None and abs((held := self.held) - self._last) >= TOLD_BYTES:
            self._last = held
            self._told(held)


class Budget:
    """What one query's breakers hold."""

    def __init__(self, pool: MemoryPool) -> None:
        self._pool = pool
        self.held = 0
        self._lock = threading.Lock()

    @property
    def limit(self) -> int:
        """What all queries together may hold."""
        return self._pool.limit

    @property
    def is_exceeded(self) -> bool:
        """Whether all queries together hold more than they may."""
        return self.held > 0 and self._pool.held > self._pool.limit

    def open(self, metrics: Metrics | None = None) -> Account:
        """An account for one state of one breaker."""
        return Account(self, metrics)

    def add(self, change: int) -> None:
        """Adds to what is held."""
        with self._lock:
            self.held += change
        self._pool.changed()


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

    def hold(self, size: int, what: str) -> None:
        """Says how many bytes a state holds that cannot be written to disk.

        53200  queries hold too much, and this state is a good part of it; ``what`` names it
        """
        self.set(size)
        limit = self._budget.limit
        if size >= max(HELD_BYTES_MIN, limit // HELD_SHARE_MIN) and self._budget.is_exceeded:
            raise OutOfMemory(
                f"{what} holds {size >> 20} MB, and all queries together may hold {limit >> 20} MB",
                hint="LAKE_MEMORY_GB is what queries may hold",
            )

    @property
    def must_spill(self) -> bool:
        """Whether queries hold too much and this state is large enough to help."""
        return self.bytes >= SPILL_BYTES_MIN and self._budget.is_exceeded

    def close(self) -> None:
        """Says that nothing is held any more."""
        self.set(0)
