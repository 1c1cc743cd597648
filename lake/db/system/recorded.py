"""lake.history and lake.audit: what the recorder keeps, over the tables of all periods.

Only a superuser reads the audit, and the history of others. Spec: HTTP, Audit log; SQL, System tables and views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import Struct

from lake.db.recorder import COLUMNS, recorded
from lake.db.system import SYSTEM_TABLES, SystemTable
from lake.errors import InsufficientPrivilege
from lake.rows import Part, Predicate
from lake.sql import ast, parser
from lake.sql.catalog import Table as PlanTable
from lake.sql.catalog import TableColumn, TableStatistics
from lake.sql.catalog import View as PlanView
from lake.sql.quoting import quote_text
from lake.storage.tables.snapshot import TableSnapshot

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog


class RecordedTable(SystemTable, frozen=True):
    """A system table whose rows are in hidden tables."""

    def table(self, catalog: StatementCatalog) -> PlanTable | PlanView:
        """The rows that the caller may read.

        42501  the audit, for who is not a superuser
        """
        settings = catalog.settings
        if not settings.superuser:
            if self.name == "audit":
                raise InsufficientPrivilege("permission denied: SELECT on lake.audit")
            text = f'SELECT * FROM lake.{self.name} WHERE "user" = {quote_text(settings.user)}'
            stmt = parser.parse(text)[0]
            assert isinstance(stmt, ast.QueryStatement)
            whole = catalog.with_settings(replace(settings, rights=None, superuser=True))
            return PlanView((self.schema, self.name), (), stmt.query, {}, whole)
        snapshot = catalog.snapshot
        rows = _Rows(tuple(snapshot.table_by_id(table.id) for _, table in recorded(snapshot.state, self.name)))
        columns = tuple(TableColumn(name, type) for name, type in self.columns.items())
        return PlanTable((self.schema, self.name), columns, rows, rows.statistics)


class _Rows(Struct, frozen=True):
    tables: tuple[TableSnapshot, ...]

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        return [part for table in self.tables for part in table.parts(columns, predicates)]

    def statistics(self) -> TableStatistics:
        return TableStatistics(sum(table.statistics().rows for table in self.tables))


def _no_rows(catalog: StatementCatalog) -> tuple[()]:
    return ()


for _kind in COLUMNS:
    SYSTEM_TABLES["lake", _kind] = RecordedTable("lake", _kind, COLUMNS[_kind], _no_rows)
