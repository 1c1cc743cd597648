"""Statements that change rows that are there, and tables that hold rows."""

from __future__ import annotations

from lake.sql.ast.base import Name, Node
from lake.sql.ast.dml import Assignment, Statement
from lake.sql.ast.expr import Expr, TypeName
from lake.sql.ast.query import Alias, SelectItem, Source
from lake.sql.ast.table import ColumnDefinition, LayoutClause, Option, TableConstraint


class Update(Statement, frozen=True):
    """``UPDATE t AS x SET a = 1 FROM o WHERE condition RETURNING items``."""

    table: Name
    assignments: tuple[Assignment, ...]
    alias: Alias | None = None
    sources: tuple[Source, ...] = ()
    where: Expr | None = None
    returning: tuple[SelectItem, ...] = ()


class Delete(Statement, frozen=True):
    """``DELETE FROM t AS x USING o WHERE condition RETURNING items``."""

    table: Name
    alias: Alias | None = None
    sources: tuple[Source, ...] = ()
    where: Expr | None = None
    returning: tuple[SelectItem, ...] = ()


class MergeClause(Node, frozen=True):
    """``WHEN when AND condition THEN action``.

    when         ``matched``, ``not matched`` or ``not matched by source``
    action       ``update``, ``delete``, ``insert`` or ``do nothing``
    columns      of INSERT, empty where it names none; ``values`` are its values, None for DEFAULT VALUES
    """

    when: str
    condition: Expr | None
    action: str
    assignments: tuple[Assignment, ...] = ()
    columns: tuple[str, ...] = ()
    values: tuple[Expr, ...] | None = ()


class Merge(Statement, frozen=True):
    """``MERGE INTO t AS x USING source ON condition WHEN ..``."""

    table: Name
    source: Source
    on: Expr
    clauses: tuple[MergeClause, ...]
    alias: Alias | None = None
    returning: tuple[SelectItem, ...] = ()


class AlterAction(Node, frozen=True):
    """What ALTER TABLE does.

    kind   ``add column``, ``drop column``, ``rename column``, ``rename``, ``type``, ``set default``, ``drop default``,
           ``set not null``, ``drop not null``, ``add constraint`` or ``drop constraint``
    name   of the column or constraint; ``to`` is its new name, or the table's
    quiet  IF EXISTS of a drop, IF NOT EXISTS of an addition
    text   the words of a new default
    """

    kind: str
    name: str = ""
    to: str = ""
    quiet: bool = False
    column: ColumnDefinition | None = None
    constraint: TableConstraint | None = None
    type: TypeName | None = None
    text: str = ""
    options: tuple[Option, ...] = ()
    clause: LayoutClause | None = None


class AlterTable(Statement, frozen=True):
    """``ALTER TABLE [IF EXISTS] t action``."""

    table: Name
    action: AlterAction
    if_exists: bool = False


class Comment(Statement, frozen=True):
    """``COMMENT ON TABLE t IS 'text'``, ``COMMENT ON COLUMN t.a IS NULL``; ``kind`` is the word, lower case."""

    kind: str
    name: Name
    text: str | None
    if_exists: bool = False
