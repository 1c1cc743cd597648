"""The program's log: one line for each thing that happened, on standard error.

    2026-03-01T12:00:00.123Z info node serves addr=127.0.0.1:8080 lake=./demo
    2026-03-01T12:00:07.881Z error statement failed sqlstate=XX000 trace="Traceback ...\\n..."

A line is time, level, words, then ``key=value``; a value with spaces, quotes or control characters is written as JSON,
so a line stays a line whatever a client sent. This is not the lake's commit log, which is ``lake.storage``.
"""

from __future__ import annotations

import json
import sys
import traceback
from datetime import UTC, datetime
from typing import Final

from lake.clock import MICROSECONDS, Clock, SystemClock

LEVELS: Final = ("debug", "info", "warn", "error")
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@+*~[]{}(),<>%")


def info(words: str, **values: object) -> None:
    """Writes what happened."""
    _write("info", words, values)


def warn(words: str, **values: object) -> None:
    """Writes what somebody should look at."""
    _write("warn", words, values)


def error(words: str, failure: BaseException | None = None, **values: object) -> None:
    """Writes what went wrong, with the trace of ``failure``."""
    if failure is not None:
        values["trace"] = "".join(traceback.format_exception(failure))
    _write("error", words, values)


def line(level: str, words: str, values: dict[str, object], clock: Clock) -> str:
    """One line of the log, without its end."""
    assert level in LEVELS
    at = datetime.fromtimestamp(clock.now() // 1000 * 1000 / MICROSECONDS, UTC)
    head = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z {level} {' '.join(words.split())}"
    return " ".join([head, *(f"{key}={_text(value)}" for key, value in values.items())])


def _text(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return text if text and _PLAIN.issuperset(text) else json.dumps(text, ensure_ascii=False)


def _write(level: str, words: str, values: dict[str, object]) -> None:
    # One write call, so that lines of several threads do not mix.
    sys.stderr.write(line(level, words, values, SystemClock()) + "\n")
    sys.stderr.flush()
