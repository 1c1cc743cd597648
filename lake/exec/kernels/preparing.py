"""Kernels prepared for a wheel: ``python -m lake.exec.kernels.preparing``, before it is built.

Compiles all of them, which takes half a minute, and keeps what does not depend on the processor (``lake.prepared``).
"""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path

from lake.exec.kernels.warming import warm
from lake.prepared import FILE, written


def prepare(path: Path = FILE) -> None:
    """Writes the file of prepared kernels; in a process that has compiled none."""
    with tempfile.TemporaryDirectory() as folder:
        import_module("numba").config.CACHE_DIR = folder
        with written(path):
            warm()


if __name__ == "__main__":
    prepare()
