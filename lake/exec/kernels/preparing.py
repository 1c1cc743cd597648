"""Kernels prepared for a wheel: ``python -m lake.exec.kernels.preparing FILE``, as ``hatch_build.py`` asks.

Compiles all of them, half a minute of a core, in as many processes as ``warming`` does, and keeps what does not depend on the
processor (``lake.prepared``).
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Final

from lake.exec.kernels import warming
from lake.prepared import kept_in, packed

PROGRAM: Final = "lake.exec.kernels.preparing"  # this module, by whatever name it runs


def prepare(path: Path, processes: int = 1) -> None:
    """Writes the file of prepared kernels; in a process that has compiled none."""
    every, done = warming.rehearsals(), set[int]()

    def rehearse(number: int) -> None:
        every[number]()
        done.add(number)

    with tempfile.TemporaryDirectory() as folder:
        import_module("numba").config.CACHE_DIR = folder
        helping = warming.helped(every, min(processes, warming.PROCESSES_MAX) - 1, [PROGRAM, folder])
        with warming.little_collected(), kept_in(Path(folder)), helping as (queue, words):
            rehearse(0)
            for number in warming.taken(queue):
                rehearse(number)
            while len(done) < len(every) and (said := warming.heard(words, warming.HELPER_SECS)):
                done.update(said)
            for number in range(len(every)):
                if number not in done:  # its helper died
                    rehearse(number)
        packed(Path(folder), path)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        prepare(Path(sys.argv[1]), os.cpu_count() or 1)
    else:
        with kept_in(Path(sys.argv[1])):
            warming.help_warming(sys.argv[1], sys.argv[2:])
