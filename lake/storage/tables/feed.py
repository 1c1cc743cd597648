"""The changes of a table, from its rows alone: what each commit added, and what it took away.

    rows    a@3  b@3  b@5 (gone since 7)  c@7             (row @ version)
    feed    3: insert a, insert b    5: update_preimage b@3, update_postimage b@5    7: delete b@5, insert c

A version of a row says which commit wrote it, and the record of deletions says which commit took it away; both stay as long
as the table's past does. So the feed needs no log: it goes as far back as the table can be read, and a reader that stopped
goes on wherever it was. Within a commit old versions come before new ones.
Spec: HTTP, Events (``/watch``); SQL, Events 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.errors import InvalidParameter
from lake.storage.catalog.deletes import NONE, Numbers, Positions
from lake.storage.catalog.model import CREATED_AT, ROW_ID, SYSTEM_COLUMNS, UPDATED_AT, VERSION, DataFile, Table
from lake.storage.tables.read import Reader, Wanted, chunk_column, read_group
from lake.storage.tables.snapshot import Snapshot, TableSnapshot

CHANGE_TYPE: Final = "_change_type"
INSERT, PREIMAGE, POSTIMAGE, DELETE = "insert", "update_preimage", "update_postimage", "delete"
STEP_ROWS: Final = 65_536  # of whole commits that are put in order at once; one larger commit comes in several pieces

ReadColumns = Callable[[Sequence[Wanted]], pa.RecordBatch]


class Piece(Struct, frozen=True):
    """Changes in their order: the table's columns, ``_change_type``, ``_row_id``, ``_version``, times.

    upto  everything up to this commit has been told: with the pieces before it, where a commit is told in several
    """

    batch: pa.RecordBatch
    upto: int


class _Block(Struct, frozen=True):
    """A row group of a file, or a chunk of a tail.

    low, high  versions of its rows are between
    gone       which of its rows are gone, and since when
    lost       the commit that emptied the table of all others, or 0
    """

    rows: int
    low: int
    high: int
    gone: Positions
    lost: int
    read: ReadColumns

    def born(self, after: int, upto: int) -> tuple[Numbers, Numbers]:
        """Rows written by commits after ``after`` up to ``upto``, and which commit wrote each."""
        if self.high <= after or self.low > upto:
            return NONE.at, NONE.at
        versions = self._versions()
        told = (versions > after) & (versions <= upto)
        told[self._passing()] = False
        rows = np.flatnonzero(told)
        return rows, versions[rows]

    def died(self, after: int, upto: int) -> tuple[Numbers, Numbers]:
        """Rows taken away by those commits, and by which."""
        within = (self.gone.numbers > after) & (self.gone.numbers <= upto)
        if within.any():
            within &= ~np.isin(self.gone.at, self._passing())
        rows, numbers = self.gone.at[within], self.gone.numbers[within]
        if after < self.lost <= upto:
            rest = np.setdiff1d(np.arange(self.rows), self.gone.at, assume_unique=True)
            rows = np.concatenate([rows, rest])
            numbers = np.concatenate([numbers, np.full(len(rest), self.lost, np.int64)])
        return rows, numbers

    def _versions(self) -> Numbers:
        found: Numbers = self.read([_SYSTEM[VERSION]]).column(0).to_numpy(zero_copy_only=False)
        return found

    def _passing(self) -> Numbers:
        """Rows that one commit wrote and took away, as a transaction may: nobody has ever seen them."""
        may = (self.gone.numbers >= self.low) & (self.gone.numbers <= self.high)
        if not may.any():
            return NONE.at
        at, numbers = self.gone.at[may], self.gone.numbers[may]
        passing: Numbers = at[self._versions()[at] == numbers]
        return passing

    def may_die(self, after: int, upto: int) -> bool:
        """Whether ``died`` may answer rows."""
        return after < self.lost <= upto or bool(((self.gone.numbers > after) & (self.gone.numbers <= upto)).any())


_SYSTEM: Final = {name: Wanted(name, name, type) for name, type in SYSTEM_COLUMNS.items()}


def check_position(snapshot: Snapshot, id: int, after: int) -> None:
    """Returns where all changes after commit ``after`` are still there.

    22023  they are not, or ``after`` is to come      42P01  the table is gone for good
    """
    table = snapshot.stored(id).table
    if after > snapshot.state.number:
        raise InvalidParameter(f"commit {after} is not there yet; the newest is {snapshot.state.number}")
    generations = [*_generations(snapshot, table)]
    oldest, first = generations[0].horizon, table.born
    if after < oldest and not (oldest == first and not table.family):
        raise InvalidParameter(
            f'changes of table "{table.name}" after commit {after} are no longer kept',
            hint=f"the oldest position is {oldest}",
        )
    for older, newer in pairwise(generations):
        if newer.horizon > older.lost and after < newer.horizon:
            raise InvalidParameter(
                f'changes of table "{table.name}" after commit {after} are no longer kept',
                hint=f"the oldest position is {newer.horizon}",
            )


def changes(
    snapshot: Snapshot, id: int, after: int, upto: int, *, old: bool, step_rows: int = STEP_ROWS
) -> Iterator[Piece]:
    """What commits after ``after`` changed, up to commit ``upto``; of a dropped table, what came before that.

    old    whether rows taken away are told; without them an update is its new row
    22023  ``check_position``
    """
    check_position(snapshot, id, after)
    table = snapshot.stored(id).table
    found = [*_blocks(snapshot, table, after)]
    while after < upto:
        to = _step(found, after, upto, old=old, step_rows=step_rows)
        waiting = None
        for batch in _told(table, [block for block in found if _concerns(block, after, to)], after, to, old, step_rows):
            if waiting is not None:
                yield Piece(waiting, after)
            waiting = batch
        yield Piece(_empty(table) if waiting is None else waiting, to)
        after = to


def _generations(snapshot: Snapshot, table: Table) -> Iterator[Table]:
    """The table's rows in time: those from before its TRUNCATEs, the oldest first, and its own."""
    yield from reversed([*TableSnapshot(snapshot, table).earlier()])
    yield table


