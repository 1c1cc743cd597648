"""lake.users and lake.grants. Spec: SQL, System tables and views; Users, roles, grants, tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lake.db.system import system_table
from lake.storage.catalog.access import Grant
from lake.storage.catalog.model import Table, View
from lake.storage.catalog.state import display_name
from lake.types import BIGINT, BOOLEAN, TEXT, TIMESTAMPTZ, List

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Row = tuple[Any, ...]


@system_table(
    "lake",
    "users",
    columns={
        "name": TEXT, "kind": TEXT, "superuser": BOOLEAN, "max_queries": BIGINT, "statement_timeout": BIGINT,
        "password": BOOLEAN, "roles": List(TEXT), "tokens": List(TEXT), "created": TIMESTAMPTZ,
    },
)  # fmt: skip
def users(catalog: StatementCatalog) -> Iterator[Row]:
    """Users and roles; limits are NULL where the node's own count, and the timeout is in milliseconds.

    A user sees itself and its roles.
    """
    for _, user in sorted(catalog.state.users.items()):
        yield (
            user.name, "role" if user.is_role else "user", user.superuser, user.max_queries, user.timeout_ms,
            bool(user.stored_key), list(user.roles), [token.name for token in user.tokens], user.created,
        )  # fmt: skip


@system_table(
    "lake",
    "grants",
    columns={"grantee": TEXT, "privilege": TEXT, "kind": TEXT, "object": TEXT, "columns": List(TEXT)},
)
def grants(catalog: StatementCatalog) -> Iterator[Row]:
    """A row for each right and each role that somebody has; ``columns`` is NULL for whole tables.

    A user sees its own and those of its roles.
    """
    for _, user in sorted(catalog.state.users.items()):
        for role in user.roles:
            yield user.name, "MEMBER", "role", role, None
        for grant in user.grants:
            found = _named(catalog, grant)
            if found is not None:
                yield user.name, grant.privilege.upper(), *found


def _named(catalog: StatementCatalog, grant: Grant) -> tuple[str, str, list[str] | None] | None:
    """Kind, name and columns of what a right is on; None where that has gone, or is not the caller's to see."""
    state = catalog.state
    match grant.kind, grant.object:
        case "relation", int(id):
            found: Table | View | None = state.tables.get(id) or state.views.get(id)
            if found is None:
                return None
            names: dict[int | str, str] = {}
            if isinstance(found, Table):
                names = {column.id: column.name for column in found.columns}
            columns = [names.get(key, str(key)) for key in grant.columns if isinstance(key, str) or key in names]
            kind = "table" if isinstance(found, Table) else "view"
            return kind, display_name(found.schema, found.name), columns if grant.columns else None
        case kind, name:
            return kind, str(name), None
