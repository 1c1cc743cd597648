"""What Spark tells of itself and of its session: numbers of rows and partitions, collations, keywords; variants."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import constant
from lake.rows import BatchRows
from lake.sql.catalog import Settings, Table, TableColumn, TableStatistics
from lake.sql.parser import keywords, reserved_words
from lake.sql.registry import CallInfo, scalar, table_function
from lake.types import BOOLEAN, TEXT, Type, from_arrow

GROUP: Final = "session"
COLLATION: Final = "UTF8_BINARY"
ROWS_MAX: Final = 10_000_000

_numbering = threading.Lock()
_next_number = 0


def table_of(name: str, columns: Sequence[tuple[str, Type]], rows: Sequence[Sequence[Any]]) -> Table:
    """A table of Python values."""
    arrays = [pa.array([row[place] for row in rows], type.arrow) for place, (_, type) in enumerate(columns)]
    batch = pa.RecordBatch.from_arrays(arrays, names=[title for title, _ in columns])
    titles = tuple(TableColumn(title, type) for title, type in columns)
    return Table((name,), titles, BatchRows(batch), lambda: TableStatistics(float(len(rows))))


@scalar("monotonically_increasing_id() -> BIGINT", group=GROUP, origin="spark", volatility="volatile", takes_call=True)
def monotonically_increasing_id(*, call: CallInfo) -> pa.Array:
    """A number for each row, greater than all given out before it.

    >>> SELECT count(DISTINCT n) FROM (SELECT monotonically_increasing_id() AS n FROM range(3))
    3
    """
    global _next_number
    with _numbering:
        first, _next_number = _next_number, _next_number + call.rows
    return pa.array(np.arange(first, first + call.rows, dtype=np.int64))


@scalar("spark_partition_id() -> INT", group=GROUP, origin="spark", volatility="stable")
def spark_partition_id() -> pa.Scalar:
    """The number of the row's partition: 0, for a query here has one.

    >>> spark_partition_id()
    0
    """
    return pa.scalar(0, pa.int32())


@scalar("current_path() -> VARCHAR", group=GROUP, origin="spark", volatility="stable", takes_call=True)
def current_path(*, call: CallInfo) -> pa.Scalar:
    """The schemas where names are looked up.

    >>> current_path()
    pg_catalog,public
    """
    schema = "public" if call.settings is None else call.settings.schema
    return pa.scalar(f"pg_catalog,{schema}")


# --- collations and keywords -----------------------------------------------------------------------------------------


@scalar("collate(text VARCHAR, collation VARCHAR) -> VARCHAR", group="text", origin="spark")
def collate(text: Value, collation: Value) -> Value:
    """The text under a collation: texts are ordered by code points, which UTF8_BINARY says.

    >>> collate('a', 'UTF8_BINARY')
    a

    22023  another collation
    """
    if constant(collation) != COLLATION:
        raise InvalidParameter(f'unknown collation "{constant(collation)}"', hint=f"known collations: {COLLATION}")
    return text


@scalar("collation(text VARCHAR) -> VARCHAR", group="text", origin="spark", takes_call=True)
def collation(text: Value, *, call: CallInfo) -> pa.Array:
    """The collation of a text.

    >>> collation('a')
    UTF8_BINARY
    """
    return pc.if_else(as_array(text, call.rows).is_valid(), COLLATION, pa.scalar(None, pa.string()))


@table_function("collations() -> TABLE", group=GROUP, origin="spark")
def collations(settings: Settings) -> Table:
    """The collations there are.

    >>> SELECT name FROM collations()
    UTF8_BINARY
    """
    return table_of("collations", [("name", TEXT)], [(COLLATION,)])


@table_function("sql_keywords() -> TABLE", group=GROUP, origin="spark")
def sql_keywords(settings: Settings) -> Table:
    """The words of the grammar, and whether they are names only in quotes.

    >>> SELECT * FROM sql_keywords() WHERE keyword IN ('SELECT', 'DAY') ORDER BY keyword
    DAY | false / SELECT | true
    """
    reserved = reserved_words()
    rows = [(word, word in reserved) for word in sorted(keywords())]
    return table_of("sql_keywords", [("keyword", TEXT), ("reserved", BOOLEAN)], rows)


@table_function("repeat_row(values ANY...) -> TABLE", group="tables", origin="duckdb")
def repeat_row(settings: Settings, *values: Any, num_rows: Any = None) -> Table:
    """A row so many times.

    >>> SELECT * FROM repeat_row(1, 'a', num_rows = 2)
    1 | a / 1 | a

    22023  no number of rows, or too many
    """
    if not isinstance(num_rows, int) or not 0 <= num_rows <= ROWS_MAX:
        raise InvalidParameter(f"repeat_row takes num_rows, a number from 0 to {ROWS_MAX}")
    columns = [(f"column{place}", from_arrow(pa.array([value]).type)) for place, value in enumerate(values)]
    if not columns:
        raise InvalidParameter("repeat_row takes a value")
    return table_of("repeat_row", columns, [values] * num_rows)


# --- variants --------------------------------------------------------------------------------------------------------


@scalar("is_valid_variant(value JSON) -> BOOLEAN", group="json", origin="spark", takes_call=True)
def is_valid_variant(value: Value, *, call: CallInfo) -> pa.Array:
    """Whether a variant can be read: every JSON can.

    >>> is_valid_variant(parse_json('{"a": 1}'))
    true
    """
    return pc.if_else(as_array(value, call.rows).is_valid(), True, pa.scalar(None, pa.bool_()))
