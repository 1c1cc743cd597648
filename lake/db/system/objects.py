"""lake.objects and lake.kinds: everything that has a name, with the statements that make it again.

Spec: SQL, System tables and views; reference: every kind of object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from lake.db import definitions
from lake.db.system import system_table
from lake.storage.catalog.model import PUBLIC, Table
from lake.storage.catalog.objects import EnumType, Index, Object, Sequence
from lake.storage.catalog.state import State
from lake.types import TEXT

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Row = tuple[Any, ...]

# Kind, family of names, statements.
KINDS: Final = (
    ("schema", "schema", "CREATE, DROP, COMMENT ON, SHOW CREATE"),
    ("table", "relation", "CREATE, CREATE OR REPLACE, ALTER, DROP, UNDROP, RESTORE, CLONE, COMMENT ON, SHOW CREATE"),
    ("view", "relation", "CREATE, CREATE OR REPLACE, DROP, COMMENT ON, SHOW CREATE"),
    ("external table", "relation", "CREATE, CREATE OR REPLACE, DROP, COMMENT ON, SHOW CREATE"),
    ("sequence", "relation", "CREATE, CREATE OR REPLACE, ALTER, DROP, COMMENT ON, SHOW CREATE"),
    ("index", "relation", "CREATE, ALTER, DROP, COMMENT ON, SHOW CREATE"),
    ("type", "type", "CREATE, ALTER, DROP, COMMENT ON, SHOW CREATE"),
)


@system_table(
    "lake",
    "objects",
    columns={"kind": TEXT, "lake": TEXT, "schema": TEXT, "name": TEXT, "comment": TEXT, "definition": TEXT},
)
def objects(catalog: StatementCatalog) -> Iterator[Row]:
    """Schemas, tables, views, sequences, types and indexes; a sequence that a column owns is its table's."""
    state, lake = catalog.state, catalog.lake
    for schema in sorted(state.schemas.values(), key=lambda item: item.name):
        if schema.name != PUBLIC:
            yield "schema", lake, schema.name, schema.name, schema.comment, definitions.schema_definition(schema)
    for item in state.relations():
        if isinstance(item, Table):
            yield "table", lake, item.schema, item.name, item.comment, definitions.table_definition(item, state)
        else:
            text = definitions.view_definition(item) if item.query else None
            yield item.kind, lake, item.schema, item.name, item.comment, text
    for found in state.named_objects():
        made = _definition(found, state)
        if made is not None:
            yield made[0], lake, found.schema, found.name, found.comment, made[1]


def _definition(item: Object, state: State) -> tuple[str, str] | None:
    """Kind and definition; None of what its table's definition makes."""
    match item:
        case Sequence():
            return None if item.table else ("sequence", definitions.sequence_definition(item))
        case EnumType():
            return "type", definitions.type_definition(item)
        case Index():
            table = state.tables.get(item.table)
            return None if table is None else ("index", definitions.index_definition(item, table))


@system_table("lake", "kinds", columns={"kind": TEXT, "family": TEXT, "statements": TEXT})
def kinds(catalog: StatementCatalog) -> Iterator[Row]:
    """Kinds of objects; names are unlike within a family and a schema."""
    yield from KINDS
