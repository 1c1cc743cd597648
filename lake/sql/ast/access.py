"""Users, roles, grants and tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

from lake.sql.ast.base import Name, Node
from lake.sql.ast.dml import Statement


@dataclass(frozen=True, slots=True)
class UserOptions:
    """What CREATE USER and ALTER USER say of a user; None is not said."""

    password: str | None = field(default=None, repr=False)
    superuser: bool | None = None
    max_queries: int | None = None
    statement_timeout: str | int | None = None


@dataclass(frozen=True, slots=True)
class CreateUser(Statement):
    """``CREATE USER u PASSWORD '..'`` and ``CREATE ROLE r``."""

    name: str
    options: UserOptions
    is_role: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterUser(Statement):
    """``ALTER USER u PASSWORD '..'``."""

    name: str
    options: UserOptions
    is_role: bool = False


@dataclass(frozen=True, slots=True)
class DropUser(Statement):
    """``DROP USER u`` and ``DROP ROLE r``."""

    names: tuple[str, ...]
    is_role: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Privilege(Node):
    """``SELECT (a, b)``; the word in lower case, ``all`` for ALL PRIVILEGES."""

    word: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Granted(Node):
    """What a GRANT is on: ``kind`` is relation, schema, lake or secret."""

    kind: str
    names: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant(Statement):
    """``GRANT SELECT (a), INSERT ON t TO u`` and, with ``revokes``, ``REVOKE .. FROM u``."""

    privileges: tuple[Privilege, ...]
    on: Granted
    users: tuple[str, ...]
    revokes: bool = False


@dataclass(frozen=True, slots=True)
class GrantRoles(Statement):
    """``GRANT r TO u`` and, with ``revokes``, ``REVOKE r FROM u``."""

    roles: tuple[str, ...]
    users: tuple[str, ...]
    revokes: bool = False


@dataclass(frozen=True, slots=True)
class CreateToken(Statement):
    """``CREATE TOKEN t FOR USER u EXPIRES IN '90 days'``."""

    name: str
    user: str
    expires_in: str | None = None


@dataclass(frozen=True, slots=True)
class DropToken(Statement):
    """``DROP TOKEN t FOR USER u``."""

    name: str
    user: str
    if_exists: bool = False
