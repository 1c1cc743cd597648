"""pg_catalog: what drivers and tools ask of a Postgres server about its relations, columns, types and keys.

Rows are made from the lake's catalog when they are read, and join and filter like any other table's.
Source: PostgreSQL documentation, chapter 53 (System Catalogs). Spec: Doors, Postgres door.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from lake.db.definitions import key_text
from lake.db.system import SYSTEM_TABLES, system_table
from lake.db.system.pg_catalog_oids import (
    OWNER,
    PG_TYPES,
    PgType,
    constraint_oid,
    index_oid,
    keys_of,
    own_relations,
    places_of,
    relation_oid,
    schema_oid,
    tables_of,
    type_title,
)
from lake.sql.quoting import quote_name
from lake.storage.catalog.model import INTERNAL, PUBLIC, Table, parse_sql_type
from lake.storage.catalog.objects import EnumType, Index, IndexKey, Sequence
from lake.types import BIGINT, BOOLEAN, DOUBLE, INT, OID, REAL, SMALLINT, TEXT, Decimal, List, Type, pg_oid

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Row = tuple[Any, ...]
SMALLINTS, OIDS, TEXTS = List(SMALLINT), List(OID), List(TEXT)
PLACES, OID_VECTOR = List(SMALLINT, spelled="int2vector"), List(OID, spelled="oidvector")


def schemas_of(catalog: StatementCatalog) -> list[str]:
    """Every schema, the system's too."""
    return sorted({PUBLIC, *catalog.state.schemas, *(schema for schema, _ in SYSTEM_TABLES)} - {INTERNAL})


@system_table(
    "pg_catalog", "pg_namespace", columns={"oid": OID, "nspname": TEXT, "nspowner": OID, "nspacl": TEXTS}
)
def pg_namespace(catalog: StatementCatalog) -> Iterator[Row]:
    """Schemas."""
    for name in schemas_of(catalog):
        yield schema_oid(name), name, OWNER, None


CLASS: Final[dict[str, Type]] = {
    "oid": OID, "relname": TEXT, "relnamespace": OID, "reltype": OID, "reloftype": OID, "relowner": OID,
    "relam": OID, "relfilenode": OID, "reltablespace": OID, "relpages": INT, "reltuples": DOUBLE,
    "relallvisible": INT, "reltoastrelid": OID, "relhasindex": BOOLEAN, "relisshared": BOOLEAN,
    "relpersistence": TEXT, "relkind": TEXT, "relnatts": SMALLINT, "relchecks": SMALLINT, "relhasrules": BOOLEAN,
    "relhastriggers": BOOLEAN, "relhassubclass": BOOLEAN, "relrowsecurity": BOOLEAN, "relforcerowsecurity": BOOLEAN,
    "relispopulated": BOOLEAN, "relreplident": TEXT, "relispartition": BOOLEAN, "relrewrite": OID,
    "relfrozenxid": OID, "relminmxid": OID, "relacl": TEXTS, "reloptions": TEXTS, "relpartbound": TEXT,
}  # fmt: skip


@system_table("pg_catalog", "pg_class", columns=CLASS)
def pg_class(catalog: StatementCatalog) -> Iterator[Row]:
    """Tables, views, sequences, indexes, those that keys are taken to have too, and the lake's own relations."""
    referring = _referring(catalog)
    noted = {item.table for item in catalog.state.named_objects() if isinstance(item, Index)}
    for found in catalog.state.named_objects():
        if not isinstance(found, EnumType):
            kind, count = ("S", 3) if isinstance(found, Sequence) else ("i", len(found.keys))
            yield _class(relation_oid(found), found.schema, found.name, kind, count)
    for item in catalog.state.relations():
        if isinstance(item, Table):
            rows = float(item.file_rows + catalog.state.waiting_rows(item.id))
            checks = sum(rule.kind == "check" for rule in item.constraints)
            keys = list(keys_of(item))
            is_indexed = bool(keys) or item.id in noted
            refers = (item.schema, item.name) in referring  # psql looks for references where there are triggers
            oid = relation_oid(item)
            yield _class(oid, item.schema, item.name, "r", len(item.columns), rows, checks, is_indexed, refers)
            for place, key in keys:
                yield _class(index_oid(item, place), item.schema, key.name, "i", len(key.columns), rows)
        else:
            yield _class(relation_oid(item), item.schema, item.name, "v", len(catalog.columns_of_view(item)))
    for oid, schema, name in own_relations():
        yield _class(oid, schema, name, "v" if schema != "pg_catalog" else "r", len(SYSTEM_TABLES[schema, name].columns))


