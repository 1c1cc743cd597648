"""The part of the fold for what holds no rows: views, sequences, enum types, indexes. Spec: SQL, Sequences and identity.

Sequences and indexes share their names with tables and views, types have names of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lake.errors import DuplicateObject, UndefinedObject, UndefinedSchema, UndefinedTable
from lake.storage.catalog.changes import (
    AdvanceSequence,
    AlterObject,
    AlterSchema,
    AlterView,
    CreateObject,
    CreateView,
    DropObject,
    DropView,
)
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.model import View
from lake.storage.catalog.objects import EnumType, Object, Sequence
from lake.storage.catalog.state import display_name

if TYPE_CHECKING:
    from lake.storage.catalog.fold import Draft


def create_view(draft: Draft, change: CreateView) -> None:
    """A view is there."""
    view = change.view
    draft.take_name(view.schema, view.name, view.id)
    draft.fields["views"] = draft.fields["views"].set(view.id, msgspec.structs.replace(view, created=draft.time))
    draft.fields["next_id"] = max(draft.fields["next_id"], view.id + 1)


def drop_view(draft: Draft, change: DropView) -> None:
    """A view goes.

    42P01  it was dropped
    """
    view: View | None = draft.fields["views"].get(change.view)
    if view is None:
        raise UndefinedTable("the view was dropped")
    draft.fields["views"] = draft.fields["views"].remove(view.id)
    draft.fields["names"] = draft.fields["names"].remove((view.schema, view.name))


def alter_view(draft: Draft, change: AlterView) -> None:
    """A view is defined anew, perhaps under another name.

    42P01  it was dropped      42P07  the name is taken
    """
    before: View | None = draft.fields["views"].get(change.view.id)
    if before is None:
        raise UndefinedTable("the view was dropped")
    if (change.view.schema, change.view.name) != (before.schema, before.name):
        draft.take_name(change.view.schema, change.view.name, change.view.id)
        draft.fields["names"] = draft.fields["names"].remove((before.schema, before.name))
    draft.fields["views"] = draft.fields["views"].set(change.view.id, change.view)


def alter_schema(draft: Draft, change: AlterSchema) -> None:
    """A schema is defined anew.

    3F000  it was dropped
    """
    if change.schema.name not in draft.fields["schemas"]:
        raise UndefinedSchema(f'schema "{change.schema.name}" does not exist')
    draft.fields["schemas"] = draft.fields["schemas"].set(change.schema.name, change.schema)


def create_object(draft: Draft, change: CreateObject) -> None:
    """An object is there.

    3F000  no such schema      42P07  the name is taken
    """
    made = change.object
    _take_name(draft, made)
    draft.fields["objects"] = _objects(draft).set(made.id, made)
    draft.fields["next_id"] = max(draft.fields["next_id"], made.id + 1)


def alter_object(draft: Draft, change: AlterObject) -> None:
    """An object is defined anew, under another name or its own.

    42704  it was dropped      42P07  the name is taken
    """
    before, after = _object(draft, change.object.id), change.object
    if (before.schema, before.name) != (after.schema, after.name):
        _take_name(draft, after)
        _free_name(draft, before)
    draft.fields["objects"] = _objects(draft).set(after.id, after)


def drop_object(draft: Draft, change: DropObject) -> None:
    """An object goes.

    42704  it was dropped
    """
    gone = _object(draft, change.object)
    _free_name(draft, gone)
    draft.fields["objects"] = _objects(draft).remove(gone.id)


def advance_sequence(draft: Draft, change: AdvanceSequence) -> None:
    """Numbers of a sequence are taken, or it is set.

    42704  it was dropped
    """
    found = _object(draft, change.sequence)
    assert isinstance(found, Sequence), "only sequences hand out numbers"
    moved = msgspec.structs.replace(found, next=change.next, called=change.called, ended=change.ended)
    draft.fields["objects"] = _objects(draft).set(found.id, moved)


def drop_objects_of(draft: Draft, table: int, *, keep: bool) -> None:
    """A table goes, and what belongs to it; with ``keep`` that only loses its name."""
    for found in _objects_of(draft, table):
        _free_name(draft, found)
        if not keep:
            draft.fields["objects"] = _objects(draft).remove(found.id)


def forget_objects_of(draft: Draft, table: int) -> None:
    """A dropped table goes for good, and what belonged to it, which has no name any longer."""
    for found in _objects_of(draft, table):
        draft.fields["objects"] = _objects(draft).remove(found.id)


def undrop_objects_of(draft: Draft, table: int) -> None:
    """A table is back, and what belongs to it has its name again.

    42P07  the name is taken by now
    """
    for found in _objects_of(draft, table):
        _take_name(draft, found)


def _objects_of(draft: Draft, table: int) -> list[Object]:
    return [found for found in _objects(draft).values() if found.table == table and table]


def _take_name(draft: Draft, item: Object) -> None:
    if not isinstance(item, EnumType):
        draft.take_name(item.schema, item.name, item.id)
        return
    if item.schema not in draft.fields["schemas"]:
        raise UndefinedSchema(f'schema "{item.schema}" does not exist')
    names: PersistentMap[tuple[str, str], int] = draft.fields["type_names"]
    if (item.schema, item.name) in names:
        raise DuplicateObject(f'type "{display_name(item.schema, item.name)}" already exists')
    draft.fields["type_names"] = names.set((item.schema, item.name), item.id)


def _free_name(draft: Draft, item: Object) -> None:
    field = "type_names" if isinstance(item, EnumType) else "names"
    draft.fields[field] = draft.fields[field].remove((item.schema, item.name))


def _object(draft: Draft, id: int) -> Object:
    found = _objects(draft).get(id)
    if found is None:
        raise UndefinedObject("the object was dropped")
    return found


def _objects(draft: Draft) -> PersistentMap[int, Object]:
    found: PersistentMap[int, Object] = draft.fields["objects"]
    return found
