"""Runs: rows of one source in the order of their keys, each key once. What merge on read compares.

    a row group of a generation    a run, read once and kept
    new rows of the tail           a run, put together with those before it as they grow

Of rows with one key the newest is kept, or with SEQUENCE BY the one whose value is greatest; of equals the newest. In a
merge table no row loses to another: rows whose key is there more than once are combined, and the run keeps one to be found.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.storage.catalog.model import Column, DataFile, Table
from lake.storage.tables.keys import Ints, Keys, encode, joined, of_ints, order_numbers
from lake.storage.tables.read import Reader, Wanted, group_arrays
from lake.types import Date, Integer, Time, Timestamp

RUN_BYTES: Final = 512 << 20  # of runs of row groups that are kept
NO_ROWS: Final[Ints] = np.empty(0, np.int64)
_IDENTITY: Final[Ints] = np.arange(65_536, dtype=np.int64)  # shared by the runs of sorted row groups


class Run(Struct, frozen=True, eq=False):
    """Rows of one source.

    keys      ascending, each once
    rows      the place of each in its source
    sequence  the value of each in the order of SEQUENCE BY, or None where the last arrival wins
    """

    keys: Keys
    rows: Ints
    sequence: Ints | None

    def __len__(self) -> int:
        return len(self.rows)


class Rule(Struct, frozen=True):
    """What tells rows of one key apart.

    key       the key's columns
    sequence  the column of SEQUENCE BY, or None
    combines  whether they are combined instead
    """

    key: tuple[Column, ...]
    sequence: Column | None
    combines: bool

    @staticmethod
    def of(table: Table) -> Rule:
        """A keyed table's."""
        sequence = table.column_by_id(table.design.sequence) if table.design.sequence else None
        return Rule(table.key, sequence, table.kind == "merge")

    @property
    def columns(self) -> list[Wanted]:
        """What it reads of rows."""
        found = [*self.key, *([self.sequence] if self.sequence else [])]
        return [Wanted.kept(column) for column in found]

    def keys(self, arrays: Sequence[pa.Array]) -> Keys:
        """The keys of rows of which ``columns`` were read."""
        return encode(arrays[: len(self.key)], [column.type for column in self.key])

    def numbers(self, arrays: Sequence[pa.Array]) -> Ints | None:
        """Their values in the order of SEQUENCE BY."""
        return order_numbers(arrays[-1], self.sequence.type) if self.sequence else None


def run_of(rule: Rule, keys: Keys, rows: Ints, sequence: Ints | None) -> tuple[Run, Ints]:
    """The run of rows in the order of arrival, and those of them that are not to be seen as they are.

    These have lost to another row, or are to be combined.
    """
    if sequence is None:
        order = keys.order()
    else:
        order = np.argsort(sequence, kind="stable")
        order = order[keys.take(order).order()]
    ordered = keys.take(order)
    repeats = ordered.repeats()
    if not repeats.any():
        return Run(ordered, rows[order], None if sequence is None else sequence[order]), NO_ROWS
    is_last = np.append(~repeats[1:], True)
    kept = order[is_last]
    hidden = order[repeats | ~is_last] if rule.combines else order[~is_last]
    run = Run(ordered.take(np.flatnonzero(is_last)), rows[kept], None if sequence is None else sequence[kept])
    return run, np.sort(rows[hidden])


def put_together(rule: Rule, older: Run, newer: Run) -> Run:
    """One run of two."""
    sequence = None
    if older.sequence is not None and newer.sequence is not None:
        sequence = np.concatenate([older.sequence, newer.sequence])
    rows = np.concatenate([older.rows, newer.rows])
    return run_of(rule, joined([older.keys, newer.keys]), rows, sequence)[0]


def meet(rule: Rule, older: Run, newer: Run) -> tuple[Ints, Ints]:
    """The rows of each of two runs that are hidden by the other."""
    left, right = older.keys.match(newer.keys) if len(older) and len(newer) else (NO_ROWS, NO_ROWS)
    if not len(left):
        return NO_ROWS, NO_ROWS
    if rule.combines:
        return older.rows[left], newer.rows[right]
    if older.sequence is None or newer.sequence is None:
        return older.rows[left], NO_ROWS
    newer_wins = newer.sequence[right] >= older.sequence[left]
    return older.rows[left[newer_wins]], newer.rows[right[~newer_wins]]


def merged_rows(known: Ints, more: Ints) -> Ints:
    """Two ascending sets of rows as one; ``more`` need not be in order."""
    if not len(more):
        return known
    if len(more) > 1 and not bool((more[1:] > more[:-1]).all()):
        more = np.sort(more)  # thirty times as fast as np.unique, which hashes
        more = more[np.append(True, more[1:] != more[:-1])]
    if not len(known):
        return more
    if known[-1] < more[0]:
        return np.concatenate([known, more])
    is_new = known[np.minimum(np.searchsorted(known, more), len(known) - 1)] != more
    found = np.concatenate([known, more[is_new]])
    found.sort(kind="stable")  # which merges ascending runs in one pass
    return found


