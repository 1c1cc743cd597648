"""What a running query is given: workers, memory, settings, cancellation, and the way to open tables.

The engine knows no user, session or commit: whoever runs it puts what it may know in here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from lake.errors import QueryCanceled
from lake.sql.catalog import Settings


@dataclass(frozen=True, slots=True)
class Predicate:
    """A simple test that storage may use to skip files and row groups; the engine tests every row again.

    op     = <> < <= > >= , ``in`` (value is a tuple), ``is null``, ``is not null``
    value  a constant in physical form (``bound.Literal``)
    """

    column: str
    op: str
    value: object


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a table that one worker reads: a row group, some batches of the tail, a slice of a file.

    read   answers batches of the asked columns in the asked order, in physical types (text may be dictionary-coded);
           called once or more, from any thread
    rows   how many rows it holds, or None where only reading tells
    """

    rows: int | None
    read: Callable[[], Iterable[pa.RecordBatch]]


class RowSource(Protocol):
    """The rows of a Table (``sql.catalog.Table.rows``)."""

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """The parts that may hold rows for which all predicates are true; no columns asks for row counts alone."""
        ...


class Cancellation:
    """Says once that a query shall stop; workers look between batches."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self.reason = "canceling statement due to user request"

    def stop(self, reason: str | None = None) -> None:
        """Makes every later ``check`` fail."""
        if reason is not None:
            self.reason = reason
        self._stopped.set()

    def check(self) -> None:
        """57014 once the query was stopped."""
        if self._stopped.is_set():
            raise QueryCanceled(self.reason)


@dataclass(slots=True)
class Context:
    """A query's surroundings.

    workers      threads a pipeline uses
    memory       bytes its breakers may hold before they spill, all together
    scratch      folder for what spills
    """

    settings: Settings
    workers: int = 2
    memory: int = 4 << 30
    scratch: str | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)
