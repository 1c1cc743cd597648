"""SCRAM-SHA-256: verifiers of passwords, and the proofs that client and server give each other.

    keys = derive("secret", salt)            what is kept: StoredKey and ServerKey; the password follows from neither
    keys.accepts(message, proof)             whether a client that gave ``proof`` for ``message`` knows the password

Source: RFC 5802 and RFC 7677; RFC 4013 (SASLprep).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import stringprep
import unicodedata
from functools import lru_cache
from typing import Final

from msgspec import Struct

ITERATIONS: Final = 4_096  # as Postgres and RFC 7677
SALT_BYTES: Final = 16


class Keys(Struct, frozen=True):
    """A verifier: what a server keeps of a password."""

    stored: bytes
    server: bytes

    def accepts(self, message: bytes, proof: bytes) -> bool:
        """Whether ``proof`` is one that only who knows the password can give for ``message``."""
        if len(proof) != len(self.stored):
            return False
        signature = _hmac(self.stored, message)
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        return hmac.compare_digest(hashlib.sha256(client_key).digest(), self.stored)

    def sign(self, message: bytes) -> bytes:
        """The proof of the server that it knows the verifier."""
        return _hmac(self.server, message)

    def is_same(self, other: Keys) -> bool:
        """Whether both are of one password; takes as long either way."""
        return hmac.compare_digest(self.stored, other.stored)

    @classmethod
    def decode(cls, stored: str, server: str) -> Keys:
        """Keys of their base64 forms."""
        return cls(base64.b64decode(stored), base64.b64decode(server))


def derive(password: str, salt: bytes) -> Keys:
    """The verifier of a password."""
    salted = hashlib.pbkdf2_hmac("sha256", prepare(password), salt, ITERATIONS)
    client_key = _hmac(salted, b"Client Key")
    return Keys(hashlib.sha256(client_key).digest(), _hmac(salted, b"Server Key"))


@lru_cache(256)
def derive_kept(password: str, salt: bytes) -> Keys:
    """As ``derive``, remembered: for the few secrets that a node is started with."""
    return derive(password, salt)


def client_proof(password: str, salt: bytes, message: bytes) -> bytes:
    """What a client answers."""
    salted = hashlib.pbkdf2_hmac("sha256", prepare(password), salt, ITERATIONS)
    client_key = _hmac(salted, b"Client Key")
    signature = _hmac(hashlib.sha256(client_key).digest(), message)
    return bytes(one ^ other for one, other in zip(client_key, signature, strict=True))


def new_salt() -> bytes:
    """A salt of chance."""
    return secrets.token_bytes(SALT_BYTES)


def salt_of_nobody(name: str, key: bytes) -> bytes:
    """A salt for a name that nobody has, the same each time, so that asking does not tell who exists."""
    return _hmac(key, name.encode("utf-8", "surrogatepass"))[:SALT_BYTES]


def encode(data: bytes) -> str:
    """Base64 as text."""
    return base64.b64encode(data).decode("ascii")


def prepare(password: str) -> bytes:
    """A password by SASLprep; one that it refuses goes as it is, as libpq does it."""
    if password.isascii():
        return password.encode()
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char for char in password if not stringprep.in_table_b1(char)
    )
    normal = unicodedata.normalize("NFKC", mapped)
    forbidden = (
        stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4,
        stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8,
        stringprep.in_table_c9, stringprep.in_table_a1,
    )  # fmt: skip
    if not normal or any(test(char) for char in normal for test in forbidden):
        return password.encode("utf-8", "surrogatepass")
    from_right = [stringprep.in_table_d1(char) for char in normal]
    if any(from_right) and (
        any(map(stringprep.in_table_d2, normal)) or not (from_right[0] and from_right[-1])
    ):
        return password.encode("utf-8", "surrogatepass")
    return normal.encode()


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")
