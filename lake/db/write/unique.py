"""UNIQUE: no key twice, whoever writes it and whenever. Spec: SQL, Constraints and defaults 3.

    rows of a statement ── hashes of their keys ── against each other
                                                ── against the files and the tail the statement saw        on its own thread
                                                ── against what was committed since         in the order of commits, quickly

What is compared are hashes of 64 bits, sorted and kept: for each file of the table, and for the tail in a few pieces, of
which a link keeps what it shares with the one before. Only where hashes are equal are values read. Rows that the
statement itself deletes or replaces are left out, so that a swap of two keys holds. NULLs differ from everything.

Files are immutable, so what is kept of one is never wrong; files whose range of values has none of the keys are not
looked at.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lake.db.values import text_values
from lake.errors import FeatureNotSupported, UniqueViolation
from lake.exec.constants import physical_values
from lake.exec.kernels.hashing import hash_columns
from lake.exec.kernels.views import plain
from lake.rows import Predicate
from lake.storage.catalog.changes import AddFiles, DeleteRows
from lake.storage.catalog.deletes import Numbers, decode_numbers
from lake.storage.catalog.model import Column, Constraint, DataFile, Table
from lake.storage.tables.read import Reader, Visible, Wanted, read_group
from lake.storage.tables.snapshot import TableSnapshot
from lake.storage.tail.tail import Tail
from lake.types import Date, Decimal, Integer, Text, Time, Timestamp

Hashes = NDArray[np.uint64]
KEPT_BYTES: Final = 512 << 20  # of hashes of files
LINKS_MAX: Final = 256  # of the tail, past which it is hashed as few batches
NOWHERE: Final = np.empty(0, np.int64)


def unique_rules(table: Table) -> tuple[Constraint, ...]:
    """The UNIQUE constraints that are enforced."""
    return tuple(item for item in table.constraints if item.kind == "unique" and item.enforced)


def refuse_unique(table: Table, door: str) -> None:
    """Refuses a door that does not wait for the check of its rows.

    0A000  the table has a UNIQUE constraint, which the message names. Spec: SQL, Constraints and defaults 3.
    """
    for rule in unique_rules(table):
        raise FeatureNotSupported(
            f'table "{table.name}" has the unique constraint "{rule.name}" and takes rows through SQL only, not {door}',
            hint="use INSERT",
            about={"schema": table.schema, "table": table.name, "constraint": rule.name},
        )


# --- sorted hashes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """Hashes of the keys of some rows, ascending, and the row of each; rows with a NULL in their key are left out."""

    hashes: Hashes
    rows: Numbers

    @staticmethod
    def of(columns: Sequence[pa.Array], start: int = 0) -> Piece:
        """The keys of ``columns``, whose first row is row ``start``."""
        hashes = hash_columns(columns)
        rows = np.arange(len(hashes), dtype=np.int64)
        if any(column.null_count for column in columns):
            valid = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in columns])
            hashes, rows = hashes[valid], rows[valid]
        return Piece(hashes, rows + start)._sorted()

    @staticmethod
    def joined(pieces: Sequence[Piece]) -> Piece:
        """All of them as one."""
        if len(pieces) == 1:
            return pieces[0]
        return Piece(
            np.concatenate([piece.hashes for piece in pieces]), np.concatenate([piece.rows for piece in pieces])
        )._sorted()

    def _sorted(self) -> Piece:
        if len(self.hashes) < 2:
            return self
        order = np.argsort(self.hashes, kind="stable")
        return Piece(self.hashes[order], self.rows[order])

    @property
    def nbytes(self) -> int:
        """What it takes to keep."""
        return int(self.hashes.nbytes + self.rows.nbytes)

    def pairs(self, other: Piece) -> tuple[Numbers, Numbers]:
        """Rows of this piece and of the other whose hashes are equal, side by side."""
        if len(self.hashes) > len(other.hashes):
            theirs, ours = other.pairs(self)
            return ours, theirs
        low = np.searchsorted(other.hashes, self.hashes, "left")
        counts = np.searchsorted(other.hashes, self.hashes, "right") - low
        total = int(counts.sum())
        if not total:
            return NOWHERE, NOWHERE
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(self.rows, counts), other.rows[np.repeat(low, counts) + within]

    def repeated(self) -> Iterator[Numbers]:
        """Rows that share a hash, a group at a time."""
        same = self.hashes[1:] == self.hashes[:-1]
        starts = np.flatnonzero(same & np.concatenate([[True], ~same[:-1]]))
        for start in starts:
            end = int(np.searchsorted(self.hashes, self.hashes[start], "right"))
            yield self.rows[start:end]


class KeptPieces:
    """Pieces of files, for as long as there is room; the least recently used go first."""

    def __init__(self, budget: int = KEPT_BYTES) -> None:
        self._budget = budget
        self._kept: OrderedDict[tuple[str, tuple[str, ...]], Piece] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def of(self, reader: Reader, file: DataFile, wanted: Sequence[Wanted]) -> Piece:
        """The keys of a whole file, rows that are gone too."""
        name = (file.path, tuple(column.stored for column in wanted))
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
                return found
        made, start = [], 0
        for group, rows in enumerate(file.groups):
            made.append(Piece.of(_group(reader, file, group, wanted), start))
            start += rows
        piece = Piece.joined(made)
        with self._lock:
            if name not in self._kept:
                self._kept[name] = piece
                self._bytes += piece.nbytes
            while self._bytes > self._budget and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return piece


def _group(reader: Reader, file: DataFile, group: int, wanted: Sequence[Wanted]) -> list[pa.Array]:
    batches = read_group(reader, file, group, wanted, Visible())
    if len(batches) == 1:
        return batches[0].columns  # type: ignore[no-any-return]
    return [
        pa.concat_arrays([plain(batch.column(place)) for batch in batches]) for place in range(len(wanted))
    ]  # fmt: skip


def pieces_of_tail(tail: Tail, wanted: Sequence[Wanted], source: TableSnapshot) -> tuple[Piece, ...]:
    """The keys of the tail, rows that are gone too, in a few pieces; what is worked out stays on the newest link."""
    name = tuple(column.stored for column in wanted)
    links: list[Tail] = []
    link: Tail | None = tail
    while link is not None and name not in link.notes:
        links.append(link)
        link = link.before
    pieces: list[Piece] = list(link.notes[name]) if link is not None else []
    if link is None and len(links) > LINKS_MAX:
        start = 0
        for chunk in source.tail_chunks():
            _push(pieces, Piece.of([_column(chunk, column) for column in wanted], start))
            start += chunk.num_rows
    else:
        store = source.snapshot.reader.store
        for newer in reversed(links):
            batch = newer.part.batch(store)
            start = newer.before.rows if newer.before is not None else 0
            _push(pieces, Piece.of([_column(batch, column) for column in wanted], start))
    noted = tuple(pieces)
    tail.notes[name] = noted
    return noted


def _push(pieces: list[Piece], piece: Piece) -> None:
    """Adds a piece, merging smaller ones before it, so that a key is moved about as often as its piece doubles."""
    merged = [piece]
    size = len(piece.rows)
    while pieces and len(pieces[-1].rows) <= size:
        size += len(pieces[-1].rows)
        merged.append(pieces.pop())
    pieces.append(Piece.joined(merged))


def _column(batch: pa.RecordBatch, column: Wanted) -> pa.Array:
    if column.stored not in batch.schema.names:
        return pa.nulls(batch.num_rows, column.type.physical)
    return plain(batch.column(column.stored))


# --- a statement's rows ----------------------------------------------------------------------------------------------


class UniqueCheck:
    """The new rows of one statement, or of one transaction, under a table's UNIQUE constraints.

    Rows go in by ``add`` or through ``watch``; ``look`` on the statement's own thread finds what is there already,
    ``check`` in the order of commits what came since.
    """

    def __init__(self, table: Table, kept: KeptPieces, rules: Sequence[Constraint]) -> None:
        self.table = table
        self._keys = [_Keys(table, rule, kept) for rule in rules]

    @staticmethod
    def of(table: Table, kept: KeptPieces, set_columns: Iterable[str] | None = None) -> UniqueCheck | None:
        """The check of a table, None where nothing is to be checked; an UPDATE names the columns it sets."""
        rules = unique_rules(table)
        if set_columns is not None:
            changed = set(set_columns)
            rules = tuple(rule for rule in rules if changed.intersection(rule.columns))
        return UniqueCheck(table, kept, rules) if rules else None

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes rows of stored names in physical types."""
        for keys in self._keys:
            keys.batches.append([plain(batch.column(column.stored)) for column in keys.columns])

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches as they pass."""
        for batch in batches:
            self.add(batch)
            yield batch

    def add_files(self, source: TableSnapshot, added: AddFiles, gone: dict[str, bytes]) -> None:
        """Takes rows of files that are written and not committed yet, but for those that are gone again."""
        for file in added.files:
            dead = decode_numbers(gone[file.path]) if file.path in gone else NOWHERE
            start = 0
            for group, rows in enumerate(file.groups):
                here = dead[(dead >= start) & (dead < start + rows)] - start
                start += rows
                for keys in self._keys:
                    read = read_group(source.snapshot.reader, file, group, keys.wanted, Visible(0, here))
                    keys.batches += [[plain(column) for column in batch.columns] for batch in read]

    def look(self, source: TableSnapshot, gone: DeleteRows | None, *, is_empty: bool = False) -> None:
        """Refuses a key that the rows have twice, or that the table has; with ``is_empty`` the table is emptied first.

        23505  the first row whose key is there already
        """
        for keys in self._keys:
            keys.check_within()
            if not is_empty:
                keys.check_against(source, gone)

    def check(self, source: TableSnapshot, gone: DeleteRows | None) -> None:
        """As ``look``, but files that were looked at are left alone: rows of theirs can only have gone since."""
        for keys in self._keys:
            keys.check_against(source, gone)


class _Keys:
    """The keys of new rows under one constraint."""

    def __init__(self, table: Table, rule: Constraint, kept: KeptPieces) -> None:
        self.table = table
        self.rule = rule
        self.columns: list[Column] = [column for name in rule.columns if (column := table.column(name)) is not None]
        self.wanted = [Wanted(column.name, column.stored, column.type) for column in self.columns]
        self.batches: list[list[pa.Array]] = []
        self._kept = kept
        self._seen: set[str] = set()

    @cached_property
    def arrays(self) -> list[pa.Array]:
        """The key columns of all new rows."""
        if not self.batches:
            return [pa.nulls(0, column.type.physical) for column in self.columns]
        return [pa.concat_arrays([batch[place] for batch in self.batches]) for place in range(len(self.columns))]

    @cached_property
    def piece(self) -> Piece:
        """Their hashes."""
        return Piece.of(self.arrays)

    @cached_property
    def predicates(self) -> list[Predicate]:
        """What a file must hold to have one of the keys."""
        found: list[Predicate] = []
        for column, array in zip(self.columns, self.arrays):
            if isinstance(column.type, Integer | Date | Time | Timestamp | Text | Decimal) and len(self.piece.rows):
                ends = pc.min_max(array)
                low, high = physical_values(pa.array([ends["min"], ends["max"]]), column.type)
                found += [Predicate(column.name, ">=", low), Predicate(column.name, "<=", high)]
        return found

    def check_within(self) -> None:
        for group in self.piece.repeated():
            known: dict[tuple[Any, ...], int] = {}
            for row in group:
                key = self._values(self.arrays, int(row))
                if key in known:
                    raise self._violation(int(row))
                known[key] = int(row)

    def check_against(self, source: TableSnapshot, gone: DeleteRows | None) -> None:
        if not len(self.piece.rows):
            return
        for file in source.files(self.predicates):
            if file.path not in self._seen:
                deleted = decode_numbers(gone.files[file.path]) if gone and file.path in gone.files else NOWHERE
                self._check_file(source, file, deleted)
                self._seen.add(file.path)
        if source.tail is not None:
            self._check_tail(source, source.tail, decode_numbers(gone.tail) if gone and gone.tail else NOWHERE)

    def _check_file(self, source: TableSnapshot, file: DataFile, deleted: Numbers) -> None:
        piece = self._kept.of(source.snapshot.reader, file, self.wanted)
        ours, theirs = self._alive(*self.piece.pairs(piece), source.deletes.of(file.path).at, deleted)
        if not len(ours):
            return
        ends = np.cumsum(file.groups)
        group, arrays = -1, []
        for row, place in zip(ours, theirs):
            wanted = int(np.searchsorted(ends, place, "right"))
            if wanted != group:
                group, arrays = wanted, _group(source.snapshot.reader, file, wanted, self.wanted)
            start = int(ends[group]) - file.groups[group]
            if self._values(self.arrays, int(row)) == self._values(arrays, int(place) - start):
                raise self._violation(int(row))

    def _check_tail(self, source: TableSnapshot, tail: Tail, deleted: Numbers) -> None:
        for piece in pieces_of_tail(tail, self.wanted, source):
            ours, theirs = self._alive(*self.piece.pairs(piece), source.deletes.tail.at, deleted)
            for row, place in zip(ours, theirs):
                link = tail
                while link.before is not None and place < link.before.rows:
                    link = link.before
                batch = link.part.batch(source.snapshot.reader.store)
                start = link.before.rows if link.before is not None else 0
                arrays = [_column(batch, column) for column in self.wanted]
                if self._values(self.arrays, int(row)) == self._values(arrays, int(place) - start):
                    raise self._violation(int(row))

    def _alive(self, ours: Numbers, theirs: Numbers, *gone: Numbers) -> tuple[Numbers, Numbers]:
        """The pairs whose row of the table is there, in the order of the new rows."""
        for dead in gone:
            if len(ours) and len(dead):
                kept = ~np.isin(theirs, dead)
                ours, theirs = ours[kept], theirs[kept]
        order = np.argsort(ours, kind="stable")
        return ours[order], theirs[order]

    def _values(self, arrays: Sequence[pa.Array], row: int) -> tuple[Any, ...]:
        """A key as Python values that are equal where SQL's are."""
        values = (
            physical_values(array.slice(row, 1), column.type)[0] for array, column in zip(arrays, self.columns)
        )  # fmt: skip
        return tuple("NaN" if value != value else value for value in values)

    def _violation(self, row: int) -> UniqueViolation:
        shown = (
            text_values(array.slice(row, 1), column.type)[0] for array, column in zip(self.arrays, self.columns)
        )  # fmt: skip
        return UniqueViolation(
            f'duplicate key value violates unique constraint "{self.rule.name}"',
            detail=f"Key ({', '.join(self.rule.columns)})=({', '.join(map(str, shown))}) already exists.",
            about={"schema": self.table.schema, "table": self.table.name, "constraint": self.rule.name},
        )
