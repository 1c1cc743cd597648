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
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from numpy.typing import NDArray

from lake.db.values import text_values
from lake.errors import FeatureNotSupported, UniqueViolation
from lake.exec.constants import physical_values
from lake.exec.kernels.hashing import hash_columns, spelled
from lake.exec.kernels.views import plain
from lake.rows import Predicate
from lake.storage.catalog.changes import AddFiles, DeleteRows
from lake.storage.catalog.deletes import Numbers, decode_numbers
from lake.storage.catalog.model import DELETED, Column, Constraint, DataFile, Table
from lake.storage.tables.columns import absent
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


class Piece(Struct, frozen=True):
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
        name = (file.path, tuple(column.hot_name for column in wanted))
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
        return absent(batch.num_rows, column.type, column.missing)
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
        """Takes rows of stored names in physical types; of a table with a key, markers of rows that go too."""
        for keys in self._keys:
            keys.add([plain(batch.column(column.stored)) for column in keys.read], _marks(batch))

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
                    for batch in read_group(source.snapshot.reader, file, group, keys.read, Visible(0, here)):
                        keys.add([plain(column) for column in batch.columns], None)

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
    """The keys of new rows under one constraint.

    read   the columns of the constraint, and then those of the table's key, where it has one: a new row takes the place of
           the row with its key, so that a value may stay with its key
    """

    def __init__(self, table: Table, rule: Constraint, kept: KeptPieces) -> None:
        self.table = table
        self.rule = rule
        self.columns: list[Column] = [column for name in rule.columns if (column := table.column(name)) is not None]
        self.wanted = [Wanted.named(column) for column in self.columns]
        self.read = [*self.wanted, *(Wanted.named(item) for item in table.key)]
        self._batches: list[list[pa.Array]] = []
        self._marks: list[pa.Array] = []
        self._kept = kept
        self._seen: set[str] = set()

    def add(self, columns: list[pa.Array], marks: pa.Array | None) -> None:
        self._batches.append(columns)
        self._marks.append(pa.repeat(pa.scalar(False), len(columns[0])) if marks is None else marks)

    @cached_property
    def _all(self) -> list[pa.Array]:
        """The columns read, of all rows that are written."""
        if not self._batches:
            return [pa.nulls(0, column.type.physical) for column in self.read]
        return [pa.concat_arrays([batch[place] for batch in self._batches]) for place in range(len(self.read))]

    @cached_property
    def _own(self) -> Piece:
        """The table's own keys of all rows that are written."""
        return Piece.of(self._all[len(self.wanted) :])

    @cached_property
    def rows(self) -> list[pa.Array]:
        """The columns read, of the rows that will be seen: of a table with a key the last of each key, unless it goes."""
        if not self.table.design.key:
            return self._all
        seen = ~np.concatenate([NOWHERE.astype(np.bool_), *(marks.to_numpy(zero_copy_only=False) for marks in self._marks)])
        # Under SEQUENCE BY any row of a key may be the one that is seen; of those alike one is enough.
        keys = self._all if self.table.design.sequence else self._keys_of(self._all)
        piece = Piece.of(keys)
        again = np.flatnonzero(piece.hashes[1:] == piece.hashes[:-1])
        again = again[_same(keys, piece.rows[again], keys, piece.rows[again + 1])]
        seen[piece.rows[again]] = False
        return [array.filter(pa.array(seen)) for array in self._all]

    @property
    def arrays(self) -> list[pa.Array]:
        """The constraint's columns of the rows that will be seen."""
        return self.rows[: len(self.wanted)]

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
            others = np.repeat(group[0], len(group) - 1)
            same = _same(self.arrays, group[1:], self.arrays, others)
            if self.table.design.key:
                same &= ~_same(self._keys_of(self.rows), group[1:], self._keys_of(self.rows), others)
            if same.any():
                raise self._violation(int(group[1:][same][0]))
            if len(group) > 2:
                self._check_pairs(group)

    def _check_pairs(self, group: Numbers) -> None:
        """All pairs of rows that share a hash: the first is like none of the others."""
        left, right = np.triu_indices(len(group), 1)
        same = _same(self.arrays, group[left], self.arrays, group[right])
        if self.table.design.key:
            same &= ~_same(self._keys_of(self.rows), group[left], self._keys_of(self.rows), group[right])
        if same.any():
            raise self._violation(int(group[right][same][0]))

    def check_against(self, source: TableSnapshot, gone: DeleteRows | None) -> None:
        if not len(self.piece.rows):
            return
        hidden = source.deletes
        for file in source.files(self.predicates):
            if file.path not in self._seen:
                deleted = decode_numbers(gone.files[file.path]) if gone and file.path in gone.files else NOWHERE
                self._check_file(source, file, hidden.of(file.path).at, deleted)
                self._seen.add(file.path)
        if source.tail is not None:
            deleted = decode_numbers(gone.tail) if gone and gone.tail else NOWHERE
            self._check_tail(source, source.tail, hidden.tail.at, deleted)

    def _check_file(self, source: TableSnapshot, file: DataFile, *dead: Numbers) -> None:
        piece = self._kept.of(source.snapshot.reader, file, self.wanted)
        ours, theirs = _alive(*self.piece.pairs(piece), *dead)
        groups = np.searchsorted(np.cumsum(file.groups), theirs, "right")
        for group in np.unique(groups):
            here = groups == group
            start = sum(file.groups[:group])
            arrays = _group(source.snapshot.reader, file, int(group), self.read)
            self._refuse(ours[here], [plain(array) for array in arrays], theirs[here] - start)

    def _check_tail(self, source: TableSnapshot, tail: Tail, *dead: Numbers) -> None:
        for piece in pieces_of_tail(tail, self.wanted, source):
            ours, theirs = _alive(*self.piece.pairs(piece), *dead)
            link: Tail | None = tail
            while link is not None and len(theirs):
                start = link.before.rows if link.before is not None else 0
                here = theirs >= start
                if here.any():
                    batch = link.part.batch(source.snapshot.reader.store)
                    self._refuse(ours[here], [_column(batch, column) for column in self.read], theirs[here] - start)
                    ours, theirs = ours[~here], theirs[~here]
                link = link.before

    def _refuse(self, ours: Numbers, arrays: Sequence[pa.Array], theirs: Numbers) -> None:
        """Refuses the first new row that has the values of a row of the table that stays."""
        same = _same(self.arrays, ours, arrays[: len(self.wanted)], theirs)
        if self.table.design.key and same.any():
            same &= ~self._is_replaced(ours, [array.take(pa.array(theirs)) for array in self._keys_of(arrays)])
        if same.any():
            raise self._violation(int(ours[same].min()))

    def _keys_of(self, arrays: Sequence[pa.Array]) -> Sequence[pa.Array]:
        return arrays[len(self.wanted) :]

    def _is_replaced(self, ours: Numbers, keys: Sequence[pa.Array]) -> NDArray[np.bool_]:
        """Which rows of the table, given by their keys, give way to rows that are written.

        Under SEQUENCE BY a row that is written may come too late to replace another, so that only its own key counts.
        """
        replaced = _same(self._keys_of(self.rows), ours, keys, np.arange(len(ours)))
        if not self.table.design.sequence:
            own, found = self._own.pairs(Piece.of(keys))
            replaced[found[_same(self._keys_of(self._all), own, keys, found)]] = True
        return replaced

    def _violation(self, row: int) -> UniqueViolation:
        shown = (text_values(array.slice(row, 1), column.type)[0] for array, column in zip(self.arrays, self.columns))
        return UniqueViolation(
            f'duplicate key value violates unique constraint "{self.rule.name}"',
            detail=f"Key ({', '.join(self.rule.columns)})=({', '.join(map(str, shown))}) already exists.",
            about={"schema": self.table.schema, "table": self.table.name, "constraint": self.rule.name},
        )


