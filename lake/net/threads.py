"""Threads for what blocks: the one way from a coroutine to the layers below, and back.

    await threads.call(work)        work's answer; a LakeError of it, and whatever else goes wrong as XX000
    Stream.next()                   the next piece of an answer, made when it is asked for

Each statement has a thread of its own that mostly waits for the engine's workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Generic, TypeVar, cast

from lake import log
from lake.db.result import Result
from lake.errors import InternalError, LakeError, StatementTooComplex, TooManyRequests
from lake.exec.context import Cancellation
from lake.metrics import STATEMENTS_RUNNING

T = TypeVar("T")

STATEMENTS_MAX: Final = 64  # running at once
WAITING_MAX: Final = 1_024  # statements in line behind those; one more is refused with 53300
GONE: Final = "canceling statement because its caller went away"
TIMED_OUT: Final = "canceling statement due to statement timeout"


class Threads:
    """A pool of threads, how much work is on them or in line for one, and how much they ever took; for one event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(STATEMENTS_MAX, thread_name_prefix="statement")
        self.running = 0
        self.taken = 0

    async def call(self, work: Callable[[], T]) -> T:
        """Runs blocking work on a thread.

        53300  too many statements wait already
        """
        waiting: _Waiting[T] = self._take_in()
        self._pool.submit(waiting.run, work)
        try:
            return await waiting.answer
        finally:
            del waiting  # or a failure, whose trace holds this frame, would hold itself

    async def follow(self, work: Callable[[], Future[T]]) -> T:
        """Runs blocking work on a thread, and waits without one for what the work has set going."""
        waiting: _Waiting[T] = self._take_in()
        self._pool.submit(waiting.follow, work)
        try:
            return await waiting.answer
        finally:
            del waiting

    def background(self, work: Callable[[], object]) -> None:
        """Runs blocking work on a thread, and nobody waits for it."""
        self._pool.submit(_guard, work)

    def close(self) -> None:
        """Takes no more work, and gives up what waits; what runs goes on."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _take_in(self) -> _Waiting[Any]:
        if self.running >= STATEMENTS_MAX + WAITING_MAX:
            raise TooManyRequests(f"{WAITING_MAX} statements are waiting already; try again")
        self.running += 1
        self.taken += 1
        STATEMENTS_RUNNING.set(self.running)
        return _Waiting(self._ended)

    def _ended(self) -> None:
        self.running -= 1
        STATEMENTS_RUNNING.set(self.running)


class _Waiting(Generic[T]):
    """A coroutine that waits for a worker thread: the thread finishes it, and wakes the loop once."""

    def __init__(self, ended: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = ended
        self.answer: asyncio.Future[T] = self._loop.create_future()

    def run(self, work: Callable[[], T]) -> None:
        """On a worker thread: runs ``work``, unless whoever asked has gone."""
        done: T | None = None
        failure: BaseException | None = None
        if not self.answer.cancelled():
            try:
                done = _guard(work)
            except LakeError as error:
                failure = _without_traces(error)
        self._finish(done, failure)

    def follow(self, work: Callable[[], Future[T]]) -> None:
        """On a worker thread: runs ``work``; the future it answers finishes this one."""
        try:
            _guard(work).add_done_callback(self._followed)
        except LakeError as error:
            self._finish(None, error)

    def _followed(self, future: Future[T]) -> None:
        failure = future.exception()
        self._finish(None if failure is not None else future.result(), failure)

    def _finish(self, done: T | None, failure: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it everyone who could wait
            self._loop.call_soon_threadsafe(self._settle, done, failure)

    def _settle(self, done: T | None, failure: BaseException | None) -> None:
        self._ended()
        if self.answer.cancelled():
            return
        if failure is not None:
            self.answer.set_exception(failure)
        else:
            self.answer.set_result(cast(T, done))


class Stream(Generic[T]):
    """An answer that is made piece by piece on worker threads; one reader, which closes it."""

    def __init__(
        self,
        threads: Threads,
        result: Result,
        pieces: Iterator[T],
        cancellation: Cancellation,
        timer: asyncio.TimerHandle | None = None,
    ) -> None:
        self.result = result
        self._threads = threads
        self._pieces = pieces
        self._cancellation = cancellation
        self._timer = timer
        self._one_at_a_time = threading.Lock()
        self._ended = False

    async def next(self) -> T | None:
        """The next piece; None at the end."""
        return await self._threads.call(self._next)

    def close(self) -> None:
        """Stops the statement, if it still runs, and lets go of what it holds. Returns at once."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._ended:
            self._cancellation.stop(GONE)
            self._threads.background(self._let_go)

    def _next(self) -> T | None:
        with self._one_at_a_time:
            try:
                piece = next(self._pieces, None)
                self._ended = piece is None
            except BaseException:
                self._ended = True
                raise
            return piece

    def _let_go(self) -> None:
        with self._one_at_a_time:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                close()
            self.result.close()


def _without_traces(error: BaseException) -> BaseException:
    """The error without the traces of itself and of what it came from: their frames hold what the statement held."""
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
    return error


def _guard(work: Callable[[], T]) -> T:
    """Runs ``work``; what is not a LakeError becomes one, with its trace in the log."""
    try:
        return work()
    except LakeError:
        raise
    except RecursionError as error:
        raise StatementTooComplex("the statement is nested too deep") from error
    except Exception as error:
        log.error("internal error", error)
        raise InternalError(f"internal error: {type(error).__name__}: {error}") from error
