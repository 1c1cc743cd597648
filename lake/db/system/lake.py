"""System tables of the schema ``lake``. Spec: SQL, System tables and views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lake.db import definitions
from lake.db.system import system_table
from lake.sql.registry import FUNCTIONS, Aggregate, Generator, Scalar, TableFunction, Window
from lake.storage.catalog.model import Table
from lake.storage.catalog.state import display_name
from lake.types import BIGINT, TEXT, TIMESTAMPTZ

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Row = tuple[Any, ...]


@system_table(
    "lake",
    "tables",
    columns={
        "lake": TEXT, "schema": TEXT, "name": TEXT, "kind": TEXT, "rows": BIGINT, "rows_in_files": BIGINT,
        "bytes_in_files": BIGINT, "files": BIGINT, "key": TEXT, "definition": TEXT,
    },
)  # fmt: skip
def tables(catalog: StatementCatalog) -> Iterator[Row]:
    """Tables and views, with the rows and files of tables."""
    for item in catalog.state.relations():
        if isinstance(item, Table):
            stored = item.file_rows + catalog.state.waiting_rows(item.id)
            rows = stored - catalog.state.deletes_of(item.id).rows
            names = {column.id: column.name for column in item.columns}
            key = ", ".join(names[id] for id in item.design.key if id in names) or None
            yield (
                catalog.lake, item.schema, item.name, "table", rows, item.file_rows, item.file_bytes, item.file_count,
                key, definitions.table_definition(item, catalog.state),
            )  # fmt: skip
        else:
            text = definitions.view_definition(item) if item.query else None
            yield catalog.lake, item.schema, item.name, item.kind, None, None, None, None, None, text


@system_table(
    "lake",
    "dropped",
    columns={
        "name": TEXT, "dropped_at": TIMESTAMPTZ, "kept_until": TIMESTAMPTZ, "rows_in_files": BIGINT,
        "bytes_in_files": BIGINT,
    },
)  # fmt: skip
def dropped(catalog: StatementCatalog) -> Iterator[Row]:
    """Tables that UNDROP can bring back, the one dropped last first."""
    for table in catalog.state.dropped():
        until = table.lost_at + int(table.retention_secs(catalog.keep_secs) * 1e6)
        name = display_name(table.schema, table.name)
        yield name, table.lost_at, until, table.file_rows, table.file_bytes


@system_table(
    "lake",
    "functions",
    columns={"name": TEXT, "kind": TEXT, "group": TEXT, "signature": TEXT, "returns": TEXT, "description": TEXT},
)
def functions(catalog: StatementCatalog) -> Iterator[Row]:
    """Every overload of every function, from the table that the binder uses."""
    for name in sorted(FUNCTIONS):
        for item in FUNCTIONS[name]:
            parameters = ", ".join(
                f"{p.name} {p.type}{'...' if p.variadic else ''}{f' DEFAULT {p.default}' if p.default else ''}"
                for p in item.signature.parameters
            )
            kind = KINDS.get(type(item), "scalar")
            first = item.doc.split("\n", 1)[0]
            yield name, kind, item.group, f"{name}({parameters})", item.signature.returns, first


KINDS = {
    Scalar: "scalar", Aggregate: "aggregate", Window: "window", TableFunction: "table", Generator: "generator",
}  # fmt: skip
