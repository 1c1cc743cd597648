"""A database: one lake opened by this process, with what its sessions share.

    Database.open(config) ── start ── sessions, appends, definitions ── close

``start`` takes the lead of the lake and begins its housekeeping; ``close`` commits what waits and hands the lead over.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lake.clock import Clock, SystemClock
from lake.config import Config
from lake.db.catalog import StatementCatalog
from lake.db.hold import Hold
from lake.db.names import find_table, named_parts, qualified
from lake.db.quotas import Quotas
from lake.db.recorder import Recorder
from lake.db.repeats import Repeats
from lake.db.rights.callers import Callers
from lake.db.rights.granted import Rights
from lake.db.sequences import Sequences, SessionSequences
from lake.db.temporary import TemporarySpace
from lake.db.write.checks import Rules
from lake.db.write.enums import enums_of
from lake.db.write.holds import RowHolds
from lake.db.write.incoming import Incoming, from_arrow_stream, from_json_lines
from lake.db.write.once import Once
from lake.db.write.unique import KeptPieces, UniqueCheck, refuse_unique
from lake.errors import NotLeading, QueryCanceled, SerializationFailure, UndefinedTable
from lake.exec.context import Cancellation, Context
from lake.exec.memory import Budget, MemoryPool
from lake.metrics import COMMIT_SECONDS, COMMITS
from lake.roles import OWNER, Principal, Role
from lake.sql.bind import Binder
from lake.sql.catalog import Settings
from lake.storage.catalog.changes import Change
from lake.storage.catalog.model import Table
from lake.storage.catalog.state import State, display_name
from lake.storage.commits.sequencer import Acknowledged, Append, Flush, is_same
from lake.storage.commits.terms import find_address
from lake.storage.faults import crash_point
from lake.storage.files import Files
from lake.storage.lake import Lake, open_store
from lake.storage.options import StorageOptions

if TYPE_CHECKING:
    from lake.db.session import Run, Session
    from lake.storage.tables.snapshot import Snapshot

RULES_KEPT: Final = 256
WAIT_SECS: Final = 0.01  # between two looks for a commit that a request waits for


class Database:
    """One lake, led by this process."""

    def __init__(self, lake: Lake, config: Config, clock: Clock) -> None:
        self.lake = lake
        self.config = config
        self.clock = clock
        self.name = Path(config.lake or "lake").resolve().name or "lake"
        self._hold: Hold | None = None
        self.temporary_space = TemporarySpace(config.temp_mb << 20)
        memory = int(config.memory_gb * (1 << 30))
        self._memory = MemoryPool(memory, lambda held: lake.reader.hot.allow(memory - held))
        self.repeats = Repeats()
        self.sequences = Sequences(self)
        self._pieces = KeptPieces()
        self._callers = Callers()
        self.quotas = Quotas(config)
        self.recorder: Recorder | None = None  # of a process that serves
        self.address = ""
        self._rules: OrderedDict[tuple[int, int], Rules] = OrderedDict()
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._stopping = threading.Lock()
        self._stoppable: weakref.WeakSet[Cancellation] = weakref.WeakSet()
        self.holds = RowHolds()
        self._changing: dict[int, threading.Lock] = {}
        self._open: weakref.WeakSet[Session] = weakref.WeakSet()  # sessions with a transaction

    @classmethod
    def open(cls, config: Config, clock: Clock | None = None) -> Database:
        """Opens the lake of a configuration, made where there is none."""
        clock = clock or SystemClock()
        assert config.lake is not None, "a database has a lake"
        return cls(Lake.open(config.lake, clock=clock, options=storage_options(config), writable=False), config, clock)

    @staticmethod
    def serving_address(config: Config) -> str | None:
        """The address of the node that serves the lake, or None."""
        folder = _folder_of(config)
        if folder is not None and not Path(folder).exists():
            return None
        assert config.lake is not None, "a database has a lake"
        clock = SystemClock()
        return find_address(open_store(config.lake, clock, storage_options(config)), clock)

    def hold(self) -> None:
        """Keeps other processes of this machine from leading the lake.

        57P03  one of them does already
        """
        folder = _folder_of(self.config)
        if self._hold is None and folder is not None:
            self._hold = Hold.take(folder)

    def start(self, address: str | None) -> None:
        """Takes the lead and begins housekeeping; ``address`` is where this process serves, None where it does not.

        57P03  another process of this machine leads the lake
        """
        with self._starting:
            self.hold()
            self.lake.lead(address or "")
            if address is not None:
                self.lake.announce(address)
                self.address = address
                if self.recorder is None and (self.config.history or self.config.audit.lower() != "off"):
                    self.recorder = Recorder(self)

    def is_inside(self, place: Path) -> bool:
        """Whether a place on this machine's disk is in the lake's own folder."""
        folder = _folder_of(self.config)
        return folder is not None and place.resolve().is_relative_to(Path(folder).resolve())

    @property
    def leads(self) -> bool:
        """Whether this process writes to the lake."""
        return self.lake.leads

    def refresh(self) -> None:
        """Reads on what another process has written; for a process that does not lead."""
        self.lake.refresh()

    def close(self) -> None:
        """Commits what waits and hands the lead over."""
        if self.recorder is not None:
            self.recorder.stop()
        if self.lake.leads:
            self.sequences.close()
        self.lake.close()
        if self._hold is not None:
            self._hold.let_go()
            self._hold = None

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The newest commit."""
        return self.lake.state.number

    def catalog(self, settings: Settings, snapshot: Snapshot | None = None) -> StatementCatalog:
        """What a statement that starts at this moment can name; ``snapshot`` is a transaction's."""
        return StatementCatalog(self, settings, snapshot)

    def caller(self, principal: Principal) -> tuple[Principal, Rights | None]:
        """The caller as it is at this moment, and what it was granted; None where its role says everything.

        28000  the user was dropped
        """
        return self._callers.renewed(principal, self.lake.state)

    def check_streams(self, principal: Principal, table: tuple[str, ...] | int) -> None:
        """Returns where the caller may be handed whole rows of a table, by name or id. Spec: HTTP, Users, roles, grants 3.

        42501  it may not read every column      42P01  no such table
        """
        caller, rights = self.caller(principal)
        caller.require(Role.READ)
        if rights is None:
            return
        try:
            state = self.lake.state
            found = state.table_by_id(table) if isinstance(table, int) else find_table(state, table, self.name)
        except UndefinedTable as error:
            error.hint = None  # it offers what the caller is not shown
            raise
        rights.require_all(found, [column.name for column in found.columns])

    def files(self, principal: Principal, role: Role) -> Files:
        """The files kept in the lake, for a caller that may read (``Role.READ``) or write all of them.

        42501  it may not: a user takes SELECT, or INSERT, on all tables. Spec: HTTP, Files
        """
        caller, rights = self.caller(principal)
        caller.require(role)
        if rights is not None:
            rights.require_files("select" if role is Role.READ else "insert")
        return self.lake.files

    def context(self, settings: Settings, cancellation: Cancellation) -> Context:
        """What a query is given; ``stop_statements`` reaches it."""
        with self._stopping:
            self._stoppable.add(cancellation)
        return Context(
            settings,
            workers=self.config.cores,
            memory=self._memory,
            scratch=self.config.cache_dir,
            cancellation=cancellation,
        )

    def budget(self) -> Budget:
        """The budget of one who holds memory beside a query: a whole answer."""
        return self._memory.open()

    def stop_statements(self, reason: str) -> None:
        """Stops every statement that runs, at its next batch: 57014 with ``reason``."""
        with self._stopping:
            found = list(self._stoppable)
        for cancellation in found:
            cancellation.stop(reason)

    def wait_for(self, number: int, secs: float) -> None:
        """Returns when commit ``number`` is seen.

        57014  it is not within ``secs``
        """
        until = self.clock.monotonic() + secs
        while self.version < number:
            if self.clock.monotonic() > until:
                raise QueryCanceled(f"commit {number} did not come within {secs:g} s; the newest is {self.version}")
            self.clock.sleep(WAIT_SECS)

    # --- writing -----------------------------------------------------------------------------------------------------

    def commit(self, flush: Flush) -> Acknowledged:
        """Commits a flush; durable when it returns."""
        return self.lake.commit_flush(flush)

    def changing(self, table: int) -> threading.Lock:
        """Held by the one statement that changes rows of a table: changes of one table wait for each other."""
        with self._lock:
            return self._changing.setdefault(table, threading.Lock())

    def define(self, make: Callable[[State], Sequence[Change]]) -> bool:
        """Commits the changes that ``make`` answers for the state as it is in the order of commits; whether any."""
        made: list[Change] = []

        def prepare(state: State) -> Sequence[Change]:
            made[:] = make(state)
            crash_point("definition-prepared")
            return made

        self.commit(Flush(prepare=prepare))
        return bool(made)

    def append(
        self, name: tuple[str, ...], body: bytes, *, is_arrow: bool, once: Once | None, principal: Principal = OWNER
    ) -> Future[Acknowledged]:
        """Hands over rows of JSON lines or an Arrow stream; the future tells when they are durable.

        42501  the caller may not write to the table
        42P01  no such table      22P02, 23502, 23514  rows that the table refuses, none of which is written
        """
        settings = self.settings()
        catalog = self.catalog(settings)
        caller, rights = self.caller(principal)
        if rights is None:
            caller.require(Role.WRITE)
        table = find_table(catalog.state, name, self.name)
        if rights is not None:
            rights.require("insert", table)
        refuse_unique(table, "POST /append")
        incoming = _decode(body, is_arrow, table)
        rules = self.rules_of(table, Binder(catalog, settings, {}), settings)
        batch = rules.prepare(incoming)
        return self.lake.submit(
            Flush(
                appends=(Append(table.id, batch, table),),
                producer=None if once is None else once.producer,
                seq=0 if once is None else once.seq,
                prev=None if once is None else once.prev,
            )
        )

    def tier(self) -> int:
        """Writes the log into Parquet; how many rows were waiting."""
        if not self.lake.leads:
            raise NotLeading("this process does not lead the lake")
        return self.lake.tier()

    def unique_check(self, table: Table, set_columns: Sequence[str] | None = None) -> UniqueCheck | None:
        """What checks new rows of a table under its UNIQUE constraints, None where it has none of them.

        set_columns  all that an UPDATE changes
        """
        return UniqueCheck.of(table, self._pieces, set_columns)

    def check_same(self, state: State, table: Table) -> None:
        """Refuses rows that were prepared for a table which is not what it was.

        40001  its columns or rules were changed meanwhile      42P01  it was dropped
        """
        found = state.table_by_id(table.id)
        if not is_same(found, table):
            raise SerializationFailure(f'table "{table.name}" was changed while rows were written to it')

    # --- transactions ------------------------------------------------------------------------------------------------

    def opened(self, session: Session) -> None:
        """A session has opened a transaction."""
        with self._lock:
            self._open.add(session)

    def end_idle_transactions(self) -> None:
        """Rolls back transactions that nobody used for ``txn_idle_secs``: they hold rows and files."""
        with self._lock:
            found = list(self._open)
            self._open = weakref.WeakSet(session for session in found if session.transaction is not None)
        for session in found:
            session.end_idle()

    # --- what tables demand ------------------------------------------------------------------------------------------

    def rules(self, table: Table, run: Run) -> Rules:
        """A table's DEFAULTs and CHECKs, bound for a statement."""
        return self.rules_of(table, run.binder(), run.settings)

    def rules_of(self, table: Table, binder: Binder, settings: Settings) -> Rules:
        """The rules of a table; kept from call to call where they do not depend on the statement's time or user."""
        context = self.context(settings, Cancellation())
        enums = enums_of(self.lake.state, table)
        has_checks = any(item.enforced and item.kind == "check" for item in table.constraints)
        if has_checks or enums or any(column.default for column in table.columns):
            return Rules(table, binder, context, enums)
        key = (table.id, hash(table.columns))
        with self._lock:
            known = self._rules.get(key)
            if known is None or not is_same(table, known.table):
                # What is kept holds no session: such rules look nothing up.
                context = self.context(replace(settings, names=None), Cancellation())
                known = self._rules[key] = Rules(table, binder, context, enums)
            self._rules.move_to_end(key)
            while len(self._rules) > RULES_KEPT:
                self._rules.popitem(last=False)
        return known

    def enum(self, text: str) -> tuple[str, tuple[str, ...]] | None:
        """Name and labels of the enum type that a text names, or None."""
        parts = named_parts(text)
        schema, name = qualified(parts, self.name) if 1 <= len(parts) <= 2 else ("", "")
        found = self.lake.state.enum_type(name, schema)
        return None if found is None else (display_name(found.schema, found.name), found.labels)

    def settings(self) -> Settings:
        """The settings of a request that is no statement."""
        return Settings(
            now=self.clock.now(),
            database=self.name,
            enums=self.enum,
            sequences=lambda: SessionSequences(self, None),
        )

    def stats(self) -> dict[str, Any]:
        """The part of a node's stats that the lake knows."""
        state = self.lake.state
        return {
            "term": self.lake.term,
            "hwm": state.number,
            "format": state.format,
            "untiered_rows": state.tail_rows,
            "commits": int(COMMITS.value()),
            "commit_ms_p50": round(COMMIT_SECONDS.quantile(0.5) * 1_000, 3),
            "commit_ms_p95": round(COMMIT_SECONDS.quantile(0.95) * 1_000, 3),
        }


def storage_options(config: Config) -> StorageOptions:
    """Storage's part of a configuration."""
    return StorageOptions(
        inline_bytes=config.inline_kb << 10,
        tier_secs=config.tier_secs,
        retain_secs=config.retain_secs,
        gc_secs=config.gc_secs,
        changelog_secs=config.changelog_secs,
        codec=config.codec,
        backlog=config.backlog,
        purge_rows=config.purge_rows,
        file_versions=config.file_versions,
        file_versions_days=config.file_versions_days,
        hot_bytes=int(config.hot_gb * (1 << 30)),
        workers=config.cores,
    )


def _folder_of(config: Config) -> str | None:
    """The folder of a lake on this machine's disk, or None of any other."""
    assert config.lake is not None, "a database has a lake"
    path = config.lake.removeprefix("file://")
    return None if "://" in path or path.startswith("memory:") else path


def _decode(body: bytes, is_arrow: bool, table: Table) -> Incoming:
    if is_arrow:
        return from_arrow_stream(body)
    defaults = [column.name for column in table.columns if column.default]
    return from_json_lines(body, [(column.name, column.type) for column in table.columns], defaults)
