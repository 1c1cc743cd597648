"""The binder: AST to plan. Every name becomes a column, every expression gets a type, every call an implementation.

    scope      which name means which column; what a statement's binding shares
    coerce     implicit casts, common types, constants cast at once
    overload   which overload a call means; operators
    arguments  named arguments and lambdas
    expr       expressions, one function a node
    casts      CAST, ``::``, TRY_CAST
    subquery   scalar, EXISTS, IN, ANY and ALL
    call       calls as written
    aggregate  aggregates, and expressions over groups
    window     OVER and frames
    names      names of unnamed columns
    star       ``*`` and COLUMNS(..)
    group      GROUP BY
    functions  functions in FROM
    pivot      PIVOT and UNPIVOT
    source     FROM and joins
    select     SELECT
    query      WITH, set operations, VALUES, ORDER BY, LIMIT
    refusals   that no plan reads a column its caller may not
    dml        the rows of INSERT, DEFAULT and CHECK expressions
    change     the rows of UPDATE, DELETE and MERGE, RETURNING
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lake.errors import StatementTooComplex
from lake.sql import ast
from lake.sql.bind import call, casts, change, dml, subquery
from lake.sql.bind.coerce import literal_of
from lake.sql.bind.query import bind_query, exact
from lake.sql.bind.refusals import check_reads
from lake.sql.bind.scope import BINDERS, Bound, Env, Scope, Shared
from lake.sql.bind.type_names import bind_type
from lake.sql.bound import Column, Expr, Literal
from lake.sql.catalog import Catalog, Settings, Table, TableColumn

__all__ = ["Binder", "BoundQuery", "bind_type", "literal_of"]

BoundQuery = Bound
assert {call.bind_call, casts.bind_cast, subquery.bind_exists} <= set(BINDERS.values())


class Binder:
    """Binds the queries and expressions of one statement; ids of columns are unique within it.

    54001  a statement nested too deep
    """

    def __init__(self, catalog: Catalog, settings: Settings, parameters: Mapping[str, Literal] | None = None) -> None:
        self._shared = Shared(catalog, settings, parameters or {}, bind_query)

    def query(self, query: ast.Query) -> BoundQuery:
        """A query that stands alone; its plan answers just its columns, in order."""
        try:
            made = bind_query(query, Scope(), self._shared)
        except RecursionError:
            raise StatementTooComplex("the statement is nested too deep") from None
        found = Bound(exact(made), made.columns, made.names)
        if self._shared.refused:
            check_reads(found, self._shared.refused)
        return found

    def columns(self, columns: Sequence[TableColumn]) -> tuple[Column, ...]:
        """A fresh column for each of a table's, to bind expressions over."""
        return tuple(self._shared.column(item.name, item.type, item.nullable) for item in columns)

    def expression(self, expr: ast.Expr, columns: Sequence[Column] = (), table: str = "", clause: str = "") -> Expr:
        """An expression over a table's columns (CHECK), or over none (DEFAULT); no aggregate or window may stand in it."""
        try:
            return dml.bind_expression_over(expr, columns, table, clause or "check constraints", self._shared)
        except RecursionError:
            raise StatementTooComplex("the statement is nested too deep") from None

    def constant(self, expr: ast.Expr, clause: str = "this place") -> Expr:
        """An expression over no columns."""
        return Env(self._shared, Scope(), clause).bind(expr)

    def insert(
        self,
        statement: ast.Insert,
        columns: Sequence[TableColumn],
        defaults: Mapping[str, ast.Expr] | None = None,
        identity: Collection[str] = (),
    ) -> dml.InsertRows:
        """The rows an INSERT adds, in the order of the table's columns and in their types."""
        try:
            return dml.bind_insert(statement, columns, defaults or {}, identity, self._shared)
        except RecursionError:
            raise StatementTooComplex("the statement is nested too deep") from None

    def conflict(
        self,
        statement: ast.Insert,
        rows: dml.InsertRows,
        table: Table,
        columns: Sequence[TableColumn],
        defaults: Mapping[str, ast.Expr],
        hidden: Sequence[str],
        key: Sequence[str],
    ) -> tuple[change.ChangedRows, ast.Merge]:
        """What INSERT .. ON CONFLICT makes of ``rows`` of ``insert``, as ``change``, and the MERGE that it is the same as."""
        assert statement.conflict is not None, "the statement says what becomes of rows whose key is there"
        made = change.Target(statement.table, None, table, columns, defaults, hidden, self._shared)
        return change.bind_conflict(statement, statement.conflict, rows, made, key, self._shared)

    def change(
        self,
        statement: ast.Update | ast.Delete | ast.Merge,
        table: Table,
        columns: Sequence[TableColumn],
        defaults: Mapping[str, ast.Expr],
        hidden: Sequence[str],
    ) -> change.ChangedRows:
        """The rows that a statement changes; ``hidden`` are columns of ``table`` that name a row, the first never NULL."""
        try:
            made = change.Target(
                statement.table, statement.alias, table, columns, defaults, hidden, self._shared
            )
            match statement:
                case ast.Update():
                    return change.bind_update(statement, made, self._shared)
                case ast.Delete():
                    return change.bind_delete(statement, made, self._shared)
                case ast.Merge():
                    return change.bind_merge(statement, made, self._shared)
        except RecursionError:
            raise StatementTooComplex("the statement is nested too deep") from None

    def returning(
        self, items: Sequence[ast.SelectItem], name: ast.Name, alias: ast.Alias | None, table: Table
    ) -> BoundQuery:
        """The answer of RETURNING over the rows of ``table``, which are those written."""
        return change.bind_returning(items, name, alias, table, self._shared)
