"""Group commit: all waiting flushes are put in order, into one commit, under one fence; one round runs at a time.

    writers      A B C          D E F G            H
    commits        [A]   [B C D]   ......[E F G H]......      while one is in flight the next one fills; there is no timer

A writer that finds nobody committing and nobody waiting runs the round of its own flush; every other round is the writer
thread's, which takes all that came meanwhile.

Exactly once, for every kind of writer: a flush may name a producer and its ``seq``. One that is known already is
answered as a duplicate and writes nothing; with ``prev`` it applies only if that is the producer's last. Rows and
progress are in the same commit, so they are there together or not at all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

import msgspec
import pyarrow as pa
from msgspec import Struct

from lake.clock import Clock
from lake.errors import (
    DiskFull,
    InvalidParameter,
    InvalidText,
    IoFailure,
    NotLeading,
    SerializationFailure,
    TooManyRequests,
)
from lake.metrics import ROWS_APPENDED
from lake.storage.catalog.changes import Advance, AppendRows, Change, Commit
from lake.storage.catalog.fold import Draft
from lake.storage.catalog.model import Table
from lake.storage.catalog.state import State
from lake.storage.commits.log import Log
from lake.storage.faults import crash_point
from lake.storage.objects.base import ObjectStore
from lake.storage.options import StorageOptions
from lake.storage.tables.columns import aligned
from lake.storage.tail.segment import checksum_of, encode_rows, rows_bytes, segment_name

QUEUE_BYTES_MAX: Final = 256 << 20  # of rows that wait for a commit
ROUND_FLUSHES_MAX: Final = 4_096
QUIET_SECS: Final = 30.0  # after so long without a commit a leader looks whether it still leads
PRODUCER_BYTES_MAX: Final = 512
SEQ_MAX: Final = (1 << 63) - 1


class Append(Struct, frozen=True):
    """Rows for a table: stored names, physical types. Columns that are left out are NULL.

    definition  the table whose rules the rows were made to hold; where it is another by the time of the commit, they are
                refused
    """

    table: int
    batch: pa.RecordBatch
    definition: Table | None = None


class Flush(Struct, frozen=True):
    """What one writer wants committed, whole or not at all.

    appends   rows, applied before ``changes``
    prepare   called in the order of commits with the state as it is then; answers more changes and rows, or raises,
              and then nothing of the flush is applied. It must be quick: all writers wait for it. Its rows ride in the
              commit up to ``round_bytes``, so that the writer thread does not write segments.
    """

    appends: tuple[Append, ...] = ()
    changes: tuple[Change, ...] = ()
    prepare: Callable[[State], Sequence[Change | Append]] | None = None
    producer: str | None = None
    seq: int = 0
    prev: int | None = None


class Acknowledged(Struct, frozen=True):
    """What became of a flush. Spec: HTTP, Append answer.

    seg   the commit; 0 for a duplicate or a conflict, which wrote nothing
    row   where the flush's first rows start among the commit's rows of that table
    ms    the commit's time in milliseconds
    """

    seg: int
    duplicate: bool = False
    conflict: bool = False
    row: int = 0
    ms: int = 0


class _Rows(Struct, frozen=True):
    """Rows on their way: in memory, and in a segment if they were many."""

    table: int
    batch: pa.RecordBatch
    segment: str | None = None
    checksum: int = 0
    definition: Table | None = None


class _Waiting(Struct):
    flush: Flush
    rows: tuple[_Rows, ...]
    bytes: int
    future: Future[Acknowledged]


class Sequencer:
    """Orders flushes and commits them; the one writer of a lake's log.

    state       the newest committed state, from its owner
    publish     told of each commit and the state after it, in order, before writers are
    still_leads asked after a quiet time; False ends the leadership
    """

    def __init__(
        self,
        log: Log,
        store: ObjectStore,
        clock: Clock,
        options: StorageOptions,
        *,
        state: Callable[[], State],
        publish: Callable[[Commit, State, int], None],
        still_leads: Callable[[], bool],
        writer: str,
        term: int,
    ) -> None:
        self._log = log
        self._store = store
        self._clock = clock
        self._options = options
        self._state = state
        self._publish = publish
        self._still_leads = still_leads
        self._writer = writer
        self._term = term
        self._queue: deque[_Waiting] = deque()
        self._queue_bytes = 0
        self._changed = threading.Condition()
        self._committing = False  # whether a round runs
        self._closing = False
        self._ended: NotLeading | None = None
        self._uncertain: tuple[Commit, State] | None = None
        self._committed_at = clock.monotonic()
        self._thread = threading.Thread(target=self._run, name="lake-commits", daemon=True)
        self._thread.start()

    @property
    def leads(self) -> bool:
        """Whether flushes are taken."""
        return self._ended is None and not self._closing

    def submit(self, flush: Flush) -> Future[Acknowledged]:
        """Hands a flush over to the writer thread; large rows are written as segments first, on the caller's thread.

        22023  ``seq`` below 1, or a producer's name too long
        53300  too many flushes wait
        57P03  this process does not lead any longer
        """
        waiting = self._packed(flush)
        with self._changed:
            self._enqueue(waiting)
        return waiting.future

    def commit(self, flush: Flush) -> Acknowledged:
        """As ``submit``, and waits for the answer: where nobody else commits, without handing anything over."""
        waiting = self._packed(flush)
        with self._changed:
            is_alone = not self._committing and not self._queue and _may_lead()
            if is_alone:
                self._check_leading()
                self._committing = True
            else:
                self._enqueue(waiting)
        if is_alone:
            self._run_round([waiting])
        return waiting.future.result()

    def close(self) -> None:
        """Commits what waits, then takes no more."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _enqueue(self, waiting: _Waiting) -> None:
        self._check_leading()
        if len(self._queue) >= self._options.queue_flushes or self._queue_bytes > QUEUE_BYTES_MAX:
            raise TooManyRequests("too many writes are waiting", hint="try again")
        self._queue.append(waiting)
        self._queue_bytes += waiting.bytes
        if not self._committing:
            self._changed.notify()

    # --- rounds -------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """The writer thread."""
        while True:
            with self._changed:
                while self._committing or not (self._queue or self._closing or self._ended):
                    self._changed.wait()
                if not self._queue:
                    return
                self._committing = True
                taken = self._take()
            self._run_round(taken)

    def _run_round(self, taken: list[_Waiting]) -> None:
        """Commits; whatever fails, each writer of the round is told, and the next round may begin."""
        try:
            self._commit(taken)
        except NotLeading as error:
            self._end(error, taken)
        except Exception as error:
            for waiting in taken:
                _fail(waiting, error)
        finally:
            with self._changed:
                self._committing = False
                if self._queue or self._closing or self._ended:
                    self._changed.notify()

    def _take(self) -> list[_Waiting]:
        taken: list[_Waiting] = []
        size = 0
        while self._queue and len(taken) < ROUND_FLUSHES_MAX:
            if taken and size + self._queue[0].bytes > self._options.round_bytes:
                break
            taken.append(self._queue.popleft())
            size += taken[-1].bytes
        self._queue_bytes -= size
        return taken

    def _commit(self, taken: list[_Waiting]) -> None:
        """One round: order, encode, write, publish, acknowledge."""
        self._settle_uncertain()
        if self._clock.monotonic() - self._committed_at > QUIET_SECS and not self._still_leads():
            raise NotLeading("another node leads")
        state = self._state()
        now = max(self._clock.now(), state.time)
        taking = _Round(state, now, lambda append: self._pack(append, self._options.round_bytes))
        for waiting in taken:
            taking.add(waiting)
        taking.settle()
        if taking.changes:
            commit = Commit(
                state.number + 1, now, self._term, self._writer, tuple(taking.changes), tuple(taking.pieces)
            )
            after = taking.draft.state()
            try:
                size = self._log.append(commit)
            except (IoFailure, DiskFull):
                self._uncertain = (commit, after)
                raise
            self._committed_at = self._clock.monotonic()
            self._publish(commit, after, size)
            crash_point("commit-applied")
            ROWS_APPENDED.add(taking.rows_appended)
        # Refusals too come behind the commit: what refused a flush may be in it, and whoever tries again shall see that.
        for waiting, error in taking.refused:
            _fail(waiting, error)
        for waiting, answer in taking.answers:
            if not waiting.future.done():
                waiting.future.set_result(answer)

    def _settle_uncertain(self) -> None:
        """Finds out about a commit whose write failed with an unknown outcome, before its number is used again."""
        if self._uncertain is None:
            return
        commit, after = self._uncertain
        found = self._log.find(commit.number)
        if found is not None and (found.writer, found.time, found.changes) != (
            commit.writer,
            commit.time,
            commit.changes,
        ):
            raise NotLeading(f"another node leads: it wrote commit {commit.number}")
        if found is not None:
            self._publish(commit, after, 0)
        self._uncertain = None

    def _end(self, error: NotLeading, taken: list[_Waiting]) -> None:
        with self._changed:
            self._ended = error
            taken = [*taken, *self._queue]
            self._queue.clear()
            self._queue_bytes = 0
        for waiting in taken:
            _fail(waiting, error)

    # --- on the caller's thread ---------------------------------------------------------------------------------------

    def _packed(self, flush: Flush) -> _Waiting:
        if flush.producer is not None and not 1 <= flush.seq <= SEQ_MAX:
            raise InvalidParameter(f"seq counts from 1 to {SEQ_MAX}, and {flush.seq} is not between")
        if flush.producer is not None and len(flush.producer.encode("utf-8", "replace")) > PRODUCER_BYTES_MAX:
            raise InvalidParameter(f"a producer's name has at most {PRODUCER_BYTES_MAX} bytes")
        self._check_leading()
        rows = tuple([self._pack(append, self._options.inline_bytes) for append in flush.appends if append.batch.num_rows])
        return _Waiting(flush, rows, sum([_inline_bytes(item) for item in rows]), Future())

    def _check_leading(self) -> None:
        if self._ended is not None:
            raise NotLeading(self._ended.message)
        if self._closing:
            raise NotLeading("this node does not lead any longer")

    def _pack(self, append: Append, inline_bytes: int) -> _Rows:
        """Rows as they go into the tail: text is not coded, and more than ``inline_bytes`` are in a segment."""
        batch = _plain(append.batch)
        if rows_bytes(batch) <= inline_bytes:
            return _Rows(append.table, batch, definition=append.definition)
        data = encode_rows(batch)
        name = segment_name(self._clock)
        self._store.put(name, data)
        crash_point("segment-written")
        return _Rows(append.table, batch, name, checksum_of(data), append.definition)


