"""What changes rows that are there: UPDATE, DELETE and MERGE as plans over the table they change, and RETURNING.

    UPDATE t SET a = a + o.x FROM o WHERE t.id = o.id

    Project: _place, _row_id, _created_at, a + o.x, b        one row for each pair: the writer takes the first of a place
    └─ Filter: t.id = o.id
       └─ Join inner: t, o

The table comes with hidden columns that name each row; which they are is the writer's affair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lake.errors import DuplicateColumn, InvalidColumnReference, SyntaxFailure, UndefinedColumn, near_name
from lake.sql import ast, bound, plan
from lake.sql.bind.aggregate import to_boolean
from lake.sql.bind.coerce import cast, is_nullable
from lake.sql.bind.dml import InsertRows, bind_expression_over
from lake.sql.bind.query import exact
from lake.sql.bind.scope import Bound, Entry, Env, From, ReadySource, Scope, Shared, check_aliases
from lake.sql.bind.source import bind_from, bind_source, rename, scan
from lake.sql.bound import Case, Column, Expr, IsNull, Literal
from lake.sql.catalog import Table, TableColumn
from lake.types import BIGINT, BOOLEAN

Defaults = Mapping[str, ast.Expr]
EXCLUDED: Final = "excluded"  # what ON CONFLICT calls the rows to be inserted


class ChangedRows(Struct, frozen=True):
    """The rows a statement changes.

    plan      answers ``hidden``, ``action`` and ``columns``
    hidden    columns that name the row: NULL where there is none yet
    action    of MERGE, the position of the clause that is taken; None of the others
    columns   new values of all columns of the table, in order and in their types; of DELETE the old ones
    """

    plan: plan.Plan
    hidden: tuple[Column, ...]
    action: Column | None
    columns: tuple[Column, ...]


class Target:
    """The table being changed: in reach of expressions, with its columns, defaults and hidden columns."""

    def __init__(
        self,
        name: ast.Name,
        alias: ast.Alias | None,
        table: Table,
        columns: Sequence[TableColumn],
        defaults: Defaults,
        hidden: Sequence[str],
        shared: Shared,
    ) -> None:
        made = scan(table, shared, max(name.parts, table.name, key=len))
        if alias is not None:
            if alias.columns:
                raise SyntaxFailure(f'the alias "{alias.name}" takes no names of columns')
            made = From(made.plan, rename(made.entries, alias, shared))
        self.made = made
        self.name = name.last
        self.columns = columns
        self.defaults = defaults
        self.shared = shared
        found = {entry.name: entry.column for entry in made.entries}
        self.hidden = tuple(found[name] for name in hidden)
        self.own = {column.name: found[column.name] for column in columns}

    def assigned(self, assignments: Sequence[ast.Assignment], env: Env) -> dict[str, Expr]:
        """New values by column.

        42701  a column set twice      42703  no such column
        """
        values: dict[str, Expr] = {}
        for item in assignments:
            column = self.column(item.column, item)
            if column.name in values:
                raise DuplicateColumn(
                    f'multiple assignments to same column "{column.name}"', position=self.shared.position(item)
                )
            values[column.name] = self.value(column, item.value, env)
        return values

    def column(self, name: str, node: ast.Node) -> TableColumn:
        """The table's column of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        hint = near_name(name, [column.name for column in self.columns if not column.refusal])
        raise UndefinedColumn(
            f'column "{name}" of relation "{self.name}" does not exist', hint=hint, position=self.shared.position(node)
        )

    def value(self, column: TableColumn, value: ast.Expr | None, env: Env) -> Expr:
        """A value for a column in its type; None and DEFAULT are its default."""
        if value is None or isinstance(value, ast.Default):
            default = self.defaults.get(column.name)
            if default is None:
                return Literal(column.type, None)
            found = bind_expression_over(default, (), "", "DEFAULT expressions", self.shared)
        else:
            found = env.bind(value)
        return cast(found, column.type, time_zone=self.shared.settings.time_zone)


def bind_update(statement: ast.Update, target: Target, shared: Shared) -> ChangedRows:
    """The rows of UPDATE with their new values."""
    made, env = _rows_of(target, statement.sources, statement.where, shared)
    values = target.assigned(statement.assignments, replace(env, clause="UPDATE"))
    return _changed(target, made, None, [values.get(name, column) for name, column in target.own.items()], shared)


