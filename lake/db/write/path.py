"""The way of a query's rows into a table: few to the log, many straight to Parquet, in one commit either way.

    query ── prepare (defaults, casts, checks) ── up to LOG_ROWS rows ── log            gathered into a file by tiering
                                               └─ more ─────────────── Parquet files   recorded by the commit

Spec: SQL, Tables (INSERT .. SELECT); HTTP, Append and bulk insert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec import Struct

from lake.db.write.checks import Rules
from lake.db.write.incoming import Incoming
from lake.db.write.once import Once
from lake.db.write.unique import UniqueCheck
from lake.errors import SerializationFailure, UniqueViolation
from lake.storage.catalog.changes import AddFiles, Change
from lake.storage.catalog.model import TEMPORARY_IDS, Table
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Acknowledged, Append, Flush
from lake.storage.tables.snapshot import TableSnapshot
from lake.storage.tail.segment import rows_bytes
from lake.types import Type

if TYPE_CHECKING:
    from lake.db.database import Database

LOG_ROWS: Final = 16_384  # more rows are worth a file of their own
LOG_BYTES: Final = 4 << 20
TIER_TRIES: Final = 16  # of a write of files to a table with a key, whose tail must be in files before

Definition = Callable[[State], Sequence[Change]]
Commit = Callable[[Flush], Acknowledged]


class Written(Struct, frozen=True):
    """What became of a statement's rows."""

    rows: int
    acknowledged: Acknowledged


def write_rows(
    database: Database,
    table: Table,
    batches: Iterable[pa.RecordBatch],
    once: Once | None,
    define: Definition | None = None,
    commit: Commit | None = None,
    state: State | None = None,
    as_log: bool = False,
) -> Written:
    """Commits prepared batches to ``table``, whole or not at all.

    commit  takes the flush; by default the database does
    as_log  many rows go to the log too: rows of a transaction's own are in a tail, and files are older than a tail
    define  changes that come before the rows in the same commit: CREATE TABLE AS makes its table so
    state   what the statement sees, where that is not the newest state
    40001   the table was changed meanwhile      23505  a key that a UNIQUE constraint does not take
    """
    check = database.unique_check(table)
    if table.id >= TEMPORARY_IDS:
        batches = database.temporary_space.guard(batches)
    source = iter(batches if check is None else check.watch(batches))
    few, ended = _first(source)
    if not ended and as_log:
        few, ended = [*few, *source], True
    if ended:
        rows = sum(batch.num_rows for batch in few)
        looked = None if check is None else _looked(database, table, check, once, define, state)
        return Written(rows, (commit or database.commit)(_flush(database, table, few, None, once, define, looked)))
    # The files are written before the commit that names them; until then nobody sees them, and a crash leaves orphans.
    files = database.lake.write_files(table, chain(few, source))
    added = AddFiles(table.id, files.files, files.sketches)
    try:
        looked = None if check is None else _looked(database, table, check, once, define, state)
        flush = _flush(database, table, [], added, once, define, looked)
        for attempt in range(TIER_TRIES):
            if table.design.key and define is None:
                database.lake.tier()
            try:
                return Written(files.taken, (commit or database.commit)(flush))
            except SerializationFailure:
                is_waiting = database.lake.state.waiting_rows(table.id) > 0
                if not table.design.key or not is_waiting or attempt == TIER_TRIES - 1:
                    raise
    except BaseException:
        for file in files.files:
            database.lake.store.delete(file.path)
        raise
    raise AssertionError("unreachable")


def prepared(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], types: Sequence[Type], rules: Rules
) -> Iterator[pa.RecordBatch]:
    """A query's batches as rows of a table: ``names`` are the table's columns that the query's columns go to."""
    try:
        for batch in batches:
            if batch.num_rows:
                arrays = dict(zip(names, batch.columns, strict=True))
                yield rules.prepare(Incoming(batch.num_rows, arrays, dict(zip(names, types, strict=True))))
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()


def cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch as batches of at most LOG_ROWS rows."""
    return (batch.slice(start, LOG_ROWS) for start in range(0, batch.num_rows, LOG_ROWS))


def _first(source: Iterator[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], bool]:
    """Batches until they are too many for the log, and whether the source ended before."""
    few: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in source:
        few.append(batch)
        rows += batch.num_rows
        size += rows_bytes(batch)
        if rows > LOG_ROWS or size > LOG_BYTES:
            return few, False
    return few, True


def _looked(
    database: Database,
    table: Table,
    check: UniqueCheck,
    once: Once | None,
    define: Definition | None,
    state: State | None,
) -> UniqueCheck:
    """The check, once what the statement sees was looked at."""
    source = TableSnapshot(database.lake.snapshot(state), table)
    try:
        check.look(source, None, is_empty=define is not None)
    except UniqueViolation:
        if once is None or not once.is_known(database.lake.state):
            raise  # a send that was applied meets its own rows, and is answered as a duplicate
    return check


def _flush(
    database: Database,
    table: Table,
    batches: list[pa.RecordBatch],
    added: AddFiles | None,
    once: Once | None,
    define: Definition | None,
    check: UniqueCheck | None,
) -> Flush:
    """One flush. It looks its table up again in the order of commits: a table dropped or remade meanwhile is refused."""
    producer, seq, prev = (None, 0, None) if once is None else (once.producer, once.seq, once.prev)
    is_small = sum(map(rows_bytes, batches)) <= database.lake.options.inline_bytes
    if is_small and added is None and define is None and check is None:
        # Without ``prepare`` the small appends of a round stay one piece; larger ones ride in the commit, as no segment.
        return Flush(tuple([Append(table.id, batch, table) for batch in batches]), producer=producer, seq=seq, prev=prev)

    def prepare(state: State) -> list[Change | Append]:
        changes: list[Change | Append] = list(define(state)) if define is not None else []
        id = table.id
        if define is None:
            database.check_same(state, table)
            if check is not None:
                check.check(database.lake.snapshot(state).table_by_id(table.id), None)
        else:
            id = state.next_id
        if added is not None:
            if table.design.key and define is None and state.waiting_rows(id):
                changes += database.lake.upkeep.tier_at(state, id)
            changes.append(AddFiles(id, added.files, added.sketches))
        for batch in batches:
            changes.append(Append(id, batch))
        return changes

    return Flush(prepare=prepare, producer=producer, seq=seq, prev=prev)
