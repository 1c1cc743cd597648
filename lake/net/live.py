"""Live queries: run at once, and again after each commit that changes a table they read.

    commit ── a table of some live query? ── its topic runs once for all who asked the same ── answer changed? ── readers

A topic keeps its newest answer and no other, so a reader that is slow skips answers and holds nobody. On a busy table a
topic runs at most once in ``every_ms``. Spec: HTTP, Events (``/live``).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Protocol, TypeVar

from lake.db.feed import touched_by
from lake.db.live import LiveQuery
from lake.db.result import Result
from lake.errors import LakeError, TooManyRequests
from lake.exec.context import Cancellation
from lake.storage.catalog.changes import DEFINITIONS, Commit
from lake.storage.catalog.state import State

T = TypeVar("T")

TOPICS_MAX: Final = 10_000  # of one node
EVERY_MS: Final = 100

Encode = Callable[[Result], bytes]


class Worker(Protocol):
    """Runs blocking work on a thread: the node."""

    def call(self, work: Callable[[], T]) -> Awaitable[T]:
        """What ``work`` answers."""
        ...


class Topic:
    """One query with its newest answer.

    answer   encoded rows, None before the first
    at       the commit that was read
    turn     counts answers unlike the one before; a reader that has seen this turn has seen the answer
    failure  what ended it
    """

    def __init__(self, query: LiveQuery, every_secs: float, encode: Encode) -> None:
        self.query = query
        self.every_secs = every_secs
        self.encode = encode
        self.answer: bytes | None = None
        self.at = 0
        self.turn = 0
        self.failure: LakeError | None = None
        self.readers: set[asyncio.Event] = set()
        self.is_wanted = True
        self.running: asyncio.Task[None] | None = None
        self.cancellation = Cancellation()

    def wake(self) -> None:
        """Wakes all readers."""
        for event in self.readers:
            event.set()


class Lives:
    """The live queries of one node; everything but ``committed`` runs on the node's loop."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._topics: dict[Hashable, Topic] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.stopped = False
        self._lock = threading.Lock()
        self._touched: set[int] = set()  # tables of commits that the loop has not looked at
        self._defined = False  # whether one of them changed a definition

    def committed(self, commit: Commit, state: State) -> None:
        """Told of each commit, on the thread that commits."""
        if not self._topics or self._loop is None:
            return
        touched = touched_by(commit)
        defines = any(isinstance(change, DEFINITIONS) for change in commit.changes)
        with self._lock:
            is_told = bool(self._touched) or self._defined
            self._touched |= touched
            self._defined |= defines
        if not is_told and (touched or defines):
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._look)

    def join(
        self, key: Hashable, make: Callable[[], LiveQuery], every_ms: int, encode: Encode, reader: asyncio.Event
    ) -> Topic:
        """The topic of a query, made on first use; ``reader`` is set whenever it has something to say.

        53300  too many live queries
        """
        self._loop = asyncio.get_running_loop()
        topic = self._topics.get(key)
        if topic is None:
            if len(self._topics) >= TOPICS_MAX:
                raise TooManyRequests(f"this node runs {TOPICS_MAX} live queries already")
            topic = self._topics[key] = Topic(make(), every_ms / 1_000, encode)
            topic.running = asyncio.ensure_future(self._run(key, topic))
        topic.readers.add(reader)
        return topic

    def leave(self, key: Hashable, topic: Topic, reader: asyncio.Event) -> None:
        """A reader goes; the last one ends the query."""
        topic.readers.discard(reader)
        if not topic.readers:
            topic.cancellation.stop("nobody reads this live query any longer")
            self._forget(key, topic)
            if topic.running is not None:
                topic.running.cancel()

    def stop(self) -> None:
        """Ends all of them."""
        self.stopped = True
        for topic in self._topics.values():
            topic.wake()

    @property
    def running(self) -> int:
        """How many queries there are."""
        return len(self._topics)

    def _forget(self, key: Hashable, topic: Topic) -> None:
        if self._topics.get(key) is topic:
            del self._topics[key]

    def _look(self) -> None:
        with self._lock:
            touched, self._touched = self._touched, set()
            defined, self._defined = self._defined, False
        for key, topic in self._topics.items():
            tables = topic.query.tables
            if defined or tables is None or not tables.isdisjoint(touched):
                topic.is_wanted = True
                if topic.running is None:
                    topic.running = asyncio.ensure_future(self._run(key, topic))

    async def _run(self, key: Hashable, topic: Topic) -> None:
        loop = asyncio.get_running_loop()
        try:
            while topic.is_wanted:
                topic.is_wanted = False
                started = loop.time()
                at, answer = await self._worker.call(lambda: _answer(topic))
                if answer != topic.answer:
                    topic.answer, topic.at = answer, at
                    topic.turn += 1
                    topic.wake()
                # The pause after a run: commits that come within it are one reason to run again.
                await asyncio.sleep(max(0.0, started + topic.every_secs - loop.time()))
        except LakeError as failure:
            topic.failure = failure
            self._forget(key, topic)
            topic.wake()
        finally:
            topic.running = None


def _answer(topic: Topic) -> tuple[int, bytes]:
    result = topic.query.run(topic.cancellation)
    try:
        return result.version, topic.encode(result)
    finally:
        result.close()
