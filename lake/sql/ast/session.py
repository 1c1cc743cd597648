"""Statements about the session, and statements that show things."""

from __future__ import annotations

from dataclasses import dataclass

from lake.sql.ast.base import Name
from lake.sql.ast.dml import Statement
from lake.sql.ast.expr import Expr, TypeName
from lake.sql.ast.query import Query


@dataclass(frozen=True, slots=True)
class QueryStatement(Statement):
    """A query as a statement."""

    query: Query


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """``EXPLAIN [ANALYZE] statement``."""

    statement: Statement
    analyze: bool = False
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    """``DESCRIBE t`` or ``DESCRIBE query``."""

    target: Name | Query


@dataclass(frozen=True, slots=True)
class Summarize(Statement):
    """``SUMMARIZE t`` or ``SUMMARIZE query``."""

    target: Name | Query


@dataclass(frozen=True, slots=True)
class ShowObjects(Statement):
    """``SHOW TABLES | VIEWS | SCHEMAS | FUNCTIONS | DATABASES [LIKE pattern]``; ``kind`` is the word, lower case."""

    kind: str
    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowColumns(Statement):
    """``SHOW COLUMNS FROM t``."""

    table: Name


@dataclass(frozen=True, slots=True)
class ShowCreate(Statement):
    """``SHOW CREATE TABLE | VIEW t``."""

    kind: str
    name: Name


@dataclass(frozen=True, slots=True)
class ShowSetting(Statement):
    """``SHOW name`` or ``SHOW ALL`` (name ``all``)."""

    name: str


@dataclass(frozen=True, slots=True)
class SetSetting(Statement):
    """``SET name = value``; ``value`` None is RESET (name ``all`` resets all)."""

    name: str
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Prepare(Statement):
    """``PREPARE name (types) AS statement``."""

    name: str
    types: tuple[TypeName, ...]
    statement: Statement


@dataclass(frozen=True, slots=True)
class Execute(Statement):
    """``EXECUTE name (arguments)``."""

    name: str
    arguments: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Deallocate(Statement):
    """``DEALLOCATE name``; None for all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Checkpoint(Statement):
    """``CHECKPOINT``: tier what waits."""


@dataclass(frozen=True, slots=True)
class Analyze(Statement):
    """``ANALYZE [t]``: accepted, nothing to do, since statistics are kept with every commit."""

    table: Name | None = None


@dataclass(frozen=True, slots=True)
class Transaction(Statement):
    """``BEGIN``, ``COMMIT``, ``ROLLBACK``, ``SAVEPOINT s``, ``RELEASE s``, ``ROLLBACK TO s``; ``kind`` in those words.

    name    the savepoint's
    """

    kind: str
    name: str | None = None
