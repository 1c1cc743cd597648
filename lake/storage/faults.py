"""Named instants at which a test may kill the process, to prove that what was acknowledged is there afterwards.

    crash_point("commit-written")      in the code: nothing happens, at the cost of one comparison
    arm("commit-written", after=3)     in a test's process: the third time, SIGKILL to itself

Nothing here reads the environment; the program arms a point at its start when its configuration says so.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Final

CRASH_POINTS: Final = (
    "segment-written",  # a large flush is an object; no commit names it
    "commit-encoded",  # a round is put together; nothing is written
    "commit-linked",  # the commit has its name; the folder is not synced
    "commit-written",  # the commit is durable; nobody was told
    "commit-applied",  # the state has it; nobody was told
    "term-claimed",  # an election object is written; the new leader has no commit yet
    "checkpoint-written",  # a checkpoint is durable; older ones are still there
    "commits-removed",  # some of the commits that a checkpoint covers are gone
    "tier-files-written",  # the tail is in files that no commit names
    "tier-committed",  # files are in the catalog; merging and expiry have not run
    "merge-file-written",  # eight files are one, which no commit names
    "compact-files-written",  # generations of a keyed table are one, which no commit names
    "manifest-written",  # a manifest that no commit names
    "bulk-files-written",  # files of a bulk write that no commit names
    "purge-file-written",  # a sealed file without its old rows, which no manifest lists
    "past-over",  # a dropped table's retention is over; the catalog still keeps it
    "definition-prepared",  # what a definition changes is worked out; nothing is written
    "restore-prepared",  # the rows of a RESTORE are found; nothing is written
    "expire-removed",  # replaced files are gone; the catalog still lists them for removal
)


class _Armed:
    name: str | None = None
    left: int = 0
    lock = threading.Lock()


def arm(name: str, *, after: int = 1) -> None:
    """Makes the process kill itself the ``after``-th time it passes ``name``."""
    assert name in CRASH_POINTS, f"no crash point {name}"
    _Armed.left = after
    _Armed.name = name


def disarm() -> None:
    """Takes back ``arm``."""
    _Armed.name = None


def crash_point(name: str) -> None:
    """The process may die here, if ``arm`` said so."""
    if _Armed.name != name:
        return
    with _Armed.lock:
        _Armed.left -= 1
        if _Armed.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