def bind_delete(statement: ast.Delete, target: Target, shared: Shared) -> ChangedRows:
    """The rows of DELETE."""
    made, _ = _rows_of(target, statement.sources, statement.where, shared)
    return _changed(target, made, None, list(target.own.values()), shared)


def _rows_of(
    target: Target, sources: Sequence[ast.Source], where: ast.Expr | None, shared: Shared
) -> tuple[plan.Plan, Env]:
    made, scope = bind_from((ReadySource(target.made), *sources), Scope(), shared)
    env = Env(shared, scope, "WHERE")
    if where is not None:
        conjuncts = bound.conjuncts(to_boolean(env.bind(where), "WHERE", env.position(where), env))
        made = plan.Filter(conjuncts, made)
    return made, env


def _changed(
    target: Target, made: plan.Plan, action: Expr | None, values: Sequence[Expr], shared: Shared
) -> ChangedRows:
    """A projection on what the writer needs; every output is a column of its own."""
    hidden = tuple(shared.column(column.name, column.type) for column in target.hidden)
    taken = None if action is None else shared.column("action", BIGINT)
    columns = tuple(
        shared.column(column.name, column.type, is_nullable(value))
        for column, value in zip(target.columns, values, strict=True)
    )
    outputs = (*hidden, *(() if taken is None else (taken,)), *columns)
    exprs = (*target.hidden, *(() if action is None else (action,)), *values)
    return ChangedRows(plan.Project(outputs, exprs, made), hidden, taken, columns)


# --- MERGE -----------------------------------------------------------------------------------------------------------

_JOINS: Final = {
    (False, False): plan.JoinKind.INNER,
    (True, False): plan.JoinKind.LEFT,
    (False, True): plan.JoinKind.RIGHT,
    (True, True): plan.JoinKind.FULL,
}


def bind_merge(statement: ast.Merge, target: Target, shared: Shared) -> ChangedRows:
    """The pairs of MERGE, each with the first clause of its kind whose condition holds; none where no clause does.

    42712  source and target of one name
    """
    source = _marked(bind_source(statement.source, Scope(), shared, ()), shared)
    check_aliases(target.made.entries, source.entries, shared.position(statement.source))
    both = Env(shared, Scope(target.made.entries + source.entries), "MERGE")
    on = bound.conjuncts(to_boolean(both.bind(statement.on), "ON", both.position(statement.on), both))
    kinds = {clause.when for clause in statement.clauses}
    joined = _JOINS["not matched by source" in kinds, "not matched" in kinds]
    on = tuple(item for item in on if item != bound.conjunction(()))
    made: plan.Plan = plan.Join(joined, target.made.plan, source.plan, on)
    has_source, has_target = _is_there(source.entries[-1].column), _is_there(target.hidden[0])
    sides = {
        "matched": (both, bound.conjunction((has_source, has_target))),
        "not matched": (replace(both, scope=Scope(source.entries)), bound.Not(BOOLEAN, has_target)),
        "not matched by source": (replace(both, scope=Scope(target.made.entries)), bound.Not(BOOLEAN, has_source)),
    }
    whens: list[tuple[Expr, Expr]] = []
    new: dict[str, list[tuple[int, Expr]]] = {column.name: [] for column in target.columns}
    for number, clause in enumerate(statement.clauses):
        env, applies = sides[clause.when]
        if clause.condition is not None:
            condition = to_boolean(env.bind(clause.condition), "WHEN", env.position(clause.condition), env)
            applies = bound.conjunction((applies, condition))
        whens.append((applies, Literal(BIGINT, number)))
        for name, value in _values_of(clause, target, env).items():
            new[name].append((number, value))
    pick = Case(BIGINT, tuple(whens), Literal(BIGINT, None))
    action = shared.column("action", BIGINT)
    made = plan.Project((*made.columns, action), (*made.columns, pick), made)
    made = plan.Filter((bound.Not(BOOLEAN, IsNull(BOOLEAN, action)),), made)
    values = [_picked(column, new[column.name], target, action) for column in target.columns]
    return _changed(target, made, action, values, shared)


