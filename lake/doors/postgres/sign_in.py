"""Who a client is: nobody asks on an open node; else a token is the password of the users admin, writer and reader.

Spec: HTTP, Roles and tokens; Doors, Postgres door.
"""

from __future__ import annotations

from typing import Final

from lake.errors import InvalidAuthorization, InvalidPassword
from lake.net.node import Node
from lake.roles import Principal, Role

USERS: Final = {"admin": Role.ADMIN, "writer": Role.WRITE, "reader": Role.READ}


def sign_in(node: Node, user: str, password: str) -> Principal:
    """The caller whose token is given as the password of ``user``.

    28P01  a user that is none of the three, or a token that is not that user's
    """
    try:
        principal = node.sign_in(password)
    except InvalidAuthorization:
        raise _refused(user) from None
    if principal.role is not USERS.get(user):
        raise _refused(user)
    return principal


def _refused(user: str) -> InvalidPassword:
    hint = None if user in USERS else f"the users are {', '.join(USERS)}; the password is that role's token"
    return InvalidPassword(f'password authentication failed for user "{user}"', hint=hint)
