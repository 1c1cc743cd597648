"""Rows that open transactions have changed by key: who comes to change one too waits for its turn.

    first   BEGIN; UPDATE t .. WHERE id = 1;            COMMIT
    second  BEGIN; UPDATE t .. WHERE id = 1  ── waits ──┴── goes on, from the newest state if its answers so far hold there

Nothing is decided here: COMMIT looks at what was written meanwhile, as if nobody had waited. Without waiting, of eight
sessions that change one row seven are refused at their COMMIT, again and again.
"""

from __future__ import annotations

import threading
from typing import Final

HOLD_SECS: Final = 0.5  # some tens of short transactions, one after another; after that whoever is first at COMMIT wins
WAITING_MAX: Final = 32  # at once: each keeps a thread, of which whoever holds a row needs one too
HELD_MAX: Final = 10_000  # by one transaction; of its further rows nobody waits for it

Row = tuple[int, tuple[object, ...]]  # a table's id, and the values of its key


class RowHolds:
    """Who holds which rows; holders are compared by identity, and each waits for one row at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holders: dict[Row, object] = {}
        self._held: dict[object, list[Row]] = {}
        self._waiting: dict[object, Row] = {}

    def take(self, holder: object, row: Row) -> None:
        """Holds a row, once nobody else does; returns without it where that takes too long, or would take for ever."""
        with self._changed:
            if self._holders.get(row) is holder or len(self._held.get(holder, ())) >= HELD_MAX:
                return
            if row in self._holders and not self._comes_free(holder, row):
                return
            self._holders[row] = holder
            self._held.setdefault(holder, []).append(row)

    def release(self, holder: object) -> None:
        """Lets go of all rows of a holder."""
        with self._changed:
            rows = self._held.pop(holder, ())
            for row in rows:
                del self._holders[row]
            if rows:
                self._changed.notify_all()

    def _comes_free(self, holder: object, row: Row) -> bool:
        if len(self._waiting) >= WAITING_MAX or self._waits_for(holder, row):
            return False
        self._waiting[holder] = row
        try:
            return self._changed.wait_for(lambda: row not in self._holders, HOLD_SECS)
        finally:
            del self._waiting[holder]

    def _waits_for(self, holder: object, row: Row) -> bool:
        """Whether who holds a row waits, perhaps through others, for ``holder``."""
        other = self._holders.get(row)
        while other is not None and other is not holder:
            awaited = self._waiting.get(other)
            other = None if awaited is None else self._holders.get(awaited)
        return other is holder
