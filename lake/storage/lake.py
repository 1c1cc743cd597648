"""Lake: one lake, opened: its newest state, snapshots of it, and, where this process leads, its writer.

    lake = Lake.open("./demo", clock=SystemClock())
    lake.commit([CreateTable(..)])
    lake.submit(Flush(appends=(Append(table.id, batch),), producer="p", seq=1)).result()
    for part in lake.snapshot().table("flights").parts(["dest", "delay"]): part.read()
    lake.close()

A Lake is used by many threads. ``state`` goes forward only.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from lake.clock import Clock, SystemClock
from lake.errors import FeatureNotSupported, LakeError, NotLeading, TooManyRequests
from lake.log import error as log_error
from lake.metrics import COMMIT_SECONDS, COMMITS, HWM, UNTIERED_ROWS
from lake.storage.catalog.changes import AddFiles, Change, Commit, Elected
from lake.storage.catalog.fold import apply
from lake.storage.catalog.manifests import Manifests
from lake.storage.catalog.model import DataFile, Table
from lake.storage.catalog.state import State
from lake.storage.catalog.statistics import StatisticsCache
from lake.storage.commits import checkpoint, terms
from lake.storage.commits.log import Log
from lake.storage.commits.sequencer import Acknowledged, Append, Flush, Sequencer
from lake.storage.faults import crash_point
from lake.storage.files import Files
from lake.storage.objects.base import ObjectStore
from lake.storage.objects.local import LocalStore
from lake.storage.objects.memory import MemoryStore
from lake.storage.options import StorageOptions
from lake.storage.tables.hot import HotColumns
from lake.storage.tables.keyed import KeyedTables
from lake.storage.tables.lookup import look_up, look_up_values
from lake.storage.tables.read import Footers, Reader, Wanted
from lake.storage.tables.snapshot import Snapshot
from lake.storage.tables.write import Target, Written, write_files
from lake.storage.tiering.upkeep import Upkeep

FETCH_THREADS: Final = 16  # requests in flight while a lake is opened
BACKLOG_WAIT_SECS: Final = 30.0  # a write waits so long for tiering before it is refused
ELECTION_TRIES: Final = 16
TEMPORARY_SECS: Final = 86_400.0
RELEASE_COMMITS, RELEASE_BYTES = 32, 1 << 20  # a process that ends leaves fewer to the next one

Listener = Callable[[Commit, State], None]


class Lake:
    """An opened lake; made by ``Lake.open``."""

    def __init__(self, store: ObjectStore, clock: Clock, options: StorageOptions) -> None:
        self.store = store
        self.clock = clock
        self.options = options
        self._fetchers = ThreadPoolExecutor(FETCH_THREADS, thread_name_prefix="lake-fetch")
        self.writers = ThreadPoolExecutor(options.workers, thread_name_prefix="lake-files")
        self.log = Log(store, clock, self._fetchers)
        self.manifests = Manifests(store)
        self.statistics = StatisticsCache()
        self.keyed = KeyedTables()
        self.files = Files(store, clock, versions=options.file_versions, days=options.file_versions_days)
        self.reader = Reader(store, Footers(), HotColumns(options.hot_bytes, clock.monotonic))
        self._memory = replace(self.reader, waits=False)
        self._changed = threading.Condition()
        self._state, uncovered = checkpoint.open_state(store, self.log)
        self._snapshots: weakref.WeakSet[Snapshot] = weakref.WeakSet()
        self._listeners: list[Listener] = []
        self._sequencer: Sequencer | None = None
        self._term: terms.Term | None = None
        self._uncovered = [uncovered, 0]  # commits and bytes since the newest checkpoint
        self.tiering_wanted = threading.Event()
        self.upkeep_lock = threading.Lock()  # held by the one round of upkeep that runs
        self.upkeep = Upkeep(self)

    @staticmethod
    def open(
        url: str | Path | ObjectStore,
        *,
        clock: Clock | None = None,
        options: StorageOptions | None = None,
        writable: bool = True,
    ) -> Lake:
        """The lake at a folder (made if absent), ``memory:`` or an ObjectStore; with ``writable`` this process leads it.

        0A000  a bucket's URL
        XX001  the lake is damaged
        """
        options = options or StorageOptions()
        clock = clock or SystemClock()
        lake = Lake(open_store(url, clock, options), clock, options)
        if writable:
            lake.lead()
        return lake

    # --- reading ------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The newest state this process knows."""
        return self._state

    def snapshot(self, state: State | None = None) -> Snapshot:
        """All rows at ``state``, by default the newest."""
        taken = Snapshot(
            state or self._state, self.reader, self.manifests, self.statistics, self.keyed, self.clock.now()
        )
        self._snapshots.add(taken)
        return taken

    def peek(self, state: State, table: int, values: Sequence[object], wanted: Sequence[Wanted]) -> list[pa.RecordBatch]:
        """The row of a key of a table at ``state``, as ``TableSnapshot.lookup`` but from memory: an event loop may call it.

        NotInMemory  finding out would take reading a file
        """
        found = state.table_by_id(table)
        return look_up(self.keyed, self._memory, found, state.tails.get(table), values, wanted, self.clock.now())

    def peek_values(
        self, state: State, table: int, values: Sequence[object], wanted: Sequence[Wanted]
    ) -> tuple[Any, ...] | None:
        """The row that ``peek`` answers as Python values, those of its physical types; None where there is none."""
        found = state.table_by_id(table)
        return look_up_values(self.keyed, self._memory, found, state.tails.get(table), values, wanted, self.clock.now())

    def refresh(self) -> State:
        """Reads on what another process committed."""
        if self.leads:
            return self._state
        with self._changed:
            for commit in self.log.read_on(self._state.number):
                self._publish(commit, apply(self._state, commit), 0)
            newest = max(checkpoint.checkpoint_numbers(self.store), default=0)
            if newest > self._state.number:
                # The commits in between are gone already: this reader slept through their removal.
                self._state, self._uncovered[0] = checkpoint.open_state(self.store, self.log)
                self._changed.notify_all()
        return self._state

    def number_at(self, time: int) -> int:
        """The newest commit at or before ``time``, in microseconds; 0 if the lake does not know.

        Exact while the commits around it are kept, else to the entries of the time index.
        """
        state = self._state
        number = state.number_at(time)
        if number in (0, state.number):
            return number
        for commit in self.log.read_on(number):
            if commit.time > time:
                break
            number = commit.number
        return number

    def wait_for(self, number: int, timeout: float) -> bool:
        """Whether commit ``number`` is visible within ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._state.number >= number, timeout)

    def on_commit(self, listener: Listener) -> Callable[[], None]:
        """Calls ``listener`` after each commit, in order, on the thread that commits: it must be quick.

        Answers a function that ends it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def find_leader(self) -> str | None:
        """The address of a node that serves this lake, or None."""
        return terms.find_address(self.store, self.clock)

    # --- writing ------------------------------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """Whether this process may commit, as far as it knows."""
        return self._sequencer is not None and self._sequencer.leads

    def submit(self, flush: Flush) -> Future[Acknowledged]:
        """Hands a flush to the sequencer; its future answers when the flush is durable and visible.

        53300  too many flushes wait
        57P03  this process does not lead
        """
        return self._leading().submit(flush)

    def commit_flush(self, flush: Flush) -> Acknowledged:
        """``submit`` and its answer; nothing changes threads where nobody else commits. Not for an event loop."""
        return self._leading().commit(flush)

    def make_room(self, rows: int) -> None:
        """Returns when ``rows`` more rows may join the tail: past ``backlog``, writers wait for tiering.

        53300  tiering does not keep up
        """
        limit = self.options.backlog
        if self._state.tail_rows == 0 or self._state.tail_rows + rows <= limit:
            return
        self.tiering_wanted.set()
        with self._changed:
            fits = self._changed.wait_for(
                lambda: self._state.tail_rows == 0 or self._state.tail_rows + rows <= limit, BACKLOG_WAIT_SECS
            )
        if not fits:
            raise TooManyRequests(
                f"{self._state.tail_rows} rows wait for tiering, and the limit is {limit}", hint="try again"
            )

    def commit(
        self,
        changes: Sequence[Change] = (),
        *,
        appends: Sequence[Append] = (),
        producer: str | None = None,
        seq: int = 0,
        prev: int | None = None,
    ) -> Acknowledged:
        """Commits changes and rows and waits for it."""
        flush = Flush(tuple(appends), tuple(changes), producer=producer, seq=seq, prev=prev)
        return self.commit_flush(flush)

    def write_files(self, table: Table, batches: Iterable[pa.RecordBatch]) -> Written:
        """Writes rows of stored names and physical types straight to files; ``AddFiles`` makes them the table's.

        ``table`` need not be committed yet: its columns and folder are what counts.
        """
        target = Target(self.store, self.clock, table, self.options.codec)
        written = write_files(target, batches, self.writers, workers=self.options.workers)
        crash_point("bulk-files-written")
        return written

    def insert_files(self, table: Table, batches: Iterable[pa.RecordBatch]) -> tuple[Acknowledged, int]:
        """``write_files`` and the commit that records it; answers the commit and the number of rows."""
        written = self.write_files(table, batches)
        return self.commit([AddFiles(table.id, written.files, written.sketches)]), written.rows

    def discard_files(self, files: Sequence[DataFile]) -> None:
        """Removes files of ``write_files`` whose commit was refused.

        Whether it was is asked in the order of commits: behind a flush that may still be on its way, and never where the
        outcome is not known. Files that stay for that reason are orphans, or they are the table's.
        """
        paths = {file.path for file in files}
        unnamed: set[str] = set()

        def look(state: State) -> list[Change | Append]:
            named = (file.path for table in state.stored_tables() for file in self.manifests.all_files(table))
            unnamed.update(paths.difference(named, state.garbage))
            return []

        try:
            self.commit_flush(Flush(prepare=look))
        except LakeError:
            return
        for path in sorted(unnamed):
            self.store.delete(path)

    # --- leading ------------------------------------------------------------------------------------------------------

    def lead(self, address: str = "") -> int:
        """Makes this process the one that commits; answers the term. Whoever led finds out at its next commit."""
        if self.leads and self._term is not None:
            return self._term.term
        self._step_down()
        self.refresh()
        writer = f"{self.clock.random.getrandbits(96):024x}"
        term = terms.claim(self.store, self.clock, writer, address)
        for _ in range(ELECTION_TRIES):
            state = self._state
            now = max(self.clock.now(), state.time)
            first = Commit(state.number + 1, now, term.term, writer, (Elected(term.term, address),))
            try:
                size = self.log.append(first)
            except NotLeading:
                # The leader before this one, or its last commit, was quicker: its commit is part of the lake.
                self.refresh()
                if terms.has_successor(self.store, term.term):
                    raise
                continue
            self._publish(first, apply(state, first), size)
            self._term = term
            self._sequencer = Sequencer(
                self.log,
                self.store,
                self.clock,
                self.options,
                state=lambda: self._state,
                publish=self._publish,
                still_leads=lambda: not terms.has_successor(self.store, term.term),
                writer=writer,
                term=term.term,
            )
            if isinstance(self.store, LocalStore):
                self.store.sweep(self.clock.now() - int(TEMPORARY_SECS * 1e6))
            if self.options.upkeep:
                self.upkeep.start(address or None)
            return term.term
        raise NotLeading("another node keeps writing to the lake")

    def announce(self, address: str) -> None:
        """Says where this leader takes requests; repeat it every ``terms.HEARTBEAT_SECS``."""
        self._leading()
        assert self._term is not None, "a leader has a term"
        self._term = replace(self._term, address=address)
        terms.mark_alive(self.store, self.clock, self._term)

    def release(self) -> None:
        """Steps down: commits what waits, writes a checkpoint, and says so."""
        led = self.leads
        self._step_down()
        if led and self._term is not None:
            if self._uncovered[0] >= RELEASE_COMMITS or self._uncovered[1] >= RELEASE_BYTES:
                self.write_checkpoint()
            terms.mark_left(self.store, self.clock, self._term)
        self._term = None

    def _step_down(self) -> None:
        """Ends the threads of a leader, after what they are at."""
        if self._sequencer is not None:
            self.upkeep.stop()
            self._sequencer.close()
            self._sequencer = None

    def close(self) -> None:
        """Steps down and frees the threads."""
        self.release()
        self._fetchers.shutdown()
        self.writers.shutdown()

    @property
    def term(self) -> int:
        """The term this process leads, or 0."""
        return self._term.term if self._term is not None and self.leads else 0

    # --- upkeep -------------------------------------------------------------------------------------------------------

    def write_checkpoint(self) -> int:
        """Writes a checkpoint of the newest state; answers its commit."""
        with self._changed:
            state, covered = self._state, tuple(self._uncovered)
        checkpoint.write_checkpoint(self.store, state)
        with self._changed:
            self._uncovered[0] -= covered[0]
            self._uncovered[1] -= covered[1]
        return state.number

    def checkpoint_is_due(self) -> bool:
        """Whether enough commits or bytes have come since the newest checkpoint."""
        commits, size = self._uncovered
        return commits >= self.options.checkpoint_commits or size >= self.options.checkpoint_bytes

    def tier(self) -> int:
        """Moves every row of the tail to files; answers how many there were."""
        return self.upkeep.tier()

    def stats(self) -> dict[str, Any]:
        """Position, and of a leader its commits. Spec: HTTP, Node stats."""
        state = self._state
        found: dict[str, Any] = {"term": state.term, "hwm": state.number, "format": state.format}
        if self.leads:
            found |= {
                "untiered_rows": state.tail_rows,
                "commits": int(COMMITS.value()),
                "commit_ms_p50": round(COMMIT_SECONDS.quantile(0.5) * 1_000, 3),
                "commit_ms_p95": round(COMMIT_SECONDS.quantile(0.95) * 1_000, 3),
            }
        return found

    def pinned(self) -> int:
        """The oldest commit that a living snapshot reads."""
        return min((taken.state.number for taken in list(self._snapshots)), default=self._state.number)

    def _publish(self, commit: Commit, state: State, size: int) -> None:
        with self._changed:
            self._state = state
            self._uncovered[0] += 1
            self._uncovered[1] += size
            self._changed.notify_all()
        HWM.set(state.number)
        UNTIERED_ROWS.set(state.tail_rows)
        for listener in list(self._listeners):
            try:
                listener(commit, state)
            except Exception as failure:
                # The commit is durable and its writers are told so, whatever becomes of those who follow it.
                log_error("a follower of commits failed", failure, commit=commit.number)

    def _leading(self) -> Sequencer:
        if self._sequencer is None:
            raise NotLeading("this process does not lead the lake")
        return self._sequencer


def open_store(url: str | Path | ObjectStore, clock: Clock, options: StorageOptions) -> ObjectStore:
    """The store that a URL or path means."""
    if not isinstance(url, str | Path):
        return url
    text = str(url)
    if text.startswith("memory:"):
        return MemoryStore(clock)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if "://" in text:
        raise FeatureNotSupported(f"lakes in buckets are not supported: {text}")
    return LocalStore(text, sync=options.sync)