def _referring(catalog: StatementCatalog) -> set[tuple[str, str]]:
    """Tables at either end of a reference."""
    found: set[tuple[str, str]] = set()
    for table in tables_of(catalog.state):
        targets = [rule.target for rule in table.constraints if rule.kind == "foreign key"]
        found.update(targets, [(table.schema, table.name)] if targets else [])
    return found


def _class(
    oid: int, schema: str, name: str, kind: str, columns: int, rows: float = 0.0, checks: int = 0,
    indexed: bool = False, triggers: bool = False,
) -> Row:  # fmt: skip
    return (
        oid, name, schema_oid(schema), 0, 0, OWNER, {"r": 2, "i": 403}.get(kind, 0), oid, 0, int(rows) // 100, rows,
        0, 0, indexed, False, "p", kind, columns, checks, kind == "v", triggers, False, False, False, True,
        "d" if kind == "r" else "n", False, 0, 0, 0, None, None, None,
    )  # fmt: skip


ATTRIBUTE: Final[dict[str, Type]] = {
    "attrelid": OID, "attname": TEXT, "atttypid": OID, "attstattarget": INT, "attlen": SMALLINT,
    "attnum": SMALLINT, "attndims": INT, "attcacheoff": INT, "atttypmod": INT, "attbyval": BOOLEAN, "attalign": TEXT,
    "attstorage": TEXT, "attcompression": TEXT, "attnotnull": BOOLEAN, "atthasdef": BOOLEAN, "atthasmissing": BOOLEAN,
    "attidentity": TEXT, "attgenerated": TEXT, "attisdropped": BOOLEAN, "attislocal": BOOLEAN, "attinhcount": INT,
    "attcollation": OID, "attacl": TEXTS, "attoptions": TEXTS, "attfdwoptions": TEXTS, "attmissingval": TEXT,
}  # fmt: skip
_SIZES: Final = {item.oid: item.size for item in PG_TYPES}


@system_table("pg_catalog", "pg_attribute", columns=ATTRIBUTE)
def pg_attribute(catalog: StatementCatalog) -> Iterator[Row]:
    """Columns of every relation."""
    for item in catalog.state.relations():
        oid = relation_oid(item)
        if isinstance(item, Table):
            for place, column in enumerate(item.columns, 1):
                has_default = bool(column.default) and not column.identity
                identity = {"always": "a", "by default": "d"}.get(column.identity, "")
                yield _attribute(oid, column.name, column.type, place, column.not_null, has_default, identity)
            for key_place, key in keys_of(item):
                for place, name in enumerate(key.columns, 1):
                    found = item.column(name)
                    if found is not None:
                        yield _attribute(index_oid(item, key_place), name, found.type, place)
        else:
            for place, (name, type) in enumerate(catalog.columns_of_view(item), 1):
                yield _attribute(oid, name, type, place)
    for held in catalog.state.named_objects():
        if isinstance(held, Sequence):
            for place, (name, type) in enumerate(SEQUENCE_COLUMNS.items(), 1):
                yield _attribute(relation_oid(held), name, type, place, True)
        elif isinstance(held, Index):
            yield from _index_columns(held, catalog.state.tables.get(held.table))
    for oid, schema, name in own_relations():
        for place, (column_name, type) in enumerate(SYSTEM_TABLES[schema, name].columns.items(), 1):
            yield _attribute(oid, column_name, type, place)


def _index_columns(index: Index, table: Table | None) -> Iterator[Row]:
    for place, key in enumerate(index.keys, 1):
        column = table.column(key.text) if table is not None and key.is_column else None
        yield _attribute(relation_oid(index), key.text if key.is_column else "expr", column.type if column else TEXT, place)


def _attribute(
    oid: int, name: str, type: Type, place: int, not_null: bool = False, default: bool = False, identity: str = ""
) -> Row:
    number = pg_oid(type)
    modifier = ((type.precision << 16) | type.scale) + 4 if isinstance(type, Decimal) else -1
    size = _SIZES.get(number, -1)
    return (
        oid, name, number, -1, size, place, 1 if isinstance(type, List) else 0, -1, modifier, 0 < size <= 8, "i",
        "p" if size > 0 else "x", "", not_null, default, False, identity, "", False, True, 0,
        100 if number in (25, 1043) else 0, None, None, None, None,
    )  # fmt: skip


