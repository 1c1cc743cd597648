"""The catalog cut down to what a user may read: what listings, name look-ups and hints work on.

A table comes with the columns that may be read, a view without its text, whoever is not a superuser alone among the users.
System tables are handed this state and no other, so a listing made tomorrow shows no more than one made today.
Spec: HTTP, Users, roles, grants 2.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from lake.db.rights.granted import Rights, roles_of
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.model import Constraint, Table, View
from lake.storage.catalog.objects import EnumType, Index, Object
from lake.storage.catalog.state import State

# Every field of State: what is cut, and what tells nothing of what a lake holds. A test holds this against State, so that
# a field which is new is thought about.
CUT: Final = frozenset(
    "tables past views names objects type_names tails deletes users signing_key producers garbage".split()
)
PLAIN: Final = frozenset(
    "number time term format definitions next_id next_row_id tail_rows schemas times elections".split()
)


def shown_state(state: State, rights: Rights) -> State:
    """The state as a user with these rights is shown it; costs a walk over all tables and views."""
    tables = [cut_table(table, rights) for table in state.tables.values() if rights.sees(table)]
    views = [cut_view(view, rights) for view in state.views.values() if rights.sees(view)]
    past = [cut_table(table, rights) for table in state.past.values() if rights.sees(table)]
    kept = {table.id for table in (*tables, *past)}
    objects = [item for item in state.objects.values() if _is_shown(item, {table.id: table for table in tables})]
    named = set(state.names.values())
    relations: list[Table | View | Object] = [*tables, *views]
    relations += [item for item in objects if not isinstance(item, EnumType) and item.id in named]
    own = roles_of(state.users, rights.user)
    return replace(
        state,
        tables=PersistentMap((table.id, table) for table in tables),
        past=PersistentMap((table.id, table) for table in past),
        views=PersistentMap((view.id, view) for view in views),
        names=PersistentMap(((item.schema, item.name), item.id) for item in relations),
        objects=PersistentMap((item.id, item) for item in objects),
        type_names=state.type_names,
        tails=PersistentMap((id, tail) for id, tail in state.tails.items() if id in kept),
        deletes=PersistentMap((id, found) for id, found in state.deletes.items() if id in kept),
        users=PersistentMap((name, user) for name, user in state.users.items() if name in own),
        signing_key="",
        producers=PersistentMap(),
        garbage=PersistentMap(),
    )


def _is_shown(item: Object, tables: dict[int, Table]) -> bool:
    """Types are shown to everyone; of sequences and indexes, those of columns that may be read."""
    if isinstance(item, EnumType):
        return True
    table = tables.get(item.table)
    if table is None:
        return False
    if isinstance(item, Index):
        return all(table.column(name) is not None for name in item.columns)
    return any(column.id == item.column for column in table.columns)


def cut_table(table: Table, rights: Rights) -> Table:
    """A table with the columns that may be read, and the rules that speak of no other."""
    refused = rights.refused(table, [column.name for column in table.columns])
    if not refused:
        return table
    columns = tuple(column for column in table.columns if column.name not in refused)
    return msgspec.structs.replace(
        table,
        columns=columns,
        constraints=tuple(rule for rule in table.constraints if _may_be_told(rule, refused)),
        options={},
        gone=(),
    )


def cut_view(view: View, rights: Rights) -> View:
    """A view without its text, which names what its maker may read."""
    return msgspec.structs.replace(view, query="")


def _may_be_told(rule: Constraint, refused: dict[str, str]) -> bool:
    return rule.kind != "check" and not any(name in refused for name in rule.columns)
