"""The part of the fold that keeps what is over: dropped tables, rows from before a TRUNCATE, clones.

    DROP TABLE t        t ── State.past                         UNDROP: back, under the name that is free by then
    TRUNCATE t          t ── earlier ── its rows until then      AT, RESTORE and feeds follow ``earlier``
    CREATE c CLONE t    c ── the files of t                      expiry asks all tables of the family before it removes one

A table of the past is a table like any other but that nobody can name: its tail is tiered, its files are merged, and what
it deleted is purged, until ``ForgetPast`` says that its time is over. Spec: SQL, Table lifecycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lake.errors import UndefinedTable
from lake.storage.catalog import fold_objects
from lake.storage.catalog.changes import CloneTable, DropTable, ForgetPast, ForgetProducers, Truncate, UndropTable
from lake.storage.catalog.deletes import NOTHING
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.model import Column, Definition, Table

if TYPE_CHECKING:
    from lake.storage.catalog.fold import Draft
    from lake.storage.tail.tail import Tail


def drop_table(draft: Draft, change: DropTable) -> None:
    """Takes a table's name away; what it had is kept, or goes with all its earlier rows."""
    table = draft.table(change.table)
    draft.fields["tables"] = draft.fields["tables"].remove(table.id)
    draft.fields["names"] = draft.fields["names"].remove((table.schema, table.name))
    fold_objects.drop_objects_of(draft, table.id, keep=change.keep)
    if change.keep:
        kept = msgspec.structs.replace(table, lost=draft.number, lost_at=draft.time)
        draft.fields["past"] = _past(draft).set(table.id, kept)
    else:
        draft.throw_away(table)
        _forget_earlier(draft, table)


def undrop_table(draft: Draft, change: UndropTable) -> None:
    """Gives a dropped table its name again.

    42P01  its time was over      42P07  another table has the name
    """
    table = _past(draft).get(change.table)
    if table is None or table.owner:
        raise UndefinedTable("the table is not kept any longer")
    draft.take_name(table.schema, table.name, table.id)
    fold_objects.undrop_objects_of(draft, table.id)
    draft.fields["past"] = _past(draft).remove(table.id)
    back = msgspec.structs.replace(table, lost=0, lost_at=0)
    draft.fields["tables"] = draft.fields["tables"].set(table.id, back)


def clone_table(draft: Draft, change: CloneTable) -> None:
    """Makes a table of another's files, tail and deletions; its past starts here."""
    table, source = change.table, draft.table(change.source)
    draft.take_name(table.schema, table.name, table.id)
    family = source.family or source.id
    draft.put(msgspec.structs.replace(source, family=family))
    tail: Tail | None = draft.fields["tails"].get(source.id)
    if tail is not None:
        draft.fields["tails"] = draft.fields["tails"].set(table.id, tail)
        draft.fields["tail_rows"] += tail.rows
    draft.set_deletes(table.id, draft.deletes(source.id))
    made = msgspec.structs.replace(
        table,
        files=source.files,
        manifests=source.manifests,
        sketches=source.sketches,
        tiered=source.tiered,
        written=source.file_rows + (tail.rows if tail is not None else 0),
        created=draft.time,
        born=draft.number,
        horizon=draft.number,
        family=family,
        gone=source.gone,
    )
    draft.fields["tables"] = draft.fields["tables"].set(table.id, made)
    draft.fields["next_id"] = max(draft.fields["next_id"], table.id + 1)


def truncate(draft: Draft, change: Truncate) -> None:
    """Empties a table; its rows become a table of the past, or garbage."""
    table = draft.table(change.table)
    earlier = table.earlier
    tail: Tail | None = draft.fields["tails"].get(table.id)
    if not change.keep:
        draft.throw_away(table)
        _forget_earlier(draft, table)
        earlier = 0
    elif table.files or table.manifests or tail is not None:
        earlier = draft.fields["next_id"]
        draft.fields["next_id"] += 1
        if tail is not None:
            draft.fields["tails"] = draft.fields["tails"].remove(table.id).set(earlier, tail)
        draft.set_deletes(earlier, draft.deletes(table.id))
        draft.set_deletes(table.id, NOTHING)
        kept = msgspec.structs.replace(table, id=earlier, lost=draft.number, lost_at=draft.time, owner=table.id)
        draft.fields["past"] = _past(draft).set(earlier, kept)
    draft.put(
        msgspec.structs.replace(
            table,
            files=(),
            manifests=(),
            sketches={},
            tiered=draft.number,
            epoch=table.epoch + 1,
            layout=table.layout + 1,
            horizon=draft.number if earlier != table.earlier or not change.keep else table.horizon,
            changed=draft.number,
            history=table.history if earlier == table.earlier and change.keep else (),
            earlier=earlier,
        )
    )


def forget_past(draft: Draft, change: ForgetPast) -> None:
    """Lets go of tables of the past, and of definitions before a horizon; what is gone already is left out."""
    for id in change.tables:
        table = _past(draft).get(id)
        if table is not None:
            _forget(draft, table)
            if not table.owner:
                _forget_earlier(draft, table)
    for id, horizon in change.horizons.items():
        known: Table | None = draft.fields["tables"].get(id) or _past(draft).get(id)
        if known is not None and horizon > known.horizon:
            history = tuple(item for item in known.history if item.upto >= horizon)
            draft.put(msgspec.structs.replace(known, horizon=horizon, history=history))


def forget_producers(draft: Draft, change: ForgetProducers) -> None:
    """Forgets producers that have sent nothing for long."""
    producers = draft.producers
    for name, progress in list(producers.items()):
        if progress.at < change.before:
            producers = producers.remove(name)
    draft.fields["producers"] = producers


def with_definition(draft: Draft, table: Table, columns: tuple[Column, ...]) -> tuple[Definition, ...]:
    """The table's history when its columns become ``columns`` at this commit."""
    upto = draft.number - 1
    known = tuple(item for item in table.history if item.upto >= table.horizon)
    if columns == table.columns or upto < table.horizon or (known and known[-1].upto == upto):
        return known
    return (*known, Definition(upto, table.columns))


def _forget_earlier(draft: Draft, table: Table) -> None:
    """Lets go of all rows a table had before its TRUNCATEs."""
    earlier = _past(draft).get(table.earlier)
    while earlier is not None:
        _forget(draft, earlier)
        earlier = _past(draft).get(earlier.earlier)


def _forget(draft: Draft, table: Table) -> None:
    draft.throw_away(table)
    fold_objects.forget_objects_of(draft, table.id)
    draft.fields["past"] = _past(draft).remove(table.id)


def _past(draft: Draft) -> PersistentMap[int, Table]:
    found: PersistentMap[int, Table] = draft.fields["past"]
    return found
