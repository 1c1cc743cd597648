"""Who calls, and what each role may do: read, write, admin, each holding the ones before it.

    >>> Role.WRITE >= Role.READ
    True
    >>> Tokens(read="r", admin="a").sign_in("r").role
    <Role.READ: 1>

Spec: HTTP and operations, Roles and tokens.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from lake.config import Config
from lake.errors import InsufficientPrivilege, InvalidAuthorization


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
    Role.READ: "this token may not read",
    Role.WRITE: "this token may not write",
    Role.ADMIN: "this token may not change the lake's tables, views, schemas, routines or users "
    "(an admin token, or a superuser, does)",
}
SIGN_IN: Final = "sign in with a token, or a user's name and password"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a request comes from.

    user       the name the audit keeps: a user's, or the role's for a token
    superuser  whether it manages users and reads the audit
    open       whether the node asks nobody to sign in
    owner      whether it is the program that started the node, which alone reads files of the machine
    """

    user: str
    role: Role
    superuser: bool = False
    open: bool = False
    owner: bool = False

    def may(self, role: Role) -> bool:
        """Whether this caller holds ``role``."""
        return self.role >= role

    def require(self, role: Role) -> None:
        """Returns when this caller holds ``role``.

        42501  it does not; the message is the specification's
        """
        if not self.may(role):
            raise InsufficientPrivilege(_REFUSALS[role])


OWNER: Final = Principal("owner", Role.ADMIN, superuser=True, owner=True)
ANYONE: Final = Principal("anyone", Role.ADMIN, superuser=True, open=True)


@dataclass(frozen=True, slots=True)
class Tokens:
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

    def sign_in(self, presented: str | None) -> Principal:
        """The caller that presents this token.

        28000  no token, or one that is none of the three
        """
        if not self.are_set:
            return ANYONE
        for role, token in ((Role.ADMIN, self.admin), (Role.WRITE, self.write), (Role.READ, self.read)):
            # Compared in constant time, so that a wrong token's answer tells nothing about the right one.
            if token and presented and hmac.compare_digest(token.encode(), presented.encode()):
                return Principal(role.label, role, superuser=role is Role.ADMIN)
        raise InvalidAuthorization(SIGN_IN)
