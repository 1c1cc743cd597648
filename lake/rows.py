"""Where stored rows meet the engine: a table answers parts, a worker reads a part.

Storage, system tables and readers of outside files all answer a RowSource, so the engine has one way to scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


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