def _marks(batch: pa.RecordBatch) -> pa.Array | None:
    """Which rows say that a key goes; None where none can."""
    if DELETED not in batch.schema.names:
        return None
    return pc.fill_null(batch.column(DELETED), False)


def _alive(ours: Numbers, theirs: Numbers, *gone: Numbers) -> tuple[Numbers, Numbers]:
    """The pairs whose row of the table is there, in the order of the new rows."""
    for dead in gone:
        if len(ours) and len(dead):
            kept = ~np.isin(theirs, dead)
            ours, theirs = ours[kept], theirs[kept]
    order = np.argsort(ours, kind="stable")
    return ours[order], theirs[order]


def _same(left: Sequence[pa.Array], rows: Numbers, right: Sequence[pa.Array], others: Numbers) -> NDArray[np.bool_]:
    """Whether rows of two sets of columns are equal, pair by pair: NaN is NaN, and nothing is NULL."""
    same = np.ones(len(rows), np.bool_)
    if not len(rows):
        return same
    for one, other in zip(left, right):
        ours, theirs = one.take(pa.array(rows)), other.take(pa.array(others))
        if pa.types.is_nested(ours.type) or pa.types.is_interval(ours.type):
            same &= pc.equal(spelled(ours), spelled(theirs)).to_numpy(zero_copy_only=False)
            continue
        equal = pc.equal(ours, theirs)
        if pa.types.is_floating(ours.type):
            equal = pc.or_(equal, pc.and_(pc.is_nan(ours), pc.is_nan(theirs)))
        same &= pc.fill_null(equal, False).to_numpy(zero_copy_only=False)
    return same
