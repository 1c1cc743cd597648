"""UNDROP, RESTORE and CLONE: what a table was. Spec: SQL, Table lifecycle; Tables (Clone, Restore)."""

from __future__ import annotations

import msgspec

from lake.db.names import find_table, qualified
from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.sequence import renumbered
from lake.db.statements.table import like, make_room, new_table
from lake.db.write.restore import restore_table
from lake.errors import DuplicateObject, UndefinedTable
from lake.roles import Role
from lake.sql import ast
from lake.storage.catalog.changes import Change, CloneTable, CreateObject, UndropTable
from lake.storage.catalog.state import State, display_name

CLONE_LEAVES: tuple[str, ...] = ("publish",)  # options that a clone does not take over


@statement(ast.Undrop, tag="UNDROP TABLE", role=Role.ADMIN, audit="ddl")
def undrop(stmt: ast.Undrop, run: Run) -> Result:
    """Brings back the table dropped last under a name, with its rows, their ids and versions.

    42P01  none is kept under that name      42P07  another table has the name: rename it first
    """
    database = run.database

    def make(state: State) -> list[Change]:
        schema, name = qualified(stmt.table.parts, database.name)
        shown = display_name(schema, name)
        found = [table for table in state.dropped() if (table.schema, table.name) == (schema, name)]
        if not found:
            raise UndefinedTable(
                f'no dropped table "{shown}" is kept', hint="lake.dropped lists the tables that can be undropped"
            )
        if state.find(name, schema) is not None:
            raise DuplicateObject(f'relation "{shown}" already exists', hint="rename it, then UNDROP")
        return [UndropTable(found[0].id)]

    database.define(make)
    return Result.done("UNDROP TABLE", {"table": stmt.table.last, "undropped": True})


@statement(ast.Restore, tag="RESTORE TABLE", role=Role.ADMIN, audit="write")
def restore(stmt: ast.Restore, run: Run) -> Result:
    """Makes a table's rows what they were: one change, which another RESTORE undoes.

    22023  a moment that is to come or no longer kept      42P01  the table was not there
    0A000  a keyed table, or inside a transaction          23502, 23514  rows that the table's rules refuse by now
    """
    done = restore_table(run, stmt)
    return Result.done("RESTORE TABLE", {"table": stmt.table.last, "restored": True, **done.outcome()})


@statement(ast.CreateClone, tag="CREATE TABLE", role=Role.ADMIN, audit="ddl")
def clone_table(stmt: ast.CreateClone, run: Run) -> Result:
    """Makes a table of another's rows without copying a file; they change apart from then on.

    42P01  no such table      42P07  the name is taken
    """
    database = run.database

    def make(state: State) -> list[Change]:
        schema, name = qualified(stmt.name.parts, database.name)
        copied = find_table(state, stmt.source, database.name)
        making = make_room(state, schema, name, stmt.if_taken, "table")
        if making is None:
            return []
        options = {key: value for key, value in copied.options.items() if key not in CLONE_LEAVES}
        made = like(new_table(state, schema, name, copied.columns), copied)
        made = msgspec.structs.replace(made, options=options, comment=copied.comment)
        made, owned = renumbered(made, copied, state, from_start=False)
        return [*making, CloneTable(made, copied.id), *map(CreateObject, owned)]

    result = Result.done("CREATE TABLE", {"table": stmt.name.last, "publish": None})
    # The copies of sequences go on where those are, so what is left of blocks is given back first.
    source = find_table(run.catalog.state, stmt.source, database.name)
    owned = [item.id for item in run.catalog.state.objects.values() if item.table == source.id]
    with database.sequences.held(owned):
        made = database.define(make)
    if not made:
        result.notices = (f'relation "{stmt.name}" already exists, skipping',)
    return result
