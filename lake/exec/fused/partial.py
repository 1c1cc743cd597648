"""Batches of a scan taken whole into partial groups, by a loop that filters and aggregates them.

    fused = fuse(scan, layout, context)
    fused.take(batch)      False: there is no loop yet, or none for such a batch: filter and aggregate it in the plain way
    fused.finish()         the groups of all batches that were taken, as those of further workers

Groups are places in a small table of the keys' ranges: a dictionary's codes, or whole numbers from a low one on, and one
more for NULL. A loop writes into a table of its own, which is added to the worker's once it went well; when a batch comes
with other dictionaries or ranges, the worker's table is emptied into groups first.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.fused.compiler import Loop, loop_of
from lake.exec.fused.emit import LANES, is_wide, words_of
from lake.exec.fused.expressions import DIGITS, LOW_BITS
from lake.exec.fused.shape import WORD, Shape, shape_of
from lake.exec.kernels import decimals
from lake.exec.kernels.aggregates import INT64_MAX
from lake.exec.kernels.groups import is_same_memory
from lake.exec.kernels.views import ALL_VALID, Ints, mask_of, to_array, values_of
from lake.exec.operators.base import Metrics
from lake.exec.operators.hash_aggregate import Groups, Layout
from lake.exec.operators.scan import Scan
from lake.exec.operators.tally import make_tallies

PLACES_MAX: Final = 4_096
"""A table of more places is made and added up for each batch in more time than the plain way takes for it."""
LANED_PLACES_MAX: Final = 512
"""Where there are more places, the next row seldom waits for its group's sum: all rows go to one table."""
GROUPS_MAX: Final = 1 << 16
"""A worker that has found so many groups leaves the rest to the plain way, which deals them to partitions."""
TRIAL_ROWS: Final = 1_000_000
SPARSE_ROWS: Final = 100_000
"""Where of TRIAL_ROWS rows less than one in so many passed, row groups may have none: the other columns are then not read."""
WINDOWS: Final = (1_003, 1_023, 983)
"""Exponent fields of the least doubles whose sum is tried, each after the one before failed: from 1e-6 up to 8e9, from 1 up
to 9e15, from 1e-12 up to 8,000."""
FAILURES_MAX: Final = 4
"""After so many batches that overflowed none is tried again."""

_KINDS: Final = {
    pa.int8().id: "int8", pa.int16().id: "int16", pa.int32().id: "int32", pa.int64().id: "int64", pa.bool_().id: "bool",
    pa.date32().id: "int32", pa.timestamp("us").id: "int64", pa.time64("us").id: "int64",
    pa.float32().id: "float", pa.float64().id: "double",
}  # fmt: skip
_WIDTHS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


class Input(Struct):
    """A batch's columns as a loop takes them: values, validity and, of dictionaries, entries."""

    rows: int
    kinds: tuple[str, ...]
    values: list[Ints]
    valids: list[Ints]
    entries: list[pa.Array | None]


class KeyRange(Struct, frozen=True):
    """The values of a key that have a place: ``span`` of them from ``low`` on, or codes of ``entries``; NULL has the last."""

    low: int
    span: int
    entries: pa.Array | None = None

    def holds(self, other: KeyRange) -> bool:
        """Whether the other's values have a place here."""
        if self.entries is not None and other.entries is not None:
            return is_same_memory(self.entries, other.entries) or bool(self.entries.equals(other.entries))
        return self.low <= other.low and other.low + other.span <= self.low + self.span

    def widened(self, other: KeyRange) -> KeyRange:
        """The range of both; of other entries theirs."""
        if other.entries is not None:
            return other
        low = min(self.low, other.low)
        return KeyRange(low, max(self.low + self.span, other.low + other.span) - low)

    def array(self, slots: Ints, type: pa.DataType) -> pa.Array:
        """The values of places."""
        valid = (slots < self.span).astype(np.uint8)
        if self.entries is not None:
            return pa.DictionaryArray.from_arrays(to_array(slots * valid, pa.int32(), valid), self.entries)
        return to_array(np.where(valid, self.low + slots, 0), type, valid)


def fuse(scan: Scan, layout: Layout, context: Context) -> Fused | None:
    """Has a scan's batches taken by loops, where all that is done with them is covered."""
    tallies = make_tallies(layout.calls, context.settings)
    shape = shape_of(scan.filters, layout.exprs, layout.key_count, tallies, context)
    if shape is None:
        return None
    fused = Fused(shape, layout, context, scan.metrics)
    scan.taker = fused
    return fused