@system_table(
    "pg_catalog", "pg_attrdef", columns={"oid": OID, "adrelid": OID, "adnum": SMALLINT, "adbin": TEXT, "adsrc": TEXT}
)
def pg_attrdef(catalog: StatementCatalog) -> Iterator[Row]:
    """DEFAULTs: ``adbin`` is the SQL text, which pg_get_expr answers as it is."""
    for table in tables_of(catalog.state):
        for place, column in enumerate(table.columns, 1):
            if column.default and not column.identity:
                yield relation_oid(table) * 2_000 + place, relation_oid(table), place, column.default, column.default


TYPE: Final[dict[str, Type]] = {
    "oid": OID, "typname": TEXT, "typnamespace": OID, "typowner": OID, "typlen": SMALLINT, "typbyval": BOOLEAN,
    "typtype": TEXT, "typcategory": TEXT, "typispreferred": BOOLEAN, "typisdefined": BOOLEAN, "typdelim": TEXT,
    "typrelid": OID, "typsubscript": TEXT, "typelem": OID, "typarray": OID, "typinput": TEXT,
    "typoutput": TEXT, "typreceive": TEXT, "typsend": TEXT, "typmodin": TEXT, "typmodout": TEXT, "typanalyze": TEXT,
    "typalign": TEXT, "typstorage": TEXT, "typnotnull": BOOLEAN, "typbasetype": OID, "typtypmod": INT,
    "typndims": INT, "typcollation": OID, "typdefaultbin": TEXT, "typdefault": TEXT, "typacl": TEXTS,
}  # fmt: skip


@system_table("pg_catalog", "pg_type", columns=TYPE)
def pg_type(catalog: StatementCatalog) -> Iterator[Row]:
    """Types and arrays of them."""
    for item in PG_TYPES:
        yield _type(item)
        if item.array:
            yield _type(PgType(item.array, f"_{item.name}", -1, "A"), element=item.oid)
    for found in catalog.state.named_objects():
        if isinstance(found, EnumType):
            made = list(_type(PgType(relation_oid(found), found.name, 4, "E", kind="e")))
            yield (*made[:2], schema_oid(found.schema), *made[3:])


@system_table(
    "pg_catalog", "pg_enum",
    columns={"oid": OID, "enumtypid": OID, "enumsortorder": REAL, "enumlabel": TEXT},
)  # fmt: skip
def pg_enum(catalog: StatementCatalog) -> Iterator[Row]:
    """Labels of enum types, in their order."""
    for item in catalog.state.named_objects():
        if isinstance(item, EnumType):
            for place, label in enumerate(item.labels, 1):
                yield relation_oid(item) * 1_000 + place, relation_oid(item), float(place), label


def _type(item: PgType, element: int = 0) -> Row:
    stem = "array_" if element else item.name
    preferred = item.name in ("bool", "text", "float8", "oid", "timestamptz", "interval")
    return (
        item.oid, item.name, 11, OWNER, item.size, 0 < item.size <= 8, item.kind, item.category, preferred, True, ",",
        0, "array_subscript_handler" if element else "-", element, item.array, f"{stem}in" if not element else "array_in",
        f"{stem}out", f"{stem}recv", f"{stem}send", "-", "-", "-", "i", "p" if item.size > 0 else "x", False, 0, -1, 0,
        100 if item.category == "S" else 0, None, None, None,
    )  # fmt: skip


INDEX: Final[dict[str, Type]] = {
    "indexrelid": OID, "indrelid": OID, "indnatts": SMALLINT, "indnkeyatts": SMALLINT, "indisunique": BOOLEAN,
    "indnullsnotdistinct": BOOLEAN, "indisprimary": BOOLEAN, "indisexclusion": BOOLEAN, "indimmediate": BOOLEAN,
    "indisclustered": BOOLEAN, "indisvalid": BOOLEAN, "indcheckxmin": BOOLEAN, "indisready": BOOLEAN,
    "indislive": BOOLEAN, "indisreplident": BOOLEAN, "indkey": PLACES, "indcollation": OID_VECTOR, "indclass": OID_VECTOR,
    "indoption": PLACES, "indexprs": TEXT, "indpred": TEXT,
}  # fmt: skip


@system_table("pg_catalog", "pg_index", columns=INDEX)
def pg_index(catalog: StatementCatalog) -> Iterator[Row]:
    """The indexes that keys are taken to have."""
    for table in tables_of(catalog.state):
        for place, key in keys_of(table):
            count, primary = len(key.columns), key.kind == "primary key"
            yield (
                index_oid(table, place), relation_oid(table), count, count, True, False, primary, False, True, False,
                key.enforced, False, True, True, False, places_of(table, key.columns), [0] * count, [0] * count, [0] * count,
                None, None,
            )  # fmt: skip
    for item in catalog.state.named_objects():
        found = catalog.state.tables.get(item.table)
        if isinstance(item, Index) and found is not None:
            keys, count = len(item.keys), len(item.keys) + len(item.include)
            places = [*(_place_of(found, key) for key in item.keys), *places_of(found, item.include)]
            texts = [key.text for key in item.keys if not key.is_column]
            yield (
                relation_oid(item), relation_oid(found), count, keys, False, False, False, False, True, False,
                True, False, True, True, False, places, [0] * keys, [0] * keys,
                [_order_of(key) for key in item.keys], ", ".join(texts) or None, item.where or None,
            )  # fmt: skip


