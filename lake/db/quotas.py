"""Quotas of users: statements at once, and the time of one. Spec: HTTP, Quotas.

    with MAX_QUERIES 2      the third statement waits for one of two to end, 30 seconds at most
    with STATEMENT_TIMEOUT  a statement that takes longer is stopped between two batches

Tokens of the node and superusers have none. A statement counts until its answer was read or given up.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from lake.errors import TooManyRequests

if TYPE_CHECKING:
    from lake.config import Config
    from lake.exec.context import Cancellation
    from lake.storage.catalog.access import User

WAIT_SECS: Final = 30.0
LOOK_SECS: Final = 0.1  # between two looks whether the waiting statement was given up
WAITING_MAX: Final = 16  # statements of all users: each keeps a thread that others need


class Quotas:
    """What users run at this moment, on this node."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._changed = threading.Condition()
        self._running: dict[int, int] = {}
        self._waiting = 0

    def enter(self, user: User, cancellation: Cancellation) -> Turn | None:
        """Counts a statement in once there is room; None where the user has no limits.

        53300  there was none for 30 seconds; the message names the user and the limit
        """
        most = self._config.user_queries if user.max_queries is None else user.max_queries
        secs = self._config.user_timeout if user.timeout_ms is None else user.timeout_ms / 1_000
        if not most and not secs:
            return None
        if most:
            self._wait(user, most, cancellation)
        return Turn(self, user, secs, cancellation, counted=bool(most))

    def _wait(self, user: User, most: int, cancellation: Cancellation) -> None:
        with self._changed:
            if self._running.get(user.id, 0) >= most:
                self._wait_in_line(user, most, cancellation)
            self._running[user.id] = self._running.get(user.id, 0) + 1

    def _wait_in_line(self, user: User, most: int, cancellation: Cancellation) -> None:
        full = f'user "{user.name}" runs {most} statements already, its MAX_QUERIES'
        if self._waiting >= WAITING_MAX:
            raise TooManyRequests(f"{full}, and too many statements wait on this node")
        self._waiting += 1
        try:
            for _ in range(int(WAIT_SECS / LOOK_SECS)):
                self._changed.wait(LOOK_SECS)
                cancellation.check()
                if self._running.get(user.id, 0) < most:
                    return
        finally:
            self._waiting -= 1
        raise TooManyRequests(f"{full}; none ended within {WAIT_SECS:g} seconds")

    def leave(self, id: int) -> None:
        """Counts a statement out."""
        with self._changed:
            left = self._running.get(id, 0) - 1
            if left > 0:
                self._running[id] = left
            else:
                self._running.pop(id, None)
            self._changed.notify_all()


class Turn:
    """A statement that is counted; it leaves once, at the latest when nobody holds it any longer."""

    def __init__(
        self, quotas: Quotas, user: User, secs: float, cancellation: Cancellation, *, counted: bool
    ) -> None:
        self._quotas = quotas
        self._id = user.id
        self._counted = counted
        self._timer: threading.Timer | None = None
        if secs:
            reason = f'user "{user.name}": the statement took longer than its STATEMENT_TIMEOUT of {secs:g} s'
            self._timer = threading.Timer(secs, cancellation.stop, (reason,))
            self._timer.daemon = True
            self._timer.start()

    def leave(self) -> None:
        """Counts the statement out, and lets its time run no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._counted:
            self._counted = False
            self._quotas.leave(self._id)

    def __del__(self) -> None:
        self.leave()


