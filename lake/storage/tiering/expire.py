"""What may be removed from the store, and when.

    past      dropped tables and rows from before a TRUNCATE: after the table's retention they are garbage
    garbage   objects that a commit let go of (merged files, tiered segments, dropped tables): after ``retain_secs``, and
              not while a snapshot of this process, taken before that commit, is alive; what a clone still names stays
    orphans   objects below data/ and log/ that neither the state nor its garbage names, left by a kill between a file and
              its commit: when older than ``orphan_secs``, which must be longer than any statement runs
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lake.storage.catalog.changes import Change, Forget, ForgetPast, ForgetProducers
from lake.storage.catalog.manifests import Manifests
from lake.storage.catalog.model import Garbage, Table
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Append, Flush
from lake.storage.faults import crash_point
from lake.storage.objects.base import ObjectStore
from lake.storage.options import StorageOptions
from lake.storage.tail.segment import SEGMENT_FOLDER
from lake.storage.tiering.compact import horizon_of

FORGET_MAX: Final = 10_000  # paths in one commit
DATA_FOLDER: Final = "data/"


def remove_garbage(
    store: ObjectStore,
    manifests: Manifests,
    state: State,
    *,
    now: int,
    retain_secs: float,
    changelog_secs: float = 0.0,
    pinned: int,
) -> Flush | None:
    """Removes garbage that is due; answers the flush that takes it off the list, or None.

    changelog_secs  how long segments of the log stay at least, for feeds
    pinned          oldest commit that a living snapshot of this process reads
    """
    before = now - int(retain_secs * 1e6)
    logged = now - int(max(retain_secs, changelog_secs) * 1e6)
    due = [
        item
        for item in state.garbage.values()
        if item.at <= (logged if item.path.startswith(SEGMENT_FOLDER) else before) and item.number <= pinned
    ][:FORGET_MAX]
    if not due:
        return None
    shared = shared_objects(manifests, state)
    for item in due:
        _remove(store, manifests, item, shared)
    crash_point("expire-removed")

    def forget(newest: State) -> list[Change | Append]:
        # What another table of the family let go of meanwhile is garbage again, and waits for its own time.
        return [Forget(tuple(sorted(item.path for item in due if newest.garbage.get(item.path) == item)))]

    return Flush(prepare=forget)


def forget_past(state: State, *, now: int, options: StorageOptions) -> Flush | None:
    """Lets go of dropped and emptied tables whose retention is over, and of definitions nobody can read at any longer."""
    over = []
    for table in state.past.values():
        keeper = state.stored(table.owner) or table
        secs = keeper.retention_secs(options.keep_secs)
        if table.lost_at + int(max(secs, options.changelog_secs) * 1e6) <= now:
            over.append(table.id)
    horizons = {}
    for table in state.stored_tables():
        horizon = horizon_of(state, table, now, options)
        if table.history and table.history[0].upto < horizon:
            horizons[table.id] = horizon
    if not over and not horizons:
        return None
    crash_point("past-over")
    return Flush(changes=(ForgetPast(tuple(sorted(over)), horizons),))


def forget_producers(state: State, *, now: int, options: StorageOptions) -> Flush | None:
    """Forgets producers that have sent nothing for ``producers_secs``."""
    before = now - int(options.producers_secs * 1e6)
    if not any(progress.at < before for progress in state.producers.values()):
        return None
    return Flush(changes=(ForgetProducers(before),))


def shared_objects(manifests: Manifests, state: State) -> frozenset[str]:
    """Objects that tables with clones name: what one of them lets go of, another may still have."""
    named: set[str] = set()
    for table in state.stored_tables():
        if table.family:
            named |= _named_by(manifests, state, table)
    return frozenset(named)


def remove_orphans(
    store: ObjectStore, manifests: Manifests, newest: Callable[[], State], *, now: int, orphan_secs: float
) -> list[str]:
    """Removes objects that nothing names and that are older than ``orphan_secs``; answers their names.

    ``newest`` is asked for the state once the objects are listed, so that it names every one of them that a commit does.
    """
    before = now - int(orphan_secs * 1e6)
    old = [
        info.name for folder in (DATA_FOLDER, SEGMENT_FOLDER) for info in store.list(folder) if info.modified < before
    ]
    if not old:
        return []
    named = named_objects(store, manifests, newest())
    gone = [name for name in old if name not in named]
    for name in gone:
        store.delete(name)
    return gone


def named_objects(store: ObjectStore, manifests: Manifests, state: State) -> set[str]:
    """Every object below data/ and log/ that a state names, garbage too."""
    named = set(state.garbage)
    for item in state.garbage.values():
        if item.sealed:
            named |= _sealed_files(store, manifests, item)
    for table in state.stored_tables():
        named |= _named_by(manifests, state, table)
    return named


def _named_by(manifests: Manifests, state: State, table: Table) -> set[str]:
    tail = state.tails.get(table.id)
    named = {part.segment for part in tail.newest_first() if part.segment} if tail is not None else set()
    named |= {manifest.path for manifest in table.manifests}
    return named | {file.path for file in manifests.all_files(table)}


def _remove(store: ObjectStore, manifests: Manifests, item: Garbage, shared: frozenset[str]) -> None:
    if item.sealed:
        for path in sorted(_sealed_files(store, manifests, item) - shared):
            store.delete(path)
    if item.path not in shared:
        store.delete(item.path)


def _sealed_files(store: ObjectStore, manifests: Manifests, item: Garbage) -> set[str]:
    """Files of a manifest that is garbage; none if a round that was cut short removed it already, after its files."""
    if store.head(item.path) is None:
        return set()
    return {file.path for file in manifests.files(item.path)}
