"""Constraints from their words: names, columns, references; what a change of columns or tables does to them.

    a INT UNIQUE, CHECK (a > b), FOREIGN KEY (a) REFERENCES u (x) NOT ENFORCED  ->  t_a_key, t_check, t_a_fkey

Spec: SQL, Constraints and defaults 2, 3, 4; reference: constraint extras.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Many

import msgspec

from lake.db.names import qualified
from lake.errors import (
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    InvalidForeignKey,
    UndefinedColumn,
    UndefinedTable,
    WrongObjectType,
)
from lake.sql import ast, parser
from lake.sql.unparse import unparse
from lake.storage.catalog.changes import AlterObject, Change, DropObject
from lake.storage.catalog.model import Constraint, Table
from lake.storage.catalog.objects import Index, IndexKey, Sequence
from lake.storage.catalog.state import State, display_name

SUFFIXES = {"unique": "key", "check": "check", "foreign key": "fkey"}


def with_rules(table: Table, stmt: ast.CreateTable, state: State, database: str) -> Table:
    """A new table with the constraints of its statement, those of columns first."""
    for column in stmt.columns:
        for rule in column.rules:
            table = with_rule(table, rule, state, database, column=column.name)
    for rule in stmt.constraints:
        table = with_rule(table, rule, state, database)
    return table


def with_rule(table: Table, rule: ast.TableConstraint, state: State, database: str, *, column: str = "") -> Table:
    """The table with one more constraint; ``column`` is where it is written, if at a column.

    42P07  its name is taken        42703, 42701  a column that is not there, or is named twice
    42P01  no table to refer to     42830  not as many columns as it refers to, or no key to refer to
    """
    columns = rule.columns or ((column,) if column else ())
    for name in columns:
        _check_column(table, name, "named in key ")
    if len(set(columns)) < len(columns):
        raise DuplicateColumn(f"a column appears twice in {rule.kind} constraint")
    made = Constraint(rule.kind, "", columns, rule.condition_text or "", not rule.not_enforced)
    if rule.kind == "check":
        made = msgspec.structs.replace(made, columns=_in_order(table, columns_in(made.text)))
    if rule.target is not None:
        made = _referring(made, rule.target, rule.target_columns, table, state, database)
    named = columns if rule.kind != "check" or column else ()
    default = f"{table.name}_pkey" if rule.kind == "primary key" else "_".join([table.name, *named, SUFFIXES[rule.kind]])
    made = msgspec.structs.replace(made, name=free_rule_name(table, rule.name, default))
    return msgspec.structs.replace(table, constraints=(*table.constraints, made))


def free_rule_name(table: Table, name: str | None, default: str) -> str:
    """The given name of a rule, or a free one made of the default.

    42P07  the given name is taken
    """
    taken = {item.name for item in table.constraints}
    if name is not None and name in taken:
        raise DuplicateObject(f'constraint "{name}" for relation "{table.name}" already exists')
    chosen, number = name or default, 0
    while chosen in taken:
        number += 1
        chosen = f"{default}{number}"
    return chosen


def _referring(
    made: Constraint, target: ast.Name, columns: tuple[str, ...], table: Table, state: State, database: str
) -> Constraint:
    schema, name = qualified(target.parts, database)
    found = table if (schema, name) == (table.schema, table.name) else state.find(name, schema)
    shown = display_name(schema, name)
    if found is None:
        raise UndefinedTable(f'relation "{shown}" does not exist', hint=state.hint(name, schema))
    if not isinstance(found, Table):
        raise WrongObjectType(f'referenced relation "{shown}" is not a table')
    if not columns:
        columns = next((rule.columns for rule in found.constraints if rule.kind == "primary key"), ())
        if not columns:
            raise InvalidForeignKey(f'there is no primary key for referenced table "{shown}"')
    for column in columns:
        _check_column(found, column, "referenced in foreign key constraint ")
    if len(columns) != len(made.columns):
        raise InvalidForeignKey("number of referencing and referenced columns for foreign key disagree")
    return msgspec.structs.replace(made, target=(schema, name), target_columns=columns)


def _check_column(table: Table, name: str, what: str) -> None:
    if table.column(name) is None:
        raise UndefinedColumn(f'column "{name}" {what}does not exist')


def columns_in(text: str) -> set[str]:
    """Names of columns in an expression's text."""
    if not text:
        return set()
    return {node.name.last for node in ast.walk(parser.parse_expression(text)) if isinstance(node, ast.Column)}


def _in_order(table: Table, names: set[str]) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns if column.name in names)


# --- what follows from changes ---------------------------------------------------------------------------------------


