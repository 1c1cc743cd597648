"""Numbers of what is in the catalog, as Postgres's clients want them: stable from statement to statement.

    relations      16384 and its id; the lake's own relations from 11000, a few by Postgres's numbers
    types          Postgres's
    constraints    one for each rule of a table, and an index for those that are keys
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from lake.db.system import SYSTEM_TABLES
from lake.storage.catalog.model import PUBLIC, TEMPORARY_IDS, Constraint, Table, View
from lake.storage.catalog.objects import Object
from lake.storage.catalog.state import State
from lake.types import TYPES

FIRST_RELATION: Final = 16_384
FIRST_OWN: Final = 11_000
CONSTRAINTS: Final = 1_000_000_000  # a table's rules from here, 256 a table
INDEXES: Final = 1_500_000_000
TEMPORARY: Final = 1_000_000  # numbers of temporary relations
OWNER: Final = 10  # the role that owns everything
DATABASE: Final = 5
SCHEMAS: Final = {"pg_catalog": 11, PUBLIC: 2200, "information_schema": 12_000, "lake": 12_001}
WELL_KNOWN: Final = {
    "pg_type": 1247, "pg_attribute": 1249, "pg_proc": 1255, "pg_class": 1259, "pg_database": 1262,
    "pg_namespace": 2615, "pg_constraint": 2606, "pg_attrdef": 2604, "pg_authid": 1260, "pg_index": 2610,
    "pg_trigger": 2620, "pg_rewrite": 2618, "pg_extension": 3079,
}  # fmt: skip


class PgType(Struct, frozen=True):
    """A row of pg_type: ``array`` is the oid of arrays of it, ``category`` as Postgres has it."""

    oid: int
    name: str
    size: int
    category: str
    array: int = 0
    kind: str = "b"
    shown: str = ""

    @property
    def title(self) -> str:
        """The name that format_type writes."""
        return self.shown or self.name


PG_TYPES: Final[tuple[PgType, ...]] = (
    PgType(16, "bool", 1, "B", 1000, shown="boolean"),
    PgType(17, "bytea", -1, "U", 1001),
    PgType(18, "char", 1, "Z", 1002, shown='"char"'),
    PgType(19, "name", 64, "S", 1003),
    PgType(20, "int8", 8, "N", 1016, shown="bigint"),
    PgType(21, "int2", 2, "N", 1005, shown="smallint"),
    PgType(22, "int2vector", -1, "A", 1006),
    PgType(23, "int4", 4, "N", 1007, shown="integer"),
    PgType(24, "regproc", 4, "N", 1008),
    PgType(25, "text", -1, "S", 1009),
    PgType(26, "oid", 4, "N", 1028),
    PgType(30, "oidvector", -1, "A", 1013),
    PgType(114, "json", -1, "U", 199),
    PgType(700, "float4", 4, "N", 1021, shown="real"),
    PgType(701, "float8", 8, "N", 1022, shown="double precision"),
    PgType(1042, "bpchar", -1, "S", 1014, shown="character"),
    PgType(1043, "varchar", -1, "S", 1015, shown="character varying"),
    PgType(1082, "date", 4, "D", 1182),
    PgType(1083, "time", 8, "D", 1183, shown="time without time zone"),
    PgType(1114, "timestamp", 8, "D", 1115, shown="timestamp without time zone"),
    PgType(1184, "timestamptz", 8, "D", 1185, shown="timestamp with time zone"),
    PgType(1186, "interval", 16, "T", 1187),
    PgType(1700, "numeric", -1, "N", 1231),
    PgType(2205, "regclass", 4, "N", 2210),
    PgType(2206, "regtype", 4, "N", 2211),
    PgType(2950, "uuid", 16, "U", 2951),
    PgType(3802, "jsonb", -1, "U", 3807),
    PgType(705, "unknown", -2, "X", kind="p"),
    PgType(2249, "record", -1, "P", 2287, kind="p"),
    PgType(2276, "any", 4, "P", kind="p", shown='"any"'),
    PgType(2277, "anyarray", -1, "P", kind="p"),
    PgType(2278, "void", 4, "P", kind="p"),
)
TYPE_BY_OID: Final = {item.oid: item for item in PG_TYPES}
ARRAY_OF: Final = {item.array: item for item in PG_TYPES if item.array}
TYPE_BY_NAME: Final = {name: item for item in PG_TYPES for name in (item.name, item.title)} | {
    spelling: TYPE_BY_OID[row.pg_oid] for row in TYPES for spelling in row.spellings
}


def schema_oid(name: str) -> int:
    """The oid of a schema."""
    return SCHEMAS.get(name) or 13_000 + zlib.crc32(name.encode()) % 1_000_000_000


def relation_oid(item: Table | View | Object) -> int:
    """The oid of a table, view, sequence or index, or of an enum type."""
    return oid_of(item.id)


def oid_of(id: int) -> int:
    """The oid of what has an id: from TEMPORARY on for what is one session's alone."""
    return FIRST_RELATION + (id if id < TEMPORARY_IDS else TEMPORARY + id - TEMPORARY_IDS)


def own_relations() -> Iterator[tuple[int, str, str]]:
    """Oid, schema and name of the lake's own relations."""
    for place, (schema, name) in enumerate(sorted(SYSTEM_TABLES)):
        known = WELL_KNOWN.get(name) if schema == "pg_catalog" else None
        yield known or FIRST_OWN + place, schema, name


def constraint_oid(table: Table, place: int) -> int:
    """The oid of a table's rule, counted from 0."""
    return CONSTRAINTS + (oid_of(table.id) - FIRST_RELATION) * 256 + place


def index_oid(table: Table, place: int) -> int:
    """The oid of the index that a key is taken to have."""
    return INDEXES + (oid_of(table.id) - FIRST_RELATION) * 256 + place


def keys_of(table: Table) -> Iterator[tuple[int, Constraint]]:
    """The rules of a table that have an index for tools, with their places among its rules.

    A primary key has one though it be a mere fact, because tools find primary keys by their indexes alone.
    """
    for place, item in enumerate(table.constraints):
        if item.kind == "primary key" or (item.kind == "unique" and item.enforced):
            yield place, item


def tables_of(state: State) -> list[Table]:
    """The tables, in order of schema and name."""
    return [item for item in state.relations() if isinstance(item, Table)]


def places_of(table: Table, columns: tuple[str, ...]) -> list[int]:
    """The numbers of columns, from 1."""
    names = [column.name for column in table.columns]
    return [names.index(column) + 1 for column in columns if column in names]


def type_title(oid: int | None, modifier: int | None) -> str | None:
    """What format_type answers: ``numeric(10,2)``, ``integer[]``."""
    if oid is None:
        return None
    if oid in ARRAY_OF:
        return f"{type_title(ARRAY_OF[oid].oid, modifier)}[]"
    found = TYPE_BY_OID.get(oid)
    if found is None:
        return "-" if oid == 0 else "???"
    if oid == 1700 and modifier is not None and modifier >= 4:
        return f"numeric({(modifier - 4) >> 16},{(modifier - 4) & 0xFFFF})"
    return found.title
