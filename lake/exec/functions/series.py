"""Series of numbers and moments, as lists and as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.errors import InvalidParameter, ProgramLimitExceeded
from lake.exec.cast import MICROSECONDS_OF_DAY, interval_parts
from lake.exec.constants import list_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import columns
from lake.exec.functions.intervals import add_months
from lake.exec.functions.lists import ITEMS_MAX, ranges
from lake.exec.kernels import views
from lake.rows import Part, Predicate
from lake.sql.catalog import ColumnStatistics, Settings, Table, TableColumn, TableStatistics
from lake.sql.literals import EPOCH, ONE_MICROSECOND
from lake.sql.registry import CallInfo, scalar, table_function
from lake.types import BIGINT, TIMESTAMP, TIMESTAMPTZ, List, Type

GROUP: Final = "lists"
PART_ROWS: Final = 1 << 20
BATCH_ROWS: Final = 1 << 16


def series_length(start: Any, stop: Any, step: Any, *, inclusive: bool) -> Any:
    """How many numbers there are from ``start`` to ``stop`` by ``step``, which is not 0."""
    # Distances and sizes are taken unsigned: they may be twice as large as the numbers.
    up = step > 0
    low, high = np.where(up, start, stop), np.where(up, stop, start)
    apart = high.astype(np.uint64) - low.astype(np.uint64)
    size = np.where(up, step, np.negative(step)).astype(np.uint64)
    there = high >= low if inclusive else high > low
    apart = apart - (there & (not inclusive)).astype(np.uint64)
    steps = np.minimum(apart // size, np.uint64(1 << 62))
    return np.where(there, steps.astype(np.int64) + 1, 0)


# --- lists of numbers ------------------------------------------------------------------------------------------------


@scalar("generate_series(stop BIGINT) -> BIGINT[]", group=GROUP)
@scalar("generate_series(start BIGINT, stop BIGINT) -> BIGINT[]", group=GROUP)
@scalar("generate_series(start BIGINT, stop BIGINT, step BIGINT) -> BIGINT[]", group=GROUP)
def generate_series_list(*arguments: Value) -> pa.Array:
    """The numbers from a start (0) to a stop, that taken in, by a step (1).

    >>> generate_series(1, 10, 4)
    [1, 5, 9]

    22023  a step of 0
    """
    return _numbers(arguments, inclusive=True)


@scalar("range(stop BIGINT) -> BIGINT[]", group=GROUP)
@scalar("range(start BIGINT, stop BIGINT) -> BIGINT[]", group=GROUP)
@scalar("range(start BIGINT, stop BIGINT, step BIGINT) -> BIGINT[]", group=GROUP)
def range_list(*arguments: Value) -> pa.Array:
    """The numbers from a start (0) up to a stop, that left out, by a step (1).

    >>> range(2, 10, 3)
    [2, 5, 8]

    22023  a step of 0
    """
    return _numbers(arguments, inclusive=False)


def _numbers(arguments: Sequence[Value], *, inclusive: bool) -> pa.Array:
    given = columns(*arguments)
    numbers = [views.values_of(column) for column in given]
    rows = len(given[0])
    start = np.zeros(rows, np.int64) if len(numbers) == 1 else numbers[0]
    step = np.ones(rows, np.int64) if len(numbers) < 3 else numbers[2]
    live = _live(given)
    if ((step == 0) & live).any():
        raise InvalidParameter("step size cannot equal zero")
    step = np.where(live, step, 1)
    counts = series_length(start, numbers[min(len(numbers) - 1, 1)], step, inclusive=inclusive)
    counts = np.where(live, counts, 0)
    if int(counts.max(initial=0)) > ITEMS_MAX or int(counts.sum()) > ITEMS_MAX:
        raise ProgramLimitExceeded(f"a range of more than {ITEMS_MAX} numbers is too large for a list")
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return list_array(offsets, pa.array(ranges(start, counts, step)), None if live.all() else live.astype(np.uint8))


def _live(given: Sequence[pa.Array]) -> Any:
    """bool[rows]: where no argument is NULL."""
    live = np.ones(len(given[0]), np.bool_)
    for column in given:
        valid = views.valid_of(column)
        if valid is not None:
            live &= valid == 1
    return live


# --- lists of moments ------------------------------------------------------------------------------------------------


@scalar("generate_series(start DATE, stop DATE, step INTERVAL) -> DATE[]", group=GROUP, takes_call=True)
@scalar("generate_series(start TIMESTAMP, stop TIMESTAMP, step INTERVAL) -> TIMESTAMP[]", group=GROUP, takes_call=True)
@scalar("generate_series(start TIMESTAMPTZ, stop TIMESTAMPTZ, step INTERVAL) -> TIMESTAMPTZ[]", group=GROUP,
        takes_call=True)  # fmt: skip
def generate_moments_list(start: Value, stop: Value, step: Value, *, call: CallInfo) -> pa.Array:
    """The moments from a start to a stop, that taken in, by a step.

    >>> generate_series(DATE '2024-01-01', DATE '2024-03-01', INTERVAL '1 month')
    [2024-01-01, 2024-02-01, 2024-03-01]

    22023  a step of nothing
    """
    return _moments(start, stop, step, call, inclusive=True)


@scalar("range(start DATE, stop DATE, step INTERVAL) -> DATE[]", group=GROUP, takes_call=True)
@scalar("range(start TIMESTAMP, stop TIMESTAMP, step INTERVAL) -> TIMESTAMP[]", group=GROUP, takes_call=True)
@scalar("range(start TIMESTAMPTZ, stop TIMESTAMPTZ, step INTERVAL) -> TIMESTAMPTZ[]", group=GROUP, takes_call=True)
def range_moments_list(start: Value, stop: Value, step: Value, *, call: CallInfo) -> pa.Array:
    """The moments from a start up to a stop, that left out, by a step.

    >>> range(DATE '2024-01-01', DATE '2024-03-01', INTERVAL '1 month')
    [2024-01-01, 2024-02-01]

    22023  a step of nothing
    """
    return _moments(start, stop, step, call, inclusive=False)


def _moments(start: Value, stop: Value, step: Value, call: CallInfo, *, inclusive: bool) -> pa.Array:
    given = columns(start, stop, step)
    unit = MICROSECONDS_OF_DAY if pa.types.is_date(given[0].type) else 1
    first, last = (views.values_of(column).astype(np.int64) * unit for column in given[:2])
    parts = [part.tolist() for part in interval_parts(given[2])]
    live = _live(given)
    made: list[Any] = []
    for row in range(len(given[0])):
        if live[row]:
            size = (parts[0][row], parts[1][row], parts[2][row])
            if unit > 1 and size[:2] == (0, 0) and abs(size[2]) < 1000 * MICROSECONDS_OF_DAY:
                raise InvalidParameter("a list of dates goes by a day or more")
            made.append(moment_series(int(first[row]), int(last[row]), size, inclusive=inclusive) // unit)
        else:
            made.append(np.empty(0, np.int64))
    offsets = np.concatenate(([0], np.cumsum([len(piece) for piece in made])))
    assert isinstance(call.returns, List)
    items = views.to_array(np.concatenate(made) if made else np.empty(0, np.int64), call.returns.of.physical)
    return list_array(offsets, items, None if live.all() else live.astype(np.uint8))


def moment_series(start: int, stop: int, step: tuple[int, int, int], *, inclusive: bool) -> Any:
    """int64: microseconds from ``start`` to ``stop`` by months, days and nanoseconds.

    22023  a step of nothing
    """
    months, days, nanoseconds = step
    fixed = days * MICROSECONDS_OF_DAY + nanoseconds // 1000
    if months == 0:
        if fixed == 0:
            raise InvalidParameter("step size cannot equal zero")
        count = int(series_length(np.int64(start), np.int64(stop), np.int64(fixed), inclusive=inclusive))
        if count > ITEMS_MAX:
            raise ProgramLimitExceeded(f"a series of {count} moments")
        return start + np.arange(count, dtype=np.int64) * fixed
    upward = months > 0
    found = []
    while (start < stop if upward else start > stop) or (inclusive and start == stop):
        found.append(start)
        if len(found) > PART_ROWS:
            raise ProgramLimitExceeded(f"a series of more than {PART_ROWS} months")
        day, rest = divmod(start, MICROSECONDS_OF_DAY)
        moved = int(add_months(np.array([day]), np.array([months]))[0])
        start = moved * MICROSECONDS_OF_DAY + rest + fixed
    return np.array(found, np.int64)


# --- rows ------------------------------------------------------------------------------------------------------------


class Series(Struct, frozen=True):
    """The rows of a series: ``make(first, count)`` answers a slice of its values."""

    rows: int
    make: Callable[[int, int], pa.Array]

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """Slices of the series."""
        firsts = range(0, self.rows, PART_ROWS)
        return [self._part(first, min(PART_ROWS, self.rows - first), bool(columns)) for first in firsts]

    def _part(self, first: int, rows: int, wanted: bool) -> Part:
        def read() -> Iterable[pa.RecordBatch]:
            for start in range(first, first + rows, BATCH_ROWS):
                values = self.make(start, min(BATCH_ROWS, first + rows - start))
                batch = pa.RecordBatch.from_arrays([values], ["value"])
                yield batch if wanted else batch.select([])

        return Part(rows, read)


def _table(name: str, type: Type, series: Series) -> Table:
    unique = ColumnStatistics(None, None, 0.0, float(series.rows))
    statistics = TableStatistics(float(series.rows), {"value": unique})
    return Table((name,), (TableColumn("value", type, nullable=False),), series, lambda: statistics, (("value",),))


def _number_table(name: str, start: int | None, stop: int | None, step: int | None, *, inclusive: bool) -> Table:
    if start is None or stop is None or step is None:
        return _table(name, BIGINT, Series(0, lambda first, count: pa.array([], pa.int64())))
    if step == 0:
        raise InvalidParameter("step size cannot equal zero")
    apart = (stop - start if step > 0 else start - stop) - (0 if inclusive else 1)
    rows = max(apart // abs(step) + 1, 0)

    def make(first: int, count: int) -> pa.Array:
        return pa.array(start + (first + np.arange(count, dtype=np.int64)) * step)

    return _table(name, BIGINT, Series(rows, make))


@table_function("generate_series(stop BIGINT) -> TABLE", lists="generate_series")
@table_function("generate_series(start BIGINT, stop BIGINT) -> TABLE", lists="generate_series")
@table_function("generate_series(start BIGINT, stop BIGINT, step BIGINT) -> TABLE", lists="generate_series")
def generate_series(settings: Settings, *bounds: int | None) -> Table:
    """A row for each number from a start (0) to a stop, that taken in, by a step (1).

    >>> SELECT * FROM generate_series(1, 3)
    1 / 2 / 3
    """
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    return _number_table("generate_series", start, stop, bounds[2] if len(bounds) == 3 else 1, inclusive=True)


@table_function("range(stop BIGINT) -> TABLE", lists="range")
@table_function("range(start BIGINT, stop BIGINT) -> TABLE", lists="range")
@table_function("range(start BIGINT, stop BIGINT, step BIGINT) -> TABLE", lists="range")
def range_(settings: Settings, *bounds: int | None) -> Table:
    """A row for each number from a start (0) up to a stop, that left out, by a step (1).

    >>> SELECT * FROM range(0, 6, 2)
    0 / 2 / 4
    """
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    return _number_table("range", start, stop, bounds[2] if len(bounds) == 3 else 1, inclusive=False)


@table_function("generate_series(start TIMESTAMP, stop TIMESTAMP, step INTERVAL) -> TABLE", lists="generate_series")
@table_function("generate_series(start TIMESTAMPTZ, stop TIMESTAMPTZ, step INTERVAL) -> TABLE", lists="generate_series")
def generate_moments(settings: Settings, start: Any, stop: Any, step: tuple[int, int, int] | None) -> Table:
    """A row for each moment from a start to a stop, that taken in, by a step.

    >>> SELECT * FROM generate_series(TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-02 00:00:00', INTERVAL '12 hours')
    2024-01-01T00:00:00 / 2024-01-01T12:00:00 / 2024-01-02T00:00:00
    """
    return _moment_table("generate_series", start, stop, step, inclusive=True)


@table_function("range(start TIMESTAMP, stop TIMESTAMP, step INTERVAL) -> TABLE", lists="range")
@table_function("range(start TIMESTAMPTZ, stop TIMESTAMPTZ, step INTERVAL) -> TABLE", lists="range")
def range_moments(settings: Settings, start: Any, stop: Any, step: tuple[int, int, int] | None) -> Table:
    """A row for each moment from a start up to a stop, that left out, by a step.

    >>> SELECT * FROM range(DATE '2024-01-01', DATE '2024-01-03', INTERVAL '1 day')
    2024-01-01T00:00:00 / 2024-01-02T00:00:00
    """
    return _moment_table("range", start, stop, step, inclusive=False)


def _moment_table(name: str, start: Any, stop: Any, step: tuple[int, int, int] | None, *, inclusive: bool) -> Table:
    moment = start if start is not None else stop
    zoned = isinstance(moment, datetime) and moment.tzinfo is not None
    type: Type = TIMESTAMPTZ if zoned else TIMESTAMP
    if start is None or stop is None or step is None:
        return _table(name, type, Series(0, lambda first, count: pa.array([], type.physical)))
    micros = moment_series(_micros(start), _micros(stop), step, inclusive=inclusive)
    values = views.to_array(micros, type.physical)
    return _table(name, type, Series(len(values), lambda first, count: values.slice(first, count)))


def _micros(moment: date | datetime) -> int:
    if isinstance(moment, datetime):
        return (moment.replace(tzinfo=None) - EPOCH) // ONE_MICROSECOND
    return (moment - EPOCH.date()).days * MICROSECONDS_OF_DAY