class _Round:
    """The flushes of one commit, being put in order."""

    def __init__(self, state: State, now: int, pack: Callable[[Append], _Rows]) -> None:
        self.draft = Draft(state, state.number + 1, now)
        self.changes: list[Change] = []
        self.pieces: list[pa.RecordBatch] = []
        self.answers: list[tuple[_Waiting, Acknowledged]] = []
        self.refused: list[tuple[_Waiting, Exception]] = []
        self.rows_appended = 0
        self._pack = pack
        self._inline: dict[int, list[pa.RecordBatch]] = {}  # not yet in ``changes``
        self._rows: dict[int, int] = {}  # rows of this commit by table

    def add(self, waiting: _Waiting) -> None:
        """Takes a flush in, or answers it without; an error is the flush's own and leaves the round as it was."""
        flush = waiting.flush
        refused = self._known(flush)
        if refused is not None:
            self.answers.append((waiting, refused))
            return
        if flush.prepare is not None or flush.changes:
            self.settle()
        mark = (self.draft.mark(), len(self.changes), len(self.pieces), self._rows.copy(), self.rows_appended)
        try:
            self._take(waiting)
        except Exception as error:  # whatever a flush's own check raises is its writer's to see
            assert not self._inline or (flush.prepare is None and not flush.changes)
            self.draft.reset(mark[0])
            del self.changes[mark[1] :]
            del self.pieces[mark[2] :]
            self._rows, self.rows_appended = mark[3], mark[4]
            self.refused.append((waiting, error))

    def settle(self) -> None:
        """Puts the small appends seen so far into the commit, one piece for each table."""
        for id, batches in self._inline.items():
            batch = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
            change = AppendRows(id, batch.num_rows, self.draft.next_row_id, inline=len(self.pieces))
            self.pieces.append(batch)
            self.changes.append(change)
            self.draft.append(change, batch)
        self._inline = {}

    def _known(self, flush: Flush) -> Acknowledged | None:
        """The answer of a flush that the producer's progress refuses."""
        if flush.producer is None:
            return None
        progress = self.draft.producers.get(flush.producer)
        last = progress.seq if progress else 0
        if progress is not None and flush.seq <= last:
            return Acknowledged(0, duplicate=True, ms=progress.at // 1_000)
        if flush.prev is not None and flush.prev != last:
            return Acknowledged(0, conflict=True)
        return None

    def _take(self, waiting: _Waiting) -> None:
        flush = waiting.flush
        more: Sequence[Change | Append] = flush.prepare(self.draft.state()) if flush.prepare is not None else ()
        # Everything is checked before the first row is taken, because rows that wait to be settled are not taken back.
        rows = [self._checked(item) for item in waiting.rows]
        advance = Advance(flush.producer, flush.seq) if flush.producer is not None else None
        if advance is not None:
            _check_text(advance)
        first = rows[0] if rows else next((item for item in more if isinstance(item, Append)), None)
        row = self._rows.get(first.table, 0) if first is not None else 0
        for item in rows:
            self._add_rows(item)
        if flush.changes or more:
            self.settle()
        for change in (*flush.changes, *more):
            if isinstance(change, Append):
                if change.batch.num_rows:
                    self._add_rows(self._checked(self._pack(change)))
                    self.settle()
            else:
                _check_text(change)
                self.draft.apply(change)
                self.changes.append(change)
        if advance is not None:
            self.draft.apply(advance)
            self.changes.append(advance)
        answer = Acknowledged(self.draft.number, row=row, ms=self.draft.time // 1_000)
        self.answers.append((waiting, answer))

    def _add_rows(self, rows: _Rows) -> None:
        if rows.segment is None:
            waiting = self._inline.get(rows.table)
            if waiting and waiting[-1].schema != rows.batch.schema:
                self.settle()
            self._inline.setdefault(rows.table, []).append(rows.batch)
        else:
            self.settle()
            count = rows.batch.num_rows
            change = AppendRows(rows.table, count, self.draft.next_row_id, segment=rows.segment, checksum=rows.checksum)
            self.changes.append(change)
            self.draft.append(change, rows.batch)
        self._rows[rows.table] = self._rows.get(rows.table, 0) + rows.batch.num_rows
        self.rows_appended += rows.batch.num_rows

    def _checked(self, rows: _Rows) -> _Rows:
        table = self.draft.table(rows.table)
        if rows.definition is not None and not is_same(table, rows.definition):
            raise SerializationFailure(f'table "{table.name}" was changed while rows were written to it')
        return _Rows(rows.table, aligned(table, rows.batch), rows.segment, rows.checksum)


def is_same(table: Table, before: Table) -> bool:
    """Whether a table demands of its rows what it demanded before: the same columns and rules."""
    if table.columns is before.columns and table.constraints is before.constraints:
        return True
    return table.columns == before.columns and table.constraints == before.constraints


def _check_text(change: Change) -> None:
    """Refuses, to its own writer, what could not be encoded with the round.

    22P02  a name or text that is not Unicode
    """
    try:
        msgspec.json.encode(change)
    except UnicodeEncodeError as error:
        raise InvalidText(f"a name or text is not valid Unicode: {error.reason}") from error


def _may_lead() -> bool:
    """Whether the thread may run a round: not the main one, where control-C may come up between a commit and its state."""
    return threading.current_thread() is not threading.main_thread()


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    if not any(pa.types.is_dictionary(type) for type in batch.schema.types):
        return batch
    arrays = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _inline_bytes(rows: _Rows) -> int:
    return 0 if rows.segment else rows_bytes(rows.batch)


def _fail(waiting: _Waiting, error: BaseException) -> None:
    if not waiting.future.done():
        waiting.future.set_exception(error)
