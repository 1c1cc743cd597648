"""Answers kept for their later pages: within a number of bytes, each for twenty minutes after its last read."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from typing import Final

from msgspec import Struct

from lake.clock import Clock
from lake.doors.http.encode import Kept
from lake.metrics import PAGES_BYTES

KEPT_SECS: Final = 20 * 60.0


class _Page(Struct):
    kept: Kept
    read_at: float


class Pages:
    """Kept answers by random id; the one unread longest goes first when room is needed. Spec: HTTP, Query, rule 4."""

    def __init__(self, clock: Clock, bytes_max: int) -> None:
        self._clock = clock
        self._bytes_max = bytes_max
        self._bytes = 0
        self._pages: OrderedDict[str, _Page] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, kept: Kept) -> str:
        """Keeps an answer and tells its id; one larger than all the room is kept alone."""
        id = secrets.token_urlsafe(18)
        with self._lock:
            self._pages[id] = _Page(kept, self._clock.monotonic())
            self._bytes += kept.table.nbytes
            self._drop()
        return id

    def get(self, id: str) -> Kept | None:
        """The answer of this id, or None when it is gone."""
        with self._lock:
            self._drop()
            page = self._pages.get(id)
            if page is None:
                return None
            page.read_at = self._clock.monotonic()
            self._pages.move_to_end(id)
            return page.kept

    def _drop(self) -> None:
        oldest = self._clock.monotonic() - KEPT_SECS
        while self._pages:
            id, page = next(iter(self._pages.items()))
            if page.read_at >= oldest and (self._bytes <= self._bytes_max or len(self._pages) == 1):
                break
            del self._pages[id]
            self._bytes -= page.kept.table.nbytes
        PAGES_BYTES.set(self._bytes)
