"""ObjectStore: bytes by name, the only way storage reaches a disk or a bucket.

Names are relative, with ``/`` between their parts: ``catalog/commit/00000000000000000001``. An object appears whole or
not at all; a reader never sees half of one. Every write is durable when the call returns.

    put_if_absent   the fence of the commit log: of many writers of one name exactly one gets True
    put_if_match    compare-and-swap by etag
    put_once        put_if_absent for bytes that carry their writer's nonce: a lost reply is not a lost write
"""

from __future__ import annotations

from typing import Final, Protocol

import pyarrow as pa
from msgspec import Struct

from lake.errors import DataCorrupted, InvalidParameter
from lake.late import late_pattern

NAME_BYTES_MAX: Final = 1_024  # what S3, GCS and Azure all take
_PART: Final = late_pattern(r"[^\x00-\x1f\x7f/\\]+")


class ObjectMissing(Exception):
    """No object of that name. Callers know whether that is an answer or a loss, so it is not a LakeError."""


class ObjectInfo(Struct, frozen=True):
    """What a listing tells of an object; ``modified`` is microseconds since the epoch."""

    name: str
    size: int
    modified: int
    etag: str


class ObjectWriter(Protocol):
    """An object being written piece by piece: visible when ``close`` returns, never if ``abort`` is called."""

    @property
    def sink(self) -> pa.NativeFile:
        """Where the bytes go."""
        ...

    def close(self) -> int:
        """Makes the object durable and visible; answers its size."""
        ...

    def abort(self) -> None:
        """Throws the bytes away."""
        ...


class ObjectStore(Protocol):
    """Objects of one lake. Every method may be called from any thread.

    58030  the store failed; of a write, whether it happened is not known
    53100  the store is full; nothing was written
    """

    @property
    def address(self) -> str:
        """Where the objects are, for messages."""
        ...

    def get(self, name: str) -> bytes:
        """All bytes; ObjectMissing if there is none."""
        ...

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``, fewer at the end; ObjectMissing if there is none."""
        ...

    def head(self, name: str) -> ObjectInfo | None:
        """Size, time and etag, or None."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Writes or replaces."""
        ...

    def put_if_absent(self, name: str, data: bytes) -> bool:
        """Writes unless the name is taken; False says that it is."""
        ...

    def put_if_match(self, name: str, data: bytes, etag: str) -> bool:
        """Replaces if the object still has ``etag``; False says that it has another, or is gone."""
        ...

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        """Objects whose names start with ``prefix`` and sort behind ``after``, by name."""
        ...

    def delete(self, name: str) -> None:
        """Removes; no object of that name is no error."""
        ...

    def open_reader(self, name: str) -> pa.NativeFile:
        """A seekable stream for one thread; ObjectMissing if there is none."""
        ...

    def open_writer(self, name: str) -> ObjectWriter:
        """A stream that becomes the object when closed."""
        ...


def put_once(store: ObjectStore, name: str, data: bytes) -> bool:
    """put_if_absent that knows its own object: True if ``data`` is what the name holds.

    ``data`` must be unlike any other writer's, which a nonce inside it brings about.
    """
    if store.put_if_absent(name, data):
        return True
    try:
        return store.get(name) == data
    except ObjectMissing:
        return False


def get_named(store: ObjectStore, name: str) -> bytes:
    """The bytes of an object that the catalog says is there.

    XX001  it is not
    """
    try:
        return store.get(name)
    except ObjectMissing:
        raise DataCorrupted(f"object {name} is missing from {store.address}") from None


def check_name(name: str) -> str:
    """``name`` itself, if it is one that stays inside the lake.

    22023  empty, absolute, with ``.`` or ``..`` or empty parts, with control characters or backslashes, or too long
    """
    parts = name.split("/")
    if len(name.encode("utf-8", "replace")) > NAME_BYTES_MAX or any(
        part in ("", ".", "..") or not _PART.fullmatch(part) for part in parts
    ):
        raise InvalidParameter(f"not an object name: {name!r}")
    return name
