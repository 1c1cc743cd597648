"""SYSTEM_TABLES: relations whose rows the lake makes when they are read.

    @system_table("lake", "tables", columns={"schema": TEXT, "name": TEXT, ...})
    def tables(catalog: StatementCatalog) -> Iterator[tuple]:
        ...

Their rows join and filter like any other table's. Importing the modules of this package fills the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from lake.rows import Part, Predicate, physical_array
from lake.sql.catalog import Table, TableColumn, TableStatistics, View
from lake.types import Type

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Rows = Callable[["StatementCatalog"], Iterable[Sequence[Any]]]
R = TypeVar("R", bound=Callable[..., Any])
ROWS_GUESSED: Final = 100.0


@dataclass(frozen=True, slots=True)
class SystemTable:
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


SYSTEM_TABLES: Final[dict[tuple[str, str], SystemTable]] = {}


def system_table(schema: str, name: str, *, columns: Mapping[str, Type]) -> Callable[[R], R]:
    """Registers the function that yields a system table's rows, in the order of ``columns``."""

    def register(rows: R) -> R:
        SYSTEM_TABLES[schema, name] = SystemTable(schema, name, columns, rows)
        return rows

    return register


@dataclass(frozen=True, slots=True)
class _SystemRows:
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
