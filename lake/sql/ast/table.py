"""Statements that make and drop tables and views."""

from __future__ import annotations

from enum import Enum

from lake.sql.ast.base import Name, Node
from lake.sql.ast.dml import Statement
from lake.sql.ast.expr import Expr, TypeName
from lake.sql.ast.query import Query, TimeTravel


class IfTaken(Enum):
    """What CREATE does when the name is taken."""

    FAIL = "fail"
    KEEP = "IF NOT EXISTS"
    REPLACE = "OR REPLACE"
    ALTER = "OR ALTER"


class TableConstraint(Node, frozen=True):
    """``[CONSTRAINT name] UNIQUE (columns)``, ``CHECK (condition)``, ``FOREIGN KEY (columns) REFERENCES u (columns)`` ..

    kind   ``primary key``, ``unique``, ``check`` or ``foreign key``
    """

    kind: str
    name: str | None = None
    columns: tuple[str, ...] = ()
    condition: Expr | None = None
    condition_text: str | None = None
    not_enforced: bool = False
    target: Name | None = None
    target_columns: tuple[str, ...] = ()


class SequenceOption(Node, frozen=True):
    """An option of a sequence: ``increment``, ``low``, ``high``, ``start``, ``cache``, ``cycle``, ``restart`` or ``type``.

    value  its number; None of NO MINVALUE, NO MAXVALUE and a bare RESTART; whether it cycles
    """

    name: str
    value: int | bool | TypeName | None


class Identity(Node, frozen=True):
    """``GENERATED ALWAYS AS IDENTITY (options)``; ``kind`` is ``always`` or ``by default``."""

    kind: str
    options: tuple[SequenceOption, ...] = ()


class ColumnDefinition(Node, frozen=True):
    """``name type [NOT NULL] [DEFAULT expr] [CHECK (cond)]`` ..; ``default_text`` keeps the user's words.

    rules  PRIMARY KEY, UNIQUE, CHECK and REFERENCES of the column alone, without naming it
    merge  what combines values of rows with one key
    identity  of a column whose values come from a sequence of its own
    """

    name: str
    type: TypeName
    not_null: bool = False
    default: Expr | None = None
    default_text: str | None = None
    rules: tuple[TableConstraint, ...] = ()
    merge: str | None = None
    identity: Identity | None = None


class LayoutClause(Node, frozen=True):
    """``PARTITION BY expr``, ``CLUSTER BY (columns)``, ``SEQUENCE BY column``, ``TTL expr``; ``kind`` is those words."""

    kind: str
    columns: tuple[str, ...] = ()
    expr: Expr | None = None


class Option(Node, frozen=True):
    """``name = value`` of a WITH clause; the value is text, a number or a list of names."""

    name: str
    value: str | int | float | bool | tuple[str, ...]


class CreateTable(Statement, frozen=True):
    """``CREATE TABLE t (columns, constraints) clauses WITH (options)``, ``.. LIKE s`` and ``.. AS query``."""

    name: Name
    columns: tuple[ColumnDefinition, ...] = ()
    constraints: tuple[TableConstraint, ...] = ()
    options: tuple[Option, ...] = ()
    clauses: tuple[LayoutClause, ...] = ()
    like: Name | None = None
    query: Query | None = None
    with_data: bool = True
    if_taken: IfTaken = IfTaken.FAIL
    temporary: bool = False


class CreateClone(Statement, frozen=True):
    """``CREATE TABLE t [SHALLOW] CLONE s``."""

    name: Name
    source: Name
    if_taken: IfTaken = IfTaken.FAIL


class CreateOrAlterTable(Statement, frozen=True):
    """``CREATE OR ALTER TABLE t (..)``: the table as ``made`` has it, by what may be altered."""

    made: CreateTable


class CreateExternal(Statement, frozen=True):
    """``CREATE EXTERNAL TABLE t (columns) STORED AS format LOCATION 'place' OPTIONS (..)``."""

    name: Name
    columns: tuple[ColumnDefinition, ...] = ()
    format: str | None = None
    location: str | None = None
    partitions: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    if_taken: IfTaken = IfTaken.FAIL


class Copy(Statement, frozen=True):
    """``COPY t | (query) TO 'place' STORED AS format PARTITIONED BY (columns) OPTIONS (..)``."""

    source: Name | Query
    target: str
    format: str | None = None
    partitions: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()


class CreateView(Statement, frozen=True):
    """``CREATE VIEW v (columns) AS query``; ``query_text`` is what the catalog keeps."""

    name: Name
    columns: tuple[str, ...]
    query: Query
    query_text: str
    if_taken: IfTaken = IfTaken.FAIL
    temporary: bool = False


class Drop(Statement, frozen=True):
    """``DROP TABLE | VIEW | SCHEMA [IF EXISTS] a, b [CASCADE | PURGE]``; ``kind`` is the word, lower case.

    purge   nothing is kept for UNDROP
    """

    kind: str
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False
    purge: bool = False


class Undrop(Statement, frozen=True):
    """``UNDROP TABLE t``."""

    table: Name


class Restore(Statement, frozen=True):
    """``RESTORE TABLE t TO VERSION AS OF n | TIMESTAMP AS OF '..'``."""

    table: Name
    at: TimeTravel


class CreateSchema(Statement, frozen=True):
    """``CREATE SCHEMA [IF NOT EXISTS] s``."""

    name: str
    if_taken: IfTaken = IfTaken.FAIL
