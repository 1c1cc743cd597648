"""What happened, kept as rows: the audit of who did what, and the history of statements.

    a statement ends ── note(entry) ── queue ── once a second ── one commit to lake$.history_<day> and lake$.audit_<month>

Noting costs a few microseconds; all work is the thread's. Tables are of one period each, so that what is over goes as a
whole table. Past HISTORY_RATE rows a second, quick statements that went well are counted in one row of class ``skipped``;
refusals and failures are kept. Nothing is recorded in a process that serves nobody.
Spec: HTTP, Audit log; SQL, System tables and views (``lake.history``).
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from lake import log
from lake.errors import LakeError
from lake.late import late_pattern
from lake.rows import physical_array
from lake.storage.catalog.changes import Change, CreateSchema, CreateTable, DropTable
from lake.storage.catalog.model import INTERNAL, Column, Schema, Table
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Append, Flush
from lake.types import BIGINT, DOUBLE, TEXT, TIMESTAMPTZ, Type

if TYPE_CHECKING:
    from lake.db.database import Database

DAY: Final = 86_400_000_000
PERIODS: Final = {"history": DAY, "audit": 30 * DAY}  # what one table holds
EVERY_SECS: Final = 1.0
WAITING_MAX: Final = 20_000  # entries; more are counted as skipped
AUDIT_RATE: Final = 500  # rows a second
STATEMENT_CHARS_MAX: Final = 4_096
REFUSED: Final = ("42501", "28000", "28P01", "53300")

HISTORY: Final[Mapping[str, Type]] = {
    "at": TIMESTAMPTZ, "id": BIGINT, "user": TEXT, "door": TEXT, "from": TEXT, "node": TEXT, "session": TEXT,
    "class": TEXT, "statement": TEXT, "outcome": TEXT, "error": TEXT, "ms": DOUBLE, "rows": BIGINT, "fingerprint": TEXT,
    "version": BIGINT,
}  # fmt: skip
AUDIT: Final[Mapping[str, Type]] = {
    "at": TIMESTAMPTZ, "user": TEXT, "door": TEXT, "from": TEXT, "class": TEXT, "statement": TEXT, "outcome": TEXT,
    "message": TEXT, "ms": DOUBLE, "node": TEXT,
}  # fmt: skip
COLUMNS: Final = {"history": HISTORY, "audit": AUDIT}

_QUOTED: Final = late_pattern(r"'(?:[^']|'')*'")
_VALUE: Final = late_pattern(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")
_SPACE: Final = late_pattern(r"\s+")


class Entry(NamedTuple):
    """A statement that ended, or a sign-in that was refused (class ``sign-in``).

    at, ms    when it began, in microseconds, and how long it took
    sqlstate  of its failure; empty where it went well
    """

    at: int
    ms: float
    user: str
    door: str
    address: str
    session: str
    kind: str
    statement: str
    sqlstate: str = ""
    message: str = ""
    rows: int | None = None
    version: int = 0

    @property
    def outcome(self) -> str:
        """``ok``, ``refused`` or ``failed``."""
        return "ok" if not self.sqlstate else "refused" if self.sqlstate in REFUSED else "failed"

    @property
    def text(self) -> str:
        """The statement as it is kept: cut, and without the values that a user or token is made with."""
        text = _QUOTED.sub("'***'", self.statement) if self.kind == "role" else self.statement
        return text[:STATEMENT_CHARS_MAX]


class Recorder:
    """Takes entries on any thread, and commits them on its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._entries: deque[Entry] = deque()
        self._skipped = 0
        self._last_id = 0
        self._wake = threading.Event()
        self._stopped = False
        config = database.config
        self._classes = {word.strip() for word in config.audit.lower().split(",")}
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def note(self, entry: Entry) -> None:
        """Takes an entry; past WAITING_MAX it is counted only."""
        if len(self._entries) < WAITING_MAX:
            self._entries.append(entry)
        else:
            self._skipped += 1

    def stop(self) -> None:
        """Commits what waits and ends the thread."""
        self._stopped = True
        self._wake.set()
        self._thread.join(timeout=10.0)

    def _run(self) -> None:
        while not self._stopped:
            self._wake.wait(EVERY_SECS)
            try:
                self.flush()
            except LakeError as error:
                log.warn("what happened could not be recorded", error=error)
            except Exception as error:
                log.error("recorder", error)

    def flush(self) -> None:
        """Commits what waits: history and audit in one commit."""
        entries = [self._entries.popleft() for _ in range(len(self._entries))]
        if not entries:
            return
        rows: dict[str, list[Sequence[Any]]] = {"history": [], "audit": []}
        if self._database.config.history:
            rows["history"] = self._history(entries)
        rows["audit"] = [self._audit(entry) for entry in entries if self._is_audited(entry)][:AUDIT_RATE]
        batches = {kind: _batch(COLUMNS[kind], found) for kind, found in rows.items() if found}
        if batches:
            now = self._database.clock.now()
            flush = Flush(prepare=lambda state: self._changes(state, batches, now))
            self._database.commit(flush)

    def _changes(self, state: State, batches: dict[str, pa.RecordBatch], now: int) -> list[Change | Append]:
        """What makes the tables of this period, drops those whose time is over, and adds the rows."""
        changes: list[Change | Append] = []
        if INTERNAL not in state.schemas:
            changes.append(CreateSchema(Schema(INTERNAL)))
        next_id = state.next_id
        for kind, batch in batches.items():
            name = f"{kind}_{now // PERIODS[kind]}"
            found = state.find(name, INTERNAL)
            if isinstance(found, Table):
                changes.append(Append(found.id, batch))
                continue
            columns = tuple(Column.of(number, *item) for number, item in enumerate(COLUMNS[kind].items(), 1))
            made = Table(
                id=next_id, schema=INTERNAL, name=name, columns=columns, folder=state.free_folder(name),
                next_column=len(columns) + 1,
            )  # fmt: skip
            next_id += 1
            changes += [*self._over(state, kind, now), CreateTable(made), Append(made.id, batch)]
        return changes

    def _over(self, state: State, kind: str, now: int) -> list[Change]:
        days = self._database.config.history_days if kind == "history" else self._database.config.audit_days
        oldest = (now - days * DAY) // PERIODS[kind]
        return [DropTable(table.id) for period, table in recorded(state, kind) if period < oldest]

    def _is_audited(self, entry: Entry) -> bool:
        """Refusals always are, other statements by their class."""
        if entry.outcome == "refused" or entry.message.startswith('user "'):
            return True
        return "off" not in self._classes and ("all" in self._classes or entry.kind in self._classes)

    def _audit(self, entry: Entry) -> Sequence[Any]:
        return (
            entry.at, entry.user, entry.door, entry.address, entry.kind, entry.text, entry.outcome,
            entry.message or None, entry.ms, self._database.address,
        )  # fmt: skip

    def _history(self, entries: list[Entry]) -> list[Sequence[Any]]:
        rate = self._database.config.history_rate
        kept, passed = entries[:rate], entries[rate:]
        slow = self._database.config.slow_ms
        late = [entry for entry in passed if entry.sqlstate or entry.ms >= slow]
        kept, skipped = kept + late[:rate], len(passed) - len(late[:rate]) + self._skipped
        self._skipped = 0
        rows = [self._statement(entry) for entry in kept if entry.kind != "sign-in"]
        if skipped:
            self._last_id += 1
            row: dict[str, Any] = {"at": entries[-1].at, "id": self._last_id, "class": "skipped", "rows": skipped}
            row |= {"node": self._database.address, "outcome": "ok"}
            rows.append([row.get(name) for name in HISTORY])
        return rows

    def _statement(self, entry: Entry) -> Sequence[Any]:
        self._last_id = max(self._last_id + 1, entry.at)
        error = f"{entry.sqlstate} {entry.message}" if entry.sqlstate else None
        return (
            entry.at, self._last_id, entry.user, entry.door, entry.address, self._database.address,
            entry.session or None, entry.kind, entry.text, entry.outcome, error, entry.ms, entry.rows,
            fingerprint(entry.statement), entry.version or None,
        )  # fmt: skip


def recorded(state: State, kind: str) -> list[tuple[int, Table]]:
    """The tables of ``history`` or ``audit`` with the number of their period, oldest first."""
    found = [
        (int(table.name.rpartition("_")[2]), table)
        for table in state.tables.values()
        if table.schema == INTERNAL and table.name.startswith(f"{kind}_")
    ]
    return sorted(found, key=lambda item: item[0])


def fingerprint(text: str) -> str:
    """What statements have in common that differ in their values, spaces and case only.

    >>> fingerprint("SELECT 1") == fingerprint("select  2")
    True
    """
    plain = _SPACE.sub(" ", _VALUE.sub("?", text[:STATEMENT_CHARS_MAX])).strip().lower()
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _batch(columns: Mapping[str, Type], rows: list[Sequence[Any]]) -> pa.RecordBatch:
    arrays = [
        physical_array(pa.array([row[place] for row in rows], type.arrow), type)
        for place, type in enumerate(columns.values())
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
