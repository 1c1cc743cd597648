"""Who a client is: nobody asks on an open node; else SCRAM-SHA-256, for users and for tokens of the node alike.

    client                                  server
                                            AuthenticationSASL           SCRAM-SHA-256
    n,,n=,r=<nonce>                         AuthenticationSASLContinue   r=<nonce><more>,s=<salt>,i=4096
    c=biws,r=<nonce><more>,p=<proof>        AuthenticationSASLFinal      v=<signature>

The password of a user is its password or one of its tokens; that of ``admin`` and ``writer`` is the node's token of that
role, that of any other name the token that reads. A name that nobody has gets as far as any other.

Source: RFC 5802, RFC 7677; PostgreSQL documentation, 55.3 (SASL Authentication). Spec: HTTP, Authentication; Doors,
Postgres door.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import struct
from dataclasses import dataclass
from typing import Any, Final

from lake.db.rights.credentials import NOTHING, Candidate
from lake.doors.postgres.messages import Reader, encode
from lake.doors.postgres.wire import Wire
from lake.errors import InvalidPassword, ProtocolViolation
from lake.net.node import Node
from lake.roles import Principal
from lake.scram import ITERATIONS

SASL, CONTINUE, FINAL = 10, 11, 12  # codes of the authentication message
MECHANISM: Final = "SCRAM-SHA-256"
NONCE_BYTES: Final = 18


async def sign_in(wire: Wire, node: Node, user: str) -> Principal:
    """The caller behind a connection.

    28P01  a wrong password, or a user that nobody is      08P01  messages that are no SCRAM
    """
    if node.callers.is_open:
        return await node.sign_in(NOTHING)
    wire.send(encode("Authentication", SASL, f"{MECHANISM}\0\0".encode()))
    first = _first(await wire.message())
    start = ServerFirst(first.nonce + base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode(), node.callers.salt_of(user))
    wire.send(encode("Authentication", CONTINUE, start.text.encode()))
    final = _final(await wire.message(), first, start)
    message = f"{first.bare},{start.text},{final.without_proof}".encode()
    candidates = await node.call(lambda: node.callers.candidates(user))
    found = _accepted(candidates, message, final.proof)
    if found is None:
        raise InvalidPassword(f'password authentication failed for user "{user}"')
    signature = base64.b64encode(found.keys.sign(message)).decode()
    wire.send(encode("Authentication", FINAL, f"v={signature}".encode()))
    return found.principal


def _accepted(candidates: list[Candidate], message: bytes, proof: bytes) -> Candidate | None:
    found = None
    for candidate in candidates:
        if candidate.keys.accepts(message, proof):
            found = candidate
    return found


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """The client's first message: what stands before its body, the body, and the nonce in it."""

    header: str
    bare: str
    nonce: str


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """The server's first message."""

    nonce: str
    salt: bytes

    @property
    def text(self) -> str:
        """As it is sent."""
        return f"r={self.nonce},s={base64.b64encode(self.salt).decode()},i={ITERATIONS}"


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """The client's last message: what is signed of it, and the proof."""

    without_proof: str
    proof: bytes


def _first(message: tuple[str, dict[str, Any]]) -> ClientFirst:
    """The body of SASLInitialResponse.

    08P01  another mechanism, or a form that none has
    """
    name, fields = message
    if name != "Password":
        raise ProtocolViolation("expected SASL response")
    reader = Reader(fields["body"])
    try:
        mechanism = reader.text()
        body = (reader.value() or b"").decode()
    except (IndexError, ValueError, struct.error):
        raise ProtocolViolation("malformed SASL message") from None
    if mechanism != MECHANISM:
        raise ProtocolViolation(f"the client chose {mechanism[:40]!r}, which was not offered")
    flag, _, rest = body.partition(",")
    authzid, _, bare = rest.partition(",")
    attributes = _attributes(bare)
    if flag not in ("n", "y") or authzid or "r" not in attributes or not attributes["r"]:
        raise ProtocolViolation("malformed SCRAM message")
    return ClientFirst(f"{flag},{authzid},", bare, attributes["r"])


def _final(message: tuple[str, dict[str, Any]], first: ClientFirst, start: ServerFirst) -> ClientFinal:
    """The body of SASLResponse.

    08P01  a form that none has, another nonce or another header than before
    """
    name, fields = message
    if name != "Password":
        raise ProtocolViolation("expected SASL response")
    try:
        text = fields["body"].decode()
        without_proof, _, proof = text.rpartition(",p=")
        given = base64.b64decode(proof, validate=True)
        header = base64.b64decode(_attributes(without_proof).get("c", ""), validate=True).decode()
    except (ValueError, binascii.Error):
        raise ProtocolViolation("malformed SCRAM message") from None
    if header != first.header or _attributes(without_proof).get("r") != start.nonce:
        raise ProtocolViolation("SCRAM messages do not belong together")
    return ClientFinal(without_proof, given)


def _attributes(text: str) -> dict[str, str]:
    """``n=ann,r=abc`` by letter."""
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}
