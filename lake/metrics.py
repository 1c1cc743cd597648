"""METRICS: every counter, gauge and histogram of the process, and their text exposition.

    STATEMENTS.add(1, tag="SELECT", outcome="ok")      COMMIT_SECONDS.observe(0.0012)
    UNTIERED_ROWS.set(1_000)                           expose()

A metric is one line at the end of this file. Names follow Prometheus: `lake_` first, the unit last, `_total` on what only
grows. Values belong to the process and every thread may change them.

Source: Prometheus text exposition format 0.0.4. Spec: HTTP and operations, Operations (GET /metrics).
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Collection
from typing import Final

from msgspec import Struct, field

Labels = tuple[str, ...]

# Upper edges in seconds, each 1.5 times the one before it: 0.1 ms to about 100 s.
SECONDS_BUCKETS: Final = tuple(1e-4 * 1.5**step for step in range(35))
LABEL_SETS_MAX: Final = 1_000  # of one metric; further ones are counted together, so callers cannot fill the memory
_OVERFLOW: Final = "other"

METRICS: Final[dict[str, Metric]] = {}


class Metric:
    """What is counted, under which name, by which labels."""

    kind = "untyped"

    def __init__(self, name: str, doc: str, labels: Labels = ()) -> None:
        assert name not in METRICS, f"metric {name} is declared twice"
        self.name = name
        self.doc = doc
        self.labels = labels
        self._lock = threading.Lock()
        METRICS[name] = self

    def expose(self) -> list[str]:
        """Lines of the text exposition, without HELP and TYPE."""
        raise NotImplementedError

    def _key(self, given: dict[str, str], known: Collection[Labels]) -> Labels:
        assert len(given) == len(self.labels), f"{self.name} takes labels {self.labels}, not {sorted(given)}"
        key = tuple([given[label] for label in self.labels])
        return key if key in known or len(known) < LABEL_SETS_MAX else (_OVERFLOW,) * len(self.labels)

    def _line(self, key: Labels, value: float, suffix: str = "", extra: str = "") -> str:
        pairs = [f'{label}="{_escape(text)}"' for label, text in zip(self.labels, key, strict=True)]
        braces = ",".join([*pairs, extra] if extra else pairs)
        return f"{self.name}{suffix}{{{braces}}} {_number(value)}" if braces else f"{self.name}{suffix} {_number(value)}"


class _Values(Metric):
    """A metric of one number for each set of labels."""

    def __init__(self, name: str, doc: str, labels: Labels = ()) -> None:
        super().__init__(name, doc, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, amount: float = 1.0, **labels: str) -> None:
        """Adds to the value."""
        with self._lock:
            key = self._key(labels, self._values)
            self._values[key] = self._values.get(key, 0.0) + amount

    def value(self, **labels: str) -> float:
        """The value at this moment."""
        with self._lock:
            return self._values.get(tuple(labels[label] for label in self.labels), 0.0)

    def expose(self) -> list[str]:
        """One line for each set of labels."""
        with self._lock:
            return [self._line(key, value) for key, value in sorted(self._values.items())]


class Counter(_Values):
    """A number that only grows."""

    kind = "counter"


class Gauge(_Values):
    """A number that goes up and down."""

    kind = "gauge"

    def set(self, value: float, **labels: str) -> None:
        """Puts the value in place of the one before."""
        if not labels and not self.labels:
            self._values[()] = value
            return
        with self._lock:
            self._values[self._key(labels, self._values)] = value

    def set_only(self, value: float, **labels: str) -> None:
        """Puts the value, and forgets every other set of labels: for states, of which one holds."""
        with self._lock:
            self._values = {self._key(labels, ()): value}


class _Observed(Struct):
    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS_BUCKETS) + 1))
    total: float = 0.0


class Histogram(Metric):
    """Durations in seconds, counted by bucket."""

    kind = "histogram"

    def __init__(self, name: str, doc: str, labels: Labels = ()) -> None:
        super().__init__(name, doc, labels)
        self._observed: dict[Labels, _Observed] = {} if labels else {(): _Observed()}

    def observe(self, seconds: float, **labels: str) -> None:
        """Counts one duration."""
        with self._lock:
            observed = self._observed.setdefault(self._key(labels, self._observed), _Observed())
            observed.counts[bisect_left(SECONDS_BUCKETS, seconds)] += 1
            observed.total += seconds

    def quantile(self, share: float, **labels: str) -> float:
        """The duration, in seconds, that ``share`` of those observed do not pass; within a bucket's width; 0 of none."""
        with self._lock:
            observed = self._observed.get(tuple(labels[label] for label in self.labels))
            counts = list(observed.counts) if observed else []
        wanted, seen = share * sum(counts), 0
        for bucket, count in enumerate(counts):
            if count and seen + count >= wanted:
                low = SECONDS_BUCKETS[bucket - 1] if bucket else 0.0
                high = SECONDS_BUCKETS[min(bucket, len(SECONDS_BUCKETS) - 1)]
                return low + (high - low) * max(0.0, wanted - seen) / count
            seen += count
        return 0.0

    def expose(self) -> list[str]:
        """Buckets, sum and count of each set of labels."""
        lines = []
        with self._lock:
            for key, observed in sorted(self._observed.items()):
                running = 0
                for edge, count in zip((*SECONDS_BUCKETS, math.inf), observed.counts, strict=True):
                    running += count
                    lines.append(self._line(key, running, "_bucket", f'le="{_number(edge)}"'))
                lines.append(self._line(key, observed.total, "_sum"))
                lines.append(self._line(key, running, "_count"))
        return lines


