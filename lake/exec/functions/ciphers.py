"""AES as Spark has it: bytes encrypted and decrypted with a key of 16, 24 or 32 bytes.

GCM answers the initialisation vector (12 bytes), the text and its tag (16 bytes) one after the other, CBC the vector (16
bytes) and the text, ECB the text. Source: NIST SP 800-38A and 38D; RFC 5652, 6.3 (padding).
"""

from __future__ import annotations

import os
from typing import Final

import pyarrow as pa

from lake.errors import InvalidParameter
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import map_rows
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar

GROUP: Final = "bytes"
VECTOR_BYTES: Final = {"GCM": 12, "CBC": 16, "ECB": 0}
KEY_BYTES: Final = (16, 24, 32)
BLOCK_BITS: Final = 128


def _bytes_of(item: str | bytes) -> bytes:
    return item.encode() if isinstance(item, str) else item


def _checked(key: bytes, mode: str, padding: str) -> str:
    """The mode in capitals.

    22023  a key of another length, an unknown mode, or a padding that the mode has not
    """
    mode = mode.upper()
    if len(key) not in KEY_BYTES:
        raise InvalidParameter(f"an AES key has 16, 24 or 32 bytes, not {len(key)}")
    if mode not in VECTOR_BYTES:
        raise InvalidParameter(f'unknown AES mode "{mode}"', hint=f"known modes: {', '.join(VECTOR_BYTES)}")
    wanted = "NONE" if mode == "GCM" else "PKCS"
    if padding.upper() not in ("DEFAULT", wanted):
        raise InvalidParameter(f"AES in mode {mode} takes the padding {wanted}, not {padding}")
    return mode


def _encrypt(value: str | bytes, key: str | bytes, mode: str, padding: str, iv: str | bytes, aad: str | bytes) -> bytes:
    # Imported here: a process that never encrypts does not pay for it.
    from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    secret, given, plain = _bytes_of(key), _bytes_of(iv), _bytes_of(value)
    mode = _checked(secret, mode, padding)
    vector = given or os.urandom(VECTOR_BYTES[mode])
    if len(vector) != VECTOR_BYTES[mode]:
        raise InvalidParameter(f"AES in mode {mode} takes a vector of {VECTOR_BYTES[mode]} bytes, not {len(vector)}")
    if mode == "GCM":
        return vector + aead.AESGCM(secret).encrypt(vector, plain, _bytes_of(aad) or None)
    pad = PKCS7(BLOCK_BITS).padder()
    chosen = modes.CBC(vector) if mode == "CBC" else modes.ECB()
    cipher = Cipher(algorithms.AES(secret), chosen).encryptor()
    return vector + cipher.update(pad.update(plain) + pad.finalize()) + cipher.finalize()


def _decrypt(value: str | bytes, key: str | bytes, mode: str, padding: str, aad: str | bytes) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    secret, sealed = _bytes_of(key), _bytes_of(value)
    mode = _checked(secret, mode, padding)
    vector, text = sealed[: VECTOR_BYTES[mode]], sealed[VECTOR_BYTES[mode] :]
    try:
        if mode == "GCM":
            return aead.AESGCM(secret).decrypt(vector, text, _bytes_of(aad) or None)
        chosen = modes.CBC(vector) if mode == "CBC" else modes.ECB()
        cipher = Cipher(algorithms.AES(secret), chosen).decryptor()
        pad = PKCS7(BLOCK_BITS).unpadder()
        return pad.update(cipher.update(text) + cipher.finalize()) + pad.finalize()
    except (InvalidTag, ValueError):
        raise InvalidParameter("the value is not encrypted by this key and mode") from None


@scalar("aes_encrypt(value ANY, key ANY, mode VARCHAR DEFAULT 'GCM', padding VARCHAR DEFAULT 'DEFAULT', "
        "iv ANY DEFAULT '', aad ANY DEFAULT '') -> BYTEA", group=GROUP, origin="spark", volatility="volatile",
        takes_call=True)  # fmt: skip
@per_row
def aes_encrypt(*given: Value, call: CallInfo) -> pa.Array:
    """The value encrypted by AES. Goes row by row: each value is a message of its own for the cipher.

    >>> hex(aes_encrypt('Spark', '0000111122223333', 'ECB'))
    348FF37EBDE05B7880BA339068FBDA5E

    22023  a key, mode, padding or vector that AES does not take
    """
    return map_rows(_encrypt, pa.binary(), *(as_array(value, call.rows) for value in given))


@scalar("aes_decrypt(value ANY, key ANY, mode VARCHAR DEFAULT 'GCM', padding VARCHAR DEFAULT 'DEFAULT', "
        "aad ANY DEFAULT '') -> BYTEA", group=GROUP, origin="spark", takes_call=True)  # fmt: skip
@per_row
def aes_decrypt(*given: Value, call: CallInfo) -> pa.Array:
    """What aes_encrypt was given. Goes row by row: each value is a message of its own for the cipher.

    >>> CAST(aes_decrypt(aes_encrypt('Spark', '0000111122223333'), '0000111122223333') AS VARCHAR)
    Spark

    22023  a key, mode or padding that AES does not take, or a value that they did not encrypt
    """
    return map_rows(_decrypt, pa.binary(), *(as_array(value, call.rows) for value in given))


@scalar("try_aes_decrypt(value ANY, key ANY, mode VARCHAR DEFAULT 'GCM', padding VARCHAR DEFAULT 'DEFAULT', "
        "aad ANY DEFAULT '') -> BYTEA", group=GROUP, origin="spark", takes_call=True)  # fmt: skip
@per_row
def try_aes_decrypt(*given: Value, call: CallInfo) -> pa.Array:
    """What aes_encrypt was given, NULL where it cannot be told. Goes row by row: each value is a message of its own.

    >>> try_aes_decrypt('x', '0000111122223333') IS NULL
    true
    """

    def attempt(*row: str | bytes) -> bytes | None:
        try:
            return _decrypt(*row)  # type: ignore[arg-type]
        except InvalidParameter:
            return None

    return map_rows(attempt, pa.binary(), *(as_array(value, call.rows) for value in given))
