"""Pipelines on worker threads: source -> streams -> breaker, and the last one, whose batches are the answer.

    flow = Flow(Scan(..), (Filter(..), HashJoin(..)))
    groups = break_flow(flow, HashAggregate(..), context)      a Source
    for batch in answer_flow(Flow(groups, (Project(..),)), context): ...

Workers take morsels from one dealer. The calling thread is always one of the workers, so a pipeline moves on however busy
the machine is, and a small one runs on it alone. The first error wins: the others stop at their next batch, and it is raised
on the calling thread. The answer comes in the order of morsels whatever the number of workers: a worker that runs ahead
keeps its batches until those before it are taken, and waits when it has kept AHEAD_BATCHES of them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from time import perf_counter_ns
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from lake.exec.context import Context
from lake.exec.operators.base import Breaker, Metrics, Morsel, Operator, Source, Stream
from lake.exec.operators.batches import gathered
from lake.sql.bound import Column

INLINE_ROWS: Final = 100_000
"""A pipeline whose source is known to be smaller runs on the calling thread: starting a thread costs 0.1 ms."""

AHEAD_BATCHES: Final = 8
"""Batches of the answer that are kept for a consumer, all workers together: at most 2 million rows."""

WAIT_SECS: Final = 0.2
"""How often one who waits looks whether the statement was cancelled."""


class Flow(Struct, frozen=True):
    """A source and the streams on it, not yet run."""

    source: Source
    streams: tuple[Stream, ...] = ()

    @property
    def top(self) -> Operator:
        """The operator that answers the flow's batches."""
        return self.streams[-1] if self.streams else self.source

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the flow's batches hold."""
        return self.top.columns

    def then(self, stream: Stream) -> Flow:
        """The flow with one more stream at its end."""
        return replace(self, streams=(*self.streams, stream))

    def open(self, context: Context) -> Flow:
        """The flow made ready to run: from its end on, since a join's build side narrows what lies below the join.

        What lies below a stream that answers nothing (its build side is empty) stays unopened and is left out.
        """
        for index in reversed(range(len(self.streams))):
            stream = self.streams[index]
            stream.open(context)
            if stream.is_done():
                return Flow(Held(self.source.columns, []), self.streams[index:])
        return replace(self, source=self.source.open(context))


class Held(Source):
    """Batches in memory, one morsel each."""

    def __init__(self, columns: tuple[Column, ...], batches: Sequence[pa.RecordBatch]) -> None:
        super().__init__(columns)
        self.batches = batches

    def rows_expected(self) -> int:
        return sum(batch.num_rows for batch in self.batches)

    def morsels(self, context: Context) -> Iterator[Morsel]:
        for batch in self.batches:
            yield lambda batch=batch: (batch,)  # type: ignore[misc]


class Break(Source):
    """The answer of a breaker over a flow; opening it runs that pipeline."""

    def __init__(self, flow: Flow, breaker: Breaker) -> None:
        super().__init__(breaker.columns)
        self.flow = flow
        self.breaker = breaker
        self.metrics = breaker.metrics

    def open(self, context: Context) -> Source:
        source = break_flow(self.flow, self.breaker, context)
        source.metrics = self.metrics
        return source

    def morsels(self, context: Context) -> Iterator[Morsel]:
        raise AssertionError("opened sources are run")


def break_flow(flow: Flow, breaker: Breaker, context: Context) -> Source:
    """Runs a flow into a breaker and answers what it holds then."""
    flow = flow.open(context)
    dealer = Dealer(flow.source.morsels(context), context)
    count = 1 if breaker.is_sequential else _worker_count(flow, dealer, context)
    workers = [Worker(flow, dealer, waits=not breaker.is_eager) for _ in range(count)]
    states = [breaker.start(context) for _ in workers]

    def work(number: int) -> None:
        workers[number].absorb(breaker, states[number], workers[number].batches(workers[number].morsels))

    crew = Crew(dealer, [lambda number=number: work(number) for number in range(1, count)])  # type: ignore[misc]
    try:
        dealer.guard(lambda: work(0))
    finally:
        crew.join()
        dealer.close()
    dealer.raise_error()
    if not breaker.is_full():
        workers[0].absorb(breaker, states[0], finish_streams(flow, workers))
    started = perf_counter_ns()
    source = breaker.merge(context, states)
    breaker.metrics.ns += perf_counter_ns() - started
    for worker in workers:
        worker.report()
    return source


