"""The tail of a table: rows since its last tiering, as batches in memory.

A tail is a chain of parts, newest first, that grows by one link for each commit that appends to the table. It is never
changed, so a snapshot keeps its tail by holding the newest link it saw, and appending costs the same at any length.

    commit 7 ── part ── part ── part ── (tiered)          Tail.chunks: the same rows as few large batches, oldest first

Readers want few batches, writers make many small ones. The first reader of a link puts its rows together and leaves the
result on the link; the next reader, of a newer link, starts from there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.storage.catalog.model import CREATED_AT, ROW_ID, SYSTEM_COLUMNS, UPDATED_AT, VERSION
from lake.storage.objects.base import ObjectStore
from lake.storage.tail.segment import decode_rows, read_segment

CHUNK_ROWS: Final = 65_536
LINKS_LOOKED_AT: Final = 64  # for one row, before all of them are put together


class TailPart:
    """Rows that one commit, or a checkpoint's many, added to a table.

    version, version_high   commits of the first and the last row
    row_id                  of the first row, the others follow; -1: the batch carries its system columns
    created                 microseconds, of all rows, unless the batch carries it
    segment                 object that holds the rows, or None: they came with the commit
    """

    __slots__ = ("_batch", "_encoded", "checksum", "created", "row_id", "rows", "segment", "version", "version_high")

    def __init__(
        self,
        *,
        rows: int,
        version: int,
        version_high: int,
        row_id: int,
        created: int,
        batch: pa.RecordBatch | None = None,
        encoded: bytes | memoryview | None = None,
        segment: str | None = None,
        checksum: int = 0,
    ) -> None:
        assert batch is not None or encoded is not None or segment is not None, "a part has its rows somewhere"
        self.rows = rows
        self.version = version
        self.version_high = version_high
        self.row_id = row_id
        self.created = created
        self.segment = segment
        self.checksum = checksum
        self._batch = batch
        self._encoded = encoded

    def batch(self, store: ObjectStore | None) -> pa.RecordBatch:
        """The rows as they were written. Two threads that decode at once make the same batch."""
        # In this order: a thread that is done has set the batch before it lets go of the encoded rows.
        encoded = self._encoded
        batch = self._batch
        if batch is None:
            if encoded is not None:
                batch = decode_rows(encoded, f"commit {self.version}")
            else:
                assert store is not None and self.segment is not None, "a segment is read from a store"
                batch = read_segment(store, self.segment, self.checksum)
            self._batch = batch
            self._encoded = None
        assert batch.num_rows == self.rows, "a part has as many rows as its commit says"
        return batch

    def chunk(self, store: ObjectStore | None) -> pa.RecordBatch:
        """The rows with their system columns at the end."""
        return _with_system([self], self.batch(store))

    def row(self, number: int, store: ObjectStore | None) -> pa.RecordBatch:
        """One of the rows, with its system columns."""
        return _with_system([self], self.batch(store).slice(number, 1), number)

    def after(self, number: int) -> TailPart | None:
        """The rows of commits after ``number``, or None if there are none."""
        if self.version > number:
            return self
        if self.version_high <= number:
            return None
        batch = self.batch(None)
        versions = batch.column(VERSION).to_numpy()
        kept = batch.slice(int(np.searchsorted(versions, number, side="right")))
        return TailPart(
            rows=kept.num_rows,
            version=kept.column(VERSION)[0].as_py(),
            version_high=self.version_high,
            row_id=-1,
            created=self.created,
            batch=kept,
        )


class Tail:
    """The newest part and the tail before it.

    notes  what readers worked out of the rows up to here and want to find again, by names of their own
    """

    __slots__ = ("_chunks", "before", "notes", "part", "parts", "rows")

    def __init__(self, part: TailPart, before: Tail | None) -> None:
        self.part = part
        self.before = before
        self.rows: int = part.rows + (before.rows if before else 0)
        self.parts: int = 1 + (before.parts if before else 0)
        self._chunks: tuple[pa.RecordBatch, ...] | None = None
        self.notes: dict[Hashable, Any] = {}

    def newest_first(self) -> Iterator[TailPart]:
        """The parts, the newest first."""
        link: Tail | None = self
        while link is not None:
            yield link.part
            link = link.before

    def oldest_first(self) -> list[TailPart]:
        """The parts in the order of commits."""
        return list(self.newest_first())[::-1]

    def chunks(self, store: ObjectStore | None) -> tuple[pa.RecordBatch, ...]:
        """All rows in the order of commits, with system columns, in batches of up to CHUNK_ROWS rows."""
        if self._chunks is None:
            links: list[Tail] = []
            link: Tail | None = self
            while link is not None and link._chunks is None:
                links.append(link)
                link = link.before
            known = () if link is None or link._chunks is None else link._chunks
            if len(links) > 1:
                # The link before is where transactions go on from: they put nothing together that another has.
                made = _chunks_of([each.part for each in reversed(links[1:])], store)
                known = links[1]._chunks = tuple(_put_together(list(known), made))
            self._chunks = tuple(_put_together(list(known), [self.part.chunk(store)]))
        return self._chunks

    def row(self, number: int, store: ObjectStore | None) -> pa.RecordBatch:
        """One row, with its system columns; of the newest rows nothing else is put together."""
        link = self
        for _ in range(LINKS_LOOKED_AT):
            first = link.rows - link.part.rows
            if number >= first or link.before is None:
                return link.part.row(number - first, store)
            link = link.before
        for chunk in link.chunks(store):
            if number < chunk.num_rows:
                break
            number -= chunk.num_rows
        return chunk.slice(number, 1)


def written_batches(parts: Iterable[TailPart], store: ObjectStore | None) -> Iterator[pa.RecordBatch]:
    """The rows of parts as they were written, those of neighbours alike as one batch."""
    return (batch for _, batch in _runs(parts, store))


def _chunks_of(parts: Iterable[TailPart], store: ObjectStore | None) -> Iterator[pa.RecordBatch]:
    """The rows of parts with their system columns, which cost little for a part that is like its neighbours."""
    return (_with_system(run, batch) for run, batch in _runs(parts, store))


def _runs(parts: Iterable[TailPart], store: ObjectStore | None) -> Iterator[tuple[list[TailPart], pa.RecordBatch]]:
    """Neighbours whose rows have the same columns and that all lack system columns or are alone, and their rows."""
    run: list[TailPart] = []
    batches: list[pa.RecordBatch] = []
    rows = 0
    for part in parts:
        batch = part.batch(store)
        if run and not (
            part.row_id >= 0 <= run[0].row_id
            and rows + part.rows <= CHUNK_ROWS
            and batch.schema.equals(batches[0].schema)
        ):
            yield run, _joined(batches)
            run, batches, rows = [], [], 0
        run.append(part)
        batches.append(batch)
        rows += part.rows
    if run:
        yield run, _joined(batches)


def _with_system(parts: Sequence[TailPart], batch: pa.RecordBatch, first: int = 0) -> pa.RecordBatch:
    """``batch`` with what it lacks of system columns.

    batch  the rows of parts that are alike; of a single part those from row ``first``
    """
    if parts[0].row_id < 0:
        return batch
    counts = [part.rows for part in parts] if len(parts) > 1 else [batch.num_rows]
    found = dict(zip(batch.schema.names, batch.columns))
    created = _repeated([part.created for part in parts], counts).view(SYSTEM_COLUMNS[CREATED_AT].physical)
    ids = found.pop(ROW_ID, None)
    if ids is None:
        starts = np.cumsum([0, *counts[:-1]])
        each = np.array([part.row_id for part in parts]) + (first - starts)
        ids = pa.array(np.repeat(each, counts) + np.arange(batch.num_rows))
    versions = _repeated([part.version for part in parts], counts)
    system = {ROW_ID: ids, VERSION: versions, CREATED_AT: created, UPDATED_AT: created}
    given = {name: found.pop(name) for name in system if name in found}
    found |= system | given
    return pa.RecordBatch.from_arrays(list(found.values()), names=list(found))


def _repeated(values: list[int], counts: list[int]) -> pa.Array:
    return pa.array(np.repeat(np.array(values, np.int64), counts))


def tail_of(parts: Iterable[TailPart]) -> Tail | None:
    """The tail of ``parts`` in the order of commits, or None of no parts."""
    tail: Tail | None = None
    for part in parts:
        tail = Tail(part, tail)
    return tail


def tail_after(tail: Tail | None, number: int) -> Tail | None:
    """The rows of commits after ``number``."""
    if tail is None or tail.oldest_first()[0].version > number:
        return tail
    kept: list[TailPart] = []
    for part in tail.newest_first():
        later = part.after(number)
        if later is None:
            break
        kept.append(later)
    return tail_of(reversed(kept))


def tail_since(tail: Tail, rows: int) -> Tail | None:
    """What was added to a tail after its first ``rows`` rows, which end with a commit."""
    parts: list[TailPart] = []
    link: Tail | None = tail
    while link is not None and link.rows > rows:
        parts.append(link.part)
        link = link.before
    assert rows == (0 if link is None else link.rows), "a tail is cut between two commits"
    return tail_of(reversed(parts))


def consolidated(tail: Tail, store: ObjectStore | None) -> list[TailPart]:
    """The same rows in few parts, oldest first: neighbours that came with commits are put together, segments stay."""
    merged: list[TailPart] = []
    run: list[TailPart] = []
    for part in (*tail.oldest_first(), None):
        if part is not None and part.segment is None:
            run.append(part)
            continue
        for chunk in _put_together([], _chunks_of(run, store)):
            versions = chunk.column(VERSION)
            first, last = versions[0].as_py(), versions[-1].as_py()
            made = TailPart(
                rows=chunk.num_rows, version=first, version_high=last, row_id=-1, created=run[0].created, batch=chunk
            )
            merged.append(made)
        run = []
        if part is not None:
            merged.append(part)
    return merged


def _put_together(known: list[pa.RecordBatch], more: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """``known`` and then ``more`` in larger batches: each row is copied about as often as its chunk doubles."""
    waiting: list[pa.RecordBatch] = []
    waiting_rows = 0
    for batch in more:
        fits = waiting_rows + batch.num_rows <= CHUNK_ROWS
        if waiting and not (fits and batch.schema.equals(waiting[0].schema)):
            _push(known, waiting)
            waiting, waiting_rows = [], 0
        waiting.append(batch)
        waiting_rows += batch.num_rows
    if waiting:
        _push(known, waiting)
    return known


def _push(chunks: list[pa.RecordBatch], batches: list[pa.RecordBatch]) -> None:
    """Adds batches of one schema, merging smaller chunks before them while that makes at most CHUNK_ROWS rows."""
    rows = sum(batch.num_rows for batch in batches)
    while chunks and chunks[-1].num_rows <= rows and chunks[-1].num_rows + rows <= CHUNK_ROWS:
        if not chunks[-1].schema.equals(batches[0].schema):
            break
        rows += chunks[-1].num_rows
        batches = [chunks.pop(), *batches]
    merged = _joined(batches)
    chunks.extend(merged.slice(start, CHUNK_ROWS) for start in range(0, merged.num_rows, CHUNK_ROWS))


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(batches) if len(batches) > 1 else batches[0]
