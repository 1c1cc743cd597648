"""Deleted versions of rows, by place: which rows of a file or of the tail are gone, and since which commit.

    file a.parquet   rows 3, 17 and 90 gone since commits 41, 41 and 52
    the tail         row 5 (counted from the tail's first) gone since commit 52

The rows themselves stay where they are, so a reader of an older version still sees them, until a merge leaves out those
whose time is over. An UPDATE is a deletion and a new version of the row under the same ``_row_id``.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import pyarrow as pa
import xxhash
from msgspec import Struct, field
from numpy.typing import NDArray

from lake.errors import DataCorrupted, SerializationFailure
from lake.storage.catalog.maps import PersistentMap

_HEAD: Final = struct.Struct("<IBB")  # values, bytes of each, whether compressed
_ZSTD: Final = pa.Codec("zstd", compression_level=1)
_COMPRESS_MIN: Final = 64  # bytes

Numbers = NDArray[np.int64]


class Positions(Struct, frozen=True, eq=False):
    """Rows that are gone, ascending and each once, and the commit that deleted each."""

    at: Numbers
    numbers: Numbers
    _cuts: dict[tuple[int, int], tuple[Numbers, int]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many are gone."""
        return len(self.at)

    def with_deleted(self, more: Numbers, number: int) -> Positions:
        """These and ``more`` rows, ascending, that commit ``number`` deletes.

        40001  one of them is gone already: another commit was first
        """
        at = np.concatenate([self.at, more])
        order = np.argsort(at, kind="stable")
        merged = Positions(at[order], np.concatenate([self.numbers, np.full(len(more), number, np.int64)])[order])
        if len(at) > 1 and bool((merged.at[1:] == merged.at[:-1]).any()):
            raise SerializationFailure("could not serialize access due to concurrent update")
        return merged

    def between(self, start: int, end: int, upto: int | None = None) -> Numbers:
        """The rows gone from ``start`` to before ``end``, counted from ``start``; with ``upto`` as of that commit."""
        low, high = np.searchsorted(self.at, (start, end))
        found = self.at[low:high] - start
        return found if upto is None else found[self.numbers[low:high] <= upto]

    def cut(self, start: int, end: int) -> tuple[Numbers, int]:
        """As ``between`` of all commits, and a number for these very rows, 0 for none; remembered for the next scan."""
        if not len(self.at):
            return self.at, 0
        known = self._cuts.get((start, end))
        if known is None:
            rows = self.between(start, end)
            known = self._cuts[start, end] = (rows, xxhash.xxh3_64_intdigest(rows.data) | 1 if len(rows) else 0)
        return known

    def part(self, start: int, end: int) -> Positions:
        """As ``between``, with the commits."""
        low, high = np.searchsorted(self.at, (start, end))
        return Positions(self.at[low:high] - start, self.numbers[low:high])

    def before(self, number: int) -> Numbers:
        """The rows that were gone at commit ``number``."""
        return self.at[self.numbers <= number]

    def without(self, dropped: Numbers) -> Positions:
        """The places of the other rows gone, once ``dropped`` rows are no longer stored."""
        kept = ~np.isin(self.at, dropped)
        at = self.at[kept]
        return Positions(at - np.searchsorted(dropped, at), self.numbers[kept])

    def shifted(self, by: int) -> Positions:
        """The same rows behind ``by`` others."""
        return Positions(self.at + by, self.numbers)


NONE: Final = Positions(np.empty(0, np.int64), np.empty(0, np.int64))


class TableDeletes(Struct, frozen=True, eq=False):
    """What is gone of one table; files without deleted rows have no entry.

    rows  in files and the tail together
    """

    files: PersistentMap[str, Positions] = field(default_factory=PersistentMap)
    tail: Positions = NONE
    rows: int = 0

    def of(self, path: str) -> Positions:
        """What is gone of a file."""
        return self.files.get(path) or NONE

    def with_file(self, path: str, found: Positions) -> TableDeletes:
        """With another record for a file."""
        files = self.files.set(path, found) if found.rows else self.files.remove(path)
        return TableDeletes(files, self.tail, self.rows + found.rows - self.of(path).rows)

    def with_tail(self, found: Positions) -> TableDeletes:
        """With another record for the tail."""
        return TableDeletes(self.files, found, self.rows + found.rows - self.tail.rows)


NOTHING: Final = TableDeletes()


def joined(parts: list[Positions]) -> Positions:
    """Records of pieces, in the order of their rows, as one."""
    return Positions(np.concatenate([part.at for part in parts]), np.concatenate([part.numbers for part in parts]))


def encode_numbers(values: Numbers) -> bytes:
    """Integers as they stand in commits and checkpoints: differences, bytes of one weight together, zstd."""
    steps = np.diff(values, prepend=0)
    low, high = (int(steps.min()), int(steps.max())) if len(steps) else (0, 0)
    width = next(width for width in (1, 2, 4, 8) if -(1 << (8 * width - 1)) <= low and high < 1 << (8 * width - 1))
    plain = steps.astype(f"<i{width}").view(np.uint8).reshape(-1, width).T.tobytes()
    if len(plain) < _COMPRESS_MIN:
        return _HEAD.pack(len(values), width, 0) + plain
    return _HEAD.pack(len(values), width, 1) + bytes(_ZSTD.compress(plain, asbytes=True))


def decode_numbers(data: bytes) -> Numbers:
    """The integers of ``encode_numbers``.

    XX001  bytes that it did not write
    """
    count, width, is_compressed = _HEAD.unpack_from(data)
    plain = data[_HEAD.size :]
    if is_compressed:
        plain = _ZSTD.decompress(plain, count * width, asbytes=True)
    if width not in (1, 2, 4, 8) or len(plain) != count * width:
        raise DataCorrupted("a record of deleted rows is damaged")
    steps = np.ascontiguousarray(np.frombuffer(plain, np.uint8).reshape(width, -1).T).view(f"<i{width}").ravel()
    return np.cumsum(steps, dtype=np.int64)
