"""Statements that run: rows as messages, some at a time; all of it on worker threads.

    running = Running.start(prepared, session, arguments, cancellation)
    running.description                 its columns
    running.rows(formats, 100)          DataRow messages of at most 100 rows
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from lake.db.describe import Description
from lake.db.prepared import Argument, Prepared, recall, run
from lake.db.result import Result
from lake.db.session import Session
from lake.doors.postgres.few import encoders_of, rows_at_hand
from lake.doors.postgres.rows import data_rows
from lake.errors import ProtocolViolation
from lake.exec.context import Cancellation
from lake.types import Type

if TYPE_CHECKING:
    from lake.doors.postgres.session import Statement

SLICE_ROWS: Final = 16_384  # of one piece: bounds what waits for a slow reader
COUNTED: Final = ("SELECT", "FETCH", "MOVE", "COPY", "UPDATE", "DELETE", "MERGE", "INSERT 0")


class Running:
    """A statement that was started, and its rows that were not sent yet; few enough where ``is_ready`` to be sent at once."""

    def __init__(self, result: Result, zone: str, cancellation: Cancellation) -> None:
        self.result = result
        self.cancellation = cancellation
        self.sent = 0
        self.is_done = False
        self.is_ready = False
        self._zone = zone
        self._batches: Iterator[pa.RecordBatch] = iter(result.batches()) if result.is_query else iter(())
        self._waiting: pa.RecordBatch | None = None

    @classmethod
    def start(
        cls, prepared: Prepared, session: Session, arguments: Sequence[Argument], cancellation: Cancellation
    ) -> Running:
        """Starts the statement; a query has its first rows ready, so that what fails at once fails here."""
        result = run(prepared, session, arguments, cancellation)
        running = cls(result, session.settings["timezone"].value, cancellation)
        running._fill()
        return running

    @classmethod
    def recalled(
        cls, prepared: Prepared, session: Session, arguments: Sequence[Argument], cancellation: Cancellation
    ) -> Running | None:
        """A query whose answer is at hand, which takes no thread; None where it has to be started."""
        result = recall(prepared, session, arguments)
        if result is None:
            return None
        running = cls(result, session.settings["timezone"].value, cancellation)
        running.is_ready = True
        return running

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of its columns."""
        return self.result.types

    @property
    def description(self) -> Description:
        """Its columns."""
        return description_of(self.result)

    def batch(self, limit: int) -> pa.RecordBatch | None:
        """At most ``limit`` rows; None at the end."""
        self._fill()
        waiting = self._waiting
        if waiting is None:
            return None
        if waiting.num_rows <= limit:
            self._waiting = None
            self.sent += waiting.num_rows
            return waiting
        self._waiting = waiting.slice(limit)
        self.sent += limit
        return waiting.slice(0, limit)

    def rows(self, formats: Sequence[int], limit: int) -> bytes:
        """DataRow messages of at most ``limit`` rows and of at most one piece; nothing at the end."""
        if self.is_ready and not self.sent and self._waiting is None:
            if self.result.count_at_hand <= min(limit, SLICE_ROWS):
                made, self.sent = rows_at_hand(self.result, tuple(formats), self._zone, encoders_of(self.types, formats))
                self.is_done = True
                return made
        batch = self.batch(min(limit, SLICE_ROWS))
        return b"" if batch is None else data_rows(batch, self.types, formats, self._zone)

    def skip(self, limit: int) -> bool:
        """Passes over some rows; whether there were any."""
        return self.batch(min(limit, SLICE_ROWS)) is not None

    @property
    def is_finished(self) -> bool:
        """Whether all rows were handed out, as far as is known without asking for more."""
        return self.is_done and self._waiting is None

    def _fill(self) -> None:
        while self._waiting is None and not self.is_done:
            batch = next(self._batches, None)
            if batch is None:
                self.is_done = True
            elif batch.num_rows:
                self._waiting = batch

    @property
    def tag(self) -> str:
        """The command tag, with the count of rows where the command has one."""
        return tag_of(self.result, self.sent)

    def close(self) -> None:
        """Stops what runs and lets go of it."""
        if not self.is_done:
            self.cancellation.stop()
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()
        self.result.close()
        self._waiting = None
        self.is_done = True


def description_of(result: Result) -> Description:
    """The columns of a query's answer."""
    return Description((), result.names, result.types, () if result.origins is None else result.origins())


def tag_of(result: Result, sent: int) -> str:
    """``SELECT 3``, ``INSERT 0 3``, ``CREATE TABLE``."""
    if result.count is not None:
        return f"{result.tag} {result.count}"
    return f"{result.tag} {sent}" if result.is_query and result.tag in COUNTED else result.tag


@dataclass(slots=True)
class Portal:
    """A statement bound to its arguments: not started, running, or at its end.

    source     the prepared statement, or the text of a command that the door runs itself
    holds      whether it outlives its transaction
    statement  of the wire that it was made of
    """

    source: object
    arguments: tuple[Argument, ...]
    formats: tuple[int, ...]
    running: Running | None = None
    holds: bool = False
    ended: str | None = field(default=None)
    statement: Statement | None = None

    def formats_for(self, count: int) -> list[int]:
        """One format for each of ``count`` columns: those given, the one given for all, or text.

        08P01  another number of formats
        """
        if not self.formats:
            return [0] * count
        if len(self.formats) == 1:
            return list(self.formats) * count
        if len(self.formats) != count:
            raise ProtocolViolation(f"bind message has {len(self.formats)} result formats but query has {count} columns")
        return list(self.formats)