def without_column(table: Table, name: str) -> tuple[Constraint, ...]:
    """The constraints that are left when a column goes: it takes along those that name it."""
    return tuple(
        item for item in table.constraints if name not in item.columns and name not in columns_in(item.text)
    )  # fmt: skip


def renamed_column(rules: Iterable[Constraint], name: str, to: str) -> tuple[Constraint, ...]:
    """Constraints whose column has another name."""
    return tuple(
        msgspec.structs.replace(item, columns=_replaced(item.columns, name, to), text=renamed_in(item.text, name, to))
        for item in rules
    )


def renamed_in(text: str, name: str, to: str) -> str:
    """An expression's text in which a column has another name."""
    if name not in columns_in(text):
        return text

    def rename(node: ast.Node) -> ast.Node:
        if isinstance(node, ast.Column) and node.name.last == name:
            return ast.Column(ast.Name((*node.name.parts[:-1], to)))
        return node

    return unparse(ast.rewrite(parser.parse_expression(text), rename))


def referring_tables(state: State, before: Table, after: Table) -> list[Table]:
    """Other tables, and ``after`` itself, whose references follow a change of the table's or its columns' names."""
    place, now = (before.schema, before.name), (after.schema, after.name)
    names = {column.id: column.name for column in after.columns}
    renamed = {column.name: names[column.id] for column in before.columns if names.get(column.id, column.name) != column.name}
    if place == now and not renamed:
        return []
    changed = []
    for table in (after, *(item for item in state.tables.values() if item.id != after.id)):
        rules = tuple(_followed(rule, place, now, renamed) for rule in table.constraints)
        if rules != table.constraints:
            changed.append(msgspec.structs.replace(table, constraints=rules))
    return changed


def _followed(rule: Constraint, place: tuple[str, str], now: tuple[str, str], renamed: dict[str, str]) -> Constraint:
    if rule.kind != "foreign key" or rule.target != place:
        return rule
    columns = tuple(renamed.get(name, name) for name in rule.target_columns)
    return msgspec.structs.replace(rule, target=now, target_columns=columns)


def changed_indexes(state: State, before: Table, after: Table) -> list[Change]:
    """What becomes of indexes when a table's columns change: they follow renames, and go with a column they name."""
    names = {column.id: column.name for column in after.columns}
    gone = {column.name for column in before.columns if column.id not in names}
    renamed = {
        column.name: names[column.id] for column in before.columns if names.get(column.id, column.name) != column.name
    }
    changes: list[Change] = []
    for item in state.objects.values():
        if not isinstance(item, Index) or item.table != before.id:
            continue
        if gone.intersection(item.columns):
            changes.append(DropObject(item.id))
            continue
        for name, to in renamed.items():
            if name in item.columns:
                item = _renamed_index(item, name, to)
        if item is not state.objects[item.id]:
            changes.append(AlterObject(item))
    return changes


def _renamed_index(index: Index, name: str, to: str) -> Index:
    keys = tuple(_renamed_key(key, name, to) for key in index.keys)
    return msgspec.structs.replace(
        index,
        keys=keys,
        columns=_replaced(index.columns, name, to),
        include=_replaced(index.include, name, to),
        where=renamed_in(index.where, name, to),
    )


def _renamed_key(key: IndexKey, name: str, to: str) -> IndexKey:
    if key.is_column:
        return msgspec.structs.replace(key, text=to) if key.text == name else key
    return msgspec.structs.replace(key, text=renamed_in(key.text, name, to))


def dropped_sequences(state: State, before: Table, after: Table) -> list[Change]:
    """Sequences of identity columns that are no longer there."""
    kept = {column.id for column in after.columns}
    return [
        DropObject(item.id)
        for item in state.objects.values()
        if isinstance(item, Sequence) and item.table == before.id and item.column not in kept
    ]


def _replaced(names: Many[str], name: str, to: str) -> tuple[str, ...]:
    return tuple(to if item == name else item for item in names)


def refuse_combined(table: Table) -> None:
    """0A000: UNIQUE of a merge table, whose values are what rows of one key come to."""
    if table.kind == "merge" and any(rule.kind == "unique" and rule.enforced for rule in table.constraints):
        raise FeatureNotSupported(f'UNIQUE of merge table "{table.name}" is not supported: its rows are combined')


def refuse_added_key(rule: ast.TableConstraint) -> None:
    """0A000: a key that comes later; rows that are there have none."""
    if rule.kind == "primary key" and not rule.not_enforced:
        raise FeatureNotSupported(
            "ALTER TABLE .. ADD PRIMARY KEY is not supported: no file is rewritten",
            hint="make the table with its key, or say NOT ENFORCED",
        )
