"""Bytes cut into messages: the first packet has no tag, every later message has one.

    frames = Frames()
    frames.feed(received)
    while (found := frames.next()) is not None: ...

No I/O: whoever owns the socket feeds it. Lengths are checked before a byte is kept for them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from lake.doors.postgres.messages import FRONT, decode
from lake.errors import ProtocolViolation

PROTOCOL: Final = 3
SSL_REQUEST: Final = 80_877_103
GSSENC_REQUEST: Final = 80_877_104
CANCEL_REQUEST: Final = 80_877_102
STARTUP_BYTES_MAX: Final = 10_000  # as Postgres
MESSAGE_BYTES_MAX: Final = 256 << 20  # a statement or a row of COPY; Postgres takes 1 GB
SMALL_BYTES_MAX: Final = 30_000  # of messages that need no room: Postgres's PQ_SMALL_MESSAGE_LIMIT
_HEAD: Final = struct.Struct("!Bi")
REPEATED_TAGS: Final = frozenset("DESH")  # of messages that a driver sends alike around each statement
LARGE_TAGS: Final = frozenset("QPBdFp")


@dataclass(frozen=True, slots=True)
class Startup:
    """The first packet: ``code`` is the protocol's version, or one of the requests above."""

    code: int
    parameters: dict[str, str]
    pid: int = 0
    secret: int = 0

    @property
    def major(self) -> int:
        """The protocol's major version."""
        return self.code >> 16

    @property
    def minor(self) -> int:
        """The protocol's minor version."""
        return self.code & 0xFFFF


class Frames:
    """What a client has sent and nobody has taken yet."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0
        self.lost = False  # where the next message begins is not known: the connection ends

    def feed(self, received: bytes) -> None:
        """Adds what came."""
        if self._start > 1 << 16:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += received

    @property
    def waiting(self) -> int:
        """Bytes that wait."""
        return len(self._buffer) - self._start

    @property
    def is_whole(self) -> bool:
        """Whether the first message that waits has come whole, so that taking it makes room."""
        if self.waiting < 5:
            return False
        (size,) = struct.unpack_from("!i", self._buffer, self._start + 1)
        return bool(size < 4 or self.waiting >= size + 1)

    def next_startup(self) -> Startup | None:
        """The first packet once it is whole.

        08P01  a length or a form that no first packet has
        """
        if self.waiting < 8:
            return None
        size, code = struct.unpack_from("!ii", self._buffer, self._start)
        if not 8 <= size <= STARTUP_BYTES_MAX:
            raise ProtocolViolation("invalid length of startup packet")
        if self.waiting < size:
            return None
        body = bytes(self._buffer[self._start + 8 : self._start + size])
        self._start += size
        if code == CANCEL_REQUEST:
            if len(body) != 8:
                raise ProtocolViolation("invalid length of cancel request")
            pid, secret = struct.unpack("!ii", body)
            return Startup(code, {}, pid, secret)
        return Startup(code, {} if code in (SSL_REQUEST, GSSENC_REQUEST) else _parameters(body))

    def next(self) -> tuple[str, dict[str, Any]] | None:
        """The next message once it is whole: its name and fields.

        08P01  what is no message; nothing after it can be understood where its length is wrong
        """
        buffer, start = self._buffer, self._start
        waiting = len(buffer) - start
        if waiting < 5:
            return None
        code, size = _HEAD.unpack_from(buffer, start)
        tag = chr(code)
        if not 4 <= size <= (MESSAGE_BYTES_MAX if tag in LARGE_TAGS else SMALL_BYTES_MAX):
            self.lost = True
            raise ProtocolViolation(f"invalid message length {size} of message type {ord(tag)}")
        if waiting < size + 1:
            return None
        body = bytes(buffer[start + 5 : start + 1 + size])
        if waiting == size + 1:
            buffer.clear()
            self._start = 0
        else:
            self._start = start + size + 1
        return decode(FRONT, tag, body) if tag not in REPEATED_TAGS else _decode_kept(FRONT, tag, body)


_decode_kept: Final = lru_cache(256)(decode)


def _parameters(body: bytes) -> dict[str, str]:
    parts = body.split(b"\x00")
    if len(parts) < 2 or parts[-1] or parts[-2]:
        raise ProtocolViolation("invalid startup packet layout: expected terminator as last byte")
    words = [part.decode("utf-8", "replace") for part in parts[:-2]]
    if len(words) % 2:
        raise ProtocolViolation("invalid startup packet layout: a name without a value")
    return dict(zip(words[::2], words[1::2], strict=True))
