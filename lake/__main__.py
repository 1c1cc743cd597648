"""`python -m lake`, and the program `lake`: the command line as a process of its own."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any, Final, cast

from lake.cli import main
from lake.config import spare_threads

COLLECTED_AFTER: Final = 200_000
"""Objects made before Python looks for cycles: more than a small statement makes, of whose time it is a tenth at 700 and a
fifteenth at 20,000. A node that is ready looks more often (``lake.net.lifecycle``)."""


class WithoutPandas:
    """An import hook by which pandas is not there.

    pyarrow imports it, where it is installed, at its first array of a list, which takes as long as all the rest of a small
    statement. The program has no use for it: a frame is only ever given to or asked of ``lake`` the package.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuses the one name, and leaves the others to the next hook."""
        if name == "pandas":
            raise ModuleNotFoundError(f"the program does without {name}", name=name)


class ComputeLater(ModuleType):
    """Stands for pyarrow.compute until the first of its functions is asked for.

    Importing it wraps 300 functions with their documentation, an eighth of the time that a statement takes which calls none.
    """

    NAME: Final = "pyarrow.compute"
    _lock = RLock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self._lock:
            if sys.modules.get(self.NAME) is self:
                del sys.modules[self.NAME]
                self.__dict__.update(vars(import_module(self.NAME)))
        if name not in self.__dict__:
            raise AttributeError(f"module {self.NAME!r} has no attribute {name!r}")
        return self.__dict__[name]


def run() -> int:
    """Runs the program in this process, which is its own; the exit status."""
    gc.set_threshold(COLLECTED_AFTER)
    spare_threads()
    sys.meta_path.insert(0, WithoutPandas)
    sys.modules.setdefault(ComputeLater.NAME, ComputeLater(ComputeLater.NAME))
    return leave(main())


def leave(status: int) -> int:
    """Ends the process without taking apart, one by one, what it holds: a sixth of a small statement's time.

    As at Python's own end, threads are waited for, what is registered for the end is called, and what was written goes out.
    """
    cast(Any, threading)._shutdown()
    cast(Any, atexit)._run_exitfuncs()
    with suppress(OSError, ValueError):  # a stream that nobody reads any more, or that was closed
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(status)
    return status


if __name__ == "__main__":
    sys.exit(run())
