"""Feeds of tables to many readers: each commit is read and encoded once, whoever watches.

    commit ── touched table has watchers? ── one thread reads and encodes what is new ── ring of chunks ── watchers

The commit's thread only looks whether anybody watches a table. What follows is bounded: a topic keeps RING_BYTES of the
newest chunks, and a watcher holds nothing but its position. One that is slower than the ring, or a commit larger than it, is
read from the table itself, at the watcher's own pace, which holds nobody else.
Spec: HTTP, Events.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from lake.db.feed import Batch, Feed, touched_by
from lake.errors import LakeError, TooManyRequests
from lake.storage.catalog.changes import Commit
from lake.storage.catalog.state import State

T = TypeVar("T")

RING_BYTES: Final = 8 << 20  # of one topic
CHUNKS_MAX: Final = 4_096
WATCHERS_MAX: Final = 20_000  # of one node
ADVANCE_SECS: Final = 5.0  # a topic without news moves its position on, so that it stays within what is kept

Encode = Callable[[Batch], bytes]


class Worker(Protocol):
    """Runs blocking work on a thread: the node."""

    def call(self, work: Callable[[], T]) -> Awaitable[T]:
        """What ``work`` answers."""
        ...


class Chunk(Struct, frozen=True):
    """Encoded changes after commit ``begin``; with them everything up to ``upto`` has been told.

    A commit too large for one chunk comes in several, of which only the last has another ``upto`` than ``begin``.
    """

    begin: int
    upto: int
    data: bytes


class _Topic:
    """One feed that somebody watches: its newest chunks, and who waits for the next.

    position  the newest commit that it has told
    """

    def __init__(self, feed: Feed, encode: Encode, position: int) -> None:
        self.feed = feed
        self.encode = encode
        self.position = position
        self.chunks: deque[Chunk] = deque()
        self.bytes = 0
        self.changed = asyncio.Event()
        self.watchers = 0
        self.failure: LakeError | None = None
        self.reading: asyncio.Task[None] | None = None
        self.wanted = False
        self.read_at = 0.0

    def add(self, chunk: Chunk) -> None:
        """Takes what is new; the oldest chunks make room."""
        if not chunk.data and self.chunks and not self.chunks[-1].data:
            chunk = Chunk(self.chunks.pop().begin, chunk.upto, b"")
        self.chunks.append(chunk)
        self.bytes += len(chunk.data)
        while len(self.chunks) > 1 and (self.bytes > RING_BYTES or len(self.chunks) > CHUNKS_MAX):
            self.bytes -= len(self.chunks.popleft().data)
        self.position = chunk.upto

    def skip(self, upto: int) -> None:
        """Goes on behind commits that are too large: watchers read them themselves."""
        self.chunks.clear()
        self.bytes, self.position = 0, upto

    def wake(self) -> None:
        """Wakes who waits."""
        self.changed.set()
        self.changed = asyncio.Event()

    def after(self, position: int) -> list[Chunk] | None:
        """The chunks after a position; None where some of them are not there any longer."""
        found: list[Chunk] = []
        for chunk in reversed(self.chunks):
            if chunk.upto <= position:
                break
            found.append(chunk)
        if not found:
            return [] if position >= self.position else None
        first = found[-1]
        return found[::-1] if first.begin == position or (first.begin <= position and not first.data) else None


class Feeds:
    """The topics of one node; everything but ``committed`` runs on the node's loop."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._topics: dict[tuple[int, bool, Encode], _Topic] = {}
        self._watched: frozenset[int] = frozenset()  # tables; read on the thread that commits
        self._loop: asyncio.AbstractEventLoop | None = None
        self._count = 0
        self._stopped = False

    def committed(self, commit: Commit, state: State) -> None:
        """Told of each commit, on the thread that commits."""
        watched, loop = self._watched, self._loop
        if not watched or loop is None:
            return
        touched = touched_by(commit) & watched
        if touched:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._look, touched)

    async def watch(self, feed: Feed, after: int | None, encode: Encode) -> AsyncIterator[Chunk]:
        """Chunks of a feed for as long as somebody asks for them.

        22023  the position is no longer kept      42P01  the table was dropped      53300  too many watchers
        """
        if self._count >= WATCHERS_MAX:
            raise TooManyRequests(f"this node has {WATCHERS_MAX} watchers already")
        self._loop = asyncio.get_running_loop()
        position = await self._worker.call(lambda: feed.start(after))
        key = (feed.table, feed.old, encode)
        topic = self._topics.get(key)
        if topic is None:
            topic = self._topics[key] = _Topic(feed, encode, position)
        topic.watchers += 1
        self._count += 1
        self._watched = frozenset(id for id, _, _ in self._topics)
        self._look({feed.table})
        try:
            yield Chunk(position, position, b"")
            async for chunk in self._follow(topic, position):
                yield chunk
        finally:
            self._count -= 1
            topic.watchers -= 1
            if not topic.watchers:
                self._forget(key, topic)

    def stop(self) -> None:
        """Ends every watch after what it has been given."""
        self._stopped = True
        for topic in self._topics.values():
            topic.wake()

    @property
    def watchers(self) -> int:
        """How many watch."""
        return self._count

    async def _follow(self, topic: _Topic, position: int) -> AsyncIterator[Chunk]:
        while not self._stopped:
            changed = topic.changed
            found = topic.after(position)
            if found is None:
                async for chunk in self._catch_up(topic, position):
                    position = chunk.upto
                    yield chunk
                continue
            for chunk in found:
                position = chunk.upto
                yield chunk
            if changed is not topic.changed:
                continue
            if topic.failure is not None:
                raise topic.failure
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), ADVANCE_SECS)
            if asyncio.get_running_loop().time() - topic.read_at > ADVANCE_SECS:
                self._look({topic.feed.table})

    async def _catch_up(self, topic: _Topic, position: int) -> AsyncIterator[Chunk]:
        """What the ring has not, from the table itself, up to where the topic is."""
        pieces = topic.feed.read(position, topic.position)
        begin = position

        def next_chunk() -> Chunk | None:
            piece = next(pieces, None)
            return None if piece is None else Chunk(begin, piece.upto, topic.encode(piece))

        while (chunk := await self._worker.call(next_chunk)) is not None:
            begin = chunk.upto
            yield chunk

    def _forget(self, key: tuple[int, bool, Encode], topic: _Topic) -> None:
        if self._topics.get(key) is topic:
            del self._topics[key]
            self._watched = frozenset(id for id, _, _ in self._topics)

    def _look(self, tables: set[int]) -> None:
        for key, topic in self._topics.items():
            if topic.feed.table in tables:
                topic.wanted = True
                if topic.reading is None:
                    topic.reading = asyncio.ensure_future(self._read(key, topic))

    async def _read(self, key: tuple[int, bool, Encode], topic: _Topic) -> None:
        """Reads what is new for a topic until nothing is."""
        try:
            while topic.wanted and topic.watchers:
                topic.wanted = False
                topic.read_at = asyncio.get_running_loop().time()
                found, failure = await self._worker.call(lambda: _new_chunks(topic))
                for chunk in found:
                    if chunk.begin == topic.position:
                        topic.add(chunk)
                    else:
                        topic.skip(chunk.upto)
                if failure is not None:
                    raise failure
                topic.wake()
        except LakeError as failure:
            topic.failure = failure
            self._forget(key, topic)
            topic.wake()
        finally:
            topic.reading = None


def _new_chunks(topic: _Topic) -> tuple[list[Chunk], LakeError | None]:
    """What a topic has not told yet, as far as the ring can take it; commits larger than it are left out."""
    found: list[Chunk] = []
    begin, size, is_large = topic.position, 0, False
    try:
        for piece in topic.feed.read(topic.position):
            if is_large or piece.upto == begin or size > RING_BYTES:
                # Who watches reads this commit, and what is further behind, alone.
                is_large = piece.upto == begin
                found, size = [Chunk(-1, piece.upto, b"")], 0
            else:
                data = topic.encode(piece) if piece.rows.num_rows else b""
                found.append(Chunk(begin, piece.upto, data))
                size += len(data)
            begin = piece.upto
    except LakeError as failure:
        return found, failure
    return found, None