def answer_flow(flow: Flow, context: Context) -> Iterator[pa.RecordBatch]:
    """Runs a flow and answers its batches in order, as they are asked for; closing the iterator stops the workers."""
    flow = flow.open(context)
    dealer = Dealer(flow.source.morsels(context), context)
    count = _worker_count(flow, dealer, context)
    if count == 1:
        return _answer_inline(flow, dealer)
    return _answer_threaded(flow, dealer, count)


def _answer_inline(flow: Flow, dealer: Dealer) -> Iterator[pa.RecordBatch]:
    worker = Worker(flow, dealer)
    try:
        while not worker.is_done() and (taken := dealer.take()) is not None:
            yield from worker.batches(taken[1])
        yield from finish_streams(flow, [worker])
    finally:
        dealer.close()
        worker.report()


def _answer_threaded(flow: Flow, dealer: Dealer, count: int) -> Iterator[pa.RecordBatch]:
    shelf = Shelf(dealer)
    workers = [Worker(flow, dealer) for _ in range(count)]

    def work(worker: Worker) -> None:
        while not worker.is_done() and (taken := dealer.take()) is not None:
            number, morsel = taken
            for batch in worker.batches(morsel):
                shelf.put(number, batch)
            shelf.close(number)

    crew = Crew(dealer, [lambda worker=worker: work(worker) for worker in workers[1:]], shelf.wake)  # type: ignore[misc]
    try:
        with suppress(Stopped):
            yield from _consume(workers[0], dealer, shelf)
        crew.join()
        dealer.raise_error()
        yield from finish_streams(flow, workers)
    finally:
        dealer.stop()
        shelf.wake()
        crew.join()
        dealer.close()
        for worker in workers:
            worker.report()


def _consume(worker: Worker, dealer: Dealer, shelf: Shelf) -> Iterator[pa.RecordBatch]:
    """Hands out the shelf's batches in order; where there are none the calling thread runs morsels itself."""
    while True:
        yield from shelf.ready()
        taken = None if worker.is_done() or shelf.is_full() else dealer.take()
        if taken is None:
            if not shelf.wait():
                return
            continue
        number, morsel = taken
        for batch in worker.batches(morsel):
            if shelf.is_next(number):
                yield batch
                continue
            shelf.keep(number, batch)
            yield from shelf.ready()
        shelf.close(number)


def finish_streams(flow: Flow, workers: list[Worker]) -> Iterator[pa.RecordBatch]:
    """What the streams answer when all input has passed, taken through those after each."""
    first = workers[0]
    for index, stream in enumerate(flow.streams):
        tail = stream.finish([worker.states[index] for worker in workers])
        yield from first.through(gathered(_timed(first.inclusive[index + 1], tail)), index + 1)


def _worker_count(flow: Flow, dealer: Dealer, context: Context) -> int:
    rows = flow.source.rows_expected()
    if context.workers <= 1 or (rows is not None and rows < INLINE_ROWS) or not dealer.has_two():
        return 1
    return context.workers


