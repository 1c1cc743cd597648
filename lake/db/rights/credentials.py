"""Who presents what: a token, a password, a session; answered by a Principal or refused.

    nothing set, nobody can sign in      everyone may do everything
    a token of the node                  its role
    a user's token, session, password    the user

One SignIn belongs to a node. Wrong tokens and passwords take as long as right ones, names that nobody has as long as
others. Spec: HTTP, Authentication.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from lake import scram
from lake.clock import Clock
from lake.config import Config
from lake.db.rights.granted import Rights
from lake.db.rights.sessions import claim_of, hash_of, is_signed, make_session
from lake.errors import InvalidAuthorization, InvalidPassword
from lake.roles import ANYONE, OWNER, ROLE_NAMES, SIGN_IN, Principal, Role, Tokens
from lake.storage.catalog.access import Token, User, Users
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.state import State
from lake.storage.lake import Lake

KNOWN_MAX: Final = 1_024  # name and password pairs that were right lately
NO_USERS: Final[Users] = PersistentMap()


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a caller presents.

    token     of a Bearer header
    user      with ``password``: of a Basic header, or of a protocol that asks for both
    owner_key what whoever started the node has
    """

    token: str | None = field(default=None, repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    owner_key: str | None = field(default=None, repr=False)


NOTHING: Final = Credentials()


class Candidate(Struct, frozen=True):
    """A verifier that a client may know the secret of, and who it is then."""

    keys: scram.Keys
    principal: Principal


class SignIn:
    """The callers of one node."""

    def __init__(self, lake: Lake, config: Config, clock: Clock) -> None:
        self._lake = lake
        self._config = config
        self._clock = clock
        self.tokens = Tokens.of(config)
        self._users: Users = NO_USERS
        self._by_hash: dict[str, tuple[User, Token]] = {}
        self._principals: dict[str, Principal] = {}
        self._sign_in_users = False
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, None] = OrderedDict()

    # --- the usual way -----------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the node asks nobody: it has no tokens, and no user could sign in."""
        if self.tokens.are_set:
            return False
        self._learn()
        return not self._sign_in_users

    def needs_work(self, given: Credentials) -> bool:
        """Whether ``principal`` would take milliseconds: a password is to be checked that was not right lately."""
        if given.user is None or given.password is None or self.is_open or given.owner_key is not None:
            return False
        return self._remembered(given.user, given.password) is None

    def principal(self, given: Credentials) -> Principal:
        """The caller that presents these credentials.

        28000  nothing, or what is wrong; the message is the same for every reason
        """
        owner_key = self._config.owner_key
        if given.owner_key is not None and owner_key and _same(given.owner_key, owner_key):
            return OWNER
        if self.is_open:
            return ANYONE
        found = None
        if given.token is not None:
            found = self._of_token(given.token)
        elif given.user is not None and given.password is not None:
            found = self._of_password(given.user, given.password)
        if found is None:
            raise InvalidAuthorization(SIGN_IN)
        return found

    def login(self, name: str, password: str) -> tuple[str, int]:
        """A session token of a user, and when it ends in milliseconds.

        28P01  no such user, or a wrong password
        """
        self._learn()
        found = self._of_password(name, password)
        user = self._users.get(name)
        if found is None or user is None or not found.id:
            raise InvalidPassword(f'password authentication failed for user "{name}"')
        until_ms = self._clock.now() // 1_000 + int(self._config.session_hours * 3_600_000)
        return make_session(user, until_ms, self._state.signing_key), until_ms

    # --- SCRAM -------------------------------------------------------------------------------------------------------

    def salt_of(self, name: str) -> bytes:
        """The salt for a name; one that nobody has gets one all the same."""
        self._learn()
        user = self._users.get(name)
        if user is not None and user.salt:
            return base64.b64decode(user.salt)
        return scram.salt_of_nobody(name, self._key)

    def candidates(self, name: str) -> list[Candidate]:
        """The verifiers under which ``name`` may sign in, all with the salt of ``salt_of``; may take milliseconds.

        A name that no user has is a token's: ``admin``, ``writer``, or any other for the token that reads.
        """
        self._learn()
        user = self._users.get(name)
        if user is not None:
            return [Candidate(keys, self._principals[name]) for keys in self._keys_of(user)]
        role = ROLE_NAMES.get(name, Role.READ)
        token = self.tokens.of_role(role)
        if token is None:
            return []
        return [Candidate(scram.derive_kept(token, self.salt_of(name)), Tokens.principal(role))]

    # --- how ---------------------------------------------------------------------------------------------------------

    @property
    def _state(self) -> State:
        return self._lake.state

    def _learn(self) -> None:
        """Looks at the users again where they are others than before."""
        users = self._state.users
        if users is self._users:
            return
        self._by_hash = {token.hash: (user, token) for user in users.values() for token in user.tokens}
        self._sign_in_users = any(can_sign_in(user) for user in users.values())
        self._principals = {name: principal_of(user, users) for name, user in users.items() if can_sign_in(user)}
        self._users = users

    def _of_token(self, token: str) -> Principal | None:
        role = self.tokens.role_of(token)
        if role is not None:
            return Tokens.principal(role)
        self._learn()
        known = self._by_hash.get(hash_of(token))
        if known is not None:
            user, kept = known
            return self._principals[user.name] if self._holds(kept) else None
        claim = claim_of(token)
        if claim is None:
            return None
        name, id, until_ms = claim
        found = self._users.get(name)
        if found is None or found.id != id or until_ms * 1_000 < self._clock.now():
            return None
        return self._principals.get(name) if is_signed(token, found, self._state.signing_key) else None

    def _of_password(self, name: str, password: str) -> Principal | None:
        """A user by its password or one of its tokens; any other name by a token of the node."""
        found = self._remembered(name, password)
        if found is not None:
            return found
        keys = scram.derive(password, self.salt_of(name))
        for candidate in self.candidates(name):
            if candidate.keys.is_same(keys):
                user = self._users.get(name)
                if user is not None:
                    self._remember(user, password)
                return candidate.principal
        return None

    def _remembered(self, name: str, password: str) -> Principal | None:
        """Who it is without deriving a key: a token of the node, or a pair that was right lately and is still kept so."""
        self._learn()
        user = self._users.get(name)
        if user is None:
            role = self.tokens.role_of(password)
            return Tokens.principal(role) if role is not None else None
        return self._principals.get(name) if self._mark(user, password) in self._right else None

    def _remember(self, user: User, password: str) -> None:
        self._right[self._mark(user, password)] = None
        while len(self._right) > KNOWN_MAX:
            self._right.popitem(last=False)

    def _mark(self, user: User, password: str) -> bytes:
        """Stands for a user, the verifiers it has at this moment and a password; tells nothing of it."""
        kept = [user.name, str(user.id), user.stored_key]
        kept += [token.hash for token in user.tokens if self._holds(token)]
        return hmac.digest(self._key, "\0".join([*kept, password]).encode("utf-8", "surrogatepass"), "sha256")

    def _keys_of(self, user: User) -> list[scram.Keys]:
        made = [scram.Keys.decode(user.stored_key, user.server_key)] if user.stored_key else []
        held = (token for token in user.tokens if self._holds(token))
        return made + [scram.Keys.decode(token.stored_key, token.server_key) for token in held]

    def _holds(self, token: Token) -> bool:
        return token.expires is None or token.expires > self._clock.now()


def can_sign_in(user: User) -> bool:
    """Whether a user has a password or a token."""
    return not user.is_role and bool(user.stored_key or user.tokens)


def principal_of(user: User, users: Users) -> Principal:
    """A user as a caller: a superuser may do what an admin may; any other writes where it was granted to."""
    if user.superuser:
        return Principal(user.name, Role.ADMIN, superuser=True, id=user.id)
    role = Role.WRITE if Rights.of(users, user).writes else Role.READ
    return Principal(user.name, role, id=user.id)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())