class Fences(Struct, frozen=True, eq=False):
    """The first and the last key of each row group of a file; ``is_sorted`` where groups follow each other by key."""

    first: Keys
    last: Keys
    is_sorted: bool

    @staticmethod
    def of(first: Keys, last: Keys) -> Fences:
        """Fences of row groups in the order of the file."""
        order = joined([keys.slice(at, at + 1) for at in range(len(first)) for keys in (first, last)]).order()
        return Fences(first, last, bool((order[1:] > order[:-1]).all()))

    def spans(self, probes: Keys) -> list[tuple[int, int]]:
        """For each row group, which of sorted ``probes`` it may hold: from, and to before."""
        if self.is_sorted:
            ends = zip(probes.bounds(self.first).tolist(), probes.bounds(self.last).tolist())
        else:
            pairs = [self.first.slice(at, at + 1) for at in range(len(self.first))]
            lasts = [self.last.slice(at, at + 1) for at in range(len(self.last))]
            ends = zip([int(probes.bounds(one)[0]) for one in pairs], [int(probes.bounds(one)[0]) for one in lasts])
        return [(low, min(high + 1, len(probes))) for low, high in ends]

    def groups_of(self, probe: Keys) -> list[int]:
        """The row groups that may hold a key."""
        if not self.is_sorted:
            return [group for group, (low, high) in enumerate(self.spans(probe)) if low < high]
        if self.first.ints is not None and probe.ints is not None:
            wanted = probe.ints[0]
            at = int(self.first.ints.searchsorted(wanted, "right")) - 1
            assert self.last.ints is not None, "keys of one table have one form"
            return [at] if at >= 0 and wanted <= self.last.ints[at] else []
        at = int(self.first.bounds(probe)[0])
        return [group for group in (at - 1, at) if 0 <= group < len(self.first)]


class GroupRuns:
    """Runs of row groups, and the first and last key of each, kept within a budget."""

    def __init__(self, budget: int = RUN_BYTES) -> None:
        self._budget = budget
        self._kept: OrderedDict[tuple[str, int, int], tuple[Run, int]] = OrderedDict()
        self._fences: dict[str, Fences] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def run(self, reader: Reader, rule: Rule, file: DataFile, group: int) -> Run:
        """The run of a row group; rows are counted from the group's first."""
        name = (file.path, group, rule.sequence.id if rule.sequence else 0)
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
                return found[0]
        made = self._read(reader, rule, file, group)
        is_own = made.rows.base is not _IDENTITY
        size = made.keys.nbytes + is_own * made.rows.nbytes + (0 if made.sequence is None else made.sequence.nbytes)
        with self._lock:
            if name not in self._kept:
                self._kept[name] = (made, size)
                self._bytes += size
                while self._bytes > self._budget and len(self._kept) > 1:
                    _, (_, freed) = self._kept.popitem(last=False)
                    self._bytes -= freed
        return made

    def known_fences(self, file: DataFile) -> Fences | None:
        """The fences of a file that was looked into before."""
        return self._fences.get(file.path)

    def fences(self, reader: Reader, rule: Rule, file: DataFile) -> Fences:
        """The first and the last key of each row group of a file."""
        found = self._fences.get(file.path)
        if found is None:
            found = _fences_of_footer(reader, rule, file) or self._fences_of_runs(reader, rule, file)
            self._fences[file.path] = found
        return found

    def _fences_of_runs(self, reader: Reader, rule: Rule, file: DataFile) -> Fences:
        groups = [self.run(reader, rule, file, group).keys for group in range(len(file.groups))]
        first = joined([keys.slice(0, 1) for keys in groups])
        return Fences.of(first, joined([keys.slice(len(keys) - 1, len(keys)) for keys in groups]))

    def forget(self, paths: set[str]) -> None:
        """Lets go of files that are no longer read."""
        with self._lock:
            for name in [name for name in self._kept if name[0] in paths]:
                self._bytes -= self._kept.pop(name)[1]
            for path in paths:
                self._fences.pop(path, None)

    def _read(self, reader: Reader, rule: Rule, file: DataFile, group: int) -> Run:
        columns = rule.columns
        found = group_arrays(reader, file, group, columns)
        arrays = [found[column.stored] for column in columns]
        keys, sequence = rule.keys(arrays), rule.numbers(arrays)
        order = keys.order()
        if len(order) and bool((order[1:] > order[:-1]).all()):
            # Sorted by key already, as generations without CLUSTER BY are; a copy frees what else the view would hold.
            own = of_ints(keys.ints.copy()) if keys.ints is not None else keys
            return Run(own, _IDENTITY[: len(order)] if len(order) <= len(_IDENTITY) else order, sequence)
        return Run(keys.take(order), order, None if sequence is None else sequence[order])


def meet_file(
    runs: GroupRuns, reader: Reader, rule: Rule, file: DataFile, newer: Run
) -> tuple[Ints, Ints]:
    """As ``meet``, of all row groups of a file; one is read only where keys may be shared."""
    lost, losing = [NO_ROWS], [NO_ROWS]
    start = 0
    for group, (low, high) in enumerate(runs.fences(reader, rule, file).spans(newer.keys)):
        if low < high:
            sequence = None if newer.sequence is None else newer.sequence[low:high]
            cut = Run(newer.keys.slice(low, high), newer.rows[low:high], sequence)
            left, right = meet(rule, runs.run(reader, rule, file, group), cut)
            lost.append(left + start)
            losing.append(right)
        start += file.groups[group]
    return np.sort(np.concatenate(lost)), np.sort(np.concatenate(losing))


def _fences_of_footer(reader: Reader, rule: Rule, file: DataFile) -> Fences | None:
    """Fences by the footer's statistics: of keys that are one whole number or time."""
    if len(rule.key) != 1 or not isinstance(rule.key[0].type, Integer | Date | Time | Timestamp):
        return None
    column = rule.key[0]
    footer = reader.footer(file)
    layout = reader.footers.layout(file.path, footer)
    place = layout.places.get(column.stored)
    if place is None:
        return None
    ranges = [layout.ranges.of(group, place, column.type) for group in range(len(file.groups))]
    lows = [found.low for found in ranges if found is not None and isinstance(found.low, int)]
    highs = [found.high for found in ranges if found is not None and isinstance(found.high, int)]
    if len(lows) < len(ranges) or len(highs) < len(ranges):
        return None
    return Fences.of(of_ints(np.array(lows, np.int64)), of_ints(np.array(highs, np.int64)))
