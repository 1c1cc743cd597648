"""One row by its key: the tail's index, then the files from the newest to the oldest, each by one row group.

    key ── runs of the tail, newest first ── hit
        └─ generations, newest first ── the row group whose range holds the key ── binary search ── hit

The first hit is the row, unless SEQUENCE BY asks for all of them. Nothing is put together for the whole table, so the first
look-up after a write costs as little as the next; but of a merge table, whose rows are. Spec: HTTP, GET /lookup.
"""

from __future__ import annotations

import decimal as number
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.narrow import widened_row
from lake.rows import Predicate
from lake.storage.catalog.model import DELETED, SYSTEM_COLUMNS, Column, DataFile, Table
from lake.storage.tables.keyed import KeyedTables, KeyedView, TailIndex
from lake.storage.tables.keys import Keys, encode, of_ints
from lake.storage.tables.prune import keeps_file
from lake.storage.tables.read import (
    Expiry,
    NotInMemory,
    Reader,
    Visible,
    Wanted,
    group_arrays,
    read_chunk,
    system_column,
)
from lake.storage.tables.runs import Rule, Run
from lake.storage.tail.tail import Tail
from lake.types import Date, Decimal, Integer, Text, Type

AT_ONCE_FILES_MAX: Final = 64  # of a table that who cannot wait looks through
DAY_MICROS: Final = 86_400_000_000
_EXACT: Final = number.Context(prec=40)


class _Hit(Struct, frozen=True, eq=False):
    """A stored row of the key: of a file's row group, or of the tail where ``file`` is None."""

    file: DataFile | None
    group: int
    row: int
    sequence: int


def expiry_cutoff(table: Table, now: int) -> int:
    """The last time, in the physical form of the TTL column, whose rows are there no longer at ``now``, in microseconds."""
    cutoff = now - table.design.ttl_secs * 1_000_000
    return cutoff // DAY_MICROS if isinstance(table.column_by_id(table.design.ttl).type, Date) else cutoff


def key_values(table: Table, predicates: Sequence[Predicate]) -> tuple[object, ...] | None:
    """The key that predicates ask for, or None where they leave it open."""
    given = {test.column: test.value for test in predicates if test.op == "=" and test.value is not None}
    key = table.key
    if any(column.name not in given for column in key):
        return None
    return tuple(given[column.name] for column in key)


def look_up(
    keyed: KeyedTables,
    reader: Reader,
    table: Table,
    tail: Tail | None,
    values: Sequence[object],
    wanted: Sequence[Wanted],
    now: int,
) -> list[pa.RecordBatch]:
    """The row of a key as one batch of ``wanted``, or no batch.

    values  of the key's columns, in physical form
    """
    rule = keyed.rule(table)
    probe = key_of(rule.key, values)
    if probe is None:
        return []  # no row of the table can have a value that its column cannot hold
    _check_near(reader, table, rule)
    if rule.combines:
        combined = _combined(keyed.view(reader, table, tail), rule, probe)
        if combined is not None:
            return read_chunk(combined, wanted)
    expiry = None
    if table.design.ttl:
        column = table.column_by_id(table.design.ttl)
        expiry = Expiry(Wanted.kept(column), expiry_cutoff(table, now))
    stored = _stored(keyed, reader, rule, table, tail, values, probe)
    if stored is None:
        return []
    if isinstance(stored, pa.RecordBatch):
        found = read_chunk(stored, wanted, Visible(expiry=expiry))
    else:
        found = _of_file(reader, stored, wanted, expiry)
    return [batch for batch in found if batch.num_rows]


def look_up_values(
    keyed: KeyedTables,
    reader: Reader,
    table: Table,
    tail: Tail | None,
    values: Sequence[object],
    wanted: Sequence[Wanted],
    now: int,
) -> tuple[Any, ...] | None:
    """The row that ``look_up`` answers as Python values, those of its physical types; None where there is none.

    Batches are worth their making where rows are many: of one row they are half the time.
    """
    rule = keyed.rule(table)
    stored: pa.RecordBatch | _Hit | None
    if rule.combines or table.design.ttl:
        stored = next(iter(look_up(keyed, reader, table, tail, values, wanted, now)), None)
    else:
        _check_near(reader, table, rule)
        probe = key_of(rule.key, values)
        stored = None if probe is None else _stored(keyed, reader, rule, table, tail, values, probe)
        if isinstance(stored, pa.RecordBatch):
            stored = read_chunk(stored, wanted)[0]
    if stored is None:
        return None
    if isinstance(stored, pa.RecordBatch):
        return tuple([column[0].as_py() for column in stored.columns])
    file, group, row = stored.file, stored.group, stored.row
    assert file is not None, "a hit in the tail is a row"
    found = group_arrays(reader, file, group, wanted, narrow=True)
    return tuple([found[column.stored][row].as_py() for column in wanted])


def _check_near(reader: Reader, table: Table, rule: Rule) -> None:
    """NotInMemory where whoever cannot wait would wait."""
    if not reader.waits and (rule.combines or len(table.files) > AT_ONCE_FILES_MAX):
        raise NotInMemory


def _stored(
    keyed: KeyedTables,
    reader: Reader,
    rule: Rule,
    table: Table,
    tail: Tail | None,
    values: Sequence[object],
    probe: Keys,
) -> pa.RecordBatch | _Hit | None:
    """Where the row of a key is: the row itself where the tail has it, else its place in a file; None of no row."""
    fresh: list[Tail] = []
    if rule.sequence is None and all(type(column.type) in (Integer, Text) for column in rule.key):
        index, fresh = keyed.index_near(reader, table, tail)
    else:
        index = keyed.index(reader, table, tail)
    row = _fresh_row(reader, rule.key, values, fresh)
    if row is not None:
        return None if _is_gone(row) else row
    hit = _winner(rule, _hits(keyed, reader, table, rule, index, probe, values))
    if hit is None or _is_marker(keyed, reader, index, hit):
        return None
    if hit.file is not None:
        return hit
    assert tail is not None, "a row of the tail has a tail"
    return tail.row(hit.row, reader.store)


