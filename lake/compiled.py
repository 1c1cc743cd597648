"""Functions compiled by Numba when they are first called, or read from the cache folder.

    @kernel
    def add_ones(values, out):
        for row in range(values.size):
            out[row] = values[row] + 1

``lake.compiler`` holds the only compile options. Until the first call numba is not even imported, which takes longer than
a small query. ``exec.kernels`` tells what kernels have in common.
"""

from __future__ import annotations

import tempfile
import threading
import zlib
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, Final

KERNELS: Final[dict[str, Kernel]] = {}
REHEARSALS: Final[list[Callable[[], None]]] = []

COMPILED_ROWS: Final = 100
"""Importing Numba takes half a second, a row of a text kernel in plain Python a few microseconds to milliseconds."""

_COMPILING: Final = threading.RLock()


class Kernel:
    """A function that is compiled when first called; ``py_func`` is the plain one; ``allocates``: it makes arrays."""

    __slots__ = ("_inner", "_jitted", "allocates", "py_func")

    def __init__(self, py_func: FunctionType, *, allocates: bool = False) -> None:
        self.py_func = py_func
        self.allocates = allocates
        self._jitted: Callable[..., Any] | None = None
        self._inner: Callable[..., Any] | None = None

    @property
    def jitted(self) -> Callable[..., Any]:
        """Numba's dispatcher; the kernels that this one calls are replaced by their inner ones."""
        with _COMPILING:
            if self._jitted is None:
                self._jitted = _jit(self.py_func, allocates=self.allocates, inner=False)
            return self._jitted

    @property
    def inner(self) -> Callable[..., Any]:
        """What kernels call: without the part that lets Python call it."""
        with _COMPILING:
            if self._inner is None:
                self._inner = _jit(self.py_func, allocates=self.allocates, inner=True)
            return self._inner

    def __call__(self, *arguments: Any) -> Any:
        return (self._jitted or self.jitted)(*arguments)

    def over(self, rows: int) -> Callable[..., Any]:
        """The compiled function; the plain one for rows so few that waking Numba costs more than they do.

        For kernels that call no other one.
        """
        return self if rows >= COMPILED_ROWS or self._jitted is not None else self.py_func


def kernel(function: Callable[..., Any]) -> Kernel:
    """Registers a kernel, which works on the arrays it is given and makes none."""
    return _registered(function, allocates=False)


def allocating_kernel(function: Callable[..., Any]) -> Kernel:
    """Registers a kernel that makes arrays: it counts who holds each array, which its calls of other kernels pay for."""
    return _registered(function, allocates=True)


def _registered(function: Callable[..., Any], *, allocates: bool) -> Kernel:
    assert isinstance(function, FunctionType)
    made = Kernel(function, allocates=allocates)
    KERNELS[f"{function.__module__.rpartition('.')[2]}.{function.__name__}"] = made
    return made


def rehearsal(function: Callable[[], None]) -> Callable[[], None]:
    """Registers a function that calls kernels with the types they are used with, over a few rows."""
    REHEARSALS.append(function)
    return function


def _jit(function: FunctionType, *, allocates: bool, inner: bool) -> Callable[..., Any]:
    code_folder()
    names = {
        name: value.inner if isinstance(value, Kernel) else value
        for name, value in function.__globals__.items()
        if name in function.__code__.co_names
    }
    bound = FunctionType(function.__code__, {**names, "__name__": function.__module__}, function.__name__)
    bound.__module__ = function.__module__
    bound.__qualname__ = function.__qualname__ + _stamp_of_callees(function) + ("_inner" if inner else "")
    made = import_module("lake.compiler").compiled(bound, allocates=allocates, inner=inner)
    if made._cache.cache_path is not None:
        impl = made._cache._impl
        name = f"{function.__module__}.{function.__qualname__}{' inner' if inner else ''}"
        made._cache._cache_file = kept_code()(
            made._cache.cache_path, impl.filename_base, impl.locator.get_source_stamp(), name
        )
    return made  # type: ignore[no-any-return]


@cache
def kept_code() -> type[Any]:
    """Numba's files of one function's machine code, safe for several processes that compile it at once.

    ``made`` counts what this process made.

    Numba numbers the files by its index and tells of one before it is written: two processes take the same number for two
    signatures, and one then reads the other's code; one that is killed between the two leaves code of an older source.
    A file named by its signature, written before the index tells of it, is right whenever it is found. Of two indexes
    that are written at once one wins: what the other tells of is compiled again.

    A kernel of which nothing is found may be there half made (``lake.prepared``): then only LLVM has work to do.
    """
    files: Any = import_module("numba.core.caching").IndexDataCacheFile
    prepared = import_module("lake.prepared")

    class KeptCode(files):  # type: ignore[misc]
        made = 0

        def __init__(self, path: str, base: str, stamp: Any, kernel: str = "") -> None:
            super().__init__(path, base, stamp)
            self._kernel = kernel

        def load(self, key: Any) -> Any:
            found = super().load(key)
            if found is None and (half_made := prepared.find(self._kernel, key)) is not None:
                found = import_module("lake.compiler").finished(half_made)
                self.save(key, found)
            return found

        def save(self, key: Any, data: Any) -> None:
            KeptCode.made += 1
            if prepared.add(self._kernel, key, data):
                return
            name = f"{self._index_name.removesuffix('.nbi')}.{sha256(repr(key).encode()).hexdigest()[:16]}.nbc"
            self._save_data(name, data)
            self._save_index({**self._load_index(), key: name})

    return KeptCode


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


def code_folder() -> str:
    """The folder of compiled code: the one that Numba is told of, or the cache folder, which it is told of then."""
    config = import_module("numba").config
    if not config.CACHE_DIR:
        config.CACHE_DIR = _cache_folder()
    return str(config.CACHE_DIR)


def _cache_folder() -> str:
    """The user's folder for compiled kernels, or a temporary one where that cannot be written."""
    try:
        folder = Path.home() / ".cache" / "lake" / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except (OSError, RuntimeError):
        return tempfile.mkdtemp(prefix="lake-kernels-")
