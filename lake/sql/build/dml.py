"""Builders of ``dml.lark``."""

from __future__ import annotations

from lake.sql import ast
from lake.sql.build.base import BaseBuild


class DmlBuild(BaseBuild):
    """Statements that write rows."""

    def insert(self, table: ast.Name, how: str | None, query: ast.Query) -> ast.Statement:
        """``INSERT INTO t BY NAME SELECT ..``."""
        return ast.Insert(table, (), query, by_name=how == "by name")

    def insert_columns(self, table: ast.Name, columns: tuple[str, ...], query: ast.Query) -> ast.Statement:
        """``INSERT INTO t (a, b) VALUES ..``."""
        return ast.Insert(table, columns, query)

    def insert_defaults(self, table: ast.Name) -> ast.Statement:
        """``INSERT INTO t DEFAULT VALUES``."""
        return ast.Insert(table, (), None)

    def default(self) -> ast.Expr:
        """``DEFAULT`` in VALUES."""
        return ast.Default()

    def truncate(self, *parts: ast.Name) -> ast.Statement:
        """``TRUNCATE TABLE t``."""
        return ast.Truncate(parts[-1])
