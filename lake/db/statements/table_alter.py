"""ALTER TABLE and COMMENT ON: a table is defined anew, and no file is rewritten. Spec: SQL, Tables; Constraints and defaults.

A column added is NULL in older rows; a dropped one stays in files under a stored name that no other column takes. What
rows must hold (NOT NULL, CHECK) is checked on the rows that are there before the definition changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from lake.db.names import find_table, qualified
from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.enum_type import column_of
from lake.db.statements.sequence import check_defaults, refuse_later_identity
from lake.db.statements.table_design import merging, uses_of, with_layout, with_options
from lake.db.statements.table_rules import (
    changed_indexes,
    dropped_sequences,
    referring_tables,
    refuse_added_key,
    refuse_combined,
    renamed_column,
    with_rule,
    without_column,
)
from lake.db.write.checks import about, check_definition, value_for_all
from lake.errors import (
    CheckViolation,
    DependentObjects,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidTableDefinition,
    NotNullViolation,
    SerializationFailure,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
    UniqueViolation,
    near_name,
)
from lake.roles import Role
from lake.sql import ast, parser
from lake.sql.bind import bind_type
from lake.sql.quoting import quote_name
from lake.storage.catalog.changes import AlterTable, AlterView, Change
from lake.storage.catalog.model import Column, Constraint, Table, View
from lake.storage.catalog.state import State
from lake.storage.tables.columns import encode_value
from lake.types import Decimal, Float, Integer, Type

TRIES: Final = 10  # while others write rows between the look at them and the commit


@statement(ast.AlterTable, tag="ALTER TABLE", role=Role.ADMIN, audit="ddl")
def alter_table(stmt: ast.AlterTable, run: Run) -> Result:
    """Changes a table's definition; answers ``{table, altered: true}``.

    42P01  no such table           42703, 42701  no such column, or one that is there already
    0A000  what would take new files: a type that is not wider, ADD COLUMN with NOT NULL and no DEFAULT
    23502, 23505, 23514  rows that are there do not hold what is demanded
    """
    return alter(stmt, run)


def alter(stmt: ast.AlterTable, run: Run) -> Result:
    """Carries out ALTER TABLE."""
    database = run.database
    schema, name = qualified(stmt.table.parts, database.name)
    result = Result.done("ALTER TABLE", {"table": stmt.table.last, "altered": True})
    if stmt.if_exists and run.catalog.state.find(name, schema) is None:
        result.notices = (f'relation "{stmt.table}" does not exist, skipping',)
        return result
    if stmt.action.kind == "rename" and isinstance(run.catalog.state.find(name, schema), View):
        run.define(lambda state: _renamed_view(state, schema, name, stmt.action.to))
        return result
    notices: list[str] = []
    for attempt in range(TRIES):
        before = find_table(run.catalog.state, stmt.table, database.name)
        notices.clear()
        after = _ACTIONS[stmt.action.kind](before, stmt.action, run, notices)
        if after != before:
            check_defaults(after, run.catalog.state, database.name)
            check_definition(after, run.binder(), run.context(), run.catalog.state)
        try:
            run.define(definition(before, after))
        except SerializationFailure:
            if attempt == TRIES - 1:
                raise
            run.renew()
            continue
        break
    result.notices = tuple(notices)
    return result


def _renamed_view(state: State, schema: str, name: str, to: str) -> list[Change]:
    """A view under another name, which ALTER TABLE gives it too, as in Postgres."""
    found = state.find(name, schema)
    if not isinstance(found, View):
        raise UndefinedTable(f'relation "{name}" does not exist')
    return [AlterView(msgspec.structs.replace(found, name=to))]


def definition(before: Table, after: Table) -> Callable[[State], list[Change]]:
    """The change from one definition to another, refused where rows or definition are not what was looked at."""

    def make(state: State) -> list[Change]:
        now = state.table_by_id(before.id)
        if (now.written, now.changed, now.epoch) != (before.written, before.changed, before.epoch):
            raise SerializationFailure(f'rows of table "{now.name}" were written while it was altered')
        is_same = (now.name, now.columns, now.constraints) == (before.name, before.columns, before.constraints)
        if not is_same or (now.design, now.options) != (before.design, before.options):
            raise SerializationFailure(f'table "{now.name}" was altered by another statement')
        if after == before:
            return []
        followed = referring_tables(state, before, after)
        own = next((table for table in followed if table.id == after.id), after)
        others = [table for table in followed if table.id != after.id]
        objects = [*changed_indexes(state, before, after), *dropped_sequences(state, before, after)]
        return [*map(redefined, (own, *others)), *objects]

    return make


def redefined(table: Table) -> AlterTable:
    """The change that gives a table another definition."""
    return AlterTable(
        table.id,
        table.schema,
        table.name,
        table.columns,
        table.constraints,
        table.options,
        table.comment,
        table.next_column,
        table.design,
    )


def _column(table: Table, name: str) -> Column:
    found = table.column(name)
    if found is None:
        hint = near_name(name, (known.name for known in table.columns))
        raise UndefinedColumn(f'column "{name}" of relation "{table.name}" does not exist', hint=hint)
    return found


def _with_column(table: Table, changed: Column) -> Table:
    columns = tuple(changed if column.id == changed.id else column for column in table.columns)
    return msgspec.structs.replace(table, columns=columns)


# --- columns ---------------------------------------------------------------------------------------------------------


def _add_column(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    added = action.column
    assert added is not None, "ADD COLUMN has a definition"
    if table.column(added.name) is not None:
        if action.quiet:
            notices.append(f'column "{added.name}" of relation "{table.name}" already exists, skipping')
            return table
        raise DuplicateColumn(f'column "{added.name}" of relation "{table.name}" already exists')
    refuse_later_identity(added)
    if (added.merge is not None) != (table.kind == "merge"):
        words = "needs a MERGE function" if table.kind == "merge" else "takes no MERGE function"
        raise InvalidTableDefinition(f'column "{added.name}" of relation "{table.name}" {words}')
    made = column_of(0, added, run.catalog.state, run.database.name)
    after = with_added(table, merging(made, added.merge) if added.merge is not None else made, run)
    for rule in added.rules:
        refuse_added_key(rule)
        after = with_rule(after, rule, run.catalog.state, run.database.name, column=added.name)
        value = f"CAST({made.default or 'NULL'} AS {made.type.sql})"
        _demand_rows(table, after.constraints[-1], run, f"SELECT *, {value} AS {quote_name(added.name)} FROM {_named(table)}")
    return after


def with_added(table: Table, column: Column, run: Run) -> Table:
    """The table with another column at its end, whose DEFAULT is read in the rows that are there.

    0A000  NOT NULL without a value for those rows; a DEFAULT that is another for each of them, or for a merge table: how
           many rows of a key were combined already is not known
    """
    value = value_for_all(column, run.binder(), run.context())
    has_value = value is not None and value.null_count == 0
    if (column.not_null and not has_value) or (column.merge and has_value):
        raise FeatureNotSupported(
            f"ADD COLUMN .. {'NOT NULL' if column.not_null else 'DEFAULT'} is not supported: no file is rewritten",
            hint="add the column, then UPDATE it and ALTER COLUMN",
        )
    missing = encode_value(value, column.type) if value is not None and has_value else b""
    made = placed(table, msgspec.structs.replace(column, missing=missing))
    return msgspec.structs.replace(table, columns=(*table.columns, made), next_column=made.id + 1)


def placed(table: Table, column: Column) -> Column:
    """A column that is added, with an id of its own; a name used before is stored under another."""
    id = max([table.next_column, *(each.id + 1 for each in table.columns)])
    taken = {each.stored for each in table.columns} | set(table.gone)
    stored = column.name if column.name not in taken else f"{column.name}__{id}"
    while stored in taken:
        stored += "_"
    return msgspec.structs.replace(column, id=id, stored=stored)


def _drop_column(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    if table.column(action.name) is None and action.quiet:
        notices.append(f'column "{action.name}" of relation "{table.name}" does not exist, skipping')
        return table
    gone = _column(table, action.name)
    use = uses_of(table, gone.id)
    if use is not None:
        raise DependentObjects(f'cannot drop column "{gone.name}" of relation "{table.name}": its {use} needs it')
    columns = tuple(column for column in table.columns if column.id != gone.id)
    return msgspec.structs.replace(table, columns=columns, constraints=without_column(table, gone.name))


def _rename_column(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    renamed = msgspec.structs.replace(_column(table, action.name), name=action.to)
    if table.column(action.to) is not None:
        raise DuplicateColumn(f'column "{action.to}" of relation "{table.name}" already exists')
    constraints = renamed_column(table.constraints, action.name, action.to)
    return msgspec.structs.replace(_with_column(table, renamed), constraints=constraints)


def _rename_table(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    return msgspec.structs.replace(table, name=action.to)


def _alter_type(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    column = _column(table, action.name)
    assert action.type is not None, "TYPE has a type"
    type = bind_type(action.type)
    if not is_wider(column.type, type):
        raise FeatureNotSupported(
            f'column "{column.name}" of type {column.type} cannot become {type}: no file is rewritten',
            hint="a type may become a wider one of its kind",
        )
    return _with_column(table, msgspec.structs.replace(column, sql_type=type.sql, arrow=Column.of(0, "", type).arrow))


def is_wider(before: Type, after: Type) -> bool:
    """Whether every stored value of ``before`` reads as the same value of ``after``, ranges too."""
    match before, after:
        case (Integer(bits), Integer(wider)) | (Float(bits), Float(wider)):
            return bits <= wider
        case (Decimal(), Decimal()):
            return before.scale == after.scale and before.precision <= after.precision and after.is_short
        case _:
            return before == after


def _set_default(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    column = _column(table, action.name)
    if column.identity:
        raise InvalidTableDefinition(f'column "{column.name}" of relation "{table.name}" is an identity column')
    return _with_column(table, msgspec.structs.replace(column, default=action.text or None))


def _set_not_null(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    column = _column(table, action.name)
    if action.kind == "drop not null" and column.id in table.design.key:
        raise InvalidTableDefinition(f'column "{column.name}" is in a primary key')
    if action.kind == "drop not null" and column.identity:
        raise InvalidTableDefinition(f'column "{column.name}" of relation "{table.name}" is an identity column')
    if action.kind == "drop not null":
        return _with_column(table, msgspec.structs.replace(column, not_null=False))
    if _rows(f"SELECT 1 FROM {_named(table)} WHERE {quote_name(column.name)} IS NULL LIMIT 1", run):
        raise NotNullViolation(
            f'column "{column.name}" of relation "{table.name}" contains null values',
            about=about(table, column=column.name),
        )
    return _with_column(table, msgspec.structs.replace(column, not_null=True))


# --- constraints -----------------------------------------------------------------------------------------------------


def _add_constraint(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    rule = action.constraint
    assert rule is not None, "ADD CONSTRAINT has a constraint"
    refuse_added_key(rule)
    if rule.kind == "primary key" and any(item.kind == rule.kind for item in table.constraints):
        raise InvalidTableDefinition(f'multiple primary keys for table "{table.name}" are not allowed')
    after = with_rule(table, rule, run.catalog.state, run.database.name)
    check_definition(after, run.binder(), run.context(), run.catalog.state)
    refuse_combined(after)
    _demand_rows(table, after.constraints[-1], run, f"SELECT * FROM {_named(table)}")
    return after


def _demand_rows(table: Table, rule: Constraint, run: Run, rows: str) -> None:
    """Refuses a rule that rows of a query do not hold."""
    if rule.kind == "check" and rule.enforced:
        _demand_check(table, rule, run, rows)
    if rule.kind == "unique" and rule.enforced:
        _demand_unique(table, rule, run, rows)


def _demand_unique(table: Table, rule: Constraint, run: Run, rows: str) -> None:
    """Refuses UNIQUE of columns in which a key is there twice. Spec: SQL, Constraints and defaults 3."""
    columns = ", ".join(map(quote_name, rule.columns))
    there = " AND ".join(f"{quote_name(name)} IS NOT NULL" for name in rule.columns)
    found = _rows(
        f"SELECT {columns} FROM ({rows}) AS r WHERE {there} GROUP BY {columns} HAVING count(*) > 1 LIMIT 1", run
    )
    if found:
        raise UniqueViolation(
            f'could not create unique constraint "{rule.name}"',
            detail=f"Key ({', '.join(rule.columns)})=({', '.join(map(str, found[0]))}) is duplicated.",
            about=about(table, constraint=rule.name),
        )


def _demand_check(table: Table, rule: Constraint, run: Run, rows: str) -> None:
    if _rows(f"SELECT 1 FROM ({rows}) AS {quote_name(table.name)} WHERE NOT ({rule.text}) LIMIT 1", run):
        raise CheckViolation(
            f'check constraint "{rule.name}" of relation "{table.name}" is violated by some row',
            about=about(table, constraint=rule.name),
        )


def _drop_constraint(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    kept = tuple(item for item in table.constraints if item.name != action.name)
    if table.key and any(item.kind == "primary key" and item.enforced and item not in kept for item in table.constraints):
        raise FeatureNotSupported(f'the key "{action.name}" of table "{table.name}" cannot be dropped: no file is rewritten')
    if len(kept) == len(table.constraints):
        if not action.quiet:
            raise UndefinedObject(f'constraint "{action.name}" of relation "{table.name}" does not exist')
        notices.append(f'constraint "{action.name}" of relation "{table.name}" does not exist, skipping')
    return msgspec.structs.replace(table, constraints=kept)


# --- layout and options ----------------------------------------------------------------------------------------------


def _set_options(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    return with_options(table, action.options)


def _set_layout(table: Table, action: ast.AlterAction, run: Run, notices: list[str]) -> Table:
    assert action.clause is not None, "a layout has a clause"
    return with_layout(table, action.clause)


def _named(table: Table) -> str:
    return f"{quote_name(table.schema)}.{quote_name(table.name)}"


def _rows(text: str, run: Run) -> list[tuple[Any, ...]]:
    """The rows that a query answers."""
    stmt = parser.parse(text)[0]
    assert isinstance(stmt, ast.QueryStatement), "the text is a query"
    return run.answer(*run.plan(stmt.query)).rows()


Action = Callable[[Table, ast.AlterAction, Run, list[str]], Table]

_ACTIONS: Final[dict[str, Action]] = {
    "add column": _add_column,
    "drop column": _drop_column,
    "rename column": _rename_column,
    "rename": _rename_table,
    "type": _alter_type,
    "set default": _set_default,
    "drop default": _set_default,
    "set not null": _set_not_null,
    "drop not null": _set_not_null,
    "add constraint": _add_constraint,
    "drop constraint": _drop_constraint,
    "set options": _set_options,
    "layout": _set_layout,
}
