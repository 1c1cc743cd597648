"""Node: the waist that every door talks to.

    door  ->  await node.execute(principal, text, ...)  ->  Session.execute on a worker thread  ->  Result

Rights, limits and the wording of errors are the same at every door because they all pass here. Anything that is not a
LakeError becomes ``XX000 internal error`` in one place, ``threads``, with its trace in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from lake import __version__, log
from lake.config import Config
from lake.db.accounted import Origin
from lake.db.database import Database
from lake.db.feed import Feed
from lake.db.lent import Lent
from lake.db.live import LiveQuery
from lake.db.lookup import look_up
from lake.db.recorder import Entry
from lake.db.result import Result
from lake.db.rights.credentials import Credentials, SignIn
from lake.db.session import Session
from lake.db.statements.table_body import TableBody, define_table
from lake.db.system.entries import entries
from lake.db.write.once import Once
from lake.errors import (
    InsufficientPrivilege,
    InvalidParameter,
    LakeError,
    NodeStopping,
    NotLeading,
    SerializationFailure,
    TooManyRequests,
)
from lake.exec.allocator import FreedMemory
from lake.exec.context import Cancellation
from lake.metrics import HTTP_RUNNING, SESSIONS
from lake.net.feeds import Chunk, Encode, Feeds
from lake.net.live import Lives
from lake.net.threads import GONE, TIMED_OUT, Stream, Threads
from lake.roles import Principal, Role
from lake.storage.commits.sequencer import Acknowledged
from lake.storage.files import Files
from lake.storage.tables.read import NotInMemory

T = TypeVar("T")

SESSIONS_MAX: Final = 10_000
EXPIRE_SECS: Final = 5.0  # between two looks for sessions and transactions that are idle too long
APPEND_TRIES: Final = 5  # of rows whose table is altered while they are on their way
AFTER_SECS_MAX: Final = 30.0  # how long a request waits for the commit it asks for
RECALLED_CHARS: Final = 4 << 10  # of a statement whose answer is looked up on the event loop
RECALLED_BYTES: Final = 64 << 10  # of an answer that is encoded there


class _Request:
    """A request while it runs: a context."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def __enter__(self) -> None:
        self._node.begin_request()

    def __exit__(self, *_: object) -> None:
        self._node.end_request()


class _Kept(Struct):
    session: Session
    used_at: float


