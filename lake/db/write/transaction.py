"""A transaction: several statements on one snapshot, which see each other's writes, committed as one or not at all.

    BEGIN ── base: the state at this moment ── UPDATE ── INSERT ── state: base and own writes ── COMMIT ── one flush

Each statement's flush is applied to a state of the transaction's own, by the very fold that commits use, so statements
read it as any other. COMMIT works out what is left of all of it: rows of the base that are gone, new versions of them,
and new rows. First committer wins: a row that somebody deleted or replaced meanwhile is 40001. Where tiering or a merge
moved rows, they are found again by id and version.

A transaction that was answered nothing but rows of keys so far may begin later than it did: where it comes to change a row
that was changed since its BEGIN, and every key it asked for is as it was, it goes on from the newest state, on which its
answers would have been the same. So sessions that change one row in turn all commit (``holds``).

A savepoint is the transaction's state under a name: states share what they have in common, so it costs nothing to keep.
Spec: reference, Transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.db.write.keyed import check_keys, keys_of
from lake.errors import FeatureNotSupported, InvalidSavepoint, ProgramLimitExceeded, SerializationFailure
from lake.storage.catalog.changes import DEFINITIONS, AddFiles, Advance, AppendRows, Change, DeleteRows, Truncate
from lake.storage.catalog.deletes import Numbers, encode_numbers
from lake.storage.catalog.fold import Draft
from lake.storage.catalog.model import CREATED_AT, ROW_ID, SYSTEM_COLUMNS, Table
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Acknowledged, Append, Flush
from lake.storage.tables.columns import aligned
from lake.storage.tables.keys import Keys
from lake.storage.tables.lookup import key_of
from lake.storage.tables.read import PLACE_BITS
from lake.storage.tables.snapshot import Snapshot
from lake.storage.tail.tail import tail_since, written_batches

if TYPE_CHECKING:
    from lake.db.database import Database
    from lake.db.temporary import Temporary

TRIES: Final = 10  # of a commit while upkeep moves rows
KEYS_MAX: Final = 1_000  # that a transaction which may begin later has asked for
SAVEPOINTS_MAX: Final = 10_000  # of one transaction


class _Savepoint(Struct, frozen=True):
    """What ROLLBACK TO brings back."""

    name: str
    state: State
    written: frozenset[int]
    truncated: frozenset[int]
    added: tuple[AddFiles, ...]
    temporary: State
    progress: dict[str, int]


class Transaction:
    """The writes of one session between BEGIN and COMMIT.

    base    the snapshot at BEGIN; held, so that its files stay
    state   the base and all that was written since
    failed  a statement failed: nothing but ROLLBACK, or going back to a savepoint, is left
    ended   it was rolled back since it was idle too long: nothing but ROLLBACK is left
    """

    def __init__(self, database: Database, temporary: Temporary) -> None:
        self._database = database
        self._temporary = temporary
        self._temporary_before = temporary.state
        self.base: Snapshot = database.lake.snapshot()
        self.state: State = self.base.state
        self.failed = False
        self.ended = False
        self.used_at = database.clock.monotonic()
        self._written: set[int] = set()
        self._truncated: set[int] = set()
        self._added: list[AddFiles] = []  # since a table was last emptied
        self._all: list[AddFiles] = []
        self._savepoints: list[_Savepoint] = []
        self._progress: dict[str, int] = {}
        self._keys: list[tuple[int, Keys]] = []  # all that was asked for, by table
        self._appended: list[Append] = []
        self._look: Snapshot | None = None  # of the newest statement, of which it is not known what it read
        self._stays = False  # more was read or done than rows of keys

    def snapshot(self, *, reads: bool = True) -> Snapshot:
        """What the next statement reads; nothing but definitions where it does not read."""
        made = self._database.lake.snapshot(self.state)
        if reads:
            self._stays = self._stays or self._look is not None
            self._look = made
        return made

    # --- rows of keys ------------------------------------------------------------------------------------------------

    def asked(self, snapshot: Snapshot, table: int, key: Sequence[object]) -> None:
        """The statement that was given ``snapshot`` read of it the row of this key, or none, and nothing else."""
        keys = self._encoded(table, key)
        if snapshot is self._look and keys is not None and len(self._keys) < KEYS_MAX:
            self._look = None
            self._keys.append((table, keys))

    def recalled(self, table: int, key: Sequence[object]) -> None:
        """The row of this key, or that there is none, was answered from ``state``."""
        keys = self._encoded(table, key)
        if keys is None or len(self._keys) >= KEYS_MAX:
            self._stays = True
        else:
            self._keys.append((table, keys))

    def claim(self, snapshot: Snapshot, table: Table, key: Sequence[object]) -> bool:
        """Waits for a row's turn to be changed; whether the transaction begins later than it did.

        snapshot  of the statement that changes it, which has read nothing yet
        """
        self._database.holds.take(self, (table.id, tuple(key)))
        newest, keys = self._database.lake.snapshot(), self._encoded(table.id, key)
        if self._stays or snapshot is not self._look or keys is None or newest.state is self.base.state:
            return False
        if newest.state.definitions != self.base.state.definitions:
            return False
        if not _has_changed(self.base, newest, [(table.id, keys)]) or _has_changed(self.base, newest, self._keys):
            return False
        draft = Draft(newest.state, newest.state.number + 1, self._database.clock.now())
        for append in self._appended:
            self._append(draft, append)
        self.base, self.state, self._look = newest, draft.state() if self._appended else newest.state, None
        return True

    def _encoded(self, table: int, key: Sequence[object]) -> Keys | None:
        """A key that is compared; None where a row is not the newest of its key alone."""
        found = self.base.state.tables.get(table)
        return None if found is None or found.kind != "upsert" else key_of(found.key, key)

    # --- statements --------------------------------------------------------------------------------------------------

    def write(self, flush: Flush) -> Acknowledged:
        """Takes a statement's flush: its rows are seen by the next statement and by nobody else.

        0A000  definitions
        """
        if flush.producer is not None:
            known = self.state.producers.get(flush.producer)
            if known is not None and flush.seq <= known.seq:
                return Acknowledged(0, duplicate=True)
        self._appended += flush.appends
        draft = Draft(self.state, self.base.state.number + 1, self._database.clock.now())
        more = flush.prepare(self.state) if flush.prepare is not None else ()
        for item in (*flush.appends, *flush.changes, *more):
            self._apply(draft, item)
        self._stays = self._stays or bool(flush.changes or more) or flush.producer is not None
        if flush.producer is not None:
            self._apply(draft, Advance(flush.producer, flush.seq))
            self._progress[flush.producer] = flush.seq
        self.state = draft.state()
        return Acknowledged(self.state.number)

    def _apply(self, draft: Draft, item: Change | Append) -> None:
        if isinstance(item, Append):
            self._append(draft, item)
            return
        if isinstance(item, DEFINITIONS):
            raise FeatureNotSupported("tables are not made or changed inside a transaction")
        draft.apply(item)
        if isinstance(item, AddFiles):
            self._added.append(item)
            self._all.append(item)
        elif isinstance(item, Truncate):
            self._truncated.add(item.table)
            self._added = [added for added in self._added if added.table != item.table]
        if isinstance(item, AddFiles | Truncate | DeleteRows):
            self._written.add(item.table)

    def _append(self, draft: Draft, item: Append) -> None:
        if not item.batch.num_rows:
            return
        batch = aligned(draft.table(item.table), item.batch)
        draft.append(AppendRows(item.table, batch.num_rows, draft.next_row_id, inline=0), batch)
        self._written.add(item.table)

    # --- savepoints --------------------------------------------------------------------------------------------------

    def savepoint(self, name: str) -> None:
        """Keeps what there is under a name; an older savepoint of that name is hidden by it.

        54000  too many
        """
        if len(self._savepoints) >= SAVEPOINTS_MAX:
            raise ProgramLimitExceeded(f"a transaction has at most {SAVEPOINTS_MAX} savepoints")
        kept = _Savepoint(
            name, self.state, frozenset(self._written), frozenset(self._truncated), tuple(self._added),
            self._temporary.state, dict(self._progress),
        )  # fmt: skip
        self._savepoints.append(kept)
        self._stays = True

    def release(self, name: str) -> None:
        """Forgets a savepoint and those after it; what was written stays.

        3B001  none of that name
        """
        del self._savepoints[self._place_of(name) :]

    def roll_back_to(self, name: str) -> None:
        """Goes back to a savepoint, which stays; the transaction goes on, also after a failure.

        3B001  none of that name
        """
        place = self._place_of(name)
        del self._savepoints[place + 1 :]
        kept = self._savepoints[place]
        self.state, self._added, self._progress = kept.state, list(kept.added), dict(kept.progress)
        self._written, self._truncated = set(kept.written), set(kept.truncated)
        self._temporary.reset(kept.temporary)
        self.failed = False

    def _place_of(self, name: str) -> int:
        for place in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[place].name == name:
                return place
        raise InvalidSavepoint(f'savepoint "{name}" does not exist')

    # --- the end -----------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """One commit of all that is left of the statements.

        40001  another commit changed a row, or a table, that this one changes
        """
        try:
            if self._written or self._progress:
                self._commit()
        except BaseException:
            self._temporary.reset(self._temporary_before)
            self._remove(self._all)
            raise
        finally:
            self._database.holds.release(self)
        kept = {id(added) for added in self._added}
        self._remove([added for added in self._all if id(added) not in kept])

    def rollback(self) -> None:
        """Forgets everything, what was done to temporary tables too."""
        self._database.holds.release(self)
        self._temporary.reset(self._temporary_before)
        self._remove(self._all)
        self._all, self._savepoints, self.state = [], [], self.base.state

    def _remove(self, added: list[AddFiles]) -> None:
        files = [file for change in added for file in change.files]
        if files:
            self._database.lake.discard_files(files)

    def _commit(self) -> None:
        tables = [_Net(self, self.base.state.tables[id]) for id in sorted(self._written)]
        progress = [Advance(producer, seq) for producer, seq in self._progress.items()]
        for attempt in range(TRIES):
            newest = self._database.lake.snapshot()
            deletes = {net.table.id: net.deletes(newest) for net in tables}
            for net in tables:
                net.look(newest, deletes[net.table.id])

            def prepare(state: State, deletes: dict[int, DeleteRows | None] = deletes) -> list[Change | Append]:
                changes: list[Change | Append] = []
                for net in tables:
                    changes += net.changes(state, deletes[net.table.id])
                return [*changes, *progress]

            # Rows that follow a TRUNCATE come after it, the others are written to segments before the commit.
            early = tuple(append for net in tables if not net.is_truncated for append in net.appends)
            try:
                self._database.commit(Flush(appends=early, prepare=prepare))
            except SerializationFailure:
                state = self._database.lake.state
                moved = any(net.has_moved(newest.state, state) for net in tables)
                if not moved or attempt == TRIES - 1:
                    raise
                continue
            return

    def own_files(self, id: int) -> list[AddFiles]:
        """Files written to a table and still there."""
        return [added for added in self._added if added.table == id]

    def is_truncated(self, id: int) -> bool:
        """Whether the table was emptied."""
        return id in self._truncated


def _has_changed(before: Snapshot, now: Snapshot, keys: Iterable[tuple[int, Keys]]) -> bool:
    """Whether another commit wrote one of these keys."""
    try:
        for id, found in keys:
            check_keys(before, now.state, before.state.tables[id], found)
    except SerializationFailure:
        return True
    return False


class _Net:
    """What is left of a transaction's writes to one table.

    places   rows of the base that are gone, as places in the base
    own      rows gone of files the transaction wrote, by path
    appends  new versions of rows of the base, and new rows
    """

    def __init__(self, transaction: Transaction, table: Table) -> None:
        base = transaction.base
        self._database = transaction._database
        self._base = base.table_by_id(table.id)
        self.table = table
        self.is_truncated = transaction.is_truncated(table.id)
        self.added = transaction.own_files(table.id)
        self.own: dict[str, bytes] = {}
        self.places: Numbers = np.empty(0, np.int64)
        mine = transaction.snapshot().table_by_id(table.id)
        new = {file.path for added in self.added for file in added.files}
        # Of a table with a key nothing is deleted by place: what its rows hide is no change.
        deletes = transaction.state.deletes_of(table.id)
        gone = {path: found.at[found.numbers > base.state.number] for path, found in deletes.files.items()}
        self.own = {path: encode_numbers(rows) for path, rows in gone.items() if path in new and len(rows)}
        tail_rows = 0 if self.is_truncated or self._base.tail is None else self._base.tail.rows
        tail = deletes.tail
        if not self.is_truncated:
            numbered = {file.path: number for number, file in self._base.numbered()} if gone else {}
            places = [rows + (numbered[path] << PLACE_BITS) for path, rows in gone.items() if path not in new]
            self.places = np.concatenate([*places, tail.at[(tail.numbers > base.state.number) & (tail.at < tail_rows)]])
        own = None if mine.tail is None else tail_since(mine.tail, tail_rows)
        written = () if own is None else written_batches(own.oldest_first(), None)
        self.appends = self._appends(written, tail_rows, tail.at, base.state.next_row_id)
        self.keys = keys_of(table, [append.batch for append in self.appends]) if table.design.key else None
        self.check = self._database.unique_check(table)
        if self.check is not None:
            for append in self.appends:
                self.check.add(append.batch)
            for added in self.added:
                self.check.add_files(mine, added, self.own)

    def _appends(
        self, written: Iterable[pa.RecordBatch], start: int, dead: Numbers, next_row_id: int
    ) -> list[Append]:
        """The transaction's own rows, of which those at ``dead`` are gone; the first is row ``start`` of the tail."""
        made: list[Append] = []
        for chunk in written:
            end = start + chunk.num_rows
            if len(dead):
                rows = np.arange(start, end)
                chunk = chunk.take(pa.array(rows[~np.isin(rows, dead)] - start))
            start = end
            if not chunk.num_rows:
                continue
            columns = [name for name in chunk.schema.names if name not in SYSTEM_COLUMNS]
            if ROW_ID not in chunk.schema.names:
                made.append(Append(self.table.id, chunk.select(columns)))
                continue
            is_old = chunk.column(ROW_ID).to_numpy() < next_row_id
            for flags, names in ((is_old, [*columns, ROW_ID, CREATED_AT]), (~is_old, columns)):
                if flags.any():
                    kept = chunk if flags.all() else chunk.filter(pa.array(flags))
                    made.append(Append(self.table.id, kept.select(names)))
        return made

    def deletes(self, newest: Snapshot) -> DeleteRows | None:
        """The deletions, by places in the newest state.

        40001  a row is gone already      42P01  the table was dropped
        """
        if not len(self.places) and not self.own:
            return None
        now = newest.table_by_id(self.table.id)
        if not len(self.places):
            return DeleteRows(self.table.id, now.table.layout, self.own)
        source, places = self._base, self.places
        if now.table.layout != self.table.layout:
            source, places = now, now.places_of(*self._base.versions_at(self.places))
        change = source.deletes_at(places)
        return msgspec.structs.replace(change, files={**change.files, **self.own})

    def look(self, newest: Snapshot, deletes: DeleteRows | None) -> None:
        """Refuses, before the order of commits is asked, keys that are there already.

        23505  a key that a UNIQUE constraint does not take
        """
        if self.check is not None:
            self.check.look(newest.table_by_id(self.table.id), deletes, is_empty=self.is_truncated)

    def changes(self, state: State, deletes: DeleteRows | None) -> list[Change | Append]:
        """What is committed beside early appends.

        40001  the table was altered, or it was emptied here and written elsewhere
        """
        self._database.check_same(state, self.table)
        now = state.table_by_id(self.table.id)
        made: list[Change | Append] = []
        if self.keys is not None and not self.is_truncated:
            check_keys(self._base.snapshot, state, self.table, self.keys)
        if self.is_truncated:
            if (now.written, now.changed, now.epoch) != (self.table.written, self.table.changed, self.table.epoch):
                raise SerializationFailure("could not serialize access due to concurrent update")
            made.append(Truncate(self.table.id, self.table.keeps_past))
        elif self.check is not None:
            if deletes is not None and deletes.layout != now.layout:
                raise SerializationFailure(f'rows of table "{now.name}" moved to other files meanwhile')
            self.check.check(self._database.lake.snapshot(state).table_by_id(now.id), deletes)
        made += self.added
        if deletes is not None:
            layout = now.layout + self.is_truncated if not len(self.places) else deletes.layout
            made.append(msgspec.structs.replace(deletes, layout=layout))
        return [*made, *self.appends] if self.is_truncated else made

    def has_moved(self, before: State, after: State) -> bool:
        """Whether rows moved to other files between two states."""
        found = [state.tables.get(self.table.id) for state in (before, after)]
        return found[0] is not None and found[1] is not None and found[0].layout != found[1].layout
