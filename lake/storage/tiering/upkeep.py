"""Upkeep of a lake that this process leads: one round after another on a thread of its own.

    tier      rows of the tail to files, at most every ``tier_secs``, at once past ``tier_rows`` rows of a table
    merge     eight small files to one; generations of tables with a key
    seal      files past 128 to manifests
    expire    tables and rows of the past whose retention is over; replaced files and tiered segments that nobody reads
    log       a checkpoint when one is due; commits that checkpoints cover
    orphans   once an hour, and producers that have been silent for long, and versions of stored files
    alive     the leader's mark, every ten seconds, once it has an address
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from lake.errors import NotLeading, SerializationFailure
from lake.log import error as log_error
from lake.storage.catalog.changes import Change
from lake.storage.catalog.state import State
from lake.storage.commits import checkpoint, terms
from lake.storage.commits.sequencer import Append, Flush
from lake.storage.faults import crash_point
from lake.storage.tiering.compact import merge
from lake.storage.tiering.expire import forget_past, forget_producers, remove_garbage, remove_orphans
from lake.storage.tiering.generations import compact
from lake.storage.tiering.tier import fold, seal_all

if TYPE_CHECKING:
    from lake.storage.lake import Lake

STEP_SECS: Final = 1.0
ORPHANS_SECS: Final = 3_600.0
TIER_AT_ROWS: Final = 65_536
MERGE_ROUNDS_MAX: Final = 16  # of one upkeep round


class Upkeep:
    """Runs rounds; ``tier`` and ``round`` may be called from any thread, one runs at a time on a lake.

    ``Lake.upkeep`` is a lake's own, which ``lead`` starts; others on the same lake wait for its rounds.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._address: str | None = None
        start = lake.clock.monotonic()
        self._tiered_at = self._checkpoint_at = self._cleaned_at = start
        self._orphans_at = start - ORPHANS_SECS
        self._beat_at = start - terms.HEARTBEAT_SECS

    def start(self, address: str | None = None) -> None:
        """Starts the thread; with ``address`` it says every ten seconds that this leader takes requests there."""
        self._address = address
        self._beat_at = self._lake.clock.monotonic() - terms.HEARTBEAT_SECS
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="lake-upkeep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after the round that runs."""
        self._stopping.set()
        self._lake.tiering_wanted.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def tier(self) -> int:
        """Moves every row of the tail to files; answers how many there were. ``POST /tier`` and tests call it."""
        with self._lake.upkeep_lock:
            return self._tier()

    def tier_at(self, state: State, table: int) -> list[Change | Append]:
        """Writes what waits of a table in ``state``, few rows, and answers the changes that record it in the same commit.

        For a ``prepare`` that must find the tail empty, on the thread that commits.
        40001  a round runs, or more rows wait than that thread may spend its time on: tier, and try again
        """
        lake = self._lake
        if state.waiting_rows(table) > TIER_AT_ROWS or not lake.upkeep_lock.acquire(blocking=False):
            raise SerializationFailure("rows arrived before files that are older than they")
        try:
            flush = fold(lake.snapshot(state), lake.clock, lake.options, lake.writers, (table,))
        finally:
            lake.upkeep_lock.release()
        return [] if flush is None or flush.prepare is None else list(flush.prepare(state))

    def round(self, *, force: bool = False) -> None:
        """Does what is due; with ``force`` all of it, whatever the time."""
        with self._lake.upkeep_lock:
            now = self._lake.clock.monotonic()
            self._beat(now)
            if force or self._tiering_is_due(now):
                self._tier()
                self._merge()
                self._submit(seal_all(self._lake.snapshot(), self._lake.clock))
            self._clean(now, force)

    def merge(self) -> bool:
        """Merges what is due once; answers whether anything was."""
        with self._lake.upkeep_lock:
            return self._merge_once()

    # --- steps --------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._lake.tiering_wanted.wait(STEP_SECS)
            if self._stopping.is_set():
                return
            try:
                self.round()
            except NotLeading:
                return
            except Exception as failure:
                # The thread outlives a failed round: the next one tries again, and what this one wrote nobody names.
                log_error("upkeep failed", failure)

    def _tiering_is_due(self, now: float) -> bool:
        lake = self._lake
        if lake.tiering_wanted.is_set():
            return True
        if any(tail.rows >= lake.options.tier_rows for tail in lake.state.tails.values()):
            return True
        secs = lake.options.tier_secs  # 0: only when it is asked for
        return secs > 0 and len(lake.state.tails) > 0 and now - self._tiered_at >= secs

    def _tier(self) -> int:
        lake = self._lake
        lake.tiering_wanted.clear()
        self._tiered_at = lake.clock.monotonic()
        snapshot = lake.snapshot()
        rows = snapshot.state.tail_rows
        self._submit(fold(snapshot, lake.clock, lake.options, lake.writers))
        crash_point("tier-committed")
        return rows

    def _merge(self) -> None:
        for _ in range(MERGE_ROUNDS_MAX):
            if not self._merge_once():
                return

    def _merge_once(self) -> bool:
        lake = self._lake
        snapshot = lake.snapshot()
        flushes = [
            merge(snapshot, lake.clock, lake.options, lake.writers),
            compact(snapshot, lake.clock, lake.options, lake.writers),
        ]
        for flush in flushes:
            self._submit(flush)
        return any(flush is not None for flush in flushes)

    def _clean(self, now: float, force: bool) -> None:
        lake, options = self._lake, self._lake.options
        wall = lake.clock.now()
        self._submit(forget_past(lake.state, now=wall, options=options))
        flush = remove_garbage(
            lake.store, lake.manifests, lake.state, now=wall, retain_secs=options.retain_secs,
            changelog_secs=options.changelog_secs, pinned=lake.pinned()
        )
        self._submit(flush)
        if force or (lake.checkpoint_is_due() and now - self._checkpoint_at >= options.checkpoint_secs):
            lake.write_checkpoint()
            self._checkpoint_at = now
        if force or now - self._cleaned_at >= options.gc_secs:
            self._cleaned_at = now
            keep = max(options.gc_secs, options.changelog_secs)
            checkpoint.remove_commits(lake.store, lake.log, lake.state, now=wall, keep_secs=keep)
        if force or now - self._orphans_at >= ORPHANS_SECS:
            self._orphans_at = now
            self._submit(forget_producers(lake.state, now=wall, options=options))
            remove_orphans(lake.store, lake.manifests, lambda: lake.state, now=wall, orphan_secs=options.orphan_secs)
            lake.files.expire()

    def _beat(self, now: float) -> None:
        if self._address is not None and now - self._beat_at >= terms.HEARTBEAT_SECS:
            self._lake.announce(self._address)
            self._beat_at = now

    def _submit(self, flush: Flush | None) -> None:
        if flush is not None:
            self._lake.commit_flush(flush)
