"""Bounds and places of arrays, by Postgres's names: what its clients take lists of the catalog apart with.

Source: PostgreSQL documentation, 9.19 (Array Functions) and 37.4 (information_schema).
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import map_rows
from lake.exec.functions.pg import GROUP
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar
from lake.types import BIGINT, List, Struct


@scalar("array_upper(list ANY[], dimension BIGINT) -> BIGINT", group=GROUP, origin="postgres", takes_call=True)
@per_row
def array_upper(list: Value, dimension: Value, *, call: CallInfo) -> pa.Array:
    """The number of the last item, NULL of an empty list; lists count from 1.

    Goes row by row: lists of catalogs are few and short.

    >>> array_upper([5, 6], 1)
    2
    """
    return map_rows(lambda items, place: len(items) or None if place == 1 else None, pa.int64(),
                    as_array(list, call.rows), as_array(dimension, call.rows))  # fmt: skip


@scalar("array_lower(list ANY[], dimension BIGINT) -> BIGINT", group=GROUP, origin="postgres", takes_call=True)
@per_row
def array_lower(list: Value, dimension: Value, *, call: CallInfo) -> pa.Array:
    """The number of the first item, NULL of an empty list. Goes row by row: lists of catalogs are few and short.

    >>> array_lower([5, 6], 1)
    1
    """
    return map_rows(lambda items, place: 1 if items and place == 1 else None, pa.int64(),
                    as_array(list, call.rows), as_array(dimension, call.rows))  # fmt: skip


@scalar("generate_subscripts(list ANY[], dimension BIGINT) -> BIGINT[]", group=GROUP, origin="postgres", takes_call=True)
@per_row
def generate_subscripts(list: Value, dimension: Value, *, call: CallInfo) -> pa.Array:
    """The numbers of a list's items, a row for each in a select list.

    Goes row by row: lists of catalogs are few and short.

    >>> generate_subscripts([5], 1)
    1
    """
    return map_rows(lambda items, place: [*range(1, len(items) + 1)] if place == 1 else [], pa.list_(pa.int64()),
                    as_array(list, call.rows), as_array(dimension, call.rows))  # fmt: skip


_PLACED: Final = List(Struct((("x", BIGINT), ("n", BIGINT))))


@scalar("_pg_expandarray(list ANY[]) -> ANY[]", group=GROUP, origin="postgres", takes_call=True,
        returns=lambda arguments: _PLACED)  # fmt: skip
@per_row
def pg_expandarray(list: Value, *, call: CallInfo) -> pa.Array:
    """Numbers of the catalog, each with its place from 1: a row for each in a select list.

    Goes row by row: lists of catalogs are few and short.

    >>> (_pg_expandarray([5])).n
    1
    """
    return map_rows(lambda items: [{"x": item, "n": place} for place, item in enumerate(items, 1)], _PLACED.physical,
                    as_array(list, call.rows))  # fmt: skip