def _blocks(snapshot: Snapshot, table: Table, after: int) -> Iterator[_Block]:
    """Where changes after ``after`` may be."""
    for each in _generations(snapshot, table):
        if each.owner and each.lost <= after:
            continue
        lost = each.lost if each.owner else 0
        rows = TableSnapshot(snapshot, each)
        sealed = [manifest for manifest in each.manifests if manifest.version_high > after or rows.deletes.files]
        files = [file for manifest in sealed for file in snapshot.manifests.files(manifest.path)]
        for file in (*files, *each.files):
            gone = rows.deletes.of(file.path)
            if file.version_high > after or lost or (gone.rows and gone.numbers.max() > after):
                yield from _groups(snapshot.reader, file, gone, lost)
        start = 0
        for chunk in rows.tail_chunks():
            versions = chunk.column(VERSION)
            gone = rows.deletes.tail.part(start, start + chunk.num_rows)
            start += chunk.num_rows
            if versions[-1].as_py() > after or lost or (gone.rows and gone.numbers.max() > after):
                read = partial(_read_chunk, chunk)
                yield _Block(chunk.num_rows, versions[0].as_py(), versions[-1].as_py(), gone, lost, read)


def _groups(reader: Reader, file: DataFile, gone: Positions, lost: int) -> Iterator[_Block]:
    start = 0
    for group, rows in enumerate(file.groups):
        read = partial(_read_file, reader, file, group)
        yield _Block(rows, file.version, file.version_high, gone.part(start, start + rows), lost, read)
        start += rows


def _read_file(reader: Reader, file: DataFile, group: int, wanted: Sequence[Wanted]) -> pa.RecordBatch:
    batches = read_group(reader, file, group, wanted)
    if len(batches) == 1:
        return batches[0]
    whole = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return whole.to_batches()[0]


def _read_chunk(chunk: pa.RecordBatch, wanted: Sequence[Wanted]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [chunk_column(chunk, column) for column in wanted], names=[column.name for column in wanted]
    )


def _concerns(block: _Block, after: int, upto: int) -> bool:
    return (block.high > after and block.low <= upto) or block.may_die(after, upto)


def _step(found: Sequence[_Block], after: int, upto: int, *, old: bool, step_rows: int) -> int:
    """The last commit of the next step: so many that their changes are few, one at least."""
    rows = 0
    for block in sorted((block for block in found if block.high > after), key=lambda block: block.low):
        if rows >= step_rows and block.low > after + 1:
            upto = min(upto, block.low - 1)
            break
        rows += block.rows
    numbers = [NONE.at]
    for block in found:
        if _concerns(block, after, upto):
            numbers.append(block.born(after, upto)[1])
            if old:
                numbers.append(block.died(after, upto)[1])
    commits, counts = np.unique(np.concatenate(numbers), return_counts=True)
    within = int(np.searchsorted(np.cumsum(counts), step_rows, side="right"))
    return upto if within >= len(commits) else int(commits[max(within, 1) - 1])