def bind_conflict(
    statement: ast.Insert, conflict: ast.Conflict, rows: InsertRows, target: Target, key: Sequence[str], shared: Shared
) -> tuple[ChangedRows, ast.Merge]:
    """INSERT .. ON CONFLICT as the MERGE that it is, and its clauses; its rows are called ``excluded``.

    42P10  the columns of ON CONFLICT are not the table's key
    """
    if not key or (conflict.columns and set(conflict.columns) != set(key)):
        raise InvalidColumnReference(
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
            position=shared.position(conflict),
        )
    names = [column.name for column in target.columns]
    entries = tuple(
        Entry(name, column, (EXCLUDED,), shadowed=True) for name, column in zip(names, rows.columns, strict=True)
    )
    new = {name: ast.Column(ast.Name((EXCLUDED, name))) for name in names}
    same = tuple(ast.Binary("=", ast.Column(ast.Name((statement.table.last, name))), new[name]) for name in key)
    insert = ast.MergeClause("not matched", None, "insert", columns=tuple(names), values=tuple(new.values()))
    clauses = [insert]
    match conflict.action:
        case "update":
            clauses.append(ast.MergeClause("matched", conflict.where, "update", conflict.assignments))
        case "replace":
            given = [name for name in names if name in rows.given and name not in key]
            assignments = tuple(ast.Assignment(name, new[name]) for name in given)
            clauses.append(ast.MergeClause("matched", None, "update", assignments))
        case _:
            pass
    source = ReadySource(From(rows.plan, entries))
    on = same[0] if len(same) == 1 else ast.And(same)
    merge = ast.Merge(statement.table, source, on, tuple(clauses), returning=statement.returning)
    return bind_merge(merge, target, shared), merge


def _marked(source: From, shared: Shared) -> From:
    """The source with one more column, never NULL, by which a row of it is told from none."""
    mark = shared.column("source", BOOLEAN)
    made = plan.Project((*source.plan.columns, mark), (*source.plan.columns, Literal(BOOLEAN, True)), source.plan)
    return From(made, (*source.entries, Entry("", mark, hidden=True, shadowed=True)))


def _is_there(column: Column) -> Expr:
    return bound.Not(BOOLEAN, IsNull(BOOLEAN, replace(column, nullable=True)))


def _values_of(clause: ast.MergeClause, target: Target, env: Env) -> dict[str, Expr]:
    """The values a clause gives to columns.

    42601  not as many values as columns
    """
    if clause.action == "update":
        return target.assigned(clause.assignments, env)
    if clause.action != "insert":
        return {}
    columns = [target.column(name, clause) for name in clause.columns] or list(target.columns)
    if len({column.name for column in columns}) < len(columns):
        raise DuplicateColumn("a column is specified more than once", position=env.position(clause))
    values = clause.values or ()
    if clause.values is not None and len(values) > len(columns):
        raise SyntaxFailure("INSERT has more expressions than target columns", position=env.position(clause))
    if clause.columns and len(values) < len(columns):
        raise SyntaxFailure("INSERT has more target columns than expressions", position=env.position(clause))
    given = {column.name: target.value(column, value, env) for column, value in zip(columns, values)}
    return {column.name: given.get(column.name) or target.value(column, None, env) for column in target.columns}


def _picked(column: TableColumn, values: Sequence[tuple[int, Expr]], target: Target, action: Column) -> Expr:
    """A column's value by the clause that is taken; the old one under a clause that does not set it."""
    whens = tuple((bound.Compare.of("=", action, Literal(BIGINT, number)), value) for number, value in values)
    old = replace(target.own[column.name], nullable=True)
    return Case(column.type, whens, old) if whens else old


# --- RETURNING -------------------------------------------------------------------------------------------------------


def bind_returning(
    items: Sequence[ast.SelectItem], name: ast.Name, alias: ast.Alias | None, table: Table, shared: Shared
) -> Bound:
    """The answer of RETURNING over the rows of ``table``."""
    made = scan(table, shared, max(name.parts, table.name, key=len))
    if alias is not None:
        made = From(made.plan, rename(made.entries, alias, shared))
    query = ast.Query(ast.Select(tuple(items), (ReadySource(made),)))
    found = shared.bind_query(query, Scope(), shared)
    for node in plan.walk(found.plan):
        if isinstance(node, plan.Aggregate):
            raise InvalidColumnReference("aggregate functions are not allowed in RETURNING")
    return Bound(exact(found), found.columns, found.names)


