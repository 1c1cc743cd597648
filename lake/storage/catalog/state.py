"""State: everything a lake is at one commit, frozen; look-ups by name.

A state is made by ``catalog.fold.apply`` from the one before it and shares with it all that the commit left alone.
Rows of files are not in it, only their records; rows of the tail are.
"""

from __future__ import annotations

import bisect
import difflib
from collections.abc import Iterable

from msgspec import Struct, field

from lake.errors import UndefinedTable
from lake.storage.catalog.access import User
from lake.storage.catalog.deletes import NOTHING, TableDeletes
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.model import INTERNAL, PUBLIC, Garbage, Progress, Schema, Table, View
from lake.storage.catalog.objects import EnumType, Index, Object, Sequence
from lake.storage.tail.tail import Tail

TIMES_MAX = 4_096  # entries of the time index; past it every second old one goes
TIME_STEP = 1_000_000  # microseconds between two entries
ELECTIONS_MAX = 1_000

QualifiedName = tuple[str, str]


class State(Struct, frozen=True):
    """A lake at commit ``number``.

    time          of that commit, microseconds; never less than the commit's before
    past          by id: tables that were dropped, and the rows of tables from before a TRUNCATE, kept for their retention
    definitions   newest commit that changed what a statement's text means: the catalog version of plan caches
    next_id       of tables, views and objects
    next_row_id   of rows, over all tables
    names         schema and name to the id of a table, view, sequence or index; ``type_names`` to that of a type
    objects       sequences, types and indexes by id, those of dropped tables too, which have no name
    tails         rows that are not in files, by table id; tables without such rows have no entry
    deletes       rows of files and tails that are gone, by table id; tables without such rows have no entry
    garbage       by path
    times         (time, number), ascending, about one for each second that had a commit
    users         and roles, by name
    signing_key   signs sessions of users; empty until there is a user
    elections     (number, time) of leaders' first commits, newest last; see ``commits.checkpoint``
    """

    number: int = 0
    time: int = 0
    term: int = 0
    format: int = 1
    definitions: int = 0
    next_id: int = 1
    next_row_id: int = 1
    tail_rows: int = 0
    schemas: PersistentMap[str, Schema] = field(default_factory=lambda: PersistentMap({PUBLIC: Schema(PUBLIC)}))
    tables: PersistentMap[int, Table] = field(default_factory=PersistentMap)
    past: PersistentMap[int, Table] = field(default_factory=PersistentMap)
    views: PersistentMap[int, View] = field(default_factory=PersistentMap)
    names: PersistentMap[QualifiedName, int] = field(default_factory=PersistentMap)
    objects: PersistentMap[int, Object] = field(default_factory=PersistentMap)
    type_names: PersistentMap[QualifiedName, int] = field(default_factory=PersistentMap)
    producers: PersistentMap[str, Progress] = field(default_factory=PersistentMap)
    tails: PersistentMap[int, Tail] = field(default_factory=PersistentMap)
    deletes: PersistentMap[int, TableDeletes] = field(default_factory=PersistentMap)
    garbage: PersistentMap[str, Garbage] = field(default_factory=PersistentMap)
    users: PersistentMap[str, User] = field(default_factory=PersistentMap)
    signing_key: str = ""
    times: tuple[tuple[int, int], ...] = ()
    elections: tuple[tuple[int, int], ...] = ()

    def find(self, name: str, schema: str = PUBLIC) -> Table | View | None:
        """The table or view of that name, or None."""
        id = self.names.get((schema, name))
        if id is None:
            return None
        return self.tables.get(id) or self.views.get(id)

    def table(self, name: str, schema: str = PUBLIC) -> Table:
        """The table of that name.

        42P01  there is none; the hint is a near name
        """
        found = self.find(name, schema)
        if not isinstance(found, Table):
            raise UndefinedTable(
                f'relation "{display_name(schema, name)}" does not exist', hint=self.hint(name, schema)
            )
        return found

    def table_by_id(self, id: int) -> Table:
        """The table with that id.

        42P01  it was dropped
        """
        found = self.tables.get(id)
        if found is None:
            raise UndefinedTable("the table was dropped")
        return found

    def stored(self, id: int) -> Table | None:
        """The table with that id, a table of the past too; None if it is gone for good."""
        return self.tables.get(id) or self.past.get(id)

    def stored_tables(self) -> list[Table]:
        """Every table that has objects in the store: those that are there, and those of the past."""
        return [*self.tables.values(), *self.past.values()]

    def dropped(self) -> list[Table]:
        """Tables that UNDROP can bring back, the one dropped last first."""
        found = [table for table in self.past.values() if not table.owner]
        return sorted(found, key=lambda table: (table.lost, table.id), reverse=True)

    def view(self, name: str, schema: str = PUBLIC) -> View:
        """The view of that name.

        42P01  there is none; the hint is a near name
        """
        found = self.find(name, schema)
        if not isinstance(found, View):
            raise UndefinedTable(f'view "{display_name(schema, name)}" does not exist', hint=self.hint(name, schema))
        return found

    def hint(self, name: str, schema: str = PUBLIC) -> str | None:
        """A question that offers the relation whose name is nearest, or None."""
        known = {display_name(*found): found for found in self.names if found[0] != INTERNAL}
        wanted = display_name(schema, name)
        same_letters = [shown for shown in known if shown.lower() == wanted.lower()]
        near = same_letters or difflib.get_close_matches(wanted, known, n=1, cutoff=0.6)
        return f'Did you mean "{near[0]}"?' if near else None

    def sequence(self, name: str, schema: str = PUBLIC) -> Sequence | None:
        """The sequence of that name, or None."""
        found = self.objects.get(self.names.get((schema, name), 0))
        return found if isinstance(found, Sequence) else None

    def index(self, name: str, schema: str = PUBLIC) -> Index | None:
        """The index of that name, or None."""
        found = self.objects.get(self.names.get((schema, name), 0))
        return found if isinstance(found, Index) else None

    def enum_type(self, name: str, schema: str = PUBLIC) -> EnumType | None:
        """The type of that name, or None."""
        found = self.objects.get(self.type_names.get((schema, name), 0))
        return found if isinstance(found, EnumType) else None

    def named_objects(self) -> list[Object]:
        """Sequences, types and indexes that have a name, by schema and name."""
        named = {*self.names.values(), *self.type_names.values()}
        found = (item for item in self.objects.values() if item.id in named)
        return sorted(found, key=lambda item: (item.schema, item.name, item.id))

    def relations(self) -> list[Table | View]:
        """Tables and views by schema and name, without the lake's own tables."""
        found: Iterable[Table | View] = (*self.tables.values(), *self.views.values())
        return sorted((item for item in found if item.schema != INTERNAL), key=lambda item: (item.schema, item.name))

    def number_at(self, time: int) -> int:
        """The newest commit at or before ``time``, or one up to about a second older; 0 where the index does not reach.

        It is exact where nothing was committed for a second before ``time``, as far as no entry has been left out.
        """
        if time >= self.time:
            return self.number
        index = bisect.bisect_right(self.times, (time, 1 << 62)) - 1
        if index < 0:
            return 0
        whole_from = 0 if len(self.times) < TIMES_MAX * 3 // 4 else TIMES_MAX // 4
        if index >= whole_from and index + 1 < len(self.times) and time >= self.times[index][0] + TIME_STEP:
            return self.times[index + 1][1] - 1
        return self.times[index][1]

    def waiting_rows(self, id: int) -> int:
        """Rows of a table that are not in files."""
        tail = self.tails.get(id)
        return tail.rows if tail else 0

    def rows(self, id: int) -> int:
        """Rows of a table."""
        return self.table_by_id(id).file_rows + self.waiting_rows(id) - self.deletes_of(id).rows

    def deletes_of(self, id: int) -> TableDeletes:
        """What is gone of a table's files and tail."""
        return self.deletes.get(id) or NOTHING

    def free_folder(self, name: str) -> str:
        """A folder below ``data/`` for a table called ``name`` that no table has: the name, or ``name__N``."""
        plain = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)[:64] or "table"
        taken = {table.folder for table in self.stored_tables()}
        taken |= {path.split("/")[1] for path in self.garbage if path.startswith("data/")}
        folder, number = plain, 1
        while folder in taken:
            number += 1
            folder = f"{plain}__{number}"
        return folder


def display_name(schema: str, name: str) -> str:
    """A relation's name as messages write it: without its schema where that is the default one."""
    return name if schema == PUBLIC else f"{schema}.{name}"


def index_times(times: tuple[tuple[int, int], ...], time: int, number: int) -> tuple[tuple[int, int], ...]:
    """The time index after a commit: commits within TIME_STEP of an entry get none of their own."""
    if times and time - times[-1][0] < TIME_STEP:
        return times
    if len(times) >= TIMES_MAX:
        half = TIMES_MAX // 2
        times = times[:half:2] + times[half:]
    return (*times, (time, number))
