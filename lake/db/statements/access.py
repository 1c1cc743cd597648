"""Users, roles, grants and tokens. Spec: SQL, Users, roles, grants, tokens; HTTP, Users, roles, grants."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from typing import Final

import msgspec

from lake import scram
from lake.db.result import Result
from lake.db.rights.sessions import hash_of, new_signing_key, new_token
from lake.db.session import Run
from lake.db.statements import statement
from lake.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameter,
    UndefinedObject,
)
from lake.roles import ROLE_NAMES, Role
from lake.sql import ast
from lake.sql.literals import parse_interval
from lake.storage.catalog.access import PUBLIC_ROLE, Token, User, Users
from lake.storage.catalog.changes import Change, DropUser, PutSigningKey, PutUser
from lake.storage.catalog.state import State
from lake.types import TEXT, TIMESTAMPTZ

PASSWORD_CHARS_MIN: Final = 8
NAME_CHARS_MAX: Final = 128
USERS_MAX: Final = 10_000
TOKENS_MAX: Final = 100  # of one user: each is tried when the user signs in by SCRAM
QUERIES_MAX: Final = 1_000_000
# Names that tokens of the node and an open node answer to, and the role of everyone.
TAKEN: Final = frozenset({*ROLE_NAMES, *(role.label for role in Role), "anyone", "owner", PUBLIC_ROLE})


@statement(ast.CreateUser, tag="CREATE ROLE", role=Role.ADMIN, audit="role")
def create_user(stmt: ast.CreateUser, run: Run) -> Result:
    """Makes a user, who signs in, or a role, which is a name for grants.

    42P07  the name is taken      22023  a name or password that is none
    """
    check_superuser(run)
    _check_name(stmt.name)
    if stmt.is_role and stmt.options != ast.UserOptions():
        raise FeatureNotSupported("a role signs in nowhere: it takes no password, limits or SUPERUSER")
    salt = scram.new_salt()
    made = _changed(User(stmt.name, secrets.randbits(53), stmt.is_role, salt=scram.encode(salt)), stmt.options)

    def make(state: State) -> list[Change]:
        if stmt.name in state.users:
            if stmt.if_not_exists:
                return []
            raise DuplicateObject(f'role "{stmt.name}" already exists')
        if len(state.users) >= USERS_MAX:
            raise InvalidParameter(f"a lake has at most {USERS_MAX} users and roles")
        key: list[Change] = [] if state.signing_key else [PutSigningKey(new_signing_key())]
        return [*key, PutUser(made)]

    word = "role" if stmt.is_role else "user"
    result = Result.done(f"CREATE {word.upper()}", {word: stmt.name})
    if not run.database.define(make):
        result.notices = (f'{word} "{stmt.name}" already exists, skipping',)
    return result


@statement(ast.AlterUser, tag="ALTER ROLE", role=Role.ADMIN, audit="role")
def alter_user(stmt: ast.AlterUser, run: Run) -> Result:
    """Changes a user's password, limits, or whether it is a superuser; at once, for what it does already too.

    42704  no such user
    """
    check_superuser(run)

    def change(user: User) -> User:
        if user.is_role:
            raise FeatureNotSupported(f'"{user.name}" is a role, which has no password, limits or SUPERUSER')
        return _changed(user, stmt.options)

    run.database.define(lambda state: [PutUser(change(_user(state.users, stmt.name)))])
    return Result.done("ALTER ROLE" if stmt.is_role else "ALTER USER", {"user": stmt.name, "altered": True})


@statement(ast.DropUser, tag="DROP ROLE", role=Role.ADMIN, audit="role")
def drop_user(stmt: ast.DropUser, run: Run) -> Result:
    """Drops users or roles with their grants and tokens: effective at once.

    42704  no such user, without IF EXISTS
    """
    check_superuser(run)
    notices: list[str] = []
    word = "role" if stmt.is_role else "user"

    def make(state: State) -> list[Change]:
        notices.clear()
        changes: list[Change] = []
        for name in dict.fromkeys(stmt.names):
            found = state.users.get(name)
            if found is not None and found.is_role == stmt.is_role and name != PUBLIC_ROLE:
                changes.append(DropUser(name))
            elif stmt.if_exists:
                notices.append(f'{word} "{name}" does not exist, skipping')
            else:
                raise UndefinedObject(f'{word} "{name}" does not exist')
        return changes

    run.database.define(make)
    result = Result.done(f"DROP {word.upper()}", {"dropped": list(stmt.names)})
    result.notices = tuple(notices)
    return result


@statement(ast.GrantRoles, tag="GRANT ROLE", role=Role.ADMIN, audit="role")
def grant_roles(stmt: ast.GrantRoles, run: Run) -> Result:
    """Gives users the grants of roles, or takes them away again.

    42704  no such role or user      22023  a role that would be its own
    """
    check_superuser(run)

    def make(state: State) -> list[Change]:
        for name in stmt.roles:
            if not _user(state.users, name).is_role:
                raise UndefinedObject(f'role "{name}" does not exist')
        users = state.users
        changes: list[Change] = []
        for name in dict.fromkeys(stmt.users):
            user = _user(users, name)
            if stmt.revokes:
                roles = tuple(role for role in user.roles if role not in stmt.roles)
            else:
                roles = tuple(dict.fromkeys((*user.roles, *stmt.roles)))
            made = msgspec.structs.replace(user, roles=roles)
            users = users.set(name, made)
            changes.append(PutUser(made))
        _check_no_circle(users, stmt.users)
        return changes

    run.database.define(make)
    word = "REVOKE" if stmt.revokes else "GRANT"
    return Result.done(f"{word} ROLE", {word.lower(): list(stmt.roles)})


@statement(ast.CreateToken, tag="CREATE TOKEN", role=Role.ADMIN, audit="role")
def create_token(stmt: ast.CreateToken, run: Run) -> Result:
    """Makes a token of a user; the answer is the one place where it is shown.

    42704  no such user      42P07  the user has a token of that name
    """
    check_superuser(run)
    _check_name(stmt.name)
    now = run.settings.now
    expires = None if stmt.expires_in is None else now + _milliseconds(stmt.expires_in, "EXPIRES IN") * 1_000
    token = new_token()

    def make(state: State) -> list[Change]:
        user = _user(state.users, stmt.user)
        if user.is_role:
            raise UndefinedObject(f'user "{stmt.user}" does not exist')
        if any(known.name == stmt.name for known in user.tokens):
            raise DuplicateObject(f'token "{stmt.name}" for user "{stmt.user}" already exists')
        if len(user.tokens) >= TOKENS_MAX:
            raise InvalidParameter(f"a user has at most {TOKENS_MAX} tokens")
        keys = scram.derive(token, base64.b64decode(user.salt))
        kept = Token(stmt.name, hash_of(token), scram.encode(keys.stored), scram.encode(keys.server), now, expires)
        return [PutUser(msgspec.structs.replace(user, tokens=(*user.tokens, kept)))]

    run.database.define(make)
    columns = [("token", TEXT), ("name", TEXT), ("user", TEXT), ("expires", TIMESTAMPTZ)]
    return Result.table("CREATE TOKEN", columns, [(token, stmt.name, stmt.user, expires)])


@statement(ast.DropToken, tag="DROP TOKEN", role=Role.ADMIN, audit="role")
def drop_token(stmt: ast.DropToken, run: Run) -> Result:
    """Ends a token: effective at once.

    42704  no such user or token
    """
    check_superuser(run)
    notices: list[str] = []

    def make(state: State) -> list[Change]:
        notices.clear()
        user = _user(state.users, stmt.user)
        kept = tuple(token for token in user.tokens if token.name != stmt.name)
        if kept != user.tokens:
            return [PutUser(msgspec.structs.replace(user, tokens=kept))]
        missing = f'token "{stmt.name}" for user "{stmt.user}" does not exist'
        if not stmt.if_exists:
            raise UndefinedObject(missing)
        notices.append(f"{missing}, skipping")
        return []

    run.database.define(make)
    result = Result.done("DROP TOKEN", {"dropped": stmt.name, "user": stmt.user})
    result.notices = tuple(notices)
    return result


def check_superuser(run: Run) -> None:
    """Returns where the caller manages users: a superuser, the admin token, whoever started the node."""
    if not run.session.caller()[0].superuser:
        raise InsufficientPrivilege("only a superuser manages users, roles, grants and tokens")


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= NAME_CHARS_MAX or any(ord(char) < 32 for char in name):
        raise InvalidParameter(f"a name has 1 to {NAME_CHARS_MAX} characters")
    if name in TAKEN or name.startswith("pg_"):
        raise InvalidParameter(f'"{name}" is a name that the node keeps for itself')


def _user(users: Users, name: str) -> User:
    found = users.get(name)
    if found is None:
        raise UndefinedObject(f'user or role "{name}" does not exist')
    return found


def _check_no_circle(users: Users, names: Sequence[str]) -> None:
    for name in names:
        seen, waiting = set[str](), list(users[name].roles)
        while waiting:
            role = waiting.pop()
            if role == name:
                raise InvalidParameter(f'role "{name}" would be a role of itself')
            if role not in seen:
                seen.add(role)
                waiting += users[role].roles if role in users else ()


def _changed(user: User, options: ast.UserOptions) -> User:
    """The user as the options say.

    22023  a password of fewer than 8 characters, or a limit that is none
    """
    made = user
    if options.password is not None:
        if len(options.password) < PASSWORD_CHARS_MIN:
            raise InvalidParameter(f"a password has at least {PASSWORD_CHARS_MIN} characters")
        keys = scram.derive(options.password, base64.b64decode(user.salt))
        made = msgspec.structs.replace(
            made, stored_key=scram.encode(keys.stored), server_key=scram.encode(keys.server)
        )
    if options.superuser is not None:
        made = msgspec.structs.replace(made, superuser=options.superuser)
    if options.max_queries is not None:
        if options.max_queries > QUERIES_MAX:
            raise InvalidParameter(f"MAX_QUERIES is at most {QUERIES_MAX}; 0 is no limit")
        made = msgspec.structs.replace(made, max_queries=options.max_queries)
    if options.statement_timeout is not None:
        limit = _milliseconds(options.statement_timeout, "STATEMENT_TIMEOUT")
        made = msgspec.structs.replace(made, timeout_ms=limit)
    return made


def _milliseconds(text: str | int, what: str) -> int:
    """A length of time; a bare number is milliseconds, as Postgres takes it."""
    if isinstance(text, int) or text.strip().isdigit():
        return int(text)
    months, days, nanoseconds = parse_interval(text)
    total = months * 30 * 86_400_000 + days * 86_400_000 + nanoseconds // 1_000_000
    if total <= 0:
        raise InvalidParameter(f"{what} is a time such as '5 seconds' or '90 days', not {text!r}")
    return int(total)
