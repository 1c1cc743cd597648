"""Kernels: Numba functions over contiguous arrays, and a thin layer that takes Arrow arrays to them.

Reading order: ``views`` (Arrow to numpy and back), ``hashing``, ``tables``, ``text_table`` and ``groups`` (numbers of
keys), ``join``, ``partition``, ``sorting``, ``order``, ``search``, ``decimals``, ``aggregates``, ``extremes``, ``moments``,
``exact_sum``, ``frames``, ``strings``.

    @kernel
    def add_ones(values, out):
        for row in range(values.size):
            out[row] = values[row] + 1

``@kernel`` holds the only compile options. A kernel is compiled when it is first called with new types, or read from
the cache folder; until then numba is not even imported, which takes longer than a small query.

Validity is an argument: a byte for each row, 1 where there is a value, and an empty array where there are no NULLs, so
that one compiled kernel serves both.
"""

from __future__ import annotations

import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import numpy as np

KERNELS: Final[dict[str, Kernel]] = {}
REHEARSALS: Final[list[Callable[[], None]]] = []
MODULES: Final = (
    "tables", "text_table", "groups", "partition", "join", "sorting", "order", "search", "decimals", "aggregates",
    "extremes", "moments", "exact_sum", "frames", "strings",
)

_COMPILING: Final = threading.RLock()


class Kernel:
    """A function that is compiled when first called; ``py_func`` is the plain one."""

    __slots__ = ("_jitted", "py_func")

    def __init__(self, py_func: FunctionType) -> None:
        self.py_func = py_func
        self._jitted: Callable[..., Any] | None = None

    @property
    def jitted(self) -> Callable[..., Any]:
        """Numba's dispatcher; the kernels that this one calls are replaced by theirs."""
        with _COMPILING:
            if self._jitted is None:
                self._jitted = _jit(self.py_func)
            return self._jitted

    def __call__(self, *arguments: Any) -> Any:
        return (self._jitted or self.jitted)(*arguments)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Registers a kernel."""
    assert isinstance(function, FunctionType)
    made = Kernel(function)
    KERNELS[f"{function.__module__.rpartition('.')[2]}.{function.__name__}"] = made
    return made


def rehearsal(function: Callable[[], None]) -> Callable[[], None]:
    """Registers a function that calls kernels with the types they are used with, over a few rows."""
    REHEARSALS.append(function)
    return function


def warm(progress: Callable[[int, int], None] | None = None) -> None:
    """Compiles the kernels, or reads them from the cache folder, by rehearsing their use.

    progress  told after each rehearsal how many are done, and of how many
    """
    for name in MODULES:
        import_module(f"{__name__}.{name}")
    for done, rehearse in enumerate(REHEARSALS, 1):
        rehearse()
        if progress is not None:
            progress(done, len(REHEARSALS))


def _jit(function: FunctionType) -> Callable[..., Any]:
    numba = import_module("numba")
    if not numba.config.CACHE_DIR:
        numba.config.CACHE_DIR = _cache_folder()
    names = {
        name: value.jitted if isinstance(value, Kernel) else value
        for name, value in function.__globals__.items()
        if name in function.__code__.co_names
    }
    bound = FunctionType(function.__code__, {**names, "__name__": function.__module__}, function.__name__)
    bound.__module__ = function.__module__
    bound.__qualname__ = function.__qualname__ + _stamp_of_callees(function)
    jit = numba.njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")
    return jit(bound)  # type: ignore[no-any-return]


def _stamp_of_callees(function: FunctionType) -> str:
    """Part of a name in the cache that changes with the other files whose kernels are called: Numba looks at one file."""
    files, rest = set(), [function]
    while rest:
        current = rest.pop()
        files.add(current.__code__.co_filename)
        called = (current.__globals__.get(name) for name in current.__code__.co_names)
        rest += [callee.py_func for callee in called if isinstance(callee, Kernel) and callee.py_func is not current]
    files.discard(function.__code__.co_filename)
    stamps = [(file, Path(file).stat().st_mtime_ns) for file in sorted(files)]
    return f"_{zlib.crc32(repr(stamps).encode()):08x}" if stamps else ""


def _cache_folder() -> str:
    """The user's folder for compiled kernels, or a temporary one where that cannot be written."""
    try:
        folder = Path.home() / ".cache" / "lake" / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except (OSError, RuntimeError):
        return tempfile.mkdtemp(prefix="lake-kernels-")


@contextmanager
def interpreted() -> Iterator[None]:
    """Runs all kernels as plain Python within the block: the oracle of their tests."""
    before = {name: made._jitted for name, made in KERNELS.items()}
    try:
        for made in KERNELS.values():
            made._jitted = made.py_func
        with np.errstate(over="ignore"):
            yield
    finally:
        for name, made in KERNELS.items():
            made._jitted = before[name]
