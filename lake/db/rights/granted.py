"""What one user may do, worked out of its own grants, those of its roles and those of ``public``.

    Rights.of(users, ann).require("insert", notes)      42501 permission denied: INSERT on notes

Only users that are no superusers have Rights; tokens of the node have roles instead. Spec: HTTP, Users, roles, grants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from lake.errors import InsufficientPrivilege
from lake.storage.catalog.access import PUBLIC_ROLE, Grant, User, Users
from lake.storage.catalog.model import TEMPORARY_IDS, Table, View
from lake.storage.catalog.state import display_name

Relation = Table | View
PRIVILEGES: Final = ("select", "insert", "update", "delete")  # what ALL stands for


class Rights(Struct):
    """What ``user`` may do.

    users      the users of whom this was worked out: other ones may say another thing
    lake       privileges on every relation
    schemas    privileges by schema
    relations  privileges on whole relations, by id
    columns    what may be read of relations of which only some columns may, by id
    secrets    names of secrets that may be used
    stamp      the newest definition of the lake by then: rights of one stamp are the same
    """

    user: User
    users: Users
    stamp: int = 0
    lake: set[str] = field(default_factory=set)
    schemas: dict[str, set[str]] = field(default_factory=dict)
    relations: dict[int, set[str]] = field(default_factory=dict)
    columns: dict[int, set[int | str]] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, users: Users, user: User, stamp: int = 0) -> Rights:
        """The rights of a user among ``users``."""
        rights = cls(user, users, stamp)
        for grant in grants_of(users, user):
            rights._add(grant)
        return rights

    def _add(self, grant: Grant) -> None:
        match grant.kind, grant.object:
            case "lake", _:
                self.lake.add(grant.privilege)
            case "schema", str(schema):
                self.schemas.setdefault(schema, set()).add(grant.privilege)
            case "relation", int(id):
                if grant.columns:
                    self.columns.setdefault(id, set()).update(grant.columns)
                else:
                    self.relations.setdefault(id, set()).add(grant.privilege)
            case "secret", str(name):
                self.secrets.add(name)

    @property
    def writes(self) -> bool:
        """Whether there is anything that the user may write."""
        held = (self.lake, *self.schemas.values(), *self.relations.values())
        return any(granted - {"select"} for granted in held)

    def may(self, privilege: str, relation: Relation) -> bool:
        """Whether the user holds a privilege on all of a relation."""
        return (
            relation.id >= TEMPORARY_IDS  # a session's own
            or privilege in self.lake
            or privilege in self.schemas.get(relation.schema, ())
            or privilege in self.relations.get(relation.id, ())
        )

    def require(self, privilege: str, relation: Relation) -> None:
        """Returns when the user holds a privilege on all of a relation.

        42501  it does not; the message names both
        """
        if not self.may(privilege, relation):
            raise InsufficientPrivilege(refusal(privilege, relation))

    def require_some(self, relation: Relation) -> None:
        """Returns when there is a column of the relation that the user may read.

        42501  there is none
        """
        if not self.may("select", relation) and not self.columns.get(relation.id):
            raise InsufficientPrivilege(refusal("select", relation))

    def require_all(self, relation: Relation, names: Sequence[str]) -> None:
        """Returns when the user may read every one of the relation's columns, which streaming its rows takes.

        42501  it may not; the message names the first column that is missing
        """
        refused = self.refused(relation, names)
        if refused:
            raise InsufficientPrivilege(next(iter(refused.values())))

    def refused(self, relation: Relation, names: Sequence[str]) -> dict[str, str]:
        """Which of a relation's columns the user may not read, with the words to say so.

        names  all its columns
        """
        if self.may("select", relation):
            return {}
        granted = self.columns.get(relation.id, set())
        if isinstance(relation, Table):
            keys: dict[str, int | str] = {column.name: column.id for column in relation.columns}
        else:
            keys = {name: name for name in names}
        return {name: refusal("select", relation, name) for name in names if keys.get(name) not in granted}

    def require_files(self, privilege: str) -> None:
        """Returns when the user holds a privilege on all tables, which is what the lake's files take.

        42501  it does not
        """
        if privilege not in self.lake:
            raise InsufficientPrivilege(f"permission denied: {privilege.upper()} on files: it takes a grant ON ALL TABLES")

    def sees(self, relation: Relation) -> bool:
        """Whether listings show the relation: some right to it is enough."""
        if self.columns.get(relation.id):
            return True
        return any(self.may(privilege, relation) for privilege in PRIVILEGES)


def grants_of(users: Users, user: User) -> Iterator[Grant]:
    """The grants that a user has, by itself, by its roles and theirs, and as one of the public."""
    for name in roles_of(users, user):
        found = users.get(name)
        if found is not None:
            yield from found.grants


def roles_of(users: Users, user: User) -> list[str]:
    """The user's name, the names of its roles and theirs, and ``public``."""
    names = [user.name, PUBLIC_ROLE]
    for name in names:
        found = users.get(name)
        names += [role for role in (found.roles if found is not None else ()) if role not in names]
    return names


def refusal(privilege: str, relation: Relation, column: str | None = None) -> str:
    """``permission denied: SELECT (pay) on salaries``. Spec: SQL, Errors."""
    of_column = "" if column is None else f" ({column})"
    return f"permission denied: {privilege.upper()}{of_column} on {display_name(relation.schema, relation.name)}"
