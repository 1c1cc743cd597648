"""Which name means which column: the columns of FROM, outer queries, common table expressions, and a statement's state.

    SELECT o.total FROM orders o, LATERAL (SELECT max(qty) AS most FROM lines l WHERE l.order_id = o.id) m

    Scope(l.order_id, l.qty)                 the subquery's own FROM
    └─ outer: Scope(o.id, o.total)           what LATERAL may look at
       └─ outer: None

A name is looked for in the innermost scope first; a column found further out makes the query correlated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from lake.errors import (
    AmbiguousColumn,
    DuplicateAlias,
    InsufficientPrivilege,
    LakeError,
    UndefinedColumn,
    UndefinedTable,
    near_name,
)
from lake.sql import ast
from lake.sql.bound import Column, Expr, Literal
from lake.sql.plan import CteScan, Materialize, Plan, Recursion, walk
from lake.types import Type

if TYPE_CHECKING:
    from lake.sql.bind.aggregate import Aggregates
    from lake.sql.bind.unnest import Unnests
    from lake.sql.bind.window import Windows
    from lake.sql.catalog import Catalog, Settings

VIEW_DEPTH_MAX: Final = 32


class Bound(Struct, frozen=True):
    """A bound query: its plan, the columns of the answer in order, and their names.

    others  the names that further sides of a set operation have for the columns, which its ORDER BY may use too
    """

    plan: Plan
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    others: tuple[tuple[str, ...], ...] = ()


class Entry(Struct, frozen=True):
    """A column that can be named.

    path      the table's alias, or its full name where it has none; empty for a column merged by USING
    hidden    left out of ``*``
    shadowed  found by its qualified name only: USING merged it with another
    refusal   why the caller may not read it; empty where it may
    within    the table it comes from in a subquery that has no alias: its name leads to it where no other has that name
    """

    name: str
    column: Column
    path: tuple[str, ...] = ()
    hidden: bool = False
    shadowed: bool = False
    refusal: str = ""
    within: str = ""

    def read(self, position: int | None, *, is_named: bool = True) -> Column:
        """The column, for whoever reads its values.

        42501  the caller may not; the message names the column only where the statement does
        """
        if self.refusal:
            raise InsufficientPrivilege(self.refusal if is_named else unnamed(self.refusal), position=position)
        return self.column


class Cte(Struct, frozen=True):
    """A common table expression in reach: inlined from ``query``, or read by number with ``outputs`` as its columns."""

    name: str
    scope: Scope
    query: ast.Query | None = None
    renames: tuple[str, ...] = ()
    number: int = 0
    outputs: tuple[tuple[str, Type], ...] = ()
    recursive: bool = False


class _Indexed:
    """``by_name``: a scope's columns by name in lower case, made for the first look-up, neither compared nor copied."""

    __slots__ = ("by_name",)
    by_name: dict[str, list[Entry]]


class Scope(_Indexed, Struct, frozen=True):
    """The columns of one query's FROM, the scope around it, and the common table expressions in reach.

    env  of a scope around a subquery: the place where the subquery stands
    """

    entries: tuple[Entry, ...] = ()
    outer: Scope | None = None
    ctes: Mapping[str, Cte] = msgspec.field(default_factory=dict)
    env: Env | None = None

    def over(self, entries: Iterable[Entry]) -> Scope:
        """The same place with other columns."""
        return Scope(tuple(entries), self.outer, self.ctes)

    def inside(self) -> Scope:
        """The empty scope of a query nested here, which sees this one as its outer."""
        return Scope((), self, self.ctes)

    def with_cte(self, cte: Cte) -> Scope:
        """The same place with one more common table expression."""
        return replace(self, ctes={**self.ctes, cte.name: cte})

    @property
    def ids(self) -> frozenset[int]:
        """Ids of this scope's own columns."""
        return frozenset(entry.column.id for entry in self.entries)


