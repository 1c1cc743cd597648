"""Benches: `python -m tests bench NAME`; each adds its figures to `results.csv` beside this file.

    save([Figure("tpch sf1", "lake hot", "total", 3.1, "s", ratio=3.4)])

A figure is comparable only with others of its run and machine: ratios within one run are what to quote.
"""

from __future__ import annotations

import csv
import datetime
import os
import platform
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
RESULTS: Final = Path(__file__).resolve().parent / "results.csv"
COLUMNS: Final = ("date", "commit", "case", "who", "what", "value", "unit", "ratio", "machine")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number; ``ratio`` is to the rival that the bench names."""

    case: str
    who: str
    what: str
    value: float
    unit: str
    ratio: float | None = None


def save(figures: Sequence[Figure]) -> None:
    """Adds rows to results.csv."""
    is_new = not RESULTS.exists()
    at, commit, machine = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}", commit_name(), machine_name()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        for figure in figures:
            ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
            value = f"{figure.value:.4g}" if figure.value < 1000 else f"{figure.value:.0f}"
            writer.writerow([at, commit, figure.case, figure.who, figure.what, value, figure.unit, ratio, machine])
    print(f"{len(figures)} figures added to {RESULTS.relative_to(ROOT)}")


def commit_name() -> str:
    """The commit that is measured; with a + where files differ from it."""
    def git(*words: str) -> str:
        found = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return found.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "lake", "grammars")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def machine_name() -> str:
    """Cores, memory, processor and Python, of whatever machine this is."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cores} cores, {memory:.0f} GiB, {_processor()}, Python {platform.python_version()}"


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def percentile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` of ``values`` do not pass."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    """The middle of some runs."""
    return statistics.median(values)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows as a text table: the first column to the left, numbers to the right."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = [cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in
                 enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
