"""The three kinds of physical operator, and what passes between them.

A pipeline is *source -> streams -> breaker*. Its source deals out morsels; each worker thread takes a morsel, pushes its
batches through the streams and into the breaker, in a state of its own; when no morsel is left the breaker merges the
states, and what it then holds is the source of the next pipeline.

    SELECT n_name, count(*) FROM nation JOIN region ON .. GROUP BY 1

    pipeline 1   Scan region -> JoinBuild
    pipeline 2   Scan nation -> JoinProbe -> Project -> HashAggregate
    pipeline 3   HashAggregate's groups -> Project -> Gather

A batch is a pa.RecordBatch of at most MORSEL_ROWS rows whose columns are named ``c<id>`` after the plan's column ids, in
physical types; text may be ``string`` or ``dictionary<int32, string>``. Batches are never changed in place.
Source: Leis et al., "Morsel-Driven Parallelism", SIGMOD 2014.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lake.sql.bound import Column

if TYPE_CHECKING:
    from lake.exec.context import Context

MORSEL_ROWS: Final = 65_536

Morsel = Callable[[], Iterable[pa.RecordBatch]]


def column_name(column: Column) -> str:
    """The name of a plan's column in batches."""
    return f"c{column.id}"


def batch_schema(columns: Sequence[Column]) -> pa.Schema:
    """The schema of batches that hold ``columns``; a text column may arrive as a dictionary all the same."""
    return pa.schema([(column_name(column), column.type.physical) for column in columns])


class Operator(ABC):
    """What every operator tells EXPLAIN; ``columns`` are those it answers."""

    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        """The operator's name in EXPLAIN."""
        return type(self).__name__

    def describe(self) -> str:
        """What it does, in one line."""
        return ""


class Source(Operator):
    """Deals out morsels. ``ordered`` says that the order of morsels means something and is kept to the end."""

    ordered: bool = False

    @abstractmethod
    def morsels(self, context: Context) -> Iterator[Morsel]:
        """Pieces of work, each run once on some worker thread; the iterator itself is advanced under a lock."""


class Stream(Operator):
    """Changes batches one by one; may keep a state for each worker."""

    def start(self, context: Context) -> Any:
        """A worker's state."""
        return None

    @abstractmethod
    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """What becomes of ``batch``."""

    def is_done(self) -> bool:
        """Whether no further input can change the answer (LIMIT is filled): the pipeline stops early."""
        return False

    def finish(self, states: Sequence[Any]) -> Iterable[pa.RecordBatch]:
        """Batches that follow when all input has passed (unmatched build rows of an outer join)."""
        return ()


class Breaker(Operator):
    """Takes in all batches before it answers any."""

    @abstractmethod
    def start(self, context: Context) -> Any:
        """A worker's state."""

    @abstractmethod
    def absorb(self, state: Any, batch: pa.RecordBatch) -> None:
        """Takes a batch into a worker's state."""

    @abstractmethod
    def merge(self, context: Context, states: Sequence[Any]) -> Source:
        """The answer of all workers' states together, as the source of the next pipeline."""