class Fused:
    """One aggregation over a scan, taken in by loops; threads share it.

    metrics   the scan's, which is told how many rows passed
    """

    def __init__(self, shape: Shape, layout: Layout, context: Context, metrics: Metrics) -> None:
        self.shape = shape
        self.metrics = metrics
        self.layout = layout
        self.context = context
        self.failures = 0
        self.seen = self.passed = 0
        self._idle: deque[Partial] = deque()
        self._numbers: dict[tuple[str, ...], list[int]] = {}

    @property
    def is_useful(self) -> bool:
        """Whether a batch is likely to have rows that pass; counted by all workers without a lock: a rough guess does."""
        return self.seen < TRIAL_ROWS or self.passed * SPARSE_ROWS >= self.seen

    def take(self, batch: pa.RecordBatch) -> bool:
        """Filters and aggregates a batch, if there is a loop for it and nothing overflows."""
        if self.failures >= FAILURES_MAX:
            return False
        self.context.cancellation.check()
        given = input_of([batch.column(name) for name in self.shape.columns], batch.num_rows)
        loop = None if given is None else loop_of((self.shape.plan, given.kinds), given.rows)
        if given is None or loop is None or (marks := self._marks(given)) is None:
            return False
        try:
            partial = self._idle.pop()
        except IndexError:
            partial = Partial(self)
        taken = partial.add(loop, given, marks, self._numbers_for(given.kinds))
        self._idle.append(partial)
        return taken

    def finish(self) -> list[Groups]:
        """The groups of what was taken, a list for each worker; called once, when no worker runs any more."""
        for partial in self._idle:
            partial.empty()
            self.metrics.rows += partial.groups.rows
        return [partial.groups for partial in self._idle]

    def _marks(self, given: Input) -> list[Ints] | None:
        """uint8[entries + 1] for each condition of a text, NULL's first; None where one is not run over the dictionary."""
        made = []
        for text in self.shape.texts:
            entries = given.entries[text.column]
            marks = None if entries is None else text.test.marks(entries, given.rows)
            if marks is None:
                return None
            made.append(np.concatenate((marks[-1:], marks[:-1])))
        return made

    def _numbers_for(self, kinds: tuple[str, ...]) -> list[int]:
        """The constants; those of ranges cut to what their columns' widths hold."""
        known = self._numbers.get(kinds)
        if known is None:
            known = list(self.shape.numbers)
            for place, column in self.shape.ranges:
                limit = 1 << (_WIDTHS[kinds[column].removesuffix("?")] - 1)
                low, high = max(known[place], -limit), min(known[place + 1], limit - 1)
                known[place : place + 2] = (low, high) if low <= high else (1, 0)
            self._numbers[kinds] = known
        return known


def input_of(arrays: Sequence[pa.Array], rows: int) -> Input | None:
    """The columns as a loop takes them; None where one is of a kind that no loop takes."""
    given = Input(rows, (), [], [], [])
    kinds = []
    for array in arrays:
        entries = array.dictionary if isinstance(array, pa.DictionaryArray) else None
        whole = array if entries is None else array.indices
        kind = _KINDS.get(whole.type.id)
        if kind is None or (entries is not None and entries.null_count):
            return None
        valid = mask_of(whole) if whole.null_count else ALL_VALID
        kinds.append(kind + "?" if valid.size else kind)
        given.values.append(values_of(whole))
        given.valids.append(valid)
        given.entries.append(entries)
    given.kinds = tuple(kinds)
    return given


