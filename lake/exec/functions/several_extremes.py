"""Aggregates that answer several values of a group as a list: the greatest, the least, and those of the rows where another
value is greatest or least."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter
from lake.exec.constants import list_array
from lake.exec.functions.aggregates import Constants
from lake.exec.functions.arithmetic import same_type
from lake.exec.functions.collecting import Collected, list_type
from lake.exec.kernels import views
from lake.exec.kernels.order import Direction, sort_rows
from lake.sql.registry import Accumulator, CallInfo, aggregate
from lake.types import Type

GROUP: Final = "aggregates"
COUNT_MAX: Final = 1_000_000  # as DuckDB has it


def _count(given: object) -> int:
    """How many values are asked for.

    22023  not a constant from 1 to COUNT_MAX
    """
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= COUNT_MAX:
        raise InvalidParameter(f"the count must be a constant between 1 and {COUNT_MAX}, not {given}")
    return given


class Several(Collected):
    """The first values of each group in the order of its last argument column, as a list; or the first one alone.

    by           which argument decides           descending   the greatest first
    nulls        rows where that one is NULL come last; else they do not count
    """

    def __init__(
        self, types: tuple[Type, ...], count: int | None, *, by: int, descending: bool, nulls: bool = False
    ) -> None:
        super().__init__(types[: by + 1])
        self._count, self._by, self._descending, self._nulls = count, by, descending, nulls

    def finish(self, group_count: int) -> pa.Array:
        """The lists, or the values; NULL for groups of no rows that count."""
        offsets, columns = self.by_group(group_count)
        groups = np.repeat(np.arange(group_count), np.diff(offsets))
        key = columns[self._by]
        if not self._nulls and key.null_count:
            live = np.flatnonzero(views.true_of(pc.is_valid(key)))
            groups, columns = groups[live], [column.take(pa.array(live)) for column in columns]
            key = columns[self._by]
        order = sort_rows([views.to_array(groups, pa.int64()), key], [Direction(), Direction(self._descending)])
        sizes = np.bincount(groups, minlength=group_count)
        starts = np.cumsum(sizes) - sizes
        there = (sizes > 0).astype(np.uint8)
        if self._count is None:
            if not len(order):
                return pa.nulls(group_count, columns[0].type)
            first = order[np.minimum(starts, len(order) - 1)]
            return columns[0].take(views.to_array(first, pa.int64(), there))
        kept = np.minimum(sizes, self._count)
        place = np.arange(kept.sum()) - np.repeat(np.cumsum(kept) - kept, kept)
        rows = order[np.repeat(starts, kept) + place]
        return list_array(np.concatenate(([0], np.cumsum(kept))), columns[0].take(pa.array(rows)), there)


@aggregate("max(value ANY, count BIGINT) -> ANY", group=GROUP, origin="duckdb", returns=list_type)
def max_values(call: CallInfo, constants: Constants) -> Accumulator:
    """The greatest so many values, the greatest first.

    >>> max(x, 2) FROM (VALUES (1), (5), (NULL), (3)) AS t(x)
    [5, 3]
    """
    return Several(call.types, _count(constants[1]), by=0, descending=True)


@aggregate("min(value ANY, count BIGINT) -> ANY", group=GROUP, origin="duckdb", returns=list_type)
def min_values(call: CallInfo, constants: Constants) -> Accumulator:
    """The least so many values, the least first.

    >>> min(x, 2) FROM (VALUES (1), (5), (NULL), (3)) AS t(x)
    [1, 3]
    """
    return Several(call.types, _count(constants[1]), by=0, descending=False)


def _register(name: str, aliases: tuple[str, ...], answer: str, *, descending: bool, nulls: bool) -> None:
    """``name(value, by, count)``, and ``name(value, by)`` where rows without ``by`` come last."""
    word = "greatest" if descending else "least"

    def several(call: CallInfo, constants: Constants) -> Accumulator:
        return Several(call.types, _count(constants[2]), by=1, descending=descending, nulls=nulls)

    several.__doc__ = f"""The first argument of the so many rows where the second is {word}.

    >>> {name}(a, b, 2) FROM (VALUES ('p', 1), ('q', NULL), ('r', 3)) AS t(a, b)
    {answer}
    """
    aggregate(f"{name}(value ANY, by ANY, count BIGINT) -> ANY", group=GROUP, origin="duckdb", returns=list_type,
              aliases=aliases)(several)  # fmt: skip
    if not nulls:
        return

    def one(call: CallInfo, constants: Constants) -> Accumulator:
        return Several(call.types, None, by=1, descending=descending, nulls=True)

    one.__doc__ = f"""The first argument of the row where the second is {word}; rows where that is NULL come last.

    >>> {name}(a, b) FROM (VALUES ('q', NULL::INT)) AS t(a, b)
    q
    """
    aggregate(f"{name}(value ANY, by ANY) -> ANY", group=GROUP, origin="duckdb", returns=same_type)(one)


_register("max_by", ("arg_max", "argmax"), "[r, p]", descending=True, nulls=False)
_register("min_by", ("arg_min", "argmin"), "[p, r]", descending=False, nulls=False)
_register("arg_max_nulls_last", (), "[r, p]", descending=True, nulls=True)
_register("arg_min_nulls_last", (), "[p, r]", descending=False, nulls=True)
