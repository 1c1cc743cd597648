"""Builders of ``session.lark``, and the script of ``lake.lark``."""

from __future__ import annotations

from lake.errors import FeatureNotSupported
from lake.sql import ast
from lake.sql.build.base import BaseBuild


class SessionBuild(BaseBuild):
    """Statements about the session, and statements that show things."""

    def script(self, *statements: ast.Statement | None) -> list[ast.Statement]:
        """``a; b; c``."""
        return [statement for statement in statements if statement is not None]

    def query_statement(self, query: ast.Query) -> ast.Statement:
        """A query; ``SELECT .. INTO t`` makes a table of it."""
        if not self.into:
            return ast.QueryStatement(query)
        (select, name), *others = self.into
        self.into.clear()
        if others or _first_select(query) is not select:
            raise FeatureNotSupported("INTO stands only in the first SELECT of a statement", position=self.start + 1)
        return ast.CreateTable(name, query=query)

    def explain(self, words: str, statement: ast.Statement) -> ast.Statement:
        """``EXPLAIN ANALYZE a``."""
        return ast.Explain(statement, "analyze" in words, "verbose" in words)

    def describe(self, target: ast.Name | ast.Query) -> ast.Statement:
        """``DESCRIBE t``."""
        return ast.Describe(target)

    def summarize(self, target: ast.Name | ast.Query) -> ast.Statement:
        """``SUMMARIZE t``."""
        return ast.Summarize(target)

    def show_objects(self, kind: str, like: str | None) -> ast.Statement:
        """``SHOW TABLES LIKE 'a%'``."""
        return ast.ShowObjects(kind, like)

    def show_columns(self, table: ast.Name) -> ast.Statement:
        """``SHOW COLUMNS FROM t``."""
        return ast.ShowColumns(table)

    def show_create(self, kind: str, name: ast.Name) -> ast.Statement:
        """``SHOW CREATE TABLE t``."""
        return ast.ShowCreate(kind, name)

    def show_setting(self, name: str) -> ast.Statement:
        """``SHOW a``."""
        return ast.ShowSetting(name)

    def show_all(self) -> ast.Statement:
        """``SHOW ALL``."""
        return ast.ShowSetting("all")

    def set_setting(self, name: str, value: ast.Expr) -> ast.Statement:
        """``SET a = b``."""
        return ast.SetSetting(name, value)

    def set_on(self, name: str) -> ast.Statement:
        """``PRAGMA a``, which switches it on."""
        return ast.SetSetting(name, ast.Literal(True))

    def set_time_zone(self, zone: ast.Expr) -> ast.Statement:
        """``SET TIME ZONE 'UTC'``."""
        return ast.SetSetting("timezone", zone)

    def reset_setting(self, name: str) -> ast.Statement:
        """``RESET a`` or ``SET a = DEFAULT``."""
        return ast.SetSetting(name, None)

    def reset_all(self) -> ast.Statement:
        """``RESET ALL``."""
        return ast.SetSetting("all", None)

    def setting_name(self, path: ast.Name) -> str:
        """``a.b``."""
        return str(path)

    def time_zone(self) -> str:
        """``TIME ZONE``."""
        return "timezone"

    def on(self) -> ast.Expr:
        """``ON`` as the value of a setting."""
        return ast.Literal(True)

    def setting_list(self, *values: ast.Expr) -> ast.Expr:
        """``SET search_path = a, b``."""
        return ast.Row(values)

    def prepare(self, name: str, types: tuple[ast.TypeName, ...] | None, statement: ast.Statement) -> ast.Statement:
        """``PREPARE a (INT) AS SELECT $1``."""
        return ast.Prepare(name, types or (), statement)

    def type_list(self, *types: ast.TypeName) -> tuple[ast.TypeName, ...]:
        """``INT, VARCHAR``."""
        return types

    def execute(self, name: str, arguments: tuple[ast.Expr, ...] = ()) -> ast.Statement:
        """``EXECUTE a (1, 'b')``."""
        return ast.Execute(name, arguments)

    def deallocate(self, *parts: str) -> ast.Statement:
        """``DEALLOCATE a``."""
        return ast.Deallocate(parts[-1])

    def deallocate_all(self, *parts: str) -> ast.Statement:
        """``DEALLOCATE ALL``."""
        return ast.Deallocate(None)

    def checkpoint(self) -> ast.Statement:
        """``CHECKPOINT``."""
        return ast.Checkpoint()

    def analyze(self, table: ast.Name | None) -> ast.Statement:
        """``ANALYZE t``."""
        return ast.Analyze(table)

    def begin(self, words: str) -> ast.Statement:
        """``BEGIN``."""
        return ast.Transaction("begin")

    def commit(self, words: str) -> ast.Statement:
        """``COMMIT``."""
        return ast.Transaction("commit")

    def rollback(self, words: str) -> ast.Statement:
        """``ROLLBACK``."""
        return ast.Transaction("rollback")

    def savepoint(self, name: str) -> ast.Statement:
        """``SAVEPOINT s``."""
        return ast.Transaction("savepoint", name)

    def release(self, name: str) -> ast.Statement:
        """``RELEASE SAVEPOINT s``."""
        return ast.Transaction("release", name)

    def rollback_to(self, name: str) -> ast.Statement:
        """``ROLLBACK TO SAVEPOINT s``."""
        return ast.Transaction("rollback to", name)


def _first_select(body: ast.Body) -> ast.Body:
    """The SELECT whose INTO names the table of the whole query."""
    while True:
        match body:
            case ast.Query(inner):
                body = inner
            case ast.SetOperation(_, _, left, _):
                body = left
            case _:
                return body