class Dealer:
    """Deals out a source's morsels with their numbers, and knows whether the pipeline is to stop."""

    def __init__(self, morsels: Iterator[Morsel], context: Context) -> None:
        self.context = context
        self.error: BaseException | None = None
        self.is_stopped = False
        self.dealt = 0
        self._morsels = morsels
        self._peeked: deque[Morsel] = deque()
        self._lock = threading.Lock()

    def has_two(self) -> bool:
        """Whether there is work for a second worker."""
        while len(self._peeked) < 2 and (morsel := next(self._morsels, None)) is not None:
            self._peeked.append(morsel)
        return len(self._peeked) == 2

    def take(self) -> tuple[int, Morsel] | None:
        """The next morsel and its number; None where there is none, or the pipeline stops."""
        self.context.cancellation.check()
        with self._lock:
            if self.is_stopped:
                return None
            morsel = self._peeked.popleft() if self._peeked else next(self._morsels, None)
            if morsel is None:
                return None
            self.dealt += 1
            return self.dealt - 1, morsel

    def close(self) -> None:
        """Stops, and closes what the morsels come from; called when no worker runs any more."""
        self.stop()
        if isinstance(self._morsels, Generator):
            self._morsels.close()

    def stop(self) -> None:
        """No morsel is dealt from here on."""
        self.is_stopped = True

    def check(self) -> None:
        """Raises Stopped within a worker whose pipeline stops, 57014 where the statement was cancelled."""
        if self.is_stopped:
            raise Stopped
        self.context.cancellation.check()

    def guard(self, work: Callable[[], None]) -> None:
        """Runs ``work``; its error becomes the pipeline's, where that has none yet."""
        try:
            work()
        except Stopped:
            pass
        except BaseException as error:
            with self._lock:
                if self.error is None:
                    self.error = error
            self.stop()

    def raise_error(self) -> None:
        """Raises the pipeline's error."""
        if self.error is not None:
            raise self.error


class Stopped(Exception):
    """Ends a worker's work on a pipeline that failed or whose answer nobody wants."""


