"""The log of commits: writing the next one, which only one writer can, and reading on.

**The fence.** Commit n+1 is written put-if-absent. Whoever finds it taken does not lead any longer.
**A lost reply is not a lost write.** A commit carries its writer's nonce; a retried write that finds its own bytes under
the name has succeeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lake.clock import Clock
from lake.errors import DataCorrupted, IoFailure, NotLeading
from lake.metrics import COMMIT_SECONDS, COMMITS
from lake.storage.catalog.changes import Commit
from lake.storage.commits.commit import COMMIT_FOLDER, commit_name, decode, encode
from lake.storage.faults import crash_point
from lake.storage.objects.base import ObjectMissing, ObjectStore, put_once

TRIES: Final = 3  # of a commit whose write failed
PAUSE_SECS: Final = 0.05  # before the second try; doubled for each further one
READ_AHEAD: Final = 64  # commits asked for at once when their number is not known


class Log:
    """The commits of one lake."""

    def __init__(self, store: ObjectStore, clock: Clock, pool: ThreadPoolExecutor) -> None:
        self._store = store
        self._clock = clock
        self._pool = pool

    def append(self, commit: Commit) -> int:
        """Writes ``commit`` under its number; answers its bytes.

        57P03  another leader has written that number
        58030  the store failed; the commit is there or not: ``find`` tells
        """
        data = encode(commit)
        crash_point("commit-encoded")
        started = self._clock.monotonic()
        self.write(commit.number, data)
        crash_point("commit-written")
        COMMITS.add()
        COMMIT_SECONDS.observe(self._clock.monotonic() - started)
        return len(data)

    def write(self, number: int, data: bytes) -> None:
        """Writes encoded bytes as commit ``number``, as ``append`` does."""
        pause = PAUSE_SECS
        for attempt in range(TRIES):
            try:
                if put_once(self._store, commit_name(number), data):
                    return
                raise NotLeading(f"another node leads: it wrote commit {number}")
            except IoFailure:
                if attempt == TRIES - 1:
                    raise
                self._clock.sleep(pause)
                pause *= 2

    def find(self, number: int) -> Commit | None:
        """Commit ``number``, or None if it is not there.

        XX001  it is damaged
        """
        name = commit_name(number)
        try:
            data = self._store.get(name)
        except ObjectMissing:
            return None
        return self._checked(decode(data, name), number)

    def read(self, numbers: Sequence[int]) -> Iterator[Commit]:
        """These commits in their order, fetched in parallel.

        XX001  one is missing or damaged
        """
        for number, commit in zip(numbers, self._pool.map(self.find, numbers)):
            if commit is None:
                raise DataCorrupted(f"object {commit_name(number)} is missing from {self._store.address}")
            yield commit

    def read_on(self, number: int) -> Iterator[Commit]:
        """Commits after ``number``, up to the first that is not there."""
        found = self.find(number + 1)
        while found is not None:
            yield found
            ahead = range(found.number + 1, found.number + 1 + READ_AHEAD)
            found = None
            for commit in self._pool.map(self.find, ahead):
                if commit is None:
                    return
                yield commit
                found = self.find(commit.number + 1) if commit.number == ahead[-1] else None

    def numbers(self, after: int = 0) -> list[int]:
        """Numbers of the commits that are there and greater than ``after``, ascending."""
        found = self._store.list(COMMIT_FOLDER, commit_name(after))
        names = (info.name.removeprefix(COMMIT_FOLDER) for info in found)
        return sorted(int(name) for name in names if name.isdigit())

    def remove(self, numbers: Sequence[int]) -> None:
        """Removes commits that a checkpoint covers, oldest first."""
        for number in numbers:
            self._store.delete(commit_name(number))
            crash_point("commits-removed")

    def _checked(self, commit: Commit, number: int) -> Commit:
        if commit.number != number:
            raise DataCorrupted(f"{commit_name(number)} holds commit {commit.number}")
        return commit
