"""What a statement answers: rows, or an outcome, with a command tag and notices.

    Result.rows_of(...)            SELECT, SHOW, EXPLAIN      columns and batches, read once
    Result.done("CREATE TABLE", {"table": "t"})               no columns, an outcome for JSON doors

Batches leave the engine in physical types; ``batches`` and ``arrow`` answer ``type.arrow``: decimals are decimals again,
dictionary-coded text is text. Spec: HTTP, Query, answer rules 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lake.rows import answer_array, python_rows
from lake.types import Type


@dataclass(slots=True)
class Result:
    """A statement's answer.

    names, types   columns of a query; both empty for other statements
    tag            the command tag, ``SELECT`` and ``INSERT 0`` without their count
    outcome        what a statement that is not a query answers as JSON
    count          rows written, or None
    version        the commit that was read or written
    few            of a row found by its key: the rows that ``source`` has as values in physical form
    encoded        of a remembered answer: what doors have made of it before, by format
    origins        makes the table and column that each column comes from, by Postgres's numbers
    """

    names: tuple[str, ...]
    types: tuple[Type, ...]
    tag: str
    outcome: dict[str, Any] | None = None
    count: int | None = None
    notices: tuple[str, ...] = ()
    version: int = 0
    source: Iterable[pa.RecordBatch] = field(default=(), repr=False)
    few: list[tuple[Any, ...]] | None = field(default=None, repr=False)
    on_close: Callable[[], None] | None = field(default=None, repr=False)
    encoded: dict[Hashable, bytes] | None = field(default=None, repr=False)
    origins: Callable[[], tuple[tuple[int, int], ...]] | None = field(default=None, repr=False)

    @property
    def is_query(self) -> bool:
        """Whether the statement answers rows."""
        return self.outcome is None

    @property
    def count_at_hand(self) -> int:
        """The number of rows of an answer that is in memory."""
        return len(self.few) if self.few is not None else sum([batch.num_rows for batch in self.source])

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of answers; equal names stay equal."""
        return pa.schema([(name, type.arrow) for name, type in zip(self.names, self.types, strict=True)])

    @classmethod
    def done(cls, tag: str, outcome: dict[str, Any], *, count: int | None = None, version: int = 0) -> Result:
        """The answer of a statement that is not a query."""
        return cls((), (), tag, outcome, count, version=version)

    @classmethod
    def table(cls, tag: str, columns: Sequence[tuple[str, Type]], rows: Iterable[Sequence[Any]]) -> Result:
        """The answer of a statement that shows a few rows, given as Python values."""
        names, types = tuple(name for name, _ in columns), tuple(type for _, type in columns)
        listed = list(rows)
        arrays = [pa.array([row[index] for row in listed], type.arrow) for index, type in enumerate(types)]
        schema = pa.schema(list(zip(names, (type.arrow for type in types), strict=True)))
        return cls(names, types, tag, source=[pa.RecordBatch.from_arrays(arrays, schema=schema)])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in answer types; once."""
        schema = self.schema
        try:
            for batch in self.source:
                arrays = [answer_array(batch.column(i), type) for i, type in enumerate(self.types)]
                if arrays:
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)
                else:
                    yield batch
        finally:
            self.close()

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python values.

        22008  a date or timestamp that Python has not
        """
        return python_rows(self.arrow())

    def run_through(self) -> None:
        """Makes all rows and drops them: a query that is not the last of its request is run all the same."""
        if not self.is_query:
            self.close()
            return
        for _ in self.batches():
            pass

    def close(self) -> None:
        """Lets go of what the rows hold; a query still running stops."""
        closing, self.on_close = self.on_close, None
        stop = getattr(self.source, "close", None)
        if stop is not None:
            stop()
        if closing is not None:
            closing()
