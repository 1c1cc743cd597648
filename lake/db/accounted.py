"""A statement's account: it is counted while it runs, and noted when it has ended.

It ends when its answer was read to its end, given up, or failed. Where nothing is counted and nothing recorded, an account
does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from lake.db.passing import close
from lake.db.quotas import Turn
from lake.db.recorder import Entry
from lake.db.result import Result
from lake.db.statements import STATEMENTS
from lake.errors import LakeError
from lake.sql import ast

if TYPE_CHECKING:
    from lake.db.session import Session


class Origin(NamedTuple):
    """Where a statement comes from: the door, the address of its client, the id of its session."""

    door: str = ""
    address: str = ""
    session: str = ""


NOWHERE: Final = Origin()


class Accounted:
    """The account of one statement."""

    def __init__(self, session: Session, stmt: ast.Statement, text: str) -> None:
        self._session = session
        self._stmt = stmt
        self._text = text
        self.turn: Turn | None = None
        self._recorder = session.database.recorder
        clock = session.database.clock
        self._at, self._started = (clock.now(), clock.monotonic()) if self._recorder is not None else (0, 0.0)

    def follow(self, result: Result) -> Result:
        """The statement's result, whose end ends the account."""
        if self._recorder is None and self.turn is None:
            return result
        if result.is_query:
            result.source = self._passing(result.source, result.version)
        else:
            self.end(result.count, result.version)
        return result

    def fail(self, error: LakeError) -> None:
        """Ends the account of a statement that failed."""
        self.end(None, 0, error)

    def _passing(self, batches: Iterable[pa.RecordBatch], version: int) -> Iterator[pa.RecordBatch]:
        rows, failure = 0, None
        try:
            for batch in batches:
                rows += batch.num_rows
                yield batch
        except LakeError as error:
            failure = error
            raise
        finally:
            close(batches)
            self.end(rows, version, failure)

    def end(self, rows: int | None, version: int, error: LakeError | None = None) -> None:
        """Ends the account, once."""
        if self.turn is not None:
            self.turn.leave()
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        session, handler = self._session, STATEMENTS.get(type(self._stmt))
        ms = round((session.database.clock.monotonic() - self._started) * 1_000, 3)
        sqlstate, message = ("", "") if error is None else (error.sqlstate, error.message)
        if error is not None:
            error.is_recorded = True
        recorder.note(
            Entry(
                self._at, ms, session.principal.user, *session.origin, handler.audit if handler else "misc", self._text,
                sqlstate, message, rows, version,
            )
        )  # fmt: skip
