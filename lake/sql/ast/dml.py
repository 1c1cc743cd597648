"""Statements that write rows."""

from __future__ import annotations

from dataclasses import dataclass

from lake.sql.ast.base import Name, Node
from lake.sql.ast.expr import Expr
from lake.sql.ast.query import Query, SelectItem


@dataclass(frozen=True, slots=True)
class Statement(Node):
    """One statement."""


@dataclass(frozen=True, slots=True)
class Default(Expr):
    """DEFAULT in the place of a value."""


@dataclass(frozen=True, slots=True)
class Insert(Statement):
    """``INSERT INTO t (columns) query`` or ``DEFAULT VALUES``; a VALUES list is the query's body.

    returning  items of ``RETURNING a, b``
    """

    table: Name
    columns: tuple[str, ...]
    query: Query | None
    by_name: bool = False
    returning: tuple[SelectItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Truncate(Statement):
    """``TRUNCATE [TABLE] t``."""

    table: Name
