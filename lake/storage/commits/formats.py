"""Format numbers: what this release writes, what it opens, and the framing that commits and checkpoints share.

    8 bytes   magic            says what the object is
    u32       format           1; an older release refuses a newer one by name
    u32       flags            bit 0: everything between this head and the checksum is one zstd frame
    u64       header bytes
    u64       body bytes       both before compression
    header    JSON
    body      Arrow IPC streams, one after another
    u64       xxh3 of all bytes before it

Every bit of the object is under the checksum, so a torn or flipped one never passes for data. Integers are little-endian.
"""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa
import xxhash

from lake.errors import DataCorrupted, FeatureNotSupported

FORMAT: Final = 1  # the format this release writes, and the newest it opens
COMPRESSED: Final = 1
COMPRESS_HEADER_MIN: Final = 2_048  # bytes; a smaller header is left as readable JSON
HEADER_BYTES_MAX: Final = 1 << 32
_HEAD: Final = struct.Struct("<8sIIQQ")
_SUM: Final = struct.Struct("<Q")
_ZSTD: Final = pa.Codec("zstd", compression_level=1)


def frame(magic: bytes, header: bytes, body: list[bytes]) -> bytes:
    """The bytes of an object; rows in ``body`` are compressed already, so only a long header is worth zstd."""
    content = header + b"".join(body)
    body_bytes = len(content) - len(header)
    flags = 0
    if len(header) >= COMPRESS_HEADER_MIN:
        flags = COMPRESSED
        stored = bytes(_ZSTD.compress(content, asbytes=True))
    else:
        stored = content
    start = _HEAD.pack(magic, FORMAT, flags, len(header), body_bytes) + stored
    return start + _SUM.pack(xxhash.xxh3_64_intdigest(start))


def unframe(magic: bytes, data: bytes, name: str) -> tuple[memoryview, memoryview]:
    """Header and body of ``frame``.

    XX001  the bytes are cut, damaged, or another kind of object
    0A000  a newer release wrote them
    """
    if len(data) < _HEAD.size + _SUM.size:
        raise DataCorrupted(f"{name} is cut: it has {len(data)} bytes")
    found, format, flags, header_bytes, body_bytes = _HEAD.unpack_from(data)
    if found != magic:
        raise DataCorrupted(f"{name} is damaged or not what its name says: it starts with {found!r}")
    view = memoryview(data)
    (expected,) = _SUM.unpack_from(data, len(data) - _SUM.size)
    if xxhash.xxh3_64_intdigest(view[: -_SUM.size]) != expected:
        raise DataCorrupted(f"{name} is damaged: its checksum does not hold")
    if format > FORMAT:
        raise FeatureNotSupported(
            f"the lake has format {format}, and this release opens up to {FORMAT}", hint="run a newer release"
        )
    content = view[_HEAD.size : -_SUM.size]
    if flags & COMPRESSED:
        content = memoryview(_ZSTD.decompress(content, header_bytes + body_bytes))
    if len(content) != header_bytes + body_bytes or header_bytes > HEADER_BYTES_MAX:
        raise DataCorrupted(f"{name} is damaged: its lengths do not add up")
    return content[:header_bytes], content[header_bytes:]
