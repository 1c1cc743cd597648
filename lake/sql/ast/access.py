"""Users, roles, grants and tokens."""

from __future__ import annotations

from msgspec import Struct

from lake.sql.ast.base import Name, Node
from lake.sql.ast.dml import Statement


class UserOptions(Struct, frozen=True):
    """What CREATE USER and ALTER USER say of a user; None is not said."""

    password: str | None = None
    superuser: bool | None = None
    max_queries: int | None = None
    statement_timeout: str | int | None = None

    def __repr__(self) -> str:
        return f"UserOptions(superuser={self.superuser}, max_queries={self.max_queries})"  # never the password


class CreateUser(Statement, frozen=True):
    """``CREATE USER u PASSWORD '..'`` and ``CREATE ROLE r``."""

    name: str
    options: UserOptions
    is_role: bool = False
    if_not_exists: bool = False


class AlterUser(Statement, frozen=True):
    """``ALTER USER u PASSWORD '..'``."""

    name: str
    options: UserOptions
    is_role: bool = False


class DropUser(Statement, frozen=True):
    """``DROP USER u`` and ``DROP ROLE r``."""

    names: tuple[str, ...]
    is_role: bool = False
    if_exists: bool = False


class Privilege(Node, frozen=True):
    """``SELECT (a, b)``; the word in lower case, ``all`` for ALL PRIVILEGES."""

    word: str
    columns: tuple[str, ...] = ()


class Granted(Node, frozen=True):
    """What a GRANT is on: ``kind`` is relation, schema, lake or secret."""

    kind: str
    names: tuple[Name, ...] = ()


class Grant(Statement, frozen=True):
    """``GRANT SELECT (a), INSERT ON t TO u`` and, with ``revokes``, ``REVOKE .. FROM u``."""

    privileges: tuple[Privilege, ...]
    on: Granted
    users: tuple[str, ...]
    revokes: bool = False


class GrantRoles(Statement, frozen=True):
    """``GRANT r TO u`` and, with ``revokes``, ``REVOKE r FROM u``."""

    roles: tuple[str, ...]
    users: tuple[str, ...]
    revokes: bool = False


class CreateToken(Statement, frozen=True):
    """``CREATE TOKEN t FOR USER u EXPIRES IN '90 days'``."""

    name: str
    user: str
    expires_in: str | None = None


class DropToken(Statement, frozen=True):
    """``DROP TOKEN t FOR USER u``."""

    name: str
    user: str
    if_exists: bool = False
