"""Time and randomness: the one way in for both, so that a whole cluster can run on virtual time.

    >>> clock = VirtualClock(start=1_000_000, seed=7)
    >>> clock.sleep(2.5)
    >>> clock.now(), clock.monotonic()
    (3500000, 2.5)

``now`` may jump, as wall clocks do; ``monotonic`` never goes back and is what waits and durations are measured with.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Final, Protocol

MICROSECONDS: Final = 1_000_000  # in a second


class Clock(Protocol):
    """What the lake asks of time and chance."""

    @property
    def random(self) -> random.Random:
        """The source of chance; seeded where the clock is virtual."""
        ...

    def now(self) -> int:
        """Microseconds since 1970-01-01 00:00:00 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since a moment of the clock's own, never going back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Returns when ``seconds`` have passed."""
        ...


class SystemClock:
    """The machine's own time, and chance that nobody can guess."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    @property
    def random(self) -> random.Random:
        """The operating system's randomness."""
        return self._random

    def now(self) -> int:
        """Microseconds since 1970-01-01 00:00:00 UTC."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Seconds since the machine started, or thereabouts."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Blocks this thread; for waits that something may end early, wait on that thing with a timeout."""
        time.sleep(max(0.0, seconds))


class VirtualClock:
    """Time that passes only when somebody sleeps or a test says so; the same seed gives the same run.

    start  microseconds since the epoch at the first instant
    seed   of ``random``
    """

    def __init__(self, start: int = 0, seed: int = 0) -> None:
        self._start = start
        self._elapsed = 0  # microseconds
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    @property
    def random(self) -> random.Random:
        """Chance that repeats with the seed."""
        return self._random

    def now(self) -> int:
        """Microseconds since 1970-01-01 00:00:00 UTC."""
        return self._start + self._elapsed

    def monotonic(self) -> float:
        """Seconds that were slept or advanced."""
        return self._elapsed / MICROSECONDS

    def sleep(self, seconds: float) -> None:
        """Moves time on and returns at once."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Moves time on by ``seconds``; time does not go back."""
        assert seconds >= 0, "time does not go back"
        with self._lock:
            self._elapsed += round(seconds * MICROSECONDS)