def _place_of(table: Table, key: IndexKey) -> int:
    return (places_of(table, (key.text,)) or [0])[0] if key.is_column else 0


def _order_of(key: IndexKey) -> int:
    """The bits of pg_index.indoption: 1 descending, 2 NULLs first."""
    is_down = "DESC" in key.order
    return is_down + 2 * ("NULLS FIRST" in key.order or (is_down and "NULLS LAST" not in key.order))


@system_table(
    "pg_catalog", "pg_indexes",
    columns={"schemaname": TEXT, "tablename": TEXT, "indexname": TEXT, "tablespace": TEXT, "indexdef": TEXT},
)  # fmt: skip
def pg_indexes(catalog: StatementCatalog) -> Iterator[Row]:
    """The indexes that keys are taken to have, as statements."""
    for table in tables_of(catalog.state):
        for _, key in keys_of(table):
            yield table.schema, table.name, key.name, None, index_definition(table, key.name, key.columns)
    for item in catalog.state.named_objects():
        found = catalog.state.tables.get(item.table)
        if isinstance(item, Index) and found is not None:
            yield found.schema, found.name, item.name, None, note_definition(item, found)


def note_definition(index: Index, table: Table) -> str:
    """CREATE INDEX as Postgres writes it, with its method and the schema."""
    keys = ", ".join(f"{key_text(key)} {key.order.removeprefix('ASC').strip()}".strip() for key in index.keys)
    where = f"{quote_name(table.schema)}.{quote_name(table.name)}"
    text = f"CREATE INDEX {quote_name(index.name)} ON {where} USING {index.method} ({keys})"
    if index.include:
        text += f" INCLUDE ({', '.join(map(quote_name, index.include))})"
    return f"{text} WHERE ({index.where})" if index.where else text


def index_definition(table: Table, name: str, columns: tuple[str, ...]) -> str:
    """CREATE UNIQUE INDEX for a key."""
    where = f"{quote_name(table.schema)}.{quote_name(table.name)}"
    return f"CREATE UNIQUE INDEX {quote_name(name)} ON {where} USING btree ({', '.join(map(quote_name, columns))})"


CONSTRAINT: Final[dict[str, Type]] = {
    "oid": OID, "conname": TEXT, "connamespace": OID, "contype": TEXT, "condeferrable": BOOLEAN,
    "condeferred": BOOLEAN, "convalidated": BOOLEAN, "conenforced": BOOLEAN, "conrelid": OID, "contypid": OID,
    "conindid": OID, "conparentid": OID, "confrelid": OID, "confupdtype": TEXT, "confdeltype": TEXT,
    "confmatchtype": TEXT, "conislocal": BOOLEAN, "coninhcount": INT, "connoinherit": BOOLEAN, "conkey": SMALLINTS,
    "confkey": SMALLINTS, "conpfeqop": OIDS, "conppeqop": OIDS, "conffeqop": OIDS, "confdelsetcols": SMALLINTS,
    "conexclop": OIDS, "conbin": TEXT, "consrc": TEXT,
}  # fmt: skip
KINDS: Final = {"primary key": "p", "unique": "u", "check": "c", "foreign key": "f"}


@system_table("pg_catalog", "pg_constraint", columns=CONSTRAINT)
def pg_constraint(catalog: StatementCatalog) -> Iterator[Row]:
    """Rules of tables: primary keys, unique columns, checks."""
    for table in tables_of(catalog.state):
        for place, rule in enumerate(table.constraints):
            kind = KINDS.get(rule.kind, "c")
            target = catalog.state.find(rule.target[1], rule.target[0]) if kind == "f" else None
            if kind == "f" and not isinstance(target, Table):
                continue
            index = _index_of(table, rule.columns)
            if isinstance(target, Table):
                index = _index_of(target, rule.target_columns)
            action = "a" if kind == "f" else " "
            yield (
                constraint_oid(table, place), rule.name, schema_oid(table.schema), kind, False, False, rule.enforced,
                rule.enforced, relation_oid(table), 0, index, 0, relation_oid(target) if target else 0, action, action,
                "s" if kind == "f" else " ", True, 0, kind != "c", places_of(table, rule.columns),
                places_of(target, rule.target_columns) if isinstance(target, Table) else None, None, None, None, None,
                None, rule.text or None, rule.text or None,
            )  # fmt: skip


