"""Hot columns: decoded columns of row groups, kept in memory within a budget; the least recently used go first.

A column that is kept costs a scan no page decoding and no copy. Files never change, so an entry is never stale; entries
of removed files age out.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

import pyarrow as pa

Key = tuple[str, int, str]  # file, row group, stored column
SHARE_MAX: Final = 8  # one column of one row group takes at most this part of the budget


class HotColumns:
    """A bounded, thread-safe map of decoded columns; with a budget of 0 it keeps nothing."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._kept: OrderedDict[Key, tuple[pa.Array, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: Key) -> pa.Array | None:
        """The column, or None."""
        if self.budget == 0:
            return None
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Key, array: pa.Array) -> None:
        """Keeps the column, making room."""
        if self.budget == 0:
            return
        size = array.get_total_buffer_size()
        if size > self.budget // SHARE_MAX:
            return
        with self._lock:
            before = self._kept.pop(key, None)
            self.bytes += size - (before[1] if before else 0)
            self._kept[key] = (array, size)
            while self.bytes > self.budget:
                _, (_, freed) = self._kept.popitem(last=False)
                self.bytes -= freed

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._kept.clear()
            self.bytes = 0
