"""What may be removed from the store, and when.

    garbage   objects that a commit let go of (merged files, tiered segments, dropped tables): after ``retain_secs``, and
              not while a snapshot of this process, taken before that commit, is alive
    orphans   objects below data/ and log/ that neither the state nor its garbage names, left by a kill between a file and
              its commit: when older than ``orphan_secs``, which must be longer than any statement runs
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lake.storage.catalog.changes import Forget
from lake.storage.catalog.manifests import Manifests
from lake.storage.catalog.model import Garbage
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Flush
from lake.storage.faults import crash_point
from lake.storage.objects.base import ObjectStore
from lake.storage.tail.segment import SEGMENT_FOLDER

FORGET_MAX: Final = 10_000  # paths in one commit
DATA_FOLDER: Final = "data/"


def remove_garbage(
    store: ObjectStore, manifests: Manifests, state: State, *, now: int, retain_secs: float, pinned: int
) -> Flush | None:
    """Removes garbage that is due; answers the flush that takes it off the list, or None.

    pinned  oldest commit that a living snapshot of this process reads
    """
    before = now - int(retain_secs * 1e6)
    due = [item for item in state.garbage.values() if item.at <= before and item.number <= pinned][:FORGET_MAX]
    if not due:
        return None
    for item in due:
        _remove(store, manifests, item)
    crash_point("expire-removed")
    return Flush(changes=(Forget(tuple(sorted(item.path for item in due))),))


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
    for table in state.tables.values():
        named |= {manifest.path for manifest in table.manifests}
        named |= {file.path for file in manifests.all_files(table)}
    for tail in state.tails.values():
        named |= {part.segment for part in tail.newest_first() if part.segment}
    return named


def _remove(store: ObjectStore, manifests: Manifests, item: Garbage) -> None:
    if item.sealed:
        for path in sorted(_sealed_files(store, manifests, item)):
            store.delete(path)
    store.delete(item.path)


def _sealed_files(store: ObjectStore, manifests: Manifests, item: Garbage) -> set[str]:
    """Files of a manifest that is garbage; none if a round that was cut short removed it already, after its files."""
    if store.head(item.path) is None:
        return set()
    return {file.path for file in manifests.files(item.path)}
