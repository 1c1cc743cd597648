"""Statements about the session, and statements that show things."""

from __future__ import annotations

from lake.sql.ast.base import Name
from lake.sql.ast.dml import Statement
from lake.sql.ast.expr import Expr, TypeName
from lake.sql.ast.query import Query


class QueryStatement(Statement, frozen=True):
    """A query as a statement."""

    query: Query


class Explain(Statement, frozen=True):
    """``EXPLAIN [ANALYZE] statement``."""

    statement: Statement
    analyze: bool = False
    verbose: bool = False


class Describe(Statement, frozen=True):
    """``DESCRIBE t`` or ``DESCRIBE query``."""

    target: Name | Query


class Summarize(Statement, frozen=True):
    """``SUMMARIZE t`` or ``SUMMARIZE query``."""

    target: Name | Query


class ShowObjects(Statement, frozen=True):
    """``SHOW TABLES | VIEWS | SCHEMAS | FUNCTIONS | DATABASES [LIKE pattern]``; ``kind`` is the word, lower case."""

    kind: str
    like: str | None = None


class ShowColumns(Statement, frozen=True):
    """``SHOW COLUMNS FROM t``."""

    table: Name


class ShowCreate(Statement, frozen=True):
    """``SHOW CREATE TABLE | VIEW t``."""

    kind: str
    name: Name


class ShowSetting(Statement, frozen=True):
    """``SHOW name`` or ``SHOW ALL`` (name ``all``)."""

    name: str


class SetSetting(Statement, frozen=True):
    """``SET name = value``; ``value`` None is RESET (name ``all`` resets all)."""

    name: str
    value: Expr | None


class Prepare(Statement, frozen=True):
    """``PREPARE name (types) AS statement``."""

    name: str
    types: tuple[TypeName, ...]
    statement: Statement


class Execute(Statement, frozen=True):
    """``EXECUTE name (arguments)``."""

    name: str
    arguments: tuple[Expr, ...] = ()


class Deallocate(Statement, frozen=True):
    """``DEALLOCATE name``; None for all."""

    name: str | None


class Checkpoint(Statement, frozen=True):
    """``CHECKPOINT``: tier what waits."""


class Analyze(Statement, frozen=True):
    """``ANALYZE [t]``: accepted, nothing to do, since statistics are kept with every commit."""

    table: Name | None = None


class Transaction(Statement, frozen=True):
    """``BEGIN``, ``COMMIT``, ``ROLLBACK``, ``SAVEPOINT s``, ``RELEASE s``, ``ROLLBACK TO s``; ``kind`` in those words.

    name    the savepoint's
    """

    kind: str
    name: str | None = None
