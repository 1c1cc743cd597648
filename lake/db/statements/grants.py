"""GRANT and REVOKE. Spec: SQL, Users, roles, grants, tokens."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import msgspec

from lake.db.names import qualified
from lake.db.result import Result
from lake.db.rights.granted import PRIVILEGES, Relation
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.access import check_superuser
from lake.errors import FeatureNotSupported, UndefinedColumn, UndefinedObject, UndefinedSchema, UndefinedTable
from lake.roles import Role
from lake.sql import ast
from lake.storage.catalog.access import PUBLIC_ROLE, Grant, User, Users
from lake.storage.catalog.changes import Change, PutUser
from lake.storage.catalog.model import INTERNAL, Table
from lake.storage.catalog.state import State, display_name

Grants = tuple[Grant, ...]


@statement(ast.Grant, tag="GRANT", role=Role.ADMIN, audit="role")
def grant(stmt: ast.Grant, run: Run) -> Result:
    """Gives rights to users and roles, or takes them away; effective at once.

    42P01, 42703, 3F000  what is not there      42704  no such user or role
    0A000  columns of what is no SELECT, USAGE on what is no secret, secrets
    """
    check_superuser(run)

    def make(state: State) -> list[Change]:
        users = state.users
        for name in dict.fromkeys(stmt.users):
            user = _grantee(users, name)
            grants = user.grants
            for item in wanted(stmt, state, run):
                relation = _relation_of(item, state)
                grants = _without(grants, item, relation) if stmt.revokes else _with(grants, item)
            users = users.set(name, msgspec.structs.replace(user, grants=grants))
        return [PutUser(users[name]) for name in dict.fromkeys(stmt.users) if users[name] != state.users.get(name)]

    run.database.define(make)
    word = "REVOKE" if stmt.revokes else "GRANT"
    return Result.done(word, {word.lower(): [item.word for item in stmt.privileges], "users": list(stmt.users)})


def wanted(stmt: ast.Grant, state: State, run: Run) -> list[Grant]:
    """The rights that a GRANT names, one for each privilege and object."""
    made: list[Grant] = []
    for privilege in stmt.privileges:
        words = PRIVILEGES if privilege.word == "all" else (privilege.word,)
        if privilege.columns and privilege.word != "select":
            raise FeatureNotSupported("columns are granted for SELECT; other rights are on whole tables")
        if (stmt.on.kind == "secret") != (privilege.word == "usage"):
            raise FeatureNotSupported(f"{privilege.word.upper()} is no right on a {stmt.on.kind}")
        for word in words:
            made += _on(stmt.on, word, privilege.columns, state, run)
    return made


def _on(on: ast.Granted, word: str, columns: tuple[str, ...], state: State, run: Run) -> list[Grant]:
    if columns and on.kind != "relation":
        raise FeatureNotSupported("columns are of one table or view")
    match on.kind:
        case "relation":
            return [_on_relation(name, word, columns, state, run) for name in on.names]
        case "schema":
            missing = [name.last for name in on.names if name.last not in state.schemas or name.last == INTERNAL]
            if missing:
                raise UndefinedSchema(f'schema "{missing[0]}" does not exist')
            return [Grant(word, "schema", name.last) for name in on.names]
        case "lake":
            return [Grant(word, "lake")]
        case _:
            raise FeatureNotSupported("secrets are not supported yet")


def _on_relation(name: ast.Name, word: str, columns: tuple[str, ...], state: State, run: Run) -> Grant:
    schema, last = qualified(name.parts, run.database.name)
    found = state.find(last, schema)
    if found is None:
        shown = display_name(schema, last)
        raise UndefinedTable(f'relation "{shown}" does not exist', hint=state.hint(last, schema))
    return Grant(word, "relation", found.id, _columns(found, columns, run))


def _columns(relation: Relation, names: tuple[str, ...], run: Run) -> tuple[int | str, ...]:
    if isinstance(relation, Table):
        known: dict[str, int | str] = {column.name: column.id for column in relation.columns}
    else:
        known = {name: name for name, _ in run.catalog.columns_of_view(relation)}
    for name in names:
        if name not in known:
            raise UndefinedColumn(f'column "{name}" of relation "{relation.name}" does not exist')
    return tuple(dict.fromkeys(known[name] for name in names))


def _relation_of(item: Grant, state: State) -> Relation | None:
    if item.kind != "relation" or not isinstance(item.object, int):
        return None
    return state.tables.get(item.object) or state.views.get(item.object)


def _with(grants: Grants, item: Grant) -> Grants:
    """Grants with one more; columns of one relation are kept together, and go in a grant of the whole."""
    rest = tuple(known for known in grants if _place(known) != _place(item))
    before = [known for known in grants if _place(known) == _place(item)]
    if not item.columns or any(not known.columns for known in before):
        return (*rest, Grant(*_place(item)))
    columns = dict.fromkeys(column for known in (*before, item) for column in known.columns)
    return (*rest, Grant(*_place(item), tuple(columns)))


def _without(grants: Grants, item: Grant, relation: Relation | None) -> Grants:
    """Grants with one less. A column taken from a grant on a whole table leaves its other columns granted."""
    made: list[Grant] = []
    for known in grants:
        if _place(known) != _place(item):
            made.append(known)
        elif item.columns:
            columns = known.columns or _all_columns(relation, item)
            left = tuple(column for column in columns if column not in item.columns)
            if left:
                made.append(Grant(*_place(known), left))
    return tuple(made)


def _all_columns(relation: Relation | None, item: Grant) -> Sequence[int | str]:
    if not isinstance(relation, Table):
        raise FeatureNotSupported("revoke all of a view, then grant the columns that stay")
    return [column.id for column in relation.columns]


def _place(item: Grant) -> tuple[str, str, int | str]:
    return item.privilege, item.kind, item.object


def _grantee(users: Users, name: str) -> User:
    """The user or role that is granted to; ``public`` is there from the first grant on."""
    found = users.get(name)
    if found is None and name == PUBLIC_ROLE:
        return User(PUBLIC_ROLE, secrets.randbits(53), is_role=True)
    if found is None:
        raise UndefinedObject(f'user or role "{name}" does not exist')
    return found