class Shared(Struct):
    """What one statement's binding shares: where names lead, and the numbers given out.

    definitions  names and plans of the common table expressions that are materialised, by number
    """

    catalog: Catalog
    settings: Settings
    parameters: Mapping[str, Literal]
    bind_query: Callable[[ast.Query, Scope, Shared], Bound]
    last_id: int = 0
    view_depth: int = 0
    definitions: dict[int, tuple[str, Plan]] = field(default_factory=dict)
    tables: dict[int, str] = field(default_factory=dict)  # the name of the table that a column was first read under
    refused: dict[int, str] = field(default_factory=dict)  # columns of scans that the caller may not read

    def next_id(self) -> int:
        """A number no other column or materialised query of the plan has."""
        self.last_id += 1
        return self.last_id

    def next_ids(self, count: int) -> range:
        """The same, ``count`` of them."""
        first = self.last_id + 1
        self.last_id += count
        return range(first, first + count)

    def column(self, name: str, type: Type, nullable: bool = True) -> Column:
        """A fresh column."""
        return Column(type, self.next_id(), name, nullable)

    def ask(self, node: Plan, column: Column) -> Sequence[tuple[object, str]]:
        """What the catalog answers to a plan that is run at once, with what the common table expressions in it mean."""
        while missing := _undefined(node) & self.definitions.keys():
            number = max(missing)
            node = Materialize(number, *self.definitions[number], node)
        return self.catalog.ask(node, column)

    def position(self, node: ast.Node | None) -> int | None:
        """Where ``node`` begins in the statement, 1-based; None inside a view, whose text is another."""
        if node is None or node.span is None or self.view_depth:
            return None
        return node.span.start + 1


def _undefined(node: Plan) -> frozenset[int]:
    """Numbers of the common table expressions that a plan reads and does not define."""
    parts = list(walk(node))
    defined = {part.cte for part in parts if isinstance(part, Materialize | Recursion)}
    return frozenset(part.cte for part in parts if isinstance(part, CteScan)) - defined


class Env(Struct, frozen=True):
    """Where an expression stands: the names it sees and what it may hold.

    clause      the words of an error: ``WHERE``, ``JOIN conditions``
    aggregates  collects aggregate calls; None where none may stand
    windows     collects window calls; None where none may stand
    unnests     collects unnest calls; None where none may stand
    aliases     select aliases that names may mean where no column has the name
    locals      parameters of the lambdas around
    """

    shared: Shared
    scope: Scope
    clause: str
    aggregates: Aggregates | None = None
    windows: Windows | None = None
    unnests: Unnests | None = None
    aliases: Mapping[str, ast.Expr] = msgspec.field(default_factory=dict)
    locals: Mapping[str, Column] = msgspec.field(default_factory=dict)

    def bind(self, expr: ast.Expr) -> Expr:
        """The bound form of ``expr``; an error that does not know its place is given the innermost expression's."""
        try:
            return BINDERS[expr.__class__](expr, self)
        except LakeError as error:
            if error.position is None:
                error.position = self.shared.position(expr)
            raise

    def bind_query(self, query: ast.Query) -> Bound:
        """The bound form of a subquery that may use this place's columns."""
        around = replace(self.scope, env=self)
        return self.shared.bind_query(query, around.inside(), self.shared)

    def position(self, node: ast.Node | None) -> int | None:
        """Where ``node`` begins, for an error."""
        return self.shared.position(node)

    @property
    def time_zone(self) -> str:
        """The session's time zone."""
        return self.shared.settings.time_zone


# Frames are dear when expressions nest: one table look-up a level instead of a chain of matches.
BINDERS: Final[dict[type, Callable[[ast.Expr, Env], Expr]]] = {}
B = TypeVar("B", bound=Callable[..., Expr])


def binds(*classes: type[ast.Expr]) -> Callable[[B], B]:
    """Registers the function that binds expressions of ``classes``."""

    def register(function: B) -> B:
        for item in classes:
            assert item not in BINDERS, item
            BINDERS[item] = function
        return function

    return register


class Ready(ast.Expr, frozen=True):
    """An expression that is bound already, in the place of one that is not: what ``*`` stands for, and the like."""

    expr: Expr
    name: str


@binds(Ready)
def bind_ready(node: Ready, env: Env) -> Expr:
    """The bound expression itself."""
    return node.expr


class From(Struct, frozen=True):
    """A bound item of FROM: its plan and the columns it brings in reach."""

    plan: Plan
    entries: tuple[Entry, ...]


class ReadySource(ast.Source, frozen=True):
    """An item of FROM that is bound already."""

    made: From


# --- looking names up ------------------------------------------------------------------------------------------------


def find_column(
    scope: Scope | None, name: ast.Name, position: int | None = None, *, outward: bool = True
) -> Column | None:
    """The column ``name`` means, in the innermost scope that has it; None where there is none.

    outward  whether the scopes around are asked

    42702  two columns of one scope have the name
    """
    innermost = scope
    while scope is not None:
        found = _matches(scope, name.parts, exact=True) or _matches(scope, name.parts, exact=False)
        if not found and len(name.parts) == 1:
            found = _only_column(scope.entries, name.parts[0])
        if not found and name.last.lower() == "rowid":
            # What DuckDB and SQLite call it.
            found = _matches(scope, (*name.parts[:-1], "_row_id"), exact=True)
        if len(found) > 1:
            raise AmbiguousColumn(f'column reference "{name.last}" is ambiguous', position=position)
        if found:
            return found[0].read(position)
        scope = scope.outer if outward else None
    if innermost is None or len(name.parts) != 2:
        return None
    inside = [item for item in innermost.entries if not item.path and (item.within, item.column.name) == name.parts]
    return inside[0].read(position) if len(inside) == 1 else None


