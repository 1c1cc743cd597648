"""Arrow IPC outside the lake, files and streams: a part for each record batch of a file.

Source: Arrow columnar format, IPC.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa
from msgspec import Struct

from lake.errors import IoFailure
from lake.rows import Part, Predicate, physical_array
from lake.storage.external.files import ExternalTable
from lake.types import Type, from_arrow


def open_arrow(paths: Sequence[str]) -> ExternalTable:
    """The files as one table with the columns of the first.

    58030  a file that is not Arrow IPC
    """
    with _opened(paths[0]) as reader:
        types = {item.name: from_arrow(item.type) for item in reader.schema}
    return ExternalTable(tuple(types.items()), ArrowRows(tuple(paths), types), None)


class ArrowRows(Struct, frozen=True):
    """Rows of Arrow files."""

    paths: tuple[str, ...]
    types: dict[str, Type]

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """A part for each record batch, or for each stream."""
        found: list[Part] = []
        for path in self.paths:
            with _opened(path) as reader:
                count = getattr(reader, "num_record_batches", None)
            places = [None] if count is None else list(range(count))
            found += [Part(None, partial(self._read, path, place, tuple(columns))) for place in places]
        return found

    def _read(self, path: str, place: int | None, columns: tuple[str, ...]) -> Iterable[pa.RecordBatch]:
        with _opened(path) as reader:
            for batch in reader if place is None else [reader.get_batch(place)]:
                yield self._shaped(batch, columns)

    def _shaped(self, batch: pa.RecordBatch, columns: tuple[str, ...]) -> pa.RecordBatch:
        if not columns:
            return batch.select([])
        arrays = [
            physical_array(batch.column(name), self.types[name])
            if name in batch.schema.names
            else pa.nulls(batch.num_rows, self.types[name].physical)
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _opened(path: str) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    try:
        source = pa.memory_map(path)
        try:
            return pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source)
    except (pa.ArrowInvalid, OSError) as error:
        raise IoFailure(f'"{path}" cannot be read as Arrow IPC: {str(error).splitlines()[0]}') from None
