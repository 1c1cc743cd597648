"""A row by its key, answered without planning: ``SELECT name, price FROM t WHERE id = $id``.

The form is recognised once for each text; after that a statement is a look-up of the values its parameters have. Everything
that is not of this very form, or whose values are not of the key's own kind, goes the way of all queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lake.db.names import qualified
from lake.db.result import Result
from lake.db.system.pg_catalog_oids import relation_oid
from lake.late import late_pattern
from lake.sql import ast, bound
from lake.storage.catalog.model import Column, Table
from lake.storage.catalog.state import State
from lake.storage.lake import Lake
from lake.storage.tables.read import Wanted
from lake.storage.tables.snapshot import Snapshot
from lake.types import Boolean, Float, Integer, Text, Type

PLAIN: Final = (Boolean, Float, Integer, Text)


@dataclass(frozen=True, slots=True)
class PointRead:
    """A recognised query: what to read of which table, and what stands for the values of its key, in the key's order."""

    table: int
    names: tuple[str, ...]
    types: tuple[Type, ...]
    wanted: tuple[Wanted, ...]
    key: tuple[tuple[ast.Literal | ast.Parameter, Type], ...]
    origins: tuple[tuple[int, int], ...] = ()
    is_plain: bool = False  # whether values in memory are what is answered

    def values(self, parameters: Mapping[str, bound.Literal]) -> list[object] | None:
        """The key that is asked for, in physical form; None where a value is not of its column's own kind."""
        found: list[object] = []
        for given, type in self.key:
            value: object
            if isinstance(given, ast.Parameter):
                literal = parameters.get(given.name)
                if literal is None or isinstance(literal, bound.Unknown):
                    return None
                value = literal.value
                if isinstance(type, Integer) and isinstance(literal.type, Text):
                    value = whole_number(value, type)
                elif not _is_of(literal.type, type):
                    return None
            else:
                value = given.value
            if isinstance(type, Integer):
                if not isinstance(value, int) or isinstance(value, bool):
                    return None
            elif not isinstance(value, str):
                return None
            found.append(value)
        return found

    def values_of(self, texts: Sequence[str]) -> list[object] | None:
        """As ``values``, of the key's values as texts."""
        if len(texts) != len(self.key):
            return None
        found: list[object]
        found = [whole_number(text, type) if isinstance(type, Integer) else text for text, (_, type) in zip(texts, self.key)]
        return None if None in found else found

    def rows(self, snapshot: Snapshot, values: list[object]) -> list[pa.RecordBatch]:
        """The row, or none, as batches of ``wanted``."""
        return snapshot.table_by_id(self.table).lookup(values, self.wanted)

    def peek(self, lake: Lake, state: State, values: list[object]) -> Result:
        """The answer, from memory: NotInMemory where that does not tell."""
        if not self.is_plain:
            return self.result(lake.peek(state, self.table, values, self.wanted), state.number)
        row = lake.peek_values(state, self.table, values, self.wanted)
        rows, origins = [] if row is None else [row], self.origins
        source = _Batches(rows, self.types)
        return Result(
            self.names, self.types, "SELECT", version=state.number, source=source, few=rows, origins=lambda: origins
        )

    def result(self, rows: list[pa.RecordBatch], version: int) -> Result:
        """The answer that these rows are."""
        origins = self.origins
        return Result(self.names, self.types, "SELECT", version=version, source=rows, origins=lambda: origins)


class _Batches:
    """Rows of plain values as batches, should anybody ask."""

    def __init__(self, rows: list[tuple[Any, ...]], types: tuple[Type, ...]) -> None:
        self._rows, self._types = rows, types

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for row in self._rows:
            arrays = [pa.array([value], type.physical) for value, type in zip(row, self._types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, [f"c{place}" for place in range(len(arrays))])


def whole_number(text: object, type: Integer) -> int | None:
    """The number that a text is, written in the plainest way: clients that leave types to the server send texts."""
    if not isinstance(text, str) or not _WHOLE.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << (type.bits - 1)) <= number < 1 << (type.bits - 1) else None


_WHOLE: Final = late_pattern(r"-?[0-9]{1,19}", re.ASCII)


def _is_of(given: Type, type: Type) -> bool:
    return (isinstance(given, Integer) and isinstance(type, Integer)) or (isinstance(given, Text) and isinstance(type, Text))


def point_read(query: ast.Query, state: State, database: str) -> PointRead | None:
    """The look-up that a query is, or None."""
    select = query.body
    if not isinstance(select, ast.Select) or query != ast.Query(select):
        return None
    if select != ast.Select(select.items, select.sources, where=select.where) or len(select.sources) != 1:
        return None
    (source,) = select.sources
    if not isinstance(source, ast.TableSource) or source != ast.TableSource(source.name) or select.where is None:
        return None
    schema, name = qualified(source.name.parts, database)
    table = state.find(name, schema)
    if not isinstance(table, Table) or not table.key:
        return None
    given = _tests(select.where, table)
    columns = _columns(select.items, table)
    if given is None or columns is None or given.keys() != {column.name for column in table.key}:
        return None
    return _read(table, columns, [(given[column.name], column.type) for column in table.key])


def row_read(table: Table) -> PointRead | None:
    """The look-up of a whole row by texts ``$1``, ``$2`` of its key, whose columns are whole numbers and texts; else None."""
    if not table.key or not all(isinstance(column.type, Integer | Text) for column in table.key):
        return None
    key = [(ast.Parameter(str(number)), column.type) for number, column in enumerate(table.key, 1)]
    return _read(table, [(column.name, column) for column in table.columns], key)


def _read(
    table: Table, columns: Sequence[tuple[str, Column]], key: Sequence[tuple[ast.Literal | ast.Parameter, Type]]
) -> PointRead:
    return PointRead(
        table.id,
        tuple(shown for shown, _ in columns),
        tuple(column.type for _, column in columns),
        tuple(Wanted.named(column) for _, column in columns),
        tuple(key),
        tuple((relation_oid(table), table.columns.index(column) + 1) for _, column in columns),
        all(type(column.type) in PLAIN for _, column in columns),
    )


def _tests(where: ast.Expr, table: Table) -> dict[str, ast.Literal | ast.Parameter] | None:
    """What each tested column must equal; None where there is any other condition, or a column that is tested twice."""
    found: dict[str, ast.Literal | ast.Parameter] = {}
    kinds = {column.name: column.type for column in table.key}
    for test in where.operands if isinstance(where, ast.And) else (where,):
        match test:
            case ast.Binary("=", ast.Column(ast.Name((column,))), ast.Literal() | ast.Parameter() as value):
                pass
            case _:
                return None
        if column in found or not isinstance(kinds.get(column), Integer | Text):
            return None
        found[column] = value
    return found


def _columns(items: tuple[ast.SelectItem, ...], table: Table) -> list[tuple[str, Column]] | None:
    """The names and columns of a select list of columns; None where it has anything else, or a name twice."""
    by_name = {column.name: column for column in table.columns}
    found: list[tuple[str, Column]] = []
    for item in items:
        if item.names:
            return None
        if item.expr == ast.Star():
            found += by_name.items()
            continue
        shown = _named(item, by_name)
        if shown is None:
            return None
        found.append(shown)
    return found if len({shown for shown, _ in found}) == len(found) else None


def _named(item: ast.SelectItem, by_name: Mapping[str, Column]) -> tuple[str, Column] | None:
    match item.expr:
        case ast.Column(name=ast.Name(parts=(name,))) if name in by_name:
            return item.alias or name, by_name[name]
    return None
