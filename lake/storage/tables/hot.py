"""Hot columns: decoded columns of row groups, kept in memory within a budget, whole numbers as narrow as they fit.

A column that is kept costs a scan no page decoding. Narrow, it takes a fraction of the memory, and a scan, which is as fast
as memory is, a fraction of the time. Files never change, so an entry is never stale; entries of removed files age out.

Of a row group some of whose rows are gone, the column is kept twice: whole, and without them, as scans read it until other
rows go. Leaving out a tenth of the rows of 10 million took ten times as long as the sum over them.

The least recently used go first, and only those that nobody has used for REST_SECS: a scan of more than fits would else
throw out what it is about to read. Under pressure (``allow``) they go at once.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import pyarrow as pa
from msgspec import Struct

from lake.narrow import narrowed

Key = tuple[str, int, str]  # file, row group, stored column
LIVING: Final = "@living"  # behind the name of a column whose gone rows are left out: it is kept as it is read
SHARE_MAX: Final = 8  # one column of one row group takes at most this part of the budget
REST_SECS: Final = 60.0


class _Kept(Struct):
    array: pa.Array
    type: pa.DataType
    size: int
    used: float
    stamp: int


class HotColumns:
    """A bounded, thread-safe map of decoded columns; with a budget of 0 it keeps nothing.

    monotonic  seconds of a clock that never goes back
    """

    def __init__(self, budget: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget
        self._allowed = budget
        self._monotonic = monotonic
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: Key, type: pa.DataType, stamp: int = 0) -> pa.Array | None:
        """The column that was kept under ``type``, narrow (``lake.narrow``); None where there is none.

        stamp  of the rows that are left out
        """
        if self.budget == 0:
            return None
        with self._lock:
            found = self._kept.get(key)
            if found is None or (found.type is not type and found.type != type) or found.stamp != stamp:
                self.misses += 1
                return None
            self.hits += 1
            found.used = self._monotonic()
            self._kept.move_to_end(key)
            return found.array

    def put(self, key: Key, array: pa.Array, type: pa.DataType, stamp: int = 0) -> None:
        """Keeps a column of ``type``, where there is room or room can be made."""
        if self.budget == 0:
            return
        array = narrowed(array)
        size = array.get_total_buffer_size()
        if size > self.budget // SHARE_MAX:
            return
        now = self._monotonic()
        with self._lock:
            before = self._kept.pop(key, None)
            self.bytes -= before.size if before else 0
            while self.bytes + size > self._allowed:
                if not self._kept or next(iter(self._kept.values())).used > now - REST_SECS:
                    return
                self._drop_oldest()
            self.bytes += size
            self._kept[key] = _Kept(array, type, size, now, stamp)

    def allow(self, size: int) -> None:
        """Keeps at most so many bytes, and never more than the budget, until told otherwise."""
        with self._lock:
            self._allowed = max(0, min(self.budget, size))
            while self.bytes > self._allowed:
                self._drop_oldest()

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._kept.clear()
            self.bytes = 0

    def _drop_oldest(self) -> None:
        _, gone = self._kept.popitem(last=False)
        self.bytes -= gone.size
