"""information_schema: tables, columns, schemata, views. Source: PostgreSQL documentation, chapter 37."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lake.arrow_names import arrow_name
from lake.db.system import SYSTEM_TABLES, system_table
from lake.db.system.pg_catalog_oids import ARRAY_OF, TYPE_BY_OID
from lake.storage.catalog.model import INTERNAL, PUBLIC, Table
from lake.types import BIGINT, TEXT, Date, Decimal, Integer, Interval, Time, Timestamp, Type, pg_oid

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Row = tuple[Any, ...]


@system_table(
    "information_schema",
    "tables",
    columns={"table_catalog": TEXT, "table_schema": TEXT, "table_name": TEXT, "table_type": TEXT},
)
def tables(catalog: StatementCatalog) -> Iterator[Row]:
    """Tables and views, and the system's own."""
    for item in catalog.state.relations():
        yield catalog.lake, item.schema, item.name, "BASE TABLE" if isinstance(item, Table) else "VIEW"
    for schema, name in sorted(SYSTEM_TABLES):
        yield catalog.lake, schema, name, "VIEW"


@system_table(
    "information_schema",
    "columns",
    columns={
        "table_catalog": TEXT, "table_schema": TEXT, "table_name": TEXT, "column_name": TEXT,
        "ordinal_position": BIGINT, "column_default": TEXT, "is_nullable": TEXT, "data_type": TEXT,
        "numeric_precision": BIGINT, "numeric_scale": BIGINT, "arrow_type": TEXT,
        "character_maximum_length": BIGINT, "character_octet_length": BIGINT, "numeric_precision_radix": BIGINT,
        "datetime_precision": BIGINT, "udt_catalog": TEXT, "udt_schema": TEXT, "udt_name": TEXT, "is_identity": TEXT,
        "identity_generation": TEXT, "is_generated": TEXT, "generation_expression": TEXT, "is_updatable": TEXT,
    },
)  # fmt: skip
def columns(catalog: StatementCatalog) -> Iterator[Row]:
    """Columns of tables, of views as their queries answer them, and of the system's relations."""
    for item in catalog.state.relations():
        if isinstance(item, Table):
            for place, column in enumerate(item.columns, 1):
                nullable = "NO" if column.not_null else "YES"
                default = None if column.identity else column.default
                yield _column(
                    catalog.lake, item.schema, item.name, column.name, place, column.type, default, nullable, column.identity
                )
        else:
            for place, (name, kind) in enumerate(catalog.columns_of_view(item), 1):
                yield _column(catalog.lake, item.schema, item.name, name, place, kind, None, "YES")
    for (schema, name), system in sorted(SYSTEM_TABLES.items()):
        for place, (column_name, kind) in enumerate(system.columns.items(), 1):
            yield _column(catalog.lake, schema, name, column_name, place, kind, None, "YES")


def _column(
    lake: str, schema: str, table: str, name: str, place: int, type: Type, default: str | None, nullable: str,
    identity: str = "",
) -> Row:  # fmt: skip
    precision = type.precision if isinstance(type, Decimal) else type.bits if isinstance(type, Integer) else None
    scale = type.scale if isinstance(type, Decimal) else 0 if isinstance(type, Integer) else None
    oid = pg_oid(type)
    udt = f"_{ARRAY_OF[oid].name}" if oid in ARRAY_OF else TYPE_BY_OID[oid].name
    radix = None if precision is None else 10 if isinstance(type, Decimal) else 2
    fraction = 6 if isinstance(type, Time | Timestamp | Interval) else 0 if isinstance(type, Date) else None
    return (
        lake, schema, table, name, place, default, nullable, type.sql, precision, scale, arrow_name(type), None, None,
        radix, fraction, lake, "pg_catalog", udt, "YES" if identity else "NO", identity.upper() if identity else None,
        "NEVER", None, "YES" if schema not in ("pg_catalog", "information_schema", "lake") else "NO",
    )  # fmt: skip


@system_table(
    "information_schema", "schemata", columns={"catalog_name": TEXT, "schema_name": TEXT, "schema_owner": TEXT}
)
def schemata(catalog: StatementCatalog) -> Iterator[Row]:
    """Schemas, the system's too."""
    own = {schema for schema, _ in SYSTEM_TABLES}
    for name in sorted({PUBLIC, *catalog.state.schemas, *own} - {INTERNAL}):
        yield catalog.lake, name, None


@system_table(
    "information_schema",
    "views",
    columns={"table_catalog": TEXT, "table_schema": TEXT, "table_name": TEXT, "view_definition": TEXT},
)
def views(catalog: StatementCatalog) -> Iterator[Row]:
    """Views, with their queries."""
    for item in catalog.state.relations():
        if not isinstance(item, Table):
            yield catalog.lake, item.schema, item.name, item.query
