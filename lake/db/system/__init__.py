"""SYSTEM_TABLES: relations whose rows the lake makes when they are read.

    @system_table("lake", "tables", columns={"schema": TEXT, "name": TEXT, ...})
    def tables(catalog: StatementCatalog) -> Iterator[tuple]:
        ...

Their rows join and filter like any other table's. The modules of this package are imported when one is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
from msgspec import Struct

from lake.late import LateTable
from lake.rows import Part, Predicate, physical_array
from lake.sql.catalog import Table, TableColumn, TableStatistics, View
from lake.types import Type

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Rows = Callable[["StatementCatalog"], Iterable[Sequence[Any]]]
R = TypeVar("R", bound=Callable[..., Any])
ROWS_GUESSED: Final = 100.0


class SystemTable(Struct, frozen=True):
    """A row of SYSTEM_TABLES."""

    schema: str
    name: str
    columns: Mapping[str, Type]
    rows: Rows

    def table(self, catalog: StatementCatalog) -> Table | View:
        """The table as a statement sees it."""
        columns = tuple(TableColumn(name, type) for name, type in self.columns.items())
        source = _SystemRows(self, catalog)
        return Table((self.schema, self.name), columns, source, lambda: TableStatistics(ROWS_GUESSED))


MODULES: Final = (
    "lake", "access", "information_routines", "information_rules", "information_schema", "objects", "pg_catalog",
    "pg_catalog_server", "recorded",
)  # fmt: skip
SYSTEM_SCHEMAS: Final = ("lake", "pg_catalog", "information_schema")
SYSTEM_TABLES: Final = LateTable[tuple[str, str], SystemTable](single=True)
SYSTEM_TABLES.fill_from(*(f"{__name__}.{name}" for name in MODULES))


def system_table(schema: str, name: str, *, columns: Mapping[str, Type]) -> Callable[[R], R]:
    """Registers the function that yields a system table's rows, in the order of ``columns``."""

    def register(rows: R) -> R:
        assert schema in SYSTEM_SCHEMAS, schema
        SYSTEM_TABLES[schema, name] = SystemTable(schema, name, columns, rows)
        return rows

    return register


class _SystemRows(Struct, frozen=True):
    definition: SystemTable
    catalog: StatementCatalog

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        return [Part(None, lambda: [self._batch(columns)])]

    def _batch(self, columns: Sequence[str]) -> pa.RecordBatch:
        rows = list(self.definition.rows(self.catalog))
        names = list(self.definition.columns)
        if not columns:
            return pa.record_batch([pa.nulls(len(rows))], ["rows"]).select([])
        arrays = []
        for name in columns:
            type, index = self.definition.columns[name], names.index(name)
            arrays.append(physical_array(pa.array([row[index] for row in rows], type.arrow), type))
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))
