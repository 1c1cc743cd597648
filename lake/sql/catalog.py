"""What the planner must know of the world: names, column types, statistics. Whoever runs the engine hands in a Catalog.

A table carries its rows as a handle that only the engine opens, so planning never reads a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from lake.rows import RowSource
from lake.sql import ast
from lake.storage.catalog.statistics import ColumnStatistics, TableStatistics
from lake.types import Type

if TYPE_CHECKING:
    from lake.config import Config
    from lake.sql.bound import Column
    from lake.sql.plan import Plan


class TableColumn(msgspec.Struct, frozen=True):
    """A column as a query sees it; a hidden one is left out of ``*``.

    refusal   why the caller may not read it; empty where it may
    """

    name: str
    type: Type
    nullable: bool = True
    hidden: bool = False
    refusal: str = ""


class Table(msgspec.Struct, frozen=True, eq=False):
    """Anything with rows that a query can name: a table at a commit, a file, a system table.

    rows         opened by the engine (``lake.rows.RowSource``)
    statistics   asked only when a plan needs it
    unique       sets of columns whose values never repeat (keys)
    """

    name: tuple[str, ...]
    columns: tuple[TableColumn, ...]
    rows: RowSource
    statistics: Callable[[], TableStatistics]
    unique: tuple[tuple[str, ...], ...] = ()


class View(msgspec.Struct, frozen=True):
    """A stored query; ``columns`` renames its outputs where it is not empty.

    refusals   of its columns that the caller may not read, by name
    catalog    finds what its query names, with the rights of whoever made it; None where they are the caller's
    """

    name: tuple[str, ...]
    columns: tuple[str, ...]
    query: ast.Query
    refusals: Mapping[str, str] = msgspec.field(default_factory=dict)
    catalog: Catalog | None = None


class Catalog(Protocol):
    """Names to relations, for one statement, at one commit."""

    def find(self, name: tuple[str, ...], at: tuple[str, object] | None) -> Table | View:
        """The relation ``name`` means; ``at`` is a kind of time travel and its value.

        42P01  no such table, with a near name as the hint      42501  the caller may read nothing of it
        0A000  time travel that this relation does not take
        """
        ...

    def find_file(self, path: str) -> Table:
        """The file (or glob) as a table, its reader chosen by the extension.

        42501  the caller may not read the node's disk
        58030  it cannot be read
        """
        ...

    def ask(self, node: Plan, column: Column) -> Sequence[tuple[object, str]]:
        """The values of a column of a plan that is run at once, each as it is in a Literal and as text.

        For what a statement must know before it has a plan: the columns that PIVOT makes.
        """
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What of a session changes what a statement means.

    now         microseconds since 1970 at the statement's start
    dialect     ``postgres`` or ``spark``
    time_zone   IANA name that zoneless casts to TIMESTAMPTZ use
    local_files whether files of this machine may be read
    user, database, schema, session    what the functions of those names answer
    superuser   whether the caller may read the audit and what others did
    rights      what the caller was granted, where that is less than everything
    enums       name and labels of the enum type that a text names, or None
    sequences   makes what hands out the numbers of sequences
    names       makes what the functions of pg_catalog look names and oids up in
    config      the program's configuration, for functions that reach out of it
    files       makes what reads the files kept in the lake, for a caller that may
    """

    now: int
    time_zone: str = "UTC"
    dialect: str = "postgres"
    user: str = "admin"
    database: str = "lake"
    schema: str = "public"
    local_files: bool = False
    session: Mapping[str, str] = field(default_factory=dict)
    superuser: bool = False
    rights: Any = field(default=None, compare=False, repr=False)
    names: Callable[[], Any] | None = field(default=None, compare=False, repr=False)
    config: Config | None = field(default=None, compare=False, repr=False)
    enums: Callable[[str], tuple[str, tuple[str, ...]] | None] | None = field(default=None, compare=False, repr=False)
    sequences: Callable[[], Any] | None = field(default=None, compare=False, repr=False)
    files: Callable[[], Any] | None = field(default=None, compare=False, repr=False)


__all__ = ["Catalog", "ColumnStatistics", "Settings", "Table", "TableColumn", "TableStatistics", "View"]