def _index_of(table: Table, columns: tuple[str, ...]) -> int:
    """The index of a table's key over these columns, 0 where there is none."""
    return next((index_oid(table, place) for place, key in keys_of(table) if key.columns == columns), 0)


@system_table(
    "pg_catalog", "pg_description",
    columns={"objoid": OID, "classoid": OID, "objsubid": INT, "description": TEXT},
)  # fmt: skip
def pg_description(catalog: StatementCatalog) -> Iterator[Row]:
    """Comments of relations and columns, types and schemas."""
    for found in catalog.state.named_objects():
        if found.comment:
            yield relation_oid(found), 1247 if isinstance(found, EnumType) else 1259, 0, found.comment
    for schema in catalog.state.schemas.values():
        if schema.comment:
            yield schema_oid(schema.name), 2615, 0, schema.comment
    for item in catalog.state.relations():
        if item.comment:
            yield relation_oid(item), 1259, 0, item.comment
        if isinstance(item, Table):
            for place, column in enumerate(item.columns, 1):
                if column.comment:
                    yield relation_oid(item), 1259, place, column.comment


SEQUENCE_COLUMNS: Final[dict[str, Type]] = {"last_value": BIGINT, "log_cnt": BIGINT, "is_called": BOOLEAN}
SEQUENCE: Final[dict[str, Type]] = {
    "seqrelid": OID, "seqtypid": OID, "seqstart": BIGINT, "seqincrement": BIGINT, "seqmax": BIGINT, "seqmin": BIGINT,
    "seqcache": BIGINT, "seqcycle": BOOLEAN,
}  # fmt: skip


@system_table("pg_catalog", "pg_sequence", columns=SEQUENCE)
def pg_sequence(catalog: StatementCatalog) -> Iterator[Row]:
    """Options of sequences."""
    for item in sequences_of(catalog):
        yield (
            relation_oid(item), pg_oid(parse_sql_type(item.sql_type)), item.start, item.increment, item.high, item.low,
            item.cache, item.cycle,
        )  # fmt: skip


@system_table(
    "pg_catalog", "pg_sequences",
    columns={"schemaname": TEXT, "sequencename": TEXT, "sequenceowner": TEXT, "data_type": TEXT,
             "start_value": BIGINT, "min_value": BIGINT, "max_value": BIGINT, "increment_by": BIGINT, "cycle": BOOLEAN,
             "cache_size": BIGINT, "last_value": BIGINT},
)  # fmt: skip
def pg_sequences(catalog: StatementCatalog) -> Iterator[Row]:
    """Sequences, and the last number that each gave."""
    for item in sequences_of(catalog):
        yield (
            item.schema, item.name, "admin", type_title(pg_oid(parse_sql_type(item.sql_type)), None), item.start,
            item.low, item.high, item.increment, item.cycle, item.cache, catalog.last_number(item),
        )  # fmt: skip


def sequences_of(catalog: StatementCatalog) -> list[Sequence]:
    """The sequences that have a name."""
    return [item for item in catalog.state.named_objects() if isinstance(item, Sequence)]


@system_table(
    "pg_catalog", "pg_tables",
    columns={"schemaname": TEXT, "tablename": TEXT, "tableowner": TEXT, "tablespace": TEXT, "hasindexes": BOOLEAN,
             "hasrules": BOOLEAN, "hastriggers": BOOLEAN, "rowsecurity": BOOLEAN},
)  # fmt: skip
def pg_tables(catalog: StatementCatalog) -> Iterator[Row]:
    """Tables, and those of pg_catalog."""
    for table in tables_of(catalog.state):
        yield table.schema, table.name, "admin", None, any(True for _ in keys_of(table)), False, False, False
    for _, schema, name in own_relations():
        if schema == "pg_catalog":
            yield schema, name, "admin", None, False, False, False, False


@system_table(
    "pg_catalog", "pg_views",
    columns={"schemaname": TEXT, "viewname": TEXT, "viewowner": TEXT, "definition": TEXT},
)  # fmt: skip
def pg_views(catalog: StatementCatalog) -> Iterator[Row]:
    """Views."""
    for item in catalog.state.relations():
        if not isinstance(item, Table):
            yield item.schema, item.name, "admin", item.query
