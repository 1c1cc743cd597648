"""A connection to a lake: what ``lake.connect``, ``lake.open``, the program and the shell talk through.

    connection.sql("SELECT 1 AS one").rows()      [(1,)]

``client`` is one over HTTP, ``embedded`` one to an engine in this process.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from lake.errors import InvalidParameter
from lake.rows import python_rows
from lake.types import Type

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from lake.db.result import Result

ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"


class Answer(Struct, frozen=True):
    """A statement's answer, whole.

    columns, types  of a query; empty for other statements, which have an ``outcome``
    tag             the command tag
    """

    columns: tuple[str, ...]
    types: tuple[Type, ...]
    tag: str
    table: pa.Table
    outcome: dict[str, Any] | None = None
    notices: tuple[str, ...] = ()

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self.table

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values.

        22008  a date or timestamp that Python has not
        """
        return python_rows(self.table)

    def pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame; pandas must be installed."""
        return self.table.to_pandas()

    def polars(self) -> pl.DataFrame:
        """The rows as a Polars frame; Polars must be installed."""
        import polars

        frame = polars.from_arrow(self.table)
        assert isinstance(frame, polars.DataFrame)
        return frame

    def item(self) -> Any:
        """The one value of an answer of one row and one column.

        22023  an answer of another shape
        """
        if self.table.num_rows != 1 or self.table.num_columns != 1:
            raise InvalidParameter(f"item() of {self.table.num_rows} rows and {self.table.num_columns} columns")
        return self.table.column(0)[0].as_py()

    def __str__(self) -> str:
        """The answer as a text table, or the outcome as JSON."""
        if self.outcome is not None:
            return json.dumps(self.outcome)
        from lake.db.values import text_values
        from lake.doors.http.encode import draw

        columns = [text_values(self.table.column(i), type) for i, type in enumerate(self.types)]
        return draw(self.columns, self.types, columns, self.table.num_rows).rstrip("\n")

    def result(self) -> Result:
        """The answer as the engine's own Result, for encoders."""
        from lake.db.result import Result

        batches = self.table.to_batches()
        return Result(self.columns, self.types, self.tag, self.outcome, notices=self.notices, source=batches)

    def __len__(self) -> int:
        return int(self.table.num_rows)


class Acknowledged(Struct, frozen=True):
    """What an append answers. Spec: HTTP, Append answer."""

    seg: int
    duplicate: bool
    conflict: bool
    row: int
    ms: int


class Connection(ABC):
    """A lake that statements can be sent to; a context manager that closes itself."""

    _position: int | None = None

    @abstractmethod
    def sql(self, text: str, /, *, job: str | None = None, **params: Any) -> Answer:
        """Runs the statements of ``text``; the last one's answer.

        params  values of ``$name``
        job     a write retried under the same id is applied once
        """

    @abstractmethod
    def append(
        self,
        table: str,
        rows: pa.Table | Iterable[Mapping[str, Any]],
        *,
        producer: str | None = None,
        seq: int | None = None,
        prev: int | None = None,
    ) -> Acknowledged:
        """Appends rows, exactly once for a producer and its seq; durable when it returns."""

    @abstractmethod
    def watch(self, table: str, after: int | None = None, changes: bool = False) -> Iterator[dict[str, Any]]:
        """A table's new rows as they are committed, for as long as they are asked for; JSON's values, NULLs left out.

        after    a commit: rows of later ones; by default from this moment
        changes  updates and deletes too, each with ``_change_type``, ``_row_id``, ``_version`` and its times
        ``position`` says where to go on. Errors as of ``GET /watch``.
        """

    @abstractmethod
    def live(self, query: str, /, *, every_ms: int = 100, **params: Any) -> Iterator[list[dict[str, Any]]]:
        """A query's rows now, and again after each commit that changes them, for as long as they are asked for.

        every_ms  shortest time between two runs
        """

    @property
    def position(self) -> int | None:
        """The commit up to which ``watch`` has given everything; None before the first row."""
        return self._position

    @abstractmethod
    def close(self) -> None:
        """Lets go of the lake."""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def encode_rows(rows: pa.Table | Iterable[Mapping[str, Any]]) -> tuple[bytes, str]:
    """Rows as a body, and its content type."""
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return sink.getvalue().to_pybytes(), ARROW_STREAM
    lines = (json.dumps(dict(row), default=str) for row in rows)
    return "".join(line + "\n" for line in lines).encode(), "application/x-ndjson"
