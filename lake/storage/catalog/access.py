"""Who may sign in to a lake and what they may do, as frozen values: users, roles, grants, tokens.

    User ── Grant      SELECT (name) on table 7, INSERT on schema sales, USAGE on secret s
      │ └── Token      a hash and a SCRAM verifier; the token itself is shown once and kept nowhere
      └── roles        names of roles whose grants it has too; everyone has those of ``public``

A table or view is named by its id and a table's column by its own, so that a rename keeps a grant and another table of the
same name does not get it. Spec: HTTP, Users, roles, grants; SQL, Users, roles, grants, tokens.
"""

from __future__ import annotations

from typing import Final

import msgspec

from lake.storage.catalog.maps import PersistentMap

PUBLIC_ROLE: Final = "public"  # the role that every user has


class Grant(msgspec.Struct, frozen=True, array_like=True):
    """One right.

    privilege  ``select``, ``insert``, ``update``, ``delete`` or ``usage``
    kind       ``relation``, ``schema``, ``lake`` or ``secret``
    object     id of a relation, name of a schema or secret, empty for the lake
    columns    ids of a table's columns, or names of a view's; empty for all, those to come too
    """

    privilege: str
    kind: str
    object: int | str = ""
    columns: tuple[int | str, ...] = ()


class Token(msgspec.Struct, frozen=True, array_like=True):
    """A token of a user: SHA-256 in hex, the keys of its SCRAM verifier in base64, and when it ends (microseconds)."""

    name: str
    hash: str
    stored_key: str
    server_key: str
    created: int
    expires: int | None = None


class User(msgspec.Struct, frozen=True, omit_defaults=True):
    """A user, or a role, which is a name for grants and signs in nowhere.

    id           unlike that of any other user, of one that had the name before too
    salt         base64; of the verifiers of the password and of all tokens
    stored_key   and ``server_key``: the password's SCRAM-SHA-256 verifier, base64; empty without a password
    max_queries  statements at once, and ``timeout_ms`` of one: None is the node's default, 0 no limit
    """

    name: str
    id: int
    is_role: bool = False
    superuser: bool = False
    salt: str = ""
    stored_key: str = ""
    server_key: str = ""
    tokens: tuple[Token, ...] = ()
    roles: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()
    max_queries: int | None = None
    timeout_ms: int | None = None
    created: int = 0


Users = PersistentMap[str, User]


def without_user(users: Users, name: str) -> Users:
    """The users when ``name`` is gone: no user has it as a role either."""
    users = users.remove(name)
    for other in list(users.values()):
        if name in other.roles:
            roles = tuple(role for role in other.roles if role != name)
            users = users.set(other.name, msgspec.structs.replace(other, roles=roles))
    return users


def without_schema(users: Users, schema: str) -> Users:
    """The users when a schema is gone: another of its name starts without grants."""
    for user in list(users.values()):
        kept = tuple(grant for grant in user.grants if (grant.kind, grant.object) != ("schema", schema))
        if kept != user.grants:
            users = users.set(user.name, msgspec.structs.replace(user, grants=kept))
    return users
