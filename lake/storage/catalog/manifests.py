"""Manifests: files that left the table entry, sealed in objects of up to 4,096, with their ranges.

A table entry lists at most FILES_MAX files, so a commit costs the same whether the table has ten files or a million. Past
that, all but the newest NEWEST_KEPT are sealed in a manifest; MERGED small manifests become one.

    data/<folder>/_manifests/<uuid>.json.zst      zstd of [DataFile, ..] as JSON, with a checksum (``commits.formats``)
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import msgspec

from lake.clock import Clock
from lake.errors import DataCorrupted
from lake.storage.catalog.changes import SealFiles
from lake.storage.catalog.model import FILES_MAX, ColumnRange, DataFile, Manifest, Table
from lake.storage.commits.formats import frame, unframe
from lake.storage.faults import crash_point
from lake.storage.objects.base import ObjectStore, get_named

MAGIC: Final = b"LAKEMAN\n"
NEWEST_KEPT: Final = 64
MANIFEST_FILES_MAX: Final = 4_096
MERGED: Final = 16
KEPT_MAX: Final = 256  # manifests kept in memory

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(tuple[DataFile, ...])


class Manifests:
    """Reads manifests and keeps the last ones read."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[DataFile, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def files(self, path: str) -> tuple[DataFile, ...]:
        """The files that a manifest seals, in order of arrival.

        XX001  it is missing or damaged
        """
        with self._lock:
            known = self._kept.get(path)
            if known is not None:
                self._kept.move_to_end(path)
                return known
        head, _ = unframe(MAGIC, get_named(self._store, path), path)
        try:
            files = _DECODER.decode(head)
        except msgspec.DecodeError as error:
            raise DataCorrupted(f"{path} is damaged: {error}") from error
        with self._lock:
            self._kept[path] = files
            while len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        return files

    def all_files(self, table: Table) -> list[DataFile]:
        """Every file of a table, in order of arrival."""
        sealed = [file for manifest in table.manifests for file in self.files(manifest.path)]
        return [*sealed, *table.files]


def seal(store: ObjectStore, clock: Clock, manifests: Manifests, table: Table) -> list[SealFiles]:
    """Writes manifests for the files a table entry lists too many of; answers the changes that record them.

    Not of a table with a key: all its files are compared with each other.
    """
    if len(table.files) <= FILES_MAX or table.design.key:
        return []
    older = table.files[:-NEWEST_KEPT]
    replaced: tuple[str, ...] = ()
    small = _small_tail(table.manifests)
    if len(small) >= MERGED:
        merged = [file for manifest in small for file in manifests.files(manifest.path)]
        replaced = tuple(manifest.path for manifest in small)
        older_all = [*merged, *older]
    else:
        older_all = list(older)
    changes: list[SealFiles] = []
    listed = {file.path for file in older}
    for start in range(0, len(older_all), MANIFEST_FILES_MAX):
        files = older_all[start : start + MANIFEST_FILES_MAX]
        manifest = write_manifest(store, clock, table.folder, files)
        sealed = tuple(file.path for file in files if file.path in listed)
        changes.append(SealFiles(table.id, sealed, manifest, replaced))
        replaced = ()
    crash_point("manifest-written")
    return changes


def write_manifest(store: ObjectStore, clock: Clock, folder: str, files: Sequence[DataFile]) -> Manifest:
    """Writes ``files`` as a manifest; answers its record."""
    path = f"data/{folder}/_manifests/{uuid.UUID(int=clock.random.getrandbits(128), version=4)}.json.zst"
    store.put(path, frame(MAGIC, _ENCODER.encode(tuple(files)), []))
    return Manifest(
        path=path,
        files=len(files),
        rows=sum(file.rows for file in files),
        bytes=sum(file.bytes for file in files),
        ranges=folded_ranges([file.ranges for file in files], [file.rows for file in files]),
        row_id=min(file.row_id for file in files),
        row_id_high=max(file.row_id_high for file in files),
        version=min(file.version for file in files),
        version_high=max(file.version_high for file in files),
    )


def folded_ranges(ranges: Sequence[dict[int, ColumnRange]], rows: Sequence[int]) -> dict[int, ColumnRange]:
    """One range for each column of several pieces: unknown where one with values is unknown, absent where one is absent."""
    if not ranges:
        return {}
    folded: dict[int, ColumnRange] = {}
    for id in set(ranges[0]).intersection(*ranges[1:]):
        found = [each[id] for each in ranges]
        nulls = sum(each.nulls for each in found)
        valued = [each for each, count in zip(found, rows) if each.nulls < count]
        if not valued or any(each.low is None for each in valued):
            folded[id] = ColumnRange(None, None, nulls)
            continue
        low = min(each.low for each in valued)  # type: ignore[type-var]
        high = max(each.high for each in valued)  # type: ignore[type-var]
        folded[id] = ColumnRange(low, high, nulls)
    return folded


def _small_tail(manifests: Sequence[Manifest]) -> list[Manifest]:
    """The newest manifests that fit one together, so that merging keeps the order of arrival."""
    taken: list[Manifest] = []
    files = 0
    for manifest in reversed(manifests):
        if files + manifest.files > MANIFEST_FILES_MAX:
            break
        taken.append(manifest)
        files += manifest.files
    return taken[::-1]