def _told(
    table: Table, found: Sequence[_Block], after: int, upto: int, old: bool, step_rows: int
) -> Iterator[pa.RecordBatch]:
    """The changes of a step: put in order where they are few, else those of the one commit, old versions first."""
    born = [block.born(after, upto) for block in found]
    died = [block.died(after, upto) if old else (NONE.at, NONE.at) for block in found]
    rows = sum(len(at) for at, _ in (*born, *died))
    if not rows:
        return
    new = [(block, at, numbers) for block, (at, numbers) in zip(found, born) if len(at)]
    gone = [(block, at, numbers) for block, (at, numbers) in zip(found, died) if len(at)]
    ids = (_ids(gone), _ids(new))
    if rows <= step_rows:
        parts = [_changed(table, part, ids[1], DELETE, PREIMAGE) for part in gone]
        parts += [_changed(table, part, ids[0], INSERT, POSTIMAGE) for part in new]
        whole = _joined(parts)
        numbers = whole.column(VERSION).to_numpy()
        is_new = np.repeat([False, True], [sum(len(at) for _, at, _ in gone), sum(len(at) for _, at, _ in new)])
        yield whole.take(pa.array(np.lexsort((np.arange(rows), is_new, numbers))))
        return
    for part in gone:
        yield _changed(table, part, ids[1], DELETE, PREIMAGE)
    for part in new:
        yield _changed(table, part, ids[0], INSERT, POSTIMAGE)


def _ids(parts: Sequence[tuple[_Block, Numbers, Numbers]]) -> Numbers:
    """Row id and commit of each change, ascending, as two columns of one array."""
    found = [np.empty((0, 2), np.int64)]
    for block, at, numbers in parts:
        ids = block.read([_SYSTEM[ROW_ID]]).column(0).to_numpy(zero_copy_only=False)[at]
        found.append(np.column_stack([numbers, ids]))
    whole = np.concatenate(found)
    return whole[np.lexsort((whole[:, 1], whole[:, 0]))]


def _changed(
    table: Table, part: tuple[_Block, Numbers, Numbers], others: Numbers, alone: str, paired: str
) -> pa.RecordBatch:
    """Rows of a block as changes: ``paired`` where the same commit has the row among ``others``, else ``alone``."""
    block, at, numbers = part
    wanted = [Wanted.named(column) for column in table.columns]
    batch = block.read([*wanted, _SYSTEM[ROW_ID], _SYSTEM[CREATED_AT], _SYSTEM[UPDATED_AT]]).take(pa.array(at))
    ids = batch.column(len(wanted)).to_numpy(zero_copy_only=False)
    is_paired = _are_in(np.column_stack([numbers, ids]), others)
    kinds = pa.array(np.where(is_paired, paired, alone), pa.string())
    plain = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in batch.columns]
    arrays = [*plain[: len(wanted)], kinds, pa.array(ids), pa.array(numbers), *plain[len(wanted) + 1 :]]
    return pa.RecordBatch.from_arrays(arrays, names=_names(table))


def _are_in(pairs: Numbers, others: Numbers) -> np.ndarray:
    """Which pairs are among ``others``, which are in order."""
    if not len(others):
        return np.zeros(len(pairs), np.bool_)
    form = np.dtype([("number", np.int64), ("id", np.int64)])
    held = np.ascontiguousarray(others).view(form).ravel()
    asked = np.ascontiguousarray(pairs).view(form).ravel()
    at = np.minimum(np.searchsorted(held, asked), len(held) - 1)
    found: np.ndarray = held[at] == asked
    return found


def _names(table: Table) -> list[str]:
    return [*(column.name for column in table.columns), CHANGE_TYPE, ROW_ID, VERSION, CREATED_AT, UPDATED_AT]


def _joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(parts) if len(parts) > 1 else parts[0]


def _empty(table: Table) -> pa.RecordBatch:
    types = [column.type.physical for column in table.columns]
    types += [pa.string(), pa.int64(), pa.int64(), SYSTEM_COLUMNS[CREATED_AT].physical, SYSTEM_COLUMNS[UPDATED_AT].physical]
    return pa.RecordBatch.from_arrays([pa.array([], type) for type in types], names=_names(table))
