"""Tokens of users and of logins: how they look, how they are known again.

    lake_7Jf0..     a token made by CREATE TOKEN; the lake keeps its SHA-256 and a SCRAM verifier
    lakes_eyJ1..    a login: who and until when, signed with a key that the lake keeps, so that every node can check it

A login is signed over what the user's password is kept as, so it ends with that password, and with the user.
Spec: HTTP, Users, roles, grants; Endpoints, POST /login.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Final

import orjson

from lake.storage.catalog.access import User

TOKEN: Final = "lake_"
SESSION: Final = "lakes_"
KEY_BYTES: Final = 32


def new_token() -> str:
    """A token nobody can guess."""
    return TOKEN + secrets.token_urlsafe(KEY_BYTES)


def new_signing_key() -> str:
    """A key for sessions, in hex."""
    return secrets.token_hex(KEY_BYTES)


def hash_of(token: str) -> str:
    """What the lake keeps of a token: it has chance enough that a plain hash will do."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def make_session(user: User, until_ms: int, signing_key: str) -> str:
    """A login of ``user`` that ends at ``until_ms``."""
    claim = orjson.dumps([user.name, user.id, until_ms])
    return f"{SESSION}{_text(claim)}.{_text(_signature(claim, user, signing_key))}"


def claim_of(token: str) -> tuple[str, int, int] | None:
    """Name, id and end that a session claims, not checked; None of what is no session."""
    body, _, _ = token.removeprefix(SESSION).partition(".")
    if not token.startswith(SESSION):
        return None
    try:
        name, id, until_ms = orjson.loads(_bytes(body))
    except (ValueError, TypeError, binascii.Error):
        return None
    if isinstance(name, str) and isinstance(id, int) and isinstance(until_ms, int):
        return name, id, until_ms
    return None


def is_signed(token: str, user: User, signing_key: str) -> bool:
    """Whether a session is one that this lake gave to ``user``, whose password is still the same."""
    body, _, signature = token.removeprefix(SESSION).partition(".")
    try:
        return bool(signing_key) and hmac.compare_digest(
            _bytes(signature), _signature(_bytes(body), user, signing_key)
        )
    except (ValueError, binascii.Error):
        return False


def _signature(claim: bytes, user: User, signing_key: str) -> bytes:
    return hmac.digest(bytes.fromhex(signing_key), claim + b"\0" + user.stored_key.encode(), "sha256")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