class Node:
    """One process serving one lake: its database, its callers' sessions, and the threads their statements run on."""

    def __init__(self, database: Database, config: Config) -> None:
        self.database = database
        self.config = config
        self.callers = SignIn(database.lake, config, database.clock)
        self.state = "starting"
        self.address = config.addr
        self._threads = Threads()
        self.call = self._threads.call
        self.background = self._threads.background
        self._requests = 0
        self._idle = asyncio.Event()
        self._sessions: dict[tuple[str, str], _Kept] = {}
        self.feeds = Feeds(self)
        self.lives = Lives(self)
        database.lake.on_commit(self.feeds.committed)
        database.lake.on_commit(self.lives.committed)

    # --- who is asking -----------------------------------------------------------------------------------------------

    async def sign_in(self, given: Credentials) -> Principal:
        """The caller that presents these credentials.

        28000  nothing, or what is wrong. Spec: HTTP, Authentication.
        """
        found = self.caller_at_hand(given)
        return await self.call(lambda: self.callers.principal(given)) if found is None else found

    def caller_at_hand(self, given: Credentials) -> Principal | None:
        """As ``sign_in``, on the event loop itself; None where a password is to be checked, which takes milliseconds."""
        return None if self.callers.needs_work(given) else self.callers.principal(given)

    def note_refusal(self, error: LakeError, origin: Origin, user: str, what: str) -> None:
        """Notes a refusal that no statement's account has: of a sign-in, or at an endpoint."""
        recorder = self.database.recorder
        if recorder is not None and not error.is_recorded:
            error.is_recorded = True
            kind = "misc" if isinstance(error, InsufficientPrivilege) else "sign-in"
            recorder.note(Entry(self.database.clock.now(), 0.0, user, *origin, kind, what, error.sqlstate, error.message))

    async def login(self, user: str, password: str) -> tuple[str, int]:
        """A session token of a user, and when it ends in milliseconds.

        28P01  no such user, or a wrong password. Spec: HTTP, POST /login.
        """
        return await self.call(lambda: self.callers.login(user, password))

    def session(self, principal: Principal, id: str | None) -> Session:
        """The session of this id, made on first use; without an id one that lasts for this statement.

        22023  an id that is not 8 to 128 letters, digits, - and _
        53300  too many sessions
        """
        if id is None:
            return Session(self.database, principal, lasts=False)
        if not 8 <= len(id) <= 128 or not all(char.isascii() and (char.isalnum() or char in "-_") for char in id):
            raise InvalidParameter("a session id is 8 to 128 letters, digits, - or _")
        key = (principal.key, id)
        kept = self._sessions.get(key)
        if kept is None:
            self.expire_sessions()
            if len(self._sessions) >= SESSIONS_MAX:
                raise TooManyRequests(f"this node holds {SESSIONS_MAX} sessions already")
            kept = self._sessions[key] = _Kept(Session(self.database, principal), 0.0)
            SESSIONS.set(len(self._sessions))
        kept.used_at = self.database.clock.monotonic()
        return kept.session

    def end_session(self, principal: Principal, id: str) -> bool:
        """Ends a session, and rolls back its transaction; whether there was one."""
        return self._end((principal.key, id))

    def expire_sessions(self) -> None:
        """Ends sessions nobody used for ``session_idle_secs``."""
        oldest = self.database.clock.monotonic() - self.config.session_idle_secs
        for key in [key for key, kept in self._sessions.items() if kept.used_at < oldest]:
            self._end(key)

    async def expire(self) -> None:
        """Every EXPIRE_SECS, until cancelled: ends idle sessions and transactions, and frees memory where nothing runs."""
        freed = FreedMemory()
        while True:
            before = self._threads.taken
            await asyncio.sleep(EXPIRE_SECS)
            if self._threads.taken == before and not self._threads.running:
                self.background(freed.give_back)
            self.expire_sessions()
            with contextlib.suppress(LakeError):  # a node with no thread to spare looks again
                await self.call(self.database.end_idle_transactions)

    def _end(self, key: tuple[str, str]) -> bool:
        ended = self._sessions.pop(key, None)
        SESSIONS.set(len(self._sessions))
        if ended is not None:
            self.background(ended.session.close)
        return ended is not None

    # --- statements --------------------------------------------------------------------------------------------------

    async def execute(
        self,
        session: Session,
        text: str,
        params: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        job: str | None = None,
        stale_ms: int | None = None,
        lent: Lent | None = None,
        then: Callable[[Result], T],
    ) -> T:
        """Runs the statements of ``text`` and answers ``then`` of the last one's result, both on a worker thread.

        lent  views and tables that the statements may name. A caller that goes away stops its statement. Errors are
        LakeErrors.
        """
        cancellation = Cancellation()
        timer = _limited(session, cancellation)
        try:
            return await self.call(
                lambda: then(_run(session, text, params, lent, job=job, cancellation=cancellation, stale_ms=stale_ms))
            )
        except asyncio.CancelledError:
            cancellation.stop(GONE)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    async def stream(
        self,
        session: Session,
        text: str,
        params: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        job: str | None = None,
        stale_ms: int | None = None,
        lent: Lent | None = None,
        make: Callable[[Result], Iterator[T]],
    ) -> Stream[T]:
        """As ``execute``, with an answer in pieces that are made when they are asked for: the reader sets the pace."""
        cancellation = Cancellation()
        timer = _limited(session, cancellation)
        try:
            result = await self.call(
                lambda: _run(session, text, params, lent, job=job, cancellation=cancellation, stale_ms=stale_ms)
            )
        except BaseException:
            cancellation.stop(GONE)
            if timer is not None:
                timer.cancel()
            raise
        return Stream(self._threads, result, make(result), cancellation, timer)

    def recall(
        self, session: Session, text: str, params: Mapping[str, Any] | None, stale_ms: int | None
    ) -> Result | None:
        """A remembered answer, on the event loop itself: a thread between would take longer than the answer does."""
        if len(text) > RECALLED_CHARS:
            return None
        return session.recall(text, params, stale_ms, RECALLED_BYTES)

    def request(self) -> _Request:
        """The time a door spends on one request; draining waits for it."""
        return _Request(self)

    def begin_request(self) -> None:
        """One request more runs."""
        self._requests += 1
        HTTP_RUNNING.set(self._requests)

    def end_request(self) -> None:
        """One request less runs."""
        self._requests -= 1
        HTTP_RUNNING.set(self._requests)
        if not self._requests:
            self._idle.set()

    # --- rows --------------------------------------------------------------------------------------------------------

    async def append(
        self,
        principal: Principal,
        table: str,
        body: bytes,
        *,
        is_arrow: bool,
        producer: str | None = None,
        seq: int | None = None,
        prev: int | None = None,
    ) -> Acknowledged:
        """Appends rows exactly once for a producer and its seq; durable when it answers.

        body   newline-delimited JSON, or an Arrow IPC stream. Spec: HTTP, Append and bulk insert.
        42501  the caller may not write to the table
        """
        once = None if producer is None or seq is None else Once(producer, seq, prev)
        append = self.database.append
        for attempt in range(APPEND_TRIES):
            try:
                return await self._threads.follow(
                    lambda: append(_name(table), body, is_arrow=is_arrow, once=once, principal=principal)
                )
            except SerializationFailure:  # the table was altered between the look at its rules and the commit
                if attempt == APPEND_TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    async def insert(self, principal: Principal, table: str, query: str, job: str | None) -> dict[str, Any]:
        """Writes a query's rows to a table, made if absent; ``{rows}``, or ``{duplicate: true}`` for a known job."""
        session = Session(self.database, principal)
        return await self.call(lambda: session.insert_query(_name(table), query, job).outcome or {})

    async def define_table(self, principal: Principal, table: str, body: TableBody) -> dict[str, Any]:
        """Makes a table, or changes the one that is there; see ``lake.db.statements.table_body``."""
        principal.require(Role.ADMIN)
        return await self.call(lambda: define_table(self.database, _name(table), body))

    async def lookup(self, principal: Principal, table: str, key: str) -> Result:
        """The row of a key of a keyed table, or no row; see ``lake.db.lookup``.

        42501  the caller may not read every column
        """
        found = self.lookup_at_hand(principal, table, key)
        return await self.call(lambda: look_up(self.database, _name(table), key)) if found is None else found

    def lookup_at_hand(self, principal: Principal, table: str, key: str) -> Result | None:
        """As ``lookup``, on the event loop itself; None where memory does not tell."""
        name = _name(table)
        self.database.check_streams(principal, name)
        try:
            return look_up(self.database, name, key, peek=True)
        except NotInMemory:
            return None

    async def watch(
        self, principal: Principal, table: str, after: int | None, *, old: bool, encode: Encode
    ) -> AsyncIterator[Chunk]:
        """A table's feed from a position on, or from this moment; the first chunk is empty and says where it begins.

        42501  the caller may not read every column, from the start or from some moment on
        42P01  no such table, or it was dropped      22023  the position is no longer kept
        """
        self.database.check_streams(principal, _name(table))
        feed = await self.call(lambda: Feed.of(self.database, _name(table), old=old))
        async for chunk in self.feeds.watch(feed, after, encode):
            if principal.id:
                self.database.check_streams(principal, feed.table)
            yield chunk

    def live(
        self, principal: Principal, session: str | None, text: str, params: Mapping[str, Any] | None
    ) -> LiveQuery:
        """A query to be asked again after commits that change it; in the session of that id where one is given."""
        principal.require(Role.READ)
        return LiveQuery(self.session(principal, session), text, params)

    async def objects(self, principal: Principal) -> list[dict[str, Any]]:
        """The tables, views and stored files that a caller is shown. Spec: HTTP, GET /objects."""
        principal.require(Role.READ)
        return await self.call(lambda: entries(Session(self.database, principal).catalog().shown))

    async def wait_for(self, commit: int) -> None:
        """Returns once this node has seen ``commit``.

        57014  it does not come within AFTER_SECS_MAX
        """
        if commit > self.database.version:
            await self.call(lambda: self.database.wait_for(commit, AFTER_SECS_MAX))

    async def files(self, principal: Principal, role: Role, work: Callable[[Files], T]) -> T:
        """What ``work`` answers of the files kept in the lake, for a caller that may read or write them.

        42501  it may not. Spec: HTTP, Files
        """
        return await self.call(lambda: work(self.database.files(principal, role)))

    async def tier(self, principal: Principal) -> int:
        """Writes the log into Parquet; how many rows were waiting."""
        principal.require(Role.ADMIN)
        return await self.call(self.database.tier)

    # --- the node itself ---------------------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Health and position. Spec: HTTP, Node stats."""
        return {
            "lake": self.database.name,
            "role": "leader",
            "leader": self.address,
            "nodes": [self.address],
            "shard_runs": 0,
            "python_workers": 0,
            "live_queries": self.lives.running,
            "version": __version__,
            "releases": {self.address: __version__},
            **self.database.stats(),
        }

    @property
    def is_ready(self) -> bool:
        """Whether the node serves: started, and not told to stop."""
        return self.state == "serving"

    def check_serving(self) -> None:
        """Returns while the node serves.

        57P01  it was told to stop      57P03  it is starting
        """
        if self.state == "draining":
            raise NodeStopping("the node is stopping; try another node or again later")
        if self.state == "starting":
            raise NotLeading("the node is starting; try again")

    async def drain(self) -> None:
        """Refuses new requests and waits for those running, ``drain_secs`` at most."""
        self.state = "draining"
        self.feeds.stop()
        self.lives.stop()
        self._idle.clear()
        if not self._requests:
            return
        try:
            await asyncio.wait_for(self._idle.wait(), self.config.drain_secs)
        except TimeoutError:
            log.warn("requests still ran when draining ended", requests=self._requests, drain_secs=self.config.drain_secs)

    @property
    def running(self) -> int:
        """Statements on threads or in line for one."""
        return self._threads.running

    def close(self) -> None:
        """Stops what still runs, and ends the threads and the database: everything acknowledged is durable already."""
        self.database.stop_statements("terminating the statement because the node stops")
        self._threads.close()
        self.database.close()


def _run(session: Session, text: str, params: Any, lent: Lent | None, **how: Any) -> Result:
    if lent is None:
        return session.execute(text, params, **how)
    with lent.to(session):
        return session.execute(text, params, **how)


def _limited(session: Session, cancellation: Cancellation) -> asyncio.TimerHandle | None:
    """What stops a statement once it has taken its session's ``statement_timeout``, the reading of its answer included."""
    limit = session.settings.milliseconds("statement_timeout")
    return asyncio.get_running_loop().call_later(limit / 1_000, cancellation.stop, TIMED_OUT) if limit else None


def _name(text: str) -> tuple[str, ...]:
    """The parts of a table's name in a path: ``sales.orders``."""
    return tuple(text.split("."))

