"""Statements that write rows."""

from __future__ import annotations

from lake.sql.ast.base import Name, Node
from lake.sql.ast.expr import Expr
from lake.sql.ast.query import Query, SelectItem


class Statement(Node, frozen=True):
    """One statement."""


class Default(Expr, frozen=True):
    """DEFAULT in the place of a value."""


class Assignment(Node, frozen=True):
    """``column = value``; the value may be DEFAULT."""

    column: str
    value: Expr


class Conflict(Node, frozen=True):
    """``ON CONFLICT (columns) DO NOTHING``, ``DO UPDATE SET a = 1 WHERE condition``, ``INSERT OR REPLACE``.

    action  ``nothing``, ``update`` or ``replace``
    """

    action: str
    columns: tuple[str, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    where: Expr | None = None


class Insert(Statement, frozen=True):
    """``INSERT INTO t (columns) query`` or ``DEFAULT VALUES``; a VALUES list is the query's body.

    returning   items of ``RETURNING a, b``
    conflict    what becomes of a row whose key is there, where the statement says so
    overriding  of identity columns: ``system``, given values are taken; ``user``, they are not; or empty
    """

    table: Name
    columns: tuple[str, ...]
    query: Query | None
    by_name: bool = False
    returning: tuple[SelectItem, ...] = ()
    conflict: Conflict | None = None
    overriding: str = ""


class Truncate(Statement, frozen=True):
    """``TRUNCATE [TABLE] a, b``."""

    tables: tuple[Name, ...]