class Crew:
    """Threads that help a pipeline."""

    def __init__(
        self, dealer: Dealer, tasks: list[Callable[[], None]], finished: Callable[[], None] = lambda: None
    ) -> None:
        def run(task: Callable[[], None]) -> None:
            dealer.guard(task)
            finished()

        self._threads = [
            threading.Thread(target=run, args=(task,), name=f"lake-worker-{number}", daemon=True)
            for number, task in enumerate(tasks, 1)
        ]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Waits until all have stopped."""
        for thread in self._threads:
            thread.join()


class Worker:
    """One worker's states of a flow's streams, and what it measured.

    inclusive  for the source and each stream, rows answered and the time in it and all that feeds it
    waits      whether the flow's small batches are put together
    """

    def __init__(self, flow: Flow, dealer: Dealer, *, waits: bool = True) -> None:
        self.flow = flow
        self.waits = waits
        self.dealer = dealer
        self.states = [stream.start(dealer.context) for stream in flow.streams]
        self.inclusive = [Metrics() for _ in range(len(flow.streams) + 1)]
        self._breaker: tuple[Metrics, int] | None = None

    def is_done(self) -> bool:
        """Whether no further morsel can change the answer."""
        return any(stream.is_done() for stream in self.flow.streams)

    def morsels(self) -> Iterator[pa.RecordBatch]:
        """The source's batches of all morsels that this worker can get."""
        while not self.is_done() and (taken := self.dealer.take()) is not None:
            yield from taken[1]()

    def batches(self, morsel: Morsel) -> Iterator[pa.RecordBatch]:
        """What the streams make of a morsel; batches without rows are left out."""
        return self.through(self._handed_on(_timed(self.inclusive[0], self._checked(morsel())), 0), 0)

    def through(self, batches: Iterator[pa.RecordBatch], start: int) -> Iterator[pa.RecordBatch]:
        """Takes batches through the streams from number ``start`` on."""
        for index in range(start, len(self.flow.streams)):
            applied = _apply(self.flow.streams[index], self.states[index], batches)
            batches = self._handed_on(_timed(self.inclusive[index + 1], applied), index + 1)
        return batches

    def _handed_on(self, batches: Iterator[pa.RecordBatch], index: int) -> Iterator[pa.RecordBatch]:
        """What operator number ``index`` answers as the next one takes it."""
        if self.waits or index < len(self.flow.streams):
            return gathered(batches)
        return (batch for batch in batches if batch.num_rows)

    def absorb(self, breaker: Breaker, state: Any, batches: Iterator[pa.RecordBatch]) -> None:
        """Feeds batches to a breaker until they end or it is full."""
        spent = 0
        for batch in batches:
            started = perf_counter_ns()
            breaker.absorb(state, batch)
            spent += perf_counter_ns() - started
            if breaker.is_full():
                break
        self._breaker = (breaker.metrics, spent + (self._breaker[1] if self._breaker else 0))

    def report(self) -> None:
        """Adds what was measured to the operators; called once, when no worker runs any more."""
        operators: list[Operator] = [self.flow.source, *self.flow.streams]
        below = 0
        for operator, measured in zip(operators, self.inclusive, strict=True):
            operator.metrics.rows += measured.rows
            operator.metrics.ns += max(measured.ns - below, 0)
            below = measured.ns
        if self._breaker is not None:
            self._breaker[0].ns += self._breaker[1]

    def _checked(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.dealer.check()
            yield batch


def _apply(stream: Stream, state: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from stream.apply(state, batch)


def _timed(metrics: Metrics, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches; counts their rows and the time it takes to get them."""
    iterator = iter(batches)
    while True:
        started = perf_counter_ns()
        batch = next(iterator, None)
        metrics.ns += perf_counter_ns() - started
        if batch is None:
            return
        metrics.rows += batch.num_rows
        yield batch


class Shelf:
    """Batches of the answer, by morsel, until the consumer takes them in order."""

    def __init__(self, dealer: Dealer) -> None:
        self._dealer = dealer
        self._changed = threading.Condition()
        self._batches: dict[int, deque[pa.RecordBatch]] = {}
        self._closed: set[int] = set()
        self._next = 0
        self._kept = 0

    def is_next(self, number: int) -> bool:
        """Whether the consumer has had all batches before this morsel's, and those kept of it."""
        with self._changed:
            return number == self._next and not self._batches.get(number)

    def is_full(self) -> bool:
        """Whether so much is kept that the consumer should wait for the worker that has the next morsel."""
        return self._kept >= AHEAD_BATCHES

    def put(self, number: int, batch: pa.RecordBatch) -> None:
        """A worker's batch; waits while too many are kept, unless the consumer waits for this very morsel."""
        with self._changed:
            while self._kept >= AHEAD_BATCHES and not (number == self._next and not self._batches.get(number)):
                self._dealer.check()
                self._changed.wait(WAIT_SECS)
            self._dealer.check()
            self._add(number, batch)

    def keep(self, number: int, batch: pa.RecordBatch) -> None:
        """The consumer's own batch, which comes too early; it never waits for itself."""
        with self._changed:
            self._add(number, batch)

    def _add(self, number: int, batch: pa.RecordBatch) -> None:
        self._batches.setdefault(number, deque()).append(batch)
        self._kept += 1
        self._changed.notify_all()

    def close(self, number: int) -> None:
        """Says that a morsel has no further batch."""
        with self._changed:
            self._closed.add(number)
            self._changed.notify_all()

    def ready(self) -> Iterator[pa.RecordBatch]:
        """The batches that may be taken, in order."""
        while True:
            with self._changed:
                batch = self._take()
            if batch is None:
                return
            yield batch

    def _take(self) -> pa.RecordBatch | None:
        while True:
            waiting = self._batches.get(self._next)
            if waiting:
                self._kept -= 1
                self._changed.notify_all()
                return waiting.popleft()
            if self._next not in self._closed:
                return None
            self._closed.discard(self._next)
            self._batches.pop(self._next, None)
            self._next += 1
            self._changed.notify_all()

    def wait(self) -> bool:
        """Waits for a change; False where every morsel that was dealt has been taken, or the pipeline failed."""
        with self._changed:
            if self._dealer.error is not None:
                return False
            if self._batches.get(self._next) or self._next in self._closed:
                return True
            if self._next >= self._dealer.dealt:
                return False
            self._dealer.context.cancellation.check()
            self._changed.wait(WAIT_SECS)
            return True

    def wake(self) -> None:
        """Makes those who wait look again."""
        with self._changed:
            self._changed.notify_all()
