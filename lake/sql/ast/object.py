"""Statements about objects that hold no rows: sequences, enum types, indexes."""

from __future__ import annotations

from lake.sql.ast.base import Name, Node
from lake.sql.ast.dml import Statement
from lake.sql.ast.expr import Expr
from lake.sql.ast.table import IfTaken, SequenceOption


class CreateSequence(Statement, frozen=True):
    """``CREATE SEQUENCE s START WITH 10``."""

    name: Name
    options: tuple[SequenceOption, ...] = ()
    if_taken: IfTaken = IfTaken.FAIL


class AlterSequence(Statement, frozen=True):
    """``ALTER SEQUENCE s RESTART WITH 10``."""

    name: Name
    options: tuple[SequenceOption, ...]
    if_exists: bool = False


class RenameObject(Statement, frozen=True):
    """``ALTER SEQUENCE | TYPE | INDEX a RENAME TO b``; ``kind`` is the word, lower case."""

    kind: str
    name: Name
    to: str
    if_exists: bool = False


class CreateType(Statement, frozen=True):
    """``CREATE TYPE t AS ENUM ('a', 'b')``."""

    name: Name
    labels: tuple[str, ...]
    if_taken: IfTaken = IfTaken.FAIL


class AddValue(Statement, frozen=True):
    """``ALTER TYPE t ADD VALUE IF NOT EXISTS 'b' AFTER 'a'``; ``place`` is ``before`` or ``after`` a ``neighbour``."""

    name: Name
    label: str
    quiet: bool = False
    place: str = ""
    neighbour: str = ""


class IndexKey(Node, frozen=True):
    """``a DESC NULLS LAST``; ``order`` holds the words after the expression."""

    expr: Expr
    text: str
    order: str = ""


class CreateIndex(Statement, frozen=True):
    """``CREATE UNIQUE INDEX i ON t USING btree (a, lower(b)) INCLUDE (c) WHERE d``; ``where_text`` keeps the user's words."""

    name: Name | None
    table: Name
    keys: tuple[IndexKey, ...]
    unique: bool = False
    method: str | None = None
    include: tuple[str, ...] = ()
    where: Expr | None = None
    where_text: str | None = None
    if_taken: IfTaken = IfTaken.FAIL
