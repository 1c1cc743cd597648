"""Kernels that a wheel carries half made: what Numba makes of them, before LLVM goes over it.

    python -m lake.exec.kernels.preparing lake/prepared.zip        is what building a wheel does

Most of a first start is Numba's front end, whose answer depends on the source alone; LLVM's passes and the machine code,
which depend on the processor, are left to the machine. The file is for one source, and for one version of Python, Numba and
LLVM: where anything differs it is not looked at, and kernels are compiled from their source.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from pickle import dumps, loads
from typing import Any, Final, TypeAlias
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile
from zlib import error as InflateError

PACKAGE: Final = Path(__file__).resolve().parent
FILE: Final = PACKAGE / "prepared.zip"
ABOUT: Final = "about.json"
KEPT: Final = ".kernel"

Key: TypeAlias = tuple[Any, Any, Any]
"""Numba's own of a function's code: the types of the arguments, the processor, digests of the byte code."""

_kept_in: list[Path] = []


def find(kernel: str, key: Key) -> Any:
    """What was kept of a kernel, by its name and Numba's key; None where there is nothing, or nothing that can be read."""
    file = None if _kept_in else opened(FILE)
    try:
        return None if file is None else loads(file.read(_entry(kernel, key)))
    except (KeyError, OSError, EOFError, BadZipFile, InflateError):
        return None


def add(kernel: str, key: Key, made: Any) -> bool:
    """Keeps a kernel, if kernels are being prepared."""
    for folder in _kept_in:
        part = folder / f"{os.getpid()}.part"
        part.write_bytes(dumps(made))
        part.replace(folder / f"{_entry(kernel, key)}{KEPT}")
    return bool(_kept_in)


def is_preparing() -> bool:
    """Whether kernels that are compiled now are kept."""
    return bool(_kept_in)


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Keeps what is compiled in the block as files of a folder, which several processes may share."""
    _kept_in.append(folder)
    try:
        yield
    finally:
        _kept_in.clear()


def packed(folder: Path, path: Path) -> None:
    """Makes the one file of what a folder keeps; it appears when all of it is there."""
    part = path.with_suffix(".part")
    try:
        with ZipFile(part, "w", ZIP_DEFLATED) as file:
            file.writestr(ABOUT, json.dumps(surroundings()))
            for kept in sorted(folder.glob(f"*{KEPT}")):
                file.writestr(kept.stem, kept.read_bytes())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@cache
def opened(path: Path) -> ZipFile | None:
    """The file, if it is for this source and these versions."""
    try:
        file = ZipFile(path)
        return file if json.loads(file.read(ABOUT)) == surroundings() else None
    except (OSError, KeyError, ValueError, BadZipFile, InflateError):
        return None


def surroundings() -> dict[str, str]:
    """All that Numba's part of the work depends on: 30 ms, for reading the package's source."""
    source = sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        source.update(f"{file.relative_to(PACKAGE).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return {
        "source": source.hexdigest(),
        "python": f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}",
        "machine": f"{platform.system()} {platform.machine()}",
        **{name: import_module(name).__version__ for name in ("numba", "llvmlite", "numpy")},
    }


def _entry(kernel: str, key: Key) -> str:
    """The name of a kernel in the file: by its arguments' types and its byte code, whatever the processor."""
    types, _, code = key
    return sha256(repr((kernel, types, code)).encode()).hexdigest()
