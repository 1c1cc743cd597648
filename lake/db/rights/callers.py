"""A caller as it is at this moment: rights that were changed, and users that were dropped, count from the next statement on.

A session keeps the Principal it was opened for; before each statement it asks here who that is by now. For tokens of the
node, and where no users exist, the answer is the Principal itself.
"""

from __future__ import annotations

from lake.db.rights.credentials import principal_of
from lake.db.rights.granted import Rights
from lake.errors import InvalidAuthorization
from lake.roles import Principal
from lake.storage.catalog.state import State


class Callers:
    """The users of a lake as callers; what they were granted is worked out once for each change of users."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Principal, Rights]] = {}

    def renewed(self, principal: Principal, state: State) -> tuple[Principal, Rights | None]:
        """The caller as it is in ``state``, and its rights; None where its role says everything.

        28000  the user was dropped
        """
        if not principal.id:
            return principal, None
        users = state.users
        kept = self._kept.get(principal.id)
        if kept is None or kept[1].users is not users:
            user = users.get(principal.user)
            if user is None or user.id != principal.id:
                self._kept.pop(principal.id, None)
                raise InvalidAuthorization(f'user "{principal.user}" does not exist any more')
            kept = self._kept[user.id] = principal_of(user, users), Rights.of(users, user, state.definitions)
        found, rights = kept
        return found, None if found.superuser else rights
