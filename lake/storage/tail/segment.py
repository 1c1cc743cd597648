"""Rows as bytes: Arrow IPC, zstd where it pays; in a commit's body, in a checkpoint, or as an object ``log/*.seg``.

Columns carry their stored names and physical types. A segment holds the rows of one large flush to one table; the commit
that names it keeps its length and checksum, so a damaged segment is found when it is read.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import xxhash

from lake.clock import Clock
from lake.errors import DataCorrupted
from lake.storage.objects.base import ObjectStore, get_named

SEGMENT_FOLDER: Final = "log/"
COMPRESS_BYTES_MIN: Final = 4_096  # below it zstd's frames cost more than they save
_ZSTD: Final = pa.ipc.IpcWriteOptions(compression="zstd")
_END: Final = b"\xff\xff\xff\xff\0\0\0\0"  # of a stream


def rows_bytes(batch: pa.RecordBatch) -> int:
    """The bytes of rows, about: found in 0.5 us, or 3 of rows cut from larger buffers, where ``nbytes`` takes 20."""
    held: int = batch.get_total_buffer_size()
    return held if held < COMPRESS_BYTES_MIN else min(held, pa.ipc.get_record_batch_size(batch))


def encode_rows(batch: pa.RecordBatch) -> bytes:
    """``batch``, which has no coded columns, as an Arrow IPC stream."""
    if rows_bytes(batch) < COMPRESS_BYTES_MIN:
        return b"".join((batch.schema.serialize(), batch.serialize(), _END))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_ZSTD) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode_rows(data: bytes | memoryview, name: str) -> pa.RecordBatch:
    """The batch of ``encode_rows``; ``name`` says in an error where the bytes came from.

    XX001  the bytes are not such a stream
    """
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            return reader.read_next_batch()
    except (pa.ArrowException, StopIteration, OSError) as error:
        raise DataCorrupted(f"rows of {name} cannot be read: {error}") from error


def segment_name(clock: Clock) -> str:
    """A name that no other segment has: chance spreads names over a bucket's partitions, the time tells their age."""
    return f"{SEGMENT_FOLDER}{clock.random.getrandbits(96):024x}-{clock.now() // 1_000}.seg"


def read_segment(store: ObjectStore, name: str, checksum: int) -> pa.RecordBatch:
    """The rows of a segment.

    XX001  it is missing, or its checksum is another
    """
    data = get_named(store, name)
    if checksum_of(data) != checksum:
        raise DataCorrupted(f"segment {name} is damaged: its checksum does not hold")
    return decode_rows(data, name)


def checksum_of(data: bytes) -> int:
    """63 bits of xxh3, so that JSON readers with signed integers take it."""
    return xxhash.xxh3_64_intdigest(data) >> 1