def expose() -> str:
    """Every metric, as GET /metrics answers them."""
    lines: list[str] = []
    for name, metric in sorted(METRICS.items()):
        lines += [f"# HELP {name} {metric.doc}", f"# TYPE {name} {metric.kind}", *metric.expose()]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.10g}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


ROLE: Final = Gauge("lake_role", "1 for the role this node has.", ("role",))
HWM: Final = Gauge("lake_hwm", "Number of the newest commit this node sees.")
COMMITS: Final = Counter("lake_commits_total", "Commits written.")
COMMIT_SECONDS: Final = Histogram("lake_commit_seconds", "Time of a commit, from the round's start to durable.")
ROWS_APPENDED: Final = Counter("lake_rows_appended_total", "Rows acknowledged.")
UNTIERED_ROWS: Final = Gauge("lake_untiered_rows", "Rows in the log that are not in files yet.")
ROWS_TIERED: Final = Counter("lake_rows_tiered_total", "Rows moved from the log to files.")
OBJECT_REQUESTS: Final = Counter("lake_object_requests_total", "Requests to the object store, by kind.", ("op",))
STATEMENTS: Final = Counter("lake_statements_total", "Statements run, by tag and outcome.", ("tag", "outcome"))
STATEMENT_SECONDS: Final = Histogram("lake_statement_seconds", "Time of a statement, from text to answer.")
HTTP_REQUESTS: Final = Counter("lake_http_requests_total", "Requests at the HTTP door.", ("method", "path", "status"))
HTTP_RUNNING: Final = Gauge("lake_http_running", "Requests the HTTP door is at.")
STATEMENTS_RUNNING: Final = Gauge("lake_statements_running", "Statements on threads or in line for one.")
SESSIONS: Final = Gauge("lake_sessions", "Sessions that are open.")
PAGES_BYTES: Final = Gauge("lake_pages_bytes", "Bytes of kept pages of typed answers.")
QUERY_MEMORY_BYTES: Final = Gauge("lake_query_memory_bytes", "Bytes that running queries hold.")
AI_REQUESTS: Final = Counter("lake_ai_requests_total", "Requests to the endpoint of the AI functions.")
SPILLED_BYTES: Final = Counter("lake_spilled_bytes_total", "Bytes that queries wrote to disk for want of memory.")
