"""The three kinds of physical operator, and what passes between them.

A pipeline is *source -> streams -> breaker*. Its source deals out morsels; each worker thread takes a morsel, pushes its
batches through the streams and into the breaker, in a state of its own; when no morsel is left the breaker merges the
states, and what it then holds is the source of the next pipeline.

    SELECT n_name, count(*) FROM nation JOIN region ON .. GROUP BY 1

    pipeline 1   Scan region -> JoinBuild
    pipeline 2   Scan nation -> HashJoin -> Project -> HashAggregate
    pipeline 3   HashAggregate's groups -> Project -> the answer

A batch is a pa.RecordBatch of at most MORSEL_ROWS rows whose columns are named ``c<id>`` after the plan's column ids, in
physical types; text may be ``string`` or ``dictionary<int32, string>``. Batches are never changed in place. An operator's
``columns`` are those that its batches hold, which may be fewer than its plan node's: what nobody above reads is dropped.

Operators are made for one run by ``lower`` and hold that run's state, so they are not shared between runs.
Source: Leis et al., "Morsel-Driven Parallelism", SIGMOD 2014.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from msgspec import Struct

from lake.sql.bound import Column
from lake.sql.plan import Plan

if TYPE_CHECKING:
    from lake.exec.context import Context
    from lake.exec.pipeline import Flow

MORSEL_ROWS: Final = 262_144

Morsel = Callable[[], Iterable[pa.RecordBatch]]


def column_name(column: Column) -> str:
    """The name of a plan's column in batches."""
    return f"c{column.id}"


def batch_schema(columns: Sequence[Column]) -> pa.Schema:
    """The schema of batches that hold ``columns``; a text column may arrive as a dictionary all the same."""
    return pa.schema([(column_name(column), column.type.physical) for column in columns])


class Metrics(Struct):
    """What an operator did, all workers together.

    rows     rows answered                ns     time in it, the operators that feed it not counted
    bytes    most memory it held          parts  pieces it read, and of those offered how many it ``skipped``
    spilled  bytes written to disk
    """

    rows: int = 0
    ns: int = 0
    bytes: int = 0
    parts: int = 0
    skipped: int = 0
    spilled: int = 0


@dataclass(eq=False)
class Operator(ABC):
    """What every operator tells EXPLAIN; ``columns`` are those it answers, ``plan`` is the node it was made for."""

    columns: tuple[Column, ...]
    metrics: Metrics = field(default_factory=Metrics, init=False, repr=False)
    plan: Plan | None = field(default=None, init=False, repr=False)

    @property
    def name(self) -> str:
        """The operator's name in EXPLAIN."""
        return type(self).__name__

    def describe(self) -> str:
        """What it does, in one line."""
        return ""

    def sides(self) -> Sequence[Flow]:
        """The flows it reads besides the one that it stands in: the build side of a join."""
        return ()


class Source(Operator):
    """Deals out morsels; the order of morsels is the order of rows, which some pipelines keep."""

    def open(self, context: Context) -> Source:
        """Makes it ready and answers the source to run: called once, when everything above it is open."""
        return self

    def rows_expected(self) -> int | None:
        """How many rows it will answer at most, where that is known once it is open: little work takes no threads."""
        return None

    @abstractmethod
    def morsels(self, context: Context) -> Iterator[Morsel]:
        """Pieces of work, each run once on some worker thread; the iterator itself is advanced under a lock."""


class Stream(Operator):
    """Changes batches one by one; may keep a state for each worker."""

    def open(self, context: Context) -> None:
        """Makes it ready before the first batch: a join runs its build side."""

    def start(self, context: Context) -> Any:
        """A worker's state."""
        return None

    @abstractmethod
    def apply(self, state: Any, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """What becomes of ``batch``, which has rows."""

    def is_done(self) -> bool:
        """Whether no further input can change the answer (the build side is empty): the pipeline stops early."""
        return False

    def finish(self, states: Sequence[Any]) -> Iterable[pa.RecordBatch]:
        """Batches that follow when all input has passed (unmatched build rows of an outer join)."""
        return ()


class Breaker(Operator):
    """Takes in all batches before it answers any.

    is_sequential   one worker takes all batches, in the source's order
    is_eager        what it learns of a batch spares work on the next: it takes them as they come, however small
    """

    is_sequential: bool = False
    is_eager: bool = False

    @abstractmethod
    def start(self, context: Context) -> Any:
        """A worker's state."""

    @abstractmethod
    def absorb(self, state: Any, batch: pa.RecordBatch) -> None:
        """Takes a batch, which has rows, into a worker's state."""

    def is_full(self) -> bool:
        """Whether it needs no further batch: the pipeline stops early."""
        return False

    @abstractmethod
    def merge(self, context: Context, states: Sequence[Any]) -> Source:
        """The answer of all workers' states together, as the source of the next pipeline."""
