"""What a top N knows of the rows that are still to come: those whose first key comes after the bound need no look.

    ORDER BY at LIMIT 10      the tenth of the rows seen so far is of 09:14: whatever is later is left out

A bound starts as everything and only gets tighter. All workers share it, and so does the scan below, which tests it before
it reads the columns that no test looks at, and leaves out row groups that lie beyond it.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import pyarrow as pa

from lake.exec.kernels.ranges import HIGHEST, LOWEST, rows_between, rows_within
from lake.exec.kernels.views import mask_of, values_of
from lake.exec.selection import is_whole
from lake.rows import Predicate
from lake.sql.bound import SortKey
from lake.types import Float, Type


class TopBound:
    """The first key of the last of as many rows as are wanted, None before there are so many.

    descending   the greatest key comes first
    nulls_first  rows whose key is NULL come first, whatever the bound
    """

    def __init__(self, key: SortKey) -> None:
        self.value: int | float | None = None
        self.nulls_first = key.nulls_first
        self.descending = key.descending
        self._lock = threading.Lock()

    @staticmethod
    def takes(type: Type) -> bool:
        """Whether keys of a type are bounded: whole numbers, times and doubles."""
        return is_whole(type) or isinstance(type, Float)

    def tighten(self, last: pa.Array) -> None:
        """Takes the key of the last of enough rows, an array of one value."""
        value = None if last.null_count else values_of(last)[0].item()
        if value is None or math.isnan(value):
            return
        with self._lock:
            known = self.value
            if known is None or (value > known if self.descending else value < known):
                self.value = value

    def rows(self, keys: pa.Array, rows: Any) -> Any:
        """int64[found]: those of ``rows`` whose key does not come after the bound, ascending; None stands for all rows."""
        value = self.value
        if value is None or (self.nulls_first and keys.null_count):
            return rows
        if pa.types.is_floating(keys.type):
            low, high = (value, math.inf) if self.descending else (-math.inf, value)
            found = rows_between(
                values_of(keys), mask_of(keys), low, high, with_nan=self.descending, outside=False, rows=rows
            )
        else:
            least, most = (int(value), HIGHEST) if self.descending else (LOWEST, int(value))
            found = rows_within(values_of(keys), mask_of(keys), least, most, outside=False, rows=rows)
        return rows if len(found) == (len(keys) if rows is None else len(rows)) else found

    def predicate(self, column: str) -> Predicate | None:
        """What the bound says of the stored ``column`` that is its key, where that is not NULL."""
        value = self.value
        return None if value is None else Predicate(column, ">=" if self.descending else "<=", value)
