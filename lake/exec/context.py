"""What a running query is given: workers, memory, settings, cancellation, and the way to open tables.

The engine knows no user, session or commit: whoever runs it puts what it may know in here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lake.errors import QueryCanceled
from lake.exec.memory import Budget, MemoryPool
from lake.sql.catalog import Settings


class Cancellation:
    """Says once that a query shall stop, in ``is_stopped``; workers look between batches."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.reason = "canceling statement due to user request"

    def stop(self, reason: str | None = None) -> None:
        """Makes every later ``check`` fail."""
        if reason is not None:
            self.reason = reason
        self.is_stopped = True

    def check(self) -> None:
        """57014 once the query was stopped."""
        if self.is_stopped:
            raise QueryCanceled(self.reason)


@dataclass(slots=True)
class Context:
    """A query's surroundings.

    workers      threads a pipeline uses
    memory       bytes its breakers may hold before they spill, all together: a number of its own or a pool shared with others
    scratch      folder for what spills; the system's temporary folder where None
    budget       what they hold
    """

    settings: Settings
    workers: int = 2
    memory: int | MemoryPool = 4 << 30
    scratch: str | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)
    budget: Budget = field(init=False)
    _pool: MemoryPool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        pool = self.memory if isinstance(self.memory, MemoryPool) else MemoryPool(self.memory)
        self._pool = pool
        self.budget = pool.open()