class Partial:
    """What one worker's loops have found: a table of places, and the groups that earlier ones were emptied into."""

    def __init__(self, fused: Fused) -> None:
        self._fused = fused
        self._plan = fused.shape.plan
        keys = tuple(range(len(self._plan.keys)))
        self.groups = Groups(fused.layout, keys, fused.context)
        self._ranges: tuple[KeyRange, ...] | None = None
        self._kinds: tuple[str, ...] = ()
        self._window = 0
        self._adds: Ints = np.zeros((0, 0), np.int64)
        self._leasts: Ints = np.zeros((0, 0), np.int64)
        self._bound = 0

    def add(self, loop: Loop, given: Input, marks: list[Ints], constants: list[int]) -> bool:
        """Takes a batch; False, and nothing is changed, where it has to go the plain way."""
        ranges = self._ranges_with(given)
        if ranges is None or self.groups.count > GROUPS_MAX:
            return False
        _, add_words, least_words = words_of(self._plan, given.kinds)
        strides = [math.prod(each.span + 1 for each in ranges[:index]) for index in range(len(ranges) + 1)]
        places = strides[-1]
        lanes = LANES if ranges and places <= LANED_PLACES_MAX else 1
        numbers = list(constants)
        for each, stride in zip(ranges, strides, strict=False):
            numbers += [each.low, each.span, stride]
        window = WINDOWS[self._fused.failures % len(WINDOWS)]
        numbers += [places if lanes > 1 else 0, window]
        adds = np.zeros((lanes, places, add_words), np.int64)
        leasts = np.full((lanes, places, least_words), WORD[1], np.int64)
        pointers = np.array([array.ctypes.data for array in (*given.values, *given.valids, *marks)], np.uintp)
        if not loop(given.rows, pointers, np.array(numbers, np.int64), adds, leasts):
            self._fused.failures += 1
            return False
        self._fused.seen += given.rows
        self._fused.passed += int(adds[:, :, 0].sum())
        bound = max(int(adds.max()), -int(adds.min())) * lanes
        if bound > INT64_MAX:
            return False
        form = (given.kinds, window)
        if ranges is not self._ranges or form != (self._kinds, self._window) or self._bound + bound > INT64_MAX:
            self.empty()
            self._ranges, self._kinds, self._window = ranges, *form
            self._adds, self._leasts, self._bound = adds.sum(axis=0), leasts.min(axis=0), bound
        else:
            self._adds += adds.sum(axis=0)
            np.minimum(self._leasts, leasts.min(axis=0), out=self._leasts)
            self._bound += bound
        return True

    def empty(self) -> None:
        """Empties the table of places into the groups."""
        if self._ranges is None:
            return
        held = np.flatnonzero(self._adds[:, 0]) if self._ranges else np.zeros(1, np.int64)
        adds, leasts = self._adds[held], self._leasts[held]
        self.groups.rows += int(adds[:, 0].sum())
        numbers = self._number(held)
        tallies = make_tallies(self._fused.layout.calls, self._fused.context.settings)
        shape = self._fused.shape
        words = words_of(self._plan, self._kinds)[0]
        for place, call, (word, count) in zip(shape.fills, self._plan.calls, words, strict=True):
            values = (leasts if call[0] in ("least", "most") else adds)[:, word].copy()
            if call[0] == "sum" and is_wide(call[1], self._kinds):
                values = _joined(values, adds[:, word + 1])
            state: Any = tallies[place].accumulator
            if call[0] == "real sum":
                state.load(adds[:, word : word + DIGITS], adds[:, count].copy(), self._window)
            else:
                state.load(values, adds[:, count].copy())
        for mine, theirs in zip(self.groups.tallies, tallies, strict=True):
            mine.merge(theirs, numbers, self.groups.count)
        self._ranges = None

    def _number(self, held: Ints) -> Ints:
        """The groups of places, which get numbers where they have none."""
        if self.groups.table is None or not len(held):
            return np.zeros(len(held), np.int64)
        arrays, rest = [], held
        for each, expr in zip(self._ranges or (), self._fused.layout.exprs, strict=False):
            arrays.append(each.array(rest % (each.span + 1), expr.type.physical))
            rest = rest // (each.span + 1)
        numbers: Ints = self.groups.table.insert(arrays)
        return numbers

    def _ranges_with(self, given: Input) -> tuple[KeyRange, ...] | None:
        """The ranges of keys with a batch's: those known where they will do, both where that is few places, else its own."""
        own = tuple(_range_of(given, column) for column in self._plan.keys)
        known = self._ranges
        if known is not None:
            if all(one.holds(other) for one, other in zip(known, own, strict=True)):
                return known
            both = tuple(one.widened(other) for one, other in zip(known, own, strict=True))
            if _places(both) <= PLACES_MAX:
                return both
        return own if _places(own) <= PLACES_MAX else None


def _joined(low: Ints, high: Ints) -> Ints:
    """int64[groups, 2]: sums from those of low 32 bits and of the others, in two words; int64[groups] where one will do."""
    carried = high + (low >> 32)
    words = np.stack(((carried << 32) | (low & LOW_BITS), carried >> 32), axis=1)
    narrow = decimals.narrow(words)
    return words if narrow is None else narrow


def _range_of(given: Input, column: int) -> KeyRange:
    entries = given.entries[column]
    if entries is not None:
        return KeyRange(0, len(entries), entries)
    values, valid = given.values[column], given.valids[column]
    if valid.size:
        values = values[valid != 0]
    if not len(values):
        return KeyRange(0, 0)
    low = int(values.min())
    return KeyRange(low, int(values.max()) - low + 1)


def _places(ranges: Sequence[KeyRange]) -> int:
    return math.prod(each.span + 1 for each in ranges)
