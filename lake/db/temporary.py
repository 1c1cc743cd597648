"""Temporary tables and views: one session's own, in memory, over the lake's.

    CREATE TEMP TABLE t ..     names of the session come first: t means this table, until it is dropped or the session ends

They are a state of their own, folded from the very changes that commits hold, laid over the lake's state for each statement
of the session. So every statement reads and writes them as it does tables of the lake, and nothing of them is committed.
Rows are in tails; all of a node together hold ``LAKE_TEMP_MB``. Spec: SQL, Tables; HTTP, Session; reference: views.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from lake.errors import FeatureNotSupported, InvalidTableDefinition, OutOfMemory
from lake.storage.catalog.changes import (
    AppendRows,
    Change,
    CreateTable,
    CreateView,
    DropTable,
    DropView,
    Truncate,
)
from lake.storage.catalog.fold import Draft
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.model import PUBLIC, TEMPORARY_IDS
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Acknowledged, Append, Flush
from lake.storage.tables.columns import aligned
from lake.storage.tail.tail import TailPart, tail_of

NOTHING: Final = State()
"""What a session has that made nothing; states never change."""

_ids: Final = itertools.count(TEMPORARY_IDS)


class TemporarySpace:
    """What all temporary tables of a node hold together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._lock = threading.Lock()

    def move(self, by: int) -> None:
        """Takes or gives back bytes.

        53200  there are not so many left
        """
        with self._lock:
            if by > 0 and self._bytes + by > self._limit:
                raise OutOfMemory(
                    f"temporary tables of this node hold at most {self._limit >> 20} MiB together",
                    hint="LAKE_TEMP_MB is the limit; DROP what is not needed",
                )
            self._bytes += by

    def guard(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches on their way to a temporary table, as long as there is room for what has passed.

        53200  there is not
        """
        passed = 0
        for batch in batches:
            passed += batch.nbytes
            self.move(passed)
            self.move(-passed)
            yield batch

    @property
    def bytes(self) -> int:
        """How much they hold."""
        return self._bytes


class Temporary:
    """The temporary tables and views of one session.

    state  what they are; the lake's tables are not in it
    """

    def __init__(self, space: TemporarySpace) -> None:
        self._space = space
        self._held = 0
        self.state = NOTHING

    def __bool__(self) -> bool:
        return len(self.state.names) > 0

    def over(self, state: State) -> State:
        """The lake with these tables and views, which hide those of the same name."""
        if not self:
            return state
        own = self.state
        return replace(
            state,
            tables=_laid(state.tables, own.tables),
            views=_laid(state.views, own.views),
            names=_laid(state.names, own.names),
            tails=_laid(state.tails, own.tails),
            deletes=_laid(state.deletes, own.deletes),
        )

    def for_making(self, state: State, schema: str, name: str) -> State:
        """The state by which CREATE TEMPORARY finds out whether its name is free: the lake's own table does not count.

        42P16  a name in a schema
        """
        if schema != PUBLIC:
            raise InvalidTableDefinition("cannot create temporary relation in non-temporary schema")
        over = self.over(state)
        names = over.names if (schema, name) in self.state.names else over.names.remove((schema, name))
        return replace(over, names=names, next_id=next(_ids))

    def write(self, flush: Flush, state: State, *, making: bool = False) -> Acknowledged | None:
        """Takes a flush that is for these tables; None where it is the lake's.

        state   what the statement sees
        0A000   a flush for both      53200  ``LAKE_TEMP_MB``
        """
        more = flush.prepare(state) if flush.prepare is not None else ()
        return self._take((*flush.appends, *flush.changes, *more), making)

    def define(self, make: Callable[[State], Sequence[Change]], state: State, *, making: bool = False) -> bool | None:
        """Takes the changes that ``make`` answers; whether there are any, None where they are the lake's."""
        changes = make(state)
        if not changes:
            return False if making else None
        return None if self._take(changes, making) is None else True

    def reset(self, state: State) -> None:
        """Goes back to an older state of theirs."""
        self._hold(state)
        self.state = state

    def _take(self, items: Sequence[Change | Append], making: bool) -> Acknowledged | None:
        own = [making or self._is_own(item) for item in items]
        if not any(own):
            return None
        if not all(own):
            raise FeatureNotSupported("one statement changes temporary tables or the lake's, not both")
        draft = Draft(self.state, self.state.number + 1, self.state.time + 1)
        for item in items:
            if isinstance(item, Append):
                if item.batch.num_rows:
                    batch = aligned(draft.table(item.table), item.batch)
                    draft.append(AppendRows(item.table, batch.num_rows, draft.next_row_id, inline=0), batch)
            else:
                draft.apply(_unkept(item))
        made = _without_gone(draft.state())
        self._hold(made)
        self.state = made
        return Acknowledged(made.number)

    def _is_own(self, item: Change | Append) -> bool:
        if isinstance(item, CreateTable | CreateView):
            return False
        id = item.view if isinstance(item, DropView) else getattr(item, "table", None)
        return isinstance(id, int) and (id in self.state.tables or id in self.state.views)

    def _hold(self, state: State) -> None:
        held = sum(part.batch(None).nbytes for tail in state.tails.values() for part in tail.newest_first())
        self._space.move(held - self._held)
        self._held = held


def _laid(under: PersistentMap, over: PersistentMap) -> PersistentMap:  # type: ignore[type-arg]
    for key, value in over.items():
        under = under.set(key, value)
    return under


def _unkept(change: Change) -> Change:
    """A change of which nothing stays for later."""
    if isinstance(change, DropTable | Truncate):
        return replace(change, keep=False)
    return change


def _without_gone(state: State) -> State:
    """Tails without deleted rows: nobody reads the past of a temporary table."""
    tails, tables, deletes = state.tails, state.tables, state.deletes
    for id, gone in state.deletes.items():
        table, tail = state.tables[id], state.tails.get(id)
        if tail is None or table.design.key:
            continue
        kept, start = [], 0
        for chunk in tail.chunks(None):
            rows = np.delete(np.arange(chunk.num_rows), gone.tail.between(start, start + chunk.num_rows))
            start += chunk.num_rows
            if len(rows):
                kept.append(_part(chunk.take(pa.array(rows)), state.number))
        rest = tail_of(kept)
        tails = tails.remove(id) if rest is None else tails.set(id, rest)
        deletes = deletes.remove(id)
        tables = tables.set(id, replace(table, layout=table.layout + 1))
    return replace(state, tails=tails, tables=tables, deletes=deletes, garbage=PersistentMap())


def _part(batch: pa.RecordBatch, number: int) -> TailPart:
    return TailPart(rows=batch.num_rows, version=1, version_high=number, row_id=-1, created=0, batch=batch)


