"""information_schema: constraints, the columns they name, sequences. Source: PostgreSQL documentation, chapter 37."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lake.db.system import system_table
from lake.db.system.pg_catalog import sequences_of
from lake.db.system.pg_catalog_oids import tables_of
from lake.storage.catalog.model import Constraint, Table
from lake.types import INT, TEXT

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Row = tuple[Any, ...]
BITS = {"SMALLINT": 16, "INT": 32}


def _rules(catalog: StatementCatalog, *kinds: str) -> Iterator[tuple[Table, Constraint]]:
    for table in tables_of(catalog.state):
        for rule in table.constraints:
            if not kinds or rule.kind in kinds:
                yield table, rule


@system_table(
    "information_schema",
    "table_constraints",
    columns={
        "constraint_catalog": TEXT, "constraint_schema": TEXT, "constraint_name": TEXT, "table_catalog": TEXT,
        "table_schema": TEXT, "table_name": TEXT, "constraint_type": TEXT, "is_deferrable": TEXT,
        "initially_deferred": TEXT, "enforced": TEXT, "nulls_distinct": TEXT,
    },
)  # fmt: skip
def table_constraints(catalog: StatementCatalog) -> Iterator[Row]:
    """Constraints of tables; those that are facts for tools are not enforced."""
    for table, rule in _rules(catalog):
        yield (
            catalog.lake, table.schema, rule.name, catalog.lake, table.schema, table.name, rule.kind.upper(), "NO", "NO",
            "YES" if rule.enforced else "NO", "YES" if rule.kind == "unique" else None,
        )  # fmt: skip


@system_table(
    "information_schema",
    "key_column_usage",
    columns={
        "constraint_catalog": TEXT, "constraint_schema": TEXT, "constraint_name": TEXT, "table_catalog": TEXT,
        "table_schema": TEXT, "table_name": TEXT, "column_name": TEXT, "ordinal_position": INT,
        "position_in_unique_constraint": INT,
    },
)  # fmt: skip
def key_column_usage(catalog: StatementCatalog) -> Iterator[Row]:
    """Columns of keys, of UNIQUE and of references, in their order."""
    for table, rule in _rules(catalog, "primary key", "unique", "foreign key"):
        for place, column in enumerate(rule.columns, 1):
            yield (
                catalog.lake, table.schema, rule.name, catalog.lake, table.schema, table.name, column, place,
                _place_in_key(catalog, rule, place) if rule.kind == "foreign key" else None,
            )  # fmt: skip


def _place_in_key(catalog: StatementCatalog, rule: Constraint, place: int) -> int | None:
    key = _key_of(catalog, rule)
    return None if key is None else key.columns.index(rule.target_columns[place - 1]) + 1


def _key_of(catalog: StatementCatalog, rule: Constraint) -> Constraint | None:
    """The key of the table that a reference is to, where it names one."""
    target = catalog.state.find(rule.target[1], rule.target[0])
    for item in target.constraints if isinstance(target, Table) else ():
        if item.kind in ("primary key", "unique") and set(item.columns) == set(rule.target_columns):
            return item
    return None


@system_table(
    "information_schema",
    "referential_constraints",
    columns={
        "constraint_catalog": TEXT, "constraint_schema": TEXT, "constraint_name": TEXT,
        "unique_constraint_catalog": TEXT, "unique_constraint_schema": TEXT, "unique_constraint_name": TEXT,
        "match_option": TEXT, "update_rule": TEXT, "delete_rule": TEXT,
    },
)  # fmt: skip
def referential_constraints(catalog: StatementCatalog) -> Iterator[Row]:
    """References, with the key they refer to where there is one."""
    for table, rule in _rules(catalog, "foreign key"):
        key = _key_of(catalog, rule)
        yield (
            catalog.lake, table.schema, rule.name, catalog.lake if key else None, rule.target[0] if key else None,
            key.name if key else None, "NONE", "NO ACTION", "NO ACTION",
        )  # fmt: skip


@system_table(
    "information_schema",
    "constraint_column_usage",
    columns={
        "table_catalog": TEXT, "table_schema": TEXT, "table_name": TEXT, "column_name": TEXT,
        "constraint_catalog": TEXT, "constraint_schema": TEXT, "constraint_name": TEXT,
    },
)  # fmt: skip
def constraint_column_usage(catalog: StatementCatalog) -> Iterator[Row]:
    """Columns that constraints speak of; of a reference those that it refers to."""
    for table, rule in _rules(catalog):
        place, columns = (table.schema, table.name), rule.columns
        if rule.kind == "foreign key":
            place, columns = rule.target, rule.target_columns
        for column in columns:
            yield catalog.lake, *place, column, catalog.lake, table.schema, rule.name


@system_table(
    "information_schema",
    "constraint_table_usage",
    columns={
        "table_catalog": TEXT, "table_schema": TEXT, "table_name": TEXT, "constraint_catalog": TEXT,
        "constraint_schema": TEXT, "constraint_name": TEXT,
    },
)  # fmt: skip
def constraint_table_usage(catalog: StatementCatalog) -> Iterator[Row]:
    """Tables that keys and references speak of."""
    for table, rule in _rules(catalog, "primary key", "unique", "foreign key"):
        place = rule.target if rule.kind == "foreign key" else (table.schema, table.name)
        yield catalog.lake, *place, catalog.lake, table.schema, rule.name


@system_table(
    "information_schema",
    "check_constraints",
    columns={"constraint_catalog": TEXT, "constraint_schema": TEXT, "constraint_name": TEXT, "check_clause": TEXT},
)  # fmt: skip
def check_constraints(catalog: StatementCatalog) -> Iterator[Row]:
    """CHECKs, with their conditions."""
    for table, rule in _rules(catalog, "check"):
        yield catalog.lake, table.schema, rule.name, rule.text


@system_table(
    "information_schema",
    "sequences",
    columns={
        "sequence_catalog": TEXT, "sequence_schema": TEXT, "sequence_name": TEXT, "data_type": TEXT,
        "numeric_precision": INT, "numeric_precision_radix": INT, "numeric_scale": INT, "start_value": TEXT,
        "minimum_value": TEXT, "maximum_value": TEXT, "increment": TEXT, "cycle_option": TEXT,
    },
)  # fmt: skip
def sequences(catalog: StatementCatalog) -> Iterator[Row]:
    """Sequences; those of identity columns are their tables' and are left out."""
    for item in sequences_of(catalog):
        if not item.table:
            yield (
                catalog.lake, item.schema, item.name, item.sql_type.lower(), BITS.get(item.sql_type, 64), 2, 0,
                str(item.start), str(item.low), str(item.high), str(item.increment), "YES" if item.cycle else "NO",
            )  # fmt: skip


