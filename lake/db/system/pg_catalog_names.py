"""What the functions of pg_catalog look up: names by oid, oids by name, definitions, comments, rights.

A statement's Settings carry a maker of PgNames, so that functions, which know no catalog, can ask.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lake.db.definitions import key_text, place_text, rule_text
from lake.db.names import named_parts
from lake.db.rights.granted import Rights
from lake.db.settings import canonical, change_setting
from lake.db.system.pg_catalog import index_definition, note_definition, schemas_of
from lake.db.system.pg_catalog_oids import (
    TYPE_BY_NAME,
    constraint_oid,
    index_oid,
    keys_of,
    oid_of,
    own_relations,
    relation_oid,
    schema_oid,
    tables_of,
    type_title,
)
from lake.errors import UndefinedColumn, UndefinedObject, UndefinedTable
from lake.roles import Role
from lake.sql.quoting import quote_name
from lake.storage.catalog.model import PUBLIC, Table, View
from lake.storage.catalog.objects import EnumType, Index, Sequence

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog
    from lake.db.session import Session

READS = ("select", "usage", "connect", "execute", "references", "temp", "temporary")
WRITES = ("insert", "update", "delete", "truncate")


class PgNames:
    """The names and numbers of one statement's catalog."""

    def __init__(self, session: Session, catalog: StatementCatalog) -> None:
        self._session = session
        self._catalog = catalog
        self._relations = {relation_oid(item): item for item in catalog.state.relations()}
        self._objects = {relation_oid(item): item for item in catalog.state.named_objects()}
        self._own = {oid: (schema, name) for oid, schema, name in own_relations()}
        self._tables = tables_of(catalog.state)

    def relation_place(self, oid: int) -> tuple[str, str] | None:
        """Schema and name of a relation or of a key's index."""
        found = self._relations.get(oid)
        if found is not None:
            return found.schema, found.name
        if oid in self._objects:
            return self._objects[oid].schema, self._objects[oid].name
        if oid in self._own:
            return self._own[oid]
        for table in self._tables:
            for place, key in keys_of(table):
                if index_oid(table, place) == oid:
                    return table.schema, key.name
        return None

    def relation_name(self, oid: int) -> str:
        """The name as ``oid::regclass::text`` writes it: with its schema where that is not searched."""
        found = self.relation_place(oid)
        if found is None:
            return "-" if oid == 0 else str(oid)
        schema, name = found
        return quote_name(name) if schema in (PUBLIC, "pg_catalog") else f"{quote_name(schema)}.{quote_name(name)}"

    def relation_oid(self, text: str) -> int | None:
        """The oid of the relation that a text names."""
        if text.strip().isdigit():
            return int(text)
        parts = named_parts(text)
        schemas, name = ((parts[-2],), parts[-1]) if len(parts) > 1 else ((PUBLIC, "pg_catalog"), parts[-1] if parts else "")
        for schema in schemas:
            found = self._catalog.state.names.get((schema, name))
            if found is not None:
                return oid_of(found)
            for oid, own_schema, own_name in own_relations():
                if (own_schema, own_name) == (schema, name):
                    return oid
            for table in self._tables:
                for place, key in keys_of(table):
                    if (table.schema, key.name) == (schema, name):
                        return index_oid(table, place)
        return None

    def relation_oid_or_fail(self, text: str) -> int:
        """As ``relation_oid``; 42P01 where there is none."""
        found = self.relation_oid(text)
        if found is None:
            raise UndefinedTable(f'relation "{text}" does not exist')
        return found

    def type_oid(self, text: str) -> int:
        """The oid of the type that a text names; 42704 where there is none."""
        word = text.strip().lower().removeprefix("pg_catalog.").strip('"')
        if word.isdigit():
            return int(word)
        found = TYPE_BY_NAME.get(re.sub(r"\s*\(.*\)", "", word.removesuffix("[]")))
        parts = named_parts(text)
        own = self._catalog.state.type_names.get((PUBLIC if len(parts) == 1 else parts[0], parts[-1])) if parts else None
        if found is None and own is not None:
            return oid_of(own)
        if found is None:
            raise UndefinedObject(f'type "{text}" does not exist')
        return found.array if word.endswith("[]") else found.oid

    def schema_oid(self, text: str) -> int:
        """The oid of a schema."""
        return int(text) if text.isdigit() else schema_oid(named_parts(text)[-1])

    def schema_name(self, oid: int) -> str:
        """The name of a schema."""
        return next((name for name in schemas_of(self._catalog) if schema_oid(name) == oid), str(oid))

    def type_title(self, oid: int | None, modifier: int | None) -> str | None:
        """What format_type answers."""
        found = None if oid is None else self._objects.get(oid)
        if isinstance(found, EnumType):
            return place_text(found.schema, found.name)
        return type_title(oid, modifier)

    def is_visible(self, oid: int) -> bool | None:
        """Whether a relation is found without its schema."""
        found = self.relation_place(oid)
        return None if found is None else found[0] in (PUBLIC, "pg_catalog")

    def constraint(self, oid: int) -> str | None:
        """A rule as ALTER TABLE writes it."""
        for table in self._tables:
            for place, rule in enumerate(table.constraints):
                if constraint_oid(table, place) == oid:
                    return rule_text(rule)
        return None

    def index(self, oid: int, column: int) -> str | None:
        """A key's index as a statement, or one of its columns."""
        for table in self._tables:
            for place, key in keys_of(table):
                if index_oid(table, place) == oid:
                    if column:
                        return quote_name(key.columns[column - 1]) if column <= len(key.columns) else ""
                    return index_definition(table, key.name, key.columns)
        found = self._objects.get(oid)
        held = None if found is None else self._catalog.state.tables.get(found.table)
        if not isinstance(found, Index) or held is None:
            return None
        if column:
            return key_text(found.keys[column - 1]) if column <= len(found.keys) else ""
        return note_definition(found, held)

    def serial_sequence(self, table: str, column: str) -> str | None:
        """The sequence that a column owns, with its schema; 42P01, 42703 where there is no such column."""
        oid = self.relation_oid_or_fail(table)
        found = self._relations.get(oid)
        if not isinstance(found, Table) or found.column(column) is None:
            raise UndefinedColumn(f'column "{column}" of relation "{table}" does not exist')
        for item in self._objects.values():
            if isinstance(item, Sequence) and item.table == found.id:
                if any(each.id == item.column and each.name == column for each in found.columns):
                    return f"{quote_name(item.schema)}.{quote_name(item.name)}"
        return None

    def last_number(self, oid: int) -> int | None:
        """The last number that a sequence gave."""
        found = self._objects.get(oid)
        return self._catalog.last_number(found) if isinstance(found, Sequence) else None

    def view(self, oid: int) -> str | None:
        """A view's query."""
        found = self._relations.get(oid)
        return found.query if isinstance(found, View) else None

    def comment(self, oid: int, column: int) -> str | None:
        """A relation's comment, or that of its column."""
        found = self._relations.get(oid)
        if found is None:
            known_object = self._objects.get(oid)
            return None if known_object is None or column else known_object.comment
        if not column:
            return found.comment
        known = isinstance(found, Table) and 0 < column <= len(found.columns)
        return found.columns[column - 1].comment if isinstance(found, Table) and known else None

    def bytes_of(self, oid: int) -> int | None:
        """Bytes of a table's files."""
        found = self._relations.get(oid)
        return found.file_bytes if isinstance(found, Table) else None if found is None and oid not in self._own else 0

    def database_bytes(self) -> int:
        """Bytes of all tables' files."""
        return sum(table.file_bytes for table in self._tables)

    def may(self, privileges: str) -> bool:
        """Whether the caller holds one of the rights that a text lists."""
        words = [word.strip().lower().removesuffix("with grant option").strip() for word in privileges.split(",")]
        roles = [Role.READ if word in READS else Role.WRITE if word in WRITES else Role.ADMIN for word in words]
        return any(self._session.principal.may(role) for role in roles)

    def may_on(self, user: str | int | None, relation: str | int, column: str | int | None, privileges: str) -> bool | None:
        """Whether a user, by default the caller, holds one of the rights that a text lists on a relation, or on its column.

        column  None for the whole relation, ``*`` for any of its columns
        42P01, 42703, 42704  no such relation, column or user that the caller is shown
        """
        oid = relation if isinstance(relation, int) else self.relation_oid_or_fail(relation)
        found = self._relations.get(oid)
        if found is None:
            return self.may(privileges) if self.relation_place(oid) is not None else None
        caller, rights = self._session.caller()
        if user is not None and str(user) != caller.user:
            users = self._catalog.state.users
            asked = users.get(str(user))
            if asked is None:
                raise UndefinedObject(f'role "{user}" does not exist')
            rights = None if asked.superuser else Rights.of(users, asked)
        if rights is None:
            return self.may(privileges)
        words = [word.strip().lower().removesuffix("with grant option").strip() for word in privileges.split(",")]
        return any(rights.may(word, found) or self._may_column(rights, word, found, column) for word in words)

    def _may_column(self, rights: Rights, word: str, found: Table | View, column: str | int | None) -> bool:
        granted = rights.columns.get(found.id, set())
        if word != "select" or column is None or not granted:
            return False
        if column == "*":
            return True
        if not isinstance(found, Table):
            return column in granted
        named = [item for place, item in enumerate(found.columns, 1) if column in (item.name, place)]
        return bool(named) and named[0].id in granted

    def set_config(self, name: str, value: str | None) -> str:
        """Changes a setting of the session; its value afterwards."""
        change_setting(self._session.settings, name, value)
        found = self._session.settings.get(canonical(name))
        return found.value if found is not None else ""