def _fresh_row(
    reader: Reader, key: Sequence[Column], values: Sequence[object], links: Sequence[Tail]
) -> pa.RecordBatch | None:
    """The newest row of a key, a marker too, that links of a tail have; None if they have none."""
    asked = tuple(values)
    name = ("keys", *(column.stored for column in key))
    for link in links:
        known: list[tuple[object, ...]] | None = link.notes.get(name)
        if known is None:
            batch = link.part.batch(reader.store)
            known = link.notes[name] = list(zip(*(batch.column(column.stored).to_pylist() for column in key)))
        if asked in known:
            return link.part.row(len(known) - 1 - known[::-1].index(asked), reader.store)
    return None


def _is_gone(row: pa.RecordBatch) -> bool:
    return DELETED in row.schema.names and row.column(DELETED)[0].as_py() is True


def key_of(key: Sequence[Column], values: Sequence[object]) -> Keys | None:
    """The one key that ``values`` are, or None of a value that its column cannot hold."""
    try:
        if len(key) == 1 and isinstance(key[0].type, Integer) and isinstance(values[0], int):
            return of_ints(np.array([values[0]], np.int64))
        return encode(
            [_array(value, column.type) for value, column in zip(values, key, strict=True)],
            [column.type for column in key],
        )
    except (pa.ArrowException, OverflowError, TypeError):
        return None


def _array(value: object, type: Type) -> pa.Array:
    if isinstance(type, Decimal) and not type.is_short:
        assert isinstance(value, int), "decimals are whole numbers in physical form"
        return pa.array([number.Decimal(value).scaleb(-type.scale, _EXACT)], type.physical)
    return pa.array([value], type.physical)


def _hits(
    keyed: KeyedTables,
    reader: Reader,
    table: Table,
    rule: Rule,
    index: TailIndex,
    probe: Keys,
    values: Sequence[object],
) -> Iterator[_Hit]:
    """The stored rows of a key, newest first; a run or file that hides several shows one."""
    for run in reversed(index.runs):
        place = run.keys.place(probe)
        if place >= 0:
            yield _Hit(None, 0, int(run.rows[place]), _sequence(run, place))
    for file in reversed(table.files):
        fences = keyed.runs.known_fences(file)
        if fences is None:
            if not _may_hold(file, rule, values):
                continue
            fences = keyed.runs.fences(reader, rule, file)
        for group in fences.groups_of(probe):
            run = keyed.runs.run(reader, rule, file, group)
            place = run.keys.place(probe)
            if place >= 0:
                yield _Hit(file, group, int(run.rows[place]), _sequence(run, place))


def _may_hold(file: DataFile, rule: Rule, values: Sequence[object]) -> bool:
    """Whether the catalog's ranges leave it open that a file, which was not looked into yet, holds the key."""
    columns = {column.name: column for column in rule.key}
    tests = [Predicate(column.name, "=", value) for column, value in zip(rule.key, values)]
    return keeps_file(file, columns, tests)


def _sequence(run: Run, place: int) -> int:
    return int(run.sequence[place]) if run.sequence is not None else 0


def _winner(rule: Rule, hits: Iterator[_Hit]) -> _Hit | None:
    if rule.sequence is None:
        return next(hits, None)
    return max(hits, key=lambda hit: hit.sequence, default=None)  # of equal ones the first: hits come newest first


def _is_marker(keyed: KeyedTables, reader: Reader, index: TailIndex, hit: _Hit) -> bool:
    if hit.file is None:
        markers, row = index.markers, hit.row
    elif not hit.file.markers:
        return False
    else:
        markers, row = keyed.markers(reader, hit.file), sum(hit.file.groups[: hit.group]) + hit.row
    if not len(markers):
        return False
    at = int(markers.searchsorted(row))
    return at < len(markers) and int(markers[at]) == row


def _of_file(reader: Reader, hit: _Hit, wanted: Sequence[Wanted], expiry: Expiry | None) -> list[pa.RecordBatch]:
    """The row itself."""
    columns = [*wanted, *([expiry.column] if expiry is not None else [])]
    file, group, row = hit.file, hit.group, hit.row
    assert file is not None, "a hit in the tail is a row"
    made = set() if file.has_system else {column.stored for column in columns} & SYSTEM_COLUMNS.keys()
    found = group_arrays(reader, file, group, [column for column in columns if column.stored not in made], narrow=True)
    arrays = [
        system_column(file, group, column.stored, row, 1)
        if column.stored in made
        else widened_row(found[column.stored], row, column.type.physical)
        for column in columns
    ]
    if not columns:
        return read_chunk(pa.record_batch([pa.nulls(1)], ["none"]), [])
    if expiry is None:
        return [pa.RecordBatch.from_arrays(arrays, names=[column.name for column in wanted])]
    names = [column.stored for column in columns]
    return read_chunk(pa.RecordBatch.from_arrays(arrays, names=names), wanted, Visible(expiry=expiry))


def _combined(view: KeyedView, rule: Rule, probe: Keys) -> pa.RecordBatch | None:
    """The row of a merge table's key, where it was put together from several; they are in the order of keys."""
    if view.combined is None:
        return None
    columns = [view.combined.column(column.stored) for column in rule.key]
    found, _ = encode(columns, [column.type for column in rule.key]).match(probe)
    return view.combined.slice(int(found[0]), 1) if len(found) else None
