"""Who calls, and what each role may do: read, write, admin, each holding the ones before it.

    >>> Role.WRITE >= Role.READ
    True
    >>> Tokens(read="r", admin="a").role_of("r")
    <Role.READ: 1>

Spec: HTTP and operations, Roles and tokens.
"""

from __future__ import annotations

import hmac
from enum import IntEnum
from typing import Final

from msgspec import Struct

from lake.config import Config
from lake.errors import InsufficientPrivilege


class Role(IntEnum):
    """The least role that may do a thing; a greater one may too."""

    READ = 1
    WRITE = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        """The role as tokens, audit and /whoami write it."""
        return self.name.lower()


# The classes that statements and the audit log are sorted into, and what each takes. A CALL runs with its caller's
# rights, so it takes no more than reading; a DO block is checked as DDL is.
ROLE_OF_CLASS: Final[dict[str, Role]] = {
    "read": Role.READ,
    "misc": Role.READ,
    "function": Role.READ,
    "write": Role.WRITE,
    "ddl": Role.ADMIN,
    "role": Role.ADMIN,
}

_REFUSALS: Final[dict[Role, str]] = {
    Role.READ: "this {who} may not read",
    Role.WRITE: "this {who} may not write",
    Role.ADMIN: "this {who} may not change the lake's tables, views, schemas, routines or users "
    "(an admin token, or a superuser, does)",
}
# The names under which tokens sign in where a protocol wants a user's name.
ROLE_NAMES: Final[dict[str, Role]] = {"reader": Role.READ, "writer": Role.WRITE, "admin": Role.ADMIN}
SIGN_IN: Final = "sign in with a token, or a user's name and password"


class Principal(Struct, frozen=True):
    """Who a request comes from.

    user       the name the audit keeps: a user's, or the role's for a token
    role       of a user that is no superuser, what it can have been granted at most
    superuser  whether it manages users and reads the audit
    open       whether the node asks nobody to sign in
    owner      whether it is the program that started the node, which alone reads files of the machine
    id         a user's, which no other user ever has; 0 of all others
    """

    user: str
    role: Role
    superuser: bool = False
    open: bool = False
    owner: bool = False
    id: int = 0

    @property
    def key(self) -> str:
        """What tells this caller from every other, however they are called."""
        return f"{self.id}:{self.user}"

    def may(self, role: Role) -> bool:
        """Whether this caller holds ``role``."""
        return self.role >= role

    def require(self, role: Role) -> None:
        """Returns when this caller holds ``role``.

        42501  it does not; the message is the specification's
        """
        if not self.may(role):
            raise InsufficientPrivilege(_REFUSALS[role].format(who="user" if self.id else "token"))


OWNER: Final = Principal("owner", Role.ADMIN, superuser=True, owner=True)
ANYONE: Final = Principal("anyone", Role.ADMIN, superuser=True, open=True)


class Tokens(Struct, frozen=True):
    """The three tokens of a node; one that is not set lets nobody in."""

    read: str | None = None
    write: str | None = None
    admin: str | None = None

    @classmethod
    def of(cls, config: Config) -> Tokens:
        """The tokens that flags and variables give."""
        return cls(config.read_token, config.write_token, config.admin_token)

    @property
    def are_set(self) -> bool:
        """Whether the node asks callers to sign in."""
        return any((self.read, self.write, self.admin))

    def of_role(self, role: Role) -> str | None:
        """The token of a role, where it is set."""
        return {Role.READ: self.read, Role.WRITE: self.write, Role.ADMIN: self.admin}[role]

    def role_of(self, presented: str) -> Role | None:
        """The role whose token this is, the greatest where several are the same; None of any other text."""
        given = presented.encode("utf-8", "surrogatepass")
        found = None
        for role in Role:
            token = self.of_role(role)
            # Compared in constant time and with all three, so that the time taken tells nothing about the right ones.
            if token and hmac.compare_digest(token.encode("utf-8", "surrogatepass"), given):
                found = role
        return found

    @staticmethod
    def principal(role: Role) -> Principal:
        """The caller that presents the token of a role."""
        return Principal(role.label, role, superuser=role is Role.ADMIN)
