"""Record batches to scratch files and back: Arrow IPC streams, one file a partition of each state; LZ4 where texts are.

    folder = Scratch(context, metrics)
    file = folder.create("join")
    file.write(batch)
    for batch in file.read(): ...

Files lie in a folder of their own under the context's scratch folder, which goes away with the last of them, and at the
latest when the query's objects do. Dictionaries are written as plain text: a batch of a partition is small and would carry
its whole dictionary with it.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from lake.errors import DiskFull, IoFailure
from lake.exec.context import Context
from lake.exec.kernels.views import is_fixed
from lake.exec.operators.base import Metrics

_PLAIN: Final = pa.ipc.IpcWriteOptions()
_SMALLER: Final = pa.ipc.IpcWriteOptions(compression="lz4")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Scratch:
    """A folder for one operator's files."""

    def __init__(self, context: Context, metrics: Metrics) -> None:
        self._metrics = metrics
        try:
            if context.scratch is not None:
                Path(context.scratch).mkdir(parents=True, exist_ok=True)
            self._folder = tempfile.mkdtemp(prefix="lake-spill-", dir=context.scratch)
        except OSError as error:
            raise spill_error(error) from error
        self._count = 0
        self.close = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def create(self, purpose: str) -> SpillFile:
        """A file that holds nothing yet; it is made when the first batch is written."""
        self._count += 1
        return SpillFile(self, f"{self._folder}/{purpose}-{self._count}.arrow", self._metrics)


class SpillFile:
    """Batches on disk, first written, then read as often as needed. ``rows`` is how many there are in it."""

    def __init__(self, scratch: Scratch, path: str, metrics: Metrics) -> None:
        self._scratch = scratch  # keeps the folder while the file is in use
        self._path = path
        self._metrics = metrics
        self._sink: pa.NativeFile | None = None
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None
        self._schema: pa.Schema | None = None
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds a batch of at least one column; all batches of a file have the same columns.

        53100  the disk is full
        """
        plain = plain_batch(batch)
        try:
            if self._writer is None:
                self._sink = pa.OSFile(self._path, "wb")
                self._writer = pa.ipc.new_stream(self._sink, plain.schema, options=options_for(plain.schema))
                self._schema = plain.schema
            self._writer.write_batch(plain if plain.schema == self._schema else plain.cast(self._schema))
        except OSError as error:
            raise spill_error(error) from error
        self.rows += batch.num_rows
        self._metrics.spilled += batch.nbytes

    def read(self) -> Iterator[pa.RecordBatch]:
        """The batches in the order they were written."""
        self._finish()
        if self.rows == 0:
            return
        try:
            with pa.OSFile(self._path, "rb") as source, pa.ipc.open_stream(source) as reader:
                yield from reader
        except OSError as error:
            raise spill_error(error) from error

    def delete(self) -> None:
        """Gives the disk's space back."""
        self._finish()
        Path(self._path).unlink(missing_ok=True)
        self.rows = 0

    def _finish(self) -> None:
        try:
            if self._writer is not None:
                self._writer.close()
            if self._sink is not None:
                self._sink.close()
        except OSError as error:
            raise spill_error(error) from error
        finally:
            self._writer = self._sink = None


def options_for(schema: pa.Schema) -> pa.ipc.IpcWriteOptions:
    """How batches are written: compressing numbers takes longer than writing and reading them as they are.

    A join of 6 million rows that spills at a tenth of its memory: 1,640 ms of processor time with LZ4, 1,030 without.
    """
    return _PLAIN if all(map(is_fixed, schema.types)) else _SMALLER


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with dictionaries as the text they stand for."""
    arrays = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def spill_error(error: OSError) -> DiskFull | IoFailure:
    """53100 for a full disk, 58030 for any other failure."""
    if error.errno in _FULL:
        return DiskFull(f"no room to spill: {error.strerror}", hint="free disk space, or raise the memory budget")
    return IoFailure(f"cannot spill: {error}")