def unnamed(refusal: str) -> str:
    """A refusal for a statement that means a column without naming it: ``permission denied: SELECT on salaries``.

    >>> unnamed("permission denied: SELECT (pay) on salaries")
    'permission denied: SELECT on salaries'
    """
    return re.sub(r" \(.*\) on ", " on ", refusal, count=1)


def missing_column(scope: Scope, name: ast.Name, position: int | None, extra: Iterable[str] = ()) -> LakeError:
    """The error for a name that means nothing: 42P01 for an unknown qualifier, else 42703 with near names."""
    names: list[str] = list(extra)
    tables: list[str] = []
    place: Scope | None = scope
    while place is not None:
        names += [entry.name for entry in place.entries if not entry.refusal]
        tables += [entry.path[-1] for entry in place.entries if entry.path]
        place = place.outer
    if len(name.parts) > 1:
        table = name.parts[-2]
        if table not in tables:
            hint = near_name(table, tables)
            return UndefinedTable(f'missing FROM-clause entry for table "{table}"', hint=hint, position=position)
        own = _columns_of_table(scope, name.parts[:-1])
        return UndefinedColumn(f"column {name} does not exist", hint=near_name(name.last, own), position=position)
    hint = near_name(name.last, names)
    return UndefinedColumn(f'column "{name.last}" does not exist', hint=hint, position=position)


def entries_of_table(scope: Scope, path: tuple[str, ...]) -> tuple[Entry, ...]:
    """The columns of the table that ``path`` names, for ``t.*``; none where there is no such table."""
    place: Scope | None = scope
    while place is not None:
        found = tuple(entry for entry in place.entries if entry.path[-len(path) :] == path)
        if found:
            return found
        place = place.outer
    return ()


def aliased(entries: Iterable[Entry], alias: str) -> tuple[Entry, ...]:
    """The columns that stay in reach when a FROM item takes an alias: all under that one name."""
    return tuple(replace(entry, path=(alias,)) for entry in entries if not entry.shadowed)


def check_aliases(left: Iterable[Entry], right: Iterable[Entry], position: int | None) -> None:
    """42712 where both sides of a FROM have a table of one name; two tables of different schemas may share theirs."""
    taken = {entry.path for entry in left if entry.path}
    for path in {entry.path for entry in right if entry.path}:
        if any(path[-1] == other[-1] and (path == other or 1 in (len(path), len(other))) for other in taken):
            raise DuplicateAlias(f'table name "{path[-1]}" specified more than once', position=position)


def _matches(scope: Scope, parts: tuple[str, ...], *, exact: bool) -> list[Entry]:
    wanted, qualifier = parts[-1], parts[:-1]
    if not exact:
        wanted, qualifier = wanted.lower(), tuple(part.lower() for part in qualifier)
    found: dict[int, Entry] = {}
    for entry in _named(scope, wanted.lower()):
        name, path = entry.name, entry.path
        if not exact:
            name, path = name.lower(), tuple(part.lower() for part in path)
        if name != wanted:
            continue
        if path[-len(qualifier) :] == qualifier if qualifier else not entry.shadowed:
            found.setdefault(entry.column.id, entry)
    return list(found.values())


def _named(scope: Scope, name: str) -> Sequence[Entry]:
    """The columns whose name is ``name`` in lower case, in order."""
    try:
        return scope.by_name.get(name, ())
    except AttributeError:
        pass
    by_name: dict[str, list[Entry]] = {}
    for entry in scope.entries:
        by_name.setdefault(entry.name.lower(), []).append(entry)
    force_setattr(scope, "by_name", by_name)
    return by_name.get(name, ())


def _only_column(entries: tuple[Entry, ...], table: str) -> list[Entry]:
    """The one column of ``table``: ``SELECT g FROM generate_series(1, 3) g``."""
    found = {entry.column.id: entry for entry in entries if entry.path[-1:] == (table,) and not entry.hidden}
    return list(found.values()) if len(found) == 1 else []


def _columns_of_table(scope: Scope, path: tuple[str, ...]) -> list[str]:
    return [entry.name for entry in entries_of_table(scope, path) if not entry.refusal]
