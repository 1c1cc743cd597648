"""CREATE OR ALTER TABLE: the table as it is written, made or changed by what ALTER TABLE can do.

    t (a INT, b INT) CLUSTER BY (a)   ->   CREATE OR ALTER TABLE t (a BIGINT, b INT, c DATE)
                                           altered: a is BIGINT, c is added, CLUSTER BY is none

What is left out of layout and options is as if it never was said. Reference: every kind of object.
"""

from __future__ import annotations

import msgspec

from lake.db.names import qualified
from lake.db.result import Result
from lake.db.run import Run
from lake.db.statements import statement
from lake.db.statements.table import create_table, table_of
from lake.db.statements.table_alter import definition, is_wider, with_added
from lake.errors import DuplicateObject, FeatureNotSupported
from lake.roles import Role
from lake.sql import ast
from lake.storage.catalog.model import Column, Table
from lake.storage.catalog.state import display_name


@statement(ast.CreateOrAlterTable, tag="CREATE TABLE", role=Role.ADMIN, audit="ddl")
def create_or_alter_table(stmt: ast.CreateOrAlterTable, run: Run) -> Result:
    """Makes a table, or alters it to what is written; answers ``{table, outcome, changes}``.

    outcome  ``created``, ``altered`` or ``unchanged``
    42P07    the name is a view's
    0A000    what would take new files: a column that goes, moves or narrows, another key, partition, NOT NULL, DEFAULT, rule
    """
    made = stmt.made
    schema, name = qualified(made.name.parts, run.database.name)
    found = run.catalog.state.find(name, schema)
    if found is None:
        create_table(msgspec.structs.replace(made, if_taken=ast.IfTaken.FAIL), run)
        return _done(name, "created", [])
    if not isinstance(found, Table):
        raise DuplicateObject(f'relation "{display_name(schema, name)}" already exists')
    wanted, _ = table_of(made, run, run.catalog.state, schema, name, found.id)
    after, changes = _altered(found, wanted, run)
    if after != found:
        run.define(definition(found, after))
    return _done(name, "altered" if changes else "unchanged", changes)


def _done(name: str, outcome: str, changes: list[str]) -> Result:
    return Result.done("CREATE TABLE", {"table": name, "outcome": outcome, "changes": changes})


def _altered(found: Table, wanted: Table, run: Run) -> tuple[Table, list[str]]:
    """The table with what is written of it, and what that changes, in words."""
    changes: list[str] = []
    columns: list[Column] = []
    places = {column.name: place for place, column in enumerate(wanted.columns)}
    for place, column in enumerate(found.columns):
        if column.name not in places:
            raise _refused(found, f'column "{column.name}" would be dropped')
        if places[column.name] != place:
            raise _refused(found, f'column "{column.name}" would move')
        columns.append(_widened(found, column, wanted.columns[place], changes))
    after = msgspec.structs.replace(found, columns=tuple(columns))
    for column in wanted.columns[len(found.columns) :]:
        if column.identity:
            raise _refused(found, f'column "{column.name}" would be added with numbers of its own')
        after = with_added(after, column, run)
        changes.append(f"added column {column.name} {column.type.sql}")
    _check_rules(found, wanted)
    return _laid_out(found, after, wanted, changes), changes


def _widened(table: Table, before: Column, after: Column, changes: list[str]) -> Column:
    for word, one, other in (
        ("NOT NULL", before.not_null, after.not_null),
        ("DEFAULT", before.default, after.default),
        ("MERGE", before.merge, after.merge),
        ("IDENTITY", before.identity, after.identity),
        ("type", (before.enum, before.labels), (after.enum, after.labels)),
    ):
        if one != other:
            raise _refused(table, f'{word} of column "{before.name}" would change')
    if before.type == after.type:
        return before
    if not is_wider(before.type, after.type):
        raise _refused(table, f'column "{before.name}" of type {before.type} would become {after.type}')
    changes.append(f"changed type of column {before.name} to {after.type.sql}")
    return msgspec.structs.replace(before, sql_type=after.sql_type, arrow=after.arrow)


def _check_rules(found: Table, wanted: Table) -> None:
    """Refuses rules that are not those that are there; names given by the lake do not count."""
    left, right = ([(rule.kind, rule.columns, rule.text, rule.enforced, rule.target, rule.target_columns)
                    for rule in table.constraints] for table in (found, wanted))  # fmt: skip
    if sorted(left) != sorted(right):
        raise _refused(found, "its constraints would change")


def _laid_out(found: Table, after: Table, wanted: Table, changes: list[str]) -> Table:
    """The table with the layout and options that are written; the key and the partition stay."""
    ids = {column.id: (after.column(column.name) or column).id for column in wanted.columns}
    design = msgspec.structs.replace(
        wanted.design,
        key=tuple(ids[id] for id in wanted.design.key),
        sequence=ids.get(wanted.design.sequence, 0),
        ttl=ids.get(wanted.design.ttl, 0),
        partition=ids.get(wanted.design.partition, 0),
        cluster=tuple(ids[id] for id in wanted.design.cluster),
    )
    if (design.key, design.partition, design.unit) != (found.design.key, found.design.partition, found.design.unit):
        raise _refused(found, "its key or its partition would change")
    if design != found.design:
        changes.append("changed the layout")
    if wanted.options != found.options:
        changes.append("changed the options")
    return msgspec.structs.replace(after, design=design, options=wanted.options)


def _refused(table: Table, what: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        f'CREATE OR ALTER TABLE "{table.name}": {what}', hint="ALTER TABLE says it, or a new table does"
    )
