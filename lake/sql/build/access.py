"""Builders of ``access.lark``."""

from __future__ import annotations

from typing import Any

from lake.sql import ast
from lake.sql.build.base import BaseBuild


class AccessBuild(BaseBuild):
    """Users, roles, grants and tokens."""

    def create_user(self, word: str, if_not_exists: str | None, name: str, *options: dict[str, Any]) -> ast.Statement:
        """``CREATE USER u PASSWORD 'a'``."""
        made = ast.UserOptions(**self._clauses(options))
        return ast.CreateUser(name, made, word == "role", if_not_exists is not None)

    def alter_user(self, word: str, name: str, *options: dict[str, Any]) -> ast.Statement:
        """``ALTER USER u SUPERUSER``."""
        return ast.AlterUser(name, ast.UserOptions(**self._clauses(options)), word == "role")

    def drop_user(self, word: str, if_exists: str | None, names: tuple[str, ...]) -> ast.Statement:
        """``DROP USER IF EXISTS u``."""
        return ast.DropUser(names, word == "role", if_exists is not None)

    def password(self, text: str) -> dict[str, Any]:
        """``PASSWORD 'a'``."""
        return {"password": text}

    def superuser(self) -> dict[str, Any]:
        """``SUPERUSER``."""
        return {"superuser": True}

    def no_superuser(self) -> dict[str, Any]:
        """``NOSUPERUSER``."""
        return {"superuser": False}

    def max_queries(self, number: int) -> dict[str, Any]:
        """``MAX_QUERIES 4``."""
        return {"max_queries": number}

    def statement_timeout(self, limit: str | int) -> dict[str, Any]:
        """``STATEMENT_TIMEOUT '5 seconds'``."""
        return {"statement_timeout": limit}

    def grant(
        self, privileges: tuple[ast.Privilege, ...], on: ast.Granted, users: tuple[str, ...]
    ) -> ast.Statement:
        """``GRANT SELECT ON t TO u``."""
        return ast.Grant(privileges, on, users)

    def revoke(
        self, privileges: tuple[ast.Privilege, ...], on: ast.Granted, users: tuple[str, ...]
    ) -> ast.Statement:
        """``REVOKE SELECT ON t FROM u``."""
        return ast.Grant(privileges, on, users, revokes=True)

    def grant_roles(self, roles: tuple[str, ...], users: tuple[str, ...]) -> ast.Statement:
        """``GRANT r TO u``."""
        return ast.GrantRoles(roles, users)

    def revoke_roles(self, roles: tuple[str, ...], users: tuple[str, ...]) -> ast.Statement:
        """``REVOKE r FROM u``."""
        return ast.GrantRoles(roles, users, revokes=True)

    def privileges(self, *items: ast.Privilege) -> tuple[ast.Privilege, ...]:
        """``SELECT, INSERT``."""
        return items

    def privilege(self, word: str, columns: tuple[str, ...] = ()) -> ast.Privilege:
        """``SELECT (a, b)``."""
        return ast.Privilege(word.split()[0], columns)

    def granted_relations(self, *names: ast.Name) -> ast.Granted:
        """``a.t, b``."""
        return ast.Granted("relation", names)

    def granted_schemas(self, names: tuple[str, ...]) -> ast.Granted:
        """``SCHEMA s``."""
        return ast.Granted("schema", tuple(ast.Name((name,)) for name in names))

    def granted_lake(self) -> ast.Granted:
        """``ALL TABLES``."""
        return ast.Granted("lake")

    def granted_secrets(self, names: tuple[str, ...]) -> ast.Granted:
        """``SECRET s``."""
        return ast.Granted("secret", tuple(ast.Name((name,)) for name in names))

    def create_token(self, name: str, user: str, expires_in: str | None) -> ast.Statement:
        """``CREATE TOKEN t FOR USER u EXPIRES IN '90 days'``."""
        return ast.CreateToken(name, user, expires_in)

    def drop_token(self, if_exists: str | None, name: str, user: str) -> ast.Statement:
        """``DROP TOKEN t FOR USER u``."""
        return ast.DropToken(name, user, if_exists is not None)
